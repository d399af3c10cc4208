/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Moves and evictions, on a fake SA that treats GUIDInfoRecords as OpenSM 3.3.23 does
 * (osm_sa_guidinfo_record.c): a Set is declined while the alias is in the map, a Delete removes by
 * the GUID that stands at the port's index, and a Set removes the one that it replaces.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "opensm/bindings/service.h"
#include "opensm/http/view.h"
#include "tests/unit/opensm/plugin.h"
#include "tests/unit/unit.h"

#define A	0
#define B	1
#define C	2
#define GUID_2	UINT64_C(0x02c9ab0000000002)
#define INDEXES 8

/* ---- the fake SA ---- */

struct alias {
	uint64_t guid; /* 0 = unused */
	int port;
};

struct sa {
	struct false_subnet subnet;  /* what stands in no SA; must stay first */
	uint64_t tables[3][INDEXES]; /* p_guids of FALSE_PORT(0), ... */
	struct alias map[8];
	int evictions, writes;
	bool taken_meanwhile; /* the next eviction comes too late */
};

static struct alias *map_find(struct sa *sa, uint64_t guid)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(sa->map); i++)
		if (sa->map[i].guid == guid)
			return &sa->map[i];
	return NULL;
}

/* OpenSM removes without looking: of an alias that is not there it would free the map's own end. */
static void map_remove(struct sa *sa, uint64_t guid)
{
	struct alias *alias = map_find(sa, guid);

	assert_non_null(alias);
	if (alias)
		alias->guid = 0;
}

static void map_insert(struct sa *sa, uint64_t guid, int port)
{
	struct alias *unused = map_find(sa, 0);

	assert_non_null(unused);
	if (unused)
		*unused = (struct alias){guid, port};
}

/* What the driver of a port asks for when a VF wants its GUID; false = declined. */
static bool sa_set(struct sa *sa, int port, int index, uint64_t guid)
{
	uint64_t old = sa->tables[port][index];
	struct alias *alias = map_find(sa, guid);

	if (alias)
		return alias->port == port && old == guid;
	map_insert(sa, guid, port);
	if (old)
		map_remove(sa, old);
	sa->tables[port][index] = guid;
	return true;
}

/* What it asks for when the VF gives its GUID up. */
static void sa_delete(struct sa *sa, int port, int index)
{
	uint64_t guid = sa->tables[port][index];

	if (!guid)
		return;
	if (map_find(sa, guid))
		map_remove(sa, guid);
	sa->tables[port][index] = 0;
}

static bool fake_alias(void *ctx, uint64_t guid, struct vhca_osm_alias *ret)
{
	struct sa *sa = ctx;
	const struct alias *alias = map_find(sa, guid);

	for (int i = 0; i < 3; i++)
		if (guid == FALSE_PORT(i)) {
			*ret = (struct vhca_osm_alias){guid, 0};
			return true;
		}
	if (!alias)
		return false;
	*ret = (struct vhca_osm_alias){FALSE_PORT(alias->port), -1};
	for (int i = 1; i < INDEXES; i++)
		if (sa->tables[alias->port][i] == guid)
			ret->gid_index = i;
	return true;
}

static int fake_evict(void *ctx, uint64_t guid, const struct vhca_osm_alias *at)
{
	struct sa *sa = ctx;
	const struct alias *alias = map_find(sa, guid);
	struct vhca_osm_alias now = {0};

	assert_true(fake_alias(sa, guid, &now));
	assert_int_not_equal(now.gid_index, 0);
	if (!alias || sa->taken_meanwhile || now.port_guid != at->port_guid ||
	    now.gid_index != at->gid_index)
		return -ENOENT;
	sa->evictions++;
	if (now.gid_index > 0)
		sa->tables[alias->port][now.gid_index] = 0;
	map_remove(sa, guid);
	sa->writes += now.gid_index > 0;
	return now.gid_index > 0;
}

/* ---- fixture ---- */

struct world {
	struct plugin plugin;
	struct sa sa;
	struct vhca_osm_eviction ev; /* of the last report */
};

