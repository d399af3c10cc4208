/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/cli/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <json-c/json_object_iterator.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/http/client.h"
#include "ctl/cli/view.h"

#define REPLY_MAX   (64u * 1024 * 1024) /* thousands of VFs, each with a full P_Key table */
#define WIDTH_USUAL 80			/* of a terminal that does not say */
#define READS_MAX   5			/* of a list that changes while it is read */

void vhca_ctl_encode(struct vhca_strbuf *sb, const char *text)
{
	static const char unreserved[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	for (; *text; text++)
		if (strchr(unreserved, *text))
			vhca_strbuf_add(sb, "%c", *text);
		else
			vhca_strbuf_add(sb, "%%%02X", (unsigned int)(unsigned char)*text);
}

/* json-c escapes what is below a blank; a terminal obeys more. As JSON it is the same text. */
static void write_json(FILE *out, struct json_object *doc, int flags)
{
	const char *text =
		json_object_to_json_string_ext(doc, flags | JSON_C_TO_STRING_NOSLASHESCAPE);

	while (*text) {
		size_t n = *text == '\n' ? 0 : vhca_control_len(text);

		if (n)
			(void)fprintf(out, "\\u%04x", (unsigned int)(unsigned char)text[n - 1]);
		else
			(void)fputc(*text, out);
		text += n ? n : 1;
	}
	(void)fputc('\n', out);
}

void vhca_ctl_write_json(FILE *out, struct json_object *doc)
{
	write_json(out, doc, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED);
}

void vhca_ctl_print_json(struct json_object *doc)
{
	vhca_ctl_write_json(stdout, doc);
}

void vhca_ctl_print_json_line(struct json_object *doc)
{
	write_json(stdout, doc, JSON_C_TO_STRING_PLAIN);
}

static char *blotted_text(const char *text)
{
	char *copy = strdup(text);

	if (copy)
		vhca_blot_controls(copy);
	return copy;
}

/*
 * What comes from a domain's XML or another program moves no cursor, whichever command shows it,
 * and be it the name of a member. Takes value.
 */
static struct json_object *blot(struct json_object *value)
{
	VHCA_CTL_AUTO_PUT struct json_object *from = value;
	struct json_object *to = NULL;
	struct json_object_iterator it, end;

	if (json_object_is_type(from, json_type_string)) {
		VHCA_AUTO_FREE char *text = blotted_text(json_object_get_string(from));

		return json_object_new_string(text ? text : "");
	}
	if (json_object_is_type(from, json_type_array)) {
		to = json_object_new_array();
		for (size_t i = 0; i < json_object_array_length(from); i++)
			(void)json_object_array_add(
				to, blot(json_object_get(json_object_array_get_idx(from, i))));
		return to;
	}
	if (!json_object_is_type(from, json_type_object))
		return vhca_steal_ptr(&from);
	to = json_object_new_object();
	end = json_object_iter_end(from);
	for (it = json_object_iter_begin(from); !json_object_iter_equal(&it, &end);
	     json_object_iter_next(&it)) {
		VHCA_AUTO_FREE char *name = blotted_text(json_object_iter_peek_name(&it));

		(void)json_object_object_add(
			to, name ? name : "",
			blot(json_object_get(json_object_iter_peek_value(&it))));
	}
	return to;
}

/* No answer at all: says which of the usual reasons it is, and the way out. */
static void explain_silence(const struct vhca_ctl_server *server, struct vhca_error *err)
{
	const char *path = server->socket_path;
	int e = path && access(path, W_OK) < 0 ? errno : 0;

	if (e == EACCES || e == EPERM) {
		(void)vhca_error_set(err, VHCA_ERR_DENIED, "denied", e, "%s", path);
		vhca_error_hint(err, "%s", server->denied);
		return;
	}
	if (e)
		(void)vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "unreachable", e,
				     "%s does not run, or listens elsewhere: %s", server->name,
				     path);
	else
		vhca_error_prefix(err, "%s does not answer", server->name);
	vhca_error_hint(err, "%s", server->silent);
}

/* The caller releases res. */
static int call(const struct vhca_ctl *ctl, const char *method, const char *path,
		struct json_object *body, uint32_t default_ms, struct vhca_http_result *res,
		struct vhca_error *err)
{
	char url[VHCA_CTL_PATH_MAX + VHCA_CTL_URL_MAX];
	struct vhca_strbuf sb;
	int r;

	vhca_strbuf_init(&sb, url, sizeof(url));
	vhca_strbuf_add(&sb, "%s%s", ctl->server.url, path);
	r = vhca_http_call(
		&(struct vhca_http_call_args){
			.method = method,
			.url = url,
			.unix_socket = ctl->server.socket_path,
			.body = body,
			.auth = ctl->server.auth,
			.total_ms = ctl->timeout_ms ? ctl->timeout_ms : default_ms,
			.reply_max = REPLY_MAX,
		},
		res, err);
	if (r < 0 && res->status == 0)
		explain_silence(&ctl->server, err);
	else if (r < 0 && vhca_error_is(err, VHCA_CODE_UNAUTHORIZED))
		vhca_error_hint(err, "%s", ctl->server.denied);
	return r;
}

