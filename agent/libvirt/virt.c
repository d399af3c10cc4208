/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The owner of strands. A call's job takes the session of the moment when it starts to work, so a
 * call that waited over a reconnect uses the new connection, and none is ever closed under a
 * running call.
 */
#include "agent/libvirt/virt.h"

#include <errno.h>
#include <stdio.h>
#include <sys/queue.h>

#include "agent/libvirt/call.h"
#include "agent/libvirt/check.h"
#include "agent/libvirt/lane.h"
#include "agent/libvirt/migrate.h"
#include "agent/libvirt/reconnect.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/loop/strand.h"

/* How long vhca_virt_free() waits for calls that hang in libvirtd, in all. */
#define FREE_WAIT_MS 2000

struct vhca_virt {
	struct vhca_loop *loop;
	struct virt_reconnect *connection;
	struct vhca_strand *query_strand;
	struct virt_lanes lanes;
	bool closing;
	/* Of the call whose done() runs. */
	uint64_t called_us;
	struct vhca_virt_dirty dirty;
};

static const struct vhca_error no_error = VHCA_ERROR_INIT;

bool vhca_virt_connected(const struct vhca_virt *virt)
{
	return virt_reconnect_is_up(virt->connection);
}

uint64_t vhca_virt_called_us(const struct vhca_virt *virt)
{
	return virt->called_us;
}

struct vhca_virt_dirty vhca_virt_dirty(const struct vhca_virt *virt)
{
	return virt->dirty;
}

/* ---- calls ---- */

struct call {
	struct vhca_virt *virt;
	enum virt_lane_kind kind; /* NONE: on the query strand */
	struct virt_lane *lane;	  /* NULL then */
	int (*run)(struct call *call, struct virt_session *s);
	void (*report)(const struct call *call);

	struct vhca_uuid uuid;
	struct vhca_dom_hostdev dev; /* detach: alias only */
	char dest_uri[VIRT_URI_MAX], migrate_uri[VIRT_URI_MAX];
	struct vhca_conf_copy how;
	struct vhca_bdf ours[VHCA_DOM_VFS_MAX];
	unsigned int n_ours;
	bool measures;
	struct vhca_uuid marker;
	bool has_marker, autostart;
	struct vhca_qga_ask ask;

	int rc;
	uint64_t called_us;
	struct vhca_virt_dirty dirty;
	struct vhca_error err;
	struct vhca_dom_list list;
	struct vhca_dom_info *info;
	struct vhca_virt_job job;
	struct vhca_qga_answer answer;

	vhca_virt_list_fn list_done;
	vhca_virt_info_fn info_done;
	vhca_virt_job_fn job_done;
	vhca_virt_qga_fn qga_done;
	vhca_virt_done_fn done;
	void *arg;
};

static const char *uri_of(const struct call *call)
{
	return virt_reconnect_uri(call->virt->connection);
}

static int run_list(struct call *call, struct virt_session *s)
{
	return virt_call_list(virt_session_query(s), &call->list, &call->err);
}

static int run_info(struct call *call, struct virt_session *s)
{
	return virt_call_info(virt_session_query(s), &call->uuid, &call->info, &call->err);
}

static int run_attach(struct call *call, struct virt_session *s)
{
	return virt_call_attach(virt_session_action(s), &call->uuid, &call->dev, &call->called_us,
				&call->err);
}

static int run_detach(struct call *call, struct virt_session *s)
{
	return virt_call_detach(virt_session_action(s), &call->uuid, call->dev.alias, &call->err);
}

/* On a connection of its own: see virt_call_migrate(). */
static int run_migrate(struct call *call, struct virt_session *s)
{
	VHCA_AUTO_CONNECTION conn = virt_session_take_spare(s, &call->uuid);
	int r = conn ? 0 : virt_connect(uri_of(call), &conn, &call->err);

	if (r < 0)
		return r;
	return virt_call_migrate(conn, &call->uuid, call->dest_uri, call->migrate_uri, &call->how,
				 &call->called_us, &call->err);
}

static int run_check(struct call *call, struct virt_session *s)
{
	int r = virt_call_check(virt_session_query(s), &call->uuid, call->ours, call->n_ours,
				&call->err);

	if (r == 0 && call->measures)
		call->dirty.is_known =
			virt_call_dirty_rate(virt_session_query(s), &call->uuid, &call->dirty.mib);
	return r;
}

