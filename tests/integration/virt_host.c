/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/integration/virt_host.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <libvirt/virterror.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "tests/unit/unit.h"

/* ---- the guest ---- */

/*
 * A kernel that fills 32 MiB at 16 MiB with words that are not zero and stops: so much has to be
 * copied, and the copy can be made as slow as a case needs. Multiboot header (load at 1 MiB), then
 * code.
 */
#define FILL_WORD 0xdeadbeefu
#define FILL_LAST 0x02fffffcu
static const unsigned char kernel[] = {
	0x02, 0xb0, 0xad, 0x1b, 0x00, 0x00, 0x01, 0x00, /* magic, flags: addresses follow */
	0xfe, 0x4f, 0x51, 0xe4, 0x00, 0x00, 0x10, 0x00, /* checksum, header at */
	0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, /* load at, to the end of the file */
	0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x10, 0x00, /* no bss, entry */
	0xbf, 0x00, 0x00, 0x00, 0x01,			/* mov edi, 16 MiB */
	0xb9, 0x00, 0x00, 0x80, 0x00,			/* mov ecx, 32 MiB / 4 */
	0xb8, 0xef, 0xbe, 0xad, 0xde,			/* mov eax, FILL_WORD */
	0xfc, 0xf3, 0xab,				/* cld; rep stosd */
	0xfa, 0xf4, 0xeb, 0xfd,				/* cli; 1: hlt; jmp 1b */
};

static const char domain_format[] =
	"<domain type='qemu'><name>vm1</name><uuid>" VIRT_HOST_GUEST "</uuid>"
	"<metadata><vhca:infiniband xmlns:vhca='" VHCA_DOMAIN_NS "'>"
	"<vhca:vf name='ib0' partition='0x8001'/></vhca:infiniband></metadata>"
	"<memory unit='MiB'>64</memory>"
	"<os><type arch='x86_64' machine='q35'>hvm</type><kernel>%s/kernel</kernel></os>"
	"<features><acpi/></features>"
	"<devices><emulator>" VIRT_HOST_QEMU "</emulator>"
	"<controller type='usb' index='0' model='none'/><memballoon model='none'/>"
	"%s</devices></domain>";

/* ---- the host ---- */

static void record(void *arg, const struct vhca_virt_event_data *data)
{
	struct virt_host *host = arg;

	assert_true(host->n_events < VHCA_ARRAY_SIZE(host->events));
	host->events[host->n_events++] = *data;
}

static bool has_event(const struct virt_host *host, enum vhca_virt_event event, int detail)
{
	for (unsigned int i = 0; i < host->n_events; i++)
		if (host->events[i].event == event && host->events[i].detail == detail)
			return true;
	return false;
}

void virt_host_wait_event(const struct virt_host *host, enum vhca_virt_event event, int detail)
{
	uint64_t deadline = vhca_now_ms() + VIRT_HOST_WAIT_MS;

	while (!has_event(host, event, detail) && vhca_now_ms() < deadline)
		(void)vhca_loop_once(host->loop, 50);
	if (!has_event(host, event, detail))
		fail_msg("event %d/%d did not come", (int)event, detail);
}

static void write_text(const struct virt_host *host, const char *name, const char *text,
		       mode_t mode)
{
	libvirtd_write(&host->daemon, name, text, strlen(text), mode);
}

static void write_hook(const struct virt_host *host)
{
	const char *dir = host->daemon.dir;
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "#!/bin/sh\n"
		       "cat > '%s/hook.'$2\n"
		       "while [ $2 = migrate ] && [ -e '%s/wait' ]; do sleep 0.1; done\n"
		       "[ $2 = migrate ] && [ -e '%s/refuse' ] || exit 0\n"
		       "cat '%s/refuse' >&2\n"
		       "exit 1\n",
		       dir, dir, dir, dir);
	write_text(host, "etc/libvirt/hooks/qemu", text, 0755);
}

