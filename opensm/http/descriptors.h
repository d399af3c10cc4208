/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_DESCRIPTORS_H
#define VHCA_OPENSM_HTTP_DESCRIPTORS_H
/*
 * File descriptors of OpenSM's process: an agent's connection takes one. Services start with a soft
 * limit of 1024.
 */

/* What OpenSM, its log and the plugin's files may need beside the connections. */
#define VHCA_OSM_DESCRIPTORS_OTHER 256

/*
 * Raises the process's soft limit as far as so many connections need it and the hard limit allows;
 * returns how many there may be, at least 1.
 */
unsigned int vhca_osm_descriptors_for(unsigned int connections);

#endif
