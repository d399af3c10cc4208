/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is sent of dynamic LIDs that go together. */
#include "opensm/osm/smps.h"
#include "tests/unit/opensm/lids/osm_tables.h"
#include "tests/unit/unit.h"

#define PF_GUID UINT64_C(0xaa)
#define PF_LID	5
#define PARTS	4

static struct vhca_osm_lid_pair pairs[PARTS];
static struct vhca_osm_lid_plan plans[PARTS];
static struct vhca_osm_lid_part parts[PARTS];

/* In one block, at each of the switches, which lack it. */
static int setup(void **state)
{
	(void)tables_setup(state);
	(void)tables_add_port(PF_GUID, PF_LID);
	for (uint16_t i = 0; i < PARTS; i++) {
		pairs[i] = (struct vhca_osm_lid_pair){.guid = {i + 1U, PF_GUID},
						      .lid = {(uint16_t)(10 + i), PF_LID},
						      .dynamic = VHCA_OSM_LID_GIVEN};
		assert_int_equal(vhca_osm_switch_set_init(&plans[i].switches, TABLES_SWITCHES), 0);
		for (size_t s = 0; s < TABLES_SWITCHES; s++)
			vhca_osm_switch_set_add(&plans[i].switches, tables_switch_guid(s));
		vhca_osm_switch_set_sort(&plans[i].switches);
		parts[i] = (struct vhca_osm_lid_part){.pair = &pairs[i], .plan = &plans[i]};
		for (size_t s = 0; s < TABLES_SWITCHES; s++)
			tables.switches[s].new_lft[10 + i] = 1;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < PARTS; i++)
		vhca_osm_lid_plan_done(&plans[i]);
	return 0;
}

static void a_block_is_sent_once_to_each_switch(void **state)
{
	(void)state;
	assert_int_equal(vhca_osm_smps_together(&tables.osm, parts, PARTS, true), TABLES_SWITCHES);
	assert_int_equal(tables.lft_smps, TABLES_SWITCHES);
	for (size_t i = 0; i < PARTS; i++)
		assert_int_equal(parts[i].blocks, TABLES_SWITCHES);
}

/* Their ports were acknowledged at different times, so one is late, and the first is not. */
static void what_any_of_them_sends_again_is_sent(void **state)
{
	(void)state;
	parts[2].resend = true;
	assert_int_equal(vhca_osm_smps_together(&tables.osm, parts, PARTS, false), TABLES_SWITCHES);
	assert_int_equal(tables.lft_smps, TABLES_SWITCHES);
	assert_int_equal(parts[2].blocks, TABLES_SWITCHES);
}

static void what_none_sends_is_only_looked_at(void **state)
{
	(void)state;
	assert_int_equal(vhca_osm_smps_together(&tables.osm, parts, PARTS, false), TABLES_SWITCHES);
	assert_int_equal(tables.lft_smps + tables.port_smps, 0);
}

static void a_pf_that_all_share_is_sent_once(void **state)
{
	(void)state;
	tables.ports[0].physp.port_info.local_port_num = 0; /* has not answered */
	(void)vhca_osm_smps_together(&tables.osm, parts, PARTS, true);
	assert_int_equal(tables.port_smps, 1);
	for (size_t i = 0; i < PARTS; i++)
		assert_int_equal(parts[i].ports, 1);
	parts[0].refused = -1;
	(void)vhca_osm_smps_together(&tables.osm, parts, PARTS, true);
	assert_int_equal(tables.port_smps, 2);
}

/* One that is late sends its own port, and none of the others'. */
static void a_port_is_its_own_ones(void **state)
{
	(void)state;
	for (uint16_t i = 0; i < 3; i++) {
		osm_port_t *port = tables_add_port(i + 1U, (uint16_t)(10 + i));

		port->p_physp->port_info.local_port_num = 0;
	}
	parts[2].resend = true;
	(void)vhca_osm_smps_together(&tables.osm, parts, PARTS, false);
	assert_int_equal(tables.port_smps, 1);
	assert_int_equal(parts[0].ports, 1);
	assert_int_equal(parts[3].ports, 0);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(a_block_is_sent_once_to_each_switch),
		CASE(what_any_of_them_sends_again_is_sent),
		CASE(what_none_sends_is_only_looked_at),
		CASE(a_pf_that_all_share_is_sent_once),
		CASE(a_port_is_its_own_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
