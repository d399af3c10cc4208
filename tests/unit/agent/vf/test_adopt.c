// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Adopting on the simulated host (tests/sim/host/world.h): the VFs of guests that ran before the
 * agent did.
 */
#include <stdio.h>
#include <string.h>

#include "agent/vf/engine.h"
#include "common/base/file.h"
#include "tests/sim/host/world.h"
#include "tests/unit/agent/vf/engine_outbox.h"
#include "tests/unit/unit.h"

#define GUID	 UINT64_C(0x0011223344556677)
#define MAC_GUID UINT64_C(0xfa163e0000123456)

struct answer {
	bool came;
	struct vhca_error err; /* kind NONE: adopted */
};

static int setup(void **state)
{
	static struct world w;

	world_init(&w);
	/* Only effects that write are counted. */
	w.fault_effect = VHCA_EFFECT_PROGRAM;
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	world_done(*state);
	return 0;
}

/*
 * A guest that somebody started by hand: VF v shows the GUID, and the port's key at `physical` as
 * its first.
 */
static void by_hand(struct world *w, unsigned int v, const char *name, uint64_t guid,
		    int16_t physical)
{
	w->vfs[v].guid = guid;
	w->vfs[v].map[0] = physical;
	w->vfs[v].guest_driver = true;
	w->vfs[v].guest = (struct vhca_bdf){.bus = 7};
	world_plug(w, v, 0, name);
}

static struct vhca_vf *engine_vf(const struct world *w, unsigned int v)
{
	return vhca_model_vf(vhca_engine_model(w->engine), w->vfs[v].bdf);
}

static bool others_free(const struct world *w, const void *arg)
{
	for (unsigned int v = *(const unsigned int *)arg; v < WORLD_VFS; v++)
		if (engine_vf(w, v)->state != VHCA_VF_FREE || engine_vf(w, v)->committing)
			return false;
	return true;
}

/* The agent starts; VFs from `used` on are nobody's. */
static void start(struct world *w, unsigned int used)
{
	world_start(w);
	assert_true(world_until(w, others_free, &used));
	for (unsigned int v = 0; v < used; v++)
		assert_int_equal(engine_vf(w, v)->state, VHCA_VF_UNMANAGED);
}

static void on_answer(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	struct answer *a = arg;

	assert_null(claim);
	assert_false(a->came);
	a->came = true;
	if (err)
		a->err = *err;
}

static bool came(const struct world *w, const void *arg)
{
	(void)w;
	return ((const struct answer *)arg)->came;
}

static struct answer adopt(struct world *w)
{
	struct answer a = {0};

	vhca_engine_adopt(w->engine, &w->domains[0].info.uuid, on_answer, &a);
	assert_false(a.came); /* never from inside the call */
	assert_true(world_until(w, came, &a));
	return a;
}

static void adopted(struct world *w)
{
	struct answer a = adopt(w);

	if (a.err.kind)
		fail_msg("%s", a.err.msg);
}

static void refused(struct world *w, const char *code, const char *words)
{
	struct answer a = adopt(w);

	assert_true(a.err.kind != VHCA_ERR_NONE);
	assert_string_equal(a.err.code, code);
	if (!strstr(a.err.msg, words))
		fail_msg("%s", a.err.msg);
	assert_true(TAILQ_EMPTY(&vhca_engine_model(w->engine)->claims));
}

static const struct vhca_claim *claim_named(struct world *w, const char *name)
{
	return vhca_model_claim_of(vhca_engine_model(w->engine), &w->domains[0].info.uuid, name);
}

/* ---- it is as it should be ---- */

static void what_stands_in_the_hardware_is_claimed(void **state)
{
	struct world *w = *state;
	const struct vhca_claim *c;
	struct world_vf before;

	world_domain_start(w, 0, NULL);
	by_hand(w, 0, "hostdev0", GUID, 1);
	w->vfs[0].map[1] = 2;
	start(w, 1);
	before = w->vfs[0];
	adopted(w);
	c = claim_named(w, "ib0");
	assert_non_null(c);
	assert_int_equal(c->origin, VHCA_ORIGIN_CLAIM);
	assert_int_equal(c->identity.guid, GUID);
	assert_int_equal(c->identity.n_pkeys, 2);
	assert_int_equal(c->identity.pkeys[0], 0x8001);
	assert_int_equal(c->identity.pkeys[1], 0x8002);
	assert_int_equal(c->epoch, 1);
	assert_true(c->has_guest && c->guest.bus == 7);
	assert_int_equal(c->vf->state, VHCA_VF_ATTACHED);
	assert_true(c->vf->granted);
	world_settle(w);
	assert_memory_equal(&before, &w->vfs[0], sizeof(before));
	assert_int_equal(w->effects, 0);
}

