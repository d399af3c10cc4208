/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/explain/explain.h"

#include <inttypes.h>
#include <string.h>

#include "agent/explain/fabric.h"
#include "agent/explain/finding.h"
#include "common/base/file.h"
#include "pkey/guid.h"

#define HANGS_MS 5000 /* a healthy write to an adapter takes a second at most (removal of VFs) */

static const char *reason_of(const struct vhca_vf *vf)
{
	return vf->reason[0] ? vf->reason : "no reason is known";
}

/* What has no fix because it goes on by itself, or not: who looks, sees which. */
static void fix_waiting(const struct explain_look *l, struct vhca_finding *f)
{
	bool is_asked = l->claim && (l->claim->sm_answer == VHCA_ANSWER_NONE ||
				     l->claim->sm_answer == VHCA_ANSWER_UNREACHABLE);

	if (is_asked && l->ex->sm->sends)
		explain_fix(f, "vhcactl watch; vhcactl outbox says what the subnet manager has not "
			       "answered");
	else
		explain_fix(f, "vhcactl watch; journalctl -u vhcad | grep %s",
			    VHCA_BDF_STR(l->vf->bdf));
}

/* ---- the adapter and the function ---- */

/* A count that is not the configured one concerns a VF that exists only indirectly. */
static void check_firmware(const struct explain_look *l, struct vhca_finding *f)
{
	const struct vhca_pf_facts *pf = &l->hca->facts;

	if (!l->hca->present) {
		explain_say(f, VHCA_FINDING_WRONG,
			    "the adapter %s is not there, or not on mlx4_core or mlx5_core",
			    VHCA_BDF_STR(pf->bdf));
		explain_fix(f, "lspci -k -s %s; dmesg | grep %s", VHCA_BDF_STR(pf->bdf),
			    VHCA_BDF_STR(pf->bdf));
	} else if (l->hca->problem[0]) {
		explain_say(f, l->vf->present ? VHCA_FINDING_WARNING : VHCA_FINDING_WRONG, "%s",
			    l->hca->problem);
		explain_fix(f, "%s", l->hca->problem_fix[0] ? l->hca->problem_fix : "vhcactl hcas");
	} else if (pf->total_vfs == 0) {
		explain_say(f, VHCA_FINDING_WRONG,
			    "the adapter %s offers no VFs: SR-IOV is off in it",
			    VHCA_BDF_STR(pf->bdf));
		explain_fix(f, "mstconfig -d %s set SRIOV_EN=1 NUM_OF_VFS=8, then reboot",
			    VHCA_BDF_STR(pf->bdf));
	} else {
		explain_say(f, VHCA_FINDING_OK, "the adapter %s (%s) has %u VFs of at most %u",
			    VHCA_BDF_STR(pf->bdf), pf->driver, pf->num_vfs, pf->total_vfs);
	}
}

/* QEMU pauses the guest of such a VF, and a reset alone lets that go on. */
static void say_pci_error(const struct explain_look *l, struct vhca_finding *f)
{
	const char *name = l->user ? l->user->info->name : "";
	bool is_paused = l->user && l->user->info->paused;
	bool is_back = l->vf->pci_error == VHCA_PCI_ERROR_RECOVERED;
	uint64_t now = vhca_wall_ms(), since = l->vf->pci_error_ms;

	explain_say(f, is_paused || !is_back ? VHCA_FINDING_WRONG : VHCA_FINDING_WARNING,
		    "the VF has reported a PCI error %" PRIu64 " s ago, and is %s%s%s",
		    now > since ? (now - since) / 1000 : 0, is_back ? "back" : "not back",
		    is_paused ? "; QEMU pauses a guest then, and paused is domain " : "",
		    is_paused ? name : "");
	if (!is_back)
		explain_fix(f,
			    "dmesg | grep -e AER -e %s; when the adapter works again: virsh "
			    "reset, or take the VF from its guest",
			    VHCA_BDF_STR(l->vf->bdf));
	else if (is_paused)
		explain_fix(f, "virsh reset %s; virsh resume %s",
			    VHCA_DOMAIN_WORD(name, &l->user->info->uuid),
			    VHCA_DOMAIN_WORD(name, &l->user->info->uuid));
	else
		explain_fix(f, "dmesg | grep -e AER -e %s", VHCA_BDF_STR(l->vf->bdf));
}

