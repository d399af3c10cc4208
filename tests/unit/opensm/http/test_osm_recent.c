/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What GET /v1/moves keeps of moves that do not simply succeed. */
#include <stdio.h>

#include "common/base/cleanup.h"
#include "common/http/json.h"
#include "opensm/http/page/recent.h"
#include "tests/unit/unit.h"

static const struct vhca_osm_lid_move exchange = {
	.want = {.lid = 7, .port_guid = 0xb},
	.begun = true,
	.changes = true,
	.pair = {.guid = {0xa, 0xb}, .lid = {7, 8}},
	.cost = {.mode = VHCA_OSM_SKYLINE, .switches = 2, .lft_smps = 3, .port_smps = 2},
	.missing = 1,
	.duration_us = 99,
};

/* The latest row, or what there is instead of any. */
static void assert_latest(const struct vhca_osm_recent *r, const char *expected)
{
	struct json_object *doc = vhca_osm_json_recent(r), *rows = NULL, *row, *of = NULL;
	char text[128] = "none";

	assert_true(json_object_object_get_ex(doc, "moves", &rows));
	row = json_object_array_get_idx(rows, 0);
	if (row) {
		const char *const names[] = {"state", "code", "lid", "from_port_guid", "missing"};
		size_t len = 0;

		for (size_t i = 0; i < VHCA_ARRAY_SIZE(names); i++) {
			assert_true(json_object_object_get_ex(row, names[i], &of));
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
						i ? " " : "",
						of ? json_object_get_string(of) : "-");
		}
	}
	assert_string_equal(text, expected);
	(void)json_object_put(doc);
}

static void what_is_left_to_sweeps_is_told(void **state)
{
	static struct vhca_osm_recent r;

	(void)state;
	vhca_osm_recent_add_lid(&r, &exchange, NULL);
	assert_latest(&r, "repairing - 7 0x000000000000000a 1");
}

static void only_what_had_begun_is_refused(void **state)
{
	static struct vhca_osm_recent r;
	struct vhca_osm_lid_move waits = exchange;
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	(void)vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "moves_paused", 0, "paused");
	waits.begun = false;
	vhca_osm_recent_add_lid(&r, &waits, &err);
	assert_latest(&r, "none");
	(void)vhca_error_set(&err, VHCA_ERR_EXHAUSTED, "state_not_saved", 0, "a full disk");
	vhca_osm_recent_add_lid(&r, &exchange, &err);
	assert_latest(&r, "refused state_not_saved 7 0x000000000000000a 0");
}

static void what_was_so_already_is_no_move(void **state)
{
	static struct vhca_osm_recent r;
	struct vhca_osm_lid_move same = {.want = exchange.want, .begun = true};

	(void)state;
	vhca_osm_recent_add_lid(&r, &same, NULL);
	assert_latest(&r, "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_to_sweeps_is_told),
		cmocka_unit_test(only_what_had_begun_is_refused),
		cmocka_unit_test(what_was_so_already_is_no_move),
	};

	return cmocka_run_group_tests_name("osm_recent", tests, NULL, NULL);
}
