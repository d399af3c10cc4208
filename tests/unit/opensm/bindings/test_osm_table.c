/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* opensm/table: epochs, tombstones, counted keys, limits. */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "opensm/bindings/table.h"
#include "tests/unit/unit.h"

#define PORT_A UINT64_C(0x0002c90300000a01)
#define PORT_B UINT64_C(0x0002c90300000b01)
#define GUID_1 UINT64_C(0x02c9ab0000000001)
#define GUID_2 UINT64_C(0x02c9ab0000000002)

static const struct vhca_osm_limits small = {
	.bindings = 3, .tombstones = 2, .never_bound = 2, .ports = 2};

static struct vhca_osm_table *new_table(bool both)
{
	struct vhca_osm_table *t = NULL;

	assert_int_equal(vhca_osm_table_new(&small, both, &t), 0);
	return t;
}

/* Reports one binding with up to two keys (0 = none); returns the error's code, "" for success. */
static const char *put(struct vhca_osm_table *t, uint64_t vguid, uint64_t epoch, uint64_t port,
		       const uint16_t pkeys[2])
{
	uint16_t copy[2] = {pkeys[0], pkeys[1]};
	struct vhca_osm_binding b = {.vguid = vguid,
				     .epoch = epoch,
				     .port_guid = port,
				     .gid_index = 1,
				     .lid = 5,
				     .n_pkeys = (uint16_t)((pkeys[0] != 0) + (pkeys[1] != 0)),
				     .pkeys = copy};
	static struct vhca_error err; /* outlives its code */

	return vhca_osm_table_put(t, &b, VHCA_OSM_PORT_PKEYS_MAX, &err) < 0 ? err.code : "";
}

#define PUT(t, vguid, epoch, port, k1, k2) put(t, vguid, epoch, port, (uint16_t[2]){k1, k2})

static const char *withdraw(struct vhca_osm_table *t, uint64_t vguid, uint64_t epoch)
{
	static struct vhca_error err; /* outlives its code */

	return vhca_osm_table_withdraw(t, vguid, epoch, 0, &err) < 0 ? err.code : "";
}

static bool needs(const struct vhca_osm_table *t, uint64_t port, uint16_t pkey)
{
	const struct vhca_osm_port *p = vhca_osm_table_port(t, port);

	for (size_t i = 0; p && i < p->n_needs; i++)
		if (p->needs[i].pkey == pkey)
			return true;
	return false;
}

static void a_report_is_stored(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	const struct vhca_osm_binding *b;

	(void)state;
	assert_string_equal(PUT(t, GUID_1, 7, PORT_A, 0x8002, 0x8001), "");
	b = vhca_osm_table_find(t, GUID_1);
	assert_non_null(b);
	assert_int_equal(b->epoch, 7);
	assert_int_equal(b->port_guid, PORT_A);
	assert_int_equal(b->gid_index, 1);
	assert_int_equal(b->lid, 5);
	assert_int_equal(b->n_pkeys, 2);
	assert_int_equal(b->pkeys[0], 0x8002); /* the guest's order */
	assert_true(needs(t, PORT_A, 0x8001));
	assert_true(needs(t, PORT_A, 0x8002));
	assert_int_equal(vhca_osm_table_bindings(t), 1);
	(void)vhca_osm_table_free(t);
}

static void the_same_report_again_changes_nothing(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	uint64_t revision;

	(void)state;
	assert_string_equal(PUT(t, GUID_1, 7, PORT_A, 0x8001, 0), "");
	revision = vhca_osm_table_revision(t);
	assert_string_equal(PUT(t, GUID_1, 7, PORT_A, 0x8001, 0), "");
	assert_int_equal(vhca_osm_table_revision(t), revision);
	assert_string_equal(withdraw(t, GUID_1, 7), "");
	assert_false(needs(t, PORT_A, 0x8001)); /* counted once, not twice */
	(void)vhca_osm_table_free(t);
}

static void a_key_stays_until_its_last_user_goes(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	uint64_t needs_revision;

	(void)state;
	assert_string_equal(PUT(t, GUID_1, 1, PORT_A, 0x8001, 0), "");
	needs_revision = vhca_osm_table_needs_revision(t);
	assert_string_equal(PUT(t, GUID_2, 1, PORT_A, 0x8001, 0), "");
	assert_string_equal(withdraw(t, GUID_1, 1), "");
	assert_true(needs(t, PORT_A, 0x8001));
	assert_int_equal(vhca_osm_table_needs_revision(t), needs_revision);
	assert_string_equal(withdraw(t, GUID_2, 1), "");
	assert_false(needs(t, PORT_A, 0x8001));
	assert_int_not_equal(vhca_osm_table_needs_revision(t), needs_revision);
	assert_int_equal(vhca_osm_table_ports(t), 0);
	(void)vhca_osm_table_free(t);
}

