/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_EVENTS_H
#define VHCA_AGENT_EVENTS_H
/*
 * What happened, for people and drivers: a bounded ring in memory, read by cursor. Cursors grow by one per event and start anew
 * with the agent; a reader that fell behind gets what is left and `lost: true`.
 */
#include <json-c/json_object.h>
#include <stddef.h>
#include <stdint.h>

#define VHCA_EVENTS_MAX 1024

struct vhca_events;

/* An empty ring, cursor 0. */
int vhca_events_new(struct vhca_events **ret);
/* Accepts NULL, returns NULL. */
struct vhca_events *vhca_events_free(struct vhca_events *ev);

/* kind: "vf", "grant", "port", "domain", "sm", "alarm"; subject: "0000:01:00.1", "vm1/ib0". Also goes to the log. */
void vhca_events_add(struct vhca_events *ev, const char *kind, const char *subject, const char *fmt,
		     ...) __attribute__((format(printf, 4, 5)));

/* Sequence number of the newest event; 0 = none yet. */
uint64_t vhca_events_cursor(const struct vhca_events *ev);
/* {cursor, lost, events: [...]} with everything after `since`. Caller puts it. */
struct json_object *vhca_events_to_json(const struct vhca_events *ev, uint64_t since);

/* fn(arg) after each new event, on the state thread; one listener (the API's long polls). */
void vhca_events_listen(struct vhca_events *ev, void (*fn)(void *arg), void *arg);

#endif
