// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A migration that an orchestrator performs, and VFs that are parked: the machines of two agents on
 * two simulated hosts.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/file.h"
#include "tests/sim/libvirt/pair_copy.h"
#include "tests/unit/agent/migration/migration_pair.h"

static int setup(void **state)
{
	static struct pair p;

	pair_init(&p);
	p.copy_hangs = true; /* the orchestrator's copy does not end with an agent */
	*state = &p;
	return 0;
}

static bool source_in(const struct pair *p, const void *arg)
{
	return pair_state(p, 0) == *(const enum vhca_mig_state *)arg;
}

static bool dest_in(const struct pair *p, const void *arg)
{
	return pair_state(p, 1) == *(const enum vhca_mig_state *)arg;
}

static const enum vhca_mig_state ready = VHCA_MIG_READY, parked = VHCA_MIG_PARKED,
				 copying = VHCA_MIG_COPYING, finishing = VHCA_MIG_FINISHING,
				 done = VHCA_MIG_DONE, failed = VHCA_MIG_FAILED,
				 ended = VHCA_MIG_ENDED;

static const struct vhca_mig *mig_on(const struct pair *p, unsigned int host,
				     const struct vhca_uuid *id)
{
	return vhca_migrations_find(p->ms[host], id);
}

static struct vhca_uuid get_ready(struct pair *p)
{
	struct vhca_uuid id = pair_request(p, 0, VHCA_MIG_MODE_EXTERNAL);

	assert_true(pair_until(p, source_in, &ready));
	assert_int_equal(world_vf_of(&p->w[0], 0, "ib0"), -1);
	assert_true(vhca_claim_is_withheld(claim_on(p, 0)));
	assert_int_equal(pair_state(p, 1), VHCA_MIG_INCOMING);
	assert_int_equal(claim_on(p, 1)->vf->state, VHCA_VF_PROGRAMMED);
	return id;
}

static void begin(struct pair *p)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_int_equal(pair_copy_begin(p, 0, &err), 0);
	pair_copy_comes(p, 1);
}

static void end(struct pair *p, bool arrives)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	p->copy_fails = !arrives;
	assert_int_equal(pair_copy_end(p, 0, &err) == 0, arrives);
}

static void assert_failed(struct pair *p, const struct vhca_uuid *id, const char *code)
{
	assert_true(pair_until(p, source_in, &failed));
	assert_string_equal(mig_on(p, 0, id)->failure.code, code);
	assert_true(pair_until(p, at_home, &zero));
	assert_int_equal(pair_state(p, 1), VHCA_MIG_ENDED);
}

static void assert_refused(struct pair *p, const char *code)
{
	static const enum vhca_mig_mode modes[] = {VHCA_MIG_MODE_MANAGED, VHCA_MIG_MODE_EXTERNAL,
						   VHCA_MIG_MODE_PARK};

	world_look(&p->w[0], 0);
	for (unsigned int i = 0; i < 3; i++) {
		struct vhca_mig_request req = {
			.domain = p->w[0].domains[0].info.uuid, .peer = "other", .mode = modes[i]};
		struct vhca_error err = VHCA_ERROR_INIT;
		const struct vhca_mig *m = NULL;

		assert_true(vhca_migrations_request(p->ms[0], &req, &m, &err) < 0);
		assert_string_equal(err.code, code);
		assert_false(claim_on(p, 0)->migrating);
	}
}

/* Its VF could not be taken out, or nobody could tell. */
static void test_guest_that_would_keep_its_vf_is_refused(void **state)
{
	struct pair *p = *state;

	p->w[0].domains[0].paused = true;
	assert_refused(p, "guest_paused");
	p->w[0].domains[0].paused = false;
	p->w[0].domains[0].unreadable = true;
	assert_refused(p, "domain_unreadable");
	p->w[0].domains[0].unreadable = false;
	world_look(&p->w[0], 0);
	(void)get_ready(p);
}

static void test_moved_by_an_orchestrator(void **state)
{
	struct pair *p = *state;
	uint64_t guid = claim_on(p, 0)->identity.guid;
	struct vhca_bdf guest = claim_on(p, 0)->guest;

	(void)get_ready(p);
	begin(p);
	assert_true(pair_until(p, source_in, &copying));
	end(p, true);
	assert_true(pair_until(p, source_in, &done));
	assert_true(pair_until(p, at_home, &one));
	assert_int_equal(pair_state(p, 1), VHCA_MIG_DONE);
	assert_int_equal(claim_on(p, 1)->identity.guid, guid);
	assert_int_equal(vhca_bdf_cmp(claim_on(p, 1)->guest, guest), 0);
}

