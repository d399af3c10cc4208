// SPDX-License-Identifier: GPL-2.0
/*
 * The PCI driver "mlx4_core". It takes QEMU's emulated NVMe controller, which has real SR-IOV, and
 * gives it ConnectX-3's identity in sysfs. Modelled: mlx4_core/main.c (__mlx4_init_one,
 * mlx4_enable_sriov, mlx4_remove_one, mlx4_request_modules). No sriov_configure, as in mlx4_driver:
 * writing sriov_numvfs fails with ENOENT, VFs come from the num_vfs parameter in the PF's probe.
 */
#include "simhca.h"

#include <linux/kmod.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>

#define DRV_NAME       "mlx4_core"
#define HOST_VENDOR    PCI_VENDOR_ID_REDHAT
#define HOST_DEVICE    0x0010 /* QEMU's NVMe controller */
#define CLASS_CONNECTX (PCI_CLASS_NETWORK_OTHER << 8)
#define MAX_VF_P_PORT  64 /* MLX4_MAX_NUM_VF_P_PORT */

static uint8_t num_vfs[3];
static int num_vfs_argc;
module_param_array(num_vfs, byte, &num_vfs_argc, 0444);
MODULE_PARM_DESC(num_vfs, "enable #num_vfs functions if num_vfs > 0\n"
			  "num_vfs=port1,port2,port1+2");

static uint8_t probe_vf[3];
static int probe_vfs_argc;
module_param_array(probe_vf, byte, &probe_vfs_argc, 0444);
MODULE_PARM_DESC(probe_vf, "number of vfs to probe by pf driver (num_vfs > 0)\n"
			   "probe_vf=port1,port2,port1+2");

static int port_type_array[2];
static int arr_argc = 2;
module_param_array(port_type_array, int, &arr_argc, 0444);
MODULE_PARM_DESC(port_type_array, "Array of port types: HW_DEFAULT (0) is default "
				  "1 for IB, 2 for Ethernet");

static unsigned long guid_base = 0x0002c90300000000ul;
module_param(guid_base, ulong, 0444);
MODULE_PARM_DESC(guid_base, "simhca: node GUID of this host's first adapter, the next is +0x100");

static int ports = 1;
module_param(ports, int, 0444);
MODULE_PARM_DESC(ports, "simhca: InfiniBand ports of each adapter, 1 or 2");

/*
 * main.c:__mlx4_init_one: the values of num_vfs, by how many there are. Places: VFs of port 1, of
 * port 2, of both.
 */
static unsigned int vfs_of(int place)
{
	static const int param_map[3][3] = {{2, 0, 0}, {0, 1, 2}, {0, 1, 2}};
	int i;

	for (i = 0; i < num_vfs_argc; i++)
		if (param_map[num_vfs_argc - 1][i] == place)
			return num_vfs[i];
	return 0;
}

static unsigned int total_vfs(void)
{
	return vfs_of(0) + vfs_of(1) + vfs_of(2);
}

/*
 * main.c:mlx4_load_one, dev_vfs: VFs of port 1 come first, then those of port 2, then those of
 * both.
 */
bool simhca_func_has_port(const struct simhca *hca, int fn, int port)
{
	int single = vfs_of(0) + vfs_of(1);

	if (!simhca_is_master(hca) || fn == 0 || fn > single)
		return true;
	return port == (fn <= vfs_of(0) ? 1 : 2);
}
EXPORT_SYMBOL_GPL(simhca_func_has_port);

static int check_parameters(struct pci_dev *pdev)
{
	int i;

	for (i = 0; i < probe_vfs_argc; i++)
		if (probe_vf[i] > num_vfs[i]) {
			dev_err(&pdev->dev, "probe_vf module parameter cannot be negative or "
					    "greater than num_vfs\n");
			return -EINVAL;
		}
	if (total_vfs() > SIMHCA_MAX_VFS) {
		dev_err(&pdev->dev, "Requested more VF's (%u) than allowed by hw (%d)\n",
			total_vfs(), SIMHCA_MAX_VFS);
		return -EINVAL;
	}
	for (i = 0; i < SIMHCA_MAX_PORTS; i++)
		if (vfs_of(i) + vfs_of(2) > MAX_VF_P_PORT) {
			dev_err(&pdev->dev,
				"Requested more VF's (%u) for port (%d) than allowed by driver "
				"(%d)\n",
				vfs_of(i) + vfs_of(2), i + 1, MAX_VF_P_PORT);
			return -EINVAL;
		}
	/* main.c:mlx4_load_one */
	if (num_vfs_argc > 1 && ports < 2) {
		dev_err(&pdev->dev,
			"Error: Trying to configure VFs on port 2, but HCA has only %d physical "
			"ports\n",
			ports);
		return -EINVAL;
	}
	return 0;
}

