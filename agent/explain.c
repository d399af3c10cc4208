/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/explain.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"

#define HANGS_MS 5000 /* a healthy write to an adapter takes a second at most (removal of VFs) */

/* One walk. */
struct look {
	const struct vhca_explain *ex;
	const struct vhca_vf *vf;
	const struct vhca_hca *hca;
	const struct vhca_port_state *port; /* port->port == 0: not reported yet */
	const struct vhca_claim *claim;	    /* may be NULL */
	const struct vhca_domain *user;	    /* has the VF in its live XML; may be NULL */
};

const char *vhca_finding_status_to_string(enum vhca_finding_status status)
{
	static const char *const words[] = {"ok", "unknown", "warning", "wrong"};

	return words[status];
}

static void say(struct vhca_finding *f, enum vhca_finding_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void say(struct vhca_finding *f, enum vhca_finding_status status, const char *fmt, ...)
{
	va_list ap;

	f->status = status;
	va_start(ap, fmt);
	(void)vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
}

static void fix(struct vhca_finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void fix(struct vhca_finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(f->fix, sizeof(f->fix), fmt, ap);
	va_end(ap);
}

static bool is_mlx4(const struct look *l)
{
	return l->hca->facts.family == VHCA_FAMILY_MLX4;
}

static const char *reason_of(const struct vhca_vf *vf)
{
	return vf->reason[0] ? vf->reason : "no reason is known";
}

/* ---- the adapter and the function ---- */

/* A count that is not the configured one concerns a VF that exists only indirectly. */
static void check_firmware(const struct look *l, struct vhca_finding *f)
{
	const struct vhca_pf_facts *pf = &l->hca->facts;

	if (!l->hca->present) {
		say(f, VHCA_FINDING_WRONG,
		    "the adapter %s is not there, or not on mlx4_core or mlx5_core",
		    VHCA_BDF_STR(pf->bdf));
		fix(f, "lspci -k -s %s; dmesg | grep %s", VHCA_BDF_STR(pf->bdf),
		    VHCA_BDF_STR(pf->bdf));
	} else if (l->hca->problem[0]) {
		say(f, l->vf->present ? VHCA_FINDING_WARNING : VHCA_FINDING_WRONG, "%s",
		    l->hca->problem);
		fix(f, "%s", l->hca->problem_fix);
	} else if (pf->total_vfs == 0) {
		say(f, VHCA_FINDING_WRONG, "the adapter %s offers no VFs: SR-IOV is off in it",
		    VHCA_BDF_STR(pf->bdf));
		fix(f, "mstconfig -d %s set SRIOV_EN=1 NUM_OF_VFS=8, then reboot",
		    VHCA_BDF_STR(pf->bdf));
	} else {
		say(f, VHCA_FINDING_OK, "the adapter %s (%s) has %u VFs of at most %u",
		    VHCA_BDF_STR(pf->bdf), pf->driver, pf->num_vfs, pf->total_vfs);
	}
}

static void check_pci(const struct look *l, struct vhca_finding *f)
{
	const char *pf = VHCA_BDF_STR(l->hca->facts.bdf);

	if (l->ex->busy_ms > HANGS_MS) {
		say(f, VHCA_FINDING_WRONG,
		    "a job on the adapter %s has been in the kernel for %" PRIu64
		    " s, and everything else that concerns the adapter waits for it",
		    pf, l->ex->busy_ms / 1000);
		fix(f, "find the process that holds a VF which the kernel wants back (fuser -v "
		       "/dev/vfio/*; dmesg | grep 'blocked until released') and let it go");
	} else if (!l->vf->present) {
		say(f, VHCA_FINDING_WRONG, "the kernel does not show the VF now (adapter %s)", pf);
		fix(f, "lspci -s %s; dmesg | grep %s; vhcactl hcas", VHCA_BDF_STR(l->vf->bdf), pf);
	} else {
		say(f, VHCA_FINDING_OK, "it is VF %u of the adapter %s", l->vf->index, pf);
	}
}

static void check_iommu(const struct look *l, struct vhca_finding *f)
{
	const struct vhca_vf *vf = l->vf;

	if (!vf->present) {
		say(f, VHCA_FINDING_UNKNOWN, "the kernel does not show the VF");
	} else if (vf->iommu_group < 0) {
		say(f, VHCA_FINDING_WRONG, "the VF has no IOMMU group: the IOMMU is off");
		fix(f, "turn VT-d or AMD-Vi on in the BIOS, add intel_iommu=on to the kernel "
		       "command line (Intel), reboot");
	} else if (vf->group_size > 1) {
		say(f, VHCA_FINDING_WRONG,
		    "the VF shares IOMMU group %d with %u other devices: a bridge on its path has "
		    "no ACS",
		    vf->iommu_group, vf->group_size - 1U);
		fix(f, "turn ACS on in the BIOS, or move the adapter to a slot of the CPU's own "
		       "root port");
	} else {
		say(f, VHCA_FINDING_OK, "it is alone in IOMMU group %d", vf->iommu_group);
	}
}

static void check_driver(const struct look *l, struct vhca_finding *f)
{
	const struct vhca_vf *vf = l->vf;
	const char *pf = VHCA_BDF_STR(l->hca->facts.bdf);

	if (l->hca->present && !l->hca->facts.ibdev[0]) {
		say(f, VHCA_FINDING_WRONG, "the adapter %s has no RDMA device", pf);
		fix(f, "modprobe %s; dmesg | grep %s", is_mlx4(l) ? "mlx4_ib" : "mlx5_ib", pf);
	} else if (!l->hca->managed) {
		say(f, VHCA_FINDING_WARNING,
		    "vhcad does not manage the adapter %s: it leaves the VF (on %s) alone", pf,
		    vf->driver[0] ? vf->driver : "no driver");
		fix(f, "manage = yes in [hca %s] of vhcad.conf, then systemctl reload vhcad", pf);
	} else if (!vf->present) {
		say(f, VHCA_FINDING_UNKNOWN, "the kernel does not show the VF");
	} else if (strcmp(vf->driver, "vfio-pci") != 0) {
		say(f, VHCA_FINDING_WRONG, "the VF is on %s instead of vfio-pci: %s",
		    vf->driver[0] ? vf->driver : "no driver", reason_of(vf));
		fix(f, "modprobe vfio-pci; vhcad binds it by itself; journalctl -u vhcad | grep %s",
		    VHCA_BDF_STR(vf->bdf));
	} else {
		say(f, VHCA_FINDING_OK, "it is on vfio-pci, and %s is the adapter's RDMA device",
		    l->hca->facts.ibdev);
	}
}

/* ---- the identity, as far as the host writes it ---- */

static const struct vhca_vf *same_request(const struct look *l)
{
	const struct vhca_hca *hca;
	const struct vhca_vf *vf;

	TAILQ_FOREACH (hca, &l->ex->model->hcas, link)
		TAILQ_FOREACH (vf, &hca->vfs, link)
			if (vf != l->vf && vf->present && vf->hw_known &&
			    vf->hw.requested == l->claim->identity.guid)
				return vf;
	return NULL;
}

static void check_unclaimed_guid(const struct look *l, struct vhca_finding *f)
{
	const struct vhca_identity_state *hw = &l->vf->hw;

	if (!l->vf->hw_known)
		say(f, VHCA_FINDING_UNKNOWN,
		    "its GUID was not read: no claim of vhcad stands for it");
	else if (hw->requested == VHCA_GUID_ALL1)
		say(f, VHCA_FINDING_OK, "nobody has it, and it shows nobody's GUID");
	else
		say(f, l->user ? VHCA_FINDING_OK : VHCA_FINDING_WARNING,
		    "it shows GUID %s, which vhcad did not give it", VHCA_GUID_STR(hw->requested));
}

static void check_claimed_guid(const struct look *l, struct vhca_finding *f)
{
	uint64_t guid = l->claim->identity.guid;
	const struct vhca_vf *other = same_request(l);

	if (other) {
		say(f, VHCA_FINDING_WRONG, "%s shows the same GUID %s", VHCA_BDF_STR(other->bdf),
		    VHCA_GUID_STR(guid));
		fix(f, "vhcactl explain %s", VHCA_BDF_STR(other->bdf));
	} else if (!l->vf->hw_known) {
		say(f, VHCA_FINDING_UNKNOWN,
		    "GUID %s is promised; what the VF shows was not read yet", VHCA_GUID_STR(guid));
	} else if (l->vf->hw.requested != guid) {
		say(f, VHCA_FINDING_WRONG, "it shows GUID %s instead of %s: somebody changed it",
		    VHCA_GUID_STR(l->vf->hw.requested), VHCA_GUID_STR(guid));
		fix(f,
		    "vhcad writes it again by itself; stop whoever else writes it (vhcactl watch)");
	} else if (is_mlx4(l)) {
		say(f, VHCA_FINDING_OK, "GUID %s is written, at index %u of the port's GUID table",
		    VHCA_GUID_STR(guid), l->vf->hw.gid_index);
	} else if (l->vf->hw.node_guid != guid) {
		say(f, VHCA_FINDING_WRONG, "its node GUID is %s instead of %s: somebody changed it",
		    VHCA_GUID_STR(l->vf->hw.node_guid), VHCA_GUID_STR(guid));
		fix(f,
		    "vhcad writes it again by itself; stop whoever else writes it (vhcactl watch)");
	} else {
		say(f, VHCA_FINDING_OK, "GUID %s is written, as node and port GUID",
		    VHCA_GUID_STR(guid));
	}
}

static void check_guid(const struct look *l, struct vhca_finding *f)
{
	if (!l->claim) {
		check_unclaimed_guid(l, f);
	} else if (l->claim->away) {
		say(f, VHCA_FINDING_WARNING,
		    "GUID %s is withheld: the VM is on its way to or from another host",
		    VHCA_GUID_STR(l->claim->identity.guid));
		fix(f, "vhcactl migrations");
	} else if (l->vf->state == VHCA_VF_FREE || l->vf->state == VHCA_VF_CLAIMED) {
		say(f, VHCA_FINDING_WARNING, "GUID %s is promised and not written yet: %s",
		    VHCA_GUID_STR(l->claim->identity.guid), reason_of(l->vf));
	} else {
		check_claimed_guid(l, f);
	}
}

static void check_link_policy(const struct look *l, struct vhca_finding *f)
{
	bool down = l->vf->hw.policy == VHCA_LINK_DOWN;
	bool given = l->vf->state == VHCA_VF_PROGRAMMED || l->vf->state == VHCA_VF_ATTACHED ||
		     l->vf->state == VHCA_VF_DETACHING;

	if (is_mlx4(l)) {
		say(f, VHCA_FINDING_OK,
		    "mlx4 has none: the VF's port follows the host's once its GUID is granted");
	} else if (!l->vf->hw_known) {
		say(f, VHCA_FINDING_UNKNOWN, "the VF's link policy was not read");
	} else if (l->claim && given && down) {
		say(f, VHCA_FINDING_WRONG, "the VF's link is taken down: somebody changed it");
		fix(f, "vhcad raises it again by itself; stop whoever else does that (vhcactl "
		       "watch)");
	} else if (!l->claim && !l->user && !down) {
		say(f, VHCA_FINDING_WARNING,
		    "the VF's link policy is %s, although nobody has the VF",
		    vhca_link_policy_to_string(l->vf->hw.policy));
	} else {
		say(f, VHCA_FINDING_OK, "the VF's link policy is %s",
		    vhca_link_policy_to_string(l->vf->hw.policy));
	}
}

/* ---- the fabric ---- */

/* Words of the kernel's phys_state (drivers/infiniband/core/sysfs.c: phys_state_to_str), and what follows from each. */
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

static void say_down(const struct look *l, struct vhca_finding *f)
{
	unsigned int phys = l->port->phys_state;
	bool known = phys < VHCA_ARRAY_SIZE(down) && down[phys].word;

	say(f, VHCA_FINDING_WRONG,
	    "port %u of the adapter %s is DOWN (%s), so no VF of it can be up", l->port->port,
	    VHCA_BDF_STR(l->hca->facts.bdf), known ? down[phys].word : "no link");
	fix(f, "%s", known ? down[phys].fix : down[0].fix);
}

/* Only a virtual port is Down with this LID: the VF's behind an SM of this kind, or a PF that is a vport itself. */
static void say_no_vports(struct vhca_finding *f, const char *what)
{
	say(f, VHCA_FINDING_WRONG,
	    "%s: the subnet manager has no virtualization support and leaves ports of ConnectX-4 "
	    "and later VFs Down, with LID 65535",
	    what);
	fix(f, "let UFM or NVIDIA's OpenSM (virt_enabled 2) manage the subnet; stock OpenSM serves "
	       "VFs of mlx4 only");
}

static void check_port(const struct look *l, struct vhca_finding *f)
{
	const struct vhca_port_state *p = l->port;

	if (p->port == 0) {
		say(f, VHCA_FINDING_UNKNOWN, "port %u of the adapter has not been read yet",
		    l->hca->port);
		fix(f, "journalctl -u vhcad | grep %s (libibverbs, /dev/infiniband)",
		    VHCA_BDF_STR(l->hca->facts.bdf));
	} else if (!p->is_ib) {
		say(f, VHCA_FINDING_WRONG, "port %u of the adapter is Ethernet", p->port);
		fix(f, "mstconfig -d %s set LINK_TYPE_P%u=1, then reboot; or port = in [hca %s]",
		    VHCA_BDF_STR(l->hca->facts.bdf), p->port, VHCA_BDF_STR(l->hca->facts.bdf));
	} else if (p->state == VHCA_PORT_DOWN && p->lid == VHCA_LID_PERMISSIVE && !is_mlx4(l)) {
		say_no_vports(f, "the host's own port is a virtual one that is Down");
	} else if (p->state <= 1) {
		say_down(l, f);
	} else {
		say(f, VHCA_FINDING_OK, "port %u (%s) has a link and is %s", p->port,
		    VHCA_GUID_STR(p->port_guid), vhca_port_state_to_string(p->state));
	}
}

/* The port as the SM left it. True: nothing to say against it. */
static bool sm_serves_port(const struct look *l, struct vhca_finding *f)
{
	const struct vhca_port_state *p = l->port;

	if (p->port == 0 || p->state <= 1) {
		say(f, VHCA_FINDING_UNKNOWN, "no subnet manager reaches a port without a link");
		return false;
	}
	if (p->state != 4 || p->lid == 0 || p->lid == 0xffff || p->sm_lid == 0) {
		say(f, VHCA_FINDING_WRONG,
		    "no subnet manager has made the port ACTIVE (it is %s, LID %u, SM LID %u)",
		    vhca_port_state_to_string(p->state), p->lid, p->sm_lid);
		fix(f, "sminfo; start the subnet manager (systemctl start opensm on its host)");
		return false;
	}
	return true;
}

/* What it said to the report of the VF's address. */
static bool sm_takes_report(const struct look *l, struct vhca_finding *f)
{
	const char *guid = l->claim ? VHCA_GUID_STR(l->claim->identity.guid) : "";

	if (l->claim && vhca_claim_is_refused(l->claim)) {
		say(f, VHCA_FINDING_WRONG, "the subnet manager refuses GUID %s here: %s", guid,
		    l->claim->told_reason);
		fix(f, "see where it has the GUID: GET /v1/bindings/%s at [sm] url", guid);
		return false;
	}
	if (l->ex->sm->sends && !l->ex->sm_reachable) {
		say(f, VHCA_FINDING_WARNING,
		    "the subnet manager's API does not answer: what it must know waits");
		fix(f, "vhcactl outbox; is OpenSM with libvhcasm.so up where [sm] url points?");
		return false;
	}
	return true;
}

static void say_not_granted(const struct look *l, struct vhca_finding *f)
{
	if (!is_mlx4(l) && l->ex->sm->no_vports) {
		say_no_vports(f, "the VF's port cannot come up");
		return;
	}
	say(f, VHCA_FINDING_WARNING,
	    "the subnet manager (LID %u) has not granted GUID %s at this port: the guest's driver "
	    "is not up, or the subnet manager %s",
	    l->port->sm_lid, VHCA_GUID_STR(l->claim->identity.guid),
	    is_mlx4(l) ? "declines the GUID" : "has no virtualization support");
	if (is_mlx4(l))
		fix(f, "in the guest: ibstat; at the subnet manager: grep ERR /var/log/opensm.log");
	else
		fix(f,
		    "in the guest: ibstat (LID 65535 = the subnet manager needs virt_enabled 2)");
}

static void check_sm(const struct look *l, struct vhca_finding *f)
{
	if (!sm_serves_port(l, f) || !sm_takes_report(l, f))
		return;
	if (l->claim && l->vf->state == VHCA_VF_ATTACHED && !l->vf->granted)
		say_not_granted(l, f);
	else
		say(f, VHCA_FINDING_OK, "the subnet manager at LID %u serves the port (LID %u)%s",
		    l->port->sm_lid, l->port->lid,
		    l->claim && l->vf->granted ? " and has granted the GUID" : "");
}

/* ---- partitions ---- */

static void say_not_member(const struct look *l, uint16_t pkey, struct vhca_finding *f)
{
	static const char *const told[] = {
		[VHCA_TOLD_NOT_YET] = "was not asked yet",
		[VHCA_TOLD_ACCEPTED] = "accepted it and has not sent it",
		[VHCA_TOLD_UNREACHABLE] = "does not answer",
		[VHCA_TOLD_REFUSED] = "refused it",
		[VHCA_TOLD_SUPERSEDED] = "knows a later owner of its GUID",
	};
	const char *port = VHCA_GUID_STR(l->port->port_guid);
	bool by_hand = l->ex->conf->sm_pkeys == VHCA_SM_PKEYS_STATIC || !l->ex->sm->members;

	say(f, VHCA_FINDING_WRONG, "the host's port %s is not in partition %s%s%s", port,
	    VHCA_PKEY_STR(pkey), by_hand ? "" : ": the subnet manager ",
	    by_hand ? "" : told[l->claim->told]);
	if (by_hand)
		fix(f,
		    "add %s=%s to partition 0x%04x in the subnet manager's partitions.conf, and "
		    "have it read (kill -HUP)",
		    port, vhca_pkey_is_full(pkey) ? "full" : "limited", vhca_pkey_base(pkey));
	else if (l->claim->told == VHCA_TOLD_ACCEPTED)
		fix(f, "look into the subnet manager's log; saquery PKTR %u", l->port->lid);
	else
		fix(f, "vhcactl outbox; vhcactl claims");
}

static void check_partition(const struct look *l, struct vhca_finding *f)
{
	const struct vhca_identity *id = l->claim ? &l->claim->identity : NULL;

	if (!id) {
		say(f, VHCA_FINDING_OK, "no claim asks for a partition");
	} else if (!is_mlx4(l)) {
		say(f, VHCA_FINDING_UNKNOWN,
		    "the subnet manager keeps the P_Keys of mlx5 VFs, by GUID %s; the host does "
		    "not see them",
		    VHCA_GUID_STR(id->guid));
	} else if (l->port->port == 0) {
		say(f, VHCA_FINDING_UNKNOWN, "the port's P_Key table has not been read yet");
	} else {
		for (unsigned int i = 0; i < id->n_pkeys; i++) {
			if (vhca_pkey_find(l->port->pkeys, l->port->n_pkeys, id->pkeys[i]) >= 0)
				continue;
			say_not_member(l, id->pkeys[i], f);
			return;
		}
		say(f, VHCA_FINDING_OK, "the host's port is in %s",
		    id->n_pkeys == 1 ? "the partition that is asked for"
				     : "all partitions that are asked for");
	}
}

static const char *shown(const struct vhca_identity_state *hw, unsigned int i,
			 char buf[static VHCA_PKEY_STRLEN])
{
	return hw->map[i] == VHCA_PKEY_UNMAPPED ? "none" : vhca_pkey_format(buf, hw->value[i]);
}

static void say_difference(const struct look *l, unsigned int i, struct vhca_finding *f)
{
	const struct vhca_identity_state *hw = &l->vf->hw;
	const struct vhca_identity *id = &l->claim->identity;
	bool lacks = hw->map[i] == VHCA_PKEY_UNMAPPED;
	char buf[VHCA_PKEY_STRLEN];

	/* A key that is none is safe, and comes by itself with the partition. */
	say(f, lacks ? VHCA_FINDING_WARNING : VHCA_FINDING_WRONG,
	    "the guest's P_Key index %u shows %s instead of %s", i, shown(hw, i, buf),
	    i < id->n_pkeys ? VHCA_PKEY_STR(id->pkeys[i]) : "none");
	fix(f, "vhcad writes it by itself as soon as the port has the key; vhcactl watch");
}

static void check_claimed_table(const struct look *l, struct vhca_finding *f)
{
	const struct vhca_identity *id = &l->claim->identity;
	int i = vhca_identity_difference(&l->vf->hw, id);

	if (i >= 0) {
		say_difference(l, (unsigned int)i, f);
	} else if (id->n_pkeys && !vhca_pkey_is_full(id->pkeys[0])) {
		say(f, VHCA_FINDING_WARNING,
		    "the guest's P_Key index 0 is a limited member (%s): IPoIB on the parent "
		    "interface needs a full one",
		    VHCA_PKEY_STR(id->pkeys[0]));
		fix(f, "put a full member first in partition=\"...\" of the domain's request");
	} else {
		say(f, VHCA_FINDING_OK, "the guest's P_Key table shows what was asked for");
	}
}

static void check_table(const struct look *l, struct vhca_finding *f)
{
	static const struct vhca_identity nothing = {.guid = VHCA_GUID_ALL1};
	bool withheld = l->claim && (l->claim->away || l->vf->state == VHCA_VF_FREE ||
				     l->vf->state == VHCA_VF_CLAIMED);

	if (!is_mlx4(l))
		say(f, VHCA_FINDING_UNKNOWN,
		    "mlx5 has no map in the host: the subnet manager fills the VF's own table");
	else if (!l->vf->hw_known)
		say(f, VHCA_FINDING_UNKNOWN, "the VF's P_Key map was not read");
	else if (l->claim && !withheld)
		check_claimed_table(l, f);
	else if (vhca_identity_difference(&l->vf->hw, &nothing) < 0)
		say(f, VHCA_FINDING_OK, "the VF shows no P_Key");
	else
		say(f, l->user ? VHCA_FINDING_OK : VHCA_FINDING_WARNING,
		    "the VF shows P_Keys that vhcad did not give it");
}

/* ---- the guest ---- */

static void check_attached(const struct look *l, struct vhca_finding *f)
{
	if (!l->ex->virt_synced) {
		say(f, VHCA_FINDING_UNKNOWN, "libvirt is not connected: who runs is not known");
		fix(f, "systemctl status libvirtd");
	} else if (!l->user) {
		say(f, VHCA_FINDING_WARNING, "it has just left its guest");
	} else {
		say(f, VHCA_FINDING_OK, "domain %s has it as %s%s%s", l->claim->domain_name,
		    l->claim->name, l->claim->has_guest ? ", in the guest at " : "",
		    l->claim->has_guest ? VHCA_BDF_STR(l->claim->guest) : "");
	}
}

static void check_unmanaged(const struct look *l, struct vhca_finding *f)
{
	if (l->user) {
		say(f, VHCA_FINDING_WARNING,
		    "domain %s has it without a claim: vhcad touches nothing of it",
		    l->user->info->name);
		fix(f, "vhcactl adopt %s", l->user->info->name);
	} else {
		say(f, VHCA_FINDING_WARNING, "it is not taken over: %s", reason_of(l->vf));
		fix(f, "vhcactl vfs");
	}
}

static void check_guest(const struct look *l, struct vhca_finding *f)
{
	const struct vhca_vf *vf = l->vf;

	if (vf->state == VHCA_VF_QUARANTINED) {
		say(f, VHCA_FINDING_WRONG, "the VF is quarantined, nobody gets it: %s",
		    reason_of(vf));
		fix(f, "vhcad tries again by itself; journalctl -u vhcad | grep %s",
		    VHCA_BDF_STR(vf->bdf));
	} else if (vf->state == VHCA_VF_UNMANAGED) {
		check_unmanaged(l, f);
	} else if (vf->state == VHCA_VF_ATTACHED) {
		check_attached(l, f);
	} else if (vf->state == VHCA_VF_FREE && !l->claim) {
		say(f, VHCA_FINDING_OK, "the VF is free, no guest has it");
	} else {
		say(f, VHCA_FINDING_WARNING, "it is %s, not in a guest: %s",
		    vhca_vf_state_to_string(vf->state), reason_of(vf));
		fix(f, "vhcactl watch");
	}
}

/* ---- the walk ---- */

static const struct {
	const char *step;
	void (*check)(const struct look *l, struct vhca_finding *f);
} steps[VHCA_EXPLAIN_STEPS] = {
	{"firmware", check_firmware},  {"PCI", check_pci},     {"IOMMU", check_iommu},
	{"driver", check_driver},      {"GUID", check_guid},   {"link policy", check_link_policy},
	{"physical port", check_port}, {"SM", check_sm},       {"partition", check_partition},
	{"P_Key table", check_table},  {"guest", check_guest},
};

void vhca_explain_vf(const struct vhca_explain *ex, const struct vhca_vf *vf,
		     struct vhca_finding ret[static VHCA_EXPLAIN_STEPS])
{
	struct look l = {
		.ex = ex,
		.vf = vf,
		.hca = vf->hca,
		.port = &vf->hca->ports[vf->hca->port > 1 ? 1 : 0], /* 0: only journaled yet */
		.claim = vf->claim,
		.user = vhca_model_user(ex->model, vf->bdf, NULL),
	};

	for (unsigned int i = 0; i < VHCA_EXPLAIN_STEPS; i++) {
		ret[i] = (struct vhca_finding){.step = steps[i].step};
		steps[i].check(&l, &ret[i]);
	}
}

const struct vhca_finding *vhca_explain_verdict(const struct vhca_finding *findings, unsigned int n)
{
	const struct vhca_finding *worst = NULL;

	for (unsigned int i = 0; i < n; i++)
		if (findings[i].status > (worst ? worst->status : VHCA_FINDING_OK))
			worst = &findings[i];
	return worst;
}

/* ---- what a domain asks for ---- */

static const struct vhca_error *problem_of(const struct vhca_domain *dom, const char *name)
{
	for (unsigned int i = 0; i < VHCA_DOM_VFS_MAX; i++)
		if (!strcmp(dom->requests[i].name, name) && dom->requests[i].problem.kind)
			return &dom->requests[i].problem;
	return NULL;
}

static void check_request(const struct vhca_explain *ex, const struct vhca_domain *dom,
			  const struct vhca_vf_request *want, struct vhca_finding *f)
{
	const struct vhca_claim *c = vhca_model_claim_of(ex->model, &dom->info->uuid, want->name);
	const struct vhca_error *problem = problem_of(dom, want->name);

	if (c) {
		say(f, VHCA_FINDING_OK, "%s has VF %s", want->name, VHCA_BDF_STR(c->vf->bdf));
	} else if (vhca_model_suppressed(ex->model, &dom->info->uuid, want->name)) {
		say(f, VHCA_FINDING_WARNING, "%s was detached by request", want->name);
		fix(f, "vhcactl attach %s %s --partition '%s'", dom->info->name, want->name,
		    want->partition);
	} else if (problem) {
		say(f, VHCA_FINDING_WRONG, "%s has no VF: %s", want->name, problem->msg);
		fix(f, "%s", problem->hint[0] ? problem->hint : "vhcactl domains");
	} else {
		say(f, VHCA_FINDING_WARNING, "%s has no VF yet%s", want->name,
		    dom->incoming ? ": the domain is still coming in" : "");
		fix(f, "vhcactl watch");
	}
}

unsigned int vhca_explain_requests(const struct vhca_explain *ex, const struct vhca_domain *dom,
				   struct vhca_finding ret[static VHCA_EXPLAIN_REQUESTS])
{
	unsigned int n = 0;

	memset(ret, 0, VHCA_EXPLAIN_REQUESTS * sizeof(*ret));
	for (unsigned int i = 0; i < VHCA_EXPLAIN_REQUESTS; i++)
		ret[i].step = "request";
	if (!ex->virt_synced) {
		say(&ret[n], VHCA_FINDING_UNKNOWN,
		    "libvirt is not connected: what the domain asks for is not known");
		fix(&ret[n++], "systemctl status libvirtd");
	} else if (!dom) {
		say(&ret[n++], VHCA_FINDING_WARNING, "the domain does not run here");
	} else if (dom->request_error.kind) {
		say(&ret[n], VHCA_FINDING_WRONG, "its metadata is not understood: %s",
		    dom->request_error.msg);
		fix(&ret[n++], "virsh edit %s, then restart it", dom->info->name);
	}
	for (unsigned int i = 0; dom && i < dom->info->n_requests; i++)
		check_request(ex, dom, &dom->info->requests[i], &ret[n++]);
	return n;
}