static int run_spare(struct call *call, struct virt_session *s)
{
	virt_session_open_spare(s, &call->uuid, uri_of(call));
	return 0;
}

static int run_forget(struct call *call, struct virt_session *s)
{
	virConnectPtr conn = virt_session_take_spare(s, &call->uuid);

	virt_connection_freep(&conn);
	return 0;
}

/* On the query connection: on the other one it might wait for what it is to end. */
static int run_abort(struct call *call, struct virt_session *s)
{
	return virt_call_abort(virt_session_query(s), &call->uuid, &call->err);
}

static int run_job(struct call *call, struct virt_session *s)
{
	return virt_call_job(virt_session_query(s), &call->uuid, &call->job, &call->err);
}

static int run_marker(struct call *call, struct virt_session *s)
{
	return virt_call_marker(virt_session_action(s), &call->uuid,
				call->has_marker ? &call->marker : NULL, call->autostart,
				&call->err);
}

static int run_no_start(struct call *call, struct virt_session *s)
{
	return virt_call_no_start(virt_session_action(s), &call->uuid, &call->err);
}

/* On a connection of its own: see virt_call_qga(). */
static int run_qga(struct call *call, struct virt_session *s)
{
	(void)s;
	return virt_call_qga(uri_of(call), &call->uuid, &call->ask, &call->answer, &call->err);
}

static void report_list(const struct call *call)
{
	call->list_done(call->arg, call->rc, call->list.info, call->list.n, &call->err);
}

static void report_info(const struct call *call)
{
	call->info_done(call->arg, call->rc, call->info,
			call->info ? &call->info->request_error : &no_error, &call->err);
}

static void report_job(const struct call *call)
{
	call->job_done(call->arg, call->rc, &call->job, &call->err);
}

static void report_qga(const struct call *call)
{
	call->qga_done(call->arg, call->rc, &call->answer, &call->err);
}

static void report_done(const struct call *call)
{
	call->done(call->arg, call->rc, &call->err);
}

static void call_work(void *arg)
{
	struct call *call = arg;
	struct virt_session *s = virt_reconnect_session(call->virt->connection);

	call->err = no_error;
	if (s)
		call->rc = call->run(call, s);
	else
		call->rc = vhca_error_set(&call->err, VHCA_ERR_UNAVAILABLE, "libvirt_unreachable",
					  ENOTCONN, "libvirt: %s", uri_of(call));
	virt_session_unref(s);
}

static void lane_drop_if_idle(const struct vhca_virt *virt, struct virt_lane *lane)
{
	/* While closing, vhca_virt_free() is inside vhca_strand_free() of this very strand. */
	if (lane && lane->n_calls == 0 && !virt->closing)
		virt_lane_drop(lane);
}

static void call_done(void *arg)
{
	VHCA_AUTO_FREE struct call *call = arg;

	if (call->lane)
		call->lane->n_calls--;
	lane_drop_if_idle(call->virt, call->lane);
	call->virt->called_us = call->called_us;
	call->virt->dirty = call->dirty;
	call->report(call);
	vhca_dom_list_done(&call->list);
	free(call->info);
}

/* NULL without memory. */
static struct vhca_strand *strand_for(struct call *call)
{
	struct vhca_virt *virt = call->virt;

	if (call->kind == VHCA_LANE_NONE)
		return virt->query_strand;
	call->lane = virt_lane_get(&virt->lanes, virt->loop, &call->uuid, call->kind);
	return call->lane ? call->lane->strand : NULL;
}

/* Takes a copy of *template. If there is no memory or no room for it, done() is called at once:
 * there is no other way to keep "exactly once". */
