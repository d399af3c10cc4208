/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_HOSTS_PAIR_H
#define VHCA_TESTS_SIM_HOSTS_PAIR_H
/*
 * Two hosts in memory (world.h) with the production engine and migration machine on each, and a
 * libvirt between them: domains migrate as libvirt lets them (never with a VF, the destination's
 * hook is asked first). It fails a step of the migration, or kills an agent before or after it, and
 * checks at every moment that no vGUID is requested on both hosts (unless the SM has given it to
 * one of them at a higher epoch than the other one had it at).
 */
#include "agent/migration/migration.h"
#include "tests/sim/host/world.h"
#include "tests/sim/sm/pair_sm.h"

#define PAIR_LID 10 /* of host 0's port when it begins; of host 1's: one more */

enum pair_fault { PAIR_NOTHING, PAIR_FAIL, PAIR_KILL_BEFORE, PAIR_KILL_AFTER };

struct pair {
	struct world w[2];
	struct vhca_migrations *ms[2];
	unsigned int deaths[2];
	bool fenced; /* there is an SM that fences */
	struct pair_sm sm;
	bool sm_down;
	bool unheard[2];    /* what the agent of this host says does not reach the SM */
	bool cut;	    /* the agents cannot reach each other... */
	uint32_t silent_ms; /* ...and notice it after so long */
	bool cut_handover;  /* one request is lost again and again */
	bool copy_hangs;    /* the memory copy goes on and on */
	/* stays between the hook's yes and the domain's appearance at the other host */
	bool copy_begins;
	bool copying; /* libvirt is at it, from host 0 or 1 */
	bool copy_cancelled;
	bool copy_adrift;    /* the agent that began it was killed: libvirt goes on by itself */
	bool dirty_is_known; /* libvirt says how much the guest writes... */
	uint64_t dirty_mib;  /* ...in MiB/s */
	bool copy_refused;   /* libvirt would not begin: the domain has snapshots */
	bool copy_fails;     /* ends with an error, the guest stays */
	bool held;	  /* ...paused: libvirt does not know whether it runs at the other host */
	bool autostart;	  /* domain 0 starts with host 0 or 1, where it is defined... */
	bool keeps_start; /* ...and libvirt does not let that be changed */
	enum pair_fault fault;
	unsigned int fault_at; /* at the n-th migration effect of either side */
	unsigned int victim;   /* host whose agent is killed */
	unsigned int effects;
	int kill;	      /* host to kill in the next round, -1 = none */
	int wait_ms;	      /* for events, in a round of each host */
	uint32_t alone_ms;    /* alone_ms of agents that start from now on */
	uint32_t patience_ms; /* abort_tries_ms of agents that start from now on */
	unsigned int copies;  /* completed migrations of domain 0 */
};

/* Both agents up, domain 0 with VF ib0 (0x8001) attached on host 0. */
void pair_init(struct pair *p);
struct world_mlx5;
/* The same with mlx5 adapters (an array of two), and an SM that accepts all reports. */
void pair_init_mlx5(struct pair *p, struct world_mlx5 *mlx5);
void pair_init_fenced(struct pair *p); /* the same, with an SM that fences */
/* mlx5 and an SM that fences, and gives each vGUID a LID of its own. */
void pair_init_dynamic(struct pair *p, struct world_mlx5 *mlx5);
/* pair_init_fenced(), with [sm] lid_policy = follow on both. */
void pair_init_follow(struct pair *p);
void pair_done(struct pair *p);
/* Both loops, until cond holds; false after about 15 s. */
bool pair_until(struct pair *p, bool (*cond)(const struct pair *p, const void *arg),
		const void *arg);
void pair_settle(struct pair *p);
/*
 * Starts a managed migration of domain 0 from host `from` to the other; the id, or aborts the test.
 */
struct vhca_uuid pair_migrate(struct pair *p, unsigned int from);
struct vhca_uuid pair_request(struct pair *p, unsigned int from, enum vhca_mig_mode mode);
/* Ends the test with these words if it is not so. */
void pair_must(bool ok, const char *what);
/* The agent of this host is killed and stays away until pair_revive(). */
void pair_silence(struct pair *p, unsigned int host);
void pair_revive(struct pair *p, unsigned int host);
/* Whether the agent of this host has said so, since it was started. */
bool pair_told(const struct pair *p, unsigned int host, const char *text);
/* State of the newest migration on the host; VHCA_MIG_STATE_COUNT if there is none. */
enum vhca_mig_state pair_state(const struct pair *p, unsigned int host);
/*
 * Domain 0 runs on `host` alone, with its VF attached and programmed there, and every other VF of
 * both hosts is clean and free.
 */
bool pair_at_home(const struct pair *p, unsigned int host);

#endif
