// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/text.h"
#include "common/http/json.h"
#include "common/http/server_private.h"

/* The route, or NULL; then allow names the methods that the path has, and is empty if there is no
 * such path. */
static const struct vhca_http_route *find_route(struct vhca_http_request *req, size_t n,
						struct vhca_strbuf *allow)
{
	const char *method = strcmp(req->method, "HEAD") == 0 ? "GET" : req->method;

	for (const struct vhca_http_route *r = req->srv->routes; r->method; r++) {
		memset(req->params, 0, sizeof(req->params));
		if (!vhca_http_match(r->pattern, req->segments, n, req->params))
			continue;
		if (strcmp(r->method, method) == 0) {
			vhca_strbuf_init(allow, allow->buf, allow->size);
			return r;
		}
		vhca_strbuf_add(allow, "%s%s%s", allow->len ? ", " : "", r->method,
				strcmp(r->method, "GET") == 0 ? ", HEAD" : "");
	}
	return NULL;
}

struct query_copy {
	struct vhca_http_request *req;
	bool failed;
};

static enum MHD_Result copy_query(void *cls, enum MHD_ValueKind kind, const char *key,
				  const char *value)
{
	struct query_copy *copy = cls;
	struct vhca_http_request *req = copy->req;
	char **pair;

	(void)kind;
	copy->failed = req->n_query == VHCA_HTTP_QUERY_MAX;
	if (copy->failed)
		return MHD_NO;
	pair = req->query[req->n_query++];
	pair[0] = strdup(key);
	pair[1] = strdup(value ? value : "");
	copy->failed = !pair[0] || !pair[1] || vhca_http_decode(pair[0]) < 0 ||
		       vhca_http_decode(pair[1]) < 0;
	return copy->failed ? MHD_NO : MHD_YES;
}

/* Copies, since a handler that answers late may ask after the connection has gone. */
static int take_query(struct vhca_http_request *req, struct vhca_error *err)
{
	struct query_copy copy = {.req = req};

	(void)MHD_get_connection_values(req->conn, MHD_GET_ARGUMENT_KIND, copy_query, &copy);
	if (!copy.failed)
		return 0;
	return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
			      "query: a broken escape, or more than %d parameters",
			      VHCA_HTTP_QUERY_MAX);
}

/* Each once: so an entry is cut by no more words than it has members. */
static int check_fields(const char *fields, const char *known, struct vhca_error *err)
{
	for (const char *p = fields; p; p = *p ? p + 1 : NULL) {
		size_t len = strcspn(p, ",");
		const char *rest = p + len + (p[len] == ',');
		bool is_known = vhca_words_have(known, ' ', p, len);

		if (!is_known || vhca_words_have(rest, ',', p, len)) {
			(void)vhca_error_set(
				err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				"query: fields: \"%.*s\" %s", len < 40 ? (int)len : 40, p,
				is_known ? "is given twice" : "is no member of an entry");
			vhca_error_hint(err, "%s", known);
			return -EINVAL;
		}
		p += len;
	}
	return 0;
}

/* What is not known would be left out of the answer without a word: ?status=free, say, where
 * state=free is meant. */
static int check_query(const struct vhca_http_request *req, const struct vhca_http_route *route,
		       struct vhca_error *err)
{
	for (unsigned int i = 0; i < req->n_query; i++) {
		const char *name = req->query[i][0];

		if (!route->query || !vhca_words_have(route->query, ' ', name, strlen(name))) {
			(void)vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
					     "query: %.40s is no parameter of %s", name,
					     route->pattern);
			if (route->query)
				vhca_error_hint(err, "it takes: %s", route->query);
			return -EINVAL;
		}
		if (vhca_http_query(req, name) != req->query[i][1])
			return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
					      "query: %s is given twice", name);
	}
	return route->fields ? check_fields(vhca_http_query(req, "fields"), route->fields, err) : 0;
}

static bool is_blank(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!strchr(" \t\r\n", text[i]))
			return false;
	return true;
}

/* The route, or NULL with the error set; allow as in find_route(). */
static const struct vhca_http_route *check_route(struct vhca_http_request *req,
						 struct vhca_strbuf *allow, struct vhca_error *err)
{
	int n = vhca_http_split_path(req->split, req->segments);
	const struct vhca_http_route *route = n < 0 ? NULL : find_route(req, (size_t)n, allow);

