// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the production engine says and does when the hardware is not (yet, or any more) what it was
 * when a claim was made.
 */
#include <string.h>

#include "tests/unit/agent/vf/engine_outbox.h"
#include "tests/unit/agent/vf/engine_world.h"

static void serve(struct world *w)
{
	engine_outbox_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	assert_int_not_equal(told.bound, 0);
}

static bool has_no_claim(const struct world *w, const void *arg)
{
	(void)arg;
	return TAILQ_EMPTY(&vhca_engine_model(w->engine)->claims);
}

static bool is_claimed(const struct world *w, const void *arg)
{
	(void)arg;
	return first_claim(w) && first_claim(w)->vf->state == VHCA_VF_CLAIMED;
}

/* ---- whose binding is withdrawn ---- */

/*
 * Another host may have bound the vGUID at the same epoch: only the port's GUID tells the two
 * apart.
 */
static void test_a_binding_of_the_last_boot_is_withdrawn_from_its_port(void **state)
{
	struct world *w = *state;

	serve(w);
	world_reboot(w);
	w->port_unseen = true;
	engine_outbox_start(w);
	assert_true(world_until(w, has_no_claim, NULL));
	assert_int_equal(told.withdrawn, 1);
	assert_int_equal(told.last.port_guid, w->port_guid);
}

static void test_an_adapter_that_was_replaced_withdraws_from_the_old_port(void **state)
{
	struct world *w = *state;
	uint64_t old = w->port_guid;

	serve(w);
	world_reboot(w);
	w->port_guid++;
	engine_outbox_start(w);
	assert_true(world_until(w, has_no_claim, NULL));
	assert_int_equal(told.withdrawn, 1);
	assert_int_equal(told.last.port_guid, old);
}

static void test_a_restarted_agent_withdraws_from_the_port_before_it_sees_it(void **state)
{
	struct world *w = *state;

	serve(w);
	world_kill(w);
	world_domain_stop(w, 0);
	w->port_unseen = true;
	engine_outbox_start(w);
	assert_true(world_until(w, nothing_attached, NULL));
	assert_int_equal(told.withdrawn, 1);
	assert_int_equal(told.last.port_guid, w->port_guid);
}

static void test_what_the_sm_was_never_told_is_not_withdrawn(void **state)
{
	struct world *w = *state;

	w->port_unseen = true;
	engine_outbox_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, is_claimed, NULL));
	world_domain_stop(w, 0);
	world_sync_domains(w);
	assert_true(world_until(w, nothing_attached, NULL));
	assert_int_equal(told.bound + told.withdrawn, 0);
}

/* Told when the port is seen, and remembered from then on. */
static void test_a_port_that_comes_late_is_remembered(void **state)
{
	struct world *w = *state;

	w->port_unseen = true;
	engine_outbox_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, is_claimed, NULL));
	world_show_port(w);
	assert_true(world_until(w, served, &zero));
	world_reboot(w);
	w->port_unseen = true;
	engine_outbox_start(w);
	assert_true(world_until(w, has_no_claim, NULL));
	assert_int_equal(told.withdrawn, 1);
	assert_int_equal(told.last.port_guid, w->port_guid);
}

/* ---- which port ---- */

/* vhcad.conf is changed and loaded again. */
static void configure_port(struct world *w, uint8_t port)
{
	w->conf.hcas[0].port = port;
	vhca_engine_set_conf(w->engine, &w->conf);
}

static const struct vhca_hca *the_hca(const struct world *w)
{
	return TAILQ_FIRST(&vhca_engine_model(w->engine)->hcas);
}

static bool uses_port(const struct world *w, const void *arg)
{
	return the_hca(w)->port == *(const uint8_t *)arg;
}

static bool was_read_twice(const struct world *w, const void *arg)
{
	(void)arg;
	return w->effects >= 2;
}

/* The guest's VF is looked at: no foreign key is seen, the VF stays, and nothing is written. */
static void look_at_the_guest(struct world *w)
{
	const struct world_vf before = w->vfs[world_vf_of(w, 0, "ib0")];

	w->effects = 0;
	w->fault_at = UINT32_MAX;
	w->fault_effect = VHCA_EFFECT_READ;
	assert_true(world_until(w, was_read_twice, NULL));
	assert_true(world_until(w, served, &zero));
	assert_int_not_equal(first_claim(w)->end, VHCA_END_FORCED);
	assert_memory_equal(&before, &w->vfs[world_vf_of(w, 0, "ib0")], sizeof(before));
}

