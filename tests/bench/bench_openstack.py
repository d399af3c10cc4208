#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/bench/bench_openstack.py BUILD [RUNS]: what Nova and Neutron wait for on a hypervisor: ebrctl beside networking-mlnx's, 64 guests when nova-compute restarts, UP.

An agent on a simulated ConnectX-3 of 64 VFs that are Nova's. Each port is plugged and its domain begins; neutron-vhca-agent, whose Neutron is a double,
watches: UP is the time from the hook's word that the domain may begin until `update_device_up`. Then nova-compute restarts, and asks for each port again: what
that writes to the adapter is counted. Then the same call again and again, by ebrctl and by networking-mlnx 16.0.0's with its own eswitchd, in turn, so that
other load hits both alike. Needs what tools/deps cloud installs. Exit 1 if a bound is broken.
"""

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from unittest import mock

import figures

GUESTS = 64
PYTHON = "add-port again, networking-mlnx"
BOUNDS = {"add-port again, p50": "value <= 5 or ratio <= 0.1", "nova-compute restarts, writes": "value == 0",
          "UP behind the begin, p99": "value <= 500", "nova-compute restarts, refused": "value == 0"}
SOURCE = figures.TESTS.parent


def percentiles(times):
    """(p50, p99) in milliseconds"""
    return 1e3 * statistics.median(times), 1e3 * statistics.quantiles(times, n=100, method="inclusive")[-1]


def report(again, python, writes, refused, up):
    ret = figures.Figures("openstack", BOUNDS)
    for i, percent in enumerate(("p50", "p99")):
        ret.add(f"{PYTHON}, {percent}", percentiles(python)[i], "ms")
        ret.add(f"add-port again, {percent}", percentiles(again)[i], "ms", f"{PYTHON}, {percent}", percentiles(python)[i])
    ret.add("nova-compute restarts, writes", writes)
    ret.add("nova-compute restarts, refused", refused)
    for i, percent in enumerate(("p50", "p99")):
        ret.add(f"UP behind the begin, {percent}", percentiles(up)[i], "ms")
    return ret.end()


# ---- a host with 64 guests ----

def port_of(i):
    """(MAC, UUID of the instance, VF), i from 1."""
    return f"fa:16:3e:00:00:{i:02x}", str(uuid.UUID(int=0x6d3a << 112 | 0x4000 << 64 | 0x8000 << 48 | i)), f"0000:01:{i // 8:02x}.{i % 8}"


def start_host(where):
    import host_case
    host = host_case.Host(where)
    reserve = " ".join(port_of(i)[2] for i in range(1, GUESTS + 1))
    host.write(host_case.conf_text(where, f"vfs = keep\nfabric = physnet1\nreserve = {reserve}\n"))
    host.before = {"SIM_VFS": str(GUESTS)}
    host.start()
    return host


def add(host, i):
    mac, domain, vf = port_of(i)
    return host.add(mac=mac, uuid=domain, bdf=vf)


# ---- neutron-vhca-agent ----

class Plugin(mock.Mock):
    """Neutron's answers for ports that are all bound here, in one partition; when each was said to be UP."""

    def __init__(self):
        super().__init__()
        self.up = {}

    def get_ports_by_vnic_type_and_host(self, context, vnic_type, host):
        return [{"id": mac, "mac_address": mac, "device_id": domain, "binding:host_id": "hva", "binding:vif_type": "ib_hostdev", "status": "DOWN",
                 "binding:profile": {"pci_slot": vf}} for mac, domain, vf in map(port_of, range(1, GUESTS + 1))]

    def get_devices_details_list(self, context, devices, agent_id, host):
        return [{"port_id": name, "network_id": "n", "network_type": "vlan", "segmentation_id": 1, "physical_network": "physnet1",
                 "admin_state_up": True, "profile": {}} for name in devices]

    def update_device_list(self, context, up, down, agent_id, host):
        now = time.monotonic()
        self.up.update({name: now for name in up})
        return {"devices_up": up, "devices_down": down, "failed_devices_up": [], "failed_devices_down": []}


