/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Creation and dispatch: what is on the work list is stepped, and who listens is told. The state
 * database is opened before any HCA is seen: a VF known from it stands in the model, not present,
 * until the kernel shows it.
 */
#include "agent/vf/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vf/claim.h"
#include "agent/vf/report.h"
#include "agent/vf/request.h"
#include "agent/vf/step.h"
#include "agent/vf/transition.h"
#include "agent/vf/work.h"
#include "common/base/file.h"

#define BEGIN_AFTER_RESTART_MS 30000

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

/* ---- life ---- */

/* Nothing of a VF survives a reboot: then its state is found out anew. */
static int on_loaded_vf(void *ctx, const struct vhca_journal_vf *row)
{
	struct vhca_engine *e = ctx;
	struct vhca_vf *vf = engine_add_vf(e, row->pf, row->bdf, row->index);

	if (!vf)
		return -ENOMEM;
	if (strcmp(row->boot_id, e->args.boot_id) != 0)
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
	engine_forget_answer(claim);
	vf->reprogram = vf->state ==
			VHCA_VF_PROGRAMMED; /* what was proven before the restart is proven again */
	vf->unread = vf->state == VHCA_VF_DETACHING;
	/* Whether its guest has run is forgotten; where it went, somebody may wait for its GUID. */
	claim->asked_before = vhca_claim_is_port(claim) && vf->state == VHCA_VF_CLAIMED &&
			      claim->custody == VHCA_CUSTODY_HERE;
	if (vhca_claim_is_port(claim) &&
	    (vf->state == VHCA_VF_CLAIMED || vf->state == VHCA_VF_PROGRAMMED))
		vf->deadline_ms = vhca_now_ms() + BEGIN_AFTER_RESTART_MS;
	/*
	 * Whether it came, or was started here meanwhile, is not known: then another host may have
	 * it.
	 */
	claim->arbitration_asked = claim->migrating && vf->state == VHCA_VF_PROGRAMMED;
	if (vf->state != VHCA_VF_UNMANAGED)
		return 0;
	/*
	 * From an earlier boot. An orchestrator's claim stands for an XML to come and is programmed
	 * again. A cloud's guest may be elsewhere by now; it says all anew what begins here.
	 */
	claim->boot = VHCA_BOOT_EARLIER;
	if (claim->origin == VHCA_ORIGIN_CLAIM && !vhca_claim_is_ending(claim) &&
	    !vhca_claim_is_port(claim)) {
		claim->boot = VHCA_BOOT_OUTLIVED;
		vf->state = VHCA_VF_CLAIMED;
	}
	return 0;
}

/* ---- the state disk ---- */

/*
 * The state disk refuses what is written (it is full, say). The store keeps all transactions and
 * tries again, so what waits for them goes on when there is room; nothing new begins meanwhile.
 * What has begun with the transaction that found it out is undone.
 */
static void begin_outage(struct vhca_engine *e, int rc)
{
	vhca_error_set(&e->disk, VHCA_ERR_EXHAUSTED, "state_disk", -rc,
		       "the state database in %s cannot be written", e->conf->state_dir);
	vhca_error_hint(&e->disk, "make room (df %s); vhcad tries again and goes on by itself",
			e->conf->state_dir);
	vhca_events_add(e->args.events, "alarm", e->conf->node_name,
			"%s; nothing new is begun before it can", e->disk.msg);
}

static void end_outage(struct vhca_engine *e)
{
	struct vhca_domain *dom;
	struct vhca_hca *hca;

	e->disk = (struct vhca_error)VHCA_ERROR_INIT;
	vhca_events_add(e->args.events, "disk", e->conf->node_name,
			"the state database in %s is written again", e->conf->state_dir);
	if (e->owes_reports) {
		e->owes_reports = false;
		TAILQ_FOREACH (hca, &e->model.hcas, link)
			engine_report_hca(e, hca);
	}
	TAILQ_FOREACH (dom, &e->model.domains, link)
		engine_ask_again(e, dom);
}

static void on_disk_changed(void *engine, int rc)
{
	struct vhca_engine *e = engine;

	if (rc < 0)
		begin_outage(e, rc);
	else
		end_outage(e);
	engine_mark_all(e);
	vhca_engine_stir(e);
}

/* ---- composition ---- */

static void on_requests(void *arg)
{
	engine_requests(arg);
}

