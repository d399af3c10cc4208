// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A host is dead, or seems to be, and its guest starts again elsewhere: here, both sides of that on
 * the simulated host.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/vf/engine.h"
#include "common/http/json.h"
#include "tests/sim/host/world.h"
#include "tests/unit/agent/vf/engine_outbox.h"
#include "tests/unit/unit.h"

#define OTHER_PORT UINT64_C(0x0002c90300000999)
#define GENERATION (UINT64_C(1) << 32)

static int setup(void **state)
{
	static struct world w;

	world_init(&w);
	w.fenced = true;
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	world_done(*state);
	return 0;
}

static struct vhca_claim *claim(const struct world *w)
{
	return TAILQ_FIRST(&vhca_engine_model(w->engine)->claims);
}

static void sm_knows(struct world *w, uint64_t epoch, bool bound)
{
	const struct vhca_claim *c = claim(w);
	struct vhca_sm_binding b = vhca_claim_binding(c);
	struct json_object *doc = json_object_new_object();

	vhca_json_add_u64(doc, "known_epoch", epoch);
	vhca_json_add_bool(doc, "bound", bound);
	if (bound)
		vhca_json_add_string(doc, "port_guid", VHCA_GUID_STR(OTHER_PORT));
	vhca_engine_sm_answer(w->engine, &b, epoch ? VHCA_SM_SUPERSEDED : VHCA_SM_ACCEPTED,
			      epoch ? "not yours" : "", doc);
	json_object_put(doc);
}

/*
 * The SM's answer to the claim's report. epoch 0: accepted; else another port has it at that epoch.
 */
static void sm_answers(struct world *w, uint64_t epoch)
{
	sm_knows(w, epoch, true);
}

static bool in_state(const struct world *w, const void *arg)
{
	const struct vhca_claim *c = claim(w);

	return c && c->vf->state == *(const enum vhca_vf_state *)arg && !c->vf->committing;
}

static bool wait_state(struct world *w, enum vhca_vf_state state)
{
	return world_until(w, in_state, &state);
}

static bool nobody_claims(const struct world *w, const void *arg)
{
	(void)arg;
	return !claim(w);
}

static const struct vhca_error *problem(const struct world *w)
{
	struct vhca_domain *dom = TAILQ_FIRST(&vhca_engine_model(w->engine)->domains);

	return &dom->requests[0].problem;
}

static struct vhca_uuid start_guest(struct world *w)
{
	struct vhca_uuid uuid;

	world_start(w);
	uuid = world_domain_start(w, 0, "0x8001");
	assert_true(wait_state(w, VHCA_VF_CLAIMED));
	return uuid;
}

static void takes_over_from_a_dead_host(void **state)
{
	struct world *w = *state;
	struct vhca_uuid uuid = start_guest(w);
	struct vhca_error err = VHCA_ERROR_INIT;

	sm_answers(w, 7);
	assert_true(world_until(w, nobody_claims, NULL));
	assert_string_equal(problem(w)->code, "sm_refused");
	assert_non_null(strstr(problem(w)->hint, "vhcactl takeover"));

	assert_int_equal(vhca_engine_takeover(w->engine, &uuid, "hvb is fenced", &err), 0);
	assert_true(wait_state(w, VHCA_VF_CLAIMED)); /* at once, not after the back-off */
	sm_answers(w, 7);
	assert_int_equal(claim(w)->epoch, GENERATION);
	sm_answers(w, 0);
	assert_true(wait_state(w, VHCA_VF_ATTACHED));
}

/*
 * The SM has named an owner: it may be alive all the same, and show the vGUID until it is evicted.
 */
