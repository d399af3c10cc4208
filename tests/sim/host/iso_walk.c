/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/host/iso_walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "tests/sim/host/vtime.h"

#define SEEDS	8 /* in which a broken agent is looked for */
#define REST_MS 600000
#define SHARED	0x02c9ab5000000010u /* addresses that go from tenant to tenant */
#define SHAREDS 2

/* ---- what people do ---- */

static void on_answer(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	(void)arg;
	(void)claim;
	(void)err;
}

static void step_guest(struct iso *it)
{
	iso_guest_acts(it);
}

static void step_start(struct iso *it)
{
	iso_domain_start(it, iso_random(it, TRUTH_DOMAINS));
}

static void step_stop(struct iso *it)
{
	iso_domain_stop(it, iso_random(it, TRUTH_DOMAINS));
}

/* A second VF at run time, or one that an orchestrator claims for an XML to come. */
static void step_claim(struct iso *it)
{
	unsigned int d = iso_random(it, TRUTH_DOMAINS);
	struct vhca_claim_request req = {.domain = it->domains[d].info.uuid, .vf = {.numa = -1}};

	req.origin = iso_random(it, 2) ? VHCA_ORIGIN_ATTACH : VHCA_ORIGIN_CLAIM;
	req.has_bdf = iso_random(it, 2);
	(void)vhca_bdf_parse(it->truth.hw.vfs[iso_random(it, HW_VFS)].bdf, &req.bdf);
	(void)vhca_strcpy(req.domain_name, sizeof(req.domain_name), it->domains[d].info.name);
	(void)vhca_strcpy(req.vf.name, sizeof(req.vf.name), iso_random(it, 3) ? "ib1" : "ib0");
	if (iso_random(it, 4))
		req.vf.guid = SHARED + iso_random(it, SHAREDS);
	(void)vhca_strcpy(req.vf.fabric, sizeof(req.vf.fabric), "default");
	iso_random_keys(it, d, req.vf.partition, sizeof(req.vf.partition));
	if (it->engine)
		vhca_engine_claim(it->engine, &req, on_answer, NULL);
}

static void step_release(struct iso *it)
{
	struct vhca_claim *c;
	unsigned int n = iso_random(it, HW_VFS);

	if (!it->engine)
		return;
	TAILQ_FOREACH (c, &vhca_engine_model(it->engine)->claims, link)
		if (n-- == 0)
			break;
	if (c)
		vhca_engine_release(it->engine, c, iso_random(it, 2), on_answer, NULL);
}

/* A VF that is meant for somebody, if there is one that nobody has yet; into a domain that runs. */
static void step_plug(struct iso *it)
{
	unsigned int v = iso_random(it, HW_VFS), d = iso_random(it, TRUTH_DOMAINS);

	for (unsigned int n = 0;
	     n < HW_VFS && (!it->truth.rows[v].claimed || it->truth.hw.vfs[v].open); n++)
		v = (v + 1) % HW_VFS;
	for (unsigned int n = 0; n < TRUTH_DOMAINS && !it->domains[d].running; n++)
		d = (d + 1) % TRUTH_DOMAINS;
	iso_plug(it, v, d);
}

static void step_unplug(struct iso *it)
{
	iso_unplug(it, iso_random(it, HW_VFS));
}

static void step_deaf(struct iso *it)
{
	unsigned int d = iso_random(it, TRUTH_DOMAINS);

	it->truth.domains[d].unresponsive = it->domains[d].running && iso_random(it, 2);
	truth_delay(&it->truth);
}

/* ---- what goes wrong around the agent ---- */

static void step_reorder(struct iso *it)
{
	iso_sm_reorder(it);
}

/* Somebody's echo into sysfs. */
static void drift_map(struct iso *it, unsigned int v)
{
	struct hw *hw = &it->truth.hw;
	struct hw_vf *vf = &hw->vfs[v];
	unsigned int port = iso_random(it, HW_PORTS);

	if (iso_random(it, 4)) {
		unsigned int i = iso_random(it, 4);

		vf->map[port][i] = (int16_t)(iso_random(it, hw->n_keys + 1) - 1);
	} else {
		hw_request(hw, v, port, hw->vfs[iso_random(it, HW_VFS)].admin[0]);
	}
}

/* Somebody's `ip link set ... vf`. */
static void drift_vport(struct iso *it, unsigned int v)
{
	struct sim_rtnl_vf *vfs = it->kernel.vfs;
	uint64_t guid = iso_random(it, 2) ? 0 : vfs[iso_random(it, HW_VFS)].port;

	switch (iso_random(it, 4)) {
	case 0:
		vfs[v].node = vfs[v].cached_node = guid;
		break;
	case 1:
		vfs[v].port = vfs[v].cached_port = guid;
		break;
	default:
		vfs[v].policy = iso_random(it, 3);
	}
	hw_vport_sync(&it->truth.hw, v);
	iso_sm_vports(it);
}

