/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OPENSM_PKEYS_H
#define VHCA_OPENSM_OPENSM_PKEYS_H
/*
 * How many P_Key table SMPs OpenSM sends for the partition file. It sends them itself, in each heavy sweep between the end of discovery and
 * routing, and keeps no count: a block is sent if it differs from what the port was known to have. So that is remembered before, and compared
 * with what OpenSM wanted then. An SMP that is lost leaves the difference, is sent again in the next sweep, and counts again.
 *
 * The functions are called by OpenSM's sweeper, without its lock, and take it.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct osm_opensm;
struct vhca_osm_pkeys_of_port;
struct vhca_osm_pkey_block;

struct vhca_osm_pkey_watch {
	struct vhca_osm_pkeys_of_port *ports; /* before; NULL = not known */
	struct vhca_osm_pkey_block *blocks;   /* of all of them */
	size_t n_ports;
	atomic_uint_fast64_t sent; /* may be read by any thread */
};

/* Discovery has ended. Without memory this sweep's SMPs are not counted. */
void vhca_osm_pkeys_discovered(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch);
/* The tables have been sent: counts, and forgets what was before. */
void vhca_osm_pkeys_sent(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch);
/* Forgets what was before: a sweep that ended early has sent nothing. Also releases everything. */
void vhca_osm_pkeys_forget(struct vhca_osm_pkey_watch *watch);

#endif
