/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include <libvirt/virterror.h>

#include "agent/libvirt/error.h"
#include "agent/libvirt/event.h"
#include "common/base/cleanup.h"
#include "tests/unit/unit.h"

struct error_case {
	int code;
	const char *message, *word;
	enum vhca_err kind;
	int errnum;
	bool retryable;
};

/* Messages as libvirt 9.0 with QEMU 7.2 sent them. */
static const struct error_case cases[] = {
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
	{VIR_ERR_XML_ERROR, "XML error: Attempted double use of PCI Address 0000:07:00.0",
	 "guest_address_in_use", VHCA_ERR_CONFLICT, EBUSY, false},
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
	{VIR_ERR_INTERNAL_ERROR,
	 "internal error: unable to execute QEMU command 'device_add': vfio 0000:01:00.1: failed "
	 "to setup container for group 6: memory listener initialization failed: Region pc.ram: "
	 "vfio_dma_map(0x55d0a1b2c3d0, 0x0, 0x80000000, 0x7f3a40000000) = -12 (Cannot allocate "
	 "memory)",
	 "memory_not_pinned", VHCA_ERR_CONFLICT, ENOMEM, false},
	{VIR_ERR_INTERNAL_ERROR, "internal error: client socket is closed", "libvirt_unreachable",
	 VHCA_ERR_UNAVAILABLE, ENOTCONN, true},
	{VIR_ERR_INTERNAL_ERROR, "internal error: qemu unexpectedly closed the monitor", "libvirt",
	 VHCA_ERR_DEVICE, EIO, false},
	{VIR_ERR_SYSTEM_ERROR,
	 "Failed to connect socket to '/var/run/libvirt/libvirt-sock': No such file or directory",
	 "libvirt_unreachable", VHCA_ERR_UNAVAILABLE, ENOTCONN, true},
	{VIR_ERR_SYSTEM_ERROR, "Cannot recv data: Connection reset by peer", "libvirt_unreachable",
	 VHCA_ERR_UNAVAILABLE, ENOTCONN, true},
	/* The daemon took the call and went: virNetSocketReadWire(), src/rpc/virnetsocket.c */
	{VIR_ERR_SYSTEM_ERROR, "End of file while reading data: Input/output error",
	 "libvirt_unreachable", VHCA_ERR_UNAVAILABLE, ENOTCONN, true},
	/* virNetClientIOEventLoop(), src/rpc/virnetclient.c */
	{VIR_ERR_INTERNAL_ERROR, "internal error: received hangup event on socket",
	 "libvirt_unreachable", VHCA_ERR_UNAVAILABLE, ENOTCONN, true},
	{VIR_ERR_INTERNAL_ERROR, "internal error: received error event on socket",
	 "libvirt_unreachable", VHCA_ERR_UNAVAILABLE, ENOTCONN, true},
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

static void assert_classes(const struct error_case *list, size_t n,
			   const struct virt_class *(*classify)(int code, const char *message))
{
	for (size_t i = 0; i < n; i++) {
		const struct virt_class *c = classify(list[i].code, list[i].message);

		if (strcmp(c->word, list[i].word) != 0)
			fail_msg("%d \"%s\": %s, not %s", list[i].code, list[i].message, c->word,
				 list[i].word);
		assert_int_equal(c->kind, list[i].kind);
		assert_int_equal(c->errnum, list[i].errnum);
		assert_int_equal(c->retryable, list[i].retryable);
	}
}

static void classifies_measured_messages(void **state)
{
	(void)state;
	assert_classes(cases, VHCA_ARRAY_SIZE(cases), virt_classify);
}

/* What virDomainMigrateToURI3 says; the same words can mean something else than in other calls. */
static const struct error_case migration_cases[] = {
	{VIR_ERR_OPERATION_ABORTED, "operation aborted: job 'migration out' canceled by client",
	 "migration_cancelled", VHCA_ERR_CONFLICT, ECANCELED, true},
	{VIR_ERR_HOOK_SCRIPT_FAILED,
	 "Hook script execution failed: internal error: Child process (LC_ALL=C "
	 "/etc/libvirt/hooks/qemu vm1 migrate begin -) unexpected exit status 1: no room",
	 "hook_refused", VHCA_ERR_DENIED, EACCES, false},
	{VIR_ERR_OPERATION_INVALID,
	 "Requested operation is not valid: cannot migrate domain: 0000:01:00.1: VFIO device "
	 "doesn't support migration",
	 "not_migratable", VHCA_ERR_CONFLICT, EIO, false},
	{VIR_ERR_OPERATION_INVALID, "Requested operation is not valid: domain is not running",
	 "domain_gone", VHCA_ERR_NOT_FOUND, ENOENT, false},
	{VIR_ERR_OPERATION_INVALID,
	 "Requested operation is not valid: another migration job is already running for domain "
	 "'vm1'",
	 "job_held", VHCA_ERR_CONFLICT, EBUSY, true},
	{VIR_ERR_OPERATION_TIMEOUT,
	 "Timed out during operation: cannot acquire state change lock (held by "
	 "monitor=remoteDispatchDomainSave)",
	 "job_held", VHCA_ERR_CONFLICT, EBUSY, true},
	{VIR_ERR_OPERATION_FAILED,
	 "operation failed: job 'migration out' failed: Unable to write to socket: Broken pipe",
	 "migration_failed", VHCA_ERR_CONFLICT, EIO, false},
	{VIR_ERR_INTERNAL_ERROR,
	 "internal error: Attempt to migrate guest to the same host "
	 "11111111-2222-4333-8444-555555555555",
	 "same_host", VHCA_ERR_INVALID, EIO, false},
	/* The destination lost it; here it runs on. */
	{VIR_ERR_NO_DOMAIN, "Domain not found: no domain with matching name 'vm1'",
	 "migration_failed", VHCA_ERR_CONFLICT, EIO, false},
	{VIR_ERR_OPERATION_FAILED,
	 "operation failed: Failed to connect to remote libvirt URI qemu+tcp://b/system: unable to "
	 "connect to server at 'b:16509': Connection refused",
	 "peer_unreachable", VHCA_ERR_UNAVAILABLE, EHOSTUNREACH, true},
	{VIR_ERR_OPERATION_FAILED, "operation failed: Lost connection to destination host",
	 "peer_unreachable", VHCA_ERR_UNAVAILABLE, EHOSTUNREACH, true},
	{VIR_ERR_SYSTEM_ERROR,
	 "unable to connect to server at '192.168.77.2:49152': No route to host",
	 "peer_unreachable", VHCA_ERR_UNAVAILABLE, EHOSTUNREACH, true},
	{VIR_ERR_SYSTEM_ERROR, "End of file while reading data: Input/output error",
	 "peer_unreachable", VHCA_ERR_UNAVAILABLE, EHOSTUNREACH, true},
	{VIR_ERR_AUTH_FAILED, "authentication failed: no agent callback available",
	 "libvirt_denied", VHCA_ERR_DENIED, EACCES, false},
	{9999, "a code of the future", "migration_failed", VHCA_ERR_CONFLICT, EIO, false},
	{0, NULL, "migration_failed", VHCA_ERR_CONFLICT, EIO, false},
};

static void classifies_errors_of_migrations(void **state)
{
	(void)state;
	assert_classes(migration_cases, VHCA_ARRAY_SIZE(migration_cases), virt_classify_migration);
}

static void classifies_without_message(void **state)
{
	(void)state;
	assert_string_equal(virt_classify(VIR_ERR_NO_DOMAIN, NULL)->word, "domain_gone");
	assert_string_equal(virt_classify(VIR_ERR_INTERNAL_ERROR, NULL)->word, "libvirt");
	assert_string_equal(virt_classify(0, NULL)->word, "libvirt");
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
					virt_classify(cases[i].code, cases[i].message)->hint);
}

