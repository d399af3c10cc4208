/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* found_ports, table, state_file and view of opensm/: vGUIDs that are ports of their own. */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "opensm/bindings/found_ports.h"
#include "opensm/bindings/state_file.h"
#include "opensm/http/view.h"
#include "tests/unit/unit.h"

#define HCA_A  UINT64_C(0x0002c90300000a01)
#define HCA_B  UINT64_C(0x0002c90300000b01)
#define GUID_1 UINT64_C(0x02c9ab0000000001)
#define KEY    0x8001

/* ---- the fake subnet: two HCAs, and GUID_1 if it is a port, behind one of them ---- */

struct fake {
	bool there, physical;
	uint64_t behind;
	uint16_t key; /* in all tables of GUID_1 */
};

static bool fake_port(void *ctx, uint64_t guid, struct vhca_osm_port_info *ret)
{
	const struct fake *f = ctx;

	*ret = (struct vhca_osm_port_info){guid == GUID_1 ? 7 : 5, VHCA_OSM_PORT_ACTIVE, 128};
	return guid == HCA_A || guid == HCA_B || (guid == GUID_1 && f->there);
}

static bool fake_alias(void *ctx, uint64_t guid, struct vhca_osm_alias *ret)
{
	const struct fake *f = ctx;

	*ret = (struct vhca_osm_alias){guid, 0};
	return guid == GUID_1 && f->there;
}

static bool fake_is_vport_of(void *ctx, uint64_t guid, uint64_t hca)
{
	const struct fake *f = ctx;

	return guid == GUID_1 && f->there && f->behind == hca;
}

static bool fake_is_physical(void *ctx, uint64_t guid)
{
	const struct fake *f = ctx;

	return f->physical && guid == GUID_1;
}

static bool fake_has_pkey(void *ctx, uint64_t port, uint16_t pkey)
{
	const struct fake *f = ctx;

	return port == GUID_1 && f->key == pkey;
}

static void fake_each_port(void *ctx, vhca_osm_port_fn fn, void *arg)
{
	const struct fake *f = ctx;

	fn(arg, HCA_A, NULL, 0);
	if (f->there)
		fn(arg, GUID_1, NULL, 0);
	fn(arg, HCA_B, NULL, 0);
}

static const struct vhca_osm_subnet_ops fake_ops = {
	.find_port = fake_port,
	.find_alias = fake_alias,
	.is_vport_of = fake_is_vport_of,
	.is_physical = fake_is_physical,
	.has_pkey = fake_has_pkey,
	.each_port = fake_each_port,
};

/* ---- what is asked ---- */

static struct vhca_osm_table *new_table(void)
{
	static const struct vhca_osm_limits limits = {
		.bindings = 3, .tombstones = 2, .never_bound = 2, .ports = 3};
	struct vhca_osm_table *t = NULL;

	assert_int_equal(vhca_osm_table_new(&limits, false, &t), 0);
	return t;
}

/* A report of GUID_1, as the service takes it. */
static void put(struct fake *f, struct vhca_osm_table *t, uint64_t epoch, uint64_t hca)
{
	uint16_t key = KEY;
	const struct vhca_osm_binding want = {
		.vguid = GUID_1, .epoch = epoch, .port_guid = hca, .n_pkeys = 1, .pkeys = &key};
	struct vhca_osm_binding b =
		vhca_osm_own_port_of(&(struct vhca_osm_subnet){&fake_ops, f}, t, &want);

	assert_int_equal(vhca_osm_table_put(t, &b, VHCA_OSM_PORT_PKEYS_MAX, NULL), 0);
}

/* The one port that needs the key. */
static uint64_t key_at(const struct vhca_osm_table *t)
{
	assert_int_equal(vhca_osm_table_ports(t), 1);
	assert_int_equal(vhca_osm_table_port_at(t, 0)->n_needs, 1);
	assert_int_equal(vhca_osm_table_port_at(t, 0)->needs[0].bindings, 1);
	return vhca_osm_table_port_at(t, 0)->guid;
}

static void keys_go_to_the_port_that_a_sweep_finds(void **state)
{
	struct vhca_osm_table *t = new_table();
	struct fake f = {.behind = HCA_A};
	uint64_t revision;

	(void)state;
	put(&f, t, 1, HCA_A);
	vhca_osm_own_ports_found(&(struct vhca_osm_subnet){&fake_ops, &f}, t);
	assert_true(key_at(t) == HCA_A);
	f.there = true;
	vhca_osm_own_ports_found(&(struct vhca_osm_subnet){&fake_ops, &f}, t);
	assert_true(key_at(t) == GUID_1);
	assert_true(vhca_osm_table_find(t, GUID_1)->port_guid == HCA_A);
	revision = vhca_osm_table_revision(t);
	vhca_osm_own_ports_found(&(struct vhca_osm_subnet){&fake_ops, &f},
				 t); /* the next sweep: nothing to write */
	put(&f, t, 1, HCA_A);	     /* a report that is repeated: the same */
	assert_int_equal(vhca_osm_table_revision(t), revision);
	assert_int_equal(vhca_osm_table_withdraw(t, GUID_1, 1, HCA_A, NULL), 0);
	assert_int_equal(vhca_osm_table_ports(t), 0);
	vhca_osm_own_ports_found(&(struct vhca_osm_subnet){&fake_ops, &f},
				 t); /* a tombstone needs nothing */
	assert_int_equal(vhca_osm_table_ports(t), 0);
	(void)vhca_osm_table_free(t);
}

