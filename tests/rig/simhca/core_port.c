// SPDX-License-Identifier: GPL-2.0
/*
 * A port and its link. The cable joins two adapters; each side sends a pulse twice a second. The
 * link is up while both sides have brought their port up and pulses arrive. Logical states move
 * DOWN -> INIT by the link, INIT -> ARMED -> ACTIVE by the SM (core_sma.c), as IBA 7.2.7 has it.
 */
#include "simhca.h"

#include <linux/moduleparam.h>
#include <linux/random.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

#define PULSE_MS 500

static unsigned int link_timeout_ms = 10000;
module_param(link_timeout_ms, uint, 0644);
MODULE_PARM_DESC(link_timeout_ms, "link goes down this long after the other side's last pulse");

/*
 * ConnectX-3's usual capabilities: traps, automatic migration, SL mapping, system image GUID, CM,
 * vendor class, capability mask notice, link round trip latency, client reregistration.
 */
#define CAP_MASK                                                                  \
	(IB_PORT_TRAP_SUP | IB_PORT_AUTO_MIGR_SUP | IB_PORT_SL_MAP_SUP |          \
	 IB_PORT_SYS_IMAGE_GUID_SUP | IB_PORT_CM_SUP | IB_PORT_VENDOR_CLASS_SUP | \
	 IB_PORT_CAP_MASK_NOTICE_SUP | IB_PORT_CLIENT_REG_SUP)

void simhca_port_init(struct simhca *hca, int port)
{
	struct simhca_port *p = &hca->port[port];

	memset(p, 0, sizeof(*p));
	p->gid_prefix = 0xfe80000000000000ull;
	p->cap_mask = CAP_MASK;
	p->state = IB_PORT_DOWN;
	p->phys = IB_PORT_PHYS_STATE_POLLING;
	p->operational_vls = 4;
	p->subnet_timeout = 18;
	if (hca->is_vf)
		return; /* its PF's driver will tell */
	p->pkey[0] = IB_DEFAULT_PKEY_FULL;
	p->guid[0] = simhca_port_guid(hca, port);
}

/* Under hca->lock. Every change of the logical state comes through here. */
void simhca_port_set_state(struct simhca *hca, int port, u8 state)
{
	struct simhca_port *p = &hca->port[port];
	bool was_active = p->state == IB_PORT_ACTIVE;

	p->state = state;
	if (was_active == (state == IB_PORT_ACTIVE))
		return;
	simhca_slave_all_ports(hca, port, !was_active);
	simhca_post(hca, was_active ? SIMHCA_EV_PORT_DOWN : SIMHCA_EV_PORT_UP, port, 0);
}

/* Does the link carry frames? */
bool simhca_port_carries(struct simhca *hca, int port)
{
	return port >= 1 && port <= hca->num_ports &&
	       READ_ONCE(hca->port[port].phys) == IB_PORT_PHYS_STATE_LINK_UP;
}

static bool side_up(const struct simhca_port *p)
{
	return p->client_up && !p->admin_down;
}

/* Under hca->lock: physical state follows from the two sides, logical state from the physical. */
void simhca_port_eval(struct simhca *hca, int port)
{
	struct simhca_port *p = &hca->port[port];
	bool up = side_up(p) && p->peer_up;

	if (up && p->phys != IB_PORT_PHYS_STATE_LINK_UP) {
		p->phys = IB_PORT_PHYS_STATE_LINK_UP;
		simhca_port_set_state(hca, port, IB_PORT_INIT);
	} else if (!up) {
		p->phys = side_up(p) ? IB_PORT_PHYS_STATE_POLLING : IB_PORT_PHYS_STATE_DISABLED;
		if (p->state != IB_PORT_DOWN)
			simhca_port_set_state(hca, port, IB_PORT_DOWN);
	}
}

static void send_pulse(struct simhca *hca, int port)
{
	struct simhca_frame frame = {.kind = SIMHCA_FRAME_PULSE, .port = port};
	unsigned long flags;

	spin_lock_irqsave(&hca->lock, flags);
	frame.up = side_up(&hca->port[port]);
	frame.session = cpu_to_be32(hca->port[port].session);
	spin_unlock_irqrestore(&hca->lock, flags);
	simhca_wire_send(hca, &frame);
}

/* mlx4_INIT_PORT and mlx4_CLOSE_PORT, called when mlx4_ib moves QP0 (hw/mlx4/qp.c). */
void simhca_port_client(struct simhca *hca, int port, bool up)
{
	unsigned long flags;

	spin_lock_irqsave(&hca->lock, flags);
	hca->port[port].client_up = up;
	hca->port[port].session = get_random_u32();
	simhca_port_eval(hca, port);
	spin_unlock_irqrestore(&hca->lock, flags);
	send_pulse(hca, port);
}
EXPORT_SYMBOL_GPL(simhca_port_client);

void simhca_port_admin(struct simhca *hca, int port, bool down)
{
	unsigned long flags;

	spin_lock_irqsave(&hca->lock, flags);
	hca->port[port].admin_down = down;
	simhca_port_eval(hca, port);
	spin_unlock_irqrestore(&hca->lock, flags);
	send_pulse(hca, port);
}

/* Under hca->lock. A new session means that the other side has lost the link in between. */
static void take_pulse(struct simhca *hca, struct simhca_port *p, const struct simhca_frame *frame)
{
	if (p->peer_up && p->peer_session != be32_to_cpu(frame->session)) {
		p->peer_up = false;
		simhca_port_eval(hca, frame->port);
	}
	p->peer_up = frame->up;
	p->peer_session = be32_to_cpu(frame->session);
	p->peer_guid = be64_to_cpu(frame->sender);
	p->peer_seen = jiffies;
	simhca_port_eval(hca, frame->port);
}

void simhca_port_pulse_in(struct simhca *hca, const struct simhca_frame *frame)
{
	struct simhca_port *p;
	unsigned long flags;
	bool news;

	if (frame->port < 1 || frame->port > hca->num_ports)
		return;
	p = &hca->port[frame->port];
	spin_lock_irqsave(&hca->lock, flags);
	news = frame->up && !p->peer_up;
	take_pulse(hca, p, frame);
	spin_unlock_irqrestore(&hca->lock, flags);
	if (news)
		send_pulse(hca, frame->port); /* the other side need not wait for the timer */
}

static void expire_peer(struct simhca *hca, int port)
{
	struct simhca_port *p = &hca->port[port];
	unsigned long flags;

	spin_lock_irqsave(&hca->lock, flags);
	if (p->peer_up &&
	    time_after(jiffies, p->peer_seen + msecs_to_jiffies(READ_ONCE(link_timeout_ms)))) {
		p->peer_up = false;
		p->session = get_random_u32();
		simhca_port_eval(hca, port);
	}
	spin_unlock_irqrestore(&hca->lock, flags);
}

void simhca_port_pulse_work(struct work_struct *work)
{
	struct simhca *hca = container_of(to_delayed_work(work), struct simhca, pulse);
	int port;

	for (port = 1; port <= hca->num_ports; port++) {
		expire_peer(hca, port);
		send_pulse(hca, port);
	}
	schedule_delayed_work(&hca->pulse, msecs_to_jiffies(PULSE_MS));
}
