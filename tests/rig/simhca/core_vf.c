// SPDX-License-Identifier: GPL-2.0
/*
 * The life of virtual functions. A real PF hears of it by the comm channel and by FLR events of the
 * firmware (mlx4_core/cmd.c:mlx4_master_do_cmd, eq.c: MLX4_EVENT_TYPE_FLR_EVENT). Here:
 *
 * - The guest's driver announces itself in the VF's cache line size register, a plain byte that
 *   vfio passes through (vfio_pci_config.c:init_pci_cap_basic_perm), and enables bus mastering. The
 *   PF polls both. Bus mastering alone would not do: SeaBIOS has a driver for the NVMe function.
 *   Afterwards the same byte tells the guest about its port (core_mailbox.c).
 * - Every FLR of this kernel, vfio's and a guest's own, goes through pcie_reset_flr: a kprobe there
 *   is the firmware that notices it. An FLR clears the announcement, but the kernel restores it
 *   with the rest of config space afterwards; so the restored value is remembered as stale, and
 *   each start announces a value other than the one it finds.
 */
#include "simhca.h"

#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>

#define RUNNING	     0xe0 /* high nibble of the announcement; the low one counts starts */
#define RUNNING_MASK 0xf0
#define COUNT_MASK   0x0f
#define RESET	     0xd0  /* MLX4_COMM_CMD_RESET, with the same count */
#define RESET_DONE   0xc0  /* the PF's answer */
#define COMM_MS	     10000 /* mlx4_core/mlx4.h: MLX4_COMM_TIME */
#define COMM_POLL_US 1000
#define READ_FAIL    0xffff

#define MAIL_SPIN_US 100
#define MAIL_SPINS   200 /* one guest may hold up the others for so many turns */

static unsigned int vf_poll_ms = 20;
module_param(vf_poll_ms, uint, 0644);
MODULE_PARM_DESC(vf_poll_ms, "how often the PF looks at its VFs");

static LIST_HEAD(masters);
static DEFINE_SPINLOCK(masters_lock); /* masters; active and stale of their functions */

/* Under masters_lock. */
static void set_active(struct simhca *hca, int fn, bool active)
{
	hca->func[fn].active = active;
	if (active) {
		atomic_inc(&hca->stats.slave_inits);
		simhca_post(hca, SIMHCA_EV_SLAVE_INIT, 0, fn);
	} else {
		atomic_inc(&hca->stats.slave_shutdowns);
		simhca_qp_forget(hca, fn);
		simhca_post(hca, SIMHCA_EV_SLAVE_SHUTDOWN, 0, fn);
	}
}

static bool is_announcement(const struct simhca_func *f, u8 reg)
{
	return (reg & RUNNING_MASK) == RUNNING && reg != f->stale;
}

/* In the middle of an FLR no command is taken. Under masters_lock. */
static bool is_in_flr(struct simhca_func *f)
{
	f->in_flr = f->in_flr && time_before(jiffies, f->flr_done);
	return f->in_flr;
}

/*
 * cmd.c:mlx4_master_do_cmd, MLX4_COMM_CMD_RESET: what the last driver left goes, its alias GUIDs
 * too. In the middle of an FLR there is no answer. Under masters_lock; returns what to write into
 * the register, 0 = nothing.
 */
static u8 comm_reset(struct simhca *hca, int fn, u8 reg)
{
	struct simhca_func *f = &hca->func[fn];

	if (is_in_flr(f))
		return 0;
	atomic_inc(&hca->stats.comm_resets);
	f->stale = f->refused = 0;
	set_active(hca, fn, false);
	return RESET_DONE | (reg & COUNT_MASK);
}

/*
 * cmd.c: MLX4_COMM_CMD_VHCR0 when a driver runs is out of sync; it has to come again, after a
 * reset. Under masters_lock.
 */
static void refuse_start(struct simhca *hca, int fn, u8 reg)
{
	hca->func[fn].refused = reg;
	atomic_inc(&hca->stats.comm_refused);
	pci_warn(hca->pdev, "slave:%d is out of sync, reset is needed\n", fn);
}

/*
 * Under masters_lock. After the start the register serves the mailbox, so a driver runs until bus
 * mastering ends; a new announcement without that is a second start, which is refused.
 */
