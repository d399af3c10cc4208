/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state thread opens sessions through jobs on a strand of their own; workers take references to
 * the one of the moment. One that is given up is closed by the next attempt, not by the state
 * thread: libvirtd may hang.
 */
#include "agent/libvirt/reconnect.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/loop/strand.h"

#define BACKOFF_FIRST_MS 500
#define BACKOFF_CAP_MS	 10000

struct virt_reconnect {
	struct vhca_loop *loop;
	char *uri;
	vhca_virt_event_fn fn;
	void *arg;
	struct vhca_strand *strand;

	struct vhca_timer *retry;
	struct vhca_backoff backoff;
	bool connected;
	struct virt_sink *sink;	  /* of the session, or of the attempt under way */
	struct virt_session *old; /* given up; the next attempt closes it first */

	pthread_mutex_t lock; /* guards session: workers take references to it */
	struct virt_session *session;
};

/* ---- the session of the moment ---- */

struct virt_session *virt_reconnect_session(struct virt_reconnect *c)
{
	struct virt_session *s;

	(void)pthread_mutex_lock(&c->lock);
	s = c->session ? virt_session_ref(c->session) : NULL;
	(void)pthread_mutex_unlock(&c->lock);
	return s;
}

static struct virt_session *session_exchange(struct virt_reconnect *c, struct virt_session *s)
{
	struct virt_session *old;

	(void)pthread_mutex_lock(&c->lock);
	old = c->session;
	c->session = s;
	(void)pthread_mutex_unlock(&c->lock);
	return old;
}

/* ---- connecting ---- */

struct connect_job {
	struct virt_reconnect *c;
	struct virt_session *old; /* to be closed first */
	struct virt_sink *sink;
	struct virt_session *session;
	int rc;
	struct vhca_error err;
};

static void connect_work(void *arg)
{
	struct connect_job *job = arg;

	virt_session_unref(vhca_steal_ptr(&job->old));
	job->rc = virt_session_open(job->c->uri, job->sink, &job->session, &job->err);
}

static void drop_sink(struct virt_reconnect *c)
{
	virt_sink_mute(c->sink);
	virt_sink_unref(c->sink);
	c->sink = NULL;
}

static void retry_later(struct virt_reconnect *c)
{
	vhca_timer_arm_ms(c->retry, vhca_backoff_next(&c->backoff));
}

static void connect_done(void *arg)
{
	struct connect_job *job = arg;
	struct virt_reconnect *c = job->c;
	bool lost = c->sink != job->sink; /* already gone again, or freed meanwhile */
	bool first = c->backoff.next_ms == 0;

	if (job->session && !lost) {
		(void)session_exchange(c, job->session);
		c->connected = true;
		vhca_backoff_reset(&c->backoff);
		vhca_log_info("libvirt: connected to %s", c->uri);
		c->fn(c->arg, &(struct vhca_virt_event_data){.event = VHCA_VIRT_CONNECTED});
	} else {
		/* The unused session, or the old one if work() never ran. */
		c->old = job->session ? job->session : job->old;
		if (job->rc < 0 && first)
			vhca_log_warning("libvirt: %s; trying again", job->err.msg);
		if (!lost)
			drop_sink(c);
		retry_later(c);
	}
	virt_sink_unref(job->sink);
	free(job);
}

static void on_event(void *arg, const struct vhca_virt_event_data *data);

static int submit_connect(struct virt_reconnect *c)
{
	VHCA_AUTO_FREE struct connect_job *job = calloc(1, sizeof(*job));
	int r;

	if (!job)
		return -ENOMEM;
	r = virt_sink_new(c->loop, on_event, c, &c->sink);
	if (r < 0)
		return r;
	*job = (struct connect_job){.c = c, .old = c->old, .sink = c->sink};
	r = vhca_strand_submit(c->strand, connect_work, connect_done, job);
	if (r < 0) {
		drop_sink(c);
		return r;
	}
	c->old = NULL;
	(void)virt_sink_ref(c->sink);
	(void)vhca_steal_ptr(&job);
	return 0;
}

static void connect_now(void *arg)
{
	struct virt_reconnect *c = arg;

	if (submit_connect(c) < 0)
		retry_later(c);
}

static void on_event(void *arg, const struct vhca_virt_event_data *data)
{
	struct virt_reconnect *c = arg;

	if (data->event != VHCA_VIRT_DISCONNECTED) {
		/* Before CONNECTED the owner has no picture that an event could change. */
		if (c->connected)
			c->fn(c->arg, data);
		return;
	}
	drop_sink(c);
	if (!c->connected)
		return; /* connect_done() is still to come and sees the sink gone */
	c->connected = false;
	c->old = session_exchange(c, NULL);
	vhca_log_warning("libvirt: connection to %s lost", c->uri);
	retry_later(c);
	c->fn(c->arg, data);
}

bool virt_reconnect_is_up(const struct virt_reconnect *c)
{
	return c->connected;
}

const char *virt_reconnect_uri(const struct virt_reconnect *c)
{
	return c->uri;
}

/* ---- life ---- */

static struct virt_reconnect *reconnect_alloc(struct vhca_loop *loop, const char *uri)
{
	struct virt_reconnect *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->loop = loop;
	c->uri = strdup(uri);
	c->backoff = (struct vhca_backoff){.first_ms = BACKOFF_FIRST_MS, .cap_ms = BACKOFF_CAP_MS};
	if (!c->uri || pthread_mutex_init(&c->lock, NULL) != 0) {
		free(c->uri);
		free(c);
		return NULL;
	}
	return c;
}

int virt_reconnect_new(struct vhca_loop *loop, const char *uri, vhca_virt_event_fn fn, void *arg,
		       struct virt_reconnect **ret)
{
	struct virt_reconnect *c = reconnect_alloc(loop, uri);
	int r;

	if (!c)
		return -ENOMEM;
	c->fn = fn;
	c->arg = arg;
	r = vhca_strand_new(loop, "libvirt connect", &c->strand);
	if (r == 0)
		r = vhca_timer_new(loop, "libvirt reconnect", connect_now, c, &c->retry);
	if (r == 0)
		r = submit_connect(c);
	if (r < 0) {
		(void)virt_reconnect_end(c, 0);
		virt_reconnect_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

void virt_reconnect_mute(struct virt_reconnect *c)
{
	drop_sink(c);
}

bool virt_reconnect_end(struct virt_reconnect *c, uint64_t deadline)
{
	bool idle;

	drop_sink(c);
	idle = vhca_strand_free(c->strand, vhca_left_ms(deadline));
	c->retry = vhca_timer_free(c->retry);
	virt_session_unref_bounded(session_exchange(c, NULL), vhca_left_ms(deadline));
	virt_session_unref_bounded(vhca_steal_ptr(&c->old), vhca_left_ms(deadline));
	return idle;
}

void virt_reconnect_free(struct virt_reconnect *c)
{
	(void)pthread_mutex_destroy(&c->lock);
	free(c->uri);
	free(c);
}
