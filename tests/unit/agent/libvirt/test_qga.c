/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a guest agent is told, and how its answers are read. The script is run by the shell of this
 * machine on a tree that looks like a guest's sysfs.
 */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/libvirt/qga.h"
#include "common/base/cleanup.h"
#include "common/http/json.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

static struct vhca_error err;

static const struct vhca_qga_ask begin = {.path = {.n = 2, .hops = {{.dev = 2, .fn = 1}, {0, 0}}}};
static const struct vhca_qga_ask status = {.pid = 1234};

/* ---- commands ---- */

static struct json_object *command_of(const struct vhca_qga_ask *ask, const char *execute)
{
	VHCA_AUTO_FREE char *text = vhca_qga_command(ask);
	struct json_object *doc = NULL, *args = NULL;
	const char *name = "";

	assert_non_null(text);
	assert_int_equal(vhca_json_parse(text, strlen(text), &doc, NULL), 0);
	assert_int_equal(vhca_json_get_string(doc, "execute", &name, NULL), 0);
	assert_string_equal(name, execute);
	assert_true(json_object_object_get_ex(doc, "arguments", &args));
	args = json_object_get(args);
	json_object_put(doc);
	return args;
}

/* The words of the command line behind /bin/sh; caller frees each. */
static void words_of(const struct vhca_dom_path *path, char *ret[5])
{
	struct vhca_qga_ask ask = {.path = *path};
	struct json_object *args = command_of(&ask, "guest-exec"), *words = NULL;
	const char *shell = "";

	assert_int_equal(vhca_json_get_string(args, "path", &shell, NULL), 0);
	assert_string_equal(shell, "/bin/sh");
	assert_true(json_object_object_get_ex(args, "arg", &words));
	assert_int_equal(json_object_array_length(words), 5);
	for (size_t i = 0; i < 5; i++)
		ret[i] = strdup(json_object_get_string(json_object_array_get_idx(words, i)));
	json_object_put(args);
}

static void free_words(char *words[5])
{
	for (size_t i = 0; i < 5; i++)
		free(words[i]);
}

static void paths_become_arguments(void **state)
{
	static const struct {
		struct vhca_dom_path path;
		const char *bridge, *slot;
	} cases[] = {
		{{.n = 1, .hops = {{.dev = 5}}}, "", "05"},
		{{.n = 2, .hops = {{.dev = 2, .fn = 1}, {0, 0}}}, "0000:00:02.1", "00"},
		{{.n = 3, .hops = {{.dev = 31}, {.dev = 0}, {.dev = 16, .fn = 7}}},
		 "0000:00:1f.0/????:??:00.0",
		 "10"},
	};
	char *words[5];

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		words_of(&cases[i].path, words);
		assert_string_equal(words[0], "-c");
		assert_string_equal(words[3], cases[i].bridge);
		assert_string_equal(words[4], cases[i].slot);
		free_words(words);
	}
}

static void no_path_is_no_command(void **state)
{
	struct vhca_qga_ask ask = {.pid = 0};

	(void)state;
	assert_null(vhca_qga_command(&ask));
	ask.path.n = VHCA_DOM_HOPS_MAX + 1;
	assert_null(vhca_qga_command(&ask));
}

static void status_names_the_program(void **state)
{
	struct json_object *args = command_of(&status, "guest-exec-status");
	uint64_t pid = 0;

	(void)state;
	assert_int_equal(vhca_json_get_u64(args, "pid", 10000, &pid, NULL), 0);
	assert_int_equal(pid, 1234);
	json_object_put(args);
}

/* ---- answers ---- */

static struct vhca_qga_answer read_good(const struct vhca_qga_ask *ask, const char *text)
{
	struct vhca_qga_answer a = {.pid = 1};

	assert_int_equal(vhca_qga_read(ask, text, &a, &err), 0);
	return a;
}

static void good_answers_are_read(void **state)
{
	struct vhca_qga_answer a = read_good(&begin, "{\"return\":{\"pid\":4711}}");

	(void)state;
	assert_int_equal(a.pid, 4711);
	assert_false(a.exited);
	a = read_good(&status, "{\"return\":{\"exited\":false}}");
	assert_int_equal(a.pid, 1234);
	assert_false(a.exited);
	a = read_good(&status, "{\"return\":{\"exitcode\":11,\"exited\":true}}\n");
	assert_true(a.exited);
	assert_int_equal(a.exit_code, 11);
	a = read_good(&status, "{\"return\":{\"exited\":true,\"signal\":9}}");
	assert_int_equal(a.exit_code, -1);
}

