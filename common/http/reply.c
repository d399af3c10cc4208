// SPDX-License-Identifier: LGPL-2.1-or-later
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/http/json.h"
#include "common/http/server_private.h"

#define ETAG_SIZE     40
#define JSON_TYPE     "application/json"
#define PROBLEM_TYPE  "application/problem+json"
#define PAGE_TYPE     "text/html; charset=utf-8"
#define JSON_FORM     (JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)
#define RETRY_AFTER_S "1" /* what is away comes back within seconds, or needs somebody */

/* FNV-1a with the length beside it: an entity tag has to tell versions apart, not to resist
 * forgery. */
static void make_etag(char etag[static ETAG_SIZE], const char *text, size_t len)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	(void)snprintf(etag, ETAG_SIZE, "\"%016" PRIx64 "-%zx\"", hash, len);
}

/* Is the tag in a list? RFC 9110 wants weak comparison for If-None-Match, not for If-Match: a W/
 * before a tag of the list does not count then. Ours are strong. */
static bool is_in_list(const char *list, const char *etag, bool weakly)
{
	size_t len = strlen(etag);

	while (*list) {
		list += strspn(list, " \t,");
		if (*list == '*')
			return true;
		if (weakly && strncmp(list, "W/", 2) == 0)
			list += 2;
		if (strncmp(list, etag, len) == 0 && (!list[len] || strchr(" \t,", list[len])))
			return true;
		list += strcspn(list, ",");
	}
	return false;
}

bool vhca_http_is_listed(const char *list, struct json_object *object)
{
	char etag[ETAG_SIZE] = "";
	size_t len = 0;
	const char *text = json_object_to_json_string_length(object, JSON_FORM, &len);

	if (text)
		make_etag(etag, text, len);
	(void)json_object_put(object);
	return text && is_in_list(list, etag, false);
}

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
	if (response && value)
		(void)MHD_add_response_header(response, name,
					      value); /* fails only without memory */
}

static struct MHD_Response *empty_response(void)
{
	return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
}

/*
 * Takes the reference. A tree is ten times its text, which may take long to send: only that stays.
 */
static struct MHD_Response *json_response(struct json_object *body, const char *type,
					  const char **ret_text, size_t *ret_len)
{
	struct MHD_Response *response;
	size_t len = 0;
	char *copy = NULL;
	const char *text = json_object_to_json_string_length(body, JSON_FORM, &len);

	if (text)
		copy = malloc(len + 1);
	if (copy)
		memcpy(copy, text, len + 1);
	(void)json_object_put(body);
	if (!copy)
		return NULL;
	response = MHD_create_response_from_buffer(len, copy, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(copy);
		return NULL;
	}
	add_header(response, "Content-Type", type);
	*ret_text = copy;
	*ret_len = len;
	return response;
}

static bool is_read(const struct vhca_http_request *req)
{
	return strcmp(req->method, "GET") == 0 || strcmp(req->method, "HEAD") == 0;
}

/*
 * An answer of so many bytes stays in memory until the client has taken it, or has gone. false: a
 * GET has been refused instead, for want of room, and the response is gone; what has changed
 * something is told, and who monitors is told why lists are refused.
 */
static bool give(struct vhca_http_request *req, struct MHD_Response *response, size_t len)
{
	struct vhca_http_peer *peer = req->conn ? vhca_http_peer_of(req->conn) : NULL;
	struct vhca_http_door *door = &req->srv->door;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (!peer)
		return true;
	if (!is_read(req) || req->monitors || vhca_http_door_has_room(door, &peer->visit, len)) {
		vhca_http_door_give(door, &peer->visit, len);
		return true;
	}
	MHD_destroy_response(response);
	(void)vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "too_many_answers", 0,
			     "%llu KiB of answers wait until their clients have taken them",
			     (unsigned long long)door->stats.answering / 1024);
	vhca_error_hint(&err, "ask again after a second, on fewer connections");
	vhca_http_reply_problem(req, &err, NULL);
	return false;
}

/*
 * The answer to a GET, or no body if the client has this very text. Takes the response, which has
 * so many bytes of its own.
 */
static void reply_tagged(struct vhca_http_request *req, struct MHD_Response *response,
			 const char *text, size_t len, size_t own)
{
	const char *known = vhca_http_header(req, "If-None-Match");
	unsigned int status = MHD_HTTP_OK;
	char etag[ETAG_SIZE];

	make_etag(etag, text, len);
	if (known && is_in_list(known, etag, true)) {
		MHD_destroy_response(response);
		response = empty_response();
		status = MHD_HTTP_NOT_MODIFIED;
	} else if (!give(req, response, own)) {
		return;
	}
	add_header(response, "ETag", etag);
	add_header(response, "Cache-Control", "no-cache"); /* may be kept, must be asked about */
	vhca_http_reply_response(req, status, response);
}

