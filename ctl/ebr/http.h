/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CTL_EBR_HTTP_H
#define VHCA_CTL_EBR_HTTP_H
/*
 * One HTTP request over a unix socket, by libc alone: as much of HTTP and JSON as vhcad's own
 * answers need.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EBR_ANSWER_MAX (64u * 1024)

struct ebr_request {
	const char *method, *path;
	const char *body; /* JSON, or "" */
};

struct ebr_answer {
	uint32_t status;
	char *body; /* in text */
	char text[EBR_ANSWER_MAX];
};

/* Until the deadline (vhca_now_ms() scale). 0, or a negative errno: nobody has answered. */
int ebr_ask(const char *socket_path, const struct ebr_request *req, uint64_t deadline,
	    struct ebr_answer *ret);
/* Finds status and body in the text, which ends with a NUL; -EBADMSG: it is no answer. */
int ebr_parse_answer(struct ebr_answer *answer);
/* A member of the answer's object that is a string, cut where it does not fit; false, and "", if
 * there is none. */
bool ebr_read_member(const struct ebr_answer *answer, const char *key, char *ret, size_t size);

#endif