static void a_declaration_counts_beside_bindings(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	const uint16_t two[] = {0x8001, 0x8005}, one[] = {0x8005};

	(void)state;
	assert_int_equal(vhca_osm_table_declare(t, PORT_A, two, 2, 126, NULL), 0);
	assert_string_equal(PUT(t, GUID_1, 1, PORT_A, 0x8001, 0), "");
	assert_int_equal(vhca_osm_table_declare(t, PORT_A, one, 1, 126, NULL), 0);
	assert_true(needs(t, PORT_A, 0x8001)); /* the binding holds it */
	assert_string_equal(withdraw(t, GUID_1, 1), "");
	assert_false(needs(t, PORT_A, 0x8001));
	assert_true(needs(t, PORT_A, 0x8005));
	assert_int_equal(vhca_osm_table_declare(t, PORT_A, NULL, 0, 126, NULL), 0);
	assert_int_equal(vhca_osm_table_ports(t), 0);
	(void)vhca_osm_table_free(t);
}

static void a_higher_epoch_moves_binding_and_keys(void **state)
{
	struct vhca_osm_table *t = new_table(false);

	(void)state;
	assert_string_equal(PUT(t, GUID_1, 1, PORT_A, 0x8001, 0), "");
	assert_string_equal(PUT(t, GUID_1, 2, PORT_B, 0x8001, 0x8002), "");
	assert_null(vhca_osm_table_port(t, PORT_A));
	assert_true(needs(t, PORT_B, 0x8001));
	assert_true(needs(t, PORT_B, 0x8002));
	assert_int_equal(vhca_osm_table_bindings(t), 1);
	(void)vhca_osm_table_free(t);
}

static void lower_epochs_are_superseded(void **state)
{
	struct vhca_osm_table *t = new_table(false);

	(void)state;
	assert_string_equal(PUT(t, GUID_1, 5, PORT_B, 0x8001, 0), "");
	assert_string_equal(PUT(t, GUID_1, 4, PORT_A, 0x8002, 0), "superseded");
	assert_string_equal(withdraw(t, GUID_1, 4), "superseded");
	assert_int_equal(vhca_osm_table_find(t, GUID_1)->port_guid, PORT_B);
	assert_null(vhca_osm_table_port(t, PORT_A)); /* the refused report left nothing */
	(void)vhca_osm_table_free(t);
}

static void one_epoch_has_one_port(void **state)
{
	struct vhca_osm_table *t = new_table(false);

	(void)state;
	assert_string_equal(PUT(t, GUID_1, 5, PORT_A, 0x8001, 0), "");
	assert_string_equal(PUT(t, GUID_1, 5, PORT_B, 0x8001, 0), "epoch_tie");
	assert_string_equal(PUT(t, GUID_1, 5, PORT_A, 0x8003, 0),
			    ""); /* the owner may change its keys */
	assert_false(needs(t, PORT_A, 0x8001));
	assert_true(needs(t, PORT_A, 0x8003));
	(void)vhca_osm_table_free(t);
}

static void nobody_else_withdraws_at_the_owners_epoch(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	assert_string_equal(PUT(t, GUID_1, 5, PORT_A, 0x8001, 0), "");
	assert_true(vhca_osm_table_withdraw(t, GUID_1, 5, PORT_B, &err) < 0);
	assert_string_equal(err.code, "epoch_tie");
	assert_true(needs(t, PORT_A, 0x8001));
	assert_int_equal(vhca_osm_table_withdraw(t, GUID_1, 5, PORT_A, &err), 0);
	assert_false(needs(t, PORT_A, 0x8001));
	(void)vhca_osm_table_free(t);
}

static void a_withdrawn_epoch_is_remembered(void **state)
{
	struct vhca_osm_table *t = new_table(false);

	(void)state;
	assert_string_equal(PUT(t, GUID_1, 5, PORT_A, 0x8001, 0), "");
	assert_string_equal(withdraw(t, GUID_1, 6), "");
	assert_true(vhca_osm_table_find(t, GUID_1)->withdrawn);
	assert_int_equal(vhca_osm_table_bindings(t), 0);
	assert_string_equal(PUT(t, GUID_1, 5, PORT_A, 0x8001, 0), "superseded");
	assert_string_equal(PUT(t, GUID_1, 6, PORT_B, 0x8001, 0), "superseded");
	assert_string_equal(withdraw(t, GUID_1, 6), "");
	assert_string_equal(withdraw(t, GUID_1, 3), ""); /* a late repetition of a withdrawal */
	assert_int_equal(vhca_osm_table_find(t, GUID_1)->epoch, 6);
	assert_string_equal(PUT(t, GUID_1, 7, PORT_B, 0x8001, 0), "");
	(void)vhca_osm_table_free(t);
}

