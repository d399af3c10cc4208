// SPDX-License-Identifier: GPL-2.0
/*
 * The module mlx4_ib: one ib_device per adapter. Order as in hw/mlx4/main.c:mlx4_ib_add:
 * ib_register_device (uevent "add"), alias GUID service and iov/ (mlx4_ib_init_sriov), and last
 * init_pkeys, which resets all P_Key maps. On real adapters commands to the firmware lie between;
 * add_delay_ms stands for them, so that the races of a reader are real ones.
 */
#include "simhca_ib.h"

#include <linux/delay.h>
#include <linux/module.h>

static unsigned int add_delay_ms = 20;
module_param(add_delay_ms, uint, 0644);
MODULE_PARM_DESC(add_delay_ms,
		 "simhca: pause before iov/ appears, and again before maps are reset");

static int sm_guid_assign;
module_param(sm_guid_assign, int, 0444);
MODULE_PARM_DESC(sm_guid_assign,
		 "Enable SM alias_GUID assignment if sm_guid_assign > 0 (Default: 0)");

static void init_device(struct simhca_ib *dev, struct simhca *hca)
{
	dev->hca = hca;
	spin_lock_init(&dev->qp_lock);
	spin_lock_init(&dev->guid_lock);
	atomic_set(&dev->next_qpn, 0x40);
	dev->ib.node_type = RDMA_NODE_IB_CA;
	dev->ib.phys_port_cnt = hca->num_ports;
	dev->ib.num_comp_vectors = 1;
	dev->ib.node_guid = cpu_to_be64(hca->guid);
	dev->ib.dev.parent = &hca->pdev->dev;
	strscpy(dev->ib.node_desc, hca->family->node_desc, sizeof(dev->ib.node_desc));
	ib_set_device_ops(&dev->ib, &simhca_ib_ops);
	if (hca->family->ib_ops)
		ib_set_device_ops(&dev->ib, hca->family->ib_ops);
}

/* mlx4_ib_init_sriov, and for sm_guid_assign mlx4_ib_init_alias_guid_service */
static int init_sriov(struct simhca_ib *dev)
{
	struct simhca *hca = dev->hca;
	int fn, port, ret;

	if (!simhca_is_master(hca))
		return 0;
	if (sm_guid_assign)
		for (fn = 1; fn < SIMHCA_MAX_FUNCS; fn++)
			for (port = 1; port <= hca->num_ports; port++)
				hca->func[fn].admin_guid[port] = 0;
	ret = simhca_alias_guid_init(dev);
	if (ret)
		return ret;
	ret = simhca_iov_create(dev);
	if (ret)
		simhca_alias_guid_destroy(dev);
	return ret;
}

static void close_sriov(struct simhca_ib *dev)
{
	if (!simhca_is_master(dev->hca))
		return;
	simhca_iov_destroy(dev);
	simhca_alias_guid_destroy(dev);
}

static void *add(struct simhca *hca)
{
	struct simhca_ib *dev = ib_alloc_device(simhca_ib, ib);

	if (!dev)
		return NULL;
	init_device(dev, hca);
	simhca_client_ready(hca, dev);
	if (ib_register_device(&dev->ib, hca->family->ib_name, NULL))
		goto free;
	msleep(add_delay_ms);
	if (init_sriov(dev))
		goto unregister;
	msleep(add_delay_ms);
	if (simhca_is_master(hca))
		simhca_init_pkeys(dev);
	return dev;

unregister:
	ib_unregister_device(&dev->ib);
free:
	simhca_client_gone(hca);
	ib_dealloc_device(&dev->ib);
	return NULL;
}

/* mlx4_ib_remove; the QPs of ib_mad go with ib_unregister_device and take the link down. */
static void remove(struct simhca *hca, void *priv)
{
	struct simhca_ib *dev = priv;

	close_sriov(dev);
	ib_unregister_device(&dev->ib);
	ib_dealloc_device(&dev->ib);
}

static const struct simhca_client client = {
	.add = add,
	.remove = remove,
	.event = simhca_ib_event,
	.receive = simhca_mad_receive,
};

static int __init simhca_ib_init(void)
{
	return simhca_register_client(&client);
}

static void __exit simhca_ib_exit(void)
{
	simhca_unregister_client(&client);
}

module_init(simhca_ib_init);
module_exit(simhca_ib_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("simhca: simulated ConnectX-3 for tests, shadows the real mlx4_ib");
