/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_HOST_VTIME_H
#define VHCA_TESTS_SIM_HOST_VTIME_H
/*
 * Time that a test makes: the clock, timers, posts and sleeps of the production code run on one
 * queue of events and one thread, so that a run is decided by its seed alone and hours pass in
 * seconds. The production symbols are replaced at link time (-Wl,--wrap, see
 * tests/sim/meson.build). One queue per process.
 *
 * Events are the agent's (its timers, its posts, answers to it: a kill drops them) or the world's,
 * which also happen while the agent sleeps.
 */
#include <stdbool.h>
#include <stdint.h>

struct vhca_loop;

enum vtime_owner { VTIME_AGENT, VTIME_WORLD, VTIME_AGENTS };
/* Where there are several agents: of the i-th. */
#define VTIME_AGENT_OF(i) ((enum vtime_owner)(VTIME_AGENTS + (i)))

/*
 * Forgets everything; the clock starts again. tick(arg, ms) hears of each piece of time that
 * passes.
 */
void vtime_reset(void (*tick)(void *arg, uint64_t ms), void *arg);
/* Whose a loop is, if there are several agents; forgotten by vtime_reset(). */
void vtime_set_owners(enum vtime_owner (*owner_of)(const struct vhca_loop *loop));
uint64_t vtime_now(void); /* ms */
/* The owner's wall clock is wrong by so much from now on. */
void vtime_set_wall(enum vtime_owner owner, int64_t ms);
/* The owner's process (or its host) stands still: its events and timers wait until then. */
void vtime_stall(enum vtime_owner owner, uint64_t until);
/*
 * fn(arg) at now + delay_ms, in order among equals; drop(arg) (may be NULL) if it never comes to
 * that.
 */
void vtime_after(enum vtime_owner owner, uint64_t delay_ms, void (*fn)(void *arg), void *arg,
		 void (*drop)(void *arg));
/* Runs the earliest event that is due by `until`. False: there is none, and it is `until` now. */
bool vtime_run_one(uint64_t until);
/* The agent's only thread sleeps, where a real one would have others. */
bool vtime_asleep(void);
/* Ends the process's part: its events are dropped; its timers must be freed by their owner. */
void vtime_drop_agent(void);
void vtime_drop(enum vtime_owner owner);

#endif