static void test_moved_before_we_looked(void **state)
{
	struct pair *p = *state;

	(void)get_ready(p);
	begin(p);
	end(p, true);
	assert_true(pair_until(p, source_in, &done));
	assert_true(pair_until(p, at_home, &one));
}

static void test_copy_fails(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = get_ready(p);

	begin(p);
	assert_true(pair_until(p, source_in, &copying));
	end(p, false);
	assert_failed(p, &id, "copy_failed");
}

/* The destination remembers that libvirt came. */
static void test_copy_fails_before_we_looked(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = get_ready(p);

	begin(p);
	end(p, false);
	assert_failed(p, &id, "copy_failed");
}

static bool dest_unpinned(const struct pair *p, const void *arg)
{
	const struct vhca_mig *m = mig_on(p, 1, arg);

	return !m->pinned && !p->w[1].domains[0].running;
}

/* ...even if the guest came and went there before it was asked. */
static void test_copy_fails_while_nobody_could_ask(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = get_ready(p);

	p->cut = true;
	begin(p);
	p->copying = false; /* between two looks of the source */
	pair_settle(p);
	assert_true(mig_on(p, 1, &id)->pinned);
	end(p, false);
	assert_true(pair_until(p, dest_unpinned, &id));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_READY);
	p->cut = false;
	assert_failed(p, &id, "copy_failed");
}

static void test_orchestrator_that_dies(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id;

	p->w[0].conf.external_lease_ms = 200;
	id = get_ready(p);
	assert_failed(p, &id, "lease_over");
}

static bool source_left(const struct pair *p, const void *arg)
{
	return !source_in(p, arg);
}

/*
 * The destination's host is dead, so each renewal of its lease waits for longer than renewals are
 * apart.
 */
static void test_lease_ends_while_the_destination_is_silent(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id;
	unsigned int effects;

	p->w[0].conf.external_lease_ms = 300;
	id = get_ready(p);
	effects = p->effects;
	p->silent_ms = 400;
	p->cut = true;
	assert_true(pair_until(p, source_left, &ready));
	assert_in_range(p->effects - effects, 1, 3); /* two hand-overs, and then the abort */
	p->cut = false;
	assert_failed(p, &id, "lease_over");
}

static bool lease_moved(const struct pair *p, const void *arg)
{
	const struct vhca_mig *m = vhca_migrations_first(p->ms[1]);

	return m->lease_until > *(const uint64_t *)arg;
}

/* While the source waits, its claims at the destination do. */
static void test_lease_there_is_renewed(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = get_ready(p);
	uint64_t until = mig_on(p, 1, &id)->lease_until;

	assert_true(pair_until(p, lease_moved, &until));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_READY);
	begin(p);
	end(p, true);
	assert_true(pair_until(p, at_home, &one));
}

static void test_lease_is_extended(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_uuid id = get_ready(p);
	uint64_t before = mig_on(p, 0, &id)->lease_until, until;

	assert_int_equal(vhca_migrations_extend(p->ms[0], &id, 3600000, &err), 0);
	pair_settle(p);
	until = mig_on(p, 0, &id)->lease_until;
	assert_true(until > before + 3000000);
	world_kill(&p->w[0]);
	world_start(&p->w[0]);
	pair_settle(p);
	assert_int_equal(pair_state(p, 0), VHCA_MIG_READY);
	assert_int_equal(mig_on(p, 0, &id)->lease_until, until); /* a restart gives no time */
	assert_int_equal(vhca_migrations_cancel(p->ms[0], &id, &err), 0);
	assert_failed(p, &id, "cancelled");
	assert_true(vhca_migrations_extend(p->ms[0], &id, 1000, &err) < 0);
	assert_string_equal(err.code, "no_lease");
}

