/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a request to a claim: which VF it gets, with which identity, and at which epoch. */
#include "agent/vf/claim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/state/repeats.h"
#include "agent/vf/report.h"
#include "agent/vf/transition.h"
#include "agent/vf/work.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "pkey/guid.h"

bool vhca_engine_manages(const struct vhca_engine *e, const struct vhca_vf *vf)
{
	return vf->hca->managed && !vhca_conf_excludes(e->conf, vf->hca->facts.bdf, vf->bdf);
}

int engine_check_drained(const struct vhca_engine *e, struct vhca_error *err)
{
	if (!e->drained)
		return 0;
	vhca_error_set(err, VHCA_ERR_CONFLICT, "drained", EBUSY,
		       "this host is drained: it gives no guest an InfiniBand VF");
	vhca_error_hint(err, "start the domain on another host; vhcactl undrain ends the drain");
	return -EBUSY;
}

/* ---- its VF ---- */

/* What a VF is chosen by. */
struct want {
	const struct vhca_vf_request *vf;
	bool has_bdf;
	struct vhca_bdf bdf;
	bool no_partition, as_it_is, unfailed, lenient; /* as in struct vhca_claim_request */
	int near; /* the NUMA node that the guest is on; -1 = not known */
};

/* How many of the wishes for an adapter and a NUMA node it does not meet. */
static unsigned int unlike_wished(const struct vhca_vf *vf, const struct want *w)
{
	const struct vhca_pf_facts *pf = &vf->hca->facts;

	return (w->vf->has_pf && vhca_bdf_cmp(pf->bdf, w->vf->pf) != 0) +
	       (w->vf->numa >= 0 && pf->numa_node != w->vf->numa);
}

bool vhca_engine_reserves(const struct vhca_engine *e, const struct vhca_vf *vf)
{
	return vhca_conf_reserves(e->conf, vf->hca->facts.bdf, vf->bdf);
}

/* Whoever has it now. */
static bool suits(const struct vhca_engine *e, const struct vhca_vf *vf, const struct want *w)
{
	const struct vhca_hca *hca = vf->hca;

	if (vf->to_hca || !vf->present || !vhca_engine_manages(e, vf) || hca->replacing ||
	    vhca_vf_rests(vf) || (w->unfailed && vf->failures))
		return false;
	if (w->has_bdf && vhca_bdf_cmp(vf->bdf, w->bdf) != 0)
		return false;
	/* Somebody else's choice is held to what is kept for it. */
	if (w->no_partition)
		return vhca_engine_reserves(e, vf) && strcmp(hca->fabric, w->vf->fabric) == 0;
	return w->has_bdf ||
	       (strcmp(hca->fabric, w->vf->fabric) == 0 && !vhca_engine_reserves(e, vf) &&
		(w->lenient || unlike_wished(vf, w) == 0));
}

static bool fits(const struct vhca_engine *e, const struct vhca_vf *vf, const struct want *w)
{
	return vf->state == (w->as_it_is ? VHCA_VF_UNMANAGED : VHCA_VF_FREE) && !vf->committing &&
	       !vf->claim && !vf->reprogram && suits(e, vf, w);
}

bool vhca_engine_offers(const struct vhca_engine *e, const struct vhca_vf *vf)
{
	struct vhca_vf_request any = {.numa = -1};

	(void)vhca_strcpy(any.fabric, sizeof(any.fabric), vf->hca->fabric);
	return fits(e, vf, &(const struct want){.vf = &any});
}

/* Nobody has said since that it is back. */
static unsigned int has_pci_error(const struct vhca_vf *vf, const struct want *w)
{
	(void)w;
	return vf->pci_error != VHCA_PCI_ERROR_NONE;
}

static unsigned int failures(const struct vhca_vf *vf, const struct want *w)
{
	(void)w;
	return vf->failures;
}

static unsigned int is_port_unusable(const struct vhca_vf *vf, const struct want *w)
{
	(void)w;
	return vf->hca->ports[vf->hca->port - 1].state != VHCA_PORT_ACTIVE;
}

