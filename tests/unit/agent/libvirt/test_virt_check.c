/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is refused before a VF is touched. libvirt's test driver has no jobs, so the functions that
 * matter are defined here and take precedence over the library's; the others are libvirt's own on
 * test:///default. That libvirt refuses the same is read in qemuMigrationSrcIsAllowed() and
 * qemuMigrationSrcIsSafe() (src/qemu/qemu_migration.c); test_virt_migration asks a real one.
 */
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>

#include <libvirt/virterror.h>

#include "agent/libvirt/check.h"
#include "common/base/cleanup.h"
#include "common/sysfs/sysfs.h"
#include "tests/unit/unit.h"

#define UUID_TEXT "6695eb01-f6a4-8304-79aa-97f2502e193f" /* of test:///default's domain */
#define HOSTDEV(bus, more)                                                       \
	"<hostdev mode='subsystem' type='pci'><source><address domain='0x0000' " \
	"bus='" bus "' slot='0x00' function='0x1'/></source><alias name='gpu'/>" more "</hostdev>"
#define OURS HOSTDEV("0x3b", "")
#define DISK(more) \
	"<disk type='file'><source file='/images/vm1'/><target dev='vda'/>" more "</disk>"

static struct {
	const char *devices, *driver;
	int job, snapshots, block_job, error;
	const char *message;
	unsigned long version;
	long file_system;
	bool dead; /* the connection */
	struct {
		bool refused;
		unsigned int after, looks;
		uint64_t slept_ms;
	} dirty;
} fake;

/* ---- the fakes ---- */

char *virDomainGetXMLDesc(virDomainPtr dom, unsigned int flags)
{
	char *xml = NULL;

	(void)dom;
	assert_int_equal(flags, 0);
	assert_true(asprintf(&xml,
			     "<domain id='1'><name>vm1</name><uuid>" UUID_TEXT
			     "</uuid><devices>%s</devices></domain>",
			     fake.devices) > 0);
	return xml;
}

virErrorPtr virGetLastError(void)
{
	static virError error;

	error = (virError){.code = fake.error, .message = (char *)(uintptr_t)fake.message};
	return &error;
}

int virConnectIsAlive(virConnectPtr conn)
{
	(void)conn;
	return !fake.dead;
}

int virDomainGetJobInfo(virDomainPtr dom, virDomainJobInfoPtr info)
{
	(void)dom;
	info->type = fake.job;
	return fake.error ? -1 : 0;
}

int virDomainSnapshotNum(virDomainPtr dom, unsigned int flags)
{
	(void)dom;
	assert_int_equal(flags, 0);
	return fake.snapshots;
}

int virDomainGetBlockJobInfo(virDomainPtr dom, const char *disk, virDomainBlockJobInfoPtr info,
			     unsigned int flags)
{
	(void)dom;
	(void)info;
	assert_int_equal(flags, 0);
	assert_string_equal(disk, "vda");
	return fake.block_job;
}

int virConnectGetLibVersion(virConnectPtr conn, unsigned long *version)
{
	(void)conn;
	*version = fake.version;
	return 0;
}

/*
 * Wrapped, not defined: libselinux's constructor calls the library's. meson's LFS makes it
 * statfs64.
 */
int __wrap_statfs64(const char *path, struct statfs *ret);
int __wrap_statfs64(const char *path, struct statfs *ret)
{
	assert_string_equal(path, "/images/vm1");
	*ret = (struct statfs){.f_type = fake.file_system};
	return fake.file_system ? 0 : -1;
}

int __wrap_vhca_sysfs_opendir(struct vhca_sysfs *sys, const char *path,
			      struct vhca_sysfs_dir **ret);
int __wrap_vhca_sysfs_opendir(struct vhca_sysfs *sys, const char *path, struct vhca_sysfs_dir **ret)
{
	(void)sys;
	(void)ret;
	assert_string_equal(path, "bus/pci/devices/0000:81:00.1");
	return 0;
}

int __wrap_vhca_sysfs_readlink(struct vhca_sysfs_dir *dir, const char *attr, char *buf,
			       size_t size);
int __wrap_vhca_sysfs_readlink(struct vhca_sysfs_dir *dir, const char *attr, char *buf, size_t size)
{
	(void)dir;
	assert_string_equal(attr, "driver");
	(void)snprintf(buf, size, "%s", fake.driver ? fake.driver : "");
	return fake.driver ? 0 : -ENOENT;
}

int virDomainStartDirtyRateCalc(virDomainPtr dom, int seconds, unsigned int flags)
{
	(void)dom;
	assert_int_equal(seconds, 1);
	assert_int_equal(flags, 0);
	return fake.dirty.refused ? -1 : 0;
}

