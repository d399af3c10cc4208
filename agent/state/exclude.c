/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/state/exclude.h"

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

/* Who hears of addresses that no VF has, against what they are held. */
struct check {
	const struct vhca_conf *conf;
	const struct vhca_inventory *inv;
	void (*tell)(void *ctx, const char *text);
	void *ctx;
};

static void check_list(const struct check *check, const struct vhca_conf_hca *hca,
		       const char *useless, const struct vhca_bdf *list, unsigned int n)
{
	char text[VHCA_CONF_EXCLUDE_MAX * VHCA_BDF_STRLEN + 160];
	unsigned int strays = 0;
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, text, sizeof(text));
	vhca_strbuf_add(&sb, "[hca %s] %s at an address that no VF has:",
			hca->is_default ? "default" : VHCA_BDF_STR(hca->bdf), useless);
	for (unsigned int i = 0; i < n; i++) {
		if (is_vf(check->conf, hca, check->inv, list[i]))
			continue;
		vhca_strbuf_add(&sb, " %s", VHCA_BDF_STR(list[i]));
		strays++;
	}
	if (strays)
		check->tell(check->ctx, text);
}

_Static_assert(VHCA_CONF_RESERVE_MAX <= VHCA_CONF_EXCLUDE_MAX, "the text has room for either");

bool vhca_exclude_check(const struct vhca_conf *conf, const struct vhca_inventory *inv,
			void (*tell)(void *ctx, const char *text), void *ctx)
{
	const struct check check = {.conf = conf, .inv = inv, .tell = tell, .ctx = ctx};
	bool can = true;

	for (unsigned int i = 0; i < conf->n_hcas; i++) {
		const struct vhca_conf_hca *hca = &conf->hcas[i];

		if (!hca->n_exclude && !hca->n_reserve)
			continue;
		if (!can_tell(conf, hca, inv)) {
			can = false;
			continue;
		}
		check_list(&check, hca, "exclude leaves nothing alone", hca->exclude,
			   hca->n_exclude);
		check_list(&check, hca, "reserve keeps nothing", hca->reserve, hca->n_reserve);
	}
	return can;
}
