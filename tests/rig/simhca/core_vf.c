// SPDX-License-Identifier: GPL-2.0
/*
 * The life of virtual functions. A real PF hears of it by the comm channel and by FLR events of the
 * firmware (mlx4_core/cmd.c:mlx4_master_do_cmd, eq.c: MLX4_EVENT_TYPE_FLR_EVENT). Here the PF
 * polls:
 *
 * - The guest's driver announces itself in the VF's cache line size register, a plain byte that
 *   vfio passes through (vfio_pci_config.c:init_pci_cap_basic_perm), together with bus mastering.
 * - An FLR clears the MSI-X table. A mark in its last entry, which no driver uses, is gone then.
 * The kernel restores config space after an FLR, but not this.
 */
#include "simhca.h"

#include <linux/io.h>
#include <linux/module.h>

#define RUNNING	  0x5a	     /* cache line size: a driver runs */
#define FLR_MARK  0x53494d48 /* MSI-X message data: no FLR since */
#define READ_FAIL 0xffff

static unsigned int vf_poll_ms = 20;
module_param(vf_poll_ms, uint, 0644);
MODULE_PARM_DESC(vf_poll_ms, "how often the PF looks at its VFs");

static void set_active(struct simhca *hca, int fn, bool active)
{
	hca->func[fn].active = active;
	if (active) {
		atomic_inc(&hca->stats.slave_inits);
		simhca_post(hca, SIMHCA_EV_SLAVE_INIT, 0, fn);
	} else {
		atomic_inc(&hca->stats.slave_shutdowns);
		simhca_post(hca, SIMHCA_EV_SLAVE_SHUTDOWN, 0, fn);
	}
}

/* eq.c: an FLR is a shutdown of the slave, whether its driver ran or not. */
static bool flr_happened(struct simhca *hca, int fn)
{
	void __iomem *mark = hca->func[fn].scratch;
	u32 value;

	if (!mark)
		return false;
	value = readl(mark);
	if (value == FLR_MARK || value == ~0u)
		return false;
	writel(FLR_MARK, mark);
	atomic_inc(&hca->stats.flrs);
	return true;
}

static void poll_function(struct simhca *hca, int fn)
{
	struct simhca_func *f = &hca->func[fn];
	u16 command = READ_FAIL;
	u8 announced = 0;
	bool running;

	pci_read_config_word(f->vf, PCI_COMMAND, &command);
	pci_read_config_byte(f->vf, PCI_CACHE_LINE_SIZE, &announced);
	if (command == READ_FAIL)
		return; /* in the middle of a reset */
	running = announced == RUNNING && command & PCI_COMMAND_MASTER;
	if (flr_happened(hca, fn) || (f->active && !running)) {
		set_active(hca, fn, false);
		if (!(command & PCI_COMMAND_MASTER) && announced == RUNNING)
			pci_write_config_byte(f->vf, PCI_CACHE_LINE_SIZE, 0);
	}
	if (running && !f->active)
		set_active(hca, fn, true);
}

static void poll_functions(struct work_struct *work)
{
	struct simhca *hca = container_of(to_delayed_work(work), struct simhca, vf_poll);
	int fn;

	for (fn = 1; fn <= hca->num_vfs; fn++)
		if (hca->func[fn].vf)
			poll_function(hca, fn);
	schedule_delayed_work(&hca->vf_poll, msecs_to_jiffies(READ_ONCE(vf_poll_ms)));
}

static void map_scratch(struct simhca_func *f)
{
	resource_size_t bar, entry;
	u32 table = 0;
	u16 control = 0;

	if (!f->vf->msix_cap)
		return;
	pci_read_config_dword(f->vf, f->vf->msix_cap + PCI_MSIX_TABLE, &table);
	pci_read_config_word(f->vf, f->vf->msix_cap + PCI_MSIX_FLAGS, &control);
	bar = pci_resource_start(f->vf, table & PCI_MSIX_TABLE_BIR);
	if (!bar)
		return;
	entry = (table & PCI_MSIX_TABLE_OFFSET) +
		(control & PCI_MSIX_FLAGS_QSIZE) * PCI_MSIX_ENTRY_SIZE;
	f->scratch = ioremap(bar + entry + PCI_MSIX_ENTRY_DATA, sizeof(u32));
	if (f->scratch)
		writel(FLR_MARK, f->scratch);
}