static void nothing_is_programmed_before_the_eviction(void **state)
{
	struct world *w = *state;
	struct vhca_uuid uuid;
	struct vhca_error err = VHCA_ERROR_INIT;

	w->conf.sm_timeout_ms = 20;
	uuid = start_guest(w);
	assert_int_equal(vhca_engine_takeover(w->engine, &uuid, "hvb is fenced", &err), 0);
	sm_answers(w, 7);
	for (unsigned int i = 0; i < 3; i++) /* longer than it waits for an SM that is away */
		world_settle(w);
	assert_true(wait_state(w, VHCA_VF_CLAIMED));
	assert_non_null(strstr(claim(w)->vf->reason, "taken over"));
	sm_answers(w, 0);
	assert_true(wait_state(w, VHCA_VF_ATTACHED));
}

/* Asked once more, the SM says nothing: that is no consent to what it has just refused. */
static void silence_after_a_no_is_no_consent(void **state)
{
	struct world *w = *state;

	w->conf.sm_timeout_ms = 20;
	(void)start_guest(w);
	sm_answers(w, 7);
	assert_true(world_until(w, nobody_claims, NULL));
	assert_true(wait_state(w, VHCA_VF_CLAIMED)); /* after the back-off */
	for (unsigned int i = 0; i < 3; i++)
		world_settle(w);
	assert_true(wait_state(w, VHCA_VF_CLAIMED));
	assert_non_null(strstr(claim(w)->vf->reason, "another host"));
	sm_knows(w, 7, false); /* which has given it up meanwhile */
	sm_answers(w, 0);
	assert_true(wait_state(w, VHCA_VF_ATTACHED));
}

/*
 * The answer to a report that a newer one has replaced: no word of that one's, but the other owner
 * is known.
 */
static void silence_after_a_no_to_the_replaced_is_no_consent(void **state)
{
	struct world *w = *state;
	struct vhca_sm_binding b = {.bound = true};

	(void)start_guest(w);
	assert_true(wait_state(w, VHCA_VF_CLAIMED));
	b.vguid = claim(w)->identity.guid;
	b.epoch = claim(w)->epoch;
	vhca_engine_sm_named_other(w->engine, &b);
	vhca_engine_sm_answer(w->engine, &b, VHCA_SM_RETRY, "no answer", NULL);
	world_settle(w);
	assert_int_equal(claim(w)->vf->state, VHCA_VF_CLAIMED);
	sm_answers(w, 0);
	assert_true(wait_state(w, VHCA_VF_ATTACHED));
}

/*
 * It was refused before, and is granted now: with an SM that dies after that it goes on, like any
 * other.
 */
static void a_grant_ends_the_dispute(void **state)
{
	struct world *w = *state;
	struct vhca_sm_binding b = {.bound = true};

	(void)start_guest(w);
	sm_answers(w, 7);
	assert_true(world_until(w, nobody_claims, NULL));
	assert_true(wait_state(w, VHCA_VF_CLAIMED)); /* after the back-off */
	assert_true(claim(w)->disputed);
	sm_answers(w, 0);
	b.vguid = claim(w)->identity.guid;
	b.epoch = claim(w)->epoch;
	vhca_engine_sm_answer(w->engine, &b, VHCA_SM_RETRY, "no answer", NULL);
	assert_true(wait_state(w, VHCA_VF_ATTACHED));
}

/*
 * Its host was restarted, say: the last withdrawal may be heard of after the new report, at the
 * same epoch.
 */
static void an_epoch_that_was_withdrawn_is_left(void **state)
{
	struct world *w = *state;

	(void)start_guest(w);
	world_domain_stop(w, 0);
	assert_true(world_until(w, nobody_claims, NULL));
	(void)world_domain_start(w, 0, "0x8001");
	assert_true(wait_state(w, VHCA_VF_CLAIMED));
	assert_int_equal(claim(w)->epoch, 1);
	sm_answers(w, 0);
	assert_int_equal(claim(w)->epoch, 3);
	assert_true(wait_state(w, VHCA_VF_ATTACHED));
	sm_answers(w, 0);
	assert_int_equal(claim(w)->epoch, 3);
}

/*
 * It is served while the SM is away, at an epoch that it has withdrawn in an earlier life, and is
 * to migrate when the SM says so.
 */
