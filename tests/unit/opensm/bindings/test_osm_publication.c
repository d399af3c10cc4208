/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * service and publisher of opensm/bindings/: when what was reported reaches the partition file, and
 * OpenSM.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/base/text.h"
#include "opensm/bindings/publisher.h"
#include "opensm/bindings/service.h"
#include "tests/unit/opensm/plugin.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

/* ---- publication ---- */

static void a_report_reaches_file_and_sweep(void **state)
{
	struct plugin *p = *state;

	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8001), "");
	plugin_commit(p);
	assert_false(plugin_shows(p, "0x0001"));
	assert_true(vhca_osm_service_deadline(p->service) <= vhca_now_ms() + VHCA_OSM_QUIET_MS);
	assert_int_equal(p->subnet.sweeps, 0);
	plugin_settle(p);
	assert_true(plugin_shows(p, "vhca_0001=0x0001,ipoib:0x0002c90300000a01=full;"));
	assert_int_equal(p->subnet.sweeps, 1);
}

static void unchanged_needs_cost_no_sweep(void **state)
{
	struct plugin *p = *state;

	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8001), "");
	plugin_commit(p);
	plugin_settle(p);
	assert_string_equal(plugin_put(p, 2, FALSE_PORT_A, 0x8001), ""); /* new epoch, same key */
	plugin_commit(p);
	plugin_settle(p);
	assert_int_equal(p->subnet.sweeps, 1);
	/* There and back between two writes. */
	assert_string_equal(plugin_put(p, 3, FALSE_PORT_B, 0x8001), "");
	plugin_commit(p);
	assert_string_equal(plugin_put(p, 4, FALSE_PORT_A, 0x8001), "");
	plugin_commit(p);
	plugin_settle(p);
	assert_int_equal(p->subnet.sweeps, 1);
}

static void a_sweep_that_is_about_to_read_is_enough(void **state)
{
	struct plugin *p = *state;

	vhca_osm_service_on_sweep_start(p->service);
	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8001), "");
	plugin_commit(p);
	plugin_settle(p);
	assert_true(plugin_shows(p, "0x0001"));
	assert_int_equal(p->subnet.sweeps, 0);
	vhca_osm_service_on_discovered(p->service);
	vhca_osm_service_on_subnet_up(p->service);
	assert_int_equal(vhca_osm_service_deadline(p->service), UINT64_MAX);
}

static void a_lost_sweep_is_asked_for_again(void **state)
{
	struct plugin *p = *state;
	uint64_t now;

	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8001), "");
	plugin_commit(p);
	now = vhca_now_ms() + VHCA_OSM_BURST_MS;
	vhca_osm_service_publish(p->service, now);
	assert_int_equal(p->subnet.sweeps, 1);
	vhca_osm_service_publish(p->service, now + VHCA_OSM_RESWEEP_MS - 1);
	assert_int_equal(p->subnet.sweeps, 1);
	vhca_osm_service_publish(p->service, now + VHCA_OSM_RESWEEP_MS);
	assert_int_equal(p->subnet.sweeps, 2);
	/* A sweep that has read the file gets its time. */
	vhca_osm_service_on_discovered(p->service);
	vhca_osm_service_publish(p->service, now + 3 * VHCA_OSM_RESWEEP_MS);
	assert_int_equal(p->subnet.sweeps, 2);
	vhca_osm_service_publish(p->service, now + VHCA_OSM_RESWEEP_MS + VHCA_OSM_SWEEP_MAX_MS);
	assert_int_equal(p->subnet.sweeps, 3);
}

/* Without a sweep, to a port that does not answer yet. Returns when: a disk takes time, too. */
static uint64_t send_a_key(struct plugin *p)
{
	uint64_t now;

	p->subnet.applies = true;
	p->subnet.unanswered = 1;
	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8001), "");
	plugin_commit(p);
	p->skew += VHCA_OSM_BURST_MS;
	now = vhca_now_ms() + p->skew;
	vhca_osm_service_publish(p->service, now);
	return now;
}

