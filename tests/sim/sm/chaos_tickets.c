/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An SM that goes by tickets (docs/design/0014-authority.md): who has a vGUID, at which epoch, and
 * who is the other party of a hand-over. What it hears first of one, it believes. A withdrawal
 * frees nothing here, so that each new owner needs his ticket.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/http/auth.h"
#include "common/http/json.h"
#include "common/ticket/ticket.h"
#include "tests/sim/hosts/chaos.h"

#define NOBODY CHAOS_HOSTS_MAX

/* Of a report, as far as it counts here. */
struct claim {
	uint64_t vguid, epoch, port_guid;
	unsigned int by;
	bool settled, asks;
	struct json_object *tickets;
};

static struct chaos_owner *find_owner(struct chaos *c, uint64_t vguid)
{
	for (unsigned int i = 0; i < c->n_owners; i++)
		if (c->owners[i].vguid == vguid)
			return &c->owners[i];
	return NULL;
}

const struct chaos_owner *chaos_owner_of(struct chaos *c, uint64_t vguid)
{
	return find_owner(c, vguid);
}

static bool read_claim(const struct chaos_request *req, struct claim *ret)
{
	static const char bindings[] = "/v1/bindings/";
	bool moves = !strcmp(req->path, "/v1/moves");
	struct json_object *to = req->body ? json_object_object_get(req->body, "to") : NULL;
	const char *phase = "commit";

	if (!req->body || (!moves && strncmp(req->path, bindings, strlen(bindings)) != 0))
		return false;
	*ret = (struct claim){.by = req->from,
			      .tickets = json_object_object_get(req->body, "tickets")};
	assert(vhca_json_get_u64(req->body, "epoch", UINT64_MAX, &ret->epoch, NULL) == 0);
	assert(vhca_json_opt_bool(req->body, "settled", &ret->settled, NULL) == 0);
	assert(vhca_json_opt_string(req->body, "phase", &phase, NULL) == 0);
	assert(vhca_json_get_guid(moves ? to : req->body, "port_guid", &ret->port_guid, NULL) == 0);
	assert(moves ? vhca_json_get_guid(req->body, "vguid", &ret->vguid, NULL) == 0
		     : vhca_guid_parse(req->path + strlen(bindings), &ret->vguid) == 0);
	ret->asks = strcmp(phase, "prepare") == 0;
	return true;
}

static unsigned int host_of(const char *name)
{
	unsigned int n = NOBODY;

	return sscanf(name, "cert:host%u", &n) == 1 ? n : NOBODY;
}

/* Where the tickets lead from the owner; ret_last: the last one's signer. */
static int follow(const struct chaos *c, const struct chaos_owner *o, const struct claim *claim,
		  unsigned int *ret_last, struct vhca_error *err)
{
	size_t n = claim->tickets ? json_object_array_length(claim->tickets) : 0;
	unsigned int at = o->owner;
	uint64_t epoch = o->epoch, port = 0;

	*ret_last = NOBODY;
	assert(n <= VHCA_TICKETS_MAX);
	for (size_t i = 0; i < n; i++) {
		struct json_object *text = json_object_array_get_idx(claim->tickets, i);
		char signer[VHCA_CALLER_NAME_MAX];
		struct vhca_ticket t;

		if (vhca_ticket_parse(json_object_get_string(text), &t, err) < 0 ||
		    vhca_ticket_verify(c->authority, &t, signer, err) < 0)
			return -1;
		if (t.vguid != claim->vguid || host_of(signer) != at || t.epoch <= epoch)
			continue;
		*ret_last = at;
		at = host_of(t.name);
		epoch = t.epoch;
		port = t.port_guid;
	}
	if (*ret_last != NOBODY && at == claim->by && port == claim->port_guid &&
	    claim->epoch >= epoch)
		return 0;
	return vhca_error_set(err, VHCA_ERR_DENIED, VHCA_CODE_NOT_THE_OWNER, 0,
			      "host%u has it at epoch %llu, not host%u", o->owner,
			      (unsigned long long)o->epoch, claim->by);
}

