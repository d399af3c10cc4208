// SPDX-License-Identifier: GPL-2.0
/*
 * What a guest sees of its port: the slave's host view of mlx4_core/cmd.c:mlx4_MAD_IFC_wrapper
 * (P_Keys through the map, the admin GUID, ACTIVE once the alias is granted) and the events of
 * eq.c:mlx4_gen_pkey_eqe and its like. A real slave asks over the comm channel. Here the PF sends a
 * report whenever it changes, through the one byte of config space that both sides can write, four
 * bits at a time: the PF writes 01s0xxxx, the guest answers 10s0xxxx; s starts a report.
 *
 * Report: length 2, port, state, phys, lid 2, sm_lid 2, prefix 8, GUID 8, then index 1 and key 2
 * for each P_Key that is not 0, then the sum of all that. Numbers are big endian.
 */
#include "simhca.h"

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#define KIND_MASK   0xc0
#define KIND_SYMBOL 0x40
#define KIND_ACK    0x80
#define START	    0x20
#define NIBBLE	    0x0f

#define FIXED	   25 /* bytes before the keys, with the length's two */
#define KEY_SIZE   3
#define MAX_REPORT (FIXED + KEY_SIZE * SIMHCA_PKEYS + 1)

#define FIRST_REPORT_MS 2000
#define POLL_MS		20
#define SPIN_US		100
#define SPINS		400

struct simhca_mailbox {
	/* PF */
	u8 sent[SIMHCA_MAX_PORTS + 1][MAX_REPORT];
	int port; /* whose report is on its way; 0 = none */
	/* guest */
	struct simhca *hca;
	struct delayed_work poll;
	struct completion first; /* a report has come */
	u8 buffer[MAX_REPORT];
	/* both: next nibble */
	int pos;
};

static int report_len(const u8 *report)
{
	return get_unaligned_be16(report);
}

static u8 sum(const u8 *p, int len)
{
	u8 total = 0;

	while (len--)
		total += *p++;
	return total;
}

/* cmd.c:vf_port_state: a VF's port is ACTIVE or DOWN. Under hca->lock. */
static void build(struct simhca *hca, int fn, int port, u8 *out)
{
	const struct simhca_func *f = &hca->func[fn];
	const struct simhca_port *p = &hca->port[port];
	bool up = f->port_state[port] == SIMHCA_SLAVE_UP;
	u8 *at = out + FIXED;
	int i;

	out[2] = port;
	out[3] = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	out[4] = p->phys;
	put_unaligned_be16(p->lid, &out[5]);
	put_unaligned_be16(p->sm_lid, &out[7]);
	put_unaligned_be64(p->gid_prefix, &out[9]);
	put_unaligned_be64(f->admin_guid[port], &out[17]);
	for (i = 0; i < SIMHCA_PKEYS - 1; i++) {
		u16 key = p->pkey[f->virt2phys[port][i]];

		if (!key)
			continue;
		at[0] = i;
		put_unaligned_be16(key, &at[1]);
		at += KEY_SIZE;
	}
	put_unaligned_be16(at - out + 1, out);
	*at = sum(out, at - out);
}

struct simhca_mailbox *simhca_mail_create(struct simhca *hca)
{
	struct simhca_mailbox *m = kvzalloc(sizeof(*m), GFP_KERNEL);

	if (m)
		m->hca = hca;
	return m;
}

void simhca_mail_free(struct simhca_mailbox *m)
{
	kvfree(m);
}

/* A guest's driver has started: it knows nothing yet. */
void simhca_mail_forget(struct simhca_mailbox *m)
{
	int port;

	m->port = 0;
	for (port = 1; port <= SIMHCA_MAX_PORTS; port++)
		put_unaligned_be16(0, m->sent[port]);
}

static bool choose_report(struct simhca *hca, int fn, struct simhca_mailbox *m)
{
	u8 now[MAX_REPORT];
	unsigned long flags;
	int port;

	for (port = 1; port <= hca->num_ports; port++) {
		spin_lock_irqsave(&hca->lock, flags);
		build(hca, fn, port, now);
		spin_unlock_irqrestore(&hca->lock, flags);
		if (!memcmp(now, m->sent[port], report_len(now)))
			continue;
		memcpy(m->sent[port], now, report_len(now));
		m->port = port;
		m->pos = 0;
		return true;
	}
	return false;
}

static u8 symbol(const struct simhca_mailbox *m)
{
	u8 byte = m->sent[m->port][m->pos / 2];
	u8 nibble = m->pos % 2 ? byte & NIBBLE : byte >> 4;

	return KIND_SYMBOL | (m->pos ? 0 : START) | nibble;
}

/* The guest has the whole report. */
static void report_arrived(struct simhca *hca, int fn, struct simhca_mailbox *m)
{
	const u8 *first = &m->sent[m->port][FIXED];
	bool has_key = report_len(m->sent[m->port]) > FIXED + 1 && !first[0];

	simhca_qp_guest_sees(hca, fn, m->port, has_key ? get_unaligned_be16(&first[1]) : 0);
	m->port = 0;
}

/*
 * One step of the PF, which has just read reg: 0 = leave the register alone, else what to write.
 * The caller keeps calling while *busy.
 */
