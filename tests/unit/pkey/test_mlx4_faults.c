/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mlx4 identities on a sysfs that reacts, fails and is changed by the SM meanwhile. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "pkey/identity.h"
#include "tests/sim/kernel/sysfs_fixture.h"
#include "tests/unit/unit.h"

#define IOV   SIM_PCI "/0000:03:00.0/infiniband/mlx4_0/iov"
#define FN    IOV "/0000:03:00.2" /* VF 1 is slave 2 */
#define SLAVE 2u
#define GUID  UINT64_C(0x0225c90012345678)
#define LINE  256

/*
 * Small tables: what is tested here does not depend on their length, and every read goes through
 * FUSE.
 */
#define N_PKEYS 8
static const struct sim_pf cx3 = {.bdf = "0000:03:00.0",
				  .driver = "mlx4_core",
				  .ibdev = "mlx4_0",
				  .device = 0x1003,
				  .total_vfs = 126,
				  .n_ports = 2,
				  .node_guid = 7,
				  .n_pkeys = N_PKEYS};
static const struct vhca_identity_ops *ops = &vhca_identity_mlx4;
static const struct vhca_identity tenant = {.guid = GUID, .n_pkeys = 2, .pkeys = {0x8001, 0x0002}};

struct fixture {
	struct sysfs_fixture base;
	struct vhca_identity_at at;
	struct vhca_error err;
};

static int setup_vfs(void **state, unsigned int n_vfs)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	*state = &f;
	if (!sysfs_fixture_begin(&f.base))
		return 0;
	sysfs_sim_add_mlx4(f.base.sim, &cx3, n_vfs);
	sysfs_sim_set_pkey(f.base.sim, &cx3, 1, 5, 0x8001);
	sysfs_sim_set_pkey(f.base.sim, &cx3, 1, 6, 0x8002);
	sysfs_sim_set_pkey(f.base.sim, &cx3, 1, 7, 0x0002);
	f.at.sys = f.base.sys;
	f.at.pf = (struct vhca_bdf){.bus = 3};
	f.at.ibdev = "mlx4_0";
	f.at.vf_index = 1;
	f.at.port = 1;
	f.at.n_ports = 2;
	return 0;
}

static int setup(void **state)
{
	return setup_vfs(state, 2);
}

static int setup_full(void **state)
{
	return setup_vfs(state, 126);
}

static int program(struct fixture *f, const struct vhca_identity *want)
{
	struct vhca_identity_state s;
	unsigned int missing;

	f->err = (struct vhca_error)VHCA_ERROR_INIT;
	return ops->program(&f->at, want, &missing, &s, &f->err);
}

static int scrub(struct fixture *f)
{
	f->err = (struct vhca_error)VHCA_ERROR_INIT;
	return ops->scrub(&f->at, &f->err);
}

/* ---- what the tree says, past the code under test ---- */

static bool shows(struct fixture *f, const char *path, const char *expect)
{
	char text[64];

	return sim_get(sysfs_sim_tree(f->base.sim), path, text, sizeof(text)) &&
	       strcmp(text, expect) == 0;
}

/* The maps are exactly `zero` and `one` at virtual 0 and 1 of port 1, and none elsewhere. */
static bool map_is(struct fixture *f, const char *zero, const char *one)
{
	for (unsigned int port = 1; port <= 2; port++) {
		for (unsigned int i = 0; i < N_PKEYS; i++) {
			const char *expect = "none";

			if (port == 1 && i < 2)
				expect = i == 0 ? zero : one;
			if (!shows(f, SIM_PATH(FN "/ports/%u/pkey_idx/%u", port, i), expect))
				return false;
		}
	}
	return true;
}

static bool is_programmed(struct fixture *f)
{
	return map_is(f, "5", "7") &&
	       shows(f, SIM_PATH(IOV "/ports/1/admin_guids/%u", SLAVE), "225c90012345678") &&
	       shows(f, SIM_PATH(IOV "/ports/2/admin_guids/%u", SLAVE), "ffffffffffffffff");
}