static void check_pci(const struct explain_look *l, struct vhca_finding *f)
{
	const char *pf = VHCA_BDF_STR(l->hca->facts.bdf);

	if (l->ex->busy_ms > HANGS_MS) {
		explain_say(f, VHCA_FINDING_WRONG,
			    "a job on the adapter %s has been in the kernel for %" PRIu64
			    " s, and everything else that concerns the adapter waits for it",
			    pf, l->ex->busy_ms / 1000);
		explain_fix(
			f, "find the process that holds a VF which the kernel wants back (fuser -v "
			   "/dev/vfio/*; dmesg | grep 'blocked until released') and let it go");
	} else if (!l->vf->present) {
		explain_say(f, VHCA_FINDING_WRONG,
			    "the kernel does not show the VF now (adapter %s)", pf);
		explain_fix(f, "lspci -s %s; dmesg | grep %s; vhcactl hcas",
			    VHCA_BDF_STR(l->vf->bdf), pf);
	} else if (l->vf->pci_error) {
		say_pci_error(l, f);
	} else {
		explain_say(f, VHCA_FINDING_OK, "it is VF %u of the adapter %s", l->vf->index, pf);
	}
}

static void check_iommu(const struct explain_look *l, struct vhca_finding *f)
{
	const struct vhca_vf *vf = l->vf;

	if (!vf->present) {
		explain_say(f, VHCA_FINDING_UNKNOWN, "the kernel does not show the VF");
	} else if (vf->iommu_group < 0) {
		explain_say(f, VHCA_FINDING_WRONG, "the VF has no IOMMU group: the IOMMU is off");
		explain_fix(f,
			    "turn VT-d or AMD-Vi on in the BIOS, add intel_iommu=on to the kernel "
			    "command line (Intel), reboot");
	} else if (vf->group_size > 1) {
		explain_say(f, VHCA_FINDING_WRONG,
			    "the VF shares IOMMU group %d with %u other devices: a bridge on its "
			    "path has "
			    "no ACS",
			    vf->iommu_group, vf->group_size - 1U);
		explain_fix(
			f,
			"turn ACS on in the BIOS, or move the adapter to a slot of the CPU's own "
			"root port");
	} else {
		explain_say(f, VHCA_FINDING_OK, "it is alone in IOMMU group %d", vf->iommu_group);
	}
}

static void check_driver(const struct explain_look *l, struct vhca_finding *f)
{
	const struct vhca_vf *vf = l->vf;
	const char *pf = VHCA_BDF_STR(l->hca->facts.bdf);

	if (l->hca->present && !l->hca->facts.ibdev[0]) {
		explain_say(f, VHCA_FINDING_WRONG, "the adapter %s has no RDMA device", pf);
		explain_fix(f, "modprobe %s; dmesg | grep %s",
			    explain_is_mlx4(l) ? "mlx4_ib" : "mlx5_ib", pf);
	} else if (l->hca->wanted && !l->hca->managed) {
		explain_say(f, VHCA_FINDING_WARNING,
			    "the adapter %s has no InfiniBand port: vhcad leaves the VF (on %s) "
			    "alone",
			    pf, vf->driver[0] ? vf->driver : "no driver");
		explain_fix(f, "if it is to be InfiniBand: mlxconfig -d %s set LINK_TYPE_P1=1", pf);
	} else if (!l->hca->managed) {
		explain_say(f, VHCA_FINDING_WARNING,
			    "vhcad does not manage the adapter %s: it leaves the VF (on %s) alone",
			    pf, vf->driver[0] ? vf->driver : "no driver");
		explain_fix(f,
			    "manage = yes in [hca %s] of vhcad.conf, then systemctl reload vhcad",
			    pf);
	} else if (vhca_conf_excludes(l->ex->conf, l->hca->facts.bdf, vf->bdf)) {
		explain_say(f, VHCA_FINDING_WARNING,
			    "the configuration leaves the VF out: it stays on %s",
			    vf->driver[0] ? vf->driver : "no driver");
		explain_fix(f, "take it out of exclude in [hca] of vhcad.conf, then systemctl "
			       "reload vhcad");
	} else if (!vf->present) {
		explain_say(f, VHCA_FINDING_UNKNOWN, "the kernel does not show the VF");
	} else if (strcmp(vf->driver, "vfio-pci") != 0) {
		explain_say(f, VHCA_FINDING_WRONG, "the VF is on %s instead of vfio-pci: %s",
			    vf->driver[0] ? vf->driver : "no driver", reason_of(vf));
		explain_fix(f,
			    "modprobe vfio-pci; vhcad binds it by itself; journalctl -u vhcad | "
			    "grep %s",
			    VHCA_BDF_STR(vf->bdf));
	} else {
		explain_say(f, VHCA_FINDING_OK,
			    "it is on vfio-pci, and %s is the adapter's RDMA device",
			    l->hca->facts.ibdev);
	}
}

