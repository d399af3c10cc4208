/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sm/line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/log.h"

#define URL_MAX 512

static const char *url_of(const struct vhca_sm_line *line, unsigned int round)
{
	return line->urls[round % line->n_urls];
}

int vhca_sm_line_set(struct vhca_sm_line *line, const char *const *urls, unsigned int n)
{
	if (n > VHCA_SM_URLS_MAX)
		return -EINVAL;
	for (unsigned int i = 0; i < n; i++) {
		size_t len = strlen(urls[i]);

		while (len > 0 && urls[i][len - 1] == '/')
			len--; /* paths begin with one */
		line->urls[i] = strndup(urls[i], len);
		if (!line->urls[i])
			return -ENOMEM;
		line->n_urls++;
	}
	return 0;
}

void vhca_sm_line_done(struct vhca_sm_line *line)
{
	for (unsigned int i = 0; i < line->n_urls; i++)
		free(line->urls[i]);
	line->n_urls = 0;
}

int vhca_sm_line_start(const struct vhca_sm_line *line, const struct vhca_sm_request *req,
		       vhca_http_done_fn done, void *arg)
{
	char url[URL_MAX];
	const struct vhca_http_call_args args = {.method = req->method,
						 .url = url,
						 .body = req->body,
						 .auth = line->auth,
						 .total_ms = line->timeout_ms};
	int n = snprintf(url, sizeof(url), "%s%s", url_of(line, line->round), req->path);

	if (n < 0 || (size_t)n >= sizeof(url))
		return -ENAMETOOLONG;
	return vhca_http_multi_start(line->http, &args, done, arg);
}

void vhca_sm_line_works(struct vhca_sm_line *line)
{
	if (line->down)
		vhca_log_notice("SM: %s answers", url_of(line, line->round));
	line->down = false;
	line->losses = 0;
	vhca_backoff_reset(&line->backoff);
}

void vhca_sm_line_lost(struct vhca_sm_line *line, unsigned int round, const char *reason)
{
	if (round != line->round)
		return;
	if (!line->down)
		vhca_log_warning("SM: %s: %s", url_of(line, round), reason);
	line->down = true;
	line->round++;
	line->losses++;
	line->probe_at = vhca_now_ms();
	if (line->losses % line->n_urls == 0) /* all of them, once around */
		line->probe_at += vhca_backoff_next(&line->backoff);
}

void vhca_sm_line_kick(struct vhca_sm_line *line)
{
	vhca_backoff_reset(&line->backoff);
	line->probe_at = 0;
}
