// SPDX-License-Identifier: LGPL-2.1-or-later
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/loop/strand.h"
#include "tests/unit/unit.h"

#define STRAND "pf 0000:03:00.0"

struct fixture {
	struct vhca_loop *loop;
	struct vhca_strand *strand;
	pthread_t state_thread;
	char log[64]; /* what ran: w/d and the job's letter */
};

struct job {
	struct fixture *f;
	char letter;
	sem_t *wait;	     /* work() blocks on it, or NULL */
	atomic_bool started; /* work() runs or has run */
	bool worked; /* written by work(), read by done() without a lock: TSAN proves the hand-over
		      */
	struct job *resubmit; /* submitted by done() */
	int resubmitted;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->state_thread = pthread_self();
	assert_int_equal(vhca_loop_new(&f->loop), 0);
	assert_int_equal(vhca_strand_new(f->loop, STRAND, &f->strand), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	assert_true(vhca_strand_free(f->strand, 2000));
	(void)vhca_loop_free(f->loop);
	free(f);
	return 0;
}

static void work(void *arg)
{
	struct job *j = arg;

	if (pthread_equal(pthread_self(), j->f->state_thread))
		abort();
	atomic_store(&j->started, true);
	while (j->wait && sem_wait(j->wait) < 0)
		;
	j->worked = true;
}

static void done(void *arg)
{
	struct job *j = arg;
	size_t n = strlen(j->f->log);

	assert_true(pthread_equal(pthread_self(), j->f->state_thread));
	j->f->log[n] = j->letter;
	j->f->log[n + 1] = '\0';
	if (j->resubmit)
		j->resubmitted = vhca_strand_submit(j->f->strand, work, done, j->resubmit);
}

static void run_until(struct fixture *f, size_t n_done)
{
	while (strlen(f->log) < n_done)
		assert_true(vhca_loop_once(f->loop, 2000) > 0);
}

static void sleep_ms(long ms)
{
	const struct timespec ts = {.tv_nsec = ms * 1000000};

	(void)nanosleep(&ts, NULL);
}

static void wait_started(struct job *j)
{
	unit_until(atomic_load(&j->started), sleep_ms(1));
}

static void jobs_run_in_order_off_the_state_thread(void **state)
{
	struct fixture *f = *state;
	struct job jobs[5] = {0};

	for (int i = 0; i < 5; i++) {
		jobs[i] = (struct job){.f = f, .letter = (char)('a' + i)};
		assert_int_equal(vhca_strand_submit(f->strand, work, done, &jobs[i]), 0);
	}
	run_until(f, 5);
	assert_string_equal(f->log, "abcde");
	for (int i = 0; i < 5; i++)
		assert_true(jobs[i].worked);
	assert_int_equal(vhca_strand_busy_since(f->strand), 0);
}

static void done_may_submit_the_next_job(void **state)
{
	struct fixture *f = *state;
	struct job second = {.f = f, .letter = 'b'};
	struct job first = {.f = f, .letter = 'a', .resubmit = &second};

	assert_int_equal(vhca_strand_submit(f->strand, work, done, &first), 0);
	run_until(f, 2);
	assert_string_equal(f->log, "ab");
}

static void a_hanging_strand_hangs_alone(void **state)
{
	struct fixture *f = *state;
	struct vhca_strand *other;
	uint64_t before = vhca_now_ms();
	sem_t sem;
	struct job stuck = {.f = f, .letter = 's', .wait = &sem};
	struct job queued = {.f = f, .letter = 'q'};
	struct job free_job = {.f = f, .letter = 'f'};

	assert_int_equal(sem_init(&sem, 0, 0), 0);
	assert_int_equal(vhca_strand_new(f->loop, "other", &other), 0);
	assert_int_equal(vhca_strand_submit(f->strand, work, done, &stuck), 0);
	wait_started(&stuck);
	assert_int_equal(vhca_strand_submit(f->strand, work, done, &queued), 0);
	assert_int_equal(vhca_strand_submit(other, work, done, &free_job), 0);
	run_until(f, 1);
	assert_string_equal(f->log, "f");
	assert_in_range(vhca_strand_busy_since(f->strand), before, vhca_now_ms());
	assert_int_equal(sem_post(&sem), 0);
	run_until(f, 3);
	assert_string_equal(f->log, "fsq");
	assert_true(vhca_strand_free(other, 20000));
	(void)sem_destroy(&sem);
}

static void the_queue_is_bounded(void **state)
{
	struct fixture *f = *state;
	sem_t sem;
	struct job stuck = {.f = f, .letter = 's', .wait = &sem};
	struct job extra = {.f = f};

	assert_int_equal(sem_init(&sem, 0, 0), 0);
	assert_int_equal(vhca_strand_submit(f->strand, work, NULL, &stuck), 0);
	wait_started(&stuck);
	for (int i = 0; i < VHCA_STRAND_MAX_JOBS; i++)
		assert_int_equal(vhca_strand_submit(f->strand, work, NULL, &extra), 0);
	assert_int_equal(vhca_strand_submit(f->strand, work, NULL, &extra), -EAGAIN);
	assert_int_equal(sem_post(&sem), 0);
	assert_true(vhca_strand_free(f->strand, 2000));
	f->strand = NULL;
	(void)sem_destroy(&sem);
}

/* Runs until the strand is being freed: only then does it take no more jobs. */
static void work_until_closing(void *arg)
{
	struct job *j = arg;

	atomic_store(&j->started, true);
	while (vhca_strand_submit(j->f->strand, work, NULL, NULL) != -ESHUTDOWN)
		sleep_ms(1);
	j->worked = true;
}

static void free_delivers_what_is_due_in_order(void **state)
{
	struct fixture *f = *state;
	struct job finished = {.f = f, .letter = 'a'};
	struct job running = {.f = f, .letter = 'b'};
	struct job late = {.f = f, .letter = 'x'};
	struct job queued = {.f = f, .letter = 'c', .resubmit = &late};

	assert_int_equal(vhca_strand_submit(f->strand, work, done, &finished), 0);
	assert_int_equal(vhca_strand_submit(f->strand, work_until_closing, done, &running), 0);
	wait_started(&running); /* so the first is finished, its done not yet delivered */
	assert_int_equal(vhca_strand_submit(f->strand, work, done, &queued), 0);
	assert_true(vhca_strand_free(f->strand, 2000));
	f->strand = NULL;
	assert_string_equal(f->log, "abc");
	assert_true(running.worked);
	assert_false(queued.worked);
	assert_int_equal(queued.resubmitted, -ESHUTDOWN);
	assert_int_equal(vhca_loop_once(f->loop, 0), 0); /* nothing left behind in the loop */
}

/* Threads of any strand of this program; sanitizers may have threads of their own. */
static unsigned int count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	unsigned int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		VHCA_AUTO_FREE char *comm = NULL;
		char path[300];
		size_t len;