static void maps_lifecycle_events(void **state)
{
	(void)state;
	assert_int_equal(virt_lifecycle(VIR_DOMAIN_EVENT_STARTED, VIR_DOMAIN_EVENT_STARTED_BOOTED),
			 VHCA_VIRT_STARTED);
	assert_int_equal(
		virt_lifecycle(VIR_DOMAIN_EVENT_STARTED, VIR_DOMAIN_EVENT_STARTED_RESTORED),
		VHCA_VIRT_STARTED);
	assert_int_equal(
		virt_lifecycle(VIR_DOMAIN_EVENT_STARTED, VIR_DOMAIN_EVENT_STARTED_MIGRATED),
		VHCA_VIRT_STARTED_MIGRATED);
	assert_int_equal(
		virt_lifecycle(VIR_DOMAIN_EVENT_RESUMED, VIR_DOMAIN_EVENT_RESUMED_MIGRATED),
		VHCA_VIRT_RESUMED_MIGRATED);
	assert_int_equal(
		virt_lifecycle(VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_PAUSED),
		VHCA_VIRT_SUSPENDED);
	assert_int_equal(virt_lifecycle(VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_CRASHED),
			 VHCA_VIRT_STOPPED);
	assert_int_equal(virt_lifecycle(VIR_DOMAIN_EVENT_DEFINED, 0), VHCA_VIRT_OTHER);
	assert_int_equal(virt_lifecycle(VIR_DOMAIN_EVENT_SHUTDOWN, 0), VHCA_VIRT_OTHER);
	assert_int_equal(virt_lifecycle(4711, 0), VHCA_VIRT_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classifies_measured_messages),
		cmocka_unit_test(classifies_errors_of_migrations),
		cmocka_unit_test(classifies_without_message),
		cmocka_unit_test(permanent_errors_have_a_hint),
		cmocka_unit_test(maps_lifecycle_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
