/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_HOST_TRUTH_H
#define VHCA_TESTS_SIM_HOST_TRUTH_H
/*
 * What is really so on a simulated host, and the checker of DESIGN's invariants 1 to 5 on it: from
 * the adapter (tests/sim/host/hw.h), from who holds which VF, from what the SM has been told, and
 * from the agent's database, by a connection of its own. Shares no code with the product.
 *
 *   truth.c        what holds on every card, and when something is excused
 *   truth_mlx4.c   maps, QPs and the GUIDs asked for      truth_mlx5.c   vports: GUIDs, link, the keys that the SM gave
 *
 * What the agent cannot prevent (an SM that gives an index in use to somebody else, somebody's echo
 * into sysfs, a reload of the driver, an administrator who plugs a VF elsewhere) taints the VF. A
 * tainted VF is excused for some seconds of a healthy host, and only until it is in order once.
 * Everything else is a violation at once.
 */
#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/host/hw.h"

#define TRUTH_DOMAINS 5
/*
 * A free VF is looked at once a minute, one in a guest every few seconds; a guest takes its time to
 * let go.
 */
#define TRUTH_GRACE_MS 70000
#define TRUTH_GUEST_MS 20000
/* What libvirt shows is acted upon at once. */
#define TRUTH_FOREIGN_MS 5000
/* The longest back-off after a failure is half a minute. */
#define TRUTH_DELAY_MS 40000
#define TRUTH_NOBODY   (-1)
#define TRUTH_MEMBERS  64
#define TRUTH_KEYS     32 /* of a claim */

struct truth_domain {
	char uuid[37];
	const uint16_t *keys; /* of its tenant, with membership; 0 ends them */
	bool unresponsive;    /* its guest ignores unplug requests: what its QPs hold, they keep */
};

struct truth_row {
	char state[16];
	bool claimed, ending;
	char domain[37];
	uint64_t guid;
	uint16_t pkeys[TRUTH_KEYS];
	unsigned int n_pkeys;
};

/* An address that the SM has made a member of partitions. */
struct truth_member {
	uint64_t guid;
	bool bound;
	uint64_t left_ms; /* how long it may have no owner */
};

struct truth {
	struct hw hw;
	struct truth_domain domains[TRUTH_DOMAINS];
	struct {
		int user;     /* domain whose QEMU has it open */
		bool foreign; /* that domain was never given it */
		bool refused; /* it was on its way back when that domain opened it: may be taken */
		bool tainted, drifted;
		bool calling; /* a call at libvirt hangs: nobody can be asked to let go of it */
		bool asking;  /* the agent has the SM asked for an address of the VF's own */
		/* effects that were begun for another PCI address here, and have yet to write */
		unsigned int late;
		uint64_t left_ms;
	} vfs[HW_VFS];
	struct truth_row rows[HW_VFS]; /* as durable now */
	struct truth_member members[TRUTH_MEMBERS];
	const char *boot; /* rows of another boot say nothing about the adapter */
	struct sqlite3 *db;
	struct sqlite3_stmt *states, *claims;
	char violation[480]; /* the first one; "" = none */
};

void truth_open(struct truth *t, const char *database);
void truth_close(struct truth *t);
/* A transaction has become durable. */
void truth_reload(struct truth *t);
/* Something outside of the agent made VF v wrong, or could have. */
void truth_taint(struct truth *t, unsigned int v);
/* VF v is at another PCI address; `late` effects were begun for it at the old one. */
void truth_moved(struct truth *t, unsigned int v, unsigned int late);
/* An effect on VF v has written what it was to write. */
void truth_written(struct truth *t, unsigned int v);
/* A call at libvirt about VF v hangs, or has come to its end at last. */
void truth_call_hangs(struct truth *t, unsigned int v, bool hangs);
/* Something delays all repairs: an error, a restart. */
void truth_delay(struct truth *t);
/* Time has passed on a host on which the agent runs and can reach everything. */
void truth_pass(struct truth *t, uint64_t healthy_ms);

/* The same, where the SM can be reached, too. */
void truth_sm_pass(struct truth *t, uint64_t healthy_ms);
/* The SM binds or withdraws an address. */
void truth_member(struct truth *t, uint64_t guid, bool bound);

/* All that holds at every moment. */
void truth_check(struct truth *t);
/* The agent is about to write; text as written. */
void truth_before_write(struct truth *t, const struct hw_target *target, const char *text);
/* The agent has set something of VF v's vport; before is how it was. */
void truth_vport_set(struct truth *t, unsigned int v, const struct hw_vport *before);
/* The agent starts an effect: its intent must be durable. */
void truth_before_effect(struct truth *t, unsigned int v, const char *effect);
/* The QEMU of domain d opens VF v. */
void truth_opened(struct truth *t, unsigned int v, int d);
void truth_closed(struct truth *t, unsigned int v);
/* Nobody's: neither a key nor a GUID, and a link that is down. */
bool truth_clean(const struct truth *t, unsigned int v);

#endif
