/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/hook_message.h"

#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"

/* Longest line that a parser looks at: "refuse " plus a reason; longer ones are malformed. */
#define LINE_MAX_LEN (VHCA_HOOK_REASON_MAX + 8)

int vhca_hook_payload_len(const uint8_t head[VHCA_HOOK_HEAD_LEN], size_t *ret_len)
{
	uint32_t len = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 |
		       head[3];

	if (len == 0 || len > VHCA_HOOK_PAYLOAD_MAX)
		return -EMSGSIZE;
	*ret_len = len;
	return 0;
}

/* Puts the length in front of the payload that sb wrote behind the head. */
static int finish_frame(const struct vhca_strbuf *sb, uint8_t *frame, size_t *ret_len)
{
	if (sb->truncated || sb->len > VHCA_HOOK_PAYLOAD_MAX)
		return -EMSGSIZE;
	frame[0] = (uint8_t)(sb->len >> 24);
	frame[1] = (uint8_t)(sb->len >> 16);
	frame[2] = (uint8_t)(sb->len >> 8);
	frame[3] = (uint8_t)sb->len;
	*ret_len = VHCA_HOOK_HEAD_LEN + sb->len;
	return 0;
}

static int start_frame(struct vhca_strbuf *sb, uint8_t *frame, size_t size)
{
	if (size <= VHCA_HOOK_HEAD_LEN)
		return -EMSGSIZE;
	vhca_strbuf_init(sb, (char *)frame + VHCA_HOOK_HEAD_LEN, size - VHCA_HOOK_HEAD_LEN);
	return 0;
}

/* One "key value\n"; an empty value is not sent (the receiver's "" is the same). */
static void add_text(struct vhca_strbuf *sb, const char *key, const char *value)
{
	char line[VHCA_HOOK_REASON_MAX];
	size_t n = strlen(value);

	if (n == 0)
		return;
	if (n >= sizeof(line))
		n = sizeof(line) - 1;
	memcpy(line, value, n);
	line[n] = '\0';
	vhca_blot_controls(line);
	vhca_strbuf_add(sb, "%s %s\n", key, line);
}

int vhca_hook_request_encode(const struct vhca_hook_request *req, uint8_t *frame, size_t size,
			     size_t *ret_len)
{
	struct vhca_strbuf sb;
	int r = start_frame(&sb, frame, size);

	if (r < 0)
		return r;
	vhca_strbuf_add(&sb, "version %d\n", VHCA_HOOK_VERSION);
	add_text(&sb, "op", req->op);
	add_text(&sb, "subop", req->subop);
	add_text(&sb, "extra", req->extra);
	add_text(&sb, "name", req->name);
	if (req->has_uuid)
		add_text(&sb, "uuid", VHCA_UUID_STR(&req->uuid));
	add_text(&sb, "request", req->has_request ? "1" : "0");
	if (req->has_away)
		add_text(&sb, "away", VHCA_UUID_STR(&req->away));
	if (req->incomplete)
		add_text(&sb, "incomplete", "1");
	for (unsigned int i = 0; i < req->n_hostdevs && i < VHCA_HOOK_HOSTDEVS_MAX; i++)
		add_text(&sb, "hostdev", VHCA_BDF_STR(req->hostdevs[i]));
	return finish_frame(&sb, frame, ret_len);
}

int vhca_hook_reply_encode(const struct vhca_hook_reply *reply, uint8_t *frame, size_t size,
			   size_t *ret_len)
{
	struct vhca_strbuf sb;
	int r = start_frame(&sb, frame, size);

	if (r < 0)
		return r;
	if (reply->pass)
		vhca_strbuf_add(&sb, "pass\n");
	else
		add_text(&sb, "refuse", reply->reason[0] ? reply->reason : "no reason given");
	return finish_frame(&sb, frame, ret_len);
}

/*
 * Cuts the next line off *pos into line and splits it at its first blank. Returns 1, 0 at the end,
 * or -EBADMSG: line too long, without newline, or with a control character.
 */
