/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/migration/drain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/http/json.h"

#define RETRY_FIRST_MS 5000
#define RETRY_CAP_MS   60000

/* A guest that has to go; kept while it has claims here. */
struct guest {
	TAILQ_ENTRY(guest) link;
	struct vhca_uuid uuid;
	unsigned int tries;
	struct vhca_backoff backoff;
	uint64_t not_before_ms;
	char reason[256]; /* why the last try did not succeed */
};

struct vhca_drain {
	struct vhca_drain_args args;
	struct vhca_model *model;
	struct vhca_engine_listener listener;
	struct vhca_timer *timer; /* the next guest that is to be tried again, or the journal */
	bool on;
	bool saved;	     /* what is in memory is written, or being so */
	unsigned int saving; /* transactions under way; durable only after the last of them */
	uint64_t since_ms;   /* wall clock */
	unsigned int n_peers;
	char peers[VHCA_CONF_PEERS_MAX][VHCA_NAME_MAX];
	TAILQ_HEAD(, guest) guests;
};

/* ---- journal ---- */

static void on_saved(void *arg, int rc)
{
	struct vhca_drain *d = arg;

	d->saving--;
	if (rc < 0) {
		vhca_log_error("drain: state database: %s", strerror(-rc));
		d->saved = false;
		vhca_timer_arm_ms(d->timer, d->args.retry_ms);
		return;
	}
	vhca_timer_arm_ms(d->timer, 0);
}

static void save(struct vhca_drain *d)
{
	struct vhca_txn *txn = vhca_txn_new(d->args.store);
	char peers[VHCA_CONF_PEERS_MAX * VHCA_NAME_MAX] = "";
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, peers, sizeof(peers));
	for (unsigned int i = 0; i < d->n_peers; i++)
		vhca_strbuf_add(&sb, "%s%s", i ? " " : "", d->peers[i]);
	vhca_txn_exec(txn, "DELETE FROM drain", "");
	if (d->on)
		vhca_txn_exec(txn, "INSERT INTO drain VALUES (1, ?1, ?2)", "su", peers,
			      d->since_ms);
	d->saved = true;
	d->saving++;
	vhca_txn_commit(txn, on_saved, d);
}

