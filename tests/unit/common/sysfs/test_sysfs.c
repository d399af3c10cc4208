/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/sysfs/sysfs.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

static struct tree tree;
static struct vhca_sysfs *sys;
static struct vhca_sysfs_dir *dir;

static int setup(void **state)
{
	(void)state;
	tree_init(&tree);
	tree_put(&tree, "devices/vf0/attr", "0x8001\n");
	tree_link(&tree, "bus/vf0", "../devices/vf0");
	assert_int_equal(vhca_sysfs_open(tree.root, &sys), 0);
	assert_int_equal(vhca_sysfs_opendir(sys, "bus/vf0", &dir), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	dir = vhca_sysfs_closedir(dir);
	sys = vhca_sysfs_close(sys);
	tree_done(&tree);
	return 0;
}

static void read_strips_exactly_one_newline(void **state)
{
	char buf[16];

	(void)state;
	assert_int_equal(vhca_sysfs_read(dir, "attr", buf, sizeof(buf)), 0);
	assert_string_equal(buf, "0x8001");
	tree_put(&tree, "devices/vf0/attr", "a\n\n");
	assert_int_equal(vhca_sysfs_read(dir, "attr", buf, sizeof(buf)), 0);
	assert_string_equal(buf, "a\n");
	tree_put(&tree, "devices/vf0/attr", "a b ");
	assert_int_equal(vhca_sysfs_read(dir, "attr", buf, sizeof(buf)), 0);
	assert_string_equal(buf, "a b ");
	tree_put(&tree, "devices/vf0/attr", "");
	assert_int_equal(vhca_sysfs_read(dir, "attr", buf, sizeof(buf)), 0);
	assert_string_equal(buf, "");
}

static void truncation_is_an_error(void **state)
{
	char buf[8] = "old", page[5000];

	(void)state;
	assert_int_equal(vhca_sysfs_read(dir, "attr", buf, 7), 0); /* six characters and the NUL */
	assert_int_equal(vhca_sysfs_read(dir, "attr", buf, 6), -E2BIG);
	assert_string_equal(buf, "0x8001"); /* left alone */
	assert_int_equal(vhca_sysfs_read(dir, "attr", buf, 0), -E2BIG);
	memset(page, 'x', sizeof(page));
	tree_put_bytes(&tree, "devices/vf0/page", page, sizeof(page));
	assert_int_equal(vhca_sysfs_read(dir, "page", page, sizeof(page)), -E2BIG);
}

static void nul_in_a_value_is_refused(void **state)
{
	char buf[16];

	(void)state;
	tree_put_bytes(&tree, "devices/vf0/attr", "ab\0c\n", 5);
	assert_int_equal(vhca_sysfs_read(dir, "attr", buf, sizeof(buf)), -EBADMSG);
}

static void typed_reader_rejects_trailing_text(void **state)
{
	static const struct {
		const char *text;
		unsigned int base;
		int rc;
	} rows[] = {{"8\n", 10, 0},
		    {"8 \n", 10, -EBADMSG},
		    {"8\n\n", 10, -EBADMSG},
		    {"8 (max)\n", 10, -EBADMSG},
		    {"\n", 10, -EBADMSG},
		    {"-1\n", 10, -EBADMSG},
		    {"8", 16, 0},
		    {"0x8\n", 0, 0},
		    {"99\n", 10, -ERANGE}};
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		value = 4711;
		tree_put(&tree, "devices/vf0/num", rows[i].text);
		assert_int_equal(vhca_sysfs_read_u64(dir, "num", rows[i].base, 16, &value),
				 rows[i].rc);
		assert_int_equal(value, rows[i].rc ? 4711 : 8);
	}
	assert_int_equal(vhca_sysfs_read_u64(dir, "none", 10, 16, &value), -ENOENT);
}

static void write_adds_a_newline_and_is_counted(void **state)
{
	(void)state;
	assert_int_equal(vhca_sysfs_writes(sys), 0);
	assert_int_equal(vhca_sysfs_write(dir, "attr", "none"), 0);
	tree_assert(&tree, "devices/vf0/attr", "none\n");
	assert_int_equal(vhca_sysfs_write(dir, "attr", ""), 0);
	tree_assert(&tree, "devices/vf0/attr", "\n");
	assert_int_equal(vhca_sysfs_writes(sys), 2);
}

