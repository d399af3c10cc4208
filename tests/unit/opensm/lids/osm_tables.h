/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_OPENSM_LIDS_OSM_TABLES_H
#define VHCA_TESTS_UNIT_OPENSM_LIDS_OSM_TABLES_H
/*
 * OpenSM's own tables, and in place of the functions of its process as many of ours as opensm/osm
 * calls for dynamic LIDs.
 */
#include <stdbool.h>
#include <stdint.h>

/* before its siblings: the layout of their structures depends on it */
#include <opensm/osm_config.h>

#include <opensm/osm_opensm.h>
#include <opensm/osm_port.h>
#include <opensm/osm_switch.h>

#define TABLES_LINES	8
#define TABLES_PORTS	4
#define TABLES_SWITCHES 2
#define TABLES_LFT	256 /* LIDs */

struct tables {
	osm_opensm_t osm;
	struct {
		uint64_t guid; /* 0 = none */
		uint16_t lid;
	} lines[TABLES_LINES];
	struct {
		osm_port_t port;
		osm_physp_t physp;
		osm_node_t node;
	} ports[TABLES_PORTS];
	struct {
		osm_switch_t sw;
		osm_node_t node;
		uint8_t lft[TABLES_LFT], new_lft[TABLES_LFT];
	} switches[TABLES_SWITCHES];
	size_t n_ports;
	int lft_smps, port_smps; /* that were queued */
	void (*unlocked)(void);	 /* when OpenSM's lock is free again, once */
};

/* The one that there is. */
extern struct tables tables;

/* For cmocka: no ports, no lines, switches that have what they are to have. */
int tables_setup(void **state);

/* A port behind a hypervisor; it shows its LID. */
osm_port_t *tables_add_port(uint64_t guid, uint16_t lid);
void tables_add_line(uint64_t guid, uint16_t lid);
/* 0 = none */
uint16_t tables_line(uint64_t guid);
uint64_t tables_switch_guid(size_t i);

#endif
