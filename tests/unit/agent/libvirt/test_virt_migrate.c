/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The calls around a migration. libvirt's test driver has none of them, so the functions that
 * matter are defined here and take precedence over the library's; the others are libvirt's own on
 * test:///default.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libvirt/virterror.h>

#include "agent/libvirt/migrate.h"
#include "common/base/cleanup.h"
#include "tests/unit/unit.h"

#define URI	  "test:///default"
#define PEER	  "qemu+tcp://hvb/system"
#define UUID_TEXT "6695eb01-f6a4-8304-79aa-97f2502e193f" /* of test:///default's domain */

/* ---- the fakes ---- */

static struct {
	/* what the next call says; code 0 = success */
	int code;
	const char *message;
	bool has_error;
	/* the domain */
	int persistent, autostart, set_autostart, active, state, reason, job, operation;
	int lost; /* the connection is */
	/* what was asked for */
	unsigned int calls, flags;
	unsigned long long bandwidth;
	int connections;
	char peer[VIRT_URI_MAX], memory[VIRT_URI_MAX], xml[128];
	bool has_xml;
} fake;

static int next_result(void)
{
	fake.calls++;
	fake.has_error = fake.code != 0;
	return fake.code ? -1 : 0;
}

/* As libvirt's does: every public function forgets the last error. */
const char *virDomainGetName(virDomainPtr dom)
{
	(void)dom;
	fake.has_error = false;
	return "vm1";
}

int virConnectSetKeepAlive(virConnectPtr conn, int interval, unsigned int count)
{
	(void)conn;
	assert_true(interval > 0 && count > 0);
	return 0;
}

int virConnectIsAlive(virConnectPtr conn)
{
	(void)conn;
	fake.has_error = false;
	return !fake.lost;
}

int virGetLastErrorCode(void)
{
	return fake.has_error ? fake.code : 0;
}

const char *virGetLastErrorMessage(void)
{
	return fake.has_error ? fake.message : "no error";
}

virErrorPtr virGetLastError(void)
{
	static virError error;

	error = (virError){.code = fake.code, .message = (char *)(uintptr_t)fake.message};
	return fake.has_error ? &error : NULL;
}

int virDomainIsPersistent(virDomainPtr dom)
{
	(void)dom;
	return fake.persistent;
}

int virDomainGetAutostart(virDomainPtr dom, int *autostart)
{
	(void)dom;
	assert_int_equal(fake.persistent, 1);
	*autostart = fake.autostart;
	return next_result();
}

int virDomainSetAutostart(virDomainPtr dom, int autostart)
{
	(void)dom;
	fake.set_autostart += autostart ? 1 : -1;
	return next_result();
}

int virDomainMigrateToURI3(virDomainPtr dom, const char *dconnuri, virTypedParameterPtr params,
			   unsigned int nparams, unsigned int flags)
{
	const char *memory = NULL;

	(void)dom;
	fake.flags = flags;
	(void)snprintf(fake.peer, sizeof(fake.peer), "%s", dconnuri);
	(void)virTypedParamsGetString(params, (int)nparams, VIR_MIGRATE_PARAM_URI, &memory);
	(void)virTypedParamsGetULLong(params, (int)nparams, VIR_MIGRATE_PARAM_BANDWIDTH,
				      &fake.bandwidth);
	(void)virTypedParamsGetInt(params, (int)nparams, VIR_MIGRATE_PARAM_PARALLEL_CONNECTIONS,
				   &fake.connections);
	assert_int_equal(nparams, (memory != NULL) + (fake.bandwidth > 0) + (fake.connections > 0));
	(void)snprintf(fake.memory, sizeof(fake.memory), "%s", memory ? memory : "none");
	return next_result();
}

int virDomainAbortJob(virDomainPtr dom)
{
	(void)dom;
	return next_result();
}

int virDomainIsActive(virDomainPtr dom)
{
	(void)dom;
	return fake.active;
}

int virDomainGetState(virDomainPtr dom, int *state, int *reason, unsigned int flags)
{
	(void)dom;
	assert_int_equal(flags, 0);
	*state = fake.state;
	*reason = fake.reason;
	return 0;
}

