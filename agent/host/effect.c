/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/host/effect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/file.h"
#include "sriov/usage.h"
#include "sriov/vfio.h"

/* mlx4 creates iov/ after the RDMA device is announced, with no event: wait this long for it. */
#define IOV_WAIT_MS  5000
#define IOV_SLEEP_MS 50

struct vhca_host_job *vhca_host_job_new(struct vhca_sysfs *sys, const char *dev_root,
					struct vhca_model *model, struct vhca_vf *vf,
					enum vhca_effect effect)
{
	struct vhca_host_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	*job = (struct vhca_host_job){
		.vf = vf,
		.effect = effect,
		.bdf = vf->bdf,
		.ops = vhca_hca_identity(vf->hca),
		.at = {.sys = sys,
		       .pf = vf->hca->facts.bdf,
		       .ibdev = job->ibdev,
		       .vf_index = vf->index,
		       .port = vf->hca->port,
		       .n_ports = vf->hca->facts.n_ports},
		.iommu_group = vf->iommu_group,
		.bind = vf->state == VHCA_VF_CLAIMED,
		.unused = vhca_model_is_unused(model, vf),
		.is_ours = effect != VHCA_EFFECT_PROBE && (vf->claim || !vhca_vf_is_probed(vf)),
	};
	(void)vhca_strcpy(job->dev_root, sizeof(job->dev_root), dev_root);
	(void)vhca_strcpy(job->ibdev, sizeof(job->ibdev), vf->hca->facts.ibdev); /* same size */
	if (vf->claim)
		job->want = vhca_claim_shows(vf->claim);
	return job;
}

static int need_device(struct vhca_host_job *job)
{
	if (!job->ibdev[0])
		return vhca_error_set(&job->result.err, VHCA_ERR_UNAVAILABLE, "no_rdma_device",
				      ENODEV,
				      "%s: its PF %s has no RDMA device (driver still starting?)",
				      VHCA_BDF_STR(job->bdf), VHCA_BDF_STR(job->at.pf));
	return 0;
}

static int check_unused(struct vhca_host_job *job)
{
	const struct vhca_vf_facts known = {.bdf = job->bdf, .iommu_group = job->iommu_group};
	int r = vhca_vf_check_unused(job->at.sys, job->dev_root, &known, job->is_ours,
				     &job->result.err);

	job->result.in_use = r < 0;
	return r;
}

static void keep_hw(struct vhca_host_job *job)
{
	job->result.has_hw = job->ops->read(&job->at, &job->result.hw, NULL) == 0;
}

static int wait_for_iov(struct vhca_host_job *job)
{
	static const struct timespec pause = {.tv_nsec = IOV_SLEEP_MS * 1000000L};
	uint64_t deadline = vhca_now_ms() + IOV_WAIT_MS;
	struct vhca_identity_state state;
	int r;

	if (!job->ops->host_pkey_map)
		return 0;
	while ((r = job->ops->read(&job->at, &state, &job->result.err)) < 0 &&
	       vhca_now_ms() < deadline)
		(void)nanosleep(&pause, NULL);
	return r;
}

static int do_probe(struct vhca_host_job *job)
{
	(void)check_unused(job);
	return 0;
}

static int do_prepare(struct vhca_host_job *job)
{
	struct vhca_error *err = &job->result.err;
	int r = check_unused(job);

	if (r == 0)
		r = vhca_vfio_bind(job->at.sys, job->bdf, err);
	if (r == 0)
		r = need_device(job);
	if (r == 0)
		r = wait_for_iov(job);
	if (r == 0)
		r = job->ops->scrub(&job->at, err);
	if (r == 0)
		keep_hw(job);
	return r;
}

static int do_program(struct vhca_host_job *job)
{
	struct vhca_error *err = &job->result.err;
	int r = job->unused ? check_unused(job) : 0;

	if (r == 0)
		r = need_device(job);
	/*
	 * Costs nothing when it is bound; after a reboot an orchestrator's claim is programmed
	 * before anything prepared it.
	 */
	if (r == 0 && job->bind)
		r = vhca_vfio_bind(job->at.sys, job->bdf, err);
	if (r < 0)
		return r;
	if (job->want.guid == VHCA_GUID_ALL1) { /* withheld: the proof that it shows nobody's */
		r = job->ops->scrub(&job->at, err);
		if (r == 0)
			keep_hw(job);
		return r;
	}
	r = job->ops->program(&job->at, &job->want, &job->result.missing, &job->result.hw, err);
	job->result.has_hw = r == 0;
	return r;
}

static int do_unmap(struct vhca_host_job *job)
{
	int r = need_device(job);

	if (r == 0)
		r = job->ops->unmap(&job->at, &job->want, &job->result.hw, &job->result.err);
	job->result.has_hw = r == 0;
	return r;
}

static int do_read(struct vhca_host_job *job)
{
	int r = need_device(job);

	if (r == 0)
		r = job->ops->read(&job->at, &job->result.hw, &job->result.err);
	job->result.has_hw = r == 0;
	return r;
}

static int do_kick(struct vhca_host_job *job)
{
	int r = need_device(job);

	return r < 0 || !job->ops->kick ? r : job->ops->kick(&job->at, &job->result.err);
}

static int do_choose(struct vhca_host_job *job)
{
	uint64_t guid;
	int r = need_device(job);

	if (r == 0)
		r = job->ops->choose(&job->at, &guid, &job->result.err);
	if (r == 0)
		keep_hw(job);
	return r;
}

/*
 * Under a guest that has it: who holds the group does not matter, and a VF that is bound stays so.
 */
static int do_strip(struct vhca_host_job *job)
{
	int r = need_device(job);

	if (r == 0)
		r = job->ops->scrub(&job->at, &job->result.err);
	if (r == 0)
		keep_hw(job);
	return r;
}

static int do_scrub(struct vhca_host_job *job)
{
	int r = check_unused(job);

	return r < 0 ? r : do_strip(job);
}

static int (*const effects[])(struct vhca_host_job *job) = {
	[VHCA_EFFECT_PROBE] = do_probe,
	[VHCA_EFFECT_PREPARE] = do_prepare,
	[VHCA_EFFECT_PROGRAM] = do_program,
	[VHCA_EFFECT_UNMAP] = do_unmap,
	[VHCA_EFFECT_READ] = do_read,
	[VHCA_EFFECT_REREQUEST_GUID] = do_kick,
	[VHCA_EFFECT_AWAIT_SM_GUID] = do_choose,
	[VHCA_EFFECT_SCRUB] = do_scrub,
	[VHCA_EFFECT_SCRUB_IN_GUEST] = do_strip,
};

void vhca_host_job_work(void *arg)
{
	struct vhca_host_job *job = arg;

	job->result.rc = effects[job->effect](job);
}
