/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The list of VFs that the hook reads without an agent: a device is found if, and only if, a line
 * names it and no line before that is damaged.
 */
#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "hooks/vfs.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/kit/input.h"

#define DEVS 2

static const struct vhca_bdf devs[DEVS] = {{.bus = 1, .fn = 1},
					   {.domain = 1, .bus = 0xff, .dev = 31, .fn = 7}};

/* What vhca_hook_vfs_find() has to say of this text. */
static int expected(char *text)
{
	char *line;

	while ((line = input_line(&text))) {
		struct vhca_bdf bdf;

		if (!*line)
			continue;
		if (vhca_bdf_parse(line, &bdf) < 0)
			return -EBADMSG;
		for (unsigned int i = 0; i < DEVS; i++)
			if (vhca_bdf_cmp(bdf, devs[i]) == 0)
				return 1;
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	VHCA_AUTO_FREE char *text = strndup(size ? (const char *)data : "", size);
	const char *path = input_file(data, size);
	struct vhca_bdf found = {.bus = 0xaa};
	int r = vhca_hook_vfs_find(path, devs, DEVS, &found), any = vhca_hook_vfs_any(path);

	if (size > VHCA_HOOK_VFS_MAX) {
		FUZZ_ASSERT(r == -EFBIG && any == -EFBIG);
		return 0;
	}
	FUZZ_ASSERT(any == (text[strspn(text, "\n")] != '\0'));
	FUZZ_ASSERT(r == expected(text));
	fuzz_verdict(r >= 0);
	FUZZ_ASSERT(r == 0 || any == 1);
	FUZZ_ASSERT((r == 1) == (found.bus != 0xaa));
	return 0;
}
