#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The unmodified neutron-mlnx-agent, with a Neutron that is a file: mlnx_agent.py ENDPOINT PORTS RECORD

PORTS has what Neutron knows, by MAC address, and is read at each question. RECORD gets a line for each thing that the agent
tells Neutron, asks the endpoint, or hears from it. Needs Debian 12's python3-neutron, and networking_mlnx of Debian 11
(python3-networking-mlnx 16.0.0-1) in PYTHONPATH.
"""

import json
import sys
from unittest import mock

from neutron.common import config as common_config
from oslo_config import cfg

from networking_mlnx.plugins.ml2.drivers.mlnx.agent import utils
from networking_mlnx.plugins.ml2.drivers.mlnx.agent import mlnx_eswitch_neutron_agent as agent

ENDPOINT, PORTS, RECORD = sys.argv[1:]


def record(kind, what):
    with open(RECORD, "a", encoding="utf-8") as f:
        f.write(json.dumps([kind, what]) + "\n")


def ports():
    with open(PORTS, encoding="utf-8") as f:
        return json.load(f)


class Neutron:
    """What the agent asks by RPC."""

    def get_devices_details_list(self, _context, macs, _agent_id, _host):
        return [{"device": mac, **ports().get(mac, {})} for mac in sorted(macs)]

    def update_device_up(self, _context, device, _agent_id, _host):
        record("up", device)

    def update_device_down(self, _context, device, _agent_id, _host):
        record("down", device)
        return {"device": device, "exists": device in [port["port_id"] for port in ports().values()]}


def spy(kind):
    send, receive = kind.send_string, kind.recv_string

    def send_string(self, text):
        record("ask", json.loads(text))
        return send(self, text)

    def recv_string(self):
        text = receive(self)
        record("hear", json.loads(text))
        return text
    kind.send_string, kind.recv_string = send_string, recv_string


def main():
    common_config.register_common_config_options()
    cfg.CONF(args=[])
    cfg.CONF.set_override("daemon_endpoint", ENDPOINT, "ESWITCH")
    cfg.CONF.set_override("report_interval", 0, "AGENT")
    spy(utils.zmq.Socket)
    with mock.patch.object(agent.MlnxEswitchNeutronAgent, "_setup_rpc"), mock.patch.object(agent, "agent_rpc"), \
            mock.patch.object(agent, "agent_sg_rpc"), mock.patch.object(agent, "sg_rpc"):
        it = agent.MlnxEswitchNeutronAgent({"physnet1": "ib0"})
    it.plugin_rpc, it.agent_id = Neutron(), "mlnx-agent.hva"
    it.run()


main()
