/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/explain/fabric.h"

#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"

/*
 * Words of the kernel's phys_state (drivers/infiniband/core/sysfs.c: phys_state_to_str), and what
 * follows from each.
 */
static const struct {
	const char *word, *fix;
} down[] = {
	[0] = {"no state", "reseat the cable; look at the other end with iblinkinfo"},
	[1] = {"Sleep", "enable the other end: ibportstate SWITCH_LID PORT enable"},
	[2] = {"Polling", "plug the cable in, or enable the other end: ibportstate SWITCH_LID PORT "
			  "enable (iblinkinfo finds it)"},
	[3] = {"Disabled", "enable it: ibportstate -D 0 PORT enable"},
	[4] = {"PortConfigurationTraining", "if it stays so: other cable, other switch port"},
	[6] = {"LinkErrorRecovery", "replace the cable; ibqueryerrors says how bad it is"},
};

/*
 * Only a virtual port is Down with this LID: the VF's behind an SM of this kind, or a PF that is a
 * vport itself.
 */
static void say_no_vports(struct vhca_finding *f, const char *what)
{
	explain_say(f, VHCA_FINDING_WRONG,
		    "%s: the subnet manager has no virtualization support and leaves ports of "
		    "ConnectX-4 "
		    "and later VFs Down, with LID 65535",
		    what);
	explain_fix(f, "let UFM or NVIDIA's OpenSM (virt_enabled 2) manage the subnet; stock "
		       "OpenSM serves "
		       "VFs of mlx4 only");
}

void explain_port(const struct explain_look *l, struct vhca_finding *f)
{
	const struct vhca_port_state *p = l->port;

	if (p->port == 0) {
		explain_say(f, VHCA_FINDING_UNKNOWN, "port %u of the adapter has not been read yet",
			    l->hca->port);
		explain_fix(f, "journalctl -u vhcad | grep %s (libibverbs, /dev/infiniband)",
			    VHCA_BDF_STR(l->hca->facts.bdf));
	} else if (!p->is_ib) {
		explain_say(f, VHCA_FINDING_WRONG, "port %u of the adapter is Ethernet", p->port);
		explain_fix(
			f,
			"mstconfig -d %s set LINK_TYPE_P%u=1, then reboot; or port = in [hca %s]",
			VHCA_BDF_STR(l->hca->facts.bdf), p->port, VHCA_BDF_STR(l->hca->facts.bdf));
	} else if (p->state == VHCA_PORT_DOWN && p->lid == VHCA_LID_PERMISSIVE &&
		   !explain_is_mlx4(l)) {
		say_no_vports(f, "the host's own port is a virtual one that is Down");
	} else if (p->state <= 1) {
		unsigned int phys = p->phys_state;
		bool known = phys < VHCA_ARRAY_SIZE(down) && down[phys].word;

		explain_say(f, VHCA_FINDING_WRONG,
			    "port %u of the adapter %s is DOWN (%s), so no VF of it can be up",
			    p->port, VHCA_BDF_STR(l->hca->facts.bdf),
			    known ? down[phys].word : "no link");
		explain_fix(f, "%s", known ? down[phys].fix : down[0].fix);
	} else {
		explain_say(f, VHCA_FINDING_OK, "port %u (%s) has a link and is %s", p->port,
			    VHCA_GUID_STR(p->port_guid), vhca_port_state_to_string(p->state));
	}
}

/* The port as the SM left it. True: nothing to say against it. */
static bool sm_serves_port(const struct explain_look *l, struct vhca_finding *f)
{
	const struct vhca_port_state *p = l->port;

	if (p->port == 0 || p->state <= 1) {
		explain_say(f, VHCA_FINDING_UNKNOWN,
			    "no subnet manager reaches a port without a link");
		return false;
	}
	if (p->state != 4 || p->lid == 0 || p->lid == 0xffff || p->sm_lid == 0) {
		explain_say(
			f, VHCA_FINDING_WRONG,
			"no subnet manager has made the port ACTIVE (it is %s, LID %u, SM LID %u)",
			vhca_port_state_to_string(p->state), p->lid, p->sm_lid);
		explain_fix(
			f, "sminfo; start the subnet manager (systemctl start opensm on its host)");
		return false;
	}
	return true;
}

