/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * opensm/service, nodes: whose word counts at the plugin, and what nobody may say. On a fake subnet
 * and a real state directory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "opensm/bindings/service.h"
#include "opensm/tickets/owners.h"
#include "tests/unit/opensm/plugin.h"
#include "tests/unit/unit.h"

/* ---- fixture ---- */

static void start(struct plugin *p)
{
	assert_int_equal(plugin_start(p, NULL), 0);
}

static void start_again(struct plugin *p)
{
	plugin_commit(p);
	plugin_stop(p);
	start(p);
}

/* ---- what nobody may say ---- */

static const char *bind(struct plugin *p, uint64_t vguid, uint64_t epoch, uint64_t port)
{
	static struct vhca_error err;
	struct vhca_osm_eviction ev;
	uint16_t pkey = 0x8001;
	const struct vhca_osm_binding b = {.vguid = vguid,
					   .epoch = epoch,
					   .port_guid = port,
					   .gid_index = 3,
					   .n_pkeys = 1,
					   .pkeys = &pkey};
	const char *told;

	err = (struct vhca_error)VHCA_ERROR_INIT;
	told = vhca_osm_report_prepare(plugin_reports(p), &b, 0, &ev, &err) < 0 ? err.code : "";
	err = (struct vhca_error)VHCA_ERROR_INIT;
	if (vhca_osm_report_put(plugin_reports(p), &b, 0, &ev, &err) < 0)
		assert_string_equal(told, err.code);
	return err.code;
}

static const struct vhca_osm_port *port_b(struct plugin *p)
{
	return vhca_osm_table_port(vhca_osm_service_table(p->service), FALSE_PORT_B);
}

/* What PORT_B was found with would go with such a binding, and another key come. */
static void a_ports_guid_is_no_virtual_one(void **state)
{
	struct plugin *p = *state;

	p->subnet.pkeys[0] = 0x8002;
	vhca_osm_service_inherit(p->service, vhca_now_ms());
	p->subnet.physical = FALSE_PORT_B; /* the fabric shows it */
	assert_string_equal(bind(p, FALSE_PORT_B, 1, FALSE_PORT_A), "guid_is_a_port");
	p->subnet.physical = 0;
	assert_string_equal(bind(p, FALSE_PORT_B, 1, FALSE_PORT_B), "guid_is_a_port");
	assert_string_equal(bind(p, FALSE_GUID, 1, FALSE_PORT_B), ""); /* or a report has said so */
	assert_string_equal(bind(p, FALSE_PORT_B, 1, FALSE_PORT_A), "guid_is_a_port");
	assert_int_equal(port_b(p)->n_needs, 2);
	assert_true(port_b(p)->needs[0].bindings == 1 && port_b(p)->needs[1].inherited);
}

static const char *withdraw(struct plugin *p, uint64_t epoch)
{
	static struct vhca_error err;

	err = (struct vhca_error)VHCA_ERROR_INIT;
	(void)vhca_osm_report_withdraw(plugin_reports(p), FALSE_GUID, epoch, 0, &err);
	return err.code;
}

/* At the last epoch there is nobody would ever have the vGUID again. */
static void no_report_goes_to_the_last_epoch(void **state)
{
	const uint64_t first = VHCA_OSM_EPOCH_FREE;
	struct plugin *p = *state;

	assert_string_equal(withdraw(p, INT64_MAX), "epoch_too_high");
	assert_string_equal(bind(p, FALSE_GUID, INT64_MAX, FALSE_PORT_A), "epoch_too_high");
	assert_null(vhca_osm_table_find(vhca_osm_service_table(p->service), FALSE_GUID));
	assert_string_equal(bind(p, FALSE_GUID, 3, FALSE_PORT_A), "");
	assert_string_equal(withdraw(p, INT64_MAX), "epoch_too_high");
	/* Take-overs that this subnet manager has not heard of. */
	assert_string_equal(bind(p, FALSE_GUID, UINT64_C(70) << 32, FALSE_PORT_B), "");
	assert_string_equal(bind(p, FALSE_GUID, first + 1, FALSE_PORT_A), "epoch_too_high");
	assert_string_equal(withdraw(p, first), "");
	assert_string_equal(withdraw(p, first + VHCA_OSM_EPOCH_JUMP + 1), "epoch_too_high");
	assert_string_equal(bind(p, FALSE_GUID, first + VHCA_OSM_EPOCH_JUMP, FALSE_PORT_A), "");
}