/* One that was away when somebody bound its GUID. */
static void keys_do_not_go_to_a_physical_port(void **state)
{
	struct vhca_osm_table *t = new_table();
	struct fake f = {.behind = HCA_A};
	uint16_t found = 0x8002;

	(void)state;
	put(&f, t, 1, HCA_A);
	f.there = f.physical = true;
	assert_int_equal(vhca_osm_table_inherit(t, GUID_1, &found, 1, NULL), 0);
	vhca_osm_own_ports_found(&(struct vhca_osm_subnet){&fake_ops, &f}, t);
	assert_int_equal(vhca_osm_table_port(t, GUID_1)->n_needs, 1);
	assert_true(vhca_osm_table_port(t, GUID_1)->needs[0].inherited);
	assert_false(vhca_osm_table_find(t, GUID_1)->own_port);
	(void)vhca_osm_table_free(t);
}

/* Bound while its host was found and not noted yet: it was taken for a guest's. */
static void keys_are_taken_back_from_a_physical_port(void **state)
{
	struct vhca_osm_table *t = new_table();
	struct fake f = {.there = true, .behind = HCA_A};

	(void)state;
	put(&f, t, 1, HCA_A);
	assert_true(key_at(t) == GUID_1);
	f.physical = true;
	vhca_osm_own_ports_found(&(struct vhca_osm_subnet){&fake_ops, &f}, t);
	assert_true(key_at(t) == HCA_A);
	assert_false(vhca_osm_table_find(t, GUID_1)->own_port);
	(void)vhca_osm_table_free(t);
}

static void keys_wait_for_a_port_that_is_away(void **state)
{
	struct vhca_osm_table *t = new_table();
	struct fake f = {.there = true, .behind = HCA_A};

	(void)state;
	put(&f, t, 1, HCA_A);
	assert_true(key_at(t) == GUID_1);
	f.there = false;
	put(&f, t, 2, HCA_A);
	assert_true(key_at(t) == GUID_1);
	f.there = true;
	put(&f, t, 3, HCA_B); /* it moves with its port: no table changes */
	assert_true(key_at(t) == GUID_1);
	f.there = false;
	put(&f, t, 4, HCA_A); /* to a place where it may be an alias */
	assert_true(key_at(t) == HCA_A);
	(void)vhca_osm_table_free(t);
}

static void a_restart_knows_it(void **state)
{
	struct vhca_osm_table *t = new_table(), *u = new_table();
	struct fake f = {.there = true, .behind = HCA_A};
	VHCA_AUTO_FREE char *text = NULL;
	size_t len;

	(void)state;
	put(&f, t, 1, HCA_A);
	assert_int_equal(vhca_osm_state_format(t, &text, &len), 0);
	assert_non_null(
		strstr(text, "\nv 0x02c9ab0000000001 1 0x0002c90300000a01 0 0 0x8001\nend 1\n"));
	assert_int_equal(vhca_osm_state_parse(text, u, NULL), 0);
	assert_true(key_at(u) == GUID_1);
	assert_true(vhca_osm_table_find(u, GUID_1)->port_guid == HCA_A);
	(void)vhca_osm_table_free(t);
	(void)vhca_osm_table_free(u);
}

/* So the LID of what was a port is free, and that of a port that is away is not. */
static void a_tombstone_knows_it(void **state)
{
	struct vhca_osm_table *t = new_table(), *u = new_table();
	struct fake f = {.there = true, .behind = HCA_A};
	VHCA_AUTO_FREE char *text = NULL;
	size_t len;

	(void)state;
	put(&f, t, 1, HCA_A);
	assert_int_equal(vhca_osm_table_withdraw(t, GUID_1, 2, HCA_A, NULL), 0);
	assert_int_equal(vhca_osm_state_format(t, &text, &len), 0);
	assert_non_null(strstr(text, "\nw 0x02c9ab0000000001 2 0x0002c90300000a01\nend 1\n"));
	assert_int_equal(vhca_osm_state_parse(text, u, NULL), 0);
	assert_true(vhca_osm_table_find(u, GUID_1)->own_port);
	f.there = false;
	put(&f, u, 3, HCA_B); /* as any guest that starts again */
	assert_true(key_at(u) == HCA_B);
	(void)vhca_osm_table_free(t);
	(void)vhca_osm_table_free(u);
}

