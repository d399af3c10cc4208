/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a hook or an agent may send: whatever is accepted can be written again, and then stays the
 * same.
 */
#include <string.h>

#include "common/base/hook_message.h"
#include "tests/fuzz/fuzz.h"

static void check_request(const uint8_t *data, size_t size)
{
	uint8_t first[VHCA_HOOK_FRAME_MAX], second[VHCA_HOOK_FRAME_MAX];
	struct vhca_hook_request req, again;
	size_t n_first, n_second, payload;

	if (vhca_hook_request_parse(data, size, &req) < 0)
		return;
	FUZZ_ASSERT(req.n_hostdevs <= VHCA_HOOK_HOSTDEVS_MAX);
	FUZZ_ASSERT(vhca_hook_request_encode(&req, first, sizeof(first), &n_first) == 0);
	FUZZ_ASSERT(vhca_hook_payload_len(first, &payload) == 0);
	FUZZ_ASSERT(payload + VHCA_HOOK_HEAD_LEN == n_first);
	FUZZ_ASSERT(vhca_hook_request_parse(first + VHCA_HOOK_HEAD_LEN, payload, &again) == 0);
	FUZZ_ASSERT(again.has_away == req.has_away && vhca_uuid_equal(&again.away, &req.away));
	FUZZ_ASSERT(vhca_hook_request_encode(&again, second, sizeof(second), &n_second) == 0);
	FUZZ_ASSERT(n_first == n_second && memcmp(first, second, n_first) == 0);
}

static void check_reply(const uint8_t *data, size_t size)
{
	uint8_t frame[VHCA_HOOK_FRAME_MAX];
	struct vhca_hook_reply reply, again;
	size_t n;

	if (vhca_hook_reply_parse(data, size, &reply) < 0)
		return;
	FUZZ_ASSERT(memchr(reply.reason, '\0', sizeof(reply.reason)));
	FUZZ_ASSERT(vhca_hook_reply_encode(&reply, frame, sizeof(frame), &n) == 0);
	FUZZ_ASSERT(vhca_hook_reply_parse(frame + VHCA_HOOK_HEAD_LEN, n - VHCA_HOOK_HEAD_LEN,
					  &again) == 0);
	FUZZ_ASSERT(again.pass == reply.pass);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t payload;

	if (size >= VHCA_HOOK_HEAD_LEN && vhca_hook_payload_len(data, &payload) == 0)
		FUZZ_ASSERT(payload > 0 && payload <= VHCA_HOOK_PAYLOAD_MAX);
	check_request(data, size);
	check_reply(data, size);
	return 0;
}
