/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

static struct tree tree;

static int setup(void **state)
{
	(void)state;
	tree_init(&tree);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	tree_done(&tree);
	return 0;
}

static void read_gives_all_or_efbig(void **state)
{
	VHCA_AUTO_FREE char *text = NULL;
	size_t len = 0;

	(void)state;
	tree_put_bytes(&tree, "f", "ab\0cd", 5);
	assert_int_equal(vhca_read_file(TREE_PATH(&tree, "f"), 4, &text, &len), -EFBIG);
	assert_null(text);
	assert_int_equal(vhca_read_file(TREE_PATH(&tree, "f"), 5, &text, &len), 0);
	assert_int_equal(len, 5);
	assert_memory_equal(text, "ab\0cd", 6);
	assert_int_equal(vhca_read_file(TREE_PATH(&tree, "none"), 5, &text, &len), -ENOENT);
	assert_int_equal(vhca_read_file(tree.root, 5, &text, &len), -EISDIR);
}

static void state_is_text(void **state)
{
	VHCA_AUTO_FREE char *text = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	assert_int_equal(vhca_read_state(TREE_PATH(&tree, "none"), 5, &text, &err), -ENOENT);
	assert_int_equal(err.kind, VHCA_ERR_NONE);
	tree_put_bytes(&tree, "f", "ab\0cd", 5);
	assert_true(vhca_read_state(TREE_PATH(&tree, "f"), 4, &text, &err) < 0);
	assert_string_equal(err.code, "state_unreadable");
	assert_true(vhca_read_state(TREE_PATH(&tree, "f"), 5, &text, &err) < 0);
	assert_string_equal(err.code, "state_damaged");
	assert_null(text);
	tree_put(&tree, "f", "abcd");
	assert_int_equal(vhca_read_state(TREE_PATH(&tree, "f"), 5, &text, &err), 0);
	assert_string_equal(text, "abcd");
}

static void read_grows_over_its_first_buffer(void **state)
{
	VHCA_AUTO_FREE char *text = NULL;
	char big[20000];
	size_t len = 0;

	(void)state;
	memset(big, 'x', sizeof(big));
	tree_put_bytes(&tree, "big", big, sizeof(big));
	assert_int_equal(vhca_read_file(TREE_PATH(&tree, "big"), sizeof(big), &text, &len), 0);
	assert_int_equal(len, sizeof(big));
	assert_memory_equal(text, big, sizeof(big));
}

static unsigned int count_entries(void)
{
	DIR *d = opendir(tree.root);
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n - 2;
}

static void atomic_write_replaces_the_inode_and_leaves_nothing_else(void **state)
{
	struct stat before, after;
	const char *path = TREE_PATH(&tree, "f");

	(void)state;
	assert_int_equal(vhca_write_file_atomic(path, "one", 3, 0640), 0);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(before.st_mode & 07777, 0640);
	assert_int_equal(vhca_write_file_atomic(path, "second", 6, 0600), 0);
	assert_int_equal(stat(path, &after), 0);
	assert_true(before.st_ino != after.st_ino); /* who had it open still reads "one" */
	assert_int_equal(after.st_mode & 07777, 0600);
	tree_assert(&tree, "f", "second");
	assert_int_equal(count_entries(), 1);
}

static void atomic_write_that_fails_leaves_nothing(void **state)
{
	(void)state;
	tree_put(&tree, "dir/inner", "x");
	assert_int_equal(vhca_write_file_atomic(TREE_PATH(&tree, "dir"), "x", 1, 0600), -EISDIR);
	assert_int_equal(count_entries(), 1);
	assert_int_equal(vhca_write_file_atomic(TREE_PATH(&tree, "no/f"), "x", 1, 0600), -ENOENT);
}

