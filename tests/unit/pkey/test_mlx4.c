/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkey/identity.h"
#include "tests/sim/kernel/sysfs_tree.h"
#include "tests/unit/unit.h"

#define IOV  "devices/pci0000:00/0000:03:00.0/infiniband/mlx4_0/iov/"
#define GUID UINT64_C(0x0225c90012345678)

#define N_PKEYS 16 /* short tables make the tests quick; one case has the real size */
static const struct sim_pf cx3 = {.bdf = "0000:03:00.0",
				  .driver = "mlx4_core",
				  .ibdev = "mlx4_0",
				  .device = 0x1003,
				  .total_vfs = 16,
				  .n_ports = 2,
				  .node_guid = UINT64_C(0x0002c90300a1b2c0),
				  .n_pkeys = N_PKEYS};
static const struct vhca_identity_ops *ops = &vhca_identity_mlx4;

struct fixture {
	struct sim_tree tree;
	struct vhca_identity_at at;
	uint64_t writes; /* at the last mark() */
};

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	sim_tree_init(&f.tree);
	sim_add_driver(&f.tree, "mlx4_core");
	sim_add_pf(&f.tree, &cx3);
	sim_add_iov(&f.tree, &cx3, 7);
	sim_put(&f.tree, IOV "ports/1/pkeys/3", "0x8001");
	sim_put(&f.tree, IOV "ports/1/pkeys/4", "0x0001");
	sim_put(&f.tree, IOV "ports/1/pkeys/5", "0x8002");
	assert_int_equal(vhca_sysfs_open(f.tree.root, &f.at.sys), 0);
	f.at.pf = (struct vhca_bdf){.bus = 3};
	f.at.ibdev = "mlx4_0";
	f.at.vf_index = 2;
	f.at.port = 1;
	f.at.n_ports = 2;
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	vhca_sysfs_close(f->at.sys);
	sim_tree_done(&f->tree);
	return 0;
}

static void mark(struct fixture *f)
{
	f->writes = vhca_sysfs_writes(f->at.sys);
}

static unsigned int writes_since_mark(const struct fixture *f)
{
	return (unsigned int)(vhca_sysfs_writes(f->at.sys) - f->writes);
}

static struct vhca_identity want(unsigned int n, uint16_t a, uint16_t b)
{
	return (struct vhca_identity){.guid = GUID, .n_pkeys = (uint8_t)n, .pkeys = {a, b}};
}

static struct vhca_identity_state program(struct fixture *f, struct vhca_identity w,
					  unsigned int expect_missing)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_identity_state s;
	unsigned int missing = 99;

	assert_int_equal(ops->program(&f->at, &w, &missing, &s, &err), 0);
	assert_int_equal(missing, expect_missing);
	return s;
}

static void assert_file(struct fixture *f, const char *path, const char *expect)
{
	char text[80];

	assert_true(sim_get(&f->tree, path, text, sizeof(text)));
	assert_string_equal(text, expect);
}

/* VF 2 is slave 3; mlx4 calls its directory 0000:03:00.3. */
static void program_writes_guid_and_maps_by_value(void **state)
{
	struct fixture *f = *state;
	struct vhca_identity_state s = program(f, want(2, 0x8001, 0x0001), 0);
	unsigned int missing;
	struct vhca_identity w = want(2, 0x8001, 0x0001);

	assert_file(f, IOV "ports/1/admin_guids/3", "225c90012345678");
	assert_file(f, IOV "0000:03:00.3/ports/1/pkey_idx/0", "3");
	assert_file(f, IOV "0000:03:00.3/ports/1/pkey_idx/1", "4");
	assert_file(f, IOV "0000:03:00.3/ports/1/pkey_idx/2", "none");
	assert_int_equal(s.gid_index, 3);
	assert_int_equal(s.n_virtual, N_PKEYS);
	assert_int_equal(s.value[0], 0x8001);
	assert_int_equal(s.value[1], 0x0001);
	assert_true(s.granted == 0);
	assert_true(vhca_identity_matches(&s, &w, &missing));
}

static void other_port_is_withdrawn_and_unmapped(void **state)
{
	struct fixture *f = *state;

	program(f, want(1, 0x8001, 0), 0);
	assert_file(f, IOV "ports/2/admin_guids/3", "ffffffffffffffff");
	assert_file(f, IOV "0000:03:00.3/ports/2/pkey_idx/0", "none");
}

static void other_vfs_are_left_alone(void **state)
{
	struct fixture *f = *state;

	program(f, want(1, 0x8001, 0), 0);
	assert_file(f, IOV "0000:03:00.2/ports/1/pkey_idx/0", "0");
	assert_file(f, IOV "0000:03:00.4/ports/1/pkey_idx/0", "0");
	assert_file(f, IOV "ports/1/admin_guids/2", "214050000000002");
	assert_file(f, IOV "ports/1/admin_guids/0", "2c90300a1b2c3");
}

