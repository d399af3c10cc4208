/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One step function per VF state: looks at the level of things, makes at most one move or starts at
 * most one effect.
 */
#include <stdio.h>
#include <string.h>

#include "agent/vf/engine_int.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "pkey/guid.h"

static bool used_by_own_domain(struct vhca_engine *e, const struct vhca_vf *vf)
{
	const struct vhca_domain *user = vhca_model_user(&e->model, vf->bdf, NULL);

	return user && vf->claim && vhca_uuid_equal(&user->info->uuid, &vf->claim->domain);
}

static void step_unmanaged(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_domain *user = vhca_model_user(&e->model, vf->bdf, NULL);

	if (engine_adopt_step(e, vf) || !vhca_hca_gives_vfs(vf->hca))
		return;
	if (!vhca_engine_manages(e, vf)) {
		engine_reason(vf, "left out by the configuration (exclude)");
		return;
	}
	if (user) {
		engine_reason(vf, "in use by domain %s without a claim; nothing of it is touched",
			      user->info->name);
		vf->probed = false;
		return;
	}
	if (!vf->probed) {
		engine_start(e, vf, VHCA_EFFECT_PROBE);
		return;
	}
	if (vf->in_use) {
		vf->probed = false;
		engine_again(e, vf, PROBE_AGAIN_MS);
		return;
	}
	engine_no_reason(vf);
	engine_move(e, vf, VHCA_VF_PREPARING);
}

static void step_preparing(struct vhca_engine *e, struct vhca_vf *vf)
{
	engine_start(e, vf, VHCA_EFFECT_PREPARE);
}

static void look_again(struct vhca_engine *e, struct vhca_vf *vf)
{
	uint64_t now = vhca_now_ms();

	if (now >= vf->look_ms)
		engine_start(e, vf, VHCA_EFFECT_READ);
	else
		engine_again(e, vf, vf->look_ms - now);
}

/* The SM is asked again, now and then. */
static bool kick(struct vhca_engine *e, struct vhca_vf *vf)
{
	uint64_t now = vhca_now_ms();

	if (vhca_wall_ms() - vf->since_ms <= KICK_AFTER_MS || now - vf->kicked_ms <= KICK_AFTER_MS)
		return false;
	vf->kicked_ms = now;
	engine_start(e, vf, VHCA_EFFECT_KICK);
	return true;
}

static void rest_free(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (vf->hw.granted)
		engine_reason(vf, "the SM has not taken GUID %s back yet",
			      VHCA_GUID_STR(vf->hw.granted));
	else
		engine_no_reason(vf);
	if (!vf->hw.granted || !kick(e, vf))
		look_again(e, vf);
}

static void step_free(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_domain *user = vhca_model_user(&e->model, vf->bdf, NULL);

	if (vf->claim) {
		engine_move(e, vf, VHCA_VF_CLAIMED);
	} else if (user) {
		engine_reason(vf, "in use by domain %s without a claim", user->info->name);
		engine_move(e, vf, VHCA_VF_UNMANAGED);
	} else if (vhca_vf_rests(vf)) {
		engine_reason(vf, "failed %u times in a row, tried again after %d min; last: %s",
			      vf->failures, VHCA_VF_REST_MIN, vf->fault);
		engine_move(e, vf, VHCA_VF_QUARANTINED);
	} else if (!vhca_engine_manages(e, vf)) {
		engine_reason(vf, "no longer managed (configuration)");
		engine_move(e, vf, VHCA_VF_UNMANAGED);
	} else if (strcmp(vf->driver, "vfio-pci")) {
		engine_reason(vf, "bound to %s instead of vfio-pci",
			      vf->driver[0] ? vf->driver : "no driver");
		engine_move(e, vf, VHCA_VF_PREPARING);
	} else if (vf->reprogram) {
		vf->reprogram = false;
		engine_move(e, vf, VHCA_VF_PREPARING);
	} else {
		rest_free(e, vf);
	}
}

enum membership { MEMBER, WAIT, REFUSED };

