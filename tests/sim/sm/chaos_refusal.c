/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a plugin says to whatever it is asked when it is no master's, or does not know the agent: in
 * its own words where these can be had (docs/design/0001-foundation.md has the codes).
 */
#include <stdio.h>

#include "common/base/codes.h"
#include "common/http/json.h"
#include "opensm/bindings/nodes.h"
#include "opensm/bindings/subnet.h"
#include "opensm/lids/mover.h"
#include "tests/sim/hosts/chaos.h"

#define MASTER_GUID UINT64_C(0x0002c90300000f00)

static void standby(void *ctx, struct vhca_osm_status *ret)
{
	(void)ctx;
	*ret = (struct vhca_osm_status){.sm_state = "standby", .master_guid = MASTER_GUID};
}

static void not_master(struct vhca_error *err)
{
	static const struct vhca_osm_subnet_ops ops = {.status = standby};
	const struct vhca_osm_subnet subnet = {.ops = &ops};

	(void)vhca_osm_check_master(&subnet, err);
}

/* As common/http/auth_server.c has it of a server with a token_file. */
static void unauthorized(struct vhca_error *err)
{
	(void)vhca_error_set(err, VHCA_ERR_DENIED, VHCA_CODE_UNAUTHORIZED, 0,
			     "the request has no token that this server knows");
	vhca_error_hint(err, "send \"Authorization: Bearer\" with a token of the server's "
			     "token_file");
}

/* As common/http/caller.c has it of a token whose line was changed. */
static void role_needed(const struct chaos_request *req, struct vhca_error *err)
{
	(void)vhca_error_set(err, VHCA_ERR_DENIED, VHCA_CODE_ROLE_NEEDED, 0,
			     "the role agent is needed, and token:host%u has read: %s %.80s",
			     req->from, req->method, req->path);
	vhca_error_hint(err, "the token's line in token_file says what it may");
}

/* Somebody has written its port into another node's line. */
static void not_your_port(const struct chaos *c, const struct chaos_request *req,
			  struct vhca_error *err)
{
	const struct vhca_osm_agent other = {.node = "other"};
	struct vhca_osm_agent_port port = {.guid = c->hosts[req->from].w.port_guid,
					   .agent = &other};
	const struct vhca_osm_agents agents = {.listed = true, .n_ports = 1, .ports = &port};
	char name[16];
	const struct vhca_osm_node by = {.name = name};

	(void)snprintf(name, sizeof(name), "token:host%u", req->from);
	(void)vhca_osm_node_check(&agents, c->sms[req->sm].table, &by, port.guid, true, err);
}

/* No plugin of ours says so; the agent knows it (docs/design/0001-foundation.md). */
static void rebuilding(struct vhca_error *err)
{
	(void)vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_REBUILDING, 0,
			     "the bindings are still being collected");
}

/* opensm/lids/mover.c */
static void sweep_in_progress(struct vhca_error *err)
{
	(void)vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "sweep_in_progress", 0,
			     "OpenSM's sweep did not end in %d s", VHCA_OSM_MOVE_WAIT_MS / 1000);
	vhca_error_hint(err, "nothing was changed; see OpenSM's log, and ask again");
}

static enum chaos_sm_mood mood_to(const struct chaos *c, unsigned int host)
{
	return c->mood_to == CHAOS_EVERYBODY || c->mood_to == host ? c->mood : CHAOS_SM_WELL;
}

int chaos_sm_refuse(const struct chaos *c, const struct chaos_request *req,
		    struct json_object **ret)
{
	enum chaos_sm_mood mood = mood_to(c, req->from);
	struct vhca_error err = VHCA_ERROR_INIT;

	if (req->sm != c->sm_master)
		not_master(&err);
	else if (mood == CHAOS_SM_REBUILDS)
		rebuilding(&err);
	else if (mood == CHAOS_SM_UNAUTHORIZED)
		unauthorized(&err);
	else if (mood == CHAOS_SM_NO_ROLE)
		role_needed(req, &err);
	else if (mood == CHAOS_SM_NOT_YOUR_PORT)
		not_your_port(c, req, &err);
	else
		return 0;
	*ret = vhca_json_problem(&err);
	return vhca_json_problem_status(&err);
}

bool chaos_lid_moves(const struct chaos *c, unsigned int host)
{
	return mood_to(c, host) != CHAOS_SM_SWEEPS;
}

int chaos_lid_refuse(const struct chaos *c, const struct chaos_request *req,
		     struct json_object **ret)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	if (chaos_lid_moves(c, req->from) || !req->body ||
	    !json_object_object_get(req->body, "lid_policy"))
		return 0;
	sweep_in_progress(&err);
	json_object_put(*ret);
	*ret = vhca_json_problem(&err);
	return vhca_json_problem_status(&err);
}
