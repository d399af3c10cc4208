/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What programming a full adapter costs: 126 VFs, a GUID and 127 P_Keys each. Counted at the sysfs
 * door; tests/bench measures.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "pkey/identity.h"
#include "tests/sim/kernel/sysfs_tree.h"
#include "tests/unit/unit.h"

#define IOV  SIM_PCI "/0000:03:00.0/infiniband/mlx4_0/iov"
#define GUID UINT64_C(0x0225c90000000000)
#define VFS  126u
#define KEYS 127u
#define FIXED \
	12u /* of each call, however long the tables: device, directories, GUIDs, link layer */

static const struct sim_pf cx3 = {.bdf = "0000:03:00.0",
				  .driver = "mlx4_core",
				  .ibdev = "mlx4_0",
				  .device = 0x1003,
				  .total_vfs = VFS,
				  .n_ports = 1,
				  .node_guid = 7,
				  .n_pkeys = KEYS};
static const struct vhca_identity_ops *ops = &vhca_identity_mlx4;

/* Stands still, so that no machine is too slow for what holds for some milliseconds. */
static uint64_t clock_ms = 1000;

uint64_t __wrap_vhca_now_ms(void);
uint64_t __wrap_vhca_now_ms(void)
{
	return clock_ms;
}

/* Pauses cost the test nothing, and are counted. */
static uint64_t paused_ms;

int __wrap_nanosleep(const struct timespec *pause, struct timespec *rest);
int __wrap_nanosleep(const struct timespec *pause, struct timespec *rest)
{
	(void)rest;
	paused_ms += (uint64_t)pause->tv_sec * 1000 + (uint64_t)pause->tv_nsec / 1000000;
	return 0;
}

struct cost {
	uint64_t writes, reads, opens;
};

struct fixture {
	struct sim_tree tree;
	struct vhca_identity_at at;
};

static uint16_t key_at(unsigned int physical)
{
	return (uint16_t)(0x8001 + physical);
}

static void set_key(struct fixture *f, unsigned int physical, uint16_t pkey)
{
	sim_put(&f->tree, SIM_PATH(IOV "/ports/1/pkeys/%u", physical), "0x%04x", pkey);
}

static void scrub(struct fixture *f, unsigned int vf)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	f->at.vf_index = (uint16_t)vf;
	assert_int_equal(ops->scrub(&f->at, &err), 0);
}

static void scrub_all(struct fixture *f)
{
	for (unsigned int vf = 0; vf < VFS; vf++)
		scrub(f, vf);
}

/* One tree for all tests: it has 16,000 files. */
static int setup_group(void **state)
{
	static struct fixture f = {
		.at = {.pf = {.bus = 3}, .ibdev = "mlx4_0", .port = 1, .n_ports = 1}};

	*state = &f;
	sim_tree_init(&f.tree);
	sim_add_driver(&f.tree, "mlx4_core");
	sim_add_pf(&f.tree, &cx3);
	sim_add_iov(&f.tree, &cx3, VFS);
	for (unsigned int i = 0; i < KEYS; i++)
		set_key(&f, i, key_at(i));
	return vhca_sysfs_open(f.tree.root, &f.at.sys);
}

static int teardown_group(void **state)
{
	struct fixture *f = *state;

	vhca_sysfs_close(f->at.sys);
	sim_tree_done(&f->tree);
	return 0;
}

static struct cost now(const struct fixture *f)
{
	return (struct cost){vhca_sysfs_writes(f->at.sys), vhca_sysfs_reads(f->at.sys),
			     vhca_sysfs_opens(f->at.sys)};
}

static struct cost since(const struct fixture *f, struct cost before)
{
	struct cost c = now(f);

	return (struct cost){c.writes - before.writes, c.reads - before.reads,
			     c.opens - before.opens};
}

/* A GUID of its own, and the first n keys of the port's table. */
static struct vhca_identity want_of(unsigned int vf, unsigned int n)
{
	struct vhca_identity want = {.guid = GUID + vf, .n_pkeys = (uint8_t)n};

	for (unsigned int i = 0; i < n; i++)
		want.pkeys[i] = key_at(i);
	return want;
}

static int try(struct fixture *f, unsigned int vf, const struct vhca_identity *want,
	       unsigned int *ret_missing, struct vhca_identity_state *ret, struct vhca_error *err)
{
	f->at.vf_index = (uint16_t)vf;
	return ops->program(&f->at, want, ret_missing, ret, err);
}

static struct cost program(struct fixture *f, unsigned int vf, const struct vhca_identity *want)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_identity_state state;
	struct cost before = now(f);
	unsigned int missing;

	assert_int_equal(try(f, vf, want, &missing, &state, &err), 0);
	assert_int_equal(missing, 0);
	assert_true(vhca_identity_matches(&state, want, &missing));
	return since(f, before);
}

static void program_all(struct fixture *f, unsigned int keys, struct cost *ret)
{
	struct cost before = now(f);

	for (unsigned int vf = 0; vf < VFS; vf++) {
		struct vhca_identity want = want_of(vf, keys);

		(void)program(f, vf, &want);
	}
	*ret = since(f, before);
}