static int next_line(const uint8_t **pos, const uint8_t *end, char line[static LINE_MAX_LEN],
		     char **ret_value)
{
	const uint8_t *nl;
	size_t n;
	char *blank;

	if (*pos == end)
		return 0;
	nl = memchr(*pos, '\n', (size_t)(end - *pos));
	if (!nl || nl - *pos >= LINE_MAX_LEN)
		return -EBADMSG;
	n = (size_t)(nl - *pos);
	memcpy(line, *pos, n);
	line[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if (!line[i] || vhca_control_len(line + i) > 0)
			return -EBADMSG;
	*pos = nl + 1;
	blank = strchr(line, ' ');
	if (blank)
		*blank++ = '\0';
	*ret_value = blank ? blank : line + n;
	return 1;
}

static int parse_flag(const char *value, bool *ret)
{
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		return -EBADMSG;
	*ret = value[0] == '1';
	return 0;
}

static int set_op(struct vhca_hook_request *req, const char *value)
{
	return vhca_strcpy(req->op, sizeof(req->op), value);
}

static int set_subop(struct vhca_hook_request *req, const char *value)
{
	return vhca_strcpy(req->subop, sizeof(req->subop), value);
}

static int set_extra(struct vhca_hook_request *req, const char *value)
{
	return vhca_strcpy(req->extra, sizeof(req->extra), value);
}

static int set_name(struct vhca_hook_request *req, const char *value)
{
	return vhca_strcpy(req->name, sizeof(req->name), value);
}

static int set_uuid(struct vhca_hook_request *req, const char *value)
{
	req->has_uuid = true;
	return vhca_uuid_parse(value, &req->uuid);
}

static int set_request(struct vhca_hook_request *req, const char *value)
{
	return parse_flag(value, &req->has_request);
}

static int set_away(struct vhca_hook_request *req, const char *value)
{
	req->has_away = true;
	return vhca_uuid_parse(value, &req->away);
}

static int set_incomplete(struct vhca_hook_request *req, const char *value)
{
	return parse_flag(value, &req->incomplete);
}

static int add_hostdev(struct vhca_hook_request *req, const char *value)
{
	if (req->n_hostdevs == VHCA_HOOK_HOSTDEVS_MAX)
		return -EBADMSG;
	return vhca_bdf_parse(value, &req->hostdevs[req->n_hostdevs++]);
}

static const struct {
	const char *key;
	int (*set)(struct vhca_hook_request *req, const char *value);
	bool many;
} request_keys[] = {
	{"op", set_op, false},		{"subop", set_subop, false},
	{"extra", set_extra, false},	{"name", set_name, false},
	{"uuid", set_uuid, false},	{"request", set_request, false},
	{"away", set_away, false},	{"incomplete", set_incomplete, false},
	{"hostdev", add_hostdev, true},
};

/* seen: bit i = key i of the table was there. */
static int set_key(struct vhca_hook_request *req, const char *key, const char *value,
		   unsigned int *seen)
{
	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(request_keys); i++) {
		if (strcmp(key, request_keys[i].key) != 0)
			continue;
		if ((*seen & 1u << i) && !request_keys[i].many)
			return -EBADMSG;
		*seen |= 1u << i;
		return request_keys[i].set(req, value) < 0 ? -EBADMSG : 0;
	}
	return 0;
}

int vhca_hook_request_parse(const uint8_t *payload, size_t len, struct vhca_hook_request *ret)
{
	const uint8_t *pos = payload, *end = payload + len;
	struct vhca_hook_request req = {0};
	char line[LINE_MAX_LEN], *value;
	unsigned int seen = 0;
	uint32_t version;
	int r;

	if (len > VHCA_HOOK_PAYLOAD_MAX || next_line(&pos, end, line, &value) != 1 ||
	    strcmp(line, "version") != 0 || vhca_parse_u32(value, 10, UINT32_MAX, &version) < 0)
		return -EBADMSG;
	if (version != VHCA_HOOK_VERSION)
		return -EPROTONOSUPPORT;
	while ((r = next_line(&pos, end, line, &value)) > 0) {
		r = set_key(&req, line, value, &seen);
		if (r < 0)
			return r;
	}
	if (r < 0 || !req.op[0] || !req.name[0])
		return -EBADMSG;
	*ret = req;
	return 0;
}

int vhca_hook_reply_parse(const uint8_t *payload, size_t len, struct vhca_hook_reply *ret)
{
	const uint8_t *pos = payload, *end = payload + len;
	struct vhca_hook_reply reply = {0};
	char line[LINE_MAX_LEN], *value;

	if (next_line(&pos, end, line, &value) != 1 || pos != end)
		return -EBADMSG;
	reply.pass = strcmp(line, "pass") == 0;
	if (reply.pass != (value[0] == '\0') || (!reply.pass && strcmp(line, "refuse") != 0))
		return -EBADMSG;
	if (vhca_strcpy(reply.reason, sizeof(reply.reason), value) < 0)
		return -EBADMSG;
	*ret = reply;
	return 0;
}
