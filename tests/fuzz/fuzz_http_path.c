/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A request path of any content splits into at most so many segments that lie inside of it, or is
 * refused. */
#include <errno.h>
#include <string.h>

#include "common/http/route.h"
#include "common/http/server.h"
#include "tests/fuzz/fuzz.h"

static void check_match(const char *const *segments, size_t n)
{
	const char *params[VHCA_HTTP_PARAMS_MAX] = {NULL};

	if (!vhca_http_match("/v1/domains/{}/vfs/{}", segments, n, params))
		return;
	FUZZ_ASSERT(n == 5 && params[0] == segments[2] && params[1] == segments[4]);
	FUZZ_ASSERT(*params[0] && *params[1] && !params[2]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *segments[VHCA_HTTP_SEGMENTS_MAX];
	char *path = malloc(size + 1);
	int n;

	FUZZ_ASSERT(path);
	memcpy(path, data, size);
	path[size] = '\0';
	n = vhca_http_split_path(path, segments);
	FUZZ_ASSERT(n == -EINVAL || n == -E2BIG || (n > 0 && n <= VHCA_HTTP_SEGMENTS_MAX));
	for (int i = 0; i < n; i++)
		FUZZ_ASSERT(segments[i] > path && segments[i] + strlen(segments[i]) <= path + size);
	fuzz_verdict(n > 0);
	if (n > 0)
		check_match(segments, (size_t)n);
	free(path);
	return 0;
}
