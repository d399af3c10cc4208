/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ledger of the random migrations (docs/design/0006-chaos.md): what it must not excuse, and
 * what it must. */
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "tests/sim/hosts/ledger.h"
#include "tests/unit/unit.h"

#define GUID	   UINT64_C(0x2c9ab000000001)
#define PORT	   UINT64_C(0x2c90300000011) /* of host 0; the others' are above it */
#define STEP	   UINT64_C(0x100)
#define MOVE	   "11111111-1111-4111-8111-111111111111"
#define GUEST	   "22222222-2222-4222-8222-222222222200"
#define SUPERSEDED "{\"code\":\"superseded\",\"port_guid\":\"0x2c90300000011\""
#define LATE	   1000 /* what had been begun is not called back */

/* Three hosts; the guest runs at host 0, and the SM has its vGUID there. */
static struct ledger the_ledger;
static enum ledger_verdict the_verdict; /* on the SM's last answer */

static void deliver(unsigned int from, const char *method, const char *path, const char *body,
		    int status, const char *answer, uint64_t now)
{
	struct ledger_message m = {.now = now,
				   .from = from,
				   .sm = the_ledger.master,
				   .method = method,
				   .path = path,
				   .body = json_tokener_parse(body),
				   .status = status,
				   .answer = json_tokener_parse(answer)};

	m.to = strncmp(path, "/v1/peer", 8) ? LEDGER_NOBODY : 1;
	if (m.to == 1) {
		ledger_says(&the_ledger, &m);
		ledger_delivered(&the_ledger, &m);
		ledger_answers(&the_ledger, &m);
	} else {
		the_verdict = ledger_sm_answers(&the_ledger, &m);
		ledger_sm_heard(&the_ledger, &m);
	}
	json_object_put(m.body);
	json_object_put(m.answer);
}

static void bind(unsigned int host, unsigned int epoch, int status, const char *answer,
		 uint64_t now)
{
	char body[96];

	(void)snprintf(body, sizeof(body), "{\"epoch\":%u,\"port_guid\":\"0x%llx\"}", epoch,
		       (unsigned long long)(PORT + host * STEP));
	deliver(host, "PUT", "/v1/bindings/0x02c9ab000000001", body, status, answer, now);
}

static void hand_over(unsigned int epoch, uint64_t now)
{
	char body[96];

	(void)snprintf(body, sizeof(body), "{\"vfs\":[{\"guid\":\"0x%llx\",\"epoch\":%u}]}",
		       (unsigned long long)GUID, epoch);
	deliver(0, "POST", "/v1/peer/claims/" MOVE "/handover", body, 200, "{}", now);
}

static void offer(uint64_t now)
{
	deliver(0, "PUT", "/v1/peer/claims/" MOVE, "{\"domain\":\"" GUEST "\"}", 200, "{}", now);
}

static bool may(unsigned int host, uint64_t now)
{
	return ledger_may(&the_ledger, GUID, host, now, LATE);
}

static int set_up(void **state)
{
	(void)state;
	ledger_init(&the_ledger, 3);
	for (unsigned int h = 0; h < 3; h++)
		the_ledger.ports[h] = PORT + h * STEP;
	ledger_add(&the_ledger, GUID, 0, 0x8001, 0);
	bind(0, 1, 200, "{}", 100000);
	return 0;
}

/* It asks for ten seconds, also where nothing has changed for long. */
static void silence_counts_from_the_start(void **state)
{
	(void)state;
	ledger_guest_goes(&the_ledger, 0, 200000);
	ledger_guest_starts(&the_ledger, 0, 1, 200100);
	assert_false(may(1, 200200));
	assert_false(may(1, 209000));
	assert_true(may(1, 210200));
}

static void silence_counts_from_a_restart(void **state)
{
	(void)state;
	ledger_guest_goes(&the_ledger, 0, 200000);
	ledger_guest_starts(&the_ledger, 0, 1, 200100);
	bind(1, 1, 409, SUPERSEDED "}", 200200);
	assert_false(may(1, 250000));
	ledger_agent_starts(&the_ledger, 1, 300000);
	assert_false(may(1, 301500));
	assert_true(may(1, 310100));
}