int virDomainGetJobStats(virDomainPtr dom, int *type, virTypedParameterPtr *params, int *nparams,
			 unsigned int flags)
{
	int max = 0;

	(void)dom;
	assert_int_equal(flags, 0);
	if (next_result() < 0)
		return -1;
	*type = fake.job;
	(void)virTypedParamsAddInt(params, nparams, &max, VIR_DOMAIN_JOB_OPERATION, fake.operation);
	(void)virTypedParamsAddULLong(params, nparams, &max, VIR_DOMAIN_JOB_MEMORY_TOTAL, 3000);
	(void)virTypedParamsAddULLong(params, nparams, &max, VIR_DOMAIN_JOB_MEMORY_PROCESSED, 2000);
	(void)virTypedParamsAddULLong(params, nparams, &max, VIR_DOMAIN_JOB_MEMORY_REMAINING, 1000);
	return 0;
}

int virDomainSetMetadata(virDomainPtr dom, int type, const char *metadata, const char *key,
			 const char *uri, unsigned int flags)
{
	(void)dom;
	assert_int_equal(type, VIR_DOMAIN_METADATA_ELEMENT);
	assert_string_equal(key, "vhca");
	assert_string_equal(uri, "urn:vhcad:away:1");
	fake.flags = flags;
	fake.has_xml = metadata != NULL;
	(void)snprintf(fake.xml, sizeof(fake.xml), "%s", metadata ? metadata : "");
	return next_result();
}

/* ---- fixture ---- */

static struct vhca_error err;
static struct vhca_uuid uuid;
static struct vhca_conf_copy how;
static virConnectPtr conn;

static int setup(void **state)
{
	memset(&fake, 0, sizeof(fake));
	how = (struct vhca_conf_copy){.timeout_ms = 0};
	fake.active = 1;
	fake.state = VIR_DOMAIN_RUNNING;
	fake.reason = VIR_DOMAIN_RUNNING_MIGRATION_CANCELED;
	fake.operation = VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT;
	err = (struct vhca_error)VHCA_ERROR_INIT;
	assert_int_equal(vhca_uuid_parse(UUID_TEXT, &uuid), 0);
	*state = conn = virConnectOpen(URI);
	assert_non_null(*state);
	return 0;
}

static int teardown(void **state)
{
	(void)virConnectClose(*state);
	return 0;
}

static void will_fail(int code, const char *message)
{
	fake.code = code;
	fake.message = message;
}

static int migrate(void)
{
	return virt_call_migrate(conn, &uuid, PEER, "tcp://192.168.77.2", &how, NULL, &err);
}

/* ---- migrate ---- */

static void transient_domain_stays_transient(void **state)
{
	(void)state;
	assert_int_equal(migrate(), 0);
	assert_int_equal(fake.flags, VIR_MIGRATE_LIVE | VIR_MIGRATE_PEER2PEER);
	assert_string_equal(fake.peer, PEER);
	assert_string_equal(fake.memory, "tcp://192.168.77.2");
	assert_int_equal(err.kind, VHCA_ERR_NONE);
}

static void persistent_domain_moves_for_good(void **state)
{
	(void)state;
	fake.persistent = 1;
	assert_int_equal(migrate(), 0);
	assert_int_equal(fake.flags, VIR_MIGRATE_LIVE | VIR_MIGRATE_PEER2PEER |
					     VIR_MIGRATE_PERSIST_DEST |
					     VIR_MIGRATE_UNDEFINE_SOURCE);
}

/* Types and units of libvirt-domain.h: BANDWIDTH is ullong, MiB/s; PARALLEL_CONNECTIONS is int,
 * and needs its flag. */
static void copy_is_asked_for_as_wanted(void **state)
{
	(void)state;
	how = (struct vhca_conf_copy){.timeout_ms = 10000, .bandwidth_mib = 500};
	assert_int_equal(migrate(), 0);
	assert_int_equal(fake.flags, VIR_MIGRATE_LIVE | VIR_MIGRATE_PEER2PEER);
	assert_int_equal(fake.bandwidth, 500);
	how = (struct vhca_conf_copy){.connections = 8, .auto_converge = true, .tls = true};
	fake.bandwidth = 0;
	assert_int_equal(migrate(), 0);
	assert_int_equal(fake.flags, VIR_MIGRATE_LIVE | VIR_MIGRATE_PEER2PEER |
					     VIR_MIGRATE_AUTO_CONVERGE | VIR_MIGRATE_PARALLEL |
					     VIR_MIGRATE_TLS);
	assert_int_equal(fake.connections, 8);
}

/* Rather no migration than one that forgets the domain's definition. */
static void unknown_persistence_is_an_error(void **state)
{
	(void)state;
	fake.persistent = -1;
	assert_int_equal(migrate(), -EIO);
	assert_int_equal(fake.calls, 0);
}

