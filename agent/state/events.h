/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_STATE_EVENTS_H
#define VHCA_AGENT_STATE_EVENTS_H
/*
 * What happened, for people and drivers: a bounded ring in memory, read by cursor. A cursor stands
 * behind an event of one life of the agent; one whose next event is not kept any more, or that
 * comes from another life, is refused: its reader has missed something.
 */
#include <stdint.h>

#include <json-c/json_object.h>

#include "common/base/error.h"

#define VHCA_EVENTS_MAX 1024

struct vhca_claim;
struct vhca_events;

/* An empty ring. */
int vhca_events_new(struct vhca_events **ret);
/* Accepts NULL, returns NULL. */
struct vhca_events *vhca_events_free(struct vhca_events *ev);

/*
 * kind: "vf", "grant", "port", "domain", "sm", "alarm"; subject: "0000:01:00.1", "vm1/ib0". Also
 * goes to the log.
 */
void vhca_events_add(struct vhca_events *ev, const char *kind, const char *subject, const char *fmt,
		     ...) __attribute__((format(printf, 4, 5)));

/*
 * The same of a claim: its subject is "vm1/ib0", and members say in words of the API which claim of
 * which domain it is, with its VF and its GUID.
 */
void vhca_events_add_claim(struct vhca_events *ev, const char *kind, const struct vhca_claim *claim,
			   const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Sequence number of the newest event; 0 = none yet. */
uint64_t vhca_events_newest(const struct vhca_events *ev);
/* Which event a reader has heard last: by its cursor; "now": the newest; "oldest": the one
 * before the oldest kept. bad_request for other words, cursor_gone. */
int vhca_events_find(const struct vhca_events *ev, const char *since, uint64_t *ret,
		     struct vhca_error *err);
/* {cursor, events: [...]} with everything after the event `since`. NULL with err set
 * (cursor_gone) if that is not all kept. Caller puts it. */
struct json_object *vhca_events_to_json(const struct vhca_events *ev, uint64_t since,
					struct vhca_error *err);

/* fn(arg) after each new event, on the state thread; one listener (the API's long polls). */
void vhca_events_listen(struct vhca_events *ev, void (*fn)(void *arg), void *arg);

#endif
