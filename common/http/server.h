/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_HTTP_SERVER_H
#define VHCA_HTTP_SERVER_H
/*
 * HTTP/1.1 server on libmicrohttpd, driven from outside: it owns an epoll descriptor, and the owner
 * calls vhca_http_server_run() when that is readable or the timeout has passed. So the agent puts
 * it into its sd-event loop and the OpenSM plugin into a poll() thread of its own. Not thread-safe:
 * one thread at a time.
 *
 * A route table maps method + path pattern to a handler. A handler answers at once or later (the
 * connection is suspended meanwhile): vhca_http_reply() exactly once per request; if the client has
 * gone, the reply is dropped.
 *
 * Each change (whatever is no GET) of one who was let in leaves a line in the log when it is
 * answered: "audit: NAME (ROLE, FROM) METHOD PATH: STATUS CODE". Of those that were refused (4xx)
 * at most 30 of one name a minute: "audit: NAME: 970 more refusals in a minute".
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <json-c/json_object.h>

#include "common/base/caller.h"
#include "common/base/error.h"
#include "common/base/histogram.h"
#include "common/http/auth.h"

struct vhca_http_server;
struct vhca_http_request;

#define VHCA_HTTP_PARAMS_MAX 4

struct vhca_http_route {
	const char *method;  /* "GET" also serves HEAD */
	const char *pattern; /* "/v1/domains/{}/vfs/{}": {} matches one non-empty segment, given as
				param 0, 1, ... */
	enum vhca_caller_role role; /* who has less is refused: 403 role_needed */
	void (*handler)(void *ctx, struct vhca_http_request *req);
	const char *query; /* "limit after": the parameters that it takes, each once; NULL = none */
	/* Of a list that takes "fields", members of an entry, each once: all that there are,
	 * "bdf state"; vhca_json_cut_list() leaves those that were asked for. */
	const char *fields;
	/* What a GET answers of the object that it changes; caller puts it. NULL with err set: not
	 * found, or what the request is refused for. If-Match is compared with that, behind admit;
	 * without this the header is refused. */
	struct json_object *(*state)(void *ctx, const struct vhca_http_request *req,
				     struct vhca_error *err);
	const char *read; /* "/v1/claims/{id}": where to GET that, with its ETag; NULL without */
};

#define VHCA_HTTP_STATUSES_MAX 16

/* What was answered. */
struct vhca_http_answers {
	struct {
		unsigned int status; /* 0 = this row and the next ones are empty */
		uint64_t by_role[VHCA_CALLER_ROLES];
	} rows[VHCA_HTTP_STATUSES_MAX]; /* the last one has whatever found no row */
	struct vhca_histogram times;	/* from a head to its answer */
};

struct vhca_http_limits {	      /* zero = the default in brackets */
	size_t body_max;	      /* bytes [65536]; more: 413 */
	unsigned int connections_max; /* [128]; more wait to be accepted */
	/* Of those, from one address (IPv6: /64) or of one user; root and the server's own user may
	 * have all [half]. The next one takes the place of its oldest that waits for no answer. */
	unsigned int source_max;
	/* Of those, from where no request has been let in yet [half]: the next one takes the place
	 * of the oldest from where most are. The others are kept for those who have passed once. */
	unsigned int strangers_max;
	/* Bytes of answers that clients have not taken yet [no bound], of one source an eighth. A
	 * GET whose answer would be too much is 503 too_many_answers. Not bounded: answers of up to
	 * 4 KiB, to what changes something, of routes of the role metrics, and to a unix socket's
	 * root or server's own user. */
	size_t answering_max;
	size_t connection_memory; /* bytes of each, for its header lines [32768] */
	/*
	 * How long it takes at most, however much arrives meanwhile: from the accept() to the end
	 * of the handshake [5000] and of the first head [10000], from a head to the end of its body
	 * [10000], from an answer to its last byte [30000] and to the next head [30].
	 */
	unsigned int handshake_ms, head_ms, body_ms, answer_ms, idle_timeout_s;
	/* borrowed, may be replaced (vhca_http_auth_replace()): who is let in, and TLS; NULL =
	 * everybody, plain HTTP */
	const struct vhca_http_auth *auth;
	/* A POST that needs more than the role read, passed all checks and has its body: false = it
	 * is answered, or will be. NULL: its handler is called */
	bool (*admit)(void *ctx, struct vhca_http_request *req);
	/* borrowed, read at each request: the roles of who is let in; NULL = all are admin */
	const struct vhca_caller_rules *rules;
	/* borrowed: counts what is answered, perhaps with other servers'; NULL = nobody does */
	struct vhca_http_answers *answers;
};

/* Why the server has ended a connection: its deadline of this name, or for one more. */
enum vhca_http_end {
	VHCA_HTTP_END_HANDSHAKE,
	VHCA_HTTP_END_HEAD,
	VHCA_HTTP_END_BODY,
	VHCA_HTTP_END_ANSWER,
	VHCA_HTTP_END_IDLE,
	VHCA_HTTP_END_SOURCE,	 /* above source_max */
	VHCA_HTTP_END_STRANGERS, /* above strangers_max */
	VHCA_HTTP_END_CROWD,	 /* idle, and above seven eighths of connections_max */
	VHCA_HTTP_ENDS,
};
extern const char *const vhca_http_end_names[VHCA_HTTP_ENDS];

