/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_FUZZ_H
#define VHCA_TESTS_FUZZ_H
/*
 * A fuzz target is one file fuzz_NAME.c with this function, and a seed corpus in corpus/NAME/. It
 * must return for every input; whatever must hold is said with FUZZ_ASSERT. With -Dfuzzing=true
 * (clang) it is a libFuzzer program; otherwise it is linked with replay.c and runs over the corpus,
 * and over simple mutations of it, as a test of suite "fuzz".
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Takes one input; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Counts what a target thinks of its input: a file "accepted..." or "shipped..." of the corpus must
 * have been accepted, in all of its parts, and one "bad..." refused; replay.c looks.
 */
struct fuzz_verdicts {
	unsigned int accepted, refused;
};
extern struct fuzz_verdicts fuzz_verdicts;

static inline void fuzz_verdict(bool accepted)
{
	if (accepted)
		fuzz_verdicts.accepted++;
	else
		fuzz_verdicts.refused++;
}

#define FUZZ_ASSERT(condition)    \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

#endif
