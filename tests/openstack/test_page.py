#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/openstack.md: what it puts into files is read by whose file that is, and its commands are typed, at Neutron's own API and a whole vhcad."""

import warnings

warnings.simplefilter('ignore')
import sys

try:
    import neutron.tests.unit.plugins.ml2.test_plugin  # noqa: F401
    import openstackclient  # noqa: F401
except ImportError as why:
    print(f'1..0 # SKIP {why} (tools/deps cloud)')
    sys.exit()

import configparser
import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import threading
import unittest
import wsgiref.simple_server

from neutron.api import extensions
from neutron.tests.unit.api import test_extensions
from neutron_lib.api.definitions import portbindings
from neutron_lib import context as n_context
from oslo_config import cfg

import page_code
import tap
import yaml
from host_case import FREE, MAC, OTHER_VF, UUID, VF
from neutron_case import Case, HOST

SOURCE = pathlib.Path(os.environ['VHCA_SOURCE_DIR'])
PAGE = (SOURCE / 'docs/openstack.md').read_text('utf-8')
BLOCKS = page_code.indented(PAGE)
SANITIZERS = {'libasan.so.8', 'libubsan.so.1', 'libm.so.6', 'libgcc_s.so.1'}     # what these link
STATE = '/var/lib/vhcad'
EXAMPLE = '0000:3b:00.2', '0000:3b:00.3'     # the page's VFs


def settings(section):
    """The page's blocks with this section, each as a parser has it."""
    found = []
    for block in BLOCKS:
        if block.startswith('[') and f'[{section}]' in block:
            parser = configparser.ConfigParser(interpolation=None)
            parser.read_string(block)
            found.append(parser)
    assert found, section
    return found


def here(text):
    """With this host's VFs, and the partition that its port is in, in the place of the page's."""
    for theirs, own in ((EXAMPLE[0], VF), (EXAMPLE[1], OTHER_VF), ('segment 17', 'segment 1'), ('0x8011', '0x8001'), ('host hv1', f'host {HOST}')):
        text = text.replace(theirs, own)
    return text


NOVA = """
import sys
import types
import nova.conf
from nova.pci import whitelist
nova.conf.CONF(['--config-file', sys.argv[1]], project='nova')
known = whitelist.Whitelist(nova.conf.CONF.pci.device_spec)
for address in sys.argv[2:]:
    spec = known.get_devspec(types.SimpleNamespace(address=address, vendor_id='15b3', product_id='1004', parent_addr='0000:01:00.0', card_serial_number=None))
    print(spec and spec.get_tags()['physical_network'])
"""


class Api:
    """Neutron's API as it is reached by HTTP, by an administrator; keystone's part is left out. Of Nova's and glance's there is what the client asks for, and
    each server that it asks for is kept (test_nova has Nova itself boot from such a request)."""

    FLAVOR = {'id': '1', 'name': 'small'}
    IMAGE = {'id': 'i', 'name': 'debian'}

    def __init__(self, case):
        self._case = case
        self.servers = []
        self._extensions = test_extensions.setup_extensions_middleware(extensions.PluginAwareExtensionManager.get_instance())
        self._server = wsgiref.simple_server.make_server('127.0.0.1', 0, self, handler_class=Quiet)
        self.url = 'http://127.0.0.1:%d' % self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __call__(self, environ, start_response):
        path = environ['PATH_INFO']
        if not path.startswith('/v2.0/') or path.startswith('/v2.0/images/'):
            start_response('200 OK', [('Content-Type', 'application/json')])
            return [json.dumps(self._answer(path, environ)).encode()]
        environ['PATH_INFO'] = path.removeprefix('/v2.0')
        environ['neutron.context'] = n_context.get_admin_context()
        environ['neutron.context'].tenant_id = 'tenant'
        app = self._extensions if path.startswith(('/v2.0/agents', '/v2.0/extensions')) else self._case.api
        return app(environ, start_response)

    def _answer(self, path, environ):
        if path.startswith('/servers'):
            if environ['REQUEST_METHOD'] == 'POST':
                self.servers.append(json.loads(environ['wsgi.input'].read(int(environ['CONTENT_LENGTH'])))['server'])
            return {'server': {'id': 's', 'name': self.servers[-1]['name'], 'flavor': self.FLAVOR, 'image': self.IMAGE, 'addresses': {}, 'metadata': {}}}
        if path.startswith('/flavors/'):
            return {'flavor': self.FLAVOR}
        if path.startswith('/v2.0/images/'):
            return self.IMAGE
        return {'versions': [{'id': 'v2.0', 'status': 'CURRENT', 'links': [{'rel': 'self', 'href': f'{self.url}/v2.0/'}]}]}


