/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The hand-over of a managed migration. It goes on beside libvirt's copy, so the guest does not
 * wait for it without its VFs: they are withdrawn, and the promise is in the journal, before
 * libvirt begins. If the copy is faster, or the agent dies, the destination waits for it with the
 * guest.
 */
#include "agent/migration/handover.h"

#include <string.h>

#include "agent/migration/claims.h"
#include "agent/migration/list.h"
#include "agent/migration/progress.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/ticket/ticket.h"

void mig_leave_epoch(struct vhca_mig *m, bool (*is)(const struct vhca_claim *c))
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		if (!is || is(c))
			vhca_engine_set_epoch(m->owner->args.engine, c, c->epoch + 1);
	vhca_engine_leave_stranded(m->owner->args.engine, &m->id);
}

/*
 * An operator vouches that the destination is dead: whatever that one was promised, or has raised
 * since, is below. Where there are no more generations the SM decides.
 */
void mig_begin_generation(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		vhca_engine_begin_generation(m->owner->args.engine, c);
	mig_recall_epoch(m);
}

/* ---- tickets ---- */

static struct json_object *find_ticket(const struct vhca_mig *m, const struct vhca_ticket *want)
{
	for (size_t i = 0; m->tickets && i < json_object_array_length(m->tickets); i++) {
		struct json_object *text = json_object_array_get_idx(m->tickets, i);
		struct vhca_ticket t;

		if (vhca_ticket_parse(json_object_get_string(text), &t, NULL) == 0 &&
		    t.vguid == want->vguid && t.epoch == want->epoch &&
		    (!want->port_guid ||
		     (t.port_guid == want->port_guid && strcmp(t.name, want->name) == 0)))
			return text;
	}
	return NULL;
}

/*
 * What was signed so already, or is now. A guest is worth more than its ticket: an SM that asks for
 * none takes it as ever.
 */
static struct json_object *sign_ticket(const struct vhca_mig *m, struct vhca_ticket *ticket)
{
	struct json_object *known = find_ticket(m, ticket);
	char text[VHCA_TICKET_MAX];
	struct vhca_error err;

	if (known)
		return json_object_get(known);
	if (vhca_ticket_sign(m->owner->args.auth, ticket, &err) == 0)
		return json_object_new_string(vhca_ticket_format(ticket, text));
	vhca_log_error("%s: no ticket is signed for %s: %s", m->domain_name,
		       VHCA_GUID_STR(ticket->vguid), err.msg);
	return NULL;
}

void mig_sign_tickets(struct vhca_mig *m, unsigned int ahead)
{
	const struct vhca_migrations_args *args = &m->owner->args;
	const struct vhca_conf_peer *peer = vhca_conf_peer(args->conf, m->peer);
	struct json_object *tickets = json_object_new_array();
	struct vhca_claim *c = NULL;

	/* Without TLS nobody has a name, or a key. */
	if (!args->auth || !args->conf->tls_certificate[0] ||
	    (peer && strncmp(peer->agent, "https:", 6) != 0))
		peer = NULL;
	while (peer && (c = vhca_migration_claim(m, c))) {
		struct vhca_ticket ticket = {
			.vguid = c->identity.guid, .epoch = c->epoch + ahead, .migration = m->id};
		struct json_object *text;

		/* Where the VF is that the destination keeps for it; an older one does not say. */
		for (unsigned int i = 0; i < m->n_vfs; i++)
			if (m->vfs[i].guid == ticket.vguid)
				ticket.port_guid = m->vfs[i].port_guid;

		(void)vhca_strcpy(ticket.name, sizeof(ticket.name), peer->certificate); /* size */
		if (!ticket.port_guid)
			continue;
		text = sign_ticket(m, &ticket);
		if (text)
			json_object_array_add(tickets, text);
	}
	json_object_put(m->tickets);
	m->tickets = tickets;
}

struct json_object *mig_proof_of(const struct vhca_mig *m, const struct vhca_claim *c)
{
	const struct vhca_ticket want = {.vguid = c->identity.guid, .epoch = c->epoch};
	struct json_object *own = find_ticket(m, &want), *proof;
	struct json_object *before = vhca_engine_proof(m->owner->args.engine, c);
	size_t n = before ? json_object_array_length(before) : 0, first = 0;

