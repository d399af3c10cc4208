# SPDX-License-Identifier: LGPL-2.1-or-later
"""`mechanism_drivers = vhca`: binds ports of vnic_type direct where an L2 agent of vhcad is alive."""

from neutron.plugins.ml2.drivers import mech_agent
from neutron_lib.api.definitions import portbindings
from neutron_lib import constants, exceptions
from neutron_lib.plugins import directory
from neutron_lib.plugins.ml2 import api
from oslo_config import cfg
from oslo_log import log

from networking_vhca import AGENT_TYPE, VIF_TYPE

LOG = log.getLogger(__name__)

OPTION = 'client-id'
CLIENT_ID = {False: 'ff:00:00:00:00:00:02:00:00:02:c9:00:', True: '20:'}    # what goes before a guest's GUID
OPTIONS = [cfg.BoolOpt('client_id_hardware', default=False, help='DHCP client-ids are of hardware type 32 instead of ff')]


def _client_id(mac):
    return f'{CLIENT_ID[cfg.CONF.vhca.client_id_hardware]}{mac[:8]}:00:00:{mac[9:]}'


class VhcaMechanismDriver(mech_agent.SimpleAgentMechanismDriverBase):
    def __init__(self):
        super().__init__(AGENT_TYPE, VIF_TYPE, {portbindings.CAP_PORT_FILTER: False},
                         supported_vnic_types=[portbindings.VNIC_DIRECT])

    def initialize(self):
        cfg.CONF.register_opts(OPTIONS, 'vhca')

    def update_port_postcommit(self, context):
        """Neutron's DHCP agent knows an IPoIB guest by its client-id only. Another one than ours, or none later, is the operator's."""
        port, ours = context.current, _client_id(context.current['mac_address'])
        given = next((o['opt_value'] for o in port['extra_dhcp_opts'] if o['opt_name'] == OPTION), None)
        is_missing = given is None and port[portbindings.VIF_TYPE] == VIF_TYPE != context.original[portbindings.VIF_TYPE]
        if given != ours and (is_missing or given == _client_id(context.original['mac_address'])):
            update = {'port': {'extra_dhcp_opts': [{'opt_name': OPTION, 'opt_value': ours}]}}
            try:
                directory.get_plugin().update_port(context._plugin_context, port['id'], update)
            except exceptions.PortNotFound:     # deleted meanwhile
                pass
            except Exception:    # its next binding tries again; this one stands
                LOG.exception('port %s gets no DHCP client-id', port['id'])

    def get_allowed_network_types(self, agent=None):
        return [constants.TYPE_FLAT, constants.TYPE_LOCAL, constants.TYPE_VLAN]

    def get_mappings(self, agent):
        return agent['configurations'].get('interface_mappings', {})

    def get_vif_details(self, context, agent, segment):
        # Without it Nova plugs no port of this vif_type.
        return {**self.vif_details, 'physical_network': segment[api.PHYSICAL_NETWORK]}