static void refuse(const struct vhca_qga_ask *ask, const char *text)
{
	struct vhca_qga_answer a = {.pid = 42};

	err = (struct vhca_error)VHCA_ERROR_INIT;
	if (vhca_qga_read(ask, text, &a, &err) == 0)
		fail_msg("taken: %.60s", text);
	assert_string_equal(err.code, "bad_guest_answer");
	assert_int_equal(a.pid, 42);
	assert_null(strstr(err.msg, "evil"));
}

static void bad_answers_are_refused_and_not_repeated(void **state)
{
	static const char *const to_begin[] = {
		"",
		"evil",
		"{",
		"[]",
		"null",
		"{\"return\":{}}",
		"{\"return\":[]}",
		"{\"return\":{\"pid\":0}}",
		"{\"return\":{\"pid\":-1}}",
		"{\"return\":{\"pid\":\"evil\"}}",
		"{\"return\":{\"pid\":99999999999999999999}}",
		"{\"return\":{\"pid\":1.5}}",
		"{\"error\":{\"desc\":\"evil\"}}",
		"{\"return\":{\"pid\":1}} evil",
	};
	static const char *const to_status[] = {
		"{\"return\":{\"pid\":1}}",
		"{\"return\":{\"exited\":\"evil\"}}",
		"{\"return\":{\"exited\":true,\"exitcode\":256}}",
		"{\"return\":{\"exited\":true,\"exitcode\":-1}}",
		"{\"return\":{\"exited\":true,\"exitcode\":\"evil\"}}",
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(to_begin); i++)
		refuse(&begin, to_begin[i]);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(to_status); i++)
		refuse(&status, to_status[i]);
}

static void answers_have_a_limit(void **state)
{
	VHCA_AUTO_FREE char *text = malloc(VHCA_QGA_ANSWER_MAX + 2);
	static const char good[] = "{\"return\":{\"pid\":1}}";

	(void)state;
	assert_non_null(text);
	memset(text, ' ', VHCA_QGA_ANSWER_MAX + 1);
	text[VHCA_QGA_ANSWER_MAX + 1] = '\0';
	memcpy(text, good, strlen(good));
	refuse(&begin, text);
	text[VHCA_QGA_ANSWER_MAX] = '\0';
	assert_int_equal(read_good(&begin, text).pid, 1);
	/* Deep enough to overflow a stack that follows it. */
	memset(text, '[', VHCA_QGA_ANSWER_MAX);
	refuse(&begin, text);
}

static void outcomes_are_sentences(void **state)
{
	(void)state;
	assert_non_null(strstr(vhca_qga_outcome(11), "no hot-plug slot"));
	assert_non_null(strstr(vhca_qga_outcome(0), "powered off"));
	assert_string_equal(vhca_qga_outcome(-1), vhca_qga_outcome(127));
}

/* ---- the script ---- */

/* In a guest's place: its first line leads into the tree. The result is the exit status. */
static int run_script(const char *top, const struct vhca_dom_path *path)
{
	static const char first_line[] = "cd /sys/bus/pci || exit 11\n";
	VHCA_AUTO_FREE char *script = NULL;
	char *words[5], *argv[] = {(char[]){"sh"}, (char[]){"-c"}, NULL, NULL, NULL, NULL, NULL};
	int wstatus;
	pid_t pid;

	words_of(path, words);
	assert_memory_equal(words[1], first_line, strlen(first_line));
	assert_true(asprintf(&script, "cd %s\n%s", top, words[1] + strlen(first_line)) > 0);
	argv[2] = script;
	for (unsigned int i = 2; i < 5; i++)
		argv[i + 1] = words[i];
	assert_int_equal(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ), 0);
	assert_int_equal(waitpid(pid, &wstatus, 0), pid);
	free_words(words);
	assert_true(WIFEXITED(wstatus));
	return WEXITSTATUS(wstatus);
}

static const struct vhca_dom_path behind_port = {.n = 2, .hops = {{.dev = 2, .fn = 1}, {0, 0}}};