static int take_answer(const struct vhca_ctl *ctl, int r, struct vhca_http_result *res,
		       struct json_object **ret)
{
	if (!ctl->opts[VHCA_OPT_JSON] && !ctl->keeps_controls)
		res->body = blot(res->body);
	if (r == 0)
		*ret = vhca_steal_ptr(&res->body);
	else if (res->body && ctl->opts[VHCA_OPT_JSON])
		vhca_ctl_print_json(res->body);
	return r;
}

int vhca_ctl_call(const struct vhca_ctl *ctl, const char *method, const char *path,
		  struct json_object *body, uint32_t default_ms, struct json_object **ret,
		  struct vhca_error *err)
{
	VHCA_CLEANUP(vhca_http_result_done) struct vhca_http_result res = {0};
	int r = call(ctl, method, path, body, default_ms, &res, err);

	return take_answer(ctl, r, &res, ret);
}

int vhca_ctl_ask(const struct vhca_ctl *ctl, const char *method, const char *path,
		 struct json_object *body, uint32_t default_ms, struct json_object **ret,
		 struct vhca_error *err)
{
	int r = vhca_ctl_call(ctl, method, path, body, default_ms, ret, err);

	if (r == 0 && ctl->opts[VHCA_OPT_JSON])
		vhca_ctl_print_json(*ret);
	return r;
}

int vhca_ctl_get_state(const struct vhca_ctl *ctl, const char *path, struct json_object **ret,
		       struct vhca_error *err)
{
	VHCA_CLEANUP(vhca_http_result_done) struct vhca_http_result res = {0};
	int r = call(ctl, "GET", path, NULL, VHCA_CTL_READ_MS, &res, err);

	if (r < 0 && res.status == 503 && *vhca_view_text(res.body, "status") &&
	    !*vhca_view_text(res.body, "code"))
		r = 0;
	return take_answer(ctl, r, &res, ret);
}

int vhca_ctl_get_text(const struct vhca_ctl *ctl, const char *path, char **ret,
		      struct vhca_error *err)
{
	VHCA_CLEANUP(vhca_http_result_done) struct vhca_http_result res = {0};
	int r = call(ctl, "GET", path, NULL, VHCA_CTL_READ_MS, &res, err);

	if (r < 0)
		return r;
	*ret = vhca_steal_ptr(&res.text);
	return *ret ? 0
		    : vhca_error_set(err, VHCA_ERR_INTERNAL, "bad_answer", 0,
				     "%s's answer to %s is no text", ctl->server.name, path);
}

struct json_object *vhca_ctl_copy_row(struct json_object *array, size_t i)
{
	struct json_object *row = json_object_array_get_idx(array, i), *copy = NULL;

	if (json_object_is_type(row, json_type_object))
		(void)json_object_deep_copy(row, &copy,
					    NULL); /* out of memory shows as an empty row */
	return copy ? copy : json_object_new_object();
}

/* "/v1/vfs?state=free&numa=0": with the options that the list takes, and were given. */
static int make_path(const struct vhca_ctl *ctl, const struct vhca_ctl_list *list,
		     struct vhca_strbuf *sb, struct vhca_error *err)
{
	const struct vhca_ctl_option *options = ctl->program->options;
	const char *sep = strchr(list->path, '?') ? "&" : "?";

	vhca_strbuf_add(sb, "%s", list->path);
	for (size_t i = 0; i < ctl->program->n_options; i++) {
		if (!ctl->opts[i] || !(list->query & VHCA_OPT_BIT(i)))
			continue;
		vhca_strbuf_add(sb, "%s%s=", sep, options[i].name);
		vhca_ctl_encode(sb, ctl->opts[i]);
		sep = "&";
	}
	return sb->truncated ? vhca_error_set(err, VHCA_ERR_INVALID, "usage", ENAMETOOLONG,
					      "what the list is to show")
			     : 0;
}

/* One answer with the list, as the path says. A cursor that has gone is nothing to show. */
static int get_page(const struct vhca_ctl *ctl, const char *path, const char *key,
		    struct json_object **ret, struct vhca_error *err)
{
	VHCA_CLEANUP(vhca_http_result_done) struct vhca_http_result res = {0};
	int r = call(ctl, "GET", path, NULL, VHCA_CTL_READ_MS, &res, err);

	if (r < 0 && vhca_error_is(err, VHCA_CODE_CURSOR_GONE))
		return r;
	r = take_answer(ctl, r, &res, ret);
	if (r < 0 || vhca_view_array(*ret, key))
		return r;
	return vhca_error_set(err, VHCA_ERR_INTERNAL, "bad_answer", 0,
			      "%s's answer to %s has no list '%s'", ctl->server.name, path, key);
}

