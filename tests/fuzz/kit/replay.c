/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz_NAME DIRECTORY: runs the target over each file, then over mutations of it that are the same
 * in every run.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "tests/fuzz/fuzz.h"

#define FILE_MAX (1u << 20)
#ifndef MUTATIONS
#define MUTATIONS 300
#endif

/* xorshift64: good enough to hit every byte, and repeatable. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void run_copy(const char *data, size_t len)
{
	/* An exact copy on the heap: reading one byte too far is seen by the sanitizer. */
	VHCA_AUTO_FREE uint8_t *copy = malloc(len ? len : 1);

	FUZZ_ASSERT(copy);
	memcpy(copy, data, len);
	FUZZ_ASSERT(LLVMFuzzerTestOneInput(copy, len) == 0);
}

/* One of: cut the end, flip a bit, replace a byte by a significant one, double a piece. */
static void mutate(char *data, size_t *len, uint64_t *seed)
{
	static const char significant[] = "\0\n\r\t \"<>[]{}=:;,#&/\\-0\x7f\xff";
	size_t at;

	if (*len == 0)
		return;
	at = next_random(seed) % *len;
	switch (next_random(seed) % 4) {
	case 0:
		*len = at;
		break;
	case 1:
		data[at] ^= (char)(1u << next_random(seed) % 8);
		break;
	case 2:
		data[at] = significant[next_random(seed) % (sizeof(significant) - 1)];
		break;
	default:
		memmove(data + *len, data + at, *len - at); /* room for twice the file */
		*len += *len - at;
		break;
	}
}

static bool begins(const char *name, const char *word)
{
	return strncmp(name, word, strlen(word)) == 0;
}

/* 0 if the target thinks of the file what its name says. */
static int check_verdict(const char *name)
{
	struct fuzz_verdicts v = fuzz_verdicts;
	bool good = begins(name, "accepted") || begins(name, "shipped");

	if (good ? v.accepted && !v.refused : !begins(name, "bad") || (v.refused && !v.accepted))
		return 0;
	(void)fprintf(stderr, "%s: %u accepted, %u refused\n", name, v.accepted, v.refused);
	return -EINVAL;
}

static void run_mutations(const char *data, size_t len)
{
	VHCA_AUTO_FREE char *copy = malloc(len * 8 + 1);
	uint64_t seed = UINT64_C(0x9e3779b97f4a7c15) ^ len;

	FUZZ_ASSERT(copy);
	for (int i = 0; i < MUTATIONS; i++) {
		size_t n = len;

		memcpy(copy, data, len);
		for (uint64_t steps = 1 + next_random(&seed) % 3; steps; steps--)
			mutate(copy, &n, &seed);
		run_copy(copy, n);
	}
}

/* 0 if the file could be read; the target itself aborts. */
static int run_file(const char *dir, const char *name)
{
	VHCA_AUTO_FREE char *data = NULL;
	char path[PATH_MAX];
	size_t len;
	int r;

	FUZZ_ASSERT(snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path));
	r = vhca_read_file(path, FILE_MAX, &data, &len);
	if (r < 0) {
		(void)fprintf(stderr, "%s: %s\n", path, strerrordesc_np(-r));
		return r;
	}
	fuzz_verdicts = (struct fuzz_verdicts){0};
	run_copy(data, len);
	r = check_verdict(name);
	run_mutations(data, len);
	return r;
}

static int is_seed(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	struct dirent **names = NULL;
	int n = argc == 2 ? scandir(argv[1], &names, is_seed, alphasort) : 0;
	int failed = n <= 0; /* a corpus that is not found must not count as a passed test */

	for (int i = 0; i < n; i++) {
		failed |= run_file(argv[1], names[i]->d_name) < 0;
		free(names[i]);
	}
	free(names);
	(void)printf("%d file(s), %d mutations each\n", n, MUTATIONS);
	return failed;
}
