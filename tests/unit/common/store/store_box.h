/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_COMMON_STORE_STORE_BOX_H
#define VHCA_TESTS_UNIT_COMMON_STORE_STORE_BOX_H
/* A store on disk with three migrations and a loop; failures fail the running test. */
#include <pthread.h>
#include <stdbool.h>

#include "common/base/log.h"
#include "common/store/store.h"
#include "tests/unit/unit.h"

#define STORE_BOX_MANY 200

extern const struct vhca_migration store_box_migrations[];

#define STORE_BOX_VERSION 3

struct store_box {
	char dir[64], path[96];
	struct vhca_loop *loop;
	struct vhca_store *store;
	pthread_t state_thread;
	unsigned int n_done;
	char order[STORE_BOX_MANY + 1]; /* a letter for each done() */
};

/* Of a transaction. */
struct store_result {
	struct store_box *f;
	char letter;
	bool called;
	int rc;
};

void store_box_open(struct store_box *f);
/* The store is not open yet. */
int store_box_setup_empty(void **state);
int store_box_setup(void **state);
int store_box_teardown(void **state);
/* Of a transaction: notes in the struct store_result arg how it ended. */
void store_box_done(void *arg, int rc);
/* Each in a transaction of its own. */
void store_box_put_vf(struct store_box *f, const char *bdf, struct store_result *r);
void store_box_put_claim(struct store_box *f, int64_t id, const char *bdf, const char *late,
			 struct store_result *r);
void store_box_run_until(struct store_box *f, unsigned int n_done);
/* Takes the only column of a row as the int64_t ctx. */
int store_box_take_number(void *ctx, const struct vhca_row *row);
int64_t store_box_number(struct store_box *f, const char *sql);

#define STORE_CASE(name) cmocka_unit_test_setup_teardown(name, store_box_setup, store_box_teardown)
#define STORE_CASE_EMPTY(name) \
	cmocka_unit_test_setup_teardown(name, store_box_setup_empty, store_box_teardown)

#endif
