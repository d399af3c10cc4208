#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The ML2 driver and the L2 agent, in Neutron's own code, with a whole vhcad on a simulated ConnectX-3."""

import sys
import warnings

warnings.simplefilter('ignore')
try:
    import neutron.tests.unit.plugins.ml2.test_plugin  # noqa: F401
except ImportError as why:
    print(f'1..0 # SKIP {why} (tools/deps cloud)')
    sys.exit()

import concurrent.futures
import itertools
import json
import os
import re
import subprocess
import threading
import time
import unittest
from unittest import mock

from oslo_config import cfg
import oslo_messaging

import sm
import tap
from neutron_case import Case, HOST, MAC, OTHER_HOST, OTHER_MAC, PHYSNET, UUID, VF, WAIT
from neutron.api.rpc.handlers import resources_rpc
from neutron.plugins.ml2 import rpc as ml2_rpc
from neutron_lib.api.definitions import portbindings
from neutron_lib import exceptions
from host_case import GUID, OTHER_UUID, OTHER_VF, PORT_GUID

from networking_vhca import agent as vhca_agent
from networking_vhca import partitions
from networking_vhca import vhcad

DEAD = '0x0002c90300000999'     # the dead host's port


class Bindings(Case):
    """What Neutron alone decides."""

    def test_what_is_bound(self):
        details = {'connectivity': 'legacy', 'port_filter': False, 'physical_network': PHYSNET}
        for port in self.make_port(), self.make_port(self.make_network(kind='flat'), mac=OTHER_MAC):
            port['binding:vif_details'].pop('bound_drivers', None)      # Neutron 26 says whose they are
            self.assertEqual((port['binding:vif_type'], port['binding:vif_details']), ('ib_hostdev', details))
        local = self.make_port(self.make_network(kind='local'), mac='fa:16:3e:00:00:01')
        self.assertEqual(local['binding:vif_type'], 'ib_hostdev')

    def test_what_is_not(self):
        elsewhere = self.make_port(self.make_network(segment=200, physnet='physnet2'))
        self.assertEqual(elsewhere['binding:vif_type'], 'binding_failed')
        nobody = self.make_port(mac=OTHER_MAC, host='hv9')
        self.assertEqual(nobody['binding:vif_type'], 'binding_failed')
        with mock.patch('neutron.agent.common.utils.is_agent_down', return_value=True):
            dead = self.make_port(self.make_network(segment=2), mac='fa:16:3e:00:00:01')
        self.assertEqual(dead['binding:vif_type'], 'binding_failed')

    def client_ids(self, port):
        return [option['opt_value'] for option in self.port(port)['extra_dhcp_opts'] if option['opt_name'] == 'client-id']

    def test_dhcp_knows_the_guest(self):
        unbound = self.make_port(host='')
        self.assertEqual(self.client_ids(unbound), [])
        self._update('ports', unbound['id'], {'port': {portbindings.HOST_ID: HOST}})
        self.assertEqual(self.client_ids(unbound), ['ff:00:00:00:00:00:02:00:00:02:c9:00:fa:16:3e:00:00:12:34:56'])
        # Another MAC, while nobody has it bound.
        self._update('ports', unbound['id'], {'port': {portbindings.HOST_ID: ''}})
        self._update('ports', unbound['id'], {'port': {'mac_address': OTHER_MAC}})
        self.assertEqual(self.client_ids(unbound), ['ff:00:00:00:00:00:02:00:00:02:c9:00:fa:16:3e:00:00:12:34:57'])
        cfg.CONF.set_override('client_id_hardware', True, 'vhca')
        self.addCleanup(cfg.CONF.clear_override, 'client_id_hardware', 'vhca')
        self.assertEqual(self.client_ids(self.make_port(self.make_network(segment=2))), ['20:fa:16:3e:00:00:12:34:56'])

    def test_a_client_id_of_the_operator_stays(self):
        port = self.make_port(host='')
        given = [{'opt_name': 'client-id', 'opt_value': '01:02'}]
        self._update('ports', port['id'], {'port': {'extra_dhcp_opts': given}})
        self._update('ports', port['id'], {'port': {portbindings.HOST_ID: HOST}})
        self.assertEqual((self.client_ids(port), self.port(port)['binding:vif_type']), (['01:02'], 'ib_hostdev'))

    def test_dhcp_does_not_stop_a_binding(self):
        network = self.make_network()
        with mock.patch('networking_vhca.mech_driver.directory', **{'get_plugin.side_effect': RuntimeError}):
            port = self.make_port(network)
        self.assertEqual((self.client_ids(port), port['binding:vif_type']), ([], 'ib_hostdev'))
        self.set_host(port, '')
        self.set_host(port, HOST)
        self.assertEqual(len(self.client_ids(port)), 1)

    def set_host(self, port, host):
        self._update('ports', port['id'], {'port': {portbindings.HOST_ID: host}})

    def test_a_client_id_that_is_taken_away_comes_with_the_next_binding(self):
        port = self.make_port()
        self._update('ports', port['id'], {'port': {'extra_dhcp_opts': [{'opt_name': 'client-id', 'opt_value': None}]}})
        self.assertEqual(self.client_ids(port), [])
        self._update('ports', port['id'], {'port': {'name': 'other'}})
        self.assertEqual(self.client_ids(port), [])
        self.set_host(port, '')
        self.set_host(port, HOST)
        self.assertEqual(len(self.client_ids(port)), 1)

    def test_dhcp_of_a_port_that_is_gone(self):
        """Nova deletes it while it is bound: no error."""
        network = self.make_network()
        gone = exceptions.PortNotFound(port_id='x')
        with mock.patch('networking_vhca.mech_driver.directory', **{'get_plugin.return_value.update_port.side_effect': gone}), \
                self.assertNoLogs('networking_vhca', 'WARNING'):
            self.assertEqual(self.make_port(network)['binding:vif_type'], 'ib_hostdev')

    def test_a_tenant_chooses_no_partition(self):
        """Neutron's default policy: profile and segment are an administrator's."""
        own = self.as_tenant(self.new_create_request('networks', {'network': {'name': 'own', 'tenant_id': 'tenant'}}))
        network = self.deserialize(self.fmt, own)['network']['id']
        port = {'network_id': network, 'tenant_id': 'tenant'}
        for forbidden in ({portbindings.PROFILE: {'ib_pkeys': '0xffff=full'}}, {portbindings.HOST_ID: HOST}):
            self.assertEqual(self.as_tenant(self.new_create_request('ports', {'port': {**port, **forbidden}})).status_int, 403)
        made = self.deserialize(self.fmt, self.as_tenant(self.new_create_request('ports', {'port': port})))['port']
        self.assertNotIn(portbindings.PROFILE, made)
        change = self.new_update_request('ports', {'port': {portbindings.PROFILE: {'ib_pkeys': '0x8001'}}}, made['id'])
        self.assertEqual(self.as_tenant(change).status_int, 403)
        request = self.new_create_request('networks', {'network': {
            'name': 'x', 'tenant_id': 'tenant', 'provider:network_type': 'vlan', 'provider:physical_network': PHYSNET,
            'provider:segmentation_id': 7}})
        self.assertEqual(self.as_tenant(request).status_int, 403)


