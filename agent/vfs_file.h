/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_VFS_FILE_H
#define VHCA_AGENT_VFS_FILE_H
/*
 * run_dir/vfs: the addresses of the VFs that are ours, one per line, for the qemu hook while the agent is down. Written
 * atomically by a worker; survives the agent.
 */
#include "agent/model.h"

struct vhca_vfs_file;

/* Nothing is written until the first change. model is borrowed. */
int vhca_vfs_file_new(struct vhca_loop *loop, const char *run_dir, struct vhca_model *model,
		      struct vhca_vfs_file **ret, struct vhca_error *err);
/* The file stays. Accepts NULL, returns NULL. */
struct vhca_vfs_file *vhca_vfs_file_free(struct vhca_vfs_file *f);
/* The set may have changed: write it soon, if it did. */
void vhca_vfs_file_changed(struct vhca_vfs_file *f);

#endif