/*
 * A VF has its PF's vendor already (drivers/pci/iov.c:pci_iov_add_virtfn). vfio-pci hands a VF's
 * ids on to the guest (vfio_pci_config.c:vfio_config_init).
 */
void simhca_wear_ids(struct pci_dev *pdev, u16 device)
{
	pdev->vendor = SIMHCA_VENDOR;
	pdev->device = device;
	pdev->class = CLASS_CONNECTX;
}
EXPORT_SYMBOL_GPL(simhca_wear_ids);

/*
 * Our VFs, whose device id is the one after their PF's, get their ids before their first uevent:
 * device_add notifies the bus first.
 */
static int on_bus_event(struct notifier_block *nb, unsigned long action, void *data)
{
	struct pci_dev *pdev = to_pci_dev(data);

	if (action == BUS_NOTIFY_ADD_DEVICE && pdev->is_virtfn &&
	    pci_physfn(pdev)->vendor == SIMHCA_VENDOR)
		simhca_wear_ids(pdev, pci_physfn(pdev)->device + 1);
	if (action == BUS_NOTIFY_UNBOUND_DRIVER && pdev->is_virtfn)
		simhca_vf_unbound(pdev);
	return NOTIFY_DONE;
}

static struct notifier_block bus_notifier = {.notifier_call = on_bus_event};

static bool function_is_vf(struct pci_dev *pdev)
{
	return pdev->is_virtfn || pdev->device == SIMHCA_DEVICE_VF ||
	       !pci_find_ext_capability(pdev, PCI_EXT_CAP_ID_SRIOV);
}

/* main.c:extended_func_num and the test in __mlx4_init_one: a PF's host leaves its VFs alone. */
static bool skip_own_vf(struct pci_dev *pdev)
{
	int number = PCI_SLOT(pdev->devfn) * 8 + PCI_FUNC(pdev->devfn);

	if (!pdev->is_virtfn || !total_vfs() || number <= probe_vf[0])
		return false;
	dev_warn(&pdev->dev, "Skipping virtual function:%d\n", number);
	return true;
}

/* main.c:mlx4_enable_sriov: too many VFs, or a failure, means to go on without SR-IOV. */
static void enable_sriov(struct simhca *hca)
{
	int wanted = total_vfs();
	int existing = pci_num_vf(hca->pdev);
	int available = min(pci_sriov_get_totalvfs(hca->pdev), SIMHCA_MAX_VFS);
	int ret;

	if (!wanted)
		return;
	if (existing) {
		if (existing != wanted)
			pci_err(hca->pdev,
				"SR-IOV was already enabled, but with num_vfs (%d) different than "
				"requested (%d)\n",
				existing, wanted);
		hca->num_vfs = existing;
		return;
	}
	if (wanted > available) {
		pci_err(hca->pdev,
			"requested vfs (%d) > available vfs (%d). Continuing without SR_IOV\n",
			wanted, available);
		return;
	}
	pci_warn(hca->pdev, "Enabling SR-IOV with %d VFs\n", wanted);
	ret = pci_enable_sriov(hca->pdev, wanted);
	if (ret) {
		pci_err(hca->pdev,
			"Failed to enable SR-IOV, continuing without SR-IOV (err = %d)\n", ret);
		return;
	}
	pci_warn(hca->pdev, "Running in master mode\n");
	hca->num_vfs = wanted;
}

