/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Inputs and the work list. */
#include "agent/vf/engine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vf/engine_int.h"
#include "agent/state/exclude.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"

/*
 * The state database is opened before any HCA is seen: a VF known from it stands in the model, not
 * present, until the kernel shows it.
 */

static void on_run(void *arg)
{
	struct vhca_engine *e = arg;
	struct vhca_engine_listener *listener;
	struct vhca_vf *vf;

	while ((vf = STAILQ_FIRST(&e->dirty))) {
		STAILQ_REMOVE_HEAD(&e->dirty, dirty_link);
		vf->dirty = false;
		engine_step(e, vf);
	}
	TAILQ_FOREACH (listener, &e->listeners, link)
		listener->fn(listener->arg);
}

void vhca_engine_listen(struct vhca_engine *e, struct vhca_engine_listener *listener)
{
	TAILQ_INSERT_TAIL(&e->listeners, listener, link);
}

void vhca_engine_unlisten(struct vhca_engine *e, struct vhca_engine_listener *listener)
{
	TAILQ_REMOVE(&e->listeners, listener, link);
}

void vhca_engine_stir(struct vhca_engine *e)
{
	vhca_timer_arm_ms(e->run, 0);
}

void engine_mark(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (vf->dirty)
		return;
	vf->dirty = true;
	if (STAILQ_EMPTY(&e->dirty))
		vhca_timer_arm_ms(e->run, 0);
	STAILQ_INSERT_TAIL(&e->dirty, vf, dirty_link);
}

void engine_mark_all(struct vhca_engine *e)
{
	struct vhca_hca *hca;
	struct vhca_vf *vf;

	TAILQ_FOREACH (hca, &e->model.hcas, link)
		TAILQ_FOREACH (vf, &hca->vfs, link)
			engine_mark(e, vf);
}

static void on_vf_timer(void *arg)
{
	struct vhca_vf *vf = arg;

	engine_mark(vf->engine, vf);
}

void engine_again(struct vhca_engine *e, struct vhca_vf *vf, uint64_t ms)
{
	(void)e;
	vhca_timer_arm_ms(vf->timer, ms);
}

static void back_off(struct vhca_engine *e, struct vhca_vf *vf, struct vhca_slot *slot)
{
	uint32_t ms = vhca_backoff_next(&slot->backoff);

	slot->not_before_ms = vhca_now_ms() + ms;
	engine_again(e, vf, ms);
}

void engine_back_off(struct vhca_engine *e, struct vhca_vf *vf)
{
	back_off(e, vf, &vf->host);
}

void engine_virt_back_off(struct vhca_engine *e, struct vhca_vf *vf)
{
	back_off(e, vf, &vf->virt);
}

static struct vhca_slot *slot_of(struct vhca_vf *vf, enum vhca_effect effect)
{
	return effect >= VHCA_EFFECT_ATTACH ? &vf->virt : &vf->host;
}

void engine_start(struct vhca_engine *e, struct vhca_vf *vf, enum vhca_effect effect)
{
	struct vhca_slot *slot = slot_of(vf, effect);
	uint64_t now = vhca_now_ms();

	if (now < slot->not_before_ms) {
		engine_again(e, vf, slot->not_before_ms - now);
		return;
	}
	slot->effect = effect;
	if (slot == &vf->host)
		vf->outdated = false;
	e->args.effects.start(e->args.effects.ctx, vf, effect);
}

void engine_reason(struct vhca_vf *vf, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(vf->reason, sizeof(vf->reason), fmt, ap);
	va_end(ap);
}

void engine_no_reason(struct vhca_vf *vf)
{
	vf->reason[0] = '\0';
}

/* ---- life ---- */

