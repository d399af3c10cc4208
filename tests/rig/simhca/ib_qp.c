// SPDX-License-Identifier: GPL-2.0
/*
 * As much of verbs as ib_mad needs for QP0 and QP1: datagrams of one MAD, in kernel memory. The
 * ib_device has no DMA device, so work requests carry kernel virtual addresses.
 */
#include "simhca_ib.h"

#include <linux/slab.h>
#include <rdma/ib_mad.h>

static struct simhca_qp *to_qp(struct ib_qp *qp)
{
	return container_of(qp, struct simhca_qp, ib);
}

static struct simhca_cq *to_cq(struct ib_cq *cq)
{
	return container_of(cq, struct simhca_cq, ib);
}

int simhca_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

int simhca_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

int simhca_create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *attr, struct ib_udata *udata)
{
	container_of(ah, struct simhca_ah, ib)->attr = *attr->ah_attr;
	return 0;
}

/* ib_mad matches answers to requests by it. */
int simhca_query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr)
{
	*attr = container_of(ah, struct simhca_ah, ib)->attr;
	return 0;
}

int simhca_destroy_ah(struct ib_ah *ah, u32 flags)
{
	return 0;
}

int simhca_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr, simhca_cq_user *user)
{
	struct simhca_cq *c = to_cq(cq);

	if (user)
		return -EOPNOTSUPP; /* no data path for user space */
	spin_lock_init(&c->lock);
	c->size = roundup_pow_of_two(attr->cqe + 1);
	c->ring = kvcalloc(c->size, sizeof(*c->ring), GFP_KERNEL);
	cq->cqe = attr->cqe;
	return c->ring ? 0 : -ENOMEM;
}

int simhca_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	kvfree(to_cq(cq)->ring);
	return 0;
}

static void complete_wr(struct ib_cq *cq, const struct ib_wc *wc)
{
	struct simhca_cq *c = to_cq(cq);
	unsigned long flags;
	bool kick;

	spin_lock_irqsave(&c->lock, flags);
	if (c->head - c->tail < c->size)
		c->ring[c->head++ & (c->size - 1)] = *wc;
	kick = c->armed;
	c->armed = false;
	spin_unlock_irqrestore(&c->lock, flags);
	if (kick && cq->comp_handler)
		cq->comp_handler(cq, cq->cq_context);
}

int simhca_poll_cq(struct ib_cq *cq, int n, struct ib_wc *wc)
{
	struct simhca_cq *c = to_cq(cq);
	unsigned long flags;
	int i;

	spin_lock_irqsave(&c->lock, flags);
	for (i = 0; i < n && c->tail != c->head; i++)
		wc[i] = c->ring[c->tail++ & (c->size - 1)];
	spin_unlock_irqrestore(&c->lock, flags);
	return i;
}

int simhca_arm_cq(struct ib_cq *cq, enum ib_cq_notify_flags notify)
{
	struct simhca_cq *c = to_cq(cq);
	unsigned long flags;
	int missed;

	spin_lock_irqsave(&c->lock, flags);
	c->armed = true;
	missed = (notify & IB_CQ_REPORT_MISSED_EVENTS) && c->head != c->tail;
	spin_unlock_irqrestore(&c->lock, flags);
	return missed;
}

static void publish_qp(struct simhca_ib *dev, struct simhca_qp *q, struct simhca_qp *value)
{
	unsigned long flags;

	if (q->ib.qp_num > 1)
		return;
	spin_lock_irqsave(&dev->qp_lock, flags);
	dev->qp[q->port][q->ib.qp_num] = value;
	spin_unlock_irqrestore(&dev->qp_lock, flags);
}

int simhca_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct simhca_ib *dev = simhca_ib(qp->device);
	struct simhca_qp *q = to_qp(qp);

	if (udata || attr->cap.max_recv_wr > SIMHCA_RQ_SIZE)
		return -EOPNOTSUPP;
	spin_lock_init(&q->lock);
	q->init = *attr;
	q->rq = kvcalloc(SIMHCA_RQ_SIZE, sizeof(*q->rq), GFP_KERNEL);
	if (!q->rq)
		return -ENOMEM;
	if (attr->qp_type == IB_QPT_SMI || attr->qp_type == IB_QPT_GSI) {
		qp->qp_num = attr->qp_type == IB_QPT_GSI;
		q->port = attr->port_num;
	} else {
		qp->qp_num = atomic_inc_return(&dev->next_qpn);
	}
	publish_qp(dev, q, q);
	return 0;
}

static bool take_recv(struct simhca_qp *q, struct simhca_rwr *wr)
{
	unsigned long flags;
	bool found;

	spin_lock_irqsave(&q->lock, flags);
	found = q->head != q->tail;
	if (found)
		*wr = q->rq[q->tail++ & (SIMHCA_RQ_SIZE - 1)];
	spin_unlock_irqrestore(&q->lock, flags);
	return found;
}

static void flush_recv(struct simhca_qp *q)
{
	struct simhca_rwr wr;

	while (take_recv(q, &wr)) {
		struct ib_wc wc = {.wr_cqe = wr.cqe, .status = IB_WC_WR_FLUSH_ERR, .qp = &q->ib};

		complete_wr(q->ib.recv_cq, &wc);
	}
}

