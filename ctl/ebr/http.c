/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/ebr/http.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/text.h"

#define REQUEST_MAX 1024

/* To its end, which is the connection's. */
static int read_all(int fd, char *text, size_t size, uint64_t deadline)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t len = 0;

	while (len + 1 < size) {
		int ready = poll(&p, 1, (int)vhca_left_ms(deadline));
		ssize_t n = ready > 0 ? recv(fd, text + len, size - 1 - len, MSG_DONTWAIT) : -1;

		if (ready == 0)
			return -ETIMEDOUT;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n == 0)
			break;
		len += n > 0 ? (size_t)n : 0;
	}
	text[len] = '\0';
	return len > 0 ? 0 : -ECONNRESET;
}

int ebr_parse_answer(struct ebr_answer *answer)
{
	static const char version[] = "HTTP/1.1 ", behind[] = "\r\n\r\n";
	char *end = strstr(answer->text, behind);
	char status[4] = "";

	if (!end || strncmp(answer->text, version, strlen(version)) != 0)
		return -EBADMSG;
	memcpy(status, answer->text + strlen(version), sizeof(status) - 1);
	if (vhca_parse_u32(status, 10, 999, &answer->status) < 0)
		return -EBADMSG;
	answer->body = end + strlen(behind);
	return 0;
}

int ebr_ask(const char *socket_path, const struct ebr_request *req, uint64_t deadline,
	    struct ebr_answer *ret)
{
	VHCA_AUTO_CLOSE int fd = vhca_connect_unix(socket_path, deadline);
	char text[REQUEST_MAX];
	int n = snprintf(text, sizeof(text),
			 "%s %s HTTP/1.1\r\nHost: vhcad\r\nConnection: close\r\n"
			 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
			 req->method, req->path, strlen(req->body), req->body);
	int r = n < 0 || (size_t)n >= sizeof(text) ? -E2BIG : 0;

	if (r == 0 && fd < 0)
		r = fd;
	if (r == 0)
		r = vhca_write_deadline(fd, text, (size_t)n, deadline);
	if (r == 0)
		r = read_all(fd, ret->text, sizeof(ret->text), deadline);
	return r < 0 ? r : ebr_parse_answer(ret);
}

static const char *skip_space(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

/*
 * Within a string a quotation mark has a backslash before it, and a colon follows names alone: so
 * this is where a member begins.
 */
static const char *find_value(const char *body, const char *key)
{
	char name[64];
	const char *p = body;

	(void)snprintf(name, sizeof(name), "\"%s\"", key);
	while ((p = strstr(p, name)) != NULL) {
		p = skip_space(p + strlen(name));
		if (*p != ':')
			continue;
		p = skip_space(p + 1);
		return *p == '"' ? p + 1 : NULL;
	}
	return NULL;
}

bool ebr_read_member(const struct ebr_answer *answer, const char *key, char *ret, size_t size)
{
	const char *p = find_value(answer->body, key);
	size_t len = 0;

	for (; p && *p && *p != '"' && len + 1 < size; p++) {
		if (*p == '\\' && *++p == '\0')
			break;
		ret[len++] = *p;
	}
	ret[len] = '\0';
	vhca_blot_controls(ret);
	return p != NULL;
}