static void assert_maps(struct fixture *f, unsigned int vf, unsigned int virt, const char *expect)
{
	char text[80], name[32];

	sim_iov_name(name, cx3.bdf, vf + 1);
	assert_true(sim_get(&f->tree, SIM_PATH(IOV "/%s/ports/1/pkey_idx/%u", name, virt), text,
			    sizeof(text)));
	assert_string_equal(text, expect);
}

static void assert_programmed(struct fixture *f, unsigned int vf)
{
	char text[80], expect[80];

	for (unsigned int i = 0; i < KEYS; i++) {
		(void)snprintf(expect, sizeof(expect), "%u", i);
		assert_maps(f, vf, i, expect);
	}
	(void)snprintf(expect, sizeof(expect), "%" PRIx64, GUID + vf);
	assert_true(sim_get(&f->tree, SIM_PATH(IOV "/ports/1/admin_guids/%u", vf + 1), text,
			    sizeof(text)));
	assert_string_equal(text, expect);
}

static void full_adapter_writes_what_changes_and_then_nothing(void **state)
{
	struct fixture *f = *state;
	struct cost cost;

	scrub_all(f);
	program_all(f, KEYS, &cost);
	assert_int_equal(cost.writes, VFS * (KEYS + 1));
	for (unsigned int vf = 0; vf < VFS; vf += 25)
		assert_programmed(f, vf);
	/* Looked at once before and once after; opened once. */
	assert_in_range(cost.reads, VFS * 4 * KEYS, VFS * (4 * KEYS + FIXED));
	assert_in_range(cost.opens, VFS * 2 * KEYS, VFS * (2 * KEYS + FIXED));

	program_all(f, KEYS, &cost);
	assert_int_equal(cost.writes, 0);
	assert_in_range(cost.reads, VFS * 2 * KEYS, VFS * (2 * KEYS + FIXED));
	assert_in_range(cost.opens, VFS * 2 * KEYS, VFS * (2 * KEYS + FIXED));
}

static void begin_kept(struct fixture *f)
{
	scrub_all(f);
	f->at.kept = vhca_identity_kept_new(f->at.pf);
}

static void end_kept(struct fixture *f)
{
	f->at.kept = vhca_identity_kept_free(f->at.kept);
}

/*
 * The agent's strand of a PF keeps the port's table open from VF to VF, and what the last proof has
 * read is the next VF's first look.
 */
static void one_look_serves_the_proof_and_the_next_vf(void **state)
{
	struct fixture *f = *state;
	struct cost cost;

	begin_kept(f);
	program_all(f, KEYS, &cost);
	assert_int_equal(cost.writes, VFS * (KEYS + 1));
	assert_in_range(cost.reads, VFS * 3 * KEYS + KEYS, VFS * (3 * KEYS + FIXED) + KEYS);
	assert_in_range(cost.opens, VFS * KEYS, VFS * (KEYS + FIXED) + KEYS);
	end_kept(f);
}

static void another_adapters_table_is_not_this_ones(void **state)
{
	struct fixture *f = *state;
	struct vhca_identity want = want_of(0, KEYS);
	struct cost cost;

	f->at.kept = vhca_identity_kept_new((struct vhca_bdf){.bus = 4});
	(void)program(f, 0, &want); /* leaves nothing open there */
	cost = program(f, 0, &want);
	assert_int_equal(cost.writes, 0);
	assert_in_range(cost.opens, 2 * KEYS, 2 * KEYS + FIXED);
	end_kept(f);
}

static void what_was_seen_too_long_ago_is_read_again(void **state)
{
	struct fixture *f = *state;
	struct vhca_identity want = want_of(0, KEYS);
	struct cost cost;

	begin_kept(f);
	(void)program(f, 0, &want);
	clock_ms += 21;
	want.guid++;
	cost = program(f, 1, &want);
	assert_in_range(cost.reads, 4 * KEYS, 4 * KEYS + FIXED);
	end_kept(f);
}

/* What a VF's map leads to is never guessed: nothing would be written, and so nothing proven. */
static void a_mapped_index_is_read(void **state)
{
	struct fixture *f = *state;
	struct vhca_identity want = want_of(0, 3);

	begin_kept(f);
	(void)program(f, 0, &want);
	set_key(f, 1, key_at(KEYS));
	set_key(f, 7, key_at(1)); /* until now key 7's */
	assert_int_equal(program(f, 0, &want).writes, 2);
	assert_maps(f, 0, 1, "7");
	set_key(f, 1, key_at(1));
	set_key(f, 7, key_at(7));
	end_kept(f);
}

static void a_wrong_guess_is_found(void **state)
{
	struct fixture *f = *state;
	struct vhca_identity want = want_of(0, 3);
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_identity_state shown;
	unsigned int missing;

	begin_kept(f);
	(void)program(f, 0, &want);
	set_key(f, 1, key_at(KEYS));
	set_key(f, 7, key_at(1));
	want.guid++;
	assert_int_equal(try(f, 1, &want, &missing, &shown, &err), -EIO);
	assert_string_equal(err.code, "readback_differs");
	assert_maps(f, 1, 1, "none");
	(void)program(f, 1, &want);
	assert_maps(f, 1, 1, "7");
	set_key(f, 1, key_at(1));
	set_key(f, 7, key_at(7));
	end_kept(f);
}

