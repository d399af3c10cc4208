/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/common/store/store_box.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/common/store/slow_vfs.h"

const struct vhca_migration store_box_migrations[] = {
	{"CREATE TABLE vf (bdf TEXT PRIMARY KEY, state TEXT NOT NULL);"},
	{"ALTER TABLE vf ADD COLUMN guid INTEGER; UPDATE vf SET guid = 7;"
	 "CREATE TABLE claim (id INTEGER PRIMARY KEY, bdf TEXT NOT NULL REFERENCES vf(bdf),"
	 " late TEXT REFERENCES vf(bdf) DEFERRABLE INITIALLY DEFERRED);"},
	{"CREATE TRIGGER bomb BEFORE INSERT ON claim WHEN NEW.id = 666"
	 " BEGIN SELECT RAISE(ROLLBACK, 'everything is lost'); END;"},
};

/* A sink: failing statements are what is tested. */
static void no_log(enum vhca_log_level level, const char *msg)
{
	(void)level;
	(void)msg;
}

void store_box_open(struct store_box *f)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_store_open(f->path, store_box_migrations, STORE_BOX_VERSION, f->loop, &f->store,
			    &err) < 0)
		fail_msg("%s", err.msg);
}

int store_box_setup_empty(void **state)
{
	struct store_box *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/vhca-store-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(f->path, sizeof(f->path), "%s/state.db", f->dir);
	assert_int_equal(vhca_loop_new(&f->loop), 0);
	f->state_thread = pthread_self();
	vhca_log_set_sink(no_log); /* failing statements are what is tested */
	*state = f;
	return 0;
}

int store_box_setup(void **state)
{
	(void)store_box_setup_empty(state);
	store_box_open(*state);
	return 0;
}

int store_box_teardown(void **state)
{
	struct store_box *f = *state;

	slow_vfs_delay_ms(0);
	slow_vfs_fill(NULL);
	f->store = vhca_store_close(f->store);
	(void)vhca_loop_free(f->loop);
	vhca_log_set_sink(NULL);
	(void)unlink(f->path);
	assert_int_equal(rmdir(f->dir), 0); /* closing has removed the journal files */
	free(f);
	return 0;
}

void store_box_done(void *arg, int rc)
{
	struct store_result *r = arg;

	assert_true(pthread_equal(pthread_self(), r->f->state_thread));
	assert_false(r->called);
	r->called = true;
	r->rc = rc;
	r->f->order[r->f->n_done++] = r->letter;
}

void store_box_put_vf(struct store_box *f, const char *bdf, struct store_result *r)
{
	struct vhca_txn *txn = vhca_txn_new(f->store);

	*r = (struct store_result){.f = f, .letter = bdf[0]};
	vhca_txn_exec(txn, "INSERT INTO vf (bdf, state) VALUES (?1, ?2)", "ss", bdf, "free");
	vhca_txn_commit(txn, store_box_done, r);
}

void store_box_put_claim(struct store_box *f, int64_t id, const char *bdf, const char *late,
			 struct store_result *r)
{
	struct vhca_txn *txn = vhca_txn_new(f->store);

	*r = (struct store_result){.f = f, .letter = 'c'};
	vhca_txn_exec(txn, "INSERT INTO claim (id, bdf, late) VALUES (?1, ?2, ?3)", "iss", id, bdf,
		      late);
	vhca_txn_commit(txn, store_box_done, r);
}

void store_box_run_until(struct store_box *f, unsigned int n_done)
{
	while (f->n_done < n_done)
		assert_true(vhca_loop_once(f->loop, 5000) > 0);
}

int store_box_take_number(void *ctx, const struct vhca_row *row)
{
	*(int64_t *)ctx = vhca_row_i64(row, 0);
	return 0;
}

int64_t store_box_number(struct store_box *f, const char *sql)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	int64_t n = -1;

	if (vhca_store_query(f->store, sql, store_box_take_number, &n, &err, "") < 0)
		fail_msg("%s", err.msg);
	return n;
}
