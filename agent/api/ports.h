/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_PORTS_H
#define VHCA_AGENT_API_PORTS_H
/* What the requests about a cloud's port have in common: claims.c. */
#include "agent/state/model.h"
#include "common/http/server.h"

/* The claim of the port that the path names; NULL with err set if there is none. */
struct vhca_claim *api_find_port(const void *ctx, const struct vhca_http_request *req,
				 struct vhca_error *err);
/* A waiter: answers the struct api_pending with the claim, found by its guid, and the device. */
void api_on_port(void *pending, const struct vhca_claim *claim, const struct vhca_error *err);

#endif