static void where_it_can_be_a_key_costs_no_sweep(void **state)
{
	struct plugin *p = *state;

	(void)send_a_key(p);
	assert_int_equal(p->subnet.applied, 1);
	assert_false(vhca_osm_service_in_effect(p->service)); /* one port has not answered */
	p->subnet.unanswered = 0;
	plugin_at(p, VHCA_OSM_LOOK_MS);
	assert_true(vhca_osm_service_in_effect(p->service));
	assert_string_equal(plugin_put(p, 2, FALSE_PORT_A, 0x8002), "");
	plugin_commit(p);
	plugin_settle(p);
	assert_true(vhca_osm_service_in_effect(p->service));
	assert_int_equal(p->subnet.applied, 2);
	plugin_at(p, VHCA_OSM_SWEEP_MAX_MS);
	assert_int_equal(p->subnet.sweeps, 0);
}

/* One that has lost it, or has gone. */
static void who_does_not_answer_is_left_to_a_sweep(void **state)
{
	struct plugin *p = *state;
	uint64_t late = send_a_key(p) + VHCA_OSM_ANSWER_MS;

	vhca_osm_service_publish(p->service, late - 1);
	assert_int_equal(p->subnet.sweeps, 0);
	vhca_osm_service_publish(p->service, late);
	assert_int_equal(p->subnet.sweeps, 1);
	p->subnet.unanswered = 0; /* of what the sweep sends, the sweep knows */
	vhca_osm_service_publish(p->service, late + 1);
	assert_false(vhca_osm_service_in_effect(p->service));
	/* that sweep came to nothing */
	vhca_osm_service_publish(p->service, late + VHCA_OSM_RESWEEP_MS);
	assert_int_equal(p->subnet.sweeps, 2);
	vhca_osm_service_on_sweep_start(p->service);
	vhca_osm_service_on_discovered(p->service);
	vhca_osm_service_on_subnet_up(p->service);
	assert_true(vhca_osm_service_in_effect(p->service));
	plugin_at(p, VHCA_OSM_SWEEP_MAX_MS);
	assert_int_equal(p->subnet.sweeps, 2);
}

/* One that has read the file before is no reason for another: it is applied when that is over. */
static void a_key_that_comes_late_in_a_sweep_waits_for_its_end(void **state)
{
	struct plugin *p = *state;

	p->subnet.applies = p->subnet.sweeping = true;
	vhca_osm_service_on_sweep_start(p->service);
	vhca_osm_service_on_discovered(p->service);
	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8001), "");
	plugin_commit(p);
	plugin_settle(p);
	plugin_at(p, VHCA_OSM_RESWEEP_MS);
	assert_int_equal(p->subnet.sweeps, 0);
	vhca_osm_service_on_subnet_up(p->service);
	plugin_at(p, 1);
	assert_int_equal(p->subnet.applied, 0); /* it is not over yet */
	p->subnet.sweeping = false;
	vhca_osm_service_on_sweep_over(p->service);
	plugin_at(p, 1);
	assert_int_equal(p->subnet.applied, 1);
	plugin_at(p, VHCA_OSM_LOOK_MS);
	assert_true(vhca_osm_service_in_effect(p->service));
	vhca_osm_service_on_sweep_over(p->service);
	plugin_at(p, 1);
	assert_int_equal(p->subnet.applied, 1);
	assert_int_equal(p->subnet.sweeps, 0);
}

/* It left early, without a word. */
static void a_key_does_not_wait_for_a_sweep_for_ever(void **state)
{
	struct plugin *p = *state;

	p->subnet.applies = p->subnet.sweeping = true;
	vhca_osm_service_on_sweep_start(p->service);
	vhca_osm_service_on_discovered(p->service);
	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8001), "");
	plugin_commit(p);
	plugin_settle(p);
	plugin_at(p, VHCA_OSM_SWEEP_MAX_MS);
	assert_int_equal(p->subnet.sweeps, 1);
}

static void a_standby_does_not_sweep(void **state)
{
	struct plugin *p = *state;

	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8001), "");
	plugin_commit(p);
	p->subnet.status.master = false;
	plugin_settle(p);
	assert_true(plugin_shows(p, "0x0001"));
	assert_int_equal(p->subnet.sweeps, 0);
}

/* ---- whose newest keys OpenSM has read ---- */

