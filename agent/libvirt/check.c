/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libvirt has no call that asks only whether it would copy a domain, and its own check refuses one
 * with a VF whatever else is wrong with it. So the conditions of that check that can be seen from
 * outside are looked at here (qemuMigrationSrcIsAllowed() and qemuMigrationSrcIsSafe() of libvirt
 * 9.0 to 12.0). What is not certain is left to libvirt: nothing is refused that it would copy.
 */
#include "agent/libvirt/check.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>

#include "agent/libvirt/call.h"
#include "agent/libvirt/error.h"
#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/base/role.h"
#include "common/sysfs/sysfs.h"

/* From some release of libvirt 10 on, its qemu.conf can call a local file system shared. */
#define LIBVIRT_TOLD_OF_SHARED 10000000UL

#define XFS_MAGIC 0x58465342
#define ZFS_MAGIC 0x2fc12fc1

/* ---- jobs ---- */

/* A migration would wait for its end for 30 s, and fail then. */
static int check_job(virConnectPtr conn, virDomainPtr dom, const char *name, struct vhca_error *err)
{
	virDomainJobInfo job = {.type = VIR_DOMAIN_JOB_NONE};

	if (virDomainGetJobInfo(dom, &job) < 0)
		return virt_call_error(err, "job of the domain", conn);
	if (job.type != VIR_DOMAIN_JOB_BOUNDED && job.type != VIR_DOMAIN_JOB_UNBOUNDED)
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_JOB_HELD, 0,
			     "domain %s: another operation is under way (save, backup, ...)", name);
	vhca_error_hint(err, "wait for its end, or end it: virsh domjobinfo, virsh domjobabort");
	return -EBUSY;
}

static int check_snapshots(virConnectPtr conn, virDomainPtr dom, const char *name,
			   struct vhca_error *err)
{
	int n = virDomainSnapshotNum(dom, 0);

	if (n < 0)
		return virt_call_error(err, "snapshots of the domain", conn);
	if (n == 0)
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_CONFLICT, "has_snapshots", 0,
			     "domain %s has %d snapshots, with which libvirt copies it to no other "
			     "host",
			     name, n);
	vhca_error_hint(err, "virsh snapshot-list; virsh snapshot-delete, with --metadata if the "
			     "images are to stay");
	return -EBUSY;
}

/* ---- host devices ---- */

/* A driver that can save a device's state has a name of its own (mlx5_vfio_pci). */
static bool is_on_plain_vfio(struct vhca_bdf bdf)
{
	struct vhca_sysfs *sys = NULL;
	struct vhca_sysfs_dir *dir = NULL;
	char path[64], driver[32] = "";

	(void)snprintf(path, sizeof(path), "bus/pci/devices/%s", VHCA_BDF_STR(bdf));
	if (vhca_sysfs_open(vhca_sysfs_default_root(), &sys) == 0 &&
	    vhca_sysfs_opendir(sys, path, &dir) == 0 &&
	    vhca_sysfs_readlink(dir, "driver", driver, sizeof(driver)) < 0)
		driver[0] = '\0';
	vhca_sysfs_closedir(dir);
	vhca_sysfs_close(sys);
	return strcmp(driver, "vfio-pci") == 0;
}

static int check_hostdevs(const struct vhca_dom_info *info, const struct vhca_bdf *ours,
			  unsigned int n_ours, struct vhca_error *err)
{
	for (unsigned int i = 0; i < info->n_hostdevs; i++) {
		const struct vhca_dom_hostdev *dev = &info->hostdevs[i];

		if (dev->failover || vhca_bdf_find(ours, n_ours, dev->host) ||
		    !is_on_plain_vfio(dev->host))
			continue;
		(void)vhca_error_set(err, VHCA_ERR_CONFLICT, "foreign_hostdev", 0,
				     "domain %s has PCI device %s of this host, which is not a VF "
				     "that vhcad would take out",
				     info->name, VHCA_BDF_STR(dev->host));
		vhca_error_hint(err, "virsh detach-device-alias %s %s",
				VHCA_DOMAIN_WORD(info->name, &info->uuid),
				dev->alias[0] ? dev->alias : "ALIAS");
		return -EBUSY;
	}
	return 0;
}

/* ---- disks ---- */

/* What libvirt cannot tell either (no such disk any more) is left to it. */
static int check_block_job(virDomainPtr dom, const struct vhca_dom_info *info,
			   const struct vhca_dom_disk *disk, struct vhca_error *err)
{
	virDomainBlockJobInfo job;

	if (virDomainGetBlockJobInfo(dom, disk->target, &job, 0) != 1)
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_CONFLICT, "block_job", 0,
			     "domain %s: a block job of disk %s is under way", info->name,
			     disk->target);
	vhca_error_hint(err, "wait for its end, or end it: virsh blockjob %s %s",
			VHCA_DOMAIN_WORD(info->name, &info->uuid), disk->target);
	return -EBUSY;
}

