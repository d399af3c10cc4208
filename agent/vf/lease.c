/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is promised to a domain that never comes. The lease of a claim counts while libvirt knows no
 * domain of that UUID, running or defined; whoever has the claim renews it, and when it is over the
 * claim ends. Nobody is believed to be away: libvirt is asked when the claim is made, when it lists
 * all domains (anew), and once more before the end. Its length is in the journal, what is left of
 * it is not: it begins anew with the agent, and with libvirt.
 */
#include "agent/vf/claim.h"
#include "agent/vf/report.h"
#include "agent/vf/transition.h"
#include "agent/vf/work.h"
#include "common/base/file.h"

static void begin(struct vhca_engine *e, struct vhca_claim *c)
{
	uint64_t ms = UINT64_C(1000) * c->lease_s;

	c->lease_until_ms = vhca_now_ms() + ms;
	c->lease_ends_ms = vhca_wall_ms() + ms;
	engine_mark(e, c->vf);
}

/* Nobody has the VF, and nothing else ends its claim. */
static bool is_over(const struct vhca_claim *c)
{
	enum vhca_vf_state state = c->vf->state;

	return c->lease_until_ms && vhca_now_ms() >= c->lease_until_ms && !c->migrating &&
	       c->end == VHCA_END_NONE && !c->failure.kind &&
	       (state == VHCA_VF_CLAIMED || state == VHCA_VF_PROGRAMMED);
}

void engine_ask_for_domain(struct vhca_engine *e, const struct vhca_claim *claim)
{
	if (claim->lease_s && !engine_claim_domain(e, claim))
		e->args.effects.refresh(e->args.effects.ctx, &claim->domain);
}

void engine_ask_for_domains(struct vhca_engine *e)
{
	const struct vhca_claim *c;

	TAILQ_FOREACH (c, &e->model.claims, link)
		engine_ask_for_domain(e, c);
}

void engine_hold_leases(struct vhca_engine *e, const struct vhca_uuid *domain)
{
	struct vhca_claim *c;

	TAILQ_FOREACH (c, &e->model.claims, link)
		if (!domain || vhca_uuid_equal(&c->domain, domain))
			c->lease_until_ms = c->lease_ends_ms = 0;
}

void engine_count_leases(struct vhca_engine *e, const struct vhca_uuid *domain)
{
	struct vhca_claim *c;
	char label[192];

	VHCA_FOREACH_CLAIM_OF (c, &e->model, domain) {
		if (!c->lease_s)
			continue;
		if (!c->lease_until_ms)
			begin(e, c);
		if (!is_over(c))
			continue;
		vhca_error_set(&c->failure, VHCA_ERR_CONFLICT, "lease_over", 0,
			       "the lease of %s is over: nobody has renewed it in %u s, and the "
			       "domain is not here",
			       engine_claim_label(c, label), c->lease_s);
		vhca_events_add_claim(e->args.events, "claim", c, "%s: %s",
				      VHCA_BDF_STR(c->vf->bdf), c->failure.msg);
		vhca_engine_drop(e, c);
	}
}

void engine_tend_lease(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_claim *c = vf->claim;
	uint64_t now = vhca_now_ms();

	if (is_over(c))
		engine_ask_for_domain(e, c);
	else if (c->lease_until_ms > now)
		engine_again(e, vf, c->lease_until_ms - now);
}

void engine_go_on_with_lease(struct vhca_engine *e, struct vhca_claim *claim)
{
	if (claim->lease_until_ms)
		begin(e, claim);
}

static int check_renewal(struct vhca_engine *e, const struct vhca_claim *c, struct vhca_error *err)
{
	if (c->origin != VHCA_ORIGIN_CLAIM)
		return vhca_error_set(
			err, VHCA_ERR_CONFLICT, "no_lease", 0,
			"%s/%s was not claimed before its domain began, and ends with "
			"that",
			c->domain_name, c->name);
	if (vhca_claim_is_ending(c) || c->failure.kind || c->boot == VHCA_BOOT_EARLIER)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "released", 0,
				      "the claim of %s/%s is ending", c->domain_name, c->name);
	return vhca_engine_check_disk(e, err);
}

void vhca_engine_renew(struct vhca_engine *e, struct vhca_claim *claim, uint32_t lease_s,
		       vhca_waiter_fn fn, void *arg)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	int r = check_renewal(e, claim, &err);

	if (r == 0 && engine_add_waiter(claim, ENGINE_DURABLE, fn, arg) < 0)
		r = vhca_error_no_memory(&err, "lease");
	if (r < 0) {
		engine_answer_later(e, fn, arg, &err);
		return;
	}
	claim->lease_s = lease_s;
	engine_go_on_with_lease(e, claim);
	if (!claim->lease_until_ms)
		engine_ask_for_domain(e, claim);
	engine_save_soon(e, claim);
}
