/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A host on which nothing is wrong: of its adapter's two VFs guest vm1 has the first, as ib0. */
#ifndef VHCA_TEST_HEALTHY_HOST_H
#define VHCA_TEST_HEALTHY_HOST_H

#include "agent/explain/explain.h"

#define HEALTHY_GUID UINT64_C(0x02c9ab0000000001)

struct healthy_host {
	struct vhca_model model;
	struct vhca_conf conf;
	struct vhca_explain ex;
	struct vhca_hca *hca;
	struct vhca_vf *vf, *other;
	struct vhca_claim *claim;
	struct vhca_domain *dom;
};

/* cmocka's, of each test: its state is a struct healthy_host. */
int healthy_host_setup(void **state);
int healthy_host_teardown(void **state);

#endif
