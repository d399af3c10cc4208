/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Attach and detach. libvirt 9.0's test driver has neither, so the functions that matter are
 * defined here and take precedence over the library's; all others are libvirt's own on
 * test:///default.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libvirt/virterror.h>

#include "agent/libvirt/call.h"
#include "common/base/cleanup.h"
#include "tests/unit/unit.h"

#define UUID_TEXT "6695eb01-f6a4-8304-79aa-97f2502e193f" /* of test:///default's domain */
#define PORT(n)	  "<controller type='pci' model='pcie-root-port' index='" #n "'/>"

/* ---- the fakes ---- */

static struct {
	const char *devices; /* inside <devices>; NULL: libvirt's own XML */
	const char *id;	     /* attribute of <domain> */
	int xml_code;	     /* its XML cannot be had */
	const char *xml_message;
	bool dead;    /* the connection */
	bool stopped; /* the domain */
	int state, reason;
	virError error;
	bool has_error;
	unsigned int attaches, detaches, flags;
	char xml[VHCA_HOSTDEV_XML_MAX], alias[80];
} fake;

static int fail_with(int code, const char *message)
{
	fake.error = (virError){.code = code, .message = (char *)(uintptr_t)message};
	fake.has_error = code != 0;
	return code ? -1 : 0;
}

/* What the next attach or detach says. */
static int next_code;
static const char *next_message;

/* As libvirt's does: every public function forgets the last error. */
const char *virDomainGetName(virDomainPtr dom)
{
	(void)dom;
	fake.has_error = false;
	return "vm1";
}

virErrorPtr virGetLastError(void)
{
	return fake.has_error ? &fake.error : NULL;
}

char *virDomainGetXMLDesc(virDomainPtr dom, unsigned int flags)
{
	char *xml = NULL;

	(void)dom;
	assert_int_equal(flags, 0);
	if (fake.xml_code) {
		(void)fail_with(fake.xml_code, fake.xml_message);
		return NULL;
	}
	if (!fake.devices) {
		(void)fail_with(VIR_ERR_NO_DOMAIN, "Domain not found");
		return NULL;
	}
	assert_true(asprintf(&xml,
			     "<domain %s><name>vm1</name><uuid>" UUID_TEXT
			     "</uuid><devices>%s</devices>"
			     "</domain>",
			     fake.id, fake.devices) > 0);
	return xml;
}

int virDomainGetState(virDomainPtr dom, int *state, int *reason, unsigned int flags)
{
	(void)dom;
	(void)flags;
	*state = fake.state;
	*reason = fake.reason;
	return 0;
}

int virDomainIsActive(virDomainPtr dom)
{
	(void)dom;
	return !fake.stopped;
}

int virConnectIsAlive(virConnectPtr conn)
{
	(void)conn;
	return !fake.dead;
}

int virDomainAttachDeviceFlags(virDomainPtr dom, const char *xml, unsigned int flags)
{
	(void)dom;
	fake.attaches++;
	fake.flags = flags;
	assert_int_equal(vhca_strcpy(fake.xml, sizeof(fake.xml), xml), 0);
	return fail_with(next_code, next_message);
}

int virDomainDetachDeviceAlias(virDomainPtr dom, const char *alias, unsigned int flags)
{
	(void)dom;
	fake.detaches++;
	fake.flags = flags;
	assert_int_equal(vhca_strcpy(fake.alias, sizeof(fake.alias), alias), 0);
	return fail_with(next_code, next_message);
}

/* ---- fixture ---- */

static struct vhca_error err;
static struct vhca_uuid uuid;
static const struct vhca_dom_hostdev vf = {.host = {.bus = 0x3b, .fn = 2}, .alias = "ua-vhca-ib0"};

static int setup(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.devices = PORT(1);
	fake.id = "id='3'";
	fake.state = VIR_DOMAIN_RUNNING;
	next_code = 0;
	next_message = NULL;
	err = (struct vhca_error)VHCA_ERROR_INIT;
	assert_int_equal(vhca_uuid_parse(UUID_TEXT, &uuid), 0);
	*state = virConnectOpen("test:///default");
	assert_non_null(*state);
	return 0;
}

static int teardown(void **state)
{
	(void)virConnectClose(*state);
	return 0;
}

