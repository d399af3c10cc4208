/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/http/file_stamp.h"

#include <string.h>
#include <sys/stat.h>

void vhca_osm_file_stamp_take(const char *path, struct vhca_osm_file_stamp *ret)
{
	struct stat st;

	memset(ret, 0, sizeof(*ret));
	if (!path[0] || stat(path, &st) < 0)
		return;
	ret->ino = st.st_ino;
	ret->size = st.st_size;
	ret->changed = st.st_ctim;
}