	if (!own)
		return NULL;
	if (n >= VHCA_TICKETS_MAX) {
		first = n + 1 - VHCA_TICKETS_MAX;
		vhca_log_warning("%s: %s has moved more than %d times unheard by the SM: one that "
				 "asks for tickets will need an operator's word",
				 m->domain_name, VHCA_GUID_STR(c->identity.guid), VHCA_TICKETS_MAX);
	}
	proof = json_object_new_array();
	for (size_t i = first; i < n; i++)
		json_object_array_add(proof, json_object_get(json_object_array_get_idx(before, i)));
	json_object_array_add(proof, json_object_get(own));
	return proof;
}

/* ---- the promise ---- */

/*
 * It is spent before it is promised, once: durable with the next state, and promised again after a
 * crash. A destination that is left alone takes the one after that which it was told.
 */
void mig_spend_an_epoch(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		vhca_engine_spend_epoch(m->owner->args.engine, c);
	mig_sign_tickets(m, 0);
	m->handover =
		mig_is_handing_over(m) ? VHCA_MIG_HANDOVER_SENDING : VHCA_MIG_HANDOVER_PROMISED;
}

void mig_take_promise_back(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		vhca_engine_unspend_epoch(m->owner->args.engine, c);
	mig_recall_epoch(m);
}

/*
 * Of the destination's lease, by the hand-over once more. Claims that ended with an earlier boot
 * are not spoken for.
 */
bool mig_renewal_is_due(const struct vhca_mig *m)
{
	return vhca_migration_claim(m, NULL) &&
	       vhca_now_ms() - m->renewed_ms >= m->owner->args.renew_ms;
}

/*
 * Never while an epoch is on its way to the disk, nor an identity on a VF here. In copying, libvirt
 * may not have shown the guest to the destination yet, which goes by its lease until then.
 */
bool mig_hand_over_is_due(const struct vhca_mig *m)
{
	bool is_due = m->handover == VHCA_MIG_HANDOVER_PROMISED ||
		      (m->handover == VHCA_MIG_HANDOVER_DELIVERED && m->state == VHCA_MIG_COPYING &&
		       mig_renewal_is_due(m));

	return is_due && vhca_migration_claim(m, NULL) && m->effect != VHCA_MIG_EFFECT_HANDOVER &&
	       vhca_now_ms() >= m->hand_not_before_ms && mig_all(m, mig_claim_is_away);
}

/* Beside the copy, so not by a rule. */
void mig_hand_over(struct vhca_mig *m)
{
	const struct vhca_mig_effects *e = &m->owner->args.effects;

	m->handover = vhca_migration_delivered(m) ? VHCA_MIG_HANDOVER_RENEWING
						  : VHCA_MIG_HANDOVER_SENDING;
	e->start(e->ctx, m, VHCA_MIG_EFFECT_HANDOVER);
	mig_again(m, 0);
}

void mig_end_hand_over(struct vhca_mig *m)
{
	if (m->handover == VHCA_MIG_HANDOVER_RECALLED)
		m->handover = VHCA_MIG_HANDOVER_NONE;
	else
		m->handover = vhca_migration_delivered(m) ? VHCA_MIG_HANDOVER_DELIVERED
							  : VHCA_MIG_HANDOVER_PROMISED;
}

void mig_recall_epoch(struct vhca_mig *m)
{
	m->handover = mig_is_handing_over(m) ? VHCA_MIG_HANDOVER_RECALLED : VHCA_MIG_HANDOVER_NONE;
}

/* A promise that was recalled meanwhile stays so. */
void mig_note_delivered(struct vhca_mig *m)
{
	if (m->handover == VHCA_MIG_HANDOVER_PROMISED)
		m->handover = VHCA_MIG_HANDOVER_DELIVERED;
	m->renewed_ms = vhca_now_ms();
	vhca_timer_arm_ms(m->hand_timer, m->owner->args.renew_ms);
	if (!m->failure.kind)
		mig_reason(m, "%s", "");
	vhca_backoff_reset(&m->hand_backoff);
}

void mig_hand_over_later(struct vhca_mig *m)
{
	uint32_t ms = vhca_backoff_next(&m->hand_backoff);

	mig_reason(m, "%s", m->res->err.msg);
	m->hand_not_before_ms = vhca_now_ms() + ms;
	vhca_timer_arm_ms(m->hand_timer, ms);
}
