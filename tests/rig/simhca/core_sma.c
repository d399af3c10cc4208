// SPDX-License-Identifier: GPL-2.0
/*
 * The subnet management agent: what a ConnectX answers in firmware to MAD_IFC in the network view.
 * Attributes after IBA 14.2.5; layouts from rdma/ib_smi.h; table sizes from mlx4 (GuidCap 128,
 * mlx4_core/main.c:mlx4_parav_master_pf_caps and mlx4_SET_PORT: a master tells the SM 127 P_Keys).
 */
#include "simhca.h"

#include <rdma/ib_smi.h>
#include <rdma/ib_verbs.h>

#define STATUS_BAD_ATTRIBUTE	cpu_to_be16(0x000c)
#define STATUS_BAD_FIELD	cpu_to_be16(0x001c)
#define ATTR_EXTENDED_PORT_INFO cpu_to_be16(0xff90) /* MLX4_ATTR_EXTENDED_PORT_INFO */
#define KEYS_PER_BLOCK		32
#define GUIDS_PER_BLOCK		8
#define SPEED_SDR_DDR_QDR	7
#define SPEED_QDR		4

struct sma_call {
	struct simhca *hca;
	struct simhca_port *p;
	int port;
	bool set;
	u32 modifier;
	const u8 *in;
	u8 *out;
};

static __be16 node_description(struct sma_call *c)
{
	/* mlx4_ib's node_desc_override replaces this by the kernel's text */
	snprintf((char *)c->out, IB_SMP_DATA_SIZE, "MT4099 simhca %s", pci_name(c->hca->pdev));
	return c->set ? STATUS_BAD_ATTRIBUTE : 0;
}

static __be16 node_info(struct sma_call *c)
{
	struct ib_node_info *n = (struct ib_node_info *)c->out;

	if (c->set)
		return STATUS_BAD_ATTRIBUTE;
	n->base_version = 1;
	n->class_version = 1;
	n->node_type = RDMA_NODE_IB_CA;
	n->num_ports = c->hca->num_ports;
	n->sys_guid = cpu_to_be64(c->hca->guid + 3);
	n->node_guid = cpu_to_be64(c->hca->guid);
	n->port_guid = cpu_to_be64(simhca_port_guid(c->hca, c->port));
	n->partition_cap = cpu_to_be16(simhca_pkey_table_len(c->hca));
	n->device_id = cpu_to_be16(c->hca->pdev->device);
	n->local_port_num = c->port;
	n->vendor_id[1] = 0x02;
	n->vendor_id[2] = 0xc9;
	return 0;
}

/* State change by the SM: only INIT -> ARMED -> ACTIVE, and DOWN to retrain (IBA 14.2.5.6). */
static __be16 set_port_state(struct sma_call *c, u8 state)
{
	switch (state) {
	case IB_PORT_NOP:
		return 0;
	case IB_PORT_DOWN:
		if (c->p->state != IB_PORT_DOWN)
			simhca_port_set_state(c->hca, c->port, IB_PORT_INIT);
		return 0;
	case IB_PORT_ARMED:
		if (c->p->state != IB_PORT_INIT && c->p->state != IB_PORT_ARMED)
			return STATUS_BAD_FIELD;
		break;
	case IB_PORT_ACTIVE:
		if (c->p->state != IB_PORT_ARMED && c->p->state != IB_PORT_ACTIVE)
			return STATUS_BAD_FIELD;
		break;
	default:
		return STATUS_BAD_FIELD;
	}
	simhca_port_set_state(c->hca, c->port, state);
	return 0;
}

/*
 * Events in the order of hw/mlx4/mad.c:handle_port_mgmt_change_event. A new SM LID raises none:
 * mlx4 only updates its address handle (MSTR_SM_CHANGE_MASK).
 */
static __be16 port_info_set(struct sma_call *c)
{
	const struct ib_port_info *in = (const struct ib_port_info *)c->in;
	struct simhca_port *p = c->p;
	u16 lid = be16_to_cpu(in->lid);
	u64 prefix = be64_to_cpu(in->gid_prefix);
	bool lid_changed = lid != p->lid;
	bool prefix_changed = prefix != p->gid_prefix;

	if (!lid || lid >= be16_to_cpu(IB_MULTICAST_LID_BASE))
		return STATUS_BAD_FIELD;
	p->mkey = be64_to_cpu(in->mkey);
	p->mkey_lease = be16_to_cpu(in->mkey_lease_period);
	p->mkeyprot = in->mkeyprot_resv_lmc >> 6;
	p->lmc = in->mkeyprot_resv_lmc & 7;
	p->gid_prefix = prefix;
	p->lid = lid;
	p->sm_lid = be16_to_cpu(in->sm_lid);
	p->sm_sl = in->neighbormtu_mastersmsl & 0xf;
	p->vl_high_limit = in->vl_high_limit;
	p->subnet_timeout = in->clientrereg_resv_subnetto & 0x1f;
	if (in->operationalvl_pei_peo_fpi_fpo >> 4)
		p->operational_vls = in->operationalvl_pei_peo_fpi_fpo >> 4;
	if (lid_changed)
		simhca_post(c->hca, SIMHCA_EV_LID_CHANGE, c->port, 0);
	if (prefix_changed)
		simhca_post(c->hca, SIMHCA_EV_GID_PREFIX, c->port, 0);
	if (in->clientrereg_resv_subnetto & 0x80)
		simhca_post(c->hca, SIMHCA_EV_CLIENT_REREG, c->port, 0);
	return set_port_state(c, in->linkspeed_portstate & 0xf);
}

