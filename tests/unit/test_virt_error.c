/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/virt_error.h"

#include "agent/virt_event.h"
#include "common/base/cleanup.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include <libvirt/virterror.h>

/* Messages as libvirt 9.0 with QEMU 7.2 sent them. */
static const struct {
	int code;
	const char *message, *word;
	enum vhca_err kind;
	int errnum;
	bool retryable;
} cases[] = {
	{VIR_ERR_NO_DOMAIN, "Domain not found: no domain with matching uuid", "domain_gone",
	 VHCA_ERR_NOT_FOUND, ENOENT, false},
	{VIR_ERR_OPERATION_INVALID, "Requested operation is not valid: domain is not running",
	 "domain_gone", VHCA_ERR_NOT_FOUND, ENOENT, false},
	{VIR_ERR_OPERATION_INVALID,
	 "Requested operation is not valid: PCI device 0000:01:00.1 is in use by driver QEMU, "
	 "domain vm1",
	 "vf_in_use", VHCA_ERR_CONFLICT, EBUSY, false},
	{VIR_ERR_OPERATION_INVALID,
	 "Requested operation is not valid: Unmanaged PCI device 0000:01:00.1 must be manually "
	 "detached from the host",
	 "vf_not_bound", VHCA_ERR_DEVICE, ENODEV, false},
	{VIR_ERR_OPERATION_INVALID, "Requested operation is not valid: something new", "libvirt",
	 VHCA_ERR_DEVICE, EIO, false},
	{VIR_ERR_DEVICE_MISSING, "device not found: host pci device 0000:01:00.1 not found",
	 "no_such_alias", VHCA_ERR_NOT_FOUND, ENOENT, false},
	{VIR_ERR_OPERATION_TIMEOUT,
	 "Timed out during operation: cannot acquire state change lock (held by "
	 "monitor=remoteDispatchDomainMigratePerform3Params)",
	 "job_held", VHCA_ERR_CONFLICT, EBUSY, true},
	{VIR_ERR_CONFIG_UNSUPPORTED,
	 "unsupported configuration: non unique alias detected: ua-vhca-ib0", "alias_in_use",
	 VHCA_ERR_CONFLICT, EEXIST, false},
	{VIR_ERR_CONFIG_UNSUPPORTED,
	 "unsupported configuration: host doesn't support passthrough of host PCI devices",
	 "no_passthrough", VHCA_ERR_DEVICE, EOPNOTSUPP, false},
	{VIR_ERR_INTERNAL_ERROR, "internal error: No more available PCI slots", "no_root_port",
	 VHCA_ERR_EXHAUSTED, ENOSPC, false},
	{VIR_ERR_INTERNAL_ERROR, "internal error: no device found with alias ua-vhca-ib0",
	 "no_such_alias", VHCA_ERR_NOT_FOUND, ENOENT, false},
	{VIR_ERR_INTERNAL_ERROR,
	 "internal error: unable to execute QEMU command 'device_del': Hot-unplug failed: guest is "
	 "busy (power indicator blinking)",
	 "guest_busy", VHCA_ERR_CONFLICT, EBUSY, true},
	{VIR_ERR_INTERNAL_ERROR,
	 "internal error: unable to execute QEMU command 'device_del': Device ua-nic0 is already "
	 "in the process of unplug",
	 "guest_busy", VHCA_ERR_CONFLICT, EBUSY, true},
	{VIR_ERR_INTERNAL_ERROR,
	 "internal error: unable to execute QEMU command 'device_add': vfio 0000:01:00.1: failed "
	 "to open /dev/vfio/6: Device or resource busy",
	 "vf_in_use", VHCA_ERR_CONFLICT, EBUSY, false},
	{VIR_ERR_INTERNAL_ERROR,
	 "internal error: unable to execute QEMU command 'device_add': vfio 0000:01:00.1: failed "
	 "to open /dev/vfio/7: No such file or directory",
	 "vf_not_bound", VHCA_ERR_DEVICE, ENODEV, false},
	{VIR_ERR_INTERNAL_ERROR, "internal error: client socket is closed", "libvirt_unreachable",
	 VHCA_ERR_UNAVAILABLE, ENOTCONN, true},
	{VIR_ERR_INTERNAL_ERROR, "internal error: qemu unexpectedly closed the monitor", "libvirt",
	 VHCA_ERR_DEVICE, EIO, false},
	{VIR_ERR_SYSTEM_ERROR,
	 "Failed to connect socket to '/var/run/libvirt/libvirt-sock': No such file or directory",
	 "libvirt_unreachable", VHCA_ERR_UNAVAILABLE, ENOTCONN, true},
	{VIR_ERR_SYSTEM_ERROR, "Cannot recv data: Connection reset by peer", "libvirt_unreachable",
	 VHCA_ERR_UNAVAILABLE, ENOTCONN, true},
	/* The daemon's own system errors say nothing about the connection. */
	{VIR_ERR_SYSTEM_ERROR, "Unable to set RLIMIT_MEMLOCK: Operation not permitted", "libvirt",
	 VHCA_ERR_DEVICE, EIO, false},
	{VIR_ERR_RPC, "Cannot write data: Broken pipe", "libvirt_unreachable", VHCA_ERR_UNAVAILABLE,
	 ENOTCONN, true},
	{VIR_ERR_OPERATION_DENIED,
	 "operation forbidden: read only access prevents virDomainAttachDevice", "libvirt_denied",
	 VHCA_ERR_DENIED, EACCES, false},
	{VIR_ERR_NO_SUPPORT, "this function is not supported by the connection driver", "libvirt",
	 VHCA_ERR_DEVICE, EOPNOTSUPP, false},
	{9999, "a code of the future", "libvirt", VHCA_ERR_DEVICE, EIO, false},
};

