/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A healthy VF in a guest, and one thing after the other that goes wrong with it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "tests/unit/agent/explain/healthy_host.h"
#include "tests/unit/unit.h"

#define GUID HEALTHY_GUID

static struct vhca_finding findings[VHCA_EXPLAIN_STEPS];

static const struct vhca_finding *verdict(struct healthy_host *f)
{
	memset(findings, 0, sizeof(findings));
	vhca_explain_vf(&f->ex, f->vf, findings);
	for (unsigned int i = 0; i < VHCA_EXPLAIN_STEPS; i++) {
		assert_string_not_equal(findings[i].text, "");
		/* One sentence: what is wrong, or may be, has a way out. */
		assert_true(findings[i].status < VHCA_FINDING_WARNING || findings[i].fix[0]);
	}
	return vhca_explain_verdict(findings, VHCA_EXPLAIN_STEPS);
}

/*
 * The verdict is at this step, of this status, and has the words in its sentence and in its way
 * out.
 */
static void expect(struct healthy_host *f, const char *step, enum vhca_finding_status status,
		   const char *text, const char *fix)
{
	const struct vhca_finding *v = verdict(f);

	assert_non_null(v);
	if (strcmp(v->step, step) || v->status != status || !strstr(v->text, text) ||
	    !strstr(v->fix, fix))
		fail_msg("%s %s: %s -> %s", vhca_finding_status_to_string(v->status), v->step,
			 v->text, v->fix);
}

#define WRONG(f, step, text, fix)   expect(f, step, VHCA_FINDING_WRONG, text, fix)
#define WARNING(f, step, text, fix) expect(f, step, VHCA_FINDING_WARNING, text, fix)

static void a_healthy_vf_is_ok_at_every_step(void **state)
{
	static const char *const order[] = {"firmware",	 "PCI",		"IOMMU",	 "driver",
					    "GUID",	 "link policy", "physical port", "SM",
					    "partition", "P_Key table", "guest"};
	struct healthy_host *f = *state;

	assert_null(verdict(f));
	for (unsigned int i = 0; i < VHCA_EXPLAIN_STEPS; i++)
		assert_string_equal(findings[i].step, order[i]);
	assert_non_null(strstr(findings[7].text, "has granted the GUID"));
	f->vf = f->other;
	assert_null(verdict(f));
	assert_non_null(strstr(findings[10].text, "free"));
}

static void adapter_and_function(void **state)
{
	struct healthy_host *f = *state;

	f->vf->group_size = 3;
	WRONG(f, "IOMMU", "2 other devices", "ACS");
	f->vf->iommu_group = -1;
	WRONG(f, "IOMMU", "no IOMMU group", "intel_iommu=on");
	f->ex.busy_ms = 34000;
	WRONG(f, "PCI", "34 s", "fuser");
	f->ex.busy_ms = 1200;
	f->vf->present = false;
	WRONG(f, "PCI", "does not show", "lspci -s 0000:01:00.1");
	(void)snprintf(f->hca->problem, sizeof(f->hca->problem), "4 VFs wanted; reboot");
	(void)snprintf(f->hca->problem_fix, sizeof(f->hca->problem_fix), "reboot");
	WRONG(f, "firmware", "4 VFs wanted", "reboot");
	f->hca->problem[0] = '\0';
	f->hca->facts.total_vfs = 0;
	WRONG(f, "firmware", "SR-IOV is off", "NUM_OF_VFS");
	f->hca->present = false;
	WRONG(f, "firmware", "not there", "lspci");
}

static void pci_errors(void **state)
{
	struct healthy_host *f = *state;

	f->vf->pci_error = VHCA_PCI_ERROR_RECOVERED;
	f->vf->pci_error_ms = vhca_wall_ms() - 90500;
	WARNING(f, "PCI", "90 s ago, and is back", "dmesg");
	f->dom->info->paused = true;
	WRONG(f, "PCI", "paused is domain vm1", "virsh reset vm1; virsh resume vm1");
	f->dom->info->paused = false;
	f->vf->pci_error = VHCA_PCI_ERROR_REPORTED;
	WRONG(f, "PCI", "not back", "dmesg");
}