/* It succeeds, but ends nothing that the later owner has left. */
static void a_late_withdrawal_is_not_the_last_owners(void **state)
{
	struct vhca_osm_table *t = new_table(false);

	(void)state;
	assert_false(vhca_osm_table_has_other_owner(t, GUID_1, 5, PORT_A));
	assert_string_equal(PUT(t, GUID_1, 6, PORT_B, 0x8001, 0), "");
	assert_string_equal(withdraw(t, GUID_1, 6), "");
	assert_true(vhca_osm_table_has_other_owner(t, GUID_1, 5, PORT_A));
	assert_true(vhca_osm_table_has_other_owner(t, GUID_1, 5, PORT_B));
	assert_true(vhca_osm_table_has_other_owner(t, GUID_1, 6, PORT_A));
	assert_false(vhca_osm_table_has_other_owner(t, GUID_1, 6, PORT_B));
	assert_false(vhca_osm_table_has_other_owner(t, GUID_1, 6, 0)); /* says not who */
	assert_false(vhca_osm_table_has_other_owner(t, GUID_1, 7, PORT_A));
	(void)vhca_osm_table_free(t);
}

/* The report of a host's earlier life comes late, or once more. */
static void a_withdrawn_epoch_binds_nobody_again(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	struct vhca_osm_binding late = {.vguid = GUID_1, .epoch = 5, .port_guid = PORT_A};
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	assert_string_equal(PUT(t, GUID_1, 5, PORT_A, 0x8001, 0), "");
	assert_string_equal(PUT(t, GUID_1, 5, PORT_A, 0x8001, 0), ""); /* bound: nothing is over */
	assert_string_equal(withdraw(t, GUID_1, 5), "");
	assert_true(vhca_osm_table_put(t, &late, VHCA_OSM_PORT_PKEYS_MAX, &err) < 0);
	assert_string_equal(err.code, "superseded");
	assert_non_null(strstr(err.msg, "epoch 5 is no later than 5, withdrawn from"));
	assert_true(vhca_osm_table_check(t, &late, VHCA_OSM_PORT_PKEYS_MAX, &err) < 0);
	assert_true(vhca_osm_table_find(t, GUID_1)->withdrawn);
	assert_null(vhca_osm_table_port(t, PORT_A));
	assert_string_equal(PUT(t, GUID_1, 6, PORT_A, 0x8001, 0), "");
	(void)vhca_osm_table_free(t);
}

static void withdrawing_the_unknown_leaves_a_tombstone(void **state)
{
	struct vhca_osm_table *t = new_table(false);

	(void)state;
	assert_string_equal(withdraw(t, GUID_1, 9), "");
	assert_string_equal(PUT(t, GUID_1, 8, PORT_A, 0x8001, 0), "superseded");
	assert_string_equal(PUT(t, GUID_1, 9, PORT_A, 0x8001, 0), "superseded");
	assert_string_equal(PUT(t, GUID_1, 10, PORT_A, 0x8001, 0), "");
	(void)vhca_osm_table_free(t);
}

static void the_oldest_tombstone_goes_first(void **state)
{
	struct vhca_osm_table *t = new_table(false);

	(void)state;
	for (uint64_t g = 1; g <= 3; g++)
		assert_string_equal(withdraw(t, g, 4), "");
	assert_null(vhca_osm_table_find(t, 1));
	assert_non_null(vhca_osm_table_find(t, 2));
	assert_non_null(vhca_osm_table_find(t, 3));
	assert_int_equal(vhca_osm_table_next_tombstone(t, NULL)->vguid, 2);
	/* A tombstone that comes alive leaves the row. */
	assert_string_equal(PUT(t, 2, 5, PORT_A, 0, 0), "");
	assert_int_equal(vhca_osm_table_next_tombstone(t, NULL)->vguid, 3);
	(void)vhca_osm_table_free(t);
}

