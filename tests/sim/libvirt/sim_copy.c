/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/libvirt/sim_copy.h"

#include "tests/sim/libvirt/sim_domain.h"

void sim_copy_mark(struct world *w, unsigned int i, const struct vhca_uuid *id)
{
	struct vhca_dom_info *info = &w->domains[i].info;

	info->has_away = id != NULL;
	if (id)
		info->away = *id;
	world_look(w, i);
}

int sim_copy_ask(struct vhca_migrations *ms, const struct vhca_dom_info *info,
		 struct vhca_error *err)
{
	return ms ? vhca_migrations_begin(ms, &info->away, &info->uuid, err)
		  : sim_virt_failed(err, "the destination's hook refused: the agent is down");
}

void sim_copy_comes(const struct world *from, struct world *to, unsigned int i)
{
	to->domains[i].info = from->domains[i].info;
	world_incoming(to, i, true);
}
