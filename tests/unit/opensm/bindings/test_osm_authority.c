/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * opensm/service, nodes: whose word counts at the plugin, and what nobody may say. On a fake subnet
 * and a real state directory.
 */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/log.h"
#include "opensm/bindings/service.h"
#include "tests/unit/tree.h"

#define PORT_A UINT64_C(0x0002c90300000a01)
#define PORT_B UINT64_C(0x0002c90300000b01)
#define GUID_1 UINT64_C(0x02c9ab0000000001)

/* ---- the fake subnet: two ports with one key each ---- */

struct fake {
	bool standby;
	bool anything; /* any GUID is a port, but the one that has gone */
	uint64_t gone;
	uint64_t physical; /* a port of which the fabric shows it */
	uint16_t pkey;	   /* found at all ports */
};

static void fake_status(void *ctx, struct vhca_osm_status *ret)
{
	const struct fake *f = ctx;

	*ret = (struct vhca_osm_status){
		.sm_state = "fake", .master = !f->standby, .ready = true, .version = "fake"};
}

static bool fake_port(void *ctx, uint64_t guid, struct vhca_osm_port_info *ret)
{
	const struct fake *f = ctx;

	*ret = (struct vhca_osm_port_info){5, VHCA_OSM_PORT_ACTIVE, 128};
	return guid == PORT_A || guid == PORT_B || (f->anything && guid != f->gone);
}

static bool fake_alias(void *ctx, uint64_t guid, struct vhca_osm_alias *ret)
{
	(void)ctx;
	(void)guid;
	(void)ret;
	return false;
}

static bool fake_physical(void *ctx, uint64_t guid)
{
	const struct fake *f = ctx;

	return guid == f->physical;
}

static void fake_each_port(void *ctx, vhca_osm_port_fn fn, void *arg)
{
	const struct fake *f = ctx;

	fn(arg, PORT_A, &f->pkey, 1);
	fn(arg, PORT_B, &f->pkey, 1);
}

static int fake_apply(void *ctx)
{
	(void)ctx;
	return 0;
}

static const struct vhca_osm_subnet_ops fake_ops = {
	.status = fake_status,
	.find_port = fake_port,
	.find_alias = fake_alias,
	.is_physical = fake_physical,
	.each_port = fake_each_port,
	.apply = fake_apply,
};

/* ---- fixture ---- */

struct world {
	struct tree tree;
	struct fake fake;
	struct vhca_osm_conf conf;
	struct vhca_osm_service *service;
};

static void start(struct world *w)
{
	assert_int_equal(vhca_osm_service_new(&w->conf, &fake_ops, &w->fake, &w->service, NULL), 0);
}

static void stop(struct world *w)
{
	w->service = vhca_osm_service_free(w->service);
}

static void start_again(struct world *w)
{
	assert_int_equal(vhca_osm_service_commit(w->service, NULL), 0);
	stop(w);
	start(w);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	tree_init(&w->tree);
	vhca_osm_conf_set_defaults(&w->conf);
	(void)snprintf(w->conf.state_dir, sizeof(w->conf.state_dir), "%s/state", w->tree.root);
	start(w);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	stop(w);
	vhca_osm_conf_done(&w->conf);
	tree_done(&w->tree);
	free(w);
	return 0;
}

/* ---- what nobody may say ---- */

static const char *bind(struct world *w, uint64_t vguid, uint64_t epoch, uint64_t port)
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
	told = vhca_osm_service_prepare(w->service, &b, 0, &ev, &err) < 0 ? err.code : "";
	err = (struct vhca_error)VHCA_ERROR_INIT;
	if (vhca_osm_service_put(w->service, &b, 0, &ev, &err) < 0)
		assert_string_equal(told, err.code);
	return err.code;
}

static const struct vhca_osm_port *port_b(struct world *w)
{
	return vhca_osm_table_port(vhca_osm_service_table(w->service), PORT_B);
}

