/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/vtime.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>

#include "common/loop/loop.h"

#define START_MS 1000000u
#define WALL_MS	 1700000000000u

struct event {
	TAILQ_ENTRY(event) link; /* by time, then by age */
	enum vtime_owner owner;
	uint64_t at;
	void (*fn)(void *arg);
	void *arg;
	void (*drop)(void *arg);
};

struct vhca_timer {
	LIST_ENTRY(vhca_timer) link;
	bool armed;
	uint64_t at, age;
	void (*fn)(void *arg);
	void *arg;
};

/* What is wrapped has no argument for a context, so there is one per process. */
static struct {
	uint64_t now, age;
	bool asleep;
	TAILQ_HEAD(event_list, event) events;
	LIST_HEAD(, vhca_timer) timers;
	void (*tick)(void *arg, uint64_t ms);
	void *arg;
} vt;

/* ---- the queue ---- */

static void drop_event(struct event *e)
{
	TAILQ_REMOVE(&vt.events, e, link);
	if (e->drop)
		e->drop(e->arg);
	free(e);
}

static void drop_events(bool all)
{
	struct event *e, *next;

	for (e = TAILQ_FIRST(&vt.events); e; e = next) {
		next = TAILQ_NEXT(e, link);
		if (all || e->owner == VTIME_AGENT)
			drop_event(e);
	}
}

void vtime_reset(void (*tick)(void *arg, uint64_t ms), void *arg)
{
	if (!vt.now)
		TAILQ_INIT(&vt.events);
	drop_events(true);
	vt.now = START_MS;
	vt.age = 0;
	vt.tick = tick;
	vt.arg = arg;
}

uint64_t vtime_now(void)
{
	return vt.now;
}

void vtime_after(enum vtime_owner owner, uint64_t delay_ms, void (*fn)(void *arg), void *arg,
		 void (*drop)(void *arg))
{
	struct event *e = malloc(sizeof(*e)), *pos;

	assert(e);
	*e = (struct event){
		.owner = owner, .at = vt.now + delay_ms, .fn = fn, .arg = arg, .drop = drop};
	TAILQ_FOREACH_REVERSE(pos, &vt.events, event_list, link)
	if (pos->at <= e->at)
		break;
	if (pos)
		TAILQ_INSERT_AFTER(&vt.events, pos, e, link);
	else
		TAILQ_INSERT_HEAD(&vt.events, e, link);
}

static void pass_to(uint64_t at)
{
	uint64_t ms = at > vt.now ? at - vt.now : 0;

	vt.now += ms;
	if (ms && vt.tick)
		vt.tick(vt.arg, ms);
}

static struct vhca_timer *next_timer(void)
{
	struct vhca_timer *t, *first = NULL;

	LIST_FOREACH(t, &vt.timers, link)
	if (t->armed &&
	    (!first || t->at < first->at || (t->at == first->at && t->age < first->age)))
		first = t;
	return first;
}

static void run_event(struct event *e)
{
	void (*fn)(void *arg) = e->fn;
	void *arg = e->arg;

	pass_to(e->at);
	TAILQ_REMOVE(&vt.events, e, link);
	free(e);
	fn(arg);
}

bool vtime_run_one(uint64_t until)
{
	struct event *e = TAILQ_FIRST(&vt.events);
	struct vhca_timer *t = next_timer();

	if (e && e->at <= until && (!t || e->at <= t->at)) {
		run_event(e);
		return true;
	}
	if (t && t->at <= until) {
		pass_to(t->at);
		t->armed = false;
		t->fn(t->arg);
		return true;
	}
	pass_to(until);
	return false;
}

void vtime_drop_agent(void)
{
	drop_events(false);
}

/* The agent sleeps: the world goes on, its own events wait. */
static void sleep_ms(uint64_t ms)
{
	uint64_t until = vt.now + ms;
	struct event *e = TAILQ_FIRST(&vt.events);

	vt.asleep = true;
	while (e && e->at <= until) {
		if (e->owner == VTIME_AGENT) {
			e = TAILQ_NEXT(e, link);
			continue;
		}
		run_event(e);
		e = TAILQ_FIRST(&vt.events);
	}
	pass_to(until);
	vt.asleep = false;
}

bool vtime_asleep(void)
{
	return vt.asleep;
}

/* ---- what stands in for the production symbols ---- */

uint64_t __wrap_vhca_now_ms(void);
uint64_t __wrap_vhca_now_ms(void)
{
	return vt.now;
}

uint64_t __wrap_vhca_wall_ms(void);
uint64_t __wrap_vhca_wall_ms(void)
{
	return WALL_MS + vt.now;
}

int __wrap_nanosleep(const struct timespec *req, struct timespec *rem);
int __wrap_nanosleep(const struct timespec *req, struct timespec *rem)
{
	(void)rem;
	sleep_ms((uint64_t)req->tv_sec * 1000 + (uint64_t)req->tv_nsec / 1000000);
	return 0;
}

int __wrap_vhca_loop_post(struct vhca_loop *loop, void (*fn)(void *arg), void *arg,
			  void (*drop)(void *arg));
int __wrap_vhca_loop_post(struct vhca_loop *loop, void (*fn)(void *arg), void *arg,
			  void (*drop)(void *arg))
{
	(void)loop;
	vtime_after(VTIME_AGENT, 0, fn, arg, drop);
	return 0;
}

int __wrap_vhca_timer_new(struct vhca_loop *loop, const char *name, void (*fn)(void *arg),
			  void *arg, struct vhca_timer **ret);
int __wrap_vhca_timer_new(struct vhca_loop *loop, const char *name, void (*fn)(void *arg),
			  void *arg, struct vhca_timer **ret)
{
	struct vhca_timer *t = calloc(1, sizeof(*t));

	(void)loop;
	(void)name;
	assert(t);
	*t = (struct vhca_timer){.fn = fn, .arg = arg};
	LIST_INSERT_HEAD(&vt.timers, t, link);
	*ret = t;
	return 0;
}

void __wrap_vhca_timer_arm_ms(struct vhca_timer *t, uint64_t delay_ms);
void __wrap_vhca_timer_arm_ms(struct vhca_timer *t, uint64_t delay_ms)
{
	t->armed = true;
	t->at = vt.now + delay_ms;
	t->age = ++vt.age;
}

void __wrap_vhca_timer_stop(struct vhca_timer *t);
void __wrap_vhca_timer_stop(struct vhca_timer *t)
{
	t->armed = false;
}

struct vhca_timer *__wrap_vhca_timer_free(struct vhca_timer *t);
struct vhca_timer *__wrap_vhca_timer_free(struct vhca_timer *t)
{
	if (!t)
		return NULL;
	LIST_REMOVE(t, link);
	free(t);
	return NULL;
}
