/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A fuzz target with a bug behind the byte '!', one for each way to fail; tests/selftest/run.py
 * compiles it with -DBUG_.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef BUG_NO_TARGET
int main(void)
{
	return 0;
}
#else
static void fail(const uint8_t *data, size_t size)
{
	(void)data, (void)size;
#if defined(BUG_CRASH)
	abort();
#elif defined(BUG_OVERFLOW)
	volatile uint8_t *copy = malloc(size);

	copy[size] = data[0];
#elif defined(BUG_LEAK)
	static void *volatile lost;

	lost = malloc(size + 1);
	lost = NULL;
#elif defined(BUG_HANG)
	for (volatile int i = 1; i;)
		;
#elif defined(BUG_MEMORY)
	for (;;)
		memset(malloc(1u << 20), 1, 1u << 20);
#elif defined(BUG_EXIT)
	exit(0);
#endif
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size && data[0] == '!')
		fail(data, size);
	return 0;
}
#endif