/* The SM brought it a moment after the last VF's look. */
static void a_key_is_not_guessed_to_be_missing(void **state)
{
	struct fixture *f = *state;
	struct vhca_identity want = want_of(0, 3);

	begin_kept(f);
	(void)program(f, 0, &want);
	set_key(f, 2, key_at(KEYS));
	want.pkeys[2] = key_at(KEYS);
	want.guid++;
	(void)program(f, 1, &want);
	assert_maps(f, 1, 2, "2");
	set_key(f, 2, key_at(2));
	end_kept(f);
}

/*
 * Each entry of the port's table is a firmware command on a card: only those before the key, and
 * the key once more.
 */
static void one_key_looks_only_at_the_front_of_the_table(void **state)
{
	struct fixture *f = *state;
	struct vhca_identity want = {.guid = GUID, .n_pkeys = 1, .pkeys = {key_at(4)}};
	struct cost cost;

	scrub(f, VFS - 1);
	cost = program(f, VFS - 1, &want);
	assert_int_equal(cost.writes, 2);
	assert_in_range(cost.reads, 2 * KEYS + 5 + 1, 2 * KEYS + 5 + 1 + FIXED);
	assert_in_range(cost.opens, KEYS + 5, KEYS + 5 + FIXED);
	cost = program(f, VFS - 1, &want);
	assert_int_equal(cost.writes, 0);
	assert_in_range(cost.reads, KEYS + 1, KEYS + 1 + FIXED);
}

static void a_change_costs_a_change(void **state)
{
	struct fixture *f = *state;
	struct vhca_identity want = want_of(7, KEYS);

	scrub(f, 7);
	assert_int_equal(program(f, 7, &want).writes, KEYS + 1);
	want.guid++;
	assert_int_equal(program(f, 7, &want).writes, 1);
	want.n_pkeys--;
	assert_int_equal(program(f, 7, &want).writes, 1);
	want.n_pkeys++;
	assert_int_equal(program(f, 7, &want).writes, 1);
}

/*
 * Nor does the number of its neighbours matter to a VF: the last one is found as quickly as the
 * first.
 */
static void reading_a_free_vf_leaves_the_table_alone(void **state)
{
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_identity_state shown;
	struct cost cost, before;

	scrub(f, VFS - 1);
	before = now(f);
	assert_int_equal(ops->read(&f->at, &shown, &err), 0);
	cost = since(f, before);
	assert_true(vhca_identity_is_clean(&shown));
	assert_int_equal(cost.writes, 0);
	assert_in_range(cost.reads, KEYS, KEYS + FIXED);
	assert_in_range(cost.opens, KEYS, KEYS + FIXED);
}

static struct cost unmap(struct fixture *f, unsigned int vf, unsigned int *ret_foreign)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_identity want = want_of(vf, KEYS);
	struct vhca_identity_state state;
	struct cost before = now(f);

	f->at.vf_index = (uint16_t)vf;
	assert_int_equal(ops->unmap(&f->at, &want, &state, &err), 0);
	*ret_foreign = state.foreign;
	return since(f, before);
}

static void rotate_table(struct fixture *f)
{
	for (unsigned int i = 0; i < KEYS; i++)
		set_key(f, i, key_at((i + 1) % KEYS));
}

/* Every index of every VF leads to another key: the adapter waits for no guest before all of
 * them are gone, nor after. */
static void a_reshuffled_table_costs_no_pause(void **state)
{
	struct fixture *f = *state;
	unsigned int foreign;
	struct cost cost;

	scrub_all(f);
	program_all(f, KEYS, &cost);
	rotate_table(f);
	paused_ms = 0;
	for (unsigned int vf = 0; vf < VFS; vf++) {
		assert_int_equal(unmap(f, vf, &foreign).writes, KEYS);
		assert_int_equal(foreign, KEYS);
	}
	program_all(f, KEYS, &cost);
	assert_int_equal(cost.writes, VFS * KEYS);
	assert_int_equal(paused_ms, 0);
	for (unsigned int i = 0; i < KEYS; i++)
		set_key(f, i, key_at(i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_adapter_writes_what_changes_and_then_nothing),
		cmocka_unit_test(one_look_serves_the_proof_and_the_next_vf),
		cmocka_unit_test(another_adapters_table_is_not_this_ones),
		cmocka_unit_test(what_was_seen_too_long_ago_is_read_again),
		cmocka_unit_test(a_mapped_index_is_read),
		cmocka_unit_test(a_wrong_guess_is_found),
		cmocka_unit_test(a_key_is_not_guessed_to_be_missing),
		cmocka_unit_test(one_key_looks_only_at_the_front_of_the_table),
		cmocka_unit_test(a_change_costs_a_change),
		cmocka_unit_test(reading_a_free_vf_leaves_the_table_alone),
		cmocka_unit_test(a_reshuffled_table_costs_no_pause),
	};

	return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