static unsigned int is_far(const struct vhca_vf *vf, const struct want *w)
{
	return w->near >= 0 && vf->hca->facts.numa_node != w->near;
}

/* Guests share what the port and the slot of an adapter can carry. */
static unsigned int has_few_free(const struct vhca_vf *vf, const struct want *w)
{
	unsigned int n = VHCA_VFS_MAX;
	const struct vhca_vf *other;

	(void)w;
	TAILQ_FOREACH (other, &vf->hca->vfs, link)
		n -= other->state == VHCA_VF_FREE && !other->claim;
	return n;
}

/* What speaks against a VF that fits, the weightiest first. Of equals the lowest address is
 * taken. */
static unsigned int (*const costs[])(const struct vhca_vf *vf, const struct want *w) = {
	has_pci_error, failures, is_port_unusable, unlike_wished, is_far, has_few_free,
};

static bool is_better(const struct vhca_vf *a, const struct vhca_vf *b, const struct want *w)
{
	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(costs); i++) {
		unsigned int of_a = costs[i](a, w), of_b = costs[i](b, w);

		if (of_a != of_b)
			return of_a < of_b;
	}
	return false;
}

static struct vhca_vf *choose(struct vhca_engine *e, const struct want *w)
{
	struct vhca_vf *vf, *best = NULL;
	struct vhca_hca *hca;

	TAILQ_FOREACH (hca, &e->model.hcas, link)
		TAILQ_FOREACH (vf, &hca->vfs, link)
			if (fits(e, vf, w) && (!best || is_better(vf, best, w)))
				best = vf;
	return best;
}

bool engine_will_end(const struct vhca_claim *c)
{
	return c->end != VHCA_END_NONE || c->failure.kind || c->boot == VHCA_BOOT_EARLIER;
}

/* It will be free, or known, by itself: whoever asks again gets it. */
static bool is_passing(const struct vhca_engine *e, const struct vhca_vf *vf)
{
	const struct vhca_claim *c = vf ? vf->claim : NULL;

	if (!e->inventory_seen)
		return true;
	if (!vf || c)
		return c && engine_will_end(c);
	return vf->committing || vf->reprogram || vf->state == VHCA_VF_PREPARING ||
	       vf->state == VHCA_VF_SCRUBBING ||
	       (vf->state == VHCA_VF_UNMANAGED && vhca_engine_manages(e, vf) &&
		!vhca_vf_seems_in_use(vf) && !vhca_model_user(&e->model, vf->bdf, NULL));
}

bool engine_may_serve(struct vhca_engine *e, const struct vhca_claim_request *req)
{
	const struct want w = {.vf = &req->vf, .no_partition = req->no_partition};
	const struct vhca_vf *vf = vhca_model_vf(&e->model, req->bdf);

	if (!e->inventory_seen)
		return true;
	if (!vf || !suits(e, vf, &w))
		return false;
	return vf->claim || vf->state == VHCA_VF_FREE || is_passing(e, vf);
}

/* Says in err why the VF that is named does not fit. */
static int not_that_vf(const struct vhca_engine *e, const struct want *w, const struct vhca_vf *vf,
		       struct vhca_error *err)
{
	const struct vhca_claim *c = vf ? vf->claim : NULL;
	const char *bdf = VHCA_BDF_STR(w->bdf);

	if (w->no_partition && is_passing(e, vf))
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "vf_busy", EBUSY,
				      "%s is being prepared, or taken from %s", bdf,
				      c ? c->domain_name : "nobody");
	if (!vf)
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_vf", ENODEV, "%s", bdf);
	if (w->no_partition && strcmp(vf->hca->fabric, w->vf->fabric) != 0)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "wrong_fabric", 0,
				      "%s is on fabric %s, not on %s", bdf, vf->hca->fabric,
				      w->vf->fabric);
	if (w->no_partition && !vhca_engine_reserves(e, vf)) {
		vhca_error_set(err, VHCA_ERR_CONFLICT, "vf_not_reserved", 0,
			       "%s is not reserved for claims that choose their VF", bdf);
		vhca_error_hint(err, "add it to reserve in [hca %s] of vhcad.conf, then reload",
				VHCA_BDF_STR(vf->hca->facts.bdf));
		return -EPERM;
	}
	vhca_error_set(err, VHCA_ERR_CONFLICT, "vf_not_free", EBUSY, "%s is %s%s%s%s%s", bdf,
		       vhca_vf_state_to_string(vf->state), c ? ", for " : "",
		       c ? c->domain_name : "", c ? "/" : "", c ? c->name : "");
	if (c) /* a cloud that was not heard when it gave the VF back does not say so again */
		vhca_error_hint(err, "claim %s; if nobody needs it any more: vhcactl detach %s %s",
				VHCA_UUID_STR(&c->id), VHCA_UUID_STR(&c->domain), c->name);
	return -EBUSY;
}

