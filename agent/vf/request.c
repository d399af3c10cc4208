/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What live domains ask for in their metadata: who is owed a VF, and when what was refused is tried
 * again.
 */
#include "agent/vf/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/vf/claim.h"
#include "agent/vf/report.h"
#include "agent/vf/transition.h"
#include "agent/vf/work.h"
#include "common/base/file.h"

static struct vhca_request_state *request_state(const struct vhca_engine *e,
						struct vhca_domain *dom, const char *name)
{
	struct vhca_request_state *empty = NULL;

	for (unsigned int i = 0; i < VHCA_DOM_VFS_MAX; i++) {
		if (strcmp(dom->requests[i].name, name) == 0)
			return &dom->requests[i];
		if (!empty && !dom->requests[i].name[0])
			empty = &dom->requests[i];
	}
	if (!empty) /* names of earlier metadata fill the table: start over */
		empty = memset(dom->requests, 0, sizeof(dom->requests));
	(void)vhca_strcpy(empty->name, sizeof(empty->name), name); /* a valid name */
	empty->backoff =
		(struct vhca_backoff){.first_ms = e->args.request_ms, .cap_ms = REQUEST_CAP_MS};
	return empty;
}

static void request_failed(struct vhca_engine *e, struct vhca_domain *dom, const char *name,
			   const struct vhca_error *err)
{
	struct vhca_request_state *st = request_state(e, dom, name);
	/*
	 * A full host is not the request's fault: looked at whenever a VF becomes free, at a steady
	 * pace else.
	 */
	uint32_t ms = err->kind == VHCA_ERR_EXHAUSTED ? e->args.request_ms
						      : vhca_backoff_next(&st->backoff);
	char label[192];

	if (strcmp(st->problem.msg, err->msg) != 0) {
		(void)snprintf(label, sizeof(label), "%s/%s", dom->info->name, name);
		vhca_events_add(e->args.events, "domain", label, "%s", err->msg);
	}
	st->problem = *err;
	st->retry_ms = vhca_now_ms() + ms;
}

void engine_request_failed(struct vhca_engine *e, const struct vhca_claim *claim)
{
	struct vhca_domain *dom = engine_claim_domain(e, claim);

	if (!dom || claim->origin != VHCA_ORIGIN_METADATA)
		return;
	request_state(e, dom, claim->name)->backoff.cap_ms =
		claim->sm_answer == VHCA_ANSWER_SUPERSEDED ? OWNED_CAP_MS : REQUEST_CAP_MS;
	request_failed(e, dom, claim->name, &claim->failure);
	request_state(e, dom, claim->name)->failed = claim->failure;
}

/* Each time costs the SM two reports and libvirt an attach, and a guest decides how often. One that
 * has kept it for as long as it could be made to wait begins anew. */
void engine_request_ejected(struct vhca_engine *e, const struct vhca_vf *vf)
{
	struct vhca_claim *c = vf->claim;
	struct vhca_domain *dom = engine_claim_domain(e, c);
	struct vhca_backoff *backoff = &request_state(e, dom, c->name)->backoff;

	if (vhca_wall_ms() - vf->since_ms >= REQUEST_CAP_MS)
		vhca_backoff_reset(backoff);
	vhca_error_set(&c->failure, VHCA_ERR_CONFLICT, "ejected", 0,
		       "the guest has let go of its VF without being asked; it gets a VF again in "
		       "%u s",
		       (backoff->next_ms ? backoff->next_ms : backoff->first_ms) / 1000);
	vhca_error_hint(
		&c->failure,
		"find out what ejects it in the guest; vhcactl attach gives it back at once");
}

/*
 * A domain that holds a VF which nobody claims may have what it asks for: a second one is not given
 * on a guess.
 */
static int check_adopted(struct vhca_engine *e, const struct vhca_domain *dom,
			 struct vhca_error *err)
{
	for (unsigned int i = 0; i < dom->info->n_hostdevs; i++) {
		const struct vhca_vf *vf = vhca_model_vf(&e->model, dom->info->hostdevs[i].host);

		if (!vf || vf->state != VHCA_VF_UNMANAGED || !vhca_engine_manages(e, vf))
			continue;
		vhca_error_set(err, VHCA_ERR_CONFLICT, "not_adopted", 0,
			       "domain %s holds %s without a claim", dom->info->name,
			       VHCA_BDF_STR(vf->bdf));
		vhca_error_hint(err, "vhcactl adopt %s",
				VHCA_DOMAIN_WORD(dom->info->name, &dom->info->uuid));
		return -EBUSY;
	}
	return 0;
}