/* The clock has begun anew, and libvirt has started the domain again before it was asked. */
static void test_lease_is_cut_after_a_reboot(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = get_ready(p);
	struct vhca_txn *txn = vhca_txn_new(p->w[0].store);

	vhca_txn_exec(txn, "UPDATE migrations SET lease_until = lease_until + 864000000", "");
	vhca_txn_commit(txn, NULL, NULL);
	world_kill(&p->w[0]);
	world_start(&p->w[0]);
	assert_true(mig_on(p, 0, &id)->lease_until <=
		    vhca_now_ms() + p->w[0].conf.external_lease_ms);
}

static bool lease_is_past(const struct pair *p, const void *arg)
{
	const struct vhca_mig *m = mig_on(p, 0, arg);

	return m->lease_until && vhca_now_ms() > m->lease_until + 100;
}

static void test_nothing_is_rolled_back_under_a_copy(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_uuid id;

	p->w[0].conf.external_lease_ms = 300;
	id = pair_request(p, 0, VHCA_MIG_MODE_EXTERNAL);
	assert_true(pair_until(p, source_in, &ready));
	begin(p);
	assert_true(pair_until(p, lease_is_past, &id));
	assert_int_equal(vhca_migrations_cancel(p->ms[0], &id, &err), 0);
	pair_settle(p);
	assert_int_equal(pair_state(p, 0), VHCA_MIG_COPYING);
	end(p, true);
	assert_true(pair_until(p, at_home, &one));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_DONE);
}

static void test_guest_stops_while_ready(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = get_ready(p);

	world_domain_stop(&p->w[0], 0);
	assert_true(pair_until(p, source_in, &failed));
	assert_string_equal(mig_on(p, 0, &id)->failure.code, "domain_stopped");
	assert_int_equal(pair_state(p, 1), VHCA_MIG_ENDED);
	assert_true(world_clean(&p->w[0], 0) && world_clean(&p->w[1], 0));
}

/*
 * The destination's agent lost its reservation: the orchestrator's migration would be refused
 * there, so the guest is not left waiting.
 */
static void test_destination_gives_up(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = get_ready(p);

	p->cut = true;
	pair_settle(p); /* nothing that renews the lease is on its way */
	((struct vhca_mig *)mig_on(p, 1, &id))->lease_until = vhca_now_ms();
	world_sync_domains(&p->w[1]);
	assert_true(pair_until(p, dest_in, &ended));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_READY);
	p->cut = false;
	assert_failed(p, &id, "lease_over");
}

/* The copy has ended, and libvirt here does not know how. */
static struct vhca_uuid hold(struct pair *p)
{
	struct vhca_uuid id = get_ready(p);

	begin(p);
	assert_true(pair_until(p, source_in, &copying));
	p->copying = false;
	p->held = true;
	return id;
}

static bool is_attached_there(const struct pair *p, const void *arg)
{
	(void)arg;
	return claim_on(p, 1) && claim_on(p, 1)->vf->state == VHCA_VF_ATTACHED;
}

/* libvirt here is late: the guest runs there already. */
static void test_copy_held_here_goes(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = hold(p);

	world_incoming(&p->w[0], 0, true);
	world_incoming(&p->w[1], 0, false);
	assert_true(pair_until(p, is_attached_there, NULL));
	assert_true(pair_until(p, source_in, &finishing));
	pair_settle(p);
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FINISHING);
	world_domain_stop(&p->w[0], 0);
	assert_true(pair_until(p, source_in, &done));
	assert_false(mig_on(p, 0, &id)->degraded);
}

/* Lost confirm: the guest runs there; here libvirt holds a paused copy for good. */
static void test_copy_held_here_runs_there(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = hold(p);

	world_incoming(&p->w[0], 0, true);
	world_incoming(&p->w[1], 0, false);
	assert_true(pair_until(p, source_in, &done));
	assert_true(mig_on(p, 0, &id)->degraded);
	assert_true(world_told(&p->w[0], "zombie_source: the domain runs at"));
	assert_true(is_attached_there(p, NULL));
	pair_settle(p);
	assert_true(TAILQ_EMPTY(&vhca_engine_model(p->w[0].engine)->claims));
}

/* Post-copy that failed: libvirt can resume it, so nothing is taken from the destination. */
static void test_copy_held_here_not_yet_there(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = hold(p);

	pair_settle(p);
	pair_settle(p);
	assert_int_equal(pair_state(p, 0), VHCA_MIG_COPYING);
	assert_int_equal(pair_state(p, 1), VHCA_MIG_INCOMING);
	p->held = false;
	end(p, false);
	assert_failed(p, &id, "copy_failed");
}

