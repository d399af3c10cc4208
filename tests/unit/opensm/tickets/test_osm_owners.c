/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * opensm/tickets: whose a vGUID is, each row of the table in docs/design/0014-authority.md. Four
 * nodes with certificates, of which the last means harm, on a fake subnet and a real state
 * directory.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "opensm/tickets/owners.h"
#include "tests/unit/common/http/auth_files.h"
#include "tests/unit/opensm/plugin.h"
#include "tests/unit/unit.h"

/* ---- fixture ---- */

enum { A, B, C, X, NODES };

static const struct {
	const char *node, *certificate, *key;
} nodes[NODES] = {{"hv1", "named.pem", "named.key"},
		  {"hv2", "by-uri.pem", "by-uri.key"},
		  {"hv3", "by-address.pem", "by-address.key"},
		  {"hv4", "client.pem", "client.key"}};

static struct vhca_http_auth *own[NODES], *plugins; /* what each has, and trusts */
static char names[NODES][VHCA_CALLER_NAME_MAX];
static char texts[VHCA_TICKETS_MAX][VHCA_TICKET_MAX];
static struct vhca_osm_proof proof; /* of the next report */

#define PORT(n) FALSE_PORT(n)

static void name_nodes(void)
{
	for (int n = 0; n < NODES; n++) {
		struct vhca_ticket ticket = {
			.vguid = FALSE_GUID, .epoch = 1, .port_guid = PORT(A), .name = "cert:x"};

		own[n] = auth_loaded(nodes[n].certificate, nodes[n].key, NULL, NULL);
		assert_int_equal(vhca_ticket_sign(own[n], &ticket, NULL), 0);
		assert_int_equal(vhca_ticket_verify(plugins, &ticket, names[n], NULL), 0);
	}
}

static int setup(void **state)
{
	(void)auth_setup(state);
	plugins = auth_loaded(NULL, NULL, "ca.pem", NULL);
	name_nodes();
	return 0;
}

static int teardown(void **state)
{
	for (int n = 0; n < NODES; n++)
		own[n] = vhca_http_auth_free(own[n]);
	plugins = vhca_http_auth_free(plugins);
	return auth_teardown(state);
}

struct site {
	struct plugin p;
	struct vhca_osm_owners owners;
};

static void start(struct site *s)
{
	assert_int_equal(plugin_start(&s->p, NULL), 0);
	vhca_osm_owners_init(&s->owners, &s->p.conf, plugin_reports(&s->p)->table, plugins);
}

static void stop(struct site *s)
{
	plugin_commit(&s->p);
	vhca_osm_owners_done(&s->owners);
	plugin_stop(&s->p);
}

static struct vhca_osm_node node_of(const struct site *s, int n)
{
	const struct vhca_osm_agent *line = vhca_osm_agents_find(&s->p.conf.agents, names[n]);

	return (struct vhca_osm_node){.name = line->node, .line = line};
}

/* As each has declared its keys. */
static void pin_ports(struct site *s)
{
	for (int n = 0; n < NODES; n++) {
		const struct vhca_osm_node by = node_of(s, n);

		assert_int_equal(vhca_osm_report_pin(plugin_reports(&s->p), &by, PORT(n), NULL), 0);
	}
}

static int site_setup(void **state)
{
	struct site *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	plugin_init(&s->p);
	s->p.subnet.anything = true;
	s->p.conf.tickets = s->p.conf.agents.listed = true;
	s->p.conf.settle_s = 0;
	for (int n = 0; n < NODES; n++)
		assert_int_equal(
			vhca_osm_agents_add(&s->p.conf.agents, nodes[n].node, names[n], NULL), 0);
	assert_int_equal(vhca_osm_agents_sort(&s->p.conf.agents, NULL), 0);
	start(s);
	pin_ports(s);
	proof = (struct vhca_osm_proof){.n_tickets = 0};
	*state = s;
	return 0;
}

static int site_teardown(void **state)
{
	struct site *s = *state;

	vhca_osm_owners_done(&s->owners);
	plugin_done(&s->p);
	free(s);
	return 0;
}

/* ---- what is said ---- */

/* The next report has this ticket as well. */
static void with(int from, int to, uint64_t epoch)
{
	struct vhca_ticket ticket = {.vguid = FALSE_GUID, .epoch = epoch, .port_guid = PORT(to)};

	(void)vhca_strcpy(ticket.name, sizeof(ticket.name), names[to]);
	assert_int_equal(vhca_ticket_sign(own[from], &ticket, NULL), 0);
	proof.tickets[proof.n_tickets] = vhca_ticket_format(&ticket, texts[proof.n_tickets]);
	proof.n_tickets++;
}

/* That its signer has not signed so. */
static void spoil(size_t i)
{
	char *of_signature = &texts[i][strlen(texts[i]) - 20];

	*of_signature = *of_signature == 'A' ? 'B' : 'A';
}

static struct vhca_error said; /* by the last report */

/* The error's code, "" = yes. As the routes do it. */
static const char *report_of(struct site *s, uint64_t vguid, int n, uint64_t port_guid,
			     uint64_t epoch)
{
	const struct vhca_osm_node by = node_of(s, n);
	struct vhca_osm_reports *reports = plugin_reports(&s->p);
	struct vhca_osm_eviction ev;
	uint16_t pkey = 0x8001;
	struct vhca_osm_binding b = {.vguid = vguid,
				     .epoch = epoch,
				     .port_guid = port_guid,
				     .n_pkeys = 1,
				     .pkeys = &pkey};
	int r;

	said = (struct vhca_error)VHCA_ERROR_INIT;
	r = vhca_osm_report_check_speaker(reports, &by, b.port_guid, &said);
	if (r == 0)
		r = vhca_osm_owners_put(&s->owners, reports, &by, &b, &proof, 0, &ev, &said);
	if (r == 0)
		assert_int_equal(vhca_osm_report_pin(reports, &by, b.port_guid, &said), 0);
	proof = (struct vhca_osm_proof){.n_tickets = 0};
	assert_true(r == 0 || said.kind);
	return said.code;
}