static void follow_driver(struct simhca *hca, int fn, u16 command, u8 reg)
{
	struct simhca_func *f = &hca->func[fn];
	bool master = command & PCI_COMMAND_MASTER;
	bool restarted = f->active && is_announcement(f, reg) && reg != f->announced;

	if (!reg)
		f->stale = 0;
	if (restarted)
		refuse_start(hca, fn, reg);
	if (f->active && (!master || !reg || restarted))
		set_active(hca, fn, false);
	if (f->active || !master || !is_announcement(f, reg) || reg == f->refused || is_in_flr(f))
		return;
	f->announced = reg;
	if (f->mail)
		simhca_mail_forget(f->mail);
	set_active(hca, fn, true);
}

/* Returns whether the mailbox wants to go on at once. */
static bool poll_function(struct simhca *hca, int fn)
{
	struct simhca_func *f = &hca->func[fn];
	u16 command = READ_FAIL;
	unsigned long flags;
	bool busy = false;
	u8 reg = 0, answer = 0;

	spin_lock_irqsave(&masters_lock, flags);
	pci_read_config_word(f->vf, PCI_COMMAND, &command);
	pci_read_config_byte(f->vf, PCI_CACHE_LINE_SIZE, &reg);
	if (command != READ_FAIL && (reg & RUNNING_MASK) == RESET)
		answer = command & PCI_COMMAND_MASTER ? comm_reset(hca, fn, reg) : 0;
	else if (command != READ_FAIL)
		follow_driver(hca, fn, command, reg);
	if (f->active)
		answer = simhca_mail_step(hca, fn, reg, &busy);
	if (answer)
		pci_write_config_byte(f->vf, PCI_CACHE_LINE_SIZE, answer);
	spin_unlock_irqrestore(&masters_lock, flags);
	return busy;
}

static void poll_functions(struct work_struct *work)
{
	struct simhca *hca = container_of(to_delayed_work(work), struct simhca, vf_poll);
	int fn, spins;

	for (fn = 1; fn <= hca->num_vfs; fn++)
		for (spins = 0; hca->func[fn].vf && spins < MAIL_SPINS; spins++) {
			if (!poll_function(hca, fn))
				break;
			usleep_range(MAIL_SPIN_US, 2 * MAIL_SPIN_US);
		}
	schedule_delayed_work(&hca->vf_poll, msecs_to_jiffies(READ_ONCE(vf_poll_ms)));
}

/* eq.c: an FLR is a shutdown of the slave, whether its driver ran or not. */
static void function_reset(struct simhca *hca, int fn)
{
	pci_read_config_byte(hca->func[fn].vf, PCI_CACHE_LINE_SIZE, &hca->func[fn].stale);
	atomic_inc(&hca->stats.flrs);
	hca->func[fn].in_flr = true;
	hca->func[fn].flr_done = simhca_flr_done();
	set_active(hca, fn, false);
}

/* Which function of this adapter it is; 0: none. */
static int number_of(const struct simhca *hca, struct pci_dev *pdev)
{
	int fn = pci_physfn(pdev) == hca->pdev ? pci_iov_vf_id(pdev) + 1 : 0;

	return fn > 0 && fn < SIMHCA_MAX_FUNCS ? fn : 0;
}

/* int pcie_reset_flr(struct pci_dev *dev, bool probe) */
static int on_flr(struct kprobe *probe, struct pt_regs *regs)
{
	struct pci_dev *pdev = (struct pci_dev *)regs_get_kernel_argument(regs, 0);
	bool only_asked = regs_get_kernel_argument(regs, 1) & 1;
	char uuid[SIMHCA_UUID + 1];
	struct simhca *hca;
	unsigned long flags;
	int fn;

	if (only_asked || !pdev->is_virtfn)
		return 0;
	simhca_current_domain(uuid);
	spin_lock_irqsave(&masters_lock, flags);
	list_for_each_entry(hca, &masters, master_link)
	{
		fn = number_of(hca, pdev);
		if (fn && hca->func[fn].vf)
			function_reset(hca, fn);
		if (fn && uuid[0])
			simhca_sight_held(hca, fn, pdev, uuid);
	}
	spin_unlock_irqrestore(&masters_lock, flags);
	return 0;
}