static bool keys_on_port(const struct vhca_vf *vf, uint16_t *ret_missing)
{
	const struct vhca_port_state *port = &vf->hca->ports[vf->hca->port - 1];
	const struct vhca_identity *id = &vf->claim->identity;

	for (unsigned int i = 0; i < id->n_pkeys; i++) {
		if (vhca_pkey_find(port->pkeys, port->n_pkeys, id->pkeys[i]) < 0) {
			*ret_missing = id->pkeys[i];
			return false;
		}
	}
	return true;
}

bool vhca_claim_keys_on_port(const struct vhca_claim *claim)
{
	uint16_t missing;

	if (!vhca_hca_identity(claim->vf->hca)->host_pkey_map)
		return true; /* the keys are the vGUID's, not the port's */
	return keys_on_port(claim->vf, &missing);
}

static enum membership refuse(struct vhca_claim *c, uint16_t pkey, const char *why,
			      const char *hint)
{
	vhca_error_set(&c->failure, VHCA_ERR_CONFLICT, "pkey_not_on_port", 0,
		       "P_Key %s is not in the table of the host's port %s: %s",
		       VHCA_PKEY_STR(pkey),
		       VHCA_GUID_STR(c->vf->hca->ports[c->vf->hca->port - 1].port_guid), why);
	vhca_error_hint(&c->failure, "%s", hint);
	return REFUSED;
}

static enum membership refused_by_sm(struct vhca_claim *c)
{
	vhca_error_set(&c->failure, VHCA_ERR_CONFLICT, "sm_refused", 0,
		       "the SM does not give GUID %s to this host: %s",
		       VHCA_GUID_STR(c->identity.guid), c->told_reason);
	if (c->told == VHCA_TOLD_SUPERSEDED)
		vhca_error_hint(&c->failure,
				"if the host that has it is dead and fenced: vhcactl takeover %s "
				"EVIDENCE",
				c->domain_name);
	else
		vhca_error_hint(&c->failure,
				"see where the SM has it: GET /v1/bindings/%s at the SM",
				VHCA_GUID_STR(c->identity.guid));
	return REFUSED;
}

static enum membership unreachable_sm(struct vhca_engine *e, struct vhca_vf *vf, uint16_t pkey)
{
	if (e->conf->sm_require == VHCA_SM_REQUIRE_NOTHING)
		return MEMBER;
	engine_reason(vf, "waits for the SM (sm.require = attach): P_Key %s is not on the port yet",
		      VHCA_PKEY_STR(pkey));
	return WAIT;
}

/*
 * P_Keys that exist only at the SM: without its word the VF is nobody's member (sm.require =
 * attach, forced).
 */
static enum membership membership_at_sm(struct vhca_vf *vf)
{
	switch (vf->claim->told) {
	case VHCA_TOLD_ACCEPTED:
		return MEMBER;
	case VHCA_TOLD_REFUSED:
	case VHCA_TOLD_SUPERSEDED:
		return refused_by_sm(vf->claim);
	case VHCA_TOLD_NOT_YET:
	case VHCA_TOLD_UNREACHABLE:
		break;
	}
	engine_reason(vf,
		      "waits for the SM: only there can GUID %s become a member of its "
		      "partitions%s%s",
		      VHCA_GUID_STR(vf->claim->identity.guid),
		      vf->claim->told_reason[0] ? ": " : "", vf->claim->told_reason);
	return WAIT;
}

/*
 * The SM has named an owner, now or when it was asked before: until it has evicted that one, it may
 * show the vGUID.
 */
static bool is_to_be_evicted(const struct vhca_engine *e, const struct vhca_claim *c)
{
	return e->args.fenced && (c->disputed || vhca_epoch_begins_generation(c->epoch)) &&
	       (c->told == VHCA_TOLD_NOT_YET || c->told == VHCA_TOLD_UNREACHABLE);
}

/* How much longer an SM that has not answered is waited for: twice the request's own time-out. Then
 * something is wrong with the SM, not with us. */