static bool is_being_adopted(const struct world *w, const void *arg)
{
	(void)arg;
	return engine_vf(w, 0)->claim && engine_vf(w, 0)->committing;
}

/* Its guest runs: it keeps the VF as it came, and what differs is said. */
static void a_request_changes_as_it_is_adopted(void **state)
{
	struct world *w = *state;
	struct vhca_vf_request *req;
	const struct vhca_claim *c;
	struct answer a = {0};

	world_domain_start(w, 0, "0x8001");
	req = &w->domains[0].info.requests[0];
	req->guid = GUID;
	by_hand(w, 0, "hostdev0", GUID, 1);
	start(w, 1);
	vhca_engine_adopt(w->engine, &w->domains[0].info.uuid, on_answer, &a);
	assert_true(world_until(w, is_being_adopted, NULL));
	(void)snprintf(req->partition, sizeof(req->partition), "0x8002");
	world_look(w, 0);
	assert_true(world_until(w, came, &a));
	assert_int_equal(a.err.kind, VHCA_ERR_NONE);
	world_settle(w);
	c = engine_vf(w, 0)->claim;
	assert_non_null(c);
	assert_int_equal(c->vf->state, VHCA_VF_ATTACHED);
	assert_int_equal(c->end, VHCA_END_NONE);
	assert_int_not_equal(c->differs.kind, VHCA_ERR_NONE);
	assert_int_equal(w->effects, 0);
}

static bool told_once(const struct world *w, const void *arg)
{
	(void)w;
	(void)arg;
	return told.bound + told.withdrawn == 1;
}

static void the_sm_is_told_who_has_the_guid(void **state)
{
	struct world *w = *state;

	told.answers = true;
	engine_outbox_watch(w);
	world_domain_start(w, 0, NULL);
	by_hand(w, 0, "hostdev0", GUID, 1);
	start(w, 1);
	assert_int_equal(told.bound + told.withdrawn, 0);
	adopted(w);
	assert_true(world_until(w, told_once, NULL));
	assert_true(told.last.bound);
	assert_int_equal(told.last.vguid, GUID);
	assert_int_equal(told.last.epoch, 1);
	assert_int_equal(told.last.port_guid, w->port_guid);
	assert_int_equal(told.last.n_pkeys, 1);
	assert_int_equal(told.last.pkeys[0], 0x8001);
	world_settle(w);
	assert_int_equal(told.bound + told.withdrawn, 1);
}

static void on_port(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	(void)claim;
	on_answer(arg, NULL, err);
}

/*
 * Of a VF that is kept for a cloud, which says of its port here what it has said to another agent.
 */
static void a_clouds_port_is_known_by_its_address(void **state)
{
	struct world *w = *state;
	struct vhca_conf_hca *hca = &w->conf.hcas[0];
	struct vhca_claim_request req = {.domain_name = "vm0",
					 .origin = VHCA_ORIGIN_CLAIM,
					 .vf = {.numa = -1, .guid = MAC_GUID},
					 .has_bdf = true,
					 .no_partition = true};
	struct answer a = {0};

	w->conf.port_lease_ms = 6001;
	hca->reserve[hca->n_reserve++] = w->vfs[0].bdf;
	hca->reserve[hca->n_reserve++] = w->vfs[1].bdf;
	world_domain_start(w, 0, NULL);
	by_hand(w, 0, "hostdev0", MAC_GUID, 1);
	by_hand(w, 1, "hostdev1", GUID, 1);
	by_hand(w, 2, "hostdev2", MAC_GUID + 1, 1);
	start(w, 3);
	adopted(w);
	assert_ptr_equal(claim_named(w, "mac-fa163e123456")->vf, engine_vf(w, 0));
	assert_int_equal(claim_named(w, "mac-fa163e123456")->lease_s, 7);
	assert_ptr_equal(claim_named(w, "ib0")->vf, engine_vf(w, 1));
	assert_ptr_equal(claim_named(w, "ib1")->vf, engine_vf(w, 2));
	req.domain = w->domains[0].info.uuid;
	req.bdf = w->vfs[0].bdf;
	vhca_port_name(MAC_GUID, req.vf.name);
	(void)snprintf(req.vf.fabric, VHCA_NAME_MAX, "default");
	vhca_engine_claim_port(w->engine, &req, on_port, &a);
	assert_true(world_until(w, came, &a));
	assert_int_equal(a.err.kind, VHCA_ERR_NONE);
	assert_int_equal(claim_named(w, "mac-fa163e123456")->epoch, 1);
	world_settle(w);
	assert_int_equal(w->effects, 0);
}

