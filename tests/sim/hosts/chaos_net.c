/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The network below the production HTTP clients and the production peer API: requests and answers
 * as JSON documents, which may come late, twice, in another order, or never. What is wrapped stands
 * at the end.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/http/http_loop.h"
#include "common/http/json.h"
#include "common/http/server.h"
#include "tests/sim/host/vtime.h"
#include "tests/sim/hosts/chaos.h"
#include "tests/sim/hosts/chaos_attacker.h"

#define RESET_MS 20
#define LATE_MS	 8000 /* a message that got stuck somewhere */
#define SM	 CHAOS_HOSTS_MAX

struct chaos_call {
	TAILQ_ENTRY(chaos_call) link;
	struct chaos *c;
	uint64_t id;
	struct chaos_host *from;
	unsigned int to; /* host, or SM */
	char method[8], path[112];
	char label[64]; /* the same without names: "PUT /v1/bindings/{}" */
	struct json_object *body;
	vhca_http_done_fn done;
	void *arg;
};

/* At the peer; outlives the call. */
struct vhca_http_request {
	struct chaos *c;
	uint64_t call; /* 0: nobody waits for an answer, it is forged */
	unsigned int from, to;
	unsigned int life; /* of the peer's agent */
	char method[8], path[112], param[64];
	struct json_object *body;
};

static struct chaos_call *find(struct chaos *c, uint64_t id)
{
	struct chaos_call *call;

	TAILQ_FOREACH (call, &c->calls, link)
		if (call->id == id)
			return call;
	return NULL;
}

static void drop(struct chaos_call *call)
{
	TAILQ_REMOVE(&call->c->calls, call, link);
	json_object_put(call->body);
	free(call);
}

static bool passes(struct chaos *c, unsigned int from, unsigned int to)
{
	c->stats.messages++;
	if ((from < SM && to < SM && c->cut[from][to]) || chaos_odd(c, c->odds.lost)) {
		c->stats.lost++;
		return false;
	}
	return true;
}

static unsigned int delay(struct chaos *c)
{
	return 1 + chaos_random(c, chaos_odd(c, c->odds.late) ? LATE_MS : 5);
}

static struct ledger_message message_of(const struct chaos_call *call)
{
	return (struct ledger_message){.now = vtime_now(),
				       .from = call->from->n,
				       .to = call->to,
				       .method = call->method,
				       .path = call->path,
				       .body = call->body};
}

/* ---- answers ---- */

struct answer {
	struct chaos *c;
	uint64_t call;
	int status; /* 0: the connection broke */
	struct json_object *body;
};

static void free_answer(void *arg)
{
	struct answer *a = arg;

	json_object_put(a->body);
	free(a);
}

/* The ledger hears it when the agent does. */
static void note_heard(const struct chaos_call *call, const struct answer *a)
{
	struct ledger_message m = message_of(call);

	m.status = a->status;
	m.answer = a->body;
	if (call->to >= SM)
		ledger_sm_heard(&call->c->ledger, &m);
	else
		ledger_hears(&call->c->ledger, &m);
}

/* As common/http/transfer.c makes it of what came. */
static int result_of(const struct answer *a, struct vhca_error *err)
{
	if (!a->status) {
		vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "unreachable", ECONNRESET, "no answer");
		return -ECONNRESET;
	}
	if (a->status >= 200 && a->status < 300)
		return 0;
	vhca_json_problem_to_error(a->body, a->status, err);
	return -EREMOTEIO;
}

static void on_answer(void *arg)
{
	struct answer *a = arg;
	struct chaos_call *call = find(a->c, a->call);
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_http_result res = {0};
	vhca_http_done_fn done;
	void *done_arg;
	int rc;

	if (call && chaos_step(call->from, CHAOS_AFTER, "%s", call->label)) {
		done = call->done;
		done_arg = call->arg;
		note_heard(call, a);
		if (call->to >= SM)
			chaos_mishear(a->c, &a->status, &a->body);
		drop(call);
		res = (struct vhca_http_result){.status = a->status, .body = a->body};
		rc = result_of(a, &err);
		done(done_arg, rc, &res, rc < 0 ? &err : NULL);
	}
	free_answer(a);
}

static void answer(struct chaos *c, uint64_t call, int status, struct json_object *body,
		   unsigned int delay_ms)
{
	struct answer *a = malloc(sizeof(*a));

	assert(a);
	*a = (struct answer){c, call, status, body};
	vtime_after(VTIME_WORLD, delay_ms, on_answer, a, free_answer);
}