static void libvirt_chooses_the_way_of_the_memory(void **state)
{
	(void)state;
	assert_int_equal(virt_call_migrate(conn, &uuid, PEER, "", &how, NULL, &err), 0);
	assert_string_equal(fake.memory, "none");
}

static void missing_uri_is_refused(void **state)
{
	(void)state;
	assert_int_equal(virt_call_migrate(conn, &uuid, "", "", &how, NULL, &err), -EINVAL);
	assert_string_equal(err.code, "bad_uri");
	assert_int_equal(err.kind, VHCA_ERR_INVALID);
	assert_int_equal(fake.calls, 0);
}

static void unknown_domain_is_gone(void **state)
{
	(void)state;
	uuid.b[0] ^= 1;
	will_fail(VIR_ERR_NO_DOMAIN, "Domain not found");
	fake.has_error = true;
	assert_int_equal(migrate(), -ENOENT);
	assert_string_equal(err.code, "domain_gone");
	assert_int_equal(fake.calls, 0);
}

#define HOOK                                                                                    \
	"Hook script execution failed: internal error: Child process (LC_ALL=C PATH=/usr/bin: " \
	"HOME=/ /etc/libvirt/hooks/qemu vm1 migrate begin -) unexpected "

static void hook_is_quoted_in_its_own_words(void **state)
{
	static const struct {
		const char *message, *words;
	} cases[] = {
		{HOOK "exit status 1: vhcad: no VF is free: fabric red\n",
		 "domain vm1: migrate to " PEER ": vhcad: no VF is free: fabric red"},
		{HOOK "exit status 1: one\ntwo\n", "domain vm1: migrate to " PEER ": one two"},
		/* It said nothing, or died: all that libvirt knows. */
		{HOOK "exit status 1: ", "unexpected exit status 1:"},
		{HOOK "exit status 1", "Hook script execution failed: internal error: Child"},
		{HOOK "fatal signal 9: x", "Hook script execution failed: internal error: Child"},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		will_fail(VIR_ERR_HOOK_SCRIPT_FAILED, cases[i].message);
		assert_int_equal(migrate(), -EACCES);
		assert_string_equal(err.code, "hook_refused");
		assert_int_equal(err.kind, VHCA_ERR_DENIED);
		assert_int_equal(err.errnum, EACCES);
		if (!strstr(err.msg, cases[i].words))
			fail_msg("%s", err.msg);
		assert_null(strchr(err.msg, '\n'));
	}
}

/* Both ends of a connection can go, and libvirt has the same words for them. */
static void loss_of_libvirtd_is_not_loss_of_the_peer(void **state)
{
	(void)state;
	will_fail(VIR_ERR_INTERNAL_ERROR, "internal error: client socket is closed");
	assert_int_equal(migrate(), -EHOSTUNREACH);
	assert_string_equal(err.code, "peer_unreachable");
	assert_int_equal(err.kind, VHCA_ERR_UNAVAILABLE);
	fake.lost = 1;
	assert_int_equal(migrate(), -ENOTCONN);
	assert_string_equal(err.code, "libvirt_unreachable");
	assert_int_equal(err.kind, VHCA_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "client socket is closed"));
}

static void failure_keeps_libvirts_text(void **state)
{
	(void)state;
	will_fail(VIR_ERR_OPERATION_FAILED, "operation failed: job 'migration out' failed: bang");
	assert_int_equal(migrate(), -EIO);
	assert_string_equal(err.code, "migration_failed");
	assert_string_equal(err.msg, "domain vm1: migrate to " PEER
				     ": operation failed: job 'migration out' failed: bang");
}

/* ---- abort ---- */

static void abort_without_job_is_success(void **state)
{
	assert_int_equal(virt_call_abort(*state, &uuid, &err), 0);
	will_fail(VIR_ERR_OPERATION_INVALID,
		  "Requested operation is not valid: no job is active on the domain");
	assert_int_equal(virt_call_abort(*state, &uuid, &err), 0);
	assert_int_equal(fake.calls, 2);
	assert_int_equal(err.kind, VHCA_ERR_NONE);
}