static void submit(const struct call *template)
{
	struct vhca_virt *virt = template->virt;
	struct call *call = malloc(sizeof(*call));
	struct call failed = *template;
	struct vhca_strand *strand = virt->closing ? NULL : strand_for(&failed);
	int r = virt->closing ? -ECANCELED : -ENOMEM;

	/* What done() says if work() never runs. */
	(void)vhca_error_set(&failed.err, VHCA_ERR_UNAVAILABLE, "shutting_down", ECANCELED,
			     "libvirt");
	failed.rc = -ECANCELED;
	if (call && strand) {
		*call = failed;
		r = vhca_strand_submit(strand, call_work, call_done, call);
	}
	if (r == 0) {
		if (call->lane)
			call->lane->n_calls++;
		return;
	}
	free(call);
	lane_drop_if_idle(virt, failed.lane);
	failed.rc =
		vhca_error_set(&failed.err, VHCA_ERR_EXHAUSTED, "too_many_calls", -r, "libvirt");
	virt->called_us = 0;
	virt->dirty.is_known = false;
	failed.report(&failed);
}

void vhca_virt_list(struct vhca_virt *virt, vhca_virt_list_fn done, void *arg)
{
	submit(&(struct call){.virt = virt,
			      .run = run_list,
			      .report = report_list,
			      .list_done = done,
			      .arg = arg});
}

void vhca_virt_info(struct vhca_virt *virt, const struct vhca_uuid *uuid, vhca_virt_info_fn done,
		    void *arg)
{
	submit(&(struct call){.virt = virt,
			      .run = run_info,
			      .report = report_info,
			      .uuid = *uuid,
			      .info_done = done,
			      .arg = arg});
}

void vhca_virt_attach(struct vhca_virt *virt, const struct vhca_uuid *uuid, struct vhca_bdf host,
		      const char *vf_name, const struct vhca_bdf *guest, vhca_virt_done_fn done,
		      void *arg)
{
	struct call call = {.virt = virt,
			    .kind = VHCA_LANE_DEVICES,
			    .run = run_attach,
			    .report = report_done,
			    .uuid = *uuid,
			    .dev = {.host = host, .has_guest_addr = guest != NULL},
			    .done = done,
			    .arg = arg};

	if (guest)
		call.dev.guest = *guest;
	(void)snprintf(call.dev.alias, sizeof(call.dev.alias), "%s%s", VHCA_ALIAS_PREFIX, vf_name);
	submit(&call);
}

void vhca_virt_detach(struct vhca_virt *virt, const struct vhca_uuid *uuid, const char *alias,
		      vhca_virt_done_fn done, void *arg)
{
	struct call call = {.virt = virt,
			    .kind = VHCA_LANE_DEVICES,
			    .run = run_detach,
			    .report = report_done,
			    .uuid = *uuid,
			    .done = done,
			    .arg = arg};

	/* One that does not fit exists in no domain: it becomes "", and libvirt says so. */
	(void)vhca_strcpy(call.dev.alias, sizeof(call.dev.alias), alias);
	submit(&call);
}

/* A URI that does not fit leaves the other empty as well: the call then refuses it. */
void vhca_virt_migrate(struct vhca_virt *virt, const struct vhca_uuid *uuid, const char *dest_uri,
		       const char *migrate_uri, const struct vhca_conf_copy *how,
		       vhca_virt_done_fn done, void *arg)
{
	struct call call = {.virt = virt,
			    .kind = VHCA_LANE_MIGRATE,
			    .run = run_migrate,
			    .report = report_done,
			    .uuid = *uuid,
			    .how = *how,
			    .done = done,
			    .arg = arg};

	if (vhca_strcpy(call.migrate_uri, sizeof(call.migrate_uri),
			migrate_uri ? migrate_uri : "") == 0)
		(void)vhca_strcpy(call.dest_uri, sizeof(call.dest_uri), dest_uri);
	submit(&call);
}

static void report_nothing(const struct call *call)
{
	(void)call;
}

void vhca_virt_expect_migration(struct vhca_virt *virt, const struct vhca_uuid *uuid, bool expected)
{
	submit(&(struct call){.virt = virt,
			      .kind = VHCA_LANE_MIGRATE,
			      .run = expected ? run_spare : run_forget,
			      .report = report_nothing,
			      .uuid = *uuid});
}

void vhca_virt_abort_job(struct vhca_virt *virt, const struct vhca_uuid *uuid,
			 vhca_virt_done_fn done, void *arg)
{
	submit(&(struct call){.virt = virt,
			      .kind = VHCA_LANE_JOB,
			      .run = run_abort,
			      .report = report_done,
			      .uuid = *uuid,
			      .done = done,
			      .arg = arg});
}

