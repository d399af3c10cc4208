/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vport read|scrub PF VF, vport program PF VF GUID: the production back end for mlx5 VFs, on the
 * kernel of this machine.
 * Prints "GUID NODE_GUID POLICY clean|used" as it reads back, or "CODE: MESSAGE" with exit code 1.
 */
#include <stdio.h>
#include <string.h>

#include "common/sysfs/sysfs.h"
#include "pkey/identity.h"

static int act(const char *verb, const struct vhca_identity_at *at,
	       const struct vhca_identity *want, struct vhca_identity_state *ret,
	       struct vhca_error *err)
{
	const struct vhca_identity_ops *ops = &vhca_identity_mlx5;
	unsigned int missing;
	int r = 0;

	if (!strcmp(verb, "program"))
		return ops->program(at, want, &missing, ret, err);
	if (!strcmp(verb, "scrub"))
		r = ops->scrub(at, err);
	return r < 0 ? r : ops->read(at, ret, err);
}

int main(int argc, char **argv)
{
	struct vhca_identity_at at = {.ibdev = "mlx5_0", .port = 1, .n_ports = 1};
	struct vhca_identity want = {.n_pkeys = 1, .pkeys = {0x8001}};
	struct vhca_identity_state state;
	struct vhca_error err = VHCA_ERROR_INIT;
	uint32_t vf;
	int r;

	if (argc < 4 || vhca_bdf_parse(argv[2], &at.pf) < 0 ||
	    vhca_parse_u32(argv[3], 10, UINT16_MAX, &vf) < 0 ||
	    (argc > 4 && vhca_guid_parse(argv[4], &want.guid) < 0))
		return 2;
	at.vf_index = (uint16_t)vf;
	if (vhca_sysfs_open(vhca_sysfs_default_root(), &at.sys) < 0)
		return 2;
	r = act(argv[1], &at, &want, &state, &err);
	vhca_sysfs_close(at.sys);
	if (r < 0) {
		printf("%s: %s\n", err.code, err.msg);
		return 1;
	}
	printf("%s %s %s %s\n", VHCA_GUID_STR(state.requested), VHCA_GUID_STR(state.node_guid),
	       vhca_link_policy_to_string(state.policy),
	       vhca_identity_is_clean(&state) ? "clean" : "used");
	return 0;
}
