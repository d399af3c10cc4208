/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_HTTP_SERVER_PRIVATE_H
#define VHCA_HTTP_SERVER_PRIVATE_H
/*
 * A request lives as long as one of two holds it: libmicrohttpd (conn is set, until its completion
 * callback) and the handler's side (until `replied`). One that never reached a handler is the
 * server's own.
 *
 *   read ──dispatch──▶ replied at once ─────────────────────▶ answer queued
 *                 └──▶ suspended ──reply──▶ resumed ────────▶ answer queued
 *                           └──client gone──▶ on_cancel, resumed ▶ closed; a reply is dropped
 */
#include <stdbool.h>
#include <sys/queue.h>

#include <microhttpd.h>

#include "common/base/caller.h"
#include "common/base/ratelimit.h"
#include "common/http/auth_private.h"
#include "common/http/door.h"
#include "common/http/listen.h"
#include "common/http/route.h"
#include "common/http/server.h"

#define VHCA_HTTP_QUERY_MAX 16

TAILQ_HEAD(vhca_http_peers, vhca_http_peer);

/* What is known of the other end of a connection. */
struct vhca_http_peer {
	TAILQ_ENTRY(vhca_http_peer) entry;
	struct vhca_http_peers *list; /* its server's that it is in, or NULL */
	struct MHD_Connection *conn;
	bool begun;	    /* libmicrohttpd has got something of the handshake */
	const int *held_by; /* one of its server's hello_fds; NULL = it is not held */
	struct vhca_http_visit visit;
	struct vhca_caller caller;		/* by its socket; no name = it cannot be found */
	char certificate[VHCA_CALLER_NAME_MAX]; /* whom it names; "" = not yet found */
	uint64_t verified_by;			/* number of the credentials; 0 = none */
	time_t verified_until;
	bool verified;
};

struct vhca_http_server {
	struct MHD_Daemon *daemon;
	struct vhca_listener listener;
	const struct vhca_http_route *routes;
	void *ctx;
	size_t body_max;
	bool (*admit)(void *ctx, struct vhca_http_request *req); /* NULL: all are admitted */
	const struct vhca_http_auth *auth;			 /* NULL: everybody is let in */
	char *authority;		       /* a copy for libmicrohttpd, which keeps it */
	const struct vhca_caller_rules *rules; /* NULL: all are admin */
	struct vhca_http_door door;
	struct vhca_http_answers *answers; /* NULL: nobody counts */
	struct vhca_ratelimit refusals;	   /* what the audit tells of them */
	/* holds libmicrohttpd's own, the suspended connections and those of hellos */
	int epoll_fd;
	int daemon_fd; /* libmicrohttpd's own */
	/* TLS, before the end of the handshake: those that libmicrohttpd has in this run; and those
	 * that are held until something has come and it is their turn, of strangers, of others */
	struct vhca_http_peers shaking, held;
	int hello_fds[2];
	int gone_fd; /* all that are held: reports who has hung up */
	TAILQ_HEAD(, vhca_http_request) requests;
};

struct vhca_http_request {
	TAILQ_ENTRY(vhca_http_request) entry;
	struct vhca_http_server *srv;
	struct MHD_Connection *conn; /* NULL when not attached */
	bool dispatched, replied, suspended, gone;
	bool monitors;	   /* its route's role is metrics */
	uint64_t begun_us; /* vhca_now_us(); 0 = is not timed */

	bool by_certificate;		     /* was it let in, */
	const struct vhca_http_token *token; /* or by this one; else whoever comes is */
	char who[VHCA_CALLER_NAME_MAX];	     /* the caller, also when the connection has gone */
	char from[VHCA_CALLER_FROM_MAX];
	enum vhca_caller_role role;
	char code[VHCA_ERROR_CODE_MAX]; /* of the problem that was replied; "" = none */

	char method[16];
	char *path, *split;			      /* as sent; cut into segments */
	const char *segments[VHCA_HTTP_SEGMENTS_MAX]; /* into split */
	const char *params[VHCA_HTTP_SEGMENTS_MAX];   /* the same, those for {} */
	char *query[VHCA_HTTP_QUERY_MAX][2];	      /* key, value */
	unsigned int n_query;

	char *text; /* the body as received */
	size_t text_len, text_size, received;
	struct json_object *body;