static void step_drift(struct iso *it)
{
	unsigned int v = iso_random(it, HW_VFS);

	it->stats.drifts++;
	if (it->truth.hw.card == HW_MLX4)
		drift_map(it, v);
	else
		drift_vport(it, v);
	vhca_log_debug("world: drift of VF %u", v);
	truth_taint(&it->truth, v);
}

static void taint_all(struct iso *it)
{
	for (unsigned int v = 0; v < HW_VFS; v++)
		truth_taint(&it->truth, v);
}

static void on_maps_reset(struct iso *it, unsigned int v)
{
	(void)v;
	vhca_log_debug("world: the driver resets all maps");
	hw_reset_maps(&it->truth.hw);
	taint_all(it);
}

/* Nobody has it, and nothing is asked of libvirt for it. */
static bool may_move(const struct iso *it, unsigned int v)
{
	struct vhca_bdf bdf;

	if (it->truth.hw.vfs[v].open || it->listed[v] != TRUTH_NOBODY)
		return false;
	(void)vhca_bdf_parse(it->truth.hw.vfs[v].bdf, &bdf);
	return !it->engine ||
	       vhca_model_vf(vhca_engine_model(it->engine), bdf)->virt.effect == VHCA_EFFECT_NONE;
}

/* The VFs of a card are made anew, and two of them are at each other's address. What they show
 * stays. */
static void step_swap(struct iso *it)
{
	struct hw_vf *vfs = it->truth.hw.vfs;
	unsigned int a = iso_random(it, HW_VFS), b = iso_random(it, HW_VFS);
	char bdf[sizeof(vfs[a].bdf)];

	for (unsigned int n = 0; n < HW_VFS && !may_move(it, a); n++)
		a = (a + 1) % HW_VFS;
	for (unsigned int n = 0; n < HW_VFS && (a == b || !may_move(it, b)); n++)
		b = (b + 1) % HW_VFS;
	if (a == b || !may_move(it, a) || !may_move(it, b))
		return;
	it->stats.swaps++;
	vhca_log_debug("world: VFs %u and %u are at each other's address", a, b);
	memcpy(bdf, vfs[a].bdf, sizeof(bdf));
	memcpy(vfs[a].bdf, vfs[b].bdf, sizeof(bdf));
	memcpy(vfs[b].bdf, bdf, sizeof(bdf));
	truth_reload(&it->truth);
	truth_moved(&it->truth, a, it->begun[a]);
	truth_moved(&it->truth, b, it->begun[b]);
	iso_tell_inventory(it);
}

static void on_udev(struct iso *it, unsigned int v)
{
	(void)v;
	iso_tell_inventory(it);
}

/* mlx5_core has recovered from an error: vports are what it remembers of them. */
static void on_recovery(struct iso *it, unsigned int v)
{
	(void)v;
	vhca_log_debug("world: the driver makes all vports anew");
	hw_vports_recover(&it->truth.hw);
	taint_all(it);
	iso_sm_vports(it);
}

static void on_driver_back(struct iso *it, unsigned int v)
{
	struct hw *hw = &it->truth.hw;

	(void)v;
	hw->registered = true;
	if (hw->card == HW_MLX4) {
		hw_driver_start(hw);
		taint_all(it);
		iso_later(it, false, iso_random(it, 500), on_maps_reset, 0);
	} else {
		it->kernel.ifindex++; /* another network device */
		if (iso_random(it, 2))
			iso_later(it, false, iso_random(it, 500), on_recovery, 0);
	}
	iso_later(it, false, 50 + iso_random(it, 100), on_udev, 0);
}

/*
 * mlx4_ib is loaded again: its files come first, the reset of all maps later. Or mlx5_ib, which
 * forgets nothing.
 */
static void step_reload(struct iso *it)
{
	if (!it->truth.hw.registered)
		return;
	it->truth.hw.registered = false;
	iso_later(it, false, 50, on_udev, 0);
	iso_later(it, false, 100 + iso_random(it, 3000), on_driver_back, 0);
}

static void step_rename(struct iso *it)
{
	(void)snprintf(it->truth.hw.ibdev, sizeof(it->truth.hw.ibdev), "%s",
		       strcmp(it->truth.hw.ibdev, "ibp3s0") ? "ibp3s0" : "mlx_0");
	iso_later(it, false, 50 + iso_random(it, 100), on_udev, 0);
	truth_delay(&it->truth);
}

