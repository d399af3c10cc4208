# SPDX-License-Identifier: LGPL-2.1-or-later
"""One hypervisor VM: QEMU's command line, its monitor, the command channel."""

import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import time
import zlib

from kit.base import RUN, SLOW, SYSTEM_PATH, RigError, run, wait_for

# Above those of the other tests (tests/integration/fabric.py), below those that the kernel gives to whoever asks: in eight parts, so that
# pairs which start at the same time (default-1, default-2) have none in common.
FIRST_PORT, PART = 32400, 46
PORTS = range(FIRST_PORT + PART * (zlib.crc32(RUN.name.encode()) % 8), 32768)[:PART]
# Seconds that the end of a connection may be late: once it did not come at all, perhaps the user network's fault.
AFTER_RC = 2

MEMORY_MB = 3072
# Two minutes without a step are a lock-up (kernel/watchdog.c: twice the threshold), not 20 s: the adapters share a cable, and while the other end
# is without power or boots, its QEMU reads nothing, and who writes waits.
APPEND = ("console=ttyS0 quiet loglevel=4 no_timer_check tsc=reliable mitigations=off nokaslr "
          "random.trust_cpu=on watchdog_thresh=60 net.ifnames=0 iommu=pt intel_iommu=on apparmor=1 security=apparmor "
          "systemd.show_status=no systemd.hostname={name} systemd.machine_id={machine_id} "
          "mlx4_core.guid_base=0x0002c903000{index}0000")
BOOT_TIMEOUT = 180
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def free_ports(kind, count):
    """Ports of 127.0.0.1 that nobody uses now, nor is given before QEMU has bound them."""
    found = set()
    with contextlib.ExitStack() as held:
        while len(found) < count:
            s = held.enter_context(socket.socket(socket.AF_INET, kind))
            with contextlib.suppress(OSError):
                s.bind(("127.0.0.1", random.choice(PORTS)))
                found.add(s.getsockname()[1])
    return tuple(found)


