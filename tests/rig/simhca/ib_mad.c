// SPDX-License-Identifier: GPL-2.0
/*
 * MADs: who answers them (hw/mlx4/mad.c:ib_process_mad), and how QP0 and QP1 reach the cable. The
 * P_Key travels by value and is looked up in the receiver's table, as the hardware checks it.
 */
#include "simhca_ib.h"

#include <rdma/ib_mad.h>
#include <rdma/ib_smi.h>

#define PMA_DATA 64 /* offset of a performance MAD's attribute */

static bool is_smp(const struct ib_mad_hdr *hdr)
{
	return hdr->mgmt_class == IB_MGMT_CLASS_SUBN_LID_ROUTED ||
	       hdr->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE;
}

/* mad.c:node_desc_override */
static void override_node_desc(struct ib_device *ib, struct ib_smp *out)
{
	if (out->attr_id == IB_SMP_ATTR_NODE_DESC && !out->status)
		memcpy(out->data, ib->node_desc, IB_DEVICE_NODE_DESC_MAX);
}

static int process_smp(struct simhca_ib *dev, u32 port, const struct ib_mad *in, struct ib_mad *out)
{
	struct ib_smp *smp = (struct ib_smp *)out;

	if (in->mad_hdr.method == IB_MGMT_METHOD_TRAP_REPRESS)
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED;
	if (in->mad_hdr.method != IB_MGMT_METHOD_GET && in->mad_hdr.method != IB_MGMT_METHOD_SET)
		return IB_MAD_RESULT_SUCCESS;
	if (in->mad_hdr.attr_id == IB_SMP_ATTR_SM_INFO)
		return IB_MAD_RESULT_SUCCESS; /* for the SM in user space, or unanswered */
	if (dev->hca->is_vf)
		return IB_MAD_RESULT_FAILURE;
	simhca_sma(dev->hca, port, (const struct ib_smp *)in, smp);
	override_node_desc(&dev->ib, smp);
	if (in->mad_hdr.mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		smp->status |= IB_SMP_DIRECTION;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

/* Performance management: all counters are zero. */
static int process_pma(const struct ib_mad *in, struct ib_mad *out)
{
	if (in->mad_hdr.method != IB_MGMT_METHOD_GET && in->mad_hdr.method != IB_MGMT_METHOD_SET)
		return IB_MAD_RESULT_SUCCESS;
	*out = *in;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	memset((u8 *)out + PMA_DATA, 0, sizeof(*out) - PMA_DATA);
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

int simhca_process_mad(struct ib_device *ib, int flags, u32 port, const struct ib_wc *wc,
		       const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		       size_t *out_size, u16 *out_pkey_index)
{
	u16 slid = wc ? wc->slid : be16_to_cpu(IB_LID_PERMISSIVE);

	if (in->mad_hdr.method == IB_MGMT_METHOD_TRAP && !slid)
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED;
	if (is_smp(&in->mad_hdr))
		return process_smp(simhca_ib(ib), port, in, out);
	if (in->mad_hdr.mgmt_class == IB_MGMT_CLASS_PERF_MGMT)
		return process_pma(in, out);
	return IB_MAD_RESULT_SUCCESS;
}

/* A port without a LID owns none; above all not 0, which other new ports have as well. */
static bool for_this_port(struct simhca *hca, int port, u16 dlid)
{
	return dlid && dlid == READ_ONCE(hca->port[port].lid);
}

/*
 * A purely directed-route SMP has permissive LIDs on both ends (IBA 14.2.2.2). The receiver answers
 * to the SLID it saw: with 0 in it, the answers of the first sweep would never come back.
 */
static u16 source_lid(struct simhca *hca, int port, u16 dlid)
{
	if (dlid == be16_to_cpu(IB_LID_PERMISSIVE))
		return dlid;
	return READ_ONCE(hca->port[port].lid);
}

void simhca_mad_send(struct simhca_ib *dev, const struct simhca_datagram *dg, u16 dlid)
{
	struct simhca *hca = dev->hca;
	struct simhca_datagram loop = *dg;
	struct simhca_frame frame = {
		.kind = SIMHCA_FRAME_MAD,
		.port = dg->port,
		.dest_qpn = cpu_to_be32(dg->dest_qpn),
		.src_qpn = cpu_to_be32(dg->src_qpn),
		.dlid = cpu_to_be16(dlid),
		.sl = dg->sl,
	};

	loop.slid = source_lid(hca, dg->port, dlid);
	if (for_this_port(hca, dg->port, dlid)) {
		simhca_qp_deliver(dev, &loop);
		return;
	}
	frame.slid = cpu_to_be16(loop.slid);
	frame.pkey = cpu_to_be16(simhca_phys_pkey(hca, dg->port, dg->pkey_index));
	memcpy(frame.mad, dg->mad, SIMHCA_MAD_SIZE);
	simhca_wire_send(hca, &frame);
}

/* IBA 10.9.3: same base, and not both limited. SMPs are not checked. */
static int match_pkey(struct simhca *hca, int port, u16 pkey)
{
	int i;

	for (i = 0; i < simhca_pkey_table_len(hca); i++) {
		u16 own = simhca_phys_pkey(hca, port, i);

		if ((own & 0x7fff) && (own & 0x7fff) == (pkey & 0x7fff) && (own | pkey) & 0x8000)
			return i;
	}
	return -1;
}

void simhca_mad_receive(struct simhca *hca, void *priv, const struct simhca_frame *frame)
{
	struct simhca_datagram dg = {
		.port = frame->port,
		.dest_qpn = be32_to_cpu(frame->dest_qpn),
		.src_qpn = be32_to_cpu(frame->src_qpn),
		.slid = be16_to_cpu(frame->slid),
		.sl = frame->sl,
		.mad = frame->mad,
	};
	u16 dlid = be16_to_cpu(frame->dlid);
	int index;

	if (!for_this_port(hca, dg.port, dlid) && dlid < be16_to_cpu(IB_MULTICAST_LID_BASE))
		return;
	if (dg.dest_qpn) {
		index = match_pkey(hca, dg.port, be16_to_cpu(frame->pkey));
		if (index < 0) {
			hca->port[dg.port].pkey_violations++;
			return;
		}
		dg.pkey_index = index;
	}
	simhca_qp_deliver(priv, &dg);
}