/* main.c:mlx4_set_random_admin_guid: all entries, whatever the number of VFs. */
static void init_functions(struct simhca *hca)
{
	int fn, port;
	u64 guid;

	for (fn = 0; fn < SIMHCA_MAX_FUNCS; fn++)
		for (port = 1; port <= SIMHCA_MAX_PORTS; port++) {
			guid = (get_random_u64() & ~(1ull << 56)) | 1ull << 57;
			hca->func[fn].admin_guid[port] = fn ? guid : simhca_port_guid(hca, port);
		}
}

static struct simhca *alloc_hca(struct pci_dev *pdev, const struct simhca_family *family)
{
	struct simhca *hca = kzalloc(sizeof(*hca), GFP_KERNEL);

	if (!hca)
		return NULL;
	hca->func = kvcalloc(SIMHCA_MAX_FUNCS, sizeof(*hca->func), GFP_KERNEL);
	if (!hca->func) {
		kfree(hca);
		return NULL;
	}
	hca->pdev = pdev;
	hca->family = family;
	hca->is_vf = function_is_vf(pdev);
	hca->num_ports = clamp(ports, 1, family->max_ports);
	spin_lock_init(&hca->lock);
	INIT_DELAYED_WORK(&hca->pulse, simhca_port_pulse_work);
	return hca;
}

static void free_hca(struct simhca *hca)
{
	kvfree(hca->func);
	kfree(hca);
}

static void set_identity(struct simhca *hca)
{
	int port;

	/* hw/mlx4/mad.c:mlx4_ib_gen_node_guid for a VF */
	hca->guid = hca->is_vf ? 0x0014050000000000ull | get_random_u32()
			       : guid_base + 0x100ull * hca->index;
	for (port = 1; port <= hca->num_ports; port++)
		simhca_port_init(hca, port);
	init_functions(hca);
}

static int start_pf(struct simhca *hca)
{
	int ret = simhca_wire_create(hca);

	if (ret)
		return ret;
	if (hca->family->vfs_at_probe)
		enable_sriov(hca);
	simhca_vf_start(hca);
	schedule_delayed_work(&hca->pulse, 0);
	simhca_debugfs_add(hca);
	return 0;
}

static void stop_pf(struct simhca *hca)
{
	simhca_debugfs_remove(hca);
	cancel_delayed_work_sync(&hca->pulse);
	simhca_vf_stop(hca);
	simhca_wire_destroy(hca);
}

/* The announcement comes first: what it finds in the register is not the PF's. */
static int start_vf(struct simhca *hca)
{
	int ret = simhca_vf_begin(hca->pdev);

	return ret ? ret : simhca_mail_listen(hca);
}

static int load_one(struct pci_dev *pdev, const struct simhca_family *family, void *priv)
{
	struct simhca *hca = alloc_hca(pdev, family);
	int ret;

	if (!hca)
		return -ENOMEM;
	hca->family_priv = priv;
	ret = simhca_add(hca);
	if (ret) {
		free_hca(hca);
		return ret;
	}
	set_identity(hca);
	pci_set_drvdata(pdev, hca);
	ret = hca->is_vf ? start_vf(hca) : start_pf(hca);
	if (ret) {
		simhca_remove(hca);
		simhca_free_events(hca);
		free_hca(hca);
		return ret;
	}
	simhca_offer(hca);
	request_module_nowait("mlx4_ib");
	return 0;
}

int simhca_load(struct pci_dev *pdev, const struct simhca_family *family, void *priv)
{
	int ret = pci_enable_device(pdev);

	if (ret)
		return ret;
	ret = pci_request_regions(pdev, pdev->driver->name);
	if (ret)
		goto disable;
	pci_set_master(pdev);
	ret = load_one(pdev, family, priv);
	if (!ret)
		return 0;
	pci_release_regions(pdev);
disable:
	pci_disable_device(pdev);
	return ret;
}
EXPORT_SYMBOL_GPL(simhca_load);

static const struct simhca_family mlx4_family = {
	.ib_name = "mlx4_%d",
	.node_desc = "MT4099 ConnectX-3 (simhca)",
	.vfs_at_probe = true,
	.max_ports = SIMHCA_MAX_PORTS,
};

/* main.c: pf_loading; its own VFs are probed in the middle of a PF's probe. */
static atomic_t pf_loading = ATOMIC_INIT(0);