u8 simhca_mail_step(struct simhca *hca, int fn, u8 reg, bool *busy)
{
	struct simhca_mailbox *m = hca->func[fn].mail;

	*busy = false;
	if (!m)
		return 0;
	if (m->port && reg == ((symbol(m) & ~KIND_MASK) | KIND_ACK)) {
		if (++m->pos == 2 * report_len(m->sent[m->port]))
			report_arrived(hca, fn, m);
	} else if (m->port) {
		*busy = true;
		return reg == symbol(m) ? 0 : symbol(m);
	}
	if (!m->port && !choose_report(hca, fn, m))
		return 0;
	*busy = true;
	return symbol(m);
}

/* ---- the guest ---- */

static void take_keys(struct simhca *hca, int port, const u8 *at, const u8 *end)
{
	u16 key[SIMHCA_PKEYS] = {};

	for (; at + KEY_SIZE <= end; at += KEY_SIZE)
		key[at[0] & (SIMHCA_PKEYS - 1)] = get_unaligned_be16(&at[1]);
	if (!memcmp(key, hca->port[port].pkey, sizeof(key)))
		return;
	memcpy(hca->port[port].pkey, key, sizeof(key));
	simhca_post(hca, SIMHCA_EV_PKEY_TABLE, port, 0);
}

static void take_report(struct simhca *hca, const u8 *r)
{
	struct simhca_port *p = &hca->port[r[2]];
	bool new_lid = get_unaligned_be16(&r[5]) != p->lid;
	bool new_gid = get_unaligned_be64(&r[9]) != p->gid_prefix ||
		       get_unaligned_be64(&r[17]) != p->guid[0];

	p->phys = r[4];
	p->lid = get_unaligned_be16(&r[5]);
	p->sm_lid = get_unaligned_be16(&r[7]);
	p->gid_prefix = get_unaligned_be64(&r[9]);
	p->guid[0] = get_unaligned_be64(&r[17]);
	if (new_lid)
		simhca_post(hca, SIMHCA_EV_LID_CHANGE, r[2], 0);
	if (new_gid)
		simhca_post(hca, SIMHCA_EV_GUID_INFO, r[2], 0);
	take_keys(hca, r[2], r + FIXED, r + report_len(r) - 1);
	if (r[3] != p->state)
		simhca_port_set_state(hca, r[2], r[3]);
}

static void check_report(struct simhca *hca, const u8 *r)
{
	int len = report_len(r);
	unsigned long flags;

	if (len <= FIXED || r[len - 1] != sum(r, len - 1) || r[2] < 1 || r[2] > hca->num_ports)
		return;
	spin_lock_irqsave(&hca->lock, flags);
	take_report(hca, r);
	spin_unlock_irqrestore(&hca->lock, flags);
	complete_all(&hca->mail->first);
}

static void take_symbol(struct simhca_mailbox *m, u8 reg)
{
	u8 *byte;

	if (reg & START)
		m->pos = 0;
	if (m->pos >= 2 * MAX_REPORT)
		return;
	byte = &m->buffer[m->pos / 2];
	*byte = m->pos % 2 ? *byte | (reg & NIBBLE) : (reg & NIBBLE) << 4;
	m->pos++;
	if (m->pos > 4 && m->pos == 2 * report_len(m->buffer))
		check_report(m->hca, m->buffer);
}

static void poll_mail(struct work_struct *work)
{
	struct simhca_mailbox *m = container_of(to_delayed_work(work), struct simhca_mailbox, poll);
	struct pci_dev *pdev = m->hca->pdev;
	int spins = 0;
	u8 reg;

	do {
		pci_read_config_byte(pdev, PCI_CACHE_LINE_SIZE, &reg);
		if ((reg & KIND_MASK) == KIND_SYMBOL) {
			take_symbol(m, reg);
			pci_write_config_byte(pdev, PCI_CACHE_LINE_SIZE,
					      (reg & ~KIND_MASK) | KIND_ACK);
			spins = SPINS;
		} else if (spins) {
			usleep_range(SPIN_US, 2 * SPIN_US);
		}
	} while (spins-- > 0);
	schedule_delayed_work(&m->poll, msecs_to_jiffies(POLL_MS));
}

/* A real VF knows its port when its driver's probe ends; so this waits for the first report. */
int simhca_mail_listen(struct simhca *hca)
{
	struct simhca_mailbox *m = simhca_mail_create(hca);

	if (!m)
		return -ENOMEM;
	hca->mail = m;
	init_completion(&m->first);
	INIT_DELAYED_WORK(&m->poll, poll_mail);
	schedule_delayed_work(&m->poll, 0);
	if (!wait_for_completion_timeout(&m->first, msecs_to_jiffies(FIRST_REPORT_MS)))
		pci_warn(hca->pdev, "no report from the PF's driver, port state is unknown\n");
	return 0;
}

void simhca_mail_unlisten(struct simhca *hca)
{
	if (!hca->mail)
		return;
	cancel_delayed_work_sync(&hca->mail->poll);
	simhca_mail_free(hca->mail);
	hca->mail = NULL;
}