/* What it said to the report of the VF's address. */
static bool sm_takes_report(const struct explain_look *l, struct vhca_finding *f)
{
	char hint[VHCA_REFUSAL_HINT_MAX];

	if (l->claim && vhca_claim_is_refused(l->claim)) {
		explain_say(f, VHCA_FINDING_WRONG, "the subnet manager refuses GUID %s here: %s",
			    VHCA_GUID_STR(l->claim->identity.guid), l->claim->sm_answer_reason);
		vhca_claim_refusal_hint(l->claim, hint);
		explain_fix(f, "%s", hint);
		return false;
	}
	if (l->claim && l->claim->sm_code &&
	    strcmp(l->claim->sm_code, VHCA_CODE_TICKET_NOT_VALID) == 0) {
		explain_say(f, VHCA_FINDING_WARNING,
			    "the subnet manager does not believe the ticket by which GUID %s is "
			    "here, and is shown it again and again: %s",
			    VHCA_GUID_STR(l->claim->identity.guid), l->claim->sm_answer_reason);
		explain_fix(f,
			    "tls_ca of vhcasm.conf has to vouch for the certificate that the "
			    "source had; else, on OpenSM's host: vhcasmctl owner %s %s",
			    VHCA_GUID_STR(l->claim->identity.guid),
			    VHCA_GUID_STR(l->port->port_guid));
		return false;
	}
	if (l->claim && l->claim->awaited_signer[0] && l->claim->sm_code) {
		explain_say(f, VHCA_FINDING_WARNING,
			    "the source of the migration was silent when its guest came, and the "
			    "subnet manager waits for its ticket for GUID %s: %s",
			    VHCA_GUID_STR(l->claim->identity.guid), l->claim->sm_answer_reason);
		explain_fix(f,
			    "start vhcad on the source; if that is dead and fenced, on OpenSM's "
			    "host: vhcasmctl owner %s %s",
			    VHCA_GUID_STR(l->claim->identity.guid),
			    VHCA_GUID_STR(l->port->port_guid));
		return false;
	}
	if (l->ex->sm->sends && !l->ex->sm_reachable) {
		explain_say(f, VHCA_FINDING_WARNING,
			    "the subnet manager's API does not answer: what it must know waits");
		explain_fix(
			f, "vhcactl outbox; is OpenSM with libvhcasm.so up where [sm] url points?");
		return false;
	}
	return true;
}

static void say_not_granted(const struct explain_look *l, struct vhca_finding *f)
{
	if (!explain_is_mlx4(l) && l->ex->sm->no_vports && !vhca_conf_shows_vports(l->ex->conf)) {
		say_no_vports(f, "the VF's port cannot come up");
		return;
	}
	explain_say(f, VHCA_FINDING_WARNING,
		    "the subnet manager (LID %u) has not granted GUID %s at this port: the guest's "
		    "driver "
		    "is not up, or the subnet manager %s",
		    l->port->sm_lid, VHCA_GUID_STR(l->claim->identity.guid),
		    explain_is_mlx4(l) ? "declines the GUID" : "has no virtualization support");
	if (explain_is_mlx4(l))
		explain_fix(f, "in the guest: ibstat; at the subnet manager: grep ERR "
			       "/var/log/opensm.log");
	else
		explain_fix(f, "in the guest: ibstat (LID 65535 = the subnet manager needs "
			       "virt_enabled 2)");
}

/* Its guest works: who has resolved it before, asks the subnet manager again. */
static void say_lid_stays(const struct explain_look *l, struct vhca_finding *f)
{
	uint16_t lid = l->claim->stayed_lid;

	explain_say(f, VHCA_FINDING_WARNING,
		    "the LID of the guest's last host stays there, it has LID %u now: %s",
		    l->port->lid, l->claim->lid_reason);
	if (lid)
		explain_fix(f,
			    "nothing, if its peers have found it again; else, on OpenSM's host: "
			    "vhcasmctl move %u %s",
			    lid, VHCA_GUID_STR(l->port->port_guid));
	else
		explain_fix(f, "nothing, if its peers have found it again; else have them connect "
			       "anew");
}

