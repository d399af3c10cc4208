// SPDX-License-Identifier: LGPL-2.1-or-later
/* The sections that rule a PF, a VF or a peer. */
#include <string.h>

#include "conf/conf.h"

const struct vhca_conf_hca *vhca_conf_hca(const struct vhca_conf *conf, struct vhca_bdf pf)
{
	const struct vhca_conf_hca *fallback = NULL;

	for (unsigned int i = 0; i < conf->n_hcas; i++) {
		const struct vhca_conf_hca *hca = &conf->hcas[i];

		if (hca->is_default)
			fallback = hca;
		else if (vhca_bdf_cmp(hca->bdf, pf) == 0)
			return hca;
	}
	return fallback;
}

static bool names(const struct vhca_bdf *list, unsigned int n, struct vhca_bdf vf)
{
	for (unsigned int i = 0; i < n; i++)
		if (vhca_bdf_cmp(list[i], vf) == 0)
			return true;
	return false;
}

bool vhca_conf_hca_excludes(const struct vhca_conf_hca *hca, struct vhca_bdf vf)
{
	return names(hca->exclude, hca->n_exclude, vf);
}

bool vhca_conf_excludes(const struct vhca_conf *conf, struct vhca_bdf pf, struct vhca_bdf vf)
{
	const struct vhca_conf_hca *hca = vhca_conf_hca(conf, pf);

	return hca && vhca_conf_hca_excludes(hca, vf);
}

bool vhca_conf_reserves(const struct vhca_conf *conf, struct vhca_bdf pf, struct vhca_bdf vf)
{
	const struct vhca_conf_hca *hca = vhca_conf_hca(conf, pf);

	return hca && names(hca->reserve, hca->n_reserve, vf);
}

const struct vhca_conf_peer *vhca_conf_peer(const struct vhca_conf *conf, const char *name)
{
	for (unsigned int i = 0; i < conf->n_peers; i++)
		if (strcmp(conf->peers[i].name, name) == 0)
			return &conf->peers[i];
	return NULL;
}
