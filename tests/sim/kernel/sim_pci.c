/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * PCI core: drivers/pci/iov.c, drivers/pci/pci-driver.c, drivers/base/{bus,dd,driver}.c,
 * drivers/vfio/pci of Linux 6.1.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/kernel/sim_model.h"

#define VFIO_PCI "vfio-pci"

static bool get(const struct sim_model *m, const char *path, char *buf, size_t size)
{
	return sim_get(&m->tree, path, buf, size);
}

static bool exists(const struct sim_model *m, const char *path)
{
	char target[SIM_PATH_MAX];

	return sim_readlink(&m->tree, path, target, sizeof(target)) ||
	       get(m, path, target, sizeof(target));
}

/* "" when nothing is bound. */
static void driver_of(const struct sim_model *m, const char *bdf, char buf[static SIM_PART_LEN])
{
	char target[SIM_PATH_MAX];

	buf[0] = '\0';
	if (sim_readlink(&m->tree, SIM_PATH(SIM_PCI "/%s/driver", bdf), target, sizeof(target)))
		(void)snprintf(buf, SIM_PART_LEN, "%s", strrchr(target, '/') + 1);
}

static bool is_loaded(const struct sim_model *m, const char *driver)
{
	return exists(m, SIM_PATH("bus/pci/drivers/%s/bind", driver));
}

/* ---- VFIO groups ---- */

static int group_of(const struct sim_model *m, const char *bdf)
{
	char target[SIM_PATH_MAX];

	if (!sim_readlink(&m->tree, SIM_PATH(SIM_PCI "/%s/iommu_group", bdf), target,
			  sizeof(target)))
		return -1;
	return (int)strtol(strrchr(target, '/') + 1, NULL, 10);
}

/* vfio_unregister_group_dev: waits, uninterruptibly, until the user has closed the device. */
static void wait_for_user(struct sim_model *m, const char *bdf)
{
	int group = group_of(m, bdf);
	char driver[SIM_PART_LEN];

	driver_of(m, bdf, driver);
	if (group < 0 || strcmp(driver, VFIO_PCI) != 0)
		return;
	while (m->held[group] && !m->stopping)
		pthread_cond_wait(&m->changed, &m->lock);
}

static void detach(struct sim_model *m, const char *bdf)
{
	char driver[SIM_PART_LEN];

	wait_for_user(m, bdf);
	driver_of(m, bdf, driver);
	if (strcmp(driver, VFIO_PCI) == 0)
		sim_remove(&m->tree, SIM_PATH("dev/vfio/%d", group_of(m, bdf)));
	sim_unbind(&m->tree, bdf);
}

/* ---- binding ---- */

/*
 * pci_match_device: an override decides alone; without one vfio-pci matches nothing and the native
 * driver what it made.
 */
static bool matches(const struct sim_model *m, const char *bdf, const char *driver)
{
	char override[SIM_PART_LEN];

	if (get(m, SIM_PATH(SIM_PCI "/%s/driver_override", bdf), override, sizeof(override)) &&
	    strcmp(override, "(null)") != 0)
		return strcmp(override, driver) == 0;
	return strncmp(driver, "mlx", 3) == 0;
}

/* pci_device_can_probe */
static bool can_probe(const struct sim_model *m, const char *bdf)
{
	char text[SIM_PART_LEN];

	if (!exists(m, SIM_PATH(SIM_PCI "/%s/physfn/vendor", bdf)))
		return true;
	if (get(m, SIM_PATH(SIM_PCI "/%s/physfn/sriov_drivers_autoprobe", bdf), text,
		sizeof(text)) &&
	    strcmp(text, "1") == 0)
		return true;
	return get(m, SIM_PATH(SIM_PCI "/%s/driver_override", bdf), text, sizeof(text)) &&
	       strcmp(text, "(null)") != 0;
}

/*
 * device_driver_attach, __driver_probe_device; vfio_group_find_or_alloc for the probe of vfio-pci
 */
static int attach(struct sim_model *m, const char *bdf, const char *driver)
{
	char bound[SIM_PART_LEN];

	driver_of(m, bdf, bound);
	if (bound[0] != '\0')
		return -EBUSY;
	if (!can_probe(m, bdf))
		return -ENODEV;
	if (strcmp(driver, VFIO_PCI) == 0) {
		if (group_of(m, bdf) < 0)
			return -EINVAL;
		sim_put(&m->tree, SIM_PATH("dev/vfio/%d", group_of(m, bdf)), "%s", "");
	}
	sim_bind(&m->tree, bdf, driver);
	return 0;
}

static bool is_device(const struct sim_model *m, const char *bdf)
{
	return strchr(bdf, '/') == NULL && strlen(bdf) < VHCA_BDF_STRLEN &&
	       exists(m, SIM_PATH("bus/pci/devices/%s", bdf));
}

/* bus.c: bind_store */
static int store_bind(struct sim_model *m, const struct sim_parts *p, const char *text)
{
	if (!is_device(m, text) || !matches(m, text, p->part[0]))
		return -ENODEV;
	return attach(m, text, p->part[0]);
}

/* bus.c: unbind_store */
static int store_unbind(struct sim_model *m, const struct sim_parts *p, const char *text)
{
	char bound[SIM_PART_LEN];

	if (!is_device(m, text))
		return -ENODEV;
	driver_of(m, text, bound);
	if (strcmp(bound, p->part[0]) != 0)
		return -ENODEV;
	detach(m, text);
	return 0;
}

