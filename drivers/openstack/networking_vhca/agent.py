# SPDX-License-Identifier: LGPL-2.1-or-later
"""The L2 agent of a host: a port's partitions as Neutron has them, UP and DOWN as vhcad shows the port.

Which port is UP, and why, is in docs/design/0020-openstack.md. One thread works (`run`); others, which hear of
vhcad's events and of Neutron's messages, leave marks and wake it. Nothing here outlives the process.
"""

import concurrent.futures
import dataclasses
import functools
import json
import sys
import threading
import time
from typing import Optional

from neutron.agent import rpc as agent_rpc
from neutron.api.rpc.handlers import resources_rpc
from neutron.common import config as common_config
from neutron.conf.agent import common as agent_config
from neutron.conf import service as service_config
from neutron_lib.agent import constants as agent_constants, topics
from neutron_lib.api.definitions import portbindings
from neutron_lib import constants, context as n_context, rpc as n_rpc
from oslo_config import cfg
from oslo_log import log
import oslo_messaging

from networking_vhca import AGENT_TYPE, VIF_TYPE, partitions, vhcad

LOG = log.getLogger(__name__)

BINARY = 'neutron-vhca-agent'
RETRY = 10           # seconds between two tries at a port
RETRY_ALL = 1        # where vhcad or Neutron does not answer
LOOK_AGAIN = 60      # when all is as it should be: an event, or what Neutron told Nova, may have been lost
WRITERS = 8          # ports whose partitions are set at the same time
PATIENCE = 2         # seconds with them in a look; what takes longer is heard at a later one
REPORT_BYTES = 3000  # of reasons: Neutron's column has 4095 for all of the configurations
REASON_CHARS = 200
AWAY = (oslo_messaging.MessagingTimeout, oslo_messaging.MessageDeliveryFailure)    # of Neutron, or of what is between

OPTIONS = [
    cfg.StrOpt('socket', default='/run/vhcad/vhcad.sock', help="vhcad's unix socket"),
    cfg.DictOpt('fabric_mappings', default={},
                help='PHYSICAL_NETWORK:FABRIC, with commas between; none: each fabric of vhcad is the physical network of that name'),
]


def _bounded(api):
    """Neutron's, each call for `rpc_response_timeout`: neutron_lib would double that with each silence, up to 600 s, and sleep behind it."""
    api.client.prepare = functools.partial(type(api.client).prepare, api.client, timeout=cfg.CONF.rpc_response_timeout)
    return api


def _failure(e):
    return f'Neutron fails at it: {str(e).splitlines()[0] if str(e) else type(e).__name__}'


@dataclasses.dataclass
class Seen:
    """What is known of a port beside what vhcad shows."""
    claim: str
    ask: bool = True                # Neutron, for its details
    port_id: Optional[str] = None   # Neutron's
    details: Optional[dict] = None
    unanswered: Optional[str] = None    # why Neutron has given no details; those before count on
    said: Optional[bool] = None     # UP, DOWN; None: nothing yet
    said_at: float = 0
    wanted: Optional[list] = None   # partitions; None: not known, or none that could be had
    refusal: Optional[str] = None   # why they are not set
    tried: tuple = ()               # state of the VF at the last try
    again: float = 0                # when it may be tried or asked again

    @property
    def is_active(self):
        return bool(self.details) and 'network_id' in self.details

    @property
    def is_inactive(self):
        return bool(self.details) and bool(self.details.get(constants.NO_ACTIVE_BINDING))

    @property
    def is_doubtful(self):
        """Neutron may think otherwise meanwhile, and no message of it may come."""
        return not self.is_active or bool(self.unanswered)


class Messages:
    """Neutron's, to all agents."""

    target = oslo_messaging.Target(version='1.5')

    def __init__(self, agent):
        self._agent = agent

    def port_update(self, context, port=None, **kwargs):
        self._agent.mark(lambda key, seen: key[0] == port['mac_address'].lower())

    def binding_activate(self, context, port_id=None, host=None, **kwargs):
        if host == self._agent.host:
            self._agent.mark(lambda key, seen: not seen.is_active)

    def binding_deactivate(self, context, port_id=None, host=None, **kwargs):
        if host == self._agent.host:
            self._agent.mark(lambda key, seen: seen.is_active and seen.details['port_id'] == port_id)


