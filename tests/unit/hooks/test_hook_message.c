/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/hook_message.h"
#include "tests/unit/unit.h"

#define UUID "6b3e1d60-0d6f-4f5e-9d38-0123456789ab"
#define AWAY "0f2d7a52-8c1b-4f0e-a5d7-9b8c7d6e5f40"

static const char full_text[] =
	"version 1\nop prepare\nsubop begin\nextra -\nname vm 1\nuuid " UUID
	"\nrequest 1\naway " AWAY "\nhostdev 0000:01:00.2\nhostdev 0001:af:1f.7\n";

static struct vhca_hook_request full_request(void)
{
	struct vhca_hook_request req = {
		.op = "prepare",
		.subop = "begin",
		.extra = "-",
		.name = "vm 1",
		.has_uuid = true,
		.has_request = true,
		.has_away = true,
		.n_hostdevs = 2,
		.hostdevs = {{0, 1, 0, 2}, {1, 0xaf, 0x1f, 7}},
	};

	assert_int_equal(vhca_uuid_parse(UUID, &req.uuid), 0);
	assert_int_equal(vhca_uuid_parse(AWAY, &req.away), 0);
	return req;
}

static int parse(const char *text, struct vhca_hook_request *ret)
{
	return vhca_hook_request_parse((const uint8_t *)text, strlen(text), ret);
}

static int parse_reply(const char *text, struct vhca_hook_reply *ret)
{
	return vhca_hook_reply_parse((const uint8_t *)text, strlen(text), ret);
}

static void request_is_written_as_documented(void **state)
{
	struct vhca_hook_request req = full_request();
	uint8_t frame[VHCA_HOOK_FRAME_MAX];
	size_t len, payload;

	(void)state;
	assert_int_equal(vhca_hook_request_encode(&req, frame, sizeof(frame), &len), 0);
	assert_int_equal(len, VHCA_HOOK_HEAD_LEN + strlen(full_text));
	assert_memory_equal(frame + VHCA_HOOK_HEAD_LEN, full_text, strlen(full_text));
	assert_int_equal(vhca_hook_payload_len(frame, &payload), 0);
	assert_int_equal(payload, strlen(full_text));
}

static void request_is_read_as_written(void **state)
{
	struct vhca_hook_request req = full_request(), back;

	(void)state;
	memset(&back, 0xff, sizeof(back));
	assert_int_equal(parse(full_text, &back), 0);
	assert_string_equal(back.op, req.op);
	assert_string_equal(back.subop, req.subop);
	assert_string_equal(back.extra, req.extra);
	assert_string_equal(back.name, req.name);
	assert_true(back.has_uuid);
	assert_true(vhca_uuid_equal(&back.uuid, &req.uuid));
	assert_true(back.has_request);
	assert_true(back.has_away);
	assert_true(vhca_uuid_equal(&back.away, &req.away));
	assert_false(back.incomplete);
	assert_int_equal(back.n_hostdevs, 2);
	assert_int_equal(vhca_bdf_cmp(back.hostdevs[0], req.hostdevs[0]), 0);
	assert_int_equal(vhca_bdf_cmp(back.hostdevs[1], req.hostdevs[1]), 0);
}

static void smallest_request_survives(void **state)
{
	struct vhca_hook_request req = {.op = "stopped", .name = "x", .incomplete = true}, back;
	uint8_t frame[VHCA_HOOK_FRAME_MAX];
	size_t len;

	(void)state;
	assert_int_equal(vhca_hook_request_encode(&req, frame, sizeof(frame), &len), 0);
	assert_int_equal(vhca_hook_request_parse(frame + VHCA_HOOK_HEAD_LEN,
						 len - VHCA_HOOK_HEAD_LEN, &back),
			 0);
	assert_memory_equal(frame + VHCA_HOOK_HEAD_LEN,
			    "version 1\nop stopped\nname x\nrequest 0\nincomplete 1\n",
			    len - VHCA_HOOK_HEAD_LEN);
	assert_string_equal(back.subop, "");
	assert_false(back.has_uuid);
	assert_false(back.has_request);
	assert_false(back.has_away);
	assert_true(back.incomplete);
	assert_int_equal(back.n_hostdevs, 0);
}

static void largest_request_fits(void **state)
{
	struct vhca_hook_request req = full_request(), back;
	uint8_t frame[VHCA_HOOK_FRAME_MAX];
	size_t len;

	(void)state;
	memset(req.name, 'n', sizeof(req.name) - 1);
	memset(req.op, 'o', sizeof(req.op) - 1);
	req.n_hostdevs = VHCA_HOOK_HOSTDEVS_MAX;
	assert_int_equal(vhca_hook_request_encode(&req, frame, sizeof(frame), &len), 0);
	assert_int_equal(vhca_hook_request_parse(frame + VHCA_HOOK_HEAD_LEN,
						 len - VHCA_HOOK_HEAD_LEN, &back),
			 0);
	assert_int_equal(back.n_hostdevs, VHCA_HOOK_HOSTDEVS_MAX);
	assert_string_equal(back.name, req.name);
}

