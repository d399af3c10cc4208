/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the engine does to a host: each effect happens some time after it was begun, if its intent
 * is durable, and may fail or be the agent's last.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "tests/sim/host/world_int.h"
#include "tests/sim/host/world_mlx5.h"
#include "tests/sim/libvirt/sim_domain.h"

/* ---- the journal, seen from outside ---- */

static void journaled(const struct world *w, struct vhca_bdf bdf, char ret[static 32])
{
	char path[96];
	sqlite3 *db = NULL;
	sqlite3_stmt *st = NULL;

	if (w->hooks) {
		w->hooks->journaled(w, bdf, ret);
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/state.db", w->dir);
	world_must(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK,
		   "open the journal");
	world_must(sqlite3_prepare_v2(db, "SELECT state FROM vfs WHERE bdf = ?1", -1, &st, NULL) ==
			   SQLITE_OK,
		   "read the journal");
	sqlite3_bind_text(st, 1, VHCA_BDF_STR(bdf), -1, SQLITE_TRANSIENT);
	(void)snprintf(ret, 32, "%s",
		       sqlite3_step(st) == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0)
						      : "");
	sqlite3_finalize(st);
	sqlite3_close(db);
}

/* Intent before effect: the durable state must be one that stands for the effect. */
static void check_intent(const struct world *w, const struct vhca_vf *vf, enum vhca_effect effect)
{
	static const char *const want[] = {
		[VHCA_EFFECT_PREPARE] = "preparing",
		[VHCA_EFFECT_PROGRAM] = "claimed programmed attached detaching",
		[VHCA_EFFECT_UNMAP] = "programmed attached detaching",
		[VHCA_EFFECT_SCRUB] = "scrubbing",
		[VHCA_EFFECT_SCRUB_IN_GUEST] = "quarantined",
		[VHCA_EFFECT_ATTACH] = "programmed",
		[VHCA_EFFECT_DETACH] = "detaching",
		[VHCA_EFFECT_ASK_GUEST_AGENT] = "detaching",
		[VHCA_EFFECT_REREQUEST_GUID] = "attached free",
		[VHCA_EFFECT_AWAIT_SM_GUID] = "claimed",
	};
	char state[32];

	if (effect >= VHCA_ARRAY_SIZE(want) || !want[effect])
		return;
	journaled(w, vf->bdf, state);
	world_must(state[0] && strstr(want[effect], state), "an effect without its durable intent");
}

/* ---- effects ---- */

struct world_job {
	struct world *w;
	struct vhca_engine *engine; /* the life it belongs to */
	struct vhca_vf *vf;
	enum vhca_effect effect;
	bool unused, moves;
	struct vhca_identity want;
	uint64_t epoch;
	struct vhca_uuid domain;
	char name[VHCA_NAME_MAX];
	bool has_guest;
	struct vhca_bdf guest;
	uint8_t port;
	uint16_t place; /* whose registers it is about, whatever address that has meanwhile */
	uint64_t pid;	/* of the program in the guest */
	enum world_fault fault;
};

/* ---- what kernel and libvirt do ---- */

static bool has_at(const struct world *w, const struct vhca_uuid *domain, struct vhca_bdf guest)
{
	for (unsigned int v = 0; v < w->n_vfs; v++)
		if (w->vfs[v].group_open && vhca_uuid_equal(&w->vfs[v].user, domain) &&
		    !vhca_bdf_cmp(w->vfs[v].guest, guest))
			return true;
	return false;
}

/*
 * Another one each time: whoever has to give a VF its old address back must have remembered that.
 */
static struct vhca_bdf choose_address(struct world *w, const struct vhca_uuid *domain)
{
	struct vhca_bdf ret;

	do
		ret = (struct vhca_bdf){.bus = (uint8_t)(1 + w->plugs++ % 250)};
	while (has_at(w, domain, ret));
	return ret;
}

static int plug(struct world *w, struct world_vf *t, const struct world_job *job,
		struct vhca_error *err)
{
	const struct world_domain *d = world_domain_of(w, &job->domain);

	if (!d || !d->running)
		return sim_virt_gone(err);
	world_must(!d->incoming, "attach to a guest that is still coming in");
	world_must(!t->group_open || vhca_uuid_equal(&t->user, &job->domain),
		   "attach of a VF that another guest has");
	world_must(!strcmp(t->driver, "vfio-pci"), "attach of a VF that is not on vfio-pci");
	world_must(t->guid == job->want.guid, "attach of a VF whose GUID is not programmed");
	if (t->group_open)
		return 0; /* is there already */
	if (job->has_guest && has_at(w, &job->domain, job->guest))
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "guest_address_in_use", 0,
				      "the guest has another device at this address");
	t->guest = job->has_guest ? job->guest : choose_address(w, &job->domain);
	t->group_open = t->guest_driver = true;
	t->user = job->domain;
	(void)snprintf(t->name, sizeof(t->name), "%s", job->name);
	return 0;
}

