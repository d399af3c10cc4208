/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Migrations between two libvirtds of the test's own on this machine, with QEMU (TCG) guests: what
 * the adapter says of each end that a migration can have, and what the agent of the other host
 * hears. One pair of daemons serves all cases; each case starts its own guest.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include "agent/libvirt/virt.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "tests/integration/sandbox.h"
#include "tests/integration/virt_host.h"
#include "tests/unit/unit.h"

#define MIGRATION "0c6c1b6e-2222-4333-8444-ba9876543210"

static struct {
	struct vhca_loop *loop;
	struct vhca_uuid uuid, migration;
	char memory_uri[128];
	struct virt_host a, b; /* source, destination */
	struct vhca_conf_copy how;
} rig;

/* ---- fixture ---- */

static int group_setup(void **state)
{
	(void)state;
	assert_int_equal(vhca_uuid_parse(VIRT_HOST_GUEST, &rig.uuid), 0);
	assert_int_equal(vhca_uuid_parse(MIGRATION, &rig.migration), 0);
	assert_int_equal(vhca_loop_new(&rig.loop), 0);
	virt_host_open(&rig.a, rig.loop, "aaaaaaaa-1111-4222-8333-000000000001");
	virt_host_open(&rig.b, rig.loop, "bbbbbbbb-1111-4222-8333-000000000002");
	(void)snprintf(rig.memory_uri, sizeof(rig.memory_uri), "unix://%s/memory",
		       rig.b.daemon.dir);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	virt_host_close(&rig.a);
	virt_host_close(&rig.b);
	rig.loop = vhca_loop_free(rig.loop);
	return 0;
}

/* Each case begins without guests and past events. */
static int case_teardown(void **state)
{
	(void)state;
	virt_host_remove_guest(&rig.a);
	virt_host_remove_guest(&rig.b);
	for (unsigned int i = 0; i < 5; i++)
		(void)vhca_loop_once(rig.loop, 20);
	rig.a.n_events = rig.b.n_events = 0;
	rig.how = (struct vhca_conf_copy){.timeout_ms = 0};
	return 0;
}

/* ---- calls ---- */

struct answer {
	bool called;
	int rc;
	struct vhca_dom_info info;
	struct vhca_virt_job job;
	struct vhca_error err;
	uint64_t called_us; /* of a migration */
};

static void on_info(void *arg, int rc, const struct vhca_dom_info *info,
		    const struct vhca_error *request_err, const struct vhca_error *err)
{
	struct answer *a = arg;

	(void)request_err;
	*a = (struct answer){.called = true, .rc = rc, .err = *err};
	if (info)
		a->info = *info;
}

static void on_job(void *arg, int rc, const struct vhca_virt_job *job, const struct vhca_error *err)
{
	*(struct answer *)arg = (struct answer){.called = true, .rc = rc, .job = *job, .err = *err};
}

static void on_done(void *arg, int rc, const struct vhca_error *err)
{
	*(struct answer *)arg = (struct answer){.called = true, .rc = rc, .err = *err};
}

static void on_migrated(void *arg, int rc, const struct vhca_error *err)
{
	on_done(arg, rc, err);
	((struct answer *)arg)->called_us = vhca_virt_called_us(rig.a.virt);
}

static void wait_answer(const struct answer *a)
{
	uint64_t deadline = vhca_now_ms() + VIRT_HOST_WAIT_MS;

	while (!a->called && vhca_now_ms() < deadline)
		(void)vhca_loop_once(rig.loop, 50);
	assert_true(a->called);
}

static struct answer info_now(const struct virt_host *host)
{
	struct answer a = {.called = false};

	vhca_virt_info(host->virt, &rig.uuid, on_info, &a);
	wait_answer(&a);
	return a;
}

static struct vhca_virt_job job_now(const struct virt_host *host)
{
	struct answer a = {.called = false};

	vhca_virt_job(host->virt, &rig.uuid, on_job, &a);
	wait_answer(&a);
	if (a.rc != 0)
		fail_msg("%s", a.err.msg);
	return a.job;
}

