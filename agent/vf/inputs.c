/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What comes from outside: configuration, hardware, ports, and what libvirt shows and says. Each
 * input updates the model and puts VFs on the work list; none decides anything.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state/exclude.h"
#include "agent/vf/claim.h"
#include "agent/vf/report.h"
#include "agent/vf/step.h"
#include "agent/vf/transition.h"
#include "agent/vf/work.h"
#include "common/base/file.h"

/* ---- configuration ---- */

static void apply_conf(struct vhca_engine *e, struct vhca_hca *hca)
{
	const struct vhca_conf_hca *c = vhca_conf_hca(e->conf, hca->facts.bdf);

	hca->wanted = c && c->manage;
	hca->managed = hca->wanted && hca->facts.ib_ports != VHCA_IB_PORTS_NONE;
	hca->want_vfs = c ? c->vfs : VHCA_CONF_VFS_KEEP;
	engine_set_port(e, hca, c ? c->port : 1);
	(void)vhca_strcpy(hca->fabric, sizeof(hca->fabric),
			  c ? c->fabric : "default"); /* valid names fit */
}

void vhca_engine_set_conf(struct vhca_engine *e, const struct vhca_conf *conf)
{
	struct vhca_hca *hca;

	e->conf = conf;
	e->excludes_checked = false;
	TAILQ_FOREACH (hca, &e->model.hcas, link)
		apply_conf(e, hca);
	engine_mark_all(e);
	vhca_timer_arm_ms(e->requests, 0);
}

/* ---- hardware ---- */

static void see_vf(struct vhca_engine *e, struct vhca_hca *hca, const struct vhca_vf_facts *facts)
{
	struct vhca_vf *vf = vhca_model_vf(&e->model, facts->bdf);

	if (!vf)
		vf = engine_add_vf(e, hca->facts.bdf, facts->bdf, facts->index);
	if (!vf)
		return;
	engine_see_place(vf, hca, facts->index);
	vf->present = true;
	vf->iommu_group = facts->iommu_group;
	vf->group_size = facts->group_size;
	(void)vhca_strcpy(vf->driver, sizeof(vf->driver), facts->driver); /* same size */
}

/*
 * The RDMA device is there (again). What failed for want of it waits out neither its back-off nor
 * its quarantine: a stranger's guest may have the VF. In the first inventory it is not there again.
 */
static void look_soon(const struct vhca_engine *e, struct vhca_hca *hca)
{
	uint64_t soon = vhca_now_ms() + RESET_LOOK_MS;
	struct vhca_vf *vf;

	TAILQ_FOREACH (vf, &hca->vfs, link) {
		vf->host.not_before_ms = 0;
		if (e->inventory_seen)
			vf->rests_until_ms = 0;
		if (vf->look_ms > soon && vf->state != VHCA_VF_DETACHING)
			vf->look_ms = soon;
	}
}

static void see_pf(struct vhca_engine *e, const struct vhca_pf_facts *pf)
{
	struct vhca_hca *hca = vhca_model_hca(&e->model, pf->bdf);
	enum vhca_ib_ports ib_ports;

	if (!hca)
		hca = vhca_model_add_hca(&e->model, pf->bdf);
	if (!hca)
		return;
	/* What was known stays while its RDMA device is away. */
	ib_ports = pf->ib_ports ? pf->ib_ports : hca->facts.ib_ports;
	/* Loaded again: maps and GUIDs are the driver's. */
	if (pf->ibdev[0] && strcmp(hca->facts.ibdev, pf->ibdev) != 0)
		look_soon(e, hca);
	hca->facts = *pf;
	hca->facts.ib_ports = ib_ports;
	hca->present = true;
	apply_conf(e, hca);
	for (unsigned int i = 0; i < pf->n_vfs; i++)
		see_vf(e, hca, &pf->vfs[i]);
}

/* VFs that the inventory lacks: since when? */
static void miss_vfs(struct vhca_engine *e)
{
	struct vhca_vf *vf;

	VHCA_FOREACH_VF (vf, &e->model) {
		if (vf->present) {
			vf->absent_ms = 0;
		} else if (!vf->absent_ms) {
			vf->absent_ms = vhca_now_ms();
			engine_forget_probe(vf);
		}
	}
}