static bool is_shown(const struct plugin *p, uint64_t port_guid)
{
	return vhca_osm_service_check_shown(p->service, port_guid, NULL) == 0;
}

static bool has_shown(const struct plugin *p)
{
	bool a = is_shown(p, FALSE_PORT_A);

	assert_true(is_shown(p, FALSE_PORT_B)); /* one port waits for itself only */
	return a;
}

static void a_report(struct plugin *p, uint64_t epoch, uint16_t pkey)
{
	assert_string_equal(plugin_put(p, epoch, FALSE_PORT_A, pkey), "");
	plugin_commit(p);
	assert_false(has_shown(p));
}

static void keys_that_are_sent_are_shown(void **state)
{
	struct plugin *p = *state;

	p->subnet.applies = true;
	p->subnet.unanswered = 1; /* whose, others know */
	assert_true(has_shown(p));
	a_report(p, 1, 0x8001);
	plugin_settle(p);
	assert_true(has_shown(p));
	assert_string_equal(plugin_put(p, 2, FALSE_PORT_A, 0x8001), ""); /* the same ones */
	assert_true(has_shown(p));
	assert_int_equal(
		vhca_osm_report_withdraw(plugin_reports(p), FALSE_GUID, 2, FALSE_PORT_A, NULL), 0);
	plugin_commit(p);
	assert_false(has_shown(p)); /* it still has them */
	plugin_settle(p);
	assert_true(has_shown(p));
}

/* In the time of a burst to others, and back to what the file says. */
static void keys_that_are_those_of_the_file_again_are_shown(void **state)
{
	struct plugin *p = *state;

	p->subnet.applies = true;
	a_report(p, 1, 0x8001);
	plugin_settle(p);
	a_report(p, 2, 0x8002);
	a_report(p, 3, 0x8001);
	plugin_settle(p);
	assert_int_equal(p->subnet.applied, 1);
	assert_true(has_shown(p));
}

static void keys_that_a_sweep_has_not_read_are_not_shown(void **state)
{
	struct plugin *p = *state;

	a_report(p, 1, 0x8001);
	vhca_osm_service_on_sweep_start(p->service);
	plugin_settle(p);
	vhca_osm_service_on_discovered(p->service); /* the first are read, ... */
	a_report(p, 2, 0x8002);
	plugin_settle(p); /* ... the second come too late */
	vhca_osm_service_on_subnet_up(p->service);
	plugin_at(p, 1);
	assert_false(has_shown(p));
	vhca_osm_service_on_sweep_start(p->service);
	vhca_osm_service_on_discovered(p->service);
	plugin_at(p, 1);
	assert_false(has_shown(p)); /* that one may end early */
	vhca_osm_service_on_subnet_up(p->service);
	plugin_at(p, 1);
	assert_true(has_shown(p));
}

static void keys_that_cannot_be_written_are_not_shown(void **state)
{
	struct plugin *p = *state;

	p->subnet.applies = true;
	a_report(p, 1, 0x8001);
	tree_remove(&p->tree, "state");
	plugin_settle(p);
	vhca_osm_service_on_discovered(p->service);
	vhca_osm_service_on_subnet_up(p->service);
	plugin_at(p, 1);
	assert_false(has_shown(p));
	tree_mkdir(&p->tree, "state");
	plugin_at(p, VHCA_OSM_REWRITE_MS);
	assert_true(has_shown(p));
}

static void what_was_known_at_the_start_is_shown(void **state)
{
	struct plugin *p = *state;

	a_report(p, 1, 0x8001);
	plugin_stop(p);
	assert_int_equal(plugin_start(p, NULL), 0);
	vhca_osm_service_on_discovered(p->service);
	vhca_osm_service_on_subnet_up(p->service);
	plugin_at(p, 0);
	assert_true(has_shown(p));
}

