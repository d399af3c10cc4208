/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * By which tickets a vGUID follows its guest (docs/design/0014-authority.md): a guest goes from
 * host 0 to 1 and on to 2 while the SM is away, and an agent is killed at each step of that in
 * turn. The SM that comes back then knows only that host 0 has it, and verifies every ticket.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/host/vtime.h"
#include "tests/sim/hosts/chaos.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

#define HOSTS	  3
#define SEED	  7
#define AWAY_MS	  400 /* systemd starts an agent again */
#define HOP_MS	  300000
#define SETTLE_MS 900000

static struct tree dir;
static bool is_child; /* not to go on as cmocka's own */

static void must(bool ok, const char *what)
{
	if (!ok && is_child) {
		fprintf(stderr, "# %s\n", what);
		_exit(1);
	}
	if (!ok)
		fail_msg("%s", what);
}

/* One run: at this step somebody is killed; 0 = nobody. */
struct plan {
	unsigned int step, kill_at;
};

static struct chaos *begin(const char *certificates, struct plan *p)
{
	const struct chaos_size size = {
		.hosts = HOSTS, .guests = 1, .vfs = 1, .certificates = certificates};
	static struct chaos c;

	chaos_init(&c, SEED, &size);
	assert_true(chaos_settle(&c, 10000));
	c.arg = p;
	return &c;
}

/* ---- what may happen ---- */

static void on_back(void *host)
{
	chaos_start(host);
}

static void on_step(struct chaos *c, struct chaos_host *h, enum chaos_when when, const char *label)
{
	struct plan *p = c->arg;

	(void)when;
	(void)label;
	if (++p->step != p->kill_at)
		return;
	chaos_kill(h);
	vtime_after(VTIME_WORLD, AWAY_MS, on_back, h, NULL);
}

static bool is_at_rest(const struct chaos *c)
{
	if (c->guests[0].job.active)
		return false;
	for (unsigned int i = 0; i < c->n_hosts; i++) {
		const struct vhca_mig *m;

		if (!c->hosts[i].w.engine || c->hosts[i].dying)
			return false;
		for (m = vhca_migrations_first(c->hosts[i].ms); m; m = TAILQ_NEXT(m, link))
			if (!vhca_mig_state_is_final(m->state))
				return false;
	}
	return true;
}

/* The guest goes on as soon as it can; if it comes back, it tries again. */
static void hop(struct chaos *c, unsigned int to)
{
	uint64_t until = vtime_now() + HOP_MS;

	while (!c->broken && (c->guests[0].at != to || !is_at_rest(c))) {
		must(vtime_now() < until, "the guest does not get there");
		if (is_at_rest(c))
			(void)chaos_migrate(c, 0, to);
		chaos_run(c, 500);
	}
}

/* ---- the SM hears of it in the end ---- */

static void go_twice_unheard(struct chaos *c)
{
	chaos_trouble(c, 2 * HOP_MS);
	c->sm_down = true;
	c->on_step = on_step;
	hop(c, 1);
	hop(c, 2);
	c->on_step = NULL;
	c->sm_down = false;
}

static void check_owner(struct chaos *c, unsigned int host)
{
	const struct chaos_owner *o = chaos_owner_of(c, c->guests[0].vfs[0].guid);

	must(chaos_settle(c, SETTLE_MS), c->why);
	must(o, "the SM has not heard of it");
	must(o->owner == host && o->proven > 0, "the SM believes somebody else");
	must(o->other == CHAOS_HOSTS_MAX, "it has not settled");
	must(c->n_strangers == 0, "an honest host was refused");
}

static void a_guest_that_moved_twice_unheard_is_believed(void **state)
{
	struct plan p = {0};
	struct chaos *c = begin(dir.root, &p);
	const struct chaos_owner *o = chaos_owner_of(c, c->guests[0].vfs[0].guid);
	uint64_t epoch = o->epoch;

	(void)state;
	go_twice_unheard(c);
	assert_true(p.step > 40); /* fewer would prove nothing */
	check_owner(c, 2);
	assert_true(o->epoch >= epoch + 2);
	chaos_done(c);
}

static void run_with_kill(unsigned int at)
{
	struct plan p = {.kill_at = at};
	struct chaos *c = begin(dir.root, &p);

	go_twice_unheard(c);
	check_owner(c, 2);
	must(!c->broken, c->why);
	chaos_done(c);
}

/* Each in a process of its own: who is killed leaves its memory behind. */
static void at_each_step_an_agent_may_die(void **state)
{
	struct plan p = {0};
	struct chaos *c = begin(dir.root, &p);
	unsigned int n, failed = 0;

	(void)state;
	go_twice_unheard(c);
	chaos_done(c);
	n = p.step;
	for (unsigned int at = 1; at <= n; at++) {
		int status = 0;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			is_child = true;
			run_with_kill(at);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (status)
			print_message("# killed at step %u: failed\n", at);
		failed += status != 0;
	}
	print_message("# %u steps\n", n);
	assert_int_equal(failed, 0);
}