class Partitions(Case):
    """From Neutron's answer to vhcad's list."""

    hosts = ()

    def details(self, segment=17, kind='vlan', up=True, **profile):
        return {'network_type': kind, 'segmentation_id': segment, 'admin_state_up': up, 'profile': profile}

    def test_segments(self):
        for segment, pkeys in ((1, ['0x8001']), (17, ['0x8011']), (4094, ['0x8ffe']), (0x7ffe, ['0xfffe'])):
            self.assertEqual(partitions.wanted(self.details(segment)), pkeys)
        for segment in (0, -1, 0x7fff, 0x8001, None, '17', 1 << 40):
            self.assertRaises(partitions.BadPartitions, partitions.wanted, self.details(segment))
        self.assertEqual(partitions.wanted(self.details(None, 'flat')), ['0xffff'])
        self.assertEqual(partitions.wanted(self.details(None, 'local')), ['0xffff'])
        self.assertEqual(partitions.wanted(self.details(up=False)), [])

    def test_profiles(self):
        for text, pkeys in (('0x8011=full,0x8012=limited', ['0x8011', '0x0012']), ('0x0011=full', ['0x8011']), ('0x0011, 0x8012', ['0x0011', '0x8012']),
                            ('0x7FFE', ['0x7ffe'])):
            self.assertEqual(partitions.wanted(self.details(ib_pkeys=text)), pkeys)
        for value in ('', ',', '0x8011,', '0x0', '0x8000', '0x0=full', '0x8000=limited', '0x18001', '17', 'physics', '0x8001=both', '0x8001=',
                      '0x8001;0x8002', '0x8001\n=full', '0x８001', None, 7, ['0x8001'], {'0x8001': 'full'}, ','.join(['0x8001'] * 128), '0x' + '0' * 9999):
            with self.subTest(value):
                error = self.assertRaises(partitions.BadPartitions, partitions.wanted, self.details(ib_pkeys=value))
                self.assertLess(len(str(error)), 200)


