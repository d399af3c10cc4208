/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/http/lids.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/text.h"
#include "common/http/json.h"

/* ---- reading ---- */

static int read_lid(struct vhca_http_request *req, uint16_t *ret, struct vhca_error *err)
{
	const char *text = vhca_http_param(req, 0);
	uint32_t lid = 0;

	if (vhca_parse_u32(text, 10, UINT16_MAX, &lid) < 0 || lid == 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "path: \"%.40s\" is no LID (1 to 65535, decimal)", text);
	*ret = (uint16_t)lid;
	return 0;
}

static int read_move(struct json_object *body, struct vhca_osm_lid_move *ret,
		     struct vhca_error *err)
{
	static const char *const members[] = {"port_guid", "mode", NULL};
	const char *mode = "auto";
	int r = vhca_json_check_members(body, members, err);

	if (r == 0)
		r = vhca_json_get_guid(body, "port_guid", &ret->want.port_guid, err);
	if (r == 0)
		r = vhca_json_opt_string(body, "mode", &mode, err);
	if (r == 0 && vhca_osm_move_mode_parse(mode, &ret->mode) < 0)
		r = vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				   "mode must be auto, deterministic or skyline");
	return r;
}

static int read_plan(struct vhca_http_request *req, bool *ret, struct vhca_error *err)
{
	const char *text = vhca_http_query(req, "plan");

	*ret = false;
	if (text && vhca_parse_bool(text, ret) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "query: plan must be yes or no");
	return 0;
}

/* ---- answers ---- */

static struct json_object *exchanged_to_json(const struct vhca_osm_lid_move *move)
{
	struct json_object *obj;

	if (!move->changes || move->pair.dynamic)
		return NULL;
	obj = json_object_new_object();
	vhca_json_add_u64(obj, "lid", move->pair.lid[1]);
	vhca_json_add_guid(obj, "port_guid", move->pair.guid[move->pair.vports ? 1 : 0]);
	return obj;
}

static struct json_object *move_to_json(const struct vhca_osm_lid_move *move, const char *state)
{
	struct json_object *obj = json_object_new_object(), *smps = json_object_new_object();
	enum vhca_osm_move_mode mode = move->changes ? move->cost.mode : move->mode;
	const struct vhca_osm_lid_want *want = &move->want;

	vhca_json_add_u64(obj, "lid", want->vguid ? move->pair.lid[0] : want->lid);
	vhca_json_add_guid(obj, "port_guid", want->vguid ? want->vguid : want->port_guid);
	vhca_json_add_string(obj, "state", state);
	vhca_json_add_string(obj, "mode", vhca_osm_move_mode_to_string(mode));
	vhca_json_add(obj, "exchanged", exchanged_to_json(move));
	vhca_json_add_u64(obj, "switches", move->cost.switches);
	vhca_json_add_u64(smps, "port_info", move->cost.port_smps);
	vhca_json_add_u64(smps, "lft", move->cost.lft_smps);
	vhca_json_add(obj, "smps", smps);
	vhca_json_add_u64(obj, "drain_smps", move->cost.drain_smps);
	vhca_json_add_u64(obj, "groups", move->cost.groups);
	vhca_json_add_u64(obj, "missing", move->missing);
	vhca_json_add_u64(obj, "duration_us", move->duration_us);
	return obj;
}

/*
 * The answer to a move: {lid, port_guid, state, mode, exchanged, switches, smps, drain_smps,
 * missing, duration_us}.
 */
static struct json_object *lid_move_to_json(const struct vhca_osm_lid_move *move)
{
	return move_to_json(move, move->missing ? "repairing" : "applied");
}

int vhca_osm_json_lid_plan(struct vhca_osm_mover *m, struct vhca_osm_lid_move *move,
			   struct json_object **ret, struct vhca_error *err)
{
	struct json_object *guids;
	struct vhca_osm_lid_plan plan;
	int r = vhca_osm_mover_plan(m, move, &plan, err);

	if (r < 0)
		return r;
	guids = json_object_new_array();
	*ret = move_to_json(move, "planned");
	for (size_t i = 0; i < plan.switches.n; i++)
		(void)json_object_array_add(
			guids, json_object_new_string(VHCA_GUID_STR(plan.switches.guids[i])));
	vhca_json_add(*ret, "switch_guids", guids);
	vhca_osm_lid_plan_done(&plan);
	return 0;
}

static struct json_object *moves_to_json(const struct vhca_osm_mover_stats *stats)
{
	struct json_object *obj = json_object_new_object();

