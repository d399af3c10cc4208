// SPDX-License-Identifier: LGPL-2.1-or-later
/* A claim whose domain never comes ends with its lease, and no other does. */
#include <stdio.h>
#include <string.h>

#include "agent/vf/work.h"
#include "common/base/file.h"
#include "tests/unit/agent/vf/engine_world.h"

#define GUID	  UINT64_C(0xfa163e0000123456)
#define LEASE_S	  1
#define LEASE_MS  (1000 * LEASE_S)
#define LONGER_MS (LEASE_MS + 300)

/* Of VF 1, for domain 0, which asks for none. */
static struct vhca_claim_request want(const struct world *w)
{
	return (struct vhca_claim_request){
		.origin = VHCA_ORIGIN_CLAIM,
		.domain_name = "vm0",
		.domain = w->domains[0].info.uuid,
		.vf = {.numa = -1, .name = "ib0", .fabric = "default", .partition = "0x8001"},
		.has_bdf = true,
		.bdf = w->vfs[1].bdf,
		.lease_s = LEASE_S,
	};
}

static struct vhca_claim_request want_port(const struct world *w)
{
	struct vhca_claim_request req = want(w);

	req.no_partition = true;
	req.vf.partition[0] = '\0';
	req.vf.guid = GUID;
	vhca_port_name(GUID, req.vf.name);
	return req;
}

static int begin(void **state)
{
	struct vhca_conf_hca *hca;
	struct world *w;

	(void)setup(state);
	w = *state;
	world_set_key(w, 1, 0x8001);
	world_start(w);
	settle_free(w);
	hca = &w->conf.hcas[0];
	hca->reserve[hca->n_reserve++] = w->vfs[1].bdf;
	(void)world_domain_start(w, 0, NULL);
	world_domain_stop(w, 0);
	w->domains[0].transient = true;
	world_settle(w);
	return 0;
}

static struct vhca_claim *the_claim(const struct world *w)
{
	return TAILQ_FIRST(&vhca_engine_model(w->engine)->claims);
}