/* A wrong number of VFs does not bring the port of one that is there down. */
static void wrong_count_is_no_verdict_on_a_vf_that_exists(void **state)
{
	struct healthy_host *f = *state;

	(void)snprintf(f->hca->problem, sizeof(f->hca->problem), "4 VFs wanted");
	WARNING(f, "firmware", "4 VFs wanted", "");
	f->hca->ports[0].state = 1;
	f->hca->ports[0].phys_state = 2;
	WRONG(f, "physical port", "Polling", "cable");
}

static void drivers(void **state)
{
	struct healthy_host *f = *state;

	(void)snprintf(f->vf->driver, sizeof(f->vf->driver), "mlx4_core");
	WRONG(f, "driver", "on mlx4_core instead of vfio-pci", "vfio-pci");
	f->conf.n_hcas = 1;
	f->conf.hcas[0] =
		(struct vhca_conf_hca){.is_default = true, .n_exclude = 1, .exclude = {f->vf->bdf}};
	WARNING(f, "driver", "leaves the VF out: it stays on mlx4_core", "exclude in [hca]");
	f->conf.n_hcas = 0;
	f->hca->managed = f->hca->wanted = false;
	WARNING(f, "driver", "does not manage", "manage = yes in [hca 0000:01:00.0]");
	f->hca->wanted = true;
	WARNING(f, "driver", "no InfiniBand port", "LINK_TYPE_P1=1");
	f->hca->facts.ibdev[0] = '\0';
	WRONG(f, "driver", "no RDMA device", "modprobe mlx4_ib");
}

static void guids(void **state)
{
	struct healthy_host *f = *state;

	f->vf->hw.requested = 0x1405000000000001;
	WRONG(f, "GUID", "0x1405000000000001 instead of 0x02c9ab0000000001", "watch");
	f->other->hw.requested = GUID;
	WRONG(f, "GUID", "0000:01:00.2 shows the same GUID", "explain 0000:01:00.2");
	f->other->hw.requested = VHCA_GUID_ALL1;
	f->vf->hw_known = false;
	expect(f, "GUID", VHCA_FINDING_UNKNOWN, "not read", "");
	f->vf->state = VHCA_VF_CLAIMED;
	(void)snprintf(f->vf->reason, sizeof(f->vf->reason), "waits for the SM's answer");
	WARNING(f, "GUID", "waits for the SM's answer", "");
	f->vf->state = VHCA_VF_SCRUBBING;
	f->vf->hw_known = true;
	f->vf->hw.requested = VHCA_GUID_ALL1;
	(void)snprintf(f->vf->reason, sizeof(f->vf->reason), "the SM has refused its GUID");
	WARNING(f, "GUID", "is being withdrawn: the SM has refused its GUID", "");
	f->claim->custody = VHCA_CUSTODY_WITHHELD;
	WARNING(f, "GUID", "withheld", "vhcactl migrations");
}

static void ports_that_wait(void **state)
{
	struct healthy_host *f = *state;

	f->claim->origin = VHCA_ORIGIN_CLAIM;
	vhca_port_name(f->claim->identity.guid, f->claim->name);
	f->vf->state = VHCA_VF_CLAIMED;
	f->vf->hw.requested = VHCA_GUID_ALL1;
	f->claim->disputed = true;
	WARNING(f, "GUID", "held back", "vhcactl takeover d0000000-");
	f->claim->custody = VHCA_CUSTODY_RESERVED;
	WARNING(f, "GUID", "reserved", "");
}

/*
 * The 3 a.m. case: one line, although everything above the cable depends on it and is not right
 * either.
 */
static void port_without_a_link(void **state)
{
	static const struct {
		uint8_t phys;
		const char *text, *fix;
	} cases[] = {
		{2, "Polling", "cable"},	   {3, "Disabled", "ibportstate -D 0"},
		{6, "LinkErrorRecovery", "cable"}, {5, "no link", "iblinkinfo"},
		{9, "no link", "iblinkinfo"},
	};
	struct healthy_host *f = *state;

	f->hca->ports[0].state = 1;
	f->hca->ports[0].lid = f->hca->ports[0].sm_lid = 0;
	f->vf->granted = false;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		f->hca->ports[0].phys_state = cases[i].phys;
		WRONG(f, "physical port", cases[i].text, cases[i].fix);
	}
	assert_int_equal(findings[7].status, VHCA_FINDING_UNKNOWN);
	f->hca->ports[0].is_ib = false;
	WRONG(f, "physical port", "Ethernet", "LINK_TYPE_P1=1");
	f->hca->ports[0].port = 0;
	expect(f, "physical port", VHCA_FINDING_UNKNOWN, "not been read", "journalctl");
}

