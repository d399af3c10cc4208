#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""neutron-server with our ML2 driver, RabbitMQ and neutron-vhca-agent as processes, and a whole vhcad on a simulated ConnectX-3."""

import http.client
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

BROKER = '/usr/lib/rabbitmq/bin/rabbitmq-server'    # not the one in PATH, which wants the machine's own node

try:
    import neutron.tests
    if not os.path.exists(BROKER):
        raise ImportError('no RabbitMQ')
except ImportError as why:
    print(f'1..0 # SKIP {why} (tools/deps cloud)')
    sys.exit()

import fabric
import tap
from guests import Hypervisor
from host_case import MAC, UUID, VF
from networking_vhca import AGENT_TYPE

HOST, PHYSNET = 'hv1', 'physnet1'
WAIT = 200      # seconds, on a busy machine
CLIENT_ID = 'ff:00:00:00:00:00:02:00:00:02:c9:00:fa:16:3e:00:00:12:34:56'
PROGRAMS = os.path.join(os.environ['VHCA_SOURCE_DIR'], 'drivers/openstack')

SERVER = os.path.join(os.path.dirname(__file__), 'neutron_server.py')

NEUTRON = """[DEFAULT]
host = {host}
transport_url = rabbit://guest:guest@127.0.0.1:{broker}//
state_path = {where}
rpc_response_timeout = 15
graceful_shutdown_timeout = 20
core_plugin = ml2
service_plugins =
auth_strategy = noauth
api_paste_config = {paste}
bind_host = 127.0.0.1
bind_port = {api}
api_workers = 0
rpc_state_report_workers = 0
notify_nova_on_port_status_changes = false
notify_nova_on_port_data_changes = false
[database]
connection = {database}
[oslo_concurrency]
lock_path = {where}
[ml2]
type_drivers = vlan,flat,local
tenant_network_types = vlan
mechanism_drivers = vhca
[ml2_type_vlan]
network_vlan_ranges = {physnet}:1:100
"""