static struct pci_dev *find_vf(struct simhca *hca, int index)
{
	int cap = pci_find_ext_capability(hca->pdev, PCI_EXT_CAP_ID_SRIOV);
	u16 offset = 0, stride = 0;
	unsigned int rid;

	pci_read_config_word(hca->pdev, cap + PCI_SRIOV_VF_OFFSET, &offset);
	pci_read_config_word(hca->pdev, cap + PCI_SRIOV_VF_STRIDE, &stride);
	rid = pci_dev_id(hca->pdev) + offset + stride * index;
	return pci_get_domain_bus_and_slot(pci_domain_nr(hca->pdev->bus), rid >> 8, rid & 0xff);
}

int simhca_vf_start(struct simhca *hca)
{
	int fn;

	INIT_DELAYED_WORK(&hca->vf_poll, poll_functions);
	for (fn = 1; fn <= hca->num_vfs; fn++) {
		hca->func[fn].vf = find_vf(hca, fn - 1);
		if (hca->func[fn].vf)
			map_scratch(&hca->func[fn]);
	}
	if (hca->num_vfs)
		schedule_delayed_work(&hca->vf_poll, 0);
	return 0;
}

void simhca_vf_stop(struct simhca *hca)
{
	int fn;

	cancel_delayed_work_sync(&hca->vf_poll);
	for (fn = 1; fn <= hca->num_vfs; fn++) {
		if (hca->func[fn].scratch)
			iounmap(hca->func[fn].scratch);
		pci_dev_put(hca->func[fn].vf);
	}
}

/* mlx4_core/cmd.c:mlx4_how_many_lives_vf */
int simhca_vf_active_count(struct simhca *hca)
{
	int fn, count = 0;

	for (fn = 1; fn <= hca->num_vfs; fn++)
		count += hca->func[fn].active;
	return count;
}

/* In the guest: MLX4_COMM_CMD_VHCR_EN and MLX4_COMM_CMD_RESET. */
void simhca_vf_announce(struct pci_dev *pdev, bool up)
{
	pci_write_config_byte(pdev, PCI_CACHE_LINE_SIZE, up ? RUNNING : 0);
}

/* mlx4_core/eq.c:set_and_calc_slave_port_state with GID_VALID and GID_INVALID */
void simhca_slave_port_event(struct simhca *hca, int fn, int port, bool valid)
{
	u8 *state = &hca->func[fn].port_state[port];
	unsigned long flags;

	spin_lock_irqsave(&hca->lock, flags);
	if (valid && *state == SIMHCA_SLAVE_PENDING_UP)
		*state = SIMHCA_SLAVE_UP;
	else if (!valid && *state == SIMHCA_SLAVE_UP)
		*state = SIMHCA_SLAVE_PENDING_UP;
	spin_unlock_irqrestore(&hca->lock, flags);
}
EXPORT_SYMBOL_GPL(simhca_slave_port_event);

/* mlx4_core/eq.c: MLX4_EVENT_TYPE_PORT_CHANGE on an InfiniBand port */
void simhca_slave_all_ports(struct simhca *hca, int port, bool up)
{
	unsigned long flags;
	int fn;

	spin_lock_irqsave(&hca->lock, flags);
	for (fn = 0; fn <= hca->num_vfs; fn++) {
		u8 *state = &hca->func[fn].port_state[port];

		if (!up)
			*state = SIMHCA_SLAVE_DOWN;
		else if (*state == SIMHCA_SLAVE_DOWN)
			*state = SIMHCA_SLAVE_PENDING_UP;
	}
	spin_unlock_irqrestore(&hca->lock, flags);
}
EXPORT_SYMBOL_GPL(simhca_slave_all_ports);
