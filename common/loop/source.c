// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the loop waits for: descriptors, timers and signals. A callback may free its own source. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <systemd/sd-event.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/loop/loop.h"
#include "common/loop/loop_private.h"

/* sd-event may delay a timer by this much to wake up less; its own default is 250 ms. */
#define TIMER_ACCURACY_US 1000

struct vhca_watch {
	struct vhca_loop *loop;
	const char *name;
	struct sd_event_source *source;
	void (*fn)(void *arg, uint32_t revents);
	void *arg;
};

struct vhca_timer {
	struct vhca_loop *loop;
	const char *name;
	struct sd_event_source *source;
	void (*fn)(void *arg);
	void *arg;
};

struct signal_source {
	struct signal_source *next;
	struct vhca_loop *loop;
	struct sd_event_source *source;
	void (*fn)(void *arg, int signo);
	void *arg;
};

/* ---- file descriptors ---- */

static int on_fd(struct sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct vhca_watch *watch = userdata;
	struct vhca_loop *loop = watch->loop;
	const char *name = watch->name;
	uint64_t start = vhca_loop_cpu_us();

	(void)s;
	(void)fd;
	watch->fn(watch->arg, revents);
	vhca_loop_account(loop, name, vhca_loop_cpu_us() - start);
	return 0;
}

int vhca_watch_new(struct vhca_loop *loop, const char *name, int fd, uint32_t events,
		   void (*fn)(void *arg, uint32_t revents), void *arg, struct vhca_watch **ret)
{
	VHCA_AUTO_FREE struct vhca_watch *watch = NULL;
	int r;

	watch = malloc(sizeof(*watch));
	if (!watch)
		return -ENOMEM;
	*watch = (struct vhca_watch){.loop = loop, .name = name, .fn = fn, .arg = arg};
	r = sd_event_add_io(loop->event, &watch->source, fd, events, on_fd, watch);
	if (r < 0)
		return r;
	*ret = vhca_steal_ptr(&watch);
	return 0;
}

int vhca_watch_set_events(struct vhca_watch *watch, uint32_t events)
{
	return sd_event_source_set_io_events(watch->source, events);
}

struct vhca_watch *vhca_watch_free(struct vhca_watch *watch)
{
	if (!watch)
		return NULL;
	(void)sd_event_source_disable_unref(watch->source);
	free(watch);
	return NULL;
}

/* ---- timers ---- */

static int on_time(struct sd_event_source *s, uint64_t usec, void *userdata)
{
	struct vhca_timer *timer = userdata;
	struct vhca_loop *loop = timer->loop;
	const char *name = timer->name;
	uint64_t start = vhca_loop_cpu_us();

	(void)s;
	(void)usec;
	timer->fn(timer->arg);
	vhca_loop_account(loop, name, vhca_loop_cpu_us() - start);
	return 0;
}

int vhca_timer_new(struct vhca_loop *loop, const char *name, void (*fn)(void *arg), void *arg,
		   struct vhca_timer **ret)
{
	VHCA_AUTO_FREE struct vhca_timer *timer = NULL;
	int r;

	timer = malloc(sizeof(*timer));
	if (!timer)
		return -ENOMEM;
	*timer = (struct vhca_timer){.loop = loop, .name = name, .fn = fn, .arg = arg};
	r = sd_event_add_time(loop->event, &timer->source, CLOCK_BOOTTIME, UINT64_MAX,
			      TIMER_ACCURACY_US, on_time, timer);
	if (r < 0)
		return r;
	r = sd_event_source_set_enabled(timer->source, SD_EVENT_OFF);
	if (r < 0) {
		(void)sd_event_source_unref(timer->source);
		return r;
	}
	*ret = vhca_steal_ptr(&timer);
	return 0;
}

void vhca_timer_arm_ms(struct vhca_timer *timer, uint64_t delay_ms)
{
	struct timespec ts;
	uint64_t now, delay;
	int r;

	/* Not sd_event_now(): that is when the round began, and a callback may come long after. */
	(void)clock_gettime(CLOCK_BOOTTIME, &ts); /* cannot fail: a valid clock and pointer */
	now = (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
	if (__builtin_mul_overflow(delay_ms, 1000, &delay) ||
	    __builtin_add_overflow(now, delay, &now))
		now = UINT64_MAX;
	r = sd_event_source_set_time(timer->source, now);
	if (r >= 0)
		r = sd_event_source_set_enabled(timer->source, SD_EVENT_ONESHOT);
	if (r < 0 && r != -ESTALE) /* the loop has ended: nothing fires any more */
		vhca_log_error("loop: timer \"%s\" cannot be armed: error %d", timer->name, -r);
}

void vhca_timer_stop(struct vhca_timer *timer)
{
	(void)sd_event_source_set_enabled(timer->source, SD_EVENT_OFF); /* cannot fail for OFF */
}

struct vhca_timer *vhca_timer_free(struct vhca_timer *timer)
{
	if (!timer)
		return NULL;
	(void)sd_event_source_disable_unref(timer->source);
	free(timer);
	return NULL;
}

/* ---- signals ---- */

static int on_signal(struct sd_event_source *s, const struct signalfd_siginfo *si, void *userdata)
{
	struct signal_source *source = userdata;
	uint64_t start = vhca_loop_cpu_us();
	char name[32];

	(void)s;
	source->fn(source->arg, (int)si->ssi_signo);
	(void)snprintf(name, sizeof(name), "signal %u", si->ssi_signo);
	vhca_loop_account(source->loop, name, vhca_loop_cpu_us() - start);
	return 0;
}

int vhca_loop_on_signal(struct vhca_loop *loop, int signo, void (*fn)(void *arg, int signo),
			void *arg)
{
	VHCA_AUTO_FREE struct signal_source *source = NULL;
	int r;

	source = malloc(sizeof(*source));
	if (!source)
		return -ENOMEM;
	*source = (struct signal_source){.next = loop->signals, .loop = loop, .fn = fn, .arg = arg};
	r = sd_event_add_signal(loop->event, &source->source, signo, on_signal, source);
	if (r < 0)
		return r;
	loop->signals = vhca_steal_ptr(&source);
	return 0;
}

void vhca_loop_free_signals(struct vhca_loop *loop)
{
	struct signal_source *source;

	while ((source = loop->signals) != NULL) {
		loop->signals = source->next;
		(void)sd_event_source_disable_unref(source->source);
		free(source);
	}
}