static void step_fault(struct iso *it)
{
	static const int errnums[] = {EINVAL, EIO,    ENODEV, ENOENT,	  ENOMEM,   EBUSY,
				      EAGAIN, EACCES, EPERM,  EOPNOTSUPP, ETIMEDOUT};
	unsigned int shape = iso_random(it, 8);

	it->stats.faults += it->fault.hits;
	it->fault = (struct iso_fault){0};
	it->fault.in = 1 + iso_random(it, iso_random(it, 2) ? 4 : 100);
	it->fault.on_read = iso_random(it, 2);
	it->fault.errnum = errnums[iso_random(it, VHCA_ARRAY_SIZE(errnums))];
	it->fault.applied = !it->fault.on_read && !iso_random(it, 3);
	it->fault.lost = !it->fault.on_read && !it->fault.applied && !iso_random(it, 3);
	it->fault.silent = shape == 0;
	it->fault.cut = shape == 1;
	it->fault.absent = shape == 2;
	it->fault.uncached = shape <= 3 && it->fault.applied;
}

/* Firmware that takes zero for no GUID at all; it stays so over all accidents. */
static void step_firmware(struct iso *it)
{
	it->kernel.refuses_zero = !it->kernel.refuses_zero;
}

static void on_restart(struct iso *it, unsigned int v)
{
	(void)v;
	if (!it->engine)
		iso_start(it);
}

static void step_kill(struct iso *it)
{
	iso_kill(it);
	iso_later(it, false, iso_random(it, 5000), on_restart, 0);
}

static void step_die(struct iso *it)
{
	it->die_in = 1 + iso_random(it, iso_random(it, 2) ? 100 : 400);
}

static void on_meddle(struct iso *it)
{
	static void (*const acts[])(struct iso * it) = {step_guest,  step_stop,	 step_plug,
							step_unplug, step_drift, step_reorder};

	acts[iso_random(it, VHCA_ARRAY_SIZE(acts))](it);
}

static void step_meddle(struct iso *it)
{
	it->meddle = on_meddle;
	it->meddle_in = 1 + iso_random(it, 300);
}

static void step_libvirt(struct iso *it)
{
	it->virt_up = !it->virt_up;
	if (!it->engine)
		return;
	if (it->virt_up)
		iso_virt_sync(it);
	else
		vhca_engine_virt_lost(it->engine);
}

static void step_sm(struct iso *it)
{
	it->sm_up = !it->sm_up;
	it->truth.hw.sm_grants = it->sm_up;
}

static void step_store(struct iso *it)
{
	it->fail_commits = 1 + iso_random(it, 2);
}

/* The host: guests gone, VFs as the driver makes them, another boot. */
static void step_reboot(struct iso *it)
{
	iso_kill(it);
	for (unsigned int d = 0; d < TRUTH_DOMAINS; d++)
		iso_domain_stop(it, d);
	for (unsigned int v = 0; v < HW_VFS; v++) {
		it->life[v]++;
		truth_closed(&it->truth, v);
		it->truth.hw.vfs[v].driver[0] = it->truth.hw.vfs[v].override[0] = '\0';
	}
	hw_driver_start(&it->truth.hw);
	it->truth.hw.registered = true;
	taint_all(it);
	(void)snprintf(it->boot_id, sizeof(it->boot_id), "boot-%u", it->truth.hw.reload);
	iso_start(it);
}

/* Storm and calm take turns: while errors and restarts go on, no repair has to be in time. */
#define PHASE 250

static const struct {
	unsigned int weight; /* of 1000 */
	void (*fn)(struct iso *it);
	bool storm; /* only then */
} steps[] = {
	{281, step_guest},	 {190, step_start},	  {60, step_stop},
	{90, step_claim},	 {50, step_release},	  {45, step_plug},
	{15, step_unplug},	 {20, step_deaf},	  {20, step_reorder},
	{20, step_drift},	 {8, step_reload, true},  {4, step_rename, true},
	{80, step_fault, true},	 {20, step_kill, true},	  {20, step_die, true},
	{40, step_meddle, true}, {8, step_libvirt, true}, {10, step_sm, true},
	{8, step_store, true},	 {2, step_reboot, true},  {3, step_firmware},
	{6, step_swap},
};

/* ---- a run ---- */

static void accidents_end(struct iso *it)
{
	it->fault = (struct iso_fault){0};
	it->die_in = it->meddle_in = it->fail_commits = 0;
	it->truth.hw.sm_grants = it->sm_up = true;
	if (!it->virt_up)
		step_libvirt(it);
}

