/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/role.h"

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
	assert_int_equal(waitpid(pid, &status, 0), pid);
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
