/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a request to a claim and its end; who waits for it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vf/engine_int.h"
#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "pkey/guid.h"

const char *engine_claim_label(const struct vhca_claim *claim, char buf[static 192])
{
	(void)snprintf(buf, 192, "%s/%s", claim->domain_name, claim->name);
	return buf;
}

struct vhca_domain *engine_claim_domain(struct vhca_engine *e, const struct vhca_claim *claim)
{
	return vhca_model_domain(&e->model, &claim->domain);
}

/* ---- waiters ---- */

struct waiter_call {
	vhca_waiter_fn fn;
	void *arg;
	struct vhca_error err;
};

static void on_waiter_call(void *arg)
{
	struct waiter_call *call = arg;

	call->fn(call->arg, NULL, call->err.kind ? &call->err : NULL);
	free(call);
}

/* An answer that is known at once is still given from the loop, as the contract says. */
void engine_answer_later(struct vhca_engine *e, vhca_waiter_fn fn, void *arg,
			 const struct vhca_error *err)
{
	struct waiter_call *call = calloc(1, sizeof(*call));

	if (!call) {
		fn(arg, NULL, err->kind ? err : NULL);
		return;
	}
	*call = (struct waiter_call){.fn = fn, .arg = arg, .err = *err};
	if (vhca_loop_post(e->args.loop, on_waiter_call, call, free) < 0)
		on_waiter_call(call);
}

int engine_add_waiter(struct vhca_claim *claim, enum vhca_vf_state until, vhca_waiter_fn fn,
		      void *arg)
{
	struct vhca_waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct vhca_waiter){.until = until, .fn = fn, .arg = arg};
	STAILQ_INSERT_TAIL(&claim->waiters, w, link);
	return 0;
}

/*
 * A claim that ends answers everybody: who waited for the end is content, the others hear why it
 * did not come to what they wanted.
 */
static void tell_one(struct vhca_claim *claim, struct vhca_waiter *w, enum vhca_vf_state state,
		     const struct vhca_error *err)
{
	struct vhca_error ended;

	if (err && !(state == VHCA_VF_FREE && w->until == VHCA_VF_FREE && claim->ending)) {
		w->fn(w->arg, NULL, err);
	} else if (state == w->until || (err && w->until == VHCA_VF_FREE)) {
		w->fn(w->arg, state == VHCA_VF_FREE ? NULL : claim, NULL);
	} else {
		vhca_error_set(&ended, VHCA_ERR_CONFLICT, "released", 0,
			       "the claim of %s was released before it was done", claim->name);
		w->fn(w->arg, NULL, &ended);
	}
	free(w);
}

void engine_tell(struct vhca_engine *e, struct vhca_claim *claim, enum vhca_vf_state state,
		 const struct vhca_error *err)
{
	STAILQ_HEAD(, vhca_waiter) told = STAILQ_HEAD_INITIALIZER(told);
	struct vhca_waiter *w, *next;

	(void)e;
	for (w = STAILQ_FIRST(&claim->waiters); w; w = next) {
		next = STAILQ_NEXT(w, link);
		if (!err && w->until != state && state != VHCA_VF_FREE)
			continue;
		STAILQ_REMOVE(&claim->waiters, w, vhca_waiter, link);
		STAILQ_INSERT_TAIL(&told, w, link);
	}
	while ((w = STAILQ_FIRST(&told))) {
		STAILQ_REMOVE_HEAD(&told, link);
		tell_one(claim, w, state, err);
	}
}

/* ---- making a claim ---- */

int engine_check_root_ports(struct vhca_engine *e, const struct vhca_domain *dom,
			    struct vhca_error *err)
{
	unsigned int coming = 1;
	struct vhca_claim *c;

	TAILQ_FOREACH (c, &e->model.claims, link)
		coming += vhca_uuid_equal(&c->domain, &dom->info->uuid) && c->vf &&
			  (c->vf->state == VHCA_VF_CLAIMED || c->vf->state == VHCA_VF_PROGRAMMED ||
			   c->vf->state == VHCA_VF_FREE);
	if (coming <= dom->info->free_root_ports)
		return 0;
	vhca_error_set(err, VHCA_ERR_EXHAUSTED, VHCA_CODE_NO_ROOT_PORT, ENOSPC,
		       "domain %s has %u free pcie-root-ports of %u, needs %u for its VFs",
		       dom->info->name, dom->info->free_root_ports, dom->info->root_ports, coming);
	vhca_error_hint(
		err,
		"add <controller type='pci' model='pcie-root-port'/> to the domain and restart it");
	return -ENOSPC;
}

int engine_resolve_identity(struct vhca_engine *e, const struct vhca_claim_request *req,
			    struct vhca_identity *ret, struct vhca_error *err)
{
	size_t n = 0;
	int r = vhca_conf_resolve_pkeys(e->conf, req->vf.partition, ret->pkeys, VHCA_VF_PKEYS_MAX,
					&n, err);

