/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What OpenSM keeps for a vGUID while its dynamic LID is given, freed, and refused. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "opensm/osm/dynamic.h"
#include "opensm/osm/lid_file.h"
#include "opensm/osm/lids.h"
#include "tests/unit/opensm/lids/osm_tables.h"
#include "tests/unit/unit.h"

#define PF_GUID UINT64_C(0xaa)
#define VGUID	UINT64_C(0x11)
#define OTHER	UINT64_C(0x22)

static struct vhca_osm_dynamic_lids rows;
static struct vhca_osm_kept_snapshot kept;
static struct vhca_osm_lids lids;
static char dir[] = "/tmp/test_osm_dynamic_lines.XXXXXX", path[64];

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/dynamic-lids", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	(void)unlink(path);
	return rmdir(dir);
}

static int setup(void **state)
{
	rows = (struct vhca_osm_dynamic_lids){.max = 4};
	(void)memset(&kept, 0, sizeof(kept));
	lids = (struct vhca_osm_lids){.osm = &tables.osm, .dynamic = &rows, .dynamic_path = path};
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

	assert_int_equal(
		vhca_osm_dynamic_resolve(&tables.osm, &rows, &kept, &want, NULL, &pair, NULL), 0);
	return pair;
}

static void change(const struct vhca_osm_lid_pair *pair, bool undo)
{
	assert_int_equal(vhca_osm_lid_file_remember(&lids, pair, 1, undo), 0);
}

/* No disk takes it. */
static void fail_to_change(const struct vhca_osm_lid_pair *pair)
{
	lids.dynamic_path = "/proc/self/none/dynamic-lids";
	assert_int_equal(vhca_osm_lid_file_remember(&lids, pair, 1, false), -EIO);
	lids.dynamic_path = path;
}

static struct vhca_osm_lid_pair resolve_freed(uint16_t lid)
{
	struct vhca_osm_lid_pair pair = resolve(VHCA_OSM_LID_GIVEN);

	assert_int_equal(pair.lid[0], lid);
	change(&pair, false);
	return resolve(VHCA_OSM_LID_FREED);
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

/* The LID of a port that is there is freed and given again; then the port goes. */
static void leave_and_be_given(bool refused)
{
	osm_port_t *port = tables_add_port(VGUID, 9);
	struct vhca_osm_lid_pair pair;

	tables_add_line(VGUID, 9);
	pair = resolve(VHCA_OSM_LID_GIVEN);
	change(&pair, false);
	pair = resolve(VHCA_OSM_LID_FREED);
	change(&pair, false);
	assert_int_equal(rows.leaving->n, 1);
	pair = resolve(VHCA_OSM_LID_GIVEN);
	change(&pair, false);
	if (refused)
		change(&pair, true);
	cl_qmap_remove_item(&tables.osm.subn.port_guid_tbl, &port->map_item);
	vhca_osm_dynamic_let_go(&tables.osm, &rows);
}

/* It was freed, given again, and that was refused: it is free when its port has gone. */
static void one_that_leaves_goes_on_leaving(void **state)
{
	(void)state;
	leave_and_be_given(true);
	assert_int_equal(tables_line(VGUID), 0);
	assert_false(is_used(9));
}

/* The sweep that misses its port frees nothing that was given again. */
static void one_that_is_given_again_leaves_no_more(void **state)
{
	(void)state;
	leave_and_be_given(false);
	assert_int_equal(tables_line(VGUID), 9);
	assert_true(is_used(9));
	assert_int_equal(rows.leaving->n, 0);
}

/* A sweep that has waited for the disk for long enough finds a new port. */
static void sweep_gives_1(void)
{
	if (!is_used(1))
		tables_add_line(OTHER, 1);
}

static void what_is_freed_is_free_when_the_file_says_so(void **state)
{
	struct vhca_osm_lid_pair pair = resolve_freed(1);

	(void)state;
	tables.unlocked = sweep_gives_1;
	change(&pair, false);
	assert_int_equal(tables_line(OTHER), 0);
	assert_int_equal(tables_line(VGUID), 0);
	assert_false(is_used(1));
}

static void what_cannot_be_freed_has_one_owner(void **state)
{
	struct vhca_osm_lid_pair pair = resolve_freed(1);

	(void)state;
	tables.unlocked = sweep_gives_1;
	fail_to_change(&pair);
	assert_int_equal(tables_line(OTHER), 0);
	assert_int_equal(tables_line(VGUID), 1);
	assert_true(is_used(1));
	assert_int_equal(rows.n, 1);
	assert_int_equal(rows.rows[0].pf_guid, PF_GUID);
}

/* Refused after the file, the sweep that did not wait was first. */
static void what_another_one_has_got_is_his(void **state)
{
	struct vhca_osm_lid_pair pair = resolve_freed(1);

	(void)state;
	change(&pair, false);
	sweep_gives_1();
	change(&pair, true);
	assert_int_equal(tables_line(OTHER), 1);
	assert_int_equal(tables_line(VGUID), 0);
	assert_true(is_used(1));
	assert_int_equal(rows.n, 0);
}

static void what_nobody_has_got_is_given_back(void **state)
{
	struct vhca_osm_lid_pair pair = resolve_freed(1);

	(void)state;
	change(&pair, false);
	change(&pair, true);
	assert_int_equal(tables_line(VGUID), 1);
	assert_true(is_used(1));
	assert_int_equal(rows.n, 1);
}

static void sweep_finds_the_port(void)
{
	(void)tables_add_port(VGUID, 12);
	tables_add_line(VGUID, 12);
}

static void a_port_that_came_meanwhile_keeps_what_it_got(void **state)
{
	struct vhca_osm_lid_pair pair = resolve_freed(1);

	(void)state;
	tables.unlocked = sweep_finds_the_port;
	fail_to_change(&pair);
	assert_int_equal(tables_line(VGUID), 12);
	assert_false(is_used(1));
	assert_true(is_used(12));
	assert_int_equal(rows.n, 0);
}

/* Kept for it when there were larger tables; no port has it. */
#define TOO_HIGH 300

static struct vhca_osm_lid_pair resolve_too_high(void)
{
	struct vhca_osm_lid_pair pair;

