/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The owner of sessions and strands. The state thread opens sessions through jobs on the connect
 * strand; a call's job takes the session of the moment when it starts to work, so a call that
 * waited over a reconnect uses the new connection, and none is ever closed under a running call.
 */
#include "agent/virt.h"

#include "agent/virt_call.h"
#include "agent/virt_lane.h"
#include "agent/virt_migrate.h"
#include "agent/virt_session.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/loop/strand.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#define BACKOFF_FIRST_MS 500
#define BACKOFF_CAP_MS	 10000
/* How long vhca_virt_free() waits for calls that hang in libvirtd, in all. */
#define FREE_WAIT_MS 2000

struct vhca_virt {
	struct vhca_loop *loop;
	char *uri;
	vhca_virt_event_fn fn;
	void *arg;
	struct vhca_strand *connect_strand, *query_strand;
	struct vhca_virt_lanes lanes;

	struct vhca_timer *retry;
	struct vhca_backoff backoff;
	bool connected, closing;
	struct vhca_virt_sink *sink;   /* of the session, or of the attempt under way */
	struct vhca_virt_session *old; /* given up; the next attempt closes it first */

	pthread_mutex_t lock; /* guards session: workers take references to it */
	struct vhca_virt_session *session;
};

static const struct vhca_error no_error = VHCA_ERROR_INIT;

/* ---- the session of the moment ---- */

static struct vhca_virt_session *session_get(struct vhca_virt *virt)
{
	struct vhca_virt_session *s;

	(void)pthread_mutex_lock(&virt->lock);
	s = virt->session ? vhca_virt_session_ref(virt->session) : NULL;
	(void)pthread_mutex_unlock(&virt->lock);
	return s;
}

static struct vhca_virt_session *session_exchange(struct vhca_virt *virt,
						  struct vhca_virt_session *s)
{
	struct vhca_virt_session *old;

	(void)pthread_mutex_lock(&virt->lock);
	old = virt->session;
	virt->session = s;
	(void)pthread_mutex_unlock(&virt->lock);
	return old;
}

/* ---- connecting ---- */

struct connect_job {
	struct vhca_virt *virt;
	struct vhca_virt_session *old; /* to be closed first */
	struct vhca_virt_sink *sink;
	struct vhca_virt_session *session;
	int rc;
	struct vhca_error err;
};

static void connect_work(void *arg)
{
	struct connect_job *job = arg;

	vhca_virt_session_unref(vhca_steal_ptr(&job->old));
	job->rc = vhca_virt_session_open(job->virt->uri, job->sink, &job->session, &job->err);
}

static void drop_sink(struct vhca_virt *virt)
{
	vhca_virt_sink_mute(virt->sink);
	vhca_virt_sink_unref(virt->sink);
	virt->sink = NULL;
}

static void retry_later(struct vhca_virt *virt)
{
	vhca_timer_arm_ms(virt->retry, vhca_backoff_next(&virt->backoff));
}

static void set_connected(struct vhca_virt *virt, struct vhca_virt_session *session)
{
	(void)session_exchange(virt, session);
	virt->connected = true;
	vhca_backoff_reset(&virt->backoff);
	vhca_log_info("libvirt: connected to %s", virt->uri);
	virt->fn(virt->arg, &(struct vhca_virt_event_data){.event = VHCA_VIRT_CONNECTED});
}

static void connect_done(void *arg)
{
	struct connect_job *job = arg;
	struct vhca_virt *virt = job->virt;
	bool lost = virt->sink != job->sink; /* already gone again, or freed meanwhile */
	bool first = virt->backoff.next_ms == 0;

	if (job->session && !lost) {
		set_connected(virt, job->session);
	} else {
		/* The unused session, or the old one if work() never ran. */
		virt->old = job->session ? job->session : job->old;
		if (job->rc < 0 && first)
			vhca_log_warning("libvirt: %s; trying again", job->err.msg);
		if (!lost)
			drop_sink(virt);
		retry_later(virt);
	}
	vhca_virt_sink_unref(job->sink);
	free(job);
}

static void on_event(void *arg, const struct vhca_virt_event_data *data);

static int submit_connect(struct vhca_virt *virt)
{
	VHCA_AUTO_FREE struct connect_job *job = calloc(1, sizeof(*job));
	int r;

	if (!job)
		return -ENOMEM;
	r = vhca_virt_sink_new(virt->loop, on_event, virt, &virt->sink);
	if (r < 0)
		return r;
	*job = (struct connect_job){.virt = virt, .old = virt->old, .sink = virt->sink};
	r = vhca_strand_submit(virt->connect_strand, connect_work, connect_done, job);
	if (r < 0) {
		drop_sink(virt);
		return r;
	}
	virt->old = NULL;
	(void)vhca_virt_sink_ref(virt->sink);
	(void)vhca_steal_ptr(&job);
	return 0;
}