	void (*on_cancel)(void *arg);
	void *cancel_arg;

	vhca_http_keep_fn keep; /* NULL: the answer is sent */
	void *keeper;

	unsigned int status;
	struct MHD_Response *response; /* until queued */
	struct MHD_Response *kept;     /* until it is sent */
};

/* request.c: life of a request */
struct vhca_http_request *vhca_http_request_new(struct vhca_http_server *srv,
						struct MHD_Connection *conn, const char *method,
						const char *path);
void vhca_http_request_free(struct vhca_http_request *req);
/* Appends to the body; what exceeds the limit is only counted. -ENOMEM. */
int vhca_http_request_add_text(struct vhca_http_request *req, const char *data, size_t len);
/* The client has gone, or the server goes: tells the handler's side once, and lets libmicrohttpd
 * close the connection. */
void vhca_http_request_cancel(struct vhca_http_request *req);
/* Holds the connection until the reply, and watches for the client going away: libmicrohttpd does
 * not look meanwhile. */
int vhca_http_request_suspend(struct vhca_http_request *req);

/* caller.c: one for each connection, which it enters at the door; NULL: nobody knows whose it is */
struct vhca_http_peer *vhca_http_peer_new(struct vhca_http_server *srv,
					  struct MHD_Connection *conn);
struct vhca_http_peer *vhca_http_peer_free(struct vhca_http_server *srv,
					   struct vhca_http_peer *peer);
struct vhca_http_peer *vhca_http_peer_of(struct MHD_Connection *conn);
/* Out of the list that it is in; NULL: into none. */
void vhca_http_peer_put(struct vhca_http_peer *peer, struct vhca_http_peers *list);
/* Takes it out of the sets that hold it. */
void vhca_http_peer_let_go(const struct vhca_http_server *srv, struct vhca_http_peer *peer);
/* Sets who and role of the request. Negative errno: nobody knows who asks. */
int vhca_http_caller_find(struct vhca_http_request *req);
int vhca_http_caller_check(const struct vhca_http_request *req, enum vhca_caller_role needed,
			   struct vhca_error *err);
void vhca_http_audit(const struct vhca_http_request *req, unsigned int status);
/* Tells how many refusals were not told, of all callers whose minute was over at now_ms. */
void vhca_http_audit_sweep(struct vhca_http_server *srv, uint64_t now_ms);

/* dispatch.c: finds the handler and calls it, or replies with an error */
void vhca_http_dispatch(struct vhca_http_request *req);

/*
 * auth_server.c: what auth (may be NULL) means for libmicrohttpd, the list ending with
 * MHD_OPTION_END,
 */
#define VHCA_HTTP_AUTH_OPTIONS 5
void vhca_http_auth_options(const struct vhca_http_auth *auth, const char *authority,
			    struct MHD_OptionItem ret[static VHCA_HTTP_AUTH_OPTIONS]);
unsigned int vhca_http_auth_flags(const struct vhca_http_auth *auth);
/* with whose certificate handshakes of this thread are answered from now on: returns whose it
 * was, */
const struct vhca_http_auth *vhca_http_auth_run(const struct vhca_http_auth *auth);
/* whether auth is one for a server at all, */
int vhca_http_auth_serves(const struct vhca_http_auth *auth, const char *listen,
			  struct vhca_error *err);
/* and whether the sender of a request is let in, and by what. */
int vhca_http_auth_check(struct vhca_http_request *req, struct vhca_error *err);

/* auth_session.c: whether the handshake of a TLS session is over, */
bool vhca_http_auth_is_shaken(void *session);
/* the event of epoll(7) that it goes on with; 0 = it is over, */
uint32_t vhca_http_auth_awaits(void *session);
/* and whom the certificate of a request's connection names. Negative errno: it cannot be read. */
int vhca_http_auth_name(const struct vhca_http_request *req, char ret[static VHCA_CALLER_NAME_MAX]);

/* reply.c: is it one of the list of an If-Match? Takes the object. */
bool vhca_http_is_listed(const char *list, struct json_object *object);
void vhca_http_reply_response(struct vhca_http_request *req, unsigned int status,
			      struct MHD_Response *response);
void vhca_http_reply_problem(struct vhca_http_request *req, const struct vhca_error *err,
			     const char *allow);

#endif
