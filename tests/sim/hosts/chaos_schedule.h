/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_HOSTS_CHAOS_SCHEDULE_H
#define VHCA_TESTS_SIM_HOSTS_CHAOS_SCHEDULE_H
/*
 * A random schedule: hosts, guests, odds and a list of actions, all from a seed. Each action has a
 * number of its own to draw from, so that leaving one out leaves the others as they are.
 */
#include "tests/sim/hosts/chaos.h"

#define CHAOS_ACTIONS 100

/*
 * What is known to break invariant 3, and is left out of the others (docs/design/0006-chaos.md says
 * why).
 */
enum chaos_unsafe {
	CHAOS_SAFE,
	/* power fails, and messages to and from the SM are lost, or it is away */
	CHAOS_POWER_LOSSY,
	CHAOS_POWER_AWAY,
	CHAOS_BLIND, /* orchestrators migrate without looking */
	CHAOS_TAKEN, /* one of the nodes binds others' vGUIDs to its own port */
	CHAOS_UNSAFES
};

struct chaos_schedule {
	uint64_t seed;
	enum chaos_unsafe unsafe;
	bool leave_out[CHAOS_ACTIONS];
	enum chaos_breakage breakage;
};

/* Who is killed at which of his steps. */
struct chaos_ambush {
	int host; /* -1: nobody */
	unsigned int in;
	bool power; /* his host's fails */
	uint64_t off_ms;
};

/* What was in a schedule; printed as shares of all that were played. */
enum chaos_fault {
	CHAOS_FAULT_AWAY,
	CHAOS_FAULT_TAKEOVER, /* by the other SM */
	CHAOS_FAULT_REBUILDING,
	CHAOS_FAULT_UNAUTHORIZED,
	CHAOS_FAULT_NO_ROLE,
	CHAOS_FAULT_NOT_YOUR_PORT,
	CHAOS_FAULT_SWEEPS,
	CHAOS_FAULT_VPORT,   /* their LIDs go with them, */
	CHAOS_FAULT_DYNAMIC, /* or to their hypervisor */
	CHAOS_FAULT_MLX5,    /* all hosts are of that kind */
	CHAOS_FAULT_ATTACKER,
	CHAOS_FAULT_PORTS, /* that nobody comes for: their leases end them */
	CHAOS_FAULTS
};
extern const char *const chaos_faults[CHAOS_FAULTS];

struct chaos_play {
	struct chaos c;
	struct chaos_ambush ambush;
	unsigned int last_guest;
	enum chaos_unsafe unsafe;
	bool power; /* may fail; then the SM is always there (0006: what is known to break) */
	bool has[CHAOS_FAULTS];
};

/* True: nothing was broken, and everything came to rest; else p->c.why says what. */
bool chaos_play(struct chaos_play *p, const struct chaos_schedule *s, bool trace);

#endif