static int abort_now(const struct virt_host *host)
{
	struct answer a = {.called = false};

	vhca_virt_abort_job(host->virt, &rig.uuid, on_done, &a);
	wait_answer(&a);
	return a.rc;
}

static int mark_now(const struct virt_host *host, const struct vhca_uuid *migration)
{
	struct answer a = {.called = false};

	vhca_virt_set_marker(host->virt, &rig.uuid, migration, true, on_done, &a);
	wait_answer(&a);
	return a.rc;
}

static void begin(struct answer *a)
{
	*a = (struct answer){.called = false};
	vhca_virt_migrate(rig.a.virt, &rig.uuid, rig.b.uri, rig.memory_uri, &rig.how, on_migrated,
			  a);
}

static struct answer migrate_now(void)
{
	struct answer a;

	begin(&a);
	wait_answer(&a);
	return a;
}

/* Returns when the copy is under way: some of it is done, and some is left. */
static void wait_copying(const struct answer *a)
{
	uint64_t deadline = vhca_now_ms() + VIRT_HOST_WAIT_MS;
	struct vhca_virt_job job;

	do
		job = job_now(&rig.a);
	while (job.processed_bytes == 0 && !a->called && vhca_now_ms() < deadline);
	if (a->called)
		fail_msg("%s", a->err.msg);
	assert_true(job.active && job.migrating_out);
	assert_true(job.remaining_bytes > 0);
	assert_true(job.total_bytes >= 64u * 1024 * 1024);
}

static void begin_slow_copy(struct answer *a)
{
	virt_host_limit_copy(&rig.a, 1);
	begin(a);
	wait_copying(a);
}

static void assert_runs_at_source(void)
{
	struct vhca_virt_job job = job_now(&rig.a);

	assert_true(job.active);
	assert_false(job.migrating_out);
	assert_int_equal(job.state, VIR_DOMAIN_RUNNING);
}

static void assert_failed(const struct answer *a, int rc, const char *code, enum vhca_err kind)
{
	if (a->rc != rc || a->err.kind != kind || strcmp(a->err.code, code) != 0)
		fail_msg("%d %s: %s", a->rc, a->err.code, a->err.msg);
	assert_non_null(strstr(a->err.msg, "domain vm1: migrate to qemu+unix:"));
}

static struct answer check_now(void)
{
	struct answer a = {.called = false};

	vhca_virt_check(rig.a.virt, &rig.uuid, NULL, 0, false, on_done, &a);
	wait_answer(&a);
	return a;
}

/* ---- cases: success ---- */

static int persistent_at(const struct virt_host *host)
{
	virDomainPtr dom = virt_host_find_guest(host);
	int persistent;

	assert_non_null(dom);
	persistent = virDomainIsPersistent(dom);
	(void)virDomainFree(dom);
	return persistent;
}

/*
 * The calls of a guest's blackout can be measured: the migration's begin is before all that the
 * destination tells of a guest.
 */
static void assert_began_before_it_arrived(uint64_t called_us)
{
	assert_true(called_us > 0);
	for (unsigned int i = 0; i < rig.b.n_events; i++)
		assert_true(!rig.b.events[i].at_us || rig.b.events[i].at_us > called_us);
}

static void guest_arrives_with_its_marker(void **state)
{
	VHCA_AUTO_FREE char *told = NULL;
	struct answer a;

	(void)state;
	virt_host_start_guest(&rig.a, false);
	assert_runs_at_source();
	assert_int_equal(check_now().rc, 0);
	vhca_virt_expect_migration(rig.a.virt, &rig.uuid, true);
	assert_int_equal(mark_now(&rig.a, &rig.migration), 0);
	a = migrate_now();
	if (a.rc != 0)
		fail_msg("%s", a.err.msg);
	assert_began_before_it_arrived(a.called_us);
	assert_false(job_now(&rig.a).active);
	assert_int_equal(info_now(&rig.a).rc, -ESRCH);
	assert_null(virt_host_find_guest(&rig.a));
	virt_host_wait_event(&rig.a, VHCA_VIRT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_MIGRATED);
	virt_host_wait_event(&rig.b, VHCA_VIRT_STARTED_MIGRATED, VIR_DOMAIN_EVENT_STARTED_MIGRATED);
	virt_host_wait_event(&rig.b, VHCA_VIRT_RESUMED_MIGRATED, VIR_DOMAIN_EVENT_RESUMED_MIGRATED);
	assert_int_equal(job_now(&rig.b).state, VIR_DOMAIN_RUNNING);
	a = info_now(&rig.b);
	assert_false(a.info.held);
	assert_true(a.info.has_away);
	assert_true(vhca_uuid_equal(&a.info.away, &rig.migration));
	assert_int_equal(a.info.n_requests, 1);
	assert_int_equal(persistent_at(&rig.b), 0);
	told = virt_host_hook_input(&rig.b, "migrate");
	assert_non_null(strstr(told, "<vhca:away xmlns:vhca=\"" VHCA_AWAY_NS
				     "\" migration=\"" MIGRATION "\"/>"));
}

