/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/exposition.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/http/json.h"
#include "common/http/server.h"
#include "opensm/http/api_private.h"
#include "opensm/http/descriptors.h"
#include "opensm/http/fields.h"
#include "opensm/http/follow.h"
#include "opensm/http/gone.h"
#include "opensm/http/json.h"
#include "opensm/http/lids.h"
#include "opensm/http/metrics.h"
#include "opensm/http/owner.h"
#include "opensm/http/page/page.h"
#include "opensm/http/readiness.h"

/* How often it is looked whether OpenSM's tables can be had. */
#define RESUME_MS 5

/* ---- while OpenSM computes ways ---- */

/*
 * True if the request is taken care of: handler() is called when OpenSM's tables can be had, behind
 * what came before. So the server itself never waits for OpenSM nor for a disk, and answers for the
 * subnet's health while somebody else does.
 */
static bool defer(struct vhca_osm_api *api, struct vhca_http_request *req,
		  vhca_osm_handler_fn handler)
{
	if (!api->receiving)
		return false;
	vhca_osm_backlog_add(&api->deferred, req, handler, api);
	return true;
}

/* ---- answers that wait for the disk ---- */

static void answer_waiting(struct vhca_osm_api *api, int r, const struct vhca_error *err)
{
	for (size_t i = 0; i < api->n_waiting; i++) {
		struct waiting *w = &api->waiting[i];

		if (r < 0) {
			(void)json_object_put(w->body);
			vhca_http_reply_error(w->req, err);
		} else if (w->moves) {
			vhca_osm_api_move_lid(api->mover, &api->recent, w->req, &w->want, w->body);
		} else {
			vhca_http_reply(w->req, 200,
					w->answer ? w->answer(api->service, w->guid) : w->body);
		}
	}
	api->n_waiting = 0;
}

static void make_durable(struct vhca_osm_api *api)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	answer_waiting(api, vhca_osm_service_commit(api->service, &err), &err);
}

static void reply_when_durable(struct vhca_osm_api *api, const struct waiting *w)
{
	if (api->n_waiting == VHCA_OSM_CONNECTIONS_MAX)
		make_durable(api);
	api->waiting[api->n_waiting++] = *w;
}

/*
 * The LIDs of reports that arrive together are asked for together: one of them alone would change
 * each switch.
 */
static void move_when_durable(struct vhca_osm_api *api, struct vhca_http_request *req,
			      const struct vhca_osm_lid_want *want, struct json_object *body)
{
	reply_when_durable(
		api, &(struct waiting){.req = req, .body = body, .moves = true, .want = *want});
}

/* Is a dynamic LID of this vGUID waited for? */
static bool waits_for_lid(const struct vhca_osm_api *api, uint64_t vguid)
{
	for (size_t i = 0; i < api->n_waiting; i++)
		if (api->waiting[i].moves && api->waiting[i].want.dynamic &&
		    api->waiting[i].want.vguid == vguid)
			return true;
	return vhca_osm_mover_has_queued(api->mover, vguid);
}

/*
 * A refusal because of the epoch says what is known, so that the sender can go on from there; one
 * because of the owner, whose ticket would help.
 */
static void refuse(const struct vhca_osm_api *api, struct vhca_http_request *req, uint64_t vguid,
		   const struct vhca_error *err)
{
	const struct vhca_osm_binding *known =
		vhca_osm_table_find(vhca_osm_service_table(api->service), vguid);
	struct json_object *doc = vhca_json_problem(err);

	if (known &&
	    (vhca_error_is(err, VHCA_CODE_SUPERSEDED) || vhca_error_is(err, VHCA_CODE_EPOCH_TIE)))
		vhca_osm_json_add_known(doc, known);
	if (vhca_error_is(err, VHCA_CODE_NOT_THE_OWNER))
		vhca_osm_json_add_signers(doc, &api->owners, vguid);
	vhca_http_reply_error_doc(req, err, doc);
}

/* Whose word a request is: NULL if it is bound to no node, as without [agents], and an admin's. */
static const struct vhca_osm_node *speaker(const struct vhca_osm_api *api,
					   const struct vhca_http_request *req,
					   struct vhca_osm_node *ret)
{
	const struct vhca_osm_agents *agents = api->door.rules.agents;
	const char *caller = vhca_http_caller(req);

