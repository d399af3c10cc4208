// SPDX-License-Identifier: LGPL-2.1-or-later
/* The production engine on a simulated host whose state disk is full, once or for long: SQLite
 * itself is refused its writes. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "agent/state/journal.h"
#include "agent/state/repeats.h"
#include "common/ticket/ticket.h"
#include "tests/unit/agent/vf/engine_outbox.h"
#include "tests/unit/agent/vf/engine_world.h"
#include "tests/unit/common/store/slow_vfs.h"

static void start(struct world *w)
{
	engine_outbox_start(w);
	vhca_store_set_retry(w->store, 50);
	settle_free(w);
}

static bool has_no_room(const struct world *w, const void *arg)
{
	(void)arg;
	struct vhca_error why;

	return vhca_engine_check_ready(w->engine, &why) < 0 && strstr(why.msg, "space");
}

static bool is_ready(const struct world *w, const void *arg)
{
	(void)arg;
	return vhca_engine_check_ready(w->engine, NULL) == 0;
}

static struct vhca_claim_request request_of(struct world *w, enum vhca_origin origin)
{
	struct vhca_claim_request req = {.domain = w->domains[0].info.uuid, .origin = origin};

	(void)snprintf(req.domain_name, sizeof(req.domain_name), "vm0");
	req.vf.numa = -1;
	/* Not ib0: of that the world knows what the domain asks for. */
	(void)snprintf(req.vf.name, sizeof(req.vf.name), "hand");
	(void)snprintf(req.vf.fabric, sizeof(req.vf.fabric), "default");
	(void)snprintf(req.vf.partition, sizeof(req.vf.partition), "0x8001");
	return req;
}

static struct answer claim(struct world *w, enum vhca_origin origin)
{
	struct vhca_claim_request req = request_of(w, origin);
	struct answer a = {0};

	vhca_engine_claim(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	return a;
}

static bool is_known(const struct world *w, const void *arg)
{
	return vhca_model_domain(vhca_engine_model(w->engine),
				 &w->domains[*(const unsigned int *)arg].info.uuid);
}

/* Domain 0 runs and asks for nothing. */
static void start_idle(struct world *w)
{
	start(w);
	world_domain_start(w, 0, NULL);
	assert_true(world_until(w, is_known, &zero));
}

/* ---- one commit that fails ---- */

/* Whichever commit of a guest's start it is; false: there are not so many. */
static bool start_guest_with(struct world *w, unsigned int nth)
{
	bool refused;

	start(w);
	slow_vfs_fill_briefly(w->dir, nth, 1);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	world_settle(w);
	refused = slow_vfs_refused() > 0;
	assert_true(world_until(w, is_ready, NULL));
	assert_true(told.bound >= 1);
	slow_vfs_fill(NULL);
	world_domain_stop(w, 0);
	assert_true(world_until(w, nothing_attached, NULL));
	assert_true(told.withdrawn >= 1);
	world_kill(w);
	return refused;
}

static void test_guest_starts_whichever_commit_fails(void **state)
{
	unsigned int nth = 0;

	while (start_guest_with(*state, nth))
		nth++;
	assert_true(nth >= 3); /* claimed, programmed, attached: fewer would prove nothing */
}

static bool is_submitted(const struct world *w, const void *arg)
{
	(void)arg;
	return first_claim(w) && first_claim(w)->vf->committing;
}

/* The state thread is so late that the disk works again when it hears that it did not: nobody is
 * told of an outage, nor of its end. */
static void test_claim_that_fails_unheard_is_made_again(void **state)
{
	struct world *w = *state;
	struct vhca_txn *next;
	unsigned int syncs;
	char text[48];

	start(w);
	vhca_store_set_retry(w->store, 1);
	slow_vfs_fill_briefly(w->dir, 0, 1);
	syncs = slow_vfs_syncs();
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, is_submitted, NULL));
	unit_until(slow_vfs_syncs() > syncs, sched_yield()); /* the store has tried again */
	assert_int_equal(slow_vfs_refused(), 1);
	next = vhca_txn_new(w->store);
	(void)snprintf(text, sizeof(text), "PRAGMA user_version = %u", vhca_journal_n_migrations);
	vhca_txn_exec(next, text, "");
	vhca_txn_commit(next, NULL, NULL);
	unit_until(slow_vfs_syncs() > syncs + 1, sched_yield()); /* and has noted that it works */
	assert_true(world_until(w, served, &zero));
	assert_false(world_told(w, "nothing new is begun"));
	assert_true(world_told(w, "is given back"));
}

