/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which VF a claim gets. */
#include <errno.h>
#include <string.h>

#include "agent/vf/engine_int.h"
#include "common/base/cleanup.h"

/* How many of the wishes for an adapter and a NUMA node it does not meet. */
static unsigned int unlike_wished(const struct vhca_vf *vf, const struct engine_want *w)
{
	const struct vhca_pf_facts *pf = &vf->hca->facts;

	return (w->vf->has_pf && vhca_bdf_cmp(pf->bdf, w->vf->pf)) +
	       (w->vf->numa >= 0 && pf->numa_node != w->vf->numa);
}

static bool fits(const struct vhca_engine *e, const struct vhca_vf *vf, const struct engine_want *w)
{
	const struct vhca_hca *hca = vf->hca;

	if (vf->state != (w->as_it_is ? VHCA_VF_UNMANAGED : VHCA_VF_FREE) || vf->committing ||
	    vf->claim || vf->reprogram || vf->to_hca || !vf->present ||
	    !vhca_engine_manages(e, vf) || hca->replacing || vhca_vf_rests(vf) ||
	    (w->unfailed && vf->failures))
		return false;
	if (w->has_bdf)
		return !vhca_bdf_cmp(vf->bdf, w->bdf);
	return !strcmp(hca->fabric, w->vf->fabric) && (w->lenient || unlike_wished(vf, w) == 0);
}

static unsigned int failures(const struct vhca_vf *vf, const struct engine_want *w)
{
	(void)w;
	return vf->failures;
}

static unsigned int is_port_unusable(const struct vhca_vf *vf, const struct engine_want *w)
{
	(void)w;
	return vf->hca->ports[vf->hca->port - 1].state != VHCA_PORT_ACTIVE;
}

static unsigned int is_far(const struct vhca_vf *vf, const struct engine_want *w)
{
	return w->near >= 0 && vf->hca->facts.numa_node != w->near;
}

/* Guests share what the port and the slot of an adapter can carry. */
static unsigned int has_few_free(const struct vhca_vf *vf, const struct engine_want *w)
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
static unsigned int (*const costs[])(const struct vhca_vf *vf, const struct engine_want *w) = {
	failures, is_port_unusable, unlike_wished, is_far, has_few_free,
};

static bool is_better(const struct vhca_vf *a, const struct vhca_vf *b, const struct engine_want *w)
{
	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(costs); i++) {
		unsigned int of_a = costs[i](a, w), of_b = costs[i](b, w);

		if (of_a != of_b)
			return of_a < of_b;
	}
	return false;
}

struct vhca_vf *engine_choose(struct vhca_engine *e, const struct engine_want *w)
{
	struct vhca_vf *vf, *best = NULL;
	struct vhca_hca *hca;

	TAILQ_FOREACH (hca, &e->model.hcas, link)
		TAILQ_FOREACH (vf, &hca->vfs, link)
			if (fits(e, vf, w) && (!best || is_better(vf, best, w)))
				best = vf;
	return best;
}

int engine_no_vf(struct vhca_engine *e, const struct engine_want *w, struct vhca_error *err)
{
	const struct vhca_vf *vf = w->has_bdf ? vhca_model_vf(&e->model, w->bdf) : NULL;
	unsigned int n = 0, total = 0;
	struct vhca_hca *hca;

	if (w->has_bdf && !vf)
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_vf", ENODEV, "%s",
				      VHCA_BDF_STR(w->bdf));
	if (w->has_bdf)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "vf_not_free", EBUSY, "%s is %s",
				      VHCA_BDF_STR(w->bdf), vhca_vf_state_to_string(vf->state));
	TAILQ_FOREACH (hca, &e->model.hcas, link) {
		if (!hca->managed || strcmp(hca->fabric, w->vf->fabric))
			continue;
		TAILQ_FOREACH (vf, &hca->vfs, link) {
			total++;
			n += vf->state == VHCA_VF_FREE && !vf->claim;
		}
	}
	vhca_error_set(err, VHCA_ERR_EXHAUSTED, "no_free_vf", EBUSY,
		       "no free VF for fabric %s: %u of its %u VFs are free%s", w->vf->fabric, n,
		       total, n ? ", none on the HCA or NUMA node that is asked for" : "");
	vhca_error_hint(err,
			"detach a VF, or enable more on this host (vhcactl hcas, vhcactl vfs)");
	return -EBUSY;
}
