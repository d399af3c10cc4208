/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_LIDS_MOVER_H
#define VHCA_OPENSM_LIDS_MOVER_H
/*
 * Moves LIDs without ever waiting: vhca_osm_mover_run() does what can be done now. Moves in
 * disjoint parts of the subnet go together, others one after the other: a move begins when it
 * shares no switch that it changes, no LID and no port with one that is under way, nor with one
 * that was asked for earlier and still waits. Dynamic LIDs that wait begin together, whatever
 * switches they share.
 *
 *  state      what has happened           next
 *  requested  in the queue                no sweep, not paused, nothing in its way: remembered; 60 s
 *                                         of that: refused sweep_in_progress or moves_paused; no
 *                                         master any more: refused
 *  remembered guid2lid file has both      tables changed, SMPs queued: sent; impossible: rolled
 *             LIDs as they will be        back, refused
 *  draining   only if configured: its     they do, or one time-out is over: sent
 *             switches are to drop its
 *             LIDs
 *  found so   nothing to change           a vport's keys are there: the answer; not yet: waited
 *                                         for, then as sent
 *  sent       PortInfo to both ports, LFT all acknowledged, a vport's keys there: applied; not in
 *             blocks to the switches      time: sent again, then repairing; or, if OpenSM does not
 *                                         know a vport's newest keys, refused
 *  applied    the answer                  end
 *  repairing  the answer,                 a sweep or a late answer brings the rest: end
 *             keys_on_the_way if a vport
 *             lacks its keys; OpenSM is
 *             asked for a heavy sweep
 *
 * What is written before the first SMP decides: after a crash at any point OpenSM's next sweep
 * gives the ports the LIDs of that file and computes all tables for them. For vports the hardware
 * decides, which has changed before the move is asked for: such a sweep finds each GUID where it
 * is, and gives it the LID that it always had.
 *
 * One thread, the one that serves HTTP; answered() is any thread's.
 */
#include <stdint.h>

#include "common/base/histogram.h"
#include "opensm/lids/gate.h"
#include "opensm/lids/lid_ops.h"

#define VHCA_OSM_MOVES_MAX 1024 /* queued; more are refused */
/*
 * Of these, to one port: more than a hypervisor has VFs. None takes the places of all others, as
 * while moves are paused. What frees a LID is not counted: it is no more than what was given.
 */
#define VHCA_OSM_MOVES_TO_ONE (VHCA_OSM_MOVES_MAX / 4)
/*
 * Under way together: to begin one is a plan under OpenSM's lock, up to 20 ms in a tree of 11664
 * nodes, and the first one's answers have to be looked at long before its time-out.
 */
#define VHCA_OSM_MOVES_AT_ONCE 16
/*
 * Of dynamic LIDs, which go together though they change the same switches: four blocks' worth, so
 * that the SMPs of all are acknowledged before the first one's time-out. So many that wait are
 * looked at, too.
 */
#define VHCA_OSM_LIDS_TOGETHER 256
/*
 * Waiting ones that are looked at, from the first: each needs a plan, and after a sweep a new one.
 */
#define VHCA_OSM_MOVES_AHEAD  32
#define VHCA_OSM_MOVE_WAIT_MS 60000 /* a sweep of 11664 nodes takes up to 35 s */
/*
 * Remembered for the report, and so that who finds it so without its keys, and asks again and
 * again, begins no sweeps anew.
 */
#define VHCA_OSM_REPAIRS_MAX   64
#define VHCA_OSM_RESWEEP_EVERY 10000
#define VHCA_OSM_RESWEEPS_MAX  30

struct vhca_osm_lid_move {
	struct vhca_osm_lid_want want;
	enum vhca_osm_move_mode mode;

	/* the outcome */
	bool begun;   /* false: it was refused while it waited */
	bool changes; /* false: it was so already, pair and cost are empty */
	struct vhca_osm_lid_pair pair;
	struct vhca_osm_lid_cost cost;
	size_t missing;	      /* 0 = applied, else repairing */
	uint64_t duration_us; /* from the first SMP queued to the last acknowledgement */
};