static int load_row(void *ctx, const struct vhca_row *row)
{
	struct vhca_drain *d = ctx;
	char peers[VHCA_CONF_PEERS_MAX * VHCA_NAME_MAX], *rest = NULL;

	if (vhca_strcpy(peers, sizeof(peers), vhca_row_text(row, 1)))
		return -EBADMSG;
	for (char *w = strtok_r(peers, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
		if (d->n_peers == VHCA_CONF_PEERS_MAX ||
		    vhca_strcpy(d->peers[d->n_peers++], VHCA_NAME_MAX, w))
			return -EBADMSG;
	d->since_ms = vhca_row_u64(row, 2);
	d->on = true;
	return 0;
}

/* ---- guests ---- */

static struct guest *find_guest(const struct vhca_drain *d, const struct vhca_uuid *uuid)
{
	struct guest *g;

	TAILQ_FOREACH (g, &d->guests, link)
		if (vhca_uuid_equal(&g->uuid, uuid))
			return g;
	return NULL;
}

static bool has_claims(const struct vhca_drain *d, const struct vhca_uuid *uuid)
{
	return vhca_model_next_claim(d->model, uuid, NULL) != NULL;
}

static void forget(struct vhca_drain *d, struct guest *g)
{
	TAILQ_REMOVE(&d->guests, g, link);
	free(g);
}

static void forget_gone(struct vhca_drain *d)
{
	struct guest *g, *next;

	for (g = TAILQ_FIRST(&d->guests); g; g = next) {
		next = TAILQ_NEXT(g, link);
		if (!has_claims(d, &g->uuid))
			forget(d, g);
	}
}

static struct guest *add_guest(struct vhca_drain *d, const struct vhca_uuid *uuid)
{
	struct guest *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->uuid = *uuid;
	g->backoff = (struct vhca_backoff){.first_ms = d->args.retry_ms, .cap_ms = RETRY_CAP_MS};
	TAILQ_INSERT_TAIL(&d->guests, g, link);
	return g;
}

/* ---- migrations ---- */

/* The domain's newest at this source. */
static const struct vhca_mig *last_of(const struct vhca_drain *d, const struct vhca_uuid *uuid)
{
	const struct vhca_mig *m = vhca_migrations_first(d->args.migrations), *last = NULL;

	for (; m; m = TAILQ_NEXT(m, link))
		if (m->source && vhca_uuid_equal(&m->domain, uuid))
			last = m;
	return last;
}

static unsigned int count_moving(const struct vhca_drain *d)
{
	const struct vhca_mig *m = vhca_migrations_first(d->args.migrations);
	unsigned int n = 0;

	for (; m; m = TAILQ_NEXT(m, link))
		n += m->source && !vhca_mig_state_is_final(m->state) && m->state != VHCA_MIG_PARKED;
	return n;
}

static void try_later(struct guest *g, const char *why)
{
	(void)snprintf(g->reason, sizeof(g->reason), "%s", why);
	g->not_before_ms = vhca_now_ms() + vhca_backoff_next(&g->backoff);
}

/*
 * The next peer each time: one that is full or unreachable is not the end. True: it is on its way.
 */
static bool send_away(struct vhca_drain *d, struct guest *g)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_mig *m = NULL;
	struct vhca_mig_request req = {
		.domain = g->uuid,
		.peer = d->n_peers ? d->peers[g->tries % d->n_peers] : NULL,
		.mode = d->n_peers ? VHCA_MIG_MODE_MANAGED : VHCA_MIG_MODE_PARK,
		.lease_ms = VHCA_MIG_NO_LEASE,
	};

	g->tries++;
	if (vhca_migrations_request(d->args.migrations, &req, &m, &err) < 0) {
		try_later(g, err.msg);
		return false;
	}
	try_later(g, "");
	return true;
}

static bool goes_already(const struct vhca_mig *m)
{
	return m && !vhca_mig_state_is_final(m->state);
}

static void look_at(struct vhca_drain *d, const struct vhca_uuid *uuid, unsigned int *moving)
{
	const struct vhca_mig *last = last_of(d, uuid);
	struct guest *g = find_guest(d, uuid);

	if (!g)
		g = add_guest(d, uuid);
	if (!g || goes_already(last))
		return;
	if (last && last->failure.kind && g->tries)
		(void)snprintf(g->reason, sizeof(g->reason), "%s", last->reason);
	if (vhca_now_ms() < g->not_before_ms || *moving >= d->args.parallel)
		return;
	*moving += send_away(d, g);
}

/* A round of the engine tells of everything but the time. */
static void await_next_try(struct vhca_drain *d)
{
	uint64_t now = vhca_now_ms(), next = UINT64_MAX;
	const struct guest *g;

	TAILQ_FOREACH (g, &d->guests, link)
		if (g->not_before_ms > now && g->not_before_ms < next)
			next = g->not_before_ms;
	if (next != UINT64_MAX)
		vhca_timer_arm_ms(d->timer, next - now);
}

static void look(void *arg)
{
	struct vhca_drain *d = arg;
	const struct vhca_domain *dom;
	unsigned int moving;

	if (!d->on || !d->saved || d->saving || !vhca_engine_virt_synced(d->args.engine))
		return;
	forget_gone(d);
	moving = count_moving(d);
	TAILQ_FOREACH (dom, &d->model->domains, link)
		if (!dom->incoming && has_claims(d, &dom->info->uuid))
			look_at(d, &dom->info->uuid, &moving);
	await_next_try(d);
}

static void on_timer(void *arg)
{
	struct vhca_drain *d = arg;

	if (!d->saved)
		save(d);
	look(d);
}

/* ---- requests ---- */

static int check_peers(const struct vhca_drain *d, const char *const *peers, unsigned int n,
		       struct vhca_error *err)
{
	if (n > VHCA_CONF_PEERS_MAX)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "%d peers at most", VHCA_CONF_PEERS_MAX);
	for (unsigned int i = 0; i < n; i++)
		if (!vhca_conf_peer(d->args.conf, peers[i]))
			return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_peer", 0,
					      "there is no [peer %.31s] in the configuration",
					      peers[i]);
	return 0;
}

/* Parked without an end: by a drain. */
static void unpark_all(struct vhca_drain *d)
{
	const struct vhca_mig *m = vhca_migrations_first(d->args.migrations);
	struct vhca_error err;

	for (; m; m = TAILQ_NEXT(m, link))
		if (m->source && m->mode == VHCA_MIG_MODE_PARK && !m->lease_ms &&
		    !vhca_mig_state_is_final(m->state) &&
		    vhca_migrations_cancel(d->args.migrations, &m->id, &err) < 0)
			vhca_log_error("%s: unpark: %s", m->domain_name, err.msg);
}

int vhca_drain_begin(struct vhca_drain *d, const char *const *peers, unsigned int n,
		     struct vhca_error *err)
{
	struct guest *g;
	int r = check_peers(d, peers, n, err);

	if (r < 0)
		return r;
	if (n)
		unpark_all(d); /* only a guest with its VFs can be migrated */
	for (unsigned int i = 0; i < n; i++)
		(void)vhca_strcpy(d->peers[i], VHCA_NAME_MAX, peers[i]); /* a configured name */
	d->n_peers = n;
	if (!d->on)
		d->since_ms = vhca_wall_ms();
	d->on = true;
	TAILQ_FOREACH (g, &d->guests, link)
		g->not_before_ms = 0;
	vhca_engine_set_drained(d->args.engine, true);
	vhca_events_add(d->args.events, "drain", d->args.conf->node_name,
			"drained: no new claims; %s", n ? "guests go to peers" : "VFs are parked");
	save(d);
	return 0;
}

