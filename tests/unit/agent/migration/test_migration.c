// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Managed migration: the production machines of two agents on two simulated hosts
 * (tests/sim/hosts/pair.h).
 */
#include "tests/unit/agent/migration/migration_pair.h"

#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/base/file.h"

/* What the source says of the VFs when its own have gone. */
static void assert_shows_peers_vf(const struct pair *p, const struct vhca_uuid *id)
{
	const struct vhca_mig *m = vhca_migrations_find(p->ms[0], id);
	const struct vhca_claim *there = claim_on(p, 1);

	assert_int_equal(m->n_vfs, 1);
	assert_string_equal(m->vfs[0].name, "ib0");
	assert_int_equal(vhca_bdf_cmp(m->vfs[0].bdf, there->vf->bdf), 0);
	assert_int_equal(m->vfs[0].guid, there->identity.guid);
	assert_int_equal(m->vfs[0].epoch, there->epoch);
	assert_true(m->vfs[0].attached);
	assert_null(vhca_migration_claim(m, NULL));
}

static void test_there_and_back(void **state)
{
	struct pair *p = *state;
	uint64_t guid = claim_on(p, 0)->identity.guid, epoch = claim_on(p, 0)->epoch;
	struct vhca_bdf guest = claim_on(p, 0)->guest;
	struct vhca_uuid id = pair_migrate(p, 0);

	assert_true(pair_until(p, at_home, &one));
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_DONE);
	assert_int_equal(pair_state(p, 1), VHCA_MIG_DONE);
	assert_int_equal(claim_on(p, 1)->identity.guid, guid);
	assert_true(claim_on(p, 1)->epoch > epoch);
	assert_false(claim_on(p, 1)->has_from); /* the next report is no move */
	assert_int_equal(vhca_bdf_cmp(claim_on(p, 1)->guest, guest), 0);
	assert_shows_peers_vf(p, &id);
	world_kill(&p->w[0]);
	world_start(&p->w[0]);
	assert_shows_peers_vf(p, &id); /* after a restart as well */
	epoch = claim_on(p, 1)->epoch;
	(void)pair_migrate(p, 1);
	assert_true(pair_until(p, at_home, &zero));
	assert_int_equal(claim_on(p, 0)->identity.guid, guid);
	assert_true(claim_on(p, 0)->epoch > epoch);
	assert_int_equal(p->copies, 2);
}

static bool only_the_peer_is_done(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_DONE && pair_state(p, 0) == VHCA_MIG_FINISHING;
}

static bool old_claim_ends(const struct pair *p, const void *arg)
{
	const struct vhca_claim *c = claim_on(p, 0);

	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_DONE && c && c->ending;
}

/* The claim of the life before is still there. */
static void test_back_at_once(void **state)
{
	bool (*const moments[])(const struct pair *p, const void *arg) = {only_the_peer_is_done,
									  old_claim_ends};
	struct pair *p = *state;

	for (unsigned int i = 0; i < 2; i++) {
		(void)pair_migrate(p, 0);
		assert_true(pair_until(p, moments[i], NULL));
		(void)pair_migrate(p, 1);
		assert_true(pair_until(p, has_ended, &one));
		assert_int_equal(pair_state(p, 1), VHCA_MIG_DONE);
		assert_true(pair_until(p, at_home, &zero));
	}
	assert_int_equal(p->copies, 4);
}

static bool is_settled_there(const struct pair *p, const void *arg)
{
	(void)arg;
	return claim_on(p, 1) && !claim_on(p, 1)->migrating;
}

/* Though the end of the migration is still on its way to the disk. */
static void test_settled_vfs_are_shown(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = pair_migrate(p, 0);

	assert_true(pair_until(p, is_settled_there, NULL));
	assert_non_null(vhca_migration_claim(vhca_migrations_find(p->ms[1], &id), NULL));
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(vhca_migrations_find(p->ms[0], &id)->n_vfs, 1);
}

static unsigned int declared_on(const struct pair *p, unsigned int host)
{
	return TAILQ_FIRST(&vhca_engine_model(p->w[host].engine)->hcas)->n_declared;
}

static bool both_declare(const struct pair *p, const void *arg)
{
	return declared_on(p, 0) == 1 && declared_on(p, 1) == *(const unsigned int *)arg;
}

/*
 * What is declared for a VF on the move is not left to the port when it has come to rest, or a key
 * would stay there for ever.
 */