static void a_migration_puts_the_question_off(void **state)
{
	struct world *w = *state;

	w->conf.sm_timeout_ms = 20;
	(void)start_guest(w);
	assert_true(wait_state(w, VHCA_VF_ATTACHED));
	claim(w)->migrating = true;
	sm_knows(w, claim(w)->epoch, false);
	world_settle(w);
	assert_int_equal(claim(w)->epoch, 1);	 /* what the destination was offered */
	vhca_engine_settle(w->engine, claim(w)); /* it has failed */
	world_settle(w);
	assert_int_equal(claim(w)->vf->state, VHCA_VF_ATTACHED);
	sm_knows(w, claim(w)->epoch, false);
	assert_int_equal(claim(w)->epoch, 3);
	sm_answers(w, 0);
	world_settle(w);
	assert_int_equal(claim(w)->vf->state, VHCA_VF_ATTACHED);
}

/*
 * Taken over and over again; whoever has it was taken over from as well, and has raised its epoch
 * since.
 */
static void each_takeover_is_a_generation(void **state)
{
	struct world *w = *state;
	struct vhca_uuid uuid = start_guest(w);
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_int_equal(vhca_engine_takeover(w->engine, &uuid, "hvb is fenced", &err), 0);
	sm_answers(w, GENERATION + 5);
	assert_int_equal(claim(w)->epoch, 2 * GENERATION);
	sm_answers(w, 0);
	assert_true(wait_state(w, VHCA_VF_ATTACHED));
	sm_answers(w, INT64_MAX - 1); /* there is no generation after this one */
	assert_int_equal(claim(w)->epoch, 2 * GENERATION);
	assert_int_equal(claim(w)->sm_answer, VHCA_ANSWER_SUPERSEDED);
}

/*
 * The claim is being written when the answer comes: the SM is asked again instead of giving the
 * claim up.
 */
static void answer_during_a_commit_is_asked_for_again(void **state)
{
	struct world *w = *state;
	struct vhca_uuid uuid = start_guest(w);
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_int_equal(vhca_engine_takeover(w->engine, &uuid, "hvb is fenced", &err), 0);
	claim(w)->vf->committing++;
	sm_answers(w, 7);
	claim(w)->vf->committing--;
	assert_int_equal(claim(w)->sm_answer, VHCA_ANSWER_NONE);
	sm_answers(w, 7);
	assert_int_equal(claim(w)->epoch, GENERATION);
}

static void another_domain_takes_nothing_over(void **state)
{
	struct world *w = *state;
	struct vhca_uuid other = start_guest(w);
	struct vhca_error err = VHCA_ERROR_INIT;

	other.b[0] ^= 1;
	assert_int_equal(vhca_engine_takeover(w->engine, &other, "hvb is fenced", &err), 0);
	sm_answers(w, 7);
	assert_true(world_until(w, nobody_claims, NULL));
	assert_string_equal(problem(w)->code, "sm_refused");
}

static void ignore(void *arg, const struct vhca_claim *c, const struct vhca_error *err)
{
	(void)arg;
	(void)c;
	(void)err;
}

/* Whoever may make claims for the domain chooses the GUID: it is not what was vouched for. */
static void a_claim_made_after_the_word_takes_nothing_over(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = {
		.domain = {{0xd0, 1}},
		.domain_name = "vm0",
		.origin = VHCA_ORIGIN_CLAIM,
		.vf = {.name = "ib1", .partition = "0x8001", .fabric = "default", .numa = -1}};
	struct vhca_error err = VHCA_ERROR_INIT;

	world_start(w);
	world_settle(w);
	req.vf.guid = UINT64_C(0x0002c90300a1b2c3); /* another tenant's */
	assert_int_equal(vhca_engine_takeover(w->engine, &req.domain, "hvb is off", &err), 0);
	vhca_engine_claim(w->engine, &req, ignore, NULL);
	assert_true(wait_state(w, VHCA_VF_CLAIMED));
	sm_answers(w, 7);
	assert_true(world_until(w, nobody_claims, NULL));
}