/* Measured after so many looks. */
int virDomainListGetStats(virDomainPtr *doms, unsigned int stats, virDomainStatsRecordPtr **ret,
			  unsigned int flags)
{
	virDomainStatsRecordPtr record = calloc(1, sizeof(*record)),
				*list = calloc(2, sizeof(*list));
	bool is_measured = ++fake.dirty.looks >= fake.dirty.after;
	int max = 0;

	assert_non_null(record);
	assert_non_null(list);
	assert_null(doms[1]);
	assert_int_equal(stats, VIR_DOMAIN_STATS_DIRTYRATE);
	assert_int_equal(flags, VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT);
	assert_true(virTypedParamsAddInt(&record->params, &record->nparams, &max,
					 "dirtyrate.calc_status",
					 is_measured ? VIR_DOMAIN_DIRTYRATE_MEASURED
						     : VIR_DOMAIN_DIRTYRATE_MEASURING) == 0);
	if (is_measured)
		assert_true(virTypedParamsAddLLong(&record->params, &record->nparams, &max,
						   "dirtyrate.megabytes_per_second", 17) == 0);
	list[0] = record;
	*ret = list;
	return 1;
}

void virDomainStatsRecordListFree(virDomainStatsRecordPtr *list)
{
	virTypedParamsFree(list[0]->params, list[0]->nparams);
	free(list[0]);
	free(list);
}

int __wrap_nanosleep(const struct timespec *ts, struct timespec *left);
int __wrap_nanosleep(const struct timespec *ts, struct timespec *left)
{
	(void)left;
	fake.dirty.slept_ms += (uint64_t)ts->tv_sec * 1000 + (uint64_t)ts->tv_nsec / 1000000;
	return 0;
}

/* ---- fixture ---- */

static struct vhca_error err;

static int setup(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.devices = OURS DISK("");
	fake.driver = "vfio-pci";
	fake.version = 9000000;
	fake.file_system = NFS_SUPER_MAGIC;
	err = (struct vhca_error)VHCA_ERROR_INIT;
	*state = virConnectOpen("test:///default");
	assert_non_null(*state);
	return 0;
}

static int teardown(void **state)
{
	(void)virConnectClose(*state);
	return 0;
}

static int check(void **state)
{
	const struct vhca_bdf ours = {.bus = 0x3b, .fn = 1};
	struct vhca_uuid uuid;

	assert_int_equal(vhca_uuid_parse(UUID_TEXT, &uuid), 0);
	err = (struct vhca_error)VHCA_ERROR_INIT;
	return virt_call_check(*state, &uuid, &ours, 1, &err);
}

static void passes(void **state)
{
	int r = check(state);

	if (r != 0)
		fail_msg("%d %s: %s", r, err.code, err.msg);
}

static void is_refused(void **state, const char *code, const char *words)
{
	assert_int_equal(check(state), -EBUSY);
	assert_string_equal(err.code, code);
	assert_int_equal(err.kind, VHCA_ERR_CONFLICT);
	if (!strstr(err.msg, words) || !strstr(err.msg, "domain vm1"))
		fail_msg("%s", err.msg);
	assert_true(err.hint[0]);
}

/* ---- cases ---- */

static void our_own_vf_is_no_obstacle(void **state)
{
	passes(state);
}

static void job_under_way_is_refused(void **state)
{
	fake.job = VIR_DOMAIN_JOB_UNBOUNDED;
	is_refused(state, "job_held", "another operation");
	fake.job = VIR_DOMAIN_JOB_BOUNDED;
	is_refused(state, "job_held", "another operation");
	fake.job = VIR_DOMAIN_JOB_COMPLETED;
	passes(state);
}

static void snapshots_are_refused(void **state)
{
	fake.snapshots = 2;
	is_refused(state, "has_snapshots", "2 snapshots");
}

static void foreign_device_is_refused(void **state)
{
	fake.devices = OURS HOSTDEV("0x81", "");
	is_refused(state, "foreign_hostdev", "0000:81:00.1");
	assert_non_null(strstr(err.hint, "virsh detach-device-alias vm1 gpu"));
}

/* libvirt asks QEMU (query-migrate, blocked-reasons), and QEMU the kernel. */
static void device_that_may_migrate_is_left_to_libvirt(void **state)
{
	fake.devices = OURS HOSTDEV("0x81", "");
	fake.driver = "mlx5_vfio_pci";
	passes(state);
	fake.driver = NULL;
	passes(state);
	fake.driver = "vfio-pci";
	fake.devices = OURS HOSTDEV("0x81", "<teaming type='transient' persistent='ua-net'/>");
	passes(state);
}

