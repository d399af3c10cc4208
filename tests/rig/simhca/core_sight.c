// SPDX-License-Identifier: GPL-2.0
/*
 * What guests see: a record of every change of a VF's P_Keys and GUIDs and of who holds it, made in
 * the write itself, so that no state is too short for it. /sys/kernel/debug/simhca/sights lasts as
 * long as the module: it outlives the driver's unbinding. Nothing here judges; the rig knows who
 * may see what (kit/watch.py).
 *
 * A VF is held from the reset in vfio's open, done in the context of the QEMU that opens it, until
 * vfio disables the function. Who holds it is told by that QEMU's AppArmor label, libvirt-<UUID of
 * the domain>: neither our agent nor libvirt's API has a part in it.
 */
#include "simhca.h"

#include <linux/debugfs.h>
#include <linux/random.h>
#include <linux/security.h>
#include <linux/seq_file.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#define KEPT  8192 /* entries; the rig reads and forgets them after each case */
#define LABEL "libvirt-"

struct entry {
	u64 ns;
	char pf[16];
	u16 fn;
	u16 port;
	struct simhca_sight sight;
};

static DEFINE_SPINLOCK(record_lock); /* the innermost lock; everything below */
static struct entry *record;
static u64 next, first; /* sequence numbers: the next entry's, the oldest kept one's */
static u32 loaded; /* tells a module that was loaded anew from one that recorded all the time */

static void add_key(struct simhca_sight *s, u16 key)
{
	int i;

	for (i = 0; i < s->n_keys; i++)
		if (s->keys[i] == key)
			return;
	if (!(key & 0x7fff))
		return;
	if (s->n_keys == ARRAY_SIZE(s->keys))
		s->more = true;
	else
		s->keys[s->n_keys++] = key;
}

/*
 * A QP works with the key at the index that it was opened with, whatever the map says now. Other
 * families have no map: their keys are a matter between vport and SM.
 */
static void see_keys(const struct simhca *hca, int fn, int port, struct simhca_sight *s)
{
	const struct simhca_func *f = &hca->func[fn];
	const u16 *table = hca->port[port].pkey;
	int i;

	if (hca->family->ib_ops)
		return;
	for (i = 0; i < SIMHCA_PKEYS; i++)
		if (f->virt2phys[port][i] < simhca_pkey_table_len(hca))
			add_key(s, table[f->virt2phys[port][i]]);
	if (f->ipoib[port].live)
		add_key(s, table[f->ipoib[port].physical]);
}

static void see(const struct simhca *hca, int fn, int port, struct simhca_sight *s)
{
	memset(s, 0, sizeof(*s));
	strscpy(s->holder, hca->func[fn].holder, sizeof(s->holder));
	s->requested = hca->func[fn].admin_guid[port];
	s->granted = hca->port[port].guid[fn];
	see_keys(hca, fn, port, s);
}

static void append(const struct simhca *hca, int fn, int port, const struct simhca_sight *s)
{
	struct entry *e = &record[next++ % KEPT];

	e->ns = ktime_get_real_ns();
	strscpy(e->pf, pci_name(hca->pdev), sizeof(e->pf));
	e->fn = fn;
	e->port = port;
	e->sight = *s;
	if (next - first > KEPT)
		first = next - KEPT;
}

/* Under record_lock. */
static void look(struct simhca *hca, int fn)
{
	struct simhca_func *f = &hca->func[fn];
	struct simhca_sight now;
	int port;

	if (f->held && !pci_is_enabled(f->held)) {
		f->held = NULL;
		f->holder[0] = '\0';
	}
	for (port = 1; port <= hca->num_ports; port++) {
		see(hca, fn, port, &now);
		if (!memcmp(&now, &f->sight[port], sizeof(now)))
			continue;
		f->sight[port] = now;
		append(hca, fn, port, &now);
	}
}

static void look_at_all(struct simhca *hca)
{
	int fn;

	for (fn = 1; fn <= hca->num_vfs; fn++)
		look(hca, fn);
}

/* ---- the writes ---- */

void simhca_set_map(struct simhca *hca, int fn, int port, int index, u8 physical)
{
	unsigned long flags;

	spin_lock_irqsave(&record_lock, flags);
	WRITE_ONCE(hca->func[fn].virt2phys[port][index], physical);
	look(hca, fn);
	spin_unlock_irqrestore(&record_lock, flags);
}
EXPORT_SYMBOL_GPL(simhca_set_map);

