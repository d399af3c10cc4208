/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_HOST_ISO_H
#define VHCA_TESTS_SIM_HOST_ISO_H
/*
 * A host for the isolation proof: the production engine, journal, store, effects
 * (agent/host/effect.h) and back ends on an adapter of hw.h, with a libvirt, guests and an SM that
 * are slow, forgetful or hostile as the test wants it. Everything is decided by one seed. One host
 * per process at a time (see vtime.h). docs/design/0004-isolation.md.
 *
 *   iso.c        the agent's lives; its effects; what it commits
 *   iso_door.c   the doors (sysfs, rtnetlink) on hw.h, and where the agent is disturbed: errors, its death, the world in the middle of an effect
 *   iso_virt.c   libvirt, QEMUs and guests
 *   iso_sm.c     the SM: bindings in, P_Key tables and grants out
 *   iso_walk.c   random steps of people and accidents (iso_walk.h)
 */
#include <sys/queue.h>

#include "agent/vf/engine.h"
#include "tests/sim/host/truth.h"
#include "tests/sim/kernel/sim_rtnl.h"
#include "tests/sim/sm/sim_sm.h"

#define ISO_STRANGER 0x8700 /* the first of the keys that are in the table for others */

/* Broken agents: the test of the test. */
enum iso_breakage {
	ISO_SOUND,
	ISO_NO_SCRUB,	      /* scrubbing does nothing and says that it worked */
	ISO_GUID_LEFT,	      /* nobody withdraws a GUID */
	ISO_GROUP_NOT_PROBED, /* nobody asks whether a QEMU still has the VF */
	ISO_FOREIGN_IGNORED,  /* live XML of other domains is not looked at for our VFs */
	ISO_WITHDRAWAL_LEFT,  /* the SM is not told that an address is nobody's any more */
	/* of mlx4 */
	ISO_DEFAULT_LEFT,    /* nobody unmaps virtual index 0 of what the driver made */
	ISO_REORDER_IGNORED, /* changes of the port's table are not followed */
	ISO_DEAF_LEFT,	     /* ...under a guest that does not let go */
	ISO_PLACE_LEFT,	     /* a VF is taken to be where it was first seen */
	/* of mlx5 */
	ISO_LINK_LEFT,	    /* no link is taken down */
	ISO_CACHE_LEFT,	    /* the GUID goes from firmware, and stays in the driver's memory */
	ISO_GUID_LATE,	    /* the address comes when the guest has the VF already */
	ISO_SM_NOT_AWAITED, /* nobody waits for the SM to accept a report */
};

struct iso_fault {
	unsigned int in; /* strikes at the n-th access from now; 0 = none */
	bool on_read;
	int errnum;
	bool applied, lost; /* a write: fails with effect, succeeds without */
	/*
	 * rtnetlink: no answer comes; the answer ends too early; it is without this VF; firmware
	 * has done it, and the driver does not know.
	 */
	bool silent, cut, absent, uncached;
	unsigned int hits;
};

/* What a run is made of. */
struct iso_plan {
	uint64_t seed;
	enum hw_card card;
	unsigned int n_keys;	/* of a port's P_Key table (mlx4) */
	unsigned int strangers; /* keys in it that are for others */
	enum iso_breakage broken;
};

struct iso_domain {
	bool running;
	struct vhca_dom_info info; /* without its host devices */
};

struct iso_stats {
	unsigned int steps, attaches, scrubs, kills, qps, reorders, drifts, detaches, foreign,
		faults, swaps;
};

struct iso_commit {
	TAILQ_ENTRY(iso_commit) link;
	struct iso *iso;
	struct vhca_txn *txn;
	void (*done)(void *arg, int rc);
	void *arg;
	int rc;
};

struct iso_report {
	TAILQ_ENTRY(iso_report) link;
	struct vhca_txn *txn; /* NULL: durable */
	uint64_t not_before;
	bool in_flight; /* the SM's answer is on its way */
	/* the agent knows that the SM has not taken it, or not the one that it replaced */
	bool turned_away;
	struct vhca_sm_binding binding;
};

struct iso {
	uint64_t rng;
	struct truth truth;
	struct sim_rtnl kernel; /* mlx5 */
	struct vhca_rtnl rtnl;	/* the agent's way to it */
	enum iso_breakage broken;
	struct iso_stats stats;