/* By a file that was edited. */
static void who_was_locked_out_is_let_in_again(void **state)
{
	struct plugin *p = *state;

	plugin_stop(p);
	tree_put(&p->tree, "state/bindings",
		 "vhcasm-state 2\nt 0x02c9ab0000000001 9223372036854775807 0x0\nend 1\n");
	start(p);
	assert_string_equal(bind(p, FALSE_GUID, INT64_MAX, FALSE_PORT_A), "superseded");
	p->subnet.status.master = false;
	assert_true(vhca_osm_report_forget(plugin_reports(p), FALSE_GUID, NULL) < 0);
	p->subnet.status.master = true;
	assert_int_equal(vhca_osm_report_forget(plugin_reports(p), FALSE_GUID, NULL), 0);
	assert_string_equal(bind(p, FALSE_GUID, 1, FALSE_PORT_A), "");
}

/* ---- whose word ---- */

static const struct vhca_osm_node hv1 = {.name = "hv1"}, hv2 = {.name = "token:hv2"};

static const char *speak(struct plugin *p, const struct vhca_osm_node *by, uint64_t port)
{
	static struct vhca_error err;

	err = (struct vhca_error)VHCA_ERROR_INIT;
	if (vhca_osm_report_check_speaker(plugin_reports(p), by, port, &err) == 0)
		assert_int_equal(vhca_osm_report_pin(plugin_reports(p), by, port, &err), 0);
	return err.code;
}

static const char *may_withdraw(struct plugin *p, const struct vhca_osm_node *by, uint64_t epoch,
				uint64_t port)
{
	static struct vhca_error err;

	err = (struct vhca_error)VHCA_ERROR_INIT;
	(void)vhca_osm_report_check_withdrawer(plugin_reports(p), by, FALSE_GUID, epoch, port,
					       &err);
	return err.code;
}

static void a_port_is_its_first_speakers(void **state)
{
	struct plugin *p = *state;

	assert_string_equal(speak(p, NULL, FALSE_PORT_A), ""); /* an admin pins nothing */
	assert_string_equal(speak(p, &hv1, FALSE_PORT_A), "");
	assert_string_equal(speak(p, &hv1, FALSE_PORT_A), "");
	assert_string_equal(speak(p, &hv2, FALSE_PORT_A), "not_your_port");
	assert_string_equal(speak(p, NULL, FALSE_PORT_A), "");
	assert_string_equal(speak(p, &hv2, FALSE_PORT_B), "");
	assert_string_equal(bind(p, FALSE_PORT_B, 1, FALSE_PORT_A), "guid_is_a_port");
	assert_string_equal(speak(p, &hv2, 0x1234), ""); /* it is not there: nothing to pin */
	assert_null(vhca_osm_table_pinned(vhca_osm_service_table(p->service), 0x1234));
	start_again(p);
	assert_string_equal(speak(p, &hv1, FALSE_PORT_B), "not_your_port");
	assert_int_equal(vhca_osm_report_unpin(plugin_reports(p), FALSE_PORT_B, NULL), 0);
	assert_true(vhca_osm_report_unpin(plugin_reports(p), FALSE_PORT_B, NULL) < 0);
	assert_string_equal(speak(p, &hv1, FALSE_PORT_B), "");
	assert_string_equal(speak(p, &hv2, FALSE_PORT_B), "not_your_port");
	p->subnet.status.master = false;
	assert_string_equal(speak(p, &hv2, FALSE_PORT_B), "not_master");
	assert_int_equal(vhca_osm_report_unpin(plugin_reports(p), FALSE_PORT_B, NULL),
			 0); /* its own one */
}

/* Nor a guest's own port, which it would have with the pin. */
static void a_virtual_guid_is_nobodys_port(void **state)
{
	struct plugin *p = *state;

	assert_string_equal(bind(p, FALSE_GUID, 1, FALSE_PORT_A), "");
	assert_string_equal(speak(p, &hv2, FALSE_GUID), "not_your_port");
	assert_string_equal(withdraw(p, 1), "");
	assert_string_equal(speak(p, &hv2, FALSE_GUID), "not_your_port");
}