void explain_sm(const struct explain_look *l, struct vhca_finding *f)
{
	if (!sm_serves_port(l, f) || !sm_takes_report(l, f))
		return;
	if (l->claim && l->vf->state == VHCA_VF_ATTACHED && !l->vf->granted)
		say_not_granted(l, f);
	else if (l->claim && l->claim->lid_reason[0])
		say_lid_stays(l, f);
	else
		explain_say(f, VHCA_FINDING_OK,
			    "the subnet manager at LID %u serves the port (LID %u)%s",
			    l->port->sm_lid, l->port->lid,
			    l->claim && l->vf->granted ? " and has granted the GUID" : "");
}

/* ---- partitions ---- */

static void say_not_member(const struct explain_look *l, uint16_t pkey, struct vhca_finding *f)
{
	static const char *const told[] = {
		[VHCA_ANSWER_NONE] = "was not asked yet",
		[VHCA_ANSWER_ACCEPTED] = "accepted it and has not sent it",
		[VHCA_ANSWER_UNREACHABLE] = "does not answer",
		[VHCA_ANSWER_REFUSED] = "refused it",
		[VHCA_ANSWER_SUPERSEDED] = "knows a later owner of its GUID",
	};
	const char *port = VHCA_GUID_STR(l->port->port_guid);
	bool by_hand = l->ex->conf->sm_pkeys == VHCA_SM_PKEYS_STATIC || !l->ex->sm->members;

	explain_say(f, VHCA_FINDING_WRONG, "the host's port %s is not in partition %s%s%s", port,
		    VHCA_PKEY_STR(pkey), by_hand ? "" : ": the subnet manager ",
		    by_hand ? "" : told[l->claim->sm_answer]);
	if (by_hand)
		explain_fix(f,
			    "add %s=%s to partition 0x%04x in the subnet manager's "
			    "partitions.conf, and "
			    "have it read (kill -HUP)",
			    port, vhca_pkey_is_full(pkey) ? "full" : "limited",
			    vhca_pkey_base(pkey));
	else if (l->claim->sm_answer == VHCA_ANSWER_ACCEPTED)
		explain_fix(f, "look into the subnet manager's log; saquery PKTR %u", l->port->lid);
	else
		explain_fix(f, "vhcactl outbox; vhcactl claims");
}

/* Partitions of the GUID itself: only what the subnet manager answered is known. */
static void check_partition_at_sm(const struct explain_look *l, struct vhca_finding *f)
{
	const char *guid = VHCA_GUID_STR(l->claim->identity.guid);

	if (!l->ex->sm->sends) {
		explain_say(f, VHCA_FINDING_UNKNOWN,
			    "the subnet manager keeps the P_Keys of mlx5 VFs, by GUID %s; the host "
			    "does "
			    "not see them",
			    guid);
		explain_fix(f, "in the guest: cat /sys/class/infiniband/*/ports/1/pkeys/*");
	} else if (l->claim->sm_answer == VHCA_ANSWER_ACCEPTED) {
		explain_say(f, VHCA_FINDING_OK,
			    "the subnet manager has accepted the partitions of GUID %s", guid);
	} else {
		explain_say(f, VHCA_FINDING_WARNING,
			    "the subnet manager has not put GUID %s into its partitions yet%s%s",
			    guid, l->claim->sm_answer_reason[0] ? ": " : "",
			    l->claim->sm_answer_reason);
		explain_fix(f, "vhcactl outbox; vhcactl claims");
	}
}