static int load_counted(struct pci_dev *pdev)
{
	int ret;

	if (pdev->is_virtfn)
		return simhca_load(pdev, &mlx4_family, NULL);
	atomic_inc(&pf_loading);
	ret = simhca_load(pdev, &mlx4_family, NULL);
	atomic_dec(&pf_loading);
	return ret;
}

static int simhca_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	int ret;

	if (pdev->device == HOST_DEVICE)
		simhca_wear_ids(pdev, function_is_vf(pdev) ? SIMHCA_DEVICE_VF : SIMHCA_DEVICE_PF);
	pr_info(DRV_NAME ": Initializing %s\n", pci_name(pdev));
	ret = check_parameters(pdev);
	if (!ret && skip_own_vf(pdev))
		ret = -ENODEV;
	if (!ret && pdev->is_virtfn && atomic_read(&pf_loading)) {
		pci_warn(pdev, "PF is not ready - Deferring probe\n");
		ret = -EPROBE_DEFER;
	}
	return ret ? ret : load_counted(pdev);
}

/* main.c:mlx4_remove_one: SR-IOV stays when a VF's driver is still running. */
static void disable_sriov(struct simhca *hca, int active)
{
	if (!hca->num_vfs)
		return;
	if (active) {
		pr_warn("Removing PF when there are active VF's !!\n");
		pr_warn("Will not disable SR-IOV.\n");
		return;
	}
	pci_warn(hca->pdev, "Disabling SR-IOV\n");
	pci_disable_sriov(hca->pdev);
}

void simhca_unload(struct pci_dev *pdev)
{
	struct simhca *hca = pci_get_drvdata(pdev);
	int active = simhca_vf_active_count(hca);

	simhca_remove(hca);
	if (hca->is_vf) {
		simhca_mail_unlisten(hca);
		simhca_vf_end(pdev);
	} else {
		stop_pf(hca);
		disable_sriov(hca, active);
	}
	simhca_free_events(hca);
	free_hca(hca);
	pci_release_regions(pdev);
	pci_disable_device(pdev);
}
EXPORT_SYMBOL_GPL(simhca_unload);

/* A guest that shuts down tells its host; mlx4_shutdown unloads everything, this much matters. */
static void simhca_pci_shutdown(struct pci_dev *pdev)
{
	struct simhca *hca = pci_get_drvdata(pdev);

	if (hca->is_vf) {
		simhca_mail_unlisten(hca);
		simhca_vf_end(pdev);
	}
	pci_clear_master(pdev);
}

static const struct pci_device_id simhca_ids[] = {{PCI_DEVICE(SIMHCA_VENDOR, SIMHCA_DEVICE_PF)},
						  {PCI_DEVICE(SIMHCA_VENDOR, SIMHCA_DEVICE_VF)},
						  {PCI_DEVICE(HOST_VENDOR, HOST_DEVICE)},
						  {}};
MODULE_DEVICE_TABLE(pci, simhca_ids);

static struct pci_driver simhca_driver = {
	.name = DRV_NAME,
	.id_table = simhca_ids,
	.probe = simhca_probe,
	.remove = simhca_unload,
	.shutdown = simhca_pci_shutdown,
};

static int __init simhca_init(void)
{
	int ret = simhca_vf_init();

	if (ret)
		return ret;
	ret = simhca_debugfs_init();
	if (ret) {
		simhca_vf_exit();
		return ret;
	}
	bus_register_notifier(&pci_bus_type, &bus_notifier);
	ret = pci_register_driver(&simhca_driver);
	if (ret) {
		bus_unregister_notifier(&pci_bus_type, &bus_notifier);
		simhca_debugfs_exit();
		simhca_vf_exit();
	}
	return ret;
}

static void __exit simhca_exit(void)
{
	pci_unregister_driver(&simhca_driver);
	bus_unregister_notifier(&pci_bus_type, &bus_notifier);
	simhca_debugfs_exit();
	simhca_vf_exit();
}

module_init(simhca_init);
module_exit(simhca_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("simhca: simulated ConnectX-3 for tests, shadows the real mlx4_core");
