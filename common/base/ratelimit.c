/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/ratelimit.h"

#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

bool vhca_ratelimit_allows(struct vhca_ratelimit *rl, const char *name, uint64_t now_ms)
{
	struct vhca_ratelimit_row *others = &rl->rows[VHCA_RATELIMIT_NAMES], *row = others;

	for (struct vhca_ratelimit_row *r = rl->rows; r < others; r++) {
		if (strcmp(r->name, name) == 0) {
			row = r;
			break;
		}
		if (row == others && r->until_ms <= now_ms)
			row = r;
	}
	/* Whoever can have as many names as he likes has no more lines for that. */
	if (row == others)
		name = VHCA_RATELIMIT_OTHERS;
	if (row->until_ms <= now_ms) {
		*row = (struct vhca_ratelimit_row){.until_ms = now_ms + VHCA_RATELIMIT_MS};
		(void)vhca_strcpy(row->name, sizeof(row->name), name); /* same size */
	}
	if (row->told < VHCA_RATELIMIT_LINES) {
		row->told++;
		return true;
	}
	row->suppressed++;
	return false;
}

const char *vhca_ratelimit_next(struct vhca_ratelimit *rl, uint64_t now_ms,
				uint64_t *ret_suppressed)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(rl->rows); i++) {
		struct vhca_ratelimit_row *row = &rl->rows[i];

		if (row->suppressed == 0 || row->until_ms > now_ms)
			continue;
		*ret_suppressed = row->suppressed;
		row->suppressed = 0;
		return row->name;
	}
	return NULL;
}

int vhca_ratelimit_timeout_ms(const struct vhca_ratelimit *rl, uint64_t now_ms)
{
	uint64_t due = UINT64_MAX;

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(rl->rows); i++)
		if (rl->rows[i].suppressed > 0 && rl->rows[i].until_ms < due)
			due = rl->rows[i].until_ms;
	if (due == UINT64_MAX)
		return -1;
	return due > now_ms ? (int)(due - now_ms) : 0;
}
