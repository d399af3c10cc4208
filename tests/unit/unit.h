/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_H
#define VHCA_TESTS_UNIT_H
/* What cmocka.h needs before it, in the order it needs it; include this instead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/file.h"

#define UNIT_WAIT_MS 20000

/* Takes the step until the condition holds; a test that waits too long says for what. */
#define unit_until(condition, step)                                                         \
	do {                                                                                \
		uint64_t until_ = vhca_now_ms() + UNIT_WAIT_MS;                             \
		while (!(condition)) {                                                      \
			if (vhca_now_ms() > until_)                                         \
				fail_msg("not within %d ms: %s", UNIT_WAIT_MS, #condition); \
			step;                                                               \
		}                                                                           \
	} while (0)

#endif