static uint64_t patience_ms(const struct vhca_engine *e, const struct vhca_claim *c)
{
	uint64_t limit = 2ULL * e->conf->sm_timeout_ms, waited = vhca_now_ms() - c->told_ms;

	return waited < limit ? limit - waited : 0;
}

/*
 * May the VF be programmed now? Membership comes first, but an SM that cannot be asked blocks
 * nobody: a key that the port lacks stays `none` in the map, which is safe, and is mapped when it
 * comes.
 */
static enum membership membership(struct vhca_engine *e, struct vhca_vf *vf)
{
	struct vhca_claim *c = vf->claim;
	uint64_t waited = vhca_now_ms() - c->told_ms;
	uint16_t pkey = 0;
	bool on_port;

	if (!vhca_hca_identity(vf->hca)->host_pkey_map)
		return membership_at_sm(vf);
	if (is_to_be_evicted(e, c)) {
		engine_reason(vf, "waits for the SM: GUID %s %s", VHCA_GUID_STR(c->identity.guid),
			      c->disputed ? "was another host's when it was asked last"
					  : "is taken over from another host");
		return WAIT;
	}
	on_port = keys_on_port(vf, &pkey);
	/* An SM that fences is asked first in any case: the vGUID may have another owner. */
	if (on_port && (!e->args.fenced || c->told == VHCA_TOLD_ACCEPTED))
		return MEMBER;
	if (!on_port && e->conf->sm_pkeys == VHCA_SM_PKEYS_STATIC)
		return refuse(c, pkey, "keys are static",
			      "add the port to the partition at the SM");
	switch (c->told) {
	case VHCA_TOLD_SUPERSEDED: /* whether the key is there or not */
		return refused_by_sm(c);
	case VHCA_TOLD_REFUSED:
		return on_port ? refused_by_sm(c)
			       : refuse(c, pkey, c->told_reason,
					"see the partition policy of the SM");
	case VHCA_TOLD_UNREACHABLE:
		return on_port ? MEMBER : unreachable_sm(e, vf, pkey);
	case VHCA_TOLD_NOT_YET:
		if (patience_ms(e, c) == 0)
			return on_port ? MEMBER : unreachable_sm(e, vf, pkey);
		engine_again(e, vf, patience_ms(e, c));
		engine_reason(vf, "waits for the SM's answer");
		return WAIT;
	case VHCA_TOLD_ACCEPTED:
		if (waited >= e->conf->pkey_timeout_ms)
			return refuse(c, pkey, "the SM accepted it but never sent it",
				      "look at the SM's log and at its partition configuration");
		engine_again(e, vf, e->conf->pkey_timeout_ms - waited);
		break;
	}
	engine_reason(vf, "waits for P_Key %s in the port's table", VHCA_PKEY_STR(pkey));
	return WAIT;
}

static void give_up_claim(struct vhca_engine *e, struct vhca_vf *vf)
{
	engine_reason(vf, "%s", vf->claim->failure.msg);
	engine_move(e, vf, VHCA_VF_SCRUBBING);
}

void engine_alarm(struct vhca_engine *e, struct vhca_vf *vf, const char *why)
{
	engine_reason(vf, "%s", why);
	vhca_events_add(e->args.events, "alarm", VHCA_BDF_STR(vf->bdf), "%s", vf->reason);
}

/*
 * Somebody plugged the VF into a domain that its claim is not for. The identity goes at once, under
 * that guest; the claim is over.
 */
static bool seized(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_domain *dom = vhca_model_stranger(&e->model, vf);
	struct vhca_claim *c = vf->claim;

	if (!dom)
		return false;
	c->ending = true;
	vhca_error_set(&c->failure, VHCA_ERR_CONFLICT, "vf_seized", 0,
		       "%s was plugged into domain %s, which it is not claimed for; its identity "
		       "is withdrawn",
		       VHCA_BDF_STR(vf->bdf), dom->info->name);
	vhca_error_hint(&c->failure, "unplug it from %s: virsh detach-device", dom->info->name);
	engine_alarm(e, vf, c->failure.msg);
	engine_tell(e, c, VHCA_VF_QUARANTINED, &c->failure);
	engine_move(e, vf, VHCA_VF_QUARANTINED);
	return true;
}