void explain_partition(const struct explain_look *l, struct vhca_finding *f)
{
	const struct vhca_identity *id = l->claim ? &l->claim->identity : NULL;

	if (!id) {
		explain_say(f, VHCA_FINDING_OK, "no claim asks for a partition");
	} else if (id->n_pkeys == 0) {
		explain_say(f, VHCA_FINDING_WARNING,
			    "the VF was claimed without a partition: its guest %s",
			    explain_is_mlx4(l) ? "sees no P_Key"
			    : l->vf->hw.policy == VHCA_LINK_DOWN
				    ? "gets no link before it has one"
				    : "has what the subnet manager gives to every port");
		explain_fix(f, "end the claim and make it with a partition; a cloud's port: PUT "
			       "/v1/fabrics/FABRIC/ports/MAC/partitions");
	} else if (!explain_is_mlx4(l)) {
		check_partition_at_sm(l, f);
	} else if (l->port->port == 0) {
		explain_say(f, VHCA_FINDING_UNKNOWN,
			    "the port's P_Key table has not been read yet");
	} else {
		for (unsigned int i = 0; i < id->n_pkeys; i++) {
			if (vhca_pkey_find(l->port->pkeys, l->port->n_pkeys, id->pkeys[i]) >= 0)
				continue;
			say_not_member(l, id->pkeys[i], f);
			return;
		}
		explain_say(f, VHCA_FINDING_OK, "the host's port is in %s",
			    id->n_pkeys == 1 ? "the partition that is asked for"
					     : "all partitions that are asked for");
	}
}

static void say_difference(const struct explain_look *l, unsigned int i, struct vhca_finding *f)
{
	const struct vhca_identity_state *hw = &l->vf->hw;
	const struct vhca_identity *id = &l->claim->identity;
	bool lacks = hw->map[i] == VHCA_PKEY_UNMAPPED;

	/* A key that is none is safe, and comes by itself with the partition. */
	explain_say(f, lacks ? VHCA_FINDING_WARNING : VHCA_FINDING_WRONG,
		    "the guest's P_Key index %u shows %s instead of %s", i,
		    lacks ? "none" : VHCA_PKEY_STR(hw->value[i]),
		    i < id->n_pkeys ? VHCA_PKEY_STR(id->pkeys[i]) : "none");
	explain_fix(f, "vhcad writes it by itself as soon as the port has the key; vhcactl watch");
}

static void check_claimed_table(const struct explain_look *l, struct vhca_finding *f)
{
	const struct vhca_identity *id = &l->claim->identity;
	int i = vhca_identity_difference(&l->vf->hw, id);

	if (i >= 0) {
		say_difference(l, (unsigned int)i, f);
	} else if (id->n_pkeys && !vhca_pkey_is_full(id->pkeys[0])) {
		explain_say(
			f, VHCA_FINDING_WARNING,
			"the guest's P_Key index 0 is a limited member (%s): IPoIB on the parent "
			"interface needs a full one",
			VHCA_PKEY_STR(id->pkeys[0]));
		explain_fix(f,
			    "put a full member first in partition=\"...\" of the domain's request");
	} else {
		explain_say(f, VHCA_FINDING_OK, "the guest's P_Key table shows what was asked for");
	}
}

void explain_table(const struct explain_look *l, struct vhca_finding *f)
{
	static const struct vhca_identity nothing = {.guid = VHCA_GUID_ALL1};
	bool withheld =
		l->claim && (vhca_claim_is_withheld(l->claim) || l->vf->state == VHCA_VF_FREE ||
			     l->vf->state == VHCA_VF_CLAIMED);

	if (!explain_is_mlx4(l))
		explain_say(
			f, VHCA_FINDING_OK,
			"mlx5 has no map in the host: the subnet manager fills the VF's own table");
	else if (!l->vf->hw_known)
		explain_say(f, VHCA_FINDING_UNKNOWN, "the VF's P_Key map was not read");
	else if (l->claim && !withheld)
		check_claimed_table(l, f);
	else if (vhca_identity_difference(&l->vf->hw, &nothing) < 0)
		explain_say(f, VHCA_FINDING_OK, "the VF shows no P_Key");
	else {
		explain_say(f, l->user ? VHCA_FINDING_OK : VHCA_FINDING_WARNING,
			    "the VF shows P_Keys that vhcad did not give it");
		if (!l->user)
			explain_fix(f,
				    "vhcactl vfs says what it waits for; nobody gets it as it is");
	}
}
