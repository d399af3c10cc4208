/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The SM: the common one (sim_sm.h) behind the requests that the production outbox makes
 * (docs/design/0001-foundation.md, 0002). Its state survives it, as the plugin's file does; a
 * second one has a state of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/http/json.h"
#include "tests/sim/host/vtime.h"
#include "tests/sim/hosts/chaos.h"

#define SWEEP_MS 3000

/* ---- who is master ---- */

struct sim_sm *chaos_master(struct chaos *c)
{
	return &c->sms[c->sm_master];
}

/* OpenSM writes its LID into each port, and asks for everything that it should know. */
static void on_reregister(void *arg)
{
	struct chaos_host *h = arg;

	if (h->w.engine && !chaos_is(h->chaos, CHAOS_UNHEARD_MASTER))
		world_reregister(&h->w);
}

static void on_swept(void *arg)
{
	struct chaos_host *h = arg;

	h->w.sm_lid = (uint16_t)(1 + h->chaos->sm_master);
	vtime_after(VTIME_AGENT_OF(h->n), 0, on_reregister, h, NULL);
}

void chaos_sm_takes_over(struct chaos *c, bool knows_nothing)
{
	c->sm_master = !c->sm_master;
	chaos_trace(c, "SM %u is master%s", c->sm_master,
		    knows_nothing ? ", and knows nothing" : "");
	if (knows_nothing) {
		sim_sm_done(chaos_master(c));
		sim_sm_init(chaos_master(c), false);
	}
	chaos_lids_forget(c);
	ledger_sm_takes_over(&c->ledger, c->sm_master, knows_nothing);
	for (unsigned int i = 0; i < c->n_hosts; i++)
		vtime_after(VTIME_WORLD, 100 + chaos_random(c, SWEEP_MS), on_swept, &c->hosts[i],
			    NULL);
}

/* ---- its answers ---- */

static int refuse(struct chaos *c, uint64_t vguid, const struct vhca_error *err,
		  struct json_object **ret)
{
	*ret = vhca_json_problem(err);
	sim_sm_add_known(chaos_master(c), vguid, *ret);
	return vhca_json_problem_status(err);
}

/* The place: {port_guid, gid_index, lid}. */
static int parse_place(struct json_object *o, struct vhca_osm_binding *ret, struct vhca_error *err)
{
	uint64_t index = 0, lid = 0;
	int r = vhca_json_get_guid(o, "port_guid", &ret->port_guid, err);

	if (!r)
		r = vhca_json_get_u64(o, "gid_index", UINT16_MAX, &index, err);
	if (!r)
		r = vhca_json_get_u64(o, "lid", UINT16_MAX, &lid, err);
	ret->gid_index = (uint16_t)index;
	ret->lid = (uint16_t)lid;
	return r;
}

static int put(struct chaos *c, struct json_object *o, struct json_object *where,
	       struct vhca_osm_binding *b, bool check, struct vhca_error *err)
{
	uint16_t keys[VHCA_SM_PKEYS_MAX];
	size_t n = 0;
	int r = parse_place(where, b, err);

	if (!r)
		r = vhca_json_get_u64(o, "epoch", UINT64_MAX - 1, &b->epoch, err);
	if (!r)
		r = vhca_json_get_pkeys(o, "pkeys", keys, VHCA_SM_PKEYS_MAX, &n, err);
	if (r)
		return r;
	b->n_pkeys = chaos_is(c, CHAOS_KEYLESS_SM) ? 0 : (uint16_t)n;
	b->pkeys = keys;
	check = check || chaos_is(c, CHAOS_FORGETFUL_SM);
	r = sim_sm_bind(chaos_master(c), b, check, err);
	if (chaos_is(c, CHAOS_NO_FENCE))
		r = 0;
	if (!r && !check && chaos_lid_moves(c, ledger_host_of(&c->ledger, b->port_guid)))
		chaos_lid_comes(c, b, o, where);
	b->pkeys = NULL;
	chaos_trace(c, "SM: %s 0x%llx epoch %llu at 0x%llx: %s", check ? "check" : "bind",
		    (unsigned long long)b->vguid, (unsigned long long)b->epoch,
		    (unsigned long long)b->port_guid, r ? err->code : "yes");
	return r;
}

