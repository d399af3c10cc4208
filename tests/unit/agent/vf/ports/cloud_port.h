/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_AGENT_VF_PORTS_CLOUD_PORT_H
#define VHCA_TESTS_UNIT_AGENT_VF_PORTS_CLOUD_PORT_H
/* A cloud's port of domain 0, with VF 1. */
#include "tests/unit/agent/vf/engine_world.h"

#define GUID UINT64_C(0xfa163e0000123456)

static inline struct vhca_claim_request want(const struct world *w)
{
	struct vhca_claim_request req = {
		.origin = VHCA_ORIGIN_CLAIM,
		.domain_name = "vm0",
		.domain = w->domains[0].info.uuid,
		.vf = {.numa = -1, .fabric = "default", .guid = GUID},
		.has_bdf = true,
		.bdf = w->vfs[1].bdf,
		.no_partition = true,
	};

	vhca_port_name(GUID, req.vf.name);
	return req;
}

static inline struct answer put(struct world *w, const struct vhca_claim_request *req)
{
	struct answer a = {0};

	vhca_engine_claim_port(w->engine, req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	return a;
}

static inline struct vhca_claim *port(const struct world *w)
{
	return vhca_model_claim_by_guid(vhca_engine_model(w->engine), GUID);
}

static inline bool rests_attached(const struct world *w, const void *arg)
{
	const struct vhca_vf *vf = engine_vf(w, 1);

	(void)arg;
	return vf->state == VHCA_VF_ATTACHED && !vf->committing && !vf->reprogram &&
	       vf->host.effect == VHCA_EFFECT_NONE;
}

static inline bool is_detaching(const struct world *w, const void *arg)
{
	(void)arg;
	return engine_vf(w, 1)->state == VHCA_VF_DETACHING && !engine_vf(w, 1)->committing;
}

static inline bool is_reserved(const struct world *w, const void *arg)
{
	const struct vhca_vf *vf = engine_vf(w, 1);

	(void)arg;
	return vf->state == VHCA_VF_CLAIMED && !vf->committing &&
	       vf->claim->custody == VHCA_CUSTODY_RESERVED;
}

static inline void attach(struct world *w)
{
	world_plug(w, 1, 0, "port");
	assert_true(world_until(w, rests_attached, NULL));
	world_settle(w);
}

static inline void settle_long(struct world *w)
{
	for (unsigned int i = 0; i < 20; i++)
		world_settle(w);
}

static inline struct answer release(struct world *w)
{
	struct answer a = {0};

	vhca_engine_release_port(w->engine, port(w), on_answer, &a);
	assert_true(world_until(w, answered, &a));
	return a;
}

#endif
