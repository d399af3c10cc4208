/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/fuzz/kit/door.h"

#include <string.h>

#include "common/base/cleanup.h"
#include "common/http/json.h"
#include "common/http/server_private.h"
#include "tests/fuzz/kit/input.h"

/* What is wrapped has no argument for a context, so there is one per process. */
static struct {
	struct vhca_http_server srv;
	struct vhca_http_request *waiting;
	const char *query;
	struct door_answer answer;
} door;

/* Our own client has to be able to read it, whatever of the request is repeated in it. */
static void check_readable(struct json_object *body)
{
	const char *text = json_object_to_json_string_ext(body, JSON_C_TO_STRING_PLAIN);
	struct json_object *again = NULL;

	FUZZ_ASSERT(text && vhca_json_parse(text, strlen(text), &again, NULL) == 0);
	(void)json_object_put(again);
}

/* ---- what stands in for the production symbols ---- */

int __wrap_vhca_http_server_new(const char *listen, mode_t sock_mode,
				const struct vhca_http_limits *limits,
				const struct vhca_http_route *routes, void *ctx,
				struct vhca_http_server **ret, struct vhca_error *err);
int __wrap_vhca_http_server_new(const char *listen, mode_t sock_mode,
				const struct vhca_http_limits *limits,
				const struct vhca_http_route *routes, void *ctx,
				struct vhca_http_server **ret, struct vhca_error *err)
{
	(void)listen, (void)sock_mode, (void)err;
	FUZZ_ASSERT(!door.srv.routes);
	door.srv = (struct vhca_http_server){
		.routes = routes,
		.ctx = ctx,
		.body_max = limits && limits->body_max ? limits->body_max : 65536,
	};
	TAILQ_INIT(&door.srv.requests);
	*ret = &door.srv;
	return 0;
}

struct vhca_http_server *__wrap_vhca_http_server_free(struct vhca_http_server *srv);
struct vhca_http_server *__wrap_vhca_http_server_free(struct vhca_http_server *srv)
{
	door.srv.routes = NULL;
	(void)srv;
	return NULL;
}

void __wrap_vhca_http_server_run(struct vhca_http_server *srv);
void __wrap_vhca_http_server_run(struct vhca_http_server *srv)
{
	(void)srv;
}

/* As libmicrohttpd does it with keep_escapes(): a key without "=" has no value. */
int __wrap_MHD_get_connection_values(struct MHD_Connection *conn, enum MHD_ValueKind kind,
				     MHD_KeyValueIterator fn, void *cls);
int __wrap_MHD_get_connection_values(struct MHD_Connection *conn, enum MHD_ValueKind kind,
				     MHD_KeyValueIterator fn, void *cls)
{
	VHCA_AUTO_FREE char *copy = door.query ? strdup(door.query) : NULL;
	char *rest = copy, *pair;
	int n = 0;

	(void)conn;
	FUZZ_ASSERT(kind == MHD_GET_ARGUMENT_KIND);
	while (rest && (pair = strsep(&rest, "&"))) {
		char *value = strchr(pair, '=');

		if (value)
			*value++ = '\0';
		n++;
		if (fn(cls, kind, pair, value) != MHD_YES)
			break;
	}
	return n;
}

void __real_vhca_http_reply(struct vhca_http_request *req, unsigned int status,
			    struct json_object *body);
void __wrap_vhca_http_reply(struct vhca_http_request *req, unsigned int status,
			    struct json_object *body);
void __wrap_vhca_http_reply(struct vhca_http_request *req, unsigned int status,
			    struct json_object *body)
{
	FUZZ_ASSERT(!door.answer.body);
	check_readable(body);
	door.answer.body = json_object_get(body);
	__real_vhca_http_reply(req, status, body);
}

void __real_vhca_http_reply_response(struct vhca_http_request *req, unsigned int status,
				     struct MHD_Response *response);
void __wrap_vhca_http_reply_response(struct vhca_http_request *req, unsigned int status,
				     struct MHD_Response *response);
void __wrap_vhca_http_reply_response(struct vhca_http_request *req, unsigned int status,
				     struct MHD_Response *response)
{
	FUZZ_ASSERT(!door.answer.status && response && status >= 200 && status <= 599);
	door.answer.status = status;
	__real_vhca_http_reply_response(req, status,
					response); /* frees it: there is no connection */
}

/* Problem documents, too. */
struct json_object *__real_vhca_json_problem(const struct vhca_error *err);
struct json_object *__wrap_vhca_json_problem(const struct vhca_error *err);
struct json_object *__wrap_vhca_json_problem(const struct vhca_error *err)
{
	struct json_object *doc = __real_vhca_json_problem(err);

	FUZZ_ASSERT(err->kind != VHCA_ERR_NONE && err->kind != VHCA_ERR_INTERNAL);
	check_readable(doc);
	return doc;
}

/* ---- asking ---- */

static void forget_answer(void)
{
	(void)json_object_put(door.answer.body);
	door.answer = (struct door_answer){.status = 0};
	door.waiting = NULL;
}

const struct door_answer *door_ask(const struct door_request *ask)
{
	struct vhca_http_request *req;

	forget_answer();
	req = vhca_http_request_new(&door.srv, NULL, ask->method, ask->path);
	FUZZ_ASSERT(req && vhca_http_request_add_text(req, ask->body, ask->body_len) == 0);
	req->dispatched = true;
	req->role = VHCA_CALLER_ADMIN;
	door.query = ask->query;
	door.waiting = req;
	vhca_http_dispatch(req);
	return &door.answer;
}

void door_leave(void)
{
	if (!door.answer.status)
		vhca_http_request_cancel(door.waiting);
	FUZZ_ASSERT(door.answer.status);
}

void door_close(void)
{
	FUZZ_ASSERT(TAILQ_EMPTY(&door.srv.requests));
	forget_answer();
}

/* ---- input ---- */

/* False if no such line gets through libmicrohttpd. */
static bool read_head(char *line, struct door_request *ret)
{
	char *query, *path = strchr(line, ' ');

	if (!path || path == line)
		return false;
	*path++ = '\0';
	if (path[0] != '/' || strpbrk(path, " \t\r"))
		return false;
	query = strchr(path, '?');
	if (query)
		*query++ = '\0';
	ret->method = line;
	ret->path = path;
	ret->query = query;
	return true;
}

void door_play(const uint8_t *data, size_t size,
	       void (*each)(void *ctx, const struct door_request *req), void *ctx)
{
	size_t len = 0;
	char *part;

	while ((part = input_part(&data, &size, &len))) {
		struct door_request req = {.body = ""};
		char *body = memchr(part, '\n', len);

		if (body) {
			*body++ = '\0';
			req.body = body;
			req.body_len = len - (size_t)(body - part);
		}
		if (read_head(part, &req))
			each(ctx, &req);
		free(part);
	}
}
