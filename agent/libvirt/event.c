/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/libvirt/event.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <libvirt/virterror.h>

#include "agent/libvirt/error.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/loop/post.h"
#include "common/loop/thread.h"

/* ---- the event loop thread ---- */

/* Process-wide as libvirt's event loop is: it can be registered once and never taken back. */
static pthread_once_t event_once = PTHREAD_ONCE_INIT;
static int event_result;

static void ignore_error(void *data, virErrorPtr error)
{
	(void)data;
	(void)error;
}

static void *event_thread(void *arg)
{
	(void)arg;
	for (;;) {
		if (virEventRunDefaultImpl() == 0)
			continue;
		/* It can only fail for lack of memory or on a bug; do not spin on either. */
		vhca_log_error("libvirt event loop: %s", virGetLastErrorMessage());
		(void)nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	}
	return NULL;
}

static void start_event_thread(void)
{
	/* Errors are read where calls fail; by default libvirt prints each one on stderr as well.
	 */
	virSetErrorFunc(NULL, ignore_error);
	if (virInitialize() < 0 || virEventRegisterDefaultImpl() < 0)
		event_result = -EIO;
	else
		event_result = vhca_thread_start(NULL, "libvirt-events", event_thread, NULL);
}

int virt_event_start(void)
{
	(void)pthread_once(&event_once, start_event_thread);
	return event_result;
}

/* ---- sink ---- */

struct virt_sink {
	atomic_uint refs;
	pthread_mutex_t lock; /* guards `muted` against posting to a loop that is being freed */
	bool muted;
	struct vhca_loop *loop;
	vhca_virt_event_fn fn;
	void *arg;
};

int virt_sink_new(struct vhca_loop *loop, vhca_virt_event_fn fn, void *arg, struct virt_sink **ret)
{
	struct virt_sink *sink = calloc(1, sizeof(*sink));
	int r;

	if (!sink)
		return -ENOMEM;
	r = pthread_mutex_init(&sink->lock, NULL);
	if (r != 0) {
		free(sink);
		return -r;
	}
	atomic_init(&sink->refs, 1);
	sink->loop = loop;
	sink->fn = fn;
	sink->arg = arg;
	*ret = sink;
	return 0;
}

struct virt_sink *virt_sink_ref(struct virt_sink *sink)
{
	(void)atomic_fetch_add(&sink->refs, 1);
	return sink;
}

void virt_sink_unref(struct virt_sink *sink)
{
	if (!sink || atomic_fetch_sub(&sink->refs, 1) != 1)
		return;
	(void)pthread_mutex_destroy(&sink->lock);
	free(sink);
}

void virt_sink_mute(struct virt_sink *sink)
{
	if (!sink)
		return;
	(void)pthread_mutex_lock(&sink->lock);
	sink->muted = true;
	(void)pthread_mutex_unlock(&sink->lock);
}

/* ---- posting ---- */

struct event_post {
	struct vhca_post post;
	struct virt_sink *sink;
	struct vhca_virt_event_data data;
};

static void drop_event(void *arg)
{
	struct event_post *ep = arg;

	virt_sink_unref(ep->sink);
	free(ep);
}

static void deliver(void *arg)
{
	struct event_post *ep = arg;

	/* Only the state thread writes it, and that is where we are. */
	if (!ep->sink->muted)
		ep->sink->fn(ep->sink->arg, &ep->data);
	drop_event(ep);
}

static void post_event(struct virt_sink *sink, const struct vhca_virt_event_data *data)
{
	struct event_post *ep = calloc(1, sizeof(*ep));
	bool muted;

	if (!ep) {
		vhca_log_error("%s: libvirt event lost: out of memory", data->name);
		return;
	}
	ep->post = (struct vhca_post){
		.name = "libvirt event", .fn = deliver, .arg = ep, .drop = drop_event};
	ep->sink = virt_sink_ref(sink);
	ep->data = *data;
	(void)pthread_mutex_lock(&sink->lock);
	muted = sink->muted;
	if (!muted)
		vhca_loop_post_node(sink->loop, &ep->post);
	(void)pthread_mutex_unlock(&sink->lock);
	if (muted)
		drop_event(ep);
}

/* Reading name and UUID of a virDomainPtr is no call to libvirtd. */
static struct vhca_virt_event_data event_of(virDomainPtr dom, enum vhca_virt_event event)
{
	struct vhca_virt_event_data data = {.event = event, .at_us = vhca_now_us()};
	const char *name = virDomainGetName(dom);

	(void)virDomainGetUUID(dom, data.uuid.b);
	(void)snprintf(data.name, sizeof(data.name), "%s", name ? name : "");
	return data;
}

/* ---- callbacks ---- */

/* libvirt's event number to ours; a detail of -1 stands for all others. */
static const struct lifecycle {
	int event, detail;
	enum vhca_virt_event to;
} lifecycles[] = {
	{VIR_DOMAIN_EVENT_STARTED, VIR_DOMAIN_EVENT_STARTED_MIGRATED, VHCA_VIRT_STARTED_MIGRATED},
	{VIR_DOMAIN_EVENT_STARTED, -1, VHCA_VIRT_STARTED},
	{VIR_DOMAIN_EVENT_RESUMED, VIR_DOMAIN_EVENT_RESUMED_MIGRATED, VHCA_VIRT_RESUMED_MIGRATED},
	{VIR_DOMAIN_EVENT_RESUMED, -1, VHCA_VIRT_RESUMED},
	{VIR_DOMAIN_EVENT_SUSPENDED, -1, VHCA_VIRT_SUSPENDED},
	{VIR_DOMAIN_EVENT_STOPPED, -1, VHCA_VIRT_STOPPED},
};