static void subnet_manager(void **state)
{
	struct healthy_host *f = *state;

	(void)snprintf(f->claim->lid_reason, sizeof(f->claim->lid_reason), "LMC is not 0");
	WARNING(f, "SM", "last host stays there", "have them connect anew");
	f->claim->stayed_lid = 9;
	WARNING(f, "SM", "LMC is not 0", "vhcasmctl move 9 0x0002c90300000011");
	f->vf->granted = false;
	WARNING(f, "SM", "has not granted GUID 0x02c9ab0000000001", "ibstat");
	f->ex.sm_reachable = false;
	WARNING(f, "SM", "does not answer", "vhcactl outbox");
	f->ex.sm = &vhca_sm_none; /* nobody is told anything */
	WARNING(f, "SM", "has not granted", "");
	f->claim->sm_answer = VHCA_ANSWER_REFUSED;
	(void)snprintf(f->claim->sm_answer_reason, sizeof(f->claim->sm_answer_reason),
		       "epoch 9 is known");
	WRONG(f, "SM", "epoch 9 is known", "vhcasmctl bindings 0x02c9ab0000000001");
	f->claim->sm_answer = VHCA_ANSWER_SUPERSEDED;
	WRONG(f, "SM", "epoch 9 is known", "vhcactl takeover d0000000-");
	f->vf->state = VHCA_VF_SCRUBBING; /* between two attempts of the same claim */
	WRONG(f, "SM", "epoch 9 is known", "vhcactl takeover d0000000-");
	f->hca->ports[0].sm_lid = 0;
	WRONG(f, "SM", "SM LID 0", "opensm");
	f->hca->ports[0].sm_lid = 1;
	f->hca->ports[0].lid = 0xffff;
	WRONG(f, "SM", "LID 65535", "opensm");
	f->hca->ports[0].state = 2;
	WRONG(f, "SM", "it is INIT", "opensm");
}

/* What the SM has said of the ticket is an answer, and no other answer is one of the ticket. */
static void whose_the_guid_is(void **state)
{
	static const char both[] = "vhcasmctl owner 0x02c9ab0000000001 0x0002c90300000011; then "
				   "here: vhcactl takeover d0000000-0000-0000-0000-000000000000 "
				   "EVIDENCE";
	struct healthy_host *f = *state;

	f->claim->sm_code = VHCA_CODE_TICKET_NOT_VALID;
	f->claim->sm_answer = VHCA_ANSWER_UNREACHABLE;
	WARNING(f, "SM", "does not believe the ticket", "vhcasmctl owner 0x02c9ab0000000001");
	f->claim->sm_code = VHCA_CODE_NOT_THE_OWNER;
	f->claim->sm_answer = VHCA_ANSWER_NONE;
	assert_null(verdict(f));
	f->claim->sm_answer = VHCA_ANSWER_SUPERSEDED;
	WRONG(f, "SM", "refuses GUID 0x02c9ab0000000001", both);
	assert_string_equal(strstr(verdict(f)->fix, "vhcasmctl"), both);
}

static void partitions(void **state)
{
	struct healthy_host *f = *state;

	f->claim->identity.n_pkeys = 2;
	f->claim->identity.pkeys[1] = 0x0003;
	WRONG(f, "partition", "not in partition 0x0003: the subnet manager accepted it", "saquery");
	f->claim->sm_answer = VHCA_ANSWER_UNREACHABLE;
	WRONG(f, "partition", "does not answer", "vhcactl outbox");
	f->conf.sm_pkeys = VHCA_SM_PKEYS_STATIC;
	WRONG(f, "partition", "0x0002c90300000011 is not in partition 0x0003",
	      "0x0002c90300000011=limited to partition 0x0003");
	f->claim->identity.n_pkeys = 0;
	f->vf->hw.map[0] = VHCA_PKEY_UNMAPPED;
	WARNING(f, "partition", "claimed without a partition", "");
}

