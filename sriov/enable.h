/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SRIOV_ENABLE_H
#define VHCA_SRIOV_ENABLE_H
/*
 * Bringing VFs into being. mlx5: drivers_autoprobe off, then sriov_numvfs. mlx4 has no runtime way
 * (no .sriov_configure: ENOENT): VFs come from module parameters, so here the parameters are
 * verified and the error says exactly what to change. Blocking; on the PF's strand.
 */
#include "sriov/inventory.h"

/* What enabling `count` VFs would do, without doing it (vhcad --plan). */
enum vhca_enable_action {
	VHCA_ENABLE_NOTHING, /* already so */
	VHCA_ENABLE_WRITE,   /* sriov_numvfs will be written (mlx5) */
	/* there is another number of VFs (mlx5): vhca_enable_clear() first; err says so */
	VHCA_ENABLE_REPLACE,
	/* module parameters must change and the driver be reloaded (mlx4); err's hint says how */
	VHCA_ENABLE_RELOAD,
	/* the host's own driver has one of the VFs, or a limit is exceeded; err says why */
	VHCA_ENABLE_REFUSED,
};
enum vhca_enable_action vhca_enable_plan(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf,
					 uint16_t count, struct vhca_error *err);

/*
 * Takes all VFs of the PF away (mlx5), so that another number can be made. The kernel would not
 * refuse that for a VF which a guest has: it waits until the guest gives it up, for ever, and
 * everything that concerns PCI waits with it. So each VF's group is probed before anything is
 * written: VHCA_ERR_CONFLICT "vf_in_use" names the VF. The caller has looked into live XML before.
 * dev_root as vhca_vfio_group_busy().
 */
int vhca_enable_clear(struct vhca_sysfs *sys, const char *dev_root, const struct vhca_pf_facts *pf,
		      struct vhca_error *err);

/*
 * Makes the PF have `count` VFs and reads back. (mlx4: succeeds only if the driver's parameters
 * made them already.) Never lowers or replaces an existing non-zero count (that would take VFs away
 * from guests): VHCA_ERR_CONFLICT "vf_count_differs". Every errno of the write has its own sentence
 * and hint. *ret_pf is filled with the facts after enabling on success. Fewer VFs than asked for:
 * VHCA_ERR_DEVICE "fewer_vfs".
 */
int vhca_enable_vfs(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf, uint16_t count,
		    struct vhca_pf_facts *ret_pf, struct vhca_error *err);

#endif