/*
 * The SM has given the vGUID to another host at a higher epoch (a take-over, or an eviction while
 * this host was cut off): the claim is over. In a migration that is for the migration to judge.
 */
static void note_superseded(struct vhca_engine *e, struct vhca_vf *vf)
{
	struct vhca_claim *c = vf->claim;

	if (c->told != VHCA_TOLD_SUPERSEDED || c->away || c->migrating || c->ending)
		return;
	c->ending = true;
	vhca_error_set(&c->failure, VHCA_ERR_CONFLICT, VHCA_CODE_SUPERSEDED, 0,
		       "another host owns GUID %s now: %s", VHCA_GUID_STR(c->identity.guid),
		       c->told_reason);
	vhca_error_hint(&c->failure, "if domain %s runs twice, stop the copy that is not wanted",
			c->domain_name);
	engine_alarm(e, vf, c->failure.msg);
}

/*
 * A claim that hot-plugs is over when its domain does not run; one that was made for an XML to
 * come, or that a migration brings, is not.
 */
static bool claim_over(struct vhca_engine *e, const struct vhca_claim *c)
{
	if (c->ending || c->failure.kind)
		return true;
	return c->way != VHCA_WAY_CLAIM && !c->migrating && e->virt_synced &&
	       !engine_claim_domain(e, c);
}

/* Everything else hangs on the GUID: the report to the SM, the epoch, the attach. */
static void await_choice(struct vhca_engine *e, struct vhca_vf *vf)
{
	struct vhca_claim *c = vf->claim;

	if (vhca_now_ms() - c->told_ms < e->conf->pkey_timeout_ms) {
		engine_start(e, vf, VHCA_EFFECT_CHOOSE);
		return;
	}
	vhca_error_set(&c->failure, VHCA_ERR_UNAVAILABLE, "no_guid_from_sm", 0,
		       "the SM has chosen no GUID for %s", VHCA_BDF_STR(vf->bdf));
	vhca_error_hint(&c->failure, "is the port ACTIVE, and does the SM assign alias GUIDs? "
				     "guid=\"auto\" needs nobody");
	give_up_claim(e, vf);
}

static void step_claimed(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (seized(e, vf))
		return;
	if (claim_over(e, vf->claim)) {
		give_up_claim(e, vf);
		return;
	}
	if (vhca_guid_is_stand_in(vf->claim->identity.guid)) {
		await_choice(e, vf);
		return;
	}
	if (vf->claim->away) {
		engine_reason(vf, "identity withheld: the VM is on its way");
		if (vf->claim->bare)
			engine_start(e, vf, VHCA_EFFECT_PROGRAM);
		return;
	}
	switch (membership(e, vf)) {
	case MEMBER:
		engine_start(e, vf, VHCA_EFFECT_PROGRAM);
		break;
	case REFUSED:
		give_up_claim(e, vf);
		break;
	case WAIT:
		break;
	}
}

static void note_guest_address(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_dom_hostdev *dev = NULL;

	if (!vhca_model_user(&e->model, vf->bdf, &dev) || !dev->has_guest_addr)
		return;
	vf->claim->has_guest = true;
	vf->claim->guest = dev->guest;
}

/*
 * The SM is asked once more whose the identity of a guest is that runs here and was not seen
 * coming: its answer is waited for, and a no is one.
 */
static bool awaits_owner(struct vhca_engine *e, struct vhca_vf *vf, const struct vhca_domain *dom)
{
	const struct vhca_claim *c = vf->claim;

	if (!c->contested || !e->args.fenced || !dom || dom->incoming)
		return false;
	if (c->told == VHCA_TOLD_SUPERSEDED)
		return true;
	if (c->told != VHCA_TOLD_NOT_YET || patience_ms(e, c) == 0)
		return false;
	engine_again(e, vf, patience_ms(e, c));
	return true;
}

