// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/role.h"
#include "common/loop/loop.h"
#include "common/loop/post.h"
#include "tests/unit/unit.h"

#define THREADS		 4
#define POSTS_PER_THREAD 500

static int setup(void **state)
{
	return vhca_loop_new((struct vhca_loop **)state);
}

static int teardown(void **state)
{
	(void)vhca_loop_free(*state);
	return 0;
}

/* ---- posts ---- */

struct ordered {
	unsigned int thread, number;
};

struct poster {
	pthread_t thread;
	struct vhca_loop *loop;
	struct ordered posts[POSTS_PER_THREAD];
};

static unsigned int seen[THREADS], seen_total;

static void on_ordered(void *arg)
{
	const struct ordered *o = arg;

	assert_int_equal(o->number, seen[o->thread]);
	seen[o->thread]++;
	seen_total++;
}

static void *poster_thread(void *arg)
{
	struct poster *p = arg;

	for (unsigned int i = 0; i < POSTS_PER_THREAD; i++)
		if (vhca_loop_post(p->loop, on_ordered, &p->posts[i], NULL) < 0)
			abort();
	return NULL;
}

static void posts_of_each_thread_keep_their_order(void **state)
{
	struct poster *posters = calloc(THREADS, sizeof(*posters));

	assert_non_null(posters);
	for (unsigned int t = 0; t < THREADS; t++) {
		posters[t].loop = *state;
		for (unsigned int i = 0; i < POSTS_PER_THREAD; i++)
			posters[t].posts[i] = (struct ordered){.thread = t, .number = i};
		assert_int_equal(
			pthread_create(&posters[t].thread, NULL, poster_thread, &posters[t]), 0);
	}
	while (seen_total < THREADS * POSTS_PER_THREAD)
		assert_true(vhca_loop_once(*state, 2000) > 0);
	for (unsigned int t = 0; t < THREADS; t++)
		assert_int_equal(pthread_join(posters[t].thread, NULL), 0);
	assert_int_equal(vhca_loop_once(*state, 0), 0);
	free(posters);
}

static void count(void *arg)
{
	(*(int *)arg)++;
}

static void count_100(void *arg)
{
	*(int *)arg += 100;
}

static void queued_posts_are_dropped_with_the_loop(void **state)
{
	struct vhca_loop *loop;
	int n = 0;

	(void)state;
	assert_int_equal(vhca_loop_new(&loop), 0);
	assert_int_equal(vhca_loop_post(loop, count, &n, count_100), 0);
	assert_int_equal(vhca_loop_post(loop, count, &n, NULL), 0);
	(void)vhca_loop_free(loop);
	assert_int_equal(n, 100);
}

static void add_up(void *arg)
{
	struct {
		int *sum, n;
	} const *data = arg;

	*data->sum += data->n;
}

static void a_copy_outlives_what_it_is_of(void **state)
{
	int sum = 0;
	struct {
		int *sum, n;
	} data = {.sum = &sum, .n = 7};

	vhca_loop_post_copy(*state, add_up, &data, sizeof(data));
	data.n = 0;
	assert_int_equal(sum, 0);
	assert_true(vhca_loop_once(*state, 0) > 0);
	assert_int_equal(sum, 7);
	vhca_loop_post_copy(*state, add_up, &data, sizeof(data)); /* dropped with the loop */
}

static void a_node_taken_back_does_not_run(void **state)
{
	int a = 0, b = 0;
	struct vhca_post first = {.name = "first", .fn = count, .arg = &a};
	struct vhca_post second = {.name = "second", .fn = count, .arg = &b};

	vhca_loop_post_node(*state, &first);
	vhca_loop_post_node(*state, &second);
	assert_true(vhca_loop_unpost(*state, &second));
	assert_false(vhca_loop_unpost(*state, &second));
	vhca_loop_post_node(*state, &second); /* the tail is right again */
	assert_true(vhca_loop_unpost(*state, &first));
	assert_true(vhca_loop_once(*state, 0) > 0);
	assert_int_equal(a, 0);
	assert_int_equal(b, 1);
	vhca_loop_post_node(*state, &first);
	assert_true(vhca_loop_unpost(*state, &first));
	assert_int_equal(vhca_loop_once(*state, 0), 0); /* the wake-up was taken back too */
}