/* Says in err why none fits. */
static int no_vf(struct vhca_engine *e, const struct want *w, struct vhca_error *err)
{
	unsigned int n = 0, total = 0, reserved = 0;
	char kept[32] = "";
	const struct vhca_vf *vf;
	struct vhca_hca *hca;

	if (w->has_bdf)
		return not_that_vf(e, w, vhca_model_vf(&e->model, w->bdf), err);
	TAILQ_FOREACH (hca, &e->model.hcas, link) {
		if (!hca->managed || strcmp(hca->fabric, w->vf->fabric) != 0)
			continue;
		TAILQ_FOREACH (vf, &hca->vfs, link) {
			reserved += vhca_engine_reserves(e, vf);
			if (vhca_engine_reserves(e, vf))
				continue;
			total++;
			n += vf->state == VHCA_VF_FREE && !vf->claim;
		}
	}
	if (reserved)
		(void)snprintf(kept, sizeof(kept), "; %u more are reserved", reserved);
	vhca_error_set(err, VHCA_ERR_EXHAUSTED, "no_free_vf", EBUSY,
		       "no free VF for fabric %s: %u of its %u VFs are free%s%s", w->vf->fabric, n,
		       total, n ? ", none on the HCA or NUMA node that is asked for" : "", kept);
	vhca_error_hint(err,
			"detach a VF, or enable more on this host (vhcactl hcas, vhcactl vfs)");
	return -EBUSY;
}

/* Its memory is where its CPUs are, unless it says something else. */
static int guest_node(struct vhca_engine *e, const struct vhca_claim_request *req)
{
	const struct vhca_domain *dom = vhca_model_domain(&e->model, &req->domain);
	const struct vhca_cpus *cpus;

	if (!dom)
		return -1;
	if (dom->info->memory.is_pinned)
		return (int)dom->info->memory.node;
	cpus = &dom->info->cpus;
	for (unsigned int i = 0; !vhca_cpus_is_empty(cpus) && i < e->n_nodes; i++)
		if (vhca_cpus_are_within(cpus, &e->nodes[i].cpus))
			return (int)e->nodes[i].number;
	return -1;
}

/* ---- its identity ---- */

int engine_resolve_identity(struct vhca_engine *e, const struct vhca_claim_request *req,
			    struct vhca_identity *ret, struct vhca_error *err)
{
	size_t n = 0;
	int r = 0;

	if (!req->no_partition)
		r = vhca_conf_resolve_pkeys(e->conf, req->vf.partition, ret->pkeys,
					    VHCA_VF_PKEYS_MAX, &n, err);
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

int engine_check_partitions(const struct vhca_engine *e, const struct vhca_identity *id,
			    struct vhca_error *err)
{
	for (unsigned int i = 0; i < id->n_pkeys; i++)
		if (vhca_pkey_base(id->pkeys[i]) == VHCA_PKEY_DEFAULT &&
		    !e->conf->allow_default_partition)
			return vhca_error_set(err, VHCA_ERR_DENIED, "default_partition_denied", 0,
					      "this host gives nobody the default partition "
					      "(policy.allow_default_partition)");
	return 0;
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
		      const struct vhca_claim *changing, const struct vhca_identity *id,
		      struct vhca_error *err)
{
	const struct vhca_port_state *port = &hca->ports[hca->port - 1];
	struct keys set = {0};
	const struct vhca_claim *c;
	unsigned int claimed;

