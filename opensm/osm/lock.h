/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OSM_LOCK_H
#define VHCA_OPENSM_OSM_LOCK_H
/*
 * OpenSM's lock on its tables, as everybody here takes it. OpenSM keeps it for minutes while it
 * computes the ways through a large fabric: one thread serves meanwhile, the others just wait.
 * Who has it does not take it again, nor waits for anything else.
 */
#include <stdbool.h>

struct osm_opensm;

void vhca_osm_lock_shared(struct osm_opensm *osm);    /* to read the tables */
void vhca_osm_lock_exclusive(struct osm_opensm *osm); /* to change them */
/* False if somebody changes something. */
bool vhca_osm_lock_try_shared(struct osm_opensm *osm);
void vhca_osm_unlock(struct osm_opensm *osm);

/*
 * The calling thread does this every few milliseconds for as long as it waits above. It may be in
 * the middle of a change then: fn must not take the lock, but may try, and changes nothing of what
 * the thread was at.
 */
void vhca_osm_lock_meanwhile(void (*fn)(void *ctx), void *ctx);

#endif