static bool was_told(const struct world *w, const void *arg)
{
	(void)w;
	(void)arg;
	return told.bound > 0;
}

static bool told_of_port(const struct world *w, const void *arg)
{
	(void)w;
	return told.last_bound.port_guid == *(const uint64_t *)arg;
}

static void test_report_is_told_after_a_failed_commit(void **state)
{
	struct world *w = *state;

	start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	world_settle(w);
	slow_vfs_fill_briefly(w->dir, 0, 3); /* together with others, and alone */
	w->port_guid++;
	world_show_port(w);
	assert_true(world_until(w, told_of_port, &w->port_guid));
	assert_int_equal(slow_vfs_refused(), 3);
}

/* The GUID that the SM has chosen is saved, and reported, without a change of state. */
static void test_choice_of_the_sm_is_reported_whichever_commit_fails(void **state)
{
	struct world *w = *state;
	bool refused = true;

	for (unsigned int nth = 1; refused; nth++) {
		struct vhca_claim_request req;
		struct answer a = {0};

		start_idle(w);
		w->sm_choice = 0x0c00000000000042;
		req = request_of(w, VHCA_ORIGIN_ATTACH);
		req.vf.guid = VHCA_GUID_BY_SM;
		slow_vfs_fill_briefly(w->dir, nth, 1);
		vhca_engine_claim(w->engine, &req, on_answer, &a);
		assert_true(world_until(w, answered, &a));
		/* The word of the life before may be struck off meanwhile: then it is the first. */
		assert_true(a.ok || slow_vfs_refused() > 0);
		world_settle(w);
		refused = slow_vfs_refused() > 0;
		assert_true(!a.ok || world_until(w, was_told, NULL));
		slow_vfs_fill(NULL);
		world_domain_stop(w, 0);
		assert_true(world_until(w, nothing_attached, NULL));
		world_kill(w);
	}
}

static void put_proof(struct world *w, uint64_t vguid)
{
	const struct vhca_ticket ticket = {.vguid = vguid,
					   .epoch = 7,
					   .port_guid = 2,
					   .name = "cert:hv2",
					   .n_certificate = 1,
					   .n_signature = 1};
	struct json_object *proof = json_object_new_array();
	struct vhca_txn *txn = vhca_txn_new(w->store);
	char text[VHCA_TICKET_MAX];

	json_object_array_add(proof, json_object_new_string(vhca_ticket_format(&ticket, text)));
	vhca_outbox_put_proof(told.outbox, txn, vguid, proof);
	vhca_txn_commit(txn, NULL, NULL);
	json_object_put(proof);
}

/* Its removal was not durable when the agent was killed: it would keep the proof of a guest that
 * comes with the same vGUID later from being taken. */
static void test_proof_of_what_has_gone_goes_with_the_next_start(void **state)
{
	struct world *w = *state;
	uint64_t vguid, gone;

	start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	vguid = first_claim(w)->identity.guid;
	gone = vguid ^ 0x100;
	put_proof(w, vguid);
	put_proof(w, gone);
	world_kill(w);
	for (unsigned int i = 0; i < 2; i++) {
		world_start(w);
		assert_non_null(vhca_outbox_proof(told.outbox, vguid));
		assert_null(vhca_outbox_proof(told.outbox, gone));
		world_kill(w);
	}
}

/* ---- a cloud's port, reserved for a guest that is not here ---- */

static struct answer reserve(struct world *w, unsigned int v)
{
	struct vhca_claim_request req = request_of(w, VHCA_ORIGIN_CLAIM);
	struct answer a = {0};

