// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Guests with much memory on the move, on the production machines of two agents
 * (tests/sim/hosts/pair.h).
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/file.h"
#include "tests/unit/agent/migration/migration_pair.h"

#define GIB (UINT64_C(1024) * 1024)

static void set_memory(struct pair *p, uint64_t kib, uint64_t hard_limit_kib)
{
	p->w[0].domains[0].info.memory =
		(struct vhca_guest_memory){.kib = kib, .hard_limit_kib = hard_limit_kib};
	world_look(&p->w[0], 0);
}

static bool copying(const struct pair *p, const void *arg)
{
	(void)arg;
	return p->copying && pair_state(p, 0) == VHCA_MIG_COPYING;
}

static void keep_code(void *arg, const struct vhca_mig *m, const struct vhca_error *err)
{
	(void)m;
	(void)snprintf(arg, VHCA_ERROR_CODE_MAX, "%s", err ? err->code : "none");
}

/* A guest "vm9" that nobody knows yet, with one VF. */
static struct vhca_mig_offer *offer(const struct vhca_guest_memory *memory)
{
	struct vhca_mig_offer *o = calloc(1, sizeof(*o));
	struct vhca_reservation *r;

	assert_non_null(o);
	assert_int_equal(vhca_uuid_random(&o->id), 0);
	assert_int_equal(vhca_uuid_random(&o->domain), 0);
	(void)snprintf(o->domain_name, sizeof(o->domain_name), "vm9");
	(void)snprintf(o->node, sizeof(o->node), "host9");
	o->memory = *memory;
	r = &o->vfs[o->n_vfs++];
	r->req = (struct vhca_claim_request){.domain = o->domain, .vf = {.numa = -1}};
	(void)snprintf(r->req.vf.name, sizeof(r->req.vf.name), "ib0");
	(void)snprintf(r->req.vf.fabric, sizeof(r->req.vf.fabric), "default");
	r->identity = (struct vhca_identity){
		.guid = UINT64_C(0x02c9ab0000000777), .n_pkeys = 1, .pkeys = {0x8001}};
	r->epoch = 1;
	r->migration = o->id;
	return o;
}

static void test_limit_is_refused_before_anything_is_touched(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_mig *m = NULL;

	set_memory(p, 16 * GIB, 8 * GIB);
	assert_true(vhca_migrations_start(p->ms[0], &p->w[0].domains[0].info.uuid, "other", &m,
					  &err) < 0);
	assert_string_equal(err.code, "hard_limit");
	assert_false(claim_on(p, 0)->migrating);
	set_memory(p, 16 * GIB, 0);
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, &one));
}

/* The VF has to come out, and back in here later: that is for who parks to know. */
static void test_parking_pins_nothing(void **state)
{
	struct pair *p = *state;

	set_memory(p, 16 * GIB, 8 * GIB);
	(void)pair_request(p, 0, VHCA_MIG_MODE_PARK);
	set_memory(p, 16 * GIB, 0);
}

static void test_limit_is_refused_at_the_destination(void **state)
{
	const struct vhca_guest_memory low = {.kib = 16 * GIB, .hard_limit_kib = 8 * GIB};
	struct vhca_mig_offer *o = offer(&low);
	static char code
		[VHCA_ERROR_CODE_MAX]; /* outlives a failure, which ends the pair after the test */
	struct pair *p = *state;

	vhca_migrations_offer(p->ms[1], o, keep_code, code);
	pair_settle(p);
	assert_string_equal(code, "hard_limit");
	assert_null(vhca_migrations_find(p->ms[1], &o->id));
	assert_null(claim_on(p, 1));
	free(o);
}

static bool nobody_comes(const struct pair *p, const void *memory)
{
	return !vhca_migrations_memory_coming(p->ms[1], memory);
}

/* Else two guests would be promised the same memory. */
static void test_memory_of_those_to_come_is_counted(void **state)
{
	const struct vhca_guest_memory memory = {.kib = 16 * GIB};
	const struct vhca_guest_memory huge = {.kib = 1, .pages = VHCA_PAGES_HUGE};
	struct vhca_mig_offer *o = offer(&memory);
	static char code
		[VHCA_ERROR_CODE_MAX]; /* outlives a failure, which ends the pair after the test */
	struct pair *p = *state;

	p->w[1].conf.lease_ms = 300;
	assert_true(nobody_comes(p, &memory));
	vhca_migrations_offer(p->ms[1], o, keep_code, code);
	assert_int_equal(vhca_migrations_memory_coming(p->ms[1], &memory), 16 * GIB);
	assert_int_equal(vhca_migrations_memory_coming(p->ms[1], &huge), 0);
	assert_true(pair_until(p, nobody_comes, &memory)); /* the lease is over */
	free(o);
}

/* What libvirt has begun to bring has taken its memory, or is about to. */
static void test_memory_that_is_being_filled_is_not_counted_twice(void **state)
{
	const struct vhca_guest_memory memory = {.kib = 16 * GIB};
	struct pair *p = *state;

	set_memory(p, 16 * GIB, 0);
	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, copying, NULL));
	assert_true(nobody_comes(p, &memory));
	p->copy_hangs = false;
	assert_true(pair_until(p, at_home, &one));
}

/* QEMU clears its huge pages before libvirt shows the domain. */
static void test_a_big_guest_may_take_longer_to_appear(void **state)
{
	uint64_t now = vhca_now_ms();
	const struct vhca_mig *m;
	struct pair *p = *state;
	struct vhca_uuid id;

	set_memory(p, 100 * GIB, 0);
	p->copy_begins = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, copying, NULL));
	m = vhca_migrations_find(p->ms[1], &id);
	assert_true(m->lease_until >= now + 100000);
	p->copy_begins = false;
	assert_true(pair_until(p, at_home, &one));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_limit_is_refused_before_anything_is_touched),
		TEST(test_parking_pins_nothing),
		TEST(test_limit_is_refused_at_the_destination),
		TEST(test_memory_of_those_to_come_is_counted),
		TEST(test_memory_that_is_being_filled_is_not_counted_twice),
		TEST(test_a_big_guest_may_take_longer_to_appear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
