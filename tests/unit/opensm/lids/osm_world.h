/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_OPENSM_LIDS_OSM_WORLD_H
#define VHCA_TESTS_UNIT_OPENSM_LIDS_OSM_WORLD_H
/*
 * A fake OpenSM for the mover that can refuse each step, lose SMPs and sweep. Leaf switches 0, 1,
 * ... with three ports each; a move changes the leaves of its two ports, and the spine if those are
 * two. The fake itself checks what must hold of every move: what is durable before it is sent, that
 * no sweep goes on, that nobody else is at its switches.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "opensm/lids/mover.h"
#include "tests/unit/unit.h"

#define LEAVES	   20
#define WORLD_LIDS (10 * LEAVES + 400) /* the rest is free */
#define SPINE	   UINT64_C(0x1000)
#define TIMEOUT	   1000

/* Port n (0 to 2) of a leaf, and the LID that it has at the beginning. */
#define PORT(leaf, n) (UINT64_C(0x10) * (leaf) + 0xa + (n))
#define LID(leaf, n)  ((uint16_t)(10 * (leaf) + 1 + (n)))
#define PORT_A	      PORT(0, 0)
#define PORT_B	      PORT(0, 1)

struct world {
	uint64_t owner[WORLD_LIDS],
		file[WORLD_LIDS]; /* by LID: OpenSM's tables, the guid2lid file */
	size_t missing;		  /* SMPs of each move without an answer yet */
	size_t lost[LEAVES];	  /* and of those whose first port is at this leaf */
	bool keys_missing;	  /* are among those */
	bool resend_helps, refuse_remember, refuse_send, standby;
	uint64_t clock_ms, disk_ms;		     /* disk: of each file */
	uint64_t refuse_send_to;		     /* port GUID */
	int remembered, saved, sent, resent, sweeps; /* remembered: moves; saved: files written */
	int resolved, plans;
	struct vhca_osm_mover_stats saving; /* as they were while a file was written, last */
	size_t undrained;		    /* blocks of each move; 0 = it is not configured */
	bool drains_at_once;
	int drained, undone; /* moves */
	bool keys_lack;	     /* of a move that was sent */
	int keys_sent;
	bool busy[LEAVES], spine_busy;
	/* Dynamic LIDs: of each LID the PF, how many there may be, what is lost of each block. */
	uint64_t pf[WORLD_LIDS];
	size_t limit, lost_blocks[WORLD_LIDS / 64 + 1], lost_ports; /* ports: of each LID */
	int together; /* times that some were sent ... */
	size_t parts; /* ... so many, last */
	struct vhca_osm_gate gate;
	struct vhca_osm_mover *m;

	int answers;
	char code[VHCA_ERROR_CODE_MAX]; /* of the last answer; "" = done */
	bool hinted;			/* it says what to do */
	struct vhca_osm_lid_move got;
};

/* For cmocka. */
int world_setup(void **state);
int world_teardown(void **state);

void world_submit(struct world *w, uint16_t lid, uint64_t port);
/* Only if it is this port's at its turn. */
void world_submit_from(struct world *w, uint16_t lid, uint64_t from, uint64_t port);
/* As a request does that has to know before what the move would be refused for. */
void world_check_and_queue(struct world *w, uint16_t lid, uint64_t port);
/*
 * Of a PF that is away, PORT_B: the dynamic LID of a vGUID, which is not its own if another one's.
 */
void world_submit_freed(struct world *w, uint16_t lid, uint64_t vguid);
/* A dynamic LID at a PF: a port of the world's. Every switch changes. */
void world_submit_given(struct world *w, uint64_t vguid, uint64_t pf);
/* 0 = none */
uint16_t world_lid_of(const struct world *w, uint64_t vguid);
struct vhca_osm_mover_stats world_stats(const struct world *w);

/* A sweeper in a thread of its own, to be joined. */
struct world_sweeper {
	struct vhca_osm_gate *gate;
	pthread_t thread;
	atomic_bool begun;
	bool alone;
};
/* Returns when it waits for those inside; asserts that it does wait. */
void world_sweep_begin(struct world *w, struct world_sweeper *ret);

#endif
