/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/state/exclude.h"

#include <stdio.h>

#include "common/base/file.h"

/* There is one that the section is for, and all of them have their VFs. */
static bool can_tell(const struct vhca_conf *conf, const struct vhca_conf_hca *hca,
		     const struct vhca_inventory *inv)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < inv->n_pfs; i++) {
		const struct vhca_pf_facts *pf = &inv->pfs[i];

		if (vhca_conf_hca(conf, pf->bdf) != hca)
			continue;
		if (hca->vfs == VHCA_CONF_VFS_KEEP ? !pf->num_vfs : pf->num_vfs != hca->vfs)
			return false;
		n++;
	}
	return n > 0;
}

static bool is_vf(const struct vhca_conf *conf, const struct vhca_conf_hca *hca,
		  const struct vhca_inventory *inv, struct vhca_bdf bdf)
{
	for (unsigned int i = 0; i < inv->n_pfs; i++) {
		const struct vhca_pf_facts *pf = &inv->pfs[i];

		for (unsigned int v = 0; v < pf->n_vfs; v++)
			if (vhca_bdf_cmp(pf->vfs[v].bdf, bdf) == 0 &&
			    vhca_conf_hca(conf, pf->bdf) == hca)
				return true;
	}
	return false;
}

static void check_section(const struct vhca_conf *conf, const struct vhca_conf_hca *hca,
			  const struct vhca_inventory *inv,
			  void (*tell)(void *ctx, const char *text), void *ctx)
{
	char text[VHCA_CONF_EXCLUDE_MAX * VHCA_BDF_STRLEN + 160];
	unsigned int strays = 0;
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, text, sizeof(text));
	vhca_strbuf_add(&sb, "[hca %s] exclude leaves nothing alone at an address that no VF has:",
			hca->is_default ? "default" : VHCA_BDF_STR(hca->bdf));
	for (unsigned int i = 0; i < hca->n_exclude; i++) {
		if (is_vf(conf, hca, inv, hca->exclude[i]))
			continue;
		vhca_strbuf_add(&sb, " %s", VHCA_BDF_STR(hca->exclude[i]));
		strays++;
	}
	if (strays)
		tell(ctx, text);
}

bool vhca_exclude_check(const struct vhca_conf *conf, const struct vhca_inventory *inv,
			void (*tell)(void *ctx, const char *text), void *ctx)
{
	bool can = true;

	for (unsigned int i = 0; i < conf->n_hcas; i++) {
		const struct vhca_conf_hca *hca = &conf->hcas[i];

		if (hca->n_exclude && can_tell(conf, hca, inv))
			check_section(conf, hca, inv, tell, ctx);
		else
			can &= !hca->n_exclude;
	}
	return can;
}
