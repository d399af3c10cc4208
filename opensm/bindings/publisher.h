/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_BINDINGS_PUBLISHER_H
#define VHCA_OPENSM_BINDINGS_PUBLISHER_H
/*
 * When to write the partition file, and when to ask for a sweep because OpenSM could not be had to
 * apply it without one. Pure bookkeeping on a clock that is passed in.
 *
 * A file written has a generation. OpenSM reads the file between HEAVY_SWEEP_DONE (which means:
 * discovery is done) and SUBNET_UP; what was the current generation at the former is in effect at
 * the latter. A generation that does not come into effect in time is asked for again, since OpenSM
 * leaves a sweep early in many cases without a word.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A burst ends when it was quiet for this long, or after the longer time at the latest. */
#define VHCA_OSM_QUIET_MS 30
#define VHCA_OSM_BURST_MS 300
/* A sweep that was asked for starts within milliseconds, or after the one in progress. */
#define VHCA_OSM_RESWEEP_MS 5000
/* Once it reads the file, the rest took 35 s on 11664 nodes. */
#define VHCA_OSM_SWEEP_MAX_MS 120000
/*
 * Ports that have been sent their keys without a sweep answer sooner, or a sweep has to do it.
 * OpenSM sends four times, by default 200 ms apart.
 */
#define VHCA_OSM_ANSWER_MS 2000
/* How often it is looked whether they have: answers raise no event. */
#define VHCA_OSM_LOOK_MS 5
/* Next attempt after a failed write. */
#define VHCA_OSM_REWRITE_MS 1000

struct vhca_osm_publisher {
	uint64_t first_change, last_change; /* of what is not in the file yet; 0 = none */
	uint64_t retry_at;		    /* after a failed write; 0 = none */
	uint64_t asked;	  /* when the last sweep was asked for, or the file applied without one */
	uint64_t look_at; /* applied without one: when to look for answers; 0 = not */
	uint64_t applied; /* generation that was applied last without one */
	bool postponed;	  /* to be applied when the sweep in progress is over */
	atomic_uint_fast64_t written;	/* generation of the file */
	atomic_uint_fast64_t read;	/* generation that the last discovery ended with */
	atomic_uint_fast64_t in_effect; /* generation in effect */
	atomic_bool discovering;	/* the sweep in progress has not read the file yet */
	atomic_bool swept;		/* a sweep is over; apply_due() has not seen it yet */
};

/* Something changed that the file has to show. */
void vhca_osm_publisher_changed(struct vhca_osm_publisher *p, uint64_t now);
/* Is it time to write? */
bool vhca_osm_publisher_write_due(const struct vhca_osm_publisher *p, uint64_t now);
/*
 * The outcome of that: failed (try later), or the file is up to date; `replaced` = its content is
 * new. Returns true if it has to be brought into effect (not when a sweep is going to read the file
 * anyway).
 */
bool vhca_osm_publisher_written(struct vhca_osm_publisher *p, bool failed, bool replaced,
				uint64_t now);
/* OpenSM has read the current file without a sweep, and sent what has changed. */
void vhca_osm_publisher_applied(struct vhca_osm_publisher *p, uint64_t now);
/* OpenSM could not, because a sweep is under way that has read the file before. */
void vhca_osm_publisher_postponed(struct vhca_osm_publisher *p);
/* Is that sweep over, without having taken over the current file? True once. */
bool vhca_osm_publisher_apply_due(struct vhca_osm_publisher *p);
/* Is it time to look for the answers? */
bool vhca_osm_publisher_look_due(const struct vhca_osm_publisher *p, uint64_t now);
/* The outcome. */
void vhca_osm_publisher_looked(struct vhca_osm_publisher *p, bool all_answered, uint64_t now);
/* Has a sweep to be asked for (again)? */
bool vhca_osm_publisher_resweep_due(struct vhca_osm_publisher *p, uint64_t now);
/* The next time at which one of the above may become true; UINT64_MAX = none. */
uint64_t vhca_osm_publisher_deadline(const struct vhca_osm_publisher *p);
/*
 * Generation of the file, and the newest that OpenSM has read to the end: its ports may not have
 * answered yet.
 */
uint64_t vhca_osm_publisher_generation(const struct vhca_osm_publisher *p);
uint64_t vhca_osm_publisher_read(const struct vhca_osm_publisher *p);
/* Has a sweep taken over the current file? */
bool vhca_osm_publisher_settled(const struct vhca_osm_publisher *p);

/* From the sweeper's thread. */
void vhca_osm_publisher_on_sweep_start(struct vhca_osm_publisher *p);
void vhca_osm_publisher_on_discovered(struct vhca_osm_publisher *p);
void vhca_osm_publisher_on_subnet_up(struct vhca_osm_publisher *p);
/* The file can be applied without a sweep again. */
void vhca_osm_publisher_on_sweep_over(struct vhca_osm_publisher *p);

#endif
