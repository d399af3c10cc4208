/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hooks/ask.h"

#include "common/base/cleanup.h"
#include "common/base/file.h"

static int read_reply(int fd, uint64_t deadline, struct vhca_hook_reply *ret)
{
	uint8_t head[VHCA_HOOK_HEAD_LEN], payload[VHCA_HOOK_PAYLOAD_MAX];
	size_t len;
	int r = vhca_read_deadline(fd, head, sizeof(head), deadline);

	if (r < 0)
		return r;
	r = vhca_hook_payload_len(head, &len);
	if (r < 0)
		return r;
	r = vhca_read_deadline(fd, payload, len, deadline);
	if (r < 0)
		return r;
	return vhca_hook_reply_parse(payload, len, ret);
}

int vhca_hook_ask(const char *socket_path, const struct vhca_hook_request *req, uint64_t deadline,
		  struct vhca_hook_reply *ret_reply)
{
	VHCA_AUTO_CLOSE int fd = -1;
	uint8_t frame[VHCA_HOOK_FRAME_MAX];
	size_t len;
	int r = vhca_hook_request_encode(req, frame, sizeof(frame), &len);

	if (r < 0)
		return r;
	fd = vhca_connect_unix(socket_path, deadline);
	if (fd < 0)
		return fd;
	r = vhca_write_deadline(fd, frame, len, deadline);
	if (r < 0)
		return r;
	return ret_reply ? read_reply(fd, deadline, ret_reply) : 0;
}