static bool is_scrubbed(struct fixture *f)
{
	return map_is(f, "none", "none") &&
	       shows(f, SIM_PATH(IOV "/ports/1/admin_guids/%u", SLAVE), "ffffffffffffffff") &&
	       shows(f, SIM_PATH(IOV "/ports/2/admin_guids/%u", SLAVE), "ffffffffffffffff");
}

/* Back to what the driver leaves after load, plus another tenant's key. */
static void dirty(struct fixture *f)
{
	const struct sim_tree *t = sysfs_sim_tree(f->base.sim);

	for (unsigned int port = 1; port <= 2; port++) {
		sim_put(t, SIM_PATH(FN "/ports/%u/pkey_idx/0", port), "0");
		sim_put(t, SIM_PATH(FN "/ports/%u/pkey_idx/1", port), "none");
		sim_put(t, SIM_PATH(FN "/ports/%u/pkey_idx/4", port), "6");
		sim_put(t, SIM_PATH(IOV "/ports/%u/admin_guids/%u", port, SLAVE),
			"214050000000002");
	}
	sysfs_sim_clear_faults(f->base.sim);
	sysfs_sim_clear_log(f->base.sim);
}

/* Position of the first write that starts so, or -1. */
static int position(struct fixture *f, const char *start)
{
	char line[LINE];

	for (size_t i = 0; sysfs_sim_log(f->base.sim, i, line, sizeof(line)); i++) {
		if (strncmp(line, start, strlen(start)) == 0)
			return (int)i;
	}
	return -1;
}

/* ---- tests ---- */

static void keys_go_before_guid_and_come_after_it(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	int guid, other;

	dirty(f);
	assert_int_equal(program(f, &tenant), 0);
	assert_true(is_programmed(f));
	guid = position(f, IOV "/ports/1/admin_guids/2=225c90012345678 ");
	other = position(f, IOV "/ports/2/admin_guids/2=ffffffffffffffff ");
	assert_true(position(f, FN "/ports/1/pkey_idx/0=none ") < other);
	assert_true(position(f, FN "/ports/1/pkey_idx/4=none ") < other);
	assert_true(position(f, FN "/ports/2/pkey_idx/4=none ") < other);
	assert_true(other >= 0 && other < guid);
	assert_true(guid < position(f, FN "/ports/1/pkey_idx/0=5 "));
	assert_true(guid < position(f, FN "/ports/1/pkey_idx/1=7 "));
	assert_int_equal(sysfs_sim_n_writes(f->base.sim), 8);
}

static void moved_index_goes_through_none(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	uint64_t before;
	int none;

	dirty(f);
	assert_int_equal(program(f, &tenant), 0);
	sysfs_sim_set_pkey(f->base.sim, &cx3, 1, 3, 0x8001);
	sysfs_sim_set_pkey(f->base.sim, &cx3, 1, 5, 0x8077);
	sysfs_sim_clear_log(f->base.sim);
	before = vhca_now_ms();
	assert_int_equal(program(f, &tenant), 0);
	assert_true(vhca_now_ms() - before >= 200); /* for the guest to look in between */
	assert_true(map_is(f, "3", "7"));
	none = position(f, FN "/ports/1/pkey_idx/0=none ");
	assert_int_equal(none, 0);
	assert_int_equal(position(f, FN "/ports/1/pkey_idx/0=3 "), 1);
	assert_int_equal(sysfs_sim_n_writes(f->base.sim), 2);
}

/* While the SM moves a key it stands twice in the table: no reason to touch the map. */
static void key_at_two_places_moves_nothing(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	dirty(f);
	assert_int_equal(program(f, &tenant), 0);
	sysfs_sim_set_pkey(f->base.sim, &cx3, 1, 2, 0x8001);
	sysfs_sim_clear_log(f->base.sim);
	assert_int_equal(program(f, &tenant), 0);
	assert_int_equal(sysfs_sim_n_writes(f->base.sim), 0);
}

