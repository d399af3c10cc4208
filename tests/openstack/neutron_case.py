# SPDX-License-Identifier: LGPL-2.1-or-later
"""Neutron's own API, ML2 plugin and RPC endpoints in this process, in the test base that it ships; the L2 agent of a host, looked through
by the test itself, so that nothing else uses Neutron's database meanwhile; and a whole vhcad on a simulated adapter."""

import logging
import shutil
import tempfile
import time
import warnings

warnings.simplefilter('ignore')

from neutron.api.rpc.handlers import resources_rpc
from neutron.conf.agent import common as agent_config
from neutron.db import agents_db
from neutron.plugins.ml2 import rpc as ml2_rpc
from neutron.tests.unit.plugins.ml2 import test_plugin
from neutron_lib.agent import topics
from neutron_lib.api.definitions import portbindings
from neutron_lib import context as n_context
from neutron_lib import rpc as n_rpc
from oslo_config import cfg
import oslo_messaging

from networking_vhca import AGENT_TYPE
from networking_vhca import agent as vhca_agent
from networking_vhca import vhcad
from guests import Hypervisor
from host_case import MAC, OTHER_MAC, UUID, VF

HOST, OTHER_HOST = 'hv1', 'hv2'
PHYSNET = 'physnet1'
WAIT = 100      # seconds, on a busy machine
TURN = 0.02
ROLES = ['admin', 'service', 'member', 'reader']

vhca_agent.RETRY = 2     # seconds, instead of 10
agent_config.register_agent_state_opts_helper(cfg.CONF)


def serve(endpoints, **target):
    server = oslo_messaging.get_rpc_server(n_rpc.TRANSPORT, oslo_messaging.Target(server='neutron-server', **target), endpoints,
                                           executor='threading', serializer=n_rpc.RequestContextSerializer())
    server.start()
    return server


def stop(servers):
    for server in servers:
        server.stop()
        server.wait()


class Case(test_plugin.Ml2PluginV2TestCase):
    _mechanism_drivers = ['vhca']

    hosts = (HOST,)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.vhcads = {}
        try:
            for host in cls.hosts:
                cls.vhcads[host] = Hypervisor(tempfile.mkdtemp(prefix='vhca-neutron.'))
                cls.vhcads[host].start()
        except BaseException:
            cls.tearDownClass()
            raise
        cls.vhcad = cls.vhcads.get(HOST)

    @classmethod
    def tearDownClass(cls):
        for hypervisor in cls.vhcads.values():
            hypervisor.end()
            shutil.rmtree(hypervisor.where)
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        logging.getLogger('networking_vhca').setLevel(logging.INFO)
        cfg.CONF.set_override('rpc_response_timeout', 20)
        n_rpc._BackingOffContextWrapper.reset_timeouts()
        notifier = ml2_rpc.AgentNotifierApi(topics.AGENT)
        self.plugin.notifier = notifier
        self.agent_servers = []
        self.neutron_servers = []
        self.serve()
        self.addCleanup(self.stop_serving)
        self.agents = {host: self.agent_of(host) for host in self.hosts}
        self.agent = self.agents.get(HOST)

    def serve(self):
        """Neutron answers calls."""
        self.neutron_servers = [
            serve([ml2_rpc.RpcCallbacks(self.plugin.notifier, self.plugin.type_manager), resources_rpc.ResourcesPullRpcCallback()], topic=topics.PLUGIN),
            serve([agents_db.AgentExtRpcCallback(self.plugin)], topic=topics.REPORTS)]

    def stop_neutron(self):
        stop(self.neutron_servers)

    def stop_serving(self):
        stop(self.neutron_servers + self.agent_servers)

    def agent_of(self, host):
        agent = vhca_agent.Agent(host, vhcad.Vhcad(f'{self.vhcads[host].where}/run/vhcad.sock'), {})
        self.agent_servers += agent.listen()
        agent.watch()
        agent.look()
        self.assertTrue(agent.report(True))
        return agent

    def tearDown(self):
        for hypervisor in self.vhcads.values():
            hypervisor.clear()
        super().tearDown()

    def until(self, condition, *agents):
        """The agents look whenever they would have, until it is so."""
        end = time.monotonic() + WAIT
        while not condition():
            self.assertLess(time.monotonic(), end, self.vhcad.log_text())
            for agent in agents or (self.agent,):
                self.turn(agent)

    def turn(self, agent):
        due = getattr(agent, 'due', None)
        if agent.wait(TURN) or (due and time.monotonic() >= due):
            seconds = agent.look()
            agent.due = seconds and time.monotonic() + seconds

    @staticmethod
    def is_settled(agent):
        """All that was left has been looked at, and Neutron asked."""
        return not agent._woken and not any(seen.ask for seen in agent._seen.values())

    def until_status(self, port, status, *agents):
        self.until(lambda: self.status(port) == status, *agents)

    def report(self):
        """What Neutron shows of the agent."""
        self.assertTrue(self.agent.report(False))
        agents = self.plugin.get_agents(self.context, filters={'agent_type': [AGENT_TYPE], 'host': [HOST]})
        return agents[0]['configurations']

    def _admin_req(self, *args, **kwargs):
        """Neutron 26 asks who it is: Nova and an administrator in one, unless as_tenant() has it."""
        request = super()._admin_req(*args, **kwargs)
        request.environ['neutron.context'] = n_context.Context('', self._tenant_id, is_admin=True, roles=ROLES)
        return request

    _member_req = _reader_req = _admin_req

    def as_tenant(self, request):
        request.environ['neutron.context'] = n_context.Context('', 'tenant', roles=['member', 'reader'])
        return request.get_response(self.api if 'networks' in request.path or 'ports' in request.path else self.ext_api)

    def make_network(self, segment=1, kind='vlan', physnet=PHYSNET):
        kwargs = {'provider:network_type': kind}
        if kind != 'local':
            kwargs['provider:physical_network'] = physnet
        if kind == 'vlan':
            kwargs['provider:segmentation_id'] = segment
        network = self._make_network(self.fmt, 'ib', True, arg_list=tuple(kwargs), as_admin=True, **kwargs)['network']
        self._make_subnet(self.fmt, {'network': network}, None, '10.0.0.0/24')
        return network['id']

    def profile(self, bdf, pkeys=None):
        return {'pci_slot': bdf, 'pci_vendor_info': '15b3:1004', 'physical_network': PHYSNET, **({'ib_pkeys': pkeys} if pkeys is not None else {})}

    def make_port(self, network=None, mac=MAC, bdf=VF, domain=UUID, host=HOST, pkeys=None):
        kwargs = {portbindings.HOST_ID: host, portbindings.VNIC_TYPE: 'direct', portbindings.PROFILE: self.profile(bdf, pkeys)}
        made = self._create_port(self.fmt, network or self.make_network(), device_owner='compute:nova', device_id=domain, mac_address=mac,
                                 arg_list=tuple(kwargs) + ('mac_address',), is_admin=True, **kwargs)
        self.assertEqual(made.status_int, 201, made.body)
        return self.deserialize(self.fmt, made)['port']

    def port(self, port):
        return self._show('ports', port['id'])['port']

    def status(self, port):
        return self.port(port)['status']