static void default_partition_goes_unless_asked_for(void **state)
{
	struct fixture *f = *state;

	program(f, want(0, 0, 0), 0);
	assert_file(f, IOV "0000:03:00.3/ports/1/pkey_idx/0", "none");
	program(f, want(1, 0xffff, 0), 0);
	assert_file(f, IOV "0000:03:00.3/ports/1/pkey_idx/0", "0");
}

static void unknown_key_stays_none_and_is_counted(void **state)
{
	struct fixture *f = *state;

	program(f, want(2, 0x8009, 0x8002), 1);
	assert_file(f, IOV "0000:03:00.3/ports/1/pkey_idx/0", "none");
	assert_file(f, IOV "0000:03:00.3/ports/1/pkey_idx/1", "5");
	sim_put(&f->tree, IOV "ports/1/pkeys/6", "0x8009");
	program(f, want(2, 0x8009, 0x8002), 0);
	assert_file(f, IOV "0000:03:00.3/ports/1/pkey_idx/0", "6");
}

static void second_program_writes_nothing(void **state)
{
	struct fixture *f = *state;

	mark(f);
	program(f, want(2, 0x8001, 0x8002), 0);
	/* port 2: unmap, withdraw; port 1: unmap 0, GUID, two maps */
	assert_int_equal(writes_since_mark(f), 6);
	mark(f);
	program(f, want(2, 0x8001, 0x8002), 0);
	assert_int_equal(writes_since_mark(f), 0);
}

static void index_emptied_by_the_sm_is_unmapped(void **state)
{
	struct fixture *f = *state;

	program(f, want(1, 0x8001, 0), 0);
	sim_put(&f->tree, IOV "ports/1/pkeys/3", "0x8077"); /* another tenant's now */
	program(f, want(1, 0x8001, 0), 1);
	assert_file(f, IOV "0000:03:00.3/ports/1/pkey_idx/0", "none");
}

static struct vhca_identity_state unmap(struct fixture *f, struct vhca_identity w)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_identity_state s;

	mark(f);
	assert_int_equal(ops->unmap(&f->at, &w, &s, &err), 0);
	return s;
}

static void unmap_takes_what_is_foreign_alone(void **state)
{
	struct fixture *f = *state;
	struct vhca_identity w = want(2, 0x8001, 0x8002);

	program(f, w, 0);
	sim_put(&f->tree, IOV "0000:03:00.3/ports/2/pkey_idx/15", "1");
	sim_put(&f->tree, IOV "ports/1/pkeys/3", "0x8077"); /* another tenant's now */
	sim_put(&f->tree, IOV "ports/1/pkeys/6", "0x8001");
	assert_int_equal(unmap(f, w).foreign, 2);
	assert_int_equal(writes_since_mark(f), 2);
	assert_file(f, IOV "0000:03:00.3/ports/1/pkey_idx/0",
		    "none"); /* not 6: that is program's */
	assert_file(f, IOV "0000:03:00.3/ports/1/pkey_idx/1", "5");
	assert_file(f, IOV "0000:03:00.3/ports/2/pkey_idx/15", "none");
	assert_file(f, IOV "ports/1/admin_guids/3", "225c90012345678");
	assert_int_equal(unmap(f, w).foreign, 0);
	assert_int_equal(writes_since_mark(f), 0);
}

static void unmap_for_nobody_takes_all(void **state)
{
	struct fixture *f = *state;

	program(f, want(2, 0x8001, 0x8002), 0);
	assert_int_equal(unmap(f, (struct vhca_identity){.guid = VHCA_GUID_ALL1}).foreign, 2);
	assert_file(f, IOV "0000:03:00.3/ports/1/pkey_idx/0", "none");
	assert_file(f, IOV "0000:03:00.3/ports/1/pkey_idx/1", "none");
	assert_file(f, IOV "ports/1/admin_guids/3", "225c90012345678");
}

static void put_smi(struct fixture *f, unsigned int port, const char *value)
{
	sim_put(&f->tree, SIM_PATH(IOV "0000:03:00.3/ports/%u/enable_smi_admin", port), "%s",
		value);
}

