/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/agent/explain/healthy_host.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

static struct vhca_vf *add_vf(struct healthy_host *h, uint16_t index)
{
	struct vhca_bdf bdf = {.bus = 1, .fn = (uint8_t)(index + 1)};
	struct vhca_vf *vf = vhca_model_add_vf(h->hca, bdf, index);

	assert_non_null(vf);
	vf->present = vf->hw_known = true;
	vf->state = VHCA_VF_FREE;
	vf->iommu_group = index + 1;
	vf->group_size = 1;
	(void)snprintf(vf->driver, sizeof(vf->driver), "vfio-pci");
	vf->hw.requested = VHCA_GUID_ALL1;
	vf->hw.gid_index = (uint16_t)(index + 1);
	vf->hw.n_virtual = VHCA_PKEY_TABLE_MAX;
	for (unsigned int i = 0; i < VHCA_PKEY_TABLE_MAX; i++)
		vf->hw.map[i] = VHCA_PKEY_UNMAPPED;
	return vf;
}

static void add_hca(struct healthy_host *h)
{
	h->hca = vhca_model_add_hca(&h->model, (struct vhca_bdf){.bus = 1});
	assert_non_null(h->hca);
	h->hca->present = h->hca->wanted = h->hca->managed = true;
	h->hca->port = 1;
	(void)snprintf(h->hca->facts.driver, sizeof(h->hca->facts.driver), "mlx4_core");
	(void)snprintf(h->hca->facts.ibdev, sizeof(h->hca->facts.ibdev), "ibp1s0");
	h->hca->facts.total_vfs = 8;
	h->hca->facts.num_vfs = 2;
	h->hca->ports[0] = (struct vhca_port_state){
		.port = 1,
		.state = 4,
		.phys_state = 5,
		.is_ib = true,
		.lid = 7,
		.sm_lid = 1,
		.port_guid = 0x0002c90300000011,
		.n_pkeys = 3,
		.pkeys = {0xffff, 0x8001, 0x8002},
	};
}

static void give_to_guest(struct healthy_host *h)
{
	struct vhca_dom_hostdev dev = {.host = h->vf->bdf};
	const struct vhca_dom_info info = {.n_hostdevs = 1, .hostdevs = &dev};
	struct vhca_claim *c = h->claim = vhca_model_add_claim(&h->model);

	assert_non_null(c);
	c->vf = h->vf;
	c->sm_answer = VHCA_ANSWER_ACCEPTED;
	c->identity = (struct vhca_identity){.guid = HEALTHY_GUID, .n_pkeys = 1, .pkeys = {0x8001}};
	c->domain.b[0] = 0xd0;
	(void)snprintf(c->domain_name, sizeof(c->domain_name), "vm1");
	(void)snprintf(c->name, sizeof(c->name), "ib0");
	h->vf->claim = c;
	h->vf->state = VHCA_VF_ATTACHED;
	h->vf->granted = true;
	h->vf->hw.requested = h->vf->hw.granted = HEALTHY_GUID;
	h->vf->hw.map[0] = 1;
	h->vf->hw.value[0] = 0x8001;
	h->dom = vhca_model_add_domain(&h->model);
	assert_non_null(h->dom);
	h->dom->info = vhca_dom_info_dup(&info);
	assert_non_null(h->dom->info);
	h->dom->info->uuid = c->domain;
	(void)snprintf(h->dom->info->name, sizeof(h->dom->info->name), "vm1");
	h->dom->info->n_requests = 1;
	(void)snprintf(h->dom->info->requests[0].name, VHCA_NAME_MAX, "ib0");
	(void)snprintf(h->dom->info->requests[0].partition, 16, "0x8001");
}

int healthy_host_setup(void **state)
{
	static struct healthy_host h;

	memset(&h, 0, sizeof(h));
	vhca_model_init(&h.model);
	vhca_conf_set_defaults(&h.conf);
	add_hca(&h);
	h.vf = add_vf(&h, 0);
	h.other = add_vf(&h, 1);
	give_to_guest(&h);
	h.ex = (struct vhca_explain){.model = &h.model,
				     .conf = &h.conf,
				     .sm = &vhca_sm_vhcasm,
				     .sm_reachable = true,
				     .virt_connected = true,
				     .virt_synced = true};
	*state = &h;
	return 0;
}

int healthy_host_teardown(void **state)
{
	struct healthy_host *h = *state;

	vhca_model_done(&h->model);
	return 0;
}