	req.domain.b[0] ^= 1;
	req.vf.guid = UINT64_C(0xfa163e0000123456);
	vhca_port_name(req.vf.guid, req.vf.name);
	req.bdf = w->vfs[v].bdf;
	req.has_bdf = req.no_partition = true;
	vhca_engine_claim_port(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	return a;
}

static bool is_reserved_alone(const struct world *w, const void *arg)
{
	const struct vhca_vf *vf = engine_vf(w, *(const unsigned int *)arg);

	return count(w, VHCA_VF_FREE) == WORLD_VFS - 1 && vf->state == VHCA_VF_CLAIMED &&
	       !vf->committing && !vf->owed && vf->claim == first_claim(w) &&
	       !vhca_claim_is_ending(vf->claim);
}

static void start_reserved(struct world *w)
{
	for (unsigned int v = 1; v < 3; v++)
		w->conf.hcas[0].reserve[w->conf.hcas[0].n_reserve++] = w->vfs[v].bdf;
	start(w);
	assert_true(reserve(w, 1).ok);
	assert_true(is_reserved_alone(w, &one));
}

static void test_a_newer_word_comes_whichever_commit_fails(void **state)
{
	const unsigned int to[] = {2, 1};
	struct world *w = *state;
	unsigned int nth = 0;
	struct answer a;

	start_reserved(w);
	do {
		slow_vfs_fill_briefly(w->dir, nth, 1);
		unit_until((a = reserve(w, to[nth % 2])).ok, world_settle(w));
		world_settle(w);
		assert_true(world_until(w, is_reserved_alone, &to[nth % 2]));
		nth++;
	} while (slow_vfs_refused() > 0);
	assert_true(nth >= 4); /* ending, scrubbing, free, claimed */
	slow_vfs_fill(NULL);
}

static void test_a_newer_word_ends_nothing_while_it_is_full(void **state)
{
	struct world *w = *state;

	start_reserved(w);
	slow_vfs_fill(w->dir);
	world_domain_start(w, 0, "0x8001"); /* who finds it out */
	assert_true(world_until(w, has_no_room, NULL));
	assert_string_equal(reserve(w, 2).code, "state_disk");
	world_domain_stop(w, 0);
	slow_vfs_fill(NULL);
	assert_true(world_until(w, is_ready, NULL));
	world_settle(w);
	assert_true(world_until(w, is_reserved_alone, &one));
}

/* ---- a disk that stays full ---- */

static void expect_refused(struct world *w, enum vhca_origin origin)
{
	struct answer a = claim(w, origin);

	assert_false(a.ok);
	assert_string_equal(a.code, "state_disk");
	assert_true(TAILQ_EMPTY(&vhca_engine_model(w->engine)->claims));
	assert_int_equal(count(w, VHCA_VF_FREE), WORLD_VFS);
}

static void test_claims_are_refused_at_once_while_it_is_full(void **state)
{
	struct world *w = *state;
	struct answer a;

	start_idle(w);
	slow_vfs_fill(w->dir);
	expect_refused(w, VHCA_ORIGIN_ATTACH); /* who finds it out */
	expect_refused(w, VHCA_ORIGIN_ATTACH);
	expect_refused(w, VHCA_ORIGIN_CLAIM);
	assert_true(has_no_room(w, NULL));
	slow_vfs_fill(NULL);
	assert_true(world_until(w, is_ready, NULL));
	a = claim(w, VHCA_ORIGIN_ATTACH);
	assert_true(a.ok);
	assert_true(told.bound >= 1);
}

static void test_the_condition_is_told_once(void **state)
{
	struct world *w = *state;
	struct json_object *doc;
	const char *text;

	start_idle(w);
	slow_vfs_fill(w->dir);
	expect_refused(w, VHCA_ORIGIN_ATTACH);
	unit_until(slow_vfs_refused() >= 4, world_round(w, 10)); /* tried again and again */
	slow_vfs_fill(NULL);
	assert_true(world_until(w, is_ready, NULL));
	doc = vhca_events_to_json(w->events, 0, NULL);
	text = strstr(json_object_to_json_string(doc), "cannot be written");
	assert_non_null(text);
	/* The claim's own event repeats it. */
	text = strstr(text + 1, "\"alarm\"");
	assert_null(text);
	json_object_put(doc);
}

static void test_a_request_is_served_when_there_is_room(void **state)
{
	struct world *w = *state;

	start(w);
	slow_vfs_fill(w->dir);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, has_no_room, NULL));
	world_settle(w);
	assert_true(TAILQ_EMPTY(&vhca_engine_model(w->engine)->claims));
	slow_vfs_fill(NULL);
	assert_true(world_until(w, served, &zero));
	assert_true(told.bound >= 1);
}