	if (!agents->listed || vhca_http_role(req) == VHCA_CALLER_ADMIN)
		return NULL;
	ret->line = vhca_osm_agents_find(agents, caller);
	ret->name = ret->line ? ret->line->node : caller;
	return ret;
}

static int check_speaker(const struct vhca_osm_api *api, const struct vhca_http_request *req,
			 uint64_t port_guid, struct vhca_error *err)
{
	struct vhca_osm_node node;

	return vhca_osm_report_check_speaker(api->reports, speaker(api, req, &node), port_guid,
					     err);
}

static int pin(struct vhca_osm_api *api, const struct vhca_http_request *req, uint64_t port_guid,
	       struct vhca_error *err)
{
	struct vhca_osm_node node;

	return vhca_osm_owners_pin(&api->owners, api->reports, speaker(api, req, &node), port_guid,
				   err);
}

/* check_speaker() has allowed it. Whose it is then is written into b. */
static int put_spoken(struct vhca_osm_api *api, const struct vhca_http_request *req,
		      struct vhca_osm_binding *b, const struct vhca_osm_proof *proof,
		      uint64_t from_port, struct vhca_osm_eviction *ret, struct vhca_error *err)
{
	const struct vhca_osm_binding *known =
		vhca_osm_table_find(vhca_osm_service_table(api->service), b->vguid);
	uint64_t old_port = known && !known->withdrawn ? known->port_guid : 0;
	struct vhca_osm_node node;
	int r = vhca_osm_owners_put(&api->owners, api->reports, speaker(api, req, &node), b, proof,
				    from_port, ret, err);

	if (r < 0)
		return r;
	if (old_port && old_port != b->port_guid)
		vhca_osm_recent_add_binding(&api->recent, b, old_port, ret);
	return pin(api, req, b->port_guid, err);
}

/* ---- handlers ---- */

/* Those that were allowed one, and are not on disk yet, count as those that wait for it do. */
static int look_for_lid(const struct vhca_osm_api *api, struct vhca_osm_lid_move *move,
			struct vhca_error *err)
{
	bool waits = false;
	size_t n = 0;
	int r;

	for (size_t i = 0; i < api->n_waiting; i++) {
		const struct vhca_osm_lid_want *other = &api->waiting[i].want;

		if (!api->waiting[i].moves || !other->is_new)
			continue;
		waits |= other->vguid == move->want.vguid;
		n += other->vguid != move->want.vguid;
	}
	r = vhca_osm_mover_check(api->mover, move, n, err);
	move->want.is_new = move->want.is_new && !waits;
	return r;
}

/* What the LID is refused for is known before the binding changes. */
static int put_with_lid(struct vhca_osm_api *api, struct vhca_http_request *req,
			struct vhca_osm_binding *b, const struct vhca_osm_proof *proof,
			struct vhca_error *err)
{
	struct vhca_osm_lid_move move = {.want = vhca_osm_wanted_dynamic(b)};
	struct vhca_osm_eviction ev;
	int r = look_for_lid(api, &move, err);

	if (r == 0)
		r = put_spoken(api, req, b, proof, 0, &ev, err);
	if (r == 0)
		move_when_durable(api, req, &move.want,
				  vhca_osm_json_binding_now(api->service, b->vguid));
	return r;
}

static void put_binding(void *ctx, struct vhca_http_request *req)
{
	struct vhca_osm_api *api = ctx;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_eviction ev;
	uint16_t pkeys[VHCA_OSM_PORT_PKEYS_MAX];
	struct vhca_osm_binding b = {.pkeys = pkeys};
	struct vhca_osm_proof proof = {.n_tickets = 0};
	bool dynamic = false;
	int r = vhca_osm_read_guid(vhca_http_param(req, 0), "path", &b.vguid, &err);

	if (defer(api, req, put_binding))
		return;
	if (r == 0)
		r = vhca_osm_read_binding(vhca_http_body(req), &b, &dynamic, &proof, &err);
	if (r == 0)
		r = check_speaker(api, req, b.port_guid, &err);
	if (r == 0)
		r = dynamic ? put_with_lid(api, req, &b, &proof, &err)
			    : put_spoken(api, req, &b, &proof, 0, &ev, &err);
	if (r < 0)
		refuse(api, req, b.vguid, &err);
	else if (!dynamic)
		reply_when_durable(api, &(struct waiting){.req = req,
							  .answer = vhca_osm_json_binding_now,
							  .guid = b.vguid});
}

