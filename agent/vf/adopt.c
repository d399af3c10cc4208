/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Adopting: VFs that a running domain holds without a claim get one, as they stand. Their hardware
 * is read, compared with what the domain's metadata asks for, and claimed only if nothing would
 * have to be written; without metadata the hardware is what they claim. All of a domain, or none: a
 * half adopted one would be released by halves.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vf/claim.h"
#include "agent/vf/request.h"
#include "agent/vf/transition.h"
#include "agent/vf/work.h"
#include "common/base/file.h"
#include "pkey/guid.h"

#define ADOPT_WAIT_MS \
	10000 /* reading takes milliseconds; an adapter that hangs must not hang the caller */

/* One request under way. */
struct engine_adopt {
	TAILQ_ENTRY(engine_adopt) link;
	struct vhca_engine *e;
	struct vhca_uuid domain;
	char domain_name[128];
	unsigned int waiting; /* VFs that are being read, then claims that are being journaled */
	struct vhca_error err;
	struct vhca_timer *timer;
	vhca_waiter_fn fn;
	void *arg;
};

/* What one of the VFs will be. */
struct plan {
	struct vhca_vf *vf;
	const struct vhca_dom_hostdev *dev;
	struct vhca_claim_request req;
	struct vhca_identity identity;
};

struct plans {
	const struct vhca_domain *dom;
	unsigned int n;
	struct plan plan[]; /* as many as the domain has host devices */
};

/* ---- the end ---- */

static void finish(struct engine_adopt *a)
{
	struct vhca_vf *vf;

	VHCA_FOREACH_VF (vf, &a->e->model)
		if (vf->adopt == a)
			vf->adopt = NULL;
	TAILQ_REMOVE(&a->e->adopts, a, link);
	vhca_timer_free(a->timer);
	a->fn(a->arg, NULL, a->err.kind ? &a->err : NULL);
	free(a);
}

void engine_drop_adopts(struct vhca_engine *e, const struct vhca_error *err)
{
	struct engine_adopt *a;

	while ((a = TAILQ_FIRST(&e->adopts))) {
		a->err = *err;
		finish(a);
	}
}

static void on_timeout(void *arg)
{
	struct engine_adopt *a = arg;

	vhca_error_set(&a->err, VHCA_ERR_UNAVAILABLE, "adapter_busy", ETIMEDOUT,
		       "the VFs of domain %s cannot be read", a->domain_name);
	vhca_error_hint(&a->err, "vhcactl hcas; vhcactl explain %s",
			VHCA_DOMAIN_WORD(a->domain_name, &a->domain));
	finish(a);
}

/* ---- what a VF shall be called, and which identity it claims ---- */

static bool name_taken(struct vhca_engine *e, const struct plans *ps, const char *name)
{
	for (unsigned int i = 0; i < ps->n; i++)
		if (strcmp(ps->plan[i].req.vf.name, name) == 0)
			return true;
	return vhca_model_claim_of(&e->model, &ps->dom->info->uuid, name) != NULL;
}

static const char *own_name(const struct vhca_dom_hostdev *dev)
{
	const char *name = dev->alias + strlen(VHCA_ALIAS_PREFIX);

	if (strncmp(dev->alias, VHCA_ALIAS_PREFIX, strlen(VHCA_ALIAS_PREFIX)) != 0)
		return NULL;
	return vhca_name_is_valid(name) ? name : NULL;
}

static bool shows(const struct vhca_vf *vf, const struct vhca_identity *id)
{
	unsigned int missing = 0;

	return vhca_identity_matches(&vf->hw, id, &missing) && missing == 0;
}

/* Of a request for a GUID of the SM's choice, the one that stands there is as good as any. */
static int resolve(struct vhca_engine *e, const struct vhca_claim_request *req,
		   const struct vhca_vf *vf, struct vhca_identity *ret, struct vhca_error *err)
{
	int r = engine_resolve_identity(e, req, ret, err);

	if (r == 0 && vhca_guid_is_stand_in(ret->guid) && vhca_guid_is_valid(vf->hw.requested))
		ret->guid = vf->hw.requested;
	return r;
}

/*
 * The request that the VF serves: of its name, or else the one that asks for just what it shows, or
 * else the first that nothing serves.
 */
static const struct vhca_vf_request *find_request(struct vhca_engine *e, const struct plans *ps,
						  const struct plan *p)
{
	const struct vhca_dom_info *info = ps->dom->info;
	const char *name = own_name(p->dev);
	const struct vhca_vf_request *first = NULL;

	for (unsigned int i = 0; i < info->n_requests; i++) {
		struct vhca_claim_request req = p->req;
		struct vhca_identity id = {0};

		req.vf = info->requests[i];
		if (name_taken(e, ps, req.vf.name))
			continue;
		if (name ? strcmp(name, req.vf.name) == 0
			 : resolve(e, &req, p->vf, &id, NULL) == 0 && shows(p->vf, &id))
			return &info->requests[i];
		if (!first)
			first = &info->requests[i];
	}
	return name ? NULL : first;
}