	if (r < 0)
		return r;
	ret->n_pkeys = (uint8_t)n;
	ret->guid = req->vf.guid;
	if (ret->guid == VHCA_GUID_BY_SM) {
		r = vhca_guid_stand_in(&ret->guid);
		return r < 0 ? vhca_error_set(err, VHCA_ERR_INTERNAL, "guid", -r, "random numbers")
			     : 0;
	}
	if (!ret->guid) {
		r = vhca_guid_auto(e->conf->guid_prefix, e->conf->guid_prefix_bits, &req->domain,
				   req->vf.name, &ret->guid);
		if (r < 0)
			return vhca_error_set(err, VHCA_ERR_INTERNAL, "guid", -r,
					      "cannot derive a GUID");
	}
	if (vhca_guid_is_valid(ret->guid))
		return 0;
	r = vhca_error_set(err, VHCA_ERR_INVALID, "bad_guid", 0, "%s is no unicast GUID",
			   VHCA_GUID_STR(ret->guid));
	vhca_error_hint(err, "guid=\"auto\", or a GUID such as 0x0002c90300a1b2c3");
	return r;
}

int engine_check_free(struct vhca_engine *e, uint64_t guid, struct vhca_error *err)
{
	const struct vhca_claim *c = vhca_model_claim_by_guid(&e->model, guid);
	struct vhca_hca *hca;
	int r = 0;

	if (c)
		r = vhca_error_set(err, VHCA_ERR_CONFLICT, "guid_in_use", EEXIST,
				   "GUID %s belongs to %s/%s", VHCA_GUID_STR(guid), c->domain_name,
				   c->name);
	TAILQ_FOREACH (hca, &e->model.hcas, link)
		for (unsigned int p = 0; p < VHCA_PORTS_MAX && r == 0; p++)
			if (hca->ports[p].port_guid == guid)
				r = vhca_error_set(err, VHCA_ERR_CONFLICT, "guid_in_use", EEXIST,
						   "GUID %s is the port GUID of HCA %s",
						   VHCA_GUID_STR(guid),
						   VHCA_BDF_STR(hca->facts.bdf));
	if (r < 0)
		vhca_error_hint(err, "guid=\"auto\", or a GUID that nobody has");
	return r;
}

int engine_check_unique(struct vhca_engine *e, const struct vhca_claim_request *req, uint64_t guid,
			struct vhca_error *err)
{
	const struct vhca_claim *c = vhca_model_claim_of(&e->model, &req->domain, req->vf.name);

	if (c)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "exists", EEXIST,
				      "%s/%s has VF %s already (%s)", req->domain_name,
				      req->vf.name, VHCA_BDF_STR(c->vf->bdf),
				      vhca_vf_state_to_string(c->vf->state));
	return engine_check_free(e, guid, err);
}

/* A set of partitions; P_Keys of one table are few. */
struct keys {
	unsigned int n;
	uint16_t key[2 * VHCA_PKEY_TABLE_MAX];
};

static void add_keys(struct keys *set, const uint16_t *keys, unsigned int n)
{
	for (unsigned int i = 0; i < n && set->n < VHCA_ARRAY_SIZE(set->key); i++)
		if (keys[i] && vhca_pkey_find(set->key, set->n, keys[i]) < 0)
			set->key[set->n++] = keys[i];
}

/*
 * The port's table must hold what is in it, what the adapter's claims ask for, and the new keys.
 * Entries that nobody needs any more count until the SM has taken them out: trying again later is
 * worth it.
 */
static int check_room(struct vhca_engine *e, const struct vhca_hca *hca,
		      const struct vhca_identity *id, struct vhca_error *err)
{
	const struct vhca_port_state *port = &hca->ports[hca->port - 1];
	struct keys set = {0};
	const struct vhca_claim *c;
	unsigned int claimed;

	if (!vhca_hca_identity(hca)->host_pkey_map || !port->n_pkeys)
		return 0;
	TAILQ_FOREACH (c, &e->model.claims, link)
		if (c->vf && c->vf->hca == hca)
			add_keys(&set, c->identity.pkeys, c->identity.n_pkeys);
	claimed = set.n;
	add_keys(&set, port->pkeys, port->n_pkeys);
	add_keys(&set, id->pkeys, id->n_pkeys);
	if (set.n <= port->n_pkeys)
		return 0;
	vhca_error_set(err, VHCA_ERR_EXHAUSTED, "pkey_table_full", ENOSPC,
		       "port %u of %s has room for %u P_Keys and would need %u; the VFs that are "
		       "claimed on it use %u",
		       hca->port, VHCA_BDF_STR(hca->facts.bdf), port->n_pkeys, set.n, claimed);
	vhca_error_hint(err, "use fewer partitions on this host, or another adapter");
	return -ENOSPC;
}