/* ---- every effect fails once; either agent is killed before and after every effect ---- */

static bool home_somewhere(const struct pair *p, const void *arg)
{
	(void)arg;
	return vhca_mig_state_is_final(pair_state(p, 0)) &&
	       (pair_at_home(p, 0) || pair_at_home(p, 1));
}

/* Migrates when it may, and is done with it. */
static void orchestrate(struct pair *p, bool *tried)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	if (*tried || !p->ms[0] || !p->ms[1] || pair_state(p, 0) != VHCA_MIG_READY)
		return;
	*tried = true;
	if (pair_copy_begin(p, 0, &err) < 0)
		return;
	pair_copy_comes(p, 1);
	pair_settle(p);
	(void)pair_copy_end(p, 0, &err);
}

static bool run_with(enum pair_fault fault, unsigned int victim, unsigned int at)
{
	static struct pair p;
	uint64_t deadline;
	bool reached, tried = false;

	pair_init(&p);
	p.copy_hangs = true;
	p.w[0].conf.external_lease_ms = 5000;
	p.fault = fault;
	p.victim = victim;
	p.fault_at = at;
	print_message("# fault %u of host %u at effect %u\n", fault, victim, at);
	(void)pair_request(&p, 0, VHCA_MIG_MODE_EXTERNAL);
	deadline = vhca_now_ms() + 20000;
	while (!tried && !vhca_mig_state_is_final(pair_state(&p, 0)) && vhca_now_ms() < deadline) {
		pair_settle(&p);
		orchestrate(&p, &tried);
	}
	assert_true(pair_until(&p, home_somewhere, NULL));
	reached = p.effects >= at;
	pair_done(&p);
	return reached;
}

static void test_faults_at_every_effect(void **state)
{
	static const struct {
		enum pair_fault fault;
		unsigned int victim;
	} cases[] = {
		{PAIR_FAIL, 0},	       {PAIR_KILL_BEFORE, 0}, {PAIR_KILL_AFTER, 0},
		{PAIR_KILL_BEFORE, 1}, {PAIR_KILL_AFTER, 1},
	};

	(void)state;
	for (unsigned int i = 0; i < 5; i++)
		for (unsigned int at = 1; at <= 5; at++) /* claim, mark, hand-over twice, unmark */
			assert_true(run_with(cases[i].fault, cases[i].victim, at));
}

/* ---- parked ---- */

static struct vhca_uuid park(struct pair *p)
{
	struct vhca_uuid id = pair_request(p, 0, VHCA_MIG_MODE_PARK);

	assert_true(pair_until(p, source_in, &parked));
	assert_int_equal(world_vf_of(&p->w[0], 0, "ib0"), -1);
	assert_true(world_clean(&p->w[0], 0));
	assert_false(p->w[0].domains[0].info.has_away); /* no hook is to refuse anything */
	return id;
}

static void test_parked_and_back(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_uuid id = park(p);

	world_kill(&p->w[0]);
	world_start(&p->w[0]);
	pair_settle(p);
	assert_int_equal(pair_state(p, 0), VHCA_MIG_PARKED);
	/* The keys stay on the port for it, and whoever starts says so. */
	assert_int_equal(TAILQ_FIRST(&vhca_engine_model(p->w[0].engine)->hcas)->n_declared, 1);
	assert_int_equal(vhca_migrations_cancel(p->ms[0], &id, &err), 0);
	assert_true(pair_until(p, source_in, &failed));
	assert_string_equal(mig_on(p, 0, &id)->failure.code, "cancelled");
	assert_true(pair_until(p, at_home, &zero));
}

static unsigned int known_on(struct pair *p, unsigned int host)
{
	const struct vhca_mig *m = vhca_migrations_first(p->ms[host]);
	unsigned int n = 0;

	for (; m; m = TAILQ_NEXT(m, link))
		n++;
	return n;
}

/* Of which nobody has heard here: it is remembered as ended. */
static void end_another(struct pair *p)
{
	struct vhca_uuid id;

	assert_int_equal(vhca_uuid_random(&id), 0);
	vhca_migrations_end(p->ms[0], &id, ignore_answer, NULL);
	world_round(&p->w[0], 1);
}

