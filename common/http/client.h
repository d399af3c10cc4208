/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_HTTP_CLIENT_H
#define VHCA_HTTP_CLIENT_H
/*
 * HTTP client on libcurl for JSON. Two forms: vhca_http_call() blocks (vhcactl, tests); struct
 * vhca_http_multi runs requests on curl multi without blocking and is driven from outside through
 * callbacks for descriptors and a timer, so that this library needs no event loop
 * (common/http/http_loop.h attaches it to the event loop).
 */
#include <stddef.h>
#include <stdint.h>

#include <json-c/json_object.h>

#include "common/base/error.h"
#include "common/http/auth.h"

struct vhca_http_call_args {
	const char *method; /* "GET", "PUT", "POST", "DELETE" */
	const char *url; /* "http://host:port/path", or "http://localhost/path" with unix_socket */
	const char *unix_socket;    /* path, or NULL */
	struct json_object *body;   /* borrowed; NULL = none */
	const char *const *headers; /* extra "Name: value" lines, NULL-terminated; NULL = none */
	const struct vhca_http_auth *auth; /* borrowed until the request has ended; NULL = none */
	uint32_t connect_ms;		   /* 0 = 2000 */
	uint32_t total_ms;		   /* 0 = 10000 */
	size_t reply_max;		   /* bytes; 0 = 4 MiB; more is an error */
};

struct vhca_http_result {
	int status;		  /* HTTP status, 0 if there was no answer */
	struct json_object *body; /* NULL if empty or no JSON; owned by the result */
	char *text;		  /* what is no JSON, NULL if empty; owned by the result */
	char etag[80];
};
/* Frees what the result owns. */
void vhca_http_result_done(struct vhca_http_result *res);

/* Returns 0 for any 2xx, and for 304 (which only a caller gets that sent If-None-Match). Else fills
 * err: the server's problem document if it sent one; VHCA_ERR_UNAVAILABLE "unreachable" when there
 * was no answer. res is filled in both cases (caller calls _done). */
int vhca_http_call(const struct vhca_http_call_args *args, struct vhca_http_result *res,
		   struct vhca_error *err);

/* ---- non-blocking ---- */
struct vhca_http_multi;
struct vhca_http_multi_ops {
	/* Watch fd for events (EPOLLIN|EPOLLOUT; 0 = forget it). Then call vhca_http_multi_ready()
	 * when it fires. */
	void (*watch)(void *ctx, int fd, uint32_t events);
	/* Call vhca_http_multi_timeout() after ms; -1 = cancel. */
	void (*timer)(void *ctx, long ms);
};
/*
 * Connections are kept for the next request, and closed when there was none for so long: sooner
 * than a server closes them (idle_timeout_s of vhca_http_limits).
 */
#define VHCA_HTTP_MULTI_IDLE_MS 20000
/* ops and ctx are borrowed. */
int vhca_http_multi_new(const struct vhca_http_multi_ops *ops, void *ctx,
			struct vhca_http_multi **ret);
/* To be called as the ops above say; done() functions run from inside of these two. */
void vhca_http_multi_ready(struct vhca_http_multi *m, int fd, uint32_t revents);
void vhca_http_multi_timeout(struct vhca_http_multi *m);
/* Starts a request (args are copied, the body is serialised at once). done() is called once, from
 * _ready()/_timeout(): rc and err as vhca_http_call(); err and res are borrowed during the call.
 * Not called after _free(). done() may start requests and free m. -EAGAIN when VHCA_HTTP_MULTI_MAX
 * requests are under way. */
#define VHCA_HTTP_MULTI_MAX 1024
typedef void (*vhca_http_done_fn)(void *arg, int rc, const struct vhca_http_result *res,
				  const struct vhca_error *err);
int vhca_http_multi_start(struct vhca_http_multi *m, const struct vhca_http_call_args *args,
			  vhca_http_done_fn done, void *arg);
/* Certificates, authorities or revocation lists are others now: no request that starts from here
 * on uses a connection that is there. */
void vhca_http_multi_renew(struct vhca_http_multi *m);
/* Gives up all requests started with this arg: their done() is not called. */
void vhca_http_multi_cancel(struct vhca_http_multi *m, const void *arg);
/* Drops the requests under way without calling done(). Accepts NULL, returns NULL. */
struct vhca_http_multi *vhca_http_multi_free(struct vhca_http_multi *m);

#endif