static void delete_binding(void *ctx, struct vhca_http_request *req)
{
	struct vhca_osm_api *api = ctx;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_lid_move move = {.want = {.dynamic = VHCA_OSM_LID_FREED}};
	uint64_t vguid = 0, epoch = 0, port_guid = 0;
	const struct vhca_osm_table *table = vhca_osm_service_table(api->service);
	struct vhca_osm_node node;
	const struct vhca_osm_node *by = speaker(api, req, &node);
	bool said_keep = false, keeps_lid, nothing = false, frees;
	int r = vhca_osm_read_guid(vhca_http_param(req, 0), "path", &vguid, &err);

	if (defer(api, req, delete_binding))
		return;
	if (r == 0)
		r = vhca_osm_read_epoch(req, &epoch, &err);
	if (r == 0)
		r = vhca_osm_read_withdrawer(req, &port_guid, &err);
	if (r == 0)
		r = vhca_osm_read_keep(req, &said_keep, &err);
	move.want.vguid = vguid;
	keeps_lid = said_keep || vhca_osm_node_leaves_rest(api->door.rules.agents, table, by, vguid,
							   epoch, port_guid);
	if (r == 0)
		r = vhca_osm_report_check_withdrawer(api->reports, by, vguid, epoch, port_guid,
						     &err);
	if (r == 0)
		r = vhca_osm_owners_check_withdrawal(&api->owners, by, vguid, epoch, &nothing,
						     &err);
	keeps_lid = keeps_lid || nothing;
	if (r == 0 && !keeps_lid)
		r = vhca_osm_mover_check(api->mover, &move, 0, &err);
	if (r == 0 && !nothing)
		r = vhca_osm_owners_withdraw(&api->owners, api->reports, by, vguid, epoch,
					     port_guid, said_keep, &err);
	if (r == 0 && port_guid)
		r = pin(api, req, port_guid, &err);
	/* Behind the request for it, whose sender may be gone. */
	frees = !keeps_lid && (move.changes || waits_for_lid(api, vguid));
	if (r == 0 && frees)
		move_when_durable(api, req, &move.want,
				  vhca_osm_json_binding_now(api->service, vguid));
	if (r < 0)
		refuse(api, req, vguid, &err);
	else if (!frees)
		reply_when_durable(api, &(struct waiting){.req = req,
							  .answer = vhca_osm_json_binding_now,
							  .guid = vguid});
}

/* What was known of it is the answer. */
static void forget_one(struct vhca_osm_api *api, struct vhca_http_request *req,
		       struct json_object *(*tell)(const struct vhca_osm_service *s, uint64_t guid),
		       int (*forget)(struct vhca_osm_reports *reports, uint64_t guid,
				     struct vhca_error *err))
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct json_object *body = NULL;
	uint64_t guid = 0;
	int r = vhca_osm_read_guid(vhca_http_param(req, 0), "path", &guid, &err);

	if (r == 0)
		body = tell(api->service, guid);
	if (r == 0)
		r = forget(api->reports, guid, &err);
	if (r == 0) {
		reply_when_durable(api, &(struct waiting){.req = req, .body = body});
		return;
	}
	(void)json_object_put(body);
	vhca_http_reply_error(req, &err);
}

static void forget_epoch(void *ctx, struct vhca_http_request *req)
{
	if (!defer(ctx, req, forget_epoch))
		forget_one(ctx, req, vhca_osm_json_epoch, vhca_osm_report_forget);
}

static void release_pin(void *ctx, struct vhca_http_request *req)
{
	if (!defer(ctx, req, release_pin))
		forget_one(ctx, req, vhca_osm_json_pin, vhca_osm_report_unpin);
}

static void name_owner(void *ctx, struct vhca_http_request *req)
{
	struct vhca_osm_api *api = ctx;

	if (!defer(api, req, name_owner))
		vhca_osm_api_name_owner(api->service, &api->owners, req);
}

/* Nothing is changed for a vGUID whose keys have no room at its new place. */
static int check_place(const struct vhca_osm_api *api, const struct vhca_osm_binding *b,
		       const struct vhca_osm_relocation *relocation, struct vhca_error *err)
{
	if (relocation->lid_policy != VHCA_OSM_LID_OF_VPORT)
		return 0;
	return vhca_osm_report_check_place(api->reports, b, relocation->vport, err);
}

