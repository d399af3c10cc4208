/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_API_H
#define VHCA_OPENSM_HTTP_API_H
/*
 * The HTTP face of the service: the "SM API" of docs/design/0001-foundation.md. Driven from outside
 * by one thread, as the server it wraps. Reports that arrive together are made durable by one
 * write, and answered after it.
 */
#include "common/ticket/ticket.h"
#include "opensm/bindings/service.h"
#include "opensm/lids/mover.h"

/*
 * More wait to be accepted; each can hold one report that waits for the write. All agents of the
 * largest subnet keep one.
 */
#define VHCA_OSM_CONNECTIONS_MAX 4096
/* Header lines of a request; what libmicrohttpd would take by itself is four times as much. */
#define VHCA_OSM_CONNECTION_MEMORY 8192
/* A binding with all of a port's keys is below 2 KiB, without its tickets. */
#define VHCA_OSM_BODY_MAX (8192 + VHCA_TICKETS_MAX * VHCA_TICKET_MAX)

/* docs/openapi-vhcasm.yaml, as JSON; made at build time by tools/openapi-to-c */
extern const char vhca_osm_openapi[];
/* And the members of the entries of its pages, "vguid epoch". */
extern const char vhca_osm_openapi_bindings[], vhca_osm_openapi_members[], vhca_osm_openapi_lids[];

struct vhca_osm_api;

/* Listens as conf says. conf, service and mover are borrowed; the owner calls
 * vhca_osm_mover_run() before each vhca_osm_api_run(), and releases the mover first. */
int vhca_osm_api_new(const struct vhca_osm_conf *conf, struct vhca_osm_service *service,
		     struct vhca_osm_mover *mover, struct vhca_osm_api **ret,
		     struct vhca_error *err);
/* See vhca_osm_door_look(). */
void vhca_osm_api_look(struct vhca_osm_api *api);
/* This has become master; was_standby: what it knows of owners is of an earlier time. */
void vhca_osm_api_take_over(struct vhca_osm_api *api, bool was_standby);
struct vhca_osm_api *vhca_osm_api_free(struct vhca_osm_api *api);

/* Readable when vhca_osm_api_run() has something to do. */
int vhca_osm_api_fd(const struct vhca_osm_api *api);
int vhca_osm_api_timeout_ms(const struct vhca_osm_api *api); /* -1 = none */
/* Serves what is there. Blocking (fsync). */
void vhca_osm_api_run(struct vhca_osm_api *api);

/*
 * Meanwhile: answers for the health of the subnet, and takes in what else arrives, for the next
 * run(). Waits for nothing.
 */
void vhca_osm_api_receive(struct vhca_osm_api *api);
int vhca_osm_api_receive_timeout_ms(const struct vhca_osm_api *api); /* -1 = none */

#endif