class Process:
    """One program, whose output is a file; it is ended by its id."""

    def __init__(self, where, name, argv, env=None):
        self._path = f'{where}/{name}.log'
        with open(self._path, 'ab') as log:
            self._process = subprocess.Popen(argv, cwd=where, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def said(self):
        with open(self._path, encoding='utf-8', errors='replace') as f:
            return f.read()

    def runs(self):
        return self._process.poll() is None

    def end(self):
        self._process.terminate()
        try:
            self._process.wait(WAIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def listens(port):
    with socket.socket() as s:
        return not s.connect_ex(('127.0.0.1', port))


class Processes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.where = tempfile.mkdtemp(prefix='vhca-neutron.')
        cls.addClassCleanup(shutil.rmtree, cls.where)
        cls.broker = cls.begin_broker()
        cls.configure()
        cls.server = cls.begin('server', [sys.executable, SERVER, '--config-file', f'{cls.where}/neutron.conf'])
        cls.vhcad = Hypervisor(tempfile.mkdtemp(prefix='vhca-host.'))
        cls.addClassCleanup(shutil.rmtree, cls.vhcad.where)
        cls.addClassCleanup(cls.vhcad.end)
        cls.vhcad.start()
        cls.agent = cls.begin_agent()

    @classmethod
    def begin(cls, name, argv, env=None):
        process = Process(cls.where, name, argv, env)
        cls.addClassCleanup(process.end)
        return process

    @classmethod
    def begin_broker(cls):
        """All of its ports and files are the test's."""
        cls.broker_port, names, dist = (str(fabric.free_port()) for _ in range(3))
        open(f'{cls.where}/plugins', 'w', encoding='ascii').close()
        env = {'HOME': cls.where, 'ERL_EPMD_PORT': names, 'ERL_EPMD_ADDRESS': '127.0.0.1',
               'RABBITMQ_NODENAME': f'vhca{os.getpid()}@localhost', 'RABBITMQ_NODE_IP_ADDRESS': '127.0.0.1', 'RABBITMQ_NODE_PORT': cls.broker_port,
               'RABBITMQ_DIST_PORT': dist, 'RABBITMQ_MNESIA_BASE': f'{cls.where}/db', 'RABBITMQ_LOG_BASE': f'{cls.where}/log',
               'RABBITMQ_ENABLED_PLUGINS_FILE': f'{cls.where}/plugins', 'RABBITMQ_CONF_ENV_FILE': '/dev/null',
               'RABBITMQ_CONFIG_FILE': f'{cls.where}/none', 'RABBITMQ_CONFIG_FILES': f'{cls.where}/none.d/*.conf',
               'RABBITMQ_ADVANCED_CONFIG_FILE': f'{cls.where}/none.config',
               'RABBITMQ_PID_FILE': f'{cls.where}/broker.pid', 'RABBITMQ_ALLOW_INPUT': '1',    # no shell between: the process is the broker
               'RABBITMQ_SERVER_ERL_ARGS': '+sbwt none +sbwtdcpu none +sbwtdio none -noinput -start_epmd false -kernel inet_dist_use_interface {127,0,0,1}'}
        with open(os.open(f'{cls.where}/.erlang.cookie', os.O_WRONLY | os.O_CREAT, 0o400), 'w', encoding='ascii') as f:
            f.write(secrets.token_hex(20))
        epmd = cls.begin('epmd', ['epmd', '-port', names, '-address', '127.0.0.1'])
        # Where nobody listens RabbitMQ begins a daemon of its own, which nobody would end.
        fabric.wait_for('epmd listens', lambda: epmd.runs() and listens(int(names)), WAIT)
        return cls.begin('broker', [BROKER], env)

    @classmethod
    def configure(cls):
        cls.api_port = fabric.free_port()
        database = f'sqlite:///{cls.where}/neutron.db?timeout=0.1'      # who holds the lock may be this process: it is not to be waited for long
        subprocess.run([sys.executable, SERVER, '--tables', database], check=True, timeout=WAIT, capture_output=True)
        paste = os.path.join(os.path.dirname(neutron.tests.__file__), 'etc/api-paste.ini')
        with open(f'{cls.where}/neutron.conf', 'w', encoding='utf-8') as f:
            f.write(NEUTRON.format(host=HOST, broker=cls.broker_port, where=cls.where, paste=paste, api=cls.api_port, database=database, physnet=PHYSNET))

    @classmethod
    def begin_agent(cls):
        with open(f'{cls.where}/agent.ini', 'w', encoding='utf-8') as f:
            f.write(f'[vhca]\nsocket = {cls.vhcad.where}/run/vhcad.sock\n')
        return cls.begin('agent', [sys.executable, f'{PROGRAMS}/neutron-vhca-agent', '--config-file', f'{cls.where}/neutron.conf',
                                   '--config-file', f'{cls.where}/agent.ini'])

    # ---- Neutron's API ----

    def call(self, method, path, body=None):
        """(status, answer); (None, None): nobody answers."""
        connection = http.client.HTTPConnection('127.0.0.1', self.api_port, timeout=WAIT)
        try:
            connection.request(method, f'/v2.0/{path}', body and json.dumps(body), {'Content-Type': 'application/json'})
            response = connection.getresponse()
            text = response.read()
            return response.status, json.loads(text) if text and response.status < 500 else text
        except OSError:
            return None, None
        finally:
            connection.close()

    def ask(self, method, path, body=None):
        """Again, where SQLite had another writer for too long."""
        said = []

        def done():
            said[:] = self.call(method, path, body)
            return said[0] and said[0] < 500
        self.until(done, f'{method} {path} is answered')
        self.assertIn(said[0], (200, 201, 204), f'{method} {path}: {said[1]}')
        return said[1]

    def until(self, condition, what):
        def holds():
            for process in (self.broker, self.server, self.agent):
                self.assertTrue(process.runs(), process.said()[-4000:])
            return condition()
        try:
            self.vhcad.wait(holds, WAIT)
        except AssertionError as e:
            raise AssertionError(f'{what}\n{self.agent.said()[-3000:]}\n{self.server.said()[-3000:]}\n{self.broker.said()[-500:]}') from e

    def configurations(self):
        """Of our agent, if it is alive."""
        status, answer = self.call('GET', 'agents')
        agents = answer['agents'] if status == 200 else []
        return next((agent['configurations'] for agent in agents if agent['alive'] and agent['agent_type'] == AGENT_TYPE), {})

    def until_status(self, port, status):
        def has_it():
            code, answer = self.call('GET', f'ports/{port}')
            return code == 200 and answer['port']['status'] == status
        self.until(has_it, f'{status} is expected')

    def make_port(self):
        network = self.ask('POST', 'networks', {'network': {
            'name': 'ib', 'tenant_id': 'tenant', 'provider:network_type': 'vlan', 'provider:physical_network': PHYSNET,
            'provider:segmentation_id': 1}})['network']['id']
        self.addCleanup(self.delete, f'networks/{network}')
        self.ask('POST', 'subnets', {'subnet': {
            'network_id': network, 'tenant_id': 'tenant', 'ip_version': 4, 'cidr': '10.0.0.0/24', 'enable_dhcp': False}})   # whose agent is not here
        port = self.ask('POST', 'ports', {'port': {
            'network_id': network, 'tenant_id': 'tenant', 'mac_address': MAC, 'device_owner': 'compute:nova', 'device_id': UUID,
            'binding:vnic_type': 'direct', 'binding:host_id': HOST, 'binding:profile': self.profile()}})['port']
        self.addCleanup(self.delete, f"ports/{port['id']}")
        self.addCleanup(self.vhcad.clear)
        return port

    def delete(self, path):
        self.until(lambda: self.call('DELETE', path)[0] in (204, 404), f'{path} goes')

    @staticmethod
    def profile(**more):
        return {'pci_slot': VF, 'pci_vendor_info': '15b3:1004', 'physical_network': PHYSNET, **more}

    def boot(self):
        """As Nova: bound, plugged, and its domain begins, and has the VF."""
        self.until(lambda: self.configurations().get('vhcad') == 'answers', 'Neutron knows the agent')
        port = self.make_port()
        self.assertEqual(port['binding:vif_type'], 'ib_hostdev')
        self.assertEqual(self.vhcad.add()[:3], ('ib0', '', 0))
        self.until(lambda: self.vhcad.claim()['pkeys'] == ['0x8001'], 'the segment is its partition')
        self.vhcad.wait(lambda: self.vhcad.begin() == 'pass\n', WAIT)
        self.vhcad.show(VF)
        self.vhcad.kill()
        self.until(lambda: self.vhcad.claim()['state'] == 'attached', 'it is attached')
        self.until_status(port['id'], 'ACTIVE')
        return port['id']

    def end(self, port):
        """Its domain, and then Nova deletes it from the host."""
        self.vhcad.clear()
        self.until_status(port, 'DOWN')

    def test_a_port_lives(self):
        port = self.boot()
        shown = self.ask('GET', f'ports/{port}')['port']
        self.assertEqual([option['opt_value'] for option in shown['extra_dhcp_opts']], [CLIENT_ID])
        self.ask('PUT', f'ports/{port}', {'port': {'binding:profile': self.profile(ib_pkeys='0x8001,0x0002=limited')}})
        self.until(lambda: self.vhcad.claim()['pkeys'] == ['0x8001', '0x0002'], 'its partitions change')
        self.end(port)
        self.ask('DELETE', f'ports/{port}')

    def test_a_port_is_deleted_under_its_guest(self):
        port = self.boot()
        self.ask('DELETE', f'ports/{port}')
        self.vhcad.clear()
        self.until(lambda: self.configurations().get('ports') == 0, 'it is forgotten')
        self.assertNotIn('Traceback', self.agent.said())


tap.main(__name__)