static const uint8_t port_1 = 1, port_2 = 2;

static void test_another_port_waits_for_the_last_claim(void **state)
{
	struct world *w = *state;

	serve(w);
	configure_port(w, 2);
	look_at_the_guest(w);
	assert_true(world_told(w, "port 2 is configured"));
	assert_int_equal(the_hca(w)->port, 1);
	assert_int_equal(the_hca(w)->want_port, 2);
	world_domain_stop(w, 0);
	world_sync_domains(w);
	assert_true(world_until(w, nothing_attached, NULL));
	assert_true(world_until(w, uses_port, &port_2));
	assert_int_equal(told.last.port_guid, w->port_guid); /* of port 1 */
}

/* What the configuration says now is not where the VFs were programmed. */
static void test_another_port_waits_over_a_restart(void **state)
{
	struct world *w = *state;

	serve(w);
	world_kill(w);
	w->conf.hcas[0].port = 2;
	engine_outbox_start(w);
	assert_true(world_until(w, served, &zero));
	look_at_the_guest(w);
	assert_int_equal(the_hca(w)->port, 1);
	assert_true(world_told(w, "port 2 is configured"));
	configure_port(w, 1); /* taken back */
	configure_port(w, 2);
	assert_int_equal(the_hca(w)->port, 1);
}

static void test_a_port_without_claims_changes_at_once(void **state)
{
	struct world *w = *state;

	engine_outbox_start(w);
	assert_true(world_until(w, all_free, NULL));
	configure_port(w, 2);
	assert_true(uses_port(w, &port_2));
	assert_true(world_until(w, all_free, NULL));
	configure_port(w, 1);
	assert_true(uses_port(w, &port_1));
}

/* Nothing of a VF survives a reboot, so nothing is held by what was claimed before it. */
static void test_another_port_is_taken_at_a_reboot(void **state)
{
	struct world *w = *state;

	serve(w);
	world_reboot(w);
	w->conf.hcas[0].port = 2;
	engine_outbox_start(w);
	assert_true(uses_port(w, &port_2));
	assert_true(world_until(w, has_no_claim, NULL));
	assert_int_equal(told.last.port_guid, w->port_guid); /* of port 1 */
}

/* ---- VFs that go ---- */

static bool says(const struct world *w, const void *arg)
{
	return first_claim(w) && strstr(first_claim(w)->vf->reason, arg);
}

static void take_away(struct world *w, unsigned int v)
{
	w->vfs[v].gone = w->vfs[v].lost = true;
	world_show_hardware(w);
}

/* Its driver has loaded anew. */
static void bring_back(struct world *w, unsigned int v)
{
	w->vfs[v].gone = w->vfs[v].lost = false;
	w->vfs[v].driver[0] = '\0';
	w->vfs[v].map[0] = 0;
	w->vfs[v].guid = w->vfs[v].boot_guid;
	world_show_hardware(w);
}

static void stop_domain(struct world *w)
{
	world_domain_stop(w, 0);
	world_sync_domains(w);
}

static bool quarantined(const struct world *w, const void *arg)
{
	const struct vhca_vf *vf = engine_vf(w, *(const unsigned int *)arg);

	return vf->state == VHCA_VF_QUARANTINED && !vf->claim && !vf->committing;
}

static void test_a_claim_ends_though_its_vf_never_comes_back(void **state)
{
	struct world *w = *state;
	unsigned int v;

	w->absent_ms = 20;
	serve(w);
	v = (unsigned int)world_vf_of(w, 0, "ib0");
	take_away(w, v);
	stop_domain(w);
	assert_true(world_until(w, quarantined, &v));
	assert_true(has_no_claim(w, NULL));
	assert_int_equal(told.withdrawn, 1);
	assert_int_equal(told.last.port_guid, w->port_guid);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	assert_int_not_equal(world_vf_of(w, 0, "ib0"), v);
	assert_false(world_clean(w, v));
	bring_back(w, v);
	stop_domain(w);
	assert_true(world_until(w, nothing_attached, NULL)); /* it, too, is free */
	assert_true(world_clean(w, v));
}

