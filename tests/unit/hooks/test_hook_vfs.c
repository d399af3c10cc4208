/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "hooks/vfs.h"
#include "tests/unit/unit.h"

static char dir[] = "/tmp/vhca-hook-vfs.XXXXXX";
static char path[sizeof(dir) + 8];
static const struct vhca_bdf devs[] = {{0, 1, 0, 1}, {0, 1, 0, 2}};

static int set_up(void **state)
{
	struct vhca_strbuf sb;

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	vhca_strbuf_init(&sb, path, sizeof(path));
	vhca_strbuf_add(&sb, "%s/vfs", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)unlink(path); /* the last test may have removed it */
	return rmdir(dir);
}

static int find_in(const char *text, struct vhca_bdf *ret)
{
	assert_int_equal(vhca_write_file_atomic(path, text, strlen(text), 0600), 0);
	return vhca_hook_vfs_find(path, devs, VHCA_ARRAY_SIZE(devs), ret);
}

static void listed_device_is_found(void **state)
{
	struct vhca_bdf bdf = {0};

	(void)state;
	assert_int_equal(find_in("0000:01:00.3\n0000:01:00.2\n", &bdf), 1);
	assert_int_equal(bdf.fn, 2);
	assert_int_equal(find_in("0000:01:00.1", &bdf), 1); /* no newline at the end */
	assert_int_equal(bdf.fn, 1);
}

static void others_are_not(void **state)
{
	struct vhca_bdf bdf = {.fn = 7};

	(void)state;
	assert_int_equal(find_in("", &bdf), 0);
	assert_int_equal(find_in("\n\n", &bdf), 0);
	assert_int_equal(find_in("0000:02:00.1\n0001:01:00.1\n", &bdf), 0);
	assert_int_equal(vhca_hook_vfs_find(path, NULL, 0, &bdf), 0);
	assert_int_equal(bdf.fn, 7);
}

static void missing_list_is_empty(void **state)
{
	struct vhca_bdf bdf;

	(void)state;
	(void)unlink(path);
	assert_int_equal(vhca_hook_vfs_find(path, devs, 2, &bdf), 0);
}

static void unusable_lists_are_errors(void **state)
{
	VHCA_AUTO_FREE char *big = calloc(1, VHCA_HOOK_VFS_MAX + 2);
	struct vhca_bdf bdf;

	(void)state;
	assert_non_null(big);
	memset(big, '\n', VHCA_HOOK_VFS_MAX + 1);
	assert_int_equal(find_in(big, &bdf), -EFBIG);
	assert_int_equal(find_in("0000:01:00.9\n", &bdf), -EBADMSG);
	assert_int_equal(find_in("garbage\n0000:01:00.1\n", &bdf), -EBADMSG);
	assert_int_equal(find_in("0000:01:00.1 x\n", &bdf), -EBADMSG);
	assert_int_equal(vhca_hook_vfs_find(dir, devs, 2, &bdf), -EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listed_device_is_found),
		cmocka_unit_test(others_are_not),
		cmocka_unit_test(missing_list_is_empty),
		cmocka_unit_test(unusable_lists_are_errors),
	};

	return cmocka_run_group_tests_name("hook_vfs", tests, set_up, tear_down);
}
