# SPDX-License-Identifier: LGPL-2.1-or-later
"""`mechanism_drivers = vhca`: binds ports of vnic_type direct where an L2 agent of vhcad is alive."""

from neutron.plugins.ml2.drivers import mech_agent
from neutron_lib.api.definitions import portbindings
from neutron_lib import constants
from neutron_lib.plugins.ml2 import api

from networking_vhca import AGENT_TYPE, VIF_TYPE


class VhcaMechanismDriver(mech_agent.SimpleAgentMechanismDriverBase):
    def __init__(self):
        super().__init__(AGENT_TYPE, VIF_TYPE, {portbindings.CAP_PORT_FILTER: False},
                         supported_vnic_types=[portbindings.VNIC_DIRECT])

    def get_allowed_network_types(self, agent=None):
        return [constants.TYPE_FLAT, constants.TYPE_LOCAL, constants.TYPE_VLAN]

    def get_mappings(self, agent):
        return agent['configurations'].get('interface_mappings', {})

    def get_vif_details(self, context, agent, segment):
        # Without it Nova plugs no port of this vif_type.
        return {**self.vif_details, 'physical_network': segment[api.PHYSICAL_NETWORK]}