@contextlib.contextmanager
def l2_agent(host):
    """Runs from here on; gives the double that it talks to."""
    sys.path.insert(0, str(SOURCE / "drivers/openstack"))
    from networking_vhca import agent, vhcad
    plugin = Plugin()
    with mock.patch.object(agent.agent_rpc, "PluginApi", return_value=plugin), mock.patch.object(agent.agent_rpc, "PluginReportStateAPI"), \
            mock.patch.object(agent.Agent, "listen"), mock.patch.object(agent.Agent, "_report_for_ever"):
        it = agent.Agent("hva", vhcad.Vhcad(f"{host.where}/run/vhcad.sock"), {})
        threading.Thread(target=it.run, daemon=True).start()
        yield plugin


def begin_guests(host, plugin):
    """Seconds from the hook's word to UP, of each."""
    took = []
    for i in range(1, GUESTS + 1):
        mac, domain, vf = port_of(i)
        done = add(host, i)
        assert done[:3] == ("ib0", "", 0), done
        host.wait(lambda domain=domain: [c["pkeys"] for c in host.get("/v1/claims")[1]["claims"] if c["domain"] == domain] == [["0x8001"]])
        host.wait(lambda domain=domain, vf=vf: host.begin(domain, vf) == "pass\n")
        begun = time.monotonic()
        host.wait(lambda mac=mac: mac in plugin.up)
        took.append(max(plugin.up[mac] - begun, 0))
    return took


def restart_compute(host):
    """(what is written to the adapter, what is refused)"""
    before = host.writes()
    refused = [i for i in range(1, GUESTS + 1) if add(host, i)[:3] != ("ib0", "", 0)]
    return len(host.writes()) - len(before), len(refused)


# ---- networking-mlnx ----

@contextlib.contextmanager
def networking_mlnx(host):
    """What runs its ebrctl, with its eswitchd on the adapter of a host whose agent leaves that alone."""
    import mlnx
    from fabric import free_port
    if not mlnx.CODE:
        sys.exit(mlnx.LACKS)
    port, run = str(free_port()), ["/usr/bin/python3", str(figures.TESTS / "clouds/reference.py")]
    env = {**os.environ, "PYTHONPATH": str(mlnx.CODE)}
    with open(f"{host.where}/eswitchd.conf", "w", encoding="ascii") as f:
        f.write("[DAEMON]\nfabrics = physnet1:ib0\n")
    with open(f"{host.where}/eswitchd.log", "wb") as log:
        eswitchd = subprocess.Popen([*run, "eswitchd", f"{host.where}/sys", port, f.name], env=env, stdout=log, stderr=log)
    try:
        yield lambda *args: subprocess.run([*run, "ebrctl", port, *args], env=env, capture_output=True, text=True, timeout=60, check=False)
    finally:
        eswitchd.kill()
        eswitchd.wait()


def compare(host, theirs, runs):
    """(seconds of each call of ours, of theirs)"""
    import host_case
    ours, python = [], []
    mac, domain, vf = port_of(1)
    args = "add-port", mac, domain, "physnet1", "ib_hostdev", vf
    for _ in range(runs):
        for times, call in ((ours, lambda: host_case.ebrctl(host.where, *args)[2]), (python, lambda: theirs(*args).returncode)):
            begun = time.perf_counter()
            status = call()
            times.append(time.perf_counter() - begun)
            assert status == 0
    return ours, python


def main():
    parser = figures.parser(__doc__)
    parser.add_argument("runs", metavar="RUNS", type=figures.count, nargs="?", default=200)
    args = parser.parse_args()
    os.environ.update(VHCA_SOURCE_DIR=str(SOURCE), VHCAD=str(args.build / "agent/vhcad"), VHCA_SIM_HOST=str(args.build / "tests/integration/sim_host"),
                      VHCA_EBRCTL=str(args.build / "tests/integration/ebrctl-test"))
    import host_case
    with contextlib.ExitStack() as stack:
        places = [tempfile.mkdtemp(prefix="vhca-bench.") for _ in range(2)]
        for where in places:
            stack.callback(shutil.rmtree, where)
        host = start_host(places[0])
        stack.callback(host.end)
        with l2_agent(host) as plugin:
            up = begin_guests(host, plugin)
        writes, refused = restart_compute(host)
        other = host_case.Host(places[1])
        other.write(host_case.conf_text(places[1], "").replace("manage = yes", "manage = no"))
        other.before = {"SIM_SYS": f"{places[1]}/sys"}
        stack.callback(other.end)
        other.start()
        ours, python = compare(host, stack.enter_context(networking_mlnx(other)), args.runs)
        return report(ours, python, writes, refused, up)


if __name__ == "__main__":
    sys.exit(main())
