/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * opensm/tickets: whose a vGUID is where the plugin does not know it: at each start and take-over.
 */
#include <string.h>

#include "common/base/file.h"
#include "common/base/log.h"
#include "tests/unit/opensm/tickets/site.h"

/* ---- the plugin has none ---- */

static void a_new_master_waits_for_all(void **state)
{
	struct site *s = *state;

	time_to_report(s);
	says(report(s, A, 5), "owner_unknown");
	says(withdraw(s, X, 9, false), ""); /* of which nothing is kept */
	says(report(s, A, 5), "owner_unknown");
	all_have_reported(s);
	says(report(s, X, 9), "owner_disputed");
	says(report(s, A, 5), "owner_disputed"); /* both have asked */
	admin_names(s, A);
	says(report(s, X, 9), "not_the_owner");
	says(report(s, A, 5), "");
}

static void who_alone_has_asked_has_it(void **state)
{
	struct site *s = *state;

	time_to_report(s);
	says(report(s, A, 5), "owner_unknown");
	says(report(s, A, 6), "owner_unknown");
	all_have_reported(s);
	says(report(s, A, 6), "");
	says(report(s, X, 9), "not_the_owner");
}

static void who_has_asked_may_give_it_up(void **state)
{
	struct site *s = *state;

	time_to_report(s);
	says(report(s, A, 5), "owner_unknown");
	says(withdraw(s, X, 9, false), "");
	says(withdraw(s, A, 5, false), "");
	all_have_reported(s);
	says(report(s, C, 6), "");
}

static unsigned int told;

static void on_log(enum vhca_log_level level, const char *msg)
{
	told += level == VHCA_LOG_WARNING && strstr(msg, "1024 virtual GUIDs") != NULL;
}

/* Whatever ports it claims, and of nothing that could not be bound. The log says it once. */
static void who_asks_for_much_keeps_nobody_from_asking(void **state)
{
	struct site *s = *state;
	const uint64_t vguid = FALSE_GUID + 1;

	time_to_report(s);
	told = 0;
	vhca_log_set_level(VHCA_LOG_WARNING);
	vhca_log_set_sink(on_log);
	for (uint64_t i = 0; i < 1100; i++)
		says(report_of(s, vguid + 1 + i, X, PORT(A) + 2 + i % 16, 1), "owner_unknown");
	vhca_log_set_sink(NULL);
	vhca_log_set_level(VHCA_LOG_ERROR);
	assert_int_equal(s->owners.bids.n, 1024);
	assert_int_equal(told, 1);
	s->p.subnet.gone = PORT(X);
	says(report_of(s, vguid, C, PORT(X), 1), "not_your_port");
	says(report_of(s, vguid, X, PORT(X), 1), "unknown_port");
	says(report_of(s, PORT(B), C, PORT(C), 1), "guid_is_a_port");
	s->p.subnet.gone = 0;
	says(report_of(s, vguid, A, PORT(A), 1), "owner_unknown");
	assert_int_equal(s->owners.bids.n, 1025);
	all_have_reported(s);
	says(report_of(s, vguid, X, PORT(X), 9), "owner_disputed");
	says(report_of(s, vguid + 1, X, PORT(X), 2), "");
	says(report_of(s, vguid + 1, X, PORT(X), 3), ""); /* that bid is over */
	assert_int_equal(s->owners.bids.n, 1024);
}

/* Then nobody knows who was first. */
static void what_no_bid_had_room_for_is_nobodys(void **state)
{
	struct site *s = *state;

	says(report(s, A, 5), "");
	time_to_report(s);
	s->owners.bids_max = 1;
	says(report_of(s, FALSE_GUID + 2, X, PORT(X), 1), "owner_unknown");
	says(report_of(s, FALSE_GUID + 1, B, PORT(B), 1), "owner_unknown");
	all_have_reported(s);
	says(report_of(s, FALSE_GUID + 1, X, PORT(X), 1), "owner_disputed");
	says(report_of(s, FALSE_GUID + 1, B, PORT(B), 1), "owner_disputed");
	says(report_of(s, FALSE_GUID + 2, X, PORT(X), 1), "");
	says(report(s, A, 6), "");
	vhca_osm_owners_take_over(&s->owners, false);
	says(report_of(s, FALSE_GUID + 1, X, PORT(X), 1), "");
}

