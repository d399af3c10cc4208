/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The call to a guest's agent. libvirt's test driver has no guests, so the function that matters is
 * defined here and takes precedence over the library's; all others are libvirt's own on
 * test:///default.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <libvirt/libvirt-qemu.h>
#include <libvirt/virterror.h>

#include "agent/libvirt/call.h"
#include "common/base/cleanup.h"
#include "tests/unit/unit.h"

#define URI	  "test:///default"
#define UUID_TEXT "6695eb01-f6a4-8304-79aa-97f2502e193f" /* of its domain */

static struct {
	const char *answer; /* NULL: the error */
	virError error;
	bool has_error;
	char command[2048];
	int timeout;
} fake;

char *virDomainQemuAgentCommand(virDomainPtr dom, const char *cmd, int timeout, unsigned int flags)
{
	(void)dom;
	assert_int_equal(flags, 0);
	assert_int_equal(vhca_strcpy(fake.command, sizeof(fake.command), cmd), 0);
	fake.timeout = timeout;
	fake.has_error = !fake.answer;
	return fake.answer ? strdup(fake.answer) : NULL;
}

virErrorPtr virGetLastError(void)
{
	return fake.has_error ? &fake.error : NULL;
}

static struct vhca_error err;
static struct vhca_uuid uuid;
static struct vhca_qga_answer answer;
static const struct vhca_qga_ask begin = {.path = {.n = 1, .hops = {{.dev = 3}}}};
static const struct vhca_qga_ask status = {.pid = 7};

static int setup(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	err = (struct vhca_error)VHCA_ERROR_INIT;
	answer = (struct vhca_qga_answer){.pid = 0};
	return vhca_uuid_parse(UUID_TEXT, &uuid);
}

static int ask(const struct vhca_qga_ask *what)
{
	return virt_call_qga(URI, &uuid, what, &answer, &err);
}

static void a_program_is_begun_and_asked_after(void **state)
{
	(void)state;
	fake.answer = "{\"return\":{\"pid\":7}}";
	assert_int_equal(ask(&begin), 0);
	assert_int_equal(answer.pid, 7);
	assert_non_null(strstr(fake.command, "\"guest-exec\""));
	/* Bounded: neither libvirt's default, nor for ever, nor not at all. */
	assert_true(fake.timeout > 0 && fake.timeout <= 10);
	fake.answer = "{\"return\":{\"exited\":true,\"exitcode\":12}}";
	assert_int_equal(ask(&status), 0);
	assert_non_null(strstr(fake.command, "\"guest-exec-status\""));
	assert_true(answer.exited);
	assert_int_equal(answer.exit_code, 12);
}

static void a_domain_that_is_gone(void **state)
{
	(void)state;
	uuid.b[0] ^= 1;
	fake.error = (virError){.code = VIR_ERR_NO_DOMAIN, .message = (char[]){"Domain not found"}};
	fake.has_error = true;
	assert_int_equal(ask(&begin), -ENOENT);
	assert_string_equal(err.code, "domain_gone");
	assert_string_equal(fake.command, "");
}

static void a_huge_answer(void **state)
{
	VHCA_AUTO_FREE char *huge = malloc((size_t)8 << 20);

	(void)state;
	assert_non_null(huge);
	memset(huge, '{', ((size_t)8 << 20) - 1);
	huge[((size_t)8 << 20) - 1] = '\0';
	fake.answer = huge;
	assert_true(ask(&begin) < 0);
	assert_string_equal(err.code, "bad_guest_answer");
	assert_non_null(strstr(err.msg, "test"));
}

/* Messages as libvirt 9.0 (and later ones) sends them. */
static const struct {
	int code;
	const char *message, *word, *hint;
} refusals[] = {
	{VIR_ERR_ARGUMENT_UNSUPPORTED, "argument unsupported: QEMU guest agent is not configured",
	 "no_guest_agent", "org.qemu.guest_agent.0"},
	{VIR_ERR_AGENT_UNRESPONSIVE,
	 "Guest agent is not responding: QEMU guest agent is not connected", "guest_agent_silent",
	 "qemu-ga"},
	{VIR_ERR_AGENT_UNRESPONSIVE,
	 "Guest agent is not responding: Guest agent not available for now", "guest_agent_silent",
	 "qemu-ga"},
	{VIR_ERR_AGENT_UNSYNCED, "guest agent replied with wrong id to guest-sync command",
	 "guest_agent_silent", "qemu-ga"},
	{VIR_ERR_INTERNAL_ERROR,
	 "internal error: unable to execute QEMU agent command 'guest-exec': The command "
	 "guest-exec "
	 "has been disabled for this instance",
	 "guest_agent_refused", "guest-exec"},
	/* The guest's words are not libvirt's. */
	{VIR_ERR_INTERNAL_ERROR,
	 "internal error: unable to execute QEMU agent command 'guest-exec': client socket is "
	 "closed; guest agent is not configured",
	 "guest_agent_refused", "guest-exec"},
	{VIR_ERR_OPERATION_INVALID, "Requested operation is not valid: domain is not running",
	 "domain_gone", ""},
	{VIR_ERR_INTERNAL_ERROR, "internal error: client socket is closed", "libvirt_unreachable",
	 ""},
};

static void errors_are_told_apart(void **state)
{
	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(refusals); i++) {
		fake.error = (virError){.code = refusals[i].code,
					.message = (char *)(uintptr_t)refusals[i].message};
		assert_true(ask(&begin) < 0);
		assert_string_equal(err.code, refusals[i].word);
		assert_non_null(strstr(err.hint, refusals[i].hint));
	}
}

/* What a tenant wrote reaches logs and terminals. */
static void the_guests_words_are_cut_and_harmless(void **state)
{
	char message[4096];

	(void)state;
	memset(message, 'x', sizeof(message));
	message[sizeof(message) - 1] = '\0';
	memcpy(message, "unable to execute QEMU agent command 'guest-exec': \033[2J\n\xff\xc3\x28",
	       57);
	fake.error = (virError){.code = VIR_ERR_INTERNAL_ERROR, .message = message};
	assert_true(ask(&begin) < 0);
	assert_string_equal(err.code, "guest_agent_refused");
	assert_true(strlen(err.msg) < 200);
	for (const char *p = err.msg; *p; p++)
		assert_true(*p >= ' ' && *p <= '~');
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_program_is_begun_and_asked_after),
		TEST(a_domain_that_is_gone),
		TEST(a_huge_answer),
		TEST(errors_are_told_apart),
		TEST(the_guests_words_are_cut_and_harmless),
	};

	return cmocka_run_group_tests_name("virt_qga", tests, NULL, NULL);
}