static void block_job_is_refused(void **state)
{
	fake.block_job = 1;
	is_refused(state, "block_job", "disk vda");
	fake.block_job = -1;
	passes(state);
}

static void local_disk_is_refused(void **state)
{
	static const long local[] = {EXT4_SUPER_MAGIC, 0x58465342, TMPFS_MAGIC};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(local); i++) {
		fake.file_system = local[i];
		fake.devices = DISK("");
		is_refused(state, "disk_not_shared", "disk vda (/images/vm1)");
		fake.devices = DISK("<readonly/>");
		passes(state);
	}
}

static void disk_of_which_nobody_knows_is_left_to_libvirt(void **state)
{
	fake.file_system = 0x12345678;
	passes(state);
	fake.file_system = 0; /* not to be seen from here */
	passes(state);
	fake.file_system = EXT4_SUPER_MAGIC;
	fake.version = 11003000; /* its qemu.conf may say otherwise */
	passes(state);
}

static void what_is_copied_nowhere_is_refused(void **state)
{
	static const struct {
		const char *devices, *words;
	} cases[] = {
		{"<shmem name='s' role='peer'><model type='ivshmem-plain'/></shmem>", "<shmem>"},
		{"<shmem name='s'><model type='ivshmem-plain'/></shmem>", "<shmem>"},
		{DISK("<transient/>"), "<transient/>"},
		{"<disk type='nvme'><source type='pci' namespace='1'/><target dev='vda'/></disk>",
		 "NVMe"},
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		fake.devices = cases[i].devices;
		is_refused(state, "not_migratable", cases[i].words);
	}
	fake.devices = "<shmem name='s' role='master'><model type='ivshmem-plain'/></shmem>"
		       "<filesystem type='mount'><source dir='/x'/><target dir='x'/></filesystem>"
		       "<filesystem type='mount'><driver type='virtiofs'/><target dir='y'/>"
		       "</filesystem>"; /* virtiofsd may be able to (migrate-precopy) */
	passes(state);
}

static void failing_question_is_an_error(void **state)
{
	fake.error = VIR_ERR_OPERATION_TIMEOUT;
	fake.message = "Timed out during operation: cannot acquire state change lock";
	assert_int_equal(check(state), -EBUSY);
	assert_string_equal(err.code, "job_held");
	fake.error = VIR_ERR_RPC; /* asked again, not refused */
	fake.message = "internal error: client socket is closed";
	assert_int_equal(check(state), -ENOTCONN);
	assert_int_equal(err.kind, VHCA_ERR_UNAVAILABLE);
	fake.error = VIR_ERR_SYSTEM_ERROR;
	fake.message = "words that nobody knows";
	assert_int_equal(check(state), -EIO);
	fake.dead = true;
	assert_int_equal(check(state), -ENOTCONN);
	assert_int_equal(err.kind, VHCA_ERR_UNAVAILABLE);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

static void dirty_rate_is_measured(void **state)
{
	struct vhca_uuid uuid;
	uint64_t mib = 0;

	assert_int_equal(vhca_uuid_parse(UUID_TEXT, &uuid), 0);
	fake.dirty.after = 5;
	assert_true(virt_call_dirty_rate(*state, &uuid, &mib));
	assert_int_equal(mib, 17);
	assert_int_equal(fake.dirty.slept_ms, 1250);
}

static void dirty_rate_is_not_known_after_10_s(void **state)
{
	struct vhca_uuid uuid;
	uint64_t mib = 0;

	assert_int_equal(vhca_uuid_parse(UUID_TEXT, &uuid), 0);
	fake.dirty.after = UINT_MAX;
	assert_false(virt_call_dirty_rate(*state, &uuid, &mib));
	assert_int_equal(fake.dirty.slept_ms, 10000);
	fake.dirty.refused = true; /* an older QEMU: nothing to wait for */
	assert_false(virt_call_dirty_rate(*state, &uuid, &mib));
	assert_int_equal(fake.dirty.slept_ms, 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(our_own_vf_is_no_obstacle),
		CASE(job_under_way_is_refused),
		CASE(snapshots_are_refused),
		CASE(foreign_device_is_refused),
		CASE(device_that_may_migrate_is_left_to_libvirt),
		CASE(block_job_is_refused),
		CASE(local_disk_is_refused),
		CASE(disk_of_which_nobody_knows_is_left_to_libvirt),
		CASE(what_is_copied_nowhere_is_refused),
		CASE(failing_question_is_an_error),
		CASE(dirty_rate_is_measured),
		CASE(dirty_rate_is_not_known_after_10_s),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
