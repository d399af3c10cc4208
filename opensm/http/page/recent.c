/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/http/page/recent.h"

#include "common/base/file.h"
#include "common/base/text.h"
#include "common/http/json.h"

static struct vhca_osm_recent_move *add(struct vhca_osm_recent *r)
{
	struct vhca_osm_recent_move *row = &r->rows[r->n++ % VHCA_OSM_RECENT_MAX];

	*row = (struct vhca_osm_recent_move){.wall_ms = vhca_wall_ms()};
	return row;
}

void vhca_osm_recent_add_binding(struct vhca_osm_recent *r, const struct vhca_osm_binding *now,
				 uint64_t old_port, const struct vhca_osm_eviction *ev)
{
	struct vhca_osm_recent_move *row = add(r);

	row->vguid = now->vguid;
	row->from_port = old_port;
	row->port = now->port_guid;
	row->state = "bound";
	row->guid_info = ev->smps;
}

/* Two ports have exchanged their LIDs, or two vports their places, where the one that the vGUID
 * has left is known to nobody any more; or a dynamic LID leads to another hypervisor. */
static void add_places(struct vhca_osm_recent_move *row, const struct vhca_osm_lid_move *move)
{
	const struct vhca_osm_lid_pair *pair = &move->pair;

	row->vguid = move->want.vguid;
	row->lid = move->want.lid ? move->want.lid : pair->lid[0];
	row->port = move->want.dynamic == VHCA_OSM_LID_FREED ? 0 : move->want.port_guid;
	if (move->want.dynamic == VHCA_OSM_LID_FREED)
		row->from_port = pair->guid[1];
	else if (move->want.dynamic)
		row->from_port = pair->old_pf;
	else if (!move->want.vguid)
		row->from_port = pair->guid[0];
}

void vhca_osm_recent_add_lid(struct vhca_osm_recent *r, const struct vhca_osm_lid_move *move,
			     const struct vhca_error *err)
{
	struct vhca_osm_recent_move *row;

	if (err ? !move->begun : !move->changes)
		return;
	row = add(r);
	add_places(row, move);
	if (err) {
		row->state = "refused";
		(void)vhca_strcpy(row->code, sizeof(row->code), err->code); /* same size */
		return;
	}
	row->state = move->missing ? "repairing" : "applied";
	row->mode = vhca_osm_move_mode_to_string(move->cost.mode);
	row->switches = move->cost.switches;
	row->lft = move->cost.lft_smps;
	row->port_info = move->cost.port_smps;
	row->drain = move->cost.drain_smps;
	row->missing = move->missing;
	row->duration_us = move->duration_us;
}

static struct json_object *row_to_json(const struct vhca_osm_recent_move *row, uint64_t number)
{
	struct json_object *obj = json_object_new_object(), *smps = json_object_new_object();

	vhca_json_add_u64(obj, "number", number);
	vhca_json_add_u64(obj, "time_ms", row->wall_ms);
	vhca_json_add_guid(obj, "vguid", row->vguid);
	if (row->lid)
		vhca_json_add_u64(obj, "lid", row->lid);
	else
		vhca_json_add(obj, "lid", NULL);
	vhca_json_add_guid(obj, "from_port_guid", row->from_port);
	vhca_json_add_guid(obj, "port_guid", row->port);
	vhca_json_add_string(obj, "state", row->state);
	vhca_json_add_string(obj, "code", row->code[0] ? row->code : NULL);
	vhca_json_add_string(obj, "mode", row->mode);
	vhca_json_add_u64(obj, "switches", row->switches);
	vhca_json_add_u64(smps, "lft", row->lft);
	vhca_json_add_u64(smps, "port_info", row->port_info);
	vhca_json_add_u64(smps, "drain", row->drain);
	vhca_json_add_u64(smps, "guid_info", row->guid_info);
	vhca_json_add(obj, "smps", smps);
	vhca_json_add_u64(obj, "missing", row->missing);
	vhca_json_add_u64(obj, "duration_us", row->duration_us);
	return obj;
}

struct json_object *vhca_osm_json_recent(const struct vhca_osm_recent *r)
{
	struct json_object *obj = json_object_new_object(), *rows = json_object_new_array();

	for (uint64_t i = r->n; i > 0 && r->n - i < VHCA_OSM_RECENT_MAX; i--)
		(void)json_object_array_add(
			rows, row_to_json(&r->rows[(i - 1) % VHCA_OSM_RECENT_MAX], i));
	vhca_json_add(obj, "moves", rows);
	vhca_json_add_u64(obj, "total", r->n);
	return obj;
}
