/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/sm/pair_sm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/http/json.h"

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "# SM: %s\n", what);
	abort();
}

void pair_sm_init(struct pair_sm *sm)
{
	memset(sm, 0, sizeof(*sm));
	sim_sm_init(&sm->bindings, false);
}

void pair_sm_done(struct pair_sm *sm)
{
	sim_sm_done(&sm->bindings);
}

static struct vhca_sm_binding drop(struct pair_sm_line *line, unsigned int i)
{
	struct vhca_sm_binding b = line->reports[i].binding;

	line->n--;
	memmove(&line->reports[i], &line->reports[i + 1], (line->n - i) * sizeof(line->reports[0]));
	return b;
}

/* ---- the agents' side ---- */

static void add(struct pair_sm_line *line, enum pair_sm_kind kind,
		const struct vhca_sm_binding *binding)
{
	must(line->n < PAIR_SM_REPORTS_MAX, "too many reports at once");
	line->reports[line->n++] = (struct pair_sm_report){.kind = kind, .binding = *binding};
}

static void on_report(void *arg, const struct vhca_sm_binding *binding, enum vhca_sm_answer answer,
		      const char *reason, struct json_object *doc)
{
	struct pair_sm_line *line = arg;

	(void)answer;
	(void)reason;
	(void)doc;
	for (unsigned int i = 0; i < line->n; i++)
		if (line->reports[i].binding.vguid == binding->vguid &&
		    line->reports[i].kind == PAIR_SM_REPORT)
			drop(line, i); /* the newest state is what is sent */
	add(line, PAIR_SM_REPORT, binding);
}

static void on_question(void *arg, const struct vhca_sm_binding *binding,
			enum vhca_sm_answer answer, const char *reason, struct json_object *doc)
{
	(void)answer;
	(void)reason;
	(void)doc;
	add(arg, PAIR_SM_QUESTION, binding);
}

void pair_sm_started(struct pair_sm *sm, unsigned int h, struct world *w)
{
	struct pair_sm_line *line = &sm->lines[h];
	struct vhca_error err = VHCA_ERROR_INIT;
	/* hands over what is durable, and what is asked */
	struct vhca_outbox_conf conf = {.ops = &vhca_sm_none, .would_answer = on_question};

	line->w = w;
	line->n = 0;
	if (vhca_outbox_new(&conf, w->loop, w->store, NULL, on_report, line, &line->outbox, &err))
		must(false, err.msg);
	vhca_engine_set_outbox(w->engine, line->outbox);
}

void pair_sm_stopping(struct pair_sm *sm, unsigned int h)
{
	sm->lines[h].outbox = vhca_outbox_free(sm->lines[h].outbox);
	sm->lines[h].n = 0;
}

/* ---- the SM's side ---- */

const struct pair_sm_report *pair_sm_next(const struct pair_sm *sm, unsigned int h)
{
	return sm->lines[h].n ? &sm->lines[h].reports[0] : NULL;
}

/* As the plugin does it, when the binding is in effect. */
static void move_lid(struct pair_sm *sm, const struct vhca_sm_binding *b)
{
	if (!b->bound && !b->keep_lid)
		sm->lid_at = 0;
	if (!b->dynamic_lid)
		return;
	sm->lids_given += sm->lid_at == 0;
	sm->lid_at = b->port_guid;
}

/* As the plugin has it with [tickets] required. */
static void move_ownership(struct pair_sm *sm, const struct vhca_sm_binding *b)
{
	if (!b->bound && b->keep_lid)
		return;
	sm->freed += !b->bound && sm->owner_at;
	sm->owner_at = b->bound ? b->port_guid : 0;
}

/* The host where the port has this LID; 2 = none. */
static unsigned int host_with(const struct pair_sm *sm, uint16_t lid)
{
	unsigned int h = 0;

	while (h < 2 && sm->lines[h].w->lid != lid)
		h++;
	return h;
}

/*
 * lid_policy follow as the plugin has it (vhca_osm_check_follow() in opensm/http/follow.c,
 * resolve() in opensm/osm/lids.c): the port where the LID is to be, and the one where it is,
 * exchange theirs. Why not; NULL = it is there.
 */
