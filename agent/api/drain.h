/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_DRAIN_H
#define VHCA_AGENT_API_DRAIN_H
/* /v1/drain. ctx is the API; all answer at once: a drain goes on by itself. */
#include "common/http/server.h"

void vhca_api_get_drain(void *ctx, struct vhca_http_request *req);    /* 200, drained or not */
void vhca_api_post_drain(void *ctx, struct vhca_http_request *req);   /* {peers: [...]}; 202 */
void vhca_api_delete_drain(void *ctx, struct vhca_http_request *req); /* 200 */

#endif
