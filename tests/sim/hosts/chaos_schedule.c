/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/hosts/chaos_schedule.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "tests/sim/host/vtime.h"
#include "tests/sim/hosts/chaos_attacker.h"

#define SETTLE_MS 3600000

const char *const chaos_faults[CHAOS_FAULTS] = {
	[CHAOS_FAULT_SWEEPS] = "sweep_in_progress",
	[CHAOS_FAULT_VPORT] = "lid_policy vport",
	[CHAOS_FAULT_DYNAMIC] = "lid_policy dynamic",
	[CHAOS_FAULT_AWAY] = "SM away",
	[CHAOS_FAULT_TAKEOVER] = "standby takes over",
	[CHAOS_FAULT_REBUILDING] = "rebuilding",
	[CHAOS_FAULT_UNAUTHORIZED] = "unauthorized",
	[CHAOS_FAULT_NO_ROLE] = "role_needed",
	[CHAOS_FAULT_NOT_YOUR_PORT] = "not_your_port",
	[CHAOS_FAULT_MLX5] = "mlx5 hosts",
	[CHAOS_FAULT_ATTACKER] = "an attacker's host",
	[CHAOS_FAULT_PORTS] = "ports of guests that never come",
};

static uint64_t mix(uint64_t x)
{
	/* splitmix64 */
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/*
 * The random numbers of one action: the i-th is the same whatever else happens. One draw to a full
 * expression: C leaves open in which order arguments and initializers are evaluated, and a seed is
 * to be one schedule whoever compiled it.
 */
struct dice {
	uint64_t state;
};

static uint32_t roll(struct dice *d, uint32_t n)
{
	d->state = mix(d->state);
	return (uint32_t)(d->state >> 33) % n;
}

struct end {
	struct chaos_play *r;
	unsigned int a, b;
};

static struct end *end_of(struct chaos_play *r, unsigned int a, unsigned int b)
{
	struct end *e = malloc(sizeof(*e));

	assert(e);
	*e = (struct end){r, a, b};
	return e;
}

static void on_start(void *arg)
{
	struct end *e = arg;

	chaos_start(&e->r->c.hosts[e->a]);
	free(e);
}

static void on_whole(void *arg)
{
	struct end *e = arg;

	chaos_cut(&e->r->c, e->a, e->b, false);
	free(e);
}

static void on_sm(void *arg)
{
	struct end *e = arg;

	e->r->c.sm_down = false;
	e->r->c.mood = CHAOS_SM_WELL;
	free(e);
}

static void on_virt(void *arg)
{
	struct end *e = arg;

	chaos_virt(&e->r->c.hosts[e->a], true);
	free(e);
}

static void on_hears(void *arg)
{
	struct end *e = arg;

	e->r->c.hosts[e->a].w.deaf_vfs = 0;
	free(e);
}

/* Again, until an agent has heard it, and not forgotten since. */
static void on_undrain(void *arg)
{
	struct end *e = arg;
	struct chaos_host *h = &e->r->c.hosts[e->a];

	if (h->drain && !vhca_drain_is_on(h->drain)) {
		free(e);
		return;
	}
	(void)chaos_undrain(h);
	chaos_trouble(&e->r->c, 1000);
	vtime_after(VTIME_WORLD, 1000, on_undrain, e, free);
}

/* Mostly short, seldom long. */
static uint64_t while_ms(struct dice *d)
{
	return 50 + roll(d, roll(d, 8) ? 8000 : 200000);
}

/* So long something is not as it should be. */
static uint64_t trouble_ms(struct chaos_play *r, struct dice *d)
{
	uint64_t ms = while_ms(d);

	chaos_trouble(&r->c, ms);
	return ms;
}

static void on_step(struct chaos *c, struct chaos_host *h, enum chaos_when when, const char *label)
{
	struct chaos_play *r = c->arg;

	(void)when;
	(void)label;
	if (r->ambush.host != (int)h->n || --r->ambush.in > 0)
		return;
	r->ambush.host = -1;
	if (r->ambush.power) {
		chaos_power_off(h, r->ambush.off_ms);
		return;
	}
	chaos_kill(h);
	chaos_trouble(c, 3300);
	vtime_after(VTIME_WORLD, 300 + chaos_random(c, 3000), on_start, end_of(r, h->n, 0), free);
}

/* A guest that is to go somewhere else. */
static unsigned int roll_guest(struct chaos_play *r, struct dice *d, unsigned int *ret_to)
{
	unsigned int guest = roll(d, r->c.n_guests), to = roll(d, r->c.n_hosts);

	*ret_to = to == r->c.guests[guest].at ? (to + 1) % r->c.n_hosts : to;
	r->last_guest = guest;
	return guest;
}

static void act_migrate(struct chaos_play *r, struct dice *d)
{
	unsigned int to, guest = roll_guest(r, d, &to);

	(void)chaos_migrate(&r->c, guest, to);
}

/*
 * One that migrates without looking may do so while its guest's VFs are put back and the SM is away
 * (0006: what is known to break).
 */
static enum chaos_plan roll_looking(const struct chaos_play *r, struct dice *d)
{
	enum chaos_plan plan = roll(d, 2) ? CHAOS_PLAN_MIGRATES : roll(d, CHAOS_PLANS);

	if (r->unsafe == CHAOS_BLIND)
		return CHAOS_PLAN_BLINDLY;
	return plan == CHAOS_PLAN_BLINDLY ? CHAOS_PLAN_MIGRATES : plan;
}

static void act_external(struct chaos_play *r, struct dice *d)
{
	struct chaos_orch orch = {.mode = VHCA_MIG_MODE_EXTERNAL};
	unsigned int guest;

	orch.plan = roll_looking(r, d);
	orch.lease_ms = 5000 + roll(d, 95000);
	orch.think_ms = roll(d, roll(d, 4) ? 4000 : 100000);
	guest = roll_guest(r, d, &orch.to);
	(void)chaos_orchestrate(&r->c, guest, &orch);
}

static void act_park(struct chaos_play *r, struct dice *d)
{
	struct chaos_orch orch = {.mode = VHCA_MIG_MODE_PARK};

	orch.plan = roll(d, CHAOS_PLANS);
	orch.lease_ms = 5000 + roll(d, 95000);
	orch.think_ms = roll(d, 10000);
	r->last_guest = roll(d, r->c.n_guests);
	(void)chaos_orchestrate(&r->c, r->last_guest, &orch);
}

static void act_drain(struct chaos_play *r, struct dice *d)
{
	unsigned int h = roll(d, r->c.n_hosts), peer = roll(d, r->c.n_hosts);

	if (chaos_drain(&r->c.hosts[h], peer))
		vtime_after(VTIME_WORLD, trouble_ms(r, d), on_undrain, end_of(r, h, 0), free);
}

static void act_cancel(struct chaos_play *r, struct dice *d)
{
	chaos_cancel(&r->c, roll(d, 2) ? r->last_guest : roll(d, r->c.n_guests));
}

static void act_kill(struct chaos_play *r, struct dice *d)
{
	unsigned int h = roll(d, r->c.n_hosts);

	chaos_kill(&r->c.hosts[h]);
	vtime_after(VTIME_WORLD, trouble_ms(r, d), on_start, end_of(r, h, 0), free);
}

static void act_ambush(struct chaos_play *r, struct dice *d)
{
	r->ambush = (struct chaos_ambush){.host = (int)roll(d, r->c.n_hosts)};
	r->ambush.in = 1 + roll(d, 60);
}

/*
 * It takes a while to boot. Whoever does not know of the host's guests waits for nobody: this is no
 * trouble.
 */
static uint64_t off_ms(struct dice *d)
{
	return 5000 + roll(d, roll(d, 3) ? 40000 : 900000);
}

static void act_power(struct chaos_play *r, struct dice *d)
{
	unsigned int h = roll(d, r->c.n_hosts);

	if (r->power)
		chaos_power_off(&r->c.hosts[h], off_ms(d));
}

/* Mostly that of a migration's source. */
static void act_power_at_step(struct chaos_play *r, struct dice *d)
{
	unsigned int any = roll(d, r->c.n_hosts);

	if (!r->power)
		return;
	r->ambush = (struct chaos_ambush){.power = true};
	r->ambush.host = (int)(roll(d, 2) ? r->c.guests[r->last_guest].at : any);
	r->ambush.in = 1 + roll(d, 60);
	r->ambush.off_ms = off_ms(d);
}

static void act_cut(struct chaos_play *r, struct dice *d)
{
	unsigned int a = roll(d, r->c.n_hosts),
		     b = (a + 1 + roll(d, r->c.n_hosts - 1)) % r->c.n_hosts;

	chaos_cut(&r->c, a, b, true);
	vtime_after(VTIME_WORLD, trouble_ms(r, d), on_whole, end_of(r, a, b), free);
}

/* The other SM becomes master. */
static void take_over(struct chaos_play *r, bool knows_nothing)
{
	chaos_sm_takes_over(&r->c, knows_nothing);
	r->has[CHAOS_FAULT_TAKEOVER] = true;
}

static void act_sm(struct chaos_play *r, struct dice *d)
{
	static const struct {
		enum chaos_sm_mood mood;
		enum chaos_fault fault;
	} moods[] = {
		{CHAOS_SM_WELL, CHAOS_FAULT_TAKEOVER},
		{CHAOS_SM_REBUILDS, CHAOS_FAULT_REBUILDING},
		{CHAOS_SM_UNAUTHORIZED, CHAOS_FAULT_UNAUTHORIZED},
		{CHAOS_SM_NO_ROLE, CHAOS_FAULT_NO_ROLE},
		{CHAOS_SM_NOT_YOUR_PORT, CHAOS_FAULT_NOT_YOUR_PORT},
		{CHAOS_SM_SWEEPS, CHAOS_FAULT_SWEEPS},
	};
	/* The last one is about LIDs that move. */
	size_t n_moods = VHCA_ARRAY_SIZE(moods) - (r->c.lid_policy == VHCA_LID_HOST);
	uint64_t ms;
	uint32_t how, to;

	if (r->power && r->unsafe != CHAOS_POWER_AWAY)
		return;
	ms = trouble_ms(r, d);
	how = roll(d, 9);
	to = roll(d, 2 * r->c.n_hosts);
	if (how < n_moods)
		r->c.mood = moods[how].mood;
	else
		r->c.sm_down = true;
	r->has[how < n_moods ? moods[how].fault : CHAOS_FAULT_AWAY] = true;
	if (how < 2)
		take_over(r, moods[how].mood == CHAOS_SM_REBUILDS);
	r->c.mood_to = to < r->c.n_hosts ? to : CHAOS_EVERYBODY;
	vtime_after(VTIME_WORLD, ms, on_sm, end_of(r, 0, 0), free);
}

static void act_virt(struct chaos_play *r, struct dice *d)
{
	unsigned int h = roll(d, r->c.n_hosts);

	chaos_virt(&r->c.hosts[h], false);
	vtime_after(VTIME_WORLD, trouble_ms(r, d), on_virt, end_of(r, h, 0), free);
}

static void act_qemu(struct chaos_play *r, struct dice *d)
{
	chaos_kill_incoming(&r->c, roll(d, r->c.n_guests));
}

static void act_unresponsive(struct chaos_play *r, struct dice *d)
{
	unsigned int h = roll(d, r->c.n_hosts);
	/* Mostly long enough for the agent to give up. */
	uint64_t ms = 1000 + roll(d, 60000);

	/* All guests, or some of their VFs. */
	r->c.hosts[h].w.deaf_vfs = roll(d, 3) ? roll(d, 1U << WORLD_VFS_MAX) : UINT32_MAX;
	chaos_trouble(&r->c, ms);
	vtime_after(VTIME_WORLD, ms, on_hears, end_of(r, h, 0), free);
}

static void act_clock(struct chaos_play *r, struct dice *d)
{
	unsigned int h = roll(d, r->c.n_hosts);

	vtime_set_wall(VTIME_AGENT_OF(h), (int64_t)roll(d, 200000000) - 100000000);
}

static void act_stall(struct chaos_play *r, struct dice *d)
{
	unsigned int h = roll(d, r->c.n_hosts);

	vtime_stall(VTIME_AGENT_OF(h), vtime_now() + trouble_ms(r, d));
}

static void act_fail(struct chaos_play *r, struct dice *d)
{
	(void)d;
	r->c.next_copy_fails = true;
}

static const struct action {
	const char *name;
	unsigned int weight;
	void (*act)(struct chaos_play *r, struct dice *d);
} actions[] = {
	{"migrate", 33, act_migrate},
	{"external", 14, act_external},
	{"park", 4, act_park},
	{"drain", 2, act_drain},
	{"cancel", 4, act_cancel},
	{"kill", 5, act_kill},
	{"kill at a step", 8, act_ambush},
	{"power fails", 1, act_power},
	{"power fails at a step", 3, act_power_at_step},
	{"cut", 4, act_cut},
	{"SM", 5, act_sm},
	{"libvirtd away", 3, act_virt},
	{"QEMU dies", 3, act_qemu},
	{"unresponsive guest", 5, act_unresponsive},
	{"clock jumps", 2, act_clock},
	{"stands still", 2, act_stall},
	{"copy fails", 2, act_fail},
};

static const struct action *choose(struct dice *d)
{
	unsigned int n = roll(d, 100);
	const struct action *a = actions;

	while (n >= a->weight)
		n -= a++->weight;
	return a;
}

/* From quiet networks to hostile ones. */
static void set_odds(struct chaos *c, struct dice *d)
{
	bool wild = roll(d, 3) == 0;

	c->odds.lost = wild ? roll(d, 100) : 0;
	c->odds.repeated = roll(d, 2) ? roll(d, 100) : 0;
	c->odds.late = roll(d, 50);
	c->odds.copy_fails = roll(d, 150);
	c->odds.confirm_lost = roll(d, 30);
	c->odds.effect_fails = roll(d, 3) ? 0 : roll(d, 30);
	c->odds.slow_copy = roll(d, 20);
}

static void make_all_well(struct chaos_play *r)
{
	struct chaos *c = &r->c;

	r->ambush.host = -1;
	c->odds = (struct chaos_odds){.late = 0};
	c->sm_down = c->next_copy_fails = false;
	c->mood = CHAOS_SM_WELL;
	for (unsigned int a = 0; a < c->n_hosts; a++) {
		for (unsigned int b = 0; b < a; b++)
			c->cut[a][b] = c->cut[b][a] = false;
		c->hosts[a].w.deaf_vfs = 0;
		vtime_stall(VTIME_AGENT_OF(a), 0);
		chaos_virt(&c->hosts[a], true);
	}
	chaos_run(c, 1); /* whoever dies, does so now */
	c->trouble_until = vtime_now();
	for (unsigned int a = 0; a < c->n_hosts; a++) {
		chaos_power_on(&c->hosts[a]);
		chaos_virt(&c->hosts[a], true);
		chaos_start(&c->hosts[a]);
		(void)chaos_undrain(&c->hosts[a]);
	}
}

/* In every second schedule. */
static void begin_attack(struct chaos_play *r, uint64_t seed)
{
	struct dice d = {.state = mix(seed ^ UINT64_C(1) << 61)};
	bool takes = r->unsafe == CHAOS_TAKEN;
	unsigned int host = roll(&d, r->c.n_hosts);

	if (roll(&d, 2) == 0 && !takes)
		return;
	r->has[CHAOS_FAULT_ATTACKER] = true;
	chaos_attacker_begin(&r->c, host, d.state, takes);
}

/* Beside the action, in some schedules, and often before the last reservation is over. */
static void reserve_sometimes(struct chaos_play *r, struct dice *d)
{
	unsigned int h = roll(d, r->c.n_hosts);
	uint32_t lease_s = 10 + roll(d, 120);

	if (!r->c.ports || roll(d, 3))
		return;
	chaos_reserve(&r->c.hosts[h], lease_s);
	r->has[CHAOS_FAULT_PORTS] = true;
}

bool chaos_play(struct chaos_play *r, const struct chaos_schedule *s, bool trace)
{
	struct dice setup = {.state = mix(s->seed)};
	struct dice patience = {.state = mix(s->seed ^ UINT64_C(1) << 63)};
	struct dice hardware = {.state = mix(s->seed ^ UINT64_C(1) << 62)};
	struct dice cloud = {.state = mix(s->seed ^ UINT64_C(1) << 60)};
	struct chaos_size size = {.vfs = CHAOS_VFS_MAX, .standby = true, .breakage = s->breakage};

	size.hosts = 2 + roll(&setup, CHAOS_HOSTS_MAX - 1);
	size.guests = 1 + roll(&setup, CHAOS_GUESTS_MAX);
	size.mlx5 = roll(&hardware, 4) == 0;
	if (size.mlx5)
		size.lid_policy = (enum vhca_conf_lid_policy)roll(&hardware, 3);
	size.ports = !size.mlx5 && roll(&cloud, 4) == 0;
	size.alone_ms = roll(&patience, 3) ? 0 : 1 + roll(&patience, 5000);
	memset(r, 0, sizeof(*r));
	r->has[CHAOS_FAULT_MLX5] = size.mlx5;
	r->has[CHAOS_FAULT_VPORT] = size.lid_policy == VHCA_LID_VPORT;
	r->has[CHAOS_FAULT_DYNAMIC] = size.lid_policy == VHCA_LID_DYNAMIC;
	r->c.trace = trace;
	r->ambush.host = -1;
	chaos_init(&r->c, s->seed, &size);
	set_odds(&r->c, &setup);
	r->unsafe = s->unsafe;
	r->power = roll(&patience, 3) == 0 || r->unsafe == CHAOS_POWER_LOSSY ||
		   r->unsafe == CHAOS_POWER_AWAY;
	if (r->power)
		r->c.odds.lost = r->unsafe == CHAOS_POWER_LOSSY ? 50 : 0;
	r->c.on_step = on_step;
	r->c.arg = r;
	begin_attack(r, s->seed);
	for (unsigned int i = 0; i < CHAOS_ACTIONS && !r->c.broken; i++) {
		struct dice d = {.state = mix(s->seed ^ (uint64_t)(i + 1) << 40)};
		uint64_t pause = roll(&d, roll(&d, 4) ? 6000 : 40000);
		const struct action *a = choose(&d);

		if (s->leave_out[i])
			continue;
		chaos_run(&r->c, pause);
		chaos_trace(&r->c, "action %u: %s", i, a->name);
		a->act(r, &d);
		reserve_sometimes(r, &cloud);
	}
	make_all_well(r);
	if (!chaos_settle(&r->c, SETTLE_MS) && !r->c.broken)
		chaos_broken(&r->c, r->c.rule, "not at rest: %s", strdupa(r->c.why));
	chaos_trace(&r->c, "%s", r->c.broken ? r->c.why : "at rest");
	chaos_done(&r->c);
	return !r->c.broken;
}
