/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OSM_PKEYS_H
#define VHCA_OPENSM_OSM_PKEYS_H
/*
 * P_Key table SMPs for the partition file: OpenSM's own P_Key manager sends them, here and in each
 * heavy sweep between the end of discovery and routing. It keeps no count: a block is sent if it
 * differs from what the port was known to have. So that is remembered before, and compared with
 * what OpenSM wanted then. An SMP that is lost leaves the difference, is sent again in the next
 * sweep, and counts again.
 *
 * The functions are called without OpenSM's lock, and take it: by its sweeper, except where another
 * thread is named.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opensm/osm/key_tables.h"

struct osm_opensm;
struct vhca_osm_pkeys_of_port;
struct vhca_osm_pkey_block;

struct vhca_osm_pkey_wait {
	uint64_t guid; /* of a port; network order */
	/*
	 * ms; until then an SMP may be sent once more whose keys are no longer to be had. So long,
	 * and until they have been sent again, it is not known which it has. 0 = it is
	 */
	uint64_t overtaken;
	/*
	 * ms; until then an SMP with these keys may be sent once more although they are
	 * acknowledged: there have been two. 0 = none may
	 */
	uint64_t again;
};

struct vhca_osm_pkey_waits {
	struct vhca_osm_pkey_wait *of; /* sorted by guid */
	size_t n;
	uint64_t until; /* ms; by then an SMP is given up that did not wait in OpenSM's queue */
};

/* Of OpenSM's lock, if nothing else is said. */
struct vhca_osm_pkey_watch {
	struct vhca_osm_pkeys_of_port *ports; /* before; NULL = not known */
	struct vhca_osm_pkey_block *blocks;   /* of all of them */
	size_t n_ports;
	/*
	 * Ports that were sent something last, and may not have acknowledged it; next: room for
	 * those of this time.
	 */
	struct vhca_osm_pkey_waits waits;
	struct vhca_osm_pkey_wait *next;
	struct vhca_osm_key_places places; /* in a sweep: when it began; its thread's */
	atomic_uint_fast64_t sent;	   /* may be read by any thread */
};

/* A heavy sweep begins; the one before may have ended early. */
void vhca_osm_pkeys_sweep_begins(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch);

/*
 * Discovery has ended. Without memory this sweep's SMPs are not counted, and all tables are
 * written.
 */
void vhca_osm_pkeys_discovered(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch);
/* The tables have been sent: counts, and forgets what was before. */
void vhca_osm_pkeys_sent(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch);

/* ---- the plugin's thread ---- */
/*
 * Not in a sweep: what that does about keys, and nothing else of it. OpenSM reads the partition
 * file, and sends the blocks that differ. False: without memory, or OpenSM could not.
 */
bool vhca_osm_pkeys_apply(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch);
/*
 * Whether keys are to be applied once more: an SMP of before may have come after them, and none can
 * do so any more.
 */
bool vhca_osm_pkeys_may_revert(struct osm_opensm *osm, const struct vhca_osm_pkey_watch *watch);
/*
 * How many of the ports that were sent something then have not got it as far as OpenSM knows. One
 * that has gone is not waited for.
 */
size_t vhca_osm_pkeys_unanswered(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch);
/*
 * How many blocks OpenSM wants to be otherwise than it knows them, at this port and at the switch
 * port in front of it; one more if that may be undone. 0 of one that has gone. The caller holds
 * OpenSM's lock.
 */
size_t vhca_osm_pkeys_missing(const struct osm_opensm *osm, const struct vhca_osm_pkey_watch *watch,
			      uint64_t port_guid);
/*
 * Whether the port itself is known to have just what it is to have; false of one that has gone. The
 * caller holds OpenSM's lock.
 */
bool vhca_osm_pkeys_are_there(const struct osm_opensm *osm, const struct vhca_osm_pkey_watch *watch,
			      uint64_t port_guid);
/*
 * Whether apply() has sent such a block a moment ago, or it may still be in OpenSM's queue: so it
 * may be sent once more, to where the port is now. So may one of two, of which the other one is
 * acknowledged. The caller holds the lock.
 */
bool vhca_osm_pkeys_are_pending(const struct osm_opensm *osm,
				const struct vhca_osm_pkey_watch *watch, uint64_t port_guid);
/*
 * It is about to be at another place, which takes over what is known of the tables there. The
 * caller holds the lock exclusively.
 */
void vhca_osm_pkeys_moves(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch,
			  uint64_t port_guid);
/* Releases everything. */
void vhca_osm_pkeys_done(struct vhca_osm_pkey_watch *watch);

#endif