/* ---- the identity, as far as the host writes it ---- */

static const struct vhca_vf *same_request(const struct explain_look *l)
{
	const struct vhca_vf *vf;

	VHCA_FOREACH_VF (vf, l->ex->model)
		if (vf != l->vf && vf->present && vf->hw_known &&
		    vf->hw.requested == l->claim->identity.guid)
			return vf;
	return NULL;
}

static void check_unclaimed_guid(const struct explain_look *l, struct vhca_finding *f)
{
	const struct vhca_identity_state *hw = &l->vf->hw;

	if (!l->vf->hw_known) {
		explain_say(f, VHCA_FINDING_UNKNOWN,
			    "its GUID was not read: no claim of vhcad stands for it");
	} else if (hw->requested == VHCA_GUID_ALL1) {
		explain_say(f, VHCA_FINDING_OK, "nobody has it, and it shows nobody's GUID");
	} else {
		explain_say(f, l->user ? VHCA_FINDING_OK : VHCA_FINDING_WARNING,
			    "it shows GUID %s, which vhcad did not give it",
			    VHCA_GUID_STR(hw->requested));
		if (!l->user)
			fix_waiting(l, f);
	}
}

static void check_claimed_guid(const struct explain_look *l, struct vhca_finding *f)
{
	uint64_t guid = l->claim->identity.guid;
	const struct vhca_vf *other = same_request(l);

	if (vhca_guid_is_stand_in(guid)) {
		explain_say(f, VHCA_FINDING_WARNING, "the SM has not chosen its GUID yet");
		explain_fix(f, "vhcactl watch; see the SM's log");
	} else if (other) {
		explain_say(f, VHCA_FINDING_WRONG, "%s shows the same GUID %s",
			    VHCA_BDF_STR(other->bdf), VHCA_GUID_STR(guid));
		explain_fix(f, "vhcactl explain %s", VHCA_BDF_STR(other->bdf));
	} else if (!l->vf->hw_known) {
		explain_say(f, VHCA_FINDING_UNKNOWN,
			    "GUID %s is promised; what the VF shows was not read yet",
			    VHCA_GUID_STR(guid));
	} else if (l->vf->hw.requested != guid) {
		explain_say(f, VHCA_FINDING_WRONG,
			    "it shows GUID %s instead of %s: somebody changed it",
			    VHCA_GUID_STR(l->vf->hw.requested), VHCA_GUID_STR(guid));
		explain_fix(f, "vhcad writes it again by itself; stop whoever else writes it "
			       "(vhcactl watch)");
	} else if (explain_is_mlx4(l)) {
		explain_say(f, VHCA_FINDING_OK,
			    "GUID %s is written, at index %u of the port's GUID table",
			    VHCA_GUID_STR(guid), l->vf->hw.gid_index);
	} else if (l->vf->hw.node_guid != guid) {
		explain_say(f, VHCA_FINDING_WRONG,
			    "its node GUID is %s instead of %s: somebody changed it",
			    VHCA_GUID_STR(l->vf->hw.node_guid), VHCA_GUID_STR(guid));
		explain_fix(f, "vhcad writes it again by itself; stop whoever else writes it "
			       "(vhcactl watch)");
	} else {
		explain_say(f, VHCA_FINDING_OK, "GUID %s is written, as node and port GUID",
			    VHCA_GUID_STR(guid));
	}
}