static void test_declared_keys_go_with_the_move(void **state)
{
	struct pair *p = *state;

	for (int fails = 0; fails < 2; fails++) {
		p->copy_fails = fails;
		(void)pair_migrate(p, 0);
		if (!fails)
			assert_true(pair_until(p, both_declare, &one));
		assert_true(pair_until(p, has_ended, &zero));
		assert_true(pair_until(p, at_home, fails ? &zero : &one));
		pair_settle(p);
		assert_int_equal(declared_on(p, 0), 0);
		assert_int_equal(declared_on(p, 1), 0);
		if (!fails) {
			(void)pair_migrate(p, 1);
			assert_true(pair_until(p, at_home, &zero));
		}
	}
}

static bool copying(const struct pair *p, const void *arg)
{
	(void)arg;
	return p->copying;
}

/*
 * What was declared is not in the journal: an agent that starts must not wait for the next move to
 * know it.
 */
static void test_declared_keys_outlive_a_restart(void **state)
{
	struct pair *p = *state;

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, copying, NULL));
	world_kill(&p->w[1]);
	world_start(&p->w[1]);
	pair_settle(p);
	assert_int_equal(declared_on(p, 1), 1);
	p->copy_hangs = false;
	assert_true(pair_until(p, at_home, &one));
}

static void test_destination_without_a_vf(void **state)
{
	struct pair *p = *state;
	int before = world_vf_of(&p->w[0], 0, "ib0");

	p->w[1].conf.hcas[0].manage = false; /* no VF to give */
	vhca_engine_set_conf(p->w[1].engine, &p->w[1].conf);
	pair_settle(p);
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_int_equal(world_vf_of(&p->w[0], 0, "ib0"), before); /* never left its guest */
	assert_int_equal(p->copies, 0);
}

static void test_destination_without_the_key(void **state)
{
	struct pair *p = *state;

	world_set_key(&p->w[1], 1, 0);
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_true(pair_until(p, at_home, &zero));
}

static bool is_ready(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_READY;
}

static void test_peer_down(void **state)
{
	struct pair *p = *state;

	p->cut = true;
	(void)pair_migrate(p, 0);
	pair_settle(p);
	assert_int_equal(pair_state(p, 0), VHCA_MIG_CLAIMING);
	p->cut = false;
	assert_true(pair_until(p, at_home, &one));
}

/* Or the guest would lose its VF for nothing. */
static void test_refused_before_a_vf_is_touched(void **state)
{
	struct pair *p = *state;
	uint64_t epoch = claim_on(p, 0)->epoch;
	struct vhca_uuid id;

	p->copy_refused = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_string_equal(vhca_migrations_find(p->ms[0], &id)->failure.code, "has_snapshots");
	assert_false(pair_told(p, 0, "-> detaching"));
	assert_true(pair_at_home(p, 0));
	assert_int_equal(claim_on(p, 0)->epoch, epoch);
	assert_int_equal(pair_state(p, 1), VHCA_MIG_STATE_COUNT); /* nor was the peer asked */
	p->copy_refused = false;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, &one));
}

/* What an orchestrator asks libvirt for is not known here. */
static void test_orchestrators_copy_is_not_checked(void **state)
{
	struct pair *p = *state;

	p->copy_refused = true;
	(void)pair_request(p, 0, VHCA_MIG_MODE_EXTERNAL);
	assert_true(pair_until(p, is_ready, NULL));
}

static void test_copy_fails(void **state)
{
	struct pair *p = *state;
	uint64_t epoch = claim_on(p, 0)->epoch;
	struct vhca_bdf guest = claim_on(p, 0)->guest;

	p->copy_fails = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_true(pair_until(p, at_home, &zero));
	assert_int_equal(pair_state(p, 1), VHCA_MIG_ENDED);
	assert_true(claim_on(p, 0)->epoch >= epoch + 2); /* one was promised away */
	assert_int_equal(vhca_bdf_cmp(claim_on(p, 0)->guest, guest), 0);
}

static bool away(const struct pair *p, const void *arg)
{
	(void)arg;
	return claim_on(p, 0)->away;
}

static bool granted(const struct pair *p, const void *arg)
{
	(void)arg;
	return claim_on(p, 0)->vf->granted;
}

/* Read back in its guest. */
static bool looked_at(const struct pair *p, const void *arg)
{
	(void)arg;
	return claim_on(p, 0)->vf->look_ms && claim_on(p, 0)->vf->state == VHCA_VF_ATTACHED;
}