void simhca_set_admin_guid(struct simhca *hca, int fn, int port, u64 guid)
{
	unsigned long flags;

	spin_lock_irqsave(&record_lock, flags);
	hca->func[fn].admin_guid[port] = guid;
	look(hca, fn);
	spin_unlock_irqrestore(&record_lock, flags);
}
EXPORT_SYMBOL_GPL(simhca_set_admin_guid);

/* mlx5: a vport's GUIDs in firmware. The node GUID stands where mlx4's granted one does. */
void simhca_set_vport_guids(struct simhca *hca, int fn, u64 node, u64 port)
{
	unsigned long flags;

	if (fn >= SIMHCA_MAX_FUNCS)
		return;
	spin_lock_irqsave(&record_lock, flags);
	hca->func[fn].admin_guid[1] = port;
	hca->port[1].guid[fn] = node;
	look(hca, fn);
	spin_unlock_irqrestore(&record_lock, flags);
}
EXPORT_SYMBOL_GPL(simhca_set_vport_guids);

/* A port's table has changed: under the hca->lock that every writer of it takes. */
void simhca_table_changed(struct simhca *hca)
{
	unsigned long flags;

	spin_lock_irqsave(&record_lock, flags);
	look_at_all(hca);
	spin_unlock_irqrestore(&record_lock, flags);
}
EXPORT_SYMBOL_GPL(simhca_table_changed);

/* UUID of the domain whose QEMU this process is, or nothing. */
void simhca_current_domain(char uuid[SIMHCA_UUID + 1])
{
	char *label;
	u32 id, len;

	uuid[0] = '\0';
	security_current_getsecid_subj(&id);
	if (security_secid_to_secctx(id, &label, &len))
		return;
	if (len >= strlen(LABEL) + SIMHCA_UUID && !memcmp(label, LABEL, strlen(LABEL))) {
		memcpy(uuid, label + strlen(LABEL), SIMHCA_UUID);
		uuid[SIMHCA_UUID] = '\0';
	}
	security_release_secctx(label, len);
}

/* The domain's QEMU has this function open; vf NULL: nobody has. */
void simhca_sight_held(struct simhca *hca, int fn, struct pci_dev *vf, const char *uuid)
{
	unsigned long flags;

	spin_lock_irqsave(&record_lock, flags);
	hca->func[fn].held = vf;
	strscpy(hca->func[fn].holder, uuid, sizeof(hca->func[fn].holder));
	look(hca, fn);
	spin_unlock_irqrestore(&record_lock, flags);
}

/* ---- the file ---- */

static void show_sight(struct seq_file *s, const struct simhca_sight *sight)
{
	int i;

	seq_printf(s, "%s requested %016llx granted %016llx keys ",
		   sight->holder[0] ? sight->holder : "-", sight->requested, sight->granted);
	for (i = 0; i < sight->n_keys; i++)
		seq_printf(s, "%s0x%04x", i ? "," : "", sight->keys[i]);
	seq_puts(s, sight->more ? ",more\n" : sight->n_keys ? "\n" : "-\n");
}

static int sights_show(struct seq_file *s, void *unused)
{
	u64 i;

	spin_lock_irq(&record_lock);
	seq_printf(s, "record %08x first %llu next %llu\n", loaded, first, next);
	for (i = first; i < next && !seq_has_overflowed(s); i++) {
		const struct entry *e = &record[i % KEPT];

		seq_printf(s, "%llu %llu.%03u %s vf %u port %u ", i, e->ns / NSEC_PER_SEC,
			   (unsigned int)(e->ns % NSEC_PER_SEC / NSEC_PER_MSEC), e->pf, e->fn,
			   e->port);
		show_sight(s, &e->sight);
	}
	spin_unlock_irq(&record_lock);
	return 0;
}

static int sights_open(struct inode *inode, struct file *file)
{
	return single_open(file, sights_show, NULL);
}

/* A number: all entries before it have been read and may go. */
static ssize_t sights_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	u64 upto;
	int ret = kstrtou64_from_user(buf, len, 10, &upto);

	if (ret)
		return ret;
	spin_lock_irq(&record_lock);
	first = clamp(upto, first, next);
	spin_unlock_irq(&record_lock);
	return len;
}

static const struct file_operations sights_fops = {
	.owner = THIS_MODULE,
	.open = sights_open,
	.read = seq_read,
	.write = sights_write,
	.llseek = seq_lseek,
	.release = single_release,
};

int simhca_sight_init(struct dentry *root)
{
	record = vcalloc(KEPT, sizeof(*record));
	if (!record)
		return -ENOMEM;
	loaded = get_random_u32();
	debugfs_create_file("sights", 0600, root, NULL, &sights_fops);
	return 0;
}

/* After the file has gone. */
void simhca_sight_exit(void)
{
	vfree(record);
}
