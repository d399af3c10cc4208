/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_ADOPT_H
#define VHCA_AGENT_API_ADOPT_H
/* POST /v1/domains/{}/adopt */
#include "common/http/server.h"

/* ctx is the API; answers with the domain's claims when they are in the journal. */
void vhca_api_adopt(void *ctx, struct vhca_http_request *req);

#endif
