/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state disk refuses what is written (it is full, say). The store keeps all transactions and
 * tries again, so what waits for them goes on when there is room; nothing new begins meanwhile.
 * What has begun with the transaction that found it out is undone.
 */
#include <errno.h>

#include "agent/vf/engine_int.h"

static void begin(struct vhca_engine *e, int rc)
{
	vhca_error_set(&e->disk, VHCA_ERR_EXHAUSTED, "state_disk", -rc,
		       "the state database in %s cannot be written", e->conf->state_dir);
	vhca_error_hint(&e->disk, "make room (df %s); vhcad tries again and goes on by itself",
			e->conf->state_dir);
	vhca_events_add(e->args.events, "alarm", e->conf->node_name,
			"%s; nothing new is begun before it can", e->disk.msg);
}

static void end(struct vhca_engine *e)
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

void engine_disk_changed(void *engine, int rc)
{
	struct vhca_engine *e = engine;

	if (rc < 0)
		begin(e, rc);
	else
		end(e);
	engine_mark_all(e);
	vhca_engine_stir(e);
}

void engine_guard(struct vhca_engine *e, struct vhca_vf *vf)
{
	bool in_guest =
		vf->state == VHCA_VF_ATTACHED || vf->state == VHCA_VF_DETACHING ||
		(vf->state == VHCA_VF_PROGRAMMED && vhca_model_user(&e->model, vf->bdf, NULL));

	/* Under a stranger its identity is withdrawn, not restored. */
	if (in_guest && vf->present && !vf->to_hca && vf->claim &&
	    !vhca_model_stranger(&e->model, vf))
		(void)engine_follow_table(e, vf);
}