/* What PORT_B was found with would go with such a binding, and another key come. */
static void a_ports_guid_is_no_virtual_one(void **state)
{
	struct world *w = *state;

	w->fake.pkey = 0x8002;
	vhca_osm_service_inherit(w->service, vhca_now_ms());
	w->fake.physical = PORT_B; /* the fabric shows it */
	assert_string_equal(bind(w, PORT_B, 1, PORT_A), "guid_is_a_port");
	w->fake.physical = 0;
	assert_string_equal(bind(w, PORT_B, 1, PORT_B), "guid_is_a_port");
	assert_string_equal(bind(w, GUID_1, 1, PORT_B), ""); /* or a report has said so */
	assert_string_equal(bind(w, PORT_B, 1, PORT_A), "guid_is_a_port");
	assert_int_equal(port_b(w)->n_needs, 2);
	assert_true(port_b(w)->needs[0].bindings == 1 && port_b(w)->needs[1].inherited);
}

static const char *withdraw(struct world *w, uint64_t epoch)
{
	static struct vhca_error err;

	err = (struct vhca_error)VHCA_ERROR_INIT;
	(void)vhca_osm_service_withdraw(w->service, GUID_1, epoch, 0, &err);
	return err.code;
}

/* At the last epoch there is nobody would ever have the vGUID again. */
static void no_report_goes_to_the_last_epoch(void **state)
{
	const uint64_t first = VHCA_OSM_EPOCH_FREE;
	struct world *w = *state;

	assert_string_equal(withdraw(w, INT64_MAX), "epoch_too_high");
	assert_string_equal(bind(w, GUID_1, INT64_MAX, PORT_A), "epoch_too_high");
	assert_null(vhca_osm_table_find(vhca_osm_service_table(w->service), GUID_1));
	assert_string_equal(bind(w, GUID_1, 3, PORT_A), "");
	assert_string_equal(withdraw(w, INT64_MAX), "epoch_too_high");
	/* Take-overs that this subnet manager has not heard of. */
	assert_string_equal(bind(w, GUID_1, UINT64_C(70) << 32, PORT_B), "");
	assert_string_equal(bind(w, GUID_1, first + 1, PORT_A), "epoch_too_high");
	assert_string_equal(withdraw(w, first), "");
	assert_string_equal(withdraw(w, first + VHCA_OSM_EPOCH_JUMP + 1), "epoch_too_high");
	assert_string_equal(bind(w, GUID_1, first + VHCA_OSM_EPOCH_JUMP, PORT_A), "");
}

/* By a file that was edited. */
static void who_was_locked_out_is_let_in_again(void **state)
{
	struct world *w = *state;

	stop(w);
	tree_put(&w->tree, "state/bindings",
		 "vhcasm-state 2\nt 0x02c9ab0000000001 9223372036854775807 0x0\nend 1\n");
	start(w);
	assert_string_equal(bind(w, GUID_1, INT64_MAX, PORT_A), "superseded");
	w->fake.standby = true;
	assert_true(vhca_osm_service_forget(w->service, GUID_1, NULL) < 0);
	w->fake.standby = false;
	assert_int_equal(vhca_osm_service_forget(w->service, GUID_1, NULL), 0);
	assert_string_equal(bind(w, GUID_1, 1, PORT_A), "");
}

/* ---- whose word ---- */

static const struct vhca_osm_node hv1 = {.name = "hv1"}, hv2 = {.name = "token:hv2"};

static const char *speak(struct world *w, const struct vhca_osm_node *by, uint64_t port)
{
	static struct vhca_error err;

	err = (struct vhca_error)VHCA_ERROR_INIT;
	if (vhca_osm_service_check_speaker(w->service, by, port, &err) == 0)
		assert_int_equal(vhca_osm_service_pin(w->service, by, port, &err), 0);
	return err.code;
}

static const char *may_withdraw(struct world *w, const struct vhca_osm_node *by, uint64_t epoch,
				uint64_t port)
{
	static struct vhca_error err;

	err = (struct vhca_error)VHCA_ERROR_INIT;
	(void)vhca_osm_service_check_withdrawer(w->service, by, GUID_1, epoch, port, &err);
	return err.code;
}

