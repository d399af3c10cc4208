/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/sriov/recording.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "tests/unit/unit.h"

VHCA_DEFINE_CLEANUP(struct vhca_inventory, vhca_inventory_free)

int recording_run(const char *const argv[])
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status;

	/* Our own standard output is TAP. */
	assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
	assert_int_equal(posix_spawn_file_actions_adddup2(&actions, 2, 1), 0);
	assert_int_equal(posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ),
			 0);
	(void)posix_spawn_file_actions_destroy(&actions);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

const char *recording_source_dir(void)
{
	const char *dir = getenv("VHCA_SOURCE_DIR");

	return dir ? dir : ".";
}

void recording_unpack(const char *tarball, struct sim_tree *ret)
{
	const char *const argv[] = {"tar", "-xzf", tarball, "-C", ret->root, NULL};

	sim_tree_init(ret);
	assert_int_equal(recording_run(argv), 0);
}

struct vhca_inventory *recording_scan(struct vhca_sysfs *sys)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_inventory *inv = NULL;

	if (vhca_inventory_scan(sys, &inv, &err) < 0)
		fail_msg("%s", err.msg);
	return inv;
}

void recording_read_vf(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf, uint16_t index,
		       struct vhca_identity_state *ret)
{
	struct vhca_identity_at at = {.sys = sys,
				      .pf = pf->bdf,
				      .ibdev = pf->ibdev,
				      .vf_index = index,
				      .port = 1,
				      .n_ports = pf->n_ports};
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_identity_mlx4.read(&at, ret, &err) < 0)
		fail_msg("%s VF %u: %s", VHCA_BDF_STR(pf->bdf), index, err.msg);
}

void recording_replay(const char *root)
{
	VHCA_CLEANUP(vhca_inventory_freep) struct vhca_inventory *inv = NULL;
	struct vhca_identity_state state;
	struct vhca_sysfs *sys = NULL;

	assert_int_equal(vhca_sysfs_open(root, &sys), 0);
	inv = recording_scan(sys);
	assert_true(inv->n_pfs > 0);
	for (unsigned int i = 0; i < inv->n_pfs; i++) {
		const struct vhca_pf_facts *pf = &inv->pfs[i];
		struct sim_tree tree;
		char text[16] = "0";

		(void)snprintf(tree.root, sizeof(tree.root), "%s", root);
		(void)sim_get(&tree,
			      SIM_PATH("bus/pci/devices/%s/sriov_numvfs", VHCA_BDF_STR(pf->bdf)),
			      text, sizeof(text));
		assert_int_equal(pf->num_vfs, strtoul(text, NULL, 10));
		for (unsigned int v = 0; pf->family == VHCA_FAMILY_MLX4 && v < pf->n_vfs; v++)
			recording_read_vf(sys, pf, pf->vfs[v].index, &state);
	}
	assert_int_equal(vhca_sysfs_writes(sys), 0);
	vhca_sysfs_close(sys);
}