static void test_a_claim_ends_whose_vf_and_domain_went_while_the_agent_was_down(void **state)
{
	struct world *w = *state;
	unsigned int v;

	w->absent_ms = 20;
	serve(w);
	v = (unsigned int)world_vf_of(w, 0, "ib0");
	world_kill(w);
	world_domain_stop(w, 0);
	w->vfs[v].gone = w->vfs[v].lost = true;
	engine_outbox_start(w);
	assert_true(world_until(w, quarantined, &v));
	assert_int_equal(told.withdrawn, 1);
	world_kill(w); /* durable */
	engine_outbox_start(w);
	assert_true(world_until(w, quarantined, &v));
	assert_true(has_no_claim(w, NULL));
}

/* Removed from PCI by hand, say: the adapter's own files still lead to it. */
static void test_what_the_adapter_still_reaches_is_proven(void **state)
{
	struct world *w = *state;
	unsigned int v;

	w->absent_ms = 20;
	serve(w);
	v = (unsigned int)world_vf_of(w, 0, "ib0");
	take_away(w, v);
	w->vfs[v].lost = false;
	stop_domain(w);
	assert_true(world_until(w, has_no_claim, NULL));
	assert_true(world_clean(w, v));
	assert_int_equal(engine_vf(w, v)->state, VHCA_VF_FREE);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	assert_int_not_equal(world_vf_of(w, 0, "ib0"), v);
}

static void test_a_vf_that_comes_back_in_time_is_scrubbed_as_ever(void **state)
{
	struct world *w = *state;
	unsigned int v;

	w->absent_ms = 60000;
	serve(w);
	v = (unsigned int)world_vf_of(w, 0, "ib0");
	take_away(w, v);
	stop_domain(w);
	assert_true(world_until(w, says, "may come back"));
	bring_back(w, v);
	assert_true(world_until(w, nothing_attached, NULL));
	assert_false(world_told(w, "quarantined"));
}

/*
 * The kernel waits for the guest (docs/design/0005-explain.md): the VF is the guest's until it lets
 * go.
 */
