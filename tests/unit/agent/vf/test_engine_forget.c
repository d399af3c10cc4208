// SPDX-License-Identifier: LGPL-2.1-or-later
/* Adapters that were pulled out, and are forgotten by request. */
#include <string.h>

#include "tests/unit/agent/vf/engine_world.h"

static struct vhca_hca *the_hca(const struct world *w)
{
	return TAILQ_FIRST(&vhca_engine_model(w->engine)->hcas);
}

static void pull_out(struct world *w)
{
	const struct vhca_inventory nothing = {0};

	vhca_engine_inventory(w->engine, &nothing);
	world_settle(w);
}

static struct answer forget(struct world *w)
{
	struct answer a = {0};

	vhca_engine_forget(w->engine, the_hca(w), on_answer, &a);
	assert_true(world_until(w, answered, &a));
	return a;
}

static void test_adapter_that_was_pulled_out(void **state)
{
	struct world *w = *state;

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	pull_out(w);
	assert_true(forget(w).ok);
	assert_null(the_hca(w));
	assert_true(world_told(w, "forgotten by request"));
	world_show_hardware(w); /* it is back, and a new one */
	assert_true(world_until(w, all_free, NULL));
}

static bool is_ghost(const struct world *w, const void *arg)
{
	const struct vhca_vf *vf = engine_vf(w, *(const unsigned int *)arg);

	return vf->state == VHCA_VF_QUARANTINED && !vf->claim && !vf->committing;
}

static void test_quarantined_vf_is_gone_for_good(void **state)
{
	struct world *w = *state;
	unsigned int v;

	w->absent_ms = 20;
	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	v = (unsigned int)world_vf_of(w, 0, "ib0");
	w->vfs[v].gone = w->vfs[v].lost = true;
	world_show_hardware(w);
	world_domain_stop(w, 0);
	world_sync_domains(w);
	assert_true(world_until(w, is_ghost, &v));
	pull_out(w);
	assert_true(forget(w).ok);
	world_kill(w);
	world_start(w);
	assert_null(engine_vf(w, v));
}

static void test_refused_while_it_is_there(void **state)
{
	struct world *w = *state;

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	assert_string_equal(forget(w).code, "hca_present");
	assert_int_equal(count(w, VHCA_VF_FREE), WORLD_VFS);
}

/* modprobe -r is no way to pull an adapter out. */
static void test_refused_while_it_only_lacks_its_driver(void **state)
{
	struct world *w = *state;
	struct answer a = {0};

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	w->driverless = true;
	world_show_hardware(w);
	world_settle(w);
	a = forget(w);
	assert_string_equal(a.code, "hca_present");
	assert_non_null(strstr(a.msg, "is there, but not on mlx4_core or mlx5_core"));
	w->driverless = false;
	world_show_hardware(w);
	assert_true(world_until(w, all_free, NULL));
	pull_out(w);
	assert_true(forget(w).ok);
}

/* It was pulled out, and what is there needs no driver of ours. */
static void test_another_card_in_its_slot_is_the_reason(void **state)
{
	struct world *w = *state;
	struct answer a = {0};

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	w->driverless = true;
	w->plugged_device = 0xa2d2;
	world_show_hardware(w);
	world_settle(w);
	a = forget(w);
	assert_string_equal(a.code, "hca_present");
	assert_non_null(strstr(a.msg, "another Mellanox device is in the slot"));
	assert_non_null(strstr(a.msg, "has PCI ID a2d2, the adapter 1003"));
	assert_non_null(strstr(a.hint, "/sys/bus/pci/devices/0000:01:00.0/remove), forget"));
	pull_out(w);
	assert_true(forget(w).ok);
}

/* What the adapter was is not known: it had gone before this agent came. */
static void test_another_card_after_a_restart_is_hinted_at(void **state)
{
	struct world *w = *state;
	struct answer a = {0};

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	world_kill(w);
	w->driverless = true;
	w->plugged_device = 0xa2d2;
	world_start(w);
	world_settle(w);
	a = forget(w);
	assert_non_null(strstr(a.msg, "is there, but not on mlx4_core or mlx5_core"));
	assert_non_null(strstr(a.hint, "as any other card that is in its slot now"));
}

static void test_refused_while_it_is_claimed(void **state)
{
	struct world *w = *state;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	pull_out(w);
	assert_string_equal(forget(w).code, "hca_claimed");
	world_show_hardware(w);
	assert_true(world_until(w, served, &zero));
}

/* Its end was being written when it came back. */
static void test_adapter_that_comes_back_meanwhile_stays(void **state)
{
	struct world *w = *state;
	struct answer a = {0};

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	pull_out(w);
	vhca_engine_forget(w->engine, the_hca(w), on_answer, &a);
	world_show_hardware(w);
	assert_true(world_until(w, answered, &a));
	assert_string_equal(a.code, "hca_present");
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	world_kill(w);
	world_start(w);
	assert_true(world_until(w, served, &zero));
}

/* Asked twice, once is enough. */
static void test_refused_while_it_is_being_forgotten(void **state)
{
	struct world *w = *state;
	struct answer a = {0};

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	pull_out(w);
	vhca_engine_forget(w->engine, the_hca(w), on_answer, &a);
	assert_string_equal(forget(w).code, "vf_busy");
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
}

/* No VF is busy that could tell. */
static void test_adapter_without_vfs_is_forgotten_once(void **state)
{
	struct world *w = *state;
	struct answer a = {0};

	w->n_vfs = 0;
	world_start(w);
	world_settle(w);
	pull_out(w);
	vhca_engine_forget(w->engine, the_hca(w), on_answer, &a);
	assert_string_equal(forget(w).code, "vf_busy");
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
	assert_null(the_hca(w));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_adapter_that_was_pulled_out),
		TEST(test_quarantined_vf_is_gone_for_good),
		TEST(test_refused_while_it_is_there),
		TEST(test_refused_while_it_only_lacks_its_driver),
		TEST(test_another_card_in_its_slot_is_the_reason),
		TEST(test_another_card_after_a_restart_is_hinted_at),
		TEST(test_refused_while_it_is_claimed),
		TEST(test_adapter_that_comes_back_meanwhile_stays),
		TEST(test_refused_while_it_is_being_forgotten),
		TEST(test_adapter_without_vfs_is_forgotten_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