static void claim(struct world *w)
{
	struct vhca_claim_request req = want(w);
	struct answer a = {0};

	vhca_engine_claim(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	assert_string_equal(a.code, "");
}

static void claim_port(struct world *w)
{
	struct vhca_claim_request req = want_port(w);
	struct answer a = {0};

	vhca_engine_claim_port(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	assert_string_equal(a.code, "");
}

static const char *renew(struct world *w, uint32_t lease_s)
{
	static struct answer a;

	a = (struct answer){0};
	vhca_engine_renew(w->engine, the_claim(w), lease_s, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	return a.code;
}

static bool counts(const struct world *w, const void *arg)
{
	(void)arg;
	return the_claim(w)->lease_until_ms != 0;
}

static bool has_passed(const struct world *w, const void *arg)
{
	(void)w;
	return vhca_now_ms() >= *(const uint64_t *)arg;
}

static void pass(struct world *w, uint64_t ms)
{
	uint64_t until = vhca_now_ms() + ms;

	assert_true(world_until(w, has_passed, &until));
}

/* It begins to count now, and ends the claim neither sooner than it should nor ever again. */
static void check_end(struct world *w)
{
	uint64_t begun = vhca_now_ms();

	assert_true(world_until(w, nothing_attached, NULL));
	assert_true(vhca_now_ms() - begun >= LEASE_MS - 50);
	assert_true(world_clean(w, 1));
	assert_true(world_told(w, "nobody has renewed it in 1 s"));
	world_check(w);
}

static void test_claim_of_a_domain_that_never_comes(void **state)
{
	claim(*state);
	assert_true(world_until(*state, counts, NULL));
	assert_true(the_claim(*state)->lease_ends_ms > vhca_wall_ms());
	check_end(*state);
}

static void test_port_of_a_domain_that_never_comes(void **state)
{
	claim_port(*state);
	assert_int_equal(the_claim(*state)->custody, VHCA_CUSTODY_RESERVED);
	check_end(*state);
}

static void test_without_a_lease_it_stays(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = want(w);
	struct answer a = {0};

	req.lease_s = 0;
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	world_look(w, 0);
	pass(w, LONGER_MS);
	assert_int_equal(engine_vf(w, 1)->state, VHCA_VF_PROGRAMMED);
}

/* Nova's instance that is stopped, or is migrated in while the copy takes hours. */
static void test_domain_that_is_defined_or_runs_keeps_it(void **state)
{
	struct world *w = *state;

	w->domains[0].transient = false;
	claim(w);
	pass(w, LONGER_MS);
	assert_int_equal(engine_vf(w, 1)->state, VHCA_VF_PROGRAMMED);
	(void)world_domain_start(w, 0, NULL);
	w->domains[0].transient = true;
	pass(w, LONGER_MS);
	assert_int_equal(engine_vf(w, 1)->state, VHCA_VF_PROGRAMMED);
	world_domain_stop(w, 0);
	check_end(w);
}

/* What libvirt tells when somebody undefines a domain that does not run. */
static void test_lease_begins_when_the_domain_goes(void **state)
{
	struct world *w = *state;

	w->domains[0].transient = false;
	claim_port(w);
	pass(w, LONGER_MS);
	w->domains[0].transient = true;
	world_look(w, 0);
	check_end(w);
}

/* Whose begin nobody has told: the list shows it, and its end begins the lease anew. */
static void test_domain_that_only_the_list_shows(void **state)
{
	struct world *w = *state;

	claim(w);
	assert_true(world_until(w, counts, NULL));
	w->domains[0].running = true;
	world_sync_domains(w);
	assert_int_equal(the_claim(w)->lease_until_ms, 0);
	pass(w, LONGER_MS);
	world_domain_stop(w, 0);
	check_end(w);
}

static void renew_again(struct world *w)
{
	assert_string_equal(renew(w, LEASE_S), "");
}

/* For longer than the lease, which does not end. */
static void keep_up(struct world *w, void (*again)(struct world *w))
{
	for (unsigned int i = 0; i < 6; i++) {
		pass(w, LEASE_MS / 4);
		again(w);
	}
}

static void test_whoever_renews_it_keeps_it(void **state)
{
	struct world *w = *state;

	claim(w);
	keep_up(w, renew_again);
	assert_int_equal(engine_vf(w, 1)->state, VHCA_VF_PROGRAMMED);
	assert_string_equal(renew(w, 3600), "");
	pass(w, LONGER_MS);
	world_kill(w);
	world_start(w);
	world_settle(w);
	assert_int_equal(the_claim(w)->lease_s, 3600);
	assert_string_equal(renew(w, LEASE_S), "");
	check_end(w);
}

static void test_port_that_is_claimed_again_keeps_it(void **state)
{
	struct world *w = *state;

	claim_port(w);
	keep_up(w, claim_port);
	check_end(w);
}

static void test_what_has_no_lease_is_not_renewed(void **state)
{
	struct world *w = *state;

	(void)world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	assert_string_equal(renew(w, LEASE_S), "no_lease");
	world_domain_stop(w, 0);
	assert_true(world_until(w, nothing_attached, NULL));
	claim(w);
	vhca_engine_drop(w->engine, the_claim(w));
	assert_string_equal(renew(w, LEASE_S), "released");
}

/* Nobody says that the domain is not here. */
static void test_libvirt_is_away(void **state)
{
	struct world *w = *state;

	claim(w);
	assert_true(world_until(w, counts, NULL));
	w->virt_down = true;
	vhca_engine_virt_lost(w->engine);
	pass(w, LONGER_MS);
	assert_int_equal(engine_vf(w, 1)->state, VHCA_VF_PROGRAMMED);
	w->virt_down = false;
	world_sync_domains(w);
	check_end(w);
}

/* QEMU by hand, say: its guest is none of libvirt's, so nobody but who renews the lease speaks for
 * it. Its VF is scrubbed as soon as it lets go. */
static void test_guest_that_libvirt_does_not_know(void **state)
{
	struct world *w = *state;

	claim(w);
	w->vfs[1].group_open = true;
	keep_up(w, renew_again);
	assert_int_equal(the_claim(w)->end, VHCA_END_NONE);
	pass(w, LONGER_MS);
	assert_int_equal(the_claim(w)->end, VHCA_END_ASKED);
	assert_false(world_clean(w, 1));
	assert_string_equal(renew(w, LEASE_S), "released");
	w->vfs[1].group_open = false;
	assert_true(world_until(w, nothing_attached, NULL));
	assert_true(world_clean(w, 1));
}

/* libvirt has answered before, and the answer is late. */
static void test_domain_begins_at_the_end(void **state)
{
	struct world *w = *state;
	struct vhca_hook_request hook = {.op = "prepare", .has_uuid = true, .n_hostdevs = 1};
	struct vhca_error err;

	claim_port(w);
	assert_true(world_until(w, counts, NULL));
	hook.uuid = w->domains[0].info.uuid;
	hook.hostdevs[0] = w->vfs[1].bdf;
	the_claim(w)->lease_until_ms = vhca_now_ms();
	(void)vhca_engine_hook(w->engine, &hook, &err);
	vhca_engine_no_domain(w->engine, &hook.uuid);
	assert_int_equal(the_claim(w)->end, VHCA_END_NONE);
	assert_int_equal(the_claim(w)->failure.kind, VHCA_ERR_NONE);
}

/* Its VF is scrubbed soon, however long the journal takes to say so: nobody begins with that. */
static void test_domain_begins_after_the_end(void **state)
{
	struct world *w = *state;
	struct vhca_hook_request hook = {.op = "prepare", .has_uuid = true, .n_hostdevs = 1};
	struct vhca_error err = VHCA_ERROR_INIT;

	claim(w);
	assert_true(world_until(w, counts, NULL));
	hook.uuid = w->domains[0].info.uuid;
	hook.hostdevs[0] = w->vfs[1].bdf;
	assert_int_equal(vhca_engine_hook(w->engine, &hook, &err), 0);
	vhca_engine_no_domain(w->engine, &hook.uuid);
	the_claim(w)->lease_until_ms = vhca_now_ms();
	vhca_engine_no_domain(w->engine, &hook.uuid);
	assert_int_equal(the_claim(w)->end, VHCA_END_ASKED);
	assert_int_equal(engine_vf(w, 1)->state, VHCA_VF_PROGRAMMED);
	assert_true(vhca_engine_hook(w->engine, &hook, &err) < 0);
	assert_string_equal(err.code, "not_claimed");
	assert_true(world_until(w, nothing_attached, NULL));
}

/* Killed after any number of rounds, also with its end under way; then the host boots anew. */
static void test_lease_outlives_kills_and_reboots(void **state)
{
	struct world *w = *state;

	for (unsigned int rounds = 0; rounds < 8; rounds++) {
		claim(w);
		assert_true(world_until(w, counts, NULL));
		the_claim(w)->lease_until_ms = vhca_now_ms();
		world_look(w, 0);
		kill_after(w, rounds);
		assert_true(world_until(w, nothing_attached, NULL));
		world_check(w);
	}
	claim(w);
	world_kill(w);
	world_reboot(w);
	world_start(w);
	check_end(w);
}

#define LEASE_TEST(f) cmocka_unit_test_setup_teardown(f, begin, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LEASE_TEST(test_claim_of_a_domain_that_never_comes),
		LEASE_TEST(test_port_of_a_domain_that_never_comes),
		LEASE_TEST(test_without_a_lease_it_stays),
		LEASE_TEST(test_domain_that_is_defined_or_runs_keeps_it),
		LEASE_TEST(test_lease_begins_when_the_domain_goes),
		LEASE_TEST(test_domain_that_only_the_list_shows),
		LEASE_TEST(test_whoever_renews_it_keeps_it),
		LEASE_TEST(test_port_that_is_claimed_again_keeps_it),
		LEASE_TEST(test_what_has_no_lease_is_not_renewed),
		LEASE_TEST(test_libvirt_is_away),
		LEASE_TEST(test_guest_that_libvirt_does_not_know),
		LEASE_TEST(test_domain_begins_at_the_end),
		LEASE_TEST(test_domain_begins_after_the_end),
		LEASE_TEST(test_lease_outlives_kills_and_reboots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