static void check_guid(const struct explain_look *l, struct vhca_finding *f)
{
	if (!l->claim) {
		check_unclaimed_guid(l, f);
	} else if (l->claim->custody == VHCA_CUSTODY_RESERVED) {
		explain_say(f, VHCA_FINDING_WARNING, "GUID %s is reserved: %s",
			    VHCA_GUID_STR(l->claim->identity.guid), reason_of(l->vf));
		explain_fix(f, "start domain %s, or vhcactl detach %s %s",
			    VHCA_DOMAIN_WORD(l->claim->domain_name, &l->claim->domain),
			    VHCA_DOMAIN_WORD(l->claim->domain_name, &l->claim->domain),
			    l->claim->name);
	} else if (vhca_claim_awaits(l->claim) == VHCA_AWAITS_SM) {
		explain_say(f, VHCA_FINDING_WARNING,
			    "GUID %s is held back: the subnet manager knows it at another host",
			    VHCA_GUID_STR(l->claim->identity.guid));
		explain_fix(f, "if that host is dead and fenced: vhcactl takeover %s EVIDENCE",
			    VHCA_UUID_STR(&l->claim->domain));
	} else if (vhca_claim_is_withheld(l->claim)) {
		explain_say(f, VHCA_FINDING_WARNING,
			    "GUID %s is withheld: the VM is on its way to or from another host",
			    VHCA_GUID_STR(l->claim->identity.guid));
		explain_fix(f, "vhcactl migrations");
	} else if (l->vf->state == VHCA_VF_FREE || l->vf->state == VHCA_VF_CLAIMED) {
		explain_say(f, VHCA_FINDING_WARNING, "GUID %s is promised and not written yet: %s",
			    VHCA_GUID_STR(l->claim->identity.guid), reason_of(l->vf));
		fix_waiting(l, f);
	} else if (l->vf->state == VHCA_VF_SCRUBBING) {
		explain_say(f, VHCA_FINDING_WARNING, "GUID %s is being withdrawn: %s",
			    VHCA_GUID_STR(l->claim->identity.guid), reason_of(l->vf));
		fix_waiting(l, f);
	} else {
		check_claimed_guid(l, f);
	}
}

static void check_link_policy(const struct explain_look *l, struct vhca_finding *f)
{
	bool down = l->vf->hw.policy == VHCA_LINK_DOWN;
	bool given = l->vf->state == VHCA_VF_PROGRAMMED || l->vf->state == VHCA_VF_ATTACHED ||
		     l->vf->state == VHCA_VF_DETACHING;

	if (explain_is_mlx4(l)) {
		explain_say(
			f, VHCA_FINDING_OK,
			"mlx4 has none: the VF's port follows the host's once its GUID is granted");
	} else if (!l->vf->hw_known) {
		explain_say(f, VHCA_FINDING_UNKNOWN, "the VF's link policy was not read");
	} else if (l->claim && given && down && vhca_claim_shows(l->claim).n_pkeys == 0) {
		explain_say(f, VHCA_FINDING_OK,
			    "the VF's link is down until the subnet manager has it in a partition");
	} else if (l->claim && given && down) {
		explain_say(f, VHCA_FINDING_WRONG,
			    "the VF's link is taken down: somebody changed it");
		explain_fix(f,
			    "vhcad raises it again by itself; stop whoever else does that (vhcactl "
			    "watch)");
	} else if (!l->claim && !l->user && !down) {
		explain_say(f, VHCA_FINDING_WARNING,
			    "the VF's link policy is %s, although nobody has the VF",
			    vhca_link_policy_to_string(l->vf->hw.policy));
		fix_waiting(l, f);
	} else {
		explain_say(f, VHCA_FINDING_OK, "the VF's link policy is %s",
			    vhca_link_policy_to_string(l->vf->hw.policy));
	}
}

/* ---- the guest ---- */

static void check_attached(const struct explain_look *l, struct vhca_finding *f)
{
	const struct vhca_domain *dom = vhca_model_domain(l->ex->model, &l->claim->domain);

	if (!l->ex->virt_synced) {
		explain_say(f, VHCA_FINDING_UNKNOWN,
			    "libvirt is not connected: who runs is not known");
		explain_fix(f, "systemctl status libvirtd");
	} else if (dom && dom->unreadable.kind) {
		explain_say(f, VHCA_FINDING_UNKNOWN,
			    "domain %s cannot be read: whether it has the VF is not known",
			    l->claim->domain_name);
		explain_fix(f, "virsh dumpxml %s",
			    VHCA_DOMAIN_WORD(l->claim->domain_name, &l->claim->domain));
	} else if (!l->user) {
		explain_say(f, VHCA_FINDING_WARNING, "it has just left its guest");
		fix_waiting(l, f);
	} else {
		explain_say(f, VHCA_FINDING_OK, "domain %s has it as %s%s%s", l->claim->domain_name,
			    l->claim->name, l->claim->has_guest ? ", in the guest at " : "",
			    l->claim->has_guest ? VHCA_BDF_STR(l->claim->guest) : "");
	}
}

