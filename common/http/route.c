// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/http/route.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *p = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

	return p ? (int)(p - digits) : -EINVAL;
}

int vhca_http_decode(char *s)
{
	char *out = s;

	for (; *s; s++, out++) {
		int high, low;

		*out = *s;
		if (*s != '%')
			continue;
		high = hex_digit(s[1]);
		low = high < 0 ? -EINVAL : hex_digit(s[2]);
		if (low < 0 || high + low == 0)
			return -EINVAL;
		*out = (char)(high * 16 + low);
		s += 2;
	}
	*out = '\0';
	return 0;
}

int vhca_http_split_path(char *path, const char *segments[static VHCA_HTTP_SEGMENTS_MAX])
{
	int n = 0;

	if (*path != '/')
		return -EINVAL;
	while (path) {
		char *segment = path + 1;

		if (n == VHCA_HTTP_SEGMENTS_MAX)
			return -E2BIG;
		path = strchr(segment, '/');
		if (path)
			*path = '\0';
		if (vhca_http_decode(segment) < 0)
			return -EINVAL;
		segments[n++] = segment;
	}
	return n;
}

bool vhca_http_match(const char *pattern, const char *const *segments, size_t n,
		     const char **params)
{
	size_t i;

	for (i = 0; *pattern == '/' && i < n; i++) {
		size_t len = strcspn(++pattern, "/");

		if (len == 2 && strncmp(pattern, "{}", 2) == 0 && *segments[i])
			*params++ = segments[i];
		else if (strlen(segments[i]) != len || memcmp(pattern, segments[i], len) != 0)
			return false;
		pattern += len;
	}
	return i == n && !*pattern;
}
