// SPDX-License-Identifier: GPL-2.0
/*
 * The network device of a mlx5 PF, as rtnetlink sees it: type InfiniBand, child of a PCI function with VFs, with the VF operations of
 * drivers/infiniband/ulp/ipoib/ipoib_main.c (ipoib_netdev_ops_pf) and the rules of drivers/infiniband/hw/mlx5/ib_virt.c: what is
 * read back as GUIDs is the driver's memory, the link policy is firmware's. Carries no traffic.
 *
 *   insmod simvport.ko pf=0000:01:00.0 [refuse_zero=1] [fail=ERRNO]
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_infiniband.h>
#include <linux/if_link.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <net/rtnetlink.h>

#define VFS_MAX 128

struct simvport_vf {
	u64 node, port; /* the driver's memory: 0 until set */
	int policy;
};

struct simvport {
	struct pci_dev *pf;
	struct simvport_vf vfs[VFS_MAX];
};

static char *pf = "";
module_param(pf, charp, 0444);
MODULE_PARM_DESC(pf, "PCI address of the function that is the device's parent");
static bool refuse_zero;
module_param(refuse_zero, bool, 0644);
MODULE_PARM_DESC(refuse_zero, "firmware takes no zero GUID");
static int fail;
module_param(fail, int, 0644);
MODULE_PARM_DESC(fail, "errno of every change from now on; 0 = none");

static struct net_device *simvport_dev;

/* mlx5_core_modify_hca_vport_context: a vport that is not enabled is a firmware status, mapped to EINVAL */
static int check(struct net_device *dev, int vf)
{
	struct simvport *s = netdev_priv(dev);

	if (fail)
		return -fail;
	return vf < 0 || vf >= pci_num_vf(s->pf) || vf >= VFS_MAX ? -EINVAL : 0;
}

/* ipoib_set_vf_guid, mlx5_ib_set_vf_guid */
static int simvport_set_vf_guid(struct net_device *dev, int vf, u64 guid, int type)
{
	struct simvport *s = netdev_priv(dev);
	int err = check(dev, vf);

	if (type != IFLA_VF_IB_NODE_GUID && type != IFLA_VF_IB_PORT_GUID)
		return -EINVAL;
	if (!err && refuse_zero && guid == 0)
		err = -EINVAL;
	if (err)
		return err;
	netdev_info(dev, "vf %d %s_guid %016llx\n", vf,
		    type == IFLA_VF_IB_NODE_GUID ? "node" : "port", guid);
	if (type == IFLA_VF_IB_NODE_GUID)
		s->vfs[vf].node = guid;
	else
		s->vfs[vf].port = guid;
	return 0;
}

/* mlx5_ib_get_vf_guid */
static int simvport_get_vf_guid(struct net_device *dev, int vf, struct ifla_vf_guid *node_guid,
				struct ifla_vf_guid *port_guid)
{
	struct simvport *s = netdev_priv(dev);

	if (vf < 0 || vf >= VFS_MAX)
		return -EINVAL;
	node_guid->guid = s->vfs[vf].node;
	port_guid->guid = s->vfs[vf].port;
	return 0;
}

/* mlx5_ib_set_vf_link_state */
static int simvport_set_vf_link_state(struct net_device *dev, int vf, int state)
{
	struct simvport *s = netdev_priv(dev);
	int err = check(dev, vf);

	if (!err && (state < IFLA_VF_LINK_STATE_AUTO || state > IFLA_VF_LINK_STATE_DISABLE))
		err = -EINVAL;
	if (err)
		return err;
	netdev_info(dev, "vf %d link %d\n", vf, state);
	s->vfs[vf].policy = state;
	return 0;
}

/* ipoib_get_vf_config, mlx5_ib_get_vf_config */
static int simvport_get_vf_config(struct net_device *dev, int vf, struct ifla_vf_info *info)
{
	struct simvport *s = netdev_priv(dev);

	if (vf < 0 || vf >= VFS_MAX)
		return -EINVAL;
	memset(info, 0, sizeof(*info));
	info->linkstate = s->vfs[vf].policy;
	info->vf = vf;
	memcpy(info->mac, dev->dev_addr, dev->addr_len);
	return 0;
}

static netdev_tx_t simvport_xmit(struct sk_buff *skb, struct net_device *dev)
{
	dev_kfree_skb(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops simvport_ops = {
	.ndo_start_xmit = simvport_xmit,
	.ndo_set_vf_link_state = simvport_set_vf_link_state,
	.ndo_get_vf_config = simvport_get_vf_config,
	.ndo_get_vf_guid = simvport_get_vf_guid,
	.ndo_set_vf_guid = simvport_set_vf_guid,
};

/* ipoib_setup_common, ipoib_set_dev_features */
static void simvport_setup(struct net_device *dev)
{
	struct simvport *s = netdev_priv(dev);
	int vf;

	dev->netdev_ops = &simvport_ops;
	dev->type = ARPHRD_INFINIBAND;
	dev->hard_header_len = 4;
	dev->addr_len = INFINIBAND_ALEN;
	dev->mtu = 2044;
	dev->flags = IFF_BROADCAST | IFF_MULTICAST;
	for (vf = 0; vf < VFS_MAX; vf++)
		s->vfs[vf].policy = IFLA_VF_LINK_STATE_DISABLE;
}

static struct pci_dev *find_pf(void)
{
	unsigned int domain, bus, slot, func;

	if (sscanf(pf, "%x:%x:%x.%x", &domain, &bus, &slot, &func) != 4)
		return NULL;
	return pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, func));
}

static int __init simvport_init(void)
{
	struct pci_dev *pdev = find_pf();
	struct net_device *dev;
	struct simvport *s;
	int err;

	if (!pdev)
		return -ENODEV;
	dev = alloc_netdev(sizeof(*s), "ib%d", NET_NAME_ENUM, simvport_setup);
	if (!dev) {
		pci_dev_put(pdev);
		return -ENOMEM;
	}
	s = netdev_priv(dev);
	s->pf = pdev;
	SET_NETDEV_DEV(dev, &pdev->dev);
	err = register_netdev(dev);
	if (err) {
		free_netdev(dev);
		pci_dev_put(pdev);
		return err;
	}
	simvport_dev = dev;
	return 0;
}

static void __exit simvport_exit(void)
{
	struct simvport *s = netdev_priv(simvport_dev);
	struct pci_dev *pdev = s->pf;

	unregister_netdev(simvport_dev);
	free_netdev(simvport_dev);
	pci_dev_put(pdev);
}

module_init(simvport_init);
module_exit(simvport_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("IPoIB-like network device with VF GUIDs, for tests");