enum mode { REFUSED, APPLIED, LOST, MODE_COUNT };

static void inject(struct fixture *f, unsigned int nth, int errnum, enum mode mode)
{
	const struct sim_fault fault = {.pattern = "*",
					.nth = nth,
					.errnum = mode == LOST ? 0 : errnum,
					.applied = mode == APPLIED,
					.lost = mode == LOST};

	sysfs_sim_inject(f->base.sim, &fault);
}

/* Runs op with write number nth failing; false when there is no such write. */
static bool one_failing_write(struct fixture *f, unsigned int nth, int errnum, enum mode mode,
			      bool is_scrub)
{
	int r;

	dirty(f);
	inject(f, nth, errnum, mode);
	r = is_scrub ? scrub(f) : program(f, &tenant);
	if (sysfs_sim_fault_hits(f->base.sim) == 0) {
		assert_int_equal(r, 0);
		return false;
	}
	if (r == 0) /* success is only ever the truth */
		assert_true(is_scrub ? is_scrubbed(f) : is_programmed(f));
	else
		assert_int_equal(f->err.kind, VHCA_ERR_DEVICE);
	if (mode == APPLIED)
		assert_int_equal(r, 0);
	if (mode == REFUSED)
		assert_true(r < 0);
	if (errnum == EIO) { /* the next try repairs it */
		assert_int_equal(is_scrub ? scrub(f) : program(f, &tenant), 0);
		assert_true(is_scrub ? is_scrubbed(f) : is_programmed(f));
	}
	return true;
}

static unsigned int all_failing_writes(struct fixture *f, bool is_scrub)
{
	static const int errnums[] = {EINVAL, EIO, ENODEV, ENOSPC};
	unsigned int runs = 0;

	for (size_t e = 0; e < sizeof(errnums) / sizeof(errnums[0]); e++) {
		for (unsigned int mode = 0; mode < MODE_COUNT; mode++) {
			unsigned int nth = 1;

			/* The errno of a write that took effect, or its absence, is one. */
			if (mode != REFUSED && errnums[e] != EIO)
				continue;
			while (one_failing_write(f, nth, errnums[e], (enum mode)mode, is_scrub))
				nth++;
			runs += nth - 1;
		}
	}
	return runs;
}

static void every_write_of_program_failing_once(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	assert_int_equal(all_failing_writes(f, false), 8 * 6);
}

static void every_write_of_scrub_failing_once(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	assert_int_equal(all_failing_writes(f, true), 6 * 6);
}

/* A read that fails is an error, wherever it is: at the start, between, in the proof. */
static void failing_reads_are_never_a_success(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	unsigned int nth = 1, runs = 0;

	while (true) {
		const struct sim_fault fault = {
			.on_read = true, .pattern = "*", .nth = nth, .errnum = EIO};
		int r;

		dirty(f);
		sysfs_sim_inject(f->base.sim, &fault);
		r = program(f, &tenant);
		if (sysfs_sim_fault_hits(f->base.sim) == 0)
			break;
		assert_true(r < 0);
		runs++;
		nth += runs < 8 ? 1 : 3;
	}
	assert_true(runs > 15);
	assert_true(is_programmed(f));
}

/*
 * What takes away is tried to the end: one index that cannot be unmapped does not leave the others
 * mapped.
 */
static void scrub_goes_on_after_a_failure(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	const struct sim_fault fault = {.pattern = FN "/ports/1/pkey_idx/0", .errnum = EIO};

	dirty(f);
	sysfs_sim_inject(f->base.sim, &fault);
	assert_int_equal(scrub(f), -EIO);
	assert_true(map_is(f, "0", "none"));
	assert_true(shows(f, SIM_PATH(IOV "/ports/1/admin_guids/%u", SLAVE), "ffffffffffffffff"));
}