/* Rolled back, and the SM takes its time: no grant is taken back that was not given since. */
static void test_grant_after_a_roll_back(void **state)
{
	struct pair *p = *state;

	assert_true(pair_until(p, granted, NULL));
	p->copy_fails = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, away, NULL));
	p->w[0].sm_grants = false;
	assert_true(pair_until(p, has_ended, &zero));
	assert_true(pair_until(p, looked_at, NULL));
	assert_false(pair_told(p, 0, "no longer granted"));
	p->w[0].sm_grants = true;
	assert_true(pair_until(p, granted, NULL));
}

static void assert_timed_out(const struct pair *p, const struct vhca_uuid *id)
{
	const struct vhca_mig *m = vhca_migrations_find(p->ms[0], id);

	assert_int_equal(m->state, VHCA_MIG_FAILED);
	assert_string_equal(m->failure.code, "copy_timeout");
	assert_non_null(strstr(m->reason, "the copy has not ended within 0 s"));
	assert_int_equal(p->copies, 0);
}

/* A guest that writes faster than it is copied would be without its VF for ever. */
static void test_copy_that_takes_too_long(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id;

	p->copy_hangs = true;
	p->w[0].conf.copy.timeout_ms = 300;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, copying, NULL));
	assert_true(pair_until(p, has_ended, &zero));
	assert_timed_out(p, &id);
	assert_true(pair_until(p, at_home, &zero));
}

static void restart_source(struct pair *p)
{
	assert_true(pair_until(p, copying, NULL));
	world_kill(&p->w[0]);
	world_start(&p->w[0]);
}

static void test_time_limit_outlives_the_agent(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id;

	p->copy_hangs = true;
	p->w[0].conf.copy.timeout_ms = 800;
	id = pair_migrate(p, 0);
	p->w[0].conf.copy.timeout_ms = 0;
	restart_source(p);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_int_equal(p->copies, 0);
	assert_non_null(strstr(vhca_migrations_find(p->ms[0], &id)->reason, "has not ended"));
	assert_true(pair_until(p, at_home, &zero));
}

/* The job is libvirt's; nobody waits for its end any more. */
static void test_cancelled_after_a_restart(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_uuid id;

	p->copy_hangs = true;
	id = pair_migrate(p, 0);
	restart_source(p);
	pair_settle(p);
	assert_int_equal(pair_state(p, 0), VHCA_MIG_COPYING);
	assert_int_equal(vhca_migrations_cancel(p->ms[0], &id, &err), 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_true(pair_until(p, at_home, &zero));
}

static void test_cancelled_while_copying(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_uuid id;

	p->copy_hangs = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, copying, NULL));
	assert_int_equal(vhca_migrations_cancel(p->ms[0], &id, &err), 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_true(pair_until(p, at_home, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_string_equal(vhca_migrations_find(p->ms[0], &id)->reason, "cancelled by request");
}

static bool is_being_marked(const struct pair *p, const void *arg)
{
	const struct vhca_mig *m = vhca_migrations_find(p->ms[0], arg);

	return m && m->effect == VHCA_MIG_EFFECT_MARK;
}

/* The answer comes when nobody waits for it any more, and what libvirt shows was read before. */
static void test_cancelled_while_it_is_marked(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_uuid id;

	p->w[0].deaf_guest = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, is_being_marked, &id));
	p->w[0].virt_down = true;
	assert_int_equal(vhca_migrations_cancel(p->ms[0], &id, &err), 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	p->w[0].virt_down = false;
	assert_false(p->w[0].domains[0].info.has_away);
	world_sync_domains(&p->w[0]);
	assert_true(pair_until(p, at_home, &zero));
}

static void test_guest_that_does_not_let_go(void **state)
{
	struct pair *p = *state;

	p->w[0].deaf_guest = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_true(pair_until(p, at_home, &zero));
	assert_int_equal(p->copies, 0);
}

static bool awaits_copy(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_INCOMING;
}

/*
 * The network between the agents is cut for longer than the lease, while libvirt copies: the claim
 * is pinned and nothing is rolled back.
 */
static void test_cut_while_copying_longer_than_the_lease(void **state)
{
	struct pair *p = *state;
	uint64_t deadline;

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, copying, NULL));
	assert_true(pair_until(p, awaits_copy, NULL));
	p->cut = true;
	deadline = vhca_now_ms() + 2500;
	while (vhca_now_ms() < deadline)
		pair_settle(p);
	assert_true(awaits_copy(p, NULL));
	p->copy_hangs = false;
	pair_settle(p);
	p->cut = false;
	assert_true(pair_until(p, at_home, &one));
}

