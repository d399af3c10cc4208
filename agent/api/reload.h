/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_RELOAD_H
#define VHCA_AGENT_API_RELOAD_H
/* POST /v1/reload */
#include "common/http/server.h"

/* ctx is the API; answers when the new configuration is in force, or refused. */
void vhca_api_reload(void *ctx, struct vhca_http_request *req);

#endif
