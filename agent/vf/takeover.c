/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Taking over from a dead host: whoever restarts its VM here vouches that it runs nowhere else.
 * Then the identities which the SM still has at that host may be taken at a higher epoch; the SM
 * evicts them there, and the old agent finds itself superseded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vf/claim.h"
#include "agent/vf/report.h"
#include "agent/vf/request.h"
#include "agent/vf/transition.h"
#include "agent/vf/work.h"
#include "common/base/codes.h"
#include "common/base/file.h"

#define TAKEOVERS_MAX 1024

struct engine_takeover {
	TAILQ_ENTRY(engine_takeover) link;
	struct vhca_uuid domain;
	uint64_t until_ms;   /* vhca_now_ms */
	uint64_t last_claim; /* number of the last one that had been made when it was said */
};

static void drop(struct vhca_engine *e, struct engine_takeover *t)
{
	TAILQ_REMOVE(&e->takeovers, t, link);
	e->n_takeovers--;
	free(t);
}

void engine_drop_takeovers(struct vhca_engine *e)
{
	while (TAILQ_FIRST(&e->takeovers))
		drop(e, TAILQ_FIRST(&e->takeovers));
}

static struct engine_takeover *find(const struct vhca_engine *e, const struct vhca_uuid *domain)
{
	struct engine_takeover *t;

	TAILQ_FOREACH (t, &e->takeovers, link)
		if (vhca_uuid_equal(&t->domain, domain))
			return t;
	return NULL;
}

bool vhca_engine_vouched_since(const struct vhca_engine *e, const struct vhca_uuid *domain,
			       uint64_t since_ms)
{
	const struct engine_takeover *t = find(e, domain);

	return t && vhca_now_ms() < t->until_ms && t->until_ms - VHCA_TAKEOVER_MS >= since_ms;
}

/*
 * Who may make a claim chooses its GUID, and need not be who vouches: a claim that was made since
 * counts only if the domain itself asks for that GUID.
 */
bool engine_takes_over(struct vhca_engine *e, const struct vhca_claim *c)
{
	const struct engine_takeover *t = find(e, &c->domain);
	struct vhca_domain *dom = vhca_model_domain(&e->model, &c->domain);
	const struct vhca_vf_request *vf = dom ? vhca_dom_request(dom->info, c->name) : NULL;
	struct vhca_claim_request req = {.domain = c->domain};
	struct vhca_identity id = {0};

	if (!t || vhca_now_ms() >= t->until_ms)
		return false;
	if (c->number <= t->last_claim)
		return true;
	if (!vf)
		return false;
	req.vf = *vf;
	return engine_resolve_identity(e, &req, &id, NULL) == 0 && id.guid == c->identity.guid;
}

static int add(struct vhca_engine *e, const struct vhca_uuid *domain, struct vhca_error *err)
{
	struct engine_takeover *t;

	/* The oldest come first: all live equally long. */
	while ((t = TAILQ_FIRST(&e->takeovers)) && vhca_now_ms() >= t->until_ms)
		drop(e, t);
	t = find(e, domain);
	if (t)
		drop(e, t);
	if (e->n_takeovers >= TAKEOVERS_MAX)
		return vhca_error_set(err, VHCA_ERR_EXHAUSTED, "too_many_takeovers", 0,
				      "%d take-overs are under way", TAKEOVERS_MAX);
	t = calloc(1, sizeof(*t));
	if (!t)
		return vhca_error_no_memory(err, "take-over");
	t->domain = *domain;
	t->until_ms = vhca_now_ms() + VHCA_TAKEOVER_MS;
	t->last_claim = e->model.last_claim;
	TAILQ_INSERT_TAIL(&e->takeovers, t, link);
	e->n_takeovers++;
	return 0;
}

/*
 * Refused by the SM, and still in its guest, or on its way in or out; not what somebody wants
 * detached himself.
 */
static bool holds_refused_vf(const struct vhca_engine *e, const struct vhca_claim *c)
{
	enum vhca_vf_state state = c->vf->state;

	return c->sm_answer == VHCA_ANSWER_SUPERSEDED && !vhca_claim_is_withheld(c) &&
	       !c->migrating &&
	       (state == VHCA_VF_PROGRAMMED || state == VHCA_VF_ATTACHED ||
		state == VHCA_VF_DETACHING) &&
	       !vhca_model_suppressed(&e->model, &c->domain, c->name);
}

/*
 * The SM is asked again. It says which epoch it knows, and now the next one may be ours
 * (sm.c).
 */
static void request_again(struct vhca_engine *e, struct vhca_claim *c)
{
	if (c->failure.kind && vhca_error_is(&c->failure, VHCA_CODE_SUPERSEDED)) {
		c->failure = (struct vhca_error)VHCA_ERROR_INIT;
		if (c->end == VHCA_END_ASKED)
			c->end = c->released ? VHCA_END_WHEN_LEFT : VHCA_END_NONE;
		c->stays = c->vf->state == VHCA_VF_DETACHING;
	}
	if (c->custody == VHCA_CUSTODY_LEAVING) {
		c->custody = VHCA_CUSTODY_HERE;
		c->stays = c->vf->state == VHCA_VF_DETACHING;
	}
	engine_forget_answer(c);
	if (c->vf->committing)
		engine_owe(c->vf, VHCA_OWED_SAVE);
	engine_tell_sm(e, c);
	engine_mark(e, c->vf);
}

int vhca_engine_takeover(struct vhca_engine *e, const struct vhca_uuid *domain,
			 const char *evidence, struct vhca_error *err)
{
	struct vhca_domain *dom = vhca_model_domain(&e->model, domain);
	struct vhca_claim *c;
	int r;

	if (!e->args.fenced) {
		vhca_error_set(err, VHCA_ERR_DENIED, "not_fenced", 0,
			       "the SM back end cannot evict a host that still holds an address");
		vhca_error_hint(err,
				"sm.backend = vhcasm can; without it, clear the old host first");
		return -EPERM;
	}
	r = add(e, domain, err);
	if (r < 0)
		return r;
	vhca_events_add(e->args.events, "domain", VHCA_UUID_STR(domain),
			"may take its addresses over from another host: %s", evidence);
	VHCA_FOREACH_CLAIM_OF (c, &e->model, domain) {
		if (holds_refused_vf(e, c))
			request_again(e, c);
		else if (vhca_claim_awaits(c) == VHCA_AWAITS_SM)
			engine_mark(e, c->vf); /* the hook holds its guest for 1.2 s */
	}
	if (dom)
		engine_ask_again(e, dom);
	return 0;
}
