/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/explain/readiness.h"

#include <stdio.h>
#include <string.h>

#include "agent/explain/finding.h"
#include "common/base/codes.h"

/* Things that share a reason: the first is named, the others are counted. */
struct group {
	unsigned int n;
	char first[192];
	char text[224];
};

static const struct {
	const char *code;
	bool blocks;
	const char *fix;
} rows[VHCA_READINESS_COUNT] = {
	[VHCA_READINESS_DISK] = {"state_disk", true, ""},
	[VHCA_READINESS_INVENTORY] = {"inventory_unread", true, "journalctl -u vhcad"},
	[VHCA_READINESS_VFS_NOT_MADE] = {"vfs_not_made", true, "vhcactl hcas"},
	[VHCA_READINESS_VFS_UNBOUND] = {"vfs_unbound", true, "vhcactl vfs"},
	[VHCA_READINESS_PORTS_UNREAD] = {"ports_unread", false, "modprobe mlx5_ib (or mlx4_ib)"},
	[VHCA_READINESS_HCA_ABSENT] = {"hca_absent", false, "lspci -k; vhcactl hcas"},
	[VHCA_READINESS_HCA_PROBLEM] = {"hca_problem", false, "vhcactl hcas"},
	[VHCA_READINESS_PORT_DOWN] = {"port_down", false,
				      "check the cable, the switch and the subnet manager; ibstat"},
	[VHCA_READINESS_QUARANTINED] = {"vf_quarantined", false,
					"vhcactl explain VF says of each why"},
	[VHCA_READINESS_LIBVIRT] = {"libvirt_unreachable", false, "systemctl status libvirtd"},
	[VHCA_READINESS_DOMAINS_UNREAD] = {"domains_unread", false, "systemctl status libvirtd"},
	[VHCA_READINESS_DOMAIN_UNREADABLE] = {"domain_unreadable", false,
					      "virsh dumpxml DOMAIN; vhcactl explain DOMAIN"},
	[VHCA_READINESS_MEMORY] = {VHCA_CODE_HARD_LIMIT, false,
				   "vhcactl explain DOMAIN says what its memory lacks"},
	[VHCA_READINESS_SM] = {"sm_unreachable", false,
			       "vhcactl outbox; is OpenSM with libvhcasm.so up where [sm] url "
			       "points?"},
	[VHCA_READINESS_SM_REFUSED] = {"sm_refused", false, "vhcactl claims; vhcactl outbox"},
	[VHCA_READINESS_SM_HOLDS_BACK] = {"sm_holds_back", false,
					  "if the other host is dead and fenced: vhcactl takeover"},
	[VHCA_READINESS_DRAINED] = {"drained", false, "vhcactl undrain"},
};

bool vhca_readiness_blocks(enum vhca_readiness reason)
{
	return rows[reason].blocks;
}

static void add(struct group *g, const char *name)
{
	if (g->n++ == 0)
		(void)snprintf(g->first, sizeof(g->first), "%s", name);
}

static const char *name_group(struct group *g)
{
	if (g->n == 1)
		return g->first;
	(void)snprintf(g->text, sizeof(g->text), "%s and %u more", g->first, g->n - 1);
	return g->text;
}

/* The beginning stands at one step; what comes behind it is not known to be missing. */
static void check_beginning(const struct vhca_explain *ex, struct vhca_finding *ret)
{
	for (unsigned int i = 0; i < VHCA_READINESS_COUNT; i++) {
		const struct vhca_error *why = rows[i].blocks ? &ex->beginning : &ex->ports;

		if (!why->kind || strcmp(why->code, rows[i].code) != 0)
			continue;
		explain_say(&ret[i], rows[i].blocks ? VHCA_FINDING_WRONG : VHCA_FINDING_UNKNOWN,
			    "%s", why->msg);
		if (why->hint[0])
			explain_fix(&ret[i], "%s", why->hint);
	}
}

static void check_port(const struct vhca_hca *hca, struct vhca_finding *f)
{
	const struct vhca_port_state *port = &hca->ports[hca->port > 0 ? hca->port - 1 : 0];
	const struct vhca_vf *vf;
	bool serves = false;

	TAILQ_FOREACH (vf, &hca->vfs, link)
		serves = serves || vf->state == VHCA_VF_ATTACHED;
	if (!port->port || port->state == VHCA_PORT_ACTIVE ||
	    f->status >= (serves ? VHCA_FINDING_WRONG : VHCA_FINDING_WARNING))
		return;
	explain_say(f, serves ? VHCA_FINDING_WRONG : VHCA_FINDING_WARNING,
		    "port %u of the adapter %s is %s%s", port->port, VHCA_BDF_STR(hca->facts.bdf),
		    vhca_port_state_to_string(port->state),
		    serves ? ", and guests have VFs of it" : "");
}

/* The inventory is of what is there: what is not is known by the configuration, or from before. */
static void find_absent(const struct vhca_explain *ex, struct group *ret)
{
	const struct vhca_conf_hca *c;
	const struct vhca_hca *hca;

	if (vhca_error_is(&ex->beginning, rows[VHCA_READINESS_INVENTORY].code))
		return;
	TAILQ_FOREACH (hca, &ex->model->hcas, link) {
		c = vhca_conf_hca(ex->conf, hca->facts.bdf);
		if (!hca->present && (hca->wanted || (c && c->manage)))
			add(ret, VHCA_BDF_STR(hca->facts.bdf));
	}
	for (unsigned int i = 0; i < ex->conf->n_hcas; i++) {
		c = &ex->conf->hcas[i];
		if (c->manage && !c->is_default && !vhca_model_hca(ex->model, c->bdf))
			add(ret, VHCA_BDF_STR(c->bdf));
	}
}

