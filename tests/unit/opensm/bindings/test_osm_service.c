/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * opensm/bindings/service: what is durable, what is refused, and what is kept at a take-over. On a
 * false subnet and a real state directory.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/text.h"
#include "opensm/bindings/publisher.h"
#include "opensm/bindings/service.h"
#include "tests/unit/opensm/plugin.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

/* ---- durability ---- */

static void everything_is_back_after_a_restart(void **state)
{
	struct plugin *p = *state;
	const uint16_t declared[] = {0x8005};

	assert_string_equal(plugin_put(p, 7, FALSE_PORT_A, 0x8001), "");
	assert_int_equal(
		vhca_osm_report_declare(plugin_reports(p), FALSE_PORT_B, declared, 1, NULL), 0);
	plugin_commit(p);
	plugin_stop(p); /* the partition file was not written: the start has to */
	assert_int_equal(plugin_start(p, NULL), 0);
	assert_true(plugin_shows(p, "0x0001,ipoib:0x0002c90300000a01=full;"));
	assert_true(plugin_shows(p, "0x0005,ipoib:0x0002c90300000b01=full;"));
	assert_string_equal(plugin_put(p, 6, FALSE_PORT_A, 0x8001), "superseded");
	assert_int_equal(vhca_osm_service_deadline(p->service), UINT64_MAX);
}

static void refused_starts_leave_no_service(void **state)
{
	struct plugin *p = *state;
	struct vhca_osm_service *second = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_true(vhca_osm_service_new(&p->conf, &false_subnet_ops, &p->subnet, &second, &err) <
		    0);
	assert_non_null(strstr(err.msg, "in use"));
	assert_null(second);
	plugin_stop(p);
	tree_put(&p->tree, "state/bindings", "vhcasm-state 2\nend 1\n");
	assert_true(plugin_start(p, &err) < 0);
	assert_string_equal(err.code, "state_damaged");
	tree_remove(&p->tree, "state/bindings");
	plugin_set_base(p, "no-such-base");
	assert_true(plugin_start(p, &err) < 0);
	assert_string_equal(err.code, "bad_base_file");
}

static void an_option_that_is_off_again_is_no_damage(void **state)
{
	struct plugin *p = *state;
	const uint16_t both[] = {0x8001, 0x0001};
	struct vhca_error err = VHCA_ERROR_INIT;

	plugin_stop(p);
	p->conf.policy.both_memberships = true;
	assert_int_equal(plugin_start(p, NULL), 0);
	assert_int_equal(vhca_osm_report_declare(plugin_reports(p), FALSE_PORT_A, both, 2, NULL),
			 0);
	plugin_commit(p);
	plugin_stop(p);
	p->conf.policy.both_memberships = false;
	assert_true(plugin_start(p, &err) < 0);
	assert_string_equal(err.code, "both_memberships");
	assert_non_null(strstr(err.msg, "state/bindings: line 2: port 0x0002c90300000a01 needs"));
	assert_non_null(strstr(err.hint, "allow_both_pkeys"));
	assert_null(strstr(err.hint, "move it away"));
	p->conf.policy.both_memberships = true;
	assert_int_equal(plugin_start(p, NULL), 0);
}

/* ---- checks ---- */

static void reports_are_checked_against_the_subnet(void **state)
{
	struct plugin *p = *state;
	uint16_t many[32];

	assert_string_equal(plugin_put(p, 1, 0x1234, 0x8001), "unknown_port");
	p->subnet.status.master = false;
	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8001), "not_master");
	assert_true(vhca_osm_report_withdraw(plugin_reports(p), FALSE_GUID, 1, 0, NULL) < 0);
	p->subnet.status.master = true;
	for (uint16_t i = 0; i < 32; i++)
		many[i] = (uint16_t)(0x8001 + i);
	assert_int_equal(vhca_osm_report_declare(plugin_reports(p), FALSE_PORT_B, many, 31, NULL),
			 0);
	/* 32 entries, one of them for the default partition. */
	assert_true(vhca_osm_report_declare(plugin_reports(p), FALSE_PORT_B, many, 32, NULL) < 0);
	many[31] = VHCA_PKEY_DEFAULT | VHCA_PKEY_FULL; /* that one */
	assert_int_equal(vhca_osm_report_declare(plugin_reports(p), FALSE_PORT_B, many, 32, NULL),
			 0);
	assert_int_equal(vhca_osm_report_declare(plugin_reports(p), 0x1234, NULL, 0, NULL), 0);
}