/* ---- sources ---- */

struct fd_test {
	struct vhca_watch *watch;
	int fd, calls;
	bool free_itself;
};

static void on_readable(void *arg, uint32_t revents)
{
	struct fd_test *t = arg;
	char c;

	assert_true(revents & EPOLLIN);
	assert_int_equal(read(t->fd, &c, 1), 1);
	t->calls++;
	if (t->free_itself)
		t->watch = vhca_watch_free(t->watch);
}

static void a_watch_fires_and_may_free_itself(void **state)
{
	struct fd_test t = {.calls = 0};
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	t.fd = fds[0];
	assert_int_equal(vhca_watch_new(*state, "pipe", t.fd, EPOLLIN, on_readable, &t, &t.watch),
			 0);
	assert_int_equal(write(fds[1], "abc", 3), 3);
	assert_true(vhca_loop_once(*state, 0) > 0);
	assert_int_equal(t.calls, 1);
	assert_int_equal(vhca_watch_set_events(t.watch, 0), 0);
	assert_int_equal(vhca_loop_once(*state, 0), 0);
	assert_int_equal(vhca_watch_set_events(t.watch, EPOLLIN), 0);
	t.free_itself = true;
	assert_true(vhca_loop_once(*state, 0) > 0);
	assert_int_equal(vhca_loop_once(*state, 0), 0);
	assert_int_equal(t.calls, 2);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static void timers_fire_in_order_of_time(void **state)
{
	struct vhca_timer *early, *late;
	uint64_t start = vhca_now_ms();
	int a = 0, b = 0;

	assert_int_equal(vhca_timer_new(*state, "early", count, &a, &early), 0);
	assert_int_equal(vhca_timer_new(*state, "late", count, &b, &late), 0);
	assert_int_equal(vhca_loop_once(*state, 0), 0); /* not armed by new */
	vhca_timer_arm_ms(late, 5);
	vhca_timer_arm_ms(early, 20);
	vhca_timer_arm_ms(late, 60); /* moves it */
	while (!b)
		assert_true(vhca_loop_once(*state, 2000) > 0);
	assert_int_equal(a, 1);
	assert_true(vhca_now_ms() - start >= 59);
	vhca_timer_arm_ms(early, 10);
	vhca_timer_stop(early);
	assert_int_equal(vhca_loop_once(*state, 30), 0);
	vhca_timer_arm_ms(early, UINT64_MAX); /* for ever, not at once */
	assert_int_equal(vhca_loop_once(*state, 5), 0);
	(void)vhca_timer_free(early);
	(void)vhca_timer_free(late);
}

struct exit_test {
	struct vhca_loop *loop;
	int signo;
};

static void on_signal(void *arg, int signo)
{
	struct exit_test *t = arg;

	t->signo = signo;
	vhca_loop_exit(t->loop, 7);
}

static void run_ends_with_the_code_of_exit(void **state)
{
	struct exit_test t = {.loop = *state};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	assert_int_equal(vhca_loop_on_signal(t.loop, SIGUSR1, on_signal, &t),
			 -EBUSY); /* not blocked */
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	assert_int_equal(vhca_loop_on_signal(t.loop, SIGUSR1, on_signal, &t), 0);
	assert_int_equal(kill(getpid(), SIGUSR1), 0);
	assert_int_equal(vhca_loop_run(t.loop), 7);
	assert_int_equal(t.signo, SIGUSR1);
}

static unsigned int n_messages;

static void any_message(enum vhca_log_level level, const char *msg)
{
	(void)level;
	(void)msg;
	n_messages++;
}

/* What is freed after the loop's end may still try to begin again. */
static void timer_after_the_end_is_no_error(void **state)
{
	struct vhca_timer *timer;
	int fired = 0;

	assert_int_equal(vhca_timer_new(*state, "late", count, &fired, &timer), 0);
	vhca_loop_exit(*state, 0);
	assert_int_equal(vhca_loop_run(*state), 0);
	vhca_log_set_sink(any_message);
	n_messages = 0;
	vhca_timer_arm_ms(timer, 0);
	vhca_log_set_sink(NULL);
	assert_int_equal(n_messages, 0);
	(void)vhca_timer_free(timer);
}

/* ---- time accounting ---- */

static char last_warning[256];

static void sink(enum vhca_log_level level, const char *msg)
{
	if (level == VHCA_LOG_WARNING)
		(void)snprintf(last_warning, sizeof(last_warning), "%s", msg);
}

static uint64_t cpu_ms(void)
{
	struct timespec ts;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts), 0);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void burn_60_ms(void *arg)
{
	uint64_t end = cpu_ms() + 61;