static void check_adapters(const struct vhca_explain *ex, struct vhca_finding *ret)
{
	struct group absent = {0}, quarantined = {0};
	struct vhca_finding *problem = &ret[VHCA_READINESS_HCA_PROBLEM];
	const struct vhca_hca *hca;
	const struct vhca_vf *vf;

	TAILQ_FOREACH (hca, &ex->model->hcas, link) {
		TAILQ_FOREACH (vf, &hca->vfs, link)
			if (vf->state == VHCA_VF_QUARANTINED)
				add(&quarantined, VHCA_BDF_STR(vf->bdf));
		if (!hca->wanted || !hca->present)
			continue;
		if (hca->managed)
			check_port(hca, &ret[VHCA_READINESS_PORT_DOWN]);
		if (hca->problem[0] && problem->status == VHCA_FINDING_OK) {
			explain_say(problem, VHCA_FINDING_WRONG, "%s", hca->problem);
			if (hca->problem_fix[0])
				explain_fix(problem, "%s", hca->problem_fix);
		}
	}
	find_absent(ex, &absent);
	if (absent.n)
		explain_say(&ret[VHCA_READINESS_HCA_ABSENT], VHCA_FINDING_WRONG,
			    "not there, or not on mlx4_core or mlx5_core: %s", name_group(&absent));
	if (quarantined.n)
		explain_say(&ret[VHCA_READINESS_QUARANTINED], VHCA_FINDING_WRONG,
			    "quarantined, so nobody gets them: %s", name_group(&quarantined));
}

static void check_domains(const struct vhca_explain *ex, struct vhca_finding *ret)
{
	struct group unreadable = {0}, memory = {0};
	const struct vhca_domain *dom;
	bool lacks_room;

	if (!ex->virt_connected)
		explain_say(&ret[VHCA_READINESS_LIBVIRT], VHCA_FINDING_WRONG,
			    "libvirt is not connected: no VF goes into a guest or leaves it");
	else if (!ex->virt_synced)
		explain_say(&ret[VHCA_READINESS_DOMAINS_UNREAD], VHCA_FINDING_UNKNOWN,
			    "libvirt has not said yet which domains run");
	TAILQ_FOREACH (dom, &ex->model->domains, link) {
		if (dom->unreadable.kind)
			add(&unreadable, dom->info->name);
		lacks_room = false;
		for (unsigned int i = 0; i < dom->info->n_requests; i++) {
			const char *name = dom->info->requests[i].name;
			const struct vhca_error *problem = vhca_domain_problem(dom, name);

			/* Kept when its request is served by hand. */
			lacks_room |= problem && vhca_error_is(problem, VHCA_CODE_HARD_LIMIT) &&
				      !vhca_model_claim_of(ex->model, &dom->info->uuid, name);
		}
		if (lacks_room)
			add(&memory, dom->info->name);
	}
	if (unreadable.n)
		explain_say(&ret[VHCA_READINESS_DOMAIN_UNREADABLE], VHCA_FINDING_WARNING,
			    "cannot be read, so what they ask for waits: %s",
			    name_group(&unreadable));
	if (memory.n)
		explain_say(&ret[VHCA_READINESS_MEMORY], VHCA_FINDING_WARNING,
			    "their memory allows no VF: %s", name_group(&memory));
}

static void check_sm(const struct vhca_explain *ex, struct vhca_finding *ret)
{
	struct group refused = {0}, held = {0};
	const struct vhca_claim *c;
	char label[192];

	if (ex->sm->sends && !ex->sm_reachable)
		explain_say(&ret[VHCA_READINESS_SM], VHCA_FINDING_WARNING,
			    "the subnet manager's API does not answer: what it must know waits");
	TAILQ_FOREACH (c, &ex->model->claims, link) {
		(void)snprintf(label, sizeof(label), "%s/%s", c->domain_name, c->name);
		if (vhca_claim_awaits(c) == VHCA_AWAITS_SM)
			add(&held, label);
		else if (vhca_claim_is_refused(c) && vhca_claim_awaits(c) == VHCA_AWAITS_NOTHING)
			add(&refused, label);
	}
	if (refused.n)
		explain_say(&ret[VHCA_READINESS_SM_REFUSED], VHCA_FINDING_WRONG,
			    "the subnet manager refuses what is claimed here: %s",
			    name_group(&refused));
	if (held.n)
		explain_say(&ret[VHCA_READINESS_SM_HOLDS_BACK], VHCA_FINDING_WARNING,
			    "another host has the GUIDs of these, says the subnet manager: %s",
			    name_group(&held));
}

void vhca_explain_readiness(const struct vhca_explain *ex,
			    struct vhca_finding ret[static VHCA_READINESS_COUNT])
{
	for (unsigned int i = 0; i < VHCA_READINESS_COUNT; i++) {
		ret[i] = (struct vhca_finding){.step = rows[i].code};
		explain_fix(&ret[i], "%s", rows[i].fix);
	}
	check_beginning(ex, ret);
	check_adapters(ex, ret);
	check_domains(ex, ret);
	check_sm(ex, ret);
	if (ex->drained)
		explain_say(&ret[VHCA_READINESS_DRAINED], VHCA_FINDING_WARNING,
			    "the host is drained: no guest gets a VF");
}
