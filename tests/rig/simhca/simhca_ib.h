/* SPDX-License-Identifier: GPL-2.0 */
/* mlx4_ib's half of the simulated adapter. */
#ifndef SIMHCA_IB_H
#define SIMHCA_IB_H

#include "simhca.h"

#include <linux/version.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>

/* What create_cq() gets of a caller in user space. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
typedef struct ib_udata simhca_cq_user;
#else
typedef struct uverbs_attr_bundle simhca_cq_user;
#endif

#define SIMHCA_GUIDS_PER_REC 8	/* NUM_ALIAS_GUID_IN_REC */
#define SIMHCA_GUID_RECS     16 /* NUM_ALIAS_GUID_REC_IN_PORT */
#define SIMHCA_RQ_SIZE	     1024

struct simhca_ib;
struct simhca_qp;

/* hw/mlx4/mlx4_ib.h: struct mlx4_sriov_alias_guid_info_rec_det; one block of eight GUIDs. */
struct simhca_guid_rec {
	u64 required[SIMHCA_GUIDS_PER_REC];	  /* all_recs */
	unsigned int retry[SIMHCA_GUIDS_PER_REC]; /* guids_retry_schedule, seconds */
	u8 pending; /* guid_indexes: bit i = entry i is to be settled with the SM */
	bool idle;  /* MLX4_GUID_INFO_STATUS_IDLE: this block waits for its turn */
	u64 time_to_run;
};

/* struct mlx4_sriov_alias_guid_port_rec_det */
struct simhca_guid_port {
	struct simhca_ib *dev;
	int port;
	bool need_init; /* GUID_STATE_NEED_PORT_INIT */
	struct simhca_guid_rec rec[SIMHCA_GUID_RECS];
	u64 cache[SIMHCA_GUIDS]; /* demux.guid_cache: what GUIDInfo Sets brought */
	struct workqueue_struct *wq;
	struct delayed_work work;
	struct list_head queries;
};

struct simhca_iov;
struct simhca_faults;

struct simhca_ib {
	struct ib_device ib;
	struct simhca *hca;
	atomic_t next_qpn;
	spinlock_t qp_lock; /* qp */
	struct simhca_qp *qp[SIMHCA_MAX_PORTS + 1][2];

	spinlock_t guid_lock; /* ag_work_lock: guid_port, admin GUIDs */
	bool going_down;      /* under guid_lock */
	struct ib_sa_client sa_client;
	struct simhca_guid_port guid_port[SIMHCA_MAX_PORTS + 1];

	struct simhca_iov *iov;
	struct simhca_faults *faults;
};

struct simhca_ucontext {
	struct ib_ucontext ib;
};

struct simhca_pd {
	struct ib_pd ib;
};

struct simhca_ah {
	struct ib_ah ib;
	struct rdma_ah_attr attr;
};

struct simhca_cq {
	struct ib_cq ib;
	spinlock_t lock;
	struct ib_wc *ring;
	unsigned int head;
	unsigned int tail;
	unsigned int size;
	bool armed;
};

struct simhca_rwr {
	struct ib_cqe *cqe;
	struct ib_sge sge;
};

struct simhca_qp {
	struct ib_qp ib;
	spinlock_t lock;
	enum ib_qp_state state;
	struct ib_qp_init_attr init;
	struct simhca_rwr *rq;
	unsigned int head;
	unsigned int tail;
	int port; /* of QP0 and QP1 */
};

static inline struct simhca_ib *simhca_ib(struct ib_device *ib)
{
	return container_of(ib, struct simhca_ib, ib);
}

/* One datagram on its way into QP0 or QP1. */
struct simhca_datagram {
	int port;
	u32 dest_qpn;
	u32 src_qpn;
	u16 slid;
	u16 pkey_index;
	u8 sl;
	const void *mad;
};

/* ib_verbs.c: queries and the ops table */
extern const struct ib_device_ops simhca_ib_ops;
u16 simhca_phys_pkey(struct simhca *hca, int port, int index);
void simhca_phys_gid(struct simhca *hca, int port, int index, union ib_gid *gid);

/* ib_qp.c */
int simhca_alloc_pd(struct ib_pd *pd, struct ib_udata *udata);
int simhca_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata);
int simhca_create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *attr, struct ib_udata *udata);
int simhca_query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr);
int simhca_destroy_ah(struct ib_ah *ah, u32 flags);
int simhca_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr, simhca_cq_user *user);
int simhca_destroy_cq(struct ib_cq *cq, struct ib_udata *udata);
int simhca_poll_cq(struct ib_cq *cq, int n, struct ib_wc *wc);
int simhca_arm_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags);
int simhca_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int simhca_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int simhca_query_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init);
int simhca_destroy_qp(struct ib_qp *qp, struct ib_udata *udata);
int simhca_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);
int simhca_post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad);
struct ib_mr *simhca_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *simhca_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 virt, int access,
				 struct ib_udata *udata);
int simhca_dereg_mr(struct ib_mr *mr, struct ib_udata *udata);
void simhca_qp_deliver(struct simhca_ib *dev, const struct simhca_datagram *dg);

/* ib_mad.c */
int simhca_process_mad(struct ib_device *ib, int flags, u32 port, const struct ib_wc *wc,
		       const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		       size_t *out_size, u16 *out_pkey_index);
void simhca_mad_send(struct simhca_ib *dev, const struct simhca_datagram *dg, u16 dlid);
void simhca_mad_receive(struct simhca *hca, void *priv, const struct simhca_frame *frame);

/* ib_event.c */
void simhca_ib_event(struct simhca *hca, void *priv, const struct simhca_event_info *ev);
void simhca_init_pkeys(struct simhca_ib *dev);

/* ib_iov.c, ib_iov_vf.c */
int simhca_iov_create(struct simhca_ib *dev);
void simhca_iov_destroy(struct simhca_ib *dev);
struct simhca_iov_fn;
struct simhca_iov_fn *simhca_iov_fn_create(struct simhca_ib *dev, struct kobject *iov, int fn);
void simhca_iov_fn_destroy(struct simhca_iov_fn *f);

/* ib_fault.c */
int simhca_faults_create(struct simhca_ib *dev);
void simhca_faults_destroy(struct simhca_ib *dev);

/* ib_alias_guid.c */
int simhca_alias_guid_init(struct simhca_ib *dev);
void simhca_alias_guid_destroy(struct simhca_ib *dev);
void simhca_alias_guid_admin(struct simhca_ib *dev, int port, int index, u64 guid);
void simhca_alias_guid_slave(struct simhca_ib *dev, int port, int fn, bool init);
void simhca_alias_guid_table(struct simhca_ib *dev, int port, int block);
void simhca_alias_guid_invalidate_all(struct simhca_ib *dev, int port);

#endif