static void try_request(struct vhca_engine *e, struct vhca_domain *dom,
			const struct vhca_vf_request *vf)
{
	struct vhca_claim_request req = {
		.domain = dom->info->uuid, .vf = *vf, .origin = VHCA_ORIGIN_METADATA};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_request_state *st = request_state(e, dom, vf->name);
	struct vhca_claim *c;
	int r;

	/* A freed VF is worth a try at once; everything else keeps its back-off. */
	if (vhca_now_ms() < st->retry_ms &&
	    (st->problem.kind != VHCA_ERR_EXHAUSTED || vhca_error_is(&st->problem, "state_disk")))
		return;
	(void)vhca_strcpy(req.domain_name, sizeof(req.domain_name),
			  dom->info->name); /* same size */
	r = check_adopted(e, dom, &err);
	if (r == 0)
		r = engine_check_root_ports(e, dom, 1, &err);
	if (r == 0)
		r = engine_check_plug(e, dom, &err);
	if (r == 0)
		r = engine_claim_as_asked(e, &req, &c, &err);
	if (r < 0)
		request_failed(e, dom, vf->name, &err);
	else
		st->problem = (struct vhca_error)VHCA_ERROR_INIT;
}

/* A guest that is on its way gets nothing more: a VF that came late would hold it here. */
static bool wanted(struct vhca_engine *e, const struct vhca_domain *dom,
		   const struct vhca_vf_request *vf)
{
	return !dom->incoming && !engine_is_migrating(e, &dom->info->uuid) &&
	       !vhca_model_suppressed(&e->model, &dom->info->uuid, vf->name) &&
	       !vhca_model_claim_of(&e->model, &dom->info->uuid, vf->name);
}

/* ---- a request that changed under its VF ---- */

/*
 * What the VF of a live domain lacks of what is asked for now. auto and sm are content with any
 * GUID, and a guest that has migrated may be on another adapter than it would get here.
 */
static void compare(struct vhca_engine *e, const struct vhca_domain *dom,
		    const struct vhca_claim *c, const struct vhca_vf_request *vf,
		    struct vhca_error *ret)
{
	uint16_t pkeys[VHCA_VF_PKEYS_MAX];
	size_t n = 0;

	if (vhca_conf_resolve_pkeys(e->conf, vf->partition, pkeys, VHCA_VF_PKEYS_MAX, &n, ret) < 0)
		return;
	if (c->identity.n_pkeys != n || memcmp(c->identity.pkeys, pkeys, n * sizeof(pkeys[0])) != 0)
		vhca_error_set(
			ret, VHCA_ERR_CONFLICT, "differs", 0,
			"%s keeps the partitions that it came with; \"%.150s\" is asked for now",
			c->name, vf->partition);
	else if (vf->guid && vf->guid != VHCA_GUID_BY_SM && vf->guid != c->identity.guid)
		vhca_error_set(ret, VHCA_ERR_CONFLICT, "differs", 0,
			       "%s keeps the GUID that it came with; %s is asked for now", c->name,
			       VHCA_GUID_STR(vf->guid));
	vhca_error_hint(ret, "vhcactl detach %s %s, then vhcactl attach with what it shall have",
			VHCA_DOMAIN_WORD(dom->info->name, &dom->info->uuid), c->name);
}

static void find_difference(struct vhca_engine *e, const struct vhca_domain *dom,
			    const struct vhca_claim *c, struct vhca_error *ret)
{
	const struct vhca_vf_request *vf = vhca_dom_request(dom->info, c->name);

	if (vf) {
		compare(e, dom, c, vf, ret);
		return;
	}
	vhca_error_set(ret, VHCA_ERR_CONFLICT, "differs", 0,
		       "%s has its VF, and is not asked for any more", c->name);
	vhca_error_hint(ret, "vhcactl detach %s %s",
			VHCA_DOMAIN_WORD(dom->info->name, &dom->info->uuid), c->name);
}

