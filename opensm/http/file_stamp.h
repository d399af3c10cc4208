/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_FILE_STAMP_H
#define VHCA_OPENSM_HTTP_FILE_STAMP_H
/*
 * What tells a file from another one, and from itself before it was written: compared by memcmp().
 */
#include <sys/types.h>
#include <time.h>

struct vhca_osm_file_stamp {
	ino_t ino;
	off_t size;
	struct timespec changed;
};

/* All zero of a file that is not there, and of "". */
void vhca_osm_file_stamp_take(const char *path, struct vhca_osm_file_stamp *ret);

#endif
