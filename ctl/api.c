/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/api.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/http/client.h"
#include "ctl/view.h"

#define REPLY_MAX (64u * 1024 * 1024) /* thousands of VFs, each with a full P_Key table */

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

void vhca_ctl_print_json(struct json_object *doc)
{
	(void)puts(json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PRETTY |
							       JSON_C_TO_STRING_SPACED |
							       JSON_C_TO_STRING_NOSLASHESCAPE));
}

/* No answer at all: says which of the usual reasons it is, and the way out. */
static void explain_silence(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	int e = access(ctl->socket_path, W_OK) < 0 ? errno : 0;

	if (e == EACCES || e == EPERM) {
		(void)vhca_error_set(err, VHCA_ERR_DENIED, "denied", e, "%s", ctl->socket_path);
		vhca_error_hint(
			err,
			"be root, or a member of the group that [api] group in vhcad.conf names");
		return;
	}
	if (e)
		(void)vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "unreachable", e,
				     "the agent does not run, or listens elsewhere: %s",
				     ctl->socket_path);
	else
		vhca_error_prefix(err, "the agent does not answer");
	vhca_error_hint(err, "systemctl status vhcad; journalctl -u vhcad");
}

int vhca_ctl_call(const struct vhca_ctl *ctl, const char *method, const char *path,
		  struct json_object *body, uint32_t default_ms, struct json_object **ret,
		  struct vhca_error *err)
{
	VHCA_CLEANUP(vhca_http_result_done) struct vhca_http_result res = {0};
	char url[VHCA_CTL_PATH_MAX + 32];
	struct vhca_strbuf sb;
	int r;

	vhca_strbuf_init(&sb, url, sizeof(url));
	vhca_strbuf_add(&sb, "http://localhost%s", path);
	r = vhca_http_call(
		&(struct vhca_http_call_args){
			.method = method,
			.url = url,
			.unix_socket = ctl->socket_path,
			.body = body,
			.total_ms = ctl->timeout_ms ? ctl->timeout_ms : default_ms,
			.reply_max = REPLY_MAX,
		},
		&res, err);
	if (r < 0) {
		if (res.status == 0)
			explain_silence(ctl, err);
		else if (ctl->opts[VHCA_OPT_JSON] && res.body)
			vhca_ctl_print_json(res.body);
		return r;
	}
	*ret = vhca_steal_ptr(&res.body);
	return 0;
}

struct json_object *vhca_ctl_copy_row(struct json_object *array, size_t i)
{
	struct json_object *row = json_object_array_get_idx(array, i), *copy = NULL;

	if (json_object_is_type(row, json_type_object))
		(void)json_object_deep_copy(row, &copy,
					    NULL); /* out of memory shows as an empty row */
	return copy ? copy : json_object_new_object();
}

int vhca_ctl_list(const struct vhca_ctl *ctl, const struct vhca_ctl_list *list,
		  struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *doc = NULL, *rows = NULL;
	struct json_object *array;
	int r = vhca_ctl_call(ctl, "GET", list->path, NULL, VHCA_CTL_READ_MS, &doc, err);

	if (r < 0)
		return r;
	if (ctl->opts[VHCA_OPT_JSON]) {
		vhca_ctl_print_json(doc);
		return 0;
	}
	array = vhca_view_array(doc, list->key);
	if (!array)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "bad_answer", 0,
				      "the agent's answer to %s has no list '%s'", list->path,
				      list->key);
	rows = list->flatten ? list->flatten(array) : json_object_get(array);
	if (vhca_view_count(rows) == 0)
		(void)puts(list->empty);
	else
		vhca_table_print(stdout, list->columns, list->n_columns, rows);
	return 0;
}
