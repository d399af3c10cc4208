/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The libvirt adapter with a real QEMU (TCG, no guest system): the device events that libvirt's
 * test driver lacks, and whether agent/libvirt/error.c still knows the words of the libvirt and
 * QEMU that are installed. An rng device plays the VF. One guest serves all cases, in order.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include "agent/libvirt/error.h"
#include "agent/libvirt/virt.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "tests/integration/libvirtd.h"
#include "tests/unit/unit.h"

#define QEMU	"/usr/bin/qemu-system-x86_64"
#define WAIT_MS 60000
#define UUID	"6b3e0f5c-1111-4222-8333-0123456789ab"

/*
 * Three root ports, of which the two for hot-plug are free: nothing else in this guest is on PCI
 * Express.
 */
static const char domain_xml[] =
	"<domain type='qemu'><name>vm1</name><uuid>" UUID "</uuid>"
	"<metadata><vhca:infiniband xmlns:vhca='" VHCA_DOMAIN_NS "'>"
	"<vhca:vf name='ib0' partition='0x8001'/></vhca:infiniband></metadata>"
	"<memory unit='MiB'>32</memory>"
	"<os><type arch='x86_64' machine='q35'>hvm</type></os>"
	"<features><acpi/></features>"
	"<devices><emulator>" QEMU "</emulator>"
	"<controller type='pci' index='0' model='pcie-root'/>"
	"<controller type='pci' index='1' model='pcie-root-port'/>"
	"<controller type='pci' index='2' model='pcie-root-port'/>"
	"<controller type='pci' index='3' model='pcie-root-port'><target "
	"hotplug='off'/></controller>"
	"<controller type='virtio-serial' index='0'>"
	"<address type='pci' domain='0' bus='3' slot='0' function='0'/></controller>"
	"<controller type='usb' index='0' model='none'/><memballoon model='none'/>"
	"</devices></domain>";

static struct {
	struct libvirtd daemon;
	char uri[192];
	struct vhca_loop *loop;
	struct vhca_virt *virt;
	struct vhca_uuid uuid;
	virConnectPtr conn; /* the operator's */
	virDomainPtr dom;
	unsigned int n_events;
	struct vhca_virt_event_data events[256];
} rig;

/* ---- fixture ---- */

static void record(void *arg, const struct vhca_virt_event_data *data)
{
	(void)arg;
	assert_true(rig.n_events < VHCA_ARRAY_SIZE(rig.events));
	rig.events[rig.n_events++] = *data;
}

static bool has_event(enum vhca_virt_event event, const char *alias)
{
	for (unsigned int i = 0; i < rig.n_events; i++)
		if (rig.events[i].event == event && strcmp(rig.events[i].alias, alias) == 0)
			return true;
	return false;
}

static void wait_event(enum vhca_virt_event event, const char *alias)
{
	uint64_t deadline = vhca_now_ms() + WAIT_MS;

	while (!has_event(event, alias) && vhca_now_ms() < deadline)
		(void)vhca_loop_once(rig.loop, 50);
	if (!has_event(event, alias))
		fail_msg("event %d %s did not come", (int)event, alias);
}

/* QEMU's output goes through virtlogd otherwise, which no session of ours has. */
static void write_qemu_conf(void)
{
	static const char text[] = "stdio_handler = \"file\"\n";

	libvirtd_write(&rig.daemon, "libvirt/qemu.conf", text, strlen(text), 0644);
}

static int group_setup(void **state)
{
	(void)state;
	libvirtd_init(&rig.daemon);
	rig.daemon.death_signal = SIGTERM; /* so that it takes the guest along */
	write_qemu_conf();
	libvirtd_start(&rig.daemon);
	(void)snprintf(rig.uri, sizeof(rig.uri), "qemu+unix:///session?socket=%s",
		       rig.daemon.socket);
	assert_int_equal(vhca_uuid_parse(UUID, &rig.uuid), 0);
	assert_int_equal(vhca_loop_new(&rig.loop), 0);
	assert_int_equal(vhca_virt_new(rig.loop, rig.uri, record, NULL, &rig.virt), 0);
	wait_event(VHCA_VIRT_CONNECTED, "");
	rig.conn = virConnectOpen(rig.uri);
	assert_non_null(rig.conn);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	if (rig.dom) {
		(void)virDomainDestroy(rig.dom);
		(void)virDomainFree(rig.dom);
	}
	(void)virConnectClose(rig.conn);
	rig.virt = vhca_virt_free(rig.virt);
	rig.loop = vhca_loop_free(rig.loop);
	libvirtd_done(&rig.daemon);
	return 0;
}