	vhca_json_add_bool(obj, "paused", stats->paused);
	vhca_json_add_u64(obj, "queued", stats->queued);
	vhca_json_add_u64(obj, "under_way", stats->under_way);
	vhca_json_add_u64(obj, "together", stats->together);
	vhca_json_add_u64(obj, "most_at_once", stats->most_at_once);
	vhca_json_add_u64(obj, "applied", stats->applied);
	vhca_json_add_u64(obj, "unchanged", stats->unchanged);
	vhca_json_add_u64(obj, "refused", stats->refused);
	vhca_json_add_u64(obj, "rolled_back", stats->rolled_back);
	vhca_json_add_u64(obj, "repairing", stats->repairing);
	vhca_json_add_u64(obj, "repaired", stats->repaired);
	vhca_json_add_u64(obj, "lft_smps", stats->lft_smps);
	vhca_json_add_u64(obj, "port_info_smps", stats->port_smps);
	vhca_json_add_u64(obj, "drain_smps", stats->drain_smps);
	return obj;
}

static struct json_object *place_to_json(uint16_t lid, const struct vhca_osm_lid_place *place)
{
	struct json_object *obj = json_object_new_object();

	vhca_json_add_u64(obj, "lid", lid);
	vhca_json_add_guid(obj, "vguid", place->vguid);
	vhca_json_add_guid(obj, "port_guid", place->port_guid);
	vhca_json_add_guid(obj, "node_guid", place->node_guid);
	vhca_json_add_string(obj, "node", place->node);
	vhca_json_add_bool(obj, "is_switch", place->is_switch);
	vhca_json_add_guid(obj, "switch_guid", place->switch_guid);
	vhca_json_add_u64(obj, "switch_port", place->switch_port);
	vhca_json_add_guid(obj, "leaf_guid", place->leaf_guid);
	return obj;
}

struct json_object *vhca_osm_json_lids(const struct vhca_osm_mover *m,
				       const struct vhca_osm_page *page)
{
	struct json_object *obj = json_object_new_object(), *rows = json_object_new_array();
	struct vhca_osm_lid_set has;
	struct vhca_osm_lid_place place;
	uint16_t last = 0;
	size_t n = 0;

	vhca_osm_mover_list(m, &has);
	for (uint32_t lid = (uint32_t)page->after + 1; lid < VHCA_OSM_LIDS; lid++) {
		if (!vhca_osm_lid_set_has(&has, (uint16_t)lid) ||
		    !vhca_osm_mover_find(m, (uint16_t)lid, &place))
			continue;
		if (n++ == page->limit)
			break;
		last = (uint16_t)lid;
		(void)json_object_array_add(rows, place_to_json(last, &place));
	}
	vhca_json_cut_list(rows, page->fields);
	vhca_json_add(obj, "lids", rows);
	if (n > page->limit)
		vhca_json_add_u64(obj, "next", last);
	else
		vhca_json_add(obj, "next", NULL);
	return obj;
}

/* A request that is answered when its LID has moved. */
struct pending_answer {
	struct vhca_osm_recent *recent;
	struct vhca_http_request *req;
	struct json_object *body; /* to which the move is added; NULL: the move is the answer */
};

static void on_lid_moved(void *arg, const struct vhca_osm_lid_move *move,
			 const struct vhca_error *err)
{
	VHCA_AUTO_FREE struct pending_answer *pending = arg;
	struct json_object *body = pending->body;

	vhca_osm_recent_add_lid(pending->recent, move, err);
	if (err) {
		(void)json_object_put(body);
		vhca_http_reply_error(pending->req, err);
		return;
	}
	if (body)
		vhca_json_add(body, "lid_move", lid_move_to_json(move));
	vhca_http_reply(pending->req, 200, body ? body : lid_move_to_json(move));
}

/* ---- requests ---- */

static int submit(struct vhca_osm_mover *m, struct vhca_osm_recent *recent,
		  struct vhca_http_request *req, const struct vhca_osm_lid_move *want,
		  struct vhca_error *err)
{
	struct pending_answer *pending = calloc(1, sizeof(*pending));
	int r;

	if (!pending)
		return vhca_error_no_memory(err, "move");
	*pending = (struct pending_answer){.recent = recent, .req = req};
	r = vhca_osm_mover_submit(m, want, on_lid_moved, pending, err);
	if (r < 0)
		free(pending);
	return r;
}

void vhca_osm_api_put_lid(struct vhca_osm_mover *m, struct vhca_osm_recent *recent,
			  struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_lid_move move = {.mode = VHCA_OSM_AUTO};
	struct json_object *planned = NULL;
	bool plan = false;
	int r = read_lid(req, &move.want.lid, &err);

	if (r == 0)
		r = read_plan(req, &plan, &err);
	if (r == 0)
		r = read_move(vhca_http_body(req), &move, &err);
	if (r == 0 && !plan)
		r = submit(m, recent, req, &move, &err);
	else if (r == 0)
		r = vhca_osm_json_lid_plan(m, &move, &planned, &err);
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else if (plan)
		vhca_http_reply(req, 200, planned);
}

