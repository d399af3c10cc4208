/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tenants on mlx5 VFs stay apart: random tenants and accidents on the production engine and back end (tests/sim/world_mlx5.h). After every
 * round of the loop firmware itself is looked at. A seed says what happens; time is real, so when it happens may differ.
 */
#include "agent/engine.h"

#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "tests/sim/world_mlx5.h"

#define STEPS	     250
#define BROKEN_STEPS 1000
#define CALM_MS	     90000 /* the longest back-off is half a minute */

struct walk {
	struct world w;
	struct world_mlx5 m;
	uint64_t random;
	unsigned int step;
	/* Somebody else has set the VF: it is excused until it is in order once. */
	bool tainted[WORLD_VFS];
	char violation[320]; /* the first one; "" = none */
};

static unsigned int pick(struct walk *k, unsigned int n)
{
	k->random ^= k->random << 13;
	k->random ^= k->random >> 7;
	k->random ^= k->random << 17;
	return (unsigned int)(k->random % n);
}

/* ---- what must hold ---- */

static const struct vhca_vf *vf_of(const struct walk *k, unsigned int v)
{
	return vhca_model_vf(vhca_engine_model(k->w.engine), k->w.vfs[v].bdf);
}

static bool is_nobody(uint64_t guid)
{
	return guid == 0 || guid == UINT64_MAX;
}

static bool is_clean(const struct sim_rtnl_vf *fw)
{
	return is_nobody(fw->node) && is_nobody(fw->port) && fw->policy == VHCA_LINK_DOWN;
}

static bool is_owners(const struct sim_rtnl_vf *fw, const struct vhca_vf *vf)
{
	return vf->claim && fw->port == vf->claim->identity.guid && fw->node == fw->port;
}

static bool up(const struct sim_rtnl_vf *fw)
{
	return fw->policy != VHCA_LINK_DOWN;
}

static void violated(struct walk *k, unsigned int v, const char *what)
{
	const struct sim_rtnl_vf *fw = &k->m.kernel.vfs[v];
	const struct vhca_vf *vf = vf_of(k, v);

	if (!k->violation[0])
		(void)snprintf(k->violation, sizeof(k->violation),
			       "step %u, VF %u (%s): %s; node %016llx port %016llx link %u",
			       k->step, v, vhca_vf_state_to_string(vf->state), what,
			       (unsigned long long)fw->node, (unsigned long long)fw->port,
			       fw->policy);
}

static void check_vf(struct walk *k, unsigned int v)
{
	const struct sim_rtnl_vf *fw = &k->m.kernel.vfs[v];
	const struct vhca_vf *vf = vf_of(k, v);
	bool is_free = vf->state == VHCA_VF_FREE && !vf->committing;

	k->tainted[v] &= !is_clean(fw) && !(vf->state == VHCA_VF_ATTACHED && is_owners(fw, vf));
	if (k->tainted[v])
		return;
	if (is_free && !is_clean(fw))
		violated(k, v, "free, and not clean");
	if (k->w.vfs[v].group_open && up(fw) && !is_owners(fw, vf))
		violated(k, v, "a guest has an address that is not its own");
	for (unsigned int o = 0; o < v; o++)
		if (!k->tainted[o] && up(fw) && up(&k->m.kernel.vfs[o]) &&
		    fw->port == k->m.kernel.vfs[o].port)
			violated(k, v, "an address is twice on the fabric");
}

static void rounds(struct walk *k, unsigned int n)
{
	while (n-- > 0) {
		world_round(&k->w, 3);
		for (unsigned int v = 0; v < WORLD_VFS; v++)
			check_vf(k, v);
	}
}

/* ---- what happens ---- */

static void start_domain(struct walk *k)
{
	unsigned int d = pick(k, WORLD_DOMAINS);

	if (!k->w.domains[d].running)
		(void)world_domain_start(&k->w, d, pick(k, 2) ? "0x8001" : "0x8055");
}

static void stop_domain(struct walk *k)
{
	unsigned int d = pick(k, WORLD_DOMAINS);

	if (k->w.domains[d].running)
		world_domain_stop(&k->w, d);
}

/* The nth call to the kernel of the next such effect fails, with or without effect. */
static void fail_once(struct walk *k)
{
	static const enum vhca_effect effects[] = {VHCA_EFFECT_PREPARE, VHCA_EFFECT_PROGRAM,
						   VHCA_EFFECT_SCRUB};
	static const int errnums[] = {EBUSY, EOPNOTSUPP, EPERM, ENODEV, EINVAL, EIO};

	k->m.fail_effect = effects[pick(k, VHCA_ARRAY_SIZE(effects))];
	k->m.fail_nth = 1 + pick(k, 7);
	k->m.fail_errno = errnums[pick(k, VHCA_ARRAY_SIZE(errnums))];
	k->m.kernel.fail_applied = pick(k, 4) == 0;
}