/* ---- calls ---- */

struct answer {
	bool called;
	int rc;
	struct vhca_dom_info info;
	struct vhca_error err;
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

static void on_done(void *arg, int rc, const struct vhca_error *err)
{
	*(struct answer *)arg = (struct answer){.called = true, .rc = rc, .err = *err};
}

static void wait_answer(const struct answer *a)
{
	uint64_t deadline = vhca_now_ms() + WAIT_MS;

	while (!a->called && vhca_now_ms() < deadline)
		(void)vhca_loop_once(rig.loop, 50);
	assert_true(a->called);
}

static struct answer info_now(void)
{
	struct answer a = {.called = false};

	vhca_virt_info(rig.virt, &rig.uuid, on_info, &a);
	wait_answer(&a);
	return a;
}

static struct answer detach_now(const char *alias)
{
	struct answer a = {.called = false};

	vhca_virt_detach(rig.virt, &rig.uuid, alias, on_done, &a);
	wait_answer(&a);
	return a;
}

static void on_qga(void *arg, int rc, const struct vhca_qga_answer *answer,
		   const struct vhca_error *err)
{
	(void)answer;
	on_done(arg, rc, err);
}

static struct answer ask_guest_now(void)
{
	static const struct vhca_qga_ask ask = {.path = {.n = 2, .hops = {{.dev = 1}, {0, 0}}}};
	struct answer a = {.called = false};

