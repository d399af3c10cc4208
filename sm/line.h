/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SM_LINE_H
#define VHCA_SM_LINE_H
/*
 * The line to the SM: its URLs, which one is in use, and, while none works, when to try the next
 * one. A URL that did not work is left at once for the next; only when all have failed one after
 * the other there is a pause.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/http/client.h"
#include "common/loop/loop.h"
#include "sm/sm.h"

struct vhca_sm_line {
	struct vhca_http_multi *http;	   /* borrowed */
	const struct vhca_http_auth *auth; /* borrowed; NULL = none */
	uint32_t timeout_ms;		   /* per request */
	char *urls[VHCA_SM_URLS_MAX];
	unsigned int n_urls;
	unsigned int
		round; /* counts the changes of URL; a request remembers the one it was sent in */
	bool down;     /* the last exchange failed */
	unsigned int losses; /* URLs that failed one after the other */
	uint64_t probe_at;   /* vhca_now_ms() scale, while down */
	struct vhca_backoff backoff;
};

/*
 * Copies the URLs; http, timeout_ms and backoff are set by the caller before. -EINVAL: too many;
 * vhca_sm_line_done() is due in any case.
 */
int vhca_sm_line_set(struct vhca_sm_line *line, const char *const *urls, unsigned int n);
void vhca_sm_line_done(struct vhca_sm_line *line);

/*
 * Starts a request to the SM in use, as vhca_http_multi_start(); req stays the caller's.
 * -ENAMETOOLONG: its URL.
 */
int vhca_sm_line_start(const struct vhca_sm_line *line, const struct vhca_sm_request *req,
		       vhca_http_done_fn done, void *arg);

/*
 * An exchange worked, or did not (reason is for the log). Several requests of one round may fail
 * for the same reason: only the first one counts.
 */
void vhca_sm_line_works(struct vhca_sm_line *line);
void vhca_sm_line_lost(struct vhca_sm_line *line, unsigned int round, const char *reason);
/* The next try is due now, and the pauses begin anew. */
void vhca_sm_line_kick(struct vhca_sm_line *line);

#endif