/*
 * Our own alias, but no request: it was attached by hand through an agent whose database is lost.
 */
static void an_alias_of_ours_gives_the_name(void **state)
{
	struct world *w = *state;

	world_domain_start(w, 0, NULL);
	by_hand(w, 0, "storage", GUID, 1);
	by_hand(w, 1, "hostdev1", GUID + 1, 1);
	start(w, 2);
	adopted(w);
	assert_int_equal(claim_named(w, "storage")->origin, VHCA_ORIGIN_ATTACH);
	assert_ptr_equal(claim_named(w, "storage")->vf, engine_vf(w, 0));
	assert_ptr_equal(claim_named(w, "ib0")->vf, engine_vf(w, 1));
}

static void adopting_again_changes_nothing(void **state)
{
	struct world *w = *state;
	const struct vhca_claim *c;

	world_domain_start(w, 0, NULL);
	by_hand(w, 0, "hostdev0", GUID, 1);
	start(w, 1);
	adopted(w);
	c = claim_named(w, "ib0");
	adopted(w);
	assert_ptr_equal(claim_named(w, "ib0"), c);
	assert_int_equal(c->epoch, 1);
}

static void it_survives_a_restart(void **state)
{
	struct world *w = *state;
	struct vhca_uuid id;

	world_domain_start(w, 0, NULL);
	by_hand(w, 0, "hostdev0", GUID, 1);
	start(w, 1);
	adopted(w);
	id = TAILQ_FIRST(&vhca_engine_model(w->engine)->claims)->id;
	world_kill(w);
	world_start(w);
	world_settle(w);
	assert_int_equal(engine_vf(w, 0)->state, VHCA_VF_ATTACHED);
	assert_true(vhca_uuid_equal(&engine_vf(w, 0)->claim->id, &id));
	assert_int_equal(engine_vf(w, 0)->claim->identity.guid, GUID);
	assert_int_equal(w->vfs[0].guid, GUID);
	assert_int_equal(w->effects, 0);
}

static bool all_free(const struct world *w, const void *arg)
{
	(void)arg;
	return others_free(w, &(unsigned int){0});
}

static void when_its_guest_ends_it_is_scrubbed_like_any_other(void **state)
{
	struct world *w = *state;

	world_domain_start(w, 0, NULL);
	by_hand(w, 0, "hostdev0", GUID, 1);
	start(w, 1);
	adopted(w);
	world_domain_stop(w, 0);
	assert_true(world_until(w, all_free, NULL));
	assert_true(world_clean(w, 0));
	assert_true(TAILQ_EMPTY(&vhca_engine_model(w->engine)->claims));
}

static void metadata_that_fits_is_served(void **state)
{
	struct world *w = *state;

	world_domain_start(w, 0, "0x8001");
	w->domains[0].info.requests[0].guid = GUID;
	by_hand(w, 0, "ib0", GUID, 1);
	start(w, 1);
	world_settle(w);
	/* Until then the domain is not given a second VF on a guess. */
	assert_true(TAILQ_EMPTY(&vhca_engine_model(w->engine)->claims));
	adopted(w);
	assert_int_equal(claim_named(w, "ib0")->origin, VHCA_ORIGIN_METADATA);
	world_settle(w);
	assert_int_equal(world_vf_of(w, 0, "ib0"), 0);
	assert_int_equal(engine_vf(w, 1)->state, VHCA_VF_FREE);
	assert_int_equal(w->effects, 0);
}

/*
 * Two VFs, two requests, aliases that say nothing: each goes to the one that asks for what it
 * shows.
 */
