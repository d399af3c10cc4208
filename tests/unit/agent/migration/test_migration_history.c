/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is kept of migrations that have ended, where many peers have offered some. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/agent/migration/migration_pair.h"

#define PEERS  30
#define OTHERS (PEERS - 1)
#define FEW    3

static void on_written(void *arg, int rc)
{
	assert_int_equal(rc, 0);
	*(bool *)arg = true;
}

static bool is_set(const struct pair *p, const void *arg)
{
	(void)p;
	return *(const bool *)arg;
}

/* As an earlier life of the agent would have: n that peer has offered. */
static void write_ended(struct vhca_txn *txn, unsigned int peer, unsigned int n)
{
	char name[16];

	(void)snprintf(name, sizeof(name), "peer%u", peer);
	vhca_txn_exec(
		txn,
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?3)"
		" INSERT INTO migrations SELECT"
		" printf('00000000-0000-4000-8000-%06d%06d', ?1, i),"
		" 'destination', '00000000-0000-4000-8000-000000000000', 'vm', ?2, 'ended',"
		" 0, 0, i, i, 'aborted', 'as the test says', '', '[]', 'external', 0, 0, '{}', ''"
		" FROM n",
		"usu", (uint64_t)peer, name, (uint64_t)n);
}

static void name_peers(struct vhca_conf *conf)
{
	for (unsigned int i = 0; i < PEERS; i++)
		(void)snprintf(conf->peers[conf->n_peers++].name, VHCA_NAME_MAX, "peer%u", i);
}

/* All peers have as many as one may have, but for the last, which has few. */
static void fill(struct pair *p)
{
	struct vhca_txn *txn = vhca_txn_new(p->w[0].store);
	bool is_written = false;

	for (unsigned int i = 0; i < OTHERS; i++)
		write_ended(txn, i, VHCA_MIGRATION_HISTORY_MAX);
	write_ended(txn, OTHERS, FEW);
	vhca_txn_commit(txn, on_written, &is_written);
	assert_true(pair_until(p, is_set, &is_written));
	world_kill(&p->w[0]);
	world_start(&p->w[0]);
}

static unsigned int kept_of(const struct pair *p, unsigned int peer)
{
	const struct vhca_mig *m = vhca_migrations_first(p->ms[0]);
	unsigned int n = 0;
	char name[16];

	(void)snprintf(name, sizeof(name), "peer%u", peer);
	for (; m; m = TAILQ_NEXT(m, link))
		n += strcmp(m->peer, name) == 0;
	return n;
}

/* Of which nobody has heard here: it is remembered as ended, and others make room. */
static void end_another(struct pair *p)
{
	struct vhca_uuid id;

	assert_int_equal(vhca_uuid_random(&id), 0);
	vhca_migrations_end(p->ms[0], &id, ignore_answer, NULL);
	assert_true(pair_until(p, has_ended, &zero));
}

static void assert_shared(const struct pair *p)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < OTHERS; i++) {
		assert_in_range(kept_of(p, i), VHCA_MIGRATIONS_OFFERED_MAX / PEERS,
				VHCA_MIGRATION_HISTORY_MAX - 1);
		assert_int_equal(kept_of(p, i), kept_of(p, 0));
		sum += kept_of(p, i);
	}
	assert_int_equal(kept_of(p, OTHERS), FEW);
	assert_in_range(sum + FEW, VHCA_MIGRATIONS_OFFERED_MAX - OTHERS,
			VHCA_MIGRATIONS_OFFERED_MAX);
}

/* The oldest of those that have many make room: who has few loses none. */
static void peers_share_what_is_kept(void **state)
{
	struct pair *p = *state;

	name_peers(&p->w[0].conf);
	fill(p);
	assert_int_equal(kept_of(p, 0), VHCA_MIGRATION_HISTORY_MAX);
	end_another(p);
	assert_shared(p);
	assert_int_equal(vhca_migrations_first(p->ms[0])->started_ms, 1); /* of who has few */
	world_kill(&p->w[0]);
	world_start(&p->w[0]);
	assert_shared(p);
}

/* Nodes that are no peers' are as one; those that a reload has named are not. */
static void a_reload_tells_them_apart(void **state)
{
	struct pair *p = *state;

	fill(p);
	name_peers(&p->w[0].conf);
	vhca_migrations_set_conf(p->ms[0]);
	end_another(p);
	assert_shared(p);
	p->w[0].conf.n_peers -= PEERS;
	vhca_migrations_set_conf(p->ms[0]);
	end_another(p);
	for (unsigned int i = 0, sum = 0; i < PEERS; i++) {
		sum += kept_of(p, i);
		assert_in_range(sum, 0, VHCA_MIGRATION_HISTORY_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(peers_share_what_is_kept),
		TEST(a_reload_tells_them_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