static void note_nodes(struct vhca_engine *e, const struct vhca_inventory *inv)
{
	struct vhca_numa_node *nodes = calloc(inv->n_nodes + 1U, sizeof(*nodes));

	if (!nodes)
		return; /* those of before */
	for (unsigned int i = 0; i < inv->n_nodes; i++)
		nodes[i] = inv->nodes[i];
	free(e->nodes);
	e->nodes = nodes;
	e->n_nodes = inv->n_nodes;
}

static void alarm_of_conf(void *engine, const char *text)
{
	struct vhca_engine *e = engine;

	vhca_events_add(e->args.events, "alarm", e->conf->node_name, "%s", text);
}

void vhca_engine_inventory(struct vhca_engine *e, const struct vhca_inventory *inv)
{
	struct vhca_hca *hca;
	struct vhca_vf *vf;

	TAILQ_FOREACH (hca, &e->model.hcas, link) {
		hca->present = hca->plugged = false;
		TAILQ_FOREACH (vf, &hca->vfs, link)
			vf->present = false;
	}
	for (unsigned int i = 0; i < inv->n_pfs; i++)
		see_pf(e, &inv->pfs[i]);
	for (size_t i = 0; i < inv->n_plugged; i++) {
		hca = vhca_model_hca(&e->model, inv->plugged[i].bdf);
		if (!hca)
			continue;
		hca->plugged = true;
		hca->plugged_device = inv->plugged[i].device;
	}
	miss_vfs(e);
	note_nodes(e, inv);
	if (!e->excludes_checked)
		e->excludes_checked = vhca_exclude_check(e->conf, inv, alarm_of_conf, e);
	/* Of libvirt's list, if that came first, no request was looked at. */
	if (!e->inventory_seen)
		vhca_timer_arm_ms(e->requests, 0);
	e->inventory_seen = true;
	e->args.effects.vfs_changed(e->args.effects.ctx);
	engine_mark_all(e);
}

void vhca_engine_hca_problem(struct vhca_engine *e, struct vhca_bdf pf,
			     const struct vhca_error *err)
{
	struct vhca_hca *hca = vhca_model_hca(&e->model, pf);
	char problem[VHCA_REASON_MAX] = "";

	if (err)
		vhca_error_text(err, problem, sizeof(problem));
	if (!hca || strcmp(hca->problem, problem) == 0)
		return;
	(void)vhca_strcpy(hca->problem, sizeof(hca->problem), problem); /* same size */
	(void)vhca_strcpy(hca->problem_fix, sizeof(hca->problem_fix), err ? err->hint : "");
	if (problem[0])
		vhca_events_add(e->args.events, "alarm", VHCA_BDF_STR(pf), "%s", problem);
}

void vhca_engine_pci_error(struct vhca_engine *e, struct vhca_bdf bdf, enum vhca_pci_error error)
{
	const char *kind = error == VHCA_PCI_ERROR_RECOVERED ? "vf" : "alarm";
	struct vhca_vf *vf = vhca_model_vf(&e->model, bdf);

	if (!vf && vhca_model_hca(&e->model, bdf))
		vhca_events_add(e->args.events, kind, VHCA_BDF_STR(bdf), "PCI error %s",
				vhca_pci_error_to_string(error));
	if (!vf)
		return;
	/* The guest that gets the VF next has seen nothing of it, and needs no reset. */
	if (!vf->claim && error == VHCA_PCI_ERROR_RECOVERED)
		error = VHCA_PCI_ERROR_NONE;
	if (vf->pci_error == error)
		return;
	vf->pci_error = error;
	vf->pci_error_ms = vhca_wall_ms();
	/* An error of an adapter is one of each of its VFs, and there may be 126. */
	if (vf->claim)
		vhca_events_add_claim(e->args.events, kind, vf->claim, "%s: PCI error %s",
				      VHCA_BDF_STR(bdf), vhca_pci_error_to_string(error));
}

/* ---- ports ---- */

