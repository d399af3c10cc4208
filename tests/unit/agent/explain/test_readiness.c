/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A host on which nothing is wrong, and one thing after the other that goes wrong with it. */
#include <stdio.h>
#include <string.h>

#include "agent/explain/readiness.h"
#include "tests/unit/agent/explain/healthy_host.h"
#include "tests/unit/unit.h"

static struct vhca_finding findings[VHCA_READINESS_COUNT];

/* Its VF is not in the guest yet, so that the port keeps nobody from anything. */
static int setup(void **state)
{
	struct healthy_host *f;

	healthy_host_setup(state);
	f = *state;
	f->vf->state = VHCA_VF_CLAIMED;
	return 0;
}

static unsigned int look(struct healthy_host *f)
{
	unsigned int n = 0;

	memset(findings, 0, sizeof(findings));
	vhca_explain_readiness(&f->ex, findings);
	for (unsigned int i = 0; i < VHCA_READINESS_COUNT; i++)
		n += findings[i].status != VHCA_FINDING_OK;
	return n;
}

/* It is the only one, of this code, and its sentence has the word. */
static void expect(struct healthy_host *f, const char *code, enum vhca_finding_status status,
		   const char *word)
{
	unsigned int i = 0;

	assert_int_equal(look(f), 1);
	while (findings[i].status == VHCA_FINDING_OK)
		i++;
	assert_string_equal(findings[i].step, code);
	assert_int_equal(findings[i].status, status);
	assert_non_null(strstr(findings[i].text, word));
	assert_string_not_equal(findings[i].fix, "");
	assert_int_equal(vhca_readiness_blocks(i), i <= VHCA_READINESS_VFS_UNBOUND);
}

static void nothing_is_wrong(void **state)
{
	struct healthy_host *f = *state;

	assert_int_equal(look(f), 0);
	for (unsigned int i = 0; i < VHCA_READINESS_COUNT; i++)
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(findings[i].step, findings[j].step);
}

static void what_blocks(void **state)
{
	static const char *const codes[] = {"state_disk", "inventory_unread", "vfs_not_made",
					    "vfs_unbound"};
	struct healthy_host *f = *state;

	for (unsigned int i = 0; i < 4; i++) {
		vhca_error_set(&f->ex.beginning, VHCA_ERR_UNAVAILABLE, codes[i], 0, "not yet");
		vhca_error_hint(&f->ex.beginning, "wait");
		expect(f, codes[i], VHCA_FINDING_WRONG, "not yet");
		assert_true(vhca_readiness_blocks(i));
		assert_string_equal(findings[i].fix, "wait");
	}
}

static void adapters(void **state)
{
	struct healthy_host *f = *state;

	vhca_error_set(&f->ex.ports, VHCA_ERR_UNAVAILABLE, "ports_unread", 0, "no RDMA device");
	expect(f, "ports_unread", VHCA_FINDING_UNKNOWN, "RDMA");
	f->ex.ports = (struct vhca_error)VHCA_ERROR_INIT;
	f->hca->ports[0].state = VHCA_PORT_DOWN;
	expect(f, "port_down", VHCA_FINDING_WARNING, "0000:01:00.0");
	f->vf->state = VHCA_VF_ATTACHED;
	expect(f, "port_down", VHCA_FINDING_WRONG, "guests");
	f->hca->present = false;
	expect(f, "hca_absent", VHCA_FINDING_WRONG, "0000:01:00.0");
	f->hca->wanted = false;
	assert_int_equal(look(f), 0);
	f->hca->present = f->hca->wanted = true;
	f->hca->ports[0].state = VHCA_PORT_ACTIVE;
	(void)snprintf(f->hca->problem, sizeof(f->hca->problem), "fewer VFs");
	(void)snprintf(f->hca->problem_fix, sizeof(f->hca->problem_fix), "mstconfig");
	expect(f, "hca_problem", VHCA_FINDING_WRONG, "fewer VFs");
}

/* One that the kernel has not shown since the agent began is on no adapter's list, or is known from
 * the state database alone. */