static void step_programmed(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_domain *dom = engine_claim_domain(e, vf->claim);

	if (seized(e, vf))
		return;
	note_superseded(e, vf);
	if (used_by_own_domain(e, vf)) {
		note_guest_address(e, vf);
		engine_no_reason(vf);
		engine_move(e, vf, VHCA_VF_ATTACHED);
	} else if (claim_over(e, vf->claim)) {
		give_up_claim(e, vf);
	} else if (vf->reprogram) {
		/*
		 * Kept for a guest that is on its way: after a restart nobody has confirmed yet
		 * that it is still ours.
		 */
		if (awaits_owner(e, vf, dom))
			engine_reason(vf, "waits for the SM's answer");
		else if (dom || !vf->claim->migrating)
			engine_start(e, vf, VHCA_EFFECT_PROGRAM);
	} else if (vf->claim->way == VHCA_WAY_CLAIM) {
		look_again(e, vf); /* it may stand so for long, and the hook vouches for it */
	} else if (dom && !dom->incoming && !engine_awaits_xml(e, vf)) {
		engine_start(e, vf, VHCA_EFFECT_ATTACH);
	}
}

/*
 * A QP keeps the physical index that it was given when it was modified. So once the map of a VF in
 * a guest has led to another key than its own, whoever wrote the map or the table, a QP may talk
 * with that key for ever, whatever the map says later.
 */
void engine_force_off(struct vhca_engine *e, struct vhca_vf *vf, const char *why)
{
	struct vhca_claim *c = vf->claim;

	if (c->forced)
		return;
	engine_alarm(e, vf, why);
	if (e->conf->index_policy != VHCA_INDEX_FORCE_OFF)
		return;
	c->forced = c->ending = true;
	engine_save(e, vf); /* before the map is repaired: a restart would find nothing wrong */
}

static void name_foreign(const struct vhca_vf *vf, char *buf, size_t size)
{
	const struct vhca_identity id = vhca_claim_shows(vf->claim);

	for (unsigned int i = 0; i < vf->hw.n_virtual; i++) {
		if (!vhca_identity_is_foreign(&vf->hw, &id, i))
			continue;
		(void)snprintf(buf, size,
			       "virtual P_Key index %u led to %s at physical index %d of the port "
			       "instead of %s: QPs may keep it",
			       i, VHCA_PKEY_STR(vf->hw.value[i]), vf->hw.map[i],
			       i < id.n_pkeys ? VHCA_PKEY_STR(id.pkeys[i]) : "none");
		return;
	}
	if (vf->hw.other_maps)
		(void)snprintf(
			buf, size,
			"P_Keys were mapped on a port that is not the VF's: QPs may keep them");
}

/* The map is looked at before it is repaired: it may have to be remembered first. A disk that
 * cannot remember it is not waited for: the guest would show a foreign key as long. What is
 * foreign goes at once, from all VFs of the adapter, before one of them gets its keys at their
 * new places. */
bool engine_follow_table(struct vhca_engine *e, struct vhca_vf *vf)
{
	uint64_t now = vhca_now_ms();
	char why[200] = "";

	if (!vf->reprogram)
		return false;
	if (now < vf->host.not_before_ms) {
		engine_again(e, vf, vf->host.not_before_ms - now);
		return false;
	}
	if (!vf->hw_known) {
		engine_start(e, vf, VHCA_EFFECT_READ);
		return true;
	}
	name_foreign(vf, why, sizeof(why));
	if (why[0])
		engine_force_off(e, vf, why);
	if (!vf->committing || e->disk.kind)
		engine_start(e, vf, why[0] ? VHCA_EFFECT_UNMAP : VHCA_EFFECT_PROGRAM);
	return true;
}

/* A vport that the SM does not know of keeps LID 65535; so does a PF that is a vport itself. */
static bool sm_lacks_vports(const struct vhca_engine *e, const struct vhca_vf *vf)
{
	const struct vhca_port_state *port = &vf->hca->ports[vf->hca->port - 1];

	if (vhca_hca_identity(vf->hca)->sees_grant)
		return false;
	return e->args.no_vports ||
	       (port->state == VHCA_PORT_DOWN && port->lid == VHCA_LID_PERMISSIVE);
}