/* What displaces a GUID that the port holds for nobody must not stay: the VF is free. */
static void what_displaces_is_withdrawn_after_a_failure(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	const struct sim_fault second = {.pattern = SIM_PATH(IOV "/ports/1/admin_guids/%u", SLAVE),
					 .nth = 2,
					 .errnum = ENOENT};

	assert_int_equal(scrub(f), 0);
	sim_put(sysfs_sim_tree(f->base.sim), SIM_PATH(IOV "/ports/1/gids/%u", SLAVE),
		"fe80:0000:0000:0000:0225:c900:1234:5678");
	sysfs_sim_inject(f->base.sim, &second);
	(void)ops->kick(&f->at, &f->err);
	assert_int_equal(sysfs_sim_fault_hits(f->base.sim), 1);
	assert_true(shows(f, SIM_PATH(IOV "/ports/1/admin_guids/%u", SLAVE), "ffffffffffffffff"));
}

static void what_displaces_is_withdrawn_although_a_write_is_lost(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	const struct sim_fault second = {
		.pattern = SIM_PATH(IOV "/ports/1/admin_guids/%u", SLAVE), .nth = 2, .lost = true};

	assert_int_equal(scrub(f), 0);
	sim_put(sysfs_sim_tree(f->base.sim), SIM_PATH(IOV "/ports/1/gids/%u", SLAVE),
		"fe80:0000:0000:0000:0225:c900:1234:5678");
	sysfs_sim_inject(f->base.sim, &second);
	(void)ops->kick(&f->at, &f->err);
	assert_int_equal(sysfs_sim_fault_hits(f->base.sim), 1);
	assert_true(shows(f, SIM_PATH(IOV "/ports/1/admin_guids/%u", SLAVE), "ffffffffffffffff"));
}

/* A key that must go and cannot: the new tenant gets nothing at all. */
static void nothing_is_given_before_all_is_taken(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	const struct sim_fault fault = {.pattern = FN "/ports/2/pkey_idx/4", .errnum = EIO};

	dirty(f);
	sysfs_sim_inject(f->base.sim, &fault);
	assert_int_equal(program(f, &tenant), -EIO);
	assert_int_equal(position(f, FN "/ports/1/pkey_idx/0=5 "), -1);
	assert_int_equal(position(f, IOV "/ports/1/admin_guids/2=225c90012345678 "), -1);
}

static void *program_thread(void *arg)
{
	return (void *)(intptr_t)program(arg, &tenant);
}

static void wait_for_hit(struct fixture *f)
{
	for (unsigned int i = 0; i < 2000 && sysfs_sim_fault_hits(f->base.sim) == 0; i++)
		usleep(1000);
	assert_int_equal(sysfs_sim_fault_hits(f->base.sim), 1);
}

/*
 * The SM gives the physical index to another tenant after we read the table and before we map it.
 */
static void index_that_changes_meaning_meanwhile_is_unmapped(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	const struct sim_fault fault = {
		.pattern = FN "/ports/1/pkey_idx/1", .nth = 1, .hang = true};
	pthread_t thread;
	void *r;

	dirty(f);
	sysfs_sim_inject(f->base.sim, &fault);
	assert_int_equal(pthread_create(&thread, NULL, program_thread, f), 0);
	wait_for_hit(f);
	sysfs_sim_set_pkey(f->base.sim, &cx3, 1, 7, 0x8099);
	sysfs_sim_release(f->base.sim);
	assert_int_equal(pthread_join(thread, &r), 0);
	assert_true((intptr_t)r < 0);
	assert_string_equal(f->err.code, "readback_differs");
	assert_true(map_is(f, "5", "none"));
}

static void renamed_device_is_enoent_and_a_reload_is_repaired(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	dirty(f);
	assert_int_equal(program(f, &tenant), 0);
	sysfs_sim_rename(f->base.sim, cx3.bdf, "mlx4_0", "ibp3s0");
	assert_int_equal(program(f, &tenant), -ENOENT);
	assert_string_equal(f->err.code, "ibdev_renamed");
	sysfs_sim_rename(f->base.sim, cx3.bdf, "ibp3s0", "mlx4_0");
	sysfs_sim_reload_mlx4(f->base.sim, &cx3, 2);
	sysfs_sim_set_pkey(f->base.sim, &cx3, 1, 5, 0x8001);
	sysfs_sim_set_pkey(f->base.sim, &cx3, 1, 7, 0x0002);
	assert_int_equal(program(f, &tenant), 0);
	assert_true(is_programmed(f));
}