/* It changes the LID of another node's port. */
static int check_follow_role(const struct vhca_osm_api *api, const struct vhca_http_request *req,
			     const struct vhca_osm_relocation *relocation, struct vhca_error *err)
{
	struct vhca_osm_node node;
	int r;

	if (!speaker(api, req, &node) || relocation->lid_policy != VHCA_OSM_LID_FOLLOWS)
		return 0;
	r = vhca_error_set(err, VHCA_ERR_DENIED, VHCA_CODE_ROLE_NEEDED, 0,
			   "lid_policy follow needs the role admin: LID %u may be another node's",
			   relocation->from_lid);
	vhca_error_hint(err,
			"a certificate that [agents] lists is agent and nothing else: ask as one "
			"that [http] roles in vhcasm.conf names, or with a token of that role");
	return r;
}

/* Answers if it is done: nothing was changed. */
static int prepare_relocation(struct vhca_osm_api *api, struct vhca_http_request *req,
			      const struct vhca_osm_binding *b,
			      struct vhca_osm_relocation *relocation, struct vhca_error *err)
{
	const struct vhca_osm_table *table = vhca_osm_service_table(api->service);
	struct vhca_osm_lid_move move = {.want = vhca_osm_wanted_lid(b, relocation)};
	struct json_object *plan = NULL, *body;
	int r = 0;

	if (relocation->lid_policy != VHCA_OSM_LID_HOST)
		r = vhca_osm_json_lid_plan(api->mover, &move, &plan, err);
	if (r == 0)
		r = vhca_osm_check_follow(table, b, relocation, &move, err);
	if (r == 0)
		r = check_place(api, b, relocation, err);
	if (r == 0) /* whoever is to have it is named later, as it is handed over */
		r = vhca_osm_report_prepare(api->reports, b, relocation->from_port,
					    &relocation->eviction, err);
	if (r < 0) {
		(void)json_object_put(plan);
		return r;
	}
	body = vhca_osm_json_relocation(api->service, b, relocation);
	if (plan)
		vhca_json_add(body, "lid_move", plan);
	vhca_http_reply(req, 200, body);
	return 0;
}

/* Both or nothing: what the LID's move would be refused for is known before the binding changes. */
static int commit_relocation(struct vhca_osm_api *api, struct vhca_http_request *req,
			     struct vhca_osm_binding *b, struct vhca_osm_relocation *relocation,
			     struct vhca_error *err)
{
	const struct vhca_osm_table *table = vhca_osm_service_table(api->service);
	struct vhca_osm_lid_move move = {.want = vhca_osm_wanted_lid(b, relocation)};
	struct json_object *body;
	int r = 0;

	if (relocation->lid_policy != VHCA_OSM_LID_HOST)
		r = look_for_lid(api, &move, err);
	if (r == 0)
		r = vhca_osm_check_follow(table, b, relocation, &move, err);
	if (r == 0)
		r = check_place(api, b, relocation, err);
	if (r == 0)
		r = put_spoken(api, req, b, &relocation->proof, relocation->from_port,
			       &relocation->eviction, err);
	if (r < 0)
		return r;
	body = vhca_osm_json_relocation(api->service, b, relocation);
	if (relocation->lid_policy != VHCA_OSM_LID_HOST)
		move_when_durable(api, req, &move.want, body);
	else
		reply_when_durable(api, &(struct waiting){.req = req, .body = body});
	return 0;
}

static void post_move(void *ctx, struct vhca_http_request *req)
{
	struct vhca_osm_api *api = ctx;
	struct vhca_error err = VHCA_ERROR_INIT;
	uint16_t pkeys[VHCA_OSM_PORT_PKEYS_MAX];
	struct vhca_osm_binding b = {.pkeys = pkeys};
	struct vhca_osm_relocation relocation = {.commit = false};
	int r = vhca_osm_read_relocation(vhca_http_body(req), &b, &relocation, &err);

	if (defer(api, req, post_move))
		return;
	if (r == 0)
		r = check_follow_role(api, req, &relocation, &err);
	if (r == 0)
		r = check_speaker(api, req, b.port_guid, &err);
	if (r == 0)
		r = relocation.commit ? commit_relocation(api, req, &b, &relocation, &err)
				      : prepare_relocation(api, req, &b, &relocation, &err);
	if (r < 0)
		refuse(api, req, b.vguid, &err);
}

