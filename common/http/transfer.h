/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_HTTP_TRANSFER_H
#define VHCA_HTTP_TRANSFER_H
/* One request and its answer on a curl handle, however that is driven; internal to the client. */
#include <stdbool.h>

#include <curl/curl.h>

#include "common/http/client.h"

struct vhca_http_transfer {
	CURL *easy;
	struct curl_slist *headers;
	char label[112]; /* "PUT http://..." for messages */
	size_t reply_max;
	char *text; /* the answer's body so far */
	size_t text_len, text_size;
	bool too_large;
	bool head_complete; /* the blank line after the headers has come */
	char etag[80];
	char error[CURL_ERROR_SIZE];
};

/* Readies t, which must not move from here on. Everything in args is copied. On failure there is
 * nothing to undo. */
int vhca_http_transfer_init(struct vhca_http_transfer *t, const struct vhca_http_call_args *args);
void vhca_http_transfer_done(struct vhca_http_transfer *t);
/* What came out of it: fills res in any case, and err unless it returns 0. */
int vhca_http_transfer_result(struct vhca_http_transfer *t, CURLcode code,
			      struct vhca_http_result *res, struct vhca_error *err);

#endif