static void tables(void **state)
{
	struct healthy_host *f = *state;

	f->vf->hw.map[0] = VHCA_PKEY_UNMAPPED;
	WARNING(f, "P_Key table", "index 0 shows none instead of 0x8001", "by itself");
	f->vf->hw.map[0] = 1;
	f->vf->hw.map[1] = 2;
	f->vf->hw.value[1] = 0x8002;
	WRONG(f, "P_Key table", "index 1 shows 0x8002 instead of none", "by itself");
	f->vf->hw.map[1] = VHCA_PKEY_UNMAPPED;
	f->vf->hw.value[0] = 0xffff;
	WRONG(f, "P_Key table", "index 0 shows 0xffff instead of 0x8001", "by itself");
	f->hca->ports[0].pkeys[1] = f->claim->identity.pkeys[0] = f->vf->hw.value[0] = 0x0001;
	WARNING(f, "P_Key table", "limited member (0x0001)", "full member first");
}

static void guests(void **state)
{
	struct healthy_host *f = *state;

	f->ex.virt_synced = false;
	expect(f, "guest", VHCA_FINDING_UNKNOWN, "libvirt", "libvirtd");
	f->ex.virt_synced = true;
	f->dom->info->n_hostdevs = 0;
	WARNING(f, "guest", "left its guest", "");
	f->vf->state = VHCA_VF_DETACHING;
	(void)snprintf(f->vf->reason, sizeof(f->vf->reason), "waits for the guest to let go");
	WARNING(f, "guest", "it is detaching, not in a guest: waits for the guest", "watch");
	f->vf->state = VHCA_VF_QUARANTINED;
	(void)snprintf(f->vf->reason, sizeof(f->vf->reason), "read-back differs");
	WRONG(f, "guest", "quarantined, nobody gets it: read-back differs", "journalctl");
}

static void a_full_state_disk_is_the_reason(void **state)
{
	struct healthy_host *f = *state;

	vhca_error_set(&f->ex.disk, VHCA_ERR_EXHAUSTED, "state_disk", ENOSPC,
		       "the state database in /s cannot be written");
	vhca_error_hint(&f->ex.disk, "make room (df /s)");
	WARNING(f, "guest", "it is attached, and stays so: the state database", "make room");
	f->vf->state = VHCA_VF_CLAIMED;
	WRONG(f, "guest", "it is claimed, and stays so: the state database in /s", "make room");
}

/* Somebody started the guest without vhcad: nothing of it is called wrong. */
static void unmanaged_vf_in_a_guest(void **state)
{
	struct healthy_host *f = *state;

	f->vf->state = VHCA_VF_UNMANAGED;
	f->vf->claim = NULL;
	WARNING(f, "guest", "domain vm1 has it without a claim", "vhcactl adopt vm1");
	f->dom->info->n_hostdevs = 0;
	(void)snprintf(f->vf->reason, sizeof(f->vf->reason), "somebody has its vfio group open");
	WARNING(f, "GUID", "which vhcad did not give it", "");
	f->vf->hw.requested = VHCA_GUID_ALL1;
	WARNING(f, "P_Key table", "did not give it", "");
	f->vf->hw.map[0] = VHCA_PKEY_UNMAPPED;
	WARNING(f, "guest", "group open", "vhcactl vfs");
}