/* Each read asks anew, a shorter value leaves nothing of a longer one, and all that is counted. */
static void a_kept_file_is_opened_once(void **state)
{
	struct vhca_sysfs_file *file = NULL;
	uint64_t opens = vhca_sysfs_opens(sys);
	char buf[16];

	(void)state;
	assert_int_equal(vhca_sysfs_file_open(dir, "attr", true, &file), 0);
	assert_int_equal(vhca_sysfs_file_read(file, buf, sizeof(buf)), 0);
	assert_string_equal(buf, "0x8001");
	tree_put(&tree, "devices/vf0/attr", "0x8002 and more\n");
	assert_int_equal(vhca_sysfs_file_read(file, buf, sizeof(buf)), 0);
	assert_string_equal(buf, "0x8002 and more");
	assert_int_equal(vhca_sysfs_file_write(file, "none"), 0);
	tree_assert(&tree, "devices/vf0/attr", "none\n");
	assert_int_equal(vhca_sysfs_file_read(file, buf, sizeof(buf)), 0);
	assert_string_equal(buf, "none");
	assert_int_equal(vhca_sysfs_writes(sys), 1);
	assert_int_equal(vhca_sysfs_reads(sys), 3);
	assert_int_equal(vhca_sysfs_opens(sys) - opens, 1);
	assert_null(vhca_sysfs_file_close(file));
}

static void a_kept_file_is_writable_only_if_asked_for(void **state)
{
	struct vhca_sysfs_file *file = NULL;

	(void)state;
	assert_int_equal(vhca_sysfs_file_open(dir, "none", true, &file), -ENOENT);
	assert_int_equal(vhca_sysfs_file_open(dir, "../vf0/attr", true, &file), -EINVAL);
	assert_null(file);
	assert_int_equal(vhca_sysfs_file_open(dir, "attr", false, &file), 0);
	assert_true(vhca_sysfs_file_write(file, "none") < 0);
	tree_assert(&tree, "devices/vf0/attr", "0x8001\n");
	assert_null(vhca_sysfs_file_close(file));
}

static void directories_below_have_a_life_of_their_own(void **state)
{
	struct vhca_sysfs_dir *parent = NULL, *below = NULL;
	char buf[16];

	(void)state;
	assert_int_equal(vhca_sysfs_opendir(sys, "devices", &parent), 0);
	assert_int_equal(vhca_sysfs_subdir(parent, "none", &below), -ENOENT);
	assert_int_equal(vhca_sysfs_subdir(parent, "../bus", &below), -EINVAL);
	assert_int_equal(vhca_sysfs_subdir(parent, "vf0", &below), 0);
	assert_null(vhca_sysfs_closedir(parent));
	assert_int_equal(vhca_sysfs_read(below, "attr", buf, sizeof(buf)), 0);
	assert_string_equal(buf, "0x8001");
	assert_null(vhca_sysfs_closedir(below));
}

static void write_never_creates(void **state)
{
	(void)state;
	assert_int_equal(vhca_sysfs_write(dir, "typo", "1"), -ENOENT);
	assert_false(tree_has(&tree, "devices/vf0/typo"));
	assert_int_equal(vhca_sysfs_writes(sys), 0);
}

static void errno_of_write_is_reported(void **state)
{
	(void)state;
	tree_link(&tree, "devices/vf0/full", "/dev/full");
	assert_int_equal(vhca_sysfs_write(dir, "full", "1"), -ENOSPC);
	assert_int_equal(vhca_sysfs_writes(sys), 1);
}