static void test_a_release_is_refused_at_once(void **state)
{
	struct world *w = *state;
	struct answer a = {0};
	struct vhca_claim *c;

	start_idle(w);
	a = claim(w, VHCA_ORIGIN_ATTACH);
	assert_true(a.ok);
	world_settle(w);
	slow_vfs_fill(w->dir);
	w->port_guid++;
	world_show_port(w); /* who finds it out */
	assert_true(world_until(w, has_no_room, NULL));
	c = TAILQ_FIRST(&vhca_engine_model(w->engine)->claims);
	a = (struct answer){0};
	vhca_engine_release(w->engine, c, false, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	assert_string_equal(a.code, "state_disk");
	slow_vfs_fill(NULL);
	assert_true(world_until(w, told_of_port, &w->port_guid));
	assert_int_equal(c->vf->state, VHCA_VF_ATTACHED);
	assert_false(vhca_claim_is_ending(c));
	assert_false(vhca_model_suppressed(vhca_engine_model(w->engine), &c->domain, c->name));
}

/* Nobody would withdraw what the SM is told of a claim that never was. */
static void test_a_port_reports_no_claim_that_fails(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;
	struct answer a = {0};

	start_idle(w);
	req = request_of(w, VHCA_ORIGIN_ATTACH);
	slow_vfs_fill_briefly(w->dir, 0, 2); /* together with others, and alone */
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	w->port_guid++;
	world_show_port(w);
	assert_true(world_until(w, answered, &a));
	assert_string_equal(a.code, "state_disk");
	assert_true(world_until(w, is_ready, NULL));
	world_settle(w);
	assert_int_equal(told.bound, 0);
	assert_int_equal(claim(w, VHCA_ORIGIN_ATTACH).ok, true);
	assert_true(world_until(w, told_of_port, &w->port_guid));
}

/* What has changed while it was written is told behind it. */
static void test_a_new_claim_is_reported_at_the_new_port(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;
	struct answer a = {0};

	start_idle(w);
	req = request_of(w, VHCA_ORIGIN_ATTACH);
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	w->port_guid++;
	world_show_port(w);
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
	assert_true(world_until(w, told_of_port, &w->port_guid));
}

/* The guest's own VF, while nothing can be journaled for it. */
static bool shows_nothing_foreign(const struct world *w, const void *arg)
{
	int v = world_vf_of(w, 0, "ib0");

	(void)arg;
	return v >= 0 && w->vfs[v].map[0] == -1;
}

static bool is_held(const struct world *w, const void *arg)
{
	int v = world_vf_of(w, 0, "ib0");

	(void)arg;
	return v >= 0 && engine_vf(w, (unsigned int)v)->committing;
}

static void test_the_table_is_followed_while_it_is_full(void **state)
{
	struct world *w = *state;

	start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	world_settle(w);
	slow_vfs_fill(w->dir);
	w->sm_grants = false; /* the grant is lost: something to be saved */
	w->vfs[world_vf_of(w, 0, "ib0")].asked = false;
	assert_true(world_until(w, has_no_room, NULL));
	assert_true(is_held(w, NULL));
	w->hostile_sm = true;
	world_set_key(w, 1, 0x8003);
	assert_true(world_until(w, shows_nothing_foreign, NULL));
	assert_true(is_held(w, NULL));
	slow_vfs_fill(NULL);
	assert_true(world_until(w, is_ready, NULL));
}

static void test_an_agent_ends_with_a_full_disk(void **state)
{
	struct world *w = *state;

	start_idle(w);
	slow_vfs_fill(w->dir);
	expect_refused(w, VHCA_ORIGIN_ATTACH);
	w->port_guid++;
	world_show_port(w);
	world_settle(w);
	world_kill(w); /* the sanitizers see that nothing is left, and the time-out that it ends */
	slow_vfs_fill(NULL);
}

/* ---- requests with an Idempotency-Key, of whom nobody waits for room ---- */

static struct vhca_repeats *repeats;

static void reopen(struct world *w)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	world_settle(w);
	repeats = vhca_repeats_free(repeats);
	assert_int_equal(vhca_repeats_new(w->store, &repeats, &err), 0);
}