/* In which order they are heard makes no difference. */
static void one_chain_is_one_party(void **state)
{
	struct site *s = *state;

	for (int first = A; first <= B; first++) {
		time_to_report(s);
		for (int i = 0; i < 2; i++) {
			if ((first + i) % 2 == A) {
				says(report(s, A, 5), "owner_unknown");
			} else {
				with(A, B, 6);
				says(report(s, B, 6), "owner_unknown");
			}
		}
		all_have_reported(s);
		says(report(s, A, 5), "owner_unknown");
		says(report(s, B, 6), "");
		says(report(s, A, 5), "superseded");
		says(withdraw(s, B, 6, false), "");
		assert_int_equal(
			vhca_osm_table_forget(plugin_reports(&s->p)->table, FALSE_GUID, NULL), 0);
	}
}

/* A had it again since: what he had signed before proves nothing. */
static void an_old_ticket_joins_nobody(void **state)
{
	struct site *s = *state;

	time_to_report(s);
	says(report(s, A, 9), "owner_unknown");
	with(A, X, 6);
	says(report(s, X, 20), "owner_unknown");
	all_have_reported(s);
	with(A, X, 6);
	says(report(s, X, 20), "owner_disputed");
	admin_names(s, A);
	says(report(s, A, 9), "");
}

static void what_a_standby_knows_is_of_an_earlier_time(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	vhca_osm_owners_take_over(&s->owners, true);
	time_to_report(s);
	stop(s); /* that is kept, too */
	start(s);
	time_to_report(s);
	assert_int_equal(bound_at(s), PORT(A));
	says(report(s, B, 7), "owner_unknown"); /* another master has known the tickets */
	says(report(s, A, 4), "superseded");
	all_have_reported(s);
	says(report(s, A, 5), "owner_disputed"); /* and now he asks as well */
	stop(s);
	start(s);
	says(report(s, B, 7), "owner_disputed"); /* until admin says */
	admin_names(s, B);
	says(report(s, B, 7), "");
}

static void whom_nobody_contradicts_a_standby_believes(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	vhca_osm_owners_take_over(&s->owners, true);
	all_have_reported(s);
	says(report(s, X, 6), "not_the_owner"); /* nobody else has asked in that time */
	time_to_report(s);
	says(report(s, B, 7), "owner_unknown");
	all_have_reported(s);
	says(report(s, B, 7), "");
	says(report(s, X, 9), "not_the_owner");
}

static void a_spoilt_ticket_spoils_no_chain(void **state)
{
	struct site *s = *state;

	time_to_report(s);
	says(report(s, B, 6), "owner_unknown");
	with(A, B, 6);
	with(B, C, 7);
	spoil(0);
	says(report(s, C, 7), "owner_unknown");
	all_have_reported(s);
	with(A, B, 6);
	with(B, C, 7);
	spoil(0);
	says(report(s, C, 7), "");
}

/* Its former owner has missed the tickets, too, or means harm. */
static void nobody_raises_what_is_of_an_earlier_time(void **state)
{
	struct site *s = *state;

	for (int kept = 0; kept < 2; kept++) {
		says(report(s, A, 5), "");
		if (kept)
			says(withdraw(s, A, 5, true), "");
		vhca_osm_owners_take_over(&s->owners, true);
		time_to_report(s);
		says(withdraw(s, A, UINT64_C(1) << 36, false), "");
		assert_int_equal(bound_at(s), 0);
		says(report(s, B, 7), "owner_unknown");
		all_have_reported(s);
		says(report(s, B, 7), "");
		says(withdraw(s, B, 7, false), "");
		assert_int_equal(
			vhca_osm_table_forget(plugin_reports(&s->p)->table, FALSE_GUID, NULL), 0);
	}
}