static struct vhca_vf *add_vf(struct vhca_engine *e, struct vhca_bdf pf, struct vhca_bdf bdf,
			      uint16_t index)
{
	struct vhca_hca *hca = vhca_model_hca(&e->model, pf);
	struct vhca_vf *vf;

	if (!hca)
		hca = vhca_model_add_hca(&e->model, pf);
	vf = hca ? vhca_model_add_vf(hca, bdf, index) : NULL;
	if (!vf)
		return NULL;
	vf->engine = e;
	vf->since_ms = vhca_wall_ms();
	vf->host.backoff = vf->virt.backoff =
		(struct vhca_backoff){.first_ms = RETRY_FIRST_MS, .cap_ms = RETRY_CAP_MS};
	if (vhca_timer_new(e->args.loop, "vf", on_vf_timer, vf, &vf->timer) < 0) {
		TAILQ_REMOVE(&hca->vfs, vf, link);
		free(vf);
		return NULL;
	}
	return vf;
}

/* Nothing of a VF survives a reboot: then its state is found out anew. */
static int on_loaded_vf(void *ctx, const struct vhca_journal_vf *row)
{
	struct vhca_engine *e = ctx;
	struct vhca_vf *vf = add_vf(e, row->pf, row->bdf, row->index);

	if (!vf)
		return -ENOMEM;
	if (strcmp(row->boot_id, e->args.boot_id))
		return 0;
	vf->state = row->state;
	vf->since_ms = row->since_ms;
	vf->failures = row->failures;
	vf->rests_until_ms = row->rests_until_ms;
	(void)vhca_strcpy(vf->fault, sizeof(vf->fault), row->fault);	/* same size */
	(void)vhca_strcpy(vf->reason, sizeof(vf->reason), row->reason); /* same size */
	return 0;
}

static int on_loaded_claim(void *ctx, struct vhca_claim *claim, struct vhca_bdf bdf)
{
	struct vhca_engine *e = ctx;
	struct vhca_vf *vf = vhca_model_vf(&e->model, bdf);

	if (!vf)
		return -EBADMSG;
	claim->vf = vf;
	vf->claim = claim;
	claim->told_ms = vhca_now_ms();
	vf->reprogram = vf->state ==
			VHCA_VF_PROGRAMMED; /* what was proven before the restart is proven again */
	vf->unread = vf->state == VHCA_VF_DETACHING;
	/*
	 * Whether it came, or was started here meanwhile, is not known: then another host may have
	 * it.
	 */
	claim->contested = claim->migrating && vf->state == VHCA_VF_PROGRAMMED;
	if (vf->state != VHCA_VF_UNMANAGED)
		return 0;
	/*
	 * From an earlier boot. An orchestrator's claim stands for an XML to come and is programmed
	 * again.
	 */
	if (claim->way == VHCA_WAY_CLAIM && !claim->ending)
		vf->state = VHCA_VF_CLAIMED;
	else
		claim->orphan = true;
	return 0;
}

static void on_requests(void *arg)
{
	engine_requests(arg);
}

int vhca_engine_new(const struct vhca_engine_args *args, struct vhca_engine **ret,
		    struct vhca_error *err)
{
	static const struct vhca_journal_sink sink = {on_loaded_vf, on_loaded_claim};
	struct vhca_engine *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return vhca_error_no_memory(err, "engine");
	e->args = *args;
	e->conf = args->conf;
	STAILQ_INIT(&e->dirty);
	TAILQ_INIT(&e->commits);
	TAILQ_INIT(&e->forgets);
	TAILQ_INIT(&e->adopts);
	TAILQ_INIT(&e->takeovers);
	TAILQ_INIT(&e->listeners);
	vhca_model_init(&e->model);
	r = vhca_timer_new(args->loop, "engine", on_run, e, &e->run);
	if (!r)
		r = vhca_timer_new(args->loop, "requests", on_requests, e, &e->requests);
	if (r < 0)
		vhca_error_set(err, VHCA_ERR_INTERNAL, "no_memory", -r, "engine timers");
	if (!r)
		r = vhca_journal_load(args->store, &e->model, &sink, e, err);
	if (!r)
		vhca_store_watch(args->store, engine_disk_changed, e);
	if (r < 0) {
		vhca_engine_free(e);
		return r;
	}
	*ret = e;
	return 0;
}

