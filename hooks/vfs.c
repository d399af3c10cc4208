/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hooks/vfs.h"

#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"

/* The list's text; empty if there is no list. */
static int read_list(const char *path, char **ret)
{
	size_t len;
	int r = vhca_read_file(path, VHCA_HOOK_VFS_MAX, ret, &len);

	return r == -ENOENT ? 0 : r;
}

int vhca_hook_vfs_find(const char *path, const struct vhca_bdf *devs, unsigned int n,
		       struct vhca_bdf *ret)
{
	VHCA_AUTO_FREE char *data = NULL;
	char *pos, *line;
	int r = read_list(path, &data);

	if (r < 0)
		return r;
	pos = data;
	while ((line = strsep(&pos, "\n"))) {
		const struct vhca_bdf *dev;
		struct vhca_bdf bdf;

		if (!*line)
			continue;
		if (vhca_bdf_parse(line, &bdf) < 0)
			return -EBADMSG;
		dev = vhca_bdf_find(devs, n, bdf);
		if (dev) {
			*ret = *dev;
			return 1;
		}
	}
	return 0;
}

int vhca_hook_vfs_any(const char *path)
{
	VHCA_AUTO_FREE char *data = NULL;
	int r = read_list(path, &data);

	if (r < 0)
		return r;
	return data && data[strspn(data, "\n")] != '\0';
}
