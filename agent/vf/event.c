/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What libvirt's events say by themselves. */
#include <string.h>

#include "agent/vf/engine_int.h"

static const struct vhca_dom_hostdev *hostdev_of(const struct vhca_domain *d, struct vhca_bdf host)
{
	for (unsigned int i = 0; i < d->info->n_hostdevs; i++)
		if (!vhca_bdf_cmp(d->info->hostdevs[i].host, host))
			return &d->info->hostdevs[i];
	return NULL;
}

/* By the alias in the live XML; when that has been read since, only ours can be told. */
static bool has_alias(const struct vhca_domain *d, const struct vhca_claim *c, const char *alias)
{
	const struct vhca_dom_hostdev *dev = hostdev_of(d, c->vf->bdf);
	size_t len = strlen(VHCA_ALIAS_PREFIX);

	if (dev)
		return !strcmp(dev->alias, alias);
	return !strncmp(alias, VHCA_ALIAS_PREFIX, len) && !strcmp(alias + len, c->name);
}

static void forget(struct vhca_domain *d, struct vhca_bdf host)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < d->info->n_hostdevs; i++)
		if (vhca_bdf_cmp(d->info->hostdevs[i].host, host) != 0)
			d->info->hostdevs[kept++] = d->info->hostdevs[i];
	d->info->n_hostdevs = kept;
}

void vhca_engine_device_removed(struct vhca_engine *e, const struct vhca_uuid *uuid,
				const char *alias, uint64_t at_us)
{
	struct vhca_domain *d = vhca_model_domain(&e->model, uuid);
	struct vhca_claim *c;

	if (!d)
		return;
	TAILQ_FOREACH (c, &e->model.claims, link) {
		if (!c->vf || !vhca_uuid_equal(&c->domain, uuid) || !has_alias(d, c, alias))
			continue;
		c->removed_us = at_us;
		if (c->vf->state != VHCA_VF_DETACHING)
			continue; /* nobody waits for it */
		forget(d, c->vf->bdf);
		engine_mark(e, c->vf);
	}
}

void vhca_engine_guest_state(struct vhca_engine *e, const struct vhca_uuid *uuid, bool is_here,
			     uint64_t at_us)
{
	struct vhca_domain *d = vhca_model_domain(&e->model, uuid);

	if (!d || !d->incoming)
		return;
	d->arrived_us = at_us;
	d->incoming = !is_here;
	engine_mark_all(e);
}
