/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_HOST_EFFECT_H
#define VHCA_AGENT_HOST_EFFECT_H
/* What an effect on a VF's hardware consists of; runs on the PF's strand with copies. */
#include "agent/vf/engine.h"

struct vhca_host_job {
	struct vhca_engine *engine;
	struct vhca_vf *vf; /* handed back, never looked into by work() */
	enum vhca_effect effect;
	char dev_root[64];
	struct vhca_bdf bdf;
	char ibdev[64];
	const struct vhca_identity_ops *ops;
	struct vhca_identity_at at; /* its ibdev is the job's */
	int iommu_group;
	bool bind;    /* PROGRAM: make sure of vfio-pci first */
	bool is_ours; /* it is not just being taken over */
	bool unused;  /* PROGRAM: nobody may have its group open (vhca_model_is_unused()) */
	struct vhca_identity want;
	struct vhca_effect_result result;
};

/* NULL: out of memory. The model says who has the VF now. */
struct vhca_host_job *vhca_host_job_new(struct vhca_sysfs *sys, const char *dev_root,
					struct vhca_model *model, struct vhca_vf *vf,
					enum vhca_effect effect);
void vhca_host_job_work(void *job);

#endif