static void send_back(struct vhca_http_request *req, int status, struct json_object *body)
{
	struct chaos *c = req->c;

	if (!req->call)
		json_object_put(body);
	else if (passes(c, req->to, req->from))
		answer(c, req->call, status, body, delay(c));
	else
		json_object_put(body);
}

static void free_request(void *arg)
{
	struct vhca_http_request *req = arg;

	json_object_put(req->body);
	free(req);
}

/* ---- the peer's side ---- */

/* "/v1/peer/claims/{}" and what follows. */
static bool matches(struct vhca_http_request *req, const struct vhca_http_route *r)
{
	const char *hole = strstr(r->pattern, "{}");
	size_t head = (size_t)(hole - r->pattern), n;

	if (strcmp(r->method, req->method) != 0 || strncmp(r->pattern, req->path, head) != 0)
		return false;
	n = strcspn(req->path + head, "/");
	if (strcmp(req->path + head + n, hole + 2) != 0)
		return false;
	(void)snprintf(req->param, sizeof(req->param), "%.*s", (int)n, req->path + head);
	return true;
}

static struct ledger_message message_at_peer(const struct vhca_http_request *req)
{
	return (struct ledger_message){.now = vtime_now(),
				       .from = req->from,
				       .to = req->to,
				       .method = req->method,
				       .path = req->path,
				       .body = req->body};
}

static void at_the_sm(struct vhca_http_request *req)
{
	const struct chaos_request to_sm = {.from = req->from,
					    .sm = req->to - SM,
					    .method = req->method,
					    .path = req->path,
					    .body = req->body};
	struct ledger_message m = message_at_peer(req);
	struct json_object *doc = NULL;
	int no_lid;

	m.sm = to_sm.sm;
	if (req->c->sm_down) {
		answer(req->c, req->call, 0, NULL, RESET_MS);
	} else if ((m.status = chaos_sm_refuse(req->c, &to_sm, &doc)) ||
		   (m.status = chaos_nodes_refuse(req->c, &to_sm, &doc)) ||
		   (m.status = chaos_tickets_refuse(req->c, &to_sm, &doc))) {
		send_back(req, m.status, doc);
	} else {
		m.status = chaos_sm_answer(req->c, &to_sm, &doc);
		if (m.status == 200)
			chaos_tickets_take(req->c, &to_sm);
		m.answer = doc;
		chaos_check_sm(req->c, &m);
		no_lid = chaos_lid_refuse(req->c, &to_sm, &doc);
		send_back(req, no_lid ? no_lid : m.status, doc);
	}
	free_request(req);
}

/*
 * What its own node may change is left alone, and so is the withdrawal of what nobody has: the
 * epoch of a tombstone is anybody's to raise (docs/design/0014-authority.md).
 */
static bool is_fair_game(const struct vhca_http_request *req)
{
	static const char head[] = "/v1/bindings/";
	const struct vhca_osm_binding *b;
	bool ends = !strcmp(req->method, "DELETE");
	uint64_t guid = 0;

	if (!ends && !req->c->attacker.takes)
		return true;
	if (!strncmp(req->path, head, strlen(head)))
		guid = strtoull(req->path + strlen(head), NULL, 16);
	else
		(void)vhca_json_get_guid(req->body, "vguid", &guid, NULL);
	b = sim_sm_find(chaos_master(req->c), guid);
	return b && !(ends && b->withdrawn) && b->port_guid != req->c->hosts[req->from].w.port_guid;
}

static void forged_at_the_sm(struct vhca_http_request *req)
{
	const struct chaos_request to_sm = {.from = req->from,
					    .sm = req->to - SM,
					    .method = req->method,
					    .path = req->path,
					    .body = req->body};
	uint64_t before = chaos_sum_of_others(req->c);
	struct json_object *doc = NULL;

	if (!req->c->sm_down && to_sm.sm == req->c->sm_master && is_fair_game(req)) {
		if (!chaos_nodes_refuse(req->c, &to_sm, &doc))
			(void)chaos_sm_answer(req->c, &to_sm, &doc);
		json_object_put(doc);
		chaos_check_others(req->c, req->path, before);
	}
	free_request(req);
}

