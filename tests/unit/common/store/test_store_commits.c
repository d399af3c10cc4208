/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The store: transactions that share a commit, time, and crashes. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "common/base/file.h"
#include "tests/unit/common/store/slow_vfs.h"
#include "tests/unit/common/store/store_box.h"

/* ---- helpers ---- */

/* Keeps the worker busy in a sync, so that what is submitted next forms one group. */
static void store_box_hold_worker(struct store_box *f, struct store_result *first)
{
	unsigned int before = slow_vfs_syncs();
	const struct timespec ts = {.tv_nsec = 1000000};

	slow_vfs_delay_ms(300);
	store_box_put_vf(f, "A", first);
	unit_until(slow_vfs_syncs() != before, (void)nanosleep(&ts, NULL));
	slow_vfs_delay_ms(0); /* the sync under way has read its delay */
}

/* ---- group commit ---- */

static void one_sync_serves_all_that_wait(void **state)
{
	struct store_box *f = *state;
	struct store_result first, results[STORE_BOX_MANY - 1];
	unsigned int syncs;
	char bdf[16];

	store_box_hold_worker(f, &first);
	syncs = slow_vfs_syncs();
	for (int i = 0; i < STORE_BOX_MANY - 1; i++) {
		(void)snprintf(bdf, sizeof(bdf), "%c%d", 'a' + i % 26, i);
		store_box_put_vf(f, bdf, &results[i]);
	}
	store_box_run_until(f, STORE_BOX_MANY);
	assert_int_equal(store_box_number(f, "SELECT count(*) FROM vf"), STORE_BOX_MANY);
	assert_in_range(slow_vfs_syncs() - syncs, 1, 2); /* the second: a new round of the log */
	assert_int_equal(f->order[0], 'A');
	for (int i = 0; i < STORE_BOX_MANY - 1; i++) {
		assert_int_equal(results[i].rc, 0);
		assert_int_equal(f->order[i + 1], 'a' + i % 26); /* in order of submission */
	}
}

static void one_that_fails_does_not_take_the_others_down(void **state)
{
	struct store_box *f = *state;
	struct store_result r[6];

	store_box_hold_worker(f, &r[0]);
	store_box_put_vf(f, "B", &r[1]);
	store_box_put_vf(f, "A", &r[2]);		/* exists */
	store_box_put_claim(f, 1, "none", NULL, &r[3]); /* refers to nothing */
	store_box_put_claim(f, 2, "B", NULL, &r[4]);
	store_box_put_vf(f, "C", &r[5]);
	store_box_run_until(f, 6);
	assert_int_equal(r[1].rc, 0);
	assert_int_equal(r[2].rc, -EEXIST);
	assert_int_equal(r[3].rc, -EEXIST);
	assert_int_equal(r[4].rc, 0);
	assert_int_equal(r[5].rc, 0);
	assert_string_equal(f->order, "ABAccC");
	assert_int_equal(store_box_number(f, "SELECT count(*) FROM vf"), 3);
	assert_int_equal(store_box_number(f, "SELECT id FROM claim"), 2);
}

static void not_even_one_that_fails_at_the_commit(void **state)
{
	struct store_box *f = *state;
	struct store_result r[4];

	store_box_hold_worker(f, &r[0]);
	store_box_put_vf(f, "B", &r[1]);
	store_box_put_claim(f, 1, "A", "none", &r[2]); /* found out at COMMIT only */
	store_box_put_vf(f, "C", &r[3]);
	store_box_run_until(f, 4);
	assert_int_equal(r[1].rc, 0);
	assert_int_equal(r[2].rc, -EEXIST);
	assert_int_equal(r[3].rc, 0);
	assert_int_equal(store_box_number(f, "SELECT count(*) FROM vf"), 3);
	assert_int_equal(store_box_number(f, "SELECT count(*) FROM claim"), 0);
}

static void nor_one_that_makes_sqlite_roll_back_everything(void **state)
{
	struct store_box *f = *state;
	struct store_result r[4];

	store_box_hold_worker(f, &r[0]);
	store_box_put_vf(f, "B", &r[1]);
	store_box_put_claim(f, 666, "A", NULL, &r[2]);
	store_box_put_vf(f, "C", &r[3]);
	store_box_run_until(f, 4);
	assert_int_equal(r[1].rc, 0);
	assert_true(r[2].rc < 0);
	assert_int_equal(r[3].rc, 0);
	assert_string_equal(f->order, "ABcC");
	assert_int_equal(store_box_number(f, "SELECT count(*) FROM vf"), 3);
}

static void count_result(void *arg, int rc)
{
	unsigned int *counts = arg; /* of 0, -EAGAIN, others */

	counts[rc == 0 ? 0 : rc == -EAGAIN ? 1 : 2]++;
}

static void the_queue_is_bounded(void **state)
{
	struct store_box *f = *state;
	unsigned int counts[3] = {0};
	struct store_result first;

	store_box_hold_worker(f, &first);
	for (int i = 0; i < 9000; i++)
		vhca_txn_commit(vhca_txn_new(f->store), count_result, counts);
	while (counts[0] + counts[1] + counts[2] < 9000)
		assert_true(vhca_loop_once(f->loop, 5000) > 0);
	assert_int_equal(counts[0], 8192);
	assert_int_equal(counts[1], 9000 - 8192);
}

/* ---- time and crashes ---- */

struct ticker {
	struct vhca_timer *timer;
	uint64_t last, longest;
};

static void on_tick(void *arg)
{
	struct ticker *t = arg;
	uint64_t now = vhca_now_ms();

	if (now - t->last > t->longest)
		t->longest = now - t->last;
	t->last = now;
	vhca_timer_arm_ms(t->timer, 5);
}

static void a_slow_disk_does_not_stall_the_loop(void **state)
{
	struct store_box *f = *state;
	struct ticker t = {.last = vhca_now_ms()};
	uint64_t start = vhca_now_ms();
	struct store_result r[3];

	assert_int_equal(vhca_timer_new(f->loop, "tick", on_tick, &t, &t.timer), 0);
	vhca_timer_arm_ms(t.timer, 0);
	slow_vfs_delay_ms(1000);
	for (int i = 0; i < 3; i++)
		store_box_put_vf(f, (const char *[]){"a", "b", "c"}[i], &r[i]);
	store_box_run_until(f, 3);
	assert_true(vhca_now_ms() - start >= 1000); /* done() waited for the disk */
	assert_true(t.longest < 700);		    /* and nothing else did */
	assert_true(vhca_loop_max_callback_us(f->loop) < 50000);
	(void)vhca_timer_free(t.timer);
}

static void closing_commits_what_is_queued(void **state)
{
	struct store_box *f = *state;
	struct store_result r[3];

	store_box_hold_worker(f, &r[0]);
	store_box_put_vf(f, "B", &r[1]);
	store_box_put_vf(f, "C", &r[2]);
	f->store = vhca_store_close(f->store);
	assert_int_equal(f->n_done, 0);
	store_box_run_until(f, 3);
	store_box_open(f);
	assert_int_equal(store_box_number(f, "SELECT count(*) FROM vf"), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_CASE(one_sync_serves_all_that_wait),
		STORE_CASE(one_that_fails_does_not_take_the_others_down),
		STORE_CASE(not_even_one_that_fails_at_the_commit),
		STORE_CASE(nor_one_that_makes_sqlite_roll_back_everything),
		STORE_CASE(the_queue_is_bounded),
		STORE_CASE(a_slow_disk_does_not_stall_the_loop),
		STORE_CASE(closing_commits_what_is_queued),
	};

	slow_vfs_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