static bool others_have_ended(const struct pair *p, const void *stays)
{
	const struct vhca_mig *m = vhca_migrations_first(p->ms[0]);

	for (; m; m = TAILQ_NEXT(m, link))
		if (!vhca_mig_state_is_final(m->state) && !vhca_uuid_equal(&m->id, stays))
			return false;
	return true;
}

/*
 * A guest that is parked for days is the oldest migration, and the history behind it has its limit
 * all the same.
 */
static void test_parked_beside_a_long_history(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = park(p);

	for (unsigned int i = 0; i < VHCA_MIGRATION_HISTORY_MAX + 20; i++)
		end_another(p);
	assert_true(pair_until(p, others_have_ended, &id));
	end_another(p);
	assert_true(known_on(p, 0) <= VHCA_MIGRATION_HISTORY_MAX + 1);
	assert_non_null(vhca_migrations_find(p->ms[0], &id));
	assert_int_equal(mig_on(p, 0, &id)->state, VHCA_MIG_PARKED);
}

/* A peer may end what there never was, as often as it likes. */
static void test_invented_ones_displace_no_real_one(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_uuid id = park(p);

	assert_int_equal(vhca_migrations_cancel(p->ms[0], &id, &err), 0);
	assert_true(pair_until(p, source_in, &failed));
	for (unsigned int i = 0; i < 2 * VHCA_MIGRATION_HISTORY_MAX; i++)
		end_another(p);
	assert_true(pair_until(p, others_have_ended, &id));
	end_another(p);
	assert_true(known_on(p, 0) <= VHCA_MIGRATION_HISTORY_MAX + 1);
	assert_non_null(vhca_migrations_find(p->ms[0], &id));
	world_kill(&p->w[0]);
	world_start(&p->w[0]);
	assert_int_equal(mig_on(p, 0, &id)->state, VHCA_MIG_FAILED);
}

/* What host 0 cannot take, by a peer whose domain name is another each time. */
static void offer_another(struct pair *p, const char *peer, unsigned int i)
{
	struct vhca_mig_offer offer = {.mode = VHCA_MIG_MODE_EXTERNAL, .n_vfs = 1};
	struct vhca_reservation *vf = &offer.vfs[0];

	assert_int_equal(vhca_uuid_random(&offer.id), 0);
	assert_int_equal(vhca_uuid_random(&offer.domain), 0);
	(void)snprintf(offer.domain_name, sizeof(offer.domain_name), "vm%u", i);
	(void)snprintf(offer.node, sizeof(offer.node), "%s.d%u", peer, i);
	vf->migration = offer.id;
	vf->req.domain = offer.domain;
	vf->req.vf.numa = -1;
	(void)snprintf(vf->req.vf.name, sizeof(vf->req.vf.name), "ib0");
	(void)snprintf(vf->req.vf.fabric, sizeof(vf->req.vf.fabric), "nowhere");
	vf->identity.guid = UINT64_C(0x0214050000000000) + i;
	vhca_migrations_offer(p->ms[0], &offer, ignore_answer, NULL);
	world_round(&p->w[0], 1);
}

/* Nor do offers of one peer displace what others have ended. */
static void test_a_peer_displaces_its_own_alone(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_conf *conf = &p->w[0].conf;
	struct vhca_uuid id = park(p), theirs;

	assert_int_equal(vhca_migrations_cancel(p->ms[0], &id, &err), 0);
	assert_true(pair_until(p, source_in, &failed));
	(void)snprintf(conf->peers[conf->n_peers++].name, sizeof(conf->peers[0].name), "hvc");
	(void)snprintf(conf->peers[conf->n_peers++].name, sizeof(conf->peers[0].name), "hvd");
	offer_another(p, "hvd", 0);
	theirs = TAILQ_NEXT(vhca_migrations_first(p->ms[0]), link)->id;
	for (unsigned int i = 0; i < 2 * VHCA_MIGRATION_HISTORY_MAX; i++) {
		offer_another(p, "hvc", i);
		assert_true(pair_until(p, others_have_ended, &id));
	}
	assert_int_equal(known_on(p, 0), VHCA_MIGRATION_HISTORY_MAX + 2);
	assert_non_null(vhca_migrations_find(p->ms[0], &theirs));
	world_kill(&p->w[0]);
	world_start(&p->w[0]);
	assert_int_equal(mig_on(p, 0, &id)->state, VHCA_MIG_FAILED);
	assert_int_equal(mig_on(p, 0, &theirs)->state, VHCA_MIG_ENDED);
	assert_int_equal(known_on(p, 0), VHCA_MIGRATION_HISTORY_MAX + 2);
}