/* What the agent's doors and the plugin's have as answering_max. */
#define VHCA_HTTP_ANSWERING_MAX (16u * 1024 * 1024)

struct vhca_http_stats {
	unsigned int connections;
	uint64_t answering; /* bytes of answers that clients have not taken yet */
	uint64_t ended[VHCA_HTTP_ENDS];
};

/*
 * Clients keep their connections, so that the first to come would hold them all while others wait:
 * above three quarters of connections_max or of source_max each answer closes its connection. What
 * was ended early is told in the log, once a minute at most.
 *
 * listen: "unix:/path" or "ADDRESS:PORT" / "[v6]:PORT". A unix socket is created with mode
 * `sock_mode`, stale ones are replaced. routes (ends with a NULL method) and ctx are borrowed.
 */
int vhca_http_server_new(const char *listen, mode_t sock_mode,
			 const struct vhca_http_limits *limits,
			 const struct vhca_http_route *routes, void *ctx,
			 struct vhca_http_server **ret, struct vhca_error *err);
/* Closes all connections. Requests not yet replied are cancelled: on_cancel is called where it was
 * not yet, and after the return no request handle is valid any more, replied or not. */
struct vhca_http_server *vhca_http_server_free(struct vhca_http_server *srv);
int vhca_http_server_fd(const struct vhca_http_server *srv);
/* Milliseconds until run() must be called at the latest; -1 = no limit. */
int vhca_http_server_timeout_ms(const struct vhca_http_server *srv);
void vhca_http_server_run(struct vhca_http_server *srv);
void vhca_http_server_stats(const struct vhca_http_server *srv, struct vhca_http_stats *ret);
/* Port actually bound (for "127.0.0.1:0" in tests), 0 for unix sockets. */
uint16_t vhca_http_server_port(const struct vhca_http_server *srv);

/* ---- request ---- */
const char *vhca_http_method(const struct vhca_http_request *req);
const char *vhca_http_path(const struct vhca_http_request *req);
/* Who asks: "cert:hv1.example.org", "token:NAME", "uid:0". */
const char *vhca_http_caller(const struct vhca_http_request *req);
enum vhca_caller_role vhca_http_role(const struct vhca_http_request *req); /* the caller's */
const char *vhca_http_param(const struct vhca_http_request *req,
			    unsigned int i); /* URL-decoded; never NULL */
const char *vhca_http_query(const struct vhca_http_request *req,
			    const char *key); /* NULL if absent */
const char *vhca_http_header(const struct vhca_http_request *req,
			     const char *name); /* NULL if absent, or when the client has gone */
/* Parsed body (borrowed); NULL for an empty one. A body that is no JSON was answered 400 before the
 * handler. */
struct json_object *vhca_http_body(const struct vhca_http_request *req);

/* If the request is answered later: fn(arg) is called once when the client goes away before, or the
 * server is freed. After the former the handle stays valid until replied, which fn itself may do;
 * the reply is dropped. A client that closes only its sending side counts as gone. */
void vhca_http_on_cancel(struct vhca_http_request *req, void (*fn)(void *arg), void *arg);

/* The answer goes to fn(arg), once, instead of to the client, who gets it by vhca_http_send(). text
 * is borrowed; NULL: the same request may be answered otherwise later, so this one is none to keep.
 * arg, of malloc(), is freed with the request: also where the server is before an answer. */
typedef void (*vhca_http_keep_fn)(void *arg, unsigned int status, const char *text);
void vhca_http_keep(struct vhca_http_request *req, vhca_http_keep_fn fn, void *arg);
void *vhca_http_keeper(const struct vhca_http_request *req); /* arg; NULL = nobody keeps it */
void vhca_http_send(struct vhca_http_request *req);
/* Of an answer that was kept. */
void vhca_http_reply_kept(struct vhca_http_request *req, unsigned int status, const char *text);

/* SHA-256 of method, path and body, as they were sent. */
#define VHCA_HTTP_FINGERPRINT_STRLEN 65
int vhca_http_fingerprint(const struct vhca_http_request *req,
			  char ret[static VHCA_HTTP_FINGERPRINT_STRLEN]);

/* What it is answered waits for something to happen: it is none of vhca_http_answers.times. */
void vhca_http_do_not_time(struct vhca_http_request *req);

/* ---- reply: takes the reference of body (NULL = empty) ----
 * GETs with status 200 carry a strong ETag of the body; If-None-Match is answered 304 by the server
 * itself. */
void vhca_http_reply(struct vhca_http_request *req, unsigned int status, struct json_object *body);
/* 200 with a text of JSON that stays as it is as long as the server; it is not copied. To a GET. */
void vhca_http_reply_document(struct vhca_http_request *req, const char *json);
/* The same of HTML for a browser, which is to keep to the policy (Content-Security-Policy). */
void vhca_http_reply_page(struct vhca_http_request *req, const char *html, const char *policy);
/* Problem document with the status of err->kind (vhca_err_to_http). */
void vhca_http_reply_error(struct vhca_http_request *req, const struct vhca_error *err);
/* The same with a document (taken) that the caller made by vhca_json_problem(err) and added members
 * to. */
void vhca_http_reply_error_doc(struct vhca_http_request *req, const struct vhca_error *err,
			       struct json_object *doc);
void vhca_http_reply_text(struct vhca_http_request *req, unsigned int status,
			  const char *content_type, const char *text);

#endif
