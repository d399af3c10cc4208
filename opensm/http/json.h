/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_JSON_H
#define VHCA_OPENSM_HTTP_JSON_H
/* The JSON answers of the API. The caller puts what is returned. */
#include <json-c/json_object.h>

#include "opensm/bindings/service.h"
#include "opensm/tickets/owners.h"

/* Rows of one list answer, unless ?limit= says less. */
#define VHCA_OSM_PAGE_MAX 512
/*
 * Which part of a list: at most `limit` rows with a GUID, or LID, above `after`; of bindings and
 * members only those of port_guid (0 = all).
 */
struct vhca_osm_page {
	uint64_t after, port_guid;
	size_t limit;
	const char *fields; /* borrowed from its request, as vhca_json_cut_list() has it */
};

#define VHCA_OSM_RELOCATION_ID_MAX 64
#define VHCA_OSM_VPORT_MAX	   253 /* a switch has 254 ports, and one is the PF's */

enum vhca_osm_lid_policy {
	VHCA_OSM_LID_HOST,     /* the vGUID has none of its own */
	VHCA_OSM_LID_FOLLOWS,  /* from_lid goes to the new port */
	VHCA_OSM_LID_OF_VPORT, /* the vGUID is a port's own GUID, and at its new place already */
	VHCA_OSM_LID_DYNAMIC,  /* the vGUID's own, by the ways to the port that is reported */
};

/* A vGUID's way from port to port, POST /v1/moves: as it was asked for, and what came of it. */
struct vhca_osm_relocation {
	const char *id; /* the sender's */
	bool commit;	/* else prepare */
	uint64_t from_port;
	uint16_t from_lid; /* 0 = not said */
	enum vhca_osm_lid_policy lid_policy;
	uint16_t vport; /* where it goes; 0 = not said */
	struct vhca_osm_proof proof;
	struct vhca_osm_eviction eviction;
};

/* Adds {known_epoch, bound, port_guid}: what a refusal because of the epoch is about. port_guid
 * is null unless bound. */
void vhca_osm_json_add_known(struct json_object *problem, const struct vhca_osm_binding *known);
/* Adds {signers}: by whose ticket what is another's would be the sender's. */
void vhca_osm_json_add_signers(struct json_object *problem, const struct vhca_osm_owners *owners,
			       uint64_t vguid);
/* {id, state, lid, smps, evicted, findings}; b is the binding that it makes. */
struct json_object *vhca_osm_json_relocation(const struct vhca_osm_service *s,
					     const struct vhca_osm_binding *b,
					     const struct vhca_osm_relocation *relocation);
/*
 * {vguid, epoch, state, port_guid, gid_index, lid, pkeys, findings}, or {vguid, epoch, state:
 * "withdrawn"}
 */
struct json_object *vhca_osm_json_binding_now(const struct vhca_osm_service *s, uint64_t vguid);
/* {vguid, epoch}: the highest that is known, 0 = none */
struct json_object *vhca_osm_json_epoch(const struct vhca_osm_service *s, uint64_t vguid);
/* {port_guid, node} */
struct json_object *vhca_osm_json_pin(const struct vhca_osm_service *s, uint64_t port_guid);
/*
 * {bindings: [...], next}: next is the `after` of the next page, null at the end. Without
 * tombstones.
 */
struct json_object *vhca_osm_json_bindings(const struct vhca_osm_service *s,
					   const struct vhca_osm_page *page);
/* {port_guid, pkeys, from_bindings, inherited, effective} */
struct json_object *vhca_osm_json_member_now(const struct vhca_osm_service *s, uint64_t guid);
/* {members: [...], next} */
struct json_object *vhca_osm_json_members(const struct vhca_osm_service *s,
					  const struct vhca_osm_page *page);
/*
 * {status, sm_state, master_guid, age_ms, plugin_version, opensm_version, bindings, ports,
 * in_effect, problem}
 */
struct json_object *vhca_osm_json_health(const struct vhca_osm_service *s, const char *status);

#endif
