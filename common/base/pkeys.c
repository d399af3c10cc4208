// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <string.h>

#include "common/base/text.h"

int vhca_pkey_find(const uint16_t *table, size_t n, uint16_t pkey)
{
	/*
	 * An empty slot is 0: it must never be found, or a VF would be mapped to whatever comes
	 * there next.
	 */
	if (vhca_pkey_base(pkey) == 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (table[i] == pkey)
			return (int)i;
	return -1;
}

int vhca_pkeys_parse(const char *text, uint16_t *ret, size_t max, uint8_t *ret_n)
{
	uint8_t n = 0;

	while (*text) {
		char one[VHCA_PKEY_STRLEN] = "";
		size_t len = strcspn(text, " ");

		if (len >= sizeof(one) || n == max)
			return -EINVAL;
		memcpy(one, text, len);
		if (vhca_pkey_parse(one, &ret[n++]) < 0)
			return -EINVAL;
		text += len;
		text += strspn(text, " ");
	}
	*ret_n = n;
	return 0;
}

char *vhca_pkeys_format(char *buf, size_t size, const uint16_t *pkeys, size_t n)
{
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, buf, size);
	for (size_t i = 0; i < n; i++)
		vhca_strbuf_add(&sb, "%s%s", i ? " " : "", VHCA_PKEY_STR(pkeys[i]));
	return buf;
}