void vhca_virt_check(struct vhca_virt *virt, const struct vhca_uuid *uuid,
		     const struct vhca_bdf *ours, unsigned int n_ours, bool measures,
		     vhca_virt_done_fn done, void *arg)
{
	struct call call = {.virt = virt,
			    .kind = VHCA_LANE_JOB,
			    .run = run_check,
			    .report = report_done,
			    .uuid = *uuid,
			    .n_ours = n_ours,
			    .measures = measures,
			    .done = done,
			    .arg = arg};

	for (unsigned int i = 0; i < n_ours; i++)
		call.ours[i] = ours[i];
	submit(&call);
}

void vhca_virt_job(struct vhca_virt *virt, const struct vhca_uuid *uuid, vhca_virt_job_fn done,
		   void *arg)
{
	submit(&(struct call){.virt = virt,
			      .kind = VHCA_LANE_JOB,
			      .run = run_job,
			      .report = report_job,
			      .uuid = *uuid,
			      .job_done = done,
			      .arg = arg});
}

void vhca_virt_set_marker(struct vhca_virt *virt, const struct vhca_uuid *uuid,
			  const struct vhca_uuid *migration, bool autostart, vhca_virt_done_fn done,
			  void *arg)
{
	struct call call = {.virt = virt,
			    .kind = VHCA_LANE_DEVICES,
			    .run = run_marker,
			    .report = report_done,
			    .uuid = *uuid,
			    .has_marker = migration != NULL,
			    .autostart = autostart,
			    .done = done,
			    .arg = arg};

	if (migration)
		call.marker = *migration;
	submit(&call);
}

void vhca_virt_no_start(struct vhca_virt *virt, const struct vhca_uuid *uuid,
			vhca_virt_done_fn done, void *arg)
{
	submit(&(struct call){.virt = virt,
			      .kind = VHCA_LANE_DEVICES,
			      .run = run_no_start,
			      .report = report_done,
			      .uuid = *uuid,
			      .done = done,
			      .arg = arg});
}

void vhca_virt_qga(struct vhca_virt *virt, const struct vhca_uuid *uuid,
		   const struct vhca_qga_ask *ask, vhca_virt_qga_fn done, void *arg)
{
	submit(&(struct call){.virt = virt,
			      .kind = VHCA_LANE_QGA,
			      .run = run_qga,
			      .report = report_qga,
			      .uuid = *uuid,
			      .ask = *ask,
			      .qga_done = done,
			      .arg = arg});
}

/* ---- life ---- */

int vhca_virt_new(struct vhca_loop *loop, const char *uri, vhca_virt_event_fn fn, void *arg,
		  struct vhca_virt **ret)
{
	struct vhca_virt *virt;
	int r = virt_event_start();

	if (r < 0)
		return r;
	virt = calloc(1, sizeof(*virt));
	if (!virt)
		return -ENOMEM;
	virt->loop = loop;
	LIST_INIT(&virt->lanes);
	r = vhca_strand_new(loop, "libvirt query", &virt->query_strand);
	if (r == 0)
		r = virt_reconnect_new(loop, uri, fn, arg, &virt->connection);
	if (r < 0) {
		(void)vhca_strand_free(virt->query_strand, 0);
		free(virt);
		return r;
	}
	*ret = virt;
	return 0;
}

struct vhca_virt *vhca_virt_free(struct vhca_virt *virt)
{
	uint64_t deadline = vhca_now_ms() + FREE_WAIT_MS;
	bool idle;

	if (!virt)
		return NULL;
	virt->closing = true;
	virt_reconnect_mute(virt->connection);
	idle = vhca_strand_free(virt->query_strand, vhca_left_ms(deadline));
	idle &= virt_lanes_free(&virt->lanes, deadline);
	idle &= virt_reconnect_end(virt->connection, deadline);
	if (!idle) {
		/* A hanging call still looks at its owner: leave it that, and nothing more. */
		vhca_log_warning("libvirt: calls hang in %s; not waiting for them",
				 virt_reconnect_uri(virt->connection));
		return NULL;
	}
	virt_reconnect_free(virt->connection);
	free(virt);
	return NULL;
}
