/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/fuzz/kit/input.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEPARATOR     "\n%%\n"
#define SEPARATOR_LEN (sizeof(SEPARATOR) - 1)

struct fuzz_verdicts fuzz_verdicts;

const char *input_file(const uint8_t *data, size_t size)
{
	static int fd = -1;
	static char path[32];

	if (fd < 0) {
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		FUZZ_ASSERT(fd >= 0 && fchmod(fd, 0600) == 0);
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	FUZZ_ASSERT(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
	return path;
}

char *input_part(const uint8_t **data, size_t *size, size_t *ret_len)
{
	const uint8_t *end = *data ? memmem(*data, *size, SEPARATOR, SEPARATOR_LEN) : NULL;
	size_t len = end ? (size_t)(end - *data) : *size;
	char *copy;

	if (!*data)
		return NULL;
	copy = malloc(len + 1);
	FUZZ_ASSERT(copy);
	memcpy(copy, *data, len);
	copy[len] = '\0';
	*ret_len = len;
	*size -= end ? len + SEPARATOR_LEN : len;
	*data = end ? end + SEPARATOR_LEN : NULL;
	return copy;
}

char *input_line(char **text)
{
	return *text ? strsep(text, "\n") : NULL;
}