static void port_info_get(struct sma_call *c)
{
	struct ib_port_info *out = (struct ib_port_info *)c->out;
	const struct simhca_port *p = c->p;

	out->mkey = cpu_to_be64(p->mkey);
	out->gid_prefix = cpu_to_be64(p->gid_prefix);
	out->lid = cpu_to_be16(p->lid);
	out->sm_lid = cpu_to_be16(p->sm_lid);
	out->cap_mask = cpu_to_be32(p->cap_mask);
	out->mkey_lease_period = cpu_to_be16(p->mkey_lease);
	out->local_port_num = c->port;
	out->link_width_enabled = IB_WIDTH_1X | IB_WIDTH_4X;
	out->link_width_supported = IB_WIDTH_1X | IB_WIDTH_4X;
	out->link_width_active = IB_WIDTH_4X;
	out->linkspeed_portstate = SPEED_SDR_DDR_QDR << 4 | p->state;
	out->portphysstate_linkdown = p->phys << 4 | IB_PORT_PHYS_STATE_POLLING;
	out->mkeyprot_resv_lmc = p->mkeyprot << 6 | p->lmc;
	out->linkspeedactive_enabled = SPEED_QDR << 4 | SPEED_SDR_DDR_QDR;
	out->neighbormtu_mastersmsl = IB_MTU_4096 << 4 | p->sm_sl;
	out->vlcap_inittype = 4 << 4; /* VL0-7 */
	out->vl_high_limit = p->vl_high_limit;
	out->vl_arb_high_cap = 8;
	out->vl_arb_low_cap = 8;
	out->inittypereply_mtucap = IB_MTU_4096;
	out->operationalvl_pei_peo_fpi_fpo = p->operational_vls << 4;
	out->pkey_violations = cpu_to_be16(min_t(u32, p->pkey_violations, 0xffff));
	out->guid_cap = SIMHCA_GUIDS;
	out->clientrereg_resv_subnetto = p->subnet_timeout;
	out->resv_resptimevalue = 16;
	out->localphyerrors_overrunerrors = 0x88;
}

static __be16 port_info(struct sma_call *c)
{
	__be16 status = 0;

	if (c->modifier && c->modifier != c->port)
		return STATUS_BAD_FIELD;
	if (c->set)
		status = port_info_set(c);
	port_info_get(c);
	return status;
}

static __be16 pkey_table(struct sma_call *c)
{
	unsigned int block = c->modifier & 0xffff;
	const __be16 *in = (const __be16 *)c->in;
	__be16 *out = (__be16 *)c->out;
	u32 changed = 0;
	int i, n;

	if (block >= SIMHCA_PKEYS / KEYS_PER_BLOCK)
		return STATUS_BAD_FIELD;
	for (i = 0; i < KEYS_PER_BLOCK; i++) {
		n = block * KEYS_PER_BLOCK + i;
		if (c->set && n < simhca_pkey_table_len(c->hca) &&
		    c->p->pkey[n] != be16_to_cpu(in[i])) {
			c->p->pkey[n] = be16_to_cpu(in[i]);
			changed |= 1u << i;
		}
		out[i] = cpu_to_be16(c->p->pkey[n]);
	}
	if (changed) {
		simhca_table_changed(c->hca);
		simhca_post_bitmap(c->hca, SIMHCA_EV_PKEY_TABLE, c->port, block, changed);
	}
	return 0;
}

/* Entry 0 of block 0 is the port's own GUID and read only (IBA 14.2.5.5). */
static __be16 guid_info(struct sma_call *c)
{
	const __be64 *in = (const __be64 *)c->in;
	__be64 *out = (__be64 *)c->out;
	int i, n;

	if (c->modifier >= SIMHCA_GUIDS / GUIDS_PER_BLOCK)
		return STATUS_BAD_FIELD;
	for (i = 0; i < GUIDS_PER_BLOCK; i++) {
		n = c->modifier * GUIDS_PER_BLOCK + i;
		if (c->set && n)
			c->p->guid[n] = be64_to_cpu(in[i]);
		out[i] = cpu_to_be64(c->p->guid[n]);
	}
	if (c->set) {
		simhca_table_changed(c->hca);
		simhca_post(c->hca, SIMHCA_EV_GUID_INFO, c->port, c->modifier);
	}
	return 0;
}

