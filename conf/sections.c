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

bool vhca_conf_excludes(const struct vhca_conf *conf, struct vhca_bdf pf, struct vhca_bdf vf)
{
	const struct vhca_conf_hca *hca = vhca_conf_hca(conf, pf);

	return hca && vhca_bdf_find(hca->exclude, hca->n_exclude, vf);
}

bool vhca_conf_reserves(const struct vhca_conf *conf, struct vhca_bdf pf, struct vhca_bdf vf)
{
	const struct vhca_conf_hca *hca = vhca_conf_hca(conf, pf);

	return hca && vhca_bdf_find(hca->reserve, hca->n_reserve, vf);
}

uint32_t vhca_conf_port_lease_s(const struct vhca_conf *conf)
{
	return (conf->port_lease_ms + 999) / 1000;
}

const struct vhca_conf_peer *vhca_conf_peer(const struct vhca_conf *conf, const char *name)
{
	for (unsigned int i = 0; i < conf->n_peers; i++)
		if (strcmp(conf->peers[i].name, name) == 0)
			return &conf->peers[i];
	return NULL;
}

bool vhca_conf_peer_is(const struct vhca_conf_peer *peer, const char *node)
{
	size_t len = strlen(peer->name);

	return strncmp(peer->name, node, len) == 0 && (!node[len] || node[len] == '.');
}