static int ask_guest(struct world *w, struct world_vf *t, uint64_t pid,
		     struct vhca_effect_result *res)
{
	if (!t->group_open)
		return sim_virt_gone(&res->err);
	if (w->guest_agent == WORLD_AGENT_NONE)
		return vhca_error_set(&res->err, VHCA_ERR_CONFLICT, "no_guest_agent", 0,
				      "no guest agent");
	w->asked += !pid;
	res->guest = (struct vhca_qga_answer){
		.pid = 7,
		.exited = pid && w->guest_agent != WORLD_AGENT_HANGS,
		.exit_code = w->guest_agent == WORLD_AGENT_NO_SLOT ? 11 : 0,
	};
	if (w->guest_agent == WORLD_AGENT_HELPS) {
		world_tell_removed(w, t);
		world_vf_unplug(t);
	}
	return 0;
}

static int group_is_open(const struct world_vf *t, struct vhca_effect_result *res)
{
	res->in_use = t->group_open;
	return t->group_open ? vhca_error_set(&res->err, VHCA_ERR_CONFLICT, "vf_in_use", EBUSY,
					      "group open")
			     : 0;
}

static bool lets_go(const struct world *w, unsigned int v)
{
	const struct world_vf *t = &w->vfs[v];

	return t->group_open && !w->deaf_guest && !(w->deaf_vfs & 1U << v) &&
	       !world_domain_of(w, &t->user)->paused;
}

/* libvirt knows it by its address. */
static struct world_vf *touched(struct world *w, const struct world_job *job)
{
	return job->effect <= VHCA_EFFECT_SCRUB_IN_GUEST ? &w->vfs[job->place]
							 : world_truth(w, job->vf->bdf);
}

static int apply(struct world *w, const struct world_job *job, enum vhca_effect effect,
		 struct vhca_effect_result *res)
{
	struct world_vf *t = touched(w, job);
	struct vhca_error *err = &res->err;
	unsigned int v = (unsigned int)(t - w->vfs);

	if (t->lost && effect <= VHCA_EFFECT_SCRUB_IN_GUEST && effect != VHCA_EFFECT_PROBE)
		return vhca_error_set(err, VHCA_ERR_DEVICE, "no_vf", ENODEV, "it has gone");
	switch (effect) {
	case VHCA_EFFECT_PROBE:
		(void)group_is_open(t, res);
		return 0;
	case VHCA_EFFECT_PREPARE:
	case VHCA_EFFECT_SCRUB:
		if (group_is_open(t, res))
			return -EBUSY;
		(void)snprintf(t->driver, sizeof(t->driver), "vfio-pci");
		if (w->vfs_lie)
			return vhca_error_set(err, VHCA_ERR_DEVICE, "readback_differs", 0,
					      "read-back differs");
		if (w->mlx5)
			return world_mlx5_apply(w, v, effect, &job->want, res);
		world_vf_scrub(w, t);
		return 0;
	case VHCA_EFFECT_SCRUB_IN_GUEST:
		if (w->mlx5)
			return world_mlx5_apply(w, v, VHCA_EFFECT_SCRUB, &job->want, res);
		world_vf_scrub(w, t);
		return 0;
	case VHCA_EFFECT_PROGRAM:
		if (job->unused && group_is_open(t, res))
			return -EBUSY;
		if (w->programming && job->want.guid != VHCA_GUID_ALL1)
			w->programming(w, job->want.guid, job->epoch);
		t->epoch = job->epoch;
		if (w->mlx5)
			return world_mlx5_apply(w, v, effect, &job->want, res);
		res->missing = world_vf_program(w, t, &job->want);
		t->port = job->port;
		return 0;
	case VHCA_EFFECT_UNMAP:
		world_vf_unmap(w, t, &job->want);
		return 0;
	case VHCA_EFFECT_AWAIT_SM_GUID:
		if (!w->sm_choice)
			return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "no_guid_from_sm", EAGAIN,
					      "the SM has not chosen a GUID yet");
		t->guid = w->sm_choice;
		t->asked = true;
		return 0;
	case VHCA_EFFECT_ATTACH:
		res->called_us = vhca_now_us();
		return plug(w, t, job, err);
	case VHCA_EFFECT_DETACH:
		if (lets_go(w, v)) {
			world_tell_removed(w, t);
			world_vf_unplug(t);
		}
		return 0;
	case VHCA_EFFECT_ASK_GUEST_AGENT:
		return ask_guest(w, t, job->pid, res);
	case VHCA_EFFECT_REREQUEST_GUID:
		if (!w->sm_deaf)
			t->held = 0;
		return 0;
	case VHCA_EFFECT_READ:
	case VHCA_EFFECT_NONE:
		break;
	}
	return 0;
}