/* ---- cases ---- */

static void attaches_live_only(void **state)
{
	assert_int_equal(virt_call_attach(*state, &uuid, &vf, NULL, &err), 0);
	assert_int_equal(fake.attaches, 1);
	assert_int_equal(fake.flags, VIR_DOMAIN_AFFECT_LIVE);
	assert_non_null(strstr(fake.xml, "<alias name='ua-vhca-ib0'/>"));
	assert_non_null(strstr(fake.xml, "bus='0x3b' slot='0x00' function='0x2'"));
	assert_non_null(strstr(fake.xml, "managed='no'"));
	assert_null(strstr(fake.xml, "type='pci' domain"));
}

static void attaches_at_the_guest_address(void **state)
{
	struct vhca_dom_hostdev at = vf;

	at.has_guest_addr = true;
	at.guest = (struct vhca_bdf){.bus = 5};
	assert_int_equal(virt_call_attach(*state, &uuid, &at, NULL, &err), 0);
	assert_non_null(strstr(fake.xml, "<address type='pci' domain='0x0000' bus='0x05'"));
}

#define HOSTDEV(fn)                                                                             \
	"<hostdev mode='subsystem' type='pci'><source><address domain='0' bus='0x3b' slot='0' " \
	"function='" fn "'/></source><alias name='ua-vhca-ib0'/></hostdev>"

static void attached_already_is_success(void **state)
{
	fake.devices = HOSTDEV("2");
	assert_int_equal(virt_call_attach(*state, &uuid, &vf, NULL, &err), 0);
	assert_int_equal(fake.attaches, 0);
}

static void alias_of_another_device_is_a_conflict(void **state)
{
	fake.devices = HOSTDEV("3");
	assert_int_equal(virt_call_attach(*state, &uuid, &vf, NULL, &err), -EEXIST);
	assert_int_equal(fake.attaches, 0);
	assert_string_equal(err.code, "alias_in_use");
	assert_non_null(strstr(err.msg, "ua-vhca-ib0 is 0000:3b:00.3 already, not 0000:3b:00.2"));
}

static void inactive_domain_gets_nothing(void **state)
{
	fake.id = "";
	assert_int_equal(virt_call_attach(*state, &uuid, &vf, NULL, &err), -ENOENT);
	assert_int_equal(fake.attaches, 0);
	assert_string_equal(err.code, "domain_gone");
}

static void unknown_domain_gets_nothing(void **state)
{
	uuid.b[0] ^= 1;
	(void)fail_with(VIR_ERR_NO_DOMAIN, "Domain not found");
	assert_int_equal(virt_call_attach(*state, &uuid, &vf, NULL, &err), -ENOENT);
	assert_int_equal(virt_call_detach(*state, &uuid, vf.alias, &err), -ENOENT);
	assert_int_equal(fake.attaches + fake.detaches, 0);
	assert_string_equal(err.code, "domain_gone");
}

static void bad_name_never_reaches_libvirt(void **state)
{
	struct vhca_dom_hostdev bad = vf;

	(void)snprintf(bad.alias, sizeof(bad.alias), "ua-vhca-a'/><b");
	assert_int_equal(virt_call_attach(*state, &uuid, &bad, NULL, &err), -EINVAL);
	assert_int_equal(fake.attaches, 0);
}

static void no_slot_is_told_with_figures(void **state)
{
	fake.devices = PORT(1) PORT(
		2) "<memballoon><address type='pci' bus='0x01' slot='0' function='0'/></memballoon>"
		   "<rng><address type='pci' bus='0x02' slot='0' function='0'/></rng>";
	next_code = VIR_ERR_INTERNAL_ERROR;
	next_message = "internal error: No more available PCI slots";
	assert_int_equal(virt_call_attach(*state, &uuid, &vf, NULL, &err), -ENOSPC);
	assert_string_equal(err.code, "no_root_port");
	assert_int_equal(err.kind, VHCA_ERR_EXHAUSTED);
	assert_non_null(strstr(err.msg, "2 pcie-root-ports, 0 free"));
	assert_non_null(strstr(err.hint, "pcie-root-port"));
}

