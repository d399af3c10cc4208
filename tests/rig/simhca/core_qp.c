// SPDX-License-Identifier: GPL-2.0
/*
 * Live queue pairs of guests, as far as partitions go: a QP keeps the physical P_Key index that the
 * PF's driver has put into its context when it was modified, whatever becomes of the map and of the
 * port's table. A guest is taken to run IPoIB on virtual index 0 of each port, one QP each. Checked
 * against mlx4_core/resource_tracker.c (mlx4_RST2INIT_QP_wrapper and mlx4_INIT2RTR_QP_wrapper:
 * update_pkey_index; mlx4_delete_all_resources_for_slave) and, for what a guest does when it hears
 * of a change, ulp/ipoib/ipoib_ib.c (__ipoib_ib_dev_flush, update_parent_pkey,
 * ipoib_pkey_dev_check_presence).
 */
#include "simhca.h"

#include <linux/seq_file.h>

#define FULL_MEMBER 0x8000

/*
 * The guest has read its table: pkey stands at index 0. Only another value makes IPoIB restart its
 * QP, so one that has moved to another physical index between two looks is not noticed.
 */
void simhca_qp_guest_sees(struct simhca *hca, int fn, int port, u16 pkey)
{
	struct simhca_qp_context *qp = &hca->func[fn].ipoib[port];
	unsigned long flags;

	pkey |= FULL_MEMBER;
	spin_lock_irqsave(&hca->lock, flags);
	if (qp->pkey != pkey) {
		qp->pkey = pkey;
		qp->live = pkey != FULL_MEMBER;
		qp->physical = hca->func[fn].virt2phys[port][0];
		simhca_table_changed(hca);
	}
	spin_unlock_irqrestore(&hca->lock, flags);
}

/* cmd.c and eq.c: a slave that is reset, or whose driver ends, has no QPs any more. */
void simhca_qp_forget(struct simhca *hca, int fn)
{
	unsigned long flags;

	spin_lock_irqsave(&hca->lock, flags);
	memset(hca->func[fn].ipoib, 0, sizeof(hca->func[fn].ipoib));
	spin_unlock_irqrestore(&hca->lock, flags);
}

/* One line a QP: with which key it was opened, and which key it sends and receives with now. */
void simhca_qp_show(struct seq_file *s, struct simhca *hca)
{
	int fn, port;

	spin_lock_irq(&hca->lock);
	for (fn = 1; fn <= hca->num_vfs; fn++)
		for (port = 1; port <= hca->num_ports; port++) {
			const struct simhca_qp_context *qp = &hca->func[fn].ipoib[port];

			if (qp->live)
				seq_printf(s,
					   "vf %d port %d physical %d opened 0x%04x now 0x%04x\n",
					   fn, port, qp->physical, qp->pkey,
					   hca->port[port].pkey[qp->physical]);
		}
	spin_unlock_irq(&hca->lock);
}
