/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/state/events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/state/model.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/http/json.h"
#include "pkey/guid.h"

#define INSTANCE_STRLEN 17
#define CURSOR_MAX	(INSTANCE_STRLEN + 24)

/* Copied: an event is read when its claim may be gone. */
struct members {
	bool known;
	struct vhca_bdf vf;
	struct vhca_uuid claim, domain;
	uint64_t guid;
	char name[VHCA_NAME_MAX], fabric[VHCA_NAME_MAX];
};

struct event {
	struct members members;
	uint64_t wall_ms;
	char kind[16];
	char subject[160];
	char text[560];
};

struct vhca_events {
	char instance[INSTANCE_STRLEN]; /* this life of the agent */
	uint64_t newest; /* sequence number; event n stands in ring[n % VHCA_EVENTS_MAX] */
	struct event ring[VHCA_EVENTS_MAX];
	void (*fn)(void *arg);
	void *arg;
};

int vhca_events_new(struct vhca_events **ret)
{
	uint64_t instance;

	/* Not vhca_uuid_random(): the simulations replay what that says, and no decision rests
	 * on this. */
	if (getrandom(&instance, sizeof(instance), 0) != sizeof(instance))
		return -EIO;
	*ret = malloc(sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	/*
	 * Really touched: what calloc() only promises would come page by page during the first
	 * thousand events, and look like a leak to whoever watches the agent's memory.
	 */
	explicit_bzero(*ret, sizeof(**ret));
	(void)snprintf((*ret)->instance, INSTANCE_STRLEN, "%016" PRIx64, instance);
	return 0;
}

struct vhca_events *vhca_events_free(struct vhca_events *ev)
{
	free(ev);
	return NULL;
}

static void __attribute__((format(printf, 5, 0)))
add(struct vhca_events *ev, const char *kind, const char *subject, const struct members *members,
    const char *fmt, va_list ap)
{
	struct event *e = &ev->ring[(ev->newest + 1) % VHCA_EVENTS_MAX];

	e->members = *members;
	e->wall_ms = vhca_wall_ms();
	(void)snprintf(e->kind, sizeof(e->kind), "%s", kind);
	(void)snprintf(e->subject, sizeof(e->subject), "%s", subject);
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
	ev->newest++;
	vhca_log(strcmp(kind, "alarm") == 0 ? VHCA_LOG_WARNING : VHCA_LOG_INFO, "%s: %s",
		 e->subject, e->text);
	if (ev->fn)
		ev->fn(ev->arg);
}

void vhca_events_add(struct vhca_events *ev, const char *kind, const char *subject, const char *fmt,
		     ...)
{
	const struct members none = {.known = false};
	va_list ap;

	va_start(ap, fmt);
	add(ev, kind, subject, &none, fmt, ap);
	va_end(ap);
}

void vhca_events_add_claim(struct vhca_events *ev, const char *kind, const struct vhca_claim *claim,
			   const char *fmt, ...)
{
	struct members members = {
		.known = true, .vf = claim->vf->bdf, .claim = claim->id, .domain = claim->domain};
	char subject[sizeof(((struct event *)NULL)->subject)];
	va_list ap;

	if (!vhca_guid_is_stand_in(claim->identity.guid))
		members.guid = claim->identity.guid;
	memcpy(members.name, claim->name, sizeof(members.name));
	memcpy(members.fabric, claim->fabric, sizeof(members.fabric));
	(void)snprintf(subject, sizeof(subject), "%s/%s", claim->domain_name, claim->name);
	va_start(ap, fmt);
	add(ev, kind, subject, &members, fmt, ap);
	va_end(ap);
}

uint64_t vhca_events_newest(const struct vhca_events *ev)
{
	return ev->newest;
}

/* The event that was told last of those that are not kept; 0 if all are. */
static uint64_t newest_dropped(const struct vhca_events *ev)
{
	return ev->newest > VHCA_EVENTS_MAX ? ev->newest - VHCA_EVENTS_MAX : 0;
}

static int set_gone(struct vhca_error *err, const char *why)
{
	(void)vhca_error_set(err, VHCA_ERR_NOT_FOUND, VHCA_CODE_CURSOR_GONE, 0, "query: since: %s",
			     why);
	vhca_error_hint(err, "some events were missed: read the lists anew, and the events with "
			     "since=oldest");
	return -ENOENT;
}

static int check_kept(const struct vhca_events *ev, uint64_t since, struct vhca_error *err)
{
	return since < newest_dropped(ev)
		       ? set_gone(err, "the events behind this cursor are not kept any more")
		       : 0;
}

int vhca_events_find(const struct vhca_events *ev, const char *since, uint64_t *ret,
		     struct vhca_error *err)
{
	const char *dot = strchr(since, '.');
	size_t len = strlen(ev->instance);
	uint64_t n;

	if (strcmp(since, "oldest") == 0) {
		*ret = newest_dropped(ev);
		return 0;
	}
	if (strcmp(since, "now") == 0) {
		*ret = ev->newest;
		return 0;
	}
	if (!dot || (size_t)(dot - since) != len || vhca_parse_u64(dot + 1, 10, UINT64_MAX, &n) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "query: since is now, oldest, or the cursor of an answer");
	if (memcmp(since, ev->instance, len) != 0 || n > ev->newest)
		return set_gone(err, "the cursor is of an agent that has been restarted");
	*ret = n;
	return check_kept(ev, n, err);
}

static void add_cursor(const struct vhca_events *ev, struct json_object *doc, uint64_t n)
{
	char cursor[CURSOR_MAX];

	(void)snprintf(cursor, sizeof(cursor), "%s.%" PRIu64, ev->instance, n);
	vhca_json_add_string(doc, "cursor", cursor);
}

struct json_object *vhca_events_to_json(const struct vhca_events *ev, uint64_t since,
					struct vhca_error *err)
{
	struct json_object *doc, *list;

	if (check_kept(ev, since, err) < 0)
		return NULL;
	doc = json_object_new_object();
	list = json_object_new_array();
	add_cursor(ev, doc, ev->newest);
	for (uint64_t n = since + 1; n <= ev->newest; n++) {
		const struct event *e = &ev->ring[n % VHCA_EVENTS_MAX];
		const struct members *m = &e->members;
		struct json_object *o = json_object_new_object();

		add_cursor(ev, o, n);
		vhca_json_add_u64(o, "time_ms", e->wall_ms);
		vhca_json_add_string(o, "kind", e->kind);
		vhca_json_add_string(o, "subject", e->subject);
		vhca_json_add_string(o, "text", e->text);
		vhca_json_add_string(o, "vf", m->known ? VHCA_BDF_STR(m->vf) : NULL);
		vhca_json_add_string(o, "claim", m->known ? VHCA_UUID_STR(&m->claim) : NULL);
		vhca_json_add_string(o, "domain", m->known ? VHCA_UUID_STR(&m->domain) : NULL);
		vhca_json_add_string(o, "name", m->known ? m->name : NULL);
		vhca_json_add_string(o, "fabric", m->known ? m->fabric : NULL);
		vhca_json_add_guid(o, "guid", m->guid);
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
