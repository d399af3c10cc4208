/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_HOOKS_VFS_H
#define VHCA_HOOKS_VFS_H
/* The list of VFs that belong to vhcad: one PCI address per line, replaced atomically by the agent,
 * outlives it. */

#include "common/base/text.h"

#define VHCA_HOOK_VFS_MAX (256u * 1024) /* bytes; about 19000 VFs */

/*
 * Looks for the first of n devices that is in the list at path. Returns 1 and fills *ret, 0 if
 * there is none or no such file, or a negative errno when the list cannot be used (-EFBIG: too
 * long, -EBADMSG: a line that is no address).
 */
int vhca_hook_vfs_find(const char *path, const struct vhca_bdf *devs, unsigned int n,
		       struct vhca_bdf *ret);

/* 1 if the list names any VF at all, 0 if none or no such file, or a negative errno as above. */
int vhca_hook_vfs_any(const char *path);

#endif
