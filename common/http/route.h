/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_HTTP_ROUTE_H
#define VHCA_HTTP_ROUTE_H
/* Paths and patterns; internal to the server. */
#include <stdbool.h>
#include <stddef.h>

#define VHCA_HTTP_SEGMENTS_MAX 16

/* Decodes %XX in place; -EINVAL for a broken escape or %00. */
int vhca_http_decode(char *s);
/* Cuts "/a/b%2fc" into the decoded segments "a", "b/c", in place: a slash inside a segment does not
 * split it. Returns their number, -EINVAL as above or without a leading slash, -E2BIG for too many.
 */
int vhca_http_split_path(char *path, const char *segments[static VHCA_HTTP_SEGMENTS_MAX]);
/* Do the segments match the pattern? If so, params gets those that stand for {}; the pattern has at
 * most VHCA_HTTP_PARAMS_MAX. */
bool vhca_http_match(const char *pattern, const char *const *segments, size_t n,
		     const char **params);

#endif