static void requests_are_matched_by_value(void **state)
{
	struct world *w = *state;
	struct vhca_dom_info *info;

	world_domain_start(w, 0, "0x8001");
	info = &w->domains[0].info;
	info->requests[1] = info->requests[0];
	info->n_requests = 2;
	(void)snprintf(info->requests[0].name, VHCA_NAME_MAX, "red");
	(void)snprintf(info->requests[1].name, VHCA_NAME_MAX, "blue");
	(void)snprintf(info->requests[1].partition, 16, "0x8002");
	info->requests[0].guid = GUID;
	info->requests[1].guid = GUID + 1;
	by_hand(w, 0, "hostdev0", GUID + 1, 2);
	by_hand(w, 1, "hostdev1", GUID, 1);
	start(w, 2);
	adopted(w);
	assert_ptr_equal(claim_named(w, "blue")->vf, engine_vf(w, 0));
	assert_ptr_equal(claim_named(w, "red")->vf, engine_vf(w, 1));
}

/* ---- it is not ---- */

static void what_is_asked_for_must_be_understood(void **state)
{
	struct world *w = *state;
	struct vhca_error *err = &w->domains[0].info.request_error;

	world_domain_start(w, 0, NULL);
	by_hand(w, 0, "hostdev0", GUID, 1);
	vhca_error_set(err, VHCA_ERR_INVALID, "bad_vf_request", 0, "guid=x is not valid");
	start(w, 1);
	refused(w, "bad_vf_request", "guid=x is not valid");
}

static void differences_are_named(void **state)
{
	struct world *w = *state;

	world_domain_start(w, 0, "0x8002");
	w->domains[0].info.requests[0].guid = GUID + 1;
	by_hand(w, 0, "hostdev0", GUID, 1);
	start(w, 1);
	refused(w, "differs",
		"GUID 0x0011223344556677 instead of 0x0011223344556678, P_Key index 0 shows "
		"0x8001 instead of 0x8002");
	w->domains[0].info.requests[0].guid = GUID;
	world_look(w, 0);
	refused(w, "differs", "ib0 asks for: P_Key index 0");
	(void)snprintf(w->domains[0].info.requests[0].partition, 24, "0x8001 0x8002");
	world_look(w, 0);
	refused(w, "differs", "P_Key index 1 shows none instead of 0x8002");
	assert_int_equal(engine_vf(w, 0)->state, VHCA_VF_UNMANAGED);
	assert_int_equal(w->vfs[0].guid, GUID);
	assert_int_equal(w->effects, 0);
}

static void all_of_a_domain_or_none(void **state)
{
	struct world *w = *state;

	world_domain_start(w, 0, NULL);
	by_hand(w, 0, "hostdev0", GUID, 1);
	by_hand(w, 1, "hostdev1", GUID + 1, 2);
	w->vfs[1].map[0] = -1;
	start(w, 2);
	refused(w, "differs", "shows no P_Key");
	w->vfs[1].map[1] = 2;
	refused(w, "differs", "gaps");
	w->vfs[1].map[0] = 2;
	w->vfs[1].map[1] = -1;
	w->vfs[1].guid = 0;
	refused(w, "differs", "no GUID of its own");
	w->vfs[1].guid = GUID + 1;
	adopted(w);
	assert_non_null(claim_named(w, "ib1"));
}

/*
 * A request, or none: what a dual-port card's driver has put on the other port is not what anybody
 * could ask for.
 */
static void the_other_port_counts(void **state)
{
	struct world *w = *state;

	world_domain_start(w, 0, NULL);
	by_hand(w, 0, "hostdev0", GUID, 1);
	w->vfs[0].other_maps = 1;
	start(w, 1);
	refused(w, "differs", "1 P_Keys and no GUID on the adapter's other port");
	assert_int_equal(w->vfs[0].other_maps, 1);
	w->vfs[0].other_maps = 0;
	adopted(w);
	world_settle(w);
	assert_int_equal(w->effects, 0);
}

static void the_default_partition_is_policy(void **state)
{
	struct world *w = *state;

	w->conf.allow_default_partition = false;
	world_domain_start(w, 0, NULL);
	by_hand(w, 0, "hostdev0", GUID, 0);
	start(w, 1);
	refused(w, "default_partition_denied", "allow_default_partition");
	w->conf.allow_default_partition = true;
	adopted(w);
}

