/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/http/readiness.h"

#include <string.h>

#include "common/base/codes.h"
#include "common/http/json.h"

void vhca_osm_find_reasons(const struct vhca_osm_service *s, const struct vhca_osm_mover *m,
			   struct vhca_osm_reason ret[static VHCA_OSM_REASONS])
{
	const char *problem = vhca_osm_service_problem(s);
	struct vhca_osm_mover_stats moves;
	struct vhca_osm_status sm;

	vhca_osm_mover_stats(m, &moves);
	vhca_osm_service_status(s, &sm);
	memcpy(ret,
	       (const struct vhca_osm_reason[VHCA_OSM_REASONS]){
		       {!sm.master, VHCA_CODE_NOT_MASTER, "warning", true,
			"this subnet manager is not the master", "ask the plugin of the master"},
		       {sm.master && !sm.ready, "unswept", "warning", true,
			"the master's first sweep is not complete", "it passes by itself"},
		       {sm.age_ms > 0, "busy", "unknown", false,
			"OpenSM has its tables locked, as while it computes ways: reports wait",
			"it passes by itself"},
		       {vhca_osm_service_is_rebuilding(s), VHCA_CODE_REBUILDING, "warning", false,
			"keys stay on ports only because this master found them there, and no "
			"agent has "
			"reported them yet",
			"vhcasmctl members"},
		       {!vhca_osm_service_in_effect(s), VHCA_CODE_KEYS_ON_THE_WAY, "warning", false,
			"not all that was reported is in effect yet", "it passes by itself"},
		       {moves.paused, "moves_paused", "warning", false,
			"moves of LIDs are paused: reports that need one wait", "vhcasmctl resume"},
		       {problem[0] != '\0', "outdated", "wrong", false, problem,
			"mend the file that it names; OpenSM's log"},
	       },
	       VHCA_OSM_REASONS * sizeof(*ret));
}

struct json_object *vhca_osm_json_reasons(const struct vhca_osm_service *s,
					  const struct vhca_osm_mover *m)
{
	struct json_object *list = json_object_new_array(), *o;
	struct vhca_osm_reason found[VHCA_OSM_REASONS];

	vhca_osm_find_reasons(s, m, found);
	for (unsigned int i = 0; i < VHCA_OSM_REASONS; i++) {
		if (!found[i].applies)
			continue;
		o = json_object_new_object();
		vhca_json_add_string(o, "code", found[i].code);
		vhca_json_add_string(o, "status", found[i].status);
		vhca_json_add_bool(o, "blocks", found[i].blocks);
		vhca_json_add_string(o, "reason", found[i].text);
		vhca_json_add_string(o, "hint", found[i].hint);
		(void)json_object_array_add(list, o);
	}
	return list;
}