	(void)arg;
	while (cpu_ms() < end)
		;
}

static void sleep_80_ms(void *arg)
{
	const struct timespec ts = {.tv_nsec = 80000000};

	(void)arg;
	assert_int_equal(nanosleep(&ts, NULL), 0);
}

static void only_cpu_time_counts_and_slow_callbacks_are_named(void **state)
{
	struct vhca_timer *timer;

	vhca_log_set_sink(sink);
	assert_int_equal(vhca_timer_new(*state, "sleeper", sleep_80_ms, NULL, &timer), 0);
	vhca_timer_arm_ms(timer, 0);
	assert_true(vhca_loop_once(*state, 1000) > 0);
	assert_string_equal(last_warning, "");
	assert_true(vhca_loop_max_callback_us(*state) < 50000);
	(void)vhca_timer_free(timer);

	assert_int_equal(vhca_timer_new(*state, "burner", burn_60_ms, NULL, &timer), 0);
	vhca_timer_arm_ms(timer, 0);
	assert_true(vhca_loop_once(*state, 1000) > 0);
	assert_non_null(strstr(last_warning, "\"burner\""));
	assert_true(vhca_loop_max_callback_us(*state) >= 50000);
	(void)vhca_timer_free(timer);

	assert_int_equal(vhca_loop_post(*state, burn_60_ms, NULL, NULL), 0);
	assert_true(vhca_loop_once(*state, 1000) > 0);
	assert_non_null(strstr(last_warning, "\"post "));
	assert_non_null(strstr(last_warning, "test_loop+0x")); /* for addr2line */
	vhca_log_set_sink(NULL);
}

/* ---- back-off ---- */

static void backoff_doubles_up_to_its_cap(void **state)
{
	struct vhca_backoff b = {.first_ms = 100, .cap_ms = 1000};
	struct vhca_backoff huge = {.first_ms = UINT32_MAX - 1, .cap_ms = UINT32_MAX};
	const uint32_t expected[] = {100, 200, 400, 800, 1000, 1000};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_int_equal(vhca_backoff_next(&b), expected[i]);
	vhca_backoff_reset(&b);
	assert_int_equal(vhca_backoff_next(&b), 100);
	assert_int_equal(vhca_backoff_next(&huge), UINT32_MAX - 1);
	assert_int_equal(vhca_backoff_next(&huge), UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(posts_of_each_thread_keep_their_order, setup,
						teardown),
		cmocka_unit_test(queued_posts_are_dropped_with_the_loop),
		cmocka_unit_test_setup_teardown(a_copy_outlives_what_it_is_of, setup, teardown),
		cmocka_unit_test_setup_teardown(a_node_taken_back_does_not_run, setup, teardown),
		cmocka_unit_test_setup_teardown(a_watch_fires_and_may_free_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(timers_fire_in_order_of_time, setup, teardown),
		cmocka_unit_test_setup_teardown(only_cpu_time_counts_and_slow_callbacks_are_named,
						setup, teardown),
		cmocka_unit_test(backoff_doubles_up_to_its_cap),
		cmocka_unit_test_setup_teardown(run_ends_with_the_code_of_exit, setup, teardown),
		cmocka_unit_test_setup_teardown(timer_after_the_end_is_no_error, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