/* A missing directory stands for any failing write, also for root. */
static void state_that_cannot_be_saved_has_no_effect(void **state)
{
	struct plugin *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	uint64_t before = vhca_now_ms(), retry;

	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8001), "");
	tree_remove(&p->tree, "state");
	assert_true(vhca_osm_service_commit(p->service, &err) < 0);
	assert_string_equal(err.code, "state_not_saved");
	assert_int_equal(err.kind, VHCA_ERR_UNAVAILABLE);
	assert_non_null(strstr(vhca_osm_service_problem(p->service), "bindings"));
	/* No busy loop, nothing published, and a new attempt although nobody reports again. */
	retry = vhca_osm_service_deadline(p->service);
	assert_in_range(retry, before + VHCA_OSM_REWRITE_MS, vhca_now_ms() + VHCA_OSM_REWRITE_MS);
	tree_mkdir(&p->tree, "state");
	vhca_osm_service_publish(p->service, retry - 1);
	assert_false(tree_has(&p->tree, "state/partitions.conf"));
	assert_false(tree_has(&p->tree, "state/bindings"));
	vhca_osm_service_publish(p->service, retry);
	assert_true(tree_has(&p->tree, "state/bindings"));
	assert_string_equal(vhca_osm_service_problem(p->service), "");
}

static void a_partition_file_that_cannot_be_written_is_retried(void **state)
{
	struct plugin *p = *state;
	uint64_t now;

	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8001), "");
	plugin_commit(p);
	tree_remove(&p->tree, "state");
	now = vhca_now_ms() + VHCA_OSM_BURST_MS;
	vhca_osm_service_publish(p->service, now);
	assert_non_null(strstr(vhca_osm_service_problem(p->service), "partitions.conf"));
	assert_int_equal(p->subnet.sweeps, 0);
	assert_int_equal(vhca_osm_service_deadline(p->service), now + VHCA_OSM_REWRITE_MS);
	tree_mkdir(&p->tree, "state");
	vhca_osm_service_publish(p->service, now + VHCA_OSM_REWRITE_MS);
	assert_string_equal(vhca_osm_service_problem(p->service), "");
	assert_true(plugin_shows(p, "0x0001"));
	assert_int_equal(p->subnet.sweeps, 1);
}

/* What failed may have replaced it, and the text before is wanted again. */
static void a_partition_file_that_may_be_another_is_written(void **state)
{
	struct plugin *p = *state;

	a_report(p, 1, 0x8001);
	plugin_settle(p);
	a_report(p, 2, 0x8002);
	tree_remove(&p->tree, "state");
	plugin_settle(p);
	tree_mkdir(&p->tree, "state");
	a_report(p, 3, 0x8001);
	plugin_at(p, VHCA_OSM_REWRITE_MS);
	assert_true(tree_has(&p->tree, "state/partitions.conf"));
	assert_false(has_shown(p)); /* OpenSM may have read the other one */
	assert_int_equal(p->subnet.sweeps, 2);
}

static void a_key_that_is_left_out_is_named(void **state)
{
	struct plugin *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	const uint16_t default_key = VHCA_PKEY_DEFAULT;

	assert_int_equal(vhca_osm_service_check_keys(p->service, FALSE_PORT_A, &err), 0);
	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8001), "");
	assert_int_equal(
		vhca_osm_report_declare(plugin_reports(p), FALSE_PORT_A, &default_key, 1, NULL), 0);
	memset(p->subnet.pkeys, 0, sizeof(p->subnet.pkeys));
	assert_true(vhca_osm_service_check_keys(p->service, FALSE_PORT_A, &err) < 0);
	assert_string_equal(err.code, "keys_on_the_way");
	assert_non_null(strstr(err.msg, "0x8001"));
	p->subnet.pkeys[3] = 0x8001; /* and the other form of the default one */
	assert_int_equal(vhca_osm_service_check_keys(p->service, FALSE_PORT_A, &err), 0);
}

