#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The ML2 driver and the L2 agent, in Neutron's own code, with a whole vhcad on a simulated ConnectX-3."""

import tap
from neutron_case import Case, HOST, MAC, OTHER_HOST, OTHER_MAC, OTHER_UUID, OTHER_VF, PHYSNET, VF
from neutron_lib.api.definitions import portbindings


class Ports(Case):
    def boot(self, **kwargs):
        """As Nova does: bound, plugged, and the domain begins."""
        port = self.make_port(**kwargs)
        self.vhcad.add(mac=port['mac_address'], bdf=kwargs.get('bdf', VF), uuid=port['device_id'])
        self.until(lambda: self.vhcad.claim(kwargs.get('bdf', VF))['pkeys'])
        self.vhcad.wait(lambda: self.vhcad.begin(uuid=port['device_id'], bdf=kwargs.get('bdf', VF)) == 'pass\n')
        return port

    def attach(self):
        """Its guest runs with the VF."""
        port = self.boot()
        self.vhcad.show(VF)
        self.vhcad.kill()
        self.vhcad.wait(lambda: self.vhcad.claim()['state'] == 'attached')
        self.until_status(port, 'ACTIVE')
        return port

    def set_keys(self, port, pkeys):
        self._update('ports', port['id'], {'port': {portbindings.PROFILE: self.profile(VF, pkeys)}})

    def test_binding(self):
        port = self.make_port()
        self.assertEqual(port['binding:vif_type'], 'ib_hostdev')
        self.assertEqual(port['binding:vif_details'], {'connectivity': 'legacy', 'port_filter': False, 'physical_network': PHYSNET})

    def test_boot_and_end(self):
        port = self.make_port()
        self.vhcad.add()
        self.until(lambda: self.vhcad.claim()['pkeys'] == ['0x8001'])
        self.assertEqual((self.status(port), self.vhcad.claim()['reserved']), ('DOWN', True))
        self.vhcad.wait(lambda: self.vhcad.begin() == 'pass\n')
        self.until_status(port, 'ACTIVE')
        self.assertEqual(self.report()['ports_down'], {})
        self.vhcad.delete()
        self.until_status(port, 'DOWN')
        self._delete('ports', port['id'])

    def test_keys_of_an_attached_port(self):
        port = self.attach()
        self.set_keys(port, '0x0001=full,0x8012')
        self.until(lambda: self.vhcad.claim()['pkeys'] == ['0x8001', '0x8012'])


tap.main(__name__)