static void kill_agent(struct walk *k)
{
	world_kill(&k->w);
	world_start(&k->w);
}

static void sm_comes_and_goes(struct walk *k)
{
	k->w.sm_accepts = !k->w.sm_accepts || pick(k, 3) > 0;
}

/* Somebody's `ip link set ... vf`. */
static void drift(struct walk *k)
{
	unsigned int v = pick(k, WORLD_VFS);
	struct sim_rtnl_vf *fw = &k->m.kernel.vfs[v];

	k->tainted[v] = true;
	if (pick(k, 2))
		fw->policy = pick(k, 3);
	else
		fw->port = fw->cached_port =
			pick(k, 2) ? 0 : UINT64_C(0x02c9ab0000aa0000) + k->step * WORLD_VFS + v;
}

static void reload_driver(struct walk *k)
{
	if (pick(k, 4))
		return;
	memset(k->tainted, true, sizeof(k->tainted));
	sim_rtnl_reload(&k->m.kernel);
}

static void other_firmware(struct walk *k)
{
	k->m.kernel.refuses_zero = pick(k, 2);
}

static void guests_turn_deaf(struct walk *k)
{
	k->w.deaf_guest = pick(k, 2);
}

static void (*const happenings[])(struct walk *k) = {
	start_domain, start_domain,	 start_domain,	 stop_domain,
	stop_domain,  fail_once,	 fail_once,	 kill_agent,
	drift,	      reload_driver,	 other_firmware, guests_turn_deaf,
	kill_agent,   sm_comes_and_goes,
};

/* ---- the runs ---- */

static void begin(struct walk *k, uint64_t seed)
{
	memset(k, 0, sizeof(*k));
	k->random = UINT64_C(88172645463325252) ^ (seed * UINT64_C(0x9e3779b97f4a7c15));
	world_init(&k->w);
	world_mlx5_init(&k->w, &k->m);
	k->w.sm_accepts = k->w.fenced = true;
}

static void end(struct walk *k)
{
	world_mlx5_done(&k->w);
	world_done(&k->w);
}

static void run(struct walk *k, unsigned int steps)
{
	world_start(&k->w);
	for (k->step = 0; k->step < steps && !k->violation[0]; k->step++) {
		happenings[pick(k, VHCA_ARRAY_SIZE(happenings))](k);
		rounds(k, 1 + pick(k, 12));
	}
}

static bool all_are_free(const struct walk *k)
{
	for (unsigned int v = 0; v < WORLD_VFS; v++)
		if (vf_of(k, v)->state != VHCA_VF_FREE || vf_of(k, v)->committing)
			return false;
	return TAILQ_EMPTY(&vhca_engine_model(k->w.engine)->claims);
}

/* Without accidents every VF comes back. */
static void calm_down(struct walk *k)
{
	uint64_t deadline = vhca_now_ms() + CALM_MS;

	k->w.sm_accepts = true;
	k->w.deaf_guest = k->m.kernel.refuses_zero = k->m.kernel.fail_applied = false;
	k->m.fail_nth = k->m.kernel.fail_at = 0;
	for (unsigned int d = 0; d < WORLD_DOMAINS; d++)
		if (k->w.domains[d].running)
			world_domain_stop(&k->w, d);
	while (!all_are_free(k) && !k->violation[0] && vhca_now_ms() < deadline)
		rounds(k, 1);
}

static void tenants_stay_apart(void **state)
{
	static struct walk k;

	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		begin(&k, seed);
		run(&k, STEPS);
		calm_down(&k);
		print_message("# seed %llu: %u changes of VFs\n", (unsigned long long)seed,
			      k.m.kernel.sets);
		if (k.violation[0])
			fail_msg("seed %llu: %s", (unsigned long long)seed, k.violation);
		assert_true(all_are_free(&k));
		assert_true(k.m.kernel.sets > 50); /* something did happen */
		end(&k);
	}
}

/* The test of the test: an agent that leaves these effects out is found out. */
static void broken_agents_are_caught(void **state)
{
	static const enum vhca_effect left_out[] = {VHCA_EFFECT_PREPARE, VHCA_EFFECT_SCRUB};
	static struct walk k;

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(left_out); i++) {
		begin(&k, 1);
		k.m.left_out = left_out[i];
		run(&k, BROKEN_STEPS);
		print_message("# without %s: %s\n", vhca_effect_to_string(left_out[i]),
			      k.violation);
		assert_non_null(strstr(k.violation, "free, and not clean"));
		end(&k);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tenants_stay_apart),
		cmocka_unit_test(broken_agents_are_caught),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