/* Whoever withdraws what was never bound makes nobody forget a former owner. */
static void what_was_never_bound_displaces_no_owner(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	const struct vhca_osm_binding *b;

	(void)state;
	assert_string_equal(PUT(t, GUID_1, 5, PORT_A, 0x8001, 0), "");
	assert_string_equal(withdraw(t, GUID_1, 5), "");
	for (uint64_t g = 100; g < 110; g++)
		assert_string_equal(withdraw(t, g, 4), "");
	assert_string_equal(PUT(t, GUID_1, 5, PORT_B, 0x8001, 0), "superseded");
	assert_int_equal(vhca_osm_table_records(t), 3);
	assert_int_equal(vhca_osm_table_bindings(t), 0);
	b = vhca_osm_table_next_tombstone(t, NULL);
	assert_int_equal(b->vguid, GUID_1);
	b = vhca_osm_table_next_tombstone(t, b);
	assert_int_equal(b->vguid, 108);
	b = vhca_osm_table_next_tombstone(t, b);
	assert_int_equal(b->vguid, 109);
	assert_null(vhca_osm_table_next_tombstone(t, b));
	/* One that is bound after all is like any other then. */
	assert_string_equal(PUT(t, 109, 5, PORT_A, 0, 0), "");
	assert_string_equal(withdraw(t, 109, 5), "");
	assert_false(vhca_osm_table_find(t, 109)->never_bound);
	(void)vhca_osm_table_free(t);
}

static void bury(struct vhca_osm_table *t, uint64_t vguid, uint64_t port)
{
	const struct vhca_osm_binding grave = {.vguid = vguid, .epoch = 1, .port_guid = port};

	assert_int_equal(vhca_osm_table_add_tombstone(t, &grave, NULL), 0);
}

/* Parked, or on its way: its owner need not have been heard for long. */
static void what_is_kept_for_its_owner_is_displaced_last(void **state)
{
	const struct vhca_osm_owner kept = {.kept = true};
	struct vhca_osm_table *t = new_table(false);

	(void)state;
	for (uint64_t g = 100; g < 110; g++) {
		assert_string_equal(PUT(t, g, 5, PORT_A, 0x8001, 0), "");
		assert_string_equal(withdraw(t, g, 5), "");
		if (g == 100 || g == 109)
			vhca_osm_table_set_owner(t, g, &kept);
	}
	assert_non_null(vhca_osm_table_find(t, 100));
	assert_null(vhca_osm_table_find(t, 101));
	for (uint64_t g = 110; g < 120; g++) { /* of those, too, the oldest go */
		assert_string_equal(PUT(t, g, 5, PORT_A, 0x8001, 0), "");
		assert_string_equal(withdraw(t, g, 5), "");
		vhca_osm_table_set_owner(t, g, &kept);
	}
	assert_null(vhca_osm_table_find(t, 100));
	assert_non_null(vhca_osm_table_find(t, 119));
	(void)vhca_osm_table_free(t);
}

/* Who withdraws again and again displaces what is his, once half of the room is taken. */
static void many_of_a_port_displace_its_own(void **state)
{
	const size_t many = VHCA_OSM_TOMBSTONES_AT_MAX, room = many * 2 + 8;
	const struct vhca_osm_limits limits = {.bindings = 3, .tombstones = room, .ports = 3};
	struct vhca_osm_table *t = NULL;

	(void)state;
	assert_int_equal(vhca_osm_table_new(&limits, false, &t), 0);
	bury(t, GUID_1, PORT_B);
	for (uint64_t i = 1; i <= room; i++) {
		bury(t, i, PORT_A);
		assert_int_equal(vhca_osm_table_records(t), 1 + (i < many + 3 ? i : many + 3));
	}
	assert_non_null(vhca_osm_table_find(t, GUID_1));
	assert_null(vhca_osm_table_find(t, 1));
	assert_non_null(vhca_osm_table_find(t, room));
	assert_string_equal(PUT(t, GUID_2, 1, PORT_A, 0, 0), "");
	assert_string_equal(withdraw(t, GUID_2, 1), "");
	assert_non_null(vhca_osm_table_find(t, GUID_1));
	/* Another port has its own room, and what is forgotten makes some. */
	for (uint64_t i = 1; i < many; i++)
		bury(t, GUID_2 + i, PORT_B);
	assert_non_null(vhca_osm_table_find(t, GUID_1));
	assert_int_equal(vhca_osm_table_forget(t, room, NULL), 0);
	assert_int_equal(vhca_osm_table_records(t), many * 2 + 2);
	(void)vhca_osm_table_free(t);
}

static void bindings_are_counted_by_port(void **state)
{
	struct vhca_osm_table *t = new_table(false);

	(void)state;
	assert_string_equal(PUT(t, GUID_1, 5, PORT_A, 0, 0), "");
	assert_string_equal(PUT(t, GUID_1, 6, PORT_A, 0x8001, 0), "");
	assert_string_equal(PUT(t, GUID_2, 5, PORT_A, 0, 0), "");
	assert_int_equal(vhca_osm_table_bindings_at(t, PORT_A), 2);
	assert_string_equal(PUT(t, GUID_2, 6, PORT_B, 0, 0), "");
	assert_string_equal(withdraw(t, GUID_1, 6), "");
	assert_string_equal(withdraw(t, GUID_1, 7), "");
	assert_int_equal(vhca_osm_table_bindings_at(t, PORT_A), 0);
	assert_int_equal(vhca_osm_table_bindings_at(t, PORT_B), 1);
	assert_string_equal(PUT(t, GUID_1, 8, PORT_B, 0, 0), "");
	assert_int_equal(vhca_osm_table_bindings_at(t, PORT_B), 2);
	(void)vhca_osm_table_free(t);
}