static void port_changed(struct vhca_engine *e, struct vhca_hca *hca,
			 const struct vhca_port_state *now)
{
	struct vhca_port_state *was = &hca->ports[now->port - 1];
	bool moved = was->lid != now->lid || was->sm_lid != now->sm_lid ||
		     was->port_guid != now->port_guid;
	bool link = was->state != now->state;

	if (moved || link)
		vhca_events_add(e->args.events, "port", VHCA_GUID_STR(now->port_guid),
				"%s port %u: %s, LID %u, SM LID %u", VHCA_BDF_STR(hca->facts.bdf),
				now->port, vhca_port_state_to_string(now->state), now->lid,
				now->sm_lid);
	*was = *now;
	if (moved && now->port == hca->port)
		engine_report_hca(e, hca);
	if (moved && e->outbox)
		vhca_outbox_kick(e->outbox);
}

void vhca_engine_port(struct vhca_engine *e, struct vhca_bdf pf, enum vhca_port_event event,
		      const struct vhca_port_state *state)
{
	struct vhca_hca *hca = vhca_model_hca(&e->model, pf);
	const struct vhca_port_state *was;
	struct vhca_vf *vf;
	bool table;

	if (!hca || event == VHCA_PORT_GONE || state->port < 1 || state->port > VHCA_PORTS_MAX)
		return;
	/* The first report after a start changes nothing: what VFs map is read back anyway. */
	was = &hca->ports[state->port - 1];
	table = event == VHCA_PORT_PKEYS ||
		(was->port && memcmp(was->pkeys, state->pkeys, sizeof(was->pkeys)) != 0);
	port_changed(e, hca, state);
	if (event == VHCA_PORT_REREGISTER && state->port == hca->port) {
		engine_report_hca(e, hca);
		if (e->outbox)
			vhca_outbox_kick(e->outbox);
	}
	TAILQ_FOREACH (vf, &hca->vfs, link) {
		/* What the VF shows of the claim's keys was read from the table as it was. */
		vf->outdated |= table;
		if (table && (vf->state == VHCA_VF_CLAIMED || vf->state == VHCA_VF_PROGRAMMED ||
			      vf->state == VHCA_VF_ATTACHED || vf->state == VHCA_VF_DETACHING)) {
			vf->reprogram = true;
			vf->hw_known = false;
		}
		engine_mark(e, vf);
	}
	vhca_timer_arm_ms(e->requests, 0);
}

/* ---- live XML ---- */

/* Told when it comes, and when it changes. */
static void note_request_error(struct vhca_engine *e, struct vhca_domain *d,
			       const struct vhca_error *err)
{
	char text[VHCA_REASON_MAX];

	vhca_error_text(err, text, sizeof(text));
	if (err->kind && strcmp(err->msg, d->request_error.msg) != 0)
		vhca_events_add(e->args.events, "alarm", d->info->name, "%s", text);
	d->request_error = *err;
}

static int replace_info(struct vhca_domain *d, const struct vhca_dom_info *info)
{
	struct vhca_dom_info *copy = vhca_dom_info_dup(info);

	if (!copy)
		return -ENOMEM;
	free(d->info);
	d->info = copy;
	d->incoming = info->held;
	return 0;
}

static struct vhca_domain *update_domain(struct vhca_engine *e, const struct vhca_dom_info *info)
{
	struct vhca_domain *d = vhca_model_domain(&e->model, &info->uuid);
	bool is_new = !d;

	if (is_new)
		d = vhca_model_add_domain(&e->model);
	if (!d)
		return NULL;
	if (info->unreadable.kind && !is_new) {
		d->incoming = info->held;
		d->info->paused = info->paused;
	} else if (replace_info(d, info) < 0 && is_new) {
		vhca_model_drop_domain(&e->model, d);
		return NULL;
	}
	engine_note_unreadable(e, d, &info->unreadable);
	if (d->unreadable.kind)
		return d;
	engine_note_memory(e, info);
	note_request_error(e, d, &info->request_error);
	return d;
}

static void drop_domain(struct vhca_engine *e, struct vhca_domain *d)
{
	engine_unsuppress(e, &d->info->uuid, NULL);
	vhca_model_drop_domain(&e->model, d);
}

/*
 * What a domain was denied ends with it, although it stopped while nobody looked: the agent was
 * away, or the host.
 */
