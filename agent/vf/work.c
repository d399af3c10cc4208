/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The work list: VFs that are to be stepped, now or later, what runs for them, which transactions
 * are under way, the sentence that explains a VF to people, and who waits for what becomes of a
 * claim.
 */
#include "agent/vf/work.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/file.h"

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
	struct vhca_vf *vf;

	VHCA_FOREACH_VF (vf, &e->model)
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

struct vhca_vf *engine_add_vf(struct vhca_engine *e, struct vhca_bdf pf, struct vhca_bdf bdf,
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
		(struct vhca_backoff){.first_ms = e->args.retry_ms, .cap_ms = RETRY_CAP_MS};
	if (vhca_timer_new(e->args.loop, "vf", on_vf_timer, vf, &vf->timer) < 0) {
		TAILQ_REMOVE(&hca->vfs, vf, link);
		free(vf);
		return NULL;
	}
	return vf;
}

/* ---- effects ---- */

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

void engine_start(struct vhca_engine *e, struct vhca_vf *vf, enum vhca_effect effect)
{
	struct vhca_slot *slot = vhca_vf_slot(vf, effect);
	uint64_t now = vhca_now_ms();

	if (now < slot->not_before_ms) {
		engine_again(e, vf, slot->not_before_ms - now);
		return;
	}
	slot->effect = effect;
	slot->begun_us = vhca_now_us();
	if (slot == &vf->host)
		vf->outdated = false;
	e->args.effects.start(e->args.effects.ctx, vf, effect);
}

void engine_owe(struct vhca_vf *vf, enum vhca_vf_owed owed)
{
	if (vf->owed < owed)
		vf->owed = owed;
}

void engine_ask_end(struct vhca_claim *c)
{
	if (c->end == VHCA_END_FORCED)
		c->released = true;
	else
		c->end = VHCA_END_ASKED;
}

void engine_forget_probe(struct vhca_vf *vf)
{
	if (vf->use == VHCA_USE_SOMEBODY)
		vf->use = VHCA_USE_PROBE_AGAIN;
	else if (vf->use == VHCA_USE_NOBODY)
		vf->use = VHCA_USE_UNKNOWN;
}

/* ---- what is said of a VF, and of a claim ---- */

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

void engine_alarm(struct vhca_engine *e, struct vhca_vf *vf, const char *why)
{
	engine_reason(vf, "%s", why);
	vhca_events_add(e->args.events, "alarm", VHCA_BDF_STR(vf->bdf), "%s", vf->reason);
}

const char *engine_claim_label(const struct vhca_claim *claim, char buf[static 192])
{
	(void)snprintf(buf, 192, "%s/%s", claim->domain_name, claim->name);
	return buf;
}

/* ---- transactions ---- */

struct engine_commit *engine_new_commit(struct vhca_engine *e, struct vhca_vf *vf, bool move)
{
	struct engine_commit *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct engine_commit){.e = e, .vf = vf, .move = move};
	TAILQ_INSERT_TAIL(&e->commits, c, link);
	if (vf)
		vf->committing++;
	return c;
}

void engine_free_commit(struct engine_commit *c)
{
	TAILQ_REMOVE(&c->e->commits, c, link);
	free(c->before);
	free(c);
}

bool engine_is_changing(const struct vhca_engine *e, const struct vhca_vf *vf, bool or_moves)
{
	const struct engine_commit *c;

	TAILQ_FOREACH (c, &e->commits, link)
		if (c->vf == vf && (c->before || (or_moves && c->move)))
			return true;
	return false;
}

void engine_drop_commits(struct vhca_engine *e)
{
	while (TAILQ_FIRST(&e->commits))
		engine_free_commit(TAILQ_FIRST(&e->commits));
}

bool engine_is_unborn(const struct vhca_vf *vf)
{
	return vf->claim && vf->claim->boot != VHCA_BOOT_EARLIER &&
	       (vf->state == VHCA_VF_FREE || vf->state == VHCA_VF_UNMANAGED);
}

int vhca_engine_check_disk(const struct vhca_engine *e, struct vhca_error *err)
{
	if (!e->disk.kind)
		return 0;
	if (err)
		*err = e->disk;
	return -e->disk.errnum;
}

/* ---- who waits for what becomes of a claim ---- */

struct waiter_call {
	vhca_waiter_fn fn;
	void *arg;
	struct vhca_error err;
};

static void on_waiter_call(void *arg)
{
	struct waiter_call *call = arg;

	call->fn(call->arg, NULL, call->err.kind ? &call->err : NULL);
}

/* An answer that is known at once is still given from the loop, as the contract says. */
void engine_answer_later(struct vhca_engine *e, vhca_waiter_fn fn, void *arg,
			 const struct vhca_error *err)
{
	struct waiter_call call = {.fn = fn, .arg = arg, .err = *err};

	vhca_loop_post_copy(e->args.loop, on_waiter_call, &call, sizeof(call));
}

int engine_add_waiter(struct vhca_claim *claim, enum vhca_vf_state until, vhca_waiter_fn fn,
		      void *arg)
{
	struct vhca_waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct vhca_waiter){.until = until, .fn = fn, .arg = arg};
	STAILQ_INSERT_TAIL(&claim->waiters, w, link);
	return 0;
}

/*
 * A claim that ends answers everybody: who waited for the end is content, the others hear why it
 * did not come to what they wanted.
 */
static void tell_one(struct vhca_claim *claim, struct vhca_waiter *w, enum vhca_vf_state state,
		     const struct vhca_error *err)
{
	struct vhca_error ended;

	if (err &&
	    !(state == VHCA_VF_FREE && w->until == VHCA_VF_FREE && vhca_claim_is_ending(claim))) {
		w->fn(w->arg, NULL, err);
	} else if (state == w->until || (err && w->until == VHCA_VF_FREE)) {
		w->fn(w->arg, state == VHCA_VF_FREE ? NULL : claim, NULL);
	} else {
		vhca_error_set(&ended, VHCA_ERR_CONFLICT, "released", 0,
			       "the claim of %s was released before it was done", claim->name);
		w->fn(w->arg, NULL, &ended);
	}
	free(w);
}

/* Tells those who wait for `state`, or all; not those whom one of them adds meanwhile. */
static void tell(struct vhca_claim *claim, enum vhca_vf_state state, bool all,
		 const struct vhca_error *err)
{
	STAILQ_HEAD(, vhca_waiter) told = STAILQ_HEAD_INITIALIZER(told);
	struct vhca_waiter *w, *next;

	for (w = STAILQ_FIRST(&claim->waiters); w; w = next) {
		next = STAILQ_NEXT(w, link);
		if (!all && w->until != state)
			continue;
		STAILQ_REMOVE(&claim->waiters, w, vhca_waiter, link);
		STAILQ_INSERT_TAIL(&told, w, link);
	}
	while ((w = STAILQ_FIRST(&told))) {
		STAILQ_REMOVE_HEAD(&told, link);
		tell_one(claim, w, state, err);
	}
}

void engine_tell(struct vhca_engine *e, struct vhca_claim *claim, enum vhca_vf_state state,
		 const struct vhca_error *err)
{
	(void)e;
	tell(claim, state, err || state == VHCA_VF_FREE, err);
}

void engine_refuse(struct vhca_claim *claim, enum vhca_vf_state until, const struct vhca_error *err)
{
	tell(claim, until, false, err);
}