/* Whoever copies a state file to its side gives it a name of his own, of six letters, too. */
static void what_a_killed_writer_left_is_swept_and_nothing_else(void **state)
{
	static const char *const left[] = {"f.tmp-aB3xY9", "f.tmp-000000"};
	static const char *const kept[] = {"f",
					   "f.backup",
					   "f.tmp-",
					   "f.tmp-aB3xY",
					   "f.tmp-aB3xY99",
					   "f.tmp-aB3x.9",
					   "other.tmp-aB3xY9",
					   "ff.tmp-aB3xY9",
					   "victim"};
	const struct timeval long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(left); i++)
		tree_put(&tree, left[i], "half");
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(kept); i++)
		tree_put(&tree, kept[i], "x");
	tree_link(&tree, "f.tmp-Link00", "victim");
	tree_put(&tree, "f.tmp-Direct/inner", "x");
	assert_int_equal(vhca_sweep_leftovers(TREE_PATH(&tree, "f"), 600), 0);
	assert_int_equal(utimes(TREE_PATH(&tree, left[0]), long_ago), 0);
	assert_int_equal(utimes(TREE_PATH(&tree, kept[0]), long_ago), 0);
	assert_int_equal(vhca_sweep_leftovers(TREE_PATH(&tree, "f"), 600), 1);
	assert_true(tree_has(&tree, left[1]));
	assert_int_equal(vhca_sweep_leftovers(TREE_PATH(&tree, "f"), 0), 1);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(left); i++)
		assert_false(tree_has(&tree, left[i]));
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(kept); i++)
		tree_assert(&tree, kept[i], "x");
	tree_assert(&tree, "f.tmp-Link00", "x");
	assert_true(tree_has(&tree, "f.tmp-Direct/inner"));
	assert_int_equal(vhca_sweep_leftovers(TREE_PATH(&tree, "f"), 0), 0);
	assert_int_equal(vhca_sweep_leftovers(TREE_PATH(&tree, "no/f"), 0), -ENOENT);
}

/* The names that are swept are those that are written. */
static void a_killed_writers_file_is_swept(void **state)
{
	const char *path = TREE_PATH(&tree, "f");
	const struct rlimit tiny = {.rlim_cur = 1, .rlim_max = 1};
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) { /* killed in the middle of it: SIGXFSZ, which some parents ignore */
		(void)signal(SIGXFSZ, SIG_DFL);
		(void)setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		(void)setrlimit(RLIMIT_FSIZE, &tiny);
		(void)vhca_write_file_atomic(path, "abcdefgh", 8, 0600);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
	assert_false(tree_has(&tree, "f"));
	assert_int_equal(count_entries(), 1);
	assert_int_equal(vhca_sweep_leftovers(path, 0), 1);
	assert_int_equal(count_entries(), 0);
}

static void mkdir_p_makes_all_parents(void **state)
{
	(void)state;
	assert_int_equal(vhca_mkdir_p(TREE_PATH(&tree, "a/b//c/"), 0755), 0);
	assert_true(tree_has(&tree, "a/b/c"));
	assert_int_equal(vhca_mkdir_p(TREE_PATH(&tree, "a/b/c"), 0755), 0);
	tree_put(&tree, "file", "");
	assert_int_equal(vhca_mkdir_p(TREE_PATH(&tree, "file"), 0755), -ENOTDIR);
	assert_int_equal(vhca_mkdir_p(TREE_PATH(&tree, "file/x"), 0755), -ENOTDIR);
	assert_int_equal(vhca_mkdir_p("", 0755), -ENOENT);
}

static void clocks_move_forward(void **state)
{
	uint64_t before = vhca_now_ms();

	(void)state;
	(void)usleep(3000);
	assert_true(vhca_now_ms() > before);
	assert_true(vhca_wall_ms() > UINT64_C(1600000000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(read_gives_all_or_efbig, setup, teardown),
		cmocka_unit_test_setup_teardown(state_is_text, setup, teardown),
		cmocka_unit_test_setup_teardown(read_grows_over_its_first_buffer, setup, teardown),
		cmocka_unit_test_setup_teardown(
			atomic_write_replaces_the_inode_and_leaves_nothing_else, setup, teardown),
		cmocka_unit_test_setup_teardown(atomic_write_that_fails_leaves_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_a_killed_writer_left_is_swept_and_nothing_else,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_killed_writers_file_is_swept, setup, teardown),
		cmocka_unit_test_setup_teardown(mkdir_p_makes_all_parents, setup, teardown),
		cmocka_unit_test(clocks_move_forward),
	};

	return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