static struct vhca_repeat *admit(const char *key)
{
	const struct vhca_repeat_request req = {.caller = "uid:0", .key = key, .fingerprint = "f"};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_repeat *r = NULL;

	assert_int_equal(vhca_repeats_admit(repeats, &req, &r, &err), 0);
	return r;
}

static void on_told(void *arg, int rc)
{
	*(int *)arg = rc;
}

static bool is_told(const struct world *w, const void *arg)
{
	(void)w;
	return *(const int *)arg != 1;
}

static void test_an_answer_waits_for_no_room(void **state)
{
	struct world *w = *state;
	struct vhca_repeat *r;
	int rc = 1;

	start_idle(w);
	reopen(w);
	r = admit("k");
	world_settle(w);
	slow_vfs_fill(w->dir);
	vhca_repeat_keep(r, 201, "{}", on_told, &rc);
	assert_true(world_until(w, is_told, &rc));
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(vhca_repeat_status(admit("k")), 201); /* as long as this agent lives */
	slow_vfs_fill(NULL);
	assert_true(world_until(w, is_ready, NULL));
	repeats = vhca_repeats_free(repeats);
}

/* Its row has stayed, and is the new one's then. */
static void test_a_refusal_waits_for_no_room(void **state)
{
	struct world *w = *state;
	struct vhca_uuid object;
	int rc = 1, kept = 1;

	start_idle(w);
	reopen(w);
	slow_vfs_fill(w->dir);
	vhca_repeat_forget(admit("k"), on_told, &rc);
	assert_true(world_until(w, is_told, &rc));
	assert_int_equal(rc, -ENOSPC);
	slow_vfs_fill(NULL);
	assert_true(world_until(w, is_ready, NULL));
	object = *vhca_repeat_object(admit("k"));
	reopen(w);
	assert_true(vhca_uuid_equal(vhca_repeat_object(admit("k")), &object));
	vhca_repeat_keep(admit("other"), 200, "{}", on_told, &kept);
	assert_true(world_until(w, is_told, &kept));
	assert_int_equal(kept, 0);
	repeats = vhca_repeats_free(repeats);
}

/* As the API does it: the answer is kept, or the key forgotten where the disk has refused. */
static struct answer claim_with_key(struct world *w, const char *key)
{
	struct vhca_claim_request req = request_of(w, VHCA_ORIGIN_ATTACH);
	struct vhca_repeat *r = admit(key);
	struct answer a = {0};
	int rc = 1;

	req.id = vhca_repeat_object(r);
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	if (a.ok)
		vhca_repeat_keep(r, 201, "{}", on_told, &rc);
	else
		vhca_repeat_forget(r, on_told, &rc);
	assert_true(world_until(w, is_told, &rc));
	return a;
}

static void test_a_request_with_a_key_waits_for_no_room(void **state)
{
	struct world *w = *state;

	start_idle(w);
	reopen(w);
	slow_vfs_fill(w->dir);
	assert_string_equal(claim_with_key(w, "k").code, "state_disk"); /* who finds it out */
	assert_true(TAILQ_EMPTY(&vhca_engine_model(w->engine)->claims));
	slow_vfs_fill(NULL);
	assert_true(world_until(w, is_ready, NULL));
	assert_true(claim_with_key(w, "k").ok);
	reopen(w);
	assert_int_equal(vhca_repeat_status(admit("k")), 201);
	repeats = vhca_repeats_free(repeats);
}

/* A claim with a key, of whose commits the nth is refused, and a kill behind its answer: what it
 * has made has a key that knows it. False: there are not so many. */