static void write_or_remove(const struct virt_host *host, const char *name, const char *text)
{
	char path[128];

	if (text) {
		write_text(host, name, text, 0644);
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/%s", host->daemon.dir, name);
	assert_int_equal(unlink(path), 0);
}

void virt_host_refuse(const struct virt_host *host, const char *words)
{
	write_or_remove(host, "refuse", words);
}

void virt_host_hook_waits(const struct virt_host *host, bool waits)
{
	write_or_remove(host, "wait", waits ? "" : NULL);
}

char *virt_host_hook_input(const struct virt_host *host, const char *operation)
{
	char path[128];
	char *text;
	size_t len;

	(void)snprintf(path, sizeof(path), "%s/hook.%s", host->daemon.dir, operation);
	assert_int_equal(vhca_read_file(path, 1024 * 1024, &text, &len), 0);
	return text;
}

static void operator_open(struct virt_host *host)
{
	host->conn = virConnectOpen(host->uri);
	assert_non_null(host->conn);
}

void virt_host_open(struct virt_host *host, struct vhca_loop *loop, const char *host_uuid)
{
	char conf[128];

	host->loop = loop;
	libvirtd_init(&host->daemon);
	host->daemon.own_etc = true;
	(void)snprintf(conf, sizeof(conf), "host_uuid = \"%s\"\n", host_uuid);
	write_text(host, "libvirt/libvirtd.conf", conf, 0644);
	/* QEMU's output goes through virtlogd otherwise, which no session of ours has. */
	write_text(host, "libvirt/qemu.conf", "stdio_handler = \"file\"\n", 0644);
	write_hook(host);
	libvirtd_write(&host->daemon, "kernel", kernel, sizeof(kernel), 0644);
	libvirtd_start(&host->daemon);
	(void)snprintf(host->uri, sizeof(host->uri), "qemu+unix:///session?socket=%s",
		       host->daemon.socket);
	assert_int_equal(vhca_virt_new(host->loop, host->uri, record, host, &host->virt), 0);
	virt_host_wait_event(host, VHCA_VIRT_CONNECTED, 0);
	operator_open(host);
}

void virt_host_close(struct virt_host *host)
{
	host->virt = vhca_virt_free(host->virt);
	if (host->conn)
		(void)virConnectClose(host->conn);
	libvirtd_done(&host->daemon);
}

void virt_host_lose_libvirtd(struct virt_host *host)
{
	(void)virConnectClose(host->conn);
	host->conn = NULL;
	libvirtd_kill(&host->daemon);
}

void virt_host_restart_libvirtd(struct virt_host *host)
{
	host->n_events = 0;
	libvirtd_start(&host->daemon);
	virt_host_wait_event(host, VHCA_VIRT_CONNECTED, 0);
	operator_open(host);
}

/* ---- the operator and the guest ---- */

virDomainPtr virt_host_find_guest(const struct virt_host *host)
{
	struct vhca_uuid uuid;

	assert_int_equal(vhca_uuid_parse(VIRT_HOST_GUEST, &uuid), 0);
	return virDomainLookupByUUID(host->conn, uuid.b);
}

static void wait_filled(virDomainPtr dom)
{
	uint64_t deadline = vhca_now_ms() + VIRT_HOST_WAIT_MS;
	uint32_t word = 0;

	while (word != FILL_WORD && vhca_now_ms() < deadline) {
		assert_int_equal(virDomainMemoryPeek(dom, FILL_LAST, sizeof(word), &word,
						     VIR_MEMORY_PHYSICAL),
				 0);
		(void)usleep(50000);
	}
	assert_int_equal(word, FILL_WORD);
}

void virt_host_make_image(const struct virt_host *host, const char *name, char buf[static 128])
{
	write_text(host, name, "", 0666); /* QEMU may be another user */
	(void)snprintf(buf, 128, "%s/%s", host->daemon.dir, name);
	assert_int_equal(truncate(buf, 1024 * 1024), 0);
}

void virt_host_start_guest(const struct virt_host *host, bool persistent)
{
	virt_host_start_with(host, persistent, "");
}

void virt_host_start_with(const struct virt_host *host, bool persistent, const char *devices)
{
	char xml[2048];
	virDomainPtr dom;

	(void)snprintf(xml, sizeof(xml), domain_format, host->daemon.dir, devices);
	dom = persistent ? virDomainDefineXML(host->conn, xml)
			 : virDomainCreateXML(host->conn, xml, 0);
	if (!dom || (persistent && virDomainCreate(dom) < 0))
		fail_msg("%s", virGetLastErrorMessage());
	wait_filled(dom);
	(void)virDomainFree(dom);
}

void virt_host_limit_copy(const struct virt_host *host, unsigned long mib_per_s)
{
	virDomainPtr dom = virt_host_find_guest(host);

	assert_non_null(dom);
	assert_int_equal(virDomainMigrateSetMaxSpeed(dom, mib_per_s, 0), 0);
	(void)virDomainFree(dom);
}

void virt_host_remove_guest(const struct virt_host *host)
{
	virDomainPtr dom = virt_host_find_guest(host);

	if (!dom)
		return;
	(void)virDomainDestroy(dom);
	(void)virDomainUndefine(dom); /* fails for a transient one, which is gone by now */
	(void)virDomainFree(dom);
}
