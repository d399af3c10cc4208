/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_VFS_FILE_H
#define VHCA_AGENT_VFS_FILE_H
/*
 * run_dir/vfs and state_dir/vfs: the addresses of the VFs that the engine guards, one per line, for
 * the qemu hook while the agent is down. Written atomically by a worker. Both survive the agent,
 * and the second one a boot: the hook looks there until an agent has come.
 */
#include "agent/vf/engine.h"
#include "conf/conf.h"

struct vhca_vfs_file;

/* Nothing is written until the first change. engine is borrowed. */
int vhca_vfs_file_new(struct vhca_loop *loop, const struct vhca_conf *conf,
		      struct vhca_engine *engine, struct vhca_vfs_file **ret,
		      struct vhca_error *err);
/* The file stays. Accepts NULL, returns NULL. */
struct vhca_vfs_file *vhca_vfs_file_free(struct vhca_vfs_file *f);
/* The set may have changed: write it soon, if it did. */
void vhca_vfs_file_changed(struct vhca_vfs_file *f);

#endif
