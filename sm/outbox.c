/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One list of reports in the order of vhca_outbox_put(). A report is held until its row is durable, then ready, then in
 * flight; an answer that ends it takes it off the list and deletes its row, any other makes it ready again.
 *
 * What delays is kept apart: a report whose port the SM does not know yet waits alone, with a back-off of its own; an SM that cannot be
 * reached, or is not the master, stops everything, and then one report at a time probes the next URL.
 */
#include "sm/outbox.h"

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/role.h"
#include "common/base/text.h"
#include "common/http/json.h"
#include "sm/outbox_row.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#define FLIGHTS_MAX	 8
#define BACKOFF_FIRST_MS 500
#define BACKOFF_CAP_MS	 30000
#define URLS_MAX	 16
#define URL_MAX		 512

enum report_state { HELD, READY, IN_FLIGHT };

struct report {
	TAILQ_ENTRY(report) link;
	struct vhca_outbox *ob;
	struct vhca_outbox_row row;
	enum report_state state;
	bool stored;		 /* has a row in the table */
	unsigned int url, round; /* of the outbox when it was sent */
	unsigned int attempts;
	uint64_t next_try; /* vhca_now_ms() scale, 0 = now */
	struct vhca_backoff backoff;
	char reason[256]; /* of the last delay */
};

struct vhca_outbox {
	const struct vhca_sm_ops *ops;
	char *urls[URLS_MAX];
	unsigned int n_urls, url; /* url: the one in use */
	uint32_t timeout_ms;
	struct vhca_store *store;
	struct vhca_http_multi *http;
	struct vhca_timer *timer;
	vhca_outbox_fn fn;
	void *arg;

	TAILQ_HEAD(report_list, report) reports; /* lowest seq first */
	uint64_t seq;				 /* the last one given out */
	unsigned int n_reports, n_flights;
	struct report *flights[FLIGHTS_MAX]; /* NULL = free */

	bool down;	     /* the last exchange failed */
	unsigned int round;  /* counts the changes of url */
	unsigned int losses; /* URLs that failed one after the other */
	uint64_t probe_at;   /* while down */
	struct vhca_backoff backoff;
};

/* ---- the list ---- */

static struct report *report_add(struct vhca_outbox *ob, const struct vhca_outbox_row *row,
				 enum report_state state, bool stored)
{
	struct report *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->ob = ob;
	r->row = *row;
	r->state = state;
	r->stored = stored;
	r->backoff = ob->backoff;
	vhca_backoff_reset(&r->backoff);
	TAILQ_INSERT_TAIL(&ob->reports, r, link);
	ob->n_reports++;
	return r;
}

static void report_unlink(struct vhca_outbox *ob, struct report *r)
{
	TAILQ_REMOVE(&ob->reports, r, link);
	ob->n_reports--;
}

static void report_drop(struct vhca_outbox *ob, struct report *r)
{
	report_unlink(ob, r);
	free(r);
}

static struct report *report_find(const struct vhca_outbox *ob, uint64_t ticket)
{
	struct report *r;

	TAILQ_FOREACH (r, &ob->reports, link)
		if (r->row.seq == ticket)
			return r;
	return NULL;
}

/* Another report of the same vGUID that is ready. */
static struct report *ready_twin(const struct vhca_outbox *ob, const struct report *of)
{
	struct report *r;

	TAILQ_FOREACH (r, &ob->reports, link)
		if (r != of && r->state == READY && r->row.binding.vguid == of->row.binding.vguid)
			return r;
	return NULL;
}

static bool vguid_in_flight(const struct vhca_outbox *ob, uint64_t vguid)
{
	for (unsigned int i = 0; i < FLIGHTS_MAX; i++)
		if (ob->flights[i] && ob->flights[i]->row.binding.vguid == vguid)
			return true;
	return false;
}

static void take_off(struct vhca_outbox *ob, struct report *r)
{
	for (unsigned int i = 0; i < FLIGHTS_MAX; i++) {
		if (ob->flights[i])
			continue;
		ob->flights[i] = r;
		ob->n_flights++;
		r->state = IN_FLIGHT;
		r->url = ob->url;
		r->round = ob->round;
		return;
	}
}

static void land(struct vhca_outbox *ob, struct report *r)
{
	for (unsigned int i = 0; i < FLIGHTS_MAX; i++)
		if (ob->flights[i] == r)
			ob->flights[i] = NULL;
	ob->n_flights--;
	r->state = READY;
	r->attempts++;
}

