/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the qemu hook is told. */
#include <errno.h>
#include <string.h>

#include "agent/vf/claim.h"
#include "agent/vf/report.h"
#include "agent/vf/work.h"
#include "common/base/file.h"

bool vhca_engine_guards(struct vhca_engine *e, const struct vhca_vf *vf)
{
	const struct vhca_conf_hca *c = vhca_conf_hca(e->conf, vf->hca->facts.bdf);

	if (vf->state != VHCA_VF_UNMANAGED)
		return true;
	if (!c || !c->manage || vhca_conf_excludes(e->conf, vf->hca->facts.bdf, vf->bdf))
		return false;
	/*
	 * About to be taken over. What it shows until then is the driver's choice, or somebody's
	 * before.
	 */
	return !e->inventory_seen ||
	       (vf->present && vf->hca->managed && !vhca_vf_seems_in_use(vf) &&
		!vhca_model_user(&e->model, vf->bdf, NULL));
}

/*
 * A port's VF. What is attached before the begin was heard of is so to the domain's last life: it
 * is scrubbed and programmed anew.
 */
static bool is_ready(struct vhca_engine *e, const struct vhca_hook_request *req, struct vhca_vf *vf)
{
	struct vhca_claim *c = vf->claim;
	bool is_prepared = strcmp(req->op, "prepare") == 0;

	engine_use_reserved(e, c);
	if (c->custody == VHCA_CUSTODY_RESERVED)
		return false; /* not now (its VF is away, say), and it need not begin at all */
	if (is_prepared && (vf->state == VHCA_VF_CLAIMED || vf->state == VHCA_VF_PROGRAMMED))
		c->run = VHCA_RUN_BEGINS;
	else if (!is_prepared || c->run == VHCA_RUN_SEEN)
		c->run = VHCA_RUN_UNSEEN;
	if (vf->state == VHCA_VF_ATTACHED)
		return !is_prepared || c->run == VHCA_RUN_BEGINS;
	if (is_prepared && engine_is_changing(e, vf, true))
		return false; /* it may be on its way to its scrub */
	return vf->state != VHCA_VF_CLAIMED && vf->state != VHCA_VF_SCRUBBING;
}

static int check_hostdev(struct vhca_engine *e, const struct vhca_hook_request *req,
			 struct vhca_bdf bdf, struct vhca_error *err)
{
	struct vhca_vf *vf = vhca_model_vf(&e->model, bdf);
	const struct vhca_claim *c = vf ? vf->claim : NULL;
	bool his;

	if (!vf || !vhca_engine_guards(e, vf))
		return 0;
	if (vf->state == VHCA_VF_UNMANAGED)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "not_proven", 0,
				      "%s is an InfiniBand VF that vhcad is about to take over; "
				      "start the domain again in a moment, or leave the VF out "
				      "(exclude in [hca] of vhcad.conf)",
				      VHCA_BDF_STR(bdf));
	if (engine_check_drained(e, err) < 0)
		return -EBUSY;
	/*
	 * A claim that is over keeps its VF until the journal says so, which may take as long as a
	 * full disk does: the domain would begin with what is scrubbed then.
	 */
	his = c && req->has_uuid && vhca_uuid_equal(&c->domain, &req->uuid) &&
	      !vhca_claim_is_ending(c) && !c->failure.kind;
	if (his)
		engine_hold_leases(e, &req->uuid);
	if (his && vhca_claim_is_port(c) && !is_ready(e, req, vf)) {
		vhca_error_set(err, VHCA_ERR_CONFLICT, "not_programmed", 0,
			       "%s is claimed for this domain, and not programmed yet (%s): %s",
			       VHCA_BDF_STR(bdf), vhca_vf_state_to_string(vf->state), vf->reason);
		return -EINPROGRESS;
	}
	/*
	 * Before QEMU is there, only the domain's life before this one can have it: the claim ends
	 * with that.
	 */
	if (his && vf->state == VHCA_VF_ATTACHED && strcmp(req->op, "prepare") == 0 &&
	    !vhca_claim_is_port(c))
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "still_attached", 0,
				      "%s was claimed for the run of this domain that just ended; "
				      "claim it again (POST /v1/claims)",
				      VHCA_BDF_STR(bdf));
	if (his && !vf->to_hca &&
	    (vf->state == VHCA_VF_PROGRAMMED || vf->state == VHCA_VF_ATTACHED))
		return 0;
	if (his)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "not_programmed", 0,
				      "%s is claimed for this domain but not programmed yet (%s); "
				      "start it again in a moment",
				      VHCA_BDF_STR(bdf), vhca_vf_state_to_string(vf->state));
	return vhca_error_set(err, VHCA_ERR_DENIED, "not_claimed", 0,
			      "%s is an InfiniBand VF that vhcad manages, and it is not claimed "
			      "for this domain; remove its <hostdev> "
			      "and ask by metadata, or claim it first (POST /v1/claims)",
			      VHCA_BDF_STR(bdf));
}

int vhca_engine_hook(struct vhca_engine *e, const struct vhca_hook_request *req,
		     struct vhca_error *err)
{
	/* Its VFs were reserved before the drain began. */
	bool is_coming = req->has_uuid && engine_is_migrating(e, &req->uuid);
	const struct vhca_vf *vf;

	if (strcmp(req->op, "prepare") != 0 && strcmp(req->op, "start") != 0)
		return 0;
	if (req->has_request && !is_coming && engine_check_drained(e, err) < 0)
		return -EBUSY;
	for (unsigned int i = 0; i < req->n_hostdevs; i++) {
		int r = check_hostdev(e, req, req->hostdevs[i], err);

		if (r < 0)
			return r;
	}
	if (!req->incomplete)
		return 0;
	/* Those that the hook could not name may be of ours. */
	VHCA_FOREACH_VF (vf, &e->model)
		if (vhca_engine_guards(e, vf))
			return vhca_error_set(
				err, VHCA_ERR_DENIED, "host_devices_unknown", 0,
				"not all host devices of this domain could be looked at: it has "
				"more than %d, or its XML could not be read to its end (16 MiB) in "
				"time; remove some, or start it again when the host is less busy",
				VHCA_HOOK_HOSTDEVS_MAX);
	return 0;
}