static void put_own_port(struct vhca_osm_table *t, uint64_t vguid, uint64_t epoch, uint64_t at)
{
	const struct vhca_osm_binding b = {
		.vguid = vguid, .epoch = epoch, .port_guid = at, .own_port = true};

	assert_int_equal(vhca_osm_table_put(t, &b, VHCA_OSM_PORT_PKEYS_MAX, NULL), 0);
}

static void ports_of_their_own_are_counted_by_port(void **state)
{
	struct vhca_osm_table *t = new_table(false);

	(void)state;
	assert_string_equal(PUT(t, GUID_2, 5, PORT_A, 0, 0), "");
	assert_int_equal(vhca_osm_table_own_ports_at(t, PORT_A), 0);
	put_own_port(t, GUID_1, 5, PORT_A);
	put_own_port(t, GUID_1, 6, PORT_A);
	assert_int_equal(vhca_osm_table_own_ports_at(t, PORT_A), 1);
	assert_string_equal(PUT(t, GUID_1, 7, PORT_B, 0, 0), "");
	assert_int_equal(vhca_osm_table_own_ports_at(t, PORT_A), 0);
	assert_int_equal(vhca_osm_table_own_ports_at(t, PORT_B), 0);
	put_own_port(t, GUID_1, 7, PORT_B);
	assert_int_equal(vhca_osm_table_own_ports_at(t, PORT_B), 1);
	assert_string_equal(withdraw(t, GUID_1, 8), "");
	assert_int_equal(vhca_osm_table_own_ports_at(t, PORT_B), 0);
	assert_true(vhca_osm_table_find(t, GUID_1)->own_port);
	assert_string_equal(withdraw(t, GUID_2, 8), "");
	assert_false(vhca_osm_table_find(t, GUID_2)->own_port);
	(void)vhca_osm_table_free(t);
}

static void what_is_forgotten_may_begin_anew(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	struct vhca_error err = VHCA_ERROR_INIT;
	uint64_t revision;

	(void)state;
	assert_true(vhca_osm_table_forget(t, GUID_1, &err) < 0);
	assert_string_equal(err.code, "unknown_binding");
	assert_string_equal(PUT(t, GUID_1, 5, PORT_A, 0x8001, 0), "");
	assert_true(vhca_osm_table_forget(t, GUID_1, &err) < 0);
	assert_string_equal(err.code, "still_bound");
	assert_non_null(strstr(err.hint, "epoch=5"));
	assert_string_equal(withdraw(t, GUID_1, 5), "");
	revision = vhca_osm_table_revision(t);
	assert_int_equal(vhca_osm_table_forget(t, GUID_1, &err), 0);
	assert_true(vhca_osm_table_revision(t) > revision); /* it is written */
	assert_null(vhca_osm_table_find(t, GUID_1));
	assert_null(vhca_osm_table_next_tombstone(t, NULL));
	assert_string_equal(PUT(t, GUID_1, 1, PORT_B, 0x8001, 0), "");
	(void)vhca_osm_table_free(t);
}

/* Whose it is is remembered with the record, and a change of that is one to be saved. */
static void an_owner_stays_with_the_record(void **state)
{
	const struct vhca_osm_owner shared = {.other_port = PORT_B}, kept = {.kept = true};
	struct vhca_osm_table *t = new_table(false);
	uint64_t revision;

	(void)state;
	vhca_osm_table_set_owner(t, GUID_1, &shared); /* nobody's */
	assert_int_equal(vhca_osm_table_revision(t), 0);
	assert_string_equal(PUT(t, GUID_1, 7, PORT_A, 0x8001, 0), "");
	revision = vhca_osm_table_revision(t);
	vhca_osm_table_set_owner(t, GUID_1, &shared);
	assert_int_equal(vhca_osm_table_revision(t), revision + 1);
	vhca_osm_table_set_owner(t, GUID_1, &shared);
	assert_int_equal(vhca_osm_table_revision(t), revision + 1);
	/* A report says it anew: here, that it has settled. */
	assert_string_equal(PUT(t, GUID_1, 7, PORT_A, 0x8001, 0), "");
	assert_int_equal(vhca_osm_table_find(t, GUID_1)->owner.other_port, 0);
	assert_int_equal(vhca_osm_table_revision(t), revision + 2);
	assert_string_equal(withdraw(t, GUID_1, 7), "");
	vhca_osm_table_set_owner(t, GUID_1, &kept);
	assert_true(vhca_osm_table_find(t, GUID_1)->owner.kept);
	assert_string_equal(PUT(t, GUID_1, 8, PORT_A, 0x8001, 0), "");
	assert_false(vhca_osm_table_find(t, GUID_1)->owner.kept);
	(void)vhca_osm_table_free(t);
}

