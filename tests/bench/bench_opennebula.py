#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/bench/bench_opennebula.py [RUNS]: what OpenNebula's driver costs a host: its probe, and what it adds to deploy and migrate.

The probe runs against a double of the agent, whose answer has a line for each adapter and none for a VF.
Beside it runs what the stock probe cannot do without for a host of 126 VFs. That is OpenNebula's
src/im_mad/remotes/node-probes.d/pci.rb (github.com/OpenNebula/one, Apache-2.0, read at 03fb9cc): Ruby
with yaml and shellwords, its configuration, one `lspci -mmnn`, of whose line it splits the quoted words,
numa_node of each device from sysfs, and a vector of 14 attributes printed for each, a line for every
attribute. The stand-in is written from these facts, and does no more: lspci is a file that is printed,
sysfs lies on a disk, and what later releases read beside it (IFNAME, SRIOV) is left out. The scripts run
around doubles of the stock ones and of vhcactl: the time that the agents and libvirt take is the rig's
to measure. All in turn, so that other load hits each alike. Exit 1 if a bound is broken.
"""

import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import figures

os.environ.setdefault("VHCA_SOURCE_DIR", str(figures.TESTS.parent))
import opennebula as one

VFS = 126
PCI = "stand-in of pci.rb"
BOUNDS = {"probe, processor": "ratio <= 1.2", "probe, clock": "ratio <= 1.5",
          **{f"{action} adds, other VM, {what}": "value <= 10" for action in ("deploy", "migrate") for what in ("processor", "fastest, clock")},
          "deploy adds, a VM of ours, clock": "ratio <= 4", "migrate adds, a VM of ours, clock": "ratio <= 4"}
ANSWER = "".join(f'IB_{name}="{VFS}"\n' for name in ("VF_FREE", "PKEYS_FREE", "PORTS_ACTIVE", "VF_FREE_DEFAULT", "SM_REACHABLE")) + (
    'IB_AGENT=[ NODE="hv1", VERSION="0.1.0", STATUS="ready", SM="vhcasm" ]\n'
    'IB_HCA=[ NAME="mlx4_0", PF="0000:01:00.0", FABRIC="default", PORT="1", STATE="ACTIVE", LID="3", VFS="126", VFS_FREE="126" ]\n')
LSPCI = "#!/bin/sh\nexec cat \"$REC/lspci\"\n"
RECORD = ('{0} "Infiniband controller [0207]" "Mellanox Technologies [15b3]" '
          '"MT27500/MT27520 Family [ConnectX-3/ConnectX-3 Pro Virtual Function] [1004]" "Mellanox Technologies [15b3]" "Device [61b0]"\n')
PARSER = r"""#!/usr/bin/env ruby
require 'shellwords'
require 'yaml'
filter = YAML.load_file("#{ENV['REC']}/pci.conf")[:filter]
`lspci -mmnn -d #{filter}`.each_line do |line|
  slot, *names = Shellwords.split(line)
  kind, maker, device = names.first(3).map {|name| name.match(/(.*) \[(\h{4})\]\z/).captures }
  node = File.read("#{ENV['REC']}/devices/0000:#{slot}/numa_node").chomp
  parts = slot.split(/[:.]/)
  found = { :TYPE => [maker, device, kind].map(&:last).join(':'), :VENDOR => maker[1], :VENDOR_NAME => maker[0], :DEVICE => device[1],
            :CLASS => kind[1], :CLASS_NAME => kind[0], :ADDRESS => "0000:#{parts.join(':')}", :SHORT_ADDRESS => slot, :DOMAIN => '0000',
            :BUS => parts[0], :SLOT => parts[1], :FUNCTION => parts[2], :NUMA_NODE => node.to_i.negative? ? '-' : node, :DEVICE_NAME => device[0] }
  puts "PCI = [\n#{found.map {|key, value| %(  #{key} = "#{value}") }.join(",\n")} ]"
end
"""


def measure(argv, stdin, env):
    """Milliseconds of processor and of the clock."""
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(a) for a in argv], input=stdin, capture_output=True, env=env, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{argv[0]}: exit status {done.returncode}: {done.stderr.decode()}")
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), 1e3 * (time.perf_counter() - begun)


def serve(door):
    """The agent's double, until the door is closed."""
    while True:
        try:
            end = door.accept()[0]
        except OSError:
            return
        with end:
            end.recv(4096)
            end.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + ANSWER.encode())


