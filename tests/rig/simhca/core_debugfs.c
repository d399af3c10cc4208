// SPDX-License-Identifier: GPL-2.0
/*
 * The test's own way in: /sys/kernel/debug/simhca/<bdf>/{ctl,state,stats,qps}. Nothing of the
 * product reads it. ctl takes one command per write; port is optional and 1 without.
 */
#include "simhca.h"

#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/ib_verbs.h>

#define MAX_COMMAND 64

static struct dentry *root;

struct command {
	unsigned int a;
	unsigned int b;
	int port;
};

static int do_down(struct simhca *hca, const struct command *c)
{
	simhca_port_admin(hca, c->port, true);
	return 0;
}

static int do_up(struct simhca *hca, const struct command *c)
{
	simhca_port_admin(hca, c->port, false);
	return 0;
}

static int do_pkey(struct simhca *hca, const struct command *c)
{
	return c->b > 0xffff ? -EINVAL : simhca_sma_set_pkey(hca, c->port, c->a, c->b);
}

static int do_reorder(struct simhca *hca, const struct command *c)
{
	simhca_sma_rotate_pkeys(hca, c->port);
	return 0;
}

static int do_event(struct simhca *hca, const struct command *c)
{
	if (c->a > IB_EVENT_GID_CHANGE)
		return -EINVAL;
	simhca_post(hca, SIMHCA_EV_RAW, c->port, c->a);
	return 0;
}

static const struct {
	const char *format; /* arguments are %i */
	int args;
	int (*run)(struct simhca *hca, const struct command *c);
} commands[] = {
	{"port down%n", 0, do_down},  {"port up%n", 0, do_up},	   {"pkey %i %i%n", 2, do_pkey},
	{"reorder%n", 0, do_reorder}, {"event %i%n", 1, do_event},
};

static int run_command(struct simhca *hca, const char *text)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		struct command c = {.port = 1};
		int end = 0, n;

		if (commands[i].args == 2)
			n = sscanf(text, commands[i].format, &c.a, &c.b, &end);
		else if (commands[i].args == 1)
			n = sscanf(text, commands[i].format, &c.a, &end);
		else
			n = sscanf(text, commands[i].format, &end);
		if (n < commands[i].args || !end)
			continue;
		if (text[end] && (sscanf(text + end, " %i", &c.port) != 1 || c.port < 1 ||
				  c.port > hca->num_ports))
			return -EINVAL;
		return commands[i].run(hca, &c);
	}
	return -EINVAL;
}

static ssize_t ctl_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	char text[MAX_COMMAND];
	int ret;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buf, len))
		return -EFAULT;
	text[len] = '\0';
	ret = run_command(file->private_data, strim(text));
	return ret ? ret : len;
}

static const struct file_operations ctl_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = ctl_write,
};

static void show_port(struct seq_file *s, struct simhca *hca, int port)
{
	struct simhca_port *p = &hca->port[port];

	seq_printf(s, "port %d state %u phys %u lid %u sm_lid %u peer %d peer_guid 0x%016llx\n",
		   port, p->state, p->phys, p->lid, p->sm_lid, p->peer_up, p->peer_guid);
}

static int state_show(struct seq_file *s, void *unused)
{
	struct simhca *hca = s->private;
	int port, fn;

	seq_printf(s, "guid 0x%016llx ports %d vfs %d\n", hca->guid, hca->num_ports, hca->num_vfs);
	for (port = 1; port <= hca->num_ports; port++)
		show_port(s, hca, port);
	for (fn = 1; fn <= hca->num_vfs; fn++)
		seq_printf(s, "vf %d %s active %d port_state %u admin_guid %016llx\n", fn,
			   hca->func[fn].vf ? pci_name(hca->func[fn].vf) : "-",
			   hca->func[fn].active, hca->func[fn].port_state[1],
			   hca->func[fn].admin_guid[1]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

static int stats_show(struct seq_file *s, void *unused)
{
	struct simhca_stats *st = &((struct simhca *)s->private)->stats;
	const struct {
		const char *name;
		atomic_t *value;
	} counters[] = {
		{"admin_guid_writes", &st->admin_guid_writes},
		{"pkey_idx_writes", &st->pkey_idx_writes},
		{"sa_sets", &st->sa_sets},
		{"sa_deletes", &st->sa_deletes},
		{"sa_declined", &st->sa_declined},
		{"sa_errors", &st->sa_errors},
		{"slave_inits", &st->slave_inits},
		{"slave_shutdowns", &st->slave_shutdowns},
		{"flrs", &st->flrs},
		{"comm_resets", &st->comm_resets},
		{"comm_refused", &st->comm_refused},
		{"wire_tx", &st->wire_tx},
		{"wire_rx", &st->wire_rx},
		{"wire_dropped", &st->wire_dropped},
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(counters); i++)
		seq_printf(s, "%s %d\n", counters[i].name, atomic_read(counters[i].value));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static int qps_show(struct seq_file *s, void *unused)
{
	simhca_qp_show(s, s->private);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(qps);

int simhca_debugfs_init(void)
{
	int ret;

	root = debugfs_create_dir("simhca", NULL);
	ret = simhca_sight_init(root);
	if (ret)
		debugfs_remove_recursive(root);
	return ret;
}

void simhca_debugfs_exit(void)
{
	debugfs_remove_recursive(root);
	simhca_sight_exit();
}

void simhca_debugfs_add(struct simhca *hca)
{
	hca->debugfs = debugfs_create_dir(pci_name(hca->pdev), root);
	debugfs_create_file("ctl", 0200, hca->debugfs, hca, &ctl_fops);
	debugfs_create_file("state", 0400, hca->debugfs, hca, &state_fops);
	debugfs_create_file("stats", 0400, hca->debugfs, hca, &stats_fops);
	debugfs_create_file("qps", 0400, hca->debugfs, hca, &qps_fops);
}

void simhca_debugfs_remove(struct simhca *hca)
{
	debugfs_remove_recursive(hca->debugfs);
	hca->debugfs = NULL;
}
