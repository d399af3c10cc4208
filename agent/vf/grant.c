/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether the SM has granted a VF its GUID, or has taken it back: when its hardware is read for
 * that, what is said meanwhile, and when the SM is asked again.
 */
#include <string.h>

#include "agent/vf/report.h"
#include "agent/vf/step.h"
#include "agent/vf/transition.h"
#include "agent/vf/work.h"
#include "common/base/file.h"

/*
 * Where the host does not see the grant: all that it can know. What was granted is not doubted
 * while the SM is away.
 */
static bool is_granted(const struct vhca_engine *e, const struct vhca_vf *vf)
{
	const struct vhca_port_state *port = &vf->hca->ports[vf->hca->port - 1];

	if (vf->hw.granted != vf->claim->identity.guid)
		return false;
	if (vhca_hca_identity(vf->hca)->sees_grant)
		return true;
	return port->state == VHCA_PORT_ACTIVE && !e->args.no_vports &&
	       (vf->claim->sm_answer == VHCA_ANSWER_ACCEPTED ||
		(vf->granted && !vhca_claim_is_refused(vf->claim)));
}

/*
 * The guest's driver may have let it go, or the SM has taken it away for another host, of which
 * nothing but this may ever get here: the SM is asked.
 */
static bool is_doubtful(const struct vhca_engine *e, const struct vhca_vf *vf)
{
	const struct vhca_claim *c = vf->claim;

	return e->args.fenced && !vf->granted && vf->state == VHCA_VF_ATTACHED &&
	       vhca_hca_identity(vf->hca)->sees_grant && !c->migrating &&
	       !vhca_claim_is_withheld(c) && !vhca_claim_is_ending(c) &&
	       !vhca_claim_is_refused(c) &&
	       vf->hca->ports[vf->hca->port - 1].state == VHCA_PORT_ACTIVE;
}

void engine_update_grant(struct vhca_engine *e, struct vhca_vf *vf)
{
	bool granted = is_granted(e, vf);
	struct vhca_claim *c = vf->claim;

	if (granted == vf->granted || vf->state == VHCA_VF_DETACHING)
		return;
	vf->granted = granted;
	e->model.counters.grants += granted;
	e->model.counters.grants_lost += !granted;
	if (granted)
		c->granted_us = vhca_now_us();
	vhca_events_add_claim(e->args.events, "grant", c, "%s %s on %s",
			      VHCA_GUID_STR(c->identity.guid),
			      granted ? "granted" : "no longer granted", VHCA_BDF_STR(vf->bdf));
	c->ownership_unconfirmed = is_doubtful(e, vf);
	if (!c->ownership_unconfirmed) {
		engine_save(e, vf);
		return;
	}
	engine_forget_answer(c);
	engine_save_and_report(e, vf);
}

/* Reading attached VFs costs some 250 small reads each: the period grows with their number. */
uint64_t engine_look_period(struct vhca_engine *e, struct vhca_vf *vf)
{
	uint64_t since = vhca_wall_ms() - vf->since_ms;
	unsigned int attached = 0;
	struct vhca_vf *other;

	if (vf->state == VHCA_VF_FREE)
		return vf->hw.granted ? KICK_AFTER_MS : FREE_LOOK_MS;
	/* A grant is waited for: often at first, then in step with how long it has taken. */
	if (!vf->granted && since < 8ULL * e->conf->poll_ms)
		return since / 8 > GRANT_FIRST_MS ? since / 8 : GRANT_FIRST_MS;
	TAILQ_FOREACH (other, &vf->hca->vfs, link)
		attached += other->state == VHCA_VF_ATTACHED;
	return e->conf->poll_ms * (1 + attached / 16);
}

void engine_look_again(struct vhca_engine *e, struct vhca_vf *vf)
{
	uint64_t now = vhca_now_ms(), word_ms = vf->claim ? engine_word_ms(vf->claim) : UINT64_MAX;

	if (now >= vf->look_ms)
		engine_start(e, vf, VHCA_EFFECT_READ);
	else
		engine_again(e, vf, vf->look_ms - now < word_ms ? vf->look_ms - now : word_ms);
}

/* The SM is asked again, now and then. */
static bool kick(struct vhca_engine *e, struct vhca_vf *vf)
{
	uint64_t now = vhca_now_ms();

	if (vhca_wall_ms() - vf->since_ms <= KICK_AFTER_MS || now - vf->kicked_ms <= KICK_AFTER_MS)
		return false;
	vf->kicked_ms = now;
	engine_start(e, vf, VHCA_EFFECT_REREQUEST_GUID);
	return true;
}

void engine_rest_free(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (vf->hw.granted)
		engine_reason(vf, "the SM has not taken GUID %s back yet",
			      VHCA_GUID_STR(vf->hw.granted));
	else
		engine_no_reason(vf);
	if (!vf->hw.granted || !kick(e, vf))
		engine_look_again(e, vf);
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

void engine_await_grant(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_port_state *port = &vf->hca->ports[vf->hca->port - 1];
	const struct vhca_claim *c = vf->claim;

	if (vf->granted) {
		engine_no_reason(vf);
	} else if (vhca_claim_is_withheld(c)) {
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
	} else if (vf->hw_known && vf->hw.sm_pkeys && vf->hw.policy == VHCA_LINK_DOWN &&
		   vhca_claim_shows(vf->claim).n_pkeys == 0) {
		engine_reason(vf, "its link is down until the SM has it in a partition%s",
			      vf->claim->identity.n_pkeys ? "" : ", and it is to be in none");
	} else if (!vhca_hca_identity(vf->hca)->sees_grant) {
		engine_reason(vf,
			      "not granted yet: the SM has not accepted the report of its GUID");
	} else if (c->ownership_unconfirmed &&
		   (c->sm_answer == VHCA_ANSWER_UNREACHABLE || engine_patience_ms(e, c) == 0)) {
		static const char why[] =
			"no longer granted, and the SM does not say whether it is still this "
			"host's: another one may have taken it over; it is not asked for again "
			"before";

		if (strcmp(vf->reason, why) != 0)
			engine_alarm(e, vf, why);
	} else {
		engine_reason(vf, "not granted yet: the SM has not confirmed the GUID (no SM, or "
				  "the guest's driver is not up)");
		/*
		 * The SM takes a request for an address that nobody shows just now, though its
		 * owner is another host: only who is known to own it asks.
		 */
		if ((!e->args.fenced || vf->claim->sm_answer == VHCA_ANSWER_ACCEPTED) &&
		    kick(e, vf))
			return;
	}
	engine_look_again(e, vf);
}
