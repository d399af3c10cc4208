// SPDX-License-Identifier: GPL-2.0
/*
 * A reset takes time. flr_ms: after a function level reset of a VF its config space does not
 * answer, as with adapters that are not ready after the 100 ms of the specification;
 * drivers/pci/pci.c:pci_dev_wait polls then. flr_clean_ms: the PF's driver goes on cleaning up
 * after that (mlx4_core/eq.c:mlx4_handle_slave_flr), and a VF's driver that starts meanwhile gets
 * no answer (cmd.c: MLX4_DELAY_RESET_SLAVE).
 *
 * The VFs are on their PF's bus; one bus, that of this host's first adapter.
 */
#include "simhca.h"

#include <linux/module.h>

#define DEVFNS 256

static unsigned int flr_ms;
module_param(flr_ms, uint, 0644);
MODULE_PARM_DESC(flr_ms, "simhca: how long a VF's config space does not answer after its reset");

static unsigned int flr_clean_ms;
module_param(flr_clean_ms, uint, 0644);
MODULE_PARM_DESC(flr_clean_ms,
		 "simhca: how long after that the PF's driver answers no VF's driver");

static struct pci_bus *bus;
static struct pci_ops *real_ops;
static u8 express_cap[DEVFNS]; /* 0 = not one of our VFs */
static unsigned long silent_until[DEVFNS];
static bool silent[DEVFNS];

static bool is_silent(unsigned int devfn)
{
	if (!READ_ONCE(silent[devfn]))
		return false;
	if (time_before(jiffies, READ_ONCE(silent_until[devfn])))
		return true;
	WRITE_ONCE(silent[devfn], false);
	return false;
}

static int config_read(struct pci_bus *b, unsigned int devfn, int where, int size, u32 *value)
{
	if (is_silent(devfn)) {
		*value = ~0;
		return PCIBIOS_DEVICE_NOT_FOUND;
	}
	return real_ops->read(b, devfn, where, size, value);
}

static int config_write(struct pci_bus *b, unsigned int devfn, int where, int size, u32 value)
{
	unsigned int ms = READ_ONCE(flr_ms);
	int ret;

	if (is_silent(devfn))
		return PCIBIOS_SUCCESSFUL;
	ret = real_ops->write(b, devfn, where, size, value);
	if (ms && express_cap[devfn] && where == express_cap[devfn] + PCI_EXP_DEVCTL &&
	    value & PCI_EXP_DEVCTL_BCR_FLR) {
		WRITE_ONCE(silent_until[devfn], jiffies + msecs_to_jiffies(ms));
		WRITE_ONCE(silent[devfn], true);
	}
	return ret;
}

static struct pci_ops slow_ops = {.read = config_read, .write = config_write};

/* When both times are over, if a reset begins now. */
unsigned long simhca_flr_done(void)
{
	return jiffies + msecs_to_jiffies(READ_ONCE(flr_ms) + READ_ONCE(flr_clean_ms));
}

void simhca_flr_watch(struct simhca *hca)
{
	int fn;

	if (bus)
		return;
	for (fn = 1; fn <= hca->num_vfs; fn++)
		if (hca->func[fn].vf && hca->func[fn].vf->bus == hca->pdev->bus)
			express_cap[hca->func[fn].vf->devfn] = hca->func[fn].vf->pcie_cap;
	bus = hca->pdev->bus;
	slow_ops.map_bus = bus->ops->map_bus;
	real_ops = bus->ops;
	pci_bus_set_ops(bus, &slow_ops);
}

void simhca_flr_unwatch(struct simhca *hca)
{
	if (bus != hca->pdev->bus)
		return;
	pci_bus_set_ops(bus, real_ops);
	bus = NULL;
	memset(express_cap, 0, sizeof(express_cap));
	memset(silent, 0, sizeof(silent));
}