/*
 * What no guest has seen begins anew. A VF in a guest keeps what it came with: its QPs hold the
 * physical index of a P_Key that would go, and a device is not taken from a guest because somebody
 * edits a text. So that is said.
 */
static void compare_request(struct vhca_engine *e, const struct vhca_domain *dom,
			    struct vhca_claim *c)
{
	struct vhca_error differs = VHCA_ERROR_INIT;

	find_difference(e, dom, c, &differs);
	if (differs.kind && (c->vf->state == VHCA_VF_CLAIMED || c->vf->state == VHCA_VF_FREE)) {
		vhca_engine_drop(e, c);
		vhca_events_add_claim(e->args.events, "domain", c,
				      "is asked for in another way now, and begins anew");
		return;
	}
	if (differs.kind && strcmp(c->differs.msg, differs.msg) != 0)
		vhca_events_add_claim(e->args.events, "domain", c, "%s; %s", differs.msg,
				      differs.hint);
	c->differs = differs;
}

static void compare_requests(struct vhca_engine *e)
{
	const struct vhca_domain *dom;
	struct vhca_claim *c;

	TAILQ_FOREACH (c, &e->model.claims, link) {
		dom = engine_claim_domain(e, c);
		if (dom && !dom->unreadable.kind && !dom->request_error.kind && !dom->incoming &&
		    c->origin == VHCA_ORIGIN_METADATA && !c->migrating &&
		    !vhca_claim_is_ending(c) && c->boot != VHCA_BOOT_EARLIER)
			compare_request(e, dom, c);
	}
}

/* Time until the earliest request may be tried again; 0 = none waits. */
static uint64_t next_try(struct vhca_engine *e, uint64_t now)
{
	const struct vhca_domain *dom;
	uint64_t next = 0;

	TAILQ_FOREACH (dom, &e->model.domains, link) {
		for (unsigned int i = 0; i < VHCA_DOM_VFS_MAX; i++) {
			uint64_t at = dom->requests[i].retry_ms;

			if (at > now && (!next || at - now < next))
				next = at - now;
		}
	}
	return next;
}

void engine_ask_again(struct vhca_engine *e, struct vhca_domain *dom)
{
	for (unsigned int i = 0; i < VHCA_DOM_VFS_MAX; i++)
		dom->requests[i].retry_ms = 0;
	vhca_timer_arm_ms(e->requests, 0);
}

void engine_requests(struct vhca_engine *e)
{
	struct vhca_domain *dom;
	uint64_t wait;

	if (!e->virt_synced || !e->inventory_seen)
		return;
	/* One that comes again by its name is a new one. What cannot be read may still be asked
	 * for. */
	TAILQ_FOREACH (dom, &e->model.domains, link)
		for (unsigned int i = 0;
		     !dom->unreadable.kind && !dom->request_error.kind && i < VHCA_DOM_VFS_MAX; i++)
			if (!vhca_dom_request(dom->info, dom->requests[i].name))
				dom->requests[i] = (struct vhca_request_state){.name = ""};
	TAILQ_FOREACH (dom, &e->model.domains, link)
		for (unsigned int i = 0; !dom->unreadable.kind && i < dom->info->n_requests; i++)
			if (wanted(e, dom, &dom->info->requests[i]))
				try_request(e, dom, &dom->info->requests[i]);
	compare_requests(e);
	wait = next_try(e, vhca_now_ms());
	if (wait)
		vhca_timer_arm_ms(e->requests, wait);
}

/* ---- what people and orchestrators ask for ---- */

static enum vhca_vf_state state_asked_for(const struct vhca_claim *c)
{
	return c->origin == VHCA_ORIGIN_CLAIM ? VHCA_VF_PROGRAMMED : VHCA_VF_ATTACHED;
}

void vhca_engine_await(struct vhca_engine *e, struct vhca_claim *c, vhca_waiter_fn fn, void *arg)
{
	enum vhca_vf_state state = c->vf->state, until = state_asked_for(c);
	bool is_done = state == until || state == VHCA_VF_ATTACHED;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (engine_add_waiter(c, is_done ? ENGINE_DURABLE : until, fn, arg) < 0) {
		vhca_error_no_memory(&err, "claim");
		engine_answer_later(e, fn, arg, &err);
		return;
	}
	if (is_done)
		engine_save_soon(e, c);
}