static void connect_now(void *arg)
{
	struct vhca_virt *virt = arg;

	if (submit_connect(virt) < 0)
		retry_later(virt);
}

static void on_event(void *arg, const struct vhca_virt_event_data *data)
{
	struct vhca_virt *virt = arg;

	if (data->event != VHCA_VIRT_DISCONNECTED) {
		/* Before CONNECTED the owner has no picture that an event could change. */
		if (virt->connected)
			virt->fn(virt->arg, data);
		return;
	}
	drop_sink(virt);
	if (!virt->connected)
		return; /* connect_done() is still to come and sees the sink gone */
	virt->connected = false;
	virt->old = session_exchange(virt, NULL);
	vhca_log_warning("libvirt: connection to %s lost", virt->uri);
	retry_later(virt);
	virt->fn(virt->arg, data);
}

bool vhca_virt_connected(const struct vhca_virt *virt)
{
	return virt->connected;
}

/* ---- calls ---- */

struct call {
	struct vhca_virt *virt;
	enum vhca_virt_lane_kind kind; /* NONE: on the query strand */
	struct vhca_virt_lane *lane;   /* NULL then */
	int (*run)(struct call *call, const struct vhca_virt_session *s);
	void (*report)(const struct call *call);

	struct vhca_uuid uuid;
	struct vhca_dom_hostdev dev; /* detach: alias only */
	char dest_uri[VHCA_VIRT_URI_MAX], migrate_uri[VHCA_VIRT_URI_MAX];
	struct vhca_uuid marker;
	bool has_marker;

	int rc;
	struct vhca_error err;
	struct vhca_dom_list list;
	struct vhca_dom_info *info;
	struct vhca_virt_job job;

	vhca_virt_list_fn list_done;
	vhca_virt_info_fn info_done;
	vhca_virt_job_fn job_done;
	vhca_virt_done_fn done;
	void *arg;
};

static int run_list(struct call *call, const struct vhca_virt_session *s)
{
	return vhca_virt_call_list(vhca_virt_session_query(s), &call->list, &call->err);
}

static int run_info(struct call *call, const struct vhca_virt_session *s)
{
	return vhca_virt_call_info(vhca_virt_session_query(s), &call->uuid, &call->info,
				   &call->err);
}

static int run_attach(struct call *call, const struct vhca_virt_session *s)
{
	return vhca_virt_call_attach(vhca_virt_session_action(s), &call->uuid, &call->dev,
				     &call->err);
}

static int run_detach(struct call *call, const struct vhca_virt_session *s)
{
	return vhca_virt_call_detach(vhca_virt_session_action(s), &call->uuid, call->dev.alias,
				     &call->err);
}

/* On a connection of its own: see vhca_virt_call_migrate(). */
static int run_migrate(struct call *call, const struct vhca_virt_session *s)
{
	(void)s;
	return vhca_virt_call_migrate(call->virt->uri, &call->uuid, call->dest_uri,
				      call->migrate_uri, &call->err);
}

/* On the query connection: on the other one it might wait for what it is to end. */
static int run_abort(struct call *call, const struct vhca_virt_session *s)
{
	return vhca_virt_call_abort(vhca_virt_session_query(s), &call->uuid, &call->err);
}

static int run_job(struct call *call, const struct vhca_virt_session *s)
{
	return vhca_virt_call_job(vhca_virt_session_query(s), &call->uuid, &call->job, &call->err);
}

