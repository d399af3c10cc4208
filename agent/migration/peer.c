/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/migration/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/migration/handover.h"
#include "common/base/cleanup.h"
#include "common/http/json.h"

/* A peer answers when the VFs are reserved, programmed or free: its own time-outs must fit in. */
#define PEER_CONNECT_MS 3000
#define PEER_SCRUB_MS	25000
#define PEER_KEYS_MS	20000 /* unless pkey_timeout is longer, which hosts have in common */

struct call {
	TAILQ_ENTRY(call) link;
	struct vhca_peer *p;
	struct vhca_mig *m;
	enum vhca_mig_effect effect;
	struct vhca_mig_result res;
};

struct vhca_peer {
	struct vhca_loop *loop;
	struct vhca_http_multi *http;
	const struct vhca_conf *conf;
	const struct vhca_http_auth *auth;
	TAILQ_HEAD(, call) calls;
};

/* ---- bodies ---- */

static struct json_object *claim_doc(const struct vhca_peer *p, const struct vhca_mig *m,
				     const struct vhca_claim *c)
{
	struct vhca_error why = VHCA_ERROR_INIT;
	struct json_object *o = json_object_new_object();
	struct vhca_sm_binding here = vhca_claim_binding(c);

	vhca_json_add_string(o, "name", c->name);
	vhca_json_add_string(o, "way", vhca_origin_to_string(c->origin));
	vhca_json_add_string(o, "fabric", c->fabric);
	vhca_json_add_string(o, "pf", c->has_pf ? VHCA_BDF_STR(c->pf) : NULL);
	vhca_json_add(o, "numa", c->numa < 0 ? NULL : json_object_new_int(c->numa));
	vhca_json_add_guid(o, "guid", c->identity.guid);
	vhca_json_add_u64(o, "epoch", c->epoch);
	vhca_json_add_pkeys(o, "pkeys", c->identity.pkeys, c->identity.n_pkeys);
	vhca_json_add_string(o, "guest_address", c->has_guest ? VHCA_BDF_STR(c->guest) : NULL);
	vhca_json_add_guid(o, "port_guid", here.port_guid);
	vhca_json_add_u64(o, "gid_index", here.gid_index);
	vhca_json_add_u64(o, "lid", here.lid);
	if (p->conf->lid_policy != VHCA_LID_FOLLOW)
		return o;
	if (vhca_migration_check_lid(m, c, &why) == 0)
		vhca_json_add_string(o, "lid_policy", "follow");
	else
		vhca_json_add_string(o, "lid_stays", why.msg);
	return o;
}

static struct json_object *offer_doc(const struct vhca_peer *p, const struct vhca_mig *m)
{
	struct json_object *o = json_object_new_object(), *vfs = json_object_new_array();
	const struct vhca_dom_info *guest = vhca_migration_guest(m);
	struct vhca_claim *c = NULL;

	vhca_json_add_string(o, "domain", VHCA_UUID_STR(&m->domain));
	vhca_json_add_string(o, "name", m->domain_name);
	vhca_json_add_string(o, "node", p->conf->node_name);
	vhca_json_add_string(o, "mode", vhca_mig_mode_to_string(m->mode));
	while ((c = vhca_migration_claim(m, c)))
		json_object_array_add(vfs, claim_doc(p, m, c));
	vhca_json_add(o, "vfs", vfs);
	if (guest && guest->memory.kib)
		vhca_json_add(o, "memory", vhca_guest_memory_to_json(&guest->memory));
	return o;
}

static struct json_object *epochs_doc(const struct vhca_mig *m)
{
	struct json_object *o = json_object_new_object(), *vfs = json_object_new_array();
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c))) {
		struct json_object *vf = json_object_new_object(), *proof;

		vhca_json_add_guid(vf, "guid", c->identity.guid);
		vhca_json_add_u64(vf, "epoch", c->epoch);
		proof = mig_proof_of(m, c);
		if (proof)
			vhca_json_add(vf, "tickets", proof);
		json_object_array_add(vfs, vf);
	}
	vhca_json_add(o, "vfs", vfs);
	return o;
}

/* ---- answers ---- */

static void finish(struct call *call)
{
	TAILQ_REMOVE(&call->p->calls, call, link);
	vhca_migrations_effect_done(call->m, call->effect, &call->res);
	free(call);
}

static void on_failed(void *arg)
{
	finish(arg);
}

