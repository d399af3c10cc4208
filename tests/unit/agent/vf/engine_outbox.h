/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_AGENT_VF_ENGINE_OUTBOX_H
#define VHCA_TESTS_UNIT_AGENT_VF_ENGINE_OUTBOX_H
/*
 * An outbox for the engine of one simulated host that hands over what is durable: a test sees what
 * the SM would be told.
 */
#include "sm/outbox.h"

#include "tests/sim/host/world.h"
#include "tests/unit/unit.h"

/* members: NULL, or who is told of declarations; arg is that of both. */
static inline void engine_outbox_open(struct world *w, vhca_outbox_fn on_report,
				      void (*members)(void *arg, uint64_t port_guid,
						      enum vhca_sm_answer answer,
						      const char *reason),
				      void *arg, struct vhca_outbox **ret)
{
	struct vhca_outbox_conf conf = {.ops = &vhca_sm_none, .members = members};
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_int_equal(vhca_outbox_new(&conf, w->loop, w->store, NULL, on_report, arg, ret, &err),
			 0);
	vhca_engine_set_outbox(w->engine, *ret);
}

#endif
