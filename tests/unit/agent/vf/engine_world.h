/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_AGENT_VF_ENGINE_WORLD_H
#define VHCA_TESTS_UNIT_AGENT_VF_ENGINE_WORLD_H
/* What tests of the engine on one simulated host (tests/sim/host/world.h) have in common. */
#include <stdio.h>

#include "agent/vf/engine.h"
#include "tests/sim/host/world.h"
#include "tests/unit/unit.h"

static inline int setup(void **state)
{
	static struct world w;

	world_init(&w);
	*state = &w;
	return 0;
}

static inline int teardown(void **state)
{
	world_done(*state);
	return 0;
}

static inline unsigned int count(const struct world *w, enum vhca_vf_state s)
{
	struct vhca_hca *hca = TAILQ_FIRST(&vhca_engine_model(w->engine)->hcas);
	unsigned int n = 0;
	struct vhca_vf *vf;

	TAILQ_FOREACH (vf, &hca->vfs, link)
		n += vf->state == s && !vf->committing;
	return n;
}

static inline struct vhca_vf *engine_vf(const struct world *w, unsigned int v)
{
	return vhca_model_vf(vhca_engine_model(w->engine), w->vfs[v].bdf);
}

/* Those of the second adapter, too. */
static inline bool all_free(const struct world *w, const void *arg)
{
	(void)arg;
	for (unsigned int v = 0; v < WORLD_VFS; v++) {
		const struct vhca_vf *vf = engine_vf(w, v);

		if (!vf || vf->state != VHCA_VF_FREE || vf->committing)
			return false;
	}
	return true;
}

/* An agent that has just started has its VFs ready. */
static inline void settle_free(struct world *w)
{
	assert_true(world_until(w, all_free, NULL));
	world_settle(w);
}

/* Domain *arg has VF ib0, programmed for it, granted. */
static inline bool served(const struct world *w, const void *arg)
{
	unsigned int i = *(const unsigned int *)arg;
	int v = world_vf_of(w, i, "ib0");
	const struct vhca_claim *c =
		vhca_model_claim_of(vhca_engine_model(w->engine), &w->domains[i].info.uuid, "ib0");

	return v >= 0 && c && c->vf && c->vf->state == VHCA_VF_ATTACHED && c->vf->granted &&
	       w->vfs[v].guid == c->identity.guid;
}

static inline bool nothing_attached(const struct world *w, const void *arg)
{
	(void)arg;
	return count(w, VHCA_VF_FREE) == WORLD_VFS &&
	       TAILQ_EMPTY(&vhca_engine_model(w->engine)->claims);
}

static const unsigned int zero = 0, one = 1;

static inline const struct vhca_claim *first_claim(const struct world *w)
{
	return TAILQ_FIRST(&vhca_engine_model(w->engine)->claims);
}

struct answer {
	bool called, ok;
	char code[VHCA_ERROR_CODE_MAX];
	char msg[256], hint[256];
};

static inline void on_answer(void *arg, const struct vhca_claim *claim,
			     const struct vhca_error *err)
{
	struct answer *a = arg;

	(void)claim;
	assert_false(a->called);
	a->called = true;
	a->ok = !err;
	(void)snprintf(a->code, sizeof(a->code), "%s", err ? err->code : "");
	(void)snprintf(a->msg, sizeof(a->msg), "%s", err ? err->msg : "");
	(void)snprintf(a->hint, sizeof(a->hint), "%s", err ? err->hint : "");
}

static inline bool answered(const struct world *w, const void *arg)
{
	(void)w;
	return ((const struct answer *)arg)->called;
}

/* The agent is killed after so many rounds, and another life begins. */
static inline void kill_after(struct world *w, unsigned int rounds)
{
	for (unsigned int i = 0; i < rounds; i++)
		world_round(w, 0);
	world_kill(w);
	world_start(w);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
