// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A strand's thread and the state thread share the struct under one lock. A finished job travels to
 * the state thread as a post embedded in the job, so that delivery cannot fail; it stays on the
 * strand's list of finished jobs until done() runs, so that vhca_strand_free() can take it back
 * from the loop and deliver it itself.
 *
 * The thread never outlives its work by more than the idle time. After vhca_strand_free() it is an
 * orphan: the struct is then its to free, also when its job comes back from a hang much later.
 */
#include "common/loop/strand.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/cond.h"
#include "common/base/file.h"
#include "common/loop/post.h"
#include "common/loop/thread.h"

/* How long a thread waits for more work: spans the pauses within one attach, not those between two.
 */
#define IDLE_MS 1000

struct job {
	struct job *next;
	struct vhca_strand *strand;
	void (*work)(void *arg);
	void (*done)(void *arg);
	void *arg;
	struct vhca_post post;
};

struct job_list {
	struct job *head, **tail;
};

struct vhca_strand {
	struct vhca_loop *loop;
	char name[32];
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t changed;
	struct job_list queued, finished;
	size_t n_queued;
	struct job *running;
	uint64_t busy_since;
	bool has_thread, closing;
	bool abandoned; /* nobody waits for the running job any more */
	bool orphan;	/* the struct is the thread's to free */
};

static void list_init(struct job_list *list)
{
	list->head = NULL;
	list->tail = &list->head;
}

static void list_push(struct job_list *list, struct job *job)
{
	job->next = NULL;
	*list->tail = job;
	list->tail = &job->next;
}

static struct job *list_pop(struct job_list *list)
{
	struct job *job = list->head;

	if (!job)
		return NULL;
	list->head = job->next;
	if (!list->head)
		list->tail = &list->head;
	return job;
}

static void destroy(struct vhca_strand *strand)
{
	(void)pthread_cond_destroy(&strand->changed);
	(void)pthread_mutex_destroy(&strand->lock);
	free(strand);
}

int vhca_strand_new(struct vhca_loop *loop, const char *name, struct vhca_strand **ret)
{
	VHCA_AUTO_FREE struct vhca_strand *strand = NULL;
	int r;

	strand = calloc(1, sizeof(*strand));
	if (!strand)
		return -ENOMEM;
	strand->loop = loop;
	(void)snprintf(strand->name, sizeof(strand->name), "%s", name);
	list_init(&strand->queued);
	list_init(&strand->finished);
	r = vhca_cond_init(&strand->changed);
	if (r < 0)
		return r;
	r = pthread_mutex_init(&strand->lock, NULL);
	if (r != 0) {
		(void)pthread_cond_destroy(&strand->changed);
		return -r;
	}
	*ret = vhca_steal_ptr(&strand);
	return 0;
}

/* ---- the strand's thread ---- */

/* Waits for a job, at most the idle time; NULL = the thread ends. */
static struct job *wait_for_job_locked(struct vhca_strand *strand)
{
	struct timespec deadline = vhca_cond_deadline(IDLE_MS);
	int r = 0;

	while (!strand->queued.head && !strand->closing && r == 0)
		r = pthread_cond_timedwait(&strand->changed, &strand->lock, &deadline);
	if (!strand->queued.head)
		return NULL;
	strand->n_queued--;
	return list_pop(&strand->queued);
}

static void run_job_locked(struct vhca_strand *strand, struct job *job)
{
	strand->running = job;
	strand->busy_since = vhca_now_ms();
	pthread_mutex_unlock(&strand->lock);
	job->work(job->arg);
	pthread_mutex_lock(&strand->lock);
	strand->running = NULL;
	strand->busy_since = 0;
	if (strand->abandoned) {
		free(job); /* the loop may be gone by now */
		return;
	}
	list_push(&strand->finished, job);
	vhca_loop_post_node(strand->loop, &job->post);
	pthread_cond_broadcast(&strand->changed);
}