	vhca_virt_qga(rig.virt, &rig.uuid, &ask, on_qga, &a);
	wait_answer(&a);
	assert_true(a.rc < 0);
	return a;
}

/* What the operator plugs in. Returns 0 or -1 with libvirt's error set. */
static int plug_rng(const char *alias)
{
	char xml[256];

	(void)snprintf(xml, sizeof(xml),
		       "<rng model='virtio'><backend model='random'>/dev/urandom</backend>"
		       "<alias name='%s'/></rng>",
		       alias);
	return virDomainAttachDeviceFlags(rig.dom, xml, VIR_DOMAIN_AFFECT_LIVE);
}

static const char *word_of_last_error(void)
{
	return virt_classify(virGetLastErrorCode(), virGetLastErrorMessage())->word;
}

/* ---- cases ---- */

static void start_is_reported(void **state)
{
	struct answer a;

	(void)state;
	rig.dom = virDomainCreateXML(rig.conn, domain_xml, VIR_DOMAIN_START_AUTODESTROY);
	if (!rig.dom)
		fail_msg("%s", virGetLastErrorMessage());
	wait_event(VHCA_VIRT_STARTED, "");
	a = info_now();
	assert_int_equal(a.rc, 0);
	assert_int_equal(a.info.n_requests, 1);
	assert_int_equal(a.info.memory.kib, 32 * 1024);
	assert_int_equal(a.info.root_ports, 3);
	assert_int_equal(a.info.free_root_ports, 2);
	assert_int_equal(a.info.n_hostdevs, 0);
}

static void plug_is_reported_with_its_alias(void **state)
{
	(void)state;
	assert_int_equal(plug_rng("ua-vhca-ib0"), 0);
	wait_event(VHCA_VIRT_DEVICE_ADDED, "ua-vhca-ib0");
	assert_int_equal(info_now().info.free_root_ports, 1);
}

static void second_device_with_the_alias_is_told_apart(void **state)
{
	(void)state;
	assert_int_equal(plug_rng("ua-vhca-ib0"), -1);
	assert_string_equal(word_of_last_error(), "alias_in_use");
}

static void full_ports_are_told_apart(void **state)
{
	(void)state;
	assert_int_equal(plug_rng("ua-vhca-ib1"), 0);
	assert_int_equal(info_now().info.free_root_ports, 0);
	assert_int_equal(plug_rng("ua-vhca-ib2"), -1);
	assert_string_equal(word_of_last_error(), "no_root_port");
}

static void unknown_alias_is_told_apart(void **state)
{
	struct answer a = detach_now("ua-vhca-nobody");

	(void)state;
	if (a.rc != -ENOENT)
		fail_msg("%s", a.err.msg);
	assert_string_equal(a.err.code, "no_such_alias");
}

/*
 * Nobody in the guest hears the request; it takes effect at the reset. Until then nothing is gone,
 * whatever was returned.
 */
static void unplug_is_reported_when_it_happens(void **state)
{
	struct answer a = detach_now("ua-vhca-ib0");

	(void)state;
	assert_int_equal(a.rc, 0);
	for (unsigned int i = 0; i < 10; i++)
		(void)vhca_loop_once(rig.loop, 50);
	assert_false(has_event(VHCA_VIRT_DEVICE_REMOVED, "ua-vhca-ib0"));
	assert_int_equal(info_now().info.free_root_ports, 0);
	assert_int_equal(virDomainReset(rig.dom, 0), 0);
	wait_event(VHCA_VIRT_DEVICE_REMOVED, "ua-vhca-ib0");
	assert_int_equal(info_now().info.free_root_ports, 1);
	assert_false(has_event(VHCA_VIRT_DEVICE_REMOVED, "ua-vhca-ib1"));
}

/* There is no system in this guest, so none of its agents is ever there. */
static void missing_guest_agent_is_told_apart(void **state)
{
	static const char channel[] = "<channel type='unix'><target type='virtio' "
				      "name='org.qemu.guest_agent.0'/></channel>";

	(void)state;
	assert_string_equal(ask_guest_now().err.code, "no_guest_agent");
	if (virDomainAttachDeviceFlags(rig.dom, channel, VIR_DOMAIN_AFFECT_LIVE) < 0)
		fail_msg("%s", virGetLastErrorMessage());
	assert_string_equal(ask_guest_now().err.code, "guest_agent_silent");
}

static void a_vf_that_is_no_device_is_an_error(void **state)
{
	struct answer a = {.called = false};

	(void)state;
	vhca_virt_attach(rig.virt, &rig.uuid,
			 (struct vhca_bdf){.domain = 0xffff, .bus = 0xff, .dev = 0x1f, .fn = 7},
			 "ib9", NULL, on_done, &a);
	wait_answer(&a);
	assert_true(a.rc < 0);
	assert_non_null(strstr(a.err.msg, "domain vm1: attach ffff:ff:1f.7 as ua-vhca-ib9"));
	assert_int_equal(info_now().info.n_hostdevs, 0);
}

static void stop_is_reported(void **state)
{
	struct answer a;

	(void)state;
	assert_int_equal(virDomainDestroy(rig.dom), 0);
	wait_event(VHCA_VIRT_STOPPED, "");
	a = info_now();
	assert_int_equal(a.rc, -ESRCH); /* nor is it defined */
	assert_string_equal(a.err.code, "domain_gone");
	a = detach_now("ua-vhca-ib1");
	assert_int_equal(a.rc, -ENOENT);
	assert_string_equal(a.err.code, "domain_gone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start_is_reported),
		cmocka_unit_test(plug_is_reported_with_its_alias),
		cmocka_unit_test(second_device_with_the_alias_is_told_apart),
		cmocka_unit_test(full_ports_are_told_apart),
		cmocka_unit_test(unknown_alias_is_told_apart),
		cmocka_unit_test(unplug_is_reported_when_it_happens),
		cmocka_unit_test(missing_guest_agent_is_told_apart),
		cmocka_unit_test(a_vf_that_is_no_device_is_an_error),
		cmocka_unit_test(stop_is_reported),
	};

	if (access(LIBVIRTD_PATH, X_OK) < 0 || access(QEMU, X_OK) < 0) {
		(void)printf("1..0 # SKIP no " LIBVIRTD_PATH " or no " QEMU "\n");
		return 0;
	}
	vhca_log_set_level(VHCA_LOG_ERROR);
	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
