/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_READINESS_H
#define VHCA_OPENSM_HTTP_READINESS_H
/* What keeps the plugin from doing what agents ask for, or may; as /readyz of the agent has it. */
#include "opensm/bindings/service.h"
#include "opensm/lids/mover.h"

struct vhca_osm_reason {
	bool applies;
	const char *code, *status; /* static, and so is all below but for the text */
	bool blocks;		   /* makes /readyz 503 */
	const char *text, *hint;   /* text: the service's */
};

#define VHCA_OSM_REASONS 7
/* All, in one order, also those that do not apply. */
void vhca_osm_find_reasons(const struct vhca_osm_service *s, const struct vhca_osm_mover *m,
			   struct vhca_osm_reason ret[static VHCA_OSM_REASONS]);
/* Those that apply: [{code, status, blocks, reason, hint}]. Caller puts it. */
struct json_object *vhca_osm_json_reasons(const struct vhca_osm_service *s,
					  const struct vhca_osm_mover *m);

#endif
