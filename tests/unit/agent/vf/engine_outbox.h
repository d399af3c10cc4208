/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_AGENT_VF_ENGINE_OUTBOX_H
#define VHCA_TESTS_UNIT_AGENT_VF_ENGINE_OUTBOX_H
/*
 * What the engine of a simulated host tells the SM: its reports go through the production outbox,
 * which hands over what is durable.
 */
#include "sm/outbox.h"
#include "tests/sim/host/world.h"
#include "tests/unit/unit.h"

static struct engine_told {
	struct vhca_outbox *outbox;
	bool answers; /* the engine hears that each report is in effect */
	unsigned int bound, withdrawn, members;
	unsigned int bound_before_members; /* before the last declaration */
	uint64_t epochs;		   /* of all bindings, their sum */
	struct vhca_sm_binding last, last_bound;
	uint64_t members_port; /* of the last declaration */
} told;

static inline void on_report(void *arg, const struct vhca_sm_binding *binding,
			     enum vhca_sm_answer answer, const char *reason,
			     struct json_object *doc)
{
	const struct world *w = arg;

	told.bound += binding->bound;
	told.withdrawn += !binding->bound;
	told.last = *binding;
	if (binding->bound) {
		told.last_bound = *binding;
		told.epochs += binding->epoch;
	}
	if (told.answers)
		vhca_engine_sm_answer(w->engine, binding, answer, reason, doc);
}

static inline void on_members(void *arg, uint64_t port_guid, enum vhca_sm_answer answer,
			      const char *reason)
{
	(void)arg;
	(void)answer;
	(void)reason;
	told.members++;
	told.bound_before_members = told.bound;
	told.members_port = port_guid;
}

static inline void engine_outbox_open(struct world *w)
{
	struct vhca_outbox_conf conf = {.ops = &vhca_sm_none, .members = on_members};
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_int_equal(
		vhca_outbox_new(&conf, w->loop, w->store, NULL, on_report, w, &told.outbox, &err),
		0);
	vhca_engine_set_outbox(w->engine, told.outbox);
}

static inline void engine_outbox_close(struct world *w)
{
	(void)w;
	told.outbox = vhca_outbox_free(told.outbox);
}

/* Nothing was told so far. */
static inline void engine_outbox_forget(void)
{
	told = (struct engine_told){.outbox = told.outbox, .answers = told.answers};
}

/* Agents of this world that start from now on have an outbox. */
static inline void engine_outbox_watch(struct world *w)
{
	engine_outbox_forget();
	w->started = engine_outbox_open;
	w->stopping = engine_outbox_close;
}

static inline void engine_outbox_start(struct world *w)
{
	engine_outbox_watch(w);
	world_start(w);
}

#endif