/* He has parked it, or hands it over: he need not ask in that time. */
static void nobody_alone_takes_what_is_kept_for_its_owner(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	says(withdraw(s, A, 5, true), "");
	vhca_osm_owners_take_over(&s->owners, true);
	time_to_report(s);
	with(A, B, 6);
	says(report(s, B, 6), "owner_unknown");
	all_have_reported(s);
	with(A, B, 6);
	says(report(s, B, 6), ""); /* whom he names */
	says(withdraw(s, B, 6, true), "");
	vhca_osm_owners_take_over(&s->owners, true);
	time_to_report(s);
	says(report(s, A, 7), "owner_unknown");
	all_have_reported(s);
	says(report(s, A, 7), ""); /* the other party */
	says(withdraw(s, A, 7, true), "");
	vhca_osm_owners_take_over(&s->owners, true);
	time_to_report(s);
	says(report(s, X, 8), "owner_unknown");
	all_have_reported(s);
	says(report(s, X, 8), "owner_disputed");
	says(report(s, A, 8), "owner_disputed"); /* it has been given to nobody */
	admin_names(s, A);
	says(report(s, A, 8), "");
}

/* A ticket that does not lead to who shows it silences nobody. */
static void an_idle_ticket_ends_no_dispute(void **state)
{
	struct site *s = *state;

	time_to_report(s);
	with(A, B, 6);
	says(report(s, X, 3), "owner_unknown");
	says(report(s, A, 5), "owner_unknown");
	all_have_reported(s);
	says(report(s, X, 3), "owner_disputed");
}

/* Another one has given way, and the plugin has not marked yet what it knows. */
static void before_the_first_sweep_all_wait(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	s->p.subnet.status.ready = false;
	says(report(s, B, 7), "owner_unknown");
	says(report(s, A, 9), "owner_unknown");
	says(withdraw(s, A, 9, false), "");
	vhca_osm_owners_take_over(&s->owners, true);
	time_to_report(s);
	s->p.subnet.status.ready = true;
	says(report(s, B, 7), "owner_unknown");
	all_have_reported(s);
	says(report(s, B, 7), "");
}

/* So its owner could not bind it any more. */
static void what_is_asked_for_is_nobodys_port(void **state)
{
	struct site *s = *state;
	const struct vhca_osm_table *table = plugin_reports(&s->p)->table;

	time_to_report(s);
	says(declare(s, X, FALSE_GUID), ""); /* before its owner is heard */
	says(report(s, A, 5), "owner_unknown");
	s->p.subnet.physical = PORT(X) + 1;
	says(declare(s, X, PORT(X) + 1), "");
	assert_string_equal(vhca_osm_table_pinned(table, PORT(X) + 1), "hv4");
	all_have_reported(s);
	says(declare(s, X, FALSE_GUID), "");
	says(report(s, A, 5), "");
	says(declare(s, X, FALSE_GUID), "not_your_port");
	says(declare(s, X, FALSE_GUID + 1), "");
	says(report_of(s, FALSE_GUID + 1, A, PORT(A), 5), "guid_is_a_port");
	assert_non_null(strstr(said.hint, "DELETE /v1/pins/"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_spoilt_ticket_spoils_no_chain),
		test(a_new_master_waits_for_all),
		test(who_alone_has_asked_has_it),
		test(who_has_asked_may_give_it_up),
		test(who_asks_for_much_keeps_nobody_from_asking),
		test(what_no_bid_had_room_for_is_nobodys),
		test(one_chain_is_one_party),
		test(an_old_ticket_joins_nobody),
		test(what_a_standby_knows_is_of_an_earlier_time),
		test(whom_nobody_contradicts_a_standby_believes),
		test(nobody_raises_what_is_of_an_earlier_time),
		test(nobody_alone_takes_what_is_kept_for_its_owner),
		test(an_idle_ticket_ends_no_dispute),
		test(before_the_first_sweep_all_wait),
		test(what_is_asked_for_is_nobodys_port),
	};

	return cmocka_run_group_tests_name("osm_settling", tests, site_group_setup,
					   site_group_teardown);
}