static void check_unmanaged(const struct explain_look *l, struct vhca_finding *f)
{
	if (l->user) {
		explain_say(f, VHCA_FINDING_WARNING,
			    "domain %s has it without a claim: vhcad touches nothing of it",
			    l->user->info->name);
		explain_fix(f, "vhcactl adopt %s",
			    VHCA_DOMAIN_WORD(l->user->info->name, &l->user->info->uuid));
	} else {
		explain_say(f, VHCA_FINDING_WARNING, "it is not taken over: %s", reason_of(l->vf));
		explain_fix(f, "vhcactl vfs");
	}
}

static void check_guest(const struct explain_look *l, struct vhca_finding *f)
{
	const struct vhca_error *disk = &l->ex->disk;
	const struct vhca_vf *vf = l->vf;

	if (disk->kind) {
		explain_say(f,
			    vf->state == VHCA_VF_ATTACHED ? VHCA_FINDING_WARNING
							  : VHCA_FINDING_WRONG,
			    "it is %s, and stays so: %s", vhca_vf_state_to_string(vf->state),
			    disk->msg);
		explain_fix(f, "%s", disk->hint);
	} else if (vf->state == VHCA_VF_QUARANTINED) {
		explain_say(f, VHCA_FINDING_WRONG, "the VF is quarantined, nobody gets it: %s",
			    reason_of(vf));
		explain_fix(f, "vhcad tries again by itself; journalctl -u vhcad | grep %s",
			    VHCA_BDF_STR(vf->bdf));
	} else if (vf->state == VHCA_VF_UNMANAGED) {
		check_unmanaged(l, f);
	} else if (vf->state == VHCA_VF_ATTACHED) {
		check_attached(l, f);
	} else if (vf->state == VHCA_VF_FREE && !l->claim) {
		explain_say(f, VHCA_FINDING_OK, "the VF is free, no guest has it");
	} else {
		explain_say(f, VHCA_FINDING_WARNING, "it is %s, not in a guest: %s",
			    vhca_vf_state_to_string(vf->state), reason_of(vf));
		explain_fix(f, "vhcactl watch");
	}
}

/* ---- the walk ---- */

static const struct {
	const char *step;
	void (*check)(const struct explain_look *l, struct vhca_finding *f);
} steps[VHCA_EXPLAIN_STEPS] = {
	{"firmware", check_firmware},	 {"PCI", check_pci},	 {"IOMMU", check_iommu},
	{"driver", check_driver},	 {"GUID", check_guid},	 {"link policy", check_link_policy},
	{"physical port", explain_port}, {"SM", explain_sm},	 {"partition", explain_partition},
	{"P_Key table", explain_table},	 {"guest", check_guest},
};