/* ---- when ---- */

static enum vhca_effect twisted(struct world_job *job)
{
	struct world *w = job->w;
	struct world_twist t = {.effect = job->effect,
				.want = &job->want,
				.has_guest = &job->has_guest,
				.moves = job->moves};

	if (w->hooks && w->hooks->twist)
		w->hooks->twist(w, (unsigned int)(world_truth(w, job->vf->bdf) - w->vfs), &t);
	return t.effect;
}

static int refuse(enum world_fault fault, struct vhca_error *err)
{
	if (fault == WORLD_AWAY)
		return sim_virt_lost(err);
	if (fault == WORLD_HELD)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "job_held", EBUSY,
				      "cannot acquire state change lock");
	return vhca_error_set(err, VHCA_ERR_DEVICE, "injected", EIO, "injected failure");
}

static int lose_libvirt(struct world *w, struct vhca_error *err)
{
	w->virt_down = true;
	vhca_engine_virt_lost(w->engine);
	return sim_virt_lost(err);
}

static bool is_refused(enum world_fault fault)
{
	return fault == WORLD_FAIL || fault == WORLD_AWAY || fault == WORLD_HELD;
}

static bool is_broken(struct world *w, const struct world_job *job)
{
	unsigned int v = (unsigned int)(world_truth(w, job->vf->bdf) - w->vfs);

	return job->effect == w->broken_effect && w->broken_vfs & 1U << v;
}

static void on_job(void *arg)
{
	struct world_job *job = arg;
	struct world *w = job->w;
	struct vhca_effect_result res = {.rc = 0};
	enum vhca_effect effect = twisted(job);

	if (w->hooks)
		job->fault = w->hooks->interfere(w, job->vf, job->effect);
	if (job->fault == WORLD_CRASH_BEFORE) {
		w->crashed = true;
		free(job);
		return;
	}
	if (is_refused(job->fault) || is_broken(w, job))
		res.rc = refuse(job->fault, &res.err);
	else
		res.rc = apply(w, job, effect, &res);
	if (job->fault == WORLD_MUTE)
		res.rc = lose_libvirt(w, &res.err);
	world_check(w);
	if (w->hooks && res.rc == 0)
		w->hooks->happened(w, (unsigned int)(touched(w, job) - w->vfs),
				   effect == VHCA_EFFECT_NONE ? job->effect : effect);
	if (res.rc == 0 && job->effect <= VHCA_EFFECT_SCRUB_IN_GUEST &&
	    job->effect != VHCA_EFFECT_PROBE) {
		res.rc = world_vf_read(w, touched(w, job), job->port, &res);
		res.has_hw = res.rc == 0;
	}
	if (job->fault == WORLD_CRASH_AFTER)
		w->crashed = true;
	else
		vhca_engine_effect_done(job->engine, job->vf, job->effect, &res);
	free(job);
}

static uint16_t place_of(const struct world *w, const struct vhca_vf *vf)
{
	bool is_second = TAILQ_FIRST(&vhca_engine_model(w->engine)->hcas) != vf->hca;

	return (uint16_t)(vf->index + (is_second ? w->second_from : 0));
}

void world_start_effect(void *ctx, struct vhca_vf *vf, enum vhca_effect effect)
{
	struct world *w = ctx;
	struct world_job *job = calloc(1, sizeof(*job));

	check_intent(w, vf, effect);
	world_must(job != NULL, "out of memory");
	*job = (struct world_job){.w = w,
				  .engine = w->engine,
				  .vf = vf,
				  .effect = effect,
				  .port = vf->hca->port,
				  .place = place_of(w, vf),
				  .pid = vf->escalation.pid};
	job->unused = vhca_model_is_unused(vhca_engine_model(w->engine), vf);
	if (vf->claim) {
		job->want = vhca_claim_shows(vf->claim);
		job->moves = vf->claim->migrating;
		job->epoch = vf->claim->epoch;
		job->domain = vf->claim->domain;
		job->has_guest = vf->claim->has_guest;
		job->guest = vf->claim->guest;
		(void)snprintf(job->name, sizeof(job->name), "%s", vf->claim->name);
	}
	if ((w->fault_effect == VHCA_EFFECT_NONE || w->fault_effect == effect) &&
	    ++w->effects == w->fault_at)
		job->fault = w->fault;
	if (job->fault == WORLD_HANG)
		w->hung = job;
	else
		world_later(w, on_job, job);
}

void world_release(struct world *w)
{
	world_must(w->hung != NULL, "nothing hangs");
	world_later(w, on_job, w->hung);
	w->hung = NULL;
}