/* 0: accepted; *o as it is then. An epoch that is over is the table's to refuse. */
static int hear(const struct chaos *c, struct chaos_owner *o, const struct claim *claim,
		struct vhca_error *err)
{
	unsigned int past = o->other;
	int r = 0;

	if (o->owner == claim->by && claim->epoch < o->epoch)
		return 0;
	if (o->owner == claim->by)
		past = o->other;
	else if (o->other == claim->by && claim->epoch > o->epoch)
		past = o->owner;
	else
		r = follow(c, o, claim, &past, err);
	if (r < 0)
		return r;
	o->proven += o->owner != claim->by;
	o->owner = claim->by;
	o->epoch = claim->epoch;
	o->other = claim->settled ? NOBODY : past;
	return 0;
}

int chaos_tickets_refuse(struct chaos *c, const struct chaos_request *req, struct json_object **ret)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct chaos_owner *o, after;
	struct json_object *signers;
	char owner[24];
	struct claim claim;

	if (!c->authority || !read_claim(req, &claim))
		return 0;
	o = find_owner(c, claim.vguid);
	if (!o)
		return 0;
	after = *o;
	if (hear(c, &after, &claim, &err) == 0)
		return 0;
	chaos_trace(c, "SM: host %u: %s: %s", req->from, err.code, err.msg);
	*ret = vhca_json_problem(&err);
	vhca_json_add_u64(*ret, "known_epoch", o->epoch);
	vhca_json_add_bool(*ret, "bound", true);
	(void)snprintf(owner, sizeof(owner), "cert:host%u", o->owner);
	signers = json_object_new_array();
	(void)json_object_array_add(signers, json_object_new_string(owner));
	vhca_json_add(*ret, "signers", signers);
	c->n_strangers += !claim.asks;
	return vhca_json_problem_status(&err);
}

void chaos_tickets_take(struct chaos *c, const struct chaos_request *req)
{
	struct chaos_owner *o;
	struct claim claim;

	if (!c->authority || !read_claim(req, &claim) || claim.asks)
		return;
	o = find_owner(c, claim.vguid);
	if (o) {
		assert(hear(c, o, &claim, NULL) == 0);
		return;
	}
	assert(c->n_owners < LEDGER_IDS);
	c->owners[c->n_owners++] = (struct chaos_owner){
		.vguid = claim.vguid, .epoch = claim.epoch, .owner = claim.by, .other = NOBODY};
}

/* ---- certificates ---- */

static struct vhca_http_auth *load(const char *dir, const char *certificate, const char *key)
{
	char paths[3][256];
	const struct vhca_http_auth_files files = {
		.certificate = certificate ? paths[0] : NULL,
		.key = key ? paths[1] : NULL,
		.authority = paths[2],
	};
	struct vhca_http_auth *auth = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)snprintf(paths[0], sizeof(paths[0]), "%s/%s", dir, certificate ? certificate : "");
	(void)snprintf(paths[1], sizeof(paths[1]), "%s/%s", dir, key ? key : "");
	(void)snprintf(paths[2], sizeof(paths[2]), "%s/ca.pem", dir);
	if (vhca_http_auth_load(&files, &auth, &err) < 0) {
		fprintf(stderr, "# chaos: %s\n", err.msg);
		abort();
	}
	return auth;
}

void chaos_tickets_begin(struct chaos *c, const char *dir)
{
	char certificate[24], key[24];

	c->authority = load(dir, NULL, NULL);
	for (unsigned int i = 0; i < c->n_hosts; i++) {
		(void)snprintf(certificate, sizeof(certificate), "host%u.pem", i);
		(void)snprintf(key, sizeof(key), "host%u.key", i);
		c->credentials[i] = load(dir, certificate, key);
	}
}

void chaos_tickets_end(struct chaos *c)
{
	c->authority = vhca_http_auth_free(c->authority);
	for (unsigned int i = 0; i < c->n_hosts; i++)
		c->credentials[i] = vhca_http_auth_free(c->credentials[i]);
}