/* A domain name with a newline must not become a line of its own. */
static void control_characters_cannot_forge_lines(void **state)
{
	struct vhca_hook_request req = full_request(), back;
	uint8_t frame[VHCA_HOOK_FRAME_MAX];
	size_t len;

	(void)state;
	(void)vhca_strcpy(req.name, sizeof(req.name), "a\nrequest 0\x7f");
	assert_int_equal(vhca_hook_request_encode(&req, frame, sizeof(frame), &len), 0);
	assert_int_equal(vhca_hook_request_parse(frame + VHCA_HOOK_HEAD_LEN,
						 len - VHCA_HOOK_HEAD_LEN, &back),
			 0);
	assert_string_equal(back.name, "a?request 0?");
	assert_true(back.has_request);
}

static void encoding_needs_room(void **state)
{
	struct vhca_hook_request req = full_request();
	struct vhca_hook_reply pass = {.pass = true};
	size_t need = VHCA_HOOK_HEAD_LEN + strlen(full_text) + 1, len;
	uint8_t frame[VHCA_HOOK_FRAME_MAX];

	(void)state;
	for (size_t size = 0; size < need; size++)
		assert_int_equal(vhca_hook_request_encode(&req, frame, size, &len), -EMSGSIZE);
	assert_int_equal(vhca_hook_request_encode(&req, frame, need, &len), 0);
	assert_int_equal(vhca_hook_reply_encode(&pass, frame, 8, &len), -EMSGSIZE);
}

static void malformed_requests_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"version 1", /* no newline */
		"version\n",
		"version one\n",
		"serial 1\nop a\nname x\n",
		"op prepare\nname x\n",		   /* no version */
		"op prepare\nversion 1\nname x\n", /* not first */
		"version 1\nop prepare\n",	   /* no name */
		"version 1\nname x\n",		   /* no op */
		"version 1\nop a\nop b\nname x\n", /* twice */
		"version 1\nop a\nname x\nname y\n",
		"version 1\nop a\nname x\nrequest yes\n",
		"version 1\nop a\nname x\nrequest\n",
		"version 1\nop a\nname x\nuuid 1\n",
		"version 1\nop a\nname x\naway 1\n",
		"version 1\nop a\nname x\naway\n",
		"version 1\nop a\nname x\naway " AWAY "\naway " AWAY "\n",
		"version 1\nop a\nname x\nhostdev 01:00.1\n",
		"version 1\nop a\nname x\nhostdev 0000:01:00.1 x\n",
		"version 1\nop a\nname x\nincomplete 2\n",
		"version 1\nop a\nname x\r\n",
		"version 1\nop a\nname x\nop", /* cut */
		"version 1\nop 0123456789012345678901234567890123456789\nname x\n",
	};
	struct vhca_hook_request req;

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(bad); i++) {
		memset(&req, 0x5a, sizeof(req));
		assert_int_equal(parse(bad[i], &req), -EBADMSG);
		assert_int_equal(req.op[0], 0x5a); /* left alone */
	}
	assert_int_equal(parse("version 2\nop a\nname x\n", &req), -EPROTONOSUPPORT);
	assert_int_equal(
		vhca_hook_request_parse((const uint8_t *)"version 1\nop a\0b\nname x\n", 24, &req),
		-EBADMSG);
}

static void too_many_hostdevs_are_refused(void **state)
{
	char text[VHCA_HOOK_PAYLOAD_MAX];
	struct vhca_strbuf sb;
	struct vhca_hook_request req;

	(void)state;
	vhca_strbuf_init(&sb, text, sizeof(text));
	vhca_strbuf_add(&sb, "version 1\nop a\nname x\n");
	for (int i = 0; i < VHCA_HOOK_HOSTDEVS_MAX; i++)
		vhca_strbuf_add(&sb, "hostdev 0000:01:00.1\n");
	assert_int_equal(parse(text, &req), 0);
	vhca_strbuf_add(&sb, "hostdev 0000:01:00.1\n");
	assert_int_equal(parse(text, &req), -EBADMSG);
}

static void unknown_keys_are_skipped(void **state)
{
	struct vhca_hook_request req;

	(void)state;
	assert_int_equal(parse("version 1\nop a\nfuture x\nfuture y\nname n\n", &req), 0);
	assert_string_equal(req.name, "n");
}

static void lines_are_bounded(void **state)
{
	char text[VHCA_HOOK_REASON_MAX * 2] = "version 1\nop a\nname x\nfuture ";
	size_t len = strlen(text);
	struct vhca_hook_request req;

	(void)state;
	memset(text + len, 'x', sizeof(text) - len);
	text[sizeof(text) - 1] = '\n';
	assert_int_equal(vhca_hook_request_parse((uint8_t *)text, sizeof(text), &req), -EBADMSG);
	text[len + 900] = '\n';
	assert_int_equal(vhca_hook_request_parse((uint8_t *)text, len + 901, &req), 0);
}