static void abort_tells_why_not(void **state)
{
	static const struct {
		const char *message, *word;
		int rc;
	} cases[] = {
		{"Requested operation is not valid: domain is not running", "domain_gone", -ENOENT},
		{"Requested operation is not valid: cannot abort incoming migration; use "
		 "virDomainDestroy instead",
		 "not_abortable", -EBUSY},
		{"Requested operation is not valid: cannot abort migration in post-copy mode",
		 "not_abortable", -EBUSY},
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		will_fail(VIR_ERR_OPERATION_INVALID, cases[i].message);
		assert_int_equal(virt_call_abort(*state, &uuid, &err), cases[i].rc);
		assert_string_equal(err.code, cases[i].word);
		assert_non_null(strstr(err.msg, "domain vm1: abort job: "));
	}
}

/* ---- job ---- */

static struct vhca_virt_job job_now(void **state)
{
	struct vhca_virt_job job;

	memset(&job, 0xff, sizeof(job));
	assert_int_equal(virt_call_job(*state, &uuid, &job, &err), 0);
	return job;
}

static void job_shows_the_copy(void **state)
{
	struct vhca_virt_job job;

	fake.job = VIR_DOMAIN_JOB_UNBOUNDED;
	job = job_now(state);
	assert_true(job.active && job.migrating_out);
	assert_int_equal(job.state, VIR_DOMAIN_RUNNING);
	assert_int_equal(job.reason, VIR_DOMAIN_RUNNING_MIGRATION_CANCELED);
	assert_int_equal(job.total_bytes, 3000);
	assert_int_equal(job.processed_bytes, 2000);
	assert_int_equal(job.remaining_bytes, 1000);
}

static void other_jobs_are_no_migration(void **state)
{
	struct vhca_virt_job job;

	fake.job = VIR_DOMAIN_JOB_UNBOUNDED;
	fake.operation = VIR_DOMAIN_JOB_OPERATION_SAVE;
	job = job_now(state);
	assert_true(job.active);
	assert_false(job.migrating_out);
	/* Figures of the last job do not count once it is over. */
	fake.operation = VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT;
	fake.job = VIR_DOMAIN_JOB_NONE;
	job = job_now(state);
	assert_false(job.migrating_out);
	assert_int_equal(job.total_bytes, 0);
}

static void incoming_domain_has_a_state_only(void **state)
{
	struct vhca_virt_job job;

	fake.state = VIR_DOMAIN_PAUSED;
	will_fail(VIR_ERR_OPERATION_UNSUPPORTED,
		  "Operation not supported: migration statistics are available only on the source "
		  "host");
	job = job_now(state);
	assert_true(job.active);
	assert_false(job.migrating_out);
	assert_int_equal(job.state, VIR_DOMAIN_PAUSED);
}

/*
 * libvirt does not know whether the guest has resumed at the destination; who paused it otherwise
 * does.
 */
static void guest_held_by_libvirt_may_run_elsewhere(void **state)
{
	static const struct {
		int state, reason;
		bool held;
	} cases[] = {
		{VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_MIGRATION, true},
		{VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_POSTCOPY, true},
		{VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_POSTCOPY_FAILED, true},
		{VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_USER, false},
		{VIR_DOMAIN_RUNNING, VIR_DOMAIN_PAUSED_MIGRATION, false},
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		fake.state = cases[i].state;
		fake.reason = cases[i].reason;
		assert_int_equal(job_now(state).held, cases[i].held);
	}
}

static void stopped_domain_is_not_active(void **state)
{
	struct vhca_virt_job job;

	fake.active = 0;
	fake.state = VIR_DOMAIN_SHUTOFF;
	assert_false(job_now(state).active);
	fake.active = 1; /* it stops between the two questions */
	assert_false(job_now(state).active);
	assert_int_equal(fake.calls, 0);
	fake.state = VIR_DOMAIN_RUNNING; /* or after them */
	will_fail(VIR_ERR_OPERATION_INVALID,
		  "Requested operation is not valid: domain is not running");
	job = job_now(state);
	assert_false(job.active);
	assert_int_equal(job.state, 0);
	uuid.b[0] ^= 1;
	will_fail(VIR_ERR_NO_DOMAIN, "Domain not found");
	fake.has_error = true;
	assert_false(job_now(state).active);
}

static void failing_question_is_an_error(void **state)
{
	struct vhca_virt_job job = {.total_bytes = 7};

	will_fail(VIR_ERR_OPERATION_TIMEOUT,
		  "Timed out during operation: cannot acquire state change lock");
	assert_int_equal(virt_call_job(*state, &uuid, &job, &err), -EBUSY);
	assert_string_equal(err.code, "job_held");
	assert_int_equal(job.total_bytes, 7);
}