static const char *follow(struct pair_sm *sm, const struct vhca_sm_binding *b)
{
	unsigned int at = host_with(sm, b->from_lid);
	unsigned int to = sm->lines[0].w->port_guid == b->port_guid ? 0 : 1;
	uint16_t other = sm->lines[to].w->lid;

	if (at == to)
		return NULL;
	if (at == 2 || sm->lines[at].w->port_guid != b->from_port_guid)
		return "lid_elsewhere";
	if (sm->lid_refusal)
		return sm->lid_refusal;
	sm->lids_changed++;
	world_set_lid(sm->lines[to].w, b->from_lid);
	world_set_lid(sm->lines[at].w, other);
	return NULL;
}

static int put(struct pair_sm *sm, const struct vhca_sm_binding *b, struct vhca_error *err)
{
	bool not_its_own = vhca_osm_table_has_other_owner(sm->bindings.table, b->vguid, b->epoch,
							  b->port_guid);
	int r = sim_sm_take(&sm->bindings, b, err);

	if (r == 0 && !not_its_own) {
		move_lid(sm, b);
		move_ownership(sm, b);
	}
	return r;
}

static void answer(struct pair_sm *sm, struct world *w, enum pair_sm_kind kind,
		   const struct vhca_sm_binding *asked)
{
	struct vhca_sm_binding b = *asked;
	vhca_outbox_fn tell =
		kind == PAIR_SM_QUESTION ? vhca_engine_sm_would_answer : vhca_engine_sm_answer;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct json_object *doc;

	if (kind == PAIR_SM_REPORT && b.follow_lid) {
		const char *why = sim_sm_ask(&sm->bindings, &b, NULL) < 0 ? NULL : follow(sm, &b);

		if (why)
			vhca_engine_sm_keeps_lid(w->engine, &b, why);
		b.follow_lid = !why; /* the outbox sends it without */
	}
	if ((kind == PAIR_SM_QUESTION ? sim_sm_ask(&sm->bindings, &b, &err) : put(sm, &b, &err)) ==
	    0) {
		tell(w->engine, &b, VHCA_SM_ACCEPTED, "", NULL);
		return;
	}
	doc = json_object_new_object();
	sim_sm_add_known(&sm->bindings, b.vguid, doc);
	tell(w->engine, &b, err.kind == VHCA_ERR_CONFLICT ? VHCA_SM_SUPERSEDED : VHCA_SM_REFUSED,
	     err.msg, doc);
	json_object_put(doc);
}

void pair_sm_take(struct pair_sm *sm, unsigned int h)
{
	struct pair_sm_line *line = &sm->lines[h];
	enum pair_sm_kind kind = line->reports[0].kind;
	struct vhca_sm_binding b = drop(line, 0);

	answer(sm, line->w, kind, &b);
}

void pair_sm_lose(struct pair_sm *sm, unsigned int h)
{
	enum pair_sm_kind kind = sm->lines[h].reports[0].kind;
	struct vhca_sm_binding b = drop(&sm->lines[h], 0);

	if (kind != PAIR_SM_REPORT || put(sm, &b, NULL) < 0)
		return;
	if (b.follow_lid)
		(void)follow(sm, &b);
}

void pair_sm_delay(struct pair_sm *sm, unsigned int h)
{
	struct pair_sm_line *line = &sm->lines[h];

	for (unsigned int i = 0; i < line->n; i++) {
		if (line->reports[i].delayed)
			continue;
		line->reports[i].delayed = true;
		if (line->reports[i].kind == PAIR_SM_QUESTION)
			continue;
		vhca_engine_sm_answer(line->w->engine, &line->reports[i].binding, VHCA_SM_RETRY,
				      "the SM is down", NULL);
	}
}

bool pair_sm_outbids(const struct pair_sm *sm, uint64_t vguid, uint64_t epoch, uint64_t port_guid)
{
	const struct vhca_osm_binding *b = sim_sm_find(&sm->bindings, vguid);

	return b && !b->withdrawn && b->port_guid == port_guid && b->epoch > epoch;
}