static void classifies_measured_messages(void **state)
{
	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		const struct vhca_virt_class *c =
			vhca_virt_classify(cases[i].code, cases[i].message);

		if (strcmp(c->word, cases[i].word) != 0)
			fail_msg("%d \"%s\": %s, not %s", cases[i].code, cases[i].message, c->word,
				 cases[i].word);
		assert_int_equal(c->kind, cases[i].kind);
		assert_int_equal(c->errnum, cases[i].errnum);
		assert_int_equal(c->retryable, cases[i].retryable);
	}
}

static void classifies_without_message(void **state)
{
	(void)state;
	assert_string_equal(vhca_virt_classify(VIR_ERR_NO_DOMAIN, NULL)->word, "domain_gone");
	assert_string_equal(vhca_virt_classify(VIR_ERR_INTERNAL_ERROR, NULL)->word, "libvirt");
	assert_string_equal(vhca_virt_classify(0, NULL)->word, "libvirt");
}

/* Where people have to do something, the error says what. */
static void permanent_errors_have_a_hint(void **state)
{
	static const char *const words[] = {"vf_in_use", "vf_not_bound", "no_passthrough",
					    "no_root_port"};
	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++)
		for (size_t w = 0; w < VHCA_ARRAY_SIZE(words); w++)
			if (strcmp(cases[i].word, words[w]) == 0)
				assert_non_null(
					vhca_virt_classify(cases[i].code, cases[i].message)->hint);
}

static void maps_lifecycle_events(void **state)
{
	(void)state;
	assert_int_equal(
		vhca_virt_lifecycle(VIR_DOMAIN_EVENT_STARTED, VIR_DOMAIN_EVENT_STARTED_BOOTED),
		VHCA_VIRT_STARTED);
	assert_int_equal(
		vhca_virt_lifecycle(VIR_DOMAIN_EVENT_STARTED, VIR_DOMAIN_EVENT_STARTED_RESTORED),
		VHCA_VIRT_STARTED);
	assert_int_equal(
		vhca_virt_lifecycle(VIR_DOMAIN_EVENT_STARTED, VIR_DOMAIN_EVENT_STARTED_MIGRATED),
		VHCA_VIRT_STARTED_MIGRATED);
	assert_int_equal(
		vhca_virt_lifecycle(VIR_DOMAIN_EVENT_RESUMED, VIR_DOMAIN_EVENT_RESUMED_MIGRATED),
		VHCA_VIRT_RESUMED);
	assert_int_equal(
		vhca_virt_lifecycle(VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_PAUSED),
		VHCA_VIRT_SUSPENDED);
	assert_int_equal(
		vhca_virt_lifecycle(VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_CRASHED),
		VHCA_VIRT_STOPPED);
	assert_int_equal(vhca_virt_lifecycle(VIR_DOMAIN_EVENT_DEFINED, 0), VHCA_VIRT_OTHER);
	assert_int_equal(vhca_virt_lifecycle(VIR_DOMAIN_EVENT_SHUTDOWN, 0), VHCA_VIRT_OTHER);
	assert_int_equal(vhca_virt_lifecycle(4711, 0), VHCA_VIRT_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classifies_measured_messages),
		cmocka_unit_test(classifies_without_message),
		cmocka_unit_test(permanent_errors_have_a_hint),
		cmocka_unit_test(maps_lifecycle_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