void vhca_osm_api_get_lid(struct vhca_osm_mover *m, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_lid_place place;
	uint16_t lid = 0;
	int r = read_lid(req, &lid, &err);

	if (r == 0 && !vhca_osm_mover_find(m, lid, &place))
		r = vhca_error_set(&err, VHCA_ERR_NOT_FOUND, "unknown_lid", 0,
				   "LID %u belongs to no port now", lid);
	if (r < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	vhca_http_reply(req, 200, place_to_json(lid, &place));
}

/* What was under way when OpenSM reroutes is planned anew or refused, as after any reroute. */
static void rebalance(struct vhca_osm_mover *m, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_lid_counts lids;
	struct json_object *obj;

	vhca_osm_mover_counts(m, &lids);
	if (vhca_osm_mover_rebalance(m, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	obj = json_object_new_object();
	vhca_json_add_string(obj, "state", "asked");
	vhca_json_add_u64(obj, "kept_lids", lids.kept);
	vhca_http_reply(req, 200, obj);
}

void vhca_osm_api_steer(struct vhca_osm_mover *m, struct vhca_http_request *req)
{
	const char *word = strrchr(vhca_http_path(req), '/');
	struct vhca_osm_mover_stats stats;
	struct json_object *obj;

	if (strcmp(word, "/rebalance") == 0) {
		rebalance(m, req);
		return;
	}
	vhca_osm_mover_pause(m, strcmp(word, "/pause") == 0);
	vhca_osm_mover_stats(m, &stats);
	obj = json_object_new_object();
	vhca_json_add_bool(obj, "paused", stats.paused);
	vhca_json_add_u64(obj, "waiting", stats.queued - stats.under_way);
	vhca_json_add_u64(obj, "under_way", stats.under_way);
	vhca_http_reply(req, 200, obj);
}

void vhca_osm_api_get_fabric(struct vhca_osm_mover *m, struct vhca_http_request *req)
{
	struct json_object *obj = json_object_new_object();
	struct vhca_osm_mover_stats stats;
	struct vhca_osm_fabric_info info;
	struct vhca_osm_lid_counts lids;

	vhca_osm_mover_info(m, &info);
	vhca_osm_mover_counts(m, &lids);
	vhca_osm_mover_stats(m, &stats);
	vhca_json_add_u64(obj, "switches", info.switches);
	vhca_json_add_u64(obj, "ports", info.ports);
	vhca_json_add_u64(obj, "max_lid", info.max_lid);
	vhca_json_add_u64(obj, "dynamic_lids", info.dynamic_lids);
	vhca_json_add_u64(obj, "dynamic_max", info.dynamic_max);
	vhca_json_add_u64(obj, "kept_lids", lids.kept);
	vhca_json_add_u64(obj, "sm_lid", info.sm_lid);
	vhca_json_add_guid(obj, "sm_port_guid", info.sm_port_guid);
	vhca_json_add_string(obj, "routing_engine", info.engine);
	vhca_json_add_u64(obj, "sweeps", stats.sweeps);
	vhca_json_add(obj, "moves", moves_to_json(&stats));
	vhca_http_reply(req, 200, obj);
}

/* ---- LIDs of bindings ---- */

struct vhca_osm_lid_want vhca_osm_wanted_dynamic(const struct vhca_osm_binding *b)
{
	return (struct vhca_osm_lid_want){
		.port_guid = b->port_guid, .vguid = b->vguid, .dynamic = VHCA_OSM_LID_GIVEN};
}

struct vhca_osm_lid_want vhca_osm_wanted_lid(const struct vhca_osm_binding *b,
					     const struct vhca_osm_relocation *relocation)
{
	if (relocation->lid_policy == VHCA_OSM_LID_OF_VPORT)
		return (struct vhca_osm_lid_want){
			.port_guid = b->port_guid, .vguid = b->vguid, .vport = relocation->vport};
	if (relocation->lid_policy == VHCA_OSM_LID_DYNAMIC)
		return vhca_osm_wanted_dynamic(b);
	return (struct vhca_osm_lid_want){.lid = relocation->from_lid,
					  .from_port = relocation->from_port,
					  .port_guid = b->port_guid};
}

void vhca_osm_api_move_lid(struct vhca_osm_mover *m, struct vhca_osm_recent *recent,
			   struct vhca_http_request *req, const struct vhca_osm_lid_want *want,
			   struct json_object *body)
{
	const struct vhca_osm_lid_move move = {.want = *want};
	struct pending_answer *pending = calloc(1, sizeof(*pending));
	struct vhca_error err = VHCA_ERROR_INIT;
	int r = pending ? 0 : vhca_error_no_memory(&err, "move");

	if (r == 0) {
		*pending = (struct pending_answer){.recent = recent, .req = req, .body = body};
		r = vhca_osm_mover_queue(m, &move, on_lid_moved, pending, &err);
	}
	if (r == 0)
		return;
	vhca_http_reply_error(req, &err);
	(void)json_object_put(body);
	free(pending);
}