void vhca_engine_claim(struct vhca_engine *e, const struct vhca_claim_request *req,
		       vhca_waiter_fn fn, void *arg)
{
	const struct vhca_domain *dom = vhca_model_domain(&e->model, &req->domain);
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_claim *c = NULL;
	int r = 0;

	if (req->origin == VHCA_ORIGIN_ATTACH && !dom)
		r = vhca_engine_no_such_domain(e, req->domain_name, &err);
	if (r == 0 && req->origin == VHCA_ORIGIN_ATTACH)
		r = vhca_engine_check_readable(dom, &err);
	if (r == 0 && req->origin == VHCA_ORIGIN_ATTACH)
		r = engine_check_root_ports(e, dom, 1, &err);
	if (r == 0 && req->origin == VHCA_ORIGIN_ATTACH)
		r = engine_check_plug(e, dom, &err);
	if (r == 0)
		r = engine_claim_as_asked(e, req, &c, &err);
	if (r == 0 && engine_add_waiter(c, state_asked_for(c), fn, arg) < 0)
		r = vhca_error_no_memory(&err, "claim");
	if (r == 0)
		engine_ask_for_domain(e, c);
	if (r < 0)
		engine_answer_later(e, fn, arg, &err);
	else
		engine_unsuppress(e, &req->domain, req->vf.name);
}

/* A reserved VF whose domain runs is about to be programmed. */
static enum vhca_vf_state port_is_ready_in(struct vhca_engine *e, const struct vhca_claim *c)
{
	bool waits = c->run == VHCA_RUN_LEFT || !engine_runs_here(e, c);

	return c->custody == VHCA_CUSTODY_RESERVED && waits ? VHCA_VF_CLAIMED : VHCA_VF_PROGRAMMED;
}

/* What a newer word finds in its way. */
enum obstacle {
	OBSTACLE_UNUSED, /* reserved for a guest that is not here, nor about to be */
	OBSTACLE_PASSES, /* it ends, or that is not known yet: whoever asks again may have the VF */
	OBSTACLE_STAYS,
};

static enum obstacle judge(struct vhca_engine *e, const struct vhca_claim *c)
{
	if (engine_will_end(c))
		return OBSTACLE_PASSES;
	if (c->origin != VHCA_ORIGIN_CLAIM || c->custody != VHCA_CUSTODY_RESERVED ||
	    c->run == VHCA_RUN_BEGINS || c->migrating || engine_claim_domain(e, c))
		return OBSTACLE_STAYS;
	return e->virt_synced && e->inventory_seen && c->vf->state == VHCA_VF_CLAIMED
		       ? OBSTACLE_UNUSED
		       : OBSTACLE_PASSES;
}

/*
 * A cloud does not end what it reserved for a guest that never came (Nova, at the destination of a
 * copy that failed): its next word is the newer one. What would be refused all the same ends
 * nothing.
 */
static void make_way(struct vhca_engine *e, const struct vhca_claim_request *req,
		     struct vhca_error *err)
{
	const struct vhca_vf *vf = vhca_model_vf(&e->model, req->bdf);
	struct vhca_claim *of_port = vhca_model_claim_by_guid(&e->model, req->vf.guid);
	struct vhca_claim *of_vf = vf && vf->claim != of_port ? vf->claim : NULL;
	enum obstacle worst = of_port ? judge(e, of_port) : OBSTACLE_UNUSED;
	bool by_claims = of_port ? vhca_error_is(err, "exists") || vhca_error_is(err, "guid_in_use")
				 : vhca_error_is(err, "vf_not_free");

	if (of_vf && judge(e, of_vf) > worst)
		worst = judge(e, of_vf);
	if (worst == OBSTACLE_STAYS || !by_claims || !engine_may_serve(e, req))
		return;
	if (worst == OBSTACLE_UNUSED && of_port)
		vhca_engine_drop(e, of_port);
	if (worst == OBSTACLE_UNUSED && of_vf)
		vhca_engine_drop(e, of_vf);
	vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "vf_busy", EBUSY,
		       "what was reserved for a guest that is not here is being ended, or it is "
		       "not known yet whether that guest is here");
}

