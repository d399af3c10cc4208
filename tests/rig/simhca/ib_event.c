// SPDX-License-Identifier: GPL-2.0
/*
 * What the adapter's events do: hw/mlx4/main.c:mlx4_ib_event and init_pkeys,
 * hw/mlx4/mad.c:handle_port_mgmt_change_event. mlx4 never raises SM_CHANGE; on a master GID_CHANGE
 * means a new subnet prefix and never an alias GUID.
 */
#include "simhca_ib.h"

static void dispatch(struct simhca_ib *dev, int port, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &dev->ib,
		.element.port_num = port,
		.event = type,
	};

	ib_dispatch_event(&event);
}

/* main.c:init_pkeys: the PF sees the table as it is, a VF only its first entry. */
void simhca_init_pkeys(struct simhca_ib *dev)
{
	struct simhca *hca = dev->hca;
	int fn, port, i;

	for (fn = 0; fn <= hca->num_vfs; fn++)
		for (port = 1; port <= hca->num_ports; port++)
			for (i = 0; i < SIMHCA_PKEYS; i++)
				simhca_set_map(hca, fn, port, i, !fn || !i ? i : SIMHCA_PKEY_NONE);
}

static void slave_event(struct simhca_ib *dev, int fn, bool init)
{
	int port;

	for (port = 1; port <= dev->hca->num_ports; port++) {
		if (init) /* cmd.c:mlx4_master_activate_admin_state */
			dev->hca->func[fn].smi_enabled[port] = dev->hca->func[fn].enable_smi[port];
		simhca_alias_guid_slave(dev, port, fn, init);
	}
}

static void port_up(struct simhca_ib *dev, int port)
{
	if (simhca_is_master(dev->hca))
		simhca_alias_guid_invalidate_all(dev, port);
	dispatch(dev, port, IB_EVENT_PORT_ACTIVE);
}

static void client_reregister(struct simhca_ib *dev, int port)
{
	if (simhca_is_master(dev->hca))
		simhca_alias_guid_invalidate_all(dev, port);
	dispatch(dev, port, IB_EVENT_CLIENT_REREGISTER);
}

/* A master's own GUID never changes: only the slaves' are looked at. */
static void guid_info(struct simhca_ib *dev, int port, int block)
{
	if (simhca_is_master(dev->hca))
		simhca_alias_guid_table(dev, port, block);
	else
		dispatch(dev, port, IB_EVENT_GID_CHANGE);
}

void simhca_ib_event(struct simhca *hca, void *priv, const struct simhca_event_info *ev)
{
	struct simhca_ib *dev = priv;

	switch (ev->type) {
	case SIMHCA_EV_PORT_UP:
		port_up(dev, ev->port);
		break;
	case SIMHCA_EV_PORT_DOWN:
		dispatch(dev, ev->port, IB_EVENT_PORT_ERR);
		break;
	case SIMHCA_EV_LID_CHANGE:
		dispatch(dev, ev->port, IB_EVENT_LID_CHANGE);
		break;
	case SIMHCA_EV_GID_PREFIX:
		dispatch(dev, ev->port, IB_EVENT_GID_CHANGE);
		break;
	case SIMHCA_EV_CLIENT_REREG:
		client_reregister(dev, ev->port);
		break;
	case SIMHCA_EV_PKEY_TABLE:
		dispatch(dev, ev->port, IB_EVENT_PKEY_CHANGE);
		break;
	case SIMHCA_EV_GUID_INFO:
		guid_info(dev, ev->port, ev->arg);
		break;
	case SIMHCA_EV_SLAVE_INIT:
	case SIMHCA_EV_SLAVE_SHUTDOWN:
		slave_event(dev, ev->arg, ev->type == SIMHCA_EV_SLAVE_INIT);
		break;
	case SIMHCA_EV_RAW:
		dispatch(dev, ev->port, ev->arg);
		break;
	}
}