/* The other port of a dual-port card: nothing may be there, so somebody has to look. */
static void leftovers_on_the_other_port_are_seen(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	struct vhca_identity_state s;
	unsigned int missing;

	dirty(f);
	assert_int_equal(program(f, &tenant), 0);
	assert_int_equal(ops->read(&f->at, &s, &f->err), 0);
	assert_true(vhca_identity_matches(&s, &tenant, &missing));
	assert_int_equal(vhca_identity_foreign(&s, &tenant), 0);
	sim_put(sysfs_sim_tree(f->base.sim), FN "/ports/2/pkey_idx/3", "6");
	assert_int_equal(ops->read(&f->at, &s, &f->err), 0);
	assert_false(vhca_identity_matches(&s, &tenant, &missing));
	assert_int_equal(vhca_identity_foreign(&s, &tenant), 1);
	assert_int_equal(scrub(f), 0);
	assert_int_equal(ops->read(&f->at, &s, &f->err), 0);
	assert_true(vhca_identity_is_clean(&s));
	sim_put(sysfs_sim_tree(f->base.sim), SIM_PATH(IOV "/ports/2/admin_guids/%u", SLAVE),
		"214050000000002");
	assert_int_equal(ops->read(&f->at, &s, &f->err), 0);
	assert_false(vhca_identity_is_clean(&s));
}

/*
 * Who programs a VF in a guest hears that it had led to a foreign key, though the map is right
 * afterwards.
 */
static void foreign_keys_are_told(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	struct vhca_identity_state s;
	unsigned int missing;

	dirty(f);
	assert_int_equal(program(f, &tenant), 0);
	assert_int_equal(ops->program(&f->at, &tenant, &missing, &s, &f->err), 0);
	assert_int_equal(s.foreign, 0);
	sysfs_sim_set_pkey(f->base.sim, &cx3, 1, 3, 0x8001);
	sysfs_sim_set_pkey(f->base.sim, &cx3, 1, 5, 0x8077);
	assert_int_equal(ops->program(&f->at, &tenant, &missing, &s, &f->err), 0);
	assert_int_equal(s.foreign, 1);
}

static void grant_comes_when_the_sm_answers(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	struct vhca_identity_state s;

	dirty(f);
	sysfs_sim_set_auto_grant(f->base.sim, false);
	assert_int_equal(program(f, &tenant), 0);
	assert_int_equal(ops->read(&f->at, &s, &f->err), 0);
	assert_true(s.granted == 0 && s.requested == GUID);
	sysfs_sim_clear_log(f->base.sim);
	sysfs_sim_set_auto_grant(f->base.sim, true);
	assert_int_equal(ops->kick(&f->at, &f->err), 0);
	assert_int_equal(ops->read(&f->at, &s, &f->err), 0);
	assert_true(s.granted == GUID);
	assert_int_equal(sysfs_sim_n_writes(f->base.sim), 1);
}

/*
 * What the SM has chosen stays: it is what the driver asks for from then on, and programming it
 * writes no GUID.
 */
