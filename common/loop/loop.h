/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_LOOP_LOOP_H
#define VHCA_LOOP_LOOP_H
/*
 * The one event loop: a thin layer over sd-event. The thread that calls vhca_loop_run() owns all
 * state ("state thread"). Only vhca_loop_post() may be called from other threads.
 */
#include <stddef.h>
#include <stdint.h>

struct vhca_loop;
struct sd_event;

/* One loop a daemon; _free() accepts NULL and returns NULL. */
int vhca_loop_new(struct vhca_loop **ret);
struct vhca_loop *vhca_loop_free(struct vhca_loop *loop);
/* Runs until vhca_loop_exit(); returns its code or a negative errno. Marks the thread as the state
 * thread. */
int vhca_loop_run(struct vhca_loop *loop);
/* One round; timeout_ms < 0 waits for ever, 0 only dispatches what is ready. For tests. Returns >0
 * if something ran. */
int vhca_loop_once(struct vhca_loop *loop, int timeout_ms);
void vhca_loop_exit(struct vhca_loop *loop, int code);
/* For adapters (udev, verbs, curl, microhttpd) that add their own sources; borrowed. */
struct sd_event *vhca_loop_event(struct vhca_loop *loop);

/* Longest thread CPU time of one callback so far, in µs; measured for every callback made through
 * this header (timers, fds, posts, job completions). A warning names callbacks over 50 ms. */
uint64_t vhca_loop_max_callback_us(const struct vhca_loop *loop);
uint64_t vhca_loop_slow_callbacks(const struct vhca_loop *loop); /* how many those were */

/* From any thread: fn(arg) runs on the loop thread, in order of posting. Never blocks; -ENOMEM
 * only. Posts still queued when the loop is freed are dropped after drop(arg) (may be NULL). */
int vhca_loop_post(struct vhca_loop *loop, void (*fn)(void *arg), void *arg,
		   void (*drop)(void *arg));
/* fn gets a copy of data, and runs at once if there is no memory for one. Dropped with the loop. */
void vhca_loop_post_copy(struct vhca_loop *loop, void (*fn)(void *arg), void *data, size_t size);

/* ---- file descriptors ---- */
struct vhca_watch;
/* events/revents: EPOLLIN, EPOLLOUT, ... The fd is borrowed. name is a static string for
 * diagnostics. */
int vhca_watch_new(struct vhca_loop *loop, const char *name, int fd, uint32_t events,
		   void (*fn)(void *arg, uint32_t revents), void *arg, struct vhca_watch **ret);
int vhca_watch_set_events(struct vhca_watch *watch, uint32_t events);
struct vhca_watch *vhca_watch_free(struct vhca_watch *watch);

/* ---- one-shot timers (CLOCK_BOOTTIME) ---- */
struct vhca_timer;
int vhca_timer_new(struct vhca_loop *loop, const char *name, void (*fn)(void *arg), void *arg,
		   struct vhca_timer **ret); /* not armed */
/* Re-arming moves it. After the loop's end it does nothing: who is freed then may still try. */
void vhca_timer_arm_ms(struct vhca_timer *timer, uint64_t delay_ms);
void vhca_timer_stop(struct vhca_timer *timer);
struct vhca_timer *vhca_timer_free(struct vhca_timer *timer);

/* Signals are delivered as callbacks on the loop; the signal must be blocked in all threads before
 * any is started. */
int vhca_loop_on_signal(struct vhca_loop *loop, int signo, void (*fn)(void *arg, int signo),
			void *arg);

/* ---- exponential back-off, for whoever retries ---- */
struct vhca_backoff {
	uint32_t first_ms, cap_ms; /* set by the owner */
	uint32_t next_ms;	   /* 0 = start again at first_ms */
};
uint32_t vhca_backoff_next(struct vhca_backoff *b); /* delay to use now; doubles up to the cap */
void vhca_backoff_reset(struct vhca_backoff *b);

#endif
