// SPDX-License-Identifier: GPL-2.0
/*
 * Queries in the host view: hw/mlx4/main.c (mlx4_ib_query_device, ib_link_query_port,
 * __mlx4_ib_query_gid, __mlx4_ib_query_pkey, mlx4_port_immutable). The driver id is rxe's, because
 * libibverbs' mlx4 provider would map doorbells that do not exist.
 */
#include "simhca_ib.h"

#include <rdma/ib_mad.h>

#define FW_VER		((2ull << 32) | (42 << 16) | 5000)
#define RXE_ABI_VERSION 2 /* rxe_param.h: RXE_UVERBS_ABI_VERSION */
#define BOARD_ID	"SIM_1090120019"

u16 simhca_phys_pkey(struct simhca *hca, int port, int index)
{
	return READ_ONCE(hca->port[port].pkey[index]);
}

void simhca_phys_gid(struct simhca *hca, int port, int index, union ib_gid *gid)
{
	unsigned long flags;

	spin_lock_irqsave(&hca->lock, flags);
	gid->global.subnet_prefix = cpu_to_be64(hca->port[port].gid_prefix);
	gid->global.interface_id = cpu_to_be64(hca->port[port].guid[index]);
	spin_unlock_irqrestore(&hca->lock, flags);
}

static int query_device(struct ib_device *ib, struct ib_device_attr *props, struct ib_udata *uhw)
{
	struct simhca *hca = simhca_ib(ib)->hca;

	memset(props, 0, sizeof(*props));
	props->fw_ver = FW_VER;
	props->device_cap_flags = IB_DEVICE_CHANGE_PHY_PORT | IB_DEVICE_PORT_ACTIVE_EVENT |
				  IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_RC_RNR_NAK_GEN |
				  IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR;
	props->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	props->vendor_id = 0x2c9;
	props->vendor_part_id = hca->pdev->device;
	props->hw_ver = 1;
	props->sys_image_guid = cpu_to_be64(hca->guid + 3);
	props->max_mr_size = ~0ull;
	props->page_size_cap = PAGE_SIZE;
	props->max_qp = 1024;
	props->max_qp_wr = SIMHCA_RQ_SIZE;
	props->max_send_sge = 2;
	props->max_recv_sge = 1;
	props->max_cq = 1024;
	props->max_cqe = 65536;
	props->max_mr = 1024;
	props->max_pd = 1024;
	props->max_ah = INT_MAX;
	props->max_pkeys = simhca_pkey_table_len(hca);
	return 0;
}

/* A VF's port is reported down until the PF's driver says that its GUID was granted. */
static int query_port(struct ib_device *ib, u32 port, struct ib_port_attr *props)
{
	struct simhca *hca = simhca_ib(ib)->hca;
	const struct simhca_port *p = &hca->port[port];
	unsigned long flags;

	spin_lock_irqsave(&hca->lock, flags);
	props->lid = p->lid;
	props->lmc = p->lmc;
	props->sm_lid = p->sm_lid;
	props->sm_sl = p->sm_sl;
	props->state = p->state;
	props->phys_state = p->phys;
	props->port_cap_flags = p->cap_mask;
	props->bad_pkey_cntr = p->pkey_violations;
	props->subnet_timeout = p->subnet_timeout;
	spin_unlock_irqrestore(&hca->lock, flags);
	props->gid_tbl_len = simhca_is_master(hca) || hca->is_vf ? 1 : SIMHCA_GUIDS;
	props->pkey_tbl_len = simhca_pkey_table_len(hca);
	props->max_msg_sz = 1 << 30;
	props->max_mtu = IB_MTU_4096;
	props->active_mtu = IB_MTU_4096;
	props->max_vl_num = 4;
	props->active_width = IB_WIDTH_4X;
	props->active_speed = props->state == IB_PORT_DOWN ? IB_SPEED_SDR : IB_SPEED_QDR;
	return 0;
}

/* __mlx4_ib_query_gid: with functions to share the port, any index but 0 has a null GUID. */
static int query_gid(struct ib_device *ib, u32 port, int index, union ib_gid *gid)
{
	struct simhca *hca = simhca_ib(ib)->hca;

	if (index < 0 || index >= SIMHCA_GUIDS)
		return -EINVAL;
	simhca_phys_gid(hca, port, index, gid);
	if (simhca_is_master(hca) && index)
		gid->global.interface_id = 0;
	return 0;
}

static int query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	struct simhca *hca = simhca_ib(ib)->hca;

	if (index >= simhca_pkey_table_len(hca))
		return -EINVAL;
	*pkey = simhca_phys_pkey(hca, port, index); /* the master's own map is the identity */
	return 0;
}