static void get_binding(void *ctx, struct vhca_http_request *req)
{
	struct vhca_osm_api *api = ctx;
	struct vhca_error err = VHCA_ERROR_INIT;
	uint64_t vguid = 0;
	int r = vhca_osm_read_guid(vhca_http_param(req, 0), "path", &vguid, &err);

	if (defer(api, req, get_binding))
		return;
	if (r == 0 && !vhca_osm_table_find(vhca_osm_service_table(api->service), vguid))
		r = vhca_error_set(&err, VHCA_ERR_NOT_FOUND, "unknown_binding", 0,
				   "%s: never reported", VHCA_GUID_STR(vguid));
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else
		vhca_http_reply(req, 200, vhca_osm_json_binding_now(api->service, vguid));
}

static void put_member(void *ctx, struct vhca_http_request *req)
{
	static const char *const members[] = {"pkeys", NULL};
	struct vhca_osm_api *api = ctx;
	struct json_object *body = vhca_http_body(req);
	struct vhca_error err = VHCA_ERROR_INIT;
	uint16_t pkeys[VHCA_OSM_PORT_PKEYS_MAX];
	uint64_t guid = 0;
	size_t n = 0;
	int r = vhca_osm_read_guid(vhca_http_param(req, 0), "path", &guid, &err);

	if (defer(api, req, put_member))
		return;
	if (r == 0)
		r = vhca_json_check_members(body, members, &err);
	if (r == 0)
		r = vhca_json_get_pkeys(body, "pkeys", pkeys, VHCA_OSM_PORT_PKEYS_MAX, &n, &err);
	if (r == 0)
		r = check_speaker(api, req, guid, &err);
	if (r == 0)
		r = vhca_osm_report_declare(api->reports, guid, pkeys, n, &err);
	if (r == 0)
		r = pin(api, req, guid, &err);
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else
		reply_when_durable(api, &(struct waiting){.req = req,
							  .answer = vhca_osm_json_member_now,
							  .guid = guid});
}

static void reply_later(void *arg, struct vhca_http_request *req, struct json_object *body)
{
	reply_when_durable(arg, &(struct waiting){.req = req, .body = body});
}

static void forget_port(void *ctx, struct vhca_http_request *req)
{
	struct vhca_osm_api *api = ctx;

	if (defer(api, req, forget_port))
		return;
	make_durable(api); /* LIDs that are asked for are in the queue then */
	vhca_osm_api_forget_port(api->service, api->mover, &api->recent, req, reply_later, api);
}

static struct json_object *make_health(const struct vhca_osm_api *api, const char *status)
{
	struct json_object *obj = vhca_osm_json_health(api->service, status);
	struct vhca_osm_lid_counts lids;

	vhca_osm_mover_counts(api->mover, &lids);
	vhca_json_add_u64(obj, "lids_free", lids.free);
	vhca_json_add_u64(obj, "guid2lid_lines", lids.lines);
	vhca_json_add(obj, "reasons", vhca_osm_json_reasons(api->service, api->mover));
	return obj;
}

static void get_health(void *ctx, struct vhca_http_request *req)
{
	vhca_http_reply(req, 200, make_health(ctx, "ok"));
}

static void get_ready(void *ctx, struct vhca_http_request *req)
{
	struct vhca_osm_api *api = ctx;
	struct vhca_osm_status status;

	vhca_osm_service_status(api->service, &status);
	vhca_http_reply(req, status.ready ? 200 : 503,
			make_health(api, status.ready ? "ready" : "not_ready"));
}

/* What is about LIDs needs OpenSM's tables. */
static void ask_mover(struct vhca_osm_api *api, struct vhca_http_request *req,
		      vhca_osm_handler_fn handler,
		      void (*answer)(struct vhca_osm_mover *, struct vhca_http_request *))
{
	if (!defer(api, req, handler))
		answer(api->mover, req);
}

static void put_lid(void *ctx, struct vhca_http_request *req)
{
	struct vhca_osm_api *api = ctx;

	if (!defer(api, req, put_lid))
		vhca_osm_api_put_lid(api->mover, &api->recent, req);
}

static void get_lid(void *ctx, struct vhca_http_request *req)
{
	ask_mover(ctx, req, get_lid, vhca_osm_api_get_lid);
}