	/* the agent's life */
	char dir[64];
	struct vhca_conf conf;
	struct vhca_loop *loop;
	struct vhca_store *store;
	struct vhca_events *events;
	struct vhca_engine *engine; /* NULL: it is down */
	char boot_id[VHCA_UUID_STRLEN];
	struct vhca_identity_kept *kept; /* the strand's */
	uint64_t strand_ms;		 /* when the PF's strand is free again */
	unsigned int begun[HW_VFS];	 /* effects on it that wait for the strand */
	TAILQ_HEAD(, iso_commit) commits;
	uint64_t sm_answer_ms; /* completions come in order */
	unsigned int fail_commits;

	/* the door */
	struct iso_fault fault;
	unsigned int die_in,
		/* accesses until the agent dies; until the world acts in between; 0 = never */
		meddle_in;
	bool dying;
	void (*meddle)(struct iso *it);
	unsigned int writes; /* write(2) calls so far */

	/* libvirt */
	struct iso_domain domains[TRUTH_DOMAINS];
	bool virt_up;
	int listed[HW_VFS];	   /* in whose live XML */
	bool ours[HW_VFS];	   /* attached by the agent: it has our alias */
	unsigned int life[HW_VFS]; /* counts openings */
	char names[HW_VFS][VHCA_NAME_MAX];
	struct vhca_bdf guest[HW_VFS];

	/* the SM */
	bool sm_up, sm_sending, sm_writing;
	uint16_t shown[HW_KEYS]; /* the table without what a broken agent does not follow */
	TAILQ_HEAD(, iso_report) reports;
	struct sim_sm sm;
	uint64_t known[64]; /* vGUIDs, in the order in which it heard of them */
	unsigned int n_known;
};

/* ---- iso.c ---- */
void iso_init(struct iso *it, const struct iso_plan *plan);
void iso_done(struct iso *it);
uint32_t iso_random(struct iso *it, uint32_t n); /* 0..n-1 */
/* Which VF of the card is at this PCI address now. */
unsigned int iso_vf_at(const struct iso *it, struct vhca_bdf bdf);
void iso_start(struct iso *it);
void iso_kill(
	struct iso *it); /* SIGKILL: of what was queued for the store, any first part is durable */
/*
 * Everything that is due in the next ms; the checker looks after each event. Stops at a violation.
 */
void iso_run(struct iso *it, uint64_t ms);
/* fn(it, v) in delay_ms, whether the agent lives or not; if (agent), only if this one does. */
void iso_later(struct iso *it, bool agent, uint64_t delay_ms,
	       void (*fn)(struct iso *it, unsigned int v), unsigned int v);
void iso_tell_inventory(struct iso *it);

/* ---- iso_door.c ---- */
/* The host whose files are reached from now on. */
void iso_door_use(struct iso *it);
/* struct vhca_rtnl: the kernel of the host, with the same accidents. */
int iso_door_rtnl(void *it, const void *request, size_t len, void **ret_reply, size_t *ret_len);

/* ---- iso_virt.c ---- */
void iso_virt_init(struct iso *it);
void iso_virt_attach(struct iso *it, struct vhca_vf *vf);
void iso_virt_detach(struct iso *it, struct vhca_vf *vf);
void iso_virt_refresh(void *it, const struct vhca_uuid *uuid);
void iso_virt_sync(struct iso *it);
/*
 * The domain starts, with the VFs that it has claims for, and asks for one more ("ib0") with these
 * keys ("" = none), or with some.
 */
void iso_domain_boot(struct iso *it, unsigned int d, const char *partition);
void iso_domain_start(struct iso *it, unsigned int d);
void iso_domain_stop(struct iso *it, unsigned int d);
/* A host administrator plugs VF v into domain d, past the agent. */
void iso_plug(struct iso *it, unsigned int v, unsigned int d);
void iso_unplug(struct iso *it, unsigned int v);
/* A guest modifies one of its QPs, whichever; on mlx5 it loads its driver again. */
void iso_guest_acts(struct iso *it);
/* Partition text with some of the domain's keys, in some order. */
void iso_random_keys(struct iso *it, unsigned int d, char *buf, size_t size);

/* ---- iso_sm.c ---- */
/* The adapter is made. */
void iso_sm_init(struct iso *it);
void iso_sm_start(
	struct iso *it); /* the agent lives (again): durable reports go out, ports are polled */
void iso_sm_forget(struct iso *it, bool all); /* undurable reports never were */
/* Ports of vports (mlx5) have come, gone, or changed their address: the SM looks at them soon. */
void iso_sm_vports(struct iso *it);
/* The table is written anew in another order; what is in use is not spared. */
void iso_sm_reorder(struct iso *it);
void iso_sm_commit(struct iso *it, const struct vhca_txn *txn, bool durable);

#endif