/* Appends the rows of the page behind this one, whose `next` is its own then. */
static int add_page(const struct vhca_ctl *ctl, const char *list, const char *key,
		    struct json_object *doc, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *page = NULL;
	const char *after = vhca_view_text(doc, "next");
	struct json_object *more, *rows = vhca_view_array(doc, key);
	char path[VHCA_CTL_PATH_MAX];
	struct vhca_strbuf sb;
	int r;

	vhca_strbuf_init(&sb, path, sizeof(path));
	vhca_strbuf_add(&sb, "%s%safter=", list, strchr(list, '?') ? "&" : "?");
	vhca_ctl_encode(&sb, after);
	r = get_page(ctl, path, key, &page, err);
	if (r < 0)
		return r;
	if (strcmp(vhca_view_text(page, "next"), after) == 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "bad_answer", 0,
				      "%s's answer to %s leads nowhere", ctl->server.name, path);
	more = vhca_view_array(page, key);
	for (size_t i = 0; i < vhca_view_count(more); i++)
		(void)json_object_array_add(rows,
					    json_object_get(json_object_array_get_idx(more, i)));
	(void)json_object_object_add(doc, "next", json_object_get(vhca_view_member(page, "next")));
	return 0;
}

#define POLL_MARGIN_S 10 /* of the time-out over the long poll */

int vhca_ctl_get_events(const struct vhca_ctl *ctl, const char *cursor, unsigned int wait_s,
			struct json_object **ret, struct vhca_error *err)
{
	char path[VHCA_CTL_PATH_MAX];
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, path, sizeof(path));
	vhca_strbuf_add(&sb, "/v1/events?since=");
	vhca_ctl_encode(&sb, cursor);
	vhca_strbuf_add(&sb, "&wait=%u", wait_s);
	return vhca_ctl_call(ctl, "GET", path, NULL, (wait_s + POLL_MARGIN_S) * 1000, ret, err);
}

int vhca_ctl_take_cursor(struct json_object *doc, char ret[static VHCA_CTL_CURSOR_MAX],
			 struct vhca_error *err)
{
	const char *cursor = vhca_view_text(doc, "cursor");

	if (*cursor && vhca_strcpy(ret, VHCA_CTL_CURSOR_MAX, cursor) == 0)
		return 0;
	return vhca_error_set(err, VHCA_ERR_INTERNAL, "bad_answer", 0,
			      "the agent's answer to /v1/events has no cursor");
}

int vhca_ctl_get_pages(const struct vhca_ctl *ctl, const char *path, const char *key,
		       struct json_object **ret, struct vhca_error *err)
{
	int r, reads = 0;

	do {
		VHCA_CTL_AUTO_PUT struct json_object *doc = NULL;

		r = get_page(ctl, path, key, &doc, err);
		while (r == 0 && *vhca_view_text(doc, "next"))
			r = add_page(ctl, path, key, doc, err);
		if (r == 0)
			*ret = vhca_steal_ptr(&doc);
	} while (r < 0 && vhca_error_is(err, VHCA_CODE_CURSOR_GONE) && ++reads < READS_MAX);
	return r;
}

int vhca_ctl_print_rows(const struct vhca_ctl *ctl, const struct vhca_column *columns,
			unsigned int n, struct json_object *array, struct json_object *rows,
			struct vhca_error *err)
{
	struct winsize size = {.ws_col = 0};
	size_t width = 0; /* what is no terminal cuts nothing */

	if (ctl->opts[VHCA_OPT_FIELDS])
		return vhca_table_print_fields(stdout, ctl->opts[VHCA_OPT_FIELDS], array, err);
	if (!ctl->opts[VHCA_OPT_WIDE] && isatty(STDOUT_FILENO))
		width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col
										    : WIDTH_USUAL;
	vhca_table_print(stdout, columns, n, rows, width);
	return 0;
}

int vhca_ctl_list(const struct vhca_ctl *ctl, const struct vhca_ctl_list *list,
		  struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *doc = NULL, *rows = NULL;
	struct json_object *array;
	char path[VHCA_CTL_PATH_MAX];
	struct vhca_strbuf sb;
	int r;

	vhca_strbuf_init(&sb, path, sizeof(path));
	r = make_path(ctl, list, &sb, err);
	if (r == 0 && list->limit && ctl->opts[list->limit])
		r = get_page(ctl, path, list->key, &doc, err);
	else if (r == 0)
		r = vhca_ctl_get_pages(ctl, path, list->key, &doc, err);
	if (r < 0)
		return r;
	if (ctl->opts[VHCA_OPT_JSON]) {
		vhca_ctl_print_json(doc);
		return 0;
	}
	array = vhca_view_array(doc, list->key);
	rows = list->flatten ? list->flatten(array) : json_object_get(array);
	if (vhca_view_count(rows) == 0)
		(void)puts(list->none && strcmp(path, list->path) != 0 ? list->none : list->empty);
	else
		r = vhca_ctl_print_rows(ctl, list->columns, list->n_columns, array, rows, err);
	return r;
}
