/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/base/cleanup.h"

/* Value of one digit, or 255. No isxdigit(): the result must not depend on the locale. */
static unsigned int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned int)(c - 'a') + 10;
	if (c >= 'A' && c <= 'F')
		return (unsigned int)(c - 'A') + 10;
	return 255;
}

int vhca_parse_u64(const char *s, unsigned int base, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (base != 10 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
		base = 16;
		s += 2;
	} else if (base == 0) {
		base = 10;
	}
	if (!*s)
		return -EINVAL;
	for (; *s; s++) {
		unsigned int d = digit_value(*s);

		if (d >= base)
			return -EINVAL;
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)d, &value))
			return -ERANGE;
	}
	if (value > max)
		return -ERANGE;
	*ret = value;
	return 0;
}

int vhca_parse_u32(const char *s, unsigned int base, uint32_t max, uint32_t *ret)
{
	uint64_t value;
	int r = vhca_parse_u64(s, base, max, &value);

	if (r < 0)
		return r;
	*ret = (uint32_t)value;
	return 0;
}

int vhca_parse_bool(const char *s, bool *ret)
{
	static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
	int i = vhca_word_find(words, VHCA_ARRAY_SIZE(words), s);

	if (i < 0)
		return i;
	*ret = i % 2;
	return 0;
}

bool vhca_name_is_valid(const char *s)
{
	size_t len = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");

	return len > 0 && len < VHCA_NAME_MAX && s[len] == '\0';
}

bool vhca_words_have(const char *words, char sep, const char *word, size_t len)
{
	const char by[] = {sep, 0};

	while (*words) {
		size_t n = strcspn(words, by);

		if (n == len && memcmp(words, word, n) == 0)
			return true;
		words += n;
		words += strspn(words, by);
	}
	return false;
}

int vhca_word_find(const char *const *words, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(words[i], word) == 0)
			return (int)i;
	return -EINVAL;
}

int vhca_strcpy(char *dst, size_t size, const char *src)
{
	size_t len = strlen(src);

	if (size == 0)
		return -ENAMETOOLONG;
	if (len >= size) {
		dst[0] = '\0';
		return -ENAMETOOLONG;
	}
	memcpy(dst, src, len + 1);
	return 0;
}

size_t vhca_control_len(const char *s)
{
	const unsigned char *c = (const unsigned char *)s;

	if ((c[0] && c[0] < 0x20) || c[0] == 0x7f)
		return 1;
	return c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f ? 2 : 0;
}

void vhca_blot_controls(char *s)
{
	while (*s) {
		size_t n = vhca_control_len(s);

		memset(s, '?', n);
		s += n ? n : 1;
	}
}

void vhca_strbuf_init(struct vhca_strbuf *sb, char *buf, size_t size)
{
	*sb = (struct vhca_strbuf){.buf = buf, .size = size, .truncated = size == 0};
	if (size)
		buf[0] = '\0';
}

void vhca_strbuf_add(struct vhca_strbuf *sb, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (sb->truncated)
		return;
	va_start(ap, fmt);
	n = vsnprintf(sb->buf + sb->len, sb->size - sb->len, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sb->size - sb->len) {
		sb->buf[sb->len] = '\0'; /* a piece is added whole or not at all */
		sb->truncated = true;
		return;
	}
	sb->len += (size_t)n;
}
