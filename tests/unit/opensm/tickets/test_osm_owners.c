/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * opensm/tickets: whose a vGUID is, each row of the table in docs/design/0014-authority.md.
 */
#include <string.h>

#include "tests/unit/opensm/tickets/site.h"

static void says_who_decides(const char *code)
{
	assert_string_equal(said.code, code);
	assert_non_null(strstr(said.hint, "vhcasmctl owner"));
}

/* ---- the plugin has an owner ---- */

static void the_owner_is_heard(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	says(report(s, A, 5), "");
	says(report(s, A, 4), "superseded");
	says(report(s, A, 9), "");
	says(report(s, X, 9), "epoch_tie");
	says(report(s, X, UINT64_C(1) << 32), "not_the_owner");
	says_who_decides("not_the_owner");
	assert_non_null(strstr(said.hint, "vhcactl takeover")); /* his agent does not ask again */
	assert_int_equal(bound_at(s), PORT(A));
}

static void says_who_signs(struct site *s, const char *first, const char *second)
{
	const char *signers[VHCA_OSM_SIGNERS_MAX] = {NULL, NULL};
	size_t n = vhca_osm_owners_signers(&s->owners, FALSE_GUID, signers);

	assert_int_equal(n, second ? 2 : 1);
	assert_string_equal(signers[0], first);
	if (second)
		assert_string_equal(signers[1], second);
}

/* The owner, and who may have it back. */
static void a_refusal_says_who_has_to_sign(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	says_who_signs(s, names[A], NULL);
	says(withdraw(s, A, 5, true), "");
	says(report(s, X, 7), "not_the_owner");
	says_who_signs(s, names[A], NULL); /* parked, too */
	with(A, B, 6);
	says(report(s, B, 6), "");
	says_who_signs(s, names[B], names[A]);
	says(settle(s, B, 6), "");
	says_who_signs(s, names[B], NULL);
}

static void whom_the_owner_names_is_heard(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	with(A, B, 6);
	says(report(s, B, 6), "");
	assert_int_equal(bound_at(s), PORT(B));
	says(report(s, A, 5), "superseded");
	says(report(s, X, 7), "not_the_owner");
	with(A, B, 6);
	says(report(s, B, 8), ""); /* above it, too */
	says(withdraw(s, A, 5, true), "superseded");
	assert_int_equal(bound_at(s), PORT(B));
}

static void of_several_each_has_named_the_next(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	with(B, C, 7);
	says(report(s, C, 7), "not_the_owner"); /* the last one alone */
	with(A, B, 6);
	with(B, C, 7);
	says(report(s, C, 7), "");
	says(report(s, A, 8), "not_the_owner");
	says(report(s, B, 8), ""); /* the last one's signer is the other party */
	says(report(s, C, 9), "");
}

/* As it is worth: for whom, where, from whom, of what, from which epoch on. */
static void a_ticket_is_no_more_than_it_says(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	with(A, B, 6);
	says(report(s, X, 6), "not_the_owner");
	with(A, B, 6);
	says(report(s, B, 5), "epoch_tie");
	with(A, B, 7);
	says(report(s, B, 6), "not_the_owner");
	with(A, B, 5);
	says(report(s, B, 6), "not_the_owner"); /* it was over before */
	with(X, B, 6);
	says(report(s, B, 6), "not_the_owner");
	with(A, B, 6);
	spoil(0);
	says(report(s, B, 6), "ticket_not_valid");
	proof = (struct vhca_osm_proof){.n_tickets = 1, .tickets = {"vhca-ticket-1 no"}};
	says(report(s, B, 6), "bad_ticket");
	assert_int_equal(bound_at(s), PORT(A));
	proof = (struct vhca_osm_proof){.n_tickets = 1, .tickets = {"vhca-ticket-1 no"}};
	says(report(s, A, 6), ""); /* nobody asks the owner for it */
}

/* As that of a certificate which has expired since. */
static void a_ticket_that_is_not_valid_spoils_no_other(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	with(A, B, 6);
	says(report(s, B, 6), "");
	with(A, B, 6); /* which the plugin needs no more */
	with(B, C, 7);
	spoil(0);
	says(report(s, C, 7), "");
	with(C, X, 8);
	with(X, A, 9);
	spoil(0);
	says(report(s, A, 9), "ticket_not_valid");
	says_who_decides("ticket_not_valid");
	with(X, B, 8); /* nor does one of its own making */
	with(C, B, 9);
	spoil(0);
	says(report(s, B, 9), "");
}

