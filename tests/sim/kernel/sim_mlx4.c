/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mlx4's iov tree: drivers/infiniband/hw/mlx4/{sysfs,alias_GUID}.c of Linux 6.1. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/sim/kernel/sim_model.h"
#include "tests/sim/kernel/sim_scan.h"

#define DELETED	  UINT64_MAX
#define SM_CHOICE UINT64_C(0x0014050000000100) /* and the index */

static char *iov_of(char buf[static SIM_PATH_MAX], const struct sim_parts *p)
{
	return sim_path(buf, SIM_PCI "/%s/infiniband/%s/iov", p->part[0], p->part[1]);
}

/* store_port_pkey; parts: PF, device, function, port, virtual index */
static int store_pkey_idx(struct sim_model *m, const struct sim_parts *p, const char *text)
{
	const char *port = SIM_PATH("%s/%s/ports/%s", iov_of((char[SIM_PATH_MAX]){0}, p),
				    p->part[2], p->part[3]);
	const char *path = SIM_PATH("%s/pkey_idx/%s", port, p->part[4]);
	char slave[16], pkey[16];
	int physical;

	/* "do not allow remapping Dom0 virtual pkey table" */
	if (sim_get(&m->tree, SIM_PATH("%s/gid_idx/0", port), slave, sizeof(slave)) &&
	    strcmp(slave, "0") == 0)
		return -EINVAL;
	if (strncasecmp(text, "no", 2) == 0) {
		sim_put(&m->tree, path, "none");
		return 0;
	}
	/* an index past the table (caps.pkey_table_len) */
	if (!sim_scan_int(text, &physical) || physical < 0 ||
	    !sim_get(&m->tree,
		     SIM_PATH("%s/ports/%s/pkeys/%d", iov_of((char[SIM_PATH_MAX]){0}, p),
			      p->part[3], physical),
		     pkey, sizeof(pkey)))
		return -EINVAL;
	sim_put(&m->tree, path, "%d", physical);
	return 0;
}

/*
 * What the driver wants of the SM, beside the tree of /sys: no file shows it (alias_GUID.c,
 * all_recs).
 */
static char *required_of(char buf[static SIM_PATH_MAX], const char *iov, const char *port,
			 const char *index)
{
	return sim_path(buf, "required/%s/%s/%s", iov, port, index);
}

static void put_guid(struct sim_model *m, const char *iov, const char *port, const char *index,
		     uint64_t guid)
{
	sim_put(&m->tree, SIM_PATH("%s/ports/%s/admin_guids/%s", iov, port, index), "%" PRIx64,
		guid);
}

void sim_model_grant(struct sim_model *m, const char *iov, const char *port, const char *index)
{
	const char *required = required_of((char[SIM_PATH_MAX]){0}, iov, port, index);
	char text[32];
	uint64_t guid;

	if (!sim_get(&m->tree, required, text, sizeof(text)))
		return; /* nothing was ever asked for */
	guid = strtoull(text, NULL, 16);
	/* its choice is kept as if it had been asked for (aliasguid_query_handler) */
	if (!guid) {
		guid = SM_CHOICE + strtoull(index, NULL, 10);
		sim_put(&m->tree, required, "%" PRIx64, guid);
		put_guid(m, iov, port, index, guid);
	}
	if (guid == DELETED)
		guid = 0;
	sim_put(&m->tree, SIM_PATH("%s/ports/%s/gids/%s", iov, port, index),
		"fe80:0000:0000:0000:%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
		(unsigned int)(guid >> 32) & 0xffff, (unsigned int)(guid >> 16) & 0xffff,
		(unsigned int)guid & 0xffff);
}

static void require(struct sim_model *m, const char *iov, const char *port, const char *index,
		    uint64_t guid)
{
	sim_put(&m->tree, required_of((char[SIM_PATH_MAX]){0}, iov, port, index), "%" PRIx64, guid);
	if (m->auto_grant)
		sim_model_grant(m, iov, port, index);
}

/*
 * mlx4_ib_slave_alias_guid_event: what is withdrawn is not asked for, what is not held is not
 * deleted
 */
void sim_model_slave(struct sim_model *m, const char *iov, const char *port, const char *index,
		     bool up)
{
	const char *path = up ? SIM_PATH("%s/ports/%s/admin_guids/%s", iov, port, index)
			      : required_of((char[SIM_PATH_MAX]){0}, iov, port, index);
	char text[32];
	uint64_t guid;

	if (!sim_get(&m->tree, path, text, sizeof(text)))
		return;
	guid = strtoull(text, NULL, 16);
	if (guid != DELETED && (up || guid))
		require(m, iov, port, index, up ? guid : DELETED);
}

/*
 * store_admin_alias_guid: entry 0 is ignored, what cannot be parsed is not refused (there: stack
 * garbage, here: 0). A request for 0 is for the SM to choose.
 */
static int store_admin_guid(struct sim_model *m, const struct sim_parts *p, const char *text)
{
	const char *iov = iov_of((char[SIM_PATH_MAX]){0}, p);
	uint64_t guid = 0;

	if (strcmp(p->part[3], "0") == 0)
		return 0;
	(void)sim_scan_hex(text, &guid);
	put_guid(m, iov, p->part[2], p->part[3], guid);
	require(m, iov, p->part[2], p->part[3], guid);
	return 0;
}

/* sysfs_store_enable_smi_admin; mlx4_vf_set_enable_smi_admin */
static int store_smi_admin(struct sim_model *m, const struct sim_parts *p, const char *text)
{
	int enable;

	if (!sim_scan_int(text, &enable) || enable < 0 || enable > 1)
		return -EINVAL;
	sim_put(&m->tree,
		SIM_PATH("%s/%s/ports/%s/enable_smi_admin", iov_of((char[SIM_PATH_MAX]){0}, p),
			 p->part[2], p->part[3]),
		"%d", enable);
	return 0;
}

/* mlx4_master_activate_admin_state */
void sim_model_start_smi(struct sim_model *m, const char *port)
{
	char admin[8];

	if (sim_get(&m->tree, SIM_PATH("%s/enable_smi_admin", port), admin, sizeof(admin)))
		sim_put(&m->tree, SIM_PATH("%s/smi_enabled", port), "%s", admin);
}

const struct sim_store sim_mlx4_stores[] = {
	{SIM_PCI "/*/infiniband/*/iov/*/ports/*/enable_smi_admin", store_smi_admin},
	{SIM_PCI "/*/infiniband/*/iov/*/ports/*/pkey_idx/*", store_pkey_idx},
	{SIM_PCI "/*/infiniband/*/iov/ports/*/admin_guids/*", store_admin_guid},
	{NULL, NULL},
};