/* Of those that are neither on this list nor shared, libvirt knows. */
static bool is_on_local_disk(const char *file)
{
	static const unsigned long local[] = {
		EXT4_SUPER_MAGIC, XFS_MAGIC,   BTRFS_SUPER_MAGIC,    ZFS_MAGIC,
		F2FS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC};
	struct statfs fs;

	if (statfs(file, &fs) < 0)
		return false;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(local); i++)
		if ((unsigned long)fs.f_type == local[i])
			return true;
	return false;
}

static int check_file(virConnectPtr conn, const char *name, const struct vhca_dom_disk *disk,
		      struct vhca_error *err)
{
	unsigned long version = 0;

	if (!disk->file[0] || virConnectGetLibVersion(conn, &version) < 0 ||
	    version >= LIBVIRT_TOLD_OF_SHARED || !is_on_local_disk(disk->file))
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_CONFLICT, "disk_not_shared", 0,
			     "domain %s: disk %s (%s) is on a file system of this host alone", name,
			     disk->target, disk->file);
	vhca_error_hint(err, "move it to storage that both hosts have; to copy it with the guest: "
			     "vhcactl migrate --external, then virsh migrate --copy-storage-all");
	return -EBUSY;
}

/* ---- what the guest writes ---- */

#define DIRTY_S 1 /* the least that libvirt takes */

/* As virDomainListGetStats() says: in MiB/s, once it is measured. */
static bool read_dirty_rate(virDomainPtr dom, uint64_t *ret_mib)
{
	virDomainPtr doms[] = {dom, NULL};
	virDomainStatsRecordPtr *records = NULL;
	int status = VIR_DOMAIN_DIRTYRATE_UNSTARTED;
	long long mib = -1;
	/* Else it waits for who has the domain's job. */
	int n = virDomainListGetStats(doms, VIR_DOMAIN_STATS_DIRTYRATE, &records,
				      VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT);

	if (n == 1) {
		(void)virTypedParamsGetInt(records[0]->params, records[0]->nparams,
					   "dirtyrate.calc_status", &status);
		(void)virTypedParamsGetLLong(records[0]->params, records[0]->nparams,
					     "dirtyrate.megabytes_per_second", &mib);
	}
	virDomainStatsRecordListFree(records);
	if (status != VIR_DOMAIN_DIRTYRATE_MEASURED || mib < 0)
		return false;
	*ret_mib = (uint64_t)mib;
	return true;
}

bool virt_call_dirty_rate(virConnectPtr conn, const struct vhca_uuid *uuid, uint64_t *ret_mib)
{
	const struct timespec poll = {.tv_nsec = VIRT_DIRTY_POLL_MS * 1000000L};
	VHCA_AUTO_DOMAIN dom = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;
	uint64_t deadline = vhca_now_ms() + VIRT_DIRTY_WAIT_MS;

	vhca_may_block("libvirt: dirty rate");
	if (virt_call_lookup(conn, uuid, &dom, &err) < 0 ||
	    virDomainStartDirtyRateCalc(dom, DIRTY_S, 0) < 0)
		return false;
	for (unsigned int ms = 0; ms < VIRT_DIRTY_WAIT_MS && vhca_now_ms() < deadline;
	     ms += VIRT_DIRTY_POLL_MS) {
		(void)nanosleep(&poll, NULL);
		if (read_dirty_rate(dom, ret_mib))
			return true;
	}
	return false;
}

/* ---- all of it ---- */

int virt_call_check(virConnectPtr conn, const struct vhca_uuid *uuid, const struct vhca_bdf *ours,
		    unsigned int n_ours, struct vhca_error *err)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = NULL;
	VHCA_AUTO_FREE struct vhca_dom_copy *copy = NULL;
	VHCA_AUTO_FREE char *xml = NULL;
	VHCA_AUTO_DOMAIN dom = NULL;
	struct vhca_error request_err;
	int r;

	vhca_may_block("libvirt: check before a migration");
	r = virt_call_lookup(conn, uuid, &dom, err);
	if (r < 0)
		return r;
	xml = virDomainGetXMLDesc(dom, 0);
	if (!xml)
		return virt_call_error(err, "domain XML", conn);
	r = vhca_domxml_parse(xml, strlen(xml), &info, &request_err, err);
	if (r == 0)
		r = check_job(conn, dom, info->name, err);
	if (r == 0)
		r = check_snapshots(conn, dom, info->name, err);
	if (r == 0)
		r = check_hostdevs(info, ours, n_ours, err);
	if (r == 0)
		r = vhca_domxml_copy(xml, strlen(xml), &copy, err);
	for (unsigned int i = 0; r == 0 && i < copy->n_disks; i++) {
		r = check_block_job(dom, info, &copy->disks[i], err);
		if (r == 0)
			r = check_file(conn, info->name, &copy->disks[i], err);
	}
	return r;
}
