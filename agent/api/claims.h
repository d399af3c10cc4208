/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_CLAIMS_H
#define VHCA_AGENT_API_CLAIMS_H
/*
 * Who has which VF: the requests that change it. ctx is the API; each is answered when its
 * transaction has ended.
 */
#include "agent/state/domain_info.h"
#include "common/http/server.h"

/* Members pf and numa of a body, both optional: which adapters will do. */
int vhca_api_parse_place(struct json_object *body, struct vhca_vf_request *ret,
			 struct vhca_error *err);

void vhca_api_post_attach(void *ctx,
			  struct vhca_http_request *req); /* POST /v1/domains/{}/vfs/{} */
void vhca_api_delete_attach(void *ctx, struct vhca_http_request *req); /* DELETE of the same */
void vhca_api_get_claim(void *ctx, struct vhca_http_request *req);     /* GET /v1/claims/{} */
void vhca_api_post_claims(void *ctx, struct vhca_http_request *req);   /* POST /v1/claims */
void vhca_api_delete_claim(void *ctx, struct vhca_http_request *req);  /* DELETE /v1/claims/{} */

#endif