/* Whoever may send any SMP can be the subnet's manager. */
static void no_guest_may_run_an_sm(void **state)
{
	struct fixture *f = *state;
	struct vhca_identity w = want(1, 0x8001, 0);
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_identity_state s;
	unsigned int missing;

	for (unsigned int port = 1; port <= 2; port++) {
		assert_int_equal(ops->scrub(&f->at, &err), 0);
		put_smi(f, port, "1");
		assert_int_equal(ops->read(&f->at, &s, &err), 0);
		assert_false(vhca_identity_is_clean(&s));
		mark(f);
		assert_int_equal(ops->scrub(&f->at, &err), 0);
		assert_int_equal(writes_since_mark(f), 1);
		assert_int_equal(ops->read(&f->at, &s, &err), 0);
		assert_true(vhca_identity_is_clean(&s));
		(void)program(f, w, 0);
		put_smi(f, port, "1");
		assert_int_equal(ops->read(&f->at, &s, &err), 0);
		assert_false(vhca_identity_matches(&s, &w, &missing));
		s = program(f, w, 0);
		assert_true(vhca_identity_matches(&s, &w, &missing));
		assert_file(f, SIM_PATH(IOV "0000:03:00.3/ports/%u/enable_smi_admin", port), "0");
	}
}

static void scrub_takes_everything_on_all_ports(void **state)
{
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_identity_state s;

	program(f, want(2, 0x8001, 0x8002), 0);
	sim_put(&f->tree, IOV "0000:03:00.3/ports/2/pkey_idx/15", "1");
	assert_int_equal(ops->scrub(&f->at, &err), 0);
	for (uint8_t port = 1; port <= 2; port++) {
		f->at.port = port;
		assert_int_equal(ops->read(&f->at, &s, &err), 0);
		assert_true(s.requested == VHCA_GUID_ALL1);
		for (unsigned int i = 0; i < s.n_virtual; i++)
			assert_int_equal(s.map[i], VHCA_PKEY_UNMAPPED);
	}
	mark(f);
	assert_int_equal(ops->scrub(&f->at, &err), 0);
	assert_int_equal(writes_since_mark(f), 0);
}

static void ethernet_port_is_not_touched(void **state)
{
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;

	sim_put(&f->tree, "class/infiniband/mlx4_0/ports/2/link_layer", "Ethernet");
	assert_int_equal(ops->scrub(&f->at, &err), 0);
	assert_file(f, IOV "ports/2/admin_guids/3", "214050000000003");
	f->at.port = 2;
	assert_int_equal(ops->scrub(&f->at, &err), -EINVAL);
	assert_string_equal(err.code, "port_not_ib");
}

static void renamed_device_is_enoent(void **state)
{
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;

	f->at.ibdev = "ibp3s0";
	assert_int_equal(ops->scrub(&f->at, &err), -ENOENT);
	assert_int_equal(err.kind, VHCA_ERR_NOT_FOUND);
	assert_string_equal(err.code, "ibdev_renamed");
	f->at.ibdev = "";
	assert_int_equal(ops->scrub(&f->at, &err), -ENOENT);
}

static void tree_that_is_not_there_yet_is_eagain(void **state)
{
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;

	sim_remove(&f->tree, "devices/pci0000:00/0000:03:00.0/infiniband/mlx4_0/iov");
	assert_int_equal(ops->scrub(&f->at, &err), -EAGAIN);
	assert_string_equal(err.code, "iov_not_ready");
}

/*
 * VF 79 is slave 80: mlx4 names it ...:10.0, its PCI address is ...:0a.0. And a misleading name is
 * not followed.
 */
static void function_is_found_by_gid_index_not_by_name(void **state)
{
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_identity_state s;

	sim_put(&f->tree, IOV "0000:03:00.3/ports/1/gid_idx/0", "7");
	sim_put(&f->tree, IOV "0000:03:00.7/ports/1/gid_idx/0", "3");
	program(f, want(1, 0x8002, 0), 0);
	assert_file(f, IOV "0000:03:00.7/ports/1/pkey_idx/0", "5");
	assert_file(f, IOV "0000:03:00.3/ports/1/pkey_idx/0", "0");
	f->at.vf_index = 100;
	assert_int_equal(ops->read(&f->at, &s, &err), -ENXIO);
	assert_string_equal(err.code, "vf_not_in_iov");
}

/* A VF that has port 2 only (num_vfs=0,1) stands beside ours and is not it. */
static void single_port_functions_are_passed_over(void **state)
{
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;

	for (unsigned int slave = 1; slave <= 2; slave++)
		sim_remove(&f->tree, SIM_PATH(IOV "0000:03:00.%u/ports/1", slave));
	program(f, want(1, 0x8001, 0), 0);
	f->at.vf_index = 0;
	assert_int_equal(ops->scrub(&f->at, &err), -ENXIO);
	f->at.port = 2;
	assert_int_equal(ops->scrub(&f->at, &err), 0);
	assert_file(f, IOV "0000:03:00.1/ports/2/pkey_idx/0", "none");
}