struct vhca_engine *vhca_engine_free(struct vhca_engine *e)
{
	struct vhca_error err;
	struct vhca_claim *c;

	if (!e)
		return NULL;
	vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "shutting_down", 0,
		       "the agent is stopping; the claim stays as it is");
	TAILQ_FOREACH (c, &e->model.claims, link)
		engine_tell(e, c, VHCA_VF_UNMANAGED, &err); /* a state that nobody waits for */
	engine_drop_adopts(e, &err);
	engine_drop_forgets(e, &err);
	engine_drop_commits(e);
	engine_drop_takeovers(e);
	vhca_timer_free(e->run);
	vhca_timer_free(e->requests);
	vhca_model_done(&e->model);
	free(e->nodes);
	free(e);
	return NULL;
}

struct vhca_model *vhca_engine_model(struct vhca_engine *e)
{
	return &e->model;
}

void vhca_engine_set_outbox(struct vhca_engine *e, struct vhca_outbox *outbox)
{
	e->outbox = outbox;
}

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
		vf = add_vf(e, hca->facts.bdf, facts->bdf, facts->index);
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
	struct vhca_hca *hca;
	struct vhca_vf *vf;

	TAILQ_FOREACH (hca, &e->model.hcas, link) {
		TAILQ_FOREACH (vf, &hca->vfs, link) {
			if (vf->present) {
				vf->absent_ms = 0;
			} else if (!vf->absent_ms) {
				vf->absent_ms = vhca_now_ms();
				vf->probed = false;
			}
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
		hca->present = false;
		TAILQ_FOREACH (vf, &hca->vfs, link)
			vf->present = false;
	}
	for (unsigned int i = 0; i < inv->n_pfs; i++)
		see_pf(e, &inv->pfs[i]);
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
	if (!hca || !strcmp(hca->problem, problem))
		return;
	(void)vhca_strcpy(hca->problem, sizeof(hca->problem), problem); /* same size */
	(void)vhca_strcpy(hca->problem_fix, sizeof(hca->problem_fix), err ? err->hint : "");
	if (problem[0])
		vhca_events_add(e->args.events, "alarm", VHCA_BDF_STR(pf), "%s", problem);
}

/* Bindings first: no key that one of them needs leaves the port in between. */
void engine_report_hca(struct vhca_engine *e, struct vhca_hca *hca)
{
	struct vhca_claim *c;

	TAILQ_FOREACH (c, &e->model.claims, link)
		if (c->vf && c->vf->hca == hca && c->vf->state != VHCA_VF_UNMANAGED && !c->orphan &&
		    !c->away)
			engine_report(e, c);
	engine_declare_again(e, hca);
}

void vhca_engine_snapshot(void *engine)
{
	struct vhca_engine *e = engine;
	struct vhca_hca *hca;

	vhca_events_add(e->args.events, "sm", e->conf->node_name,
			"the SM rebuilds: all bindings are reported again");
	TAILQ_FOREACH (hca, &e->model.hcas, link)
		engine_report_hca(e, hca);
}

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

/* What the VF shows of the claim's keys was read from the table as it was before. */
static void outdate(struct vhca_vf *vf)
{
	vf->outdated = true;
	if (vf->state != VHCA_VF_CLAIMED && vf->state != VHCA_VF_PROGRAMMED &&
	    vf->state != VHCA_VF_ATTACHED && vf->state != VHCA_VF_DETACHING)
		return;
	vf->reprogram = true;
	vf->hw_known = false;
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
		if (table)
			outdate(vf);
		engine_mark(e, vf);
	}
	vhca_timer_arm_ms(e->requests, 0);
}

/* ---- libvirt ---- */

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

static const struct vhca_suppressed *suppressed_of_nobody(struct vhca_engine *e)
{
	const struct vhca_suppressed *s;

	TAILQ_FOREACH (s, &e->model.suppressed, link)
		if (!vhca_model_domain(&e->model, &s->domain))
			return s;
	return NULL;
}