class Watch(unittest.TestCase):
    """vhcad's events: who waits for them does so for ever."""

    def play(self, *answers):
        """What is called for these, behind the first cursor."""
        heard = []
        requests = mock.Mock(side_effect=[{'cursor': 'a.1'}, *answers, SystemExit])
        with mock.patch('time.sleep'), mock.patch.object(vhcad.Vhcad, 'request', requests):
            self.assertRaises(SystemExit, vhcad.Vhcad('/none').watch, lambda: heard.append('event'), lambda: heard.append('gap'))
        self.assertEqual(heard.pop(0), 'gap')
        return heard, [call[0][1] for call in requests.call_args_list[2:]]

    def test_events_and_gaps(self):
        event, again = {'cursor': 'a.2', 'events': [{}]}, {'cursor': 'b.9'}
        gone = vhcad.Refused({'code': 'cursor_gone'})
        self.assertEqual(self.play(event, {'cursor': 'a.2', 'events': []}, event)[0], ['event', 'event'])
        self.assertEqual(self.play(gone, again, event)[0], ['gap', 'event'])
        for broken in ({}, {'cursor': 'a.2'}, RuntimeError('?'), KeyError('?')):
            self.assertEqual(self.play(broken, again, event)[0], ['gap', 'event'])

    def test_what_is_no_gap(self):
        """Each makes all ports BUILD for a moment."""
        heard, asked = self.play(vhcad.Silent('no answer'), vhcad.Silent('no answer'), {'cursor': 'a.2', 'events': []})
        self.assertEqual((heard, asked[0]), ([], asked[1]))
        heard, asked = self.play(vhcad.Refused({'code': 'too_many_waiting'}), {'cursor': 'a.2', 'events': []})
        self.assertEqual((heard, asked[0]), (['event'], f'/v1/events?since=a.1&wait={vhcad.WAIT}'))

    def test_an_answer_that_is_no_object(self):
        for text in (b'[]', b'null', b'"x"', b'[' * 100000):
            with mock.patch.object(vhcad, '_Connection') as connection:
                connection.return_value.getresponse.return_value.read.return_value = text
                self.assertRaises(vhcad.Silent, vhcad.Vhcad('/none').request, 'GET', '/v1/claims')