/*
 * The first hand-over's answer was lost with the source's agent; the second one must not undo what
 * libvirt has pinned, and comes before libvirt has made the domain.
 */
static void test_handover_repeated_while_copying(void **state)
{
	struct pair *p = *state;
	struct vhca_epoch epoch = {0};
	struct vhca_uuid id;

	p->copy_begins = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, copying, NULL));
	assert_false(p->w[1].domains[0].running);
	epoch.guid = claim_on(p, 0)->identity.guid;
	epoch.epoch = claim_on(p, 0)->epoch;
	vhca_migrations_handover(p->ms[1], &id, &epoch, 1, ignore_answer, NULL);
	pair_settle(p);
	assert_true(vhca_migrations_find(p->ms[1], &id)->pinned);
	p->copy_begins = false;
	assert_true(pair_until(p, at_home, &one));
}

static bool dest_attaches(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_ATTACHING;
}

static void keep_code(void *arg, const struct vhca_mig *m, const struct vhca_error *err)
{
	(void)m;
	(void)snprintf(arg, VHCA_ERROR_CODE_MAX, "%s", err ? err->code : "none");
}

/* The guest runs there: it cannot be called back, and the source must hear so at once. */
static void test_abort_after_the_arrival(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = pair_migrate(p, 0);
	char code[VHCA_ERROR_CODE_MAX] = "no answer";

	assert_true(pair_until(p, dest_attaches, NULL));
	vhca_migrations_end(p->ms[1], &id, keep_code, code);
	pair_settle(p);
	assert_string_equal(code, "too_late");
	assert_true(pair_until(p, at_home, &one));
	code[0] = '\0';
	vhca_migrations_end(p->ms[1], &id, keep_code, code);
	pair_settle(p);
	assert_string_equal(code, "too_late");
	assert_int_equal(vhca_migrations_find(p->ms[1], &id)->failure.kind, 0);
}

/* It was asked while the guest was about to resume there. */
static void test_abort_at_the_arrival(void **state)
{
	struct pair *p = *state;
	char code[VHCA_ERROR_CODE_MAX] = "no answer";
	struct vhca_uuid id;

	p->copy_hangs = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, copying, NULL));
	world_incoming(&p->w[1], 0, false);
	vhca_migrations_end(p->ms[1], &id, keep_code, code);
	pair_settle(p);
	assert_string_equal(code, "too_late");
	p->copy_hangs = false;
	assert_true(pair_until(p, at_home, &one));
	assert_int_equal(vhca_migrations_find(p->ms[1], &id)->failure.kind, 0);
}

static bool dest_ended(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_ENDED;
}

/* libvirt asked the hook and then never made the domain, and the source says nothing any more. */
static void test_domain_that_never_appears(void **state)
{
	struct pair *p = *state;

	p->copy_begins = true;
	p->w[1].conf.lease_ms = 300;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, copying, NULL));
	pair_silence(p, 0);
	assert_true(pair_until(p, dest_ended, NULL));
	assert_true(world_clean(&p->w[1], 0));
	p->copying = p->copy_begins = false;
	pair_revive(p, 0);
	assert_true(pair_until(p, at_home, &zero));
}

/*
 * libvirt takes longer than the lease to show the domain, on a host that has too much to do: the
 * source renews the lease meanwhile.
 */
static void test_domain_that_appears_late(void **state)
{
	struct pair *p = *state;
	uint64_t deadline;

	p->copy_begins = true;
	p->w[1].conf.lease_ms = 300;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, copying, NULL));
	assert_true(pair_until(p, awaits_copy, NULL));
	deadline = vhca_now_ms() + 1200;
	while (vhca_now_ms() < deadline)
		pair_settle(p);
	assert_true(awaits_copy(p, NULL));
	p->copy_begins = false;
	assert_true(pair_until(p, at_home, &one));
}

static bool source_let_go(const struct pair *p, const void *id)
{
	return !vhca_migration_claim(vhca_migrations_find(p->ms[0], id), NULL);
}

static struct vhca_uuid copy_to_who_gave_up(struct pair *p)
{
	struct vhca_uuid id;

