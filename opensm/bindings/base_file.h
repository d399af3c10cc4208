/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_BINDINGS_BASE_FILE_H
#define VHCA_OPENSM_BINDINGS_BASE_FILE_H
/*
 * The administrator's own part of partitions.conf, checked before it is handed to OpenSM: there,
 * one wrong line makes OpenSM fall back to its default rule and take every tenant's key from every
 * port. What OpenSM would only guess at is refused: partitions without a number (OpenSM would
 * number them 1, 2, ... among the tenants' keys), `indx0` (it moves keys, and VFs map physical
 * indexes), abbreviated words, statements that do not end.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/base/error.h"

#define VHCA_OSM_BASE_MAX	(1024 * 1024)
#define VHCA_OSM_BASE_LINE_MAX	4000 /* OpenSM's reader splits lines at 4094 bytes */
#define VHCA_OSM_BASE_PRTNS_MAX 4096

/* So the plugin's own file begins. It is refused: guests' keys are not the administrator's. */
#define VHCA_OSM_GENERATED "# Written by libvhcasm.so."

struct vhca_osm_base_prtn {
	uint16_t pkey_base;
	uint8_t sl; /* to be repeated: OpenSM takes the last definition's */
};

struct vhca_osm_base {
	char *text; /* ends with a newline */
	size_t n;
	struct vhca_osm_base_prtn *prtns;
};

/*
 * Checks text and takes over a copy. name stands for the file in messages ("name:line: reason",
 * code "bad_base_file").
 */
int vhca_osm_base_parse(const char *name, const char *text, struct vhca_osm_base *ret,
			struct vhca_error *err);
/* The same with a file; ret_stat: which file that was. Blocking. */
int vhca_osm_base_load(const char *path, struct vhca_osm_base *ret, struct stat *ret_stat,
		       struct vhca_error *err);
void vhca_osm_base_done(struct vhca_osm_base *base);
/* What the text says about a partition (borrowed), or NULL. */
const struct vhca_osm_base_prtn *vhca_osm_base_find(const struct vhca_osm_base *base,
						    uint16_t pkey_base);

#endif
