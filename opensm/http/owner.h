/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_OWNER_H
#define VHCA_OPENSM_HTTP_OWNER_H
/* PUT /v1/owners/{vguid}: whose it is, where no ticket says so. */
#include "common/http/server.h"
#include "opensm/bindings/service.h"
#include "opensm/tickets/owners.h"

/* Replies when it is on disk. */
void vhca_osm_api_name_owner(struct vhca_osm_service *service, struct vhca_osm_owners *owners,
			     struct vhca_http_request *req);

#endif