static unsigned int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

/* Once it is or is not so: a connection comes and goes in a worker. */
static void wait_more_descriptors(unsigned int than, bool more)
{
	uint64_t deadline = vhca_now_ms() + VIRT_HOST_WAIT_MS;

	while ((open_descriptors() > than) != more && vhca_now_ms() < deadline)
		(void)vhca_loop_once(rig.loop, 50);
	assert_int_equal(open_descriptors() > than, more);
}

static void what_was_expected_in_vain_is_closed(void **state)
{
	unsigned int before;

	(void)state;
	virt_host_start_guest(&rig.a, false);
	assert_runs_at_source();
	before = open_descriptors();
	vhca_virt_expect_migration(rig.a.virt, &rig.uuid, true);
	wait_more_descriptors(before, true);
	vhca_virt_expect_migration(rig.a.virt, &rig.uuid, true);
	vhca_virt_expect_migration(rig.a.virt, &rig.uuid, false);
	wait_more_descriptors(before, false);
}

static void marker_can_be_changed_and_removed(void **state)
{
	struct vhca_uuid other = {{7}};
	struct answer a;

	(void)state;
	virt_host_start_guest(&rig.a, false);
	assert_int_equal(mark_now(&rig.a, NULL), 0);
	assert_false(info_now(&rig.a).info.has_away);
	assert_int_equal(mark_now(&rig.a, &rig.migration), 0);
	assert_int_equal(mark_now(&rig.a, &other), 0);
	a = info_now(&rig.a);
	assert_true(a.info.has_away && vhca_uuid_equal(&a.info.away, &other));
	assert_int_equal(mark_now(&rig.a, NULL), 0);
	a = info_now(&rig.a);
	assert_false(a.info.has_away);
	assert_int_equal(a.info.n_requests, 1);
	assert_int_equal(mark_now(&rig.b, &rig.migration), -ENOENT);
}

static void persistent_domain_moves_for_good(void **state)
{
	virDomainPtr dom;
	struct answer a;
	int autostart;
	VHCA_AUTO_FREE char *xml = NULL;

	(void)state;
	virt_host_start_guest(&rig.a, true);
	dom = virt_host_find_guest(&rig.a);
	assert_int_equal(virDomainSetAutostart(dom, 1), 0);
	(void)virDomainFree(dom);
	assert_int_equal(mark_now(&rig.a, &rig.migration), 0);
	a = migrate_now();
	if (a.rc != 0)
		fail_msg("%s", a.err.msg);
	assert_null(virt_host_find_guest(&rig.a));
	assert_int_equal(persistent_at(&rig.b), 1);
	dom = virt_host_find_guest(&rig.b);
	/* The marker is of this run of the guest, not of the domain. */
	xml = virDomainGetXMLDesc(dom, VIR_DOMAIN_XML_INACTIVE);
	assert_null(strstr(xml, VHCA_AWAY_NS));
	assert_non_null(strstr(xml, VHCA_DOMAIN_NS));
	assert_true(info_now(&rig.b).info.away_autostart);
	assert_int_equal(virDomainGetAutostart(dom, &autostart), 0);
	assert_int_equal(autostart, 0); /* libvirt leaves it behind */
	assert_int_equal(mark_now(&rig.b, NULL), 0);
	assert_int_equal(virDomainGetAutostart(dom, &autostart), 0);
	assert_int_equal(autostart, 1);
	(void)virDomainFree(dom);
}

