/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SRIOV_ENABLE_H
#define VHCA_SRIOV_ENABLE_H
/*
 * Bringing VFs into being. mlx5: drivers_autoprobe off, then sriov_numvfs. mlx4 has no runtime way (no .sriov_configure:
 * ENOENT): VFs come from module parameters, so here the parameters are verified and the error says exactly what to change.
 * Blocking; on the PF's strand.
 */
#include "sriov/inventory.h"

/* What enabling `count` VFs would do, without doing it (vhcad --plan). */
enum vhca_enable_action {
	VHCA_ENABLE_NOTHING, /* already so */
	VHCA_ENABLE_WRITE,   /* sriov_numvfs will be written (mlx5) */
	VHCA_ENABLE_RELOAD, /* module parameters must change and the driver be reloaded (mlx4); err's hint says how */
	VHCA_ENABLE_REFUSED, /* would need 0 first while VFs exist, or exceeds a limit; err says why */
};
enum vhca_enable_action vhca_enable_plan(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf,
					 uint16_t count, struct vhca_error *err);

/*
 * Makes the PF have `count` VFs and reads back. (mlx4: succeeds only if the driver's parameters made them already.) Never lowers or replaces an existing non-zero count (that would take VFs away
 * from guests): VHCA_ERR_CONFLICT "vf_count_differs". Every errno of the write has its own sentence and hint.
 * *ret_pf is filled with the facts after enabling on success. Fewer VFs than asked for: VHCA_ERR_DEVICE "fewer_vfs".
 */
int vhca_enable_vfs(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf, uint16_t count,
		    struct vhca_pf_facts *ret_pf, struct vhca_error *err);

#endif