	if (n == -EINVAL)
		(void)vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				     "path: broken escape");
	else if (!route && allow->len)
		(void)vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_METHOD_NOT_ALLOWED, 0,
				     "%s: %s is not possible, only %s", req->path, req->method,
				     allow->buf);
	else if (!route)
		(void)vhca_error_set(err, VHCA_ERR_NOT_FOUND, VHCA_CODE_NO_SUCH_PATH, 0,
				     "%s: no such path", req->path);
	return route;
}

/* A browser shows its user's certificate for any page, and asks first only where a page does more
 * than a form can. It says that there is a page, though, and no other client says so. */
static int refuse_page(const struct vhca_http_request *req, struct vhca_error *err)
{
	if (strcmp(req->method, "GET") == 0 || strcmp(req->method, "HEAD") == 0)
		return 0;
	if (!vhca_http_header(req, "Origin"))
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
			     "header: Origin: a web page may change nothing here: %s %.80s",
			     req->method, req->path);
	vhca_error_hint(err, "a program says no Origin");
	return -EINVAL;
}

/* To do what was asked for all the same would be a request for something else. */
static int check_match(const struct vhca_http_request *req, const struct vhca_http_route *route,
		       struct vhca_error *err)
{
	if (route->state || !vhca_http_header(req, "If-Match"))
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
			     "header: If-Match: %s %s takes none", req->method, route->pattern);
	vhca_error_hint(err, "GET /openapi.json says which requests take it");
	return -EINVAL;
}

/* That it has changed, or is not there. */
static void say_unmatched(const struct vhca_http_request *req, const struct vhca_http_route *route,
			  bool is_there, struct vhca_error *err)
{
	(void)vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_PRECONDITION_FAILED, 0,
			     "header: If-Match: %.160s: it %s", req->path,
			     is_there ? "has changed" : "is not there");
	if (is_there)
		vhca_error_hint(err,
				"GET %s again; if that is still wanted, ask with the ETag of now",
				route->read);
	else
		vhca_error_hint(err, "if it is wanted all the same, ask without If-Match");
}

/*
 * Is the object still the one that the caller has read? Without one only a PUT would go on, to make
 * it; the others' handlers have a better word for that. What is refused whatever it matches is
 * refused here, as a handler may do more about it than say so.
 */
static bool is_matched(struct vhca_http_request *req, const struct vhca_http_route *route)
{
	const char *match = vhca_http_header(req, "If-Match");
	struct vhca_error err = VHCA_ERROR_INIT;
	struct json_object *now;

	if (!match)
		return true;
	now = route->state(req->srv->ctx, req, &err);
	if (now ? vhca_http_is_listed(match, now)
		: err.kind == VHCA_ERR_NOT_FOUND && strcmp(req->method, "PUT") != 0)
		return true;
	if (now || err.kind == VHCA_ERR_NOT_FOUND)
		say_unmatched(req, route, now != NULL, &err);
	vhca_http_reply_problem(req, &err, NULL);
	return false;
}

void vhca_http_dispatch(struct vhca_http_request *req)
{
	const struct vhca_http_route *route = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_strbuf allow;
	char allow_text[64] = "";

	vhca_strbuf_init(&allow, allow_text, sizeof(allow_text));
	if (req->received <= req->srv->body_max)
		route = check_route(req, &allow, &err);
	else
		(void)vhca_error_set(&err, VHCA_ERR_INVALID, VHCA_CODE_BODY_TOO_LARGE, 0,
				     "body: longer than %zu bytes", req->srv->body_max);
	req->monitors = route && route->role == VHCA_CALLER_METRICS;
	if (!route || vhca_http_caller_check(req, route->role, &err) < 0 ||
	    refuse_page(req, &err) < 0 || take_query(req, &err) < 0 ||
	    check_query(req, route, &err) < 0 || check_match(req, route, &err) < 0 ||
	    (!is_blank(req->text, req->text_len) &&
	     vhca_json_parse(req->text, req->text_len, &req->body, &err) < 0))
		vhca_http_reply_problem(req, &err, *allow_text ? allow_text : NULL);
	else if ((!req->srv->admit || strcmp(req->method, "POST") != 0 ||
		  route->role == VHCA_CALLER_READ || /* asked again it answers anew */
		  req->srv->admit(req->srv->ctx, req)) &&
		 is_matched(req, route))
		route->handler(req->srv->ctx, req);
}