/* The cloud that plugged it by another agent says the same of it here, by its MAC. */
static bool is_port(const struct vhca_engine *e, const struct plan *p)
{
	return !own_name(p->dev) && vhca_engine_reserves(e, p->vf) &&
	       vhca_guid_is_of_mac(p->vf->hw.requested);
}

/* Nobody asked: what stands in the hardware is what it shall keep. */
static int identity_of_hardware(struct vhca_engine *e, struct plan *p, struct vhca_error *err)
{
	const struct vhca_identity_state *hw = &p->vf->hw;
	struct vhca_identity *id = &p->identity;
	int r;

	id->guid = hw->requested;
	if (!vhca_guid_is_valid(id->guid))
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "differs", 0,
				      "%s has no GUID of its own (%s)", VHCA_BDF_STR(p->vf->bdf),
				      VHCA_GUID_STR(id->guid));
	if (hw->sm_pkeys && is_port(e, p))
		return 0; /* as a port that was just added: the cloud names its partitions next */
	if (hw->sm_pkeys)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "differs", 0,
				      "%s: its partitions exist only at the subnet manager; a "
				      "request in the domain's metadata has to name them",
				      VHCA_BDF_STR(p->vf->bdf));
	while (id->n_pkeys < VHCA_VF_PKEYS_MAX && id->n_pkeys < hw->n_virtual &&
	       hw->map[id->n_pkeys] != VHCA_PKEY_UNMAPPED && hw->value[id->n_pkeys]) {
		id->pkeys[id->n_pkeys] = hw->value[id->n_pkeys];
		id->n_pkeys++;
	}
	if (id->n_pkeys == 0 || vhca_identity_difference(hw, id) >= 0)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "differs", 0,
				      "%s: its P_Key map has gaps, or shows no P_Key: no request "
				      "could ask for that",
				      VHCA_BDF_STR(p->vf->bdf));
	r = engine_check_partitions(e, id, err);
	if (r < 0)
		vhca_error_prefix(err, "%s", VHCA_BDF_STR(p->vf->bdf));
	return r;
}

static void name_by_hand(struct vhca_engine *e, const struct plans *ps, struct plan *p)
{
	const char *name = own_name(p->dev);
	char port[VHCA_NAME_MAX];

	p->req.vf.numa = -1;
	if (is_port(e, p)) {
		vhca_port_name(p->vf->hw.requested, port);
		p->req.lease_s = vhca_conf_port_lease_s(e->conf);
		name = port;
	}
	(void)snprintf(p->req.vf.fabric, VHCA_NAME_MAX, "%s", p->vf->hca->fabric);
	if (name && !name_taken(e, ps, name)) {
		(void)snprintf(p->req.vf.name, VHCA_NAME_MAX, "%s", name);
		return;
	}
	/* It ends: each claim and plan takes one name. */
	for (unsigned int i = 0; i == 0 || name_taken(e, ps, p->req.vf.name); i++)
		(void)snprintf(p->req.vf.name, VHCA_NAME_MAX, "ib%u", i);
}

static int check_shows(const struct plan *p, struct vhca_error *err)
{
	const struct vhca_identity_state *hw = &p->vf->hw;
	const struct vhca_identity *id = &p->identity;
	char text[VHCA_IDENTITY_TEXT_MAX];

	if (shows(p->vf, id))
		return 0;
	vhca_identity_describe(hw, id, text);
	vhca_error_set(err, VHCA_ERR_CONFLICT, "differs", 0, "%s is not what %s asks for: %s",
		       VHCA_BDF_STR(p->vf->bdf), p->req.vf.name, text);
	vhca_error_hint(
		err,
		"make guid and partition of the request in the domain's metadata what "
		"the VF shows (and clear its other port), or detach the VF: then it is given anew");
	return -EIO;
}

static int make_plan(struct engine_adopt *a, const struct plans *ps, struct plan *p,
		     struct vhca_error *err)
{
	const struct vhca_vf_request *want;
	int r;