class Ports(Case):
    def boot(self, mac=MAC, bdf=VF, domain=UUID, **kwargs):
        """As Nova does: bound, plugged, and the domain begins."""
        port = self.make_port(mac=mac, bdf=bdf, domain=domain, **kwargs)
        self.vhcad.add(mac=mac, bdf=bdf, uuid=domain)
        self.until(lambda: self.vhcad.claim(bdf)['pkeys'])
        self.vhcad.wait(lambda: self.vhcad.begin(uuid=domain, bdf=bdf) == 'pass\n')
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

    def down(self, mac=MAC):
        """Why it is, as Neutron shows it."""
        return self.report()['ports_down'].get(mac, '')

    def test_boot_and_end(self):
        port = self.make_port()
        self.vhcad.add()
        self.until(lambda: self.vhcad.claim()['pkeys'] == ['0x8001'])
        self.until(lambda: self.is_settled(self.agent))
        self.assertEqual((self.status(port), self.vhcad.claim()['reserved']), ('DOWN', True))
        self.vhcad.wait(lambda: self.vhcad.begin() == 'pass\n')
        self.until_status(port, 'ACTIVE')
        self.assertEqual([p['pkey'] for p in self.vhcad.vf(VF)['pkeys'] if p['pkey']], ['0x8001'])
        self.assertEqual(self.report(), {'interface_mappings': {PHYSNET: PHYSNET}, 'vhcad': 'answers', 'ports': 1, 'ports_down': {}})
        self.vhcad.delete()
        self.until_status(port, 'DOWN')
        self._delete('ports', port['id'])
        self.assertEqual(self.report()['ports'], 0)

    def test_plugged_before_it_is_bound(self):
        self.vhcad.add()
        self.until(lambda: self.is_settled(self.agent))
        self.assertEqual(self.vhcad.claim()['pkeys'], [])
        port = self.make_port()
        self.until(lambda: self.vhcad.claim()['pkeys'] == ['0x8001'])
        self.vhcad.wait(lambda: self.vhcad.begin() == 'pass\n')
        self.until_status(port, 'ACTIVE')

    def test_keys_of_an_attached_port(self):
        port = self.attach()
        claim = self.vhcad.claim()['id']
        self.set_keys(port, '0x0002=limited')
        self.until(lambda: 'attached: ' in self.down())
        self.assertEqual((self.status(port), self.vhcad.claim()['pkeys']), ('DOWN', ['0x8001']))
        self.set_keys(port, '0x8001')
        self.until_status(port, 'ACTIVE')
        self.assertEqual((self.down(), self.vhcad.claim()['id']), ('', claim))

    def test_a_key_that_the_port_lacks(self):
        port = self.attach()
        self.set_keys(port, '0x0001=full,0x8012')
        self.until(lambda: self.vhcad.claim()['pkeys'] == ['0x8001', '0x8012'])
        self.until(lambda: "port is not in 0x8012" in self.down())
        self.assertEqual(self.status(port), 'DOWN')
        real = vhcad.Vhcad.request

        def request(*args, **kwargs):
            answer = real(*args, **kwargs)
            for claim in answer.get('claims', ()):
                claim.update(sm=sm, sm_reason=reason)
            for hca in answer.get('hcas', ()):
                hca['capabilities']['host_pkey_map'] = has_map
            return answer
        for sm, reason, has_map in ('unreachable', 'not in effect yet', True), ('unreachable', 'it is away', False), ('not_yet', None, False):
            with mock.patch.object(vhcad.Vhcad, 'request', request):
                self.until(lambda: self.down() == f'not in force (subnet manager: {reason or "no answer yet"}): 0x8012')

    def test_administratively_down(self):
        port = self.attach()
        self._update('ports', port['id'], {'port': {'admin_state_up': False}})
        self.until(lambda: 'attached: ' in self.down())
        self.assertEqual((self.status(port), self.vhcad.claim()['pkeys']), ('DOWN', ['0x8001']))
        self._update('ports', port['id'], {'port': {'admin_state_up': True}})
        self.until_status(port, 'ACTIVE')

    def test_one_that_is_refused_stops_no_other(self):
        """Neither a hostile profile, nor a table that is full, nor the default partition."""
        network = self.make_network()
        bad = self.make_port(network, pkeys='0x8001=full;reboot')
        self.vhcad.add()
        self.until(lambda: 'want 0x8001' in self.down())
        good = self.boot(mac=OTHER_MAC, bdf=OTHER_VF, domain=OTHER_UUID, network=network)
        self.until_status(good, 'ACTIVE')
        self.assertEqual(self.status(bad), 'DOWN')
        for pkeys, reason in (('0x8010,0x8011,0x8012,0x8013,0x8014', 'too_many_partitions'), ('0x8010,0x8011,0x8012', 'pkey_table_full'), ('0xffff', 'default_partition'),
                              ('0x8001,0x0001', '[a-z_]+: '), ({'0x8001': 'full'}, 'is no text')):
            self.set_keys(bad, pkeys)
            self.until(lambda reason=reason: re.search(reason, self.down()))
            self.assertEqual((self.status(bad), self.status(good), self.vhcad.claim()['pkeys']), ('DOWN', 'ACTIVE', []))
        self.set_keys(bad, '0x8001')
        self.until(lambda: self.vhcad.claim()['pkeys'] == ['0x8001'])
        self.vhcad.wait(lambda: self.vhcad.begin() == 'pass\n')
        self.until_status(bad, 'ACTIVE')

    def test_one_that_vhcad_hangs_at_stops_no_other(self):
        """What it says at last is heard."""
        network, hangs, real = self.make_network(), threading.Event(), self.agent._api.set_partitions
        self.addCleanup(hangs.set)

        def set_partitions(port, pkeys):
            if port.mac == MAC:
                hangs.wait(WAIT)
            real(port, pkeys)
        with mock.patch.object(self.agent._api, 'set_partitions', set_partitions):
            late = self.make_port(network)
            self.vhcad.add()
            good = self.boot(mac=OTHER_MAC, bdf=OTHER_VF, domain=OTHER_UUID, network=network)
            self.until_status(good, 'ACTIVE')
            self.assertEqual((self.status(late), self.vhcad.claim()['pkeys']), ('DOWN', []))
            hangs.set()
            self.until(lambda: self.vhcad.claim()['pkeys'] == ['0x8001'])
            self.vhcad.wait(lambda: self.vhcad.begin() == 'pass\n')
            self.until_status(late, 'ACTIVE')

    def test_one_at_a_time(self):
        """However a port is forgotten while vhcad works at it: what it is to have by then might be overtaken."""
        network, hangs, begun, real = self.make_network(), threading.Event(), [], self.agent._api.set_partitions
        self.addCleanup(hangs.set)

        def set_partitions(port, pkeys):
            begun.append(pkeys)
            hangs.wait(WAIT)
            real(port, pkeys)
        with mock.patch.object(vhca_agent, 'PATIENCE', 0.1), mock.patch.object(self.agent._api, 'set_partitions', set_partitions):
            port = self.make_port(network)
            self.vhcad.add()
            self.until(lambda: begun)
            self.agent.begin_anew()
            self.agent.look()
            self.vhcad.delete()     # claimed anew
            self.vhcad.add()
            self.set_keys(port, '0x8002')
            self.until(lambda: self.is_settled(self.agent))
            self.assertEqual(begun, [['0x8001']])
            hangs.set()
            self.until(lambda: self.vhcad.claim()['pkeys'] == ['0x8002'])
        self.assertEqual((begun.index(['0x8002']), begun.count(['0x8001'])), (1, 1))

    def test_what_is_wanted_changes_before_it_is_set(self):
        """All hands are busy meanwhile. What vhcad says of the old list counts no more."""
        hangs, futures, submit = threading.Event(), [], self.agent._pool.submit
        self.addCleanup(hangs.set)
        for _ in range(vhca_agent.WRITERS):
            submit(hangs.wait, WAIT)
        refused = vhcad.Refused({'code': 'pkey_table_full', 'detail': 'no room'})
        with mock.patch.object(vhca_agent, 'PATIENCE', 0.1), mock.patch.object(vhca_agent, 'RETRY', WAIT), \
                mock.patch.object(self.agent._pool, 'submit', lambda *args: futures.append(submit(*args)) or futures[-1]), \
                mock.patch.object(self.agent._api, 'set_partitions', side_effect=refused) as put:
            port = self.make_port()
            self.vhcad.add()
            self.until(lambda: futures)
            self.set_keys(port, '0x8001=full;reboot')
            self.until(lambda: 'want 0x8001' in self.down())
            hangs.set()
            self.until(futures[0].done)
            self.agent.look()
            self.assertIn('want 0x8001', self.down())
        put.assert_called_once_with(mock.ANY, ['0x8001'])

    def test_neutron_is_away_at_one_of_two(self):
        """The other's answer is heard."""
        network = self.make_network()
        for mac, bdf, domain in ((MAC, VF, UUID), (OTHER_MAC, OTHER_VF, OTHER_UUID)):
            self.make_port(network, mac=mac, bdf=bdf, domain=domain)
            self.vhcad.add(mac=mac, bdf=bdf, uuid=domain)
        for bad in (MAC, OTHER_MAC):
            def set_one(port, *_, bad=bad):
                if port.mac == bad:
                    raise oslo_messaging.MessagingTimeout('no answer')
                return 'no room'
            with mock.patch.object(self.agent, '_set', set_one):
                self.agent.begin_anew()
                self.assertEqual(self.agent.look(), vhca_agent.RETRY_ALL)
            self.assertEqual({key[0]: seen.refusal for key, seen in self.agent._seen.items()}, {bad: None, OTHER_MAC if bad == MAC else MAC: 'no room'})

    def wait_for_neutron(self, seconds):
        """As an agent that has begun with that."""
        cfg.CONF.set_override('rpc_response_timeout', seconds)
        self.agent._plugin = vhca_agent.Agent(HOST, self.agent._api, {})._plugin

    def test_neutron_hangs(self):
        """Each call takes as long as one: neutron_lib would double that, and sleep besides."""
        port = self.boot()
        self.until_status(port, 'ACTIVE')
        self.stop_neutron()
        self.wait_for_neutron(1)
        begun = time.monotonic()
        for _ in range(6):
            self.agent.begin_anew()
            self.assertEqual(self.agent.look(), vhca_agent.RETRY_ALL)
        self.assertLess(time.monotonic() - begun, 20)
        self.wait_for_neutron(20)
        self.serve()
        self.until(lambda: self.is_settled(self.agent))
        self.assertEqual(self.status(port), 'ACTIVE')

    def test_one_that_neutron_fails_at_stops_no_other(self):
        """Its call for all of them raises for one, whose guest keeps what it has."""
        network = self.make_network()
        bad = self.boot(network=network)
        self.until_status(bad, 'ACTIVE')
        real = ml2_rpc.RpcCallbacks._get_device_details

        def get(self, *args, port_context, **kwargs):
            if port_context.current['id'] == bad['id']:
                raise RuntimeError('of this port')
            return real(self, *args, port_context=port_context, **kwargs)
        with mock.patch.object(ml2_rpc.RpcCallbacks, '_get_device_details', get):
            self.agent.begin_anew()
            good = self.boot(mac=OTHER_MAC, bdf=OTHER_VF, domain=OTHER_UUID, network=network)
            self.until_status(good, 'ACTIVE')
            self.set_keys(bad, '0x8001,0x0002')
            self.until(lambda: 'Neutron fails at it: ' in self.down())
            self.assertEqual((self.status(good), self.vhcad.claim()['pkeys']), ('ACTIVE', ['0x8001']))
        self.until(lambda: self.vhcad.claim()['pkeys'] == ['0x8001', '0x0002'])

    def test_twins(self):
        """Ports of other networks and hosts with its MAC, and the same address of a VF there."""
        for n in range(4):
            self.make_port(self.make_network(segment=40 + n), domain=OTHER_UUID, host=f'hv{n + 5}')
        port = self.boot()
        self.until_status(port, 'ACTIVE')
        self.assertEqual(self.vhcad.claim()['pkeys'], ['0x8001'])

    def test_a_claim_for_another_instance(self):
        """Its port has gone to one that Neutron has here: nothing is set of that."""
        self.make_port(domain=UUID)
        self.vhcad.add(uuid=OTHER_UUID)
        self.until(lambda: self.is_settled(self.agent))
        self.assertEqual(self.vhcad.claim()['pkeys'], [])

    def test_down_that_neutron_does_not_take(self):
        port = self.boot()
        self.until_status(port, 'ACTIVE')
        with mock.patch.object(ml2_rpc.RpcCallbacks, 'update_device_down', side_effect=RuntimeError) as refused:
            self.vhcad.delete()
            self.until(lambda: refused.called)
        self.assertEqual(self.status(port), 'ACTIVE')
        self.until_status(port, 'DOWN')

    def test_vhcad_is_silent_for_a_moment(self):
        """No port is taken for new by it, and what Neutron has said meanwhile is not lost."""
        port = self.boot()
        self.until_status(port, 'ACTIVE')
        self.until(lambda: self.is_settled(self.agent))
        seen = list(self.agent._seen.values())
        with mock.patch.object(self.agent._api, 'ports', side_effect=vhcad.Silent('no answer')):
            self.set_keys(port, '0x8001,0x0002')
            self.until(lambda: self.agent._silence)
        self.until(lambda: self.vhcad.claim()['pkeys'] == ['0x8001', '0x0002'])
        self.assertIs(list(self.agent._seen.values())[0], seen[0])

    def test_fabrics_come_later(self):
        """vhcad may have begun without an adapter; one that is away for a moment is no reason to bind nothing."""
        with mock.patch.object(self.agent._api, 'fabrics', return_value=[]):
            self.agent.begin_anew()
            self.agent.look()
            self.assertEqual(self.agent._configurations['interface_mappings'], {PHYSNET: PHYSNET})
            self.agent._fabrics = {}
            self.assertEqual(self.agent.look(), vhca_agent.RETRY)
            self.assertEqual(self.agent._configurations['interface_mappings'], {})
        self.agent.look()
        self.assertEqual(self.agent._configurations['interface_mappings'], {PHYSNET: PHYSNET})

    def test_vhcad_is_restarted(self):
        port = self.boot()
        self.until_status(port, 'ACTIVE')
        self.vhcad.kill()
        self.set_keys(port, '0x8001,0x0002')
        self.until(lambda: self.vhcad.claim()['pkeys'] == ['0x8001', '0x0002'])
        self.set_keys(port, '0x8001')
        self.until_status(port, 'ACTIVE')

    def test_the_l2_agent_is_restarted(self):
        """It asks, finds that all is as it should be, and writes nothing; what went meanwhile is DOWN."""
        port = self.boot()
        self.until_status(port, 'ACTIVE')
        before = self.vhcad.writes()
        self.agent = self.agent_of(HOST)
        self.until(lambda: self.is_settled(self.agent))
        self.assertEqual((self.status(port), self.vhcad.writes()), ('ACTIVE', before))
        self.vhcad.delete()
        self.agent = self.agent_of(HOST)
        self.until_status(port, 'DOWN')

    def test_gone_between_asking_and_telling(self):
        """Neutron has a port as BUILD once the L2 agent has asked for it."""
        port = self.boot()
        self.until_status(port, 'ACTIVE')
        self.plugin.update_port_status(self.context, port['id'], 'BUILD', HOST)
        self.vhcad.delete()
        self.agent = self.agent_of(HOST)
        self.until_status(port, 'DOWN')

    def test_neutron_is_restarted(self):
        port = self.boot()
        self.until_status(port, 'ACTIVE')
        self.stop_neutron()
        self.vhcad.delete()
        with mock.patch.object(self.agent._plugin, 'update_device_list', side_effect=oslo_messaging.MessagingTimeout('no answer')):
            self.until(lambda: self.agent._anew)
        self.assertEqual(self.status(port), 'ACTIVE')
        self.serve()
        self.until_status(port, 'DOWN')

    def test_taken_for_dead(self):
        """Neutron says so in its answer to a report."""
        port = self.boot()
        self.until_status(port, 'ACTIVE')
        self.plugin.update_port_status(self.context, port['id'], 'DOWN', HOST)
        with mock.patch('neutron.objects.agent.Agent.is_active', new_callable=mock.PropertyMock, return_value=False):
            self.report()
        self.until_status(port, 'ACTIVE')

    def test_the_report_fits(self):
        """Neutron's column has 4095 letters."""
        self.agent._down = {f'fa:16:3e:00:00:{i:02x}': 'x' * 999 for i in range(200)}
        self.agent._fill_report()
        self.assertLess(len(str(self.report())), 4000)
        self.assertGreater(len(self.report()['ports_down']), 5)