enum vhca_virt_event virt_lifecycle(int event, int detail)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(lifecycles); i++)
		if (lifecycles[i].event == event &&
		    (lifecycles[i].detail == -1 || lifecycles[i].detail == detail))
			return lifecycles[i].to;
	return VHCA_VIRT_OTHER;
}

static int on_lifecycle(virConnectPtr conn, virDomainPtr dom, int event, int detail, void *opaque)
{
	struct vhca_virt_event_data data = event_of(dom, virt_lifecycle(event, detail));

	(void)conn;
	data.detail = detail;
	post_event(opaque, &data);
	return 0;
}

static void post_device_event(void *opaque, virDomainPtr dom, enum vhca_virt_event event,
			      const char *alias)
{
	struct vhca_virt_event_data data = event_of(dom, event);

	/* An alias that does not fit is none of ours. */
	if (vhca_strcpy(data.alias, sizeof(data.alias), alias ? alias : "") == 0)
		post_event(opaque, &data);
}

static void on_device_added(virConnectPtr conn, virDomainPtr dom, const char *alias, void *opaque)
{
	(void)conn;
	post_device_event(opaque, dom, VHCA_VIRT_DEVICE_ADDED, alias);
}

static void on_device_removed(virConnectPtr conn, virDomainPtr dom, const char *alias, void *opaque)
{
	(void)conn;
	post_device_event(opaque, dom, VHCA_VIRT_DEVICE_REMOVED, alias);
}

static void on_removal_failed(virConnectPtr conn, virDomainPtr dom, const char *alias, void *opaque)
{
	(void)conn;
	post_device_event(opaque, dom, VHCA_VIRT_REMOVAL_FAILED, alias);
}

static void on_metadata(virConnectPtr conn, virDomainPtr dom, int type, const char *uri,
			void *opaque)
{
	struct vhca_virt_event_data data;

	(void)conn;
	if (type != VIR_DOMAIN_METADATA_ELEMENT || !uri || strcmp(uri, VHCA_DOMAIN_NS) != 0)
		return;
	data = event_of(dom, VHCA_VIRT_METADATA);
	post_event(opaque, &data);
}

static void on_close(virConnectPtr conn, int reason, void *opaque)
{
	(void)conn;
	post_event(opaque, &(struct vhca_virt_event_data){.event = VHCA_VIRT_DISCONNECTED,
							  .detail = reason});
}

static void release_sink(void *opaque)
{
	virt_sink_unref(opaque);
}

/* ---- registration ---- */

static const struct {
	int id;
	virConnectDomainEventGenericCallback fn;
} callbacks[VIRT_EVENT_IDS] = {
	{VIR_DOMAIN_EVENT_ID_LIFECYCLE, VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle)},
	{VIR_DOMAIN_EVENT_ID_DEVICE_ADDED, VIR_DOMAIN_EVENT_CALLBACK(on_device_added)},
	{VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, VIR_DOMAIN_EVENT_CALLBACK(on_device_removed)},
	{VIR_DOMAIN_EVENT_ID_DEVICE_REMOVAL_FAILED, VIR_DOMAIN_EVENT_CALLBACK(on_removal_failed)},
	{VIR_DOMAIN_EVENT_ID_METADATA_CHANGE, VIR_DOMAIN_EVENT_CALLBACK(on_metadata)},
};

static const struct virt_registration not_registered = {{-1, -1, -1, -1, -1}};

int virt_sink_register(struct virt_sink *sink, virConnectPtr conn, struct virt_registration *ret,
		       struct vhca_error *err)
{
	struct virt_registration reg = not_registered;

	for (int i = 0; i < VIRT_EVENT_IDS; i++) {
		reg.ids[i] = virConnectDomainEventRegisterAny(conn, NULL, callbacks[i].id,
							      callbacks[i].fn, virt_sink_ref(sink),
							      release_sink);
		if (reg.ids[i] < 0) {
			int r = virt_error(err, "register for events");

			virt_sink_unref(sink);
			virt_sink_deregister(conn, &reg);
			return r;
		}
	}
	*ret = reg;
	return 0;
}

void virt_sink_deregister(virConnectPtr conn, struct virt_registration *reg)
{
	for (int i = 0; i < VIRT_EVENT_IDS; i++)
		if (reg->ids[i] >= 0)
			(void)virConnectDomainEventDeregisterAny(conn, reg->ids[i]);
	*reg = not_registered;
}

int virt_sink_watch_close(struct virt_sink *sink, virConnectPtr conn, struct vhca_error *err)
{
	int r = virConnectRegisterCloseCallback(conn, on_close, virt_sink_ref(sink), release_sink);

	if (r == 0)
		return 0;
	virt_sink_unref(sink);
	return virGetLastErrorCode() == VIR_ERR_NO_SUPPORT ? 0
							   : virt_error(err, "watch for closing");
}

void virt_sink_unwatch_close(virConnectPtr conn)
{
	(void)virConnectUnregisterCloseCallback(conn, on_close);
}
