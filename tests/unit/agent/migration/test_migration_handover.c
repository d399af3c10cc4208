// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The hand-over of a managed migration, which goes on beside libvirt's copy, when it is slower than
 * that.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/file.h"
#include "tests/unit/agent/migration/migration_pair.h"

#define NOT_YET "no answer"

static bool copying(const struct pair *p, const void *arg)
{
	(void)arg;
	return p->copying;
}

/* The guest runs there, and nowhere else. */
static bool has_arrived(const struct pair *p, const void *arg)
{
	(void)arg;
	return p->w[1].domains[0].running && !p->w[1].domains[0].incoming &&
	       !p->w[0].domains[0].running;
}

static void assert_waits_with_its_guest(struct pair *p)
{
	pair_settle(p);
	assert_int_equal(pair_state(p, 1), VHCA_MIG_RESERVED);
	assert_true(vhca_claim_is_withheld(claim_on(p, 1)));
	for (unsigned int v = 0; v < WORLD_VFS; v++)
		assert_true(world_clean(&p->w[0], v) && world_clean(&p->w[1], v));
}

static struct vhca_uuid arrive_without_hand_over(struct pair *p)
{
	struct vhca_uuid id;

	p->cut_handover = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, has_arrived, NULL));
	assert_waits_with_its_guest(p);
	return id;
}

static void test_guest_is_faster(void **state)
{
	struct pair *p = *state;

	(void)arrive_without_hand_over(p);
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FINISHING);
	p->cut_handover = false;
	assert_true(pair_until(p, at_home, &one));
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_DONE);
	assert_int_equal(pair_state(p, 1), VHCA_MIG_DONE);
}

/* Longer than any lease: the guest is there. */
static void test_either_agent_dies_meanwhile(void **state)
{
	struct pair *p = *state;

	(void)arrive_without_hand_over(p);
	p->w[1].conf.lease_ms = 100;
	for (unsigned int h = 0; h < 2; h++) {
		pair_silence(p, h);
		pair_settle(p);
		pair_revive(p, h);
		pair_settle(p);
		pair_settle(p);
		assert_waits_with_its_guest(p);
	}
	p->cut_handover = false;
	assert_true(pair_until(p, at_home, &one));
}

/*
 * The source's host is gone for good: what it promised is taken after a while. It comes back all
 * the same, and has nothing any more.
 */
static void test_source_dies_before_it_hands_over(void **state)
{
	struct pair *p = *state;
	uint64_t epoch;

	p->alone_ms = 150;
	pair_silence(p, 1);
	pair_revive(p, 1);
	(void)arrive_without_hand_over(p);
	epoch = claim_on(p, 1)->epoch;
	pair_silence(p, 0);
	assert_true(pair_until(p, has_ended, &one));
	assert_int_equal(pair_state(p, 1), VHCA_MIG_DONE);
	assert_int_equal(claim_on(p, 1)->epoch, epoch + 1);
	p->cut_handover = false;
	pair_revive(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_DONE);
	assert_true(pair_until(p, at_home, &one));
}

static bool is_given_up(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_ENDED;
}

static bool is_reserved(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_RESERVED;
}

static bool is_prepared(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_INCOMING;
}

static bool is_served(const struct pair *p, const void *arg)
{
	(void)arg;
	return world_vf_of(&p->w[1], 0, "ib0") >= 0;
}

/*
 * The source is dead, and somebody starts the guest where it was to go: it waits for no hand-over,
 * its metadata asks for its VF.
 */
static void test_guest_is_started_at_its_destination(void **state)
{
	struct pair *p = *state;

	(void)pair_request(p, 0, VHCA_MIG_MODE_EXTERNAL);
	assert_true(pair_until(p, is_reserved, NULL));
	pair_silence(p, 0);
	world_reboot(&p->w[0]);
	p->w[1].domains[0].info = p->w[0].domains[0].info;
	p->w[1].domains[0].info.has_away = false;
	world_incoming(&p->w[1], 0, false);
	assert_true(pair_until(p, is_given_up, NULL));
	assert_true(pair_until(p, is_served, NULL));
}