static void paused_guest_arrives_paused(void **state)
{
	virDomainPtr dom;

	(void)state;
	virt_host_start_guest(&rig.a, false);
	dom = virt_host_find_guest(&rig.a);
	assert_int_equal(virDomainSuspend(dom), 0);
	(void)virDomainFree(dom);
	assert_int_equal(migrate_now().rc, 0);
	virt_host_wait_event(&rig.b, VHCA_VIRT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_PAUSED);
	for (unsigned int i = 0; i < rig.b.n_events; i++)
		assert_int_not_equal(rig.b.events[i].event, VHCA_VIRT_RESUMED_MIGRATED);
	assert_int_equal(job_now(&rig.b).state, VIR_DOMAIN_PAUSED);
	assert_false(info_now(&rig.b).info.held);
}

/* ---- cases: failure ---- */

static void cancelled_copy_leaves_the_guest_here(void **state)
{
	struct answer a;

	(void)state;
	virt_host_start_guest(&rig.a, false);
	assert_int_equal(abort_now(&rig.a), 0); /* there is nothing to abort */
	begin_slow_copy(&a);
	assert_int_equal(abort_now(&rig.a), 0);
	wait_answer(&a);
	assert_failed(&a, -ECANCELED, "migration_cancelled", VHCA_ERR_CONFLICT);
	assert_runs_at_source();
	virt_host_wait_event(&rig.b, VHCA_VIRT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_FAILED);
	assert_false(job_now(&rig.b).active);
	assert_int_equal(abort_now(&rig.b), -ENOENT);
}

/* libvirtd remembers it although there is no copy yet: our own hook may take a while. */
static void cancelled_while_the_hook_thinks(void **state)
{
	uint64_t deadline = vhca_now_ms() + VIRT_HOST_WAIT_MS;
	struct answer a;

	(void)state;
	virt_host_start_guest(&rig.a, false);
	virt_host_hook_waits(&rig.b, true);
	begin(&a);
	while (!job_now(&rig.a).migrating_out && vhca_now_ms() < deadline)
		continue;
	assert_int_equal(abort_now(&rig.a), 0);
	assert_false(a.called);
	virt_host_hook_waits(&rig.b, false);
	wait_answer(&a);
	assert_failed(&a, -ECANCELED, "migration_cancelled", VHCA_ERR_CONFLICT);
	assert_runs_at_source();
}

/* What the destination says of a guest on its way in. */
static void incoming_guest_is_told_apart(void **state)
{
	struct vhca_virt_job job;
	struct answer a;

	(void)state;
	virt_host_start_guest(&rig.a, false);
	begin_slow_copy(&a);
	job = job_now(&rig.b);
	assert_true(job.active);
	assert_false(job.migrating_out);
	assert_int_equal(job.state, VIR_DOMAIN_PAUSED);
	assert_int_equal(job.reason, VIR_DOMAIN_PAUSED_MIGRATION);
	assert_true(info_now(&rig.b).info.held);
	assert_false(info_now(&rig.a).info.held);
	virt_host_limit_copy(&rig.a, 1000);
	wait_answer(&a);
	assert_int_equal(a.rc, 0);
}

static void copy_is_made_as_asked_for(void **state)
{
	struct answer a;

	(void)state;
	virt_host_start_guest(&rig.a, false);
	rig.how.tls = true; /* there are no certificates */
	a = migrate_now();
	assert_true(a.rc < 0);
	if (!strstr(a.err.msg, "access credentials"))
		fail_msg("%s", a.err.msg);
	assert_runs_at_source();
	rig.how = (struct vhca_conf_copy){.bandwidth_mib = 1, .auto_converge = true};
	begin(&a);
	wait_copying(&a);
	assert_int_equal(abort_now(&rig.a), 0);
	wait_answer(&a);
	rig.how = (struct vhca_conf_copy){.connections = 2};
	a = migrate_now();
	if (a.rc != 0)
		fail_msg("%s", a.err.msg);
	assert_int_equal(job_now(&rig.b).state, VIR_DOMAIN_RUNNING);
}