static void steer(void *ctx, struct vhca_http_request *req)
{
	ask_mover(ctx, req, steer, vhca_osm_api_steer);
}

static void get_fabric(void *ctx, struct vhca_http_request *req)
{
	ask_mover(ctx, req, get_fabric, vhca_osm_api_get_fabric);
}

static void get_metrics(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_osm_api *api = ctx;
	char text[VHCA_OSM_METRICS_MAX];
	struct vhca_osm_metrics now;

	vhca_osm_metrics_take(api->service, api->mover, &now);
	vhca_http_server_stats(api->server, &now.http);
	vhca_osm_metrics_render(&now, text, sizeof(text));
	vhca_http_reply_text(req, 200, VHCA_EXPOSITION_TYPE, text);
}

static void get_openapi(void *ctx, struct vhca_http_request *req)
{
	(void)ctx;
	vhca_http_reply_document(req, vhca_osm_openapi);
}

/* Neither of the two needs OpenSM's tables. */
static void list_moves(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_osm_api *api = ctx;

	vhca_http_reply(req, 200, vhca_osm_json_recent(&api->recent));
}

static void get_page(void *ctx, struct vhca_http_request *req)
{
	(void)ctx;
	vhca_http_reply_page(req, vhca_osm_page, vhca_osm_page_policy);
}

static const struct vhca_http_route routes[] = {
	{"PUT", "/v1/bindings/{}", VHCA_CALLER_AGENT, put_binding},
	{"DELETE", "/v1/bindings/{}", VHCA_CALLER_AGENT, delete_binding,
	 "epoch port_guid keep_lid"},
	{"GET", "/v1/bindings/{}", VHCA_CALLER_READ, get_binding},
	{"GET", "/v1/bindings", VHCA_CALLER_READ, vhca_osm_list_bindings,
	 "limit after port_guid fields", vhca_osm_openapi_bindings},
	{"DELETE", "/v1/epochs/{}", VHCA_CALLER_ADMIN, forget_epoch},
	{"PUT", "/v1/owners/{}", VHCA_CALLER_ADMIN, name_owner},
	{"POST", "/v1/moves", VHCA_CALLER_AGENT, post_move},
	{"GET", "/v1/moves", VHCA_CALLER_READ, list_moves},
	{"PUT", "/v1/members/{}", VHCA_CALLER_AGENT, put_member},
	{"GET", "/v1/members", VHCA_CALLER_READ, vhca_osm_list_members,
	 "limit after port_guid fields", vhca_osm_openapi_members},
	{"DELETE", "/v1/pins/{}", VHCA_CALLER_ADMIN, release_pin},
	{"DELETE", "/v1/ports/{}", VHCA_CALLER_ADMIN, forget_port},
	{"PUT", "/v1/lids/{}", VHCA_CALLER_ADMIN, put_lid, "plan"},
	{"GET", "/v1/lids/{}", VHCA_CALLER_READ, get_lid},
	{"GET", "/v1/lids", VHCA_CALLER_READ, vhca_osm_list_lids, "limit after fields",
	 vhca_osm_openapi_lids},
	{"POST", "/v1/lids/rebalance", VHCA_CALLER_ADMIN, steer},
	{"POST", "/v1/lids/pause", VHCA_CALLER_ADMIN, steer},
	{"POST", "/v1/lids/resume", VHCA_CALLER_ADMIN, steer},
	{"GET", "/v1/fabric", VHCA_CALLER_READ, get_fabric},
	{"GET", "/", VHCA_CALLER_READ, get_page},
	{"GET", "/openapi.json", VHCA_CALLER_READ, get_openapi},
	{"GET", "/metrics", VHCA_CALLER_METRICS, get_metrics},
	{"GET", "/healthz", VHCA_CALLER_METRICS, get_health},
	{"GET", "/readyz", VHCA_CALLER_METRICS, get_ready},
	{.method = NULL},
};

/* ---- life ---- */

VHCA_DEFINE_CLEANUP(struct vhca_osm_api, vhca_osm_api_free)

static int open_door(struct vhca_osm_api *api, const struct vhca_osm_conf *conf,
		     struct vhca_error *err)
{
	struct vhca_http_limits limits = {
		.body_max = VHCA_OSM_BODY_MAX,
		.connections_max = vhca_osm_descriptors_for(VHCA_OSM_CONNECTIONS_MAX),
		.answering_max = VHCA_HTTP_ANSWERING_MAX,
		.connection_memory = VHCA_OSM_CONNECTION_MEMORY,
	};
	int r = vhca_osm_door_open(conf, &api->door, err);

