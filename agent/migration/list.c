/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The migrations that an agent knows, under way and some that have ended, and what each of them
 * moves: a domain, and the claims that are its.
 */
#include "agent/migration/list.h"

#include <stdlib.h>

#include "agent/migration/progress.h"
#include "common/base/file.h"

struct vhca_mig *mig_find(const struct vhca_migrations *ms, const struct vhca_uuid *id)
{
	struct vhca_mig *m;

	TAILQ_FOREACH (m, &ms->list, link)
		if (vhca_uuid_equal(&m->id, id))
			return m;
	return NULL;
}

const struct vhca_mig *vhca_migrations_find(struct vhca_migrations *ms, const struct vhca_uuid *id)
{
	return mig_find(ms, id);
}

const struct vhca_mig *vhca_migrations_first(struct vhca_migrations *ms)
{
	return TAILQ_FIRST(&ms->list);
}

bool mig_is_committing(const struct vhca_mig *m)
{
	return m->next != VHCA_MIG_STATE_COUNT;
}

bool mig_is_revived(const struct vhca_mig *m)
{
	return m->record == VHCA_MIG_RECORD_LOADED || m->record == VHCA_MIG_RECORD_RESUMED;
}

bool vhca_migration_promised(const struct vhca_mig *m)
{
	return m->handover != VHCA_MIG_HANDOVER_NONE && m->handover != VHCA_MIG_HANDOVER_RECALLED;
}

bool vhca_migration_delivered(const struct vhca_mig *m)
{
	return m->handover == VHCA_MIG_HANDOVER_DELIVERED ||
	       m->handover == VHCA_MIG_HANDOVER_RENEWING;
}

bool mig_is_handing_over(const struct vhca_mig *m)
{
	return m->handover == VHCA_MIG_HANDOVER_SENDING ||
	       m->handover == VHCA_MIG_HANDOVER_RENEWING ||
	       m->handover == VHCA_MIG_HANDOVER_RECALLED;
}

bool mig_is_awaited(const struct vhca_mig *m)
{
	return m->effect != VHCA_MIG_EFFECT_NONE || mig_is_handing_over(m) ||
	       m->cancel == VHCA_MIG_CANCEL_SENDING;
}

struct vhca_mig *mig_add(struct vhca_migrations *ms, const struct vhca_uuid *id)
{
	struct vhca_mig *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->owner = ms;
	m->id = *id;
	m->next = VHCA_MIG_STATE_COUNT;
	m->started_ms = m->updated_ms = vhca_wall_ms();
	m->known_ms = m->entered_ms = vhca_now_ms();
	m->backoff = m->hand_backoff =
		(struct vhca_backoff){.first_ms = ms->args.retry_ms, .cap_ms = MIG_RETRY_CAP_MS};
	STAILQ_INIT(&m->waiters);
	TAILQ_INSERT_TAIL(&ms->list, m, link);
	ms->n++;
	return m;
}

void mig_drop(struct vhca_mig *m)
{
	struct vhca_error err;
	struct vhca_mig_waiter *w;

	vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "shutting_down", 0,
		       "the agent is stopping; ask again");
	while ((w = STAILQ_FIRST(&m->waiters))) {
		STAILQ_REMOVE_HEAD(&m->waiters, link);
		w->fn(w->arg, NULL, &err);
		free(w);
	}
	TAILQ_REMOVE(&m->owner->list, m, link);
	m->owner->n--;
	vhca_timer_free(m->timer);
	vhca_timer_free(m->hand_timer);
	json_object_put(m->tickets);
	free(m);
}

/* ---- what one moves ---- */

/*
 * What the destination has brought is settled before it is done, and the source asks for it in
 * between, too.
 */
static bool owns(const struct vhca_mig *m, const struct vhca_claim *c)
{
	bool has_brought =
		!m->source && (m->state == VHCA_MIG_ATTACHING || m->state == VHCA_MIG_DONE);

	return (c->migrating || has_brought) && vhca_uuid_equal(&c->migration, &m->id);
}

struct vhca_claim *vhca_migration_claim(const struct vhca_mig *m, struct vhca_claim *after)
{
	struct vhca_claim *c =
		after ? TAILQ_NEXT(after, link) : TAILQ_FIRST(&m->owner->model->claims);

	while (c && !owns(m, c))
		c = TAILQ_NEXT(c, link);
	return c;
}

struct vhca_domain *mig_domain(const struct vhca_mig *m)
{
	return vhca_model_domain(m->owner->model, &m->domain);
}

const struct vhca_dom_info *vhca_migration_guest(const struct vhca_mig *m)
{
	const struct vhca_domain *dom = mig_domain(m);

	return dom ? dom->info : NULL;
}

int vhca_migration_check_lid(const struct vhca_mig *m, const struct vhca_claim *claim,
			     struct vhca_error *err)
{
	return vhca_engine_check_lid(m->owner->args.engine, claim, err);
}

bool vhca_migration_begun(const struct vhca_mig *m)
{
	return m->begun || m->pinned || m->state == VHCA_MIG_ATTACHING ||
	       m->state == VHCA_MIG_DONE || mig_domain(m) ||
	       !vhca_engine_virt_synced(m->owner->args.engine);
}

bool vhca_migration_attached(const struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	if (m->state == VHCA_MIG_DONE)
		return true;
	if (m->state != VHCA_MIG_ATTACHING)
		return false;
	while ((c = vhca_migration_claim(m, c)))
		if (c->vf->state != VHCA_VF_ATTACHED)
			return false;
	return true;
}