/* The VF is programmed when the domain begins here, or now if it runs here. */
static void claim_port_anew(struct vhca_engine *e, const struct vhca_claim_request *req,
			    vhca_waiter_fn fn, void *arg)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_claim *c = NULL;
	int r = engine_claim_as_asked(e, req, &c, &err);

	if (r < 0)
		make_way(e, req, &err);
	if (r == 0 && engine_runs_here(e, c))
		c->run = VHCA_RUN_SEEN;
	else if (r == 0)
		c->custody = VHCA_CUSTODY_RESERVED;
	if (r == 0 && engine_add_waiter(c, port_is_ready_in(e, c), fn, arg) < 0)
		r = vhca_error_no_memory(&err, "claim");
	if (r == 0)
		engine_ask_for_domain(e, c);
	if (r < 0)
		engine_answer_later(e, fn, arg, &err);
	else
		engine_unsuppress(e, &req->domain, req->vf.name);
}

/* Answered when that is durable. */
static void set_port_end(struct vhca_engine *e, struct vhca_claim *c, enum vhca_claim_end end,
			 vhca_waiter_fn fn, void *arg)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	int r = vhca_engine_check_disk(e, &err);

	if (r == 0 && engine_add_waiter(c, ENGINE_DURABLE, fn, arg) < 0)
		r = vhca_error_no_memory(&err, "port");
	if (r < 0) {
		engine_answer_later(e, fn, arg, &err);
		return;
	}
	if (c->released != (end == VHCA_END_WHEN_LEFT))
		vhca_events_add_claim(e->args.events, "claim", c, "%s %s", VHCA_BDF_STR(c->vf->bdf),
				      c->released ? "is kept: its release is forgotten"
						  : "is released when it has left its guest");
	c->released = end == VHCA_END_WHEN_LEFT;
	if (!vhca_claim_is_ending(c))
		c->end = end;
	engine_save_soon(e, c);
}

void vhca_engine_claim_port(struct vhca_engine *e, const struct vhca_claim_request *req,
			    vhca_waiter_fn fn, void *arg)
{
	struct vhca_claim *c = vhca_model_claim_by_guid(&e->model, req->vf.guid);
	struct vhca_error err = VHCA_ERROR_INIT;
	enum vhca_vf_state state = c ? c->vf->state : VHCA_VF_FREE;

	if (!c || c->origin != VHCA_ORIGIN_CLAIM || strcmp(c->name, req->vf.name) != 0 ||
	    strcmp(c->fabric, req->vf.fabric) != 0 || vhca_bdf_cmp(c->vf->bdf, req->bdf) != 0 ||
	    !vhca_uuid_equal(&c->domain, &req->domain)) {
		if (c && c->end != VHCA_END_NONE) {
			vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "vf_busy", EBUSY,
				       "the port is being taken from %s/%s still", c->domain_name,
				       c->name);
			engine_answer_later(e, fn, arg, &err);
			return;
		}
		claim_port_anew(e, req, fn, arg);
		return;
	}
	if (c->run == VHCA_RUN_LEFT)
		c->run = VHCA_RUN_UNSEEN;
	engine_go_on_with_lease(e, c);
	engine_mark(e, c->vf);
	if (vhca_claim_is_ending(c) || c->custody == VHCA_CUSTODY_LEAVING ||
	    c->boot == VHCA_BOOT_EARLIER || c->migrating ||
	    (state != VHCA_VF_FREE && state != VHCA_VF_CLAIMED && state != VHCA_VF_PROGRAMMED &&
	     state != VHCA_VF_ATTACHED)) {
		vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "vf_busy", EBUSY,
			       "%s is being taken from %s/%s still, or migrates with it",
			       VHCA_BDF_STR(req->bdf), c->domain_name, c->name);
	} else if (c->end == VHCA_END_WHEN_LEFT) {
		set_port_end(e, c, VHCA_END_NONE, fn, arg);
		return;
	} else if (state == VHCA_VF_FREE || state < port_is_ready_in(e, c)) {
		if (engine_add_waiter(c, port_is_ready_in(e, c), fn, arg) == 0)
			return;
		vhca_error_no_memory(&err, "claim");
	}
	engine_answer_later(e, fn, arg, &err);
}