class Process(Case):
    def test_runs_without_eventlet(self):
        conf = f'{self.vhcad.where}/neutron.conf'
        with open(conf, 'w', encoding='utf-8') as f:
            f.write(f'[DEFAULT]\ntransport_url = fake:/\nhost = {HOST}\n[vhca]\nsocket = {self.vhcad.where}/run/vhcad.sock\n'
                    f'fabric_mappings = ib:{PHYSNET}\n')
        script = os.path.join(os.path.dirname(__file__), 'l2_agent.py')
        done = subprocess.run([sys.executable, script, '--config-file', conf], capture_output=True, text=True, timeout=60)
        said = json.loads((done.stdout.splitlines() or ['{}'])[-1])
        self.assertEqual((said.get('patched'), said.get('report', {}).get('interface_mappings')), ([], {'ib': PHYSNET}), done.stderr)


class Migration(Case):
    """Nova's order, with an inactive binding at the destination."""

    hosts = (HOST, OTHER_HOST)

    def setUp(self):
        super().setUp()
        self.there, self.agent_there = self.vhcads[OTHER_HOST], self.agents[OTHER_HOST]
        cfg.CONF.set_override('notify_nova_on_port_status_changes', True)
        self.plugin.nova_notifier = mock.Mock()
        self.port_id = self.run_at_source()['id']

    def run_at_source(self):
        port = self.make_port()
        self.begin_at_source(port)
        return port

    def begin_at_source(self, port):
        self.vhcad.add()
        self.until(lambda: self.vhcad.claim()['pkeys'] == ['0x8001'])
        self.vhcad.wait(lambda: self.vhcad.begin() == 'pass\n')
        self.until_status(port, 'ACTIVE')

    def prepare(self):
        """pre_live_migration: the destination is bound, and plugged; the source waits to hear that it is UP."""
        self.bind_there()
        self.assertEqual(self.there.add(bdf=OTHER_VF)[2], 0)
        told = self.plugin.nova_notifier.notify_port_active_direct
        self.until(lambda: told.called, self.agent, self.agent_there)
        self.assertEqual(told.call_args[0][0]['id'], self.port_id)
        self.assertEqual(self.claim_there(), ([], True))

    def bind_there(self):
        body = {'binding': {'host': OTHER_HOST, 'tenant_id': self._tenant_id, 'vnic_type': 'direct', 'profile': self.profile(OTHER_VF)}}
        request = self.new_create_request(f'ports/{self.port_id}/bindings', body)
        self.assertEqual(request.get_response(self.api).status_int, 201)

    def claim_there(self):
        claim = self.there.claim(OTHER_VF)
        return claim['pkeys'], claim['reserved']

    def activate(self):
        request = self._req('PUT', 'ports', {'port_id': self.port_id}, id=self.port_id, subresource='bindings', sub_id=OTHER_HOST, action='activate')
        self.assertEqual(request.get_response(self.api).status_int, 200)

    def test_arrives(self):
        port = {'id': self.port_id}
        self.prepare()
        self.vhcad.delete()
        self.until_status(port, 'DOWN', self.agent, self.agent_there)
        self.activate()
        self.until(lambda: self.claim_there() == (['0x8001'], True), self.agent, self.agent_there)
        self.assertEqual(self.status(port), 'DOWN')
        self.there.wait(lambda: self.there.begin(bdf=OTHER_VF) == 'pass\n')
        self.until_status(port, 'ACTIVE', self.agent, self.agent_there)
        self.assertEqual(self.plugin.nova_notifier.notify_port_active_direct.call_count, 1)

    def test_activation_is_not_heard(self):
        """RabbitMQ has lost it: Neutron is asked, also of a port that was said to be UP."""
        self.prepare()
        self.vhcad.delete()
        with mock.patch.object(vhca_agent.Agent, 'mark'):
            self.activate()
            self.until(lambda: self.claim_there() == (['0x8001'], True), self.agent, self.agent_there)

    def test_nova_has_not_heard(self):
        """Or it asks for the same migration again, before the L2 agent has seen that the first one is over."""
        with mock.patch.object(vhca_agent, 'LOOK_AGAIN', 1):
            self.prepare()
            told = self.plugin.nova_notifier.notify_port_active_direct
            self.until(lambda: told.call_count > 1, self.agent, self.agent_there)

    def test_a_stranger_with_the_same_mac(self):
        """On the host where the port arrives, with the VF's address that it had at its source."""
        self.assertEqual(self.there.add(bdf=VF, uuid=OTHER_UUID)[2], 0)
        self.bind_there()
        self.activate()
        self.until(lambda: self.is_settled(self.agent_there), self.agent_there)
        self.assertEqual(self.there.claim(VF)['pkeys'], [])

    def test_fails(self):
        port = {'id': self.port_id}
        self.prepare()
        self.vhcad.delete()
        self.until_status(port, 'DOWN', self.agent, self.agent_there)
        self.begin_at_source(port)
        self.until(lambda: self.is_settled(self.agent_there), self.agent_there)
        self.assertEqual((self.claim_there(), self.plugin.nova_notifier.notify_port_active_direct.call_count), (([], True), 1))