/* ---- cases: what is known beforehand ---- */

/* The check says no, and libvirt would have said so, too: in these words. */
static void assert_refused(const char *code, const char *words)
{
	struct answer a = check_now();

	if (a.rc != -EBUSY || a.err.kind != VHCA_ERR_CONFLICT || strcmp(a.err.code, code) != 0)
		fail_msg("%d %s: %s", a.rc, a.err.code, a.err.msg);
	a = migrate_now();
	if (a.rc == 0 || !strstr(a.err.msg, words))
		fail_msg("%d %s: %s", a.rc, a.err.code, a.err.msg);
	assert_runs_at_source();
}

static void start_with_disk(void)
{
	char image[128], devices[512];

	virt_host_make_image(&rig.a, "vda.img", image);
	(void)snprintf(devices, sizeof(devices),
		       "<disk type='file' device='disk'><driver name='qemu' type='raw'/>"
		       "<source file='%s'/><target dev='vda' bus='virtio'/></disk>",
		       image);
	virt_host_start_with(&rig.a, false, devices);
}

static void disk_of_one_host_is_refused(void **state)
{
	(void)state;
	start_with_disk();
	assert_refused("disk_not_shared", "without shared storage is unsafe");
}

static void block_job_is_refused(void **state)
{
	virDomainPtr dom;
	char copy[128], xml[256];

	(void)state;
	start_with_disk();
	virt_host_make_image(&rig.a, "copy.img", copy);
	(void)snprintf(xml, sizeof(xml),
		       "<disk type='file'><driver type='raw'/><source file='%s'/></disk>", copy);
	dom = virt_host_find_guest(&rig.a);
	assert_int_equal(virDomainBlockCopy(dom, "vda", xml, NULL, 0,
					    VIR_DOMAIN_BLOCK_COPY_REUSE_EXT |
						    VIR_DOMAIN_BLOCK_COPY_TRANSIENT_JOB),
			 0);
	(void)virDomainFree(dom);
	assert_refused("block_job", "active block job");
}

static void snapshot_is_refused(void **state)
{
	virDomainSnapshotPtr snapshot;
	virDomainPtr dom;
	char xml[512];

	(void)state;
	virt_host_start_guest(&rig.a, false);
	dom = virt_host_find_guest(&rig.a);
	(void)snprintf(xml, sizeof(xml),
		       "<domainsnapshot><name>one</name><memory snapshot='external' "
		       "file='%s/one.memory'/></domainsnapshot>",
		       rig.a.daemon.dir);
	snapshot = virDomainSnapshotCreateXML(dom, xml, VIR_DOMAIN_SNAPSHOT_CREATE_LIVE);
	if (!snapshot)
		fail_msg("%s", virGetLastErrorMessage());
	assert_refused("has_snapshots", "cannot migrate domain with 1 snapshots");
	assert_int_equal(
		virDomainSnapshotDelete(snapshot, VIR_DOMAIN_SNAPSHOT_DELETE_METADATA_ONLY), 0);
	assert_int_equal(check_now().rc, 0);
	(void)virDomainSnapshotFree(snapshot);
	(void)virDomainFree(dom);
}

static void hook_refuses_in_its_own_words(void **state)
{
	struct answer a;

	(void)state;
	virt_host_start_guest(&rig.a, false);
	virt_host_refuse(&rig.b, "vhcad: no VF is free on fabric default\n");
	a = migrate_now();
	virt_host_refuse(&rig.b, NULL);
	assert_failed(&a, -EACCES, "hook_refused", VHCA_ERR_DENIED);
	assert_string_equal(strstr(a.err.msg, ": vhcad: "),
			    ": vhcad: no VF is free on fabric default");
	assert_runs_at_source();
	assert_int_equal(rig.b.n_events, 0);
	assert_int_equal(migrate_now().rc, 0);
}

static void peer_is_unreachable(void **state)
{
	struct answer a;

	(void)state;
	virt_host_start_guest(&rig.a, false);
	virt_host_lose_libvirtd(&rig.b);
	a = migrate_now();
	assert_failed(&a, -EHOSTUNREACH, "peer_unreachable", VHCA_ERR_UNAVAILABLE);
	assert_runs_at_source();
	virt_host_restart_libvirtd(&rig.b);
	assert_int_equal(migrate_now().rc, 0);
}