class Quiet(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *args):
        pass


class Blocks(unittest.TestCase):
    def test_each_is_put_or_typed_by_a_test(self):
        """the shell's at "Coming from eswitchd" by test_reference, all others here"""
        self.assertEqual([block.splitlines()[0] for block in BLOCKS], [
            '[pci]', 'nova_compute_extra_volumes:', '[policy]', 'systemctl disable --now networking-mlnx-eswitchd', '[ml2]', '[api]',
            'systemctl restart vhcad', 'openstack network create --provider-network-type vlan --provider-physical-network ibnet \\',
            'openstack port set --binding-profile ib_pkeys=0x8011=full,0x8012=limited ib-0', '[api]'])

    def test_units_are_there(self):
        named = set(re.findall(r'^systemctl .*?([\w-]+)$', '\n'.join(BLOCKS), re.M)) - {'networking-mlnx-eswitchd'}     # which is not ours
        self.assertEqual(named, {'vhcad', 'vhca-eswitch', 'neutron-vhca-agent'})
        there = {path.name.partition('.')[0] for path in [*SOURCE.glob('drivers/openstack/*.service.in'), *SOURCE.glob('conf/systemd/*.service.in')]}
        self.assertLessEqual(named, there)

    def test_vhcad_takes_its_part(self):
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as conf:
            text = '\n'.join(block for block in BLOCKS if block.startswith(('[policy]', '[api]')))
            conf.write(text.replace('neutron:admin', 'nobody:admin'))   # a user that this machine has
            conf.flush()
            done = subprocess.run([os.environ['VHCAD'], '-c', conf.name, '--check-config'], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


class Kolla(unittest.TestCase):
    """What goes into its containers."""

    def test_files_that_are_installed(self):
        block, = [block for block in BLOCKS if block.startswith('nova_compute_extra_volumes')]
        volumes = [volume.split(':') for volumes in yaml.safe_load(block).values() for volume in volumes]
        self.assertEqual({(outside == inside, mode) for outside, inside, mode in volumes}, {(True, 'ro')})
        self.assertEqual([volume[0] for volume in volumes], [*os.environ['VHCA_INSTALLED'].split(), STATE])

    def test_hook_in_an_older_container(self):
        """No symbol of glibc is newer than the page says, and no other library is needed."""
        symbols = subprocess.run(['objdump', '-p', '-T', os.environ['VHCA_HOOK_INSTALLED']], capture_output=True, text=True, check=True).stdout
        said = re.search(r'a glibc of 2\.(\d+) or later', PAGE)[1]
        self.assertLessEqual(max(map(int, re.findall(r'GLIBC_2\.(\d+)', symbols))), int(said))
        self.assertLessEqual(set(re.findall(r'NEEDED +(\S+)', symbols)) - SANITIZERS, {'libc.so.6', 'ld-linux-x86-64.so.2'})


class Page(Case):
    """A new site: both files, the commands that make a port and a VM, and its life at a hypervisor."""

    fabric = 'ibnet'

    def setup_parent(self):
        ml2, = settings('ml2')
        for group in ml2.sections():
            for key, value in ml2[group].items():
                cfg.CONF.set_override(key, value.split(','), group=group)
        super().setup_parent()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        own, = settings('hca default')
        text = here('\n'.join(f'{key} = {value}' for key, value in own['hca default'].items()))
        with open(cls.vhcad.conf, encoding='utf-8') as f:
            before = f.read().partition('[hca default]')[0]
        cls.vhcad.write(f'{before}[hca default]\nmanage = yes\nvfs = keep\n{text}\n')
        cls.vhcad.kill()

    def setUp(self):
        super().setUp()
        self.cloud = Api(self)
        self.addCleanup(self.cloud.close)
        self.env = {**os.environ, 'OS_AUTH_TYPE': 'none', 'OS_ENDPOINT': self.cloud.url}

    def type(self, command, *more):
        """An openstack command of the page; what it shows."""
        argv = shlex.split(here(command).replace('\\\n', ' '))
        done = subprocess.run(argv + [*more], env=self.env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, f'{argv}: {done.stderr}')
        return json.loads(done.stdout) if done.stdout else None

    def commands(self):
        """By what they do."""
        found = {}
        for block in BLOCKS:
            for command in re.findall(r'^openstack(?:.*\\\n)*.*$', block, re.M):
                found[' '.join(command.split()[1:4 if 'agent' in command else 3])] = command
        return found

    def test_from_network_to_up(self):
        commands = self.commands()
        self.assertEqual(sorted(commands), ['network agent list', 'network create', 'port create', 'port set', 'server create', 'subnet create'])
        agents = self.type(commands['network agent list'], '-f', 'json')
        self.assertEqual([(agent['Agent Type'], agent['Host'], agent['Alive']) for agent in agents], [('vHCA agent', HOST, True)])
        self.type(commands['network create'], '-f', 'json')
        self.type(commands['subnet create'], '-f', 'json')
        port = self.type(commands['port create'], '-f', 'json', '--mac-address', MAC)
        self.assertEqual(port['binding_vnic_type'], 'direct')
        self.type(commands['server create'], '-f', 'json')
        self.assertEqual([(server['name'], server['networks']) for server in self.cloud.servers], [('vm-0', [{'port': port['id']}])])
        self.begin(port)
        self.until_status(port, 'ACTIVE')
        self.type(commands['port set'])
        self.until(lambda: self.vhcad.claim()['pkeys'] == ['0x8001', '0x0012'])
        shown = self.type(f'openstack network agent show {agents[0]["ID"]}', '-f', 'json')
        self.assertIn('ports_down', json.dumps(shown))

    def begin(self, port):
        """As Nova: bound, plugged, begun."""
        self.report()       # it is alive, however long the commands have taken
        profile = {'pci_slot': VF, 'pci_vendor_info': '15b3:1004', 'physical_network': self.fabric}
        self._update('ports', port['id'], {'port': {portbindings.HOST_ID: HOST, portbindings.PROFILE: profile, 'device_id': UUID,
                                                    'device_owner': 'compute:nova'}})
        self.assertEqual(self.vhcad.add(fabric=self.fabric)[:3], ('ib0', '', 0))
        self.until(lambda: self.vhcad.claim()['pkeys'] == ['0x8001'])
        self.vhcad.wait(lambda: self.vhcad.begin() == 'pass\n')

    def test_nova_finds_the_vfs(self):
        """by Nova's own reading of the lines (in a process of its own: it has the same names as Neutron for other options)"""
        conf = f'{self.vhcad.where}/nova.conf'
        with open(conf, 'w', encoding='utf-8') as f:
            f.write(here(next(block for block in BLOCKS if block.startswith('[pci]'))))
        done = subprocess.run([sys.executable, '-c', NOVA, conf, VF, OTHER_VF, FREE], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout.split(), [self.fabric, self.fabric, 'None'], done.stderr)

    def tearDown(self):
        assert self.vhcad.delete(fabric=self.fabric)[:3] == ('', '', 0)
        super().tearDown()


tap.main(__name__)