class Evacuation(Case):
    """A host is dead, and the subnet manager knows the port's GUID there. Nova binds the port here, plugs it, and begins its domain."""

    generations = itertools.count(1, 2)     # of epochs: above all that the agent here has ever had

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sm = sm.Sm()
        cls.addClassCleanup(cls.sm.close)
        with open(cls.vhcad.conf, encoding='utf-8') as f:
            text = f.read()
        cls.vhcad.write(f'{text}[sm]\nbackend = vhcasm\nurl = {cls.sm.url}\n')
        cls.vhcad.kill()

    def setUp(self):
        super().setUp()
        if hasattr(resources_rpc.ResourcesPullRpcApi, '_instance'):     # of another test's bus
            del resources_rpc.ResourcesPullRpcApi._instance
        self.generation = next(self.generations)
        self.at_dead = {GUID: (self.generation << 32 | 7, DEAD)}
        self.sm.owners = dict(self.at_dead)
        self.pool = concurrent.futures.ThreadPoolExecutor(1)
        self.addCleanup(self.pool.shutdown)

    def plug(self, **kwargs):
        port = self.make_port(**kwargs)
        self.vhcad.add()
        self.until(lambda: self.vhcad.claim()['pkeys'] == ['0x8001'])
        return port

    def begins(self):
        """Whether libvirt may begin the domain; the L2 agent looks meanwhile."""
        begun = self.pool.submit(self.vhcad.begin)
        self.until(begun.done)
        return begun.result() == 'pass\n'

    def until_down_by(self, why):
        self.until(lambda: why in self.report()['ports_down'].get(MAC, ''))
        self.assertEqual((self.vhcad.claim()['waits_for'], self.sm.owners), ('sm', self.at_dead))

    def until_up(self, port):
        self.vhcad.wait(self.begins, WAIT)
        self.until_status(port, 'ACTIVE')
        epoch, owner = self.sm.owners[GUID]
        self.assertEqual((epoch >> 32, owner), (self.generation + 1, PORT_GUID))
        said = [event['text'] for event in self.vhcad.get('/v1/events?since=oldest')[1]['events']]
        self.assertTrue(any(f'Neutron has its ports at {HOST}' in text for text in said), said)

    def test_neutrons_word_is_enough(self):
        self.until_up(self.plug())

    def test_a_port_of_another_network_has_its_mac(self):
        """It may be the one that has the GUID, and lives."""
        twin = self.make_port(self.make_network(segment=40), domain=OTHER_UUID, host=OTHER_HOST)
        port = self.plug()
        self.assertFalse(self.begins())
        self.until_down_by(f'Neutron {MAC} at {HOST}, {OTHER_HOST}')
        self._delete('ports', twin['id'])
        self.until_up(port)

    def test_another_port_of_the_instance_has_a_twin(self):
        """What is said of an instance counts for all of its ports."""
        network = self.make_network()
        self.make_port(network, mac=OTHER_MAC, bdf=OTHER_VF)
        twin = self.make_port(self.make_network(segment=40), mac=OTHER_MAC, domain=OTHER_UUID, host=OTHER_HOST)
        self.assertEqual(self.vhcad.add(mac=OTHER_MAC, bdf=OTHER_VF)[2], 0)
        port = self.plug(network=network)
        self.assertFalse(self.begins())
        self.until_down_by(f'Neutron {OTHER_MAC} at {HOST}, {OTHER_HOST}')
        self._delete('ports', twin['id'])
        self.until_up(port)

    def test_bound_elsewhere_meanwhile(self):
        """RabbitMQ has lost the message: what was true when it was plugged is no evidence."""
        with mock.patch.object(vhca_agent.Agent, 'mark'):    # from the first one on: one that is late would be heard
            port = self.plug()
            self.until(lambda: self.is_settled(self.agent))
            self._update('ports', port['id'], {'port': {portbindings.HOST_ID: OTHER_HOST}})
            self.assertFalse(self.begins())
            self.until_down_by(f'Neutron {MAC} at {OTHER_HOST}')

    def test_neutron_fails_at_it(self):
        port = self.plug()
        with mock.patch.object(resources_rpc.ResourcesPullRpcCallback, 'bulk_pull', side_effect=RuntimeError('of this port')):
            self.assertFalse(self.begins())
            self.until_down_by('Neutron fails at it: ')
        self.until_up(port)

    def test_without_the_role(self):
        """docs/openstack.md gives it to the agent's user."""
        port = self.plug()
        refused = vhcad.Refused({'code': 'role_needed', 'detail': 'this needs the role admin'})
        with mock.patch.object(vhcad.Vhcad, 'take_over', side_effect=refused):
            self.assertFalse(self.begins())
            self.until_down_by('role_needed: ')
        self.until_up(port)


tap.main(__name__)