class Vm:
    """A hypervisor by name (hva = 1, hvb = 2). Its state is in files below RUN, so any process can use it."""

    def __init__(self, name):
        if name not in ("hva", "hvb"):
            raise RigError(f"no hypervisor '{name}' (hva, hvb)")
        self.name = name
        self.index = 1 if name == "hva" else 2
        self.pid_file, self.log, self.qmp_path, self.info_file = (
            RUN / f"{name}.{s}" for s in ("pid", "serial", "qmp", "json"))

    def pid(self):
        """Process id of the running QEMU, or None. A recycled pid is told by its command line."""
        try:
            pid = int(self.pid_file.read_text())
            line = open(f"/proc/{pid}/cmdline", "rb").read()
            return pid if str(self.pid_file).encode() in line else None
        except (OSError, ValueError):
            return None

    def start(self, image, link_ports, vfs=4):
        """Start QEMU. link_ports: UDP ports of the private link, own and other. vfs: how many the adapter can have."""
        RUN.mkdir(parents=True, exist_ok=True)
        port, libvirt_port = free_ports(socket.SOCK_STREAM, 2)
        n = self.index
        self.log.write_bytes(b"")
        self.info_file.write_text(json.dumps({"port": port, "libvirt_port": libvirt_port, "image": image.key, "started": time.time()}))
        append = APPEND.format(name=self.name, index=n, machine_id=f"{n:032x}")
        nvme = (f"nvme,id=nv0,serial=RIG{n},bus=rp1,subsys=ss0,sriov_max_vfs={vfs},sriov_vq_flexible={2 * vfs},"
                f"sriov_vi_flexible={vfs},max_ioqpairs={2 * vfs + 10},msix_qsize={vfs + 13}")
        link = ("dgram,id=priv,local.type=inet,local.host=127.0.0.1,local.port=%d,"
                "remote.type=inet,remote.host=127.0.0.1,remote.port=%d" % link_ports)
        argv = ["qemu-system-x86_64", "-name", f"rig-{self.name}", "-nodefaults", "-no-user-config",
                "-display", "none", "-M", "q35", "-accel", "tcg,thread=multi,tb-size=512",
                "-cpu", "max,la57=off", "-smp", "1", "-m", str(MEMORY_MB),
                "-uuid", f"00000000-0000-4000-8000-{n:012d}",
                "-kernel", image.vmlinuz, "-initrd", image.initrd, "-append", append,
                "-device", "intel-iommu,intremap=on",
                "-chardev", f"file,id=ser,path={self.log}", "-serial", "chardev:ser",
                "-drive", f"file={image.disk},if=none,id=root,format=raw,snapshot=on",
                "-device", "virtio-blk-pci,drive=root",
                "-netdev", f"user,id=mgmt,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:2222,"
                f"hostfwd=tcp:127.0.0.1:{libvirt_port}-:16509",
                "-device", f"virtio-net-pci,netdev=mgmt,mac=52:54:00:0a:00:{n:02x},romfile=",
                "-netdev", link,
                "-device", f"virtio-net-pci,netdev=priv,mac=52:54:00:77:00:{n:02x},romfile=",
                "-device", "virtio-rng-pci",
                "-device", "pcie-root-port,id=rp1,chassis=1,slot=1,bus=pcie.0",
                "-device", "nvme-subsys,id=ss0", "-device", nvme,
                "-qmp", f"unix:{self.qmp_path},server=on,wait=off",
                "-pidfile", self.pid_file, "-daemonize"]
        run(argv, timeout=60, env={"TMPDIR": str(RUN)})

    def stop(self):
        """End this QEMU, and wait until it is gone."""
        pid = self.pid()
        if pid:
            os.kill(pid, signal.SIGTERM)
            wait_for(lambda: not self.pid(), 60, f"{self.name}: QEMU (pid {pid}) to end", 0.05)
        self.pid_file.unlink(missing_ok=True)

    def info(self):
        try:
            return json.loads(self.info_file.read_text())
        except (OSError, ValueError):
            return {}

    # ---- command channel ----

    def connect(self, verb, body, timeout):
        """A connection that has asked this of the command channel (channel.c)."""
        if not self.pid():
            raise RigError(f"{self.name} is not running: tests/rig/rig up")
        s = socket.create_connection(("127.0.0.1", self.info()["port"]), timeout=timeout)
        try:
            s.sendall(b"%s %d\n" % (verb.encode(), len(body)) + body)
        except OSError:
            s.close()
            raise
        return s

    def exchange(self, script, stdin=b"", timeout=120, verb="run"):
        """Run a bash script there; return (exit code, output bytes)."""
        script = script.encode() if isinstance(script, str) else script
        timeout *= SLOW
        end = time.monotonic() + timeout
        with self.connect(verb, script, timeout) as s:
            s.sendall(stdin)
            s.shutdown(socket.SHUT_WR)
            out = bytearray()
            while True:
                said = re.search(rb"\nrc=\d+\n\Z", out[-16:])
                s.settimeout(AFTER_RC if said else max(0.01, end - time.monotonic()))
                try:
                    data = s.recv(1 << 16)
                except TimeoutError:
                    if said:
                        break
                    raise RigError(f"{self.name}: no result in {timeout} s: {script[:200]!r}; "
                                   f"so far {bytes(out[-500:])!r}") from None
                except ConnectionError:
                    break
                if not data:
                    break
                out += data
        body, mark, code = bytes(out).rpartition(b"\nrc=")
        if not mark or not code.strip().isdigit():
            raise RigError(f"{self.name}: connection lost during {script[:200]!r}; got {bytes(out[-500:])!r}")
        return int(code), body

    def put(self, path, data, mode="644"):
        """Write a file there, and the folders above it."""
        code, out = self.exchange(f"{mode} {path}\n".encode() + data, verb="write")
        if code:
            raise RigError(f"{self.name}: {out.decode(errors='replace')}")

    def files(self, *patterns, timeout=60):
        """{path: content} of the files there that match; what cannot be read is an OSError in its place."""
        return self._paths("read", patterns, timeout)

    def links(self, *patterns, timeout=60):
        """{path: target} of symbolic links there."""
        return self._paths("links", patterns, timeout)

    def _paths(self, verb, patterns, timeout):
        found = {}
        with self.connect(verb, "\n".join(patterns).encode(), timeout * SLOW) as s, s.makefile("rb") as stream:
            s.shutdown(socket.SHUT_WR)
            while head := stream.readline():
                path, _, size = head.decode().partition("\0")
                if not size.endswith("\n"):
                    raise RigError(f"{self.name}: connection lost while it reads {path}")
                if int(size) < 0:
                    found[path] = OSError(-int(size), os.strerror(-int(size)), path)
                    continue
                content = stream.read(int(size))
                if len(content) < int(size):
                    raise RigError(f"{self.name}: connection lost while it reads {path}")
                found[path] = content.decode(errors="replace")
        return found

    def relay(self, target, timeout=60):
        """A socket whose other end is "unix PATH" or "tcp ADDRESS PORT" as seen there. It is closed at once if nobody listens."""
        return self.connect("relay", target.encode(), timeout * SLOW)

    def reachable(self):
        """Does the command channel answer?"""
        return bool(self.boot_id())

    def boot_id(self):
        """The running kernel's boot id; empty while nothing answers, as in the middle of a reboot."""
        try:
            return self.files(BOOT_ID, timeout=5).get(BOOT_ID, "").strip()
        except (OSError, RigError, ValueError):
            return ""

    def wait(self, timeout=BOOT_TIMEOUT):
        """Wait until the channel answers and systemd has reached its target."""
        def up():
            if not self.pid():
                raise RigError(f"{self.name}: QEMU ended; serial log: {self.log}")
            return self.reachable()
        wait_for(up, timeout, f"{self.name}: command channel; serial log: {self.log}", 0.3)
        code, out = self.exchange("systemctl is-system-running --wait", timeout=timeout)
        state = out.decode(errors="replace").strip()
        if code and state != "degraded":
            raise RigError(f"{self.name}: system is {state}")
        return state

    # ---- libvirt ----

    def virsh(self, *args, timeout=60):
        """This machine's virsh with the hypervisor's libvirtd, since one that starts there costs it 0.7 s; return (exit code, output)."""
        uri = f"qemu+tcp://127.0.0.1:{self.info()['libvirt_port']}/system"
        try:  # without keepalive: a hypervisor may stand still for longer than that waits
            done = subprocess.run(["virsh", "-q", "-k0", "-c", uri, *args], timeout=timeout * SLOW, stdin=subprocess.DEVNULL, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={"PATH": SYSTEM_PATH, "LC_ALL": "C.UTF-8"})
        except subprocess.TimeoutExpired:
            raise RigError(f"{self.name}: virsh {' '.join(args)}: no result in {timeout * SLOW} s") from None
        return done.returncode, done.stdout.decode(errors="replace")

    # ---- QEMU's monitor ----

    def qmp(self, command, **arguments):
        """One QMP command; returns its result. The case of a cut link: qmp("set_link", name="priv", up=False)."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(str(self.qmp_path))
            f = s.makefile("rw")
            f.readline()
            for request in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
                f.write(json.dumps(request) + "\n")
                f.flush()
                answer = json.loads(f.readline())
                while "event" in answer:
                    answer = json.loads(f.readline())
            if "error" in answer:
                raise RigError(f"{self.name}: QMP {command}: {answer['error'].get('desc')}")
            return answer["return"]