/* ---- a destination that went on alone ---- */

static void on_handover(struct chaos *c, struct chaos_host *h, enum chaos_when when,
			const char *label)
{
	if (h->n == 0 && when == CHAOS_BEFORE && strstr(label, "handover"))
		chaos_cut(c, 0, 1, true);
}

static bool has_vf(const struct chaos *c, unsigned int host)
{
	struct vhca_engine *e = c->hosts[host].w.engine;
	const struct vhca_claim *claim = e ? TAILQ_FIRST(&vhca_engine_model(e)->claims) : NULL;

	return claim && claim->vf->state == VHCA_VF_ATTACHED && !vhca_claim_is_ending(claim);
}

static bool has_arrived_alone(const struct chaos *c)
{
	return c->guests[0].at == 1 && (c->sm_down ? has_vf(c, 1) : c->n_strangers > 0);
}

/*
 * The source is killed before it hands over, and stays away. Then the SM says whose it is: when the
 * guest has its VF, or before.
 */
static struct chaos *go_alone(struct plan *p, bool has_vf_first)
{
	struct chaos *c = begin(dir.root, p);
	uint64_t until;

	chaos_trouble(c, 4 * HOP_MS);
	c->wants_labels = true;
	c->on_step = on_handover;
	assert_true(chaos_migrate(c, 0, 1));
	until = vtime_now() + HOP_MS;
	while (!c->guests[0].job.active) {
		assert_true(vtime_now() < until);
		chaos_run(c, 1);
		if (c->cut[0][1]) /* libvirt's copy needs it */
			chaos_cut(c, 0, 1, false);
	}
	chaos_kill(&c->hosts[0]);
	c->sm_down = has_vf_first;
	while (!has_arrived_alone(c)) {
		assert_true(vtime_now() < until);
		chaos_run(c, 500);
	}
	c->sm_down = false;
	while (c->n_strangers == 0) {
		assert_true(vtime_now() < until);
		chaos_run(c, 500);
	}
	c->on_step = NULL;
	return c;
}

static void end_alone(struct chaos *c)
{
	const struct chaos_owner *o = chaos_owner_of(c, c->guests[0].vfs[0].guid);

	chaos_start(&c->hosts[0]);
	assert_true(chaos_settle(c, SETTLE_MS));
	assert_true(has_vf(c, 1));
	assert_int_equal(o->owner, 1);
	assert_int_equal(o->proven, 1);
	chaos_done(c);
}

static void who_went_on_alone_waits_for_its_ticket(void **state)
{
	struct plan p = {0};
	struct chaos *c = go_alone(&p, true);

	(void)state;
	chaos_run(c, HOP_MS);
	assert_true(has_vf(c, 1));
	end_alone(c);
}

static void who_went_on_alone_is_given_nothing_before_its_ticket(void **state)
{
	struct plan p = {0};
	struct chaos *c = go_alone(&p, false);

	(void)state;
	chaos_run(c, HOP_MS);
	assert_false(has_vf(c, 1));
	end_alone(c);
}

static void who_went_on_alone_may_be_killed(void **state)
{
	struct plan p = {0};
	struct chaos *c = go_alone(&p, true);

	(void)state;
	chaos_kill(&c->hosts[1]);
	chaos_run(c, AWAY_MS);
	chaos_start(&c->hosts[1]);
	chaos_run(c, HOP_MS);
	assert_true(has_vf(c, 1));
	end_alone(c);
}

/* What holds of it whether anybody looks at tickets or not. */
static void without_certificates_nothing_is_signed(void **state)
{
	struct plan p = {0};
	struct chaos *c = begin(NULL, &p);

	(void)state;
	go_twice_unheard(c);
	assert_true(chaos_settle(c, SETTLE_MS));
	assert_int_equal(c->n_owners, 0);
	chaos_done(c);
}

static int setup(void **state)
{
	int status = -1;
	pid_t pid;

	(void)state;
	tree_init(&dir);
	pid = fork();
	if (pid == 0) {
		(void)dup2(STDERR_FILENO, STDOUT_FILENO);
		execl(VHCA_CERTS, VHCA_CERTS, "--days", "1", dir.root, "host0", "host1", "host2",
		      NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	tree_done(&dir);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_went_on_alone_waits_for_its_ticket),
		cmocka_unit_test(who_went_on_alone_is_given_nothing_before_its_ticket),
		cmocka_unit_test(who_went_on_alone_may_be_killed),
		cmocka_unit_test(a_guest_that_moved_twice_unheard_is_believed),
		cmocka_unit_test(at_each_step_an_agent_may_die),
		cmocka_unit_test(without_certificates_nothing_is_signed),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
