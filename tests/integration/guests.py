# SPDX-License-Identifier: LGPL-2.1-or-later
"""The hypervisor of tests with Neutron: a whole vhcad, whose libvirt shows the domains of a file, which the next life of it reads."""

from host_case import MAC, OTHER_MAC, UUID, VF, Host


class Hypervisor(Host):
    def __init__(self, where):
        super().__init__(where)
        with open(self.conf, encoding='utf-8') as f:
            text = f.read()
        self.write(text.replace('test:///default', f'test://{where}/host.xml'))
        self.show()

    def show(self, *vfs):
        """A domain runs with these."""
        devices = ''.join(f"<hostdev mode='subsystem' type='pci' managed='yes'><source><address domain='0x0000' bus='0x01' slot='0x00' "
                          f"function='0x{vf[-1]}'/></source></hostdev>" for vf in vfs)
        domain = (f"<domain type='test'><name>vm</name><uuid>{UUID}</uuid><memory>65536</memory><os><type>hvm</type></os>"
                  f"<devices>{devices}</devices></domain>")
        with open(f'{self.where}/host.xml', 'w', encoding='utf-8') as f:
            f.write(f"<node>{domain if vfs else ''}</node>")

    def claim(self, bdf=VF):
        """None: it has none."""
        return next((claim for claim in self.get('/v1/claims')[1]['claims'] if claim['bdf'] == bdf), None)

    def clear(self):
        if (self.claim() or {}).get('state') == 'attached':
            self.show()
            self.kill()
        for mac in (MAC, OTHER_MAC):
            assert self.delete(mac=mac)[:3] == ('', '', 0), self.log_text()