/* The tombstone of what was never bound is anybody's word: it makes no port a virtual GUID. */
static void a_port_is_not_denied_by_withdrawing_it(void **state)
{
	struct plugin *p = *state;

	assert_int_equal(vhca_osm_report_withdraw(plugin_reports(p), FALSE_PORT_B, 1, 0, NULL), 0);
	assert_string_equal(speak(p, &hv1, FALSE_PORT_B), "");
}

/* The fabric has the last word: who binds a port's GUID before its host is up gets nothing. */
static void a_port_is_not_denied_by_binding_it(void **state)
{
	struct plugin *p = *state;

	assert_string_equal(bind(p, FALSE_PORT_B, 1, FALSE_PORT_A), "");
	p->subnet.physical = FALSE_PORT_B; /* its host is up */
	assert_string_equal(bind(p, FALSE_PORT_B, 2, FALSE_PORT_A), "guid_is_a_port");
	assert_string_equal(speak(p, &hv2, FALSE_PORT_B), "");
	assert_string_equal(bind(p, FALSE_GUID, 1, FALSE_PORT_B), "");
	assert_int_equal(vhca_osm_report_unpin(plugin_reports(p), FALSE_PORT_B, NULL), 0);
	assert_int_equal(vhca_osm_report_withdraw(plugin_reports(p), FALSE_PORT_B, 1, 0, NULL), 0);
	assert_string_equal(speak(p, &hv1, FALSE_PORT_B), ""); /* nor does what is left of it */
}

static void a_line_has_the_last_word(void **state)
{
	struct plugin *p = *state;
	struct vhca_osm_node listed = {.name = "hv3"};

	assert_string_equal(speak(p, &hv1, FALSE_PORT_A), "");
	assert_int_equal(
		vhca_osm_agents_add(&p->conf.agents, "hv3", "cert:hv3 0x0002c90300000a01", NULL),
		0);
	assert_int_equal(vhca_osm_agents_sort(&p->conf.agents, NULL), 0);
	listed.line = vhca_osm_agents_find(&p->conf.agents, "cert:hv3");
	start_again(p);
	assert_string_equal(speak(p, &hv1, FALSE_PORT_A), "not_your_port");
	assert_string_equal(speak(p, &listed, FALSE_PORT_A), "");
	assert_string_equal(speak(p, &listed, FALSE_PORT_B),
			    "not_your_port"); /* it has said which */
}

static void nobody_pins_all_ports(void **state)
{
	struct plugin *p = *state;

	p->subnet.anything = true;
	for (uint64_t port = 1; port <= VHCA_OSM_NODE_PORTS_MAX; port++)
		assert_string_equal(speak(p, &hv1, port), "");
	assert_string_equal(speak(p, &hv1, FALSE_PORT_A), "table_full");
	assert_string_equal(speak(p, &hv1, 1), "");
	assert_string_equal(speak(p, &hv2, FALSE_PORT_A), "");
}

/* A card has gone, and another one is in its place. */
static void a_port_that_has_gone_makes_room(void **state)
{
	struct plugin *p = *state;

	p->subnet.anything = true;
	assert_string_equal(speak(p, &hv2, 100), "");
	p->subnet.gone = 100;
	for (uint64_t port = 1; port <= VHCA_OSM_NODE_PORTS_MAX; port++)
		assert_string_equal(speak(p, &hv1, port), "");
	assert_string_equal(speak(p, &hv1, FALSE_PORT_A),
			    "table_full"); /* what has gone is another's */
	p->subnet.gone = 7;
	assert_string_equal(speak(p, &hv1, FALSE_PORT_A), "");
	assert_null(vhca_osm_table_pinned(vhca_osm_service_table(p->service), 7));
	assert_string_equal(speak(p, &hv2, 7), ""); /* it is nobody's, and not there to pin */
	assert_string_equal(speak(p, &hv1, FALSE_PORT_B), "table_full");
}

/* Of a node that has another name, or is no more. */
static void pins_of_strangers_end(void **state)
{
	struct plugin *p = *state;

	assert_string_equal(speak(p, &hv1, FALSE_PORT_A), "");
	assert_string_equal(speak(p, &hv2, FALSE_PORT_B), "");
	p->conf.agents.listed = true;
	assert_int_equal(vhca_osm_agents_add(&p->conf.agents, "hv1", "cert:hv1", NULL), 0);
	start_again(p);
	assert_string_equal(speak(p, &hv2, FALSE_PORT_A), "not_your_port");
	p->conf.agents.list[0].node[2] = '9';
	start_again(p);
	assert_string_equal(speak(p, &hv2, FALSE_PORT_A), "");
	assert_string_equal(speak(p, &hv1, FALSE_PORT_B), "not_your_port"); /* a token's stays */
}