static bool claim_and_kill(struct world *w, unsigned int nth, unsigned int writes)
{
	const struct vhca_repeat *r;
	bool ok, refused;
	char key[16];

	(void)snprintf(key, sizeof(key), "%u/%u", nth, writes);
	start_idle(w);
	reopen(w);
	slow_vfs_fill_briefly(w->dir, nth, writes);
	ok = claim_with_key(w, key).ok;
	assert_true(world_until(w, is_ready, NULL));
	world_settle(w);
	refused = slow_vfs_refused() > 0;
	slow_vfs_fill(NULL);
	repeats = vhca_repeats_free(repeats);
	world_kill(w);
	engine_outbox_start(w);
	reopen(w);
	r = admit(key);
	assert_int_equal(first_claim(w) != NULL, ok);
	assert_int_equal(vhca_repeat_has_begun(r), ok);
	if (ok)
		assert_true(vhca_uuid_equal(&first_claim(w)->id, vhca_repeat_object(r)));
	world_domain_stop(w, 0);
	assert_true(world_until(w, nothing_attached, NULL));
	repeats = vhca_repeats_free(repeats);
	world_kill(w);
	return refused;
}

/* Alone, or together with others and alone. */
static void test_a_key_is_not_lost_whichever_commit_fails(void **state)
{
	for (unsigned int writes = 1; writes <= 2; writes++) {
		unsigned int nth = 0;

		while (claim_and_kill(*state, nth, writes))
			nth++;
		assert_true(nth >= 3); /* the key and its claim, programmed, attached */
	}
}

/* ---- a disk that takes its time ---- */

static bool is_being_written(const struct world *w, const void *arg)
{
	(void)arg;
	return first_claim(w) && first_claim(w)->vf->state == VHCA_VF_FREE;
}

static bool is_compared(const struct world *w, const void *arg)
{
	(void)arg;
	return first_claim(w)->differs.kind || vhca_claim_is_ending(first_claim(w));
}

/* No guest has seen it yet: it would keep what is not asked for any more. */
static void test_request_that_changes_while_it_is_written_begins_anew(void **state)
{
	struct world *w = *state;

	start(w);
	slow_vfs_hold(true);
	world_domain_start(w, 0, "0x8002");
	assert_true(world_until(w, is_being_written, NULL));
	(void)snprintf(w->domains[0].info.requests[0].partition, sizeof("0x8001"), "0x8001");
	world_look(w, 0);
	assert_true(world_until(w, is_compared, NULL));
	slow_vfs_hold(false);
	assert_true(world_until(w, served, &zero));
	assert_int_equal(first_claim(w)->identity.pkeys[0], 0x8001);
}

static int teardown_with_room(void **state)
{
	slow_vfs_fill(NULL);
	slow_vfs_hold(false);
	return teardown(state);
}

#define DISK_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown_with_room)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DISK_TEST(test_guest_starts_whichever_commit_fails),
		DISK_TEST(test_claim_that_fails_unheard_is_made_again),
		DISK_TEST(test_report_is_told_after_a_failed_commit),
		DISK_TEST(test_proof_of_what_has_gone_goes_with_the_next_start),
		DISK_TEST(test_choice_of_the_sm_is_reported_whichever_commit_fails),
		DISK_TEST(test_a_newer_word_comes_whichever_commit_fails),
		DISK_TEST(test_a_newer_word_ends_nothing_while_it_is_full),
		DISK_TEST(test_claims_are_refused_at_once_while_it_is_full),
		DISK_TEST(test_the_condition_is_told_once),
		DISK_TEST(test_a_request_is_served_when_there_is_room),
		DISK_TEST(test_a_release_is_refused_at_once),
		DISK_TEST(test_the_table_is_followed_while_it_is_full),
		DISK_TEST(test_a_port_reports_no_claim_that_fails),
		DISK_TEST(test_a_new_claim_is_reported_at_the_new_port),
		DISK_TEST(test_an_answer_waits_for_no_room),
		DISK_TEST(test_a_refusal_waits_for_no_room),
		DISK_TEST(test_a_request_with_a_key_waits_for_no_room),
		DISK_TEST(test_a_key_is_not_lost_whichever_commit_fails),
		DISK_TEST(test_an_agent_ends_with_a_full_disk),
		DISK_TEST(test_request_that_changes_while_it_is_written_begins_anew),
	};

	slow_vfs_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