static void drop_stale_suppressions(struct vhca_engine *e)
{
	const struct vhca_suppressed *s = TAILQ_FIRST(&e->model.suppressed);

	while (s) {
		struct vhca_uuid domain = s->domain;

		if (vhca_model_domain(&e->model, &domain)) {
			s = TAILQ_NEXT(s, link);
			continue;
		}
		engine_unsuppress(e, &domain, NULL); /* all of the domain's */
		s = TAILQ_FIRST(&e->model.suppressed);
	}
}

static void domains_changed(struct vhca_engine *e)
{
	engine_mark_all(e);
	vhca_timer_arm_ms(e->requests, 0);
}

void vhca_engine_virt_sync(struct vhca_engine *e, struct vhca_dom_info *const *infos,
			   unsigned int n)
{
	struct vhca_domain *d, *next;

	TAILQ_FOREACH (d, &e->model.domains, link)
		d->seen = false;
	for (unsigned int i = 0; i < n; i++) {
		engine_hold_leases(e, &infos[i]->uuid);
		d = update_domain(e, infos[i]);
		if (d)
			d->seen = true;
	}
	for (d = TAILQ_FIRST(&e->model.domains); d; d = next) {
		next = TAILQ_NEXT(d, link);
		if (!d->seen)
			drop_domain(e, d);
	}
	drop_stale_suppressions(e);
	e->virt_synced = true;
	engine_ask_for_domains(e);
	domains_changed(e);
}

void vhca_engine_virt_lost(struct vhca_engine *e)
{
	e->virt_synced = false;
	engine_hold_leases(e, NULL);
	engine_mark_all(e);
}

void vhca_engine_domain(struct vhca_engine *e, const struct vhca_uuid *uuid,
			const struct vhca_dom_info *info)
{
	struct vhca_domain *d = vhca_model_domain(&e->model, uuid);

	if (info)
		(void)update_domain(e, info); /* out of memory: the next refresh tries again */
	else if (d)
		drop_domain(e, d);
	engine_hold_leases(e, uuid);
	domains_changed(e);
}

void vhca_engine_no_domain(struct vhca_engine *e, const struct vhca_uuid *uuid)
{
	struct vhca_domain *d = vhca_model_domain(&e->model, uuid);

	if (d)
		drop_domain(e, d);
	engine_count_leases(e, uuid);
	domains_changed(e);
}

/* ---- events, ahead of the live XML ---- */

/* By the alias in the live XML; when that has been read since, only ours can be told. */
static bool has_alias(const struct vhca_domain *d, const struct vhca_claim *c, const char *alias)
{
	size_t len = strlen(VHCA_ALIAS_PREFIX);

	for (unsigned int i = 0; i < d->info->n_hostdevs; i++)
		if (vhca_bdf_cmp(d->info->hostdevs[i].host, c->vf->bdf) == 0)
			return strcmp(d->info->hostdevs[i].alias, alias) == 0;
	return strncmp(alias, VHCA_ALIAS_PREFIX, len) == 0 && strcmp(alias + len, c->name) == 0;
}

static void remove_hostdev(struct vhca_domain *d, struct vhca_bdf host)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < d->info->n_hostdevs; i++)
		if (vhca_bdf_cmp(d->info->hostdevs[i].host, host) != 0)
			d->info->hostdevs[kept++] = d->info->hostdevs[i];
	d->info->n_hostdevs = kept;
}

void vhca_engine_device_removed(struct vhca_engine *e, const struct vhca_uuid *uuid,
				const char *alias, uint64_t at_us)
{
	struct vhca_domain *d = vhca_model_domain(&e->model, uuid);
	struct vhca_claim *c;

	if (!d)
		return;
	VHCA_FOREACH_CLAIM_OF (c, &e->model, uuid) {
		if (!c->vf || !has_alias(d, c, alias))
			continue;
		c->removed_us = at_us;
		if (c->vf->state != VHCA_VF_DETACHING)
			continue; /* nobody waits for it */
		remove_hostdev(d, c->vf->bdf);
		engine_mark(e, c->vf);
	}
}

void vhca_engine_guest_state(struct vhca_engine *e, const struct vhca_uuid *uuid, bool is_here,
			     uint64_t at_us)
{
	struct vhca_domain *d = vhca_model_domain(&e->model, uuid);

	if (!d || !d->incoming)
		return;
	d->arrived_us = at_us;
	d->incoming = !is_here;
	engine_mark_all(e);
}
