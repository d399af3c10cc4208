/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Guards and actions of more than one table. */
#include "agent/migration/claims.h"

#include <string.h>

#include "agent/migration/list.h"
#include "agent/migration/progress.h"
#include "common/base/file.h"

bool mig_all(const struct vhca_mig *m, bool (*is)(const struct vhca_claim *c))
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		if (!is(c))
			return false;
	return true;
}

bool mig_any(const struct vhca_mig *m, bool (*is)(const struct vhca_claim *c))
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		if (is(c))
			return true;
	return false;
}

bool mig_claim_is_away(const struct vhca_claim *c)
{
	return vhca_claim_is_withheld(c) && vhca_claim_rests_in(c, VHCA_VF_CLAIMED);
}

bool mig_claim_can_take(const struct vhca_claim *c)
{
	return vhca_claim_is_withheld(c) ? mig_claim_is_away(c) : !c->vf->committing;
}

bool mig_claim_stayed(const struct vhca_claim *c)
{
	return c->vf->state == VHCA_VF_ATTACHED && c->custody != VHCA_CUSTODY_LEAVING &&
	       !c->vf->committing;
}

bool mig_claim_is_stuck(const struct vhca_claim *c)
{
	return c->vf->state == VHCA_VF_QUARANTINED || c->vf->state == VHCA_VF_PREPARING;
}

void mig_fail_stuck(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;
	char text[200] = "";
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, text, sizeof(text));
	while ((c = vhca_migration_claim(m, c)))
		if (mig_claim_is_stuck(c))
			vhca_strbuf_add(&sb, "%sVF %s (%s) is quarantined: %s", sb.len ? "; " : "",
					c->name, VHCA_BDF_STR(c->vf->bdf), c->vf->reason);
	mig_fail_with(m, VHCA_ERR_DEVICE, "vf_quarantined", text);
}

bool mig_is_parking(const struct vhca_mig *m)
{
	return m->mode == VHCA_MIG_MODE_PARK;
}

bool mig_succeeded(const struct vhca_mig *m)
{
	return m->res->rc == 0;
}

bool mig_cannot_tell(const struct vhca_mig *m)
{
	return m->res->rc < 0;
}

bool mig_domain_is_elsewhere(const struct vhca_mig *m)
{
	return !m->res->active;
}

bool mig_is_cancelled(const struct vhca_mig *m)
{
	return m->cancel != VHCA_MIG_CANCEL_NONE;
}

bool mig_guest_is_gone(const struct vhca_mig *m)
{
	return vhca_engine_virt_synced(m->owner->args.engine) && !mig_domain(m);
}

bool mig_guest_runs_here(const struct vhca_mig *m)
{
	const struct vhca_mig_result *res = m->res;

	return res->rc == 0 && res->active && !res->copying && !res->held;
}

void mig_fail_cancelled(struct vhca_mig *m)
{
	mig_fail_with(m, VHCA_ERR_CONFLICT, "cancelled", "cancelled by request");
}

void mig_check_job_later(struct vhca_mig *m)
{
	m->not_before_ms = vhca_now_ms() + m->owner->args.job_ms;
}

void mig_start_lease(struct vhca_mig *m)
{
	m->lease_until = m->lease_ms ? vhca_now_ms() + m->lease_ms : 0;
}

void mig_fail_as_told(struct vhca_mig *m)
{
	mig_fail(m, &m->res->err);
}

void mig_ask_again_later(struct vhca_mig *m)
{
	mig_retry(m, &m->res->err);
}

void mig_note_marked(struct vhca_mig *m)
{
	m->marker = VHCA_MIG_MARKER_SET;
}

bool mig_cannot_unmark(const struct vhca_mig *m)
{
	return m->res->rc < 0 && m->res->err.kind != VHCA_ERR_NOT_FOUND;
}

void mig_note_unmarked(struct vhca_mig *m)
{
	m->marker = VHCA_MIG_MARKER_REMOVED;
}

void mig_members(struct vhca_mig *m)
{
	m->owner->args.effects.members(m->owner->args.effects.ctx);
}

void mig_settle_claims(struct vhca_mig *m)
{
	struct vhca_claim *c, *next;

	for (c = vhca_migration_claim(m, NULL); c; c = next) {
		next = vhca_migration_claim(m, c);
		vhca_engine_settle(m->owner->args.engine, c);
	}
	mig_members(m); /* from here on a claim's own binding keeps its keys on the port */
}

/* Of the source; NULL: not known, or of two that the node's name may mean. */
static const char *find_certificate(const struct vhca_mig *m)
{
	const struct vhca_conf *conf = m->owner->args.conf;
	const char *ret = NULL;

	for (unsigned int i = 0; i < conf->n_peers; i++) {
		if (!vhca_conf_peer_is(&conf->peers[i], m->peer))
			continue;
		if (ret && strcmp(ret, conf->peers[i].certificate) != 0)
			return NULL;
		ret = conf->peers[i].certificate;
	}
	return ret;
}

void mig_await_tickets(const struct vhca_mig *m, struct vhca_claim *c)
{
	const char *certificate = find_certificate(m);

	if (certificate)
		vhca_engine_await_tickets(c, certificate);
}

void mig_mark_loaned_claims(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	while (!m->source && (c = vhca_migration_claim(m, c))) {
		vhca_engine_mark_loaned(m->owner->args.engine, c, m->state != VHCA_MIG_DONE);
		if (m->handover == VHCA_MIG_HANDOVER_TAKEN)
			mig_await_tickets(m, c);
	}
}

void mig_let_go(struct vhca_mig *m)
{
	struct vhca_claim *c, *next;

	for (c = vhca_migration_claim(m, NULL); c; c = next) {
		next = vhca_migration_claim(m, c);
		if (!vhca_claim_is_ending(c))
			vhca_engine_drop(m->owner->args.engine, c);
	}
	mig_members(m);
}