/* Of A to B, back, and A to C the plugin has heard the first, late. */
static void the_other_party_may_have_named_somebody(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	with(A, B, 6);
	says(report(s, B, 6), "");
	with(A, C, 6);
	says(report(s, C, 8), "not_the_owner"); /* above the owner's epoch */
	with(A, C, 8);
	says(report(s, C, 8), "");
	says(report(s, B, 9), "not_the_owner");
	says(report(s, A, 9), "");
	says(settle(s, A, 9), "");
	with(C, B, 10);
	says(report(s, B, 10), "not_the_owner"); /* that is no party now */
}

static void a_ticket_of_another_vguid_is_none(void **state)
{
	struct site *s = *state;
	struct vhca_ticket ticket = {
		.vguid = FALSE_GUID + 1, .epoch = 6, .port_guid = PORT(B), .name = ""};

	a_has_it(s, 5);
	(void)vhca_strcpy(ticket.name, sizeof(ticket.name), names[B]);
	assert_int_equal(vhca_ticket_sign(own[A], &ticket, NULL), 0);
	proof.tickets[proof.n_tickets++] = vhca_ticket_format(&ticket, texts[0]);
	says(report(s, B, 6), "ticket_not_valid");
	ticket.vguid = FALSE_GUID;
	ticket.port_guid = PORT(C); /* not the port that he reports */
	assert_int_equal(vhca_ticket_sign(own[A], &ticket, NULL), 0);
	proof.tickets[proof.n_tickets++] = vhca_ticket_format(&ticket, texts[0]);
	says(report(s, B, 6), "not_the_owner");
}

static void both_parties_may_raise_it_until_it_settles(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	with(A, B, 6);
	says(report(s, B, 6), "");
	says(report(s, A, 6), "epoch_tie");
	says(report(s, A, 7), ""); /* it has it back */
	says(report(s, B, 7), "epoch_tie");
	says(report(s, B, 8), "");
	says(settle(s, B, 8), "");
	says(report(s, A, 9), "not_the_owner");
	says(report(s, B, 9), "");
}

static void who_has_it_back_settles_it_too(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	with(A, B, 6);
	says(report(s, B, 6), "");
	says(settle(s, A, 7), "");
	with(A, B, 6);
	says(report(s, B, 8), "not_the_owner");
	with(A, B, 6); /* it settles as it comes */
	with(A, B, 8);
	says(settle(s, B, 8), "");
	says(report(s, A, 9), "not_the_owner");
}

static void what_is_handed_over_or_parked_stays_its_owners(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	says(withdraw(s, A, 5, true), "");
	assert_int_equal(bound_at(s), 0);
	says(report(s, X, 6), "not_the_owner");
	says(withdraw(s, X, 6, false), "not_the_owner");
	says(withdraw(s, X, 5, false), ""); /* and that frees nothing */
	says(report(s, X, 6), "not_the_owner");
	says(report(s, A, 5), "superseded");
	with(A, B, 6);
	says(report(s, B, 6), "");
	says(withdraw(s, B, 6, true), ""); /* none has come: it is the source's, still */
	says(report(s, X, 7), "not_the_owner");
	says(report(s, A, 7), "");
}

static void what_its_owner_gives_up_is_nobodys(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	says(withdraw(s, A, 5, false), "");
	says(report(s, C, 5), "superseded");
	says(report(s, C, 6), "");
	says(report(s, A, 7), "not_the_owner");
	says(withdraw(s, C, 6, true), "");
	says(withdraw(s, C, 6, false), ""); /* nobody comes for it */
	says(report(s, A, 7), "");
}

static void admin_says_whose_it_is(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	admin_names(s, B);
	assert_int_equal(bound_at(s), 0);
	says(report(s, A, 5), "superseded");
	says(report(s, A, 6), "not_the_owner");
	says(report(s, X, 6), "not_the_owner");
	stop(s);
	start(s);
	says(report(s, X, 6), "not_the_owner");
	says(report(s, B, UINT64_C(1) << 32), "");
	with(A, B, 6);
	says(report(s, B, UINT64_C(1) << 32), "");
	admin_names(s, B); /* it is */
	assert_int_equal(bound_at(s), PORT(B));
	says(report(s, A, UINT64_C(2) << 32), "not_the_owner");
}