/* ---- marker ---- */

static void marker_is_of_the_running_domain_only(void **state)
{
	assert_int_equal(virt_call_marker(*state, &uuid, &uuid, false, &err), 0);
	assert_int_equal(fake.flags, VIR_DOMAIN_AFFECT_LIVE);
	assert_string_equal(fake.xml, "<away migration='" UUID_TEXT "'/>");
	assert_int_equal(virt_call_marker(*state, &uuid, NULL, false, &err), 0);
	assert_false(fake.has_xml);
}

static void marker_takes_autostart_along(void **state)
{
	static const struct {
		int persistent, autostart;
		const char *xml;
	} cases[] = {
		{0, 1, "<away migration='" UUID_TEXT "'/>"}, /* nobody is asked for it */
		{1, 0, "<away migration='" UUID_TEXT "'/>"},
		{1, 1, "<away migration='" UUID_TEXT "' autostart='yes'/>"},
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		fake.persistent = cases[i].persistent;
		fake.autostart = cases[i].autostart;
		assert_int_equal(virt_call_marker(*state, &uuid, &uuid, true, &err), 0);
		assert_string_equal(fake.xml, cases[i].xml);
		assert_int_equal(fake.set_autostart, 0);
	}
	assert_int_equal(virt_call_marker(*state, &uuid, NULL, true, &err), 0);
	assert_int_equal(fake.set_autostart, 1);
	assert_false(fake.has_xml);
	fake.persistent = -1;
	will_fail(VIR_ERR_NO_DOMAIN, "no domain");
	assert_true(virt_call_marker(*state, &uuid, &uuid, true, &err) < 0);
}

static void left_domain_starts_no_more(void **state)
{
	assert_int_equal(virt_call_no_start(*state, &uuid, &err), 0); /* transient: never did */
	fake.persistent = 1;
	assert_int_equal(virt_call_no_start(*state, &uuid, &err), 0);
	assert_int_equal(fake.set_autostart, 0);
	fake.autostart = 1;
	assert_int_equal(virt_call_no_start(*state, &uuid, &err), 0);
	assert_int_equal(fake.set_autostart, -1);
	will_fail(VIR_ERR_OPERATION_TIMEOUT,
		  "Timed out during operation: cannot acquire state change lock");
	assert_int_equal(virt_call_no_start(*state, &uuid, &err), -EBUSY);
	assert_string_equal(err.code, "job_held");
	uuid.b[0] ^= 1;
	will_fail(VIR_ERR_NO_DOMAIN, "Domain not found");
	fake.has_error = true;
	assert_int_equal(virt_call_no_start(*state, &uuid, &err), 0); /* it has gone */
}

static void marker_waits_for_no_migration(void **state)
{
	will_fail(VIR_ERR_OPERATION_TIMEOUT,
		  "Timed out during operation: cannot acquire state change lock");
	assert_int_equal(virt_call_marker(*state, &uuid, &uuid, false, &err), -EBUSY);
	assert_string_equal(err.code, "job_held");
	assert_non_null(strstr(err.msg, "domain vm1: set marker urn:vhcad:away:1: "));
	assert_int_equal(virt_call_marker(*state, &uuid, NULL, false, &err), -EBUSY);
	assert_non_null(strstr(err.msg, "remove marker"));
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(transient_domain_stays_transient),
		CASE(persistent_domain_moves_for_good),
		CASE(copy_is_asked_for_as_wanted),
		CASE(unknown_persistence_is_an_error),
		CASE(libvirt_chooses_the_way_of_the_memory),
		CASE(missing_uri_is_refused),
		CASE(unknown_domain_is_gone),
		CASE(hook_is_quoted_in_its_own_words),
		CASE(loss_of_libvirtd_is_not_loss_of_the_peer),
		CASE(failure_keeps_libvirts_text),
		CASE(abort_without_job_is_success),
		CASE(abort_tells_why_not),
		CASE(job_shows_the_copy),
		CASE(other_jobs_are_no_migration),
		CASE(incoming_domain_has_a_state_only),
		CASE(guest_held_by_libvirt_may_run_elsewhere),
		CASE(stopped_domain_is_not_active),
		CASE(failing_question_is_an_error),
		CASE(marker_is_of_the_running_domain_only),
		CASE(marker_takes_autostart_along),
		CASE(left_domain_starts_no_more),
		CASE(marker_waits_for_no_migration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