void vhca_engine_release_port(struct vhca_engine *e, struct vhca_claim *claim, vhca_waiter_fn fn,
			      void *arg)
{
	enum vhca_vf_state state = claim->vf->state;

	if ((state == VHCA_VF_ATTACHED || state == VHCA_VF_DETACHING) &&
	    !vhca_engine_has_left(e, claim->vf))
		set_port_end(e, claim, VHCA_END_WHEN_LEFT, fn, arg);
	else
		vhca_engine_release(e, claim, false, fn, arg);
}

static void suppress(struct vhca_engine *e, const struct vhca_claim *claim)
{
	struct vhca_txn *txn;

	if (vhca_model_suppress(&e->model, &claim->domain, claim->name) < 0)
		return;
	txn = vhca_txn_new(e->args.store);
	vhca_journal_suppress(txn, &claim->domain, claim->name);
	vhca_txn_commit(txn, NULL, NULL);
}

/* What is refused at once changes nothing. */
static int check_release(struct vhca_engine *e, const struct vhca_claim *claim,
			 bool forbid_attached, struct vhca_error *err)
{
	const struct vhca_domain *dom = engine_claim_domain(e, claim);
	enum vhca_vf_state state = claim->vf->state;
	int r = vhca_engine_check_disk(e, err);

	if (r < 0)
		return r;
	if (forbid_attached && (state == VHCA_VF_ATTACHED || state == VHCA_VF_DETACHING)) {
		vhca_error_set(err, VHCA_ERR_CONFLICT, "attached", EBUSY,
			       "%s is attached to domain %s", VHCA_BDF_STR(claim->vf->bdf),
			       claim->domain_name);
		vhca_error_hint(err, "vhcactl detach %s %s",
				VHCA_DOMAIN_WORD(claim->domain_name, &claim->domain), claim->name);
		return -EBUSY;
	}
	return state == VHCA_VF_ATTACHED && dom ? vhca_engine_check_runs(dom, err) : 0;
}

void vhca_engine_release(struct vhca_engine *e, struct vhca_claim *claim, bool forbid_attached,
			 vhca_waiter_fn fn, void *arg)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	if (check_release(e, claim, forbid_attached, &err) < 0) {
		engine_answer_later(e, fn, arg, &err);
		return;
	}
	if (engine_add_waiter(claim, VHCA_VF_FREE, fn, arg) < 0) {
		vhca_error_no_memory(&err, "release");
		engine_answer_later(e, fn, arg, &err);
		return;
	}
	/*
	 * The metadata may still ask for it: it stays away until the domain has stopped or somebody
	 * attaches it again. A domain that does not run here (yet, or any more) would never take
	 * that back.
	 */
	if (!e->virt_synced || engine_claim_domain(e, claim))
		suppress(e, claim);
	claim->on_loan = false;
	vhca_engine_drop(e, claim);
}

/* ---- partitions of a claim, set anew while it stands ---- */

/* The keys that there are stay at their indexes. */
static bool only_adds(const struct vhca_identity *before, const struct vhca_identity *want)
{
	return want->n_pkeys >= before->n_pkeys &&
	       memcmp(want->pkeys, before->pkeys, before->n_pkeys * sizeof(before->pkeys[0])) == 0;
}

/*
 * QPs of the guest keep the physical index behind a virtual one, and nobody can take it from them:
 * when the SM gives that entry of the port's table to another tenant, they would be in his
 * partition.
 */
static int check_guest(struct vhca_engine *e, const struct vhca_claim *c,
		       const struct vhca_identity *want, struct vhca_error *err)
{
	const struct vhca_vf *vf = c->vf;
	/* The hook hears of a guest before libvirt shows it. */
	bool in_guest = vf->state == VHCA_VF_ATTACHED || c->run == VHCA_RUN_BEGINS ||
			vhca_model_user(&e->model, vf->bdf, NULL);

	if (!in_guest || !vhca_hca_identity(vf->hca)->host_pkey_map ||
	    e->conf->index_policy != VHCA_INDEX_FORCE_OFF || only_adds(&c->identity, want))
		return 0;
	vhca_error_set(err, VHCA_ERR_CONFLICT, "attached", EBUSY,
		       "%s is attached to domain %s, whose QPs would keep a P_Key index that is "
		       "taken away or moved: partitions can only be added behind the others",
		       VHCA_BDF_STR(vf->bdf), c->domain_name);
	vhca_error_hint(err, "detach it first; or pkey_index_changed = alarm in vhcad.conf");
	return -EBUSY;
}