/* ---- answers ---- */

/* Takes r off the list and its row out of the table, and tells the owner. Consumes r. */
static void finish(struct vhca_outbox *ob, struct report *r, enum vhca_sm_answer answer,
		   struct json_object *doc)
{
	struct vhca_txn *txn = r->stored ? vhca_txn_new(ob->store) : NULL;

	report_unlink(ob, r);
	/* Should the row survive, the same state is sent again after a restart: harmless. */
	if (txn) {
		vhca_outbox_row_delete(txn, &r->row);
		vhca_txn_commit(txn, NULL, NULL);
	}
	if (answer != VHCA_SM_ACCEPTED)
		vhca_log_warning("%s: the SM dropped the report of epoch %llu: %s",
				 VHCA_GUID_STR(r->row.binding.vguid),
				 (unsigned long long)r->row.binding.epoch, r->reason);
	ob->fn(ob->arg, &r->row.binding, answer, r->reason, doc);
	free(r);
}

static void sm_works(struct vhca_outbox *ob)
{
	if (ob->down)
		vhca_log_notice("SM: %s answers", ob->urls[ob->url]);
	ob->down = false;
	ob->losses = 0;
	vhca_backoff_reset(&ob->backoff);
}

/* A URL did not work. Eight requests may fail for the same reason: only the first one counts. */
static void sm_lost(struct vhca_outbox *ob, const struct report *r)
{
	if (r->round != ob->round)
		return;
	if (!ob->down)
		vhca_log_warning("SM: %s: %s", ob->urls[r->url], r->reason);
	ob->down = true;
	ob->round++;
	ob->url = (r->url + 1) % ob->n_urls;
	ob->losses++;
	ob->probe_at = vhca_now_ms();
	if (ob->losses % ob->n_urls == 0) /* all of them, once around */
		ob->probe_at += vhca_backoff_next(&ob->backoff);
}

/* True if the answer speaks of this report only, and the SM is otherwise at work. */
static bool delays_one_report(int status)
{
	return status == 409 || status == 429 || status == 500 || status == 507;
}

static void delay(struct vhca_outbox *ob, struct report *r, int status, struct json_object *doc)
{
	struct vhca_sm_binding binding = r->row.binding;
	char reason[sizeof(r->reason)];

	if (delays_one_report(status)) {
		sm_works(ob);
		r->next_try = vhca_now_ms() + vhca_backoff_next(&r->backoff);
	} else {
		sm_lost(ob, r);
	}
	memcpy(reason, r->reason, sizeof(reason));
	if (ready_twin(ob, r))
		report_drop(ob, r); /* its row was replaced when the newer one was written */
	ob->fn(ob->arg, &binding, VHCA_SM_RETRY, reason, doc);
}

static void pump(struct vhca_outbox *ob);

static void on_answer(void *arg, int rc, const struct vhca_http_result *res,
		      const struct vhca_error *err)
{
	struct report *r = arg;
	struct vhca_outbox *ob = r->ob;
	enum vhca_sm_answer answer;

	(void)vhca_fault("outbox.answer");
	land(ob, r);
	answer = ob->ops->binding_answer(res->status, res->body, err);
	(void)snprintf(r->reason, sizeof(r->reason), "%s",
		       rc < 0			 ? err->msg
		       : answer == VHCA_SM_RETRY ? "answer is none of ours"
						 : "");
	if (answer == VHCA_SM_RETRY) {
		delay(ob, r, res->status, res->body);
	} else {
		sm_works(ob);
		finish(ob, r, answer, res->body);
	}
	pump(ob);
}

/* ---- sending ---- */

static int send_request(struct vhca_outbox *ob, struct report *r, const struct vhca_sm_request *req)
{
	char url[URL_MAX];
	const struct vhca_http_call_args args = {
		.method = req->method, .url = url, .body = req->body, .total_ms = ob->timeout_ms};
	int n = snprintf(url, sizeof(url), "%s%s", ob->urls[ob->url], req->path);

	if (n < 0 || (size_t)n >= sizeof(url))
		return -ENAMETOOLONG;
	return vhca_http_multi_start(ob->http, &args, on_answer, r);
}