static void hand_over_after_the_abort_is_void(void **state)
{
	(void)state;
	offer(200000);
	deliver(0, "POST", "/v1/peer/claims/" MOVE "/abort", "{}", 200, "{}", 201000);
	hand_over(2, 202000);
	assert_false(may(1, 202100));
}

static void hand_over_is_a_proof(void **state)
{
	(void)state;
	offer(200000);
	assert_false(may(1, 201000));
	hand_over(2, 202000);
	assert_true(may(1, 202100));
}

/* Host 0 has withdrawn; host 2 is told so, and before it is heard the SM has host 1's move. */
static void give_up(void)
{
	offer(200000);
	deliver(0, "DELETE", "/v1/bindings/0x02c9ab000000001?epoch=1&port_guid=0x2c90300000011",
		"{}", 200, "{}", 201000);
	bind(2, 1, 409, SUPERSEDED ",\"known_epoch\":1,\"bound\":false}", 202000);
	bind(1, 2, 200, "{}", 203000);
	assert_int_equal(the_verdict, LEDGER_RIGHT);
}

static void what_was_given_up_needs_no_generation(void **state)
{
	(void)state;
	give_up();
	bind(2, 3, 200, "{}", 204000);
	assert_int_equal(the_verdict, LEDGER_RIGHT);
}

static void higher_epochs_need_one(void **state)
{
	(void)state;
	give_up();
	bind(2, 4, 200, "{}", 204000);
	assert_int_equal(the_verdict, LEDGER_NO_GENERATION);
}

static void what_another_port_has_needs_one(void **state)
{
	(void)state;
	give_up();
	bind(2, 1, 409, SUPERSEDED ",\"known_epoch\":2,\"bound\":true}", 203500);
	bind(2, 3, 200, "{}", 204000);
	assert_int_equal(the_verdict, LEDGER_NO_GENERATION);
}

/* A new master fences by what it knows, and what the old one has given away stays given away. */
static void each_sm_is_held_to_what_it_knows(void **state)
{
	(void)state;
	offer(200000);
	bind(1, 5, 200, "{}", 201000);
	assert_true(ledger_is_evicted(&the_ledger, GUID, 0));
	ledger_sm_takes_over(&the_ledger, 1, false);
	assert_true(ledger_is_evicted(&the_ledger, GUID, 0));
	bind(0, 1, 409, SUPERSEDED "}", 202000);
	assert_int_equal(the_verdict, LEDGER_WRONGLY_REFUSED);
	bind(1, 5, 200, "{}", 203000);
	bind(0, 1, 200, "{}", 204000);
	assert_int_equal(the_verdict, LEDGER_WRONGLY_ACCEPTED);
}

static void who_knows_nothing_refuses_nobody(void **state)
{
	(void)state;
	ledger_sm_takes_over(&the_ledger, 1, false);
	ledger_sm_takes_over(&the_ledger, 0, true);
	bind(0, 0, 409, SUPERSEDED "}", 201000);
	assert_int_equal(the_verdict, LEDGER_WRONGLY_REFUSED);
}

static void another_tenants_key_is_seen(void **state)
{
	static const char body[] = "{\"epoch\":1,\"port_guid\":\"0x2c90300000011\","
				   "\"pkeys\":[\"0x8001\",\"0x8002\"]}";

	(void)state;
	deliver(0, "PUT", "/v1/bindings/0x02c9ab000000001", body, 200, "{}", 200000);
	assert_int_equal(the_verdict, LEDGER_WRONG_KEY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(silence_counts_from_the_start, set_up),
		cmocka_unit_test_setup(silence_counts_from_a_restart, set_up),
		cmocka_unit_test_setup(hand_over_after_the_abort_is_void, set_up),
		cmocka_unit_test_setup(hand_over_is_a_proof, set_up),
		cmocka_unit_test_setup(what_was_given_up_needs_no_generation, set_up),
		cmocka_unit_test_setup(higher_epochs_need_one, set_up),
		cmocka_unit_test_setup(what_another_port_has_needs_one, set_up),
		cmocka_unit_test_setup(each_sm_is_held_to_what_it_knows, set_up),
		cmocka_unit_test_setup(who_knows_nothing_refuses_nobody, set_up),
		cmocka_unit_test_setup(another_tenants_key_is_seen, set_up),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
