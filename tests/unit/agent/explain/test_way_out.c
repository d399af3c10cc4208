/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A guest that gets no VF, for as long as that goes on: what is asked at any moment of the loop is
 * answered with a way out. Whoever asks does not choose the moment.
 */
#include <string.h>

#include "agent/explain/explain.h"
#include "common/http/json.h"
#include "tests/sim/host/world_int.h"
#include "tests/unit/agent/vf/engine_world.h"

#define OTHER_PORT UINT64_C(0x0002c90300000999)

static struct walk {
	/* in each answer from the first on until a guest has the VF; NULL = whatever it is */
	const char *fix;
	bool named;
	bool had_claim;
	unsigned int tries; /* claims that were begun */
} walk;

static void check(const struct vhca_finding *findings, unsigned int n, const char *moment,
		  bool *ret_named)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct vhca_finding *f = &findings[i];

		if (f->status >= VHCA_FINDING_WARNING && !f->fix[0])
			fail_msg("no way out is named (%s): %s: %s", moment, f->step, f->text);
		*ret_named |= walk.fix && strstr(f->fix, walk.fix);
	}
}

static struct vhca_explain explain_of(const struct world *w)
{
	struct vhca_explain ex = {
		.model = vhca_engine_model(w->engine),
		.conf = &w->conf,
		.sm = &vhca_sm_vhcasm,
		.sm_reachable = true,
		.virt_connected = !w->virt_down,
		.virt_synced = vhca_engine_virt_synced(w->engine),
	};

	(void)vhca_engine_check_disk(w->engine, &ex.disk);
	return ex;
}

/* Of guest 0, and of every VF: `vhcactl explain VF` is asked of those, too. */
static void look(const struct world *w)
{
	struct vhca_finding requests[VHCA_EXPLAIN_REQUESTS], steps[VHCA_EXPLAIN_STEPS];
	struct vhca_explain ex = explain_of(w);
	const struct vhca_claim *c = first_claim(w);
	const char *moment = c ? vhca_vf_state_to_string(c->vf->state) : "no claim";
	const struct vhca_domain *dom = vhca_model_domain(ex.model, &w->domains[0].info.uuid);
	const struct vhca_hca *hca;
	const struct vhca_vf *vf;
	bool named = false, has_vf;

	walk.tries += c && !walk.had_claim;
	walk.had_claim = c;
	check(requests, vhca_explain_requests(&ex, dom, requests), moment, &named);
	TAILQ_FOREACH (hca, &ex.model->hcas, link) {
		TAILQ_FOREACH (vf, &hca->vfs, link) {
			vhca_explain_vf(&ex, vf, steps);
			check(steps, VHCA_EXPLAIN_STEPS, moment, &named);
		}
	}
	has_vf = c && c->vf->state == VHCA_VF_ATTACHED && !c->failure.kind;
	if (walk.named && named == has_vf)
		fail_msg("\"%s\" is named no more, or still (%s)", walk.fix, moment);
	walk.named = named;
}

static int setup_walk(void **state)
{
	(void)setup(state);
	((struct world *)*state)->request_ms = ((struct world *)*state)->retry_ms = 20;
	walk = (struct walk){.fix = NULL};
	return 0;
}

/* Until guest 0 was tried so often; each(): once a round. */
static void go_round(struct world *w, unsigned int tries, void (*each)(struct world *w))
{
	while (walk.tries < tries) {
		if (each)
			each(w);
		look(w);
		world_round(w, 5);
	}
}

/* For a state in which it stays. */
static void stay(struct world *w)
{
	for (unsigned int i = 0; i < 20; i++) {
		look(w);
		world_round(w, 5);
	}
}

static void start(struct world *w, const char *fix)
{
	walk.fix = fix;
	world_start(w);
	(void)world_domain_start(w, 0, "0x8001");
}

static bool is_in(const struct world *w, const void *arg)
{
	const struct vhca_claim *c = first_claim(w);

	look(w);
	return c && c->vf->state == *(const enum vhca_vf_state *)arg && !c->vf->committing;
}

static void wait_for(struct world *w, enum vhca_vf_state state)
{
	assert_true(world_until(w, is_in, &state));
}

/* ---- loops of tries ---- */

static void answer(struct world *w, enum vhca_sm_answer with)
{
	const struct vhca_claim *c = first_claim(w);
	struct json_object *doc = json_object_new_object();
	struct vhca_sm_binding b;

	vhca_json_add_u64(doc, "known_epoch", 7);
	vhca_json_add_bool(doc, "bound", true);
	vhca_json_add_string(doc, "port_guid", VHCA_GUID_STR(OTHER_PORT));
	if (c && c->vf->state == VHCA_VF_CLAIMED && !c->vf->committing &&
	    c->sm_answer == VHCA_ANSWER_NONE) {
		b = vhca_claim_binding(c);
		vhca_engine_sm_answer(w->engine, &b, with, "not yours",
				      with == VHCA_SM_SUPERSEDED ? doc : NULL);
	}
	json_object_put(doc);
}