/* A file size limit cuts the write in the middle, as a careless store method would. */
static void short_write_is_eio(void **state)
{
	struct rlimit old, limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = (struct rlimit){.rlim_cur = 3, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(vhca_sysfs_write(dir, "attr", "12345"), -EIO);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
}

static void oversized_write_is_refused_whole(void **state)
{
	char value[5000];

	(void)state;
	memset(value, 'x', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	assert_int_equal(vhca_sysfs_write(dir, "attr", value), -E2BIG);
	tree_assert(&tree, "devices/vf0/attr", "0x8001\n");
	assert_int_equal(vhca_sysfs_writes(sys), 0);
}

static void paths_stay_below_the_root(void **state)
{
	static const char *const bad[] = {"",	       "/etc/passwd", "..", "../vf0/attr",
					  "a/../../x", "attr/.."};
	struct vhca_sysfs_dir *other = NULL;
	char buf[16];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(vhca_sysfs_opendir(sys, bad[i], &other), -EINVAL);
		assert_null(other);
		assert_int_equal(vhca_sysfs_read(dir, bad[i], buf, sizeof(buf)), -EINVAL);
		assert_int_equal(vhca_sysfs_write(dir, bad[i], "1"), -EINVAL);
		assert_int_equal(vhca_sysfs_readlink(dir, bad[i], buf, sizeof(buf)), -EINVAL);
		assert_false(vhca_sysfs_exists(dir, bad[i]));
	}
	tree_put(&tree, "devices/vf0/..attr", "x\n"); /* two dots inside a name are a name */
	assert_int_equal(vhca_sysfs_read(dir, "..attr", buf, sizeof(buf)), 0);
}

static void handle_goes_stale_with_its_device(void **state)
{
	struct vhca_sysfs_dir *again = NULL;
	char buf[16];

	(void)state;
	tree_remove(&tree, "devices/vf0");
	tree_put(&tree, "devices/vf0/attr", "another device\n");
	assert_int_equal(vhca_sysfs_read(dir, "attr", buf, sizeof(buf)), -ENOENT);
	assert_int_equal(vhca_sysfs_write(dir, "attr", "1"), -ENOENT);
	assert_false(vhca_sysfs_exists(dir, "attr"));
	tree_assert(&tree, "devices/vf0/attr", "another device\n");
	assert_int_equal(vhca_sysfs_opendir(sys, "bus/vf0", &again), 0);
	assert_int_equal(vhca_sysfs_read(again, "attr", buf, sizeof(buf)), 0);
	assert_string_equal(buf, "another device");
	assert_null(vhca_sysfs_closedir(again));
}

static void links_give_their_last_component(void **state)
{
	char buf[16];

	(void)state;
	tree_link(&tree, "devices/vf0/driver", "../../bus/pci/drivers/vfio-pci");
	tree_link(&tree, "devices/vf0/plain", "12");
	assert_int_equal(vhca_sysfs_readlink(dir, "driver", buf, sizeof(buf)), 0);
	assert_string_equal(buf, "vfio-pci");
	assert_int_equal(vhca_sysfs_readlink(dir, "plain", buf, sizeof(buf)), 0);
	assert_string_equal(buf, "12");
	assert_int_equal(vhca_sysfs_readlink(dir, "driver", buf, 8), -E2BIG);
	assert_int_equal(vhca_sysfs_readlink(dir, "none", buf, sizeof(buf)), -ENOENT);
	assert_int_equal(vhca_sysfs_readlink(dir, "attr", buf, sizeof(buf)), -EINVAL);
}

static int count(void *ctx, const char *name)
{
	unsigned int *n = ctx;

	assert_true(name[0] != '.');
	return ++*n == 3 ? -ECANCELED : 0;
}

static void list_visits_names_and_stops_on_request(void **state)
{
	unsigned int n = 0;

	(void)state;
	tree_put(&tree, "devices/vf0/pkeys/0", "");
	tree_put(&tree, "devices/vf0/pkeys/1", "");
	assert_int_equal(vhca_sysfs_list(dir, "pkeys", count, &n), 0);
	assert_int_equal(n, 2);
	n = 0;
	assert_int_equal(vhca_sysfs_list(dir, "", count, &n), 0);
	assert_int_equal(n, 2); /* attr and pkeys */
	n = 0;
	tree_put(&tree, "devices/vf0/pkeys/2", "");
	tree_put(&tree, "devices/vf0/pkeys/3", "");
	assert_int_equal(vhca_sysfs_list(dir, "pkeys", count, &n), -ECANCELED);
	assert_int_equal(n, 3);
	assert_int_equal(vhca_sysfs_list(dir, "none", count, &n), -ENOENT);
	assert_int_equal(vhca_sysfs_list(dir, "attr", count, &n), -ENOTDIR);
}

static void roots_that_are_no_directory_are_refused(void **state)
{
	struct vhca_sysfs *other = NULL;

	(void)state;
	assert_int_equal(vhca_sysfs_open(TREE_PATH(&tree, "none"), &other), -ENOENT);
	assert_int_equal(vhca_sysfs_open(TREE_PATH(&tree, "devices/vf0/attr"), &other), -ENOTDIR);
	assert_null(other);
	assert_string_equal(vhca_sysfs_default_root(), "/sys");
	assert_null(vhca_sysfs_close(NULL));
	assert_null(vhca_sysfs_closedir(NULL));
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(read_strips_exactly_one_newline),
		T(truncation_is_an_error),
		T(nul_in_a_value_is_refused),
		T(typed_reader_rejects_trailing_text),
		T(write_adds_a_newline_and_is_counted),
		T(a_kept_file_is_opened_once),
		T(a_kept_file_is_writable_only_if_asked_for),
		T(directories_below_have_a_life_of_their_own),
		T(write_never_creates),
		T(errno_of_write_is_reported),
		T(short_write_is_eio),
		T(oversized_write_is_refused_whole),
		T(paths_stay_below_the_root),
		T(handle_goes_stale_with_its_device),
		T(links_give_their_last_component),
		T(list_visits_names_and_stops_on_request),
		T(roots_that_are_no_directory_are_refused),
	};

	return cmocka_run_group_tests_name("sysfs", tests, NULL, NULL);
}