/* A VF has no driver any more: vfio-pci let it go, so nobody has it open. */
void simhca_vf_unbound(struct pci_dev *pdev)
{
	struct simhca *hca;
	unsigned long flags;

	spin_lock_irqsave(&masters_lock, flags);
	list_for_each_entry(hca, &masters, master_link) if (number_of(hca, pdev))
		simhca_sight_held(hca, number_of(hca, pdev), NULL, "");
	spin_unlock_irqrestore(&masters_lock, flags);
}

static struct kprobe flr_probe = {.symbol_name = "pcie_reset_flr", .pre_handler = on_flr};

int simhca_vf_init(void)
{
	return register_kprobe(&flr_probe);
}

void simhca_vf_exit(void)
{
	unregister_kprobe(&flr_probe);
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

void simhca_vf_start(struct simhca *hca)
{
	unsigned long flags;
	int fn;

	INIT_DELAYED_WORK(&hca->vf_poll, poll_functions);
	for (fn = 1; fn <= hca->num_vfs; fn++) {
		hca->func[fn].vf = find_vf(hca, fn - 1);
		hca->func[fn].mail = simhca_mail_create(hca);
	}
	simhca_flr_watch(hca);
	spin_lock_irqsave(&masters_lock, flags);
	list_add_tail(&hca->master_link, &masters);
	spin_unlock_irqrestore(&masters_lock, flags);
	if (hca->num_vfs)
		schedule_delayed_work(&hca->vf_poll, 0);
}

void simhca_vf_stop(struct simhca *hca)
{
	unsigned long flags;
	int fn;

	cancel_delayed_work_sync(&hca->vf_poll);
	spin_lock_irqsave(&masters_lock, flags);
	list_del(&hca->master_link);
	spin_unlock_irqrestore(&masters_lock, flags);
	simhca_flr_unwatch(hca);
	for (fn = 1; fn <= hca->num_vfs; fn++) {
		pci_dev_put(hca->func[fn].vf);
		simhca_mail_free(hca->func[fn].mail);
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

static bool was_answered(struct pci_dev *pdev, u8 answer)
{
	unsigned long end = jiffies + msecs_to_jiffies(COMM_MS);
	u8 value = 0;

	do {
		usleep_range(COMM_POLL_US, 2 * COMM_POLL_US);
		pci_read_config_byte(pdev, PCI_CACHE_LINE_SIZE, &value);
	} while (value != answer && time_before(jiffies, end));
	return value == answer;
}

/*
 * In the guest, main.c:mlx4_init_slave: MLX4_COMM_CMD_RESET, then MLX4_COMM_CMD_VHCR0 to _EN, which
 * are one here.
 */
int simhca_vf_begin(struct pci_dev *pdev)
{
	u8 value = 0, count;

	pci_read_config_byte(pdev, PCI_CACHE_LINE_SIZE, &value);
	count = (value + 1) & COUNT_MASK;
	pci_warn(pdev, "Sending reset\n");
	pci_write_config_byte(pdev, PCI_CACHE_LINE_SIZE, RESET | count);
	if (!was_answered(pdev, RESET_DONE | count)) {
		pci_warn(pdev, "slave is currently in the middle of FLR - Deferring probe\n");
		return -EPROBE_DEFER;
	}
	pci_write_config_byte(pdev, PCI_CACHE_LINE_SIZE, RUNNING | count);
	return 0;
}

/* In the guest: its driver ends. */
void simhca_vf_end(struct pci_dev *pdev)
{
	pci_write_config_byte(pdev, PCI_CACHE_LINE_SIZE, 0);
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

/* mlx4_core/eq.c: MLX4_EVENT_TYPE_PORT_CHANGE on an InfiniBand port. Under hca->lock. */
void simhca_slave_all_ports(struct simhca *hca, int port, bool up)
{
	int fn;

	for (fn = 0; fn <= hca->num_vfs; fn++) {
		u8 *state = &hca->func[fn].port_state[port];

		if (!up)
			*state = SIMHCA_SLAVE_DOWN;
		else if (*state == SIMHCA_SLAVE_DOWN)
			*state = SIMHCA_SLAVE_PENDING_UP;
	}
}