/* bus.c: drivers_probe_store: success even when nothing got bound */
static int store_drivers_probe(struct sim_model *m, const struct sim_parts *p, const char *text)
{
	static const char *const drivers[] = {VFIO_PCI, "mlx4_core", "mlx5_core"};

	(void)p;
	if (!is_device(m, text))
		return -ENODEV;
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		if (is_loaded(m, drivers[i]) && matches(m, text, drivers[i]) &&
		    attach(m, text, drivers[i]) == 0)
			return 0;
	}
	return 0;
}

/* driver_set_override */
static int store_override(struct sim_model *m, const struct sim_parts *p, const char *text)
{
	const char *path = SIM_PATH(SIM_PCI "/%s/driver_override", p->part[0]);

	if (strlen(text) >= SIM_PART_LEN)
		return -EINVAL;
	sim_put(&m->tree, path, "%s", text[0] != '\0' ? text : "(null)");
	return 0;
}

/* iov.c: sriov_drivers_autoprobe_store */
static int store_autoprobe(struct sim_model *m, const struct sim_parts *p, const char *text)
{
	const char *path = SIM_PATH(SIM_PCI "/%s/sriov_drivers_autoprobe", p->part[0]);

	if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
		return -EINVAL;
	sim_put(&m->tree, path, "%s", text);
	return 0;
}

/* ---- sriov_numvfs ---- */

static unsigned int get_number(const struct sim_model *m, const char *path)
{
	char text[SIM_PART_LEN];

	return get(m, path, text, sizeof(text)) ? (unsigned int)strtoul(text, NULL, 10) : 0;
}

/*
 * iov.c: pci_iov_remove_virtfn takes the links away first, and then waits for whoever holds the VF
 */
static void remove_vf(struct sim_model *m, const char *pf, unsigned int index)
{
	char vf[VHCA_BDF_STRLEN];
	int group;

	sim_vf_bdf(vf, pf, index);
	sim_remove(&m->tree, SIM_PATH(SIM_PCI "/%s/virtfn%u", pf, index));
	sim_remove(&m->tree, SIM_PATH(SIM_PCI "/%s/physfn", vf));
	detach(m, vf);
	group = group_of(m, vf);
	sim_remove(&m->tree, SIM_PATH("bus/pci/devices/%s", vf));
	sim_remove(&m->tree, SIM_PATH(SIM_PCI "/%s", vf));
	if (group >= 0)
		sim_remove(&m->tree, SIM_PATH("kernel/iommu_groups/%d/devices/%s", group, vf));
}

/*
 * mlx5_core_sriov_configure; with autoprobe the VF driver is bound before the write returns
 * (pci_bus_add_device)
 */
static void create_vfs(struct sim_model *m, const char *pf, unsigned int n, const char *driver)
{
	char vf[VHCA_BDF_STRLEN];

	for (unsigned int i = 0; i < n; i++) {
		sim_model_add_vf(m, pf, i);
		if (can_probe(m, sim_vf_bdf(vf, pf, i)))
			(void)attach(m, vf, driver);
	}
}

static int configure(struct sim_model *m, const char *pf, unsigned int n)
{
	const char *path = SIM_PATH(SIM_PCI "/%s/sriov_numvfs", pf);
	unsigned int now = get_number(m, path);
	char driver[SIM_PART_LEN];

	if (n == now)
		return 0;
	driver_of(m, pf, driver);
	if (strcmp(driver, "mlx5_core") != 0) /* no driver, or mlx4: no .sriov_configure */
		return -ENOENT;
	if (n > 0 && now > 0)
		return -EBUSY;
	n = n < m->max_vfs ? n : m->max_vfs;
	for (unsigned int i = 0; n == 0 && i < now; i++)
		remove_vf(m, pf, i);
	create_vfs(m, pf, n, driver);
	sim_put(&m->tree, path, "%u", n);
	return 0;
}

/* kstrtou16(base 0) */
static bool parse_u16(const char *text, unsigned long *ret)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	*ret = strtoul(text, &end, 0);
	return *end == '\0' && *ret <= UINT16_MAX;
}

/* iov.c: sriov_numvfs_store, checks in its order; the device lock is held all the time */
static int store_numvfs(struct sim_model *m, const struct sim_parts *p, const char *text)
{
	const char *pf = p->part[0];
	unsigned long n;
	int r;

	if (!parse_u16(text, &n))
		return -EINVAL;
	if (n > get_number(m, SIM_PATH(SIM_PCI "/%s/sriov_totalvfs", pf)))
		return -ERANGE;
	while (m->busy_pf[0] != '\0' && !m->stopping) /* pci_lock_rescan_remove is one for all */
		pthread_cond_wait(&m->changed, &m->lock);
	(void)snprintf(m->busy_pf, sizeof(m->busy_pf), "%s", pf);
	r = configure(m, pf, (unsigned int)n);
	m->busy_pf[0] = '\0';
	pthread_cond_broadcast(&m->changed);
	return r;
}

void sim_model_add_vf(struct sim_model *m, const char *pf, unsigned int index)
{
	char vf[VHCA_BDF_STRLEN];
	int group = -1;

	if (m->groups == SIM_GROUPS_OWN)
		group = m->next_group++;
	else if (m->groups == SIM_GROUPS_SHARED)
		group = m->next_group;
	sim_add_vf(&m->tree, pf, index, sim_vf_bdf(vf, pf, index), group);
}

const struct sim_store sim_pci_stores[] = {
	{SIM_PCI "/*/sriov_numvfs", store_numvfs},
	{SIM_PCI "/*/sriov_drivers_autoprobe", store_autoprobe},
	{SIM_PCI "/*/driver_override", store_override},
	{"bus/pci/drivers/*/bind", store_bind},
	{"bus/pci/drivers/*/unbind", store_unbind},
	{"bus/pci/drivers_probe", store_drivers_probe},
	{NULL, NULL},
};