static void one_step(struct iso *it)
{
	unsigned int n = iso_random(it, 1000), i = 0;
	static const uint32_t pauses[] = {5, 50, 50, 500, 500, 5000};

	while (n >= steps[i].weight) {
		n -= steps[i].weight;
		i++;
	}
	if (it->stats.steps % PHASE == 0)
		accidents_end(it);
	if (!steps[i].storm || it->stats.steps / PHASE % 2 == 0)
		steps[i].fn(it);
	it->stats.steps++;
	iso_run(it, 1 + iso_random(it, pauses[iso_random(it, VHCA_ARRAY_SIZE(pauses))]));
	/* Outages end. */
	if (!it->virt_up && !iso_random(it, 5))
		step_libvirt(it);
	if (!it->sm_up && !iso_random(it, 10))
		step_sm(it);
}

static void release_all(struct iso *it)
{
	struct vhca_claim *c;

	TAILQ_FOREACH (c, &vhca_engine_model(it->engine)->claims, link)
		if (!vhca_claim_is_ending(c))
			vhca_engine_release(it->engine, c, false, on_answer, NULL);
}

/* All accidents end and all domains stop: the host must come to rest, every VF free. */
static void come_to_rest(struct iso *it)
{
	accidents_end(it);
	iso_run(it, 10000); /* what was on its way has come */
	for (unsigned int d = 0; d < TRUTH_DOMAINS; d++)
		iso_domain_stop(it, d);
	iso_run(it, 10000);
	release_all(it);
	iso_run(it, REST_MS);
	for (unsigned int v = 0; v < HW_VFS && !it->truth.violation[0]; v++)
		if (strcmp(it->truth.rows[v].state, "free") != 0 || it->truth.rows[v].claimed)
			(void)snprintf(it->truth.violation, sizeof(it->truth.violation),
				       "VF %u does not come to rest: %s", v,
				       it->truth.rows[v].state);
}

bool iso_walk(struct iso *it, const struct iso_plan *plan, unsigned int n_steps)
{
	iso_init(it, plan);
	iso_start(it);
	while (it->stats.steps < n_steps && !it->truth.violation[0])
		one_step(it);
	if (!it->truth.violation[0])
		come_to_rest(it);
	if (it->truth.violation[0])
		printf("# seed %llu step %u at %llu ms: %s\n", (unsigned long long)plan->seed,
		       it->stats.steps, (unsigned long long)vtime_now(), it->truth.violation);
	iso_done(it);
	return !it->truth.violation[0];
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	uint64_t n;

	return text && !vhca_parse_u64(text, 10, UINT64_MAX, &n) ? n : otherwise;
}

static bool run_is_sound(const struct iso_plan *plan, unsigned int n)
{
	static struct iso it;
	const struct iso_stats *s = &it.stats;
	bool ok;

	printf("# seed %llu, %u steps, tables of %u\n", (unsigned long long)plan->seed, n,
	       plan->n_keys);
	ok = iso_walk(&it, plan, n);
	printf("# %u attaches, %u detaches, %u scrubs, %u acts of guests, %u reorders, %u drifts, "
	       "%u foreign plugs, %u swaps, %u kills, %u faults, last draw %016llx\n",
	       s->attaches, s->detaches, s->scrubs, s->qps, s->reorders, s->drifts, s->foreign,
	       s->swaps, s->kills, s->faults, (unsigned long long)it.rng);
	/* A host on which little happens proves little. */
	return ok && s->attaches > n / 50 && s->scrubs > n / 50 && s->qps > n / 50 &&
	       s->kills > n / 100;
}

bool iso_walk_sound(const struct iso_plan *plan, unsigned int n_runs, unsigned int n_steps)
{
	unsigned int n = (unsigned int)number("VHCA_ISO_STEPS", n_steps);
	unsigned int runs = (unsigned int)number("VHCA_ISO_RUNS", n_runs);
	struct iso_plan mine = *plan;
	bool ok = true;

	mine.seed = number("VHCA_ISO_SEED", plan->seed);
	for (unsigned int i = 0; i < runs; i++, mine.seed++)
		ok &= run_is_sound(&mine, n);
	return ok;
}

bool iso_walk_catches(const struct iso_plan *plan, unsigned int n_steps)
{
	static struct iso it;
	struct iso_plan mine = *plan;

	/*
	 * Each change of the product makes other runs of the same seeds: some may be lucky, not
	 * all.
	 */
	for (mine.seed = 1; mine.seed <= SEEDS; mine.seed++)
		if (!iso_walk(&it, &mine, n_steps))
			return true;
	printf("# breakage %u: not caught\n", mine.broken);
	return false;
}
