// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a guest's memory means for its VFs, on the production engine: which guest gets none, and how
 * long is waited for a big one.
 */
#include <string.h>

#include "common/base/file.h"
#include "tests/unit/agent/vf/engine_world.h"

#define GIB (UINT64_C(1024) * 1024)

static void set_memory(struct world *w, uint64_t kib, uint64_t hard_limit_kib)
{
	w->domains[0].info.memory =
		(struct vhca_guest_memory){.kib = kib, .hard_limit_kib = hard_limit_kib};
	world_look(w, 0);
}

static const struct vhca_domain *domain(const struct world *w)
{
	return TAILQ_FIRST(&vhca_engine_model(w->engine)->domains);
}

static bool is_refused(const struct world *w, const void *arg)
{
	(void)arg;
	return domain(w) && domain(w)->requests[0].problem.kind == VHCA_ERR_CONFLICT;
}

static void test_limit_below_the_memory_is_a_reason(void **state)
{
	struct world *w = *state;

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	(void)world_domain_start(w, 0, "0x8001");
	set_memory(w, 16 * GIB, 8 * GIB);
	assert_true(world_until(w, is_refused, NULL));
	assert_string_equal(domain(w)->requests[0].problem.code, "hard_limit");
	assert_null(first_claim(w));
	world_domain_stop(w, 0);
	assert_true(world_until(w, nothing_attached, NULL));
	(void)world_domain_start(w, 0, "0x8001");
	set_memory(w, 16 * GIB, 17 * GIB);
	assert_true(world_until(w, served, &zero));
}

static struct vhca_claim_request request(const struct world *w)
{
	struct vhca_claim_request req = {.domain = w->domains[0].info.uuid,
					 .origin = VHCA_ORIGIN_ATTACH,
					 .vf = {.numa = -1}};

	(void)snprintf(req.domain_name, sizeof(req.domain_name), "vm0");
	(void)snprintf(req.vf.name, sizeof(req.vf.name), "x1"); /* of no request in the metadata */
	(void)snprintf(req.vf.partition, sizeof(req.vf.partition), "0x8001");
	(void)snprintf(req.vf.fabric, sizeof(req.vf.fabric), "default");
	(void)snprintf(req.vf.partition, sizeof(req.vf.partition), "0x8001");
	return req;
}

/* libvirt has no event for a limit: whoever asks a second time must not be told of the old one. */
static void test_raised_limit_is_seen_without_an_event(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;
	struct answer a = {0};

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	(void)world_domain_start(w, 0, NULL);
	set_memory(w, 16 * GIB, 8 * GIB);
	req = request(w);
	w->domains[0].info.memory.hard_limit_kib = 0; /* virsh memtune: nobody hears of it */
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	assert_string_equal(a.code, "hard_limit");
	world_settle(w);
	a = (struct answer){0};
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
}

/* What is pinned already needs no limit. */
static void test_second_vf_pins_nothing(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;
	struct answer a = {0};

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	(void)world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	set_memory(w, 16 * GIB, 8 * GIB);
	req = request(w);
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
}

static bool claim_is_in(const struct world *w, const void *arg)
{
	const struct vhca_claim *c = first_claim(w);

	return c && c->vf->state == *(const enum vhca_vf_state *)arg && !c->vf->committing;
}

static uint64_t deadline_in(struct world *w, enum vhca_vf_state state)
{
	uint64_t now = vhca_now_ms();

	assert_true(world_until(w, claim_is_in, &state));
	assert_true(first_claim(w)->vf->deadline_ms > now);
	return first_claim(w)->vf->deadline_ms - now;
}

static void ignore(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	(void)arg;
	(void)claim;
	(void)err;
}

static void release(struct world *w)
{
	struct vhca_claim *c = TAILQ_FIRST(&vhca_engine_model(w->engine)->claims);

	vhca_engine_release(w->engine, c, false, ignore, NULL);
}

/* The guest may let go at once, but QEMU unpins before it says so. */
static void test_a_big_guest_may_take_longer_to_let_go(void **state)
{
	struct world *w = *state;

	w->deaf_guest = true;
	world_start(w);
	(void)world_domain_start(w, 0, "0x8001");
	set_memory(w, 100 * GIB, 0);
	assert_true(world_until(w, served, &zero));
	release(w);
	assert_true(deadline_in(w, VHCA_VF_DETACHING) >= w->conf.detach_timeout_ms + 100000);
	w->deaf_guest = false;
	assert_true(world_until(w, all_free, NULL));
}

static bool one_hangs(const struct world *w, const void *arg)
{
	(void)arg;
	return w->hung;
}

/* libvirt says that the domain has gone; the kernel is at its memory, and the vfio group open. */
static void test_a_big_guest_may_take_longer_to_close_its_group(void **state)
{
	struct world *w = *state;

	world_start(w);
	(void)world_domain_start(w, 0, "0x8001");
	set_memory(w, 100 * GIB, 0);
	assert_true(world_until(w, served, &zero));
	w->fault = WORLD_HANG;
	w->fault_effect = VHCA_EFFECT_SCRUB;
	w->fault_at = w->effects + 1;
	world_domain_stop(w, 0);
	assert_true(deadline_in(w, VHCA_VF_SCRUBBING) >= 100000);
	assert_null(domain(w)); /* its memory is remembered */
	assert_true(world_until(w, one_hangs, NULL));
	world_release(w);
	assert_true(world_until(w, all_free, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_limit_below_the_memory_is_a_reason),
		TEST(test_raised_limit_is_seen_without_an_event),
		TEST(test_second_vf_pins_nothing),
		TEST(test_a_big_guest_may_take_longer_to_let_go),
		TEST(test_a_big_guest_may_take_longer_to_close_its_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