static void on_request(void *arg)
{
	struct vhca_http_request *req = arg;
	struct ledger_message m;
	struct chaos_host *h;

	if (req->to >= SM) {
		(req->call ? at_the_sm : forged_at_the_sm)(req);
		return;
	}
	h = &req->c->hosts[req->to];
	if (h->off) {
		free_request(req);
		return;
	}
	req->life = h->life;
	for (const struct vhca_http_route *r = h->routes; h->w.engine && r && r->method; r++) {
		if (!matches(req, r))
			continue;
		m = message_at_peer(req);
		if (req->call)
			ledger_delivered(&req->c->ledger, &m);
		r->handler(h->routes_ctx, req);
		return;
	}
	if (req->call)
		answer(req->c, req->call, 0, NULL, RESET_MS);
	free_request(req);
}

void chaos_net_forge(struct chaos *c, const struct chaos_heard *forged)
{
	struct vhca_http_request *req = calloc(1, sizeof(*req));

	assert(req);
	*req = (struct vhca_http_request){
		.c = c, .from = c->attacker.host, .to = forged->to, .body = forged->body};
	memcpy(req->method, forged->method, sizeof(req->method));
	memcpy(req->path, forged->path, sizeof(req->path));
	vtime_after(VTIME_WORLD, 1, on_request, req, free_request);
}

static void send(const struct chaos_call *call)
{
	struct vhca_http_request *req = calloc(1, sizeof(*req));

	assert(req);
	*req = (struct vhca_http_request){.c = call->c,
					  .call = call->id,
					  .from = call->from->n,
					  .to = call->to,
					  .body = json_object_get(call->body)};
	memcpy(req->method, call->method, sizeof(req->method));
	memcpy(req->path, call->path, sizeof(req->path));
	vtime_after(VTIME_WORLD, delay(call->c), on_request, req, free_request);
}

void chaos_net_dead(struct chaos_host *h)
{
	struct chaos_call *call, *next;

	for (call = TAILQ_FIRST(&h->chaos->calls); call; call = next) {
		next = TAILQ_NEXT(call, link);
		if (call->from == h)
			drop(call);
		else if (call->to == h->n && chaos_random(h->chaos, 4))
			answer(h->chaos, call->id, 0, NULL, RESET_MS);
	}
}

/* ---- what stands in for the production symbols: the client ---- */

static unsigned int destination(const struct chaos *c, const char *url, const char **path)
{
	const char *host = strstr(url, "://") + strlen("://");
	unsigned int n;

	*path = strchr(host, '/');
	assert(*path);
	if (!strncmp(host, "sm", 2))
		return SM + (unsigned int)(host[2] - '0');
	n = (unsigned int)(host[strlen("host")] - '0');
	assert(n < c->n_hosts);
	return n;
}

static void label(struct chaos_call *call)
{
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, call->label, sizeof(call->label));
	vhca_strbuf_add(&sb, "%s ", call->method);
	for (const char *p = call->path; *p;) {
		int n = (int)strcspn(p + 1, "/");

		/* A GUID, with or without a query, or a UUID. */
		if (n >= VHCA_GUID_STRLEN - 1)
			vhca_strbuf_add(&sb, "/{}");
		else
			vhca_strbuf_add(&sb, "%.*s", n + 1, p);
		p += n + 1;
	}
}

int __wrap_vhca_http_multi_start(struct vhca_http_multi *m, const struct vhca_http_call_args *args,
				 vhca_http_done_fn done, void *arg);
int __wrap_vhca_http_multi_start(struct vhca_http_multi *m, const struct vhca_http_call_args *args,
				 vhca_http_done_fn done, void *arg)
{
	struct chaos_host *h = (struct chaos_host *)m;
	struct chaos *c = h->chaos;
	struct chaos_call *call = calloc(1, sizeof(*call));
	struct ledger_message said;
	const char *path;

	assert(call);
	*call = (struct chaos_call){
		.c = c, .id = ++c->last_call, .from = h, .done = done, .arg = arg};
	call->to = destination(c, args->url, &path);
	(void)snprintf(call->method, sizeof(call->method), "%s", args->method);
	(void)snprintf(call->path, sizeof(call->path), "%s", path);
	call->body = json_object_get(args->body);
	TAILQ_INSERT_TAIL(&c->calls, call, link);
	label(call);
	if (!chaos_step(h, CHAOS_BEFORE, "%s", call->label))
		return 0;
	chaos_misreport(c, call->body, call->path);
	said = message_of(call);
	if (call->to >= SM)
		chaos_check_report(c, &said);
	chaos_check_handed(c, &said);
	ledger_says(&c->ledger, &said);
	chaos_overhear(c, h->n, call->to, call->method, call->path, call->body);
	if (chaos_is(c, CHAOS_FALSE_ABORT) && strstr(call->path, "/abort")) {
		answer(c, call->id, 200, NULL, 1);
		return 0;
	}
	if (chaos_is(c, CHAOS_NO_ANSWER) && strstr(call->path, "/members/"))
		return 0;
	if (passes(c, h->n, call->to))
		send(call);
	if (chaos_odd(c, c->odds.repeated))
		send(call);
	answer(c, call->id, 0, NULL, args->total_ms ? args->total_ms : 10000);
	return 0;
}

