/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_LIDS_MOVES_H
#define VHCA_OPENSM_LIDS_MOVES_H
/*
 * The mover from inside: one move on its way, and who has it. `waiting` has the queue, `batch`
 * those whose file is written, `active` those under way, `repairs` what was left to sweeps,
 * `figures` counts; mover.c calls them in turn. Only these files include this.
 */
#include <stdatomic.h>
#include <sys/queue.h>

#include "opensm/lids/mover.h"

struct vhca_osm_entry {
	struct vhca_osm_lid_move move;
	vhca_osm_move_fn fn;
	void *arg;
	/* queued: when it is refused, 0 = run() has not seen it; sent: when it is sent again */
	uint64_t until;
	uint64_t latest; /* sent: `until` goes no further while answers come in */
	size_t seen;	 /* draining, sent: what was missing at the last look ... */
	size_t ports;	 /* ... and so many of that at most are ports */
	unsigned int sendings;
	uint64_t asked_us, sent_us;
	bool draining;
	bool planned;		       /* queued: pair and plan are what they would be now */
	struct vhca_osm_lid_plan plan; /* nobody else changes its switches meanwhile */
	TAILQ_ENTRY(vhca_osm_entry) link;
};

TAILQ_HEAD(vhca_osm_queue, vhca_osm_entry);

struct vhca_osm_mover {
	const struct vhca_osm_lid_ops *ops;
	void *ctx;
	struct vhca_osm_gate *gate;
	struct vhca_osm_queue queue;  /* in the order in which they were asked for */
	struct vhca_osm_queue batch;  /* begin together: their file is being written */
	struct vhca_osm_queue active; /* sent, and inside the gate */
	atomic_ullong answers;	      /* of switches, to anybody's SMPs */
	atomic_ullong awaited;	/* so many, and what is under way may be at its end; 0 = nothing */
	uint64_t now;		/* during run(), which a slow disk makes long */
	bool settled;		/* nothing has ended or come since the queue was looked through */
	uint64_t planned_after; /* so many sweeps */
	struct vhca_osm_lids_promised promised; /* as of the last look at the queue */
	struct vhca_osm_lid_part parts[VHCA_OSM_LIDS_TOGETHER]; /* during one call */
	size_t lids_missing; /* blocks of dynamic LIDs under way, each once */
	struct vhca_osm_mover_stats stats;
	struct vhca_osm_lid_pair repairs[VHCA_OSM_REPAIRS_MAX];
	uint64_t resweep_at; /* only while something is repaired */
	unsigned int resweeps;
};

/* ---- move: one of them ---- */
/* A PF that is away has no LID, and a vGUID without a dynamic LID has neither that nor a PF. */
static inline bool vhca_osm_same(uint64_t a, uint64_t b)
{
	return a && a == b;
}
/* Is one of these ports or LIDs in both? But the PF of a dynamic LID only lends its ways. */
bool vhca_osm_pairs_meet(const struct vhca_osm_lid_pair *a, const struct vhca_osm_lid_pair *b);
/* Answers, and frees. In no queue any more; err NULL = done. */
void vhca_osm_entry_finish(struct vhca_osm_entry *e, const struct vhca_error *err);
/* The same of one that has not begun. */
void vhca_osm_entry_refuse(struct vhca_osm_mover *m, struct vhca_osm_entry *e,
			   const struct vhca_error *err);
/* ops->remember(), blocking: its time passes. */
int vhca_osm_mover_remember(struct vhca_osm_mover *m, const struct vhca_osm_lid_pair *pairs,
			    size_t n, bool undo);

/* ---- waiting: the queue ---- */
/*
 * Makes those that may begin together the batch. A later one never overtakes one that it meets.
 */
void vhca_osm_waiting_choose(struct vhca_osm_mover *m);
void vhca_osm_waiting_remove(struct vhca_osm_mover *m, struct vhca_osm_entry *e);
/* One has changed OpenSM's tables: who shares a port with it is planned anew. */
void vhca_osm_waiting_unplan(struct vhca_osm_mover *m, const struct vhca_osm_entry *begun);
/* For those that are held here no sweep has to wait. */
void vhca_osm_waiting_tell(struct vhca_osm_mover *m);
/* While none may begin: refuses those that wait at a standby, and those that have for too long. */
void vhca_osm_waiting_standby(struct vhca_osm_mover *m);
void vhca_osm_waiting_late(struct vhca_osm_mover *m, uint64_t now);

/* ---- batch: those that begin together ---- */
/* Writes their file, and lets them begin. It is empty then. */
void vhca_osm_batch_begin(struct vhca_osm_mover *m);

/* ---- active: those under way ---- */
/* Drains or sends one; it is remembered already. */
void vhca_osm_active_change(struct vhca_osm_mover *m, struct vhca_osm_entry *e);
/* Sends these dynamic LIDs together. The queue is empty then. */
void vhca_osm_active_give(struct vhca_osm_mover *m, struct vhca_osm_queue *lids);
/* Waits for what others have sent. */
void vhca_osm_active_watch(struct vhca_osm_mover *m, struct vhca_osm_entry *e);
void vhca_osm_active_look(struct vhca_osm_mover *m);

/* ---- repairs: what is left to sweeps ---- */
void vhca_osm_repairs_add(struct vhca_osm_mover *m, const struct vhca_osm_entry *e, uint64_t now);
/*
 * What an earlier move of the first LID has left, or of dynamic ones another one in its block; NULL
 * = nothing.
 */
const struct vhca_osm_lid_pair *vhca_osm_repairs_find(const struct vhca_osm_mover *m,
						      const struct vhca_osm_lid_pair *pair);
void vhca_osm_repairs_check(struct vhca_osm_mover *m, uint64_t now);

/* ---- figures ---- */
void vhca_osm_figures_count(struct vhca_osm_mover_stats *stats,
			    const struct vhca_osm_lid_move *move);

#endif