static int modify_port(struct ib_device *ib, u32 port, int mask, struct ib_port_modify *props)
{
	struct simhca *hca = simhca_ib(ib)->hca;
	unsigned long flags;

	spin_lock_irqsave(&hca->lock, flags);
	hca->port[port].cap_mask |= props->set_port_cap_mask;
	hca->port[port].cap_mask &= ~props->clr_port_cap_mask;
	if (mask & IB_PORT_RESET_QKEY_CNTR)
		hca->port[port].pkey_violations = 0;
	spin_unlock_irqrestore(&hca->lock, flags);
	return 0;
}

/* mlx4_ib_modify_device */
static int modify_device(struct ib_device *ib, int mask, struct ib_device_modify *props)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (simhca_ib(ib)->hca->is_vf)
		return -EOPNOTSUPP;
	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ib->node_desc, props->node_desc, IB_DEVICE_NODE_DESC_MAX);
	return 0;
}

static int port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *immutable)
{
	struct ib_port_attr attr = {};
	int ret;

	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	ret = ib_query_port(ib, port, &attr);
	if (ret)
		return ret;
	immutable->pkey_tbl_len = attr.pkey_tbl_len;
	immutable->gid_tbl_len = attr.gid_tbl_len;
	return 0;
}

static enum rdma_link_layer link_layer(struct ib_device *ib, u32 port)
{
	return IB_LINK_LAYER_INFINIBAND;
}

static void fw_string(struct ib_device *ib, char *text)
{
	snprintf(text, IB_FW_VERSION_NAME_MAX, "%d.%d.%d", (int)(FW_VER >> 32),
		 (int)(FW_VER >> 16 & 0xffff), (int)(FW_VER & 0xffff));
}

static int alloc_ucontext(struct ib_ucontext *context, struct ib_udata *udata)
{
	return 0;
}

static void dealloc_ucontext(struct ib_ucontext *context)
{
}

/* mlx4_ib has it: a PF may go while somebody holds a context, who gets DEVICE_FATAL. */
static void disassociate_ucontext(struct ib_ucontext *context)
{
}

static int no_mmap(struct ib_ucontext *context, struct vm_area_struct *vma)
{
	return -EINVAL;
}

static ssize_t hw_rev_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "1\n");
}
static DEVICE_ATTR_RO(hw_rev);

static ssize_t hca_type_show(struct device *device, struct device_attribute *attr, char *buf)
{
	struct simhca_ib *dev = rdma_device_to_drv_device(device, struct simhca_ib, ib);

	return sysfs_emit(buf, "MT%d\n", dev->hca->pdev->device);
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t board_id_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", BOARD_ID);
}
static DEVICE_ATTR_RO(board_id);

static struct attribute *class_attributes[] = {
	&dev_attr_hw_rev.attr,
	&dev_attr_hca_type.attr,
	&dev_attr_board_id.attr,
	NULL,
};

static const struct attribute_group attribute_group = {.attrs = class_attributes};

const struct ib_device_ops simhca_ib_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_RXE,
	.uverbs_abi_ver = RXE_ABI_VERSION,
	.device_group = &attribute_group,
	.query_device = query_device,
	.query_port = query_port,
	.query_gid = query_gid,
	.query_pkey = query_pkey,
	.modify_port = modify_port,
	.modify_device = modify_device,
	.get_port_immutable = port_immutable,
	.get_link_layer = link_layer,
	.get_dev_fw_str = fw_string,
	.process_mad = simhca_process_mad,
	.alloc_ucontext = alloc_ucontext,
	.dealloc_ucontext = dealloc_ucontext,
	.disassociate_ucontext = disassociate_ucontext,
	.mmap = no_mmap,
	.alloc_pd = simhca_alloc_pd,
	.dealloc_pd = simhca_dealloc_pd,
	.create_ah = simhca_create_ah,
	.create_user_ah = simhca_create_ah,
	.query_ah = simhca_query_ah,
	.destroy_ah = simhca_destroy_ah,
	.create_cq = simhca_create_cq,
	.destroy_cq = simhca_destroy_cq,
	.poll_cq = simhca_poll_cq,
	.req_notify_cq = simhca_arm_cq,
	.create_qp = simhca_create_qp,
	.modify_qp = simhca_modify_qp,
	.query_qp = simhca_query_qp,
	.destroy_qp = simhca_destroy_qp,
	.post_send = simhca_post_send,
	.post_recv = simhca_post_recv,
	.get_dma_mr = simhca_get_dma_mr,
	.reg_user_mr = simhca_reg_user_mr,
	.dereg_mr = simhca_dereg_mr,
	INIT_RDMA_OBJ_SIZE(ib_ah, simhca_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, simhca_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, simhca_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, simhca_qp, ib),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, simhca_ucontext, ib),
};