static void attach_errors_are_classified(void **state)
{
	next_code = VIR_ERR_OPERATION_TIMEOUT;
	next_message = "Timed out during operation: cannot acquire state change lock";
	assert_int_equal(virt_call_attach(*state, &uuid, &vf, NULL, &err), -EBUSY);
	assert_string_equal(err.code, "job_held");
	assert_non_null(
		strstr(err.msg, "domain vm1: attach 0000:3b:00.2 as ua-vhca-ib0: Timed out"));
}

/* Whatever the words are: nobody has answered. What libvirt did answer counts, though it went
 * after it. */
static void nobody_answers_on_a_dead_connection(void **state)
{
	next_code = VIR_ERR_SYSTEM_ERROR;
	next_message = "words of the future: Input/output error";
	fake.dead = true;
	assert_int_equal(virt_call_attach(*state, &uuid, &vf, NULL, &err), -ENOTCONN);
	assert_string_equal(err.code, "libvirt_unreachable");
	assert_non_null(strstr(err.msg, next_message));
	assert_int_equal(virt_call_detach(*state, &uuid, vf.alias, &err), -ENOTCONN);
	next_code = VIR_ERR_OPERATION_INVALID;
	next_message = "Requested operation is not valid: PCI device 0000:3b:00.2 is in use by "
		       "driver QEMU, domain vm2";
	assert_int_equal(virt_call_attach(*state, &uuid, &vf, NULL, &err), -EBUSY);
	assert_string_equal(err.code, "vf_in_use");
}

static void detaches_by_alias(void **state)
{
	assert_int_equal(virt_call_detach(*state, &uuid, vf.alias, &err), 0);
	assert_int_equal(fake.detaches, 1);
	assert_int_equal(fake.flags, VIR_DOMAIN_AFFECT_LIVE);
	assert_string_equal(fake.alias, "ua-vhca-ib0");
}

static void detach_errors_are_classified(void **state)
{
	static const struct {
		int code;
		const char *message, *word;
		int rc;
	} cases[] = {
		{VIR_ERR_INTERNAL_ERROR, "internal error: no device found with alias ua-vhca-ib0",
		 "no_such_alias", -ENOENT},
		{VIR_ERR_INTERNAL_ERROR,
		 "Hot-unplug failed: guest is busy (power indicator blinking)", "guest_busy",
		 -EBUSY},
		{VIR_ERR_OPERATION_INVALID,
		 "Requested operation is not valid: domain is not running", "domain_gone", -ENOENT},
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		next_code = cases[i].code;
		next_message = cases[i].message;
		assert_int_equal(virt_call_detach(*state, &uuid, vf.alias, &err), cases[i].rc);
		assert_string_equal(err.code, cases[i].word);
		assert_int_equal(err.errnum, -cases[i].rc);
		assert_non_null(strstr(err.msg, "domain vm1: detach ua-vhca-ib0: "));
		assert_non_null(strstr(err.msg, cases[i].message));
	}
}

static void list_has_the_domains(void **state)
{
	struct vhca_dom_list list = {NULL, 0};

	assert_int_equal(virt_call_list(*state, &list, &err), 0);
	assert_int_equal(list.n, 1);
	assert_int_equal(list.info[0]->id, 3);
	assert_int_equal(list.info[0]->unreadable.kind, VHCA_ERR_NONE);
	vhca_dom_list_done(&list);
}

/* By list and alone: it has its place, with the reason. */
static void assert_is_unreadable(virConnectPtr conn, const char *code, const char *why)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = NULL;
	struct vhca_dom_list list = {NULL, 0};

	assert_int_equal(virt_call_list(conn, &list, &err), 0);
	assert_int_equal(list.n, 1);
	assert_string_equal(list.info[0]->unreadable.code, code);
	assert_int_equal(virt_call_info(conn, &uuid, &info, &err), 0);
	assert_string_equal(info->unreadable.code, code);
	assert_non_null(strstr(info->unreadable.msg, why));
	assert_string_equal(info->name, "vm1");
	assert_true(vhca_uuid_equal(&info->uuid, &uuid));
	assert_int_equal(info->n_hostdevs, 0);
	assert_int_equal(info->n_requests, 0);
	vhca_dom_list_done(&list);
}

static void unreadable_domain_does_not_spoil_the_list(void **state)
{
	fake.devices = "<hostdev mode='subsystem' type='pci'/>";
	assert_is_unreadable(*state, "bad_domain_xml", "without a readable <source> address");
}