	if (!vhca_hca_identity(hca)->host_pkey_map || !port->n_pkeys)
		return 0;
	TAILQ_FOREACH (c, &e->model.claims, link)
		if (c != changing && c->vf && c->vf->hca == hca)
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

int engine_check_room(struct vhca_engine *e, const struct vhca_claim *c,
		      const struct vhca_identity *want, struct vhca_error *err)
{
	return check_room(e, c->vf->hca, c, want, err);
}

/* ---- the claim ---- */

static void forget_epoch(void *ctx, uint64_t guid)
{
	vhca_journal_forget_epoch(ctx, guid);
}

/*
 * Epochs of vGUIDs that nobody has had for long. One that is wanted again all the same begins at 1;
 * if the SM knows better, it says so.
 */
static void forget_epochs(struct vhca_engine *e)
{
	struct vhca_txn *txn;

	if (e->model.n_epochs <= VHCA_EPOCHS_MAX)
		return;
	txn = vhca_txn_new(e->args.store);
	vhca_model_forget_epochs(&e->model, forget_epoch, txn);
	vhca_txn_commit(txn, NULL, NULL);
}

static int fill_claim(struct vhca_engine *e, struct vhca_claim *c,
		      const struct vhca_claim_request *req, const struct vhca_identity *id,
		      uint64_t epoch)
{
	const struct vhca_domain *dom = vhca_model_domain(&e->model, &req->domain);
	int r = req->id ? 0 : vhca_uuid_random(&c->id);

	if (req->id)
		c->id = *req->id;
	c->memory_kib = dom ? dom->info->memory.kib : 0;
	c->domain = req->domain;
	c->origin = req->origin;
	c->identity = *id;
	c->created_ms = vhca_wall_ms();
	engine_forget_answer(c);
	(void)vhca_strcpy(c->domain_name, sizeof(c->domain_name), req->domain_name); /* all were */
	(void)vhca_strcpy(c->name, sizeof(c->name), req->vf.name);	 /* checked by */
	(void)vhca_strcpy(c->fabric, sizeof(c->fabric), req->vf.fabric); /* their parsers */
	c->has_pf = req->vf.has_pf;
	c->pf = req->vf.pf;
	c->numa = req->vf.numa;
	c->epoch = epoch;
	if (r == 0 && !vhca_guid_is_stand_in(id->guid))
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

int engine_find_place(struct vhca_engine *e, const struct vhca_claim_request *req,
		      const struct vhca_identity *id, struct vhca_vf **ret, struct vhca_error *err)
{
	struct want want = {.vf = &req->vf,
			    .has_bdf = req->has_bdf,
			    .bdf = req->bdf,
			    .no_partition = req->no_partition,
			    .as_it_is = req->as_it_is,
			    .unfailed = req->unfailed,
			    .lenient = req->lenient,
			    .near = guest_node(e, req)};
	/* What a guest has already is no new claim, whoever gave it. */
	int r = req->as_it_is ? 0 : engine_check_drained(e, err);

	if (r == 0)
		r = vhca_engine_check_disk(e, err);
	if (r == 0)
		r = engine_check_unique(e, req, id->guid, err);
	if (r < 0)
		return r;
	*ret = choose(e, &want);
	if (!*ret)
		return no_vf(e, &want, err);
	r = check_chooses(*ret, id, err);
	return r < 0 ? r : check_room(e, (*ret)->hca, NULL, id, err);
}

int engine_make_claim(struct vhca_engine *e, const struct vhca_claim_request *req,
		      const struct vhca_identity *id, uint64_t epoch, struct vhca_claim **ret,
		      struct vhca_error *err)
{
	struct vhca_claim *c;
	struct vhca_vf *vf = NULL;
	int r = engine_find_place(e, req, id, &vf, err);

	if (r < 0)
		return r;
	c = vhca_model_add_claim(&e->model);
	if (!c || fill_claim(e, c, req, id, epoch) < 0) {
		if (c)
			vhca_model_drop_claim(&e->model, c);
		return vhca_error_no_memory(err, "claim");
	}
	forget_epochs(e);
	c->vf = vf;
	c->port = vf->hca->port;
	c->lease_s = req->lease_s;
	if (req->has_bdf || req->unfailed)
		c->replacement = VHCA_REPLACEMENT_NEVER;
	vf->claim = c;
	engine_mark(e, vf);
	vhca_events_add_claim(e->args.events, "claim", c, "%s with GUID %s, epoch %llu (%s)",
			      VHCA_BDF_STR(vf->bdf),
			      vhca_guid_is_stand_in(id->guid) ? "of the SM's choice"
							      : VHCA_GUID_STR(id->guid),
			      (unsigned long long)c->epoch, vhca_origin_to_string(c->origin));
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

/* What it has shown here before, an SM that was away may hear withdrawn yet, at that epoch. */
void engine_use_reserved(struct vhca_engine *e, struct vhca_claim *claim)
{
	uint64_t guid = claim->identity.guid, last = vhca_model_epoch(&e->model, guid);

	if (claim->custody != VHCA_CUSTODY_RESERVED || claim->vf->committing ||
	    claim->vf->state != VHCA_VF_CLAIMED || vhca_claim_is_ending(claim) ||
	    !claim->vf->present || claim->vf->to_hca)
		return;
	claim->custody = VHCA_CUSTODY_HERE;
	claim->epoch = vhca_model_next_epoch(&e->model, guid);
	if (claim->withdrawn)
		claim->reused = claim->epoch == last;
	claim->withdrawn = false;
	claim->run = engine_runs_here(e, claim) ? VHCA_RUN_SEEN : VHCA_RUN_UNSEEN;
	claim->disputed = vhca_model_is_disputed(&e->model, guid);
	engine_forget_answer(claim);
	(void)vhca_model_set_epoch(&e->model, guid, claim->epoch); /* known: no memory needed */
	engine_save_and_report(e, claim->vf);
}

/* An orchestrator's claim stands for an XML that names its VF, once it was answered; a migration
 * ends its own. */
static bool may_be_replaced(const struct vhca_claim *c)
{
	return c->replacement == VHCA_REPLACEMENT_DUE && !vhca_claim_is_ending(c) &&
	       !c->migrating && !vhca_guid_is_stand_in(c->identity.guid) &&
	       (c->origin != VHCA_ORIGIN_CLAIM || !STAILQ_EMPTY(&c->waiters));
}

bool engine_serve_elsewhere(struct vhca_engine *e, struct vhca_claim *ended)
{
	struct vhca_claim_request req = {
		.domain = ended->domain, .origin = ended->origin, .unfailed = true};
	const struct vhca_uuid none = {{0}};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_txn *txn;
	struct vhca_claim *c;

	if (!may_be_replaced(ended))
		return false;
	(void)vhca_strcpy(req.domain_name, sizeof(req.domain_name), ended->domain_name); /* same */
	(void)vhca_strcpy(req.vf.name, sizeof(req.vf.name), ended->name);		 /* sizes */
	(void)vhca_strcpy(req.vf.fabric, sizeof(req.vf.fabric), ended->fabric);
	req.vf.has_pf = ended->has_pf;
	req.vf.pf = ended->pf;
	req.vf.numa = ended->numa;
	req.lease_s = ended->lease_s;
	if (claim_at_next_epoch(e, &req, &ended->identity, &c, &err) < 0)
		return false;
	c->number = ended->number; /* who vouched for that one meant this */
	c->stands_for = vhca_uuid_equal(&ended->stands_for, &none) ? ended->id : ended->stands_for;
	STAILQ_CONCAT(&c->waiters, &ended->waiters);
	/* Whoever asks again, with the key of the request for the one, means the other now. */
	txn = vhca_txn_new(e->args.store);
	vhca_repeats_replace(txn, &ended->id, &c->id);
	vhca_txn_commit(txn, NULL, NULL);
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

void vhca_engine_drop(struct vhca_engine *e, struct vhca_claim *claim)
{
	engine_ask_end(claim);
	engine_save_soon(e, claim);
}