static void granted_is_the_low_half_of_the_gid(void **state)
{
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_identity_state s;

	sim_put(&f->tree, IOV "ports/1/gids/3", "fe80:0000:0000:0000:0225:c900:1234:5678");
	assert_int_equal(ops->read(&f->at, &s, &err), 0);
	assert_true(s.granted == GUID);
	assert_true(s.requested == UINT64_C(0x0214050000000003));
}

static void kick_repeats_the_request_only_while_not_granted(void **state)
{
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;

	program(f, want(1, 0x8001, 0), 0);
	mark(f);
	assert_int_equal(ops->kick(&f->at, &err), 0);
	assert_int_equal(writes_since_mark(f), 1);
	sim_put(&f->tree, IOV "ports/1/gids/3", "fe80:0000:0000:0000:0225:c900:1234:5678");
	mark(f);
	assert_int_equal(ops->kick(&f->at, &err), 0);
	assert_int_equal(writes_since_mark(f), 0);
	sim_put(&f->tree, IOV "ports/1/admin_guids/3", "0");
	assert_int_equal(ops->kick(&f->at, &err), -EINVAL);
	assert_string_equal(err.code, "no_guid_requested");
}

/* Another GUID takes its place, and goes: that is all that an SM can be made to see. */
static void kick_displaces_what_the_port_holds_for_nobody(void **state)
{
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_identity_state s;

	sim_put(&f->tree, IOV "ports/1/gids/0", "fe80:0000:0000:0000:0002:c903:0001:0001");
	sim_put(&f->tree, IOV "ports/1/gids/3", "fe80:0000:0000:0000:0000:0000:0000:0000");
	assert_int_equal(ops->scrub(&f->at, &err), 0);
	mark(f);
	assert_int_equal(ops->kick(&f->at, &err), 0);
	assert_int_equal(writes_since_mark(f), 0);
	sim_put(&f->tree, IOV "ports/1/gids/3", "fe80:0000:0000:0000:0225:c900:1234:5678");
	assert_int_equal(ops->kick(&f->at, &err), 0);
	assert_int_equal(writes_since_mark(f), 2);
	assert_int_equal(ops->read(&f->at, &s, &err), 0);
	assert_true(s.requested == VHCA_GUID_ALL1);
}

static void a_key_is_found_at_the_end_of_the_table(void **state)
{
	struct fixture *f = *state;
	struct vhca_identity_state s;
	struct sim_pf real = cx3;

	real.n_pkeys = SIM_PKEYS;
	sim_add_iov(&f->tree, &real, 3);
	sim_put(&f->tree, IOV "ports/1/pkeys/126", "0x8126");
	s = program(f, want(1, 0x8126, 0), 0);
	assert_int_equal(s.n_virtual, SIM_PKEYS);
	assert_int_equal(s.map[0], 126);
}

static void nonsense_is_refused_before_any_write(void **state)
{
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_identity_state s;
	struct vhca_identity w = want(1, 0x8000, 0);
	unsigned int missing;

	mark(f);
	assert_int_equal(ops->program(&f->at, &w, &missing, &s, &err), -EINVAL);
	assert_string_equal(err.code, "bad_pkey");
	w = want(1, 0x8001, 0);
	w.guid = VHCA_GUID_ALL1;
	assert_int_equal(ops->program(&f->at, &w, &missing, &s, &err), -EINVAL);
	assert_string_equal(err.code, "bad_guid");
	w = want(1, 0x8001, 0);
	w.n_pkeys = VHCA_VF_PKEYS_MAX + 1;
	assert_int_equal(ops->program(&f->at, &w, &missing, &s, &err), -E2BIG);
	w = want(1, 0x8001, 0);
	f->at.port = 3;
	assert_int_equal(ops->program(&f->at, &w, &missing, &s, &err), -EINVAL);
	assert_int_equal(writes_since_mark(f), 0);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(program_writes_guid_and_maps_by_value),
		T(other_port_is_withdrawn_and_unmapped),
		T(other_vfs_are_left_alone),
		T(default_partition_goes_unless_asked_for),
		T(unknown_key_stays_none_and_is_counted),
		T(second_program_writes_nothing),
		T(index_emptied_by_the_sm_is_unmapped),
		T(unmap_takes_what_is_foreign_alone),
		T(unmap_for_nobody_takes_all),
		T(scrub_takes_everything_on_all_ports),
		T(no_guest_may_run_an_sm),
		T(ethernet_port_is_not_touched),
		T(renamed_device_is_enoent),
		T(tree_that_is_not_there_yet_is_eagain),
		T(function_is_found_by_gid_index_not_by_name),
		T(single_port_functions_are_passed_over),
		T(granted_is_the_low_half_of_the_gid),
		T(kick_repeats_the_request_only_while_not_granted),
		T(kick_displaces_what_the_port_holds_for_nobody),
		T(a_key_is_found_at_the_end_of_the_table),
		T(nonsense_is_refused_before_any_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