	p->copy_hangs = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, copying, NULL));
	assert_true(pair_until(p, awaits_copy, NULL));
	vhca_migrations_end(p->ms[1], &id, ignore_answer, NULL);
	return id;
}

/*
 * It says so when its lease is to be renewed: the guest would have no VF there, and has one here.
 */
static void test_destination_gave_up_while_copying(void **state)
{
	struct pair *p = *state;

	(void)copy_to_who_gave_up(p);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_true(pair_until(p, at_home, &zero));
	assert_int_equal(p->copies, 0);
}

static bool destination_gave_up(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_ENDED;
}

/* And it is not heard before the domain arrives there: the source lets go, too. */
static void test_destination_gave_up_unheard(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = copy_to_who_gave_up(p);

	p->cut_handover = true;
	assert_true(pair_until(p, destination_gave_up, NULL));
	p->copy_hangs = false;
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_DONE);
	assert_true(vhca_migrations_find(p->ms[0], &id)->degraded);
	assert_true(pair_until(p, source_let_go, &id));
}

static bool source_gone(const struct pair *p, const void *arg)
{
	(void)arg;
	return !p->w[0].domains[0].running;
}

/*
 * The destination's agent has missed the event that said so: the guest does not run there yet, and
 * gets no VF.
 */
static void test_destination_restarted_while_copying(void **state)
{
	struct pair *p = *state;

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, copying, NULL));
	assert_true(p->w[1].domains[0].incoming);
	pair_silence(p, 1);
	pair_revive(p, 1);
	pair_settle(p);
	assert_true(pair_until(p, awaits_copy, NULL));
	p->copy_hangs = false;
	assert_true(pair_until(p, source_gone, NULL));
	assert_true(pair_until(p, at_home, &one));
}

static bool has_failed_often(const struct pair *p, const void *arg)
{
	(void)arg;
	return claim_on(p, 0) && claim_on(p, 0)->vf->failures == VHCA_VF_FAILURES_MAX;
}

/* No other VF takes its place in a migration: what quarantines others does not end its claim. */
static void test_program_fails_after_a_roll_back(void **state)
{
	struct pair *p = *state;
	const struct vhca_vf *vf = claim_on(p, 0)->vf;

	p->copy_fails = true;
	p->w[0].broken_effect = VHCA_EFFECT_PROGRAM;
	p->w[0].broken_vfs = ~0U;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_failed_often, NULL));
	p->w[0].broken_vfs = 0;
	assert_true(pair_until(p, at_home, &zero));
	assert_ptr_equal(claim_on(p, 0)->vf, vf);
}

static unsigned int run_with_failing_attach(struct pair *p, unsigned int host, bool copy_fails)
{
	struct vhca_bdf guest = claim_on(p, 0)->guest;

	p->copy_fails = copy_fails;
	p->w[host].fault = WORLD_FAIL;
	p->w[host].fault_effect = VHCA_EFFECT_ATTACH;
	p->w[host].effects = 0; /* none of this kind so far */
	p->w[host].fault_at = 1;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, host ? &one : &zero));
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(vhca_bdf_cmp(claim_on(p, host)->guest, guest), 0);
	return p->w[host].effects;
}

/*
 * libvirt refuses once to plug the VF in where the guest has arrived, or where it is back: the
 * claim, and the guest's PCI address with it, stays, and it is tried again.
 */
static void test_attach_fails_after_the_arrival(void **state)
{
	assert_int_equal(run_with_failing_attach(*state, 1, false), 2);
}

static void test_attach_fails_after_a_roll_back(void **state)
{
	assert_int_equal(run_with_failing_attach(*state, 0, true), 2);
}

/* Killed when the migration's end was durable, and that its claim is an ordinary one was not. */
static void test_killed_before_the_claim_is_settled(void **state)
{
	struct pair *p = *state;
	char path[128];
	sqlite3 *db;

	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, &one));
	pair_silence(p, 1);
	(void)snprintf(path, sizeof(path), "%s/state.db", p->w[1].dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "UPDATE claims SET migration = (SELECT id FROM migrations)",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_changes(db), 1);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	pair_revive(p, 1);
	assert_true(pair_until(p, at_home, &one));
	(void)pair_migrate(p, 1);
	assert_true(pair_until(p, at_home, &zero));
}