def programs(host, socket_path):
    """{name: (argv, stdin)}"""
    slots = [f"01:{i // 8:02x}.{i % 8}" for i in range(1, VFS + 1)]
    one.write(host.rec / "lspci", "".join(map(RECORD.format, slots)))
    one.write(host.rec / "pci.conf", ":filter: '15b3:*'\n")
    for slot in slots:
        one.write(host.rec / f"devices/0000:{slot}/numa_node", "0\n")
    one.program(host.where / "bin/lspci", LSPCI)
    one.program(host.where / "pci.rb", PARSER)
    host.env["VHCA_SOCKET"] = socket_path
    xml = "<domain><name>one-42</name><metadata/>" + "<devices/>" * 40 + "</domain>"
    found = {"ruby, start": (["ruby", "-e", "0"], b""), PCI: ([host.where / "pci.rb"], b""),
             "probe": ([one.DRIVERS / "im/kvm-probes.d/host/system/vhca"], b"")}
    for whose, nics in (("other VM", [one.nic(0, "bridge")]), ("a VM of ours", [one.nic(1)])):
        place = host.where / whose.replace(" ", "-")
        one.write(place / "vm.xml", one.vm(*nics))
        for kind in ("kvm", "vhca"):
            found[f"{kind}/deploy, {whose}"] = ([host.remotes / f"vmm/{kind}/deploy", place / "deployment.0", "hv1", "42", "hv1"], xml.encode())
            found[f"{kind}/migrate, {whose}"] = ([host.remotes / f"vmm/{kind}/migrate", "one-42", "hv2", "hv1", "42", "hv1"],
                                                 one.message(*nics).encode())
    return found


def report(rows):
    ret = figures.Figures("opennebula", BOUNDS)
    middle = {name: [statistics.median(row[i] for row in of) for i in (0, 1)] for name, of in rows.items()}
    for i, what in enumerate(("processor", "clock")):
        ret.add(f"{PCI}, {what}", middle[PCI][i], "ms")
        ret.add(f"probe, {what}", middle["probe"][i], "ms", f"{PCI}, {what}", middle[PCI][i])
        ret.add(f"ruby, start, {what}", middle["ruby, start"][i], "ms")
        for whose in ("other VM", "a VM of ours"):
            for action in ("deploy", "migrate"):
                ours, stock = ([row[i] for row in rows[f"{kind}/{action}, {whose}"]] for kind in ("vhca", "kvm"))
                added = statistics.median(a - b for a, b in zip(ours, stock))
                ret.add(f"{action} adds, {whose}, {what}", added, "ms", f"ruby, start, {what}", middle["ruby, start"][i])
                if whose == "other VM" and what == "clock":      # Other load only makes a run longer.
                    ret.add(f"{action} adds, {whose}, fastest, {what}", min(ours) - min(stock), "ms")
    return ret.end()


def main():
    parser = figures.parser(__doc__, build=False)
    parser.add_argument("runs", metavar="RUNS", type=figures.count, nargs="?", default=40)
    args = parser.parse_args()
    host = one.HostCase()
    host.setUp()
    with tempfile.TemporaryDirectory() as where, socket.socket(socket.AF_UNIX) as door:
        door.bind(f"{where}/socket")
        door.listen()
        threading.Thread(target=serve, args=(door,), daemon=True).start()
        todo = programs(host, f"{where}/socket")
        said = subprocess.run(todo[PCI][0], capture_output=True, env=host.env, check=True).stdout
        if (said.count(b"PCI = ["), said.count(b'" ]')) != (VFS, VFS) or said.count(b" = ") != VFS * 15:
            sys.exit(f"{PCI} says {said[:400]}")
        rows = {name: [] for name in todo}
        for _ in range(args.runs):
            for name, (argv, stdin) in todo.items():
                rows[name].append(measure(argv, stdin, host.env))
    host.doCleanups()
    return report(rows)


if __name__ == "__main__":
    sys.exit(main())