static void the_sm_chooses(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	struct vhca_identity chosen = tenant;
	struct vhca_identity_state s;
	uint64_t again;

	assert_int_equal(scrub(f), 0);
	sysfs_sim_set_auto_grant(f->base.sim, false);
	assert_int_equal(ops->choose(&f->at, &chosen.guid, &f->err), -EAGAIN);
	assert_string_equal(f->err.code, "no_guid_from_sm");
	sysfs_sim_set_auto_grant(f->base.sim, true);
	assert_int_equal(ops->choose(&f->at, &chosen.guid, &f->err), 0);
	assert_true(vhca_guid_is_valid(chosen.guid));
	sysfs_sim_clear_log(f->base.sim);
	assert_int_equal(ops->choose(&f->at, &again, &f->err), 0);
	assert_true(again == chosen.guid);
	assert_int_equal(sysfs_sim_n_writes(f->base.sim), 0);
	assert_int_equal(program(f, &chosen), 0);
	assert_int_equal(sysfs_sim_n_writes(f->base.sim), chosen.n_pkeys);
	assert_int_equal(ops->read(&f->at, &s, &f->err), 0);
	assert_true(s.requested == chosen.guid && s.granted == chosen.guid && !s.other_guids);
}

/*
 * The port's table stays open from call to call; the SM's changes show in it, and after a change of
 * the device it is opened anew.
 */
static void what_stays_open_is_opened_anew_with_the_device(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	struct vhca_identity other = {.guid = GUID, .n_pkeys = 2, .pkeys = {0x8002, 0x0002}};

	f->at.kept = vhca_identity_kept_new(f->at.pf);
	assert_int_equal(program(f, &tenant), 0);
	assert_true(is_programmed(f));
	sysfs_sim_set_pkey(f->base.sim, &cx3, 1, 5, 0x8002);
	sysfs_sim_set_pkey(f->base.sim, &cx3, 1, 6, 0x8001);
	assert_int_equal(program(f, &tenant), 0);
	assert_true(map_is(f, "6", "7"));
	sysfs_sim_rename(f->base.sim, cx3.bdf, "mlx4_0", "ibp3s0");
	f->at.ibdev = "ibp3s0";
	assert_int_equal(program(f, &other), 0);
	sysfs_sim_rename(f->base.sim, cx3.bdf, "ibp3s0", "mlx4_0");
	assert_true(map_is(f, "5", "7"));
	f->at.kept = vhca_identity_kept_free(f->at.kept);
}

/* 126 VFs: what is written is what changes, and a second round is free. */
static void full_adapter_costs_what_changes(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	struct vhca_identity want = {.n_pkeys = 1, .pkeys = {0x8001}};

	for (unsigned int round = 0; round < 2; round++) {
		sysfs_sim_clear_log(f->base.sim);
		for (uint16_t vf = 0; vf < 126; vf += 25) {
			f->at.vf_index = vf;
			want.guid = GUID + vf;
			assert_int_equal(program(f, &want), 0);
		}
		/* six VFs: two unmaps, two GUIDs, one map each; then nothing */
		assert_int_equal(sysfs_sim_n_writes(f->base.sim), round == 0 ? 6 * 5 : 0);
	}
	assert_true(shows(f, IOV "/0000:03:15.6/ports/1/gid_idx/0", "126"));
	assert_true(shows(f, IOV "/0000:03:15.6/ports/1/pkey_idx/0", "5"));
	assert_true(shows(f, IOV "/ports/1/admin_guids/126", "225c900123456f5"));
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, sysfs_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(keys_go_before_guid_and_come_after_it),
		T(moved_index_goes_through_none),
		T(key_at_two_places_moves_nothing),
		T(every_write_of_program_failing_once),
		T(every_write_of_scrub_failing_once),
		T(failing_reads_are_never_a_success),
		T(scrub_goes_on_after_a_failure),
		T(what_displaces_is_withdrawn_after_a_failure),
		T(what_displaces_is_withdrawn_although_a_write_is_lost),
		T(nothing_is_given_before_all_is_taken),
		T(index_that_changes_meaning_meanwhile_is_unmapped),
		T(renamed_device_is_enoent_and_a_reload_is_repaired),
		T(leftovers_on_the_other_port_are_seen),
		T(foreign_keys_are_told),
		T(grant_comes_when_the_sm_answers),
		T(the_sm_chooses),
		T(what_stays_open_is_opened_anew_with_the_device),
		cmocka_unit_test_setup_teardown(full_adapter_costs_what_changes, setup_full,
						sysfs_fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
