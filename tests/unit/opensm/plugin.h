/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_OPENSM_PLUGIN_H
#define VHCA_TESTS_UNIT_OPENSM_PLUGIN_H
/*
 * The plugin without OpenSM: its service, and its API if asked for, on a false subnet and a real
 * state directory. Failures fail the running test.
 */
#include "opensm/http/api.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

/* Ports of the false subnet, and a vGUID. */
#define FALSE_PORT(i) (UINT64_C(0x0002c90300000a01) + (uint64_t)(i)*0x100)
#define FALSE_PORT_A  FALSE_PORT(0)
#define FALSE_PORT_B  FALSE_PORT(1)
#define FALSE_PORTS   3
#define FALSE_GUID    UINT64_C(0x02c9ab0000000001)
/* Ports beside these, as OpenSM has them: in the order of GUIDs in network order. */
#define FALSE_CROWD(i) (UINT64_C(0x02c9cd0000000000) + __builtin_bswap32(i))

struct false_subnet {
	struct vhca_osm_status status;
	unsigned int n_ports;			      /* FALSE_PORT(0), ... */
	struct vhca_osm_port_info ports[FALSE_PORTS]; /* of these */
	bool anything; /* any GUID is a port, but the one that has gone */
	uint64_t gone;
	uint64_t physical; /* a port of which the fabric shows it */
	bool alias_known;
	struct vhca_osm_alias alias; /* of FALSE_GUID */
	uint16_t pkeys[4];	     /* in the table of FALSE_PORT_A; the first is in any port's */
	uint32_t crowd;		     /* so many of these ports */
	bool busy;
	bool applies; /* without a sweep */
	bool sweeping;
	size_t unanswered;
	int applied, sweeps; /* times */
};

/* Of a struct false_subnet. */
extern const struct vhca_osm_subnet_ops false_subnet_ops;

struct plugin {
	struct tree tree;
	struct false_subnet subnet;
	struct vhca_osm_subnet
		sees; /* what the service gets: the same, unless a test has its own */
	struct vhca_osm_conf conf;
	struct vhca_osm_service *service;
	uint64_t skew; /* ms that the test's clock is ahead */
	/* after plugin_serve() */
	char socket[TREE_PATH_MAX];
	struct vhca_osm_gate gate;
	struct vhca_osm_mover *mover;
	struct vhca_osm_api *api;
};

/* Ready for plugin_start(). */
void plugin_init(struct plugin *p);
void plugin_done(struct plugin *p);
int plugin_start(struct plugin *p, struct vhca_error *err);
void plugin_stop(struct plugin *p);
/* For cmocka: a struct plugin that has started. */
int plugin_setup(void **state);
int plugin_teardown(void **state);
/* Starts, and answers at a unix socket. */
void plugin_serve(struct plugin *p, const struct vhca_osm_lid_ops *lids);

struct vhca_osm_reports *plugin_reports(const struct plugin *p);
/* A report of FALSE_GUID with one key: the error's code, or "". */
const char *plugin_put(struct plugin *p, uint64_t epoch, uint64_t port, uint16_t pkey);
void plugin_commit(struct plugin *p);
/* So much later there is time to publish. */
void plugin_at(struct plugin *p, uint64_t ms_later);
/* Lets the time of a burst pass. */
void plugin_settle(struct plugin *p);
/* The partition file has this text. */
bool plugin_shows(const struct plugin *p, const char *text);
void plugin_set_base(struct plugin *p, const char *name);

#endif