static void needs_an_sm_that_fences(void **state)
{
	struct world *w = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_uuid uuid;

	w->fenced = false;
	world_start(w);
	uuid = world_domain_start(w, 0, "0x8001");
	assert_true(vhca_engine_takeover(w->engine, &uuid, "hvb is fenced", &err) < 0);
	assert_string_equal(err.code, "not_fenced");
}

static void table_of_takeovers_is_bounded(void **state)
{
	struct world *w = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_uuid uuid = {0};
	unsigned int n = 0;

	world_start(w);
	do {
		uuid.b[0] = (uint8_t)n;
		uuid.b[1] = (uint8_t)(n >> 8);
	} while (vhca_engine_takeover(w->engine, &uuid, "x", &err) == 0 && ++n < 5000);
	assert_int_equal(n, 1024);
	assert_string_equal(err.code, "too_many_takeovers");
	uuid.b[0] = 1; /* one that has it already */
	uuid.b[1] = 0;
	assert_int_equal(vhca_engine_takeover(w->engine, &uuid, "x", &err), 0);
}

static uint64_t epoch_after_restart(struct world *w)
{
	world_domain_stop(w, 0);
	assert_true(world_until(w, nobody_claims, NULL));
	(void)world_domain_start(w, 0, "0x8001");
	assert_true(wait_state(w, VHCA_VF_CLAIMED));
	return claim(w)->epoch;
}

/* Else whoever is refused would be the owner the second time. */
static void asking_again_is_no_takeover(void **state)
{
	struct world *w = *state;

	(void)start_guest(w);
	assert_int_equal(claim(w)->epoch, 1);
	sm_answers(w, 7);
	assert_true(world_until(w, nobody_claims, NULL));
	assert_int_equal(epoch_after_restart(w), 1);
	assert_int_equal(epoch_after_restart(w), 1); /* nor does one who was not answered */
}

static void an_owner_goes_on_at_the_next_epoch(void **state)
{
	struct world *w = *state;

	(void)start_guest(w);
	sm_answers(w, 0);
	assert_true(wait_state(w, VHCA_VF_ATTACHED));
	assert_int_equal(epoch_after_restart(w), 2);
}

/* The other side: the host was not dead after all. */
static void superseded_vf_leaves_its_guest(void **state)
{
	struct world *w = *state;

	(void)start_guest(w);
	sm_answers(w, 0);
	assert_true(wait_state(w, VHCA_VF_ATTACHED));
	sm_answers(w, 7);
	assert_true(world_until(w, nobody_claims, NULL));
	assert_string_equal(problem(w)->code, "superseded");
	for (unsigned int v = 0; v < WORLD_VFS; v++)
		assert_true(world_clean(w, v));
}

/* ---- a VF in its guest, which the SM had refused before anybody vouched ---- */

/* A guest that got its VF while the SM was silent, and does not let go of it. */
static struct vhca_uuid start_deaf_guest(struct world *w)
{
	struct vhca_uuid uuid;

	w->deaf_guest = true;
	engine_outbox_watch(w);
	uuid = start_guest(w);
	assert_true(wait_state(w, VHCA_VF_ATTACHED));
	return uuid;
}

static bool is_told_more(const struct world *w, const void *arg)
{
	(void)w;
	return told.bound > *(const unsigned int *)arg;
}

/*
 * An operator vouches while the VF is being unplugged; the SM gives it to this host, and it stays.
 */
static void take_over_what_is_refused(struct world *w)
{
	struct vhca_uuid uuid = start_deaf_guest(w);
	struct vhca_error err = VHCA_ERROR_INIT;
	unsigned int before;

	sm_answers(w, 7);
	assert_true(wait_state(w, VHCA_VF_DETACHING));
	before = told.bound;
	assert_int_equal(vhca_engine_takeover(w->engine, &uuid, "hvb is fenced", &err), 0);
	assert_true(world_until(w, is_told_more, &before));
	sm_answers(w, 7);
	before = told.bound;
	assert_int_equal(claim(w)->epoch, GENERATION);
	assert_true(world_until(w, is_told_more, &before));
	assert_int_equal(told.last.epoch, GENERATION);
	sm_answers(w, 0);
	assert_true(wait_state(w, VHCA_VF_ATTACHED)); /* nobody pulls at it any more */
}