static void peer_is_lost_during_the_copy(void **state)
{
	struct answer a;

	(void)state;
	virt_host_start_guest(&rig.a, false);
	begin_slow_copy(&a);
	virt_host_lose_libvirtd(&rig.b);
	wait_answer(&a);
	assert_failed(&a, -EHOSTUNREACH, "peer_unreachable", VHCA_ERR_UNAVAILABLE);
	assert_runs_at_source();
	virt_host_restart_libvirtd(&rig.b);
}

static void no_guest_no_migration(void **state)
{
	struct answer a = migrate_now();

	(void)state;
	assert_int_equal(a.rc, -ENOENT);
	assert_string_equal(a.err.code, "domain_gone");
	assert_int_equal(mark_now(&rig.a, &rig.migration), -ENOENT);
	assert_int_equal(abort_now(&rig.a), -ENOENT);
	assert_false(job_now(&rig.a).active);
}

/*
 * Our own libvirtd dies: the guest is where it was, and the next life of the agent finds it there.
 */
static void own_libvirtd_is_lost_during_the_copy(void **state)
{
	struct answer a;

	(void)state;
	virt_host_start_guest(&rig.a, false);
	begin_slow_copy(&a);
	virt_host_lose_libvirtd(&rig.a);
	wait_answer(&a);
	assert_failed(&a, -ENOTCONN, "libvirt_unreachable", VHCA_ERR_UNAVAILABLE);
	virt_host_wait_event(&rig.b, VHCA_VIRT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_DESTROYED);
	virt_host_restart_libvirtd(&rig.a);
	assert_runs_at_source();
}

/* The last case. libvirtd goes on with what the agent has asked for and does not wait to see. */
static void agent_goes_during_the_copy(void **state)
{
	static struct answer a; /* the hanging call keeps its address */
	uint64_t start;

	(void)state;
	virt_host_start_guest(&rig.a, false);
	begin_slow_copy(&a);
	start = vhca_now_ms();
	rig.a.virt = vhca_virt_free(rig.a.virt);
	assert_true(vhca_now_ms() - start < 20000); /* the copy takes a minute */
	assert_false(a.called);
	virt_host_limit_copy(&rig.a, 1000);
	virt_host_wait_event(&rig.b, VHCA_VIRT_RESUMED_MIGRATED, VIR_DOMAIN_EVENT_RESUMED_MIGRATED);
	assert_false(a.called);
}

#define CASE(fn) cmocka_unit_test_teardown(fn, case_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(guest_arrives_with_its_marker),
		CASE(what_was_expected_in_vain_is_closed),
		CASE(marker_can_be_changed_and_removed),
		CASE(persistent_domain_moves_for_good),
		CASE(paused_guest_arrives_paused),
		CASE(cancelled_copy_leaves_the_guest_here),
		CASE(cancelled_while_the_hook_thinks),
		CASE(incoming_guest_is_told_apart),
		CASE(copy_is_made_as_asked_for),
		CASE(disk_of_one_host_is_refused),
		CASE(block_job_is_refused),
		CASE(snapshot_is_refused),
		CASE(hook_refuses_in_its_own_words),
		CASE(peer_is_unreachable),
		CASE(peer_is_lost_during_the_copy),
		CASE(no_guest_no_migration),
		CASE(own_libvirtd_is_lost_during_the_copy),
		CASE(agent_goes_during_the_copy),
	};
	const char *why = access(LIBVIRTD_PATH, X_OK) < 0 || access(VIRT_HOST_QEMU, X_OK) < 0
				  ? "no " LIBVIRTD_PATH " or no " VIRT_HOST_QEMU
				  : sandbox_enter();

	if (why) {
		(void)printf("1..0 # SKIP %s\n", why);
		(void)fflush(stdout);
		/*
		 * Half-way into a new process namespace LeakSanitizer's helper would be its first
		 * process, and hang at exit.
		 */
		_exit(0);
	}
	vhca_log_set_level(VHCA_LOG_ERROR);
	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
