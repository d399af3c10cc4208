/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What OpenSM keeps for a vGUID while its dynamic LID is given, freed, and refused. */
#include "opensm/osm/dynamic.h"
#include "tests/unit/opensm/lids/osm_tables.h"
#include "tests/unit/unit.h"

#define PF_GUID UINT64_C(0xaa)
#define VGUID	UINT64_C(0x11)

static struct vhca_osm_dynamic_lids rows;

static int setup(void **state)
{
	rows = (struct vhca_osm_dynamic_lids){.max = 4};
	(void)tables_setup(state);
	(void)tables_add_port(PF_GUID, 5);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	vhca_osm_dynamic_lids_done(&rows);
	return 0;
}

static bool is_used(uint16_t lid)
{
	return tables.osm.sm.lid_mgr.used_lids[lid];
}

static struct vhca_osm_lid_pair resolve(enum vhca_osm_dynamic what)
{
	const struct vhca_osm_lid_want want = {.vguid = VGUID,
					       .port_guid =
						       what == VHCA_OSM_LID_FREED ? 0 : PF_GUID,
					       .dynamic = what};
	struct vhca_osm_lid_pair pair;

	assert_int_equal(vhca_osm_dynamic_resolve(&tables.osm, &rows, &want, NULL, &pair, NULL), 0);
	return pair;
}

static void change(const struct vhca_osm_lid_pair *pair, bool undo)
{
	assert_int_equal(vhca_osm_dynamic_set(&tables.osm, &rows, pair, undo), 0);
}

static void a_refused_one_goes_with_its_line(void **state)
{
	struct vhca_osm_lid_pair pair = resolve(VHCA_OSM_LID_GIVEN);
	uint16_t lid = pair.lid[0];

	(void)state;
	change(&pair, false);
	assert_int_equal(tables_line(VGUID), lid);
	assert_true(is_used(lid));
	change(&pair, true);
	assert_int_equal(rows.n, 0);
	assert_int_equal(tables_line(VGUID), 0);
	assert_false(is_used(lid));
}

/* That of a port that is away. */
static void a_line_that_was_there_stays(void **state)
{
	struct vhca_osm_lid_pair pair;

	(void)state;
	tables_add_line(VGUID, 9);
	pair = resolve(VHCA_OSM_LID_GIVEN);
	assert_int_equal(pair.lid[0], 9);
	change(&pair, false);
	change(&pair, true);
	assert_int_equal(rows.n, 0);
	assert_int_equal(tables_line(VGUID), 9);
	assert_true(is_used(9));
}

/* Refused, it goes on with its LID, and keeps it when it goes. */
static void so_does_that_of_a_port_that_is_there(void **state)
{
	struct vhca_osm_lid_pair pair;
	osm_port_t *port = tables_add_port(VGUID, 9);

	(void)state;
	tables_add_line(VGUID, 9);
	pair = resolve(VHCA_OSM_LID_GIVEN);
	change(&pair, false);
	change(&pair, true);
	cl_qmap_remove_item(&tables.osm.subn.port_guid_tbl, &port->map_item);
	vhca_osm_dynamic_let_go(&tables.osm, &rows);
	assert_int_equal(tables_line(VGUID), 9);
	assert_true(is_used(9));
}

/* It was freed, given again, and that was refused: it is free when its port has gone. */
static void one_that_leaves_goes_on_leaving(void **state)
{
	struct vhca_osm_lid_pair pair;
	osm_port_t *port = tables_add_port(VGUID, 9);

	(void)state;
	tables_add_line(VGUID, 9);
	pair = resolve(VHCA_OSM_LID_GIVEN);
	change(&pair, false);
	pair = resolve(VHCA_OSM_LID_FREED);
	change(&pair, false);
	assert_int_equal(rows.leaving->n, 1);
	pair = resolve(VHCA_OSM_LID_GIVEN);
	change(&pair, false);
	change(&pair, true);
	cl_qmap_remove_item(&tables.osm.subn.port_guid_tbl, &port->map_item);
	vhca_osm_dynamic_let_go(&tables.osm, &rows);
	assert_int_equal(tables_line(VGUID), 0);
	assert_false(is_used(9));
}

/* The sweep that misses its port frees nothing that was given again. */
static void one_that_is_given_again_leaves_no_more(void **state)
{
	struct vhca_osm_lid_pair pair;
	osm_port_t *port = tables_add_port(VGUID, 9);

	(void)state;
	tables_add_line(VGUID, 9);
	pair = resolve(VHCA_OSM_LID_GIVEN);
	change(&pair, false);
	pair = resolve(VHCA_OSM_LID_FREED);
	change(&pair, false);
	pair = resolve(VHCA_OSM_LID_GIVEN);
	change(&pair, false);
	cl_qmap_remove_item(&tables.osm.subn.port_guid_tbl, &port->map_item);
	vhca_osm_dynamic_let_go(&tables.osm, &rows);
	assert_int_equal(tables_line(VGUID), 9);
	assert_true(is_used(9));
	assert_int_equal(rows.leaving->n, 0);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(a_refused_one_goes_with_its_line),	      CASE(a_line_that_was_there_stays),
		CASE(so_does_that_of_a_port_that_is_there),   CASE(one_that_leaves_goes_on_leaving),
		CASE(one_that_is_given_again_leaves_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