void vhca_drain_end(struct vhca_drain *d)
{
	if (!d->on)
		return;
	d->on = false;
	d->n_peers = 0;
	while (TAILQ_FIRST(&d->guests))
		forget(d, TAILQ_FIRST(&d->guests));
	vhca_engine_set_drained(d->args.engine, false);
	vhca_events_add(d->args.events, "drain", d->args.conf->node_name, "no longer drained");
	unpark_all(d);
	save(d);
}

bool vhca_drain_is_on(const struct vhca_drain *d)
{
	return d->on;
}

/* ---- view ---- */

static struct json_object *view_guest(const struct vhca_domain *dom, const struct guest *g,
				      const struct vhca_mig *m)
{
	struct json_object *o = json_object_new_object();
	const char *reason = goes_already(m) ? m->reason : g ? g->reason : "";

	vhca_json_add_string(o, "domain", VHCA_UUID_STR(&dom->info->uuid));
	vhca_json_add_string(o, "domain_name", dom->info->name);
	vhca_json_add_string(o, "state",
			     !goes_already(m)		   ? "waiting"
			     : m->state == VHCA_MIG_PARKED ? "parked"
							   : "moving");
	vhca_json_add_string(o, "reason", *reason ? reason : NULL);
	return o;
}

struct json_object *vhca_drain_view(const struct vhca_drain *d)
{
	struct json_object *o = json_object_new_object(), *peers = json_object_new_array(),
			   *domains = json_object_new_array();
	const struct vhca_domain *dom;
	const struct vhca_claim *c;
	unsigned int left = 0;

	/*
	 * Claims of whatever is not parked are left: of guests that are here, of reservations, of
	 * VFs for an XML to come.
	 */
	TAILQ_FOREACH (c, &d->model->claims, link) {
		const struct vhca_mig *m = last_of(d, &c->domain);

		left += !m || m->state != VHCA_MIG_PARKED;
	}
	for (unsigned int i = 0; i < d->n_peers; i++)
		json_object_array_add(peers, json_object_new_string(d->peers[i]));
	TAILQ_FOREACH (dom, &d->model->domains, link)
		if (has_claims(d, &dom->info->uuid))
			json_object_array_add(domains,
					      view_guest(dom, find_guest(d, &dom->info->uuid),
							 last_of(d, &dom->info->uuid)));
	vhca_json_add_bool(o, "drained", d->on);
	vhca_json_add(o, "since_ms", d->on ? json_object_new_int64((int64_t)d->since_ms) : NULL);
	vhca_json_add(o, "peers", peers);
	vhca_json_add_bool(o, "done", d->on && !left && vhca_engine_virt_synced(d->args.engine));
	vhca_json_add_u64(o, "claims", left);
	vhca_json_add(o, "domains", domains);
	return o;
}

/* ---- life ---- */

int vhca_drain_new(const struct vhca_drain_args *args, struct vhca_drain **ret,
		   struct vhca_error *err)
{
	struct vhca_drain *d = calloc(1, sizeof(*d));
	int r;

	if (!d || vhca_timer_new(args->loop, "drain", on_timer, d, &d->timer) < 0) {
		free(d);
		return vhca_error_no_memory(err, "drain");
	}
	d->args = *args;
	d->args.parallel = args->parallel ? args->parallel : VHCA_DRAIN_PARALLEL;
	d->args.retry_ms = args->retry_ms ? args->retry_ms : RETRY_FIRST_MS;
	d->model = vhca_engine_model(args->engine);
	d->saved = true;
	TAILQ_INIT(&d->guests);
	d->listener = (struct vhca_engine_listener){.fn = look, .arg = d};
	vhca_engine_listen(args->engine, &d->listener);
	r = vhca_store_query(args->store, "SELECT * FROM drain", load_row, d, err, "");
	if (r < 0) {
		vhca_drain_free(d);
		return r == -EBADMSG ? vhca_error_set(err, VHCA_ERR_INTERNAL, "store_corrupt",
						      EBADMSG, "state database: table drain")
				     : r;
	}
	/*
	 * Whoever ended the drain, or gave it peers, wanted the VFs back; an agent that was killed
	 * then had perhaps not begun with it.
	 */
	if (!d->on || d->n_peers)
		unpark_all(d);
	if (d->on) {
		vhca_log_notice("this host is drained: no new claims (vhcactl undrain)");
		vhca_engine_set_drained(args->engine, true);
		vhca_timer_arm_ms(d->timer, 0);
	}
	*ret = d;
	return 0;
}

struct vhca_drain *vhca_drain_free(struct vhca_drain *d)
{
	if (!d)
		return NULL;
	vhca_engine_unlisten(d->args.engine, &d->listener);
	while (TAILQ_FIRST(&d->guests))
		forget(d, TAILQ_FIRST(&d->guests));
	vhca_timer_free(d->timer);
	free(d);
	return NULL;
}