static void refused_vf_in_a_guest_is_asked_for_again(void **state)
{
	struct world *w = *state;

	take_over_what_is_refused(w);
	world_settle(w);
	assert_true(wait_state(w, VHCA_VF_ATTACHED));
	assert_false(vhca_claim_is_ending(claim(w)));
	assert_true(world_vf_of(w, 0, "ib0") >= 0);
}

/*
 * Once somebody has vouched, it is not asked for any more, until the time for that would be over.
 */
static void refused_vf_that_may_stay_is_not_asked_out(void **state)
{
	struct world *w = *state;

	take_over_what_is_refused(w);
	assert_int_equal(claim(w)->kept.kind, VHCA_ERR_NONE); /* it was not given up */
	assert_true(world_vf_of(w, 0, "ib0") >= 0);
}

/* ---- a host that only sees that its grant has gone ---- */

static bool is_granted(const struct world *w, const void *arg)
{
	return claim(w) && claim(w)->vf->granted == *(const bool *)arg;
}

static const bool yes = true, no = false;

/* Attached and granted, and the SM's word for it. */
static void start_granted_guest(struct world *w)
{
	engine_outbox_watch(w);
	(void)start_guest(w);
	sm_answers(w, 0);
	assert_true(wait_state(w, VHCA_VF_ATTACHED));
	assert_true(world_until(w, is_granted, &yes));
	world_settle(w);
}

static void lost_grant_makes_it_ask_the_sm(void **state)
{
	struct world *w = *state;
	unsigned int before;

	start_granted_guest(w);
	before = told.bound;
	w->sm_grants = false; /* evicted; or the guest's driver is down */
	assert_true(world_until(w, is_told_more, &before));
	assert_int_equal(told.bound, before + 1); /* not again and again */
	assert_int_equal(told.last.epoch, claim(w)->epoch);
	sm_answers(w, 7);
	assert_true(world_until(w, nobody_claims, NULL));
	assert_string_equal(problem(w)->code, "superseded");
}

static bool alarm_is_raised(const struct world *w, const void *arg)
{
	(void)arg;
	return world_told(w, "another one may have taken it over");
}

/* The time for that has come long ago. */
static void let_it_ask_for_the_grant(struct world *w)
{
	claim(w)->vf->since_ms -= 3600000;
	w->fault_effect = VHCA_EFFECT_REREQUEST_GUID; /* counted, not disturbed */
	w->effects = 0;
}

static bool asks_for_the_grant(const struct world *w, const void *arg)
{
	(void)arg;
	return w->effects > 0;
}

/*
 * The management network is cut: whose it is, nobody says. In the fabric the request might be
 * granted all the same.
 */
static void silent_sm_is_an_alarm_and_no_request(void **state)
{
	struct world *w = *state;

	start_granted_guest(w);
	w->sm_grants = false;
	let_it_ask_for_the_grant(w);
	assert_true(world_until(w, alarm_is_raised, NULL));
	world_settle(w);
	assert_int_equal(w->effects, 0);
	assert_int_equal(claim(w)->vf->state, VHCA_VF_ATTACHED); /* it may be ours */
	sm_answers(w, 0);
	assert_true(world_until(w, asks_for_the_grant, NULL));
	w->sm_grants = true;
	assert_true(world_until(w, is_granted, &yes));
	assert_false(claim(w)->ownership_unconfirmed);
}

static void port_that_is_down_raises_no_doubt(void **state)
{
	struct world *w = *state;
	unsigned int before;

	start_granted_guest(w);
	TAILQ_FIRST(&vhca_engine_model(w->engine)->hcas)->ports[0].state = VHCA_PORT_DOWN;
	before = told.bound;
	w->sm_grants = false;
	assert_true(world_until(w, is_granted, &no));
	world_settle(w);
	assert_int_equal(told.bound, before);
	assert_false(claim(w)->ownership_unconfirmed);
}

