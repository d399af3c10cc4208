/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/text.h"
#include "tests/unit/unit.h"

static char last[8192];
static unsigned int n_messages;
static enum vhca_log_level last_level;

static void sink(enum vhca_log_level level, const char *msg)
{
	last_level = level;
	n_messages++;
	assert_int_equal(vhca_strcpy(last, sizeof(last), msg), 0);
}

static int use_sink(void **state)
{
	(void)state;
	n_messages = 0;
	last[0] = '\0';
	vhca_log_set_level(VHCA_LOG_INFO);
	vhca_log_set_sink(sink);
	return 0;
}

static int drop_sink(void **state)
{
	(void)state;
	vhca_log_set_sink(NULL);
	return 0;
}

static void level_drops_what_is_above_it(void **state)
{
	(void)state;
	vhca_log_debug("vf0: %d", 1);
	assert_int_equal(n_messages, 0);
	vhca_log_set_level(VHCA_LOG_DEBUG);
	vhca_log_debug("vf0: %d", 2);
	assert_string_equal(last, "vf0: 2");
	assert_int_equal(last_level, VHCA_LOG_DEBUG);
	vhca_log_set_level(VHCA_LOG_ERROR);
	vhca_log_warning("vf0: 3");
	assert_int_equal(n_messages, 1);
	vhca_log_error("vf0: 4");
	assert_int_equal(n_messages, 2);
}

static void control_characters_are_escaped(void **state)
{
	(void)state;
	vhca_log_info("vm%s: x", "\n<3>forged\x1b[2J\x7f\t caf\xc3\xa9 \xc2\x9b"
				 "2J");
	assert_string_equal(last, "vm\\x0a<3>forged\\x1b[2J\\x7f\\x09 caf\xc3\xa9 \\xc2\\x9b2J: x");
}

static void long_message_is_cut_and_worst_case_fits(void **state)
{
	char text[4000];

	(void)state;
	memset(text, '\n', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	vhca_log_info("%s", text);
	assert_true(strlen(last) > 4000);
	assert_memory_equal(last, "\\x0a\\x0a", 8);
}

static void errno_survives(void **state)
{
	(void)state;
	errno = EXDEV;
	vhca_log_info("x");
	assert_int_equal(errno, EXDEV);
}

/* ---- entries of the journal ---- */

static char entry[32768];

/* In the C library's place: the datagram goes to the child's output. */
ssize_t sendto(int fd, const void *buf, size_t len, int flags, __CONST_SOCKADDR_ARG addr,
	       socklen_t addr_len)
{
	(void)fd;
	(void)addr_len;
	if (!(flags & MSG_DONTWAIT) ||
	    strcmp(addr.__sockaddr_un__->sun_path, "/run/systemd/journal/socket") != 0)
		return -1;
	return write(STDERR_FILENO, buf, len);
}

static void log_event(void)
{
	char big[4000];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	vhca_log_event(VHCA_LOG_NOTICE, "0123",
		       VHCA_LOG_FIELDS({"VHCA_WHO", "a\nVHCA_WHO=b\xc2\x9b"}, {"VHCA_BIG", big},
				       {"VHCA_CODE", ""}),
		       "vf0: a\nb");
}

static void log_warning(void)
{
	vhca_log_warning("vf0: a\nb");
}

/* Logs one message in a child whose stderr is a pipe; `journal`: JOURNAL_STREAM names that pipe. */
static void log_in_child(void (*log)(void), bool journal, char *out, size_t size)
{
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct stat st;
		char stream[64];

		(void)dup2(fds[1], STDERR_FILENO);
		(void)fstat(STDERR_FILENO, &st);
		(void)snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
			       (unsigned long long)st.st_ino + !journal);
		(void)setenv("JOURNAL_STREAM", stream, 1);
		log();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	n = read(fds[0], out, size - 1); /* one write(2) a line: one read gets it all */
	assert_true(n > 0);
	out[n] = '\0';
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static void journal_gets_priorities_and_others_a_time(void **state)
{
	char out[256];

	(void)state;
	log_in_child(log_warning, true, out, sizeof(out));
	assert_string_equal(out, "<4>vf0: a\\x0ab\n");
	log_in_child(log_warning, false, out, sizeof(out));
	assert_string_equal(out + strlen("2026-01-01T00:00:00.000Z"), " warning: vf0: a\\x0ab\n");
	assert_int_equal(out[10], 'T');
}

static void an_event_is_one_entry_and_forges_no_field(void **state)
{
	(void)state;
	log_in_child(log_event, true, entry, sizeof(entry));
	assert_string_equal(entry, "PRIORITY=5\nSYSLOG_IDENTIFIER=test_log\nMESSAGE_ID=0123\n"
				   "MESSAGE=vf0: a\\x0ab\n"
				   "VHCA_WHO=a\\x0aVHCA_WHO=b\\xc2\\x9b\nVHCA_CODE=\n");
	log_in_child(log_event, false, entry, sizeof(entry));
	assert_string_equal(entry + strlen("2026-01-01T00:00:00.000Z"), " notice: vf0: a\\x0ab\n");
}

static void a_sink_gets_an_event_as_a_line(void **state)
{
	(void)state;
	log_event();
	assert_string_equal(last, "vf0: a\\x0ab");
	assert_int_equal(last_level, VHCA_LOG_NOTICE);
	vhca_log_set_level(VHCA_LOG_WARNING);
	log_event();
	assert_int_equal(n_messages, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(level_drops_what_is_above_it, use_sink, drop_sink),
		cmocka_unit_test_setup_teardown(control_characters_are_escaped, use_sink,
						drop_sink),
		cmocka_unit_test_setup_teardown(long_message_is_cut_and_worst_case_fits, use_sink,
						drop_sink),
		cmocka_unit_test_setup_teardown(errno_survives, use_sink, drop_sink),
		cmocka_unit_test(an_event_is_one_entry_and_forges_no_field),
		cmocka_unit_test(journal_gets_priorities_and_others_a_time),
		/* Last: what stderr is, a process finds out once. */
		cmocka_unit_test_setup_teardown(a_sink_gets_an_event_as_a_line, use_sink,
						drop_sink),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