static int fill_claim(struct vhca_engine *e, struct vhca_claim *c,
		      const struct vhca_claim_request *req, const struct vhca_identity *id,
		      uint64_t epoch)
{
	const struct vhca_domain *dom = vhca_model_domain(&e->model, &req->domain);
	int r = vhca_uuid_random(&c->id);

	c->memory_kib = dom ? dom->info->memory.kib : 0;
	c->domain = req->domain;
	c->way = req->way;
	c->identity = *id;
	c->created_ms = vhca_wall_ms();
	c->told_ms = vhca_now_ms();
	(void)vhca_strcpy(c->domain_name, sizeof(c->domain_name), req->domain_name); /* all were */
	(void)vhca_strcpy(c->name, sizeof(c->name), req->vf.name);	 /* checked by */
	(void)vhca_strcpy(c->fabric, sizeof(c->fabric), req->vf.fabric); /* their parsers */
	c->has_pf = req->vf.has_pf;
	c->pf = req->vf.pf;
	c->numa = req->vf.numa;
	c->epoch = epoch;
	if (!r && !vhca_guid_is_stand_in(id->guid))
		r = vhca_model_set_epoch(&e->model, id->guid, c->epoch);
	return r;
}

static int check_chooses(const struct vhca_vf *vf, const struct vhca_identity *id,
			 struct vhca_error *err)
{
	if (!vhca_guid_is_stand_in(id->guid) || vhca_hca_identity(vf->hca)->choose)
		return 0;
	vhca_error_set(err, VHCA_ERR_CONFLICT, "sm_chooses_no_guid", 0,
		       "the SM chooses no GUIDs for VFs of %s, an adapter of family %s",
		       VHCA_BDF_STR(vf->hca->facts.bdf),
		       vhca_family_to_string(vf->hca->facts.family));
	vhca_error_hint(err, "guid=\"auto\", or a GUID");
	return -EOPNOTSUPP;
}

static int node_of_cpus(const struct vhca_engine *e, const struct vhca_cpus *cpus)
{
	for (unsigned int i = 0; !vhca_cpus_is_empty(cpus) && i < e->n_nodes; i++)
		if (vhca_cpus_are_within(cpus, &e->nodes[i].cpus))
			return (int)e->nodes[i].number;
	return -1;
}

/* Its memory is where its CPUs are, unless it says something else. */
static int guest_node(struct vhca_engine *e, const struct vhca_claim_request *req)
{
	const struct vhca_domain *dom = vhca_model_domain(&e->model, &req->domain);

	if (!dom)
		return -1;
	return dom->info->memory.is_pinned ? (int)dom->info->memory.node
					   : node_of_cpus(e, &dom->info->cpus);
}

int engine_make_claim(struct vhca_engine *e, const struct vhca_claim_request *req,
		      const struct vhca_identity *id, uint64_t epoch, struct vhca_claim **ret,
		      struct vhca_error *err)
{
	struct engine_want want = {.vf = &req->vf,
				   .has_bdf = req->has_bdf,
				   .bdf = req->bdf,
				   .as_it_is = req->as_it_is,
				   .unfailed = req->unfailed,
				   .lenient = req->lenient,
				   .near = guest_node(e, req)};
	struct vhca_claim *c;
	struct vhca_vf *vf;
	char label[192];
	/* What a guest has already is no new claim, whoever gave it. */
	int r = req->as_it_is ? 0 : engine_check_drained(e, err);

	if (!r)
		r = vhca_engine_check_disk(e, err);
	if (!r)
		r = engine_check_unique(e, req, id->guid, err);
	if (r < 0)
		return r;
	vf = engine_choose(e, &want);
	if (!vf)
		return engine_no_vf(e, &want, err);
	r = check_chooses(vf, id, err);
	if (!r)
		r = check_room(e, vf->hca, id, err);
	if (r < 0)
		return r;
	c = vhca_model_add_claim(&e->model);
	if (!c || fill_claim(e, c, req, id, epoch) < 0) {
		if (c)
			vhca_model_drop_claim(&e->model, c);
		return vhca_error_no_memory(err, "claim");
	}
	engine_forget_epochs(e);
	c->vf = vf;
	c->port = vf->hca->port;
	c->by_address = req->has_bdf;
	c->replaces = req->unfailed;
	vf->claim = c;
	engine_mark(e, vf);
	vhca_events_add(e->args.events, "claim", engine_claim_label(c, label),
			"%s with GUID %s, epoch %llu (%s)", VHCA_BDF_STR(vf->bdf),
			vhca_guid_is_stand_in(id->guid) ? "of the SM's choice"
							: VHCA_GUID_STR(id->guid),
			(unsigned long long)c->epoch, vhca_way_to_string(c->way));
	*ret = c;
	return 0;
}