static void a_port_is_its_first_speakers(void **state)
{
	struct world *w = *state;

	assert_string_equal(speak(w, NULL, PORT_A), ""); /* an admin pins nothing */
	assert_string_equal(speak(w, &hv1, PORT_A), "");
	assert_string_equal(speak(w, &hv1, PORT_A), "");
	assert_string_equal(speak(w, &hv2, PORT_A), "not_your_port");
	assert_string_equal(speak(w, NULL, PORT_A), "");
	assert_string_equal(speak(w, &hv2, PORT_B), "");
	assert_string_equal(bind(w, PORT_B, 1, PORT_A), "guid_is_a_port");
	assert_string_equal(speak(w, &hv2, 0x1234), ""); /* it is not there: nothing to pin */
	assert_null(vhca_osm_table_pinned(vhca_osm_service_table(w->service), 0x1234));
	start_again(w);
	assert_string_equal(speak(w, &hv1, PORT_B), "not_your_port");
	assert_int_equal(vhca_osm_service_unpin(w->service, PORT_B, NULL), 0);
	assert_true(vhca_osm_service_unpin(w->service, PORT_B, NULL) < 0);
	assert_string_equal(speak(w, &hv1, PORT_B), "");
	assert_string_equal(speak(w, &hv2, PORT_B), "not_your_port");
	w->fake.standby = true;
	assert_string_equal(speak(w, &hv2, PORT_B), "not_master");
	assert_int_equal(vhca_osm_service_unpin(w->service, PORT_B, NULL), 0); /* its own one */
}

/* Nor a guest's own port, which it would have with the pin. */
static void a_virtual_guid_is_nobodys_port(void **state)
{
	struct world *w = *state;

	assert_string_equal(bind(w, GUID_1, 1, PORT_A), "");
	assert_string_equal(speak(w, &hv2, GUID_1), "not_your_port");
	assert_string_equal(withdraw(w, 1), "");
	assert_string_equal(speak(w, &hv2, GUID_1), "not_your_port");
}

/* The tombstone of what was never bound is anybody's word: it makes no port a virtual GUID. */
static void a_port_is_not_denied_by_withdrawing_it(void **state)
{
	struct world *w = *state;

	assert_int_equal(vhca_osm_service_withdraw(w->service, PORT_B, 1, 0, NULL), 0);
	assert_string_equal(speak(w, &hv1, PORT_B), "");
}

/* The fabric has the last word: who binds a port's GUID before its host is up gets nothing. */
static void a_port_is_not_denied_by_binding_it(void **state)
{
	struct world *w = *state;

	assert_string_equal(bind(w, PORT_B, 1, PORT_A), "");
	w->fake.physical = PORT_B; /* its host is up */
	assert_string_equal(bind(w, PORT_B, 2, PORT_A), "guid_is_a_port");
	assert_string_equal(speak(w, &hv2, PORT_B), "");
	assert_string_equal(bind(w, GUID_1, 1, PORT_B), "");
	assert_int_equal(vhca_osm_service_unpin(w->service, PORT_B, NULL), 0);
	assert_int_equal(vhca_osm_service_withdraw(w->service, PORT_B, 1, 0, NULL), 0);
	assert_string_equal(speak(w, &hv1, PORT_B), ""); /* nor does what is left of it */
}

static void a_line_has_the_last_word(void **state)
{
	struct world *w = *state;
	struct vhca_osm_node listed = {.name = "hv3"};

	assert_string_equal(speak(w, &hv1, PORT_A), "");
	assert_int_equal(
		vhca_osm_agents_add(&w->conf.agents, "hv3", "cert:hv3 0x0002c90300000a01", NULL),
		0);
	assert_int_equal(vhca_osm_agents_sort(&w->conf.agents, NULL), 0);
	listed.line = vhca_osm_agents_find(&w->conf.agents, "cert:hv3");
	start_again(w);
	assert_string_equal(speak(w, &hv1, PORT_A), "not_your_port");
	assert_string_equal(speak(w, &listed, PORT_A), "");
	assert_string_equal(speak(w, &listed, PORT_B), "not_your_port"); /* it has said which */
}