struct vhca_osm_mover_stats {
	size_t queued, repairing;
	uint64_t applied, unchanged;
	uint64_t refused, rolled_back; /* rolled back: begun, and refused all the same */
	uint64_t repaired;	       /* of those that were left to sweeps */
	uint64_t by_mode[3];	       /* applied, by enum vhca_osm_move_mode */
	uint64_t lost;		       /* answered "repairing", or refused without their keys */
	struct vhca_histogram latency; /* of those that were sent */
	uint64_t lft_smps, port_smps, drain_smps; /* first sending only */
	uint64_t sweeps;			  /* heavy ones, to their end */
	uint64_t sweeps_waited_us;		  /* for moves and keys, all of them together */
	uint64_t oldest_us;			  /* since it was asked for; 0 = none is */
	size_t under_way, most_at_once;
	bool paused;
	uint64_t together; /* begun while another was under way */
};

/* err NULL = done; valid during the call. */
typedef void (*vhca_osm_move_fn)(void *arg, const struct vhca_osm_lid_move *move,
				 const struct vhca_error *err);

struct vhca_osm_mover;

/* ops, ctx and gate are borrowed. */
int vhca_osm_mover_new(const struct vhca_osm_lid_ops *ops, void *ctx, struct vhca_osm_gate *gate,
		       struct vhca_osm_mover **ret);
/* Refuses what is not answered yet with "ending". NULL is fine. */
struct vhca_osm_mover *vhca_osm_mover_free(struct vhca_osm_mover *m);

/*
 * Queues a move (want and mode of `want`), which is planned at its turn; fn(arg) is called exactly
 * once, by run() or free(), or by whoever queues the same for a dynamic LID that still waits: he
 * gets its place. Errors: too_many_moves, what resolve() says.
 */
int vhca_osm_mover_submit(struct vhca_osm_mover *m, const struct vhca_osm_lid_move *want,
			  vhca_osm_move_fn fn, void *arg, struct vhca_error *err);
/* The same of a move that plan() or check() has just allowed: it is not resolved once more. */
int vhca_osm_mover_queue(struct vhca_osm_mover *m, const struct vhca_osm_lid_move *want,
			 vhca_osm_move_fn fn, void *arg, struct vhca_error *err);
/* Is a dynamic LID of this vGUID waited for? Then plan() does not know of it yet. */
bool vhca_osm_mover_has_queued(const struct vhca_osm_mover *m, uint64_t vguid);
/*
 * Fills the outcome of what the same move would do now, without doing it, and the plan, which the
 * caller releases.
 */
int vhca_osm_mover_plan(struct vhca_osm_mover *m, struct vhca_osm_lid_move *move,
			struct vhca_osm_lid_plan *ret, struct vhca_error *err);
/*
 * The outcome alone. A LID that it allows to be given is promised: it counts for the next ones, in
 * the queue by want.is_new, which this sets, and before that as one of `promised`, other vGUIDs'.
 */
int vhca_osm_mover_check(struct vhca_osm_mover *m, struct vhca_osm_lid_move *move, size_t promised,
			 struct vhca_error *err);

/* now: vhca_now_ms() scale. Blocking only as ops->remember() is. */
void vhca_osm_mover_run(struct vhca_osm_mover *m, uint64_t now);
/* A switch has acknowledged a block. True: the thread is to be woken, for run(). */
bool vhca_osm_mover_answered(struct vhca_osm_mover *m);
/* When run() is to be called next; UINT64_MAX = when something is submitted or a sweep ends. */
uint64_t vhca_osm_mover_deadline(const struct vhca_osm_mover *m, uint64_t now);

/*
 * Reading: counters, how many LIDs there are, who has a LID, which LIDs somebody has, the subnet
 * (the last three take OpenSM's lock).
 */
void vhca_osm_mover_stats(const struct vhca_osm_mover *m, struct vhca_osm_mover_stats *ret);
void vhca_osm_mover_counts(const struct vhca_osm_mover *m, struct vhca_osm_lid_counts *ret);
bool vhca_osm_mover_find(const struct vhca_osm_mover *m, uint16_t lid,
			 struct vhca_osm_lid_place *ret);
void vhca_osm_mover_list(const struct vhca_osm_mover *m, struct vhca_osm_lid_set *ret);
void vhca_osm_mover_info(const struct vhca_osm_mover *m, struct vhca_osm_fabric_info *ret);
/*
 * Paused, none begins; those that are under way end. Who waits is refused 60 s after either of the
 * two. Not durable.
 */
void vhca_osm_mover_pause(struct vhca_osm_mover *m, bool paused);
/* Not a move: see lid_ops.h. */
int vhca_osm_mover_rebalance(struct vhca_osm_mover *m, struct vhca_error *err);

#endif