static void a_stranger_withdraws_nothing(void **state)
{
	struct plugin *p = *state;

	assert_string_equal(may_withdraw(p, &hv2, 9, FALSE_PORT_B), ""); /* nothing is known */
	assert_string_equal(bind(p, FALSE_GUID, 5, FALSE_PORT_A), "");
	assert_string_equal(may_withdraw(p, &hv2, 9, 0), "not_the_owner"); /* of no pin, either */
	assert_string_equal(may_withdraw(p, &hv2, 9, FALSE_PORT_B), "not_the_owner");
	assert_string_equal(may_withdraw(p, &hv1, 9, FALSE_PORT_A), ""); /* the first to say so */
	assert_string_equal(speak(p, &hv1, FALSE_PORT_A), "");
	assert_string_equal(may_withdraw(p, &hv2, 9, FALSE_PORT_A), "not_your_port");
	assert_string_equal(may_withdraw(p, &hv2, 5, 0), "not_the_owner");
	assert_string_equal(may_withdraw(p, &hv2, 5, FALSE_PORT_B), ""); /* a tie, and told so */
	assert_string_equal(may_withdraw(p, &hv2, 4, FALSE_PORT_B), ""); /* superseded */
	assert_string_equal(may_withdraw(p, &hv1, 5, FALSE_PORT_A), "");
	assert_string_equal(may_withdraw(p, &hv1, 5, 0), "");
	/* Who is bound to no node may end it, but not as a port that never had it. */
	assert_string_equal(may_withdraw(p, NULL, 9, 0), "");
	assert_string_equal(may_withdraw(p, NULL, 9, FALSE_PORT_A), "");
	assert_string_equal(may_withdraw(p, NULL, 9, FALSE_PORT_B), "not_the_owner");
	p->subnet.status.master = false;
	assert_string_equal(may_withdraw(p, NULL, 9, FALSE_PORT_B), "not_master");
}

static bool leaves_rest(struct plugin *p, const struct vhca_osm_node *by, uint64_t epoch,
			uint64_t port)
{
	return vhca_osm_node_leaves_rest(&p->conf.agents, vhca_osm_service_table(p->service), by,
					 FALSE_GUID, epoch, port);
}

/* A LID that waits for a migration's destination is the source's to free, and an admin's. */
static void what_waits_is_the_sources_to_end(void **state)
{
	struct plugin *p = *state;

	assert_false(leaves_rest(p, &hv2, 5, 0)); /* nothing is known */
	assert_string_equal(bind(p, FALSE_GUID, 5, FALSE_PORT_A), "");
	assert_string_equal(speak(p, &hv1, FALSE_PORT_A), "");
	assert_false(leaves_rest(p, &hv1, 5, FALSE_PORT_A));
	assert_string_equal(withdraw(p, 5), "");
	assert_true(leaves_rest(p, &hv2, 5, 0));
	assert_true(leaves_rest(p, &hv2, 5, FALSE_PORT_B));
	assert_true(leaves_rest(p, &hv2, 6, FALSE_PORT_B));
	assert_true(leaves_rest(p, &hv1, 4, FALSE_PORT_A)); /* of an older epoch */
	assert_false(leaves_rest(p, &hv1, 5, FALSE_PORT_A));
	assert_false(leaves_rest(p, &hv1, 5, 0));
	assert_false(leaves_rest(p, NULL, 5, 0));
	assert_int_equal(vhca_osm_report_unpin(plugin_reports(p), FALSE_PORT_A, NULL), 0);
	assert_false(
		leaves_rest(p, &hv1, 5, FALSE_PORT_A)); /* nobody's port: who says that it is his */
	assert_true(leaves_rest(p, &hv2, 5, 0));
}