static void mlx5_says_what_it_cannot_see(void **state)
{
	struct healthy_host *f = *state;

	f->hca->facts.family = VHCA_FAMILY_MLX5;
	f->vf->hw.node_guid = GUID;
	assert_null(verdict(f));
	assert_non_null(strstr(findings[8].text, "has accepted the partitions"));
	f->claim->sm_answer = VHCA_ANSWER_NONE;
	WARNING(f, "partition", "not put GUID 0x02c9ab0000000001 into its partitions yet",
		"outbox");
	f->claim->identity.n_pkeys = 0;
	WARNING(f, "partition", "gives to every port", "partition");
	f->vf->hw.policy = VHCA_LINK_DOWN;
	WARNING(f, "partition", "gets no link before it has one", "partition");
	f->vf->hw.policy = VHCA_LINK_AUTO;
	f->claim->identity.n_pkeys = 1;
	f->ex.sm = &vhca_sm_none;
	expect(f, "partition", VHCA_FINDING_UNKNOWN, "the host does not see them", "in the guest");
	assert_string_equal(findings[4].text,
			    "GUID 0x02c9ab0000000001 is written, as node and port GUID");
	assert_string_equal(findings[5].text, "the VF's link policy is auto");
	assert_int_equal(findings[9].status, VHCA_FINDING_OK);
	f->vf->granted = false;
	WARNING(f, "SM", "no virtualization support", "65535");
	f->ex.sm = &vhca_sm_vhcasm;
	WRONG(f, "SM", "LID 65535", "virt_enabled 2");
	f->hca->ports[0].state = VHCA_PORT_DOWN;
	f->hca->ports[0].lid = VHCA_LID_PERMISSIVE;
	WRONG(f, "physical port", "is a virtual one", "virt_enabled 2");
	f->claim->sm_answer = VHCA_ANSWER_ACCEPTED;
	f->vf->hw.policy = VHCA_LINK_DOWN;
	WRONG(f, "link policy", "taken down", "by itself");
	f->vf->hw.node_guid = GUID + 1;
	WRONG(f, "GUID", "node GUID is 0x02c9ab0000000002", "by itself");
	f->hca->facts.ibdev[0] = '\0';
	WRONG(f, "driver", "no RDMA device", "mlx5_ib");
}

/* ---- requests ---- */

static void expect_request(struct healthy_host *f, enum vhca_finding_status status,
			   const char *text, const char *fix)
{
	struct vhca_finding found[VHCA_EXPLAIN_REQUESTS];

	assert_int_equal(vhca_explain_requests(&f->ex, f->dom, found), 1);
	assert_string_equal(found[0].step, "request");
	assert_int_equal(found[0].status, status);
	assert_non_null(strstr(found[0].text, text));
	assert_non_null(strstr(found[0].fix, fix));
}

static void what_a_domain_asks_for(void **state)
{
	struct healthy_host *f = *state;

	expect_request(f, VHCA_FINDING_OK, "ib0 has VF 0000:01:00.1", "");
	vhca_error_set(&f->claim->differs, VHCA_ERR_CONFLICT, "differs", 0, "ib0 keeps its GUID");
	vhca_error_hint(&f->claim->differs, "vhcactl detach");
	expect_request(f, VHCA_FINDING_WARNING, "ib0 keeps its GUID", "vhcactl detach");
	f->dom->info->n_requests = 0;
	expect_request(f, VHCA_FINDING_WARNING, "ib0 keeps its GUID", "vhcactl detach");
	f->dom->info->n_requests = 1;
	f->claim->differs = (struct vhca_error)VHCA_ERROR_INIT;
	(void)snprintf(f->claim->name, sizeof(f->claim->name), "ib7");
	expect_request(f, VHCA_FINDING_WARNING, "ib0 has no VF yet", "watch");
	f->dom->incoming = true;
	expect_request(f, VHCA_FINDING_WARNING, "coming in", "watch");
	(void)snprintf(f->dom->requests[0].name, VHCA_NAME_MAX, "ib0");
	vhca_error_set(&f->dom->requests[0].problem, VHCA_ERR_EXHAUSTED, "no_free_vf", 0,
		       "no free VF");
	vhca_error_hint(&f->dom->requests[0].problem, "detach a VF");
	expect_request(f, VHCA_FINDING_WRONG, "ib0 has no VF: no free VF", "detach a VF");
	f->dom->requests[0].problem.hint[0] = '\0';
	expect_request(f, VHCA_FINDING_WRONG, "ib0 has no VF: no free VF",
		       "journalctl -u vhcad | grep vm1/ib0");
	assert_int_equal(vhca_model_suppress(&f->model, &f->dom->info->uuid, "ib0"), 0);
	expect_request(f, VHCA_FINDING_WARNING, "detached by request",
		       "vhcactl attach vm1 ib0 --partition '0x8001'");
}

/* A shell reads the third word of the line as this. */
static void assert_pasted(const char *fix, const char *domain)
{
	char line[1024], said[256] = "";
	FILE *shell;

	(void)snprintf(line, sizeof(line), "set -- %s; printf '%%s|%%s' \"$3\" $#", fix);
	shell = popen(line, "r");
	assert_non_null(shell);
	assert_non_null(fgets(said, sizeof(said), shell));
	assert_int_equal(pclose(shell), 0);
	(void)snprintf(line, sizeof(line), "%s|3", domain);
	assert_string_equal(said, line);
}

