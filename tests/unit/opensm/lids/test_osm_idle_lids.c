/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which lines of guid2lid nobody comes back for. */
#include "common/base/cleanup.h"
#include "opensm/lids/idle.h"
#include "tests/unit/unit.h"

#define PF    UINT64_C(0xaa)
#define VGUID UINT64_C(0x11)
#define OWN   UINT64_C(0x22) /* a VF's, while it has no guest */
#define HOST  UINT64_C(0x33)
#define GRACE 1000

struct world {
	struct vhca_osm_lid_line lines[3];
	enum vhca_osm_lid_claim claim; /* of VGUID */
	bool guests;		       /* at PF */
	struct vhca_osm_idle_lids idle;
};

static enum vhca_osm_lid_claim find_claim(void *ctx, uint64_t guid)
{
	const struct world *w = ctx;

	return guid == VGUID ? w->claim : VHCA_OSM_LID_UNCLAIMED;
}

static bool has_guests(void *ctx, uint64_t pf_guid)
{
	const struct world *w = ctx;

	return w->guests && pf_guid == PF;
}

/* All are here: a guest's port and a VF's own, both behind PF, and a host's. */
static struct world make_world(void)
{
	return (struct world){
		.lines = {{.guid = VGUID, .pf_guid = PF, .lid = 1, .here = true},
			  {.guid = OWN, .pf_guid = PF, .lid = 2, .here = true},
			  {.guid = HOST, .lid = 3, .here = true}},
		.claim = VHCA_OSM_LID_CLAIMED,
		.guests = true,
	};
}

static void look(struct world *w, uint64_t now)
{
	/* OpenSM's table has no order. */
	struct vhca_osm_lid_line lines[] = {w->lines[2], w->lines[0], w->lines[1]};
	const struct vhca_osm_lid_claims claims = {
		.find = find_claim, .has_guests = has_guests, .ctx = w};

	assert_int_equal(
		vhca_osm_idle_lids_look(&w->idle, lines, VHCA_ARRAY_SIZE(lines), &claims, now), 0);
}

static void goes(struct world *w, size_t i)
{
	w->lines[i].here = false;
	w->lines[i].pf_guid = 0;
}

static void comes(struct world *w, size_t i)
{
	w->lines[i].here = true;
	w->lines[i].pf_guid = PF;
}

static uint64_t deadline(const struct world *w)
{
	return vhca_osm_idle_lids_deadline(&w->idle, GRACE);
}

static void a_withdrawn_one_goes_when_its_port_has(void **state)
{
	struct world w = make_world();

	(void)state;
	w.claim = VHCA_OSM_LID_WITHDRAWN;
	look(&w, 10);
	assert_true(deadline(&w) == UINT64_MAX);
	goes(&w, 0);
	look(&w, 20);
	assert_int_equal(deadline(&w), 20 + GRACE);
	look(&w, 500); /* one more sweep */
	assert_int_equal(deadline(&w), 20 + GRACE);
	vhca_osm_idle_lids_done(&w.idle);
}

/* A port that never answers would else keep all LIDs. */
static void a_sweep_with_errors_begins_and_ends_none(void **state)
{
	struct world w = make_world();

	(void)state;
	w.claim = VHCA_OSM_LID_WITHDRAWN;
	goes(&w, 0);
	look(&w, 0);
	assert_true(deadline(&w) == UINT64_MAX);
	look(&w, 20);
	look(&w, 0);
	assert_int_equal(deadline(&w), 20 + GRACE);
	comes(&w, 0);
	look(&w, 0);
	assert_true(deadline(&w) == UINT64_MAX);
	vhca_osm_idle_lids_done(&w.idle);
}

static void a_bound_one_stays(void **state)
{
	struct world w = make_world();

	(void)state;
	look(&w, 10);
	goes(&w, 0);
	look(&w, 20);
	assert_true(deadline(&w) == UINT64_MAX);
	vhca_osm_idle_lids_done(&w.idle);
}

/* A binding comes before the port when a guest starts, and a port before the binding at a PF whose
 * agent is late. */
static void what_comes_back_begins_anew(void **state)
{
	struct world w = make_world();

	(void)state;
	w.claim = VHCA_OSM_LID_WITHDRAWN;
	goes(&w, 0);
	look(&w, 20);
	w.claim = VHCA_OSM_LID_CLAIMED;
	look(&w, 30);
	assert_true(deadline(&w) == UINT64_MAX);
	w.claim = VHCA_OSM_LID_WITHDRAWN;
	look(&w, 40);
	assert_int_equal(deadline(&w), 40 + GRACE);
	comes(&w, 0);
	look(&w, 50);
	assert_true(deadline(&w) == UINT64_MAX);
	goes(&w, 0);
	look(&w, 60);
	assert_int_equal(deadline(&w), 60 + GRACE);
	vhca_osm_idle_lids_done(&w.idle);
}

static void a_moved_lid_stays(void **state)
{
	struct world w = make_world();

	(void)state;
	w.claim = VHCA_OSM_LID_WITHDRAWN;
	goes(&w, 0);
	w.lines[0].taken = true;
	look(&w, 20);
	assert_true(deadline(&w) == UINT64_MAX);
	vhca_osm_idle_lids_done(&w.idle);
}

static void a_vf_s_own_goes_only_beside_guests(void **state)
{
	struct world w = make_world();

	(void)state;
	look(&w, 10);
	goes(&w, 1);
	w.guests = false;
	look(&w, 20);
	assert_true(deadline(&w) == UINT64_MAX);
	w.guests = true;
	look(&w, 30);
	assert_int_equal(deadline(&w), 30 + GRACE);
	vhca_osm_idle_lids_done(&w.idle);
}

/* Nor one that was never seen: nobody knows what it was. */
static void a_host_s_stays(void **state)
{
	struct world w = make_world();

	(void)state;
	look(&w, 10);
	goes(&w, 2);
	look(&w, 20);
	assert_true(deadline(&w) == UINT64_MAX);
	vhca_osm_idle_lids_done(&w.idle);
	goes(&w, 1);
	look(&w, 30);
	assert_true(deadline(&w) == UINT64_MAX);
	vhca_osm_idle_lids_done(&w.idle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_withdrawn_one_goes_when_its_port_has),
		cmocka_unit_test(a_sweep_with_errors_begins_and_ends_none),
		cmocka_unit_test(a_bound_one_stays),
		cmocka_unit_test(what_comes_back_begins_anew),
		cmocka_unit_test(a_moved_lid_stays),
		cmocka_unit_test(a_vf_s_own_goes_only_beside_guests),
		cmocka_unit_test(a_host_s_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