static void send_report(struct vhca_outbox *ob, struct report *r)
{
	struct vhca_sm_request req;
	int rc = ob->ops->binding_request(&r->row.binding, &req);

	if (rc == 0) {
		rc = send_request(ob, r, &req);
		(void)json_object_put(req.body);
	}
	if (rc < 0) {
		(void)snprintf(r->reason, sizeof(r->reason), "cannot send: %s",
			       strerrordesc_np(-rc));
		r->next_try = vhca_now_ms() + vhca_backoff_next(&r->backoff);
		return;
	}
	take_off(ob, r);
}

/* When r may be sent; UINT64_MAX = not before something else happens, which calls pump(). */
static uint64_t due(const struct vhca_outbox *ob, const struct report *r)
{
	if (r->state != READY || vguid_in_flight(ob, r->row.binding.vguid))
		return UINT64_MAX;
	return r->next_try;
}

static void finish_all(struct vhca_outbox *ob)
{
	struct report *r;

	do {
		TAILQ_FOREACH (r, &ob->reports, link)
			if (r->state == READY)
				break;
		if (r)
			finish(ob, r, VHCA_SM_ACCEPTED, NULL);
	} while (r);
}

/* Sends what may be sent now; returns when there is more to send, UINT64_MAX = an answer or a put will tell. */
static uint64_t send_due(struct vhca_outbox *ob, uint64_t now)
{
	const unsigned int flights_max = ob->down ? 1 : FLIGHTS_MAX;
	uint64_t next = UINT64_MAX;
	struct report *r;

	if (ob->down && ob->probe_at > now)
		return ob->probe_at;
	TAILQ_FOREACH (r, &ob->reports, link) {
		uint64_t when = due(ob, r);

		if (ob->n_flights >= flights_max)
			return UINT64_MAX;
		if (when <= now) {
			send_report(ob, r);
			when = due(ob, r);
		}
		if (when < next)
			next = when;
	}
	return next;
}

static void pump(struct vhca_outbox *ob)
{
	uint64_t now = vhca_now_ms(), next;

	if (!ob->ops->sends) {
		finish_all(ob);
		return;
	}
	next = send_due(ob, now);
	if (next != UINT64_MAX)
		vhca_timer_arm_ms(ob->timer, next > now ? next - now : 0);
}

static void on_timer(void *arg)
{
	pump(arg);
}

/* ---- owner's side ---- */

uint64_t vhca_outbox_put(struct vhca_outbox *ob, struct vhca_txn *txn,
			 const struct vhca_sm_binding *binding)
{
	const struct vhca_outbox_row row = {
		.seq = ++ob->seq, .created_ms = vhca_wall_ms(), .binding = *binding};

	if (ob->ops->sends)
		vhca_outbox_row_put(txn, &row);
	/* Without memory the row is in the table all the same, and is sent after the next start. */
	if (!report_add(ob, &row, HELD, ob->ops->sends))
		vhca_log_error("%s: report to the SM is delayed until a restart: out of memory",
			       VHCA_GUID_STR(binding->vguid));
	return row.seq;
}

void vhca_outbox_release(struct vhca_outbox *ob, uint64_t ticket, bool durable)
{
	struct report *r = report_find(ob, ticket), *older;

	if (!r)
		return;
	if (!durable) {
		report_drop(ob, r);
		return;
	}
	older = ready_twin(ob, r);
	if (older)
		report_drop(ob, older);
	r->state = READY;
	pump(ob);
}

void vhca_outbox_kick(struct vhca_outbox *ob)
{
	struct report *r;

	vhca_backoff_reset(&ob->backoff);
	ob->probe_at = 0;
	TAILQ_FOREACH (r, &ob->reports, link) {
		vhca_backoff_reset(&r->backoff);
		r->next_try = 0;
	}
	pump(ob);
}

bool vhca_outbox_reachable(const struct vhca_outbox *ob)
{
	return !ob->down;
}

size_t vhca_outbox_pending(const struct vhca_outbox *ob)
{
	return ob->n_reports;
}

static uint64_t ms_until(uint64_t when, uint64_t now)
{
	return when > now ? when - now : 0;
}

static uint64_t next_try_ms(const struct vhca_outbox *ob, const struct report *r)
{
	uint64_t when = r->next_try;

	if (r->state != READY)
		return 0;
	if (ob->down && ob->probe_at > when)
		when = ob->probe_at;
	return ms_until(when, vhca_now_ms());
}

