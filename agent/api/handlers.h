/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_HANDLERS_H
#define VHCA_AGENT_API_HANDLERS_H
/*
 * The handlers of the routes in api.c; ctx is a struct api_context. Each answers at once, from
 * memory, unless its line says when.
 */
#include "common/http/server.h"

/* ---- node.c ---- */
void api_get_node(void *ctx, struct vhca_http_request *req);
void api_get_outbox(void *ctx, struct vhca_http_request *req);
void api_get_events(void *ctx, struct vhca_http_request *req); /* when there is something to tell */
void api_get_metrics(void *ctx, struct vhca_http_request *req); /* metrics.c */
/* docs/openapi.yaml, as JSON; made at build time by tools/openapi-to-c */
extern const char api_openapi[];
/* And the members of the entries of its lists, "bdf state". */
extern const char api_openapi_hcas[], api_openapi_vfs[], api_openapi_domains[],
	api_openapi_claims[], api_openapi_partitions[], api_openapi_migrations[],
	api_openapi_settings[], api_openapi_outbox[];
void api_get_openapi(void *ctx, struct vhca_http_request *req);
void api_get_healthz(void *ctx, struct vhca_http_request *req);
void api_get_readyz(void *ctx, struct vhca_http_request *req);
void api_get_config(void *ctx, struct vhca_http_request *req); /* what is in effect */
/* When the new configuration is in force, or refused. */
void api_post_reload(void *ctx, struct vhca_http_request *req);

/* ---- opennebula.c ---- */
void api_get_opennebula(void *ctx, struct vhca_http_request *req); /* text */

/* ---- hcas.c ---- */
void api_get_hcas(void *ctx, struct vhca_http_request *req);
void api_get_hca(void *ctx, struct vhca_http_request *req);
void api_delete_hca(void *ctx, struct vhca_http_request *req); /* when it has left the journal */

/* ---- vfs.c ---- */
void api_get_vfs(void *ctx, struct vhca_http_request *req);
void api_get_vf(void *ctx, struct vhca_http_request *req);

/* ---- findings.c ---- */
void api_explain_vf(void *ctx, struct vhca_http_request *req); /* the walk for one VF */
/* What the domain asks for, and each VF that it has or is promised. */
void api_explain_domain(void *ctx, struct vhca_http_request *req);

/* ---- domains.c ---- */
void api_get_domains(void *ctx, struct vhca_http_request *req);
void api_get_domain(void *ctx, struct vhca_http_request *req);
/* With the domain's claims, when they are in the journal. */
void api_post_adopt(void *ctx, struct vhca_http_request *req);
void api_post_takeover(void *ctx, struct vhca_http_request *req); /* {evidence} */

/* ---- claims.c ---- */
void api_get_claims(void *ctx, struct vhca_http_request *req);
void api_get_claim(void *ctx, struct vhca_http_request *req);
void api_post_plan(void *ctx, struct vhca_http_request *req); /* {domain, vfs} or {xml} */
/* What GET /v1/claims/{} answers of the claim, or the claim of the port, that the path names; NULL
 * with err set. */
struct json_object *api_claim_state(void *ctx, const struct vhca_http_request *req,
				    struct vhca_error *err);
struct json_object *api_port_state(void *ctx, const struct vhca_http_request *req,
				   struct vhca_error *err);
/* These when their transaction has ended: attached, programmed, or free. */
void api_post_attach(void *ctx, struct vhca_http_request *req);
void api_delete_attach(void *ctx, struct vhca_http_request *req);
void api_post_claims(void *ctx, struct vhca_http_request *req);
void api_put_port(void *ctx, struct vhca_http_request *req);
void api_delete_port(void *ctx, struct vhca_http_request *req);
void api_renew_claim(void *ctx, struct vhca_http_request *req);
void api_delete_claim(void *ctx, struct vhca_http_request *req);

/* ---- partitions.c ---- */
void api_get_partitions(void *ctx, struct vhca_http_request *req); /* by P_Key */
void api_get_partition(void *ctx, struct vhca_http_request *req);
void api_put_partitions(void *ctx, struct vhca_http_request *req); /* when its VF shows them */

/* ---- migrations.c: a migration runs on by itself ---- */
void api_get_migrations(void *ctx, struct vhca_http_request *req); /* oldest first */
void api_get_migration(void *ctx, struct vhca_http_request *req);
void api_post_migrations(void *ctx, struct vhca_http_request *req);  /* 202 */
void api_extend_migration(void *ctx, struct vhca_http_request *req); /* 202 */
void api_abort_migration(void *ctx, struct vhca_http_request *req);  /* 202 */

/* ---- drain.c: a drain goes on by itself ---- */
void api_get_drain(void *ctx, struct vhca_http_request *req);  /* drained or not */
void api_post_drain(void *ctx, struct vhca_http_request *req); /* {peers: [...]}, 202 */
void api_delete_drain(void *ctx, struct vhca_http_request *req);

#endif