static void vf_that_somebody_detaches_goes_all_the_same(void **state)
{
	struct world *w = *state;
	struct vhca_uuid uuid = start_deaf_guest(w);
	struct vhca_error err = VHCA_ERROR_INIT;

	vhca_engine_release(w->engine, claim(w), false, ignore, NULL);
	sm_answers(w, 7);
	assert_int_equal(vhca_engine_takeover(w->engine, &uuid, "hvb is fenced", &err), 0);
	assert_true(vhca_claim_is_ending(claim(w)));
	w->deaf_guest = false;
	assert_true(world_until(w, nobody_claims, NULL));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* ---- the host that takes over dies, too ---- */

/* An outbox whose reports do not leave the host. */
static struct {
	struct vhca_sm_ops ops;
	struct vhca_outbox *outbox;
	unsigned int bound; /* bindings that were to be sent since the agent's start */
} stuck;

static int send_no_binding(const struct vhca_sm_binding *b, struct vhca_sm_request *ret)
{
	(void)ret;
	stuck.bound += b->bound;
	return -EAGAIN;
}

static int send_no_members(const struct vhca_sm_members *m, struct vhca_sm_request *ret)
{
	(void)m;
	(void)ret;
	return -EAGAIN;
}

static void open_stuck(struct world *w)
{
	static const char *const urls[] = {"http://127.0.0.1:1"};
	const struct vhca_outbox_conf conf = {.ops = &stuck.ops, .urls = urls, .n_urls = 1};
	struct vhca_error err = VHCA_ERROR_INIT;

	stuck.bound = 0;
	assert_int_equal(vhca_outbox_new(&conf, w->loop, w->store, NULL, vhca_engine_sm_answer,
					 w->engine, &stuck.outbox, &err),
			 0);
	vhca_engine_set_outbox(w->engine, stuck.outbox);
}

static void close_stuck(struct world *w)
{
	(void)w;
	stuck.outbox = vhca_outbox_free(stuck.outbox);
}

/* Does a report of this epoch wait? */
static bool is_waiting(bool bound, uint64_t epoch)
{
	struct json_object *list = vhca_outbox_to_json(stuck.outbox), *row;
	bool found = false;

	for (size_t i = 0; i < json_object_array_length(list); i++) {
		row = json_object_array_get_idx(list, i);
		found |= json_object_object_get(row, "bound") &&
			 json_object_get_boolean(json_object_object_get(row, "bound")) == bound &&
			 json_object_get_uint64(json_object_object_get(row, "epoch")) == epoch;
	}
	(void)json_object_put(list);
	return found;
}

static void start_unheard(struct world *w)
{
	stuck.ops = vhca_sm_vhcasm;
	stuck.ops.binding_request = send_no_binding;
	stuck.ops.members_request = send_no_members;
	w->started = open_stuck;
	w->stopping = close_stuck;
}

static void take_over(struct world *w, const struct vhca_uuid *uuid)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_int_equal(vhca_engine_takeover(w->engine, uuid, "hvb is fenced", &err), 0);
	sm_answers(w, 7);
	world_settle(w);
	assert_int_equal(claim(w)->epoch, GENERATION);
	assert_true(is_waiting(true, GENERATION));
}

static void take_over_unheard(struct world *w)
{
	struct vhca_uuid uuid;

	start_unheard(w);
	uuid = start_guest(w);
	take_over(w, &uuid);
}

/* Its guest may run elsewhere by then, at an older epoch; who has it there is told of no report. */
static void a_takeover_that_was_not_sent_ends_with_its_boot(void **state)
{
	struct world *w = *state;

	take_over_unheard(w);
	world_reboot(w);
	world_start(w);
	assert_true(world_until(w, nobody_claims, NULL));
	world_settle(w);
	assert_int_equal(stuck.bound, 0);
	assert_true(is_waiting(false, GENERATION)); /* the SM may have heard of it */
}

