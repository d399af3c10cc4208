/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_HTTP_DOOR_H
#define VHCA_HTTP_DOOR_H
/*
 * Who may hold a place at a server, and for how long; internal to the server. libmicrohttpd counts
 * from a client's last byte, and who is over its limits waits or is turned away whoever holds the
 * places; here a deadline counts from where a phase began, and whoever holds most gives way.
 *
 *   accept ─▶ HANDSHAKE ─▶ HEAD ─▶ BODY ─▶ HANDLED ─▶ ANSWER ─▶ IDLE ─▶ BODY ...
 *
 * A connection that has to end is shut down; libmicrohttpd sees that and closes it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/http/server.h"

enum vhca_http_phase {
	VHCA_HTTP_HANDSHAKE, /* TLS only */
	VHCA_HTTP_HEAD,	     /* of its first request */
	VHCA_HTTP_BODY,
	VHCA_HTTP_HANDLED, /* as long as it takes */
	VHCA_HTTP_ANSWER,  /* is being taken */
	VHCA_HTTP_IDLE,	   /* until the head of its next request has come */
	VHCA_HTTP_PHASES,
};

/* One address, one /64 of IPv6, or one user: who has many of them has many places. */
struct vhca_http_source_key {
	uint8_t kind; /* 4, 6, or 1 = a user */
	uint8_t value[8];
};

struct vhca_http_visit;
TAILQ_HEAD(vhca_http_visits, vhca_http_visit);

struct vhca_http_source {
	LIST_ENTRY(vhca_http_source) bucket;
	TAILQ_ENTRY(vhca_http_source) absent;
	struct vhca_http_source_key key;
	bool known;  /* a request of it was let in */
	bool exempt; /* root and the server's own user, who could end the server as well */
	unsigned int n;
	size_t answering;		/* bytes of answers that are to be taken */
	struct vhca_http_visits visits; /* the oldest first */
};

/* The door's part of a connection. */
struct vhca_http_visit {
	TAILQ_ENTRY(vhca_http_visit) of_source, of_phase;
	struct vhca_http_source *source; /* NULL: it was ended, or nobody knows where it is from */
	enum vhca_http_phase phase;
	uint64_t number, accepted_ms, deadline_ms;
	size_t answering; /* bytes of its answer, until that is taken */
	int fd;
	void *session; /* of GnuTLS; NULL = plain */
};

#define VHCA_HTTP_BUCKETS 256

struct vhca_http_door {
	struct vhca_http_limits limits;
	LIST_HEAD(, vhca_http_source) buckets[VHCA_HTTP_BUCKETS];
	TAILQ_HEAD(, vhca_http_source) absent; /* known, without a connection; the oldest first */
	struct vhca_http_visits phases[VHCA_HTTP_PHASES]; /* by their deadlines */
	unsigned int n_absent, strangers;		  /* connections of who is not known */
	struct vhca_http_stats stats, told;
	uint64_t accepted, told_ms;
};

/* limits: all set. */
void vhca_http_door_init(struct vhca_http_door *door, const struct vhca_http_limits *limits);
/* All connections have left. */
void vhca_http_door_done(struct vhca_http_door *door);
/* A connection has been accepted (fd and session are set): another one, or itself, may have to go
 * for it. -ENOMEM. */
int vhca_http_door_enter(struct vhca_http_door *door, struct vhca_http_visit *visit,
			 const struct vhca_http_source_key *key, bool exempt);
void vhca_http_door_leave(struct vhca_http_door *door, struct vhca_http_visit *visit);
void vhca_http_door_begin(struct vhca_http_door *door, struct vhca_http_visit *visit,
			  enum vhca_http_phase phase);
/* A request on it was let in. */
void vhca_http_door_know(struct vhca_http_door *door, struct vhca_http_visit *visit);
/* Whether this one is to be closed with its answer, so that another gets its place. */
bool vhca_http_door_is_crowded(const struct vhca_http_door *door,
			       const struct vhca_http_visit *visit);
/* So many bytes are to be taken there, until vhca_http_door_taken(): whether there is room. */
bool vhca_http_door_has_room(const struct vhca_http_door *door, const struct vhca_http_visit *visit,
			     size_t len);
void vhca_http_door_give(struct vhca_http_door *door, struct vhca_http_visit *visit, size_t len);
void vhca_http_door_taken(struct vhca_http_door *door, struct vhca_http_visit *visit);
int vhca_http_door_timeout_ms(const struct vhca_http_door *door); /* -1 = none */
/* Ends what is overdue, and tells of what was ended, once a minute at most. */
void vhca_http_door_sweep(struct vhca_http_door *door);

#endif