static int claim_at_next_epoch(struct vhca_engine *e, const struct vhca_claim_request *req,
			       const struct vhca_identity *id, struct vhca_claim **ret,
			       struct vhca_error *err)
{
	uint64_t last = vhca_model_epoch(&e->model, id->guid);
	int r = engine_make_claim(e, req, id, vhca_model_next_epoch(&e->model, id->guid), ret, err);

	if (r == 0)
		(*ret)->reused = last && (*ret)->epoch == last;
	if (r == 0)
		(*ret)->disputed = vhca_model_is_disputed(&e->model, id->guid);
	return r;
}

int engine_claim_as_asked(struct vhca_engine *e, const struct vhca_claim_request *req,
			  struct vhca_claim **ret, struct vhca_error *err)
{
	struct vhca_identity id = {0};
	int r = engine_resolve_identity(e, req, &id, err);

	return r < 0 ? r : claim_at_next_epoch(e, req, &id, ret, err);
}

/* An orchestrator's claim stands for an XML that names its VF, once it was answered; a migration
 * ends its own. */
static bool may_be_replaced(const struct vhca_claim *c)
{
	return c->vf_failed && !c->replaces && !c->ending && !c->migrating && !c->by_address &&
	       !vhca_guid_is_stand_in(c->identity.guid) &&
	       (c->way != VHCA_WAY_CLAIM || !STAILQ_EMPTY(&c->waiters));
}

bool engine_serve_elsewhere(struct vhca_engine *e, struct vhca_claim *ended)
{
	struct vhca_claim_request req = {
		.domain = ended->domain, .way = ended->way, .unfailed = true};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_claim *c;

	if (!may_be_replaced(ended))
		return false;
	(void)vhca_strcpy(req.domain_name, sizeof(req.domain_name), ended->domain_name); /* same */
	(void)vhca_strcpy(req.vf.name, sizeof(req.vf.name), ended->name);		 /* sizes */
	(void)vhca_strcpy(req.vf.fabric, sizeof(req.vf.fabric), ended->fabric);
	req.vf.has_pf = ended->has_pf;
	req.vf.pf = ended->pf;
	req.vf.numa = ended->numa;
	if (claim_at_next_epoch(e, &req, &ended->identity, &c, &err) < 0)
		return false;
	STAILQ_CONCAT(&c->waiters, &ended->waiters);
	return true;
}

void engine_unsuppress(struct vhca_engine *e, const struct vhca_uuid *domain, const char *name)
{
	struct vhca_txn *txn;

	if (!vhca_model_unsuppress(&e->model, domain, name))
		return;
	txn = vhca_txn_new(e->args.store);
	vhca_journal_unsuppress(txn, domain, name);
	vhca_txn_commit(txn, NULL, NULL);
}

void vhca_engine_claim(struct vhca_engine *e, const struct vhca_claim_request *req,
		       vhca_waiter_fn fn, void *arg)
{
	const struct vhca_domain *dom = vhca_model_domain(&e->model, &req->domain);
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_claim *c = NULL;
	int r = 0;

	if (req->way == VHCA_WAY_ATTACH && !dom)
		r = vhca_error_set(&err, VHCA_ERR_NOT_FOUND, "no_such_domain", 0,
				   "domain %s does not run here", req->domain_name);
	if (!r && req->way == VHCA_WAY_ATTACH)
		r = vhca_engine_check_readable(dom, &err);
	if (!r && req->way == VHCA_WAY_ATTACH)
		r = engine_check_root_ports(e, dom, &err);
	if (!r && req->way == VHCA_WAY_ATTACH)
		r = engine_check_plug(e, dom, &err);
	if (!r)
		r = engine_claim_as_asked(e, req, &c, &err);
	if (!r &&
	    engine_add_waiter(c, req->way == VHCA_WAY_CLAIM ? VHCA_VF_PROGRAMMED : VHCA_VF_ATTACHED,
			      fn, arg) < 0)
		r = vhca_error_no_memory(&err, "claim");
	if (r < 0)
		engine_answer_later(e, fn, arg, &err);
	else
		engine_unsuppress(e, &req->domain, req->vf.name);
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
		vhca_error_hint(err, "vhcactl detach %s %s", claim->domain_name, claim->name);
		return -EBUSY;
	}
	return state == VHCA_VF_ATTACHED && dom ? vhca_engine_check_runs(dom, err) : 0;
}

void engine_let_go(struct vhca_engine *e, struct vhca_claim *claim)
{
	claim->ending = true;
	if (claim->vf->committing)
		claim->vf->unsaved = true;
	else
		engine_save(e, claim->vf);
	engine_mark(e, claim->vf);
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
	claim->released = true;
	engine_let_go(e, claim);
}