static void nobody_pins_all_ports(void **state)
{
	struct world *w = *state;

	w->fake.anything = true;
	for (uint64_t port = 1; port <= VHCA_OSM_NODE_PORTS_MAX; port++)
		assert_string_equal(speak(w, &hv1, port), "");
	assert_string_equal(speak(w, &hv1, PORT_A), "table_full");
	assert_string_equal(speak(w, &hv1, 1), "");
	assert_string_equal(speak(w, &hv2, PORT_A), "");
}

/* A card has gone, and another one is in its place. */
static void a_port_that_has_gone_makes_room(void **state)
{
	struct world *w = *state;

	w->fake.anything = true;
	assert_string_equal(speak(w, &hv2, 100), "");
	w->fake.gone = 100;
	for (uint64_t port = 1; port <= VHCA_OSM_NODE_PORTS_MAX; port++)
		assert_string_equal(speak(w, &hv1, port), "");
	assert_string_equal(speak(w, &hv1, PORT_A), "table_full"); /* what has gone is another's */
	w->fake.gone = 7;
	assert_string_equal(speak(w, &hv1, PORT_A), "");
	assert_null(vhca_osm_table_pinned(vhca_osm_service_table(w->service), 7));
	assert_string_equal(speak(w, &hv2, 7), ""); /* it is nobody's, and not there to pin */
	assert_string_equal(speak(w, &hv1, PORT_B), "table_full");
}

/* Of a node that has another name, or is no more. */
static void pins_of_strangers_end(void **state)
{
	struct world *w = *state;

	assert_string_equal(speak(w, &hv1, PORT_A), "");
	assert_string_equal(speak(w, &hv2, PORT_B), "");
	w->conf.agents.listed = true;
	assert_int_equal(vhca_osm_agents_add(&w->conf.agents, "hv1", "cert:hv1", NULL), 0);
	start_again(w);
	assert_string_equal(speak(w, &hv2, PORT_A), "not_your_port");
	w->conf.agents.list[0].node[2] = '9';
	start_again(w);
	assert_string_equal(speak(w, &hv2, PORT_A), "");
	assert_string_equal(speak(w, &hv1, PORT_B), "not_your_port"); /* a token's stays */
}

static void a_stranger_withdraws_nothing(void **state)
{
	struct world *w = *state;

	assert_string_equal(may_withdraw(w, &hv2, 9, PORT_B), ""); /* nothing is known */
	assert_string_equal(bind(w, GUID_1, 5, PORT_A), "");
	assert_string_equal(may_withdraw(w, &hv2, 9, 0), "not_the_owner"); /* of no pin, either */
	assert_string_equal(may_withdraw(w, &hv2, 9, PORT_B), "not_the_owner");
	assert_string_equal(may_withdraw(w, &hv1, 9, PORT_A), ""); /* the first to say so */
	assert_string_equal(speak(w, &hv1, PORT_A), "");
	assert_string_equal(may_withdraw(w, &hv2, 9, PORT_A), "not_your_port");
	assert_string_equal(may_withdraw(w, &hv2, 5, 0), "not_the_owner");
	assert_string_equal(may_withdraw(w, &hv2, 5, PORT_B), ""); /* a tie, and told so */
	assert_string_equal(may_withdraw(w, &hv2, 4, PORT_B), ""); /* superseded */
	assert_string_equal(may_withdraw(w, &hv1, 5, PORT_A), "");
	assert_string_equal(may_withdraw(w, &hv1, 5, 0), "");
	assert_string_equal(may_withdraw(w, NULL, 9, PORT_B), "");
}

static bool leaves_rest(struct world *w, const struct vhca_osm_node *by, uint64_t epoch,
			uint64_t port)
{
	return vhca_osm_node_leaves_rest(&w->conf.agents, vhca_osm_service_table(w->service), by,
					 GUID_1, epoch, port);
}