/* The agent does not know the domain, whose marker has to go, when it takes the migration back. */
static void test_roll_back_while_libvirt_is_away(void **state)
{
	struct pair *p = *state;

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, copying, NULL));
	pair_silence(p, 0);
	world_domain_stop(&p->w[1], 0);
	p->copying = false;
	p->w[0].virt_down = true;
	pair_revive(p, 0);
	pair_settle(p);
	p->w[0].virt_down = false;
	world_sync_domains(&p->w[0]);
	assert_true(pair_until(p, at_home, &zero));
}

/* Nobody comes back to a reservation: the lease ends it. */
static void test_lease_frees_the_reservation(void **state)
{
	struct pair *p = *state;

	p->fault = PAIR_KILL_AFTER; /* the source dies after its claim was granted... */
	p->fault_at = 1;
	p->victim = 0;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, &one)); /* ...and goes on after its restart */
}

static void test_a_domain_migrates_once_at_a_time(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_mig *m = NULL;

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, copying, NULL));
	assert_true(vhca_migrations_start(p->ms[0], &p->w[0].domains[0].info.uuid, "other", &m,
					  &err) < 0);
	assert_string_equal(err.code, "migrating");
	assert_true(vhca_migrations_start(p->ms[0], &p->w[0].domains[0].info.uuid, "nobody", &m,
					  &err) < 0);
	assert_string_equal(err.code, "no_such_peer");
	p->copy_hangs = false;
	assert_true(pair_until(p, at_home, &one));
}

static void test_a_hostdev_of_its_own_is_refused(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_mig *m = NULL;
	struct vhca_claim *c = TAILQ_FIRST(&vhca_engine_model(p->w[0].engine)->claims);

	c->way = VHCA_WAY_CLAIM;
	assert_true(vhca_migrations_start(p->ms[0], &p->w[0].domains[0].info.uuid, "other", &m,
					  &err) < 0);
	assert_string_equal(err.code, "own_hostdev");
	assert_false(c->migrating);
	c->way = VHCA_WAY_METADATA;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, &one));
}

/* ---- every effect fails once; either agent is killed before and after every effect ---- */

static bool home_somewhere(const struct pair *p, const void *arg)
{
	(void)arg;
	return vhca_mig_state_is_final(pair_state(p, 0)) &&
	       (pair_at_home(p, 0) || pair_at_home(p, 1));
}

static bool run_with(enum pair_fault fault, unsigned int victim, unsigned int at)
{
	static struct pair p;
	bool reached;

	pair_init(&p);
	reached = migrate_with(&p, fault, victim, at, home_somewhere);
	pair_done(&p);
	return reached;
}

static struct each_effect each_effect = {run_with};

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_there_and_back),
		TEST(test_back_at_once),
		TEST(test_settled_vfs_are_shown),
		TEST(test_declared_keys_go_with_the_move),
		TEST(test_declared_keys_outlive_a_restart),
		TEST(test_destination_without_a_vf),
		TEST(test_destination_without_the_key),
		TEST(test_peer_down),
		TEST(test_refused_before_a_vf_is_touched),
		TEST(test_orchestrators_copy_is_not_checked),
		TEST(test_copy_fails),
		TEST(test_grant_after_a_roll_back),
		TEST(test_copy_that_takes_too_long),
		TEST(test_time_limit_outlives_the_agent),
		TEST(test_cancelled_after_a_restart),
		TEST(test_cancelled_while_copying),
		TEST(test_cancelled_while_it_is_marked),
		TEST(test_guest_that_does_not_let_go),
		TEST(test_cut_while_copying_longer_than_the_lease),
		TEST(test_handover_repeated_while_copying),
		TEST(test_abort_after_the_arrival),
		TEST(test_abort_at_the_arrival),
		TEST(test_domain_that_never_appears),
		TEST(test_domain_that_appears_late),
		TEST(test_destination_gave_up_while_copying),
		TEST(test_destination_gave_up_unheard),
		TEST(test_destination_restarted_while_copying),
		TEST(test_attach_fails_after_the_arrival),
		TEST(test_attach_fails_after_a_roll_back),
		TEST(test_program_fails_after_a_roll_back),
		TEST(test_killed_before_the_claim_is_settled),
		TEST(test_roll_back_while_libvirt_is_away),
		TEST(test_lease_frees_the_reservation),
		TEST(test_a_hostdev_of_its_own_is_refused),
		TEST(test_a_domain_migrates_once_at_a_time),
		TESTS_OF(each_effect),
	};

	return cmocka_run_group_tests_name("migration", tests, NULL, NULL);
}
