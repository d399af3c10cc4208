/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of dynamic LIDs, and its file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "opensm/lids/dynamic.h"
#include "tests/unit/unit.h"

#define TEXT                                              \
	"vhcasm-dynamic-lids 1\n"                         \
	"d 0x0000000000000001 49151 0x00000000000000aa\n" \
	"d 0x0000000000000002 7 0x00000000000000bb\n"     \
	"end 2\n"

static void set(struct vhca_osm_dynamic_lids *t, uint64_t vguid, uint16_t lid, uint64_t pf)
{
	const struct vhca_osm_dynamic_lid row = {.vguid = vguid, .pf_guid = pf, .lid = lid};

	assert_int_equal(vhca_osm_dynamic_lids_set(t, &row), 0);
}

static void a_vguid_has_one_row(void **state)
{
	struct vhca_osm_dynamic_lids t = {0};

	(void)state;
	set(&t, 2, 7, 0xaa);
	set(&t, 1, 8, 0xaa);
	set(&t, 3, 9, 0xaa);
	set(&t, 2, 7, 0xbb);
	assert_int_equal(t.n, 3);
	assert_int_equal(vhca_osm_dynamic_lids_find(&t, 2)->pf_guid, 0xbb);
	assert_int_equal(vhca_osm_dynamic_lids_find_lid(&t, 9)->vguid, 3);
	vhca_osm_dynamic_lids_remove(&t, 2);
	vhca_osm_dynamic_lids_remove(&t, 2);
	assert_int_equal(t.n, 2);
	assert_null(vhca_osm_dynamic_lids_find(&t, 2));
	assert_null(vhca_osm_dynamic_lids_find_lid(&t, 7));
	assert_int_equal(vhca_osm_dynamic_lids_find(&t, 1)->lid, 8);
	assert_int_equal(vhca_osm_dynamic_lids_find(&t, 3)->lid, 9);
	vhca_osm_dynamic_lids_done(&t);
}

static void a_freed_one_is_remembered_apart(void **state)
{
	struct vhca_osm_dynamic_lids t = {0};
	const struct vhca_osm_dynamic_lid row = {.vguid = 2, .pf_guid = 0xaa, .lid = 7};

	(void)state;
	vhca_osm_dynamic_lids_return(&t, 2);
	assert_int_equal(vhca_osm_dynamic_lids_leave(&t, &row), 0);
	assert_null(vhca_osm_dynamic_lids_find(&t, 2));
	assert_int_equal(vhca_osm_dynamic_lids_find(t.leaving, 2)->lid, 7);
	vhca_osm_dynamic_lids_return(&t, 2);
	assert_int_equal(t.leaving->n, 0);
	assert_int_equal(vhca_osm_dynamic_lids_leave(&t, &row), 0);
	set(&t, 3, 9, 0xaa);
	t.max = 5;
	vhca_osm_dynamic_lids_clear(&t);
	assert_null(vhca_osm_dynamic_lids_find(&t, 3));
	assert_null(vhca_osm_dynamic_lids_find(t.leaving, 2));
	assert_int_equal(t.max, 5);
	vhca_osm_dynamic_lids_done(&t);
	assert_null(t.leaving);
}

static void rows_are_found_in_whatever_order_they_came(void **state)
{
	struct vhca_osm_dynamic_lids t = {0};

	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		set(&t, 1 + i * 377 % 1000, (uint16_t)(1 + i), i + 1);
	assert_int_equal(t.n, 1000);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(vhca_osm_dynamic_lids_find(&t, 1 + i * 377 % 1000)->lid, 1 + i);
	vhca_osm_dynamic_lids_done(&t);
}

static void the_table_survives_its_file(void **state)
{
	struct vhca_osm_dynamic_lids t = {0}, u = {0};
	VHCA_AUTO_FREE char *text = NULL;
	char dir[] = "/tmp/test_osm_dynamic.XXXXXX", path[64];
	size_t len = 0;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/dynamic-lids", dir);
	assert_int_equal(vhca_osm_dynamic_lids_load(path, &u, NULL), 0); /* none yet */
	assert_int_equal(u.n, 0);
	set(&t, 2, 7, 0xbb);
	set(&t, 1, 0xbfff, 0xaa);
	assert_int_equal(vhca_osm_dynamic_lids_save(path, &t), 0);
	assert_int_equal(vhca_read_file(path, 4096, &text, &len), 0);
	assert_string_equal(text, TEXT);
	assert_int_equal(vhca_osm_dynamic_lids_load(path, &u, NULL), 0);
	assert_int_equal(u.n, 2);
	assert_int_equal(vhca_osm_dynamic_lids_find(&u, 1)->lid, 0xbfff);
	assert_int_equal(vhca_osm_dynamic_lids_find(&u, 1)->pf_guid, 0xaa);
	vhca_osm_dynamic_lids_done(&t);
	vhca_osm_dynamic_lids_done(&u);
	(void)unlink(path);
	(void)rmdir(dir);
}

static void a_damaged_file_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text, *line;
	} cases[] = {
		{"", "line 1"},
		{"vhcasm-dynamic-lids 2\nend 0\n", "line 1"},
		{"vhcasm-dynamic-lids 1\n", "line 2"},
		{"vhcasm-dynamic-lids 1\nend 1\n", "line 2"},
		{"vhcasm-dynamic-lids 1\nend 0\nend 0\n", "line 2"},
		{"vhcasm-dynamic-lids 1\nd 0x1 7 0xbb\nd 0x1 8 0xbb\nend 2\n", "line 3"},
		{"vhcasm-dynamic-lids 1\nd 0x1 7 0xbb\nd 0x2 7 0xbb\nend 2\n", "line 3"},
		{"vhcasm-dynamic-lids 1\nd 0x1 49152 0xbb\nend 1\n", "line 2"},
		{"vhcasm-dynamic-lids 1\nd 0x1 0 0xbb\nend 1\n", "line 2"},
		{"vhcasm-dynamic-lids 1\nd 0x1 7\nend 1\n", "line 2"},
		{"vhcasm-dynamic-lids 1\nd 0x1 7 0xbb 1\nend 1\n", "line 2"},
		{"vhcasm-dynamic-lids 1\nx 0x1 7 0xbb\nend 1\n", "line 2"},
		{"vhcasm-dynamic-lids 1\nd 0x1 7 0xbb\nend 1", "line 3"},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		VHCA_AUTO_FREE char *text = strdup(cases[i].text);
		struct vhca_osm_dynamic_lids t = {0};
		struct vhca_error err = VHCA_ERROR_INIT;

		assert_true(vhca_osm_dynamic_lids_parse(text, &t, &err) < 0);
		assert_string_equal(err.code, "state_damaged");
		assert_non_null(strstr(err.msg, cases[i].line));
		assert_true(err.hint[0]);
		vhca_osm_dynamic_lids_done(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_vguid_has_one_row),
		cmocka_unit_test(a_freed_one_is_remembered_apart),
		cmocka_unit_test(rows_are_found_in_whatever_order_they_came),
		cmocka_unit_test(the_table_survives_its_file),
		cmocka_unit_test(a_damaged_file_is_refused_with_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