static void a_table_that_the_default_partition_fills_has_no_room(void **state)
{
	struct plugin *p = *state;

	plugin_stop(p);
	p->subnet.ports[1].pkey_cap = 1;
	p->conf.policy.both_memberships = true; /* of the default partition */
	assert_int_equal(plugin_start(p, NULL), 0);
	assert_string_equal(plugin_put(p, 1, FALSE_PORT_B, 0x8001), "table_full");
	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8001), "");
}

static void policy_is_enforced(void **state)
{
	struct plugin *p = *state;

	plugin_stop(p);
	assert_int_equal(vhca_osm_policy_parse_allowed(&p->conf.policy, "0x10", NULL), 0);
	assert_int_equal(plugin_start(p, NULL), 0);
	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8011), "unknown_partition");
	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8010), "");
	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0xffff),
			    ""); /* named, but nothing is written for it */
	plugin_commit(p);
	plugin_settle(p);
	assert_false(plugin_shows(p, "vhca_7fff"));
}

/* ---- taking over ---- */

static void keys_found_on_ports_stay_for_a_while(void **state)
{
	struct plugin *p = *state;
	uint64_t end;

	assert_true(vhca_osm_service_is_new(p->service));
	assert_false(vhca_osm_service_is_rebuilding(p->service));
	plugin_stop(p);
	tree_put(&p->tree, "base", "D=0x7fff:ALL=full;A=0x0100:SELF;\n");
	plugin_set_base(p, "base");
	assert_int_equal(vhca_osm_policy_parse_allowed(&p->conf.policy, "0x1-0x1ff", NULL), 0);
	assert_int_equal(plugin_start(p, NULL), 0);
	/* The default partition, the base file's, one that is not allowed, one to keep. */
	memcpy(p->subnet.pkeys, (uint16_t[]){0x8001, 0x8100, 0x8200, 0xffff},
	       sizeof(p->subnet.pkeys));
	vhca_osm_service_inherit(p->service, vhca_now_ms());
	assert_false(vhca_osm_service_is_new(p->service));
	assert_true(vhca_osm_service_is_rebuilding(p->service));
	assert_true(plugin_shows(p, "vhca_0001=0x0001,ipoib:0x0002c90300000a01=full,"
				    "0x0002c90300000b01=full;"));
	assert_false(plugin_shows(p, "0x0200"));
	assert_false(plugin_shows(p, "vhca_0100"));
	/* Also over a restart. */
	plugin_commit(p);
	plugin_stop(p);
	assert_int_equal(plugin_start(p, NULL), 0);
	assert_false(vhca_osm_service_is_new(p->service));
	assert_true(vhca_osm_service_is_rebuilding(p->service));
	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8001), "");
	plugin_commit(p);
	end = vhca_osm_service_deadline(p->service);
	assert_true(end > vhca_now_ms() + 590000 && end <= vhca_now_ms() + 600000);
	vhca_osm_service_publish(p->service, end);
	vhca_osm_service_publish(p->service, end + VHCA_OSM_BURST_MS);
	assert_true(plugin_shows(p, "vhca_0001=0x0001,ipoib:0x0002c90300000a01=full;"));
	assert_false(plugin_shows(p, "0x0002c90300000b01"));
	assert_false(vhca_osm_service_is_rebuilding(p->service));
}

