// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The agents' own share of a guest's time without its VF: bench_blackout RUNS WAIT_MS, for
 * bench_blackout.py, which judges. One guest goes to and fro between two simulated hosts
 * (tests/sim/hosts/pair.h) with the production engine, migration machine and journal; the journals
 * are on the disk of /tmp. VFs, libvirt and the way between the agents cost nothing here, so what
 * is left is what the agents do, and above all wait for: the disk. Beside it, in turn, as many bare
 * commits to the same journal as invariant 5 (intent before effect) asks for in that time. WAIT_MS
 * makes the hosts wait for each other: 0 measures, more is a planted slow-down. Prints p50, p99 and
 * max, in us.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "common/store/store.h"
#include "tests/sim/hosts/pair.h"

#define RUNS_MAX    5000
#define WAIT_MS_MAX 1000
/*
 * The VF is being scrubbed; it is, and its claim away; the epoch is promised and libvirt copies.
 * Nothing, once the guest has arrived.
 */
#define COMMITS 3

enum series { TO_MIGRATE, THREE_COMMITS, TO_ATTACH, TO_GRANTED, SERIES_COUNT };
static const char *const names[] = {
	[TO_MIGRATE] = "removed_to_migrate",
	[THREE_COMMITS] = "three_commits",
	[TO_ATTACH] = "resumed_to_attach",
	[TO_GRANTED] = "resumed_to_granted",
};

struct bench {
	struct pair p;
	unsigned int runs;
	uint64_t us[SERIES_COUNT][RUNS_MAX];
};

struct wait {
	unsigned int from;
	struct vhca_uuid id;
};

static uint64_t time_of(const struct pair *p, unsigned int host, const struct vhca_uuid *id,
			enum vhca_mig_time time)
{
	return vhca_migrations_find(p->ms[host], id)->time_us[time];
}

static bool is_final(const struct pair *p, unsigned int host, const struct vhca_uuid *id)
{
	return vhca_mig_state_is_final(vhca_migrations_find(p->ms[host], id)->state);
}

/* On both hosts: the destination may be attaching still when its guest has been granted all. */
static bool is_over(const struct pair *p, const void *arg)
{
	const struct wait *w = arg;

	return pair_at_home(p, 1 - w->from) && is_final(p, w->from, &w->id) &&
	       is_final(p, 1 - w->from, &w->id) &&
	       time_of(p, 1 - w->from, &w->id, VHCA_MIG_RESUMED_TO_GRANTED);
}

/* ---- bare commits ---- */

static void on_commit(void *arg, int rc)
{
	pair_must(rc == 0, "a bare commit failed");
	*(bool *)arg = true;
}

static void commit_once(struct world *w)
{
	struct vhca_txn *txn = vhca_txn_new(w->store);
	bool done = false;

	vhca_txn_exec(txn, "UPDATE vfs SET reason = ?1", "s", "");
	vhca_txn_commit(txn, on_commit, &done);
	while (!done)
		(void)vhca_loop_once(w->loop, 0);
}

/* ---- measuring ---- */

static void run_once(struct bench *b, unsigned int i)
{
	struct wait w = {.from = i % 2};
	uint64_t start;

	w.id = pair_migrate(&b->p, w.from);
	pair_must(pair_until(&b->p, is_over, &w), "the migration did not end");
	b->us[TO_MIGRATE][i] = time_of(&b->p, w.from, &w.id, VHCA_MIG_REMOVED_TO_MIGRATE);
	b->us[TO_ATTACH][i] = time_of(&b->p, 1 - w.from, &w.id, VHCA_MIG_RESUMED_TO_ATTACH);
	b->us[TO_GRANTED][i] = time_of(&b->p, 1 - w.from, &w.id, VHCA_MIG_RESUMED_TO_GRANTED);
	start = vhca_now_us();
	for (unsigned int n = 0; n < COMMITS; n++)
		commit_once(&b->p.w[w.from]);
	b->us[THREE_COMMITS][i] = vhca_now_us() - start;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t percentile(const struct bench *b, enum series s, unsigned int percent)
{
	return b->us[s][b->runs * percent / 100];
}

static void report(struct bench *b)
{
	for (unsigned int s = 0; s < SERIES_COUNT; s++) {
		qsort(b->us[s], b->runs, sizeof(b->us[s][0]), ascending);
		printf("%s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", names[s], percentile(b, s, 50),
		       percentile(b, s, 99), b->us[s][b->runs - 1]);
	}
}

int main(int argc, char **argv)
{
	VHCA_AUTO_FREE struct bench *b = calloc(1, sizeof(*b));
	uint32_t runs, wait_ms;

	if (!b || argc != 3 || vhca_parse_u32(argv[1], 10, RUNS_MAX, &runs) < 0 || !runs ||
	    vhca_parse_u32(argv[2], 10, WAIT_MS_MAX, &wait_ms) < 0) {
		fprintf(stderr, "usage: bench_blackout RUNS WAIT_MS, at most %d and %d\n", RUNS_MAX,
			WAIT_MS_MAX);
		return 2;
	}
	b->runs = runs;
	pair_init(&b->p);
	/* Each host has a thread of its own in life: neither waits for the other's events. */
	b->p.wait_ms = (int)wait_ms;
	for (unsigned int i = 0; i < b->runs; i++)
		run_once(b, i);
	report(b);
	pair_done(&b->p);
	return 0;
}
