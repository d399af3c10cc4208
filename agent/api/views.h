/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_VIEWS_H
#define VHCA_AGENT_API_VIEWS_H
/*
 * JSON views of the model, as docs/openapi.yaml describes them. The caller puts what is returned.
 */
#include <json-c/json_object.h>

#include "agent/state/model.h"

/* busy_since_ms: of its strand, 0 = idle. */
struct json_object *api_view_hca(const struct vhca_hca *hca, uint64_t busy_since_ms);
/* Adds its state, and the reason of that. */
void api_add_vf_state(struct json_object *o, const struct vhca_vf *vf);
/* Identity as read last, state and reason. */
struct json_object *api_view_vf(const struct vhca_vf *vf, bool reserved);
/* One of a migration: as its peer sees it, and its state. */
struct json_object *api_view_moving_vf(const struct vhca_claim *claim);
/* What was asked for, and what the SM said. */
struct json_object *api_view_claim(const struct vhca_claim *claim);
/* A list of a domain's. */
struct json_object *api_view_claims(const struct vhca_model *m, const struct vhca_uuid *domain);
/* With its membership, the key of a list that is the partition's of base; 0: none is. */
uint16_t api_find_key(const uint16_t *pkeys, unsigned int n, uint16_t base);
/* The claim's key of the partition that either of its P_Keys names; 0: none, or it is ending. */
uint16_t api_claim_key(const struct vhca_claim *claim, uint16_t pkey);
/* Requests of its metadata and the VFs it has. */
struct json_object *api_view_domain(struct vhca_model *m, struct vhca_domain *dom);

#endif