static int setup(void **state)
{
	static struct tree t;

	tree_init(&t);
	tree_mkdir(&t, "devices/0000:00:02.1/pci_bus/0000:05");
	tree_mkdir(&t, "devices/0000:05:00.0");
	tree_put(&t, "slots/1/address", "0000:01:00\n");
	tree_put(&t, "slots/1/power", "1\n");
	tree_put(&t, "slots/3/address", "0000:05:00\n");
	tree_put(&t, "slots/3/power", "1\n");
	tree_put(&t, "slots/3/adapter", "0\n");
	*state = &t;
	return 0;
}

static int teardown(void **state)
{
	tree_done(*state);
	return 0;
}

static void its_slot_and_no_other_is_powered_off(void **state)
{
	const struct tree *t = *state;

	assert_int_equal(run_script(t->root, &behind_port), 0);
	tree_assert(t, "slots/3/power", "0\n");
	tree_assert(t, "slots/1/power", "1\n");
}

static void bridges_behind_bridges_are_followed(void **state)
{
	static const struct vhca_dom_path path = {
		.n = 3, .hops = {{.dev = 2, .fn = 1}, {0, 0}, {.dev = 7}}};
	const struct tree *t = *state;

	tree_mkdir(t, "devices/0000:00:02.1/0000:05:00.0/pci_bus/0000:06");
	tree_put(t, "slots/9/address", "0000:06:07\n");
	tree_put(t, "slots/9/power", "1\n");
	tree_put(t, "slots/9/adapter", "0\n");
	assert_int_equal(run_script(t->root, &path), 0);
	tree_assert(t, "slots/9/power", "0\n");
}

static void bus_0_needs_no_bridge(void **state)
{
	static const struct vhca_dom_path path = {.n = 1, .hops = {{.dev = 9}}};
	const struct tree *t = *state;

	tree_put(t, "slots/9/address", "0000:00:09\n");
	tree_put(t, "slots/9/power", "1\n");
	tree_put(t, "slots/9/adapter", "0\n");
	assert_int_equal(run_script(t->root, &path), 0);
	tree_assert(t, "slots/9/power", "0\n");
}

/* A kernel without hot-plug still lists slots that the firmware names. */
static void without_a_slot_nothing_is_touched(void **state)
{
	const struct tree *t = *state;

	tree_remove(t, "slots/3/power");
	assert_int_equal(run_script(t->root, &behind_port), 11);
	assert_false(tree_has(t, "slots/3/power"));
	tree_remove(t, "slots");
	assert_int_equal(run_script(t->root, &behind_port), 11);
	tree_remove(t, "devices/0000:00:02.1");
	assert_int_equal(run_script(t->root, &behind_port), 11);
}

static void a_shared_slot_stays_on(void **state)
{
	const struct tree *t = *state;

	tree_mkdir(t, "devices/0000:05:00.3");
	assert_int_equal(run_script(t->root, &behind_port), 12);
	tree_assert(t, "slots/3/power", "1\n");
}

static void a_kernel_that_refuses_is_told_apart(void **state)
{
	const struct tree *t = *state;

	tree_remove(t, "slots/3/power");
	tree_mkdir(t, "slots/3/power");
	assert_int_equal(run_script(t->root, &behind_port), 13);
}

static void what_was_not_ejected_comes_back(void **state)
{
	const struct tree *t = *state;

	tree_put(t, "slots/3/adapter", "1\n");
	assert_int_equal(run_script(t->root, &behind_port), 14);
	tree_assert(t, "slots/3/power", "1\n");
}

#define IN_TREE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_become_arguments),
		cmocka_unit_test(no_path_is_no_command),
		cmocka_unit_test(status_names_the_program),
		cmocka_unit_test(good_answers_are_read),
		cmocka_unit_test(bad_answers_are_refused_and_not_repeated),
		cmocka_unit_test(answers_have_a_limit),
		cmocka_unit_test(outcomes_are_sentences),
		IN_TREE(its_slot_and_no_other_is_powered_off),
		IN_TREE(bridges_behind_bridges_are_followed),
		IN_TREE(bus_0_needs_no_bridge),
		IN_TREE(without_a_slot_nothing_is_touched),
		IN_TREE(a_shared_slot_stays_on),
		IN_TREE(a_kernel_that_refuses_is_told_apart),
		IN_TREE(what_was_not_ejected_comes_back),
	};

	return cmocka_run_group_tests_name("qga", tests, NULL, NULL);
}