/*
 * The SM takes a request for an address that nobody shows just now, though its owner is another
 * host: only who is known to own it asks.
 */
static bool may_ask_for_grant(const struct vhca_engine *e, const struct vhca_vf *vf)
{
	return !e->args.fenced || vf->claim->told == VHCA_TOLD_ACCEPTED;
}

/* Whose it is, only the SM can say, and it does not answer. */
static bool is_in_doubt(const struct vhca_engine *e, const struct vhca_claim *c)
{
	return c->doubtful && (c->told == VHCA_TOLD_UNREACHABLE || patience_ms(e, c) == 0);
}

static void say_in_doubt(struct vhca_engine *e, struct vhca_vf *vf)
{
	static const char why[] =
		"no longer granted, and the SM does not say whether it is still this host's: "
		"another one may have taken it over; it is not asked for again before";

	if (strcmp(vf->reason, why))
		engine_alarm(e, vf, why);
}

static void await_grant(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_port_state *port = &vf->hca->ports[vf->hca->port - 1];

	if (vf->granted) {
		engine_no_reason(vf);
	} else if (vf->claim->away) {
		engine_reason(vf, "identity withheld: nobody has confirmed that the other host "
				  "gave it up (vhcactl migrations)");
	} else if (sm_lacks_vports(e, vf)) {
		engine_reason(vf,
			      "not granted: this SM has no virtualization support, so the VF's "
			      "port stays Down with LID 65535; ConnectX-4 and later need UFM or "
			      "NVIDIA's OpenSM (virt_enabled 2)");
	} else if (port->state != VHCA_PORT_ACTIVE) {
		engine_reason(vf, "not granted: the host's port is %s, not ACTIVE",
			      vhca_port_state_to_string(port->state));
	} else if (!vhca_hca_identity(vf->hca)->sees_grant) {
		engine_reason(vf,
			      "not granted yet: the SM has not accepted the report of its GUID");
	} else if (is_in_doubt(e, vf->claim)) {
		say_in_doubt(e, vf);
	} else {
		engine_reason(vf, "not granted yet: the SM has not confirmed the GUID (no SM, or "
				  "the guest's driver is not up)");
		if (may_ask_for_grant(e, vf) && kick(e, vf))
			return;
	}
	look_again(e, vf);
}

static bool has_left(struct vhca_engine *e, const struct vhca_vf *vf)
{
	return e->virt_synced && !engine_unreadable(e, vf) &&
	       !vhca_model_user(&e->model, vf->bdf, NULL);
}

/* Its domain asks for it still. */
static bool was_ejected(struct vhca_engine *e, const struct vhca_claim *c)
{
	return !c->ending && !c->leaving && !c->migrating && !c->failure.kind &&
	       c->way == VHCA_WAY_METADATA && engine_claim_domain(e, c);
}

static void note_left(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (engine_gets_it_back(e, vf->claim))
		vhca_events_add(e->args.events, "vf", VHCA_BDF_STR(vf->bdf),
				"left its guest after the unplug was given up; it goes back");
	else if (was_ejected(e, vf->claim))
		engine_request_ejected(e, vf);
}

static void step_attached(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (seized(e, vf))
		return;
	if (has_left(e, vf)) {
		note_left(e, vf);
		engine_no_reason(vf);
		engine_move(e, vf, VHCA_VF_SCRUBBING);
		return;
	}
	if (engine_follow_table(e, vf))
		return;
	note_superseded(e, vf);
	if (vf->claim->ending || vf->claim->leaving) {
		engine_move(e, vf, VHCA_VF_DETACHING);
		return;
	}
	if (!vf->reprogram)
		await_grant(e, vf);
}

/* A guest that does not let go must not keep what leads to another tenant's key. */
static void step_detaching(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (seized(e, vf) || engine_follow_table(e, vf))
		return;
	if (e->virt_synced) {
		engine_detach(e, vf);
		return;
	}
	engine_reason(vf, "waits for libvirt");
	if (!vf->reprogram)
		look_again(e, vf);
}

