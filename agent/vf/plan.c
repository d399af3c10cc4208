/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which VFs a domain would get: the checks of a claim, in turn for each VF, behind those before it.
 * What these would have stands in the model as claims, so that all that counts claims counts them;
 * nothing else runs meanwhile, and none of them stays.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vf/claim.h"
#include "agent/vf/report.h"
#include "agent/vf/work.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"

struct plan {
	struct vhca_engine *e;
	const struct vhca_dom_info *wanted;
	const struct vhca_domain *dom; /* NULL: it does not run here */
	unsigned int n;
	unsigned int n_uncounted; /* of those, which engine_check_root_ports() takes for no VF that
				   * is on its way */
	/* Of the model's list, and without a number of its: they were never made. */
	struct vhca_claim placeholders[VHCA_DOM_VFS_MAX];
};

static bool has_port(const struct vhca_vf *vf)
{
	return vf->state == VHCA_VF_ATTACHED || vf->state == VHCA_VF_DETACHING;
}

static void add_placeholder(struct plan *p, const char *name, const struct vhca_identity *id,
			    struct vhca_vf *vf)
{
	struct vhca_claim *c = &p->placeholders[p->n++];

	c->domain = p->wanted->uuid;
	(void)vhca_strcpy(c->domain_name, sizeof(c->domain_name), p->wanted->name); /* same */
	(void)vhca_strcpy(c->name, sizeof(c->name), name);			    /* sizes */
	c->identity = *id;
	c->vf = vf;
	if (!vf->claim)
		vf->claim = c;
	p->n_uncounted += !has_port(vf) && vf->state != VHCA_VF_CLAIMED &&
			  vf->state != VHCA_VF_PROGRAMMED && vf->state != VHCA_VF_FREE;
	TAILQ_INSERT_TAIL(&p->e->model.claims, c, link);
}

/* What a running domain needs for a VF beside that; one that its guest still has leaves a port. */
static int check_domain(const struct plan *p, const struct vhca_claim *ends, struct vhca_error *err)
{
	const struct vhca_domain *dom = p->dom;
	int r;

	if (!dom)
		return 0;
	r = vhca_engine_check_readable(dom, err);
	if (r == 0 && !(ends && has_port(ends->vf)))
		r = engine_check_root_ports(p->e, dom, 1 + p->n_uncounted, err);
	if (r == 0 && !engine_is_pinned(dom))
		r = vhca_guest_memory_check_limit(&dom->info->memory, dom->info->name,
						  &dom->info->uuid, err);
	return r;
}

/* Behind a claim that is to end: its VF, its port and its keys will be free. */
static int check_behind(const struct plan *p, const struct vhca_claim_request *req,
			const struct vhca_claim *ends, const struct vhca_identity *id,
			struct vhca_error *err)
{
	int r = engine_check_drained(p->e, err);

	if (r == 0 && (ends->vf->state == VHCA_VF_QUARANTINED || !engine_may_serve(p->e, req)))
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "vf_busy", EBUSY,
				      "%s is still being taken from it",
				      VHCA_BDF_STR(ends->vf->bdf));
	if (r == 0)
		r = vhca_engine_check_disk(p->e, err);
	if (r == 0 && id->guid != ends->identity.guid)
		r = engine_check_free(p->e, id->guid, err);
	return r < 0 ? r : engine_check_room(p->e, ends, id, err);
}

/* As vhca_engine_claim(), but that nobody has to look at the domain again. */
static int plan_vf(struct plan *p, const struct vhca_vf_request *vf, const struct vhca_vf **ret,
		   struct vhca_error *err)
{
	const struct vhca_claim *there =
		vhca_model_claim_of(&p->e->model, &p->wanted->uuid, vf->name);
	struct vhca_claim_request req = {.domain = p->wanted->uuid, .vf = *vf};
	struct vhca_vf *place = there ? there->vf : NULL;
	bool stands = there && !engine_will_end(there);
	struct vhca_identity id = {0};
	int r;

	(void)vhca_strcpy(req.domain_name, sizeof(req.domain_name), p->wanted->name); /* as above */
	if (there)
		req.bdf = there->vf->bdf; /* has_bdf stays false: the wishes count */
	r = stands ? 0 : engine_resolve_identity(p->e, &req, &id, err);
	if (r == 0 && !stands)
		r = check_domain(p, there, err);
	if (r == 0 && !stands)
		r = there ? check_behind(p, &req, there, &id, err)
			  : engine_find_place(p->e, &req, &id, &place, err);
	if (r == 0 && !stands)
		add_placeholder(p, vf->name, &id, place);
	*ret = place;
	return r;
}

int vhca_engine_plan(struct vhca_engine *e, const struct vhca_dom_info *wanted,
		     const struct vhca_vf *ret[static VHCA_DOM_VFS_MAX], struct vhca_error *err)
{
	const struct vhca_domain *dom = vhca_model_domain(&e->model, &wanted->uuid);
	VHCA_AUTO_FREE struct plan *p = NULL;
	int r = 0;

	if (!dom && !e->virt_synced) /* it may run here */
		return vhca_engine_no_such_domain(e, wanted->name, err);
	p = calloc(1, sizeof(*p));
	if (!p)
		return vhca_error_no_memory(err, "plan");
	p->e = e;
	p->wanted = wanted;
	p->dom = dom;
	for (unsigned int i = 0; i < wanted->n_requests && r == 0; i++) {
		r = plan_vf(p, &wanted->requests[i], &ret[i], err);
		if (r < 0)
			vhca_error_prefix(err, "%s", wanted->requests[i].name);
	}
	while (p->n > 0) {
		struct vhca_claim *c = &p->placeholders[--p->n];

		TAILQ_REMOVE(&e->model.claims, c, link);
		if (c->vf->claim == c)
			c->vf->claim = NULL;
	}
	return r;
}
