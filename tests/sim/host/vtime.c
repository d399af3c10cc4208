/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/host/vtime.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "common/loop/loop.h"

#define START_MS 1000000u
#define WALL_MS	 1700000000000u
#define OWNERS	 16

struct event {
	TAILQ_ENTRY(event) link; /* by time, then by age */
	enum vtime_owner owner;
	uint64_t at;
	void (*fn)(void *arg);
	void *arg;
	void (*drop)(void *arg);
};

struct vhca_timer {
	TAILQ_ENTRY(vhca_timer) link; /* of the armed ones */
	enum vtime_owner owner;
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
	TAILQ_HEAD(timer_list, vhca_timer) timers; /* armed, by time and age */
	enum vtime_owner (*owner_of)(const struct vhca_loop *loop);
	enum vtime_owner running; /* who hears of the time */
	int64_t wall[OWNERS];
	uint64_t stalled[OWNERS];
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

void vtime_drop(enum vtime_owner owner)
{
	struct event *e, *next;

	for (e = TAILQ_FIRST(&vt.events); e; e = next) {
		next = TAILQ_NEXT(e, link);
		if (e->owner == owner)
			drop_event(e);
	}
}

void vtime_reset(void (*tick)(void *arg, uint64_t ms), void *arg)
{
	if (!vt.now) {
		TAILQ_INIT(&vt.events);
		TAILQ_INIT(&vt.timers);
	}
	while (TAILQ_FIRST(&vt.events))
		drop_event(TAILQ_FIRST(&vt.events));
	vt.now = START_MS;
	vt.age = 0;
	vt.owner_of = NULL;
	vt.running = VTIME_AGENT;
	memset(vt.wall, 0, sizeof(vt.wall));
	memset(vt.stalled, 0, sizeof(vt.stalled));
	vt.tick = tick;
	vt.arg = arg;
}

void vtime_set_owners(enum vtime_owner (*owner_of)(const struct vhca_loop *loop))
{
	vt.owner_of = owner_of;
}

static enum vtime_owner owner_of(const struct vhca_loop *loop)
{
	return vt.owner_of ? vt.owner_of(loop) : VTIME_AGENT;
}

void vtime_set_wall(enum vtime_owner owner, int64_t ms)
{
	vt.wall[owner] = ms;
}

uint64_t vtime_now(void)
{
	return vt.now;
}

static void insert(struct event *e)
{
	struct event *pos;

	TAILQ_FOREACH_REVERSE(pos, &vt.events, event_list, link)
	if (pos->at <= e->at)
		break;
	if (pos)
		TAILQ_INSERT_AFTER(&vt.events, pos, e, link);
	else
		TAILQ_INSERT_HEAD(&vt.events, e, link);
}

void vtime_after(enum vtime_owner owner, uint64_t delay_ms, void (*fn)(void *arg), void *arg,
		 void (*drop)(void *arg))
{
	struct event *e = malloc(sizeof(*e));

	assert(e && owner < OWNERS);
	*e = (struct event){
		.owner = owner, .at = vt.now + delay_ms, .fn = fn, .arg = arg, .drop = drop};
	insert(e);
}

static void pass_to(uint64_t at)
{
	uint64_t ms = at > vt.now ? at - vt.now : 0;

	vt.now += ms;
	if (ms && vt.tick)
		vt.tick(vt.arg, ms);
}

static void arm(struct vhca_timer *t, uint64_t at)
{
	struct vhca_timer *pos;

	if (t->armed)
		TAILQ_REMOVE(&vt.timers, t, link);
	t->armed = true;
	t->at = at;
	t->age = ++vt.age;
	TAILQ_FOREACH_REVERSE(pos, &vt.timers, timer_list, link)
	if (pos->at <= at)
		break;
	if (pos)
		TAILQ_INSERT_AFTER(&vt.timers, pos, t, link);
	else
		TAILQ_INSERT_HEAD(&vt.timers, t, link);
}

static void disarm(struct vhca_timer *t)
{
	if (t->armed)
		TAILQ_REMOVE(&vt.timers, t, link);
	t->armed = false;
}

/*
 * What has waited for the end of a stall waits for the new one: else what comes after a stall that
 * was cut short overtakes it.
 */
static void wait_anew(enum vtime_owner owner, uint64_t was, uint64_t until)
{
	struct event_list waiting = TAILQ_HEAD_INITIALIZER(waiting);
	struct event *e, *next;

	for (e = TAILQ_FIRST(&vt.events); e; e = next) {
		next = TAILQ_NEXT(e, link);
		if (e->owner != owner || e->at != was)
			continue;
		TAILQ_REMOVE(&vt.events, e, link);
		e->at = until;
		TAILQ_INSERT_TAIL(&waiting, e, link);
	}
	while ((e = TAILQ_FIRST(&waiting))) {
		TAILQ_REMOVE(&waiting, e, link);
		insert(e);
	}
}

static void arm_anew(enum vtime_owner owner, uint64_t was, uint64_t until)
{
	struct timer_list waiting = TAILQ_HEAD_INITIALIZER(waiting);
	struct vhca_timer *t, *next;

	for (t = TAILQ_FIRST(&vt.timers); t; t = next) {
		next = TAILQ_NEXT(t, link);
		if (t->owner != owner || t->at != was)
			continue;
		disarm(t);
		TAILQ_INSERT_TAIL(&waiting, t, link);
	}
	while ((t = TAILQ_FIRST(&waiting))) {
		TAILQ_REMOVE(&waiting, t, link);
		arm(t, until);
	}
}

void vtime_stall(enum vtime_owner owner, uint64_t until)
{
	uint64_t was = vt.stalled[owner];

	vt.stalled[owner] = until;
	if (was <= vt.now)
		return;
	until = until > vt.now ? until : vt.now;
	wait_anew(owner, was, until);
	arm_anew(owner, was, until);
}

static void run_event(struct event *e)
{
	void (*fn)(void *arg) = e->fn;
	void *arg = e->arg;

	pass_to(e->at);
	TAILQ_REMOVE(&vt.events, e, link);
	if (vt.stalled[e->owner] > vt.now) {
		e->at = vt.stalled[e->owner];
		insert(e);
		return;
	}
	vt.running = e->owner;
	free(e);
	fn(arg);
}

static void run_timer(struct vhca_timer *t)
{
	pass_to(t->at);
	if (vt.stalled[t->owner] > vt.now) {
		arm(t, vt.stalled[t->owner]);
		return;
	}
	disarm(t);
	vt.running = t->owner;
	t->fn(t->arg);
}

bool vtime_run_one(uint64_t until)
{
	struct event *e = TAILQ_FIRST(&vt.events);
	struct vhca_timer *t = TAILQ_FIRST(&vt.timers);

	if (e && e->at <= until && (!t || e->at <= t->at)) {
		run_event(e);
		return true;
	}
	if (t && t->at <= until) {
		run_timer(t);
		return true;
	}
	pass_to(until);
	return false;
}

void vtime_drop_agent(void)
{
	vtime_drop(VTIME_AGENT);
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

uint64_t __wrap_vhca_now_us(void);
uint64_t __wrap_vhca_now_us(void)
{
	return vt.now * 1000;
}

uint64_t __wrap_vhca_wall_ms(void);
uint64_t __wrap_vhca_wall_ms(void)
{
	return WALL_MS + vt.now + (uint64_t)vt.wall[vt.running];
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
	vtime_after(owner_of(loop), 0, fn, arg, drop);
	return 0;
}

int __wrap_vhca_timer_new(struct vhca_loop *loop, const char *name, void (*fn)(void *arg),
			  void *arg, struct vhca_timer **ret);
int __wrap_vhca_timer_new(struct vhca_loop *loop, const char *name, void (*fn)(void *arg),
			  void *arg, struct vhca_timer **ret)
{
	struct vhca_timer *t = calloc(1, sizeof(*t));

	(void)name;
	assert(t);
	*t = (struct vhca_timer){.owner = owner_of(loop), .fn = fn, .arg = arg};
	*ret = t;
	return 0;
}

void __wrap_vhca_timer_arm_ms(struct vhca_timer *t, uint64_t delay_ms);
void __wrap_vhca_timer_arm_ms(struct vhca_timer *t, uint64_t delay_ms)
{
	arm(t, vt.now + delay_ms);
}

void __wrap_vhca_timer_stop(struct vhca_timer *t);
void __wrap_vhca_timer_stop(struct vhca_timer *t)
{
	disarm(t);
}

struct vhca_timer *__wrap_vhca_timer_free(struct vhca_timer *t);
struct vhca_timer *__wrap_vhca_timer_free(struct vhca_timer *t)
{
	if (!t)
		return NULL;
	disarm(t);
	free(t);
	return NULL;
}