static void test_what_a_guest_has_is_not_ended_before_it_is_asked_to(void **state)
{
	struct world *w = *state;
	struct answer a = {0};
	unsigned int v;

	w->absent_ms = 20;
	serve(w);
	v = (unsigned int)world_vf_of(w, 0, "ib0");
	take_away(w, v);
	assert_true(world_until(w, says, "has it"));
	world_settle(w);
	assert_int_equal(engine_vf(w, v)->state, VHCA_VF_ATTACHED);
	vhca_engine_release(w->engine, engine_vf(w, v)->claim, false, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
	assert_true(quarantined(w, &v));
	assert_int_equal(world_vf_of(w, 0, "ib0"), -1);
}

/* libvirt has forgotten its QEMU, which has the VF still. */
static void test_a_vfio_group_that_is_open_holds_the_claim(void **state)
{
	struct world *w = *state;
	unsigned int v;

	w->absent_ms = 20;
	serve(w);
	v = (unsigned int)world_vf_of(w, 0, "ib0");
	take_away(w, v);
	stop_domain(w);
	w->vfs[v].group_open = true;
	assert_true(world_until(w, says, "group"));
	world_settle(w);
	assert_false(has_no_claim(w, NULL));
	w->vfs[v].group_open = false;
	assert_true(world_until(w, quarantined, &v));
}

static bool served_by_another(const struct world *w, const void *arg)
{
	return served(w, &zero) && world_vf_of(w, 0, "ib0") != (int)*(const unsigned int *)arg;
}

static void test_a_running_guest_gets_another_vf(void **state)
{
	struct world *w = *state;
	unsigned int v;

	w->absent_ms = 20;
	serve(w);
	v = (unsigned int)world_vf_of(w, 0, "ib0");
	w->vfs[v].group_open = false; /* QEMU was told to let go */
	take_away(w, v);
	world_sync_domains(w);
	assert_true(world_until(w, served_by_another, &v));
	assert_true(quarantined(w, &v));
}

/*
 * After a reboot there are fewer VFs. What was claimed for an XML to come waits; whoever releases
 * it is answered.
 */
static void test_a_claim_for_a_vf_that_has_gone_can_be_released(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = {.origin = VHCA_ORIGIN_CLAIM, .vf = {.numa = -1}};
	struct answer a = {0};
	unsigned int v;

	w->absent_ms = 20;
	engine_outbox_start(w);
	req.domain = world_domain_start(w, 0, NULL);
	assert_true(world_until(w, all_free, NULL));
	(void)snprintf(req.vf.name, sizeof(req.vf.name), "ib0");
	(void)snprintf(req.vf.fabric, sizeof(req.vf.fabric), "default");
	(void)snprintf(req.vf.partition, sizeof(req.vf.partition), "0x8001");
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	v = first_claim(w)->vf->index;
	world_reboot(w);
	w->vfs[v].gone = w->vfs[v].lost = true;
	engine_outbox_start(w);
	assert_true(world_until(w, says, "stays until it is released"));
	world_settle(w);
	a = (struct answer){0};
	vhca_engine_release(w->engine, engine_vf(w, v)->claim, true, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
	assert_true(has_no_claim(w, NULL) && quarantined(w, &v));
	assert_int_equal(told.withdrawn, 1);
}

/* ---- what is not for InfiniBand guests ---- */

static bool is_free(const struct world *w, const void *arg)
{
	const unsigned int *v = arg;

	return engine_vf(w, *v) && engine_vf(w, *v)->state == VHCA_VF_FREE;
}

/* The code that a domain with VF 0 among its host devices is refused with, "" = it may start. */
static const char *hook_says(const struct world *w, const char *op)
{
	struct vhca_hook_request req = {.has_uuid = true, .n_hostdevs = 1};
	static struct vhca_error err;

	err = (struct vhca_error)VHCA_ERROR_INIT;
	req.hostdevs[0] = w->vfs[0].bdf;
	(void)snprintf(req.op, sizeof(req.op), "%s", op);
	return vhca_engine_hook(w->engine, &req, &err) < 0 ? err.code : "";
}

static void test_an_ethernet_adapter_is_left_alone(void **state)
{
	struct world *w = *state;

	(void)snprintf(w->vfs[0].driver, sizeof(w->vfs[0].driver), "mlx4_core");
	w->ib_ports = VHCA_IB_PORTS_NONE;
	world_start(w);
	world_settle(w);
	assert_string_equal(w->vfs[0].driver, "mlx4_core");
	assert_int_equal(engine_vf(w, 0)->state, VHCA_VF_UNMANAGED);
	assert_int_equal(vhca_engine_check_ready(w->engine, NULL), 0);
}

static void test_an_adapter_whose_ports_are_unknown_waits(void **state)
{
	struct world *w = *state;

	w->ib_ports = VHCA_IB_PORTS_UNKNOWN;
	world_start(w);
	world_settle(w);
	assert_int_equal(engine_vf(w, 0)->state, VHCA_VF_UNMANAGED);
	assert_true(vhca_engine_check_ports(w->engine, NULL) < 0);
	assert_string_equal(hook_says(w, "prepare"), "not_proven");
	w->ib_ports = VHCA_IB_PORTS_SOME;
	world_show_hardware(w);
	assert_int_equal(vhca_engine_check_ports(w->engine, NULL), 0);
	assert_true(world_until(w, is_free, &zero));
	w->ib_ports = VHCA_IB_PORTS_UNKNOWN; /* its RDMA device is away: in a reset */
	world_show_hardware(w);
	world_settle(w);
	assert_true(is_free(w, &zero));
}

static void exclude(struct world *w, unsigned int v)
{
	struct vhca_conf_hca *hca = &w->conf.hcas[0];

	hca->exclude[hca->n_exclude++] = w->vfs[v].bdf;
}

static void test_a_vf_that_is_left_out_stays_on_its_driver(void **state)
{
	struct world *w = *state;

	(void)snprintf(w->vfs[0].driver, sizeof(w->vfs[0].driver), "mlx4_core");
	exclude(w, 0);
	world_start(w);
	assert_true(world_until(w, is_free, &one));
	world_settle(w);
	assert_string_equal(w->vfs[0].driver, "mlx4_core");
	assert_int_equal(engine_vf(w, 0)->state, VHCA_VF_UNMANAGED);
	assert_string_equal(engine_vf(w, 0)->reason, "left out by the configuration (exclude)");
	assert_int_equal(vhca_engine_check_ready(w->engine, NULL), 0);
}

static void test_an_address_that_is_no_vf_is_told(void **state)
{
	struct world *w = *state;

	exclude(w, 0);
	world_start(w);
	world_settle(w);
	assert_false(world_told(w, "exclude"));
	w->conf.hcas[0].exclude[0].fn ^= 7;
	w->conf.hcas[0].exclude[0].dev ^= 31;
	vhca_engine_set_conf(w->engine, &w->conf);
	world_show_hardware(w);
	assert_true(world_told(w, "exclude leaves nothing alone at an address that no VF has"));
}

static void test_a_vf_is_let_go_that_is_left_out_at_a_reload(void **state)
{
	struct world *w = *state;

	world_start(w);
	assert_true(world_until(w, is_free, &zero));
	exclude(w, 0);
	vhca_engine_set_conf(w->engine, &w->conf);
	world_settle(w);
	assert_int_equal(engine_vf(w, 0)->state, VHCA_VF_UNMANAGED);
	w->conf.hcas[0].n_exclude = 0;
	vhca_engine_set_conf(w->engine, &w->conf);
	assert_true(world_until(w, is_free, &zero));
}

/* ---- PCI errors ---- */

static void test_a_pci_error_is_told_of_a_vf_that_somebody_has(void **state)
{
	struct world *w = *state;
	struct vhca_bdf elsewhere = {.bus = 0xee};
	int v;

	serve(w);
	v = world_vf_of(w, 0, "ib0");
	vhca_engine_pci_error(w->engine, elsewhere, VHCA_PCI_ERROR_FAILED);
	for (int i = 0; i < WORLD_VFS; i++)
		if (i != v)
			vhca_engine_pci_error(w->engine, w->vfs[i].bdf, VHCA_PCI_ERROR_REPORTED);
	assert_false(world_told(w, "PCI error"));
	vhca_engine_pci_error(w->engine, w->vfs[v].bdf, VHCA_PCI_ERROR_REPORTED);
	assert_true(world_told(w, "PCI error reported"));
	vhca_engine_pci_error(w->engine, w->vfs[v].bdf, VHCA_PCI_ERROR_RECOVERED);
	assert_true(world_told(w, "PCI error recovered"));
	vhca_engine_pci_error(w->engine, the_hca(w)->facts.bdf, VHCA_PCI_ERROR_FAILED);
	assert_true(world_told(w, "PCI error failed"));
	world_domain_stop(w, 0);
	world_sync_domains(w);
	assert_true(world_until(w, nothing_attached, NULL));
	assert_int_equal(engine_vf(w, (unsigned int)v)->pci_error, VHCA_PCI_ERROR_NONE);
}

/* Else the next guest, if an operator paused it, would be taken for one that needs a reset. */
static void test_a_pci_error_that_was_over_before_a_guest_came_is_none(void **state)
{
	struct world *w = *state;
	int v;

	engine_outbox_start(w);
	assert_true(world_until(w, all_free, NULL));
	for (int i = 0; i < WORLD_VFS; i++) {
		vhca_engine_pci_error(w->engine, w->vfs[i].bdf, VHCA_PCI_ERROR_REPORTED);
		assert_int_equal(engine_vf(w, (unsigned int)i)->pci_error, VHCA_PCI_ERROR_REPORTED);
		vhca_engine_pci_error(w->engine, w->vfs[i].bdf, VHCA_PCI_ERROR_RECOVERED);
	}
	vhca_engine_pci_error(w->engine, w->vfs[0].bdf, VHCA_PCI_ERROR_REPORTED);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	v = world_vf_of(w, 0, "ib0");
	assert_int_not_equal(v, 0); /* which would be the first, but is not back */
	assert_int_equal(engine_vf(w, (unsigned int)v)->pci_error, VHCA_PCI_ERROR_NONE);
}

/* ---- before it is known what the VFs are ---- */

static char said_before_inventory[VHCA_ERROR_CODE_MAX];

static void ask_before_inventory(struct world *w)
{
	(void)snprintf(said_before_inventory, sizeof(said_before_inventory), "%s",
		       hook_says(w, "prepare"));
}

static void test_no_guest_starts_with_a_vf_of_an_earlier_boot(void **state)
{
	struct world *w = *state;

	world_start(w);
	assert_true(world_until(w, is_free, &zero));
	world_reboot(w);
	w->started = ask_before_inventory;
	world_start(w);
	assert_string_equal(said_before_inventory, "not_proven");
	assert_int_equal(engine_vf(w, 0)->state, VHCA_VF_UNMANAGED);
	assert_string_equal(hook_says(w, "prepare"), "not_proven");
	assert_string_equal(hook_says(w, "stopped"), "");
	assert_true(world_until(w, is_free, &zero));
	assert_string_equal(hook_says(w, "prepare"), "not_claimed");
}

static void test_a_guest_starts_with_a_vf_that_is_not_ours(void **state)
{
	struct world *w = *state;

	world_start(w);
	assert_true(world_until(w, is_free, &zero));
	exclude(w, 0);
	world_reboot(w);
	w->started = ask_before_inventory;
	world_start(w);
	assert_string_equal(said_before_inventory, "");
	assert_string_equal(hook_says(w, "prepare"), "");
	w->conf.hcas[0].n_exclude = 0;
	w->conf.hcas[0].manage = false;
	world_reboot(w);
	world_start(w);
	assert_string_equal(said_before_inventory, "");
	assert_string_equal(hook_says(w, "prepare"), "");
	w->conf.hcas[0].manage = w->vfs[0].group_open = true;
	world_reboot(w);
	w->vfs[0].group_open = true;
	w->started = NULL;
	world_start(w);
	world_settle(w);
	assert_string_equal(hook_says(w, "prepare"), ""); /* somebody else's, and known to be so */
}

/* Whoever starts guests waits for that: theirs would be refused. */
static void test_not_ready_while_vfs_are_made(void **state)
{
	struct world *w = *state;
	struct vhca_bdf pf = {.bus = 1};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_error why;

	w->conf.hcas[0].vfs = WORLD_VFS + 1;
	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	assert_true(vhca_engine_check_ready(w->engine, &why) < 0);
	assert_string_equal(why.code, "vfs_not_made");
	vhca_error_set(&err, VHCA_ERR_DEVICE, "fewer_vfs", 0, "the firmware has no more");
	vhca_engine_hca_problem(w->engine, pf, &err);
	assert_int_equal(vhca_engine_check_ready(w->engine, NULL), 0);
	vhca_engine_hca_problem(w->engine, pf, NULL);
	assert_true(vhca_engine_check_ready(w->engine, &why) < 0);
	w->n_vfs = WORLD_VFS + 1;
	world_show_hardware(w);
	assert_true(vhca_engine_check_ready(w->engine, &why) < 0);
	assert_string_equal(why.code, "vfs_unbound");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_not_ready_while_vfs_are_made),
		TEST(test_a_binding_of_the_last_boot_is_withdrawn_from_its_port),
		TEST(test_an_adapter_that_was_replaced_withdraws_from_the_old_port),
		TEST(test_a_restarted_agent_withdraws_from_the_port_before_it_sees_it),
		TEST(test_what_the_sm_was_never_told_is_not_withdrawn),
		TEST(test_a_port_that_comes_late_is_remembered),
		TEST(test_another_port_waits_for_the_last_claim),
		TEST(test_another_port_waits_over_a_restart),
		TEST(test_a_port_without_claims_changes_at_once),
		TEST(test_another_port_is_taken_at_a_reboot),
		TEST(test_a_claim_ends_though_its_vf_never_comes_back),
		TEST(test_a_claim_ends_whose_vf_and_domain_went_while_the_agent_was_down),
		TEST(test_what_the_adapter_still_reaches_is_proven),
		TEST(test_a_vf_that_comes_back_in_time_is_scrubbed_as_ever),
		TEST(test_what_a_guest_has_is_not_ended_before_it_is_asked_to),
		TEST(test_a_vfio_group_that_is_open_holds_the_claim),
		TEST(test_a_running_guest_gets_another_vf),
		TEST(test_a_claim_for_a_vf_that_has_gone_can_be_released),
		TEST(test_an_ethernet_adapter_is_left_alone),
		TEST(test_an_adapter_whose_ports_are_unknown_waits),
		TEST(test_a_vf_that_is_left_out_stays_on_its_driver),
		TEST(test_an_address_that_is_no_vf_is_told),
		TEST(test_a_vf_is_let_go_that_is_left_out_at_a_reload),
		TEST(test_a_pci_error_is_told_of_a_vf_that_somebody_has),
		TEST(test_a_pci_error_that_was_over_before_a_guest_came_is_none),
		TEST(test_no_guest_starts_with_a_vf_of_an_earlier_boot),
		TEST(test_a_guest_starts_with_a_vf_that_is_not_ours),
	};

	return cmocka_run_group_tests_name("engine_hardware", tests, NULL, NULL);
}