/* 2,891 hypervisors with 16 VFs each, all with ports of their own, are 49,147. */
static void no_port_is_too_many(void **state)
{
	struct plugin *p = *state;
	uint64_t before, took;

	p->subnet.crowd = 65536;
	p->subnet.pkeys[0] = 0x8001;
	before = vhca_now_ms();
	vhca_osm_service_inherit(p->service, before);
	took = vhca_now_ms() - before;
	print_message("# keys of %u ports kept in %" PRIu64 " ms\n", p->subnet.crowd, took);
	assert_true(took < 5000); /* OpenSM's sweeper waits no longer */
	assert_int_equal(vhca_osm_table_inherited(vhca_osm_service_table(p->service)),
			 p->subnet.crowd + 2);
	plugin_commit(p);
	plugin_stop(p);
	assert_int_equal(plugin_start(p, NULL), 0);
	assert_int_equal(vhca_osm_table_inherited(vhca_osm_service_table(p->service)),
			 p->subnet.crowd + 2);
}

/* One port more than the table holds: nobody may take the keys of any for known. */
static void an_incomplete_inheritance_is_none(void **state)
{
	struct plugin *p = *state;

	p->subnet.crowd = VHCA_OSM_PORTS_MAX - 2;
	p->subnet.pkeys[0] = 0x8001;
	assert_int_equal(vhca_osm_service_inherit(p->service, 1000), 0);
	assert_string_equal(vhca_osm_service_problem(p->service), "");
	p->subnet.crowd++;
	assert_int_equal(vhca_osm_service_inherit(p->service, 2000), -EAGAIN);
	assert_non_null(strstr(vhca_osm_service_problem(p->service), "the keys of 1 ports"));
}

static void an_inheritance_that_is_not_written_is_none(void **state)
{
	struct plugin *p = *state;
	char away[sizeof(p->conf.state_dir) + 8];

	(void)snprintf(away, sizeof(away), "%s.away", p->conf.state_dir);
	p->subnet.pkeys[0] = 0x8001;
	assert_int_equal(rename(p->conf.state_dir, away), 0);
	assert_int_equal(vhca_osm_service_inherit(p->service, 1000), -EAGAIN);
	assert_int_equal(rename(away, p->conf.state_dir), 0);
	assert_int_equal(vhca_osm_service_inherit(p->service, 2000), 0);
	assert_string_equal(vhca_osm_service_problem(p->service), "");
}

static void the_last_state_is_no_inheritance(void **state)
{
	struct plugin *p = *state;

	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8001), "");
	plugin_commit(p);
	assert_false(vhca_osm_service_is_new(p->service));
	plugin_stop(p);
	assert_int_equal(plugin_start(p, NULL), 0);
	assert_false(vhca_osm_service_is_new(p->service));
	assert_int_equal(vhca_osm_service_deadline(p->service), UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_table_that_the_default_partition_fills_has_no_room, plugin_setup,
			plugin_teardown),
		cmocka_unit_test_setup_teardown(everything_is_back_after_a_restart, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(refused_starts_leave_no_service, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(an_option_that_is_off_again_is_no_damage,
						plugin_setup, plugin_teardown),
		cmocka_unit_test_setup_teardown(reports_are_checked_against_the_subnet,
						plugin_setup, plugin_teardown),
		cmocka_unit_test_setup_teardown(policy_is_enforced, plugin_setup, plugin_teardown),
		cmocka_unit_test_setup_teardown(keys_found_on_ports_stay_for_a_while, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(no_port_is_too_many, plugin_setup, plugin_teardown),
		cmocka_unit_test_setup_teardown(an_incomplete_inheritance_is_none, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(an_inheritance_that_is_not_written_is_none,
						plugin_setup, plugin_teardown),
		cmocka_unit_test_setup_teardown(the_last_state_is_no_inheritance, plugin_setup,
						plugin_teardown),
	};

	return cmocka_run_group_tests_name("osm_service", tests, NULL, NULL);
}