/*
 * What a domain was denied ends with it, although it stopped while nobody looked: the agent was
 * away, or the host.
 */
static void forget_denials_of_the_gone(struct vhca_engine *e)
{
	const struct vhca_suppressed *s;

	while ((s = suppressed_of_nobody(e)) != NULL) {
		struct vhca_uuid domain = s->domain;

		engine_unsuppress(e, &domain, NULL);
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
		d = update_domain(e, infos[i]);
		if (d)
			d->seen = true;
	}
	for (d = TAILQ_FIRST(&e->model.domains); d; d = next) {
		next = TAILQ_NEXT(d, link);
		if (!d->seen)
			drop_domain(e, d);
	}
	forget_denials_of_the_gone(e);
	e->virt_synced = true;
	domains_changed(e);
}

void vhca_engine_virt_lost(struct vhca_engine *e)
{
	e->virt_synced = false;
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
	domains_changed(e);
}

bool vhca_engine_virt_synced(const struct vhca_engine *e)
{
	return e->virt_synced;
}

bool vhca_engine_manages(const struct vhca_engine *e, const struct vhca_vf *vf)
{
	return vf->hca->managed && !vhca_conf_excludes(e->conf, vf->hca->facts.bdf, vf->bdf);
}

/* ---- readiness ---- */

static bool vf_pending(struct vhca_engine *e, const struct vhca_vf *vf)
{
	if (!vf->present || !vhca_engine_manages(e, vf))
		return false;
	return vf->state == VHCA_VF_PREPARING || (vf->state == VHCA_VF_UNMANAGED && !vf->in_use &&
						  !vhca_model_user(&e->model, vf->bdf, NULL));
}

/* Whether that was tried and has failed, its problem says. */
static bool makes_vfs(const struct vhca_hca *hca)
{
	return hca->present && vhca_hca_gives_vfs(hca) && hca->want_vfs != VHCA_CONF_VFS_KEEP &&
	       hca->facts.num_vfs != hca->want_vfs && !hca->problem[0];
}

const char *vhca_engine_not_ready(const struct vhca_engine *engine)
{
	struct vhca_engine *e =
		(struct vhca_engine *)engine; /* only the sentence buffer is written */
	const struct vhca_hca *hca;
	const struct vhca_vf *vf;

	if (e->disk.kind)
		return e->disk.msg;
	if (!e->inventory_seen)
		return "the PCI inventory has not been read yet";
	TAILQ_FOREACH (hca, &e->model.hcas, link) {
		if (makes_vfs(hca)) {
			(void)snprintf(e->not_ready, sizeof(e->not_ready),
				       "the VFs of %s are being made",
				       VHCA_BDF_STR(hca->facts.bdf));
			return e->not_ready;
		}
		TAILQ_FOREACH (vf, &hca->vfs, link) {
			if (!vhca_hca_gives_vfs(hca) || !vf_pending(e, vf))
				continue;
			(void)snprintf(e->not_ready, sizeof(e->not_ready), "VF %s is not bound yet",
				       VHCA_BDF_STR(vf->bdf));
			return e->not_ready;
		}
	}
	return NULL;
}

const char *vhca_engine_awaits_ports(const struct vhca_engine *engine)
{
	struct vhca_engine *e =
		(struct vhca_engine *)engine; /* only the sentence buffer is written */
	const struct vhca_hca *hca;

	TAILQ_FOREACH (hca, &e->model.hcas, link) {
		if (!hca->present || !hca->managed || !hca->facts.total_vfs ||
		    hca->facts.ib_ports != VHCA_IB_PORTS_UNKNOWN)
			continue;
		(void)snprintf(e->not_ready, sizeof(e->not_ready),
			       "the adapter %s has no RDMA device yet",
			       VHCA_BDF_STR(hca->facts.bdf));
		return e->not_ready;
	}
	return NULL;
}
