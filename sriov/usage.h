/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SRIOV_USAGE_H
#define VHCA_SRIOV_USAGE_H
/*
 * Does somebody have a VF? What cannot be told counts as yes: a VF that is left alone by mistake
 * can be freed by hand, one that is scrubbed by mistake has cut off whoever had it.
 */
#include "sriov/inventory.h"

/* 0 = nobody has it. -EBUSY = somebody has, or nothing says that nobody has: err says which, and
 * the way out. `known` is what the last scan saw of the VF, which counts once the kernel shows
 * it no more. is_ours: it was taken over before; what the host does on its own with a VF that
 * comes back to its driver (a network manager that takes the link up) gives it to nobody.
 * dev_root is "/dev" or a test directory. Blocking; on the PF's strand. */
int vhca_vf_check_unused(struct vhca_sysfs *sys, const char *dev_root,
			 const struct vhca_vf_facts *known, bool is_ours, struct vhca_error *err);

#endif
