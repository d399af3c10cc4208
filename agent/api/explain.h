/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_EXPLAIN_H
#define VHCA_AGENT_API_EXPLAIN_H
/*
 * /v1/vfs/{}/explain and /v1/domains/{}/explain. ctx is the API; both answer at once, from memory.
 */
#include "common/http/server.h"

/* The walk for one VF. */
void vhca_api_explain_vf(void *ctx, struct vhca_http_request *req);
/* What the domain asks for, and each VF that it has or is promised. */
void vhca_api_explain_domain(void *ctx, struct vhca_http_request *req);

#endif
