/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The work list: VFs that are to be stepped, now or later, what runs for them, which transactions
 * are under way, and the sentence that explains a VF to people.
 */
#include "agent/vf/work.h"

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
	if (c->end != VHCA_END_FORCED)
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