	p->req = (struct vhca_claim_request){.domain = a->domain,
					     .has_bdf = true,
					     .bdf = p->vf->bdf,
					     .as_it_is = true,
					     .origin = own_name(p->dev) ? VHCA_ORIGIN_ATTACH
									: VHCA_ORIGIN_CLAIM};
	(void)snprintf(p->req.domain_name, sizeof(p->req.domain_name), "%s", a->domain_name);
	want = find_request(a->e, ps, p);
	if (want) {
		p->req.vf = *want;
		p->req.origin = VHCA_ORIGIN_METADATA;
		r = resolve(a->e, &p->req, p->vf, &p->identity, err);
	} else {
		name_by_hand(a->e, ps, p);
		r = identity_of_hardware(a->e, p, err);
	}
	if (r == 0)
		r = check_shows(p, err);
	for (unsigned int i = 0; r == 0 && i < ps->n; i++)
		if (ps->plan[i].identity.guid == p->identity.guid)
			r = vhca_error_set(err, VHCA_ERR_CONFLICT, "guid_in_use", EEXIST,
					   "%s and %s show the same GUID %s",
					   VHCA_BDF_STR(ps->plan[i].vf->bdf),
					   VHCA_BDF_STR(p->vf->bdf),
					   VHCA_GUID_STR(p->identity.guid));
	return r < 0 ? r : engine_check_unique(a->e, &p->req, p->identity.guid, err);
}

static int check_vf(const struct vhca_engine *e, const struct vhca_vf *vf, struct vhca_error *err)
{
	const char *bdf = VHCA_BDF_STR(vf->bdf), *pf = VHCA_BDF_STR(vf->hca->facts.bdf);

	if (vf->hca->wanted && !vf->hca->managed)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "no_infiniband", 0,
				      "%s: its adapter %s has no InfiniBand port", bdf, pf);
	if (!vf->hca->managed) {
		vhca_error_set(err, VHCA_ERR_CONFLICT, "not_managed", 0,
			       "%s: its adapter %s is not managed", bdf, pf);
		vhca_error_hint(err, "manage = yes in [hca %s] of vhcad.conf, then reload", pf);
		return -EBUSY;
	}
	if (!vhca_engine_manages(e, vf)) {
		vhca_error_set(err, VHCA_ERR_CONFLICT, "not_managed", 0,
			       "%s: is left out by the configuration", bdf);
		vhca_error_hint(
			err, "take it out of exclude in [hca %s] of vhcad.conf, then reload", pf);
		return -EBUSY;
	}
	if (!vf->present || vf->committing || vf->adopt)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "vf_busy", EBUSY,
				      "%s is not there, or something is being done to it", bdf);
	return 0;
}

/* ---- from reading to claims ---- */

static void on_journaled(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	struct engine_adopt *a = arg;

	(void)claim;
	if (err && !a->err.kind)
		a->err = *err;
	if (--a->waiting == 0)
		finish(a);
}

static int claim_running_vf(struct engine_adopt *a, const struct plan *p)
{
	struct vhca_engine *e = a->e;
	struct vhca_claim *c;
	int r = engine_make_claim(e, &p->req, &p->identity,
				  vhca_model_next_epoch(&e->model, p->identity.guid), &c, &a->err);

	if (r == 0 && engine_add_waiter(c, VHCA_VF_ATTACHED, on_journaled, a) < 0)
		r = vhca_error_no_memory(&a->err, "adopt");
	else if (r == 0)
		a->waiting++;
	if (r < 0)
		return r;
	c->has_guest = p->dev->has_guest_addr;
	c->guest = p->dev->guest;
	p->vf->granted = p->vf->hw.granted == p->identity.guid;
	p->vf->missing = 0;
	engine_no_reason(p->vf);
	engine_move(e, p->vf, VHCA_VF_ATTACHED);
	return 0;
}

/*
 * Everything is looked at again: the domain may have changed while its VFs were read. NULL: a->err
 * says why not.
 */
static struct plans *new_plans(struct engine_adopt *a)
{
	const struct vhca_domain *dom = vhca_model_domain(&a->e->model, &a->domain);
	struct plans *ps;

	if (!dom) {
		vhca_error_set(&a->err, VHCA_ERR_NOT_FOUND, "no_such_domain", 0,
			       "domain %s does not run here any more", a->domain_name);
		return NULL;
	}
	ps = calloc(1, sizeof(*ps) + dom->info->n_hostdevs * sizeof(*ps->plan));
	if (ps)
		ps->dom = dom;
	else
		vhca_error_no_memory(&a->err, "adopt");
	return ps;
}

static int plan_all(struct engine_adopt *a, struct plans *ps)
{
	const struct vhca_dom_info *info = ps->dom->info;

	for (unsigned int i = 0; i < info->n_hostdevs; i++) {
		struct plan *p = &ps->plan[ps->n];
		int r;

		*p = (struct plan){.vf = vhca_model_vf(&a->e->model, info->hostdevs[i].host),
				   .dev = &info->hostdevs[i]};
		if (!p->vf || p->vf->state != VHCA_VF_UNMANAGED || p->vf->claim)
			continue;
		r = check_vf(a->e, p->vf, &a->err);
		if (r == 0)
			r = make_plan(a, ps, p, &a->err);
		if (r < 0)
			return r;
		ps->n++;
	}
	return 0;
}

