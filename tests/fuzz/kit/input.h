/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_FUZZ_INPUT_H
#define VHCA_TESTS_FUZZ_INPUT_H
/*
 * What targets make of their input: a file for a parser that opens one, and the parts of a text
 * that is several things at once.
 */
#include "tests/fuzz/fuzz.h"

/*
 * The path of a file with this content, mode 0600, in memory. One per process: the next call
 * replaces what it holds.
 */
const char *input_file(const uint8_t *data, size_t size);

/*
 * The next part of the input, up to a line "%%" or the end; NULL when there is none left. A copy
 * with a NUL behind it, for the caller to free.
 */
char *input_part(const uint8_t **data, size_t *size, size_t *ret_len);
/* The same for a line, of such a copy: cut in place. NULL at the end. */
char *input_line(char **text);

#endif
