/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/cpus.h"

#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

#define PART_MAX 16 /* "^8191-8191" */

/* "7", "0-3", "^2" */
static int apply(char *part, struct vhca_cpus *set)
{
	bool without = *part == '^';
	char *first = part + without, *dash = strchr(first, '-');
	uint32_t from, to;
	int r;

	if (dash)
		*dash = '\0';
	r = vhca_parse_u32(first, 10, VHCA_CPUS_MAX - 1, &from);
	to = from;
	if (r == 0 && dash)
		r = vhca_parse_u32(dash + 1, 10, VHCA_CPUS_MAX - 1, &to);
	if (r < 0)
		return r;
	if (to < from)
		return -EINVAL;
	for (uint32_t cpu = from; cpu <= to; cpu++) {
		uint64_t bit = UINT64_C(1) << (cpu % 64);

		if (without)
			set->bits[cpu / 64] &= ~bit;
		else
			set->bits[cpu / 64] |= bit;
	}
	return 0;
}

int vhca_cpus_parse(const char *text, struct vhca_cpus *ret)
{
	struct vhca_cpus set = {{0}};
	int r = 0;

	while (*text && r == 0) {
		size_t len = strcspn(text, ",");
		char part[PART_MAX];

		if (len >= sizeof(part))
			return -EINVAL;
		memcpy(part, text, len);
		part[len] = '\0';
		r = apply(part, &set);
		text += len;
		if (*text && !*++text)
			return -EINVAL; /* ends with a comma */
	}
	if (r == 0)
		*ret = set;
	return r;
}

void vhca_cpus_join(struct vhca_cpus *set, const struct vhca_cpus *more)
{
	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(set->bits); i++)
		set->bits[i] |= more->bits[i];
}

bool vhca_cpus_is_empty(const struct vhca_cpus *set)
{
	static const struct vhca_cpus none;

	return memcmp(set, &none, sizeof(none)) == 0;
}

bool vhca_cpus_are_within(const struct vhca_cpus *set, const struct vhca_cpus *whole)
{
	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(set->bits); i++)
		if (set->bits[i] & ~whole->bits[i])
			return false;
	return true;
}