void engine_adopt_read(struct vhca_vf *vf, const struct vhca_effect_result *res)
{
	struct engine_adopt *a = vf->adopt;
	struct plans *ps;
	int r;

	vf->adopt = NULL;
	if (res->rc < 0 && !a->err.kind)
		a->err = res->err;
	if (--a->waiting)
		return;
	if (a->err.kind) {
		finish(a);
		return;
	}
	ps = new_plans(a);
	r = ps ? plan_all(a, ps) : -ENOENT;
	vhca_timer_stop(a->timer);
	for (unsigned int i = 0; r == 0 && i < ps->n; i++)
		r = claim_running_vf(a, &ps->plan[i]);
	free(ps);
	if (a->waiting == 0)
		finish(a);
}

bool engine_adopt_step(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_domain *user = vhca_model_user(&e->model, vf->bdf, NULL);
	bool his = user && vf->claim && vhca_uuid_equal(&user->info->uuid, &vf->claim->domain);
	struct vhca_error err;

	if (!vf->claim && !vf->adopt)
		return false;
	if (vf->adopt) {
		engine_start(e, vf, VHCA_EFFECT_READ);
	} else if (his && !vhca_claim_is_ending(vf->claim)) {
		engine_move(e, vf, VHCA_VF_ATTACHED);
	} else { /* never journaled, and its guest has gone */
		vhca_error_set(&err, VHCA_ERR_CONFLICT, "released", 0,
			       "%s left its guest meanwhile", VHCA_BDF_STR(vf->bdf));
		engine_undo_claim(e, vf, &err);
	}
	return true;
}

/* ---- the request ---- */

/* How many VFs there are to adopt, or a negative errno. */
static int count_vfs(struct vhca_engine *e, const struct vhca_domain *dom, struct vhca_error *err)
{
	int n = 0;

	for (unsigned int i = 0; i < dom->info->n_hostdevs; i++) {
		const struct vhca_vf *vf = vhca_model_vf(&e->model, dom->info->hostdevs[i].host);
		int r;

		if (!vf || vf->state != VHCA_VF_UNMANAGED)
			continue;
		r = check_vf(e, vf, err);
		if (r < 0)
			return r;
		n++;
	}
	return n;
}

static int new_adopt(struct vhca_engine *e, const struct vhca_domain *dom,
		     struct engine_adopt **ret)
{
	struct engine_adopt *a = calloc(1, sizeof(*a));

	if (!a || vhca_timer_new(e->args.loop, "adopt", on_timeout, a, &a->timer) < 0) {
		free(a);
		return -ENOMEM;
	}
	a->e = e;
	a->domain = dom->info->uuid;
	(void)snprintf(a->domain_name, sizeof(a->domain_name), "%s", dom->info->name);
	TAILQ_INSERT_TAIL(&e->adopts, a, link);
	vhca_timer_arm_ms(a->timer, e->args.adopt_ms ? e->args.adopt_ms : ADOPT_WAIT_MS);
	*ret = a;
	return 0;
}

static void read_vfs(struct engine_adopt *a, const struct vhca_dom_info *info)
{
	for (unsigned int i = 0; i < info->n_hostdevs; i++) {
		struct vhca_vf *vf = vhca_model_vf(&a->e->model, info->hostdevs[i].host);

		if (!vf || vf->state != VHCA_VF_UNMANAGED || vf->adopt == a)
			continue;
		vf->adopt = a;
		vf->host.not_before_ms = 0;
		a->waiting++;
		engine_mark(a->e, vf);
	}
}

void vhca_engine_adopt(struct vhca_engine *e, const struct vhca_uuid *domain, vhca_waiter_fn fn,
		       void *arg)
{
	const struct vhca_domain *dom = vhca_model_domain(&e->model, domain);
	struct vhca_error err = VHCA_ERROR_INIT;
	struct engine_adopt *a = NULL;
	int n;

	if (!dom)
		n = vhca_engine_no_such_domain(e, VHCA_UUID_STR(domain), &err);
	else
		n = vhca_engine_check_readable(dom, &err);
	/* What a domain asks for must be known, else nobody can say whether it differs. */
	if (dom && dom->request_error.kind) {
		err = dom->request_error;
		n = -EINVAL;
	}
	if (n == 0)
		n = count_vfs(e, dom, &err);
	if (n == 0 && !vhca_model_next_claim(&e->model, domain, NULL))
		n = vhca_error_set(&err, VHCA_ERR_NOT_FOUND, "nothing_to_adopt", 0,
				   "domain %s holds no VF of this host", dom->info->name);
	if (n > 0 && new_adopt(e, dom, &a) < 0)
		n = vhca_error_no_memory(&err, "adopt");
	if (n <= 0 || !a) { /* a is there whenever n > 0; compilers want to hear it */
		engine_answer_later(e, fn, arg, &err);
		return;
	}
	a->fn = fn;
	a->arg = arg;
	read_vfs(a, dom->info);
}
