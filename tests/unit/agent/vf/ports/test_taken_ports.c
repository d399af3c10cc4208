// SPDX-License-Identifier: LGPL-2.1-or-later
/* A cloud's port whose VF is taken from its guest, by nobody who releases the port. */
#include "common/http/json.h"
#include "tests/unit/agent/vf/ports/cloud_port.h"

#define FOREIGN	   0x8003
#define OTHER_PORT UINT64_C(0x0002c90300000999)

/* The SM knows the port's GUID at another host, at a higher epoch. */
static void name_other_owner(struct world *w)
{
	struct vhca_sm_binding b = vhca_claim_binding(port(w));
	struct json_object *doc = json_object_new_object();

	vhca_json_add_u64(doc, "known_epoch", UINT64_C(1) << 32);
	vhca_json_add_string(doc, "port_guid", VHCA_GUID_STR(OTHER_PORT));
	vhca_engine_sm_answer(w->engine, &b, VHCA_SM_SUPERSEDED, "another host has it", doc);
	json_object_put(doc);
}

/* The SM has been told, and is waited for. */
static bool is_told(const struct world *w, const void *arg)
{
	const struct vhca_vf *vf = engine_vf(w, 1);

	(void)arg;
	return vf->state == VHCA_VF_CLAIMED && !vf->committing &&
	       vf->claim->custody == VHCA_CUSTODY_HERE;
}

static void accept(struct world *w)
{
	struct vhca_sm_binding b;

	assert_true(world_until(w, is_told, NULL));
	b = vhca_claim_binding(port(w));
	vhca_engine_sm_answer(w->engine, &b, VHCA_SM_ACCEPTED, "", NULL);
}

/* Plugged, where the domain runs. */
static void plug(struct world *w)
{
	struct vhca_claim_request req = want(w);
	struct answer a = {0};

	vhca_engine_claim_port(w->engine, &req, on_answer, &a);
	accept(w);
	assert_true(world_until(w, answered, &a) && a.ok);
}

/* Domain 0 is to have VF 1: the SM, which fences, is asked. */
static void ask_for_port(struct world *w, struct answer *a)
{
	struct vhca_claim_request req;

	w->fenced = true;
	w->conf.hcas[0].reserve[w->conf.hcas[0].n_reserve++] = w->vfs[1].bdf;
	world_start(w);
	settle_free(w);
	world_domain_start(w, 0, NULL);
	req = want(w);
	vhca_engine_claim_port(w->engine, &req, on_answer, a);
	assert_true(world_until(w, is_told, NULL));
}

/* Domain 0 has VF 1, with a partition, and the SM has accepted that. */
static void serve(struct world *w)
{
	struct answer a = {0}, keys = {0};

	w->hostile_sm = true;
	ask_for_port(w, &a);
	vhca_engine_set_partitions(w->engine, port(w), "0x8001", on_answer, &keys);
	accept(w);
	assert_true(world_until(w, answered, &a) && a.ok);
	assert_true(world_until(w, answered, &keys) && keys.ok);
	attach(w);
}

static bool is_saved(const struct world *w, const void *arg)
{
	const struct vhca_vf *vf = engine_vf(w, 1);

	(void)arg;
	return !vf->committing && vf->owed == VHCA_OWED_NOTHING;
}

static bool is_forced(const struct world *w, const void *arg)
{
	return is_saved(w, arg) && port(w)->end == VHCA_END_FORCED;
}

/* Which of them the agent hears of before libvirt says that its guest has gone. */
enum heard { HEARD_NOTHING, HEARD_KEY, HEARD_OWNER, HEARD_BOTH, HEARD_COUNT };

/*
 * The agent is away while its guest goes: another host takes the GUID over, and the port's table
 * loses the key.
 */
static void come_back(struct world *w, enum heard heard)
{
	world_kill(w);
	world_domain_stop(w, 0);
	w->virt_down = heard != HEARD_NOTHING;
	if (heard != HEARD_OWNER)
		world_set_key(w, 1, FOREIGN);
	world_start(w);
	if (heard == HEARD_KEY || heard == HEARD_BOTH)
		assert_true(world_until(w, is_forced, NULL));
	if (heard == HEARD_OWNER || heard == HEARD_BOTH)
		name_other_owner(w);
	if (heard != HEARD_NOTHING)
		assert_true(world_until(w, is_detaching, NULL));
}

static void hear_of_libvirt(struct world *w)
{
	w->virt_down = false;
	world_sync_domains(w);
}

/* Evacuated: what the old host keeps does not hang on whom its agent hears first. */
static void test_evacuated_port_is_reserved(void **state)
{
	struct world *w = *state;

	for (enum heard heard = HEARD_NOTHING; heard < HEARD_COUNT; heard++) {
		for (unsigned int kill = 0; kill < 2; kill++) {
			serve(w);
			come_back(w, heard);
			if (kill) {
				world_kill(w);
				world_start(w);
			}
			hear_of_libvirt(w);
			assert_true(world_until(w, is_reserved, NULL));
			settle_long(w);
			assert_true(is_reserved(w, NULL) && world_clean(w, 1));
			assert_int_equal(port(w)->run, VHCA_RUN_UNSEEN);
			assert_true(release(w).ok);
			assert_true(world_until(w, nothing_attached, NULL));
			world_done(w);
			world_init(w);
		}
	}
}

/* The guest goes on without its VF, and begins with it again when it is plugged again. */
static void test_forced_off_port_is_reserved(void **state)
{
	struct world *w = *state;

	serve(w);
	w->port_pkeys[5] = 0x8001;
	world_set_key(w, 1, FOREIGN);
	assert_true(world_until(w, is_reserved, NULL));
	assert_false(w->vfs[1].group_open);
	settle_long(w);
	assert_true(is_reserved(w, NULL));
	plug(w);
	assert_int_equal(w->vfs[1].map[0], 5);
}

