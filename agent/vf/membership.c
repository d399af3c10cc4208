/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether a claim's identity is a member of its partitions, so that its VF may be programmed. */
#include <errno.h>

#include "agent/vf/report.h"
#include "agent/vf/work.h"
#include "common/base/file.h"

static bool has_keys(const struct vhca_vf *vf, const struct vhca_identity *id,
		     uint16_t *ret_missing)
{
	const struct vhca_port_state *port = &vf->hca->ports[vf->hca->port - 1];

	for (unsigned int i = 0; i < id->n_pkeys; i++) {
		if (vhca_pkey_find(port->pkeys, port->n_pkeys, id->pkeys[i]) < 0) {
			*ret_missing = id->pkeys[i];
			return false;
		}
	}
	return true;
}

static bool keys_on_port(const struct vhca_vf *vf, uint16_t *ret_missing)
{
	return has_keys(vf, &vf->claim->identity, ret_missing);
}

int engine_check_static_keys(const struct vhca_engine *e, const struct vhca_vf *vf,
			     const struct vhca_identity *want, struct vhca_error *err)
{
	uint16_t missing;

	if (e->conf->sm_pkeys != VHCA_SM_PKEYS_STATIC ||
	    !vhca_hca_identity(vf->hca)->host_pkey_map || has_keys(vf, want, &missing))
		return 0;
	vhca_error_set(err, VHCA_ERR_CONFLICT, "pkey_not_on_port", 0,
		       "P_Key %s is not in the table of the host's port: keys are static",
		       VHCA_PKEY_STR(missing));
	vhca_error_hint(err, "add the port to the partition at the SM");
	return -EPERM;
}

bool vhca_claim_keys_on_port(const struct vhca_claim *claim)
{
	uint16_t missing;

	if (!vhca_hca_identity(claim->vf->hca)->host_pkey_map)
		return true; /* the keys are the vGUID's, not the port's */
	return keys_on_port(claim->vf, &missing);
}

static enum engine_membership refuse(struct vhca_claim *c, uint16_t pkey, const char *why,
				     const char *hint)
{
	vhca_error_set(&c->failure, VHCA_ERR_CONFLICT, "pkey_not_on_port", 0,
		       "P_Key %s is not in the table of the host's port %s: %s",
		       VHCA_PKEY_STR(pkey),
		       VHCA_GUID_STR(c->vf->hca->ports[c->vf->hca->port - 1].port_guid), why);
	vhca_error_hint(&c->failure, "%s", hint);
	return ENGINE_REFUSED;
}

static void sm_refusal(const struct vhca_claim *c, struct vhca_error *ret)
{
	char hint[VHCA_REFUSAL_HINT_MAX];

	vhca_error_set(ret, VHCA_ERR_CONFLICT, "sm_refused", 0,
		       "the SM does not give GUID %s to this host: %s",
		       VHCA_GUID_STR(c->identity.guid), c->sm_answer_reason);
	vhca_claim_refusal_hint(c, hint);
	vhca_error_hint(ret, "%s", hint);
}

static enum engine_membership refused_by_sm(struct vhca_claim *c)
{
	sm_refusal(c, &c->failure);
	return ENGINE_REFUSED;
}

static enum engine_membership unreachable_sm(struct vhca_engine *e, struct vhca_vf *vf,
					     uint16_t pkey)
{
	if (e->conf->sm_require == VHCA_SM_REQUIRE_NOTHING)
		return ENGINE_MEMBER;
	engine_reason(vf, "waits for the SM (sm.require = attach): P_Key %s is not on the port yet",
		      VHCA_PKEY_STR(pkey));
	return ENGINE_WAIT;
}

/*
 * P_Keys that exist only at the SM: without its word the VF is nobody's member (sm.require =
 * attach, forced).
 */
static enum engine_membership membership_at_sm(struct vhca_engine *e, struct vhca_vf *vf)
{
	switch (vf->claim->sm_answer) {
	case VHCA_ANSWER_ACCEPTED:
		return ENGINE_MEMBER;
	case VHCA_ANSWER_REFUSED:
	case VHCA_ANSWER_SUPERSEDED:
		return refused_by_sm(vf->claim);
	case VHCA_ANSWER_NONE:
	case VHCA_ANSWER_UNREACHABLE:
		break;
	}
	engine_reason(vf,
		      "waits for the SM: only there can GUID %s become a member of its "
		      "partitions%s%s",
		      VHCA_GUID_STR(vf->claim->identity.guid),
		      vf->claim->sm_answer_reason[0] ? ": " : "", vf->claim->sm_answer_reason);
	if (vf->claim->word_until_ms)
		engine_again(e, vf, engine_word_ms(vf->claim));
	return ENGINE_WAIT;
}

/* ---- who has set partitions that only the SM has, and waits for its word ---- */

int engine_await_word(struct vhca_engine *e, struct vhca_claim *c, vhca_waiter_fn fn, void *arg)
{
	int r = engine_add_waiter(c, ENGINE_MEMBERS, fn, arg);

	if (r == 0 && !c->word_until_ms)
		c->word_until_ms = vhca_now_ms() + (e->args.word_ms ? e->args.word_ms : WORD_MS);
	if (r == 0)
		engine_mark(e, c->vf);
	return r;
}

