/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/events.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/http/json.h"

struct event {
	uint64_t wall_ms;
	char kind[16];
	char subject[160];
	char text[560];
};

struct vhca_events {
	uint64_t newest; /* sequence number; event n stands in ring[n % VHCA_EVENTS_MAX] */
	struct event ring[VHCA_EVENTS_MAX];
	void (*fn)(void *arg);
	void *arg;
};

int vhca_events_new(struct vhca_events **ret)
{
	*ret = malloc(sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	/* Really touched: what calloc() only promises would come page by page during the first thousand events, and look like a leak to
	 * whoever watches the agent's memory. */
	explicit_bzero(*ret, sizeof(**ret));
	return 0;
}

struct vhca_events *vhca_events_free(struct vhca_events *ev)
{
	free(ev);
	return NULL;
}

void vhca_events_add(struct vhca_events *ev, const char *kind, const char *subject, const char *fmt,
		     ...)
{
	struct event *e = &ev->ring[(ev->newest + 1) % VHCA_EVENTS_MAX];
	va_list ap;

	e->wall_ms = vhca_wall_ms();
	(void)snprintf(e->kind, sizeof(e->kind), "%s", kind);
	(void)snprintf(e->subject, sizeof(e->subject), "%s", subject);
	va_start(ap, fmt);
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	ev->newest++;
	vhca_log(strcmp(kind, "alarm") ? VHCA_LOG_INFO : VHCA_LOG_WARNING, "%s: %s", e->subject,
		 e->text);
	if (ev->fn)
		ev->fn(ev->arg);
}

uint64_t vhca_events_cursor(const struct vhca_events *ev)
{
	return ev->newest;
}

struct json_object *vhca_events_to_json(const struct vhca_events *ev, uint64_t since)
{
	uint64_t oldest = ev->newest > VHCA_EVENTS_MAX ? ev->newest - VHCA_EVENTS_MAX + 1 : 1;
	struct json_object *doc = json_object_new_object(), *list = json_object_new_array();

	/* A cursor from an earlier life of the agent is ahead of us: everything is new to its owner. */
	if (since > ev->newest)
		since = 0;
	vhca_json_add_u64(doc, "cursor", ev->newest);
	vhca_json_add_bool(doc, "lost", since + 1 < oldest);
	for (uint64_t n = since + 1 < oldest ? oldest : since + 1; n <= ev->newest; n++) {
		const struct event *e = &ev->ring[n % VHCA_EVENTS_MAX];
		struct json_object *o = json_object_new_object();

		vhca_json_add_u64(o, "seq", n);
		vhca_json_add_u64(o, "time_ms", e->wall_ms);
		vhca_json_add_string(o, "kind", e->kind);
		vhca_json_add_string(o, "subject", e->subject);
		vhca_json_add_string(o, "text", e->text);
		json_object_array_add(list, o);
	}
	vhca_json_add(doc, "events", list);
	return doc;
}

void vhca_events_listen(struct vhca_events *ev, void (*fn)(void *arg), void *arg)
{
	ev->fn = fn;
	ev->arg = arg;
}