/* The guest runs twice, it seems: here it goes on without, and what the SM says next counts. */
static void test_port_of_another_host_is_reserved(void **state)
{
	struct world *w = *state;
	struct answer a = {0};

	for (unsigned int plugged = 0; plugged < 2; plugged++) {
		struct vhca_claim_request req;

		serve(w);
		req = want(w);
		if (!plugged) {
			w->vfs[1].group_open = false;
			world_look(w, 0);
			assert_true(world_until(w, is_reserved, NULL));
			plug(w);
		}
		name_other_owner(w);
		assert_true(world_until(w, is_reserved, NULL));
		settle_long(w);
		assert_true(is_reserved(w, NULL) && world_clean(w, 1));
		assert_false(w->vfs[1].group_open);
		a = (struct answer){0};
		vhca_engine_claim_port(w->engine, &req, on_answer, &a);
		assert_true(world_until(w, is_told, NULL));
		name_other_owner(w);
		world_settle(w);
		assert_int_equal(vhca_claim_awaits(port(w)), VHCA_AWAITS_SM);
		assert_true(world_clean(w, 1) && !a.called);
		world_domain_stop(w, 0);
		assert_true(world_until(w, is_reserved, NULL));
		assert_true(world_until(w, answered, &a) && !a.ok);
		world_done(w);
		world_init(w);
	}
}

static bool is_leaving(const struct world *w, const void *arg)
{
	(void)arg;
	return port(w)->custody == VHCA_CUSTODY_LEAVING;
}

/* Plugged while it is on its way out: that is no VF for a guest. */
static void test_port_that_leaves_is_busy(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;
	struct answer a;

	serve(w);
	req = want(w);
	name_other_owner(w);
	assert_true(world_until(w, is_leaving, NULL));
	assert_int_equal(engine_vf(w, 1)->state, VHCA_VF_ATTACHED);
	a = put(w, &req);
	assert_true(!a.ok);
	assert_string_equal(a.code, "vf_busy");
	assert_true(world_until(w, is_reserved, NULL));
}

/* Whoever releases it meanwhile does so for good: remembered, or asked for at once. */
static void test_release_outlives_a_forced_unplug(void **state)
{
	struct world *w = *state;
	struct answer a;

	for (unsigned int way = 0; way < 4; way++) {
		bool kill = way & 1, detach = way & 2;

		serve(w);
		w->deaf_guest = true;
		world_set_key(w, 1, FOREIGN);
		assert_true(world_until(w, is_detaching, NULL));
		a = (struct answer){0};
		if (detach)
			vhca_engine_release(w->engine, port(w), false, on_answer, &a);
		else
			assert_true(release(w).ok);
		assert_true(world_until(w, is_saved, NULL));
		if (kill) {
			world_kill(w);
			world_start(w);
			world_settle(w);
			assert_true(is_detaching(w, NULL));
		}
		w->deaf_guest = false;
		world_domain_stop(w, 0);
		assert_true(world_until(w, nothing_attached, NULL));
		world_done(w);
		world_init(w);
	}
}

/* An operator vouches while the guest is asked: it keeps the VF. */
static void test_vouched_for_port_stays(void **state)
{
	struct world *w = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_sm_binding b;

	w->conf.detach_timeout_ms = 60000; /* it is not given up before */
	serve(w);
	w->deaf_guest = true;
	name_other_owner(w);
	assert_true(world_until(w, is_detaching, NULL));
	assert_int_equal(
		vhca_engine_takeover(w->engine, &w->domains[0].info.uuid, "hvb is fenced", &err),
		0);
	name_other_owner(w);
	world_settle(w);
	b = vhca_claim_binding(port(w));
	vhca_engine_sm_answer(w->engine, &b, VHCA_SM_ACCEPTED, "", NULL);
	assert_true(world_until(w, rests_attached, NULL));
	settle_long(w);
	assert_int_equal(engine_vf(w, 1)->state, VHCA_VF_ATTACHED);
}

static bool is_programmed(const struct world *w, const void *arg)
{
	(void)arg;
	return engine_vf(w, 1)->state == VHCA_VF_PROGRAMMED;
}

/* Its hook waits for little more than the second after which the SM is asked again. */
static void test_vouched_for_port_is_asked_for_at_once(void **state)
{
	struct world *w = *state;
	const struct vhca_uuid *domain = &w->domains[0].info.uuid;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct answer a = {0};

	ask_for_port(w, &a);
	name_other_owner(w);
	for (unsigned int i = 0; i < 100; i++)
		world_round(w, 0);
	assert_int_equal(vhca_claim_awaits(port(w)), VHCA_AWAITS_SM);
	assert_false(engine_vf(w, 1)->committing);
	assert_int_equal(vhca_engine_takeover(w->engine, domain, "hvb is fenced", &err), 0);
	for (unsigned int i = 0; i < 100 && !engine_vf(w, 1)->committing; i++)
		world_round(w, 0);
	assert_true(engine_vf(w, 1)->committing);
	assert_true(world_until(w, is_told, NULL));
	name_other_owner(w);
	assert_int_equal(port(w)->epoch, UINT64_C(2) << 32);
	accept(w);
	assert_true(world_until(w, is_programmed, NULL) && a.ok);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_evacuated_port_is_reserved),
		TEST(test_forced_off_port_is_reserved),
		TEST(test_port_of_another_host_is_reserved),
		TEST(test_port_that_leaves_is_busy),
		TEST(test_release_outlives_a_forced_unplug),
		TEST(test_vouched_for_port_stays),
		TEST(test_vouched_for_port_is_asked_for_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
