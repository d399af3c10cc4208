/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_TAKEOVER_H
#define VHCA_AGENT_API_TAKEOVER_H
/* POST /v1/domains/{}/takeover {evidence} */
#include "common/http/server.h"

void vhca_api_takeover(void *ctx,
		       struct vhca_http_request *req); /* ctx is the API; answers at once */

#endif
