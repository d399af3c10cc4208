// SPDX-License-Identifier: LGPL-2.1-or-later
/* A guest that ejects its VF whenever it has got it: what that costs the SM and libvirt, in hours
 * that the test makes. */
#include <string.h>

#include "tests/sim/host/vtime.h"
#include "tests/sim/host/world_int.h"
#include "tests/sim/hosts/chaos.h"
#include "tests/unit/unit.h"

#define HOUR_MS 3600000

static struct fixture {
	struct chaos c;
	struct world *w; /* where the guest is */
	bool ejects;
	bool unseen;	   /* ...before libvirt is asked whether it has the VF */
	uint64_t eject_ms; /* so long after it has got it */
	unsigned int attaches, reports;
} f;

static void eject(void *arg)
{
	int v = world_vf_of(f.w, 0, f.c.guests[0].vfs[0].name);

	(void)arg;
	if (v < 0)
		return;
	world_vf_unplug(&f.w->vfs[v]);
	world_look(f.w, 0);
}

static void note_step(struct chaos *c, struct chaos_host *h, enum chaos_when when,
		      const char *label)
{
	(void)c;
	(void)h;
	f.reports += when == CHAOS_BEFORE && strstr(label, "/v1/bindings") != NULL;
	if (when != CHAOS_AFTER || strcmp(label, "VF attach") != 0)
		return;
	f.attaches++;
	if (f.unseen)
		eject(NULL);
	else if (f.ejects)
		vtime_after(VTIME_WORLD, f.eject_ms, eject, NULL, NULL);
}

static int setup(void **state)
{
	static const struct chaos_size size = {.hosts = 2, .guests = 1, .vfs = 1};

	(void)state;
	memset(&f, 0, sizeof(f));
	chaos_init(&f.c, 1, &size);
	memset(&f.c.odds, 0, sizeof(f.c.odds));
	f.c.on_step = note_step;
	f.c.wants_labels = true;
	f.w = &f.c.hosts[f.c.guests[0].at].w;
	f.eject_ms = 500;
	chaos_trouble(&f.c, 10ULL * HOUR_MS); /* it is without its VF for long, by its own doing */
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	chaos_done(&f.c);
	return 0;
}

static const struct vhca_error *problem(void)
{
	const struct vhca_domain *dom =
		vhca_model_domain(vhca_engine_model(f.w->engine), &f.w->domains[0].info.uuid);

	assert_non_null(dom);
	return &dom->requests[0].problem;
}

static void run(uint64_t ms)
{
	chaos_run(&f.c, ms);
	if (f.c.broken)
		fail_msg("%s", f.c.why);
}

/* 2 s, 4 s... to 5 min: 8 pauses in the first ten minutes, then 12 in an hour. */
static void ejecting_for_ever_costs_little(void **state)
{
	(void)state;
	f.ejects = true;
	eject(NULL);
	run(HOUR_MS);
	assert_in_range(f.attaches, 10, 20);
	assert_in_range(f.reports, 2 * f.attaches - 1, 2 * f.attaches + 2);
	assert_string_equal(problem()->code, "ejected");
	assert_non_null(strstr(problem()->msg, "gets a VF again in 300 s"));
	assert_true(world_told(f.w, "without being asked"));
}

/* libvirt says that the guest has it, and its XML never shows it. */
static void ejecting_before_it_is_seen_costs_little(void **state)
{
	(void)state;
	f.unseen = true;
	eject(NULL);
	run(HOUR_MS);
	assert_in_range(f.attaches, 10, 130);
}

static void one_that_has_kept_it_gets_it_back_soon(void **state)
{
	(void)state;
	f.ejects = true;
	eject(NULL);
	run(HOUR_MS);
	f.ejects = false;
	run(HOUR_MS);
	f.attaches = 0;
	eject(NULL);
	run(5000);
	assert_int_equal(f.attaches, 1);
	assert_true(world_has_vf(f.w, 0));
}

static void on_served(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	(void)claim;
	*(bool *)arg = !err;
}

/* Whoever asks for it by hand is not kept waiting. */
static void a_request_by_hand_does_not_wait(void **state)
{
	struct vhca_claim_request req = {.origin = VHCA_ORIGIN_ATTACH};
	bool served = false;

	(void)state;
	f.ejects = true;
	eject(NULL);
	run(HOUR_MS);
	f.ejects = false;
	eject(NULL);
	run(1000);
	assert_false(world_has_vf(f.w, 0));
	req.domain = f.w->domains[0].info.uuid;
	req.vf = f.w->domains[0].info.requests[0];
	vhca_engine_claim(f.w->engine, &req, on_served, &served);
	run(2000);
	assert_true(served);
	assert_true(world_has_vf(f.w, 0));
	assert_int_equal(problem()->kind, VHCA_ERR_NONE);
}

/* Whoever asks anew, by the same name, is no second try. */
static void a_request_that_was_removed_has_not_failed(void **state)
{
	struct vhca_dom_info *info = &f.w->domains[0].info;
	const char *name = info->requests[0].name;
	const struct vhca_domain *dom;

	(void)state;
	f.ejects = true;
	eject(NULL);
	run(HOUR_MS);
	dom = vhca_model_domain(vhca_engine_model(f.w->engine), &info->uuid);
	assert_non_null(vhca_domain_failed(dom, name));
	f.ejects = false;
	info->n_requests = 0;
	world_look(f.w, 0);
	run(1000);
	assert_null(vhca_domain_failed(dom, name));
	assert_null(vhca_domain_problem(dom, name));
	info->n_requests = 1;
	world_look(f.w, 0);
	run(2000);
	assert_true(world_has_vf(f.w, 0));
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(ejecting_for_ever_costs_little),
		T(ejecting_before_it_is_seen_costs_little),
		T(one_that_has_kept_it_gets_it_back_soon),
		T(a_request_that_was_removed_has_not_failed),
		T(a_request_by_hand_does_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