/* Also of what nobody has ever had, or only withdrawn. */
static void admin_says_whose_it_will_be(void **state)
{
	struct site *s = *state;

	for (int withdrawn = 0; withdrawn < 2; withdrawn++) {
		if (withdrawn)
			assert_int_equal(vhca_osm_report_withdraw(plugin_reports(&s->p), FALSE_GUID,
								  3, 0, NULL),
					 0);
		admin_names(s, B);
		stop(s);
		start(s);
		says(report(s, X, 9), "not_the_owner");
		says(report(s, B, 4), "");
		says(withdraw(s, B, 4, false), "");
		assert_int_equal(
			vhca_osm_table_forget(plugin_reports(&s->p)->table, FALSE_GUID, NULL), 0);
	}
}

/* Where its keys were, which whoever has that port may still have. */
static void who_is_named_leaves_a_port_of_its_own_one(void **state)
{
	struct site *s = *state;
	struct vhca_osm_table *table = plugin_reports(&s->p)->table;
	const struct vhca_osm_binding *b;
	struct vhca_osm_binding own_port = {
		.vguid = FALSE_GUID, .epoch = 5, .port_guid = PORT(A), .own_port = true};

	assert_int_equal(vhca_osm_table_put(table, &own_port, 32, NULL), 0);
	admin_names(s, B);
	b = vhca_osm_table_find(table, FALSE_GUID);
	assert_true(b->withdrawn && b->own_port && b->owner.kept);
}

/* Its last port has no node any more, and may get one: nobody is sent away for good. */
static void of_a_port_without_a_node_it_waits(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	assert_int_equal(vhca_osm_report_unpin(plugin_reports(&s->p), PORT(A), NULL), 0);
	says(report(s, B, 6), "owner_unknown");
	says(report(s, A, 5), "");
	says(report(s, B, 6), "not_the_owner");
}

static void all_of_it_is_kept_over_a_restart(void **state)
{
	struct site *s = *state;

	a_has_it(s, 5);
	with(A, B, 6);
	says(report(s, B, 6), "");
	stop(s);
	start(s);
	says(report(s, X, 9), "not_the_owner");
	says(report(s, A, 7), "");
	says(withdraw(s, A, 7, true), "");
	stop(s);
	start(s);
	says(report(s, X, 9), "not_the_owner");
	says(report(s, B, 8), "");
}

/* As ever: and nothing of it is kept. */
static void without_the_switch_everybodys_word_counts(void **state)
{
	struct site *s = *state;

	s->p.conf.tickets = false;
	says(report(s, A, 5), "");
	says(report(s, X, 6), "");
	proof = (struct vhca_osm_proof){.n_tickets = 1, .tickets = {"no ticket"}, .settled = true};
	says(report(s, A, 7), "");
	says(withdraw(s, A, 7, true), "");
	says(withdraw(s, X, 8, false), "");
	says(report(s, C, 8), "superseded");
	says(report(s, C, 9), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(the_owner_is_heard),
		test(a_refusal_says_who_has_to_sign),
		test(whom_the_owner_names_is_heard),
		test(of_several_each_has_named_the_next),
		test(a_ticket_is_no_more_than_it_says),
		test(a_ticket_that_is_not_valid_spoils_no_other),
		test(the_other_party_may_have_named_somebody),
		test(a_ticket_of_another_vguid_is_none),
		test(both_parties_may_raise_it_until_it_settles),
		test(who_has_it_back_settles_it_too),
		test(what_is_handed_over_or_parked_stays_its_owners),
		test(what_its_owner_gives_up_is_nobodys),
		test(admin_says_whose_it_is),
		test(admin_says_whose_it_will_be),
		test(who_is_named_leaves_a_port_of_its_own_one),
		test(of_a_port_without_a_node_it_waits),
		test(all_of_it_is_kept_over_a_restart),
		test(without_the_switch_everybodys_word_counts),
	};

	return cmocka_run_group_tests_name("osm_owners", tests, site_group_setup,
					   site_group_teardown);
}