/* hw/mlx4/qp.c:__mlx4_ib_modify_qp: QP0 in RTR brings the link up, in RESET or ERR down. */
int simhca_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct simhca *hca = simhca_ib(qp->device)->hca;
	struct simhca_qp *q = to_qp(qp);

	if (!(mask & IB_QP_STATE))
		return 0;
	q->state = attr->qp_state;
	if (q->state == IB_QPS_ERR)
		flush_recv(q);
	if (qp->qp_num || hca->is_vf)
		return 0;
	if (q->state == IB_QPS_RTR)
		simhca_port_client(hca, q->port, true);
	else if (q->state == IB_QPS_ERR || q->state == IB_QPS_RESET)
		simhca_port_client(hca, q->port, false);
	return 0;
}

int simhca_query_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init)
{
	struct simhca_qp *q = to_qp(qp);

	attr->qp_state = q->state;
	attr->cap = q->init.cap;
	*init = q->init;
	return 0;
}

int simhca_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	struct simhca *hca = simhca_ib(qp->device)->hca;
	struct simhca_qp *q = to_qp(qp);

	publish_qp(simhca_ib(qp->device), q, NULL);
	if (!qp->qp_num && !hca->is_vf)
		simhca_port_client(hca, q->port, false);
	kvfree(q->rq);
	return 0;
}

int simhca_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct simhca_qp *q = to_qp(qp);
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&q->lock, flags);
	for (; wr && !ret; wr = wr->next) {
		struct simhca_rwr *r = &q->rq[q->head & (SIMHCA_RQ_SIZE - 1)];

		if (q->head - q->tail >= SIMHCA_RQ_SIZE || wr->num_sge != 1) {
			*bad = wr;
			ret = -ENOMEM;
			continue;
		}
		r->cqe = wr->wr_cqe;
		r->sge = wr->sg_list[0];
		q->head++;
	}
	spin_unlock_irqrestore(&q->lock, flags);
	return ret;
}

/* Puts one MAD into the receive queue of QP0 or QP1; without a posted buffer it is lost. */
void simhca_qp_deliver(struct simhca_ib *dev, const struct simhca_datagram *dg)
{
	struct simhca_rwr wr;
	struct simhca_qp *q;
	unsigned long flags;
	u8 *p;

	if (dg->dest_qpn > 1)
		return;
	spin_lock_irqsave(&dev->qp_lock, flags);
	q = dev->qp[dg->port][dg->dest_qpn];
	if (q && q->state == IB_QPS_RTS && take_recv(q, &wr)) {
		struct ib_wc wc = {
			.wr_cqe = wr.cqe,
			.status = IB_WC_SUCCESS,
			.opcode = IB_WC_RECV,
			.byte_len = sizeof(struct ib_grh) + SIMHCA_MAD_SIZE,
			.qp = &q->ib,
			.src_qp = dg->src_qpn,
			.slid = dg->slid,
			.sl = dg->sl,
			.pkey_index = dg->pkey_index,
			.port_num = dg->port,
		};

		p = (u8 *)(uintptr_t)wr.sge.addr;
		memset(p, 0, sizeof(struct ib_grh));
		memcpy(p + sizeof(struct ib_grh), dg->mad, SIMHCA_MAD_SIZE);
		complete_wr(q->ib.recv_cq, &wc);
	}
	spin_unlock_irqrestore(&dev->qp_lock, flags);
}

static void gather(const struct ib_send_wr *wr, u8 *mad)
{
	size_t at = 0;
	int i;

	memset(mad, 0, SIMHCA_MAD_SIZE);
	for (i = 0; i < wr->num_sge; i++) {
		size_t n = min_t(size_t, wr->sg_list[i].length, SIMHCA_MAD_SIZE - at);

		memcpy(mad + at, (void *)(uintptr_t)wr->sg_list[i].addr, n);
		at += n;
	}
}

static void send_one(struct simhca_qp *q, const struct ib_send_wr *wr)
{
	const struct ib_ud_wr *ud = ud_wr(wr);
	const struct rdma_ah_attr *ah = &container_of(ud->ah, struct simhca_ah, ib)->attr;
	struct ib_wc wc = {.wr_cqe = wr->wr_cqe, .opcode = IB_WC_SEND, .qp = &q->ib};
	u8 mad[SIMHCA_MAD_SIZE];
	struct simhca_datagram dg = {
		.port = q->port,
		.dest_qpn = ud->remote_qpn,
		.src_qpn = q->ib.qp_num,
		.pkey_index = ud->pkey_index,
		.sl = rdma_ah_get_sl(ah),
		.mad = mad,
	};

	gather(wr, mad);
	complete_wr(q->ib.send_cq, &wc);
	simhca_mad_send(simhca_ib(q->ib.device), &dg, rdma_ah_get_dlid(ah));
}

int simhca_post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct simhca_qp *q = to_qp(qp);

	for (; wr; wr = wr->next) {
		if (q->ib.qp_num > 1 || q->state != IB_QPS_RTS) {
			*bad = wr;
			return -EINVAL;
		}
		send_one(q, wr);
	}
	return 0;
}

struct ib_mr *simhca_get_dma_mr(struct ib_pd *pd, int access)
{
	struct ib_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	return mr ? mr : ERR_PTR(-ENOMEM);
}

struct ib_mr *simhca_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 virt, int access,
				 struct ib_udata *udata)
{
	return ERR_PTR(-EOPNOTSUPP);
}

int simhca_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	kfree(mr);
	return 0;
}
