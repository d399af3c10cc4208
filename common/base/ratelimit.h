/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_BASE_RATELIMIT_H
#define VHCA_BASE_RATELIMIT_H
/*
 * Log lines that somebody else can cause: so many of each name a minute, the others are counted.
 * Zeroed memory is one that nobody has caused anything at. now_ms: vhca_now_ms().
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/base/caller.h"

#define VHCA_RATELIMIT_LINES  30
#define VHCA_RATELIMIT_MS     60000
#define VHCA_RATELIMIT_NAMES  32 /* at a time; those beyond are "others" together */
#define VHCA_RATELIMIT_OTHERS "others"

struct vhca_ratelimit {
	struct vhca_ratelimit_row {
		char name[VHCA_CALLER_NAME_MAX]; /* "" = free */
		uint64_t until_ms;
		unsigned int told;
		uint64_t suppressed;
	} rows[VHCA_RATELIMIT_NAMES + 1]; /* the last is the others' */
};

/* Whether one more line about this name is told. */
bool vhca_ratelimit_allows(struct vhca_ratelimit *rl, const char *name, uint64_t now_ms);
/*
 * A name whose minute is over, and how many of its lines were suppressed; NULL = there is none
 * (more). To be asked before allows(), which begins another minute and forgets. The name is valid
 * until then.
 */
const char *vhca_ratelimit_next(struct vhca_ratelimit *rl, uint64_t now_ms,
				uint64_t *ret_suppressed);
/* Until next() has something to say; -1 = nothing was suppressed. */
int vhca_ratelimit_timeout_ms(const struct vhca_ratelimit *rl, uint64_t now_ms);

#endif