void engine_begin_scrub(struct vhca_vf *vf)
{
	vf->deadline_ms = vhca_now_ms() + GROUP_CLOSE_MS + engine_memory_ms(vf);
}

static void step_scrubbing(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (seized(e, vf))
		return;
	/*
	 * Invariant 4: never while any live XML has the address. An attach that was under way when
	 * the claim ended has come after all.
	 */
	if (used_by_own_domain(e, vf)) {
		engine_move(e, vf, VHCA_VF_DETACHING);
		return;
	}
	if (!vf->deadline_ms) /* entered in an earlier life of the agent */
		engine_begin_scrub(vf);
	if (!engine_awaits_xml(e, vf))
		engine_start(e, vf, VHCA_EFFECT_SCRUB);
}

static void strip_again(struct vhca_engine *e, struct vhca_vf *vf)
{
	uint64_t now = vhca_now_ms();

	if (now >= vf->look_ms)
		engine_start(e, vf, VHCA_EFFECT_STRIP);
	else
		engine_again(e, vf, vf->look_ms - now);
}

static void step_quarantined(struct vhca_engine *e, struct vhca_vf *vf)
{
	uint64_t now = vhca_now_ms(), until;

	/*
	 * It started again, or somebody plugged it in by hand; what that guest's QPs hold, nobody
	 * knows.
	 */
	if (used_by_own_domain(e, vf)) {
		engine_move(e, vf, VHCA_VF_DETACHING);
		return;
	}
	if (vhca_model_user(&e->model, vf->bdf, NULL)) {
		strip_again(e, vf);
		return;
	}
	if (engine_unreadable(e, vf))
		return;
	/* Not the back-off of effects: a guest that gets the VF meanwhile must not wait for it. */
	if (!vf->deadline_ms)
		vf->deadline_ms = now + vhca_backoff_next(&vf->host.backoff);
	until = vhca_vf_rests(vf) && vf->rests_until_ms > vf->deadline_ms ? vf->rests_until_ms
									  : vf->deadline_ms;
	if (now >= until)
		engine_move(e, vf, VHCA_VF_PREPARING);
	else
		engine_again(e, vf, until - now);
}

static void (*const steps[VHCA_VF_STATE_COUNT])(struct vhca_engine *e, struct vhca_vf *vf) = {
	[VHCA_VF_UNMANAGED] = step_unmanaged,
	[VHCA_VF_PREPARING] = step_preparing,
	[VHCA_VF_FREE] = step_free,
	[VHCA_VF_CLAIMED] = step_claimed,
	[VHCA_VF_PROGRAMMED] = step_programmed,
	[VHCA_VF_ATTACHED] = step_attached,
	[VHCA_VF_DETACHING] = step_detaching,
	[VHCA_VF_SCRUBBING] = step_scrubbing,
	[VHCA_VF_QUARANTINED] = step_quarantined,
};

/* A call at libvirt may take long, or hang: meanwhile no guest shows what is another's. */
static void step_beside(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (vf->state == VHCA_VF_QUARANTINED) {
		if (vhca_model_user(&e->model, vf->bdf, NULL))
			strip_again(e, vf);
	} else if (!seized(e, vf) && !engine_follow_table(e, vf) && !vf->reprogram) {
		look_again(e, vf);
	}
}

void engine_step(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (vf->host.effect != VHCA_EFFECT_NONE)
		return;
	if (vf->committing) {
		if (e->disk.kind)
			engine_guard(e, vf);
		return;
	}
	if (engine_save_the_unsaved(e, vf))
		return;
	if (!engine_settle_place(e, vf))
		return;
	if (vf->claim && vf->claim->orphan) {
		engine_end_orphan(e, vf);
		return;
	}
	if (vf->virt.effect != VHCA_EFFECT_NONE) {
		if (vf->present)
			step_beside(e, vf);
		return;
	}
	if (!vf->present) {
		engine_step_absent(e, vf);
		return;
	}
	steps[vf->state](e, vf);
}
