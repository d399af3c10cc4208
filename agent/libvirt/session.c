/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/libvirt/session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include <libvirt/virterror.h>

#include "agent/libvirt/error.h"
#include "common/base/cleanup.h"
#include "common/base/cond.h"
#include "common/base/role.h"
#include "common/loop/thread.h"

/* A peer that answers no keepalive for interval * (count + 1) = 20 s is taken for dead. Answers
 * come from libvirtd's event thread, so a busy or hook-blocked libvirtd still sends them. */
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_COUNT	     3

struct spare {
	struct vhca_uuid domain;
	virConnectPtr conn;
};

struct virt_session {
	atomic_uint refs;
	virConnectPtr query, action;
	struct virt_registration events; /* on query */
	pthread_mutex_t lock;		 /* guards the spares: workers take them */
	struct spare spares[VIRT_SPARES];
	unsigned int n_spares;
};

static void close_connection(virConnectPtr conn)
{
	if (!conn)
		return;
	virt_sink_unwatch_close(conn);
	(void)virConnectClose(
		conn); /* nothing can be done about a connection that does not close */
}

static void session_free(struct virt_session *s)
{
	if (!s)
		return;
	if (s->query)
		virt_sink_deregister(s->query, &s->events);
	close_connection(s->query);
	close_connection(s->action);
	while (s->n_spares)
		(void)virConnectClose(s->spares[--s->n_spares].conn); /* as above */
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}
VHCA_DEFINE_CLEANUP(struct virt_session, session_free)

int virt_connect(const char *uri, virConnectPtr *ret, struct vhca_error *err)
{
	virConnectPtr conn = virConnectOpen(uri);
	int r;

	if (!conn)
		return virt_error(err, uri);
	/* > 0: the other side cannot do it; NO_SUPPORT: there is no other side. */
	if (virConnectSetKeepAlive(conn, KEEPALIVE_INTERVAL_S, KEEPALIVE_COUNT) < 0 &&
	    virGetLastErrorCode() != VIR_ERR_NO_SUPPORT) {
		r = virt_error(err, "set keepalive");
		(void)virConnectClose(conn);
		return r;
	}
	*ret = conn;
	return 0;
}

void virt_connection_freep(virConnectPtr *p)
{
	if (*p)
		(void)virConnectClose(*p); /* nothing can be done about one that does not close */
}

static int open_connection(const char *uri, struct virt_sink *sink, virConnectPtr *ret,
			   struct vhca_error *err)
{
	virConnectPtr conn;
	int r = virt_connect(uri, &conn, err);

	if (r < 0)
		return r;
	r = virt_sink_watch_close(sink, conn, err);
	if (r < 0) {
		(void)virConnectClose(conn);
		return r;
	}
	*ret = conn;
	return 0;
}

static struct virt_session *session_alloc(void)
{
	struct virt_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	if (pthread_mutex_init(&s->lock, NULL) != 0) {
		free(s);
		return NULL;
	}
	atomic_init(&s->refs, 1);
	for (int i = 0; i < VIRT_EVENT_IDS; i++)
		s->events.ids[i] = -1;
	return s;
}

int virt_session_open(const char *uri, struct virt_sink *sink, struct virt_session **ret,
		      struct vhca_error *err)
{
	VHCA_CLEANUP(session_freep) struct virt_session *s = session_alloc();
	int r;

	vhca_may_block("libvirt: connect");
	if (!s)
		return vhca_error_no_memory(err, uri);
	r = open_connection(uri, sink, &s->query, err);
	if (r == 0)
		r = open_connection(uri, sink, &s->action, err);
	if (r == 0)
		r = virt_sink_register(sink, s->query, &s->events, err);
	if (r < 0)
		return r;
	*ret = vhca_steal_ptr(&s);
	return 0;
}

struct virt_session *virt_session_ref(struct virt_session *s)
{
	(void)atomic_fetch_add(&s->refs, 1);
	return s;
}

void virt_session_unref(struct virt_session *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	vhca_may_block("libvirt: close");
	session_free(s);
}

static void *unref_thread(void *arg)
{
	virt_session_unref(arg);
	return NULL;
}

void virt_session_unref_bounded(struct virt_session *s, uint32_t wait_ms)
{
	struct timespec deadline = vhca_cond_deadline(wait_ms);
	pthread_t thread;

	/* Without a thread the connection stays open: better than to hang the shutdown. */
	if (!s || vhca_thread_start(&thread, "libvirt-close", unref_thread, s) < 0)
		return;
	if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &deadline) != 0)
		(void)pthread_detach(thread);
}

/* Its index, or VIRT_SPARES. Under the lock. */
static unsigned int find_spare(const struct virt_session *s, const struct vhca_uuid *domain)
{
	for (unsigned int i = 0; i < s->n_spares; i++)
		if (vhca_uuid_equal(&s->spares[i].domain, domain))
			return i;
	return VIRT_SPARES;
}

void virt_session_open_spare(struct virt_session *s, const struct vhca_uuid *domain,
			     const char *uri)
{
	virConnectPtr conn;
	bool has_room;

	vhca_may_block("libvirt: connect");
	(void)pthread_mutex_lock(&s->lock);
	has_room = s->n_spares < VIRT_SPARES && find_spare(s, domain) == VIRT_SPARES;
	(void)pthread_mutex_unlock(&s->lock);
	if (!has_room || virt_connect(uri, &conn, NULL) < 0)
		return;
	(void)pthread_mutex_lock(&s->lock);
	has_room = s->n_spares < VIRT_SPARES;
	if (has_room)
		s->spares[s->n_spares++] = (struct spare){*domain, conn};
	(void)pthread_mutex_unlock(&s->lock);
	if (!has_room)
		(void)virConnectClose(conn); /* others were faster */
}

static virConnectPtr find_and_take(struct virt_session *s, const struct vhca_uuid *domain)
{
	virConnectPtr conn = NULL;
	unsigned int i;

	(void)pthread_mutex_lock(&s->lock);
	i = find_spare(s, domain);
	if (i < VIRT_SPARES) {
		conn = s->spares[i].conn;
		s->spares[i] = s->spares[--s->n_spares];
	}
	(void)pthread_mutex_unlock(&s->lock);
	return conn;
}

virConnectPtr virt_session_take_spare(struct virt_session *s, const struct vhca_uuid *domain)
{
	virConnectPtr conn = find_and_take(s, domain);

	if (!conn || virConnectIsAlive(conn) == 1)
		return conn;
	(void)virConnectClose(conn);
	return NULL;
}

virConnectPtr virt_session_query(const struct virt_session *s)
{
	return s->query;
}

virConnectPtr virt_session_action(const struct virt_session *s)
{
	return s->action;
}
