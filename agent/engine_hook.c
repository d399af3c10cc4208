/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the qemu hook is told. */
#include <errno.h>
#include <string.h>

#include "agent/engine_int.h"
#include "common/base/file.h"

static int check_hostdev(struct vhca_engine *e, const struct vhca_hook_request *req,
			 struct vhca_bdf bdf, struct vhca_error *err)
{
	const struct vhca_vf *vf = vhca_model_vf(&e->model, bdf);
	bool his;

	if (!vf || vf->state == VHCA_VF_UNMANAGED)
		return 0;
	if (engine_check_drained(e, err) < 0)
		return -EBUSY;
	his = vf->claim && req->has_uuid && vhca_uuid_equal(&vf->claim->domain, &req->uuid);
	/* Before QEMU is there, only the domain's life before this one can have it: the claim ends with that. */
	if (his && vf->state == VHCA_VF_ATTACHED && !strcmp(req->op, "prepare"))
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "still_attached", 0,
				      "%s was claimed for the run of this domain that just ended; "
				      "claim it again (POST /v1/claims)",
				      VHCA_BDF_STR(bdf));
	if (his && (vf->state == VHCA_VF_PROGRAMMED || vf->state == VHCA_VF_ATTACHED))
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

static bool manages_vfs(const struct vhca_engine *e)
{
	const struct vhca_hca *hca;
	const struct vhca_vf *vf;

	TAILQ_FOREACH (hca, &e->model.hcas, link)
		TAILQ_FOREACH (vf, &hca->vfs, link)
			if (vf->state != VHCA_VF_UNMANAGED)
				return true;
	return false;
}

/* Those that the hook could not name may be of ours. */
static int check_unnamed(const struct vhca_engine *e, const struct vhca_hook_request *req,
			 struct vhca_error *err)
{
	if (!req->incomplete || !manages_vfs(e))
		return 0;
	return vhca_error_set(err, VHCA_ERR_DENIED, "host_devices_unknown", 0,
			      "not all host devices of this domain could be looked at: it has more "
			      "than %d, or its XML could not be read to its end (16 MiB) in time; "
			      "remove some, or start it again when the host is less busy",
			      VHCA_HOOK_HOSTDEVS_MAX);
}

/* A guest whose VFs were reserved before the drain began: it is on its way here. */
static bool is_coming(const struct vhca_engine *e, const struct vhca_hook_request *req)
{
	const struct vhca_claim *c;

	TAILQ_FOREACH (c, &e->model.claims, link)
		if (c->migrating && req->has_uuid && vhca_uuid_equal(&c->domain, &req->uuid))
			return true;
	return false;
}

int vhca_engine_hook(struct vhca_engine *e, const struct vhca_hook_request *req,
		     struct vhca_error *err)
{
	if (strcmp(req->op, "prepare") && strcmp(req->op, "start"))
		return 0;
	if (req->has_request && !is_coming(e, req) && engine_check_drained(e, err) < 0)
		return -EBUSY;
	for (unsigned int i = 0; i < req->n_hostdevs; i++) {
		int r = check_hostdev(e, req, req->hostdevs[i], err);

		if (r < 0)
			return r;
	}
	return check_unnamed(e, req, err);
}