static void base_file_changes_are_merged(void **state)
{
	struct plugin *p = *state;

	plugin_stop(p);
	tree_put(&p->tree, "base", "A=0x0100:ALL;\n");
	plugin_set_base(p, "base");
	assert_int_equal(plugin_start(p, NULL), 0);
	assert_true(plugin_shows(p, "A=0x0100:ALL;"));
	vhca_osm_service_on_sweep_start(p->service);
	plugin_settle(p);
	vhca_osm_service_on_discovered(p->service);
	vhca_osm_service_on_subnet_up(p->service);
	tree_put(&p->tree, "base", "A=0x0100 ALL;\n"); /* no colon */
	vhca_osm_service_on_sweep_start(p->service);
	plugin_settle(p);
	assert_true(plugin_shows(p, "A=0x0100:ALL;"));
	assert_non_null(strstr(vhca_osm_service_problem(p->service), "base:1:"));
	assert_true(has_shown(p));
	tree_put(&p->tree, "base", "B=0x0200:ALL;\n");
	vhca_osm_service_on_sweep_start(p->service);
	plugin_settle(p);
	plugin_settle(p);
	assert_string_equal(vhca_osm_service_problem(p->service), "");
	assert_true(plugin_shows(p, "B=0x0200:ALL;"));
	/* Which ports this is about, nobody knows. */
	assert_false(is_shown(p, FALSE_PORT_A));
	assert_false(is_shown(p, FALSE_PORT_B));
	vhca_osm_service_on_discovered(p->service);
	vhca_osm_service_on_subnet_up(p->service);
	plugin_settle(p);
	assert_true(has_shown(p));
}

/* ---- publisher ---- */

static void bursts_end(void **state)
{
	struct vhca_osm_publisher pub = {0};
	uint64_t now = 1000;

	(void)state;
	for (; now < 1000 + VHCA_OSM_BURST_MS; now += VHCA_OSM_QUIET_MS / 2) {
		assert_false(vhca_osm_publisher_write_due(&pub, now));
		vhca_osm_publisher_changed(&pub, now);
	}
	assert_true(vhca_osm_publisher_write_due(&pub, now)); /* although it never was quiet */
	assert_true(vhca_osm_publisher_written(&pub, false, true, now));
	assert_false(vhca_osm_publisher_settled(&pub));
	vhca_osm_publisher_changed(&pub, now);
	assert_int_equal(vhca_osm_publisher_deadline(&pub), now + VHCA_OSM_QUIET_MS);
	assert_false(vhca_osm_publisher_written(&pub, false, false, now)); /* same text */
	vhca_osm_publisher_on_discovered(&pub);
	vhca_osm_publisher_on_subnet_up(&pub);
	assert_true(vhca_osm_publisher_settled(&pub));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_report_reaches_file_and_sweep, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(unchanged_needs_cost_no_sweep, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(a_sweep_that_is_about_to_read_is_enough,
						plugin_setup, plugin_teardown),
		cmocka_unit_test_setup_teardown(a_lost_sweep_is_asked_for_again, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(where_it_can_be_a_key_costs_no_sweep, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(who_does_not_answer_is_left_to_a_sweep,
						plugin_setup, plugin_teardown),
		cmocka_unit_test_setup_teardown(a_key_that_comes_late_in_a_sweep_waits_for_its_end,
						plugin_setup, plugin_teardown),
		cmocka_unit_test_setup_teardown(a_key_does_not_wait_for_a_sweep_for_ever,
						plugin_setup, plugin_teardown),
		cmocka_unit_test_setup_teardown(a_standby_does_not_sweep, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(keys_that_are_sent_are_shown, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(keys_that_are_those_of_the_file_again_are_shown,
						plugin_setup, plugin_teardown),
		cmocka_unit_test_setup_teardown(keys_that_a_sweep_has_not_read_are_not_shown,
						plugin_setup, plugin_teardown),
		cmocka_unit_test_setup_teardown(keys_that_cannot_be_written_are_not_shown,
						plugin_setup, plugin_teardown),
		cmocka_unit_test_setup_teardown(what_was_known_at_the_start_is_shown, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(state_that_cannot_be_saved_has_no_effect,
						plugin_setup, plugin_teardown),
		cmocka_unit_test_setup_teardown(a_partition_file_that_cannot_be_written_is_retried,
						plugin_setup, plugin_teardown),
		cmocka_unit_test_setup_teardown(a_partition_file_that_may_be_another_is_written,
						plugin_setup, plugin_teardown),
		cmocka_unit_test_setup_teardown(a_key_that_is_left_out_is_named, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(base_file_changes_are_merged, plugin_setup,
						plugin_teardown),
		cmocka_unit_test(bursts_end),
	};

	return cmocka_run_group_tests_name("osm_publication", tests, NULL, NULL);
}