/* Bound anew, and withdrawn before a sweep has found its port again. */
static void so_does_one_that_was_bound_in_vain(void **state)
{
	struct vhca_osm_table *t = new_table(), *u = new_table();
	struct fake f = {.there = true, .behind = HCA_A};
	VHCA_AUTO_FREE char *text = NULL;
	uint64_t revision;
	size_t len;

	(void)state;
	put(&f, t, 1, HCA_A);
	assert_int_equal(vhca_osm_table_withdraw(t, GUID_1, 2, HCA_A, NULL), 0);
	f.there = false;
	put(&f, t, 3, HCA_B);
	revision = vhca_osm_table_revision(t);
	put(&f, t, 3, HCA_B);
	assert_int_equal(vhca_osm_table_revision(t), revision);
	put(&f, t, 4, HCA_A);
	assert_false(vhca_osm_table_find(t, GUID_1)->own_port);
	assert_int_equal(vhca_osm_table_own_ports_at(t, HCA_A), 0);
	assert_int_equal(vhca_osm_state_format(t, &text, &len), 0);
	assert_non_null(strstr(text, "\nh 0x02c9ab0000000001 4 0x0002c90300000a01 0 0 0x8001\n"));
	assert_int_equal(vhca_osm_state_parse(text, u, NULL), 0);
	assert_true(key_at(u) == HCA_A);
	assert_int_equal(vhca_osm_table_withdraw(u, GUID_1, 4, HCA_A, NULL), 0);
	assert_true(vhca_osm_table_find(u, GUID_1)->own_port);
	assert_false(vhca_osm_table_find(u, GUID_1)->had_port);
	(void)vhca_osm_table_free(t);
	(void)vhca_osm_table_free(u);
}

/* What was taken for a guest's is none's: the port's owner keeps its LID. */
static void a_physical_port_was_never_a_guests(void **state)
{
	struct vhca_osm_table *t = new_table();
	struct fake f = {.there = true, .behind = HCA_A};

	(void)state;
	put(&f, t, 1, HCA_A);
	assert_int_equal(vhca_osm_table_withdraw(t, GUID_1, 2, HCA_A, NULL), 0);
	f.there = false;
	put(&f, t, 3, HCA_A);
	f.there = f.physical = true;
	vhca_osm_own_ports_found(&(struct vhca_osm_subnet){&fake_ops, &f}, t);
	assert_int_equal(vhca_osm_table_withdraw(t, GUID_1, 3, HCA_A, NULL), 0);
	assert_false(vhca_osm_table_find(t, GUID_1)->own_port);
	(void)vhca_osm_table_free(t);
}

static void its_state_is_its_place(void **state)
{
	struct vhca_osm_table *t = new_table();
	struct fake f = {.there = true, .behind = HCA_A};
	struct vhca_osm_view v;

	(void)state;
	put(&f, t, 1, HCA_A);
	vhca_osm_view_get(&(struct vhca_osm_subnet){&fake_ops, &f}, vhca_osm_table_find(t, GUID_1),
			  &v);
	assert_int_equal(v.state, VHCA_OSM_GRANTED);
	assert_int_equal(v.lid, 7);
	assert_int_equal(v.n_findings, 1);
	assert_non_null(strstr(v.findings[0], "P_Key table of port 0x02c9ab0000000001: 0x8001."));
	f.key = KEY;
	f.behind = HCA_B;
	vhca_osm_view_get(&(struct vhca_osm_subnet){&fake_ops, &f}, vhca_osm_table_find(t, GUID_1),
			  &v);
	assert_int_equal(v.state, VHCA_OSM_ELSEWHERE);
	assert_int_equal(v.lid, 7);
	assert_int_equal(v.n_findings, 1);
	assert_non_null(strstr(v.findings[0], "no virtual port of the HCA with port "
					      "0x0002c90300000a01"));
	f.there = false;
	vhca_osm_view_get(&(struct vhca_osm_subnet){&fake_ops, &f}, vhca_osm_table_find(t, GUID_1),
			  &v);
	assert_int_equal(v.state, VHCA_OSM_PENDING);
	assert_int_equal(v.lid, 5);
	(void)vhca_osm_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_go_to_the_port_that_a_sweep_finds),
		cmocka_unit_test(keys_do_not_go_to_a_physical_port),
		cmocka_unit_test(keys_are_taken_back_from_a_physical_port),
		cmocka_unit_test(keys_wait_for_a_port_that_is_away),
		cmocka_unit_test(a_restart_knows_it),
		cmocka_unit_test(a_tombstone_knows_it),
		cmocka_unit_test(so_does_one_that_was_bound_in_vain),
		cmocka_unit_test(a_physical_port_was_never_a_guests),
		cmocka_unit_test(its_state_is_its_place),
	};

	return cmocka_run_group_tests_name("osm_own_ports", tests, NULL, NULL);
}