/* A LID that waits for a migration's destination is the source's to free, and an admin's. */
static void what_waits_is_the_sources_to_end(void **state)
{
	struct world *w = *state;

	assert_false(leaves_rest(w, &hv2, 5, 0)); /* nothing is known */
	assert_string_equal(bind(w, GUID_1, 5, PORT_A), "");
	assert_string_equal(speak(w, &hv1, PORT_A), "");
	assert_false(leaves_rest(w, &hv1, 5, PORT_A));
	assert_string_equal(withdraw(w, 5), "");
	assert_true(leaves_rest(w, &hv2, 5, 0));
	assert_true(leaves_rest(w, &hv2, 5, PORT_B));
	assert_true(leaves_rest(w, &hv2, 6, PORT_B));
	assert_true(leaves_rest(w, &hv1, 4, PORT_A)); /* of an older epoch */
	assert_false(leaves_rest(w, &hv1, 5, PORT_A));
	assert_false(leaves_rest(w, &hv1, 5, 0));
	assert_false(leaves_rest(w, NULL, 5, 0));
	assert_int_equal(vhca_osm_service_unpin(w->service, PORT_A, NULL), 0);
	assert_false(leaves_rest(w, &hv1, 5, PORT_A)); /* nobody's port: who says that it is his */
	assert_true(leaves_rest(w, &hv2, 5, 0));
}

/* Above half of the table one port has no more than an adapter needs; below it is free. */
static void nobody_binds_all_there_is(void **state)
{
	struct world *w = *state;
	const uint64_t half = VHCA_OSM_BINDINGS_MAX / 2;

	vhca_log_set_level(VHCA_LOG_ERROR);
	for (uint64_t i = 0; i <= half; i++)
		assert_string_equal(bind(w, GUID_1 + i, 1, i % 3 ? PORT_A : PORT_B), "");
	assert_string_equal(bind(w, GUID_1 - 1, 1, PORT_A), "table_full");
	assert_string_equal(bind(w, GUID_1, 2, PORT_A), "table_full"); /* it was PORT_B's */
	assert_string_equal(bind(w, GUID_1, 1, PORT_A), "epoch_tie");
	assert_string_equal(bind(w, GUID_1, 2, PORT_B), "");
	w->fake.anything = true;
	for (uint64_t i = 0; i < VHCA_OSM_BINDINGS_AT_MAX; i++)
		assert_string_equal(bind(w, GUID_1 + half + 1 + i, 1, 7), "");
	assert_string_equal(bind(w, GUID_1 - 1, 1, 7), "table_full");
	start_again(w); /* what is there stays */
	assert_int_equal(vhca_osm_table_bindings(vhca_osm_service_table(w->service)),
			 half + 1 + VHCA_OSM_BINDINGS_AT_MAX);
	vhca_log_set_level(VHCA_LOG_INFO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_ports_guid_is_no_virtual_one, setup, teardown),
		cmocka_unit_test_setup_teardown(no_report_goes_to_the_last_epoch, setup, teardown),
		cmocka_unit_test_setup_teardown(who_was_locked_out_is_let_in_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_port_is_its_first_speakers, setup, teardown),
		cmocka_unit_test_setup_teardown(a_virtual_guid_is_nobodys_port, setup, teardown),
		cmocka_unit_test_setup_teardown(a_port_is_not_denied_by_withdrawing_it, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_port_is_not_denied_by_binding_it, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_line_has_the_last_word, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_pins_all_ports, setup, teardown),
		cmocka_unit_test_setup_teardown(a_port_that_has_gone_makes_room, setup, teardown),
		cmocka_unit_test_setup_teardown(pins_of_strangers_end, setup, teardown),
		cmocka_unit_test_setup_teardown(a_stranger_withdraws_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(what_waits_is_the_sources_to_end, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_binds_all_there_is, setup, teardown),
	};

	return cmocka_run_group_tests_name("osm_authority", tests, NULL, NULL);
}