static void both_memberships_need_the_option(void **state)
{
	struct vhca_osm_table *t = new_table(false);

	(void)state;
	assert_string_equal(PUT(t, GUID_1, 1, PORT_A, 0x8001, 0), "");
	assert_string_equal(PUT(t, GUID_2, 1, PORT_A, 0x0001, 0), "both_memberships");
	assert_string_equal(PUT(t, GUID_2, 1, PORT_A, 0x8004, 0x0004), "both_memberships");
	assert_false(needs(t, PORT_A, 0x8004)); /* all or nothing */
	assert_null(vhca_osm_table_find(t, GUID_2));
	assert_string_equal(PUT(t, GUID_2, 1, PORT_A, 0x7fff, 0xffff), "");
	assert_string_equal(PUT(t, GUID_1, 1, PORT_A, 0x0001, 0), ""); /* replaces, no conflict */
	(void)vhca_osm_table_free(t);

	t = new_table(true);
	assert_string_equal(PUT(t, GUID_1, 1, PORT_A, 0x8001, 0x0001), "");
	(void)vhca_osm_table_free(t);
}

static void limits_refuse_with_numbers(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	struct vhca_osm_binding b = {.vguid = 9, .epoch = 1, .port_guid = PORT_A};
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	for (uint64_t g = 1; g <= 3; g++)
		assert_string_equal(PUT(t, g, 1, PORT_A, 0x8001, 0), "");
	assert_true(vhca_osm_table_put(t, &b, 126, &err) < 0);
	assert_string_equal(err.code, "table_full");
	assert_int_equal(err.kind, VHCA_ERR_EXHAUSTED);
	assert_non_null(strstr(err.msg, "3 of 3 bindings"));
	assert_string_equal(PUT(t, 3, 2, PORT_B, 0x8001, 0), ""); /* no new row */
	assert_string_equal(withdraw(t, 3, 2), "");
	assert_string_equal(PUT(t, 4, 1, PORT_B, 0x8001, 0), "");
	assert_true(vhca_osm_table_declare(t, 0x77, (uint16_t[]){0x8001}, 1, 126, &err) < 0);
	assert_non_null(strstr(err.msg, "2 of 2 ports"));
	(void)vhca_osm_table_free(t);
}

static void a_port_holds_no_more_keys_than_its_table(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	uint16_t pkeys[VHCA_OSM_PORT_PKEYS_MAX + 1];
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	for (uint16_t i = 0; i < VHCA_ARRAY_SIZE(pkeys); i++)
		pkeys[i] = (uint16_t)(0x8001 + i);
	assert_true(vhca_osm_table_declare(t, PORT_A, pkeys, 31, 30, &err) < 0);
	assert_string_equal(err.code, "table_full");
	assert_non_null(strstr(err.msg, "31 keys"));
	assert_null(vhca_osm_table_port(t, PORT_A));
	assert_int_equal(vhca_osm_table_declare(t, PORT_A, pkeys, 126, 126, NULL), 0);
	assert_true(vhca_osm_table_declare(t, PORT_A, pkeys, 127, 127, &err) < 0);
	assert_string_equal(err.code, "table_full");
	assert_string_equal(PUT(t, GUID_1, 1, PORT_A, 0x9999, 0), "table_full");
	assert_string_equal(PUT(t, GUID_1, 1, PORT_A, 0x8001, 0), "");
	/* The port's table shrank: taking keys away is possible all the same. */
	assert_int_equal(vhca_osm_table_declare(t, PORT_A, pkeys, 100, 30, NULL), 0);
	(void)vhca_osm_table_free(t);
}

