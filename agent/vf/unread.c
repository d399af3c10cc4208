/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Domains that run and whose XML cannot be read. What such a domain has is not known: a proof that
 * rests on its XML waits, and everything else goes on.
 */
#include <string.h>

#include "agent/vf/engine_int.h"

void engine_note_unreadable(struct vhca_engine *e, struct vhca_domain *dom,
			    const struct vhca_error *why)
{
	if (why->kind && strcmp(why->msg, dom->unreadable.msg) != 0)
		vhca_events_add(e->args.events, "alarm", dom->info->name,
				"cannot be read: %s; what it asks for waits, and so does the proof "
				"that a VF has left it",
				why->msg);
	else if (!why->kind && dom->unreadable.kind)
		vhca_events_add(e->args.events, "domain", dom->info->name, "can be read again");
	dom->unreadable = *why;
}

bool vhca_engine_has_unreadable(const struct vhca_engine *e)
{
	const struct vhca_domain *dom;

	TAILQ_FOREACH (dom, &e->model.domains, link)
		if (dom->unreadable.kind)
			return true;
	return false;
}

int vhca_engine_check_readable(const struct vhca_domain *dom, struct vhca_error *err)
{
	int r;

	if (!dom->unreadable.kind)
		return 0;
	r = vhca_error_set(err, VHCA_ERR_CONFLICT, "domain_unreadable", 0,
			   "domain %s cannot be read: %s", dom->info->name, dom->unreadable.msg);
	vhca_error_hint(err, "virsh dumpxml %s", dom->info->name);
	return r;
}

const struct vhca_domain *engine_unreadable(struct vhca_engine *e, const struct vhca_vf *vf)
{
	const struct vhca_domain *dom = vf->claim ? engine_claim_domain(e, vf->claim) : NULL;

	return dom && dom->unreadable.kind ? dom : NULL;
}

bool engine_awaits_xml(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_domain *dom = engine_unreadable(e, vf);

	if (dom)
		engine_reason(vf,
			      "domain %s cannot be read: %s; whether it has the VF is not known",
			      dom->info->name, dom->unreadable.msg);
	return dom != NULL;
}