/* libvirtd's answer where the XML has more than REMOTE_STRING_MAX (4 MiB, remote_protocol.x):
 * raised in virNetMessageEncodePayload(), and the connection stays. */
static void domain_too_large_for_libvirtd_is_unreadable(void **state)
{
	fake.xml_code = VIR_ERR_RPC;
	fake.xml_message = "Unable to encode message payload";
	assert_is_unreadable(*state, "libvirt_unreachable", "Unable to encode message payload");
}

/* Paused until somebody resumes it; not what libvirt does to it in a job, and not for a
 * migration. */
static void knows_a_paused_guest(void **state)
{
	static const struct {
		int state, reason;
		bool paused, held;
	} cases[] = {
		{VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_BOOTED, false, false},
		{VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_USER, true, false},
		{VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_IOERROR, true, false},
		{VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_SAVE, false, false},
		{VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_DUMP, false, false},
		{VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_SNAPSHOT, false, false},
		{VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_STARTING_UP, false, false},
		{VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_SHUTTING_DOWN, false, false},
		{VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_MIGRATION, false, true},
		{VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_POSTCOPY_FAILED, false, true},
		{VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_POSTCOPY, false, true},
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		VHCA_AUTO_FREE struct vhca_dom_info *info = NULL;

		fake.state = cases[i].state;
		fake.reason = cases[i].reason;
		assert_int_equal(virt_call_info(*state, &uuid, &info, &err), 0);
		assert_int_equal(info->paused, cases[i].paused);
		assert_int_equal(info->held, cases[i].held);
	}
}

static void lost_connection_makes_no_domain_unreadable(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = NULL;
	struct vhca_dom_list list = {NULL, 0};

	fake.xml_code = VIR_ERR_INTERNAL_ERROR;
	fake.xml_message = "internal error: client socket is closed";
	fake.dead = true;
	assert_int_equal(virt_call_list(*state, &list, &err), -ENOTCONN);
	assert_int_equal(list.n, 0);
	assert_int_equal(virt_call_info(*state, &uuid, &info, &err), -ENOTCONN);
	assert_string_equal(err.code, "libvirt_unreachable");
}

/* libvirt answers with the stored XML of a domain that has stopped. */
static void stopped_domain_is_not_unreadable(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = NULL;

	fake.devices = "<hostdev mode='subsystem' type='pci'/>";
	fake.stopped = true;
	assert_int_equal(virt_call_info(*state, &uuid, &info, &err), -ENOENT);
	assert_string_equal(err.code, "domain_gone");
}

static void unreadable_domain_gets_nothing(void **state)
{
	fake.devices = "<hostdev mode='subsystem' type='pci'/>";
	assert_int_equal(virt_call_attach(*state, &uuid, &vf, NULL, &err), -EINVAL);
	assert_int_equal(fake.attaches, 0);
}

static void domain_that_stops_during_the_list_is_left_out(void **state)
{
	struct vhca_dom_list list = {NULL, 0};

	fake.devices = NULL;
	assert_int_equal(virt_call_list(*state, &list, &err), 0);
	assert_int_equal(list.n, 0);
	vhca_dom_list_done(&list);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(attaches_live_only),
		CASE(attaches_at_the_guest_address),
		CASE(attached_already_is_success),
		CASE(alias_of_another_device_is_a_conflict),
		CASE(inactive_domain_gets_nothing),
		CASE(unknown_domain_gets_nothing),
		CASE(bad_name_never_reaches_libvirt),
		CASE(no_slot_is_told_with_figures),
		CASE(attach_errors_are_classified),
		CASE(nobody_answers_on_a_dead_connection),
		CASE(detaches_by_alias),
		CASE(detach_errors_are_classified),
		CASE(list_has_the_domains),
		CASE(unreadable_domain_does_not_spoil_the_list),
		CASE(domain_too_large_for_libvirtd_is_unreadable),
		CASE(knows_a_paused_guest),
		CASE(lost_connection_makes_no_domain_unreadable),
		CASE(stopped_domain_is_not_unreadable),
		CASE(unreadable_domain_gets_nothing),
		CASE(domain_that_stops_during_the_list_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