static int put_binding(struct chaos *c, const char *guid, struct json_object *body,
		       struct json_object **ret)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_binding b = {0};

	if (vhca_guid_parse(guid, &b.vguid))
		return 400;
	if (put(c, body, body, &b, false, &err) < 0)
		return refuse(c, b.vguid, &err, ret);
	*ret = json_object_new_object();
	vhca_json_add_guid(*ret, "vguid", b.vguid);
	return 200;
}

static int delete_binding(struct chaos *c, const char *tail, struct json_object **ret)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	char guid[VHCA_GUID_STRLEN];
	const char *query = strstr(tail, "?epoch="), *port = strstr(tail, "&port_guid=");
	uint64_t vguid, epoch, port_guid = 0;
	bool frees = !strstr(tail, "&keep_lid=yes");

	if (!query || (size_t)(query - tail) >= sizeof(guid))
		return 400;
	memcpy(guid, tail, (size_t)(query - tail));
	guid[query - tail] = '\0';
	epoch = strtoull(query + strlen("?epoch="), NULL, 10);
	if (vhca_guid_parse(guid, &vguid) || !port)
		return 400;
	(void)snprintf(guid, sizeof(guid), "%.*s",
		       (int)strcspn(port + 1, "&") - (int)strlen("port_guid="),
		       port + strlen("&port_guid="));
	if (vhca_guid_parse(guid, &port_guid))
		return 400;
	frees = frees &&
		!vhca_osm_table_has_other_owner(chaos_master(c)->table, vguid, epoch, port_guid);
	if (sim_sm_withdraw(chaos_master(c), vguid, epoch, port_guid, &err) < 0)
		return refuse(c, vguid, &err, ret);
	if (frees)
		chaos_lid_ends(c, vguid);
	chaos_trace(c, "SM: withdraw 0x%llx epoch %llu", (unsigned long long)vguid,
		    (unsigned long long)epoch);
	*ret = json_object_new_object();
	vhca_json_add_guid(*ret, "vguid", vguid);
	vhca_json_add_string(*ret, "state", "withdrawn");
	return 200;
}

static int move(struct chaos *c, struct json_object *body, struct json_object **ret)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_binding b = {0};
	const char *phase = NULL;
	bool commit;
	int r = vhca_json_get_guid(body, "vguid", &b.vguid, &err);

	if (!r)
		r = vhca_json_get_string(body, "phase", &phase, &err);
	commit = phase && !strcmp(phase, "commit");
	if (!r)
		r = put(c, body, json_object_object_get(body, "to"), &b, !commit, &err);
	if (r < 0)
		return refuse(c, b.vguid, &err, ret);
	*ret = json_object_new_object();
	vhca_json_add_string(*ret, "state", commit ? "committed" : "prepared");
	return 200;
}

static int declare(struct chaos *c, const char *port, struct json_object *body,
		   struct json_object **ret)
{
	uint16_t keys[VHCA_SM_PORT_PKEYS_MAX];
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct sim_sm *sm = chaos_master(c);
	uint64_t guid;
	size_t n = 0;
	int r;

	if (vhca_guid_parse(port, &guid))
		return 400;
	r = vhca_json_get_pkeys(body, "pkeys", keys, VHCA_SM_PORT_PKEYS_MAX, &n, &err);
	if (!r)
		r = vhca_osm_table_declare(sm->table, guid, keys, n, sm->port_keys, &err);
	if (r < 0)
		return refuse(c, 0, &err, ret);
	*ret = json_object_new_object();
	vhca_json_add_guid(*ret, "port_guid", guid);
	return 200;
}

int chaos_sm_answer(struct chaos *c, const struct chaos_request *req, struct json_object **ret)
{
	static const char bindings[] = "/v1/bindings/", members[] = "/v1/members/";
	const char *path = req->path;
	int status = 404;

	if (!strncmp(path, bindings, strlen(bindings)))
		status = !strcmp(req->method, "PUT")
				 ? put_binding(c, path + strlen(bindings), req->body, ret)
				 : delete_binding(c, path + strlen(bindings), ret);
	else if (!strncmp(path, members, strlen(members)))
		status = declare(c, path + strlen(members), req->body, ret);
	else if (!strcmp(path, "/v1/moves"))
		status = move(c, req->body, ret);
	chaos_check_vfs(c);
	return status;
}