void __wrap_vhca_http_multi_cancel(struct vhca_http_multi *m, const void *arg);
void __wrap_vhca_http_multi_cancel(struct vhca_http_multi *m, const void *arg)
{
	struct chaos_host *h = (struct chaos_host *)m;
	struct chaos_call *call, *next;

	for (call = TAILQ_FIRST(&h->chaos->calls); call; call = next) {
		next = TAILQ_NEXT(call, link);
		if (call->from == h && call->arg == arg)
			drop(call);
	}
}

/* ---- and the server ---- */

int __wrap_vhca_http_server_new(const char *listen, mode_t sock_mode,
				const struct vhca_http_limits *limits,
				const struct vhca_http_route *routes, void *ctx,
				struct vhca_http_server **ret, struct vhca_error *err);
int __wrap_vhca_http_server_new(const char *listen, mode_t sock_mode,
				const struct vhca_http_limits *limits,
				const struct vhca_http_route *routes, void *ctx,
				struct vhca_http_server **ret, struct vhca_error *err)
{
	(void)sock_mode;
	(void)limits;
	(void)err;
	/* "host2" */
	chaos_net_serve((unsigned int)(listen[4] - '0'), routes, ctx);
	*ret = NULL;
	return 0;
}

struct vhca_http_server *__wrap_vhca_http_server_free(struct vhca_http_server *srv);
struct vhca_http_server *__wrap_vhca_http_server_free(struct vhca_http_server *srv)
{
	(void)srv;
	return NULL;
}

const char *__wrap_vhca_http_param(const struct vhca_http_request *req, unsigned int i);
const char *__wrap_vhca_http_param(const struct vhca_http_request *req, unsigned int i)
{
	return i == 0 ? req->param : "";
}

/* By its certificate. */
const char *__wrap_vhca_http_caller(const struct vhca_http_request *req);
const char *__wrap_vhca_http_caller(const struct vhca_http_request *req)
{
	static char name[24];
	const struct vhca_mig *m = NULL;
	struct vhca_uuid id;

	if (!req->call && chaos_is(req->c, CHAOS_NO_NAMES) && vhca_uuid_parse(req->param, &id) == 0)
		m = vhca_migrations_find(req->c->hosts[req->to].ms, &id);
	if (m && m->peer[0])
		(void)snprintf(name, sizeof(name), "cert:%.15s", m->peer);
	else
		(void)snprintf(name, sizeof(name), "cert:host%u", req->from);
	return name;
}

struct json_object *__wrap_vhca_http_body(const struct vhca_http_request *req);
struct json_object *__wrap_vhca_http_body(const struct vhca_http_request *req)
{
	return req->body;
}

void __wrap_vhca_http_reply(struct vhca_http_request *req, unsigned int status,
			    struct json_object *body);
void __wrap_vhca_http_reply(struct vhca_http_request *req, unsigned int status,
			    struct json_object *body)
{
	const struct chaos_host *h = &req->c->hosts[req->to];
	struct ledger_message m = message_at_peer(req);

	m.status = (int)status;
	m.answer = body;
	if (!req->call) {
		chaos_check_forged(req->c, req->to, req->param, status);
		json_object_put(body);
	} else if (!h->dying && h->life == req->life) {
		ledger_answers(&req->c->ledger, &m);
		send_back(req, (int)status, body);
	} else {
		json_object_put(body);
	}
	free_request(req);
}

void __wrap_vhca_http_reply_error(struct vhca_http_request *req, const struct vhca_error *err);
void __wrap_vhca_http_reply_error(struct vhca_http_request *req, const struct vhca_error *err)
{
	__wrap_vhca_http_reply(req, (unsigned int)vhca_json_problem_status(err),
			       vhca_json_problem(err));
}