static __be16 sl_to_vl(struct sma_call *c)
{
	if (c->set)
		memcpy(c->p->sl2vl, c->in, sizeof(c->p->sl2vl));
	memcpy(c->out, c->p->sl2vl, sizeof(c->p->sl2vl));
	return 0;
}

static __be16 vl_arbitration(struct sma_call *c)
{
	unsigned int part = c->modifier >> 16;

	if (part < 1 || part > ARRAY_SIZE(c->p->vlarb))
		return STATUS_BAD_FIELD;
	if (c->set)
		memcpy(c->p->vlarb[part - 1], c->in, IB_SMP_DATA_SIZE);
	memcpy(c->out, c->p->vlarb[part - 1], IB_SMP_DATA_SIZE);
	return 0;
}

/* MLNXExtendedPortInfo, which OpenSM asks every Mellanox device for: no FDR10, nothing enabled. */
static __be16 extended_port_info(struct sma_call *c)
{
	return 0;
}

static const struct {
	__be16 attribute;
	__be16 (*handle)(struct sma_call *call);
} attributes[] = {
	{IB_SMP_ATTR_NODE_DESC, node_description},  {IB_SMP_ATTR_NODE_INFO, node_info},
	{IB_SMP_ATTR_PORT_INFO, port_info},	    {IB_SMP_ATTR_PKEY_TABLE, pkey_table},
	{IB_SMP_ATTR_GUID_INFO, guid_info},	    {IB_SMP_ATTR_SL_TO_VL_TABLE, sl_to_vl},
	{IB_SMP_ATTR_VL_ARB_TABLE, vl_arbitration}, {ATTR_EXTENDED_PORT_INFO, extended_port_info},
};

/* Answers one Get or Set. The caller has sorted out the methods and SMInfo. */
void simhca_sma(struct simhca *hca, int port, const struct ib_smp *in, struct ib_smp *out)
{
	struct sma_call call = {
		.hca = hca,
		.p = &hca->port[port],
		.port = port,
		.set = in->method == IB_MGMT_METHOD_SET,
		.modifier = be32_to_cpu(in->attr_mod),
		.in = in->data,
		.out = out->data,
	};
	__be16 status = STATUS_BAD_ATTRIBUTE;
	unsigned long flags;
	size_t i;

	memcpy(out, in, sizeof(*out));
	memset(out->data, 0, sizeof(out->data));
	out->method = IB_MGMT_METHOD_GET_RESP;
	spin_lock_irqsave(&hca->lock, flags);
	for (i = 0; i < ARRAY_SIZE(attributes); i++)
		if (attributes[i].attribute == in->attr_id)
			status = attributes[i].handle(&call);
	spin_unlock_irqrestore(&hca->lock, flags);
	out->status = status;
}
EXPORT_SYMBOL_GPL(simhca_sma);

/* debugfs: the table changes as if the SM had written it. */
int simhca_sma_set_pkey(struct simhca *hca, int port, int index, u16 pkey)
{
	unsigned long flags;

	if (index < 0 || index >= simhca_pkey_table_len(hca))
		return -EINVAL;
	spin_lock_irqsave(&hca->lock, flags);
	hca->port[port].pkey[index] = pkey;
	simhca_table_changed(hca);
	spin_unlock_irqrestore(&hca->lock, flags);
	simhca_post_bitmap(hca, SIMHCA_EV_PKEY_TABLE, port, index / KEYS_PER_BLOCK,
			   1u << index % KEYS_PER_BLOCK);
	return 0;
}

/* debugfs: every key but the first moves to another index. */
void simhca_sma_rotate_pkeys(struct simhca *hca, int port)
{
	u16 *key = hca->port[port].pkey;
	unsigned long flags;
	int last = 0, i;
	u16 first;

	spin_lock_irqsave(&hca->lock, flags);
	for (i = 1; i < simhca_pkey_table_len(hca); i++)
		if (key[i])
			last = i;
	if (last > 1) {
		first = key[1];
		memmove(&key[1], &key[2], (last - 1) * sizeof(*key));
		key[last] = first;
		simhca_table_changed(hca);
	}
	spin_unlock_irqrestore(&hca->lock, flags);
	for (i = 0; last > 1 && i <= last / KEYS_PER_BLOCK; i++)
		simhca_post_bitmap(hca, SIMHCA_EV_PKEY_TABLE, port, i, ~0u);
}