static void an_adapter_that_did_not_come(void **state)
{
	struct healthy_host *f = *state;

	f->conf.n_hcas = 1;
	f->conf.hcas[0] = (struct vhca_conf_hca){.bdf = {.bus = 2}, .manage = true};
	expect(f, "hca_absent", VHCA_FINDING_WRONG, "0000:02:00.0");
	f->hca->present = f->hca->wanted = false;
	f->conf.hcas[0] = (struct vhca_conf_hca){.is_default = true, .manage = true};
	expect(f, "hca_absent", VHCA_FINDING_WRONG, "0000:01:00.0");
	vhca_error_set(&f->ex.beginning, VHCA_ERR_UNAVAILABLE, "inventory_unread", 0, "not yet");
	expect(f, "inventory_unread", VHCA_FINDING_WRONG, "not yet");
	f->ex.beginning = (struct vhca_error)VHCA_ERROR_INIT;
	f->conf.hcas[0].manage = false;
	assert_int_equal(look(f), 0);
}

static void quarantined_vfs_are_counted(void **state)
{
	struct healthy_host *f = *state;

	f->vf->state = VHCA_VF_QUARANTINED;
	expect(f, "vf_quarantined", VHCA_FINDING_WRONG, "0000:01:00.1");
	f->other->state = VHCA_VF_QUARANTINED;
	expect(f, "vf_quarantined", VHCA_FINDING_WRONG, "0000:01:00.1 and 1 more");
}

static void libvirt_and_domains(void **state)
{
	struct healthy_host *f = *state;

	f->ex.virt_connected = f->ex.virt_synced = false;
	expect(f, "libvirt_unreachable", VHCA_FINDING_WRONG, "libvirt");
	f->ex.virt_connected = true;
	expect(f, "domains_unread", VHCA_FINDING_UNKNOWN, "libvirt");
	f->ex.virt_synced = true;
	(void)snprintf(f->dom->requests[0].name, sizeof(f->dom->requests[0].name), "ib1");
	vhca_error_set(&f->dom->requests[0].problem, VHCA_ERR_CONFLICT, "hard_limit", 0, "x");
	assert_int_equal(look(f), 0); /* it asks for that no more */
	f->dom->info->n_requests = 1;
	(void)snprintf(f->dom->info->requests[0].name, sizeof(f->dom->info->requests[0].name),
		       "ib1");
	expect(f, "hard_limit", VHCA_FINDING_WARNING, "vm1");
	(void)snprintf(f->claim->name, sizeof(f->claim->name), "ib1");
	assert_int_equal(look(f), 0); /* it has got that by hand */
	f->dom->requests[0].problem = (struct vhca_error)VHCA_ERROR_INIT;
	vhca_error_set(&f->dom->unreadable, VHCA_ERR_CONFLICT, "bad", 0, "x");
	expect(f, "domain_unreadable", VHCA_FINDING_WARNING, "vm1");
}

static void subnet_manager(void **state)
{
	struct healthy_host *f = *state;

	f->ex.sm_reachable = false;
	expect(f, "sm_unreachable", VHCA_FINDING_WARNING, "waits");
	f->ex.sm = &vhca_sm_none; /* nothing leaves the host */
	assert_int_equal(look(f), 0);
	f->ex.sm_reachable = true;
	f->claim->sm_answer = VHCA_ANSWER_REFUSED;
	expect(f, "sm_refused", VHCA_FINDING_WRONG, "vm1/ib0");
}

static void a_port_that_waits_is_not_refused(void **state)
{
	struct healthy_host *f = *state;

	f->claim->origin = VHCA_ORIGIN_CLAIM;
	f->claim->identity.guid = 0xfa163e0000123456;
	vhca_port_name(f->claim->identity.guid, f->claim->name);
	assert_true(vhca_claim_is_port(f->claim));
	assert_int_equal(vhca_claim_awaits(f->claim), VHCA_AWAITS_NOTHING);
	f->claim->sm_answer = VHCA_ANSWER_SUPERSEDED;
	expect(f, "sm_holds_back", VHCA_FINDING_WARNING, "vm1/mac-fa163e123456");
	assert_string_equal(vhca_claim_await_to_string(vhca_claim_awaits(f->claim)), "sm");
	f->claim->custody = VHCA_CUSTODY_RESERVED;
	assert_string_equal(vhca_claim_await_to_string(vhca_claim_awaits(f->claim)), "domain");
	assert_int_equal(look(f), 0);
}

static void a_drained_host(void **state)
{
	struct healthy_host *f = *state;

	f->ex.drained = true;
	expect(f, "drained", VHCA_FINDING_WARNING, "drained");
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, healthy_host_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(nothing_is_wrong),
		T(what_blocks),
		T(adapters),
		T(an_adapter_that_did_not_come),
		T(quarantined_vfs_are_counted),
		T(libvirt_and_domains),
		T(subnet_manager),
		T(a_port_that_waits_is_not_refused),
		T(a_drained_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