	if (r < 0)
		return r;
	vhca_osm_owners_init(&api->owners, conf, api->reports->table, api->door.auth);
	limits.auth = api->door.auth;
	limits.rules = &api->door.rules;
	return vhca_http_server_new(conf->listen, conf->socket_mode, &limits, routes, api,
				    &api->server, err);
}

int vhca_osm_api_new(const struct vhca_osm_conf *conf, struct vhca_osm_service *service,
		     struct vhca_osm_mover *mover, struct vhca_osm_api **ret,
		     struct vhca_error *err)
{
	VHCA_CLEANUP(vhca_osm_api_freep) struct vhca_osm_api *api = calloc(1, sizeof(*api));
	int r;

	if (!api)
		return vhca_error_no_memory(err, "vhcasm");
	api->service = service;
	api->reports = vhca_osm_service_reports(service);
	api->mover = mover;
	vhca_osm_backlog_init(&api->deferred);
	vhca_osm_backlog_init(&api->lists);
	r = open_door(api, conf, err);
	if (r == 0)
		*ret = vhca_steal_ptr(&api);
	return r;
}

void vhca_osm_api_look(struct vhca_osm_api *api)
{
	vhca_osm_door_look(&api->door);
}

void vhca_osm_api_take_over(struct vhca_osm_api *api, bool was_standby)
{
	vhca_osm_owners_take_over(&api->owners, was_standby);
}

struct vhca_osm_api *vhca_osm_api_free(struct vhca_osm_api *api)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	int r;

	if (!api)
		return NULL;
	r = vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "ending", 0, "OpenSM ends");
	vhca_error_hint(&err, "ask again when there is another master, or this one is back");
	answer_waiting(api, r, &err); /* who waits has not gone himself */
	vhca_osm_backlog_refuse(&api->deferred, &err);
	vhca_osm_backlog_refuse(&api->lists, &err);
	(void)vhca_http_server_free(api->server);
	vhca_osm_owners_done(&api->owners);
	vhca_osm_door_done(&api->door);
	free(api);
	return NULL;
}

int vhca_osm_api_fd(const struct vhca_osm_api *api)
{
	return vhca_http_server_fd(api->server);
}

/* Lists wait as long as OpenSM computes ways: what they show is in its tables. */
static bool may_list(const struct vhca_osm_api *api)
{
	return api->lists.n > 0 && !vhca_osm_service_is_busy(api->service);
}

int vhca_osm_api_timeout_ms(const struct vhca_osm_api *api)
{
	int ms = vhca_http_server_timeout_ms(api->server);

	if (may_list(api))
		return 0;
	if ((api->deferred.n > 0 || api->lists.n > 0 || api->n_waiting > 0) &&
	    (ms < 0 || ms > RESUME_MS))
		return RESUME_MS;
	return ms;
}

int vhca_osm_api_receive_timeout_ms(const struct vhca_osm_api *api)
{
	return vhca_http_server_timeout_ms(api->server);
}

void vhca_osm_api_receive(struct vhca_osm_api *api)
{
	api->receiving = true;
	vhca_http_server_run(api->server);
	api->receiving = false;
}

/* Not those that come while a file is written for one of these: the thread has more to do. */
static void answer(struct vhca_osm_api *api)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	int r;

	for (size_t n = api->deferred.n; n > 0 && !vhca_osm_service_is_busy(api->service); n--)
		vhca_osm_backlog_resume(&api->deferred);
	if (api->n_waiting == 0)
		return;
	r = vhca_osm_service_commit(api->service, &err);
	/* What the senders are told is in OpenSM's tables: they hear when those can be had. */
	if (r < 0 || !vhca_osm_service_is_busy(api->service))
		answer_waiting(api, r, &err);
}

void vhca_osm_api_run(struct vhca_osm_api *api)
{
	vhca_osm_api_receive(api);
	if (api->deferred.n == 0 && api->n_waiting == 0 && !may_list(api))
		return;
	answer(api);
	if (may_list(api))
		vhca_osm_backlog_resume(&api->lists);
	/* Lets the answers leave; what arrives meanwhile waits for the next write. */
	vhca_osm_api_receive(api);
	answer(api);
}
