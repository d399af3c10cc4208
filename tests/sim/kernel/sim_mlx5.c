/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The per-VF files of MLNX_OFED's mlx5_core (sriov_sysfs.c of 4.2, 24.07 and 25.10); mainline has
 * none.
 */
#include <errno.h>
#include <string.h>

#include "tests/sim/kernel/sim_model.h"

static int store(struct sim_model *m, const struct sim_parts *p, const char *file, const char *text)
{
	sim_put(&m->tree, SIM_PATH(SIM_PCI "/%s/sriov/%s/%s", p->part[0], p->part[1], file), "%s",
		text);
	return 0;
}

/* Eight bytes joined by colons, nothing else. */
static bool is_guid(const char *text)
{
	if (strlen(text) != 23)
		return false;
	for (unsigned int i = 0; i < 23; i++) {
		if (i % 3 == 2 ? text[i] != ':' : !strchr("0123456789abcdef", text[i]))
			return false;
	}
	return true;
}

static int store_node(struct sim_model *m, const struct sim_parts *p, const char *text)
{
	return is_guid(text) ? store(m, p, "node", text) : -EINVAL;
}

static int store_port(struct sim_model *m, const struct sim_parts *p, const char *text)
{
	return is_guid(text) ? store(m, p, "port", text) : -EINVAL;
}

static int store_policy(struct sim_model *m, const struct sim_parts *p, const char *text)
{
	if (strcmp(text, "Down") != 0 && strcmp(text, "Up") != 0 && strcmp(text, "Follow") != 0)
		return -EINVAL;
	return store(m, p, "policy", text);
}

const struct sim_store sim_mlx5_stores[] = {
	{SIM_PCI "/*/sriov/*/node", store_node},
	{SIM_PCI "/*/sriov/*/port", store_port},
	{SIM_PCI "/*/sriov/*/policy", store_policy},
	{NULL, NULL},
};