static void inherited_keys_stay_until_dropped(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	const uint16_t found[] = {0x8001, 0x8002, 0x0003};
	uint64_t revision;

	(void)state;
	assert_string_equal(PUT(t, GUID_1, 1, PORT_A, 0x8001, 0), "");
	assert_int_equal(vhca_osm_table_inherit(t, PORT_A, found, 3, NULL), 0);
	assert_int_equal(vhca_osm_table_inherited(t), 2);
	assert_true(needs(t, PORT_A, 0x8002));
	revision = vhca_osm_table_revision(t);
	assert_int_equal(vhca_osm_table_inherit(t, PORT_A, found, 3, NULL), 0);
	assert_int_equal(vhca_osm_table_revision(t), revision);
	/* A reason of its own outlives the inheritance; a report beats an inherited twin. */
	assert_string_equal(PUT(t, GUID_2, 1, PORT_A, 0x8002, 0x8003), "");
	assert_false(needs(t, PORT_A, 0x0003));
	assert_string_equal(withdraw(t, GUID_1, 1), "");
	assert_true(needs(t, PORT_A, 0x8001));
	vhca_osm_table_drop_inherited(t);
	assert_false(needs(t, PORT_A, 0x8001));
	assert_true(needs(t, PORT_A, 0x8002));
	assert_int_equal(vhca_osm_table_inherited(t), 0);
	assert_string_equal(withdraw(t, GUID_2, 1), "");
	assert_int_equal(vhca_osm_table_ports(t), 0);
	(void)vhca_osm_table_free(t);
}

/*
 * With what it has already, too, and with what nobody takes from it; but not with what it is about
 * to lose.
 */
static void a_place_has_room_for_all_keys_or_not(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	uint16_t pkeys[] = {0x8001, 0x8002, 0x8003};
	const uint16_t declared = 0x8009;
	struct vhca_osm_binding b = {
		.vguid = GUID_1, .epoch = 1, .port_guid = PORT_A, .pkeys = pkeys, .n_pkeys = 3};
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	assert_true(vhca_osm_table_check_place(t, &b, 2, &err) < 0);
	assert_string_equal(err.code, "table_full");
	assert_int_equal(vhca_osm_table_put(t, &b, 3, NULL), 0);
	assert_int_equal(vhca_osm_table_put(t, &b, 2, NULL), 0); /* it stays where it is */
	assert_true(vhca_osm_table_check_place(t, &b, 2, NULL) < 0);
	assert_int_equal(vhca_osm_table_check_place(t, &b, 3, NULL), 0);
	assert_int_equal(vhca_osm_table_declare(t, PORT_A, &declared, 1, 4, NULL), 0);
	assert_true(vhca_osm_table_check_place(t, &b, 3, NULL) < 0);
	b.n_pkeys = 2;
	assert_int_equal(vhca_osm_table_check_place(t, &b, 3, NULL), 0);
	b.epoch = 0; /* a former owner's */
	assert_true(vhca_osm_table_check_place(t, &b, 1, &err) < 0);
	assert_string_equal(err.code, "superseded");
	(void)vhca_osm_table_free(t);
}

/*
 * A vGUID's own port is nobody else's: what its report does not name was the one's who was there
 * before.
 */
static void a_report_explains_what_was_found_on_its_own_port(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	const uint16_t found[] = {0x8001, 0x8002};
	const uint16_t declared = 0x8003;
	uint16_t pkey = 0x8001;
	struct vhca_osm_binding b = {
		.vguid = GUID_1, .epoch = 1, .port_guid = PORT_A, .pkeys = &pkey, .n_pkeys = 1};

	(void)state;
	assert_int_equal(vhca_osm_table_declare(t, GUID_1, &declared, 1, 126, NULL), 0);
	for (int again = 0; again < 2; again++) { /* the second time its report is known */
		assert_int_equal(vhca_osm_table_inherit(t, GUID_1, found, 2, NULL), 0);
		assert_int_equal(vhca_osm_table_inherit(t, PORT_A, found, 2, NULL), 0);
		assert_true(needs(t, GUID_1, 0x8002));
		b.own_port = true;
		assert_int_equal(vhca_osm_table_put(t, &b, 126, NULL), 0);
		assert_true(needs(t, GUID_1, 0x8001) && needs(t, GUID_1, 0x8003));
		assert_false(needs(t, GUID_1, 0x8002));
		assert_true(needs(t, PORT_A, 0x8002)); /* guests of others may need it */
	}
	(void)vhca_osm_table_free(t);
}

/* Then all guests there need the port's keys. */
static void an_alias_explains_nothing(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	const uint16_t found = 0x8002;

	(void)state;
	assert_int_equal(vhca_osm_table_inherit(t, PORT_A, &found, 1, NULL), 0);
	assert_string_equal(PUT(t, GUID_1, 1, PORT_A, 0x8001, 0), "");
	assert_true(needs(t, PORT_A, 0x8002));
	(void)vhca_osm_table_free(t);
}