		(void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		if (vhca_read_file(path, 64, &comm, &len) == 0 && strcmp(comm, STRAND "\n") == 0)
			n++;
	}
	(void)closedir(dir);
	return n;
}

static void wait_no_thread(void)
{
	unit_until(count_threads() == 0, sleep_ms(10));
}

static void free_leaves_a_hung_job_behind(void **state)
{
	struct fixture *f = *state;
	uint64_t start = vhca_now_ms();
	sem_t sem;
	struct job hung = {.f = f, .letter = 'h', .wait = &sem};
	struct job queued = {.f = f, .letter = 'q'};

	assert_int_equal(sem_init(&sem, 0, 0), 0);
	assert_int_equal(vhca_strand_submit(f->strand, work, done, &hung), 0);
	wait_started(&hung);
	assert_int_equal(vhca_strand_submit(f->strand, work, done, &queued), 0);
	assert_false(vhca_strand_free(f->strand, 50));
	assert_in_range(vhca_now_ms() - start, 50, 10000);
	f->strand = NULL;
	assert_string_equal(f->log, "q");
	f->loop = vhca_loop_free(f->loop);
	assert_int_equal(sem_post(&sem),
			 0); /* it comes back to a world without loop; ASAN watches */
	wait_no_thread();
	assert_string_equal(f->log, "q");
	(void)sem_destroy(&sem);
}

static void an_idle_strand_gives_up_its_thread(void **state)
{
	struct fixture *f = *state;
	struct job a = {.f = f, .letter = 'a'};
	struct job b = {.f = f, .letter = 'b'};

	wait_no_thread(); /* those of the tests before are on their way out */
	assert_int_equal(vhca_strand_submit(f->strand, work, done, &a), 0);
	run_until(f, 1);
	assert_int_equal(count_threads(), 1);
	wait_no_thread();
	assert_int_equal(vhca_strand_submit(f->strand, work, done, &b), 0);
	run_until(f, 2);
}

static void freeing_nothing_succeeds(void **state)
{
	(void)state;
	assert_true(vhca_strand_free(NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(jobs_run_in_order_off_the_state_thread, setup,
						teardown),
		cmocka_unit_test_setup_teardown(done_may_submit_the_next_job, setup, teardown),
		cmocka_unit_test_setup_teardown(a_hanging_strand_hangs_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(the_queue_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(free_delivers_what_is_due_in_order, setup,
						teardown),
		cmocka_unit_test_setup_teardown(free_leaves_a_hung_job_behind, setup, teardown),
		cmocka_unit_test_setup_teardown(an_idle_strand_gives_up_its_thread, setup,
						teardown),
		cmocka_unit_test(freeing_nothing_succeeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
