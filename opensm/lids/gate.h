/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_LIDS_GATE_H
#define VHCA_OPENSM_LIDS_GATE_H
/*
 * Moves and heavy sweeps exclude each other, and neither starves the other: a sweep that wants to
 * begin lets the moves that wait go first, but only for a short time; a move that wants to begin
 * waits for the end of the sweep.
 *
 * Two threads: the plugin's own never blocks here; OpenSM's sweeper blocks in sweep_begin() for a
 * bounded time. A light sweep changes nothing that a move touches and does not pass.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * How long a sweep lets waiting moves go first, and how long it waits after that for those in
 * progress (which end by their own deadlines; if our thread hangs on a disk, the sweep goes on
 * without it), and then for what was let in at the last moment.
 */
#define VHCA_OSM_GATE_YIELD_MS 500
#define VHCA_OSM_GATE_END_MS   5000
#define VHCA_OSM_GATE_HOLD_MS  1000

struct vhca_osm_gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool sweeping, moving, held;
	bool ending;	 /* a sweep waits for those inside: it has not begun */
	bool waiting;	 /* moves are queued */
	uint64_t sweeps; /* that are over */
	uint64_t waited_us;
};

/* Open. 0 or -errno. */
int vhca_osm_gate_init(struct vhca_osm_gate *gate);
/* Nobody is inside any more. */
void vhca_osm_gate_done(struct vhca_osm_gate *gate);

/* ---- the plugin's thread ---- */
/*
 * Lets moves begin unless a sweep is in progress. Those that go together are inside as one:
 * entering again says whether one more may begin.
 */
bool vhca_osm_gate_enter(struct vhca_osm_gate *gate);
/* The last of them has ended. */
void vhca_osm_gate_leave(struct vhca_osm_gate *gate);
/*
 * The same for something short that is no move, or a part of one. A sweep that waits for moves to
 * end waits for it, too: without their keys some would not. False in a sweep.
 */
bool vhca_osm_gate_hold(struct vhca_osm_gate *gate);
void vhca_osm_gate_release(struct vhca_osm_gate *gate);
/* Says whether more moves are queued. */
void vhca_osm_gate_queued(struct vhca_osm_gate *gate, bool waiting);
bool vhca_osm_gate_is_sweeping(struct vhca_osm_gate *gate);
/* Heavy sweeps since the start that went to their end. */
uint64_t vhca_osm_gate_sweeps(struct vhca_osm_gate *gate);
/* For how long sweeps have waited here, all of them together. */
uint64_t vhca_osm_gate_waited_us(struct vhca_osm_gate *gate);

/* ---- OpenSM's sweeper ---- */
/* Blocking, see above. False if moves were still in progress. */
bool vhca_osm_gate_sweep_begin(struct vhca_osm_gate *gate);
void vhca_osm_gate_sweep_end(struct vhca_osm_gate *gate);

#endif