static void length_is_bounded(void **state)
{
	static const struct {
		uint8_t head[VHCA_HOOK_HEAD_LEN];
		int r;
	} cases[] = {
		{{0, 0, 0, 0}, -EMSGSIZE},
		{{0, 0, 0, 1}, 0},
		{{0, 0, 0x40, 0}, 0},
		{{0, 0, 0x40, 1}, -EMSGSIZE},
		{{1, 0, 0, 0}, -EMSGSIZE},
		{{0xff, 0xff, 0xff, 0xff}, -EMSGSIZE},
		{{'H', 'T', 'T', 'P'}, -EMSGSIZE},
	};
	uint8_t big[VHCA_HOOK_PAYLOAD_MAX + 1] = "version 1\nop a\nname x\n";
	struct vhca_hook_request req;
	size_t len = 7;

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++)
		assert_int_equal(vhca_hook_payload_len(cases[i].head, &len), cases[i].r);
	assert_int_equal(len, VHCA_HOOK_PAYLOAD_MAX); /* of the last good one */
	for (size_t i = strlen((char *)big); i < sizeof(big); i++)
		big[i] = '\n'; /* lines with an empty key: unknown, but well-formed */
	assert_int_equal(vhca_hook_request_parse(big, sizeof(big) - 1, &req), 0);
	assert_int_equal(vhca_hook_request_parse(big, sizeof(big), &req), -EBADMSG);
}

static void replies_survive(void **state)
{
	struct vhca_hook_reply pass = {.pass = true}, refuse = {.reason = "not claimed\nfor it"},
			       back;
	uint8_t frame[VHCA_HOOK_FRAME_MAX];
	size_t len;

	(void)state;
	assert_int_equal(vhca_hook_reply_encode(&pass, frame, sizeof(frame), &len), 0);
	assert_int_equal(len, VHCA_HOOK_HEAD_LEN + 5);
	assert_memory_equal(frame, "\0\0\0\x05pass\n", 9);
	assert_int_equal(vhca_hook_reply_parse(frame + 4, len - 4, &back), 0);
	assert_true(back.pass);
	assert_string_equal(back.reason, "");

	assert_int_equal(vhca_hook_reply_encode(&refuse, frame, sizeof(frame), &len), 0);
	assert_int_equal(vhca_hook_reply_parse(frame + 4, len - 4, &back), 0);
	assert_false(back.pass);
	assert_string_equal(back.reason, "not claimed?for it");

	memset(refuse.reason, 'r', sizeof(refuse.reason) - 1);
	assert_int_equal(vhca_hook_reply_encode(&refuse, frame, sizeof(frame), &len), 0);
	assert_int_equal(vhca_hook_reply_parse(frame + 4, len - 4, &back), 0);
	assert_string_equal(back.reason, refuse.reason);
}

/* A refusal without a reason would print an empty line into somebody's error message. */
static void empty_reason_gets_words(void **state)
{
	struct vhca_hook_reply refuse = {.pass = false}, back;
	uint8_t frame[VHCA_HOOK_FRAME_MAX];
	size_t len;

	(void)state;
	assert_int_equal(vhca_hook_reply_encode(&refuse, frame, sizeof(frame), &len), 0);
	assert_int_equal(vhca_hook_reply_parse(frame + 4, len - 4, &back), 0);
	assert_false(back.pass);
	assert_string_equal(back.reason, "no reason given");
}

static void malformed_replies_are_refused(void **state)
{
	static const char *const bad[] = {
		"",	    "pass", "pass now\n",   "refuse\n",	     "refuse \n", "Pass\n",
		"passed\n", "\n",   "pass\npass\n", "refuse a\nb\n", "ok\n",	  "ok because\n",
	};
	struct vhca_hook_reply reply;

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(bad); i++)
		assert_int_equal(parse_reply(bad[i], &reply), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_is_written_as_documented),
		cmocka_unit_test(request_is_read_as_written),
		cmocka_unit_test(smallest_request_survives),
		cmocka_unit_test(largest_request_fits),
		cmocka_unit_test(control_characters_cannot_forge_lines),
		cmocka_unit_test(encoding_needs_room),
		cmocka_unit_test(malformed_requests_are_refused),
		cmocka_unit_test(too_many_hostdevs_are_refused),
		cmocka_unit_test(unknown_keys_are_skipped),
		cmocka_unit_test(lines_are_bounded),
		cmocka_unit_test(length_is_bounded),
		cmocka_unit_test(replies_survive),
		cmocka_unit_test(empty_reason_gets_words),
		cmocka_unit_test(malformed_replies_are_refused),
	};

	return cmocka_run_group_tests_name("hook_message", tests, NULL, NULL);
}
