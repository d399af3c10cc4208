/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The VFs of a host: their registers, and which guest has which. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/host/world_int.h"
#include "tests/sim/host/world_mlx5.h"

struct world_vf *world_truth(struct world *w, struct vhca_bdf bdf)
{
	for (unsigned int i = 0; i < w->n_vfs; i++)
		if (!vhca_bdf_cmp(w->vfs[i].bdf, bdf))
			return &w->vfs[i];
	abort();
}

void world_vf_reset(struct world_vf *vf)
{
	world_vf_unplug(vf);
	vf->driver[0] = '\0';
	vf->guid = vf->boot_guid;
	vf->held = vf->epoch = 0;
	vf->other_maps = 0;
	vf->port = 1;
	for (unsigned int k = 0; k < VHCA_VF_PKEYS_MAX; k++)
		vf->map[k] = k ? -1 : 0;
}

bool world_clean(const struct world *w, unsigned int v)
{
	for (unsigned int k = 0; k < VHCA_VF_PKEYS_MAX; k++)
		if (w->vfs[v].map[k] >= 0)
			return false;
	return w->vfs[v].guid == VHCA_GUID_ALL1;
}

bool world_domain_has(const struct world *w, unsigned int i, unsigned int v)
{
	return w->vfs[v].group_open && vhca_uuid_equal(&w->vfs[v].user, &w->domains[i].info.uuid);
}

int world_vf_of(const struct world *w, unsigned int i, const char *name)
{
	for (unsigned int v = 0; v < w->n_vfs; v++)
		if (world_domain_has(w, i, v) && !strcmp(w->vfs[v].name, name))
			return (int)v;
	return -1;
}

bool world_has_vf(const struct world *w, unsigned int i)
{
	for (unsigned int v = 0; v < w->n_vfs; v++)
		if (world_domain_has(w, i, v))
			return true;
	return false;
}

/* Is the P_Key one that the domain's metadata asks for? */
static bool asked_for(const struct world_domain *d, uint16_t pkey)
{
	for (unsigned int r = 0; d && r < d->info.n_requests; r++)
		if (strstr(d->info.requests[r].partition, VHCA_PKEY_STR(pkey)))
			return true;
	return false;
}

void world_check(const struct world *w)
{
	for (unsigned int v = 0; v < w->n_vfs; v++) {
		const struct world_vf *vf = &w->vfs[v];

		/*
		 * A VF in a guest shows no key but its tenant's (VFs plugged by others have no name
		 * of ours).
		 */
		for (unsigned int k = 0; !w->hostile_sm && vf->group_open && vf->name[0] == 'i' &&
					 k < VHCA_VF_PKEYS_MAX;
		     k++)
			if (vf->map[k] >= 0 && w->port_pkeys[vf->map[k]])
				world_must(
					asked_for(world_domain_of(w, &vf->user),
						  w->port_pkeys[vf->map[k]]),
					"a guest's VF maps a key that its tenant did not ask for");
		for (unsigned int o = 0; o < v; o++)
			world_must(vf->guid == VHCA_GUID_ALL1 || vf->guid != w->vfs[o].guid ||
					   vf->lost || w->vfs[o].lost,
				   "two VFs request one GUID");
	}
}

/*
 * Whoever looks at the other port finds nobody's VF there, and keys on the one that he takes for
 * the other.
 */
static void read_beside(const struct world_vf *t, struct vhca_identity_state *hw)
{
	hw->requested = VHCA_GUID_ALL1;
	for (unsigned int k = 0; k < VHCA_VF_PKEYS_MAX; k++) {
		hw->map[k] = -1;
		hw->other_maps += t->map[k] >= 0;
	}
}

int world_vf_read(const struct world *w, const struct world_vf *t, uint8_t port,
		  struct vhca_effect_result *res)
{
	struct vhca_identity_state *hw = &res->hw;

	if (w->mlx5)
		return world_mlx5_read(w, (unsigned int)(t - w->vfs), hw, &res->err);
	memset(hw, 0, sizeof(*hw));
	hw->n_virtual = VHCA_VF_PKEYS_MAX;
	if (port != t->port) {
		read_beside(t, hw);
		return 0;
	}
	hw->requested = t->guid;
	hw->granted = w->sm_grants && (t->guest_driver || t->asked) && t->guid != VHCA_GUID_ALL1
			      ? t->guid
			      : t->held;
	hw->other_maps = t->other_maps;
	for (unsigned int k = 0; k < VHCA_VF_PKEYS_MAX; k++) {
		hw->map[k] = t->map[k];
		hw->value[k] = t->map[k] >= 0 ? w->port_pkeys[t->map[k]] : 0;
	}
	return 0;
}

static void clear(struct world_vf *t)
{
	t->guid = VHCA_GUID_ALL1;
	t->other_maps = 0;
	for (unsigned int k = 0; k < VHCA_VF_PKEYS_MAX; k++)
		t->map[k] = -1;
}

/* An SM that was away does not know what the port holds (pkey/mlx4_grant.c). */
void world_vf_scrub(const struct world *w, struct world_vf *t)
{
	if (!w->sm_deaf)
		t->held = 0;
	else if (t->guid != VHCA_GUID_ALL1)
		t->held = t->guid;
	clear(t);
}

unsigned int world_vf_program(const struct world *w, struct world_vf *t,
			      const struct vhca_identity *want)
{
	unsigned int missing = 0;

	clear(t);
	t->asked = true;
	t->guid = want->guid;
	for (unsigned int k = 0; k < want->n_pkeys; k++) {
		t->map[k] = (int16_t)vhca_pkey_find(w->port_pkeys, WORLD_KEYS, want->pkeys[k]);
		missing += t->map[k] < 0;
	}
	return missing;
}

void world_vf_unmap(const struct world *w, struct world_vf *t, const struct vhca_identity *want)
{
	t->other_maps = 0;
	for (unsigned int k = 0; k < VHCA_VF_PKEYS_MAX; k++)
		if (t->map[k] >= 0 &&
		    (k >= want->n_pkeys || w->port_pkeys[t->map[k]] != want->pkeys[k]))
			t->map[k] = -1;
}

void world_vf_unplug(struct world_vf *t)
{
	t->group_open = t->guest_driver = t->asked = false; /* its reset */
	t->name[0] = '\0';
}