static int read_status(struct json_object *body, struct vhca_mig_result *res)
{
	const char *state = "";
	int r = vhca_json_opt_bool(body, "attached", &res->attached, &res->err);

	if (!r)
		r = vhca_json_opt_bool(body, "begun", &res->begun, &res->err);
	if (!r)
		r = vhca_json_opt_string(body, "state", &state, &res->err);
	if (r < 0 || !state)
		return r;
	res->ended = !strcmp(state, "ended");
	res->waits = !strcmp(state, "reserved");
	res->arrived = !strcmp(state, "attaching") || !strcmp(state, "done");
	res->n_vfs = vhca_mig_vfs_parse(json_object_object_get(body, "vfs"), res->vfs);
	return 0;
}

static void on_http(void *arg, int rc, const struct vhca_http_result *http,
		    const struct vhca_error *err)
{
	struct call *call = arg;

	call->res.rc = rc;
	if (rc < 0) {
		call->res.err = *err;
		vhca_error_prefix(&call->res.err, "peer %s", call->m->peer);
	} else if (http->body && call->effect != VHCA_MIG_EFFECT_ABORT) {
		call->res.rc = read_status(http->body, &call->res);
	}
	finish(call);
}

/* ---- requests ---- */

static const struct {
	const char *method, *tail;
} requests[] = {
	[VHCA_MIG_EFFECT_CLAIM] = {"PUT", ""},
	[VHCA_MIG_EFFECT_HANDOVER] = {"POST", "/handover"},
	[VHCA_MIG_EFFECT_STATUS] = {"GET", ""},
	[VHCA_MIG_EFFECT_ABORT] = {"POST", "/abort"},
};

/* Only a reservation waits for the port's keys. */
static uint32_t answer_ms(const struct vhca_conf *conf, enum vhca_mig_effect effect)
{
	bool longer = effect == VHCA_MIG_EFFECT_CLAIM && conf->pkey_timeout_ms > PEER_KEYS_MS;

	return PEER_SCRUB_MS + (longer ? conf->pkey_timeout_ms : PEER_KEYS_MS);
}

static int send_request(struct call *call)
{
	const struct vhca_conf_peer *peer = vhca_conf_peer(call->p->conf, call->m->peer);
	struct json_object *body = NULL;
	char url[400];
	struct vhca_http_call_args args = {
		.method = requests[call->effect].method,
		.url = url,
		.connect_ms = PEER_CONNECT_MS,
		.total_ms = answer_ms(call->p->conf, call->effect),
		.auth = call->p->auth,
	};
	int r;

	if (!peer)
		return vhca_error_set(&call->res.err, VHCA_ERR_UNAVAILABLE, "peer_removed", 0,
				      "[peer %s] is no longer in the configuration", call->m->peer);
	(void)snprintf(url, sizeof(url), "%s/v1/peer/claims/%s%s", peer->agent,
		       VHCA_UUID_STR(&call->m->id), requests[call->effect].tail);
	if (call->effect == VHCA_MIG_EFFECT_CLAIM)
		body = offer_doc(call->p, call->m);
	else if (call->effect == VHCA_MIG_EFFECT_HANDOVER)
		body = epochs_doc(call->m);
	args.body = body;
	r = vhca_http_multi_start(call->p->http, &args, on_http, call);
	json_object_put(body);
	return r < 0 ? vhca_error_set(&call->res.err, VHCA_ERR_UNAVAILABLE, "unreachable", -r,
				      "peer %s", call->m->peer)
		     : 0;
}

void vhca_peer_effect(struct vhca_peer *p, struct vhca_mig *m, enum vhca_mig_effect effect)
{
	struct call *call = calloc(1, sizeof(*call));

	if (!call)
		abort(); /* the migration would wait for ever; a restart goes on from the journal */
	*call = (struct call){.p = p, .m = m, .effect = effect};
	TAILQ_INSERT_TAIL(&p->calls, call, link);
	call->res.rc = send_request(call);
	if (call->res.rc < 0 && vhca_loop_post(p->loop, on_failed, call, NULL) < 0)
		finish(call);
}

/* ---- life ---- */

int vhca_peer_new(struct vhca_loop *loop, struct vhca_http_multi *http,
		  const struct vhca_conf *conf, const struct vhca_http_auth *auth,
		  struct vhca_peer **ret)
{
	struct vhca_peer *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	*p = (struct vhca_peer){.loop = loop, .http = http, .conf = conf, .auth = auth};
	TAILQ_INIT(&p->calls);
	*ret = p;
	return 0;
}

struct vhca_peer *vhca_peer_free(struct vhca_peer *p)
{
	struct call *call;

	if (!p)
		return NULL;
	while ((call = TAILQ_FIRST(&p->calls))) {
		TAILQ_REMOVE(&p->calls, call, link);
		free(call);
	}
	free(p);
	return NULL;
}
