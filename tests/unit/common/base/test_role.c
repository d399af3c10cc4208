/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/role.h"
#include "tests/unit/unit.h"

static void quiet(enum vhca_log_level level, const char *msg)
{
	(void)level;
	(void)msg;
}

/* In a child: builds with fault points abort at a violation, and the role cannot be taken back. */
static int in_child(void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		vhca_log_set_sink(quiet);
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	if (WIFSTOPPED(status)) {
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	return status;
}

static void *block_on_another_thread(void *arg)
{
	vhca_may_block("worker");
	return arg;
}

static void block_elsewhere(void)
{
	pthread_t thread;

	vhca_may_block("before there is a state thread");
	vhca_role_set_state_thread();
	if (pthread_create(&thread, NULL, block_on_another_thread, NULL) ||
	    pthread_join(thread, NULL) || vhca_role_violations() != 0)
		_exit(1);
}

static void block_on_state_thread(void)
{
	vhca_role_set_state_thread();
	vhca_may_block("one");
	vhca_may_block("two");
	if (vhca_role_violations() != 2)
		_exit(1);
}

static void other_threads_may_block(void **state)
{
	(void)state;
	assert_int_equal(in_child(block_elsewhere), 0);
}

static void state_thread_is_counted_or_stopped(void **state)
{
	int status;

	(void)state;
	status = in_child(block_on_state_thread);
	if (VHCA_FAULT_POINTS)
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	else
		assert_int_equal(status, 0);
}

static void fail_second_time(void)
{
	(void)setenv("VHCA_FAULT", "a.b=errno:5:2,c=errno:28,d=delay:30", 1);
	if (vhca_fault("a.b") != 0 || vhca_fault("a.b") != -EIO || vhca_fault("a.b") != 0)
		_exit(1);
	if (vhca_fault("c") != -ENOSPC || vhca_fault("c") != 0 || vhca_fault("other") != 0)
		_exit(2);
}

static void delay(void)
{
	uint64_t start = vhca_now_ms();

	(void)setenv("VHCA_FAULT", "d=delay:30", 1);
	if (vhca_fault("d") != 0 || vhca_fault("d") != 0 || vhca_now_ms() - start < 60)
		_exit(1);
}

static void kill_itself(void)
{
	(void)setenv("VHCA_FAULT", "k=kill", 1);
	(void)vhca_fault("k");
}

static void stop_itself(void)
{
	(void)setenv("VHCA_FAULT", "s/here=stop", 1);
	(void)vhca_fault_in("s", "there");
	(void)vhca_fault("s");
	(void)vhca_fault_in("s/h", "ere");
	(void)vhca_fault_in("s", "here");
}

/* A point is armed with and without what it is about. */
static void fail_in(void)
{
	(void)setenv("VHCA_FAULT", "a=errno:5:2,a/x=errno:28", 1);
	if (vhca_fault_in("a", "y") != 0 || vhca_fault_in("a", "y") != -EIO)
		_exit(1);
	if (vhca_fault_in("a", "x") != -ENOSPC || vhca_fault_in("ab", "x") != 0)
		_exit(2);
}

#define FAULT_FILE "fault-file-of-test-role"

static void put(const char *text)
{
	FILE *f = fopen(FAULT_FILE, "w");

	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		_exit(9);
}

/* Armed while it runs, and once only. */
static void fail_by_file(void)
{
	(void)setenv("VHCA_FAULT_FILE", FAULT_FILE, 1);
	(void)unlink(FAULT_FILE);
	if (vhca_fault_in("a", "x") != 0)
		_exit(1);
	put("a/x=errno:5\n");
	if (vhca_fault_in("a", "y") != 0 || vhca_fault_in("a", "x") != -EIO)
		_exit(2);
	if (vhca_fault_in("a", "x") != 0 || access(FAULT_FILE, F_OK) == 0)
		_exit(3);
}

static void misspelt(void)
{
	(void)setenv("VHCA_FAULT", "k=errrno:5", 1);
	(void)vhca_fault("other");
}

static void fault_points_act_as_armed(void **state)
{
	int status;

	(void)state;
	if (!VHCA_FAULT_POINTS) {
		(void)setenv("VHCA_FAULT", "k=kill", 1);
		assert_int_equal(vhca_fault("k"), 0); /* compiled out */
		return;
	}
	assert_int_equal(in_child(fail_second_time), 0);
	assert_int_equal(in_child(delay), 0);
	status = in_child(kill_itself);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(in_child(fail_in), 0);
	assert_int_equal(in_child(fail_by_file), 0);
	status = in_child(stop_itself);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	status = in_child(misspelt);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_threads_may_block),
		cmocka_unit_test(state_thread_is_counted_or_stopped),
		cmocka_unit_test(fault_points_act_as_armed),
	};

	return cmocka_run_group_tests_name("role", tests, NULL, NULL);
}