static const char *report(struct site *s, int n, uint64_t epoch)
{
	return report_of(s, FALSE_GUID, n, PORT(n), epoch);
}

static const char *settle(struct site *s, int n, uint64_t epoch)
{
	proof.settled = true;
	return report(s, n, epoch);
}

static const char *withdraw(struct site *s, int n, uint64_t epoch, bool keep)
{
	static struct vhca_error err;
	const struct vhca_osm_node by = node_of(s, n);
	struct vhca_osm_reports *reports = plugin_reports(&s->p);
	bool nothing = false;
	int r;

	err = (struct vhca_error)VHCA_ERROR_INIT;
	r = vhca_osm_report_check_withdrawer(reports, &by, FALSE_GUID, epoch, PORT(n), &err);
	if (r == 0)
		r = vhca_osm_owners_check_withdrawal(&s->owners, &by, FALSE_GUID, epoch, &nothing,
						     &err);
	if (r == 0 && !nothing)
		(void)vhca_osm_owners_withdraw(&s->owners, reports, &by, FALSE_GUID, epoch, PORT(n),
					       keep, &err);
	return err.code;
}

static void admin_names(struct site *s, int n)
{
	assert_int_equal(vhca_osm_owners_name(&s->owners, FALSE_GUID, PORT(n), NULL), 0);
}

static uint64_t bound_at(struct site *s)
{
	const struct vhca_osm_binding *b =
		vhca_osm_table_find(vhca_osm_service_table(s->p.service), FALSE_GUID);

	return b && !b->withdrawn ? b->port_guid : 0;
}

#define says(call, code) assert_string_equal(call, code)

/* Its owner, settled; whoever else asks at a higher epoch, and withdraws it. */
static void a_has_it(struct site *s, uint64_t epoch)
{
	says(report(s, A, epoch), "");
	says(report(s, X, epoch + 1), "not_the_owner");
	says(withdraw(s, X, epoch + 1, false), "not_the_owner");
	assert_int_equal(bound_at(s), PORT(A));
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
	assert_int_equal(bound_at(s), PORT(A));
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

static void says_who_decides(const char *code)
{
	assert_string_equal(said.code, code);
	assert_non_null(strstr(said.hint, "vhcasmctl owner"));
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

static void in_that_time_it_spoils_none_either(void **state)
{
	struct site *s = *state;

	s->owners.settle_at = vhca_now_ms() + 60000;
	says(report(s, B, 6), "owner_unknown");
	with(A, B, 6);
	with(B, C, 7);
	spoil(0);
	says(report(s, C, 7), "owner_unknown");
	s->owners.settle_at = 0;
	with(A, B, 6);
	with(B, C, 7);
	spoil(0);
	says(report(s, C, 7), "");
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

/* ---- the plugin has none ---- */

static void time_to_report(struct site *s)
{
	s->owners.settle_at = vhca_now_ms() + 60000;
}

static void all_have_reported(struct site *s)
{
	s->owners.settle_at = 0;
}

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

/* Whatever ports it claims, and of nothing that could not be bound. */
static void who_asks_for_much_keeps_nobody_from_asking(void **state)
{
	struct site *s = *state;
	const uint64_t vguid = FALSE_GUID + 1;

	time_to_report(s);
	for (uint64_t i = 0; i < 1100; i++)
		says(report_of(s, vguid + 1 + i, X, PORT(A) + 2 + i % 16, 1), "owner_unknown");
	assert_int_equal(s->owners.bids.n, 1024);
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

#define test(f) cmocka_unit_test_setup_teardown(f, site_setup, site_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(the_owner_is_heard),
		test(whom_the_owner_names_is_heard),
		test(of_several_each_has_named_the_next),
		test(a_ticket_is_no_more_than_it_says),
		test(a_ticket_that_is_not_valid_spoils_no_other),
		test(in_that_time_it_spoils_none_either),
		test(the_other_party_may_have_named_somebody),
		test(a_ticket_of_another_vguid_is_none),
		test(both_parties_may_raise_it_until_it_settles),
		test(who_has_it_back_settles_it_too),
		test(what_is_handed_over_or_parked_stays_its_owners),
		test(what_its_owner_gives_up_is_nobodys),
		test(admin_says_whose_it_is),
		test(admin_says_whose_it_will_be),
		test(of_a_port_without_a_node_it_waits),
		test(all_of_it_is_kept_over_a_restart),
		test(without_the_switch_everybodys_word_counts),
		test(a_new_master_waits_for_all),
		test(who_alone_has_asked_has_it),
		test(who_has_asked_may_give_it_up),
		test(who_asks_for_much_keeps_nobody_from_asking),
		test(what_no_bid_had_room_for_is_nobodys),
		test(one_chain_is_one_party),
		test(an_old_ticket_joins_nobody),
		test(what_a_standby_knows_is_of_an_earlier_time),
		test(whom_nobody_contradicts_a_standby_believes),
	};

	return cmocka_run_group_tests_name("osm_owners", tests, setup, teardown);
}