/* Of a domain that an orchestrator is to start. */
static struct vhca_uuid claim_by_api(struct world *w)
{
	struct vhca_claim_request req = {
		.domain = {{0xd0, 1}},
		.domain_name = "vm0",
		.origin = VHCA_ORIGIN_CLAIM,
		.vf = {.name = "ib0", .partition = "0x8001", .fabric = "default", .numa = -1}};

	start_unheard(w);
	world_start(w);
	world_settle(w);
	vhca_engine_claim(w->engine, &req, ignore, NULL);
	assert_true(wait_state(w, VHCA_VF_CLAIMED));
	return req.domain;
}

static void a_takeover_of_an_api_claim_ends_with_its_boot(void **state)
{
	struct world *w = *state;
	struct vhca_uuid uuid = claim_by_api(w);

	take_over(w, &uuid);
	world_reboot(w);
	world_start(w);
	world_kill(w); /* while it ends */
	assert_int_equal(stuck.bound, 0);
	world_start(w);
	assert_true(world_until(w, nobody_claims, NULL));
	world_settle(w);
	assert_int_equal(stuck.bound, 0);
	assert_true(is_waiting(false, GENERATION));
}

/* It takes nothing from anybody. */
static void an_api_claim_that_was_not_sent_outlives_its_boot(void **state)
{
	struct world *w = *state;

	(void)claim_by_api(w);
	assert_true(is_waiting(true, claim(w)->epoch));
	world_reboot(w);
	world_start(w);
	world_settle(w);
	assert_non_null(claim(w));
	assert_true(is_waiting(true, claim(w)->epoch));
}

/* Only the agent was restarted: an orchestrator's domain is still to come. */
static void a_takeover_of_an_api_claim_outlives_its_agent(void **state)
{
	struct world *w = *state;
	struct vhca_uuid uuid = claim_by_api(w);

	take_over(w, &uuid);
	world_kill(w);
	world_start(w);
	world_settle(w);
	assert_non_null(claim(w));
	assert_true(is_waiting(true, GENERATION));
}

/* Only the agent was restarted: its guest runs. */
static void a_takeover_that_was_not_sent_outlives_its_agent(void **state)
{
	struct world *w = *state;

	take_over_unheard(w);
	world_kill(w);
	world_start(w);
	world_settle(w);
	assert_true(stuck.bound > 0);
	assert_true(is_waiting(true, GENERATION));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(takes_over_from_a_dead_host),
		T(silence_after_a_no_is_no_consent),
		T(a_grant_ends_the_dispute),
		T(silence_after_a_no_to_the_replaced_is_no_consent),
		T(nothing_is_programmed_before_the_eviction),
		T(an_epoch_that_was_withdrawn_is_left),
		T(a_migration_puts_the_question_off),
		T(each_takeover_is_a_generation),
		T(answer_during_a_commit_is_asked_for_again),
		T(another_domain_takes_nothing_over),
		T(a_claim_made_after_the_word_takes_nothing_over),
		T(needs_an_sm_that_fences),
		T(asking_again_is_no_takeover),
		T(an_owner_goes_on_at_the_next_epoch),
		T(table_of_takeovers_is_bounded),
		T(superseded_vf_leaves_its_guest),
		T(refused_vf_in_a_guest_is_asked_for_again),
		T(refused_vf_that_may_stay_is_not_asked_out),
		T(vf_that_somebody_detaches_goes_all_the_same),
		T(lost_grant_makes_it_ask_the_sm),
		T(silent_sm_is_an_alarm_and_no_request),
		T(port_that_is_down_raises_no_doubt),
		T(a_takeover_that_was_not_sent_ends_with_its_boot),
		T(a_takeover_that_was_not_sent_outlives_its_agent),
		T(a_takeover_of_an_api_claim_ends_with_its_boot),
		T(a_takeover_of_an_api_claim_outlives_its_agent),
		T(an_api_claim_that_was_not_sent_outlives_its_boot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