static int run_marker(struct call *call, const struct vhca_virt_session *s)
{
	return vhca_virt_call_marker(vhca_virt_session_action(s), &call->uuid,
				     call->has_marker ? &call->marker : NULL, &call->err);
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

static void report_done(const struct call *call)
{
	call->done(call->arg, call->rc, &call->err);
}

static void call_work(void *arg)
{
	struct call *call = arg;
	struct vhca_virt_session *s = session_get(call->virt);

	call->err = no_error;
	if (s)
		call->rc = call->run(call, s);
	else
		call->rc = vhca_error_set(&call->err, VHCA_ERR_UNAVAILABLE, "libvirt_unreachable",
					  ENOTCONN, "libvirt: %s", call->virt->uri);
	vhca_virt_session_unref(s);
}

static void lane_drop_if_idle(const struct vhca_virt *virt, struct vhca_virt_lane *lane)
{
	/* While closing, vhca_virt_free() is inside vhca_strand_free() of this very strand. */
	if (lane && lane->n_calls == 0 && !virt->closing)
		vhca_virt_lane_drop(lane);
}

static void call_done(void *arg)
{
	VHCA_AUTO_FREE struct call *call = arg;

	if (call->lane)
		call->lane->n_calls--;
	lane_drop_if_idle(call->virt, call->lane);
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
	call->lane = vhca_virt_lane_get(&virt->lanes, virt->loop, &call->uuid, call->kind);
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
		       const char *migrate_uri, vhca_virt_done_fn done, void *arg)
{
	struct call call = {.virt = virt,
			    .kind = VHCA_LANE_MIGRATE,
			    .run = run_migrate,
			    .report = report_done,
			    .uuid = *uuid,
			    .done = done,
			    .arg = arg};

	if (vhca_strcpy(call.migrate_uri, sizeof(call.migrate_uri),
			migrate_uri ? migrate_uri : "") == 0)
		(void)vhca_strcpy(call.dest_uri, sizeof(call.dest_uri), dest_uri);
	submit(&call);
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
			  const struct vhca_uuid *migration, vhca_virt_done_fn done, void *arg)
{
	struct call call = {.virt = virt,
			    .kind = VHCA_LANE_DEVICES,
			    .run = run_marker,
			    .report = report_done,
			    .uuid = *uuid,
			    .has_marker = migration != NULL,
			    .done = done,
			    .arg = arg};

	if (migration)
		call.marker = *migration;
	submit(&call);
}

/* ---- life ---- */

static struct vhca_virt *virt_alloc(struct vhca_loop *loop, const char *uri)
{
	struct vhca_virt *virt = calloc(1, sizeof(*virt));

	if (!virt)
		return NULL;
	virt->loop = loop;
	virt->uri = strdup(uri);
	virt->backoff =
		(struct vhca_backoff){.first_ms = BACKOFF_FIRST_MS, .cap_ms = BACKOFF_CAP_MS};
	LIST_INIT(&virt->lanes);
	if (!virt->uri || pthread_mutex_init(&virt->lock, NULL) != 0) {
		free(virt->uri);
		free(virt);
		return NULL;
	}
	return virt;
}

int vhca_virt_new(struct vhca_loop *loop, const char *uri, vhca_virt_event_fn fn, void *arg,
		  struct vhca_virt **ret)
{
	struct vhca_virt *virt;
	int r = vhca_virt_event_start();

	if (r < 0)
		return r;
	virt = virt_alloc(loop, uri);
	if (!virt)
		return -ENOMEM;
	virt->fn = fn;
	virt->arg = arg;
	r = vhca_strand_new(loop, "libvirt connect", &virt->connect_strand);
	if (r == 0)
		r = vhca_strand_new(loop, "libvirt query", &virt->query_strand);
	if (r == 0)
		r = vhca_timer_new(loop, "libvirt reconnect", connect_now, virt, &virt->retry);
	if (r == 0)
		r = submit_connect(virt);
	if (r < 0) {
		(void)vhca_virt_free(virt);
		return r;
	}
	*ret = virt;
	return 0;
}

static uint32_t left_ms(uint64_t deadline)
{
	uint64_t now = vhca_now_ms();

	return now < deadline ? (uint32_t)(deadline - now) : 0;
}

static bool free_strands(struct vhca_virt *virt, uint64_t deadline)
{
	bool idle = vhca_strand_free(virt->query_strand, left_ms(deadline));

	idle &= vhca_virt_lanes_free(&virt->lanes, deadline);
	return idle & vhca_strand_free(virt->connect_strand, left_ms(deadline));
}

struct vhca_virt *vhca_virt_free(struct vhca_virt *virt)
{
	uint64_t deadline = vhca_now_ms() + FREE_WAIT_MS;
	bool idle;

	if (!virt)
		return NULL;
	virt->closing = true;
	drop_sink(virt);
	idle = free_strands(virt, deadline);
	virt->retry = vhca_timer_free(virt->retry);
	vhca_virt_session_unref_bounded(session_exchange(virt, NULL), left_ms(deadline));
	vhca_virt_session_unref_bounded(vhca_steal_ptr(&virt->old), left_ms(deadline));
	if (!idle) {
		/* A hanging call still looks at its owner: leave it that, and nothing more. */
		vhca_log_warning("libvirt: calls hang in %s; not waiting for them", virt->uri);
		return NULL;
	}
	(void)pthread_mutex_destroy(&virt->lock);
	free(virt->uri);
	free(virt);
	return NULL;
}