/* Above half of the table one port has no more than an adapter needs; below it is free. */
static void nobody_binds_all_there_is(void **state)
{
	struct plugin *p = *state;
	const uint64_t half = VHCA_OSM_BINDINGS_MAX / 2;

	vhca_log_set_level(VHCA_LOG_ERROR);
	for (uint64_t i = 0; i <= half; i++)
		assert_string_equal(bind(p, FALSE_GUID + i, 1, i % 3 ? FALSE_PORT_A : FALSE_PORT_B),
				    "");
	assert_string_equal(bind(p, FALSE_GUID - 1, 1, FALSE_PORT_A), "table_full");
	assert_string_equal(bind(p, FALSE_GUID, 2, FALSE_PORT_A),
			    "table_full"); /* it was PORT_B's */
	assert_string_equal(bind(p, FALSE_GUID, 1, FALSE_PORT_A), "epoch_tie");
	assert_string_equal(bind(p, FALSE_GUID, 2, FALSE_PORT_B), "");
	p->subnet.anything = true;
	for (uint64_t i = 0; i < VHCA_OSM_BINDINGS_AT_MAX; i++)
		assert_string_equal(bind(p, FALSE_GUID + half + 1 + i, 1, 7), "");
	assert_string_equal(bind(p, FALSE_GUID - 1, 1, 7), "table_full");
	start_again(p); /* what is there stays */
	assert_int_equal(vhca_osm_table_bindings(vhca_osm_service_table(p->service)),
			 half + 1 + VHCA_OSM_BINDINGS_AT_MAX);
	vhca_log_set_level(VHCA_LOG_INFO);
}

/* ---- what is open without tickets (docs/design/0014-authority.md) ---- */

#define PORT_C FALSE_PORT(2)

static const struct vhca_osm_node hv3 = {.name = "hv3"};

/* As the routes do it: who has that port, and then what it says. */
static const char *bind_as(struct plugin *p, const struct vhca_osm_node *by, uint64_t epoch,
			   uint64_t port)
{
	const char *code = speak(p, by, port);

	return *code ? code : bind(p, FALSE_GUID, epoch, port);
}

static void it_runs_at_a(struct plugin *p)
{
	assert_string_equal(bind_as(p, &hv1, 5, FALSE_PORT_A), "");
}

static void a_has_withdrawn_it(struct plugin *p)
{
	it_runs_at_a(p);
	assert_string_equal(may_withdraw(p, &hv1, 5, FALSE_PORT_A), "");
	assert_string_equal(withdraw(p, 5), "");
}

static void the_state_is_lost(struct plugin *p)
{
	char path[TREE_PATH_MAX];

	it_runs_at_a(p);
	plugin_commit(p);
	plugin_stop(p);
	(void)snprintf(path, sizeof(path), "%s/bindings", p->conf.state_dir);
	assert_int_equal(unlink(path), 0);
	start(p);
}

/*
 * hv2 has a certificate, and PORT_B. Each of these succeeds; with tickets hv2 is refused, and the
 * owner's report is accepted.
 */
static const struct theft {
	const char *of;
	void (*before)(struct plugin *p);
	uint64_t epoch; /* hv2's */
	const struct vhca_osm_node *owner;
	uint64_t owners_epoch, owners_port;
	const char *told; /* with tickets */
} thefts[] = {
	{"what another node has", it_runs_at_a, 6, &hv1, 5, FALSE_PORT_A, "not_the_owner"},
	{"the same, as if somebody had vouched", it_runs_at_a, UINT64_C(1) << 32, &hv1, 5,
	 FALSE_PORT_A, "not_the_owner"},
	{"what comes to hv3, before its source is heard", it_runs_at_a, 7, &hv3, 6, PORT_C,
	 "not_the_owner"},
	{"what comes to hv3, after its source has withdrawn", a_has_withdrawn_it, 7, &hv3, 6,
	 PORT_C, "not_the_owner"},
	{"what a manager does not know that has lost its state", the_state_is_lost, 6, &hv1, 5,
	 FALSE_PORT_A, "owner_unknown"},
};

static void take(struct plugin *p, const struct theft *theft)
{
	const struct vhca_osm_table *t;

	p->subnet.anything = true;
	theft->before(p);
	assert_string_equal(bind_as(p, &hv2, theft->epoch, FALSE_PORT_B), "");
	t = vhca_osm_service_table(p->service);
	assert_int_equal(vhca_osm_table_find(t, FALSE_GUID)->port_guid, FALSE_PORT_B);
	assert_null(vhca_osm_table_port(t, FALSE_PORT_A)); /* its key has gone from there */
	assert_string_equal(bind_as(p, theft->owner, theft->owners_epoch, theft->owners_port),
			    "superseded");
	assert_string_equal(may_withdraw(p, theft->owner, theft->epoch + 1, theft->owners_port),
			    "not_the_owner");
	print_message("# open: a node takes %s\n", theft->of);
}