static void inheriting_leaves_out_what_has_no_room(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	uint16_t found[VHCA_OSM_PORT_PKEYS_MAX + 4];

	(void)state;
	for (uint16_t i = 0; i < VHCA_ARRAY_SIZE(found); i++)
		found[i] = (uint16_t)(0x8001 + i);
	assert_string_equal(PUT(t, GUID_1, 1, PORT_A, 0x0001, 0), "");
	assert_int_equal(vhca_osm_table_inherit(t, PORT_A, found, VHCA_ARRAY_SIZE(found), NULL), 0);
	assert_true(needs(t, PORT_A, 0x0001));
	assert_false(needs(t, PORT_A, 0x8001)); /* barred by its twin */
	assert_int_equal(vhca_osm_table_port(t, PORT_A)->n_needs, VHCA_OSM_PORT_PKEYS_MAX);
	vhca_osm_table_drop_inherited(t);
	assert_int_equal(vhca_osm_table_port(t, PORT_A)->n_needs, 1);
	(void)vhca_osm_table_free(t);
}

/* Random changes against a plain count of who needs what. */
#define MODEL_GUIDS 6
static void random_changes_match_a_count(void **state)
{
	static const struct vhca_osm_limits limits = {100, 100, 100, 100};
	static const uint64_t ports[] = {PORT_A, PORT_B, 0x55};
	struct {
		size_t port;
		uint16_t pkeys[2];
		bool bound;
	} model[MODEL_GUIDS] = {0};
	struct vhca_osm_table *t = NULL;
	unsigned int seed = 42;

	(void)state;
	assert_int_equal(vhca_osm_table_new(&limits, true, &t), 0);
	for (uint64_t epoch = 1; epoch < 3000; epoch++) {
		size_t g = (size_t)rand_r(&seed) % MODEL_GUIDS;

		model[g].bound = rand_r(&seed) % 3 != 0;
		if (model[g].bound) {
			model[g].port = (size_t)rand_r(&seed) % 3;
			model[g].pkeys[0] = (uint16_t)(0x8001 + rand_r(&seed) % 3);
			model[g].pkeys[1] = (uint16_t)(0x0001 + rand_r(&seed) % 3);
			assert_string_equal(
				put(t, g + 1, epoch, ports[model[g].port], model[g].pkeys), "");
		} else {
			assert_string_equal(withdraw(t, g + 1, epoch), "");
		}
		for (size_t p = 0; p < 3; p++)
			for (uint16_t k = 0; k < 3; k++) {
				bool full = false, limited = false;

				for (size_t i = 0; i < MODEL_GUIDS; i++) {
					bool here = model[i].bound && model[i].port == p;

					full |= here && model[i].pkeys[0] == 0x8001 + k;
					limited |= here && model[i].pkeys[1] == 0x0001 + k;
				}
				assert_int_equal(needs(t, ports[p], (uint16_t)(0x8001 + k)), full);
				assert_int_equal(needs(t, ports[p], (uint16_t)(0x0001 + k)),
						 limited);
			}
	}
	(void)vhca_osm_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_report_is_stored),
		cmocka_unit_test(the_same_report_again_changes_nothing),
		cmocka_unit_test(a_key_stays_until_its_last_user_goes),
		cmocka_unit_test(a_declaration_counts_beside_bindings),
		cmocka_unit_test(a_higher_epoch_moves_binding_and_keys),
		cmocka_unit_test(lower_epochs_are_superseded),
		cmocka_unit_test(one_epoch_has_one_port),
		cmocka_unit_test(nobody_else_withdraws_at_the_owners_epoch),
		cmocka_unit_test(a_withdrawn_epoch_is_remembered),
		cmocka_unit_test(a_late_withdrawal_is_not_the_last_owners),
		cmocka_unit_test(a_withdrawn_epoch_binds_nobody_again),
		cmocka_unit_test(withdrawing_the_unknown_leaves_a_tombstone),
		cmocka_unit_test(the_oldest_tombstone_goes_first),
		cmocka_unit_test(what_was_never_bound_displaces_no_owner),
		cmocka_unit_test(bindings_are_counted_by_port),
		cmocka_unit_test(ports_of_their_own_are_counted_by_port),
		cmocka_unit_test(what_is_kept_for_its_owner_is_displaced_last),
		cmocka_unit_test(many_of_a_port_displace_its_own),
		cmocka_unit_test(what_is_forgotten_may_begin_anew),
		cmocka_unit_test(an_owner_stays_with_the_record),
		cmocka_unit_test(both_memberships_need_the_option),
		cmocka_unit_test(limits_refuse_with_numbers),
		cmocka_unit_test(a_port_holds_no_more_keys_than_its_table),
		cmocka_unit_test(inherited_keys_stay_until_dropped),
		cmocka_unit_test(a_place_has_room_for_all_keys_or_not),
		cmocka_unit_test(a_report_explains_what_was_found_on_its_own_port),
		cmocka_unit_test(an_alias_explains_nothing),
		cmocka_unit_test(inheriting_leaves_out_what_has_no_room),
		cmocka_unit_test(random_changes_match_a_count),
	};

	return cmocka_run_group_tests_name("osm_table", tests, NULL, NULL);
}