void vhca_explain_vf(const struct vhca_explain *ex, const struct vhca_vf *vf,
		     struct vhca_finding ret[static VHCA_EXPLAIN_STEPS])
{
	struct explain_look l = {
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

/* ---- what a domain asks for ---- */

static void say_differs(const struct vhca_claim *c, struct vhca_finding *f)
{
	explain_say(f, VHCA_FINDING_WARNING, "%s", c->differs.msg);
	explain_fix(f, "%s", c->differs.hint);
}

static void fix_request(const struct vhca_domain *dom, const struct vhca_vf_request *want,
			const struct vhca_error *why, struct vhca_finding *f)
{
	const char *name = dom->info->name, *word = VHCA_DOMAIN_WORD(name, &dom->info->uuid);

	if (why->hint[0])
		explain_fix(f, "%s", why->hint);
	else /* the journal has no UUID */
		explain_fix(f, "journalctl -u vhcad | grep %s/%s", word == name ? name : "",
			    want->name);
}

static void check_request(const struct vhca_explain *ex, const struct vhca_domain *dom,
			  const struct vhca_vf_request *want, struct vhca_finding *f)
{
	const struct vhca_claim *c = vhca_model_claim_of(ex->model, &dom->info->uuid, want->name);
	const struct vhca_error *problem = vhca_domain_problem(dom, want->name);
	const struct vhca_error *failed = vhca_domain_failed(dom, want->name);

	if (c && c->differs.kind) {
		say_differs(c, f);
	} else if (c && c->failure.kind) {
		explain_say(f, VHCA_FINDING_WRONG, "%s loses VF %s: %s", want->name,
			    VHCA_BDF_STR(c->vf->bdf), c->failure.msg);
		fix_request(dom, want, &c->failure, f);
	} else if (c && failed) {
		/* Whoever asks now is told the same as between two tries. */
		explain_say(f, VHCA_FINDING_WARNING, "%s is tried again, with VF %s; last time: %s",
			    want->name, VHCA_BDF_STR(c->vf->bdf), failed->msg);
		fix_request(dom, want, failed, f);
	} else if (c) {
		explain_say(f, VHCA_FINDING_OK, "%s has VF %s", want->name,
			    VHCA_BDF_STR(c->vf->bdf));
	} else if (vhca_model_suppressed(ex->model, &dom->info->uuid, want->name)) {
		explain_say(f, VHCA_FINDING_WARNING, "%s was detached by request", want->name);
		explain_fix(f, "vhcactl attach %s %s --partition '%s'",
			    VHCA_DOMAIN_WORD(dom->info->name, &dom->info->uuid), want->name,
			    want->partition);
	} else if (problem) {
		explain_say(f, VHCA_FINDING_WRONG, "%s has no VF: %s", want->name, problem->msg);
		fix_request(dom, want, problem, f);
	} else {
		explain_say(f, VHCA_FINDING_WARNING, "%s has no VF yet%s", want->name,
			    dom->incoming ? ": the domain is still coming in" : "");
		explain_fix(f, "vhcactl watch");
	}
}

unsigned int vhca_explain_requests(const struct vhca_explain *ex, const struct vhca_domain *dom,
				   struct vhca_finding ret[static VHCA_EXPLAIN_REQUESTS])
{
	const struct vhca_claim *c;
	unsigned int n = 0;

	memset(ret, 0, VHCA_EXPLAIN_REQUESTS * sizeof(*ret));
	for (unsigned int i = 0; i < VHCA_EXPLAIN_REQUESTS; i++)
		ret[i].step = "request";
	if (!ex->virt_synced) {
		explain_say(&ret[n], VHCA_FINDING_UNKNOWN,
			    "libvirt is not connected: what the domain asks for is not known");
		explain_fix(&ret[n++], "systemctl status libvirtd");
	} else if (!dom) {
		explain_say(&ret[n], VHCA_FINDING_WARNING, "the domain does not run here");
		explain_fix(&ret[n++], "virsh list --all; it is asked for VFs when it runs");
	} else if (dom->unreadable.kind) {
		explain_say(&ret[n], VHCA_FINDING_WRONG,
			    "it cannot be read, so what it asks for waits: %s",
			    dom->unreadable.msg);
		explain_fix(&ret[n++], "virsh dumpxml %s",
			    VHCA_DOMAIN_WORD(dom->info->name, &dom->info->uuid));
	} else if (dom->request_error.kind) {
		explain_say(&ret[n], VHCA_FINDING_WRONG, "%s", dom->request_error.msg);
		explain_fix(&ret[n++], "%s; virsh edit %s, then restart it",
			    dom->request_error.hint,
			    VHCA_DOMAIN_WORD(dom->info->name, &dom->info->uuid));
	}
	if (!dom)
		return n;
	for (unsigned int i = 0; i < dom->info->n_requests; i++)
		check_request(ex, dom, &dom->info->requests[i], &ret[n++]);
	/* VFs that the domain has asked for and does not any more. */
	TAILQ_FOREACH (c, &ex->model->claims, link)
		if (n < VHCA_EXPLAIN_REQUESTS && c->differs.kind &&
		    !vhca_dom_request(dom->info, c->name) &&
		    vhca_uuid_equal(&c->domain, &dom->info->uuid))
			say_differs(c, &ret[n++]);
	return n;
}