static void a_node_takes_what_is_anothers(void **state)
{
	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(thefts); i++) {
		void *p;

		assert_int_equal(plugin_setup(&p), 0);
		take(p, &thefts[i]);
		assert_int_equal(plugin_teardown(&p), 0);
	}
}

static const char *judge(struct plugin *p, struct vhca_osm_owners *owners,
			 const struct vhca_osm_node *by, uint64_t epoch, uint64_t port)
{
	static struct vhca_error err;
	struct vhca_osm_binding b = {.vguid = FALSE_GUID, .epoch = epoch, .port_guid = port};
	const struct vhca_osm_proof none = {.n_tickets = 0};
	struct vhca_osm_eviction ev;
	const char *code = speak(p, by, port);

	err = (struct vhca_error)VHCA_ERROR_INIT;
	if (!*code)
		(void)vhca_osm_owners_put(owners, plugin_reports(p), by, &b, &none, 0, &ev, &err);
	return *code ? code : err.code;
}

/* In its state hv1 has withdrawn it to hand it over. */
static void refuse(struct plugin *p, const struct theft *theft)
{
	struct vhca_osm_owners owners;
	const struct vhca_osm_owner kept = {.kept = true};

	p->subnet.anything = p->conf.tickets = true;
	theft->before(p);
	vhca_osm_owners_init(&owners, &p->conf, plugin_reports(p)->table, NULL);
	if (theft->before == a_has_withdrawn_it)
		vhca_osm_table_set_owner(plugin_reports(p)->table, FALSE_GUID, &kept);
	assert_string_equal(judge(p, &owners, &hv2, theft->epoch, FALSE_PORT_B), theft->told);
	owners.settle_at = 0;
	if (theft->before == the_state_is_lost) /* it has asked, and hv1 not yet */
		assert_int_equal(
			vhca_osm_owners_name(&owners, FALSE_GUID, theft->owners_port, NULL), 0);
	if (theft->owner == &hv1)
		assert_string_equal(
			judge(p, &owners, &hv1, theft->owners_epoch, theft->owners_port), "");
	vhca_osm_owners_done(&owners);
}

/* hv3's ticket is test_osm_owners'. */
static void with_tickets_it_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(thefts); i++) {
		void *p;

		assert_int_equal(plugin_setup(&p), 0);
		refuse(p, &thefts[i]);
		assert_int_equal(plugin_teardown(&p), 0);
	}
}

/* So it keeps a destination out, and need have nothing of the vGUID's for that. */
static void a_node_raises_what_another_has_withdrawn(void **state)
{
	struct plugin *p = *state;

	p->subnet.anything = true;
	a_has_withdrawn_it(p);
	assert_string_equal(speak(p, &hv2, FALSE_PORT_B), "");
	assert_string_equal(may_withdraw(p, &hv2, 9, FALSE_PORT_B), "");
	assert_string_equal(withdraw(p, 9), "");
	assert_string_equal(bind_as(p, &hv3, 6, PORT_C), "superseded");
	print_message("# open: a node raises the epoch of what another one has withdrawn\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_ports_guid_is_no_virtual_one, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(no_report_goes_to_the_last_epoch, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(who_was_locked_out_is_let_in_again, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(a_port_is_its_first_speakers, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(a_virtual_guid_is_nobodys_port, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(a_port_is_not_denied_by_withdrawing_it,
						plugin_setup, plugin_teardown),
		cmocka_unit_test_setup_teardown(a_port_is_not_denied_by_binding_it, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(a_line_has_the_last_word, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(nobody_pins_all_ports, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(a_port_that_has_gone_makes_room, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(pins_of_strangers_end, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(a_stranger_withdraws_nothing, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(what_waits_is_the_sources_to_end, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(nobody_binds_all_there_is, plugin_setup,
						plugin_teardown),
		cmocka_unit_test(a_node_takes_what_is_anothers),
		cmocka_unit_test(with_tickets_it_is_refused),
		cmocka_unit_test_setup_teardown(a_node_raises_what_another_has_withdrawn,
						plugin_setup, plugin_teardown),
	};

	return cmocka_run_group_tests_name("osm_authority", tests, NULL, NULL);
}