int vhca_engine_new(const struct vhca_engine_args *args, struct vhca_engine **ret,
		    struct vhca_error *err)
{
	static const struct engine_callbacks callbacks = {engine_serve_elsewhere,
							  engine_request_failed};
	static const struct vhca_journal_sink sink = {on_loaded_vf, on_loaded_claim};
	struct vhca_engine *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return vhca_error_no_memory(err, "engine");
	e->args = *args;
	if (!e->args.retry_ms)
		e->args.retry_ms = RETRY_FIRST_MS;
	if (!e->args.request_ms)
		e->args.request_ms = REQUEST_FIRST_MS;
	e->callbacks = &callbacks;
	e->conf = args->conf;
	STAILQ_INIT(&e->dirty);
	TAILQ_INIT(&e->commits);
	TAILQ_INIT(&e->forgets);
	TAILQ_INIT(&e->adopts);
	TAILQ_INIT(&e->takeovers);
	TAILQ_INIT(&e->listeners);
	vhca_model_init(&e->model);
	r = vhca_timer_new(args->loop, "engine", on_run, e, &e->run);
	if (r == 0)
		r = vhca_timer_new(args->loop, "requests", on_requests, e, &e->requests);
	if (r < 0)
		vhca_error_set(err, VHCA_ERR_INTERNAL, "no_memory", -r, "engine timers");
	if (r == 0)
		r = vhca_journal_load(args->store, &e->model, &sink, e, err);
	if (r == 0)
		vhca_store_watch(args->store, on_disk_changed, e);
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

/*
 * The guest of such a claim is still to come; but whoever has the vGUID by now may have it at an
 * epoch of the older generation. That it ends is durable before its report is dropped, of which the
 * next life of the agent sees no more.
 */
static void end_unheard_takeover(struct vhca_engine *e, struct vhca_claim *c)
{
	struct vhca_txn *txn;

	if (c->boot != VHCA_BOOT_OUTLIVED || !vhca_epoch_begins_generation(c->epoch) ||
	    !vhca_outbox_has_bound(e->outbox, c->identity.guid))
		return;
	txn = vhca_txn_new(e->args.store);
	engine_ask_end(c);
	vhca_journal_claim(txn, c);
	vhca_txn_commit(txn, NULL, NULL);
	c->boot = VHCA_BOOT_EARLIER;
	c->vf->state = VHCA_VF_UNMANAGED;
}

static bool needs_proof(void *engine, uint64_t vguid)
{
	struct vhca_engine *e = engine;

	return vhca_model_claim_by_guid(&e->model, vguid) || vhca_outbox_has_word(e->outbox, vguid);
}

/*
 * Guests of an earlier boot may run elsewhere by now, at an epoch below one that was raised here
 * and not heard of; whoever has it there is not told when it is taken from him.
 */
void vhca_engine_set_outbox(struct vhca_engine *e, struct vhca_outbox *outbox)
{
	struct vhca_claim *c;
	struct vhca_txn *txn;
	uint64_t vguid;

	e->outbox = outbox;
	if (!outbox)
		return;
	/* A proof that has outlived its claim would keep a later claim's from being taken. */
	while ((vguid = vhca_outbox_unneeded_proof(outbox, needs_proof, e))) {
		txn = vhca_txn_new(e->args.store);
		vhca_outbox_drop_proof(outbox, txn, vguid);
		vhca_txn_commit(txn, NULL, NULL);
	}
	TAILQ_FOREACH (c, &e->model.claims, link) {
		end_unheard_takeover(e, c);
		if (c->boot == VHCA_BOOT_EARLIER)
			vhca_outbox_drop_bound(outbox, c->identity.guid);
		else if (c->word == VHCA_WORD_YES &&
			 vhca_outbox_has_bound(outbox, c->identity.guid))
			c->word = VHCA_WORD_AWAITED;
	}
}

bool vhca_engine_virt_synced(const struct vhca_engine *e)
{
	return e->virt_synced;
}

/* ---- readiness ---- */

static bool vf_pending(const struct vhca_engine *e, const struct vhca_vf *vf)
{
	if (!vf->present || !vhca_engine_manages(e, vf))
		return false;
	return vf->state == VHCA_VF_PREPARING ||
	       (vf->state == VHCA_VF_UNMANAGED && !vhca_vf_seems_in_use(vf) &&
		!vhca_model_user(&e->model, vf->bdf, NULL));
}

/* Whether that was tried and has failed, its problem says. */
static bool makes_vfs(const struct vhca_hca *hca)
{
	return hca->present && vhca_hca_gives_vfs(hca) && hca->want_vfs != VHCA_CONF_VFS_KEEP &&
	       hca->facts.num_vfs != hca->want_vfs && !hca->problem[0];
}

int vhca_engine_check_ready(const struct vhca_engine *e, struct vhca_error *err)
{
	const struct vhca_hca *hca;
	const struct vhca_vf *vf;

	if (e->disk.kind)
		return vhca_engine_check_disk(e, err);
	if (!e->inventory_seen)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "inventory_unread", 0,
				      "the PCI inventory has not been read yet");
	TAILQ_FOREACH (hca, &e->model.hcas, link) {
		if (makes_vfs(hca))
			return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "vfs_not_made", 0,
					      "the VFs of %s are being made",
					      VHCA_BDF_STR(hca->facts.bdf));
		TAILQ_FOREACH (vf, &hca->vfs, link)
			if (vhca_hca_gives_vfs(hca) && vf_pending(e, vf))
				return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "vfs_unbound", 0,
						      "VF %s is not bound yet",
						      VHCA_BDF_STR(vf->bdf));
	}
	return 0;
}

int vhca_engine_check_ports(const struct vhca_engine *e, struct vhca_error *err)
{
	const struct vhca_hca *hca;

	TAILQ_FOREACH (hca, &e->model.hcas, link)
		if (hca->present && hca->managed && hca->facts.total_vfs &&
		    hca->facts.ib_ports == VHCA_IB_PORTS_UNKNOWN)
			return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "ports_unread", 0,
					      "the adapter %s has no RDMA device yet",
					      VHCA_BDF_STR(hca->facts.bdf));
	return 0;
}