/* Killed while it waits, it waits anew, and then goes on. */
static void test_destination_dies_while_it_waits_alone(void **state)
{
	struct pair *p = *state;

	p->alone_ms = 150;
	(void)arrive_without_hand_over(p);
	pair_silence(p, 0);
	pair_silence(p, 1);
	pair_revive(p, 1);
	assert_int_equal(pair_state(p, 1), VHCA_MIG_RESERVED);
	assert_true(pair_until(p, has_ended, &one));
	assert_int_equal(pair_state(p, 1), VHCA_MIG_DONE);
}

static void keep_code(void *arg, const struct vhca_mig *m, const struct vhca_error *err)
{
	(void)m;
	(void)snprintf(arg, VHCA_ERROR_CODE_MAX, "%s", err ? err->code : "none");
}

static bool is_answered(const struct pair *p, const void *arg)
{
	(void)p;
	return strcmp(arg, NOT_YET) != 0;
}

static const char *end_at_destination(struct pair *p, const struct vhca_uuid *id)
{
	static char code[VHCA_ERROR_CODE_MAX];

	(void)snprintf(code, sizeof(code), NOT_YET);
	vhca_migrations_end(p->ms[1], id, keep_code, code);
	assert_true(pair_until(p, is_answered, code));
	return code;
}

static void test_arrived_guest_is_not_called_back(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = arrive_without_hand_over(p);

	assert_string_equal(end_at_destination(p, &id), "too_late");
	assert_waits_with_its_guest(p);
	p->cut_handover = false;
	assert_true(pair_until(p, at_home, &one));
}

/* The copy goes on, the destination has given up: the guest stays, and has its VF back. */
static void test_refused_hand_over_stops_the_copy(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id;

	p->cut_handover = p->copy_hangs = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, copying, NULL));
	assert_string_equal(end_at_destination(p, &id), "none");
	assert_true(p->copying);
	p->cut_handover = false;
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_true(pair_until(p, at_home, &zero));
}

static int begin(struct pair *p, const struct vhca_uuid *id, struct vhca_error *err)
{
	return vhca_migrations_begin(p->ms[1], id, &p->w[0].domains[0].info.uuid, err);
}

static bool hands_over(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_HANDING_OVER;
}

/* An orchestrator that does not wait for "ready" is not let in. */
static void test_orchestrator_has_to_wait(void **state)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct pair *p = *state;
	struct vhca_uuid id;

	p->cut_handover = true;
	id = pair_request(p, 0, VHCA_MIG_MODE_EXTERNAL);
	assert_true(pair_until(p, hands_over, NULL));
	assert_int_equal(pair_state(p, 1), VHCA_MIG_RESERVED);
	assert_true(begin(p, &id, &err) < 0);
	assert_string_equal(err.code, "not_prepared");
}

/* The destination was restarted since, and the hook asks before that has come to mind. */
static void test_nothing_is_prepared_after_a_reboot(void **state)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct pair *p = *state;
	struct vhca_uuid id = pair_request(p, 0, VHCA_MIG_MODE_EXTERNAL);

	assert_true(pair_until(p, is_prepared, NULL));
	world_reboot(&p->w[1]);
	pair_revive(p, 1);
	assert_int_equal(pair_state(p, 1), VHCA_MIG_INCOMING);
	assert_true(begin(p, &id, &err) < 0);
	assert_string_equal(err.code, "not_prepared");
}

/* A copy of the guest's XML under another UUID has its marker, too. */
static void test_marker_of_another_domain_pins_nothing(void **state)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct pair *p = *state;
	struct vhca_uuid id = pair_request(p, 0, VHCA_MIG_MODE_EXTERNAL), other;

	assert_true(pair_until(p, is_prepared, NULL));
	other = p->w[0].domains[0].info.uuid;
	other.b[15] ^= 1;
	assert_true(vhca_migrations_begin(p->ms[1], &id, &other, &err) < 0);
	assert_string_equal(err.code, "not_prepared");
	assert_false(vhca_migration_begun(vhca_migrations_find(p->ms[1], &id)));
	assert_int_equal(begin(p, &id, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_guest_is_faster),
		TEST(test_either_agent_dies_meanwhile),
		TEST(test_source_dies_before_it_hands_over),
		TEST(test_guest_is_started_at_its_destination),
		TEST(test_destination_dies_while_it_waits_alone),
		TEST(test_arrived_guest_is_not_called_back),
		TEST(test_refused_hand_over_stops_the_copy),
		TEST(test_orchestrator_has_to_wait),
		TEST(test_nothing_is_prepared_after_a_reboot),
		TEST(test_marker_of_another_domain_pins_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
