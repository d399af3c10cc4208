/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a live domain means for its VFs. One whose XML cannot be read runs all the same: what it has
 * is not known, a proof that rests on its XML waits, and everything else goes on. A paused guest
 * lets nothing go. And its memory has to be pinned: no VF can be plugged in below a limit, and more
 * of it takes longer to pin and to let go.
 */
#include <errno.h>
#include <string.h>

#include "agent/vf/report.h"
#include "agent/vf/work.h"
#include "common/base/codes.h"

struct vhca_domain *engine_claim_domain(struct vhca_engine *e, const struct vhca_claim *claim)
{
	return vhca_model_domain(&e->model, &claim->domain);
}

bool engine_runs_here(struct vhca_engine *e, const struct vhca_claim *claim)
{
	const struct vhca_domain *dom = engine_claim_domain(e, claim);

	return dom && !dom->incoming;
}

bool engine_is_migrating(const struct vhca_engine *e, const struct vhca_uuid *domain)
{
	const struct vhca_claim *c;

	VHCA_FOREACH_CLAIM_OF (c, &e->model, domain)
		if (c->migrating)
			return true;
	return false;
}

int vhca_engine_check_runs(const struct vhca_domain *dom, struct vhca_error *err)
{
	int r;

	if (!dom->info->paused)
		return 0;
	r = vhca_error_set(err, VHCA_ERR_CONFLICT, "guest_paused", 0,
			   "domain %s is paused: its guest would not let go of a VF",
			   dom->info->name);
	vhca_error_hint(err, "virsh resume %s, then ask again",
			VHCA_DOMAIN_WORD(dom->info->name, &dom->info->uuid));
	return r;
}

/* ---- its XML ---- */

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

int vhca_engine_no_such_domain(const struct vhca_engine *e, const char *name,
			       struct vhca_error *err)
{
	if (!e->virt_synced)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "no_libvirt", EAGAIN,
				      "domain %s: which domains run here is not known before "
				      "libvirt is connected",
				      name);
	return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_domain", 0,
			      "domain %s does not run here", name);
}

int vhca_engine_check_readable(const struct vhca_domain *dom, struct vhca_error *err)
{
	int r;

	if (!dom->unreadable.kind)
		return 0;
	r = vhca_error_set(err, VHCA_ERR_CONFLICT, "domain_unreadable", 0,
			   "domain %s cannot be read: %s", dom->info->name, dom->unreadable.msg);
	vhca_error_hint(err, "virsh dumpxml %s",
			VHCA_DOMAIN_WORD(dom->info->name, &dom->info->uuid));
	return r;
}

const struct vhca_domain *engine_unreadable(struct vhca_engine *e, const struct vhca_vf *vf)
{
	const struct vhca_domain *dom = vf->claim ? engine_claim_domain(e, vf->claim) : NULL;

	return dom && dom->unreadable.kind ? dom : NULL;
}

bool vhca_engine_has_left(struct vhca_engine *e, const struct vhca_vf *vf)
{
	return e->virt_synced && !engine_unreadable(e, vf) &&
	       !vhca_model_user(&e->model, vf->bdf, NULL);
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

/* ---- its buses and its memory ---- */

int engine_check_root_ports(struct vhca_engine *e, const struct vhca_domain *dom, unsigned int more,
			    struct vhca_error *err)
{
	unsigned int coming = more;
	struct vhca_claim *c;

	VHCA_FOREACH_CLAIM_OF (c, &e->model, &dom->info->uuid)
		coming += c->vf && !vhca_claim_is_ending(c) &&
			  (c->vf->state == VHCA_VF_CLAIMED || c->vf->state == VHCA_VF_PROGRAMMED ||
			   c->vf->state == VHCA_VF_FREE);
	if (coming <= dom->info->free_root_ports)
		return 0;
	vhca_error_set(err, VHCA_ERR_EXHAUSTED, VHCA_CODE_NO_ROOT_PORT, ENOSPC,
		       "domain %s has %u free pcie-root-ports of %u, needs %u for its VFs",
		       dom->info->name, dom->info->free_root_ports, dom->info->root_ports, coming);
	vhca_error_hint(
		err,
		"add <controller type='pci' model='pcie-root-port'/> to the domain and restart it");
	return -ENOSPC;
}

int vhca_engine_check_memory(struct vhca_engine *e, const struct vhca_domain *dom,
			     struct vhca_error *err)
{
	int r = vhca_guest_memory_check_limit(&dom->info->memory, dom->info->name, &dom->info->uuid,
					      err);

	/* libvirt tells nobody that a limit was raised: who asks again shall find it. */
	if (r < 0)
		e->args.effects.refresh(e->args.effects.ctx, &dom->info->uuid);
	return r;
}

bool engine_is_pinned(const struct vhca_domain *dom)
{
	return dom->info->n_hostdevs || dom->info->has_far_hostdev;
}

int engine_check_plug(struct vhca_engine *e, const struct vhca_domain *dom, struct vhca_error *err)
{
	return engine_is_pinned(dom) ? 0 : vhca_engine_check_memory(e, dom, err);
}

void engine_note_memory(struct vhca_engine *e, const struct vhca_dom_info *info)
{
	struct vhca_claim *c;

	VHCA_FOREACH_CLAIM_OF (c, &e->model, &info->uuid)
		c->memory_kib = info->memory.kib;
}

uint64_t engine_memory_ms(const struct vhca_vf *vf)
{
	return vf->claim ? vhca_guest_memory_ms(vf->claim->memory_kib) : 0;
}

uint64_t engine_detach_ms(const struct vhca_engine *e, const struct vhca_vf *vf)
{
	return e->conf->detach_timeout_ms + engine_memory_ms(vf);
}