static void *strand_thread(void *arg)
{
	struct vhca_strand *strand = arg;
	struct job *job;
	bool orphan;

	pthread_mutex_lock(&strand->lock);
	while ((job = wait_for_job_locked(strand)) != NULL)
		run_job_locked(strand, job);
	strand->has_thread = false;
	orphan = strand->orphan;
	pthread_mutex_unlock(&strand->lock);
	if (orphan)
		destroy(strand);
	return NULL;
}

/* ---- the state thread ---- */

/* The post of a finished job. Posts keep their order, so it is the first of the list. */
static void deliver(void *arg)
{
	VHCA_AUTO_FREE struct job *job = arg;
	struct vhca_strand *strand = job->strand;

	pthread_mutex_lock(&strand->lock);
	(void)list_pop(&strand->finished); /* job itself */
	pthread_mutex_unlock(&strand->lock);
	if (job->done)
		job->done(job->arg);
}

static int submit_locked(struct vhca_strand *strand, struct job *job)
{
	int r;

	if (strand->closing)
		return -ESHUTDOWN;
	if (strand->n_queued >= VHCA_STRAND_MAX_JOBS)
		return -EAGAIN;
	if (!strand->has_thread) {
		r = vhca_thread_start(NULL, strand->name, strand_thread, strand);
		if (r < 0)
			return r;
		strand->has_thread = true;
	}
	list_push(&strand->queued, job);
	strand->n_queued++;
	pthread_cond_broadcast(&strand->changed);
	return 0;
}

int vhca_strand_submit(struct vhca_strand *strand, void (*work)(void *arg), void (*done)(void *arg),
		       void *arg)
{
	VHCA_AUTO_FREE struct job *job = NULL;
	int r;

	job = malloc(sizeof(*job));
	if (!job)
		return -ENOMEM;
	*job = (struct job){
		.strand = strand,
		.work = work,
		.done = done,
		.arg = arg,
		.post = {.name = strand->name, .fn = deliver, .arg = job},
	};
	pthread_mutex_lock(&strand->lock);
	r = submit_locked(strand, job);
	pthread_mutex_unlock(&strand->lock);
	if (r < 0)
		return r;
	(void)vhca_steal_ptr(&job); /* the queue's */
	return 0;
}

uint64_t vhca_strand_busy_since(const struct vhca_strand *strand)
{
	pthread_mutex_t *lock =
		(pthread_mutex_t *)&strand->lock; /* locking does not change the strand */
	uint64_t since;

	pthread_mutex_lock(lock);
	since = strand->busy_since;
	pthread_mutex_unlock(lock);
	return since;
}

static void finish_list(struct job_list *list)
{
	struct job *job;

	while ((job = list_pop(list)) != NULL) {
		if (job->done)
			job->done(job->arg);
		free(job);
	}
}

/* Empties from into to, both lists being the strand's. */
static void move_list(struct job_list *to, struct job_list *from)
{
	struct job *job;

	list_init(to);
	while ((job = list_pop(from)) != NULL)
		list_push(to, job);
}

bool vhca_strand_free(struct vhca_strand *strand, uint32_t wait_ms)
{
	const struct timespec deadline = vhca_cond_deadline(wait_ms);
	struct job_list dropped, finished;
	const struct job *job;
	bool idle, orphan;
	int r = 0;

	if (!strand)
		return true;
	pthread_mutex_lock(&strand->lock);
	strand->closing = true;
	move_list(&dropped, &strand->queued);
	strand->n_queued = 0;
	pthread_cond_broadcast(&strand->changed);
	while (strand->running && r == 0)
		r = pthread_cond_timedwait(&strand->changed, &strand->lock, &deadline);
	idle = !strand->running;
	strand->abandoned = !idle;
	move_list(&finished, &strand->finished);
	pthread_mutex_unlock(&strand->lock);

	for (job = finished.head; job; job = job->next)
		(void)vhca_loop_unpost(strand->loop, &job->post);
	finish_list(&finished);
	finish_list(&dropped);
	/* The struct is the thread's if there still is one. */
	pthread_mutex_lock(&strand->lock);
	orphan = strand->orphan = strand->has_thread;
	pthread_mutex_unlock(&strand->lock);
	if (!orphan)
		destroy(strand);
	return idle;
}