	tables_add_line(VGUID, TOO_HIGH);
	pair = resolve(VHCA_OSM_LID_GIVEN);
	assert_int_equal(pair.lid[0], 1);
	return pair;
}

static void one_beyond_the_tables_is_free(void **state)
{
	struct vhca_osm_lid_pair pair = resolve_too_high();

	(void)state;
	change(&pair, false);
	assert_int_equal(tables_line(VGUID), 1);
	assert_false(is_used(TOO_HIGH));
}

static void or_it_is_as_it_was(void **state)
{
	struct vhca_osm_lid_pair pair = resolve_too_high();

	(void)state;
	fail_to_change(&pair);
	assert_int_equal(tables_line(VGUID), TOO_HIGH);
	assert_true(is_used(TOO_HIGH));
	assert_false(is_used(1));
	change(&pair, false);
	change(&pair, true);
	assert_int_equal(tables_line(VGUID), TOO_HIGH);
	assert_true(is_used(TOO_HIGH));
	assert_false(is_used(1));
	assert_int_equal(rows.n, 0);
}

static void but_another_one_may_have_it_by_then(void **state)
{
	struct vhca_osm_lid_pair pair = resolve_too_high();

	(void)state;
	change(&pair, false);
	tables_add_line(OTHER, TOO_HIGH);
	change(&pair, true);
	assert_int_equal(tables_line(VGUID), 0);
	assert_int_equal(tables_line(OTHER), TOO_HIGH);
	assert_false(is_used(1));
}

/* ---- which LID ---- */

static void choose(struct vhca_osm_lids_promised *promised, uint16_t want)
{
	const struct vhca_osm_lid_want given = {
		.vguid = VGUID, .port_guid = PF_GUID, .dynamic = VHCA_OSM_LID_GIVEN};
	struct vhca_osm_lid_pair pair;

	assert_int_equal(
		vhca_osm_dynamic_resolve(&tables.osm, &rows, &kept, &given, promised, &pair, NULL),
		0);
	if (want)
		assert_int_equal(pair.lid[0], want);
	vhca_osm_lid_set_add(&promised->lids, pair.lid[0]);
	promised->n++;
}

/* Where there is room for all, and then beside the first. */
static void those_that_wait_share_a_block(void **state)
{
	struct vhca_osm_lids_promised promised = {.wanted = 3};

	(void)state;
	for (uint16_t lid = 1; lid < 63; lid++)
		tables.osm.sm.lid_mgr.used_lids[lid] = 1;
	choose(&promised, 64);
	promised.wanted--;
	choose(&promised, 65);
	promised.wanted--;
	tables.osm.sm.lid_mgr.used_lids[66] = 1;
	choose(&promised, 67);
}

static void one_alone_gets_the_lowest(void **state)
{
	struct vhca_osm_lids_promised promised = {.wanted = 1};

	(void)state;
	tables.osm.sm.lid_mgr.used_lids[1] = tables.osm.sm.lid_mgr.used_lids[2] = 1;
	choose(&promised, 3);
}

/* No block has room for all. */
static void or_the_block_with_most(void **state)
{
	struct vhca_osm_lids_promised promised = {.wanted = 64};

	(void)state;
	rows.max = TABLES_LFT;
	for (uint16_t lid = 1; lid < TABLES_LFT; lid++)
		tables.osm.sm.lid_mgr.used_lids[lid] = lid % 64 < 60;
	tables.osm.sm.lid_mgr.used_lids[130] = 0;
	tables.osm.sm.lid_mgr.used_lids[TABLES_LFT - 1] = 1;
	choose(&promised, 130);
	for (size_t i = 0; i < 4; i++)
		choose(&promised, (uint16_t)(188 + i));
	for (size_t i = 0; i < 4; i++)
		choose(&promised, (uint16_t)(60 + i));
	for (size_t i = 0; i < 4; i++)
		choose(&promised, (uint16_t)(124 + i));
	for (size_t i = 0; i < 3; i++) /* the switches have no place for 255 and more */
		choose(&promised, (uint16_t)(252 + i));
}

/* Those who have come before have not chosen theirs yet. */
static void some_are_left_for_those_before(void **state)
{
	struct vhca_osm_lids_promised promised = {.ahead = 2};
	const struct vhca_osm_lid_want given = {
		.vguid = VGUID, .port_guid = PF_GUID, .dynamic = VHCA_OSM_LID_GIVEN};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_lid_pair pair;

	(void)state;
	for (uint16_t lid = 1; lid < TABLES_LFT; lid++)
		tables.osm.sm.lid_mgr.used_lids[lid] = lid != 60 && lid != 70 && lid != 71;
	choose(&promised, 60);
	promised = (struct vhca_osm_lids_promised){.ahead = 3};
	assert_true(vhca_osm_dynamic_resolve(&tables.osm, &rows, &kept, &given, &promised, &pair,
					     &err) < 0);
	assert_string_equal(err.code, "no_free_lid");
}

/* A port that came in a sweep, although its LID is not reserved yet. */
static void a_sweep_shows_what_ports_have(void **state)
{
	struct vhca_osm_lids_promised promised = {.wanted = 1};

	(void)state;
	choose(&promised, 1);
	tables_add_port(OTHER, 2)->p_physp->port_info.base_lid = cl_hton16(3);
	tables.osm.sm.lid_mgr.used_lids[2] = 0;
	atomic_fetch_add(&kept.sweeps, 1);
	choose(&promised, 4);
	atomic_store(&kept.sweeping, true);
	(void)tables_add_port(OTHER + 1, 5);
	tables.osm.sm.lid_mgr.used_lids[5] = 0;
	choose(&promised, 6);
}

#define MANY_PORTS 40000
#define MANY_LIDS  1000

static double cpu_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Of so many choices, in the switches' largest tables. anew: as if there were a sweep each time. */
static double choose_many(size_t n, bool anew)
{
	struct vhca_osm_lids_promised promised = {.wanted = n};
	double begin = cpu_ms();

	for (; promised.wanted > 0; promised.wanted--) {
		choose(&promised, 0);
		if (anew)
			atomic_fetch_add(&kept.sweeps, 1);
	}
	return cpu_ms() - begin;
}

static void many_are_chosen_by_one_look(void **state)
{
	struct {
		osm_port_t port;
		osm_physp_t physp;
	} *many = calloc(MANY_PORTS, sizeof(*many));
	double anew, together;

	(void)state;
	assert_non_null(many);
	rows.max = MANY_LIDS;
	for (size_t i = 0; i < TABLES_SWITCHES; i++)
		tables.switches[i].sw.max_lid_ho = VHCA_OSM_LIDS - 1;
	for (size_t i = 0; i < MANY_PORTS; i++) {
		uint16_t lid = (uint16_t)(6 + i);

		many[i].port.guid = cl_hton64(0x10000 + i);
		many[i].port.lid = many[i].physp.port_info.base_lid = cl_hton16(lid);
		many[i].port.p_physp = &many[i].physp;
		tables.osm.sm.lid_mgr.used_lids[lid] = 1;
		(void)cl_qmap_insert(&tables.osm.subn.port_guid_tbl, many[i].port.guid,
				     &many[i].port.map_item);
	}
	anew = choose_many(MANY_LIDS / 20, true) * 20;
	together = choose_many(MANY_LIDS, false);
	print_message("# %d LIDs among %d ports: %.1f ms, with a look for each %.0f ms\n",
		      MANY_LIDS, MANY_PORTS, together, anew);
	assert_true(together < anew / 10);
	free(many);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(a_refused_one_goes_with_its_line),
		CASE(a_line_that_was_there_stays),
		CASE(so_does_that_of_a_port_that_is_there),
		CASE(one_that_leaves_goes_on_leaving),
		CASE(one_that_is_given_again_leaves_no_more),
		CASE(what_is_freed_is_free_when_the_file_says_so),
		CASE(what_cannot_be_freed_has_one_owner),
		CASE(what_another_one_has_got_is_his),
		CASE(what_nobody_has_got_is_given_back),
		CASE(a_port_that_came_meanwhile_keeps_what_it_got),
		CASE(one_beyond_the_tables_is_free),
		CASE(or_it_is_as_it_was),
		CASE(but_another_one_may_have_it_by_then),
		CASE(those_that_wait_share_a_block),
		CASE(one_alone_gets_the_lowest),
		CASE(or_the_block_with_most),
		CASE(some_are_left_for_those_before),
		CASE(a_sweep_shows_what_ports_have),
		CASE(many_are_chosen_by_one_look),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