static int setup(void **state)
{
	static struct vhca_osm_subnet_ops ops;
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	plugin_init(&w->plugin);
	ops = false_subnet_ops;
	ops.find_alias = fake_alias;
	ops.evict = fake_evict;
	w->plugin.subnet.n_ports = FALSE_PORTS;
	w->sa.subnet = w->plugin.subnet;
	w->plugin.sees = (struct vhca_osm_subnet){&ops, &w->sa};
	assert_int_equal(plugin_start(&w->plugin, NULL), 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	plugin_done(&w->plugin);
	free(w);
	return 0;
}

static struct vhca_osm_binding binding(uint64_t epoch, int port, uint16_t index)
{
	return (struct vhca_osm_binding){.vguid = FALSE_GUID,
					 .epoch = epoch,
					 .port_guid = FALSE_PORT(port),
					 .gid_index = index};
}

/* from: a port, or -1. Returns the error's code or "". */
static const char *report(struct world *w, struct vhca_osm_binding b, int from)
{
	static struct vhca_error err;

	err = (struct vhca_error)VHCA_ERROR_INIT;
	w->ev = (struct vhca_osm_eviction){.evicts = false};
	return vhca_osm_report_put(vhca_osm_service_reports(w->plugin.service), &b,
				   from < 0 ? 0 : FALSE_PORT(from), &w->ev, &err) < 0
		       ? err.code
		       : "";
}

static enum vhca_osm_state state_of(struct world *w)
{
	struct vhca_osm_view v;

	vhca_osm_view_get(
		vhca_osm_service_subnet(w->plugin.service),
		vhca_osm_table_find(vhca_osm_service_table(w->plugin.service), FALSE_GUID), &v);
	return v.state;
}

/* GUID_1 lives at A index 3. */
static void settle_at_a(struct world *w)
{
	assert_true(sa_set(&w->sa, A, 3, FALSE_GUID));
	assert_string_equal(report(w, binding(1, A, 3), -1), "");
	assert_int_equal(state_of(w), VHCA_OSM_GRANTED);
	assert_false(w->ev.evicts);
}

/* ---- the traps ---- */

static void report_before_the_grant_evicts(void **state)
{
	struct world *w = *state;

	settle_at_a(w);
	assert_false(sa_set(&w->sa, B, 5, FALSE_GUID)); /* what the driver at B got until now */
	assert_string_equal(report(w, binding(2, B, 5), -1), "");
	assert_true(w->ev.evicts);
	assert_int_equal(w->ev.smps, 1);
	assert_true(w->ev.at.port_guid == FALSE_PORT(A) && w->ev.at.gid_index == 3);
	assert_int_equal(w->sa.writes, 1);
	assert_int_equal(state_of(w), VHCA_OSM_PENDING); /* not re-pointed: B asks for itself */
	assert_true(sa_set(&w->sa, B, 5, FALSE_GUID));
	assert_int_equal(state_of(w), VHCA_OSM_GRANTED);
}

static void report_after_the_grant_leaves_it(void **state)
{
	struct world *w = *state;

	settle_at_a(w);
	sa_delete(&w->sa, A, 3);
	assert_true(sa_set(&w->sa, B, 5, FALSE_GUID));
	assert_string_equal(report(w, binding(2, B, 5), A), "");
	assert_false(w->ev.evicts);
	assert_int_equal(w->sa.evictions, 0);
	assert_int_equal(state_of(w), VHCA_OSM_GRANTED);
}

static void a_late_delete_spares_the_new_owner(void **state)
{
	struct world *w = *state;

	settle_at_a(w);
	assert_string_equal(report(w, binding(2, B, 5), A), "");
	assert_true(sa_set(&w->sa, B, 5, FALSE_GUID));
	sa_delete(&w->sa, A, 3);
	assert_int_equal(state_of(w), VHCA_OSM_GRANTED);
	assert_string_equal(report(w, binding(1, A, 3), -1), "superseded"); /* nor a late report */
	assert_int_equal(state_of(w), VHCA_OSM_GRANTED);
}

static void the_old_index_serves_the_next(void **state)
{
	struct world *w = *state;

	settle_at_a(w);
	assert_string_equal(report(w, binding(2, B, 5), -1), "");
	assert_true(sa_set(&w->sa, B, 5, FALSE_GUID));
	assert_true(sa_set(&w->sa, A, 3, GUID_2));
	assert_int_equal(state_of(w), VHCA_OSM_GRANTED);
	assert_true(sa_set(&w->sa, A, 3, GUID_2)); /* still has it */
	/* Also before the new owner has asked. */
	assert_string_equal(report(w, binding(3, C, 1), -1), "");
	assert_true(sa_set(&w->sa, B, 5, UINT64_C(0x02c9ab0000000003)));
	assert_true(sa_set(&w->sa, C, 1, FALSE_GUID));
	assert_int_equal(state_of(w), VHCA_OSM_GRANTED);
}

/* ---- who may evict ---- */

static void another_index_of_the_same_port_is_another_place(void **state)
{
	struct world *w = *state;

	settle_at_a(w);
	assert_string_equal(report(w, binding(1, A, 4), -1), ""); /* the owner, still asking */
	assert_false(w->ev.evicts);
	assert_string_equal(report(w, binding(2, A, 4), -1), "");
	assert_true(w->ev.evicts);
	assert_true(sa_set(&w->sa, A, 4, FALSE_GUID));
	assert_int_equal(state_of(w), VHCA_OSM_GRANTED);
}

static void a_higher_epoch_evicts_wherever_it_is(void **state)
{
	struct world *w = *state;

	settle_at_a(w);
	sa_delete(&w->sa, A, 3);
	assert_true(sa_set(&w->sa, C, 1, FALSE_GUID)); /* never reported */
	assert_string_equal(report(w, binding(2, B, 5), -1), "");
	assert_true(w->ev.evicts);
	assert_true(w->ev.at.port_guid == FALSE_PORT(C));
}

static void a_withdrawn_owner_is_evicted_too(void **state)
{
	struct world *w = *state;

	settle_at_a(w);
	assert_int_equal(vhca_osm_report_withdraw(vhca_osm_service_reports(w->plugin.service),
						  FALSE_GUID, 1, 0, NULL),
			 0);
	assert_string_equal(report(w, binding(2, B, 5), -1), "");
	assert_true(w->ev.evicts);
}

static void refused_reports_evict_nobody(void **state)
{
	struct world *w = *state;
	uint16_t both[] = {0x8001, 0x0001};
	struct vhca_osm_binding b = binding(2, B, 5);

	settle_at_a(w);
	assert_string_equal(report(w, binding(0, B, 5), A), "superseded");
	assert_string_equal(report(w, binding(1, B, 5), A), "epoch_tie");
	b.n_pkeys = 2;
	b.pkeys = both;
	assert_string_equal(report(w, b, A), "both_memberships");
	assert_int_equal(w->sa.evictions, 0);
	assert_int_equal(state_of(w), VHCA_OSM_GRANTED);
}

/* After a take-over or a lost state: the SA knows more than the plugin. */
static void a_first_report_evicts_only_what_it_names(void **state)
{
	struct world *w = *state;

	assert_true(sa_set(&w->sa, A, 3, FALSE_GUID));
	assert_string_equal(report(w, binding(1, C, 5), -1), "");
	assert_false(w->ev.evicts);
	assert_string_equal(report(w, binding(1, C, 5), B), ""); /* repeated; it came from B */
	assert_false(w->ev.evicts);
	assert_int_equal(state_of(w), VHCA_OSM_ELSEWHERE);
	assert_string_equal(report(w, binding(1, C, 5), A), "");
	assert_true(w->ev.evicts);
	assert_int_equal(state_of(w), VHCA_OSM_PENDING);
}

/* The back-migration has been granted already, and its report is still under way. */
static void repetition_spares_a_newer_owner(void **state)
{
	struct world *w = *state;

	settle_at_a(w);
	assert_string_equal(report(w, binding(2, B, 5), -1), "");
	assert_true(sa_set(&w->sa, C, 1, FALSE_GUID));
	assert_string_equal(report(w, binding(2, B, 5), -1), "");
	assert_string_equal(report(w, binding(2, B, 5), A), "");
	assert_int_equal(w->sa.evictions, 1);
	assert_int_equal(state_of(w), VHCA_OSM_ELSEWHERE);
}

static void a_ports_own_guid_is_never_evicted(void **state)
{
	struct world *w = *state;
	struct vhca_osm_binding b = binding(1, A, 0);

	b.vguid = FALSE_PORT(C);
	assert_string_equal(report(w, b, -1), "");
	b.epoch = 2;
	assert_string_equal(report(w, b, C), "");
	assert_false(w->ev.evicts);
	assert_int_equal(w->sa.evictions, 0);
}

static void an_alias_at_no_index_is_evicted_without_smp(void **state)
{
	struct world *w = *state;

	settle_at_a(w);
	w->sa.tables[A][3] = 0;
	assert_string_equal(report(w, binding(2, B, 5), -1), "");
	assert_true(w->ev.evicts);
	assert_int_equal(w->ev.smps, 0);
	assert_true(sa_set(&w->sa, B, 5, FALSE_GUID));
}

static void an_eviction_that_comes_too_late_says_so(void **state)
{
	struct world *w = *state;

	settle_at_a(w);
	w->sa.taken_meanwhile = true;
	assert_string_equal(report(w, binding(2, B, 5), -1), "");
	assert_false(w->ev.evicts);
	assert_int_equal(w->ev.smps, 0);
}

/* ---- prepare ---- */

static const char *prepare(struct world *w, struct vhca_osm_binding b, int from)
{
	static struct vhca_error err;

	err = (struct vhca_error)VHCA_ERROR_INIT;
	w->ev = (struct vhca_osm_eviction){.evicts = false};
	return vhca_osm_report_prepare(vhca_osm_service_reports(w->plugin.service), &b,
				       FALSE_PORT(from), &w->ev, &err) < 0
		       ? err.code
		       : "";
}

static void prepare_changes_nothing(void **state)
{
	struct world *w = *state;
	const struct vhca_osm_table *t = vhca_osm_service_table(w->plugin.service);
	uint64_t revision;
	struct sa before;

	settle_at_a(w);
	before = w->sa;
	revision = vhca_osm_table_revision(t);
	assert_string_equal(prepare(w, binding(2, B, 5), A), "");
	assert_true(w->ev.evicts);
	assert_int_equal(w->ev.smps, 1);
	assert_memory_equal(&before, &w->sa, sizeof(before));
	assert_int_equal(vhca_osm_table_revision(t), revision);
	assert_null(vhca_osm_table_port(t, FALSE_PORT(B)));
	assert_true(vhca_osm_table_find(t, FALSE_GUID)->port_guid == FALSE_PORT(A));
	/* The owner may go on reporting: nothing of epoch 2 is remembered. */
	assert_string_equal(report(w, binding(1, A, 3), -1), "");
}

static void prepare_refuses_what_commit_would(void **state)
{
	struct world *w = *state;
	struct vhca_osm_binding b = binding(2, B, 5);
	uint16_t pkeys[32];

	settle_at_a(w);
	assert_string_equal(prepare(w, binding(0, B, 5), A), "superseded");
	assert_string_equal(prepare(w, binding(1, B, 5), A), "epoch_tie");
	for (uint16_t i = 0; i < 32; i++)
		pkeys[i] = (uint16_t)(0x8001 + i);
	b.pkeys = pkeys;
	b.n_pkeys = 32; /* one entry of the port's table is the default partition's */
	assert_string_equal(prepare(w, b, A), "table_full");
	b.n_pkeys = 31;
	assert_string_equal(prepare(w, b, A), "");
	b.port_guid = 0x1234;
	assert_string_equal(prepare(w, b, A), "unknown_port");
	assert_int_equal(w->sa.evictions, 0);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(report_before_the_grant_evicts),
		CASE(report_after_the_grant_leaves_it),
		CASE(a_late_delete_spares_the_new_owner),
		CASE(the_old_index_serves_the_next),
		CASE(another_index_of_the_same_port_is_another_place),
		CASE(a_higher_epoch_evicts_wherever_it_is),
		CASE(a_withdrawn_owner_is_evicted_too),
		CASE(refused_reports_evict_nobody),
		CASE(a_first_report_evicts_only_what_it_names),
		CASE(repetition_spares_a_newer_owner),
		CASE(a_ports_own_guid_is_never_evicted),
		CASE(an_alias_at_no_index_is_evicted_without_smp),
		CASE(an_eviction_that_comes_too_late_says_so),
		CASE(prepare_changes_nothing),
		CASE(prepare_refuses_what_commit_would),
	};

	return cmocka_run_group_tests_name("osm_moves", tests, NULL, NULL);
}