uint64_t engine_word_ms(const struct vhca_claim *c)
{
	uint64_t now = vhca_now_ms();

	if (!c->word_until_ms)
		return UINT64_MAX;
	return now < c->word_until_ms ? c->word_until_ms - now : 0;
}

void engine_tell_word(struct vhca_engine *e, struct vhca_vf *vf)
{
	struct vhca_claim *c = vf->claim;
	struct vhca_error why = VHCA_ERROR_INIT;
	bool is_over;

	if (!c || !c->word_until_ms || engine_is_changing(e, vf, false))
		return;
	is_over = engine_word_ms(c) == 0;
	if (vhca_claim_is_refused(c)) {
		sm_refusal(c, &why);
	} else if (c->sm_answer == VHCA_ANSWER_ACCEPTED) {
		if ((vf->state == VHCA_VF_CLAIMED || vf->reprogram) && !is_over)
			return; /* it is about to show it */
	} else if (c->sm_answer == VHCA_ANSWER_UNREACHABLE || is_over) {
		(void)vhca_error_set(&why, VHCA_ERR_UNAVAILABLE, "sm_silent", 0,
				     "the SM has not put GUID %s into these partitions yet%s%s; it "
				     "is asked until it does",
				     VHCA_GUID_STR(c->identity.guid),
				     c->sm_answer_reason[0] ? ": " : "", c->sm_answer_reason);
		vhca_error_hint(&why, "vhcactl outbox");
	} else {
		return;
	}
	c->word_until_ms = 0;
	if (why.kind)
		engine_refuse(c, ENGINE_MEMBERS, &why);
	else
		engine_tell(e, c, ENGINE_MEMBERS, NULL);
}

/*
 * The SM has named an owner, now or when it was asked before: until it has evicted that one, it may
 * show the vGUID.
 */
static bool is_to_be_evicted(const struct vhca_engine *e, const struct vhca_claim *c)
{
	return e->args.fenced &&
	       (c->disputed || c->asked_before || vhca_epoch_begins_generation(c->epoch)) &&
	       (c->sm_answer == VHCA_ANSWER_NONE || c->sm_answer == VHCA_ANSWER_UNREACHABLE);
}

uint64_t engine_patience_ms(const struct vhca_engine *e, const struct vhca_claim *c)
{
	uint64_t limit = 2ULL * e->conf->sm_timeout_ms, waited = vhca_now_ms() - c->sm_answer_ms;

	return waited < limit ? limit - waited : 0;
}

/*
 * May the VF be programmed now? Membership comes first, but an SM that cannot be asked blocks
 * nobody: a key that the port lacks stays `none` in the map, which is safe, and is mapped when it
 * comes.
 */
enum engine_membership engine_membership(struct vhca_engine *e, struct vhca_vf *vf)
{
	struct vhca_claim *c = vf->claim;
	uint64_t waited = vhca_now_ms() - c->sm_answer_ms;
	uint16_t pkey = 0;
	bool on_port;

	if (!vhca_hca_identity(vf->hca)->host_pkey_map)
		return membership_at_sm(e, vf);
	if (is_to_be_evicted(e, c)) {
		engine_reason(vf, "waits for the SM: GUID %s %s", VHCA_GUID_STR(c->identity.guid),
			      c->disputed	? "was another host's when it was asked last"
			      : c->asked_before ? "was asked for when the agent was restarted, and "
						  "may be another host's"
						: "is taken over from another host");
		return ENGINE_WAIT;
	}
	on_port = keys_on_port(vf, &pkey);
	/* An SM that fences is asked first in any case: the vGUID may have another owner. */
	if (on_port && (!e->args.fenced || c->sm_answer == VHCA_ANSWER_ACCEPTED))
		return ENGINE_MEMBER;
	if (!on_port && e->conf->sm_pkeys == VHCA_SM_PKEYS_STATIC)
		return refuse(c, pkey, "keys are static",
			      "add the port to the partition at the SM");
	switch (c->sm_answer) {
	case VHCA_ANSWER_SUPERSEDED: /* whether the key is there or not */
		return refused_by_sm(c);
	case VHCA_ANSWER_REFUSED:
		return on_port ? refused_by_sm(c)
			       : refuse(c, pkey, c->sm_answer_reason,
					"see the partition policy of the SM");
	case VHCA_ANSWER_UNREACHABLE:
		return on_port ? ENGINE_MEMBER : unreachable_sm(e, vf, pkey);
	case VHCA_ANSWER_NONE:
		if (engine_patience_ms(e, c) == 0)
			return on_port ? ENGINE_MEMBER : unreachable_sm(e, vf, pkey);
		engine_again(e, vf, engine_patience_ms(e, c));
		engine_reason(vf, "waits for the SM's answer");
		return ENGINE_WAIT;
	case VHCA_ANSWER_ACCEPTED:
		if (waited >= e->conf->pkey_timeout_ms)
			return refuse(c, pkey, "the SM accepted it but never sent it",
				      "look at the SM's log and at its partition configuration");
		engine_again(e, vf, e->conf->pkey_timeout_ms - waited);
		break;
	}
	engine_reason(vf, "waits for P_Key %s in the port's table", VHCA_PKEY_STR(pkey));
	return ENGINE_WAIT;
}