static struct json_object *report_to_json(const struct vhca_outbox *ob, const struct report *r)
{
	struct json_object *obj = json_object_new_object();
	uint64_t next_try = next_try_ms(ob, r);
	const char *state = r->state == IN_FLIGHT ? "in_flight" : next_try ? "waiting" : "pending";

	vhca_json_add_u64(obj, "seq", r->row.seq);
	vhca_json_add_guid(obj, "vguid", r->row.binding.vguid);
	vhca_json_add_u64(obj, "epoch", r->row.binding.epoch);
	vhca_json_add_bool(obj, "bound", r->row.binding.bound);
	vhca_json_add_string(obj, "state", state);
	vhca_json_add_u64(obj, "age_ms", ms_until(vhca_wall_ms(), r->row.created_ms));
	vhca_json_add_u64(obj, "attempts", r->attempts);
	vhca_json_add_u64(obj, "next_try_ms", next_try);
	vhca_json_add_string(obj, "reason", r->reason);
	return obj;
}

struct json_object *vhca_outbox_to_json(const struct vhca_outbox *ob)
{
	struct json_object *list = json_object_new_array();
	const struct report *r;

	TAILQ_FOREACH (r, &ob->reports, link)
		(void)json_object_array_add(list, report_to_json(ob, r));
	return list;
}

/* ---- life ---- */

static int load_report(void *ctx, const struct vhca_outbox_row *row)
{
	struct vhca_outbox *ob = ctx;

	ob->seq = row->seq;
	return report_add(ob, row, READY, true) ? 0 : -ENOMEM;
}

static int copy_urls(struct vhca_outbox *ob, const struct vhca_outbox_conf *conf)
{
	if (conf->n_urls > URLS_MAX || (conf->ops->sends && conf->n_urls == 0))
		return -EINVAL;
	for (unsigned int i = 0; i < conf->n_urls; i++) {
		size_t len = strlen(conf->urls[i]);

		while (len > 0 && conf->urls[i][len - 1] == '/')
			len--; /* paths begin with one */
		ob->urls[i] = strndup(conf->urls[i], len);
		if (!ob->urls[i])
			return -ENOMEM;
		ob->n_urls++;
	}
	return 0;
}

static void outbox_freep(struct vhca_outbox **p)
{
	(void)vhca_outbox_free(*p);
}

int vhca_outbox_new(const struct vhca_outbox_conf *conf, struct vhca_loop *loop,
		    struct vhca_store *store, struct vhca_http_multi *http, vhca_outbox_fn fn,
		    void *arg, struct vhca_outbox **ret, struct vhca_error *err)
{
	VHCA_CLEANUP(outbox_freep) struct vhca_outbox *ob = calloc(1, sizeof(*ob));
	int r;

	if (!ob)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "no_memory", ENOMEM, "outbox");
	TAILQ_INIT(&ob->reports);
	ob->ops = conf->ops;
	ob->timeout_ms = conf->timeout_ms;
	ob->store = store;
	ob->http = http;
	ob->fn = fn;
	ob->arg = arg;
	ob->backoff.first_ms = conf->backoff_ms ? conf->backoff_ms : BACKOFF_FIRST_MS;
	ob->backoff.cap_ms = BACKOFF_CAP_MS;
	r = copy_urls(ob, conf);
	if (r == 0)
		r = vhca_timer_new(loop, "outbox", on_timer, ob, &ob->timer);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "outbox", -r, "outbox: set up");
	r = vhca_outbox_row_load(store, load_report, ob, err);
	if (r < 0)
		return r;
	vhca_timer_arm_ms(ob->timer, 0); /* callbacks only once the owner has *ret */
	*ret = vhca_steal_ptr(&ob);
	return 0;
}

struct vhca_outbox *vhca_outbox_free(struct vhca_outbox *ob)
{
	struct report *r;

	if (!ob)
		return NULL;
	while ((r = TAILQ_FIRST(&ob->reports)) != NULL) {
		if (r->state == IN_FLIGHT)
			vhca_http_multi_cancel(ob->http, r);
		report_drop(ob, r);
	}
	ob->timer = vhca_timer_free(ob->timer);
	for (unsigned int i = 0; i < ob->n_urls; i++)
		free(ob->urls[i]);
	free(ob);
	return NULL;
}