/* The SM may still hear that the VF was withdrawn at its epoch, after all that is said now. */
static void test_unparked_at_a_new_epoch(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	uint64_t epoch = claim_on(p, 0)->epoch;
	struct vhca_uuid id = park(p);

	assert_int_equal(vhca_migrations_cancel(p->ms[0], &id, &err), 0);
	assert_true(pair_until(p, source_in, &failed));
	assert_true(pair_until(p, at_home, &zero));
	assert_true(claim_on(p, 0)->epoch > epoch);
}

static bool host_has_no_claim(const struct pair *p, const void *arg)
{
	return TAILQ_EMPTY(&vhca_engine_model(p->w[*(const unsigned int *)arg].engine)->claims);
}

/* Saved: it takes its VF from the pool again when it is restored. */
static void test_parked_and_saved(void **state)
{
	struct pair *p = *state;
	uint64_t guid = claim_on(p, 0)->identity.guid;

	(void)park(p);
	world_domain_stop(&p->w[0], 0);
	assert_true(pair_until(p, source_in, &done));
	assert_true(pair_until(p, host_has_no_claim, &zero));
	(void)world_domain_start(&p->w[0], 0, "0x8001");
	assert_true(pair_until(p, at_home, &zero));
	assert_int_equal(claim_on(p, 0)->identity.guid, guid);
}

static void test_parked_too_long(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id;

	p->w[0].conf.external_lease_ms = 200;
	id = park(p);
	assert_true(pair_until(p, source_in, &failed));
	assert_string_equal(mig_on(p, 0, &id)->failure.code, "lease_over");
	assert_true(pair_until(p, at_home, &zero));
}

static void test_parking_a_deaf_guest(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id;

	world_deafen(&p->w[0]);
	id = pair_request(p, 0, VHCA_MIG_MODE_PARK);
	assert_true(pair_until(p, source_in, &failed));
	assert_string_equal(mig_on(p, 0, &id)->failure.code, "guest_did_not_release");
	assert_true(pair_until(p, at_home, &zero));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_WITH(setup, test_guest_that_would_keep_its_vf_is_refused),
		TEST_WITH(setup, test_moved_by_an_orchestrator),
		TEST_WITH(setup, test_moved_before_we_looked),
		TEST_WITH(setup, test_copy_fails),
		TEST_WITH(setup, test_copy_fails_before_we_looked),
		TEST_WITH(setup, test_copy_fails_while_nobody_could_ask),
		TEST_WITH(setup, test_orchestrator_that_dies),
		TEST_WITH(setup, test_lease_ends_while_the_destination_is_silent),
		TEST_WITH(setup, test_lease_there_is_renewed),
		TEST_WITH(setup, test_lease_is_extended),
		TEST_WITH(setup, test_lease_is_cut_after_a_reboot),
		TEST_WITH(setup, test_nothing_is_rolled_back_under_a_copy),
		TEST_WITH(setup, test_guest_stops_while_ready),
		TEST_WITH(setup, test_destination_gives_up),
		TEST_WITH(setup, test_copy_held_here_goes),
		TEST_WITH(setup, test_copy_held_here_runs_there),
		TEST_WITH(setup, test_copy_held_here_not_yet_there),
		cmocka_unit_test(test_faults_at_every_effect),
		TEST_WITH(setup, test_parked_and_back),
		TEST_WITH(setup, test_parked_beside_a_long_history),
		TEST_WITH(setup, test_invented_ones_displace_no_real_one),
		TEST_WITH(setup, test_a_peer_displaces_its_own_alone),
		TEST_WITH(setup, test_parked_and_saved),
		TEST_WITH(setup, test_unparked_at_a_new_epoch),
		TEST_WITH(setup, test_parked_too_long),
		TEST_WITH(setup, test_parking_a_deaf_guest),
	};

	return cmocka_run_group_tests_name("migration_external", tests, NULL, NULL);
}