static void has_another_owner(struct world *w)
{
	answer(w, VHCA_SM_SUPERSEDED);
}

static void test_sm_knows_another_owner(void **state)
{
	struct world *w = *state;

	w->fenced = true;
	start(w, "vhcactl takeover");
	go_round(w, 5, has_another_owner);
	assert_true(walk.named);
}

static void is_refused(struct world *w)
{
	answer(w, VHCA_SM_REFUSED);
}

static void test_sm_refuses(void **state)
{
	struct world *w = *state;

	w->fenced = true;
	start(w, "vhcasmctl bindings");
	go_round(w, 5, is_refused);
	assert_true(walk.named);
}

static void test_sm_accepts_and_sends_no_key(void **state)
{
	struct world *w = *state;

	w->sm_accepts = true;
	w->conf.pkey_timeout_ms = 20;
	world_start(w);
	(void)world_domain_start(w, 0, "0x8077");
	walk.fix = "the SM's log";
	go_round(w, 4, NULL);
	assert_true(walk.named);
}

static void test_key_is_not_static_on_the_port(void **state)
{
	struct world *w = *state;

	w->conf.sm_pkeys = VHCA_SM_PKEYS_STATIC;
	world_start(w);
	(void)world_domain_start(w, 0, "0x8077");
	stay(w);
}

static void test_no_vf_can_be_programmed(void **state)
{
	struct world *w = *state;

	w->broken_effect = VHCA_EFFECT_PROGRAM;
	w->broken_vfs = ~0U;
	start(w, NULL);
	while (count(w, VHCA_VF_QUARANTINED) < WORLD_VFS)
		stay(w);
}

static void test_no_vf_can_be_attached(void **state)
{
	struct world *w = *state;

	w->broken_effect = VHCA_EFFECT_ATTACH;
	w->broken_vfs = ~0U;
	start(w, NULL);
	wait_for(w, VHCA_VF_PROGRAMMED);
	while (first_claim(w) && first_claim(w)->vf->state == VHCA_VF_PROGRAMMED)
		stay(w);
	stay(w);
}

static void test_host_is_full(void **state)
{
	struct world *w = *state;

	for (unsigned int i = 0; i < WORLD_VFS; i++)
		w->vfs[i].group_open = true;
	start(w, NULL);
	stay(w);
}

static void eject(struct world *w)
{
	const struct vhca_claim *c = first_claim(w);
	int v = world_vf_of(w, 0, "ib0");

	/* The agent may not have seen yet that it has ejected this one. */
	if (v < 0 || !c || c->vf->state != VHCA_VF_ATTACHED || c->vf->committing)
		return;
	world_vf_unplug(&w->vfs[v]);
	world_look(w, 0);
}

static void test_guest_ejects_its_vf(void **state)
{
	struct world *w = *state;

	start(w, "find out what ejects it");
	go_round(w, 3, eject);
	assert_true(walk.named);
}

/* ---- waits ---- */

static void test_sm_is_silent(void **state)
{
	struct world *w = *state;

	w->fenced = true;
	w->conf.sm_require = VHCA_SM_REQUIRE_ATTACH;
	world_start(w);
	(void)world_domain_start(w, 0, "0x8077");
	wait_for(w, VHCA_VF_CLAIMED);
	stay(w);
}

static void test_libvirt_is_away(void **state)
{
	struct world *w = *state;

	start(w, NULL);
	wait_for(w, VHCA_VF_CLAIMED);
	w->virt_down = true;
	vhca_engine_virt_lost(w->engine);
	stay(w);
}

static void test_guest_does_not_let_go(void **state)
{
	struct world *w = *state;
	static struct answer a; /* comes after the test, or never */

	w->deaf_guest = true;
	start(w, NULL);
	wait_for(w, VHCA_VF_ATTACHED);
	stay(w);
	vhca_engine_release(w->engine, TAILQ_FIRST(&vhca_engine_model(w->engine)->claims), false,
			    on_answer, &a);
	wait_for(w, VHCA_VF_DETACHING);
	stay(w);
}

static void test_vf_cannot_be_scrubbed(void **state)
{
	struct world *w = *state;

	start(w, NULL);
	wait_for(w, VHCA_VF_ATTACHED);
	w->vfs_lie = true;
	world_domain_stop(w, 0);
	stay(w);
	stay(w);
}

#define WALK(f) cmocka_unit_test_setup_teardown(f, setup_walk, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WALK(test_sm_knows_another_owner),
		WALK(test_sm_refuses),
		WALK(test_sm_accepts_and_sends_no_key),
		WALK(test_key_is_not_static_on_the_port),
		WALK(test_no_vf_can_be_programmed),
		WALK(test_no_vf_can_be_attached),
		WALK(test_host_is_full),
		WALK(test_guest_ejects_its_vf),
		WALK(test_sm_is_silent),
		WALK(test_libvirt_is_away),
		WALK(test_guest_does_not_let_go),
		WALK(test_vf_cannot_be_scrubbed),
	};

	return cmocka_run_group_tests_name("way_out", tests, NULL, NULL);
}