/* Takes the response; text as vhca_http_keep_fn has it. */
static void send_or_keep(struct vhca_http_request *req, unsigned int status,
			 struct MHD_Response *response, const char *text)
{
	vhca_http_keep_fn keep = req->keep;

	if (!keep) {
		vhca_http_reply_response(req, status, response);
		return;
	}
	req->keep = NULL;
	req->status = status;
	req->kept = response;
	keep(req->keeper, status, response ? text : NULL);
}

void vhca_http_send(struct vhca_http_request *req)
{
	vhca_http_reply_response(req, req->status, vhca_steal_ptr(&req->kept));
}

void vhca_http_reply(struct vhca_http_request *req, unsigned int status, struct json_object *body)
{
	struct MHD_Response *response;
	const char *text = NULL;
	size_t len = 0;

	response = body ? json_response(body, JSON_TYPE, &text, &len) : empty_response();
	if (response && body && status == MHD_HTTP_OK && is_read(req))
		reply_tagged(req, response, text, len, len);
	else if (!response || give(req, response, len))
		send_or_keep(req, status, response, text);
}

static void reply_static(struct vhca_http_request *req, const char *text, const char *type,
			 const char *policy)
{
	size_t len = strlen(text);
	struct MHD_Response *response =
		MHD_create_response_from_buffer(len, (void *)text, MHD_RESPMEM_PERSISTENT);

	if (!response) {
		vhca_http_reply_response(req, MHD_HTTP_OK, NULL);
		return;
	}
	add_header(response, "Content-Type", type);
	add_header(response, "X-Content-Type-Options", "nosniff");
	add_header(response, "Referrer-Policy", policy ? "no-referrer" : NULL);
	add_header(response, "Content-Security-Policy", policy);
	reply_tagged(req, response, text, len, 0);
}

void vhca_http_reply_document(struct vhca_http_request *req, const char *json)
{
	reply_static(req, json, JSON_TYPE, NULL);
}

void vhca_http_reply_page(struct vhca_http_request *req, const char *html, const char *policy)
{
	reply_static(req, html, PAGE_TYPE, policy);
}

/* Takes doc. */
static void reply_problem(struct vhca_http_request *req, const struct vhca_error *err,
			  struct json_object *doc, const char *allow)
{
	unsigned int status = (unsigned int)vhca_json_problem_status(err);
	struct MHD_Response *response = NULL;
	const char *text = NULL;
	size_t len;

	(void)vhca_strcpy(req->code, sizeof(req->code), err->code); /* same size */
	if (doc)
		response = json_response(doc, PROBLEM_TYPE, &text, &len);
	add_header(response, "Allow", allow);
	if (status == MHD_HTTP_UNAUTHORIZED)
		add_header(response, "WWW-Authenticate", "Bearer");
	if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
		add_header(response, "Retry-After", RETRY_AFTER_S);
	send_or_keep(req, status, response, vhca_json_problem_retryable(err) ? NULL : text);
}

void vhca_http_reply_problem(struct vhca_http_request *req, const struct vhca_error *err,
			     const char *allow)
{
	reply_problem(req, err, vhca_json_problem(err), allow);
}

void vhca_http_reply_error(struct vhca_http_request *req, const struct vhca_error *err)
{
	vhca_http_reply_problem(req, err, NULL);
}

void vhca_http_reply_error_doc(struct vhca_http_request *req, const struct vhca_error *err,
			       struct json_object *doc)
{
	reply_problem(req, err, doc, NULL);
}

void vhca_http_reply_kept(struct vhca_http_request *req, unsigned int status, const char *text)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);

	add_header(response, "Content-Type", status < 400 ? JSON_TYPE : PROBLEM_TYPE);
	vhca_http_reply_response(req, status, response);
}

void vhca_http_reply_text(struct vhca_http_request *req, unsigned int status,
			  const char *content_type, const char *text)
{
	size_t len = strlen(text);
	struct MHD_Response *response =
		MHD_create_response_from_buffer(len, (void *)text, MHD_RESPMEM_MUST_COPY);

	add_header(response, "Content-Type", content_type);
	if (!response || give(req, response, len))
		vhca_http_reply_response(req, status, response);
}