/* What it is called may mean something to the shell into which somebody pastes the line. */
static void a_way_out_can_be_pasted(void **state)
{
	static const char *const names[] = {
		"a b",
		"it's",
		"a;b",
		"$(b)",
		"--json",
		"x\nb",
		"größe",
		"5",					/* of the domain with that ID */
		"5ca1ab1e-0000-4000-8000-000000000009", /* of the domain with that UUID */
	};
	struct healthy_host *f = *state;
	char fix[128];

	f->vf->state = VHCA_VF_UNMANAGED;
	f->vf->claim = NULL;
	(void)snprintf(fix, sizeof(fix), "vhcactl adopt %s", VHCA_UUID_STR(&f->dom->info->uuid));
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(names); i++) {
		(void)snprintf(f->dom->info->name, sizeof(f->dom->info->name), "%s", names[i]);
		WARNING(f, "guest", "has it without a claim", fix);
		assert_pasted(verdict(f)->fix, VHCA_UUID_STR(&f->dom->info->uuid));
	}
	memset(f->dom->info->name, 'x', sizeof(f->dom->info->name) - 1); /* of a longer name */
	WARNING(f, "guest", "has it without a claim", fix);
	(void)snprintf(f->dom->info->name, sizeof(f->dom->info->name), "vm-1.example_2");
	WARNING(f, "guest", "has it without a claim", "vhcactl adopt vm-1.example_2");
}

static void domains_that_cannot_be_asked(void **state)
{
	struct healthy_host *f = *state;
	struct vhca_finding found[VHCA_EXPLAIN_REQUESTS];

	vhca_error_set(&f->dom->request_error, VHCA_ERR_INVALID, "bad", 0, "no partition=");
	vhca_error_hint(&f->dom->request_error, "allowed in partition: words");
	f->dom->info->n_requests = 0; /* all or nothing */
	assert_int_equal(vhca_explain_requests(&f->ex, f->dom, found), 1);
	assert_int_equal(found[0].status, VHCA_FINDING_WRONG);
	assert_string_equal(found[0].text, "no partition=");
	assert_string_equal(found[0].fix, "allowed in partition: words; virsh edit vm1, then "
					  "restart it");
	assert_int_equal(vhca_explain_requests(&f->ex, NULL, found), 1);
	assert_non_null(strstr(found[0].text, "does not run here"));
	f->ex.virt_synced = false;
	assert_int_equal(vhca_explain_requests(&f->ex, NULL, found), 1);
	assert_int_equal(found[0].status, VHCA_FINDING_UNKNOWN);
}

static void the_first_of_the_worst_is_the_verdict(void **state)
{
	const struct vhca_finding found[] = {
		{.status = VHCA_FINDING_OK},	  {.status = VHCA_FINDING_UNKNOWN},
		{.status = VHCA_FINDING_WARNING}, {.status = VHCA_FINDING_WRONG},
		{.status = VHCA_FINDING_WARNING}, {.status = VHCA_FINDING_WRONG},
	};

	(void)state;
	assert_null(vhca_explain_verdict(found, 1));
	assert_ptr_equal(vhca_explain_verdict(found, 2), &found[1]);
	assert_ptr_equal(vhca_explain_verdict(found, 3), &found[2]);
	assert_ptr_equal(vhca_explain_verdict(found, 6), &found[3]);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, healthy_host_setup, healthy_host_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_healthy_vf_is_ok_at_every_step),
		T(adapter_and_function),
		T(pci_errors),
		T(wrong_count_is_no_verdict_on_a_vf_that_exists),
		T(drivers),
		T(guids),
		T(ports_that_wait),
		T(port_without_a_link),
		T(subnet_manager),
		T(whose_the_guid_is),
		T(partitions),
		T(tables),
		T(guests),
		T(a_full_state_disk_is_the_reason),
		T(unmanaged_vf_in_a_guest),
		T(a_way_out_can_be_pasted),
		T(mlx5_says_what_it_cannot_see),
		T(what_a_domain_asks_for),
		T(domains_that_cannot_be_asked),
		T(the_first_of_the_worst_is_the_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