static void a_guid_has_one_owner(void **state)
{
	struct world *w = *state;

	world_domain_start(w, 0, NULL);
	by_hand(w, 0, "hostdev0", w->port_guid, 1);
	start(w, 1);
	refused(w, "guid_in_use", "port GUID");
}

static void nothing_to_adopt(void **state)
{
	struct world *w = *state;

	start(w, 0);
	refused(w, "no_such_domain", "does not run here");
	world_domain_start(w, 0, NULL);
	refused(w, "nothing_to_adopt", "holds no VF");
}

static void an_adapter_that_is_not_managed_is_left_alone(void **state)
{
	struct world *w = *state;

	world_domain_start(w, 0, NULL);
	by_hand(w, 0, "hostdev0", GUID, 1);
	start(w, 1);
	w->conf.hcas[0].manage = false;
	vhca_engine_set_conf(w->engine, &w->conf);
	refused(w, "not_managed", "0000:01:00.0 is not managed");
}

static void an_adapter_that_cannot_be_read(void **state)
{
	struct world *w = *state;

	world_domain_start(w, 0, NULL);
	by_hand(w, 0, "hostdev0", GUID, 1);
	start(w, 1);
	world_settle(w); /* free VFs are read, too */
	w->fault = WORLD_FAIL;
	w->fault_effect = VHCA_EFFECT_READ;
	w->fault_at = w->effects + 1;
	refused(w, "injected", "injected failure");
	adopted(w);
}

/* The caller is not kept waiting for the kernel, and what comes late is nobody's. */
static void an_adapter_that_hangs(void **state)
{
	struct world *w = *state;
	uint64_t began;

	w->adopt_ms = 100;
	world_domain_start(w, 0, NULL);
	by_hand(w, 0, "hostdev0", GUID, 1);
	start(w, 1);
	world_settle(w);
	w->fault = WORLD_HANG;
	w->fault_effect = VHCA_EFFECT_READ;
	w->fault_at = w->effects + 1;
	began = vhca_now_ms();
	refused(w, "adapter_busy", "vm0 cannot be read");
	assert_true(vhca_now_ms() - began >= w->adopt_ms);
	world_release(w);
	world_settle(w);
	assert_int_equal(engine_vf(w, 0)->state, VHCA_VF_UNMANAGED);
	assert_true(TAILQ_EMPTY(&vhca_engine_model(w->engine)->claims));
	adopted(w);
}

/*
 * Killed while the hardware is read or the claim is journaled: the caller hears, and nothing or all
 * of it stands.
 */
static void whoever_waits_is_answered_at_the_end(void **state)
{
	struct world *w = *state;
	struct answer a = {0};

	world_domain_start(w, 0, NULL);
	by_hand(w, 0, "hostdev0", GUID, 1);
	start(w, 1);
	vhca_engine_adopt(w->engine, &w->domains[0].info.uuid, on_answer, &a);
	world_kill(w);
	assert_true(a.came);
	assert_string_equal(a.err.code, "shutting_down");
	world_start(w);
	world_settle(w);
	assert_int_equal(engine_vf(w, 0)->state, VHCA_VF_UNMANAGED);
	assert_int_equal(w->vfs[0].guid, GUID);
	adopted(w);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_stands_in_the_hardware_is_claimed),
		T(a_request_changes_as_it_is_adopted),
		T(the_sm_is_told_who_has_the_guid),
		T(a_clouds_port_is_known_by_its_address),
		T(an_alias_of_ours_gives_the_name),
		T(adopting_again_changes_nothing),
		T(it_survives_a_restart),
		T(when_its_guest_ends_it_is_scrubbed_like_any_other),
		T(metadata_that_fits_is_served),
		T(requests_are_matched_by_value),
		T(what_is_asked_for_must_be_understood),
		T(differences_are_named),
		T(all_of_a_domain_or_none),
		T(the_other_port_counts),
		T(the_default_partition_is_policy),
		T(a_guid_has_one_owner),
		T(nothing_to_adopt),
		T(an_adapter_that_is_not_managed_is_left_alone),
		T(an_adapter_that_cannot_be_read),
		T(an_adapter_that_hangs),
		T(whoever_waits_is_answered_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