/* What moves the claim, or ends it, has the keys that it had. */
static int check_idle(const struct vhca_engine *e, const struct vhca_claim *c,
		      struct vhca_error *err)
{
	const struct vhca_vf *vf = c->vf;
	bool rests = vf->state == VHCA_VF_PROGRAMMED || vf->state == VHCA_VF_ATTACHED ||
		     (vf->state == VHCA_VF_CLAIMED && vf->host.effect == VHCA_EFFECT_NONE);

	if (rests && !engine_is_changing(e, vf, true) && !vhca_claim_is_ending(c) &&
	    !c->failure.kind && !c->migrating && c->boot != VHCA_BOOT_EARLIER &&
	    (!vhca_claim_is_withheld(c) || c->custody == VHCA_CUSTODY_RESERVED))
		return 0;
	return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "vf_busy", EBUSY,
			      "%s is being changed for %s/%s, taken from it, or migrates with it",
			      VHCA_BDF_STR(c->vf->bdf), c->domain_name, c->name);
}

static int resolve(struct vhca_engine *e, const struct vhca_claim *c, const char *partitions,
		   struct vhca_identity *ret, struct vhca_error *err)
{
	const struct vhca_vf *vf = c->vf;
	bool has_map = vhca_hca_identity(vf->hca)->host_pkey_map && vf->hw_known;
	size_t n = 0, max = VHCA_VF_PKEYS_MAX;
	int r = 0;

	if (has_map && vf->hw.n_virtual < max)
		max = vf->hw.n_virtual;
	if (partitions[0])
		r = vhca_conf_resolve_pkeys(e->conf, partitions, ret->pkeys, max, &n, err);
	ret->guid = c->identity.guid;
	ret->n_pkeys = (uint8_t)n;
	return r;
}

static int check_change(struct vhca_engine *e, const struct vhca_claim *c,
			const struct vhca_identity *want, struct vhca_error *err)
{
	int r = vhca_engine_check_disk(e, err);

	if (r == 0)
		r = check_idle(e, c, err);
	if (r == 0)
		r = check_guest(e, c, want, err);
	if (r == 0)
		r = engine_check_room(e, c, want, err);
	return r == 0 ? engine_check_static_keys(e, c->vf, want, err) : r;
}

void vhca_engine_set_partitions(struct vhca_engine *e, struct vhca_claim *c, const char *partitions,
				vhca_waiter_fn fn, void *arg)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	const enum vhca_vf_state ready = port_is_ready_in(e, c);
	bool by_sm = !vhca_hca_identity(c->vf->hca)->host_pkey_map && ready == VHCA_VF_PROGRAMMED;
	struct vhca_identity want = {0};
	bool same;
	int r = resolve(e, c, partitions, &want, &err);

	same = r == 0 && want.n_pkeys == c->identity.n_pkeys && only_adds(&c->identity, &want);
	if (r == 0)
		r = same ? check_idle(e, c, &err) : check_change(e, c, &want, &err);
	if (r < 0 || (same && c->vf->state >= ready && !c->vf->reprogram &&
		      !(by_sm && (c->word != VHCA_WORD_YES || vhca_claim_is_refused(c))))) {
		engine_answer_later(e, fn, arg, &err);
		return;
	}
	if (same && by_sm && vhca_claim_is_refused(c)) {
		engine_forget_answer(c); /* its partitions may be there by now */
		engine_report(e, c);
	}
	if ((by_sm ? engine_await_word(e, c, fn, arg) : engine_add_waiter(c, ready, fn, arg)) < 0) {
		vhca_error_no_memory(&err, "partitions");
		engine_answer_later(e, fn, arg, &err);
		return;
	}
	if (!same)
		engine_save_identity(e, c->vf, &want);
}