class Agent:
    def __init__(self, host, api, mappings):
        self.host = host
        self._api = api
        self._mappings = mappings   # as configured
        self._context = n_context.get_admin_context_without_session()
        self._plugin = _bounded(agent_rpc.PluginApi(topics.PLUGIN))
        self._reports = agent_rpc.PluginReportStateAPI(topics.REPORTS)
        self._agent_id = f'vhca-agent-{host}'
        self._pool = concurrent.futures.ThreadPoolExecutor(WRITERS)
        self._wake = threading.Condition()
        self._woken, self._anew = False, True
        self._marks = []
        self._seen = {}
        self._setting = {}          # key: (claim, partitions, Future) under way, one a port, whatever is begun anew
        self._leaving = set()       # Neutron's ids of ports without a claim that it takes for UP, or on their way
        self._fabrics = {}          # physical network: fabric
        self._silence = None        # of vhcad
        self._trouble = None        # as it was logged
        self._down = {}             # MAC: why
        self._configurations = {}   # of the next report
        self._report_now = threading.Event()

    # ---- what other threads leave ----

    def wake(self):
        with self._wake:
            self._woken = True
            self._wake.notify()

    def begin_anew(self):
        with self._wake:
            self._anew = True
        self.wake()

    def mark(self, matches):
        """Neutron has to be asked of the ports that match (key, Seen)."""
        if not any(matches(key, seen) for key, seen in list(self._seen.items())):
            return
        with self._wake:
            self._marks.append(matches)
        self.wake()

    def _take_marks(self):
        with self._wake:
            anew, marks = self._anew, self._marks
            self._anew, self._woken, self._marks = False, False, []
        return anew, marks

    # ---- one look at both sides ----

    def look(self):
        """Returns the seconds after which to look again whatever happens."""
        anew, marks = self._take_marks()
        try:
            if anew:
                self._seen, self._leaving = {}, set()
            self._fabrics = self._mappings or {fabric: fabric for fabric in self._api.fabrics()} or self._fabrics
            self._look_at(self._api.ports(), anew, marks)
        except (vhcad.Silent, vhcad.Refused) as e:
            self._silence = str(e)
            return self._lost(f'vhcad does not answer: {e}', anew, marks)
        except oslo_messaging.MessagingException as e:
            return self._lost(f'Neutron does not answer: {e}')
        self._silence = self._trouble = None
        self._fill_report()
        return RETRY if self._is_unsettled() else LOOK_AGAIN

    def _is_unsettled(self):
        return not self._fabrics or bool(self._leaving) or any(
            seen.refusal or not seen.said or seen.is_doubtful for seen in self._seen.values())

    def _lost(self, trouble, anew=True, marks=()):
        """What was to be looked at still is; where Neutron may have heard or not, that is all."""
        if trouble != self._trouble:
            LOG.warning(trouble)
        self._trouble = trouble
        self._fill_report()
        with self._wake:
            self._anew = self._anew or anew
            self._marks = [*marks, *self._marks]
        return RETRY_ALL

    def _look_at(self, ports, anew, marks):
        self._forget_gone(ports)
        if anew:
            self._find_gone(ports)
        self._note(ports, marks)
        self._ask(ports)
        if self._set_partitions(ports):
            ports = self._api.ports()
        self._tell(ports)
        self._down = {port.mac: self._why_down(port) for port in ports.values() if self._is_down(port)}

    def _forget_gone(self, ports):
        gone = [self._seen.pop(key) for key in list(self._seen) if key not in ports]
        self._leaving |= {seen.port_id for seen in gone if seen.port_id and seen.said is not False}

    def _find_gone(self, ports):
        """Ports that Neutron takes for UP here, or on their way, and that have no claim any more."""
        bound = self._bound()
        claimed = {self._name(port, bound) for port in ports.values()}
        self._leaving |= {port['id'] for port in bound if port[portbindings.HOST_ID] == self.host and
                          port['status'] != constants.PORT_STATUS_DOWN and port['id'] not in claimed}

    def _bound(self):
        """Neutron's ports that have a binding on this host, active or not."""
        ports = self._plugin.get_ports_by_vnic_type_and_host(self._context, portbindings.VNIC_DIRECT, self.host)
        return [port for port in ports if port[portbindings.HOST_ID] != self.host or port[portbindings.VIF_TYPE] == VIF_TYPE]

    def _name(self, port, bound):
        """Its id; None: it has no binding here. Neutron itself would look for the MAC on all hosts and networks."""
        for other in bound:
            is_active = other[portbindings.HOST_ID] == self.host
            slot = other[portbindings.PROFILE].get('pci_slot') if is_active else port.bdf   # an inactive binding's is not shown
            if (other['mac_address'].lower(), other['device_id'], slot) == (port.mac, port.domain, port.bdf):
                return other['id']
        return None

    def _note(self, ports, marks):
        now = time.monotonic()
        for key, port in ports.items():
            seen = self._seen.get(key)
            if not seen or seen.claim != port.claim:
                self._seen[key] = Seen(port.claim)
            elif any(matches(key, seen) for matches in marks) or (seen.is_doubtful and seen.again <= now):
                seen.ask = True

    def _ask(self, ports):
        keys = [key for key in ports if self._seen[key].ask]
        if not keys:
            return
        bound = self._bound()
        names = {key: self._name(ports[key], bound) for key in keys}
        answers = self._details([name for name in names.values() if name])
        for key, name in names.items():
            self._hear(ports[key], name, answers[name] if name else {})

    def _details(self, names):
        """Each one's; the reason instead, where Neutron fails at it: that one is not to stop the others."""
        step, answers = cfg.CONF.rpc_resources_processing_step, {}
        for i in range(0, len(names), step):
            answers.update(self._details_of(names[i:i + step]))
        return answers

    def _details_of(self, names):
        try:
            return dict(zip(names, self._plugin.get_devices_details_list(self._context, names, self._agent_id, self.host)))
        except AWAY:
            raise
        except Exception as e:    # Neutron's, by the RPC
            if len(names) == 1:
                return {names[0]: _failure(e)}
            return {name: answer for name in names for answer in self._details_of([name]).values()}

    def _hear(self, port, name, answer):
        seen = self._seen[port.key]
        seen.port_id, seen.ask = name, False
        seen.again = time.monotonic() + RETRY
        if isinstance(answer, str):
            if answer != seen.unanswered:
                LOG.error('port %s: %s', port.mac, answer)
            seen.unanswered, seen.said = answer, None
            return
        was_inactive, seen.details, seen.unanswered = seen.is_inactive, answer, None
        if not (was_inactive and seen.is_inactive):
            seen.said = None    # an active one is BUILD now
        self._want(port, seen)

    def _want(self, port, seen):
        """What Neutron's answer means for vhcad."""
        seen.wanted = seen.refusal = None
        seen.tried = ()
        if not seen.is_active:
            return
        physnet = seen.details['physical_network']
        fabric = self._fabrics.get(physnet, port.fabric)
        try:
            if fabric != port.fabric:
                raise partitions.BadPartitions(f'physical network {physnet} is fabric {fabric}, the VF is on {port.fabric}')
            seen.wanted = partitions.wanted(seen.details)
        except partitions.BadPartitions as e:
            self._refuse(port, str(e))

    # ---- partitions ----

    def _set_partitions(self, ports):
        """Whether vhcad has answered for any."""
        names = {key: seen.port_id for key, seen in self._seen.items()}
        for port in ports.values():
            if self._is_due(port):
                wanted = list(self._seen[port.key].wanted)
                self._setting[port.key] = port.claim, wanted, self._pool.submit(self._set, port, wanted, ports, names)
        late = concurrent.futures.wait([future for _, _, future in self._setting.values()], PATIENCE).not_done
        for future in late:
            future.add_done_callback(lambda _: self.wake())
        answered = {key: self._setting.pop(key) for key, (_, _, future) in list(self._setting.items()) if future not in late}
        for key, (claim, wanted, future) in answered.items():
            seen = self._seen.get(key)
            if not seen or (seen.claim, seen.wanted) != (claim, wanted):
                self.wake()     # what it is to have now has waited for that
            elif not future.exception():
                seen.again = time.monotonic() + RETRY
                self._refuse(ports[key], future.result())
        for _, _, future in answered.values():
            future.result()     # raises what has come of Neutron, or of a defect
        return bool(answered)

    def _is_due(self, port):
        seen = self._seen[port.key]
        if seen.wanted is None or port.key in self._setting:
            return False
        attempt = (port.state, port.reserved, port.held_back)
        if seen.wanted == port.pkeys and not port.held_back:
            seen.refusal = None
        elif attempt != seen.tried or seen.again <= time.monotonic():
            seen.tried = attempt
            return True
        return False

    def _set(self, port, wanted, ports, names):
        """Why it is refused."""
        lack = None
        try:
            if port.held_back:
                lack = self._take_over([other for other in ports.values() if other.domain == port.domain], names)
            if wanted != port.pkeys:
                self._api.set_partitions(port, wanted)
        except (vhcad.Refused, vhcad.Silent) as e:
            return str(e)
        return lack

    def _take_over(self, ports, names):
        """Who has a GUID elsewhere is dead or gone if Neutron's only active binding of its MAC is here.

        These are all ports of a domain, for which the word counts. Returns what speaks against it.
        """
        try:
            pull = _bounded(resources_rpc.ResourcesPullRpcApi()).bulk_pull
            for port in ports:
                same = pull(self._context, 'Port', {'mac_address': port.mac})
                active = {(other.id, it.host) for other in same for it in other.bindings if it.host and it.status == constants.ACTIVE}
                if active != {(names[port.key], self.host)}:
                    return f'another host has its GUID, and Neutron {port.mac} at {", ".join(sorted(host for _, host in active)) or "none"}'
        except AWAY:
            raise
        except Exception as e:
            return _failure(e)
        self._api.take_over(ports[0], f'Neutron has its ports at {self.host}')
        return None

    def _refuse(self, port, refusal):
        seen = self._seen[port.key]
        if refusal and refusal != seen.refusal:
            LOG.error('port %s: %s', port.mac, refusal)
        seen.refusal = refusal

    # ---- UP and DOWN ----

    def _is_up(self, port):
        """None: nothing is to be said."""
        seen = self._seen.get(port.key)
        if not seen or seen.claim != port.claim:
            return None
        if seen.is_inactive:
            return True if port.reserved else None
        if not seen.is_active:
            return None
        return bool(seen.wanted) and port.pkeys == seen.wanted and port.state in ('programmed', 'attached') and not port.missing

    def _is_down(self, port):
        seen = self._seen.get(port.key)
        return self._is_up(port) is False or bool(seen and seen.unanswered and not seen.details)

    def _why_down(self, port):
        """None: its domain has not begun, which is no fault."""
        seen = self._seen[port.key]
        admin = 'administratively down' if seen.wanted == [] else None
        return seen.refusal or seen.unanswered or port.problem or port.missing or admin

    def _is_to_say(self, key, up):
        """Nova may not have heard of an inactive binding's; of another's Neutron keeps the status."""
        seen = self._seen[key]
        return up != seen.said or (up and seen.is_inactive and time.monotonic() - seen.said_at >= LOOK_AGAIN)

    def _tell(self, ports):
        verdicts = {key: self._is_up(port) for key, port in ports.items()}
        new = {self._seen[key].port_id: key for key, up in verdicts.items() if up is not None and self._is_to_say(key, up)}
        self._leaving -= {seen.port_id for seen in self._seen.values()}
        up = [name for name, key in new.items() if verdicts[key]]
        down = [name for name, key in new.items() if not verdicts[key]] + sorted(self._leaving)
        if not up and not down:
            return
        answer = self._plugin.update_device_list(self._context, up, down, self._agent_id, self.host)
        failed = {*answer['failed_devices_up'], *answer['failed_devices_down']}
        for name, key in new.items():
            self._seen[key].said = None if name in failed else verdicts[key]
            self._seen[key].said_at = time.monotonic()
        self._leaving &= failed
        LOG.info('UP: %s; DOWN: %s; not taken: %s', up, down, sorted(failed))

    # ---- reports ----

    def _fill_report(self):
        reasons, room = {}, REPORT_BYTES
        for mac, why in sorted(self._down.items()):
            entry = why and why[:REASON_CHARS]
            room -= len(json.dumps({mac: entry}))
            if why and room > 0:
                reasons[mac] = entry
        configurations = {'interface_mappings': self._fabrics, 'vhcad': (self._silence or 'answers')[:REASON_CHARS],
                          'ports': len(self._seen), 'ports_down': reasons}
        if configurations != self._configurations:
            self._configurations = configurations
            self._report_now.set()

    def report(self, first):
        """Whether Neutron took it."""
        state = {'binary': BINARY, 'host': self.host, 'topic': constants.L2_AGENT_TOPIC, 'agent_type': AGENT_TYPE,
                 'configurations': self._configurations, **({'start_flag': True} if first else {})}
        try:
            status = self._reports.report_state(self._context, state, use_call=True)
        except Exception as e:
            LOG.warning('Neutron takes no report: %s', e)
            return False
        if status in (agent_constants.AGENT_NEW, agent_constants.AGENT_REVIVED) and not first:
            self.begin_anew()
        return True

    def _report_for_ever(self):
        first, failed = True, False
        while True:
            self._report_now.wait(cfg.CONF.AGENT.report_interval)
            self._report_now.clear()
            if not self.report(first):
                failed = True
                time.sleep(RETRY_ALL)
                self._report_now.set()
                continue
            if failed:
                self.begin_anew()
            first = failed = False

    # ---- the process ----

    def listen(self):
        """Servers of oslo.messaging's threads: those of neutron_lib.rpc were eventlet's for long."""
        events = ((topics.PORT, topics.UPDATE), (topics.PORT_BINDING, topics.ACTIVATE), (topics.PORT_BINDING, topics.DEACTIVATE))
        names = [topics.get_topic_name(topics.AGENT, resource, event) for resource, event in events]
        servers = [oslo_messaging.get_rpc_server(n_rpc.TRANSPORT, oslo_messaging.Target(topic=name, server=self.host), [Messages(self)],
                                                 executor='threading', serializer=n_rpc.RequestContextSerializer(),
                                                 access_policy=oslo_messaging.DefaultRPCAccessPolicy) for name in names]
        for server in servers:
            server.start()
        return servers

    def watch(self):
        threading.Thread(target=self._api.watch, args=(self.wake, self.begin_anew), daemon=True).start()

    def wait(self, seconds):
        with self._wake:
            return self._wake.wait_for(lambda: self._woken, seconds)

    def run(self):
        self.listen()
        self.watch()
        threading.Thread(target=self._report_for_ever, daemon=True).start()
        seconds = RETRY_ALL
        while True:
            self.wait(seconds)
            try:
                seconds = self.look()
            except Exception as e:  # one of Neutron's came through the RPC, or it is ours
                LOG.exception('looking at the ports')
                self._lost(f'{type(e).__name__}: {e}')
                seconds = RETRY     # each look anew makes all ports BUILD for a moment


def main():
    common_config.register_common_config_options()
    agent_config.register_agent_state_opts_helper(cfg.CONF)
    service_config.register_service_opts(service_config.RPC_EXTRA_OPTS, cfg.CONF)
    cfg.CONF.register_opts(OPTIONS, 'vhca')
    common_config.init(sys.argv[1:])
    common_config.setup_logging()
    Agent(cfg.CONF.host, vhcad.Vhcad(cfg.CONF.vhca.socket), cfg.CONF.vhca.fabric_mappings).run()
