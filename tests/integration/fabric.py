# SPDX-License-Identifier: LGPL-2.1-or-later
"""A small InfiniBand fabric without hardware: ibsim, real OpenSM processes with the plugin, the diagnostic tools.

Every process lives in a directory of its own, is known by its process object, and is ended by it.
"""

import collections
import contextlib
import ctypes
import errno
import fcntl
import functools
import http.client
import itertools
import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

import exposition
import openapi
import vantage
from callers import acting_as

UMAD2SIM = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so"
HOSTS = 4
# The address sanitizer watches the whole process: OpenSM leaks at exit and sends from freed buffers,
# umad2sim copies beyond its own. What these do themselves is not looked at.
ASAN_OPTIONS = "detect_leaks=0:abort_on_error=1:replace_intrin=0"
SUPPRESSIONS = "".join(f"interceptor_via_lib:{lib}\n" for lib in
                       ("libumad2sim", "libosmvendor", "libosmcomp", "libopensm", "libibumad", "/opensm"))
REST = 0.5    # s
WATCHES = 6    # of the ten clients that ibsim has room for
PORTS = 32    # of each program that asks for some
DESCRIPTORS = 1024  # libumad2sim takes descriptors from here on for its own
SMPS = ("lft", "port_info", "guid_info", "pkey_table", "all")     # as in smpcount.c
LIDS = 65536
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWNET, MS_REC, MS_PRIVATE = 0x20000, 0x40000000, 0x4000, 0x40000
SIOCSIFFLAGS, SIOCSIFADDR, IFF_UP = 0x8914, 0x8916, 1
SWEEP = re.compile(r"HEAVY SWEEP COMPLETE")


def missing():
    """Why the fabric cannot run here, or None."""
    for tool in ("opensm", "ibsim", "smpquery"):
        if not shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            return f"{tool} is not installed"
    return None if os.path.exists(UMAD2SIM) else f"{UMAD2SIM} is missing"


def few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))


def small_disk(path, size):
    """In a process that is about to begin: a disk of so many bytes at a directory, in a mount namespace of its own."""
    for done in (LIBC.unshare(CLONE_NEWNS), LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None),
                 LIBC.mount(b"tmpfs", path.encode(), b"tmpfs", 0, f"size={size}".encode())):
        if done != 0:
            raise OSError(ctypes.get_errno(), path)


@contextlib.contextmanager
def own_network():
    """This thread, and what it starts, are in a network of their own, with the device lo alone. Needs root."""
    with open("/proc/thread-self/ns/net", "rb") as before:
        if LIBC.unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "a network namespace")
        try:
            with socket.socket() as s:
                fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))
            yield
        finally:
            if LIBC.setns(before.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "back in the network namespace")


def bring_up(address):
    """One more, an IPv6 address in brackets, of the device lo."""
    six = address.startswith("[")
    with socket.socket(socket.AF_INET6 if six else socket.AF_INET) as s:
        fcntl.ioctl(s, SIOCSIFADDR, struct.pack("16sIi", socket.inet_pton(s.family, address[1:-1]), 128, socket.if_nametoindex("lo")) if six else
                    struct.pack("16sH2x4s16x", b"lo:1", s.family, socket.inet_aton(address)))


def tool(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


@functools.cache
def own_ports(pid):
    first = 10000 + pid % 700 * PORTS
    return itertools.cycle(range(first, first + PORTS))


def free_port():
    """A port of 127.0.0.1 that nobody uses, or is given before it is bound: each program has some of its own, below those that the kernel gives to
    whoever asks for any."""
    for port in itertools.islice(own_ports(os.getpid()), PORTS):
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port
    raise AssertionError("all ports of this program are in use")


def port_guid(host):
    """Port GUID of the HCA of host 1, 2, ..."""
    return f"0x{0x0002c90300000000 + host * 16 + 1:016x}"


def guid_groups(guid):
    """A GUID as the last four groups of an IPv6 address."""
    digits = f"{int(guid, 0):016x}"
    return ":".join(digits[i:i + 4] for i in range(0, 16, 4))


def topology():
    text = f'Switch {HOSTS + 4} "S1"\n'
    text += "".join(f'[{h}] "H{h}"[1]\n' for h in range(1, HOSTS + 1))
    for h in range(1, HOSTS + 1):
        text += f'\ncaguid=0x{0x0002c90300000000 + h * 16:x}\nHca 1 "H{h}"\n[1] "S1"[{h}]\n'
    return text


def wait_for(what, condition, timeout=30.0, every=0.02):
    """The first true value of condition(); fails the test after timeout."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout} s: {what}")
        time.sleep(every)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout, user=None):
        super().__init__("localhost", timeout=timeout)
        self.path, self.user = path, user

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        with acting_as(self.user):
            self.sock.connect(self.path)


@functools.cache
def document():
    return openapi.Document("openapi-vhcasm.yaml")


def without_nulls(members):
    return {name: value for name, value in members if value is not None}


def check_exchange(method, url, data, status, answer):
    """Fails the test if docs/openapi-vhcasm.yaml does not know such an answer of the plugin, or the request that was accepted."""
    errors = document().check_answer(method, url, status, answer)
    if status == 200:
        errors += document().check_request(method, url, data and json.loads(data, object_pairs_hook=without_nulls))
    if errors:
        raise AssertionError(f"{method} {url} {data}: {status} {answer}: {errors}")


class Api:
    """The plugin's HTTP API; each call returns (status, JSON body)."""

    def __init__(self, listen):
        self.listen, self.asked = listen, 0.0
        self.path = listen.removeprefix("unix:")

    def connection(self, timeout):
        if self.listen.startswith("unix:"):
            return UnixConnection(self.path, timeout)
        return http.client.HTTPConnection(self.listen, timeout=timeout)

    def call(self, method, url, body=None, timeout=10):
        conn = self.connection(timeout)
        try:
            data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
            try:
                conn.request(method, url, data)
            except BrokenPipeError:
                pass    # refused before the body was read; the answer is there all the same
            reply = conn.getresponse()
            answer = json.loads(reply.read())
        finally:
            conn.close()
            self.asked = self.asked if method == "GET" else time.monotonic()
        check_exchange(method, url, data, reply.status, answer)
        return reply.status, answer

    def rows(self, what):
        """All of a list ("bindings", "members"), page by page."""
        rows, after = [], ""
        while after is not None:
            status, doc = self.call("GET", f"/v1/{what}?limit=512{after}")
            if status != 200:
                raise AssertionError(doc)
            rows += doc[what]
            after = doc["next"] and f"&after={doc['next']}"
        return rows

    def metrics(self):
        """{"name{labels}": value} of GET /metrics."""
        conn = self.connection(10)
        try:
            conn.request("GET", "/metrics")
            reply = conn.getresponse()
            head, text = (reply.status, reply.getheader("Content-Type")), reply.read().decode()
        finally:
            conn.close()
        if head != (200, exposition.CONTENT_TYPE):
            raise AssertionError(head)
        return exposition.samples(text)

    def counted(self):
        """{kind: number} of SMPs, as Manager.smps(), by the plugin's own count."""
        values = self.metrics()
        return {kind: values[f'vhcasm_smps_total{{attribute="{kind}"}}'] for kind in SMPS if kind != "all"}

    def ready(self):
        try:
            return self.call("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def bind(self, vguid, epoch, host, pkeys, gid_index=1, lid=0):
        return self.call("PUT", f"/v1/bindings/{vguid}", {
            "epoch": epoch, "port_guid": port_guid(host), "gid_index": gid_index, "lid": lid,
            "pkeys": pkeys})

    def withdraw(self, vguid, epoch):
        return self.call("DELETE", f"/v1/bindings/{vguid}?epoch={epoch}")

    def move(self, vguid, epoch, source, to, pkeys=(), phase="commit"):
        """source, to: (host, gid_index)"""
        place = lambda host, index: {"port_guid": port_guid(host), "gid_index": index, "lid": 0}
        return self.call("POST", "/v1/moves", {
            "id": "0b6c5a5e-3d5d-4e0e-9c53-0d6f5f1f0a01", "epoch": epoch, "vguid": vguid, "phase": phase,
            "from": place(*source), "to": place(*to), "pkeys": list(pkeys)})

    def get(self, vguid):
        return self.call("GET", f"/v1/bindings/{vguid}")

    def declare(self, host, pkeys):
        return self.call("PUT", f"/v1/members/{port_guid(host)}", {"pkeys": pkeys})


class Fabric:
    """ibsim with hosts named H1, H2, ...: by default HOSTS of them at one switch."""

    LIDS_MOVE = False   # [lids] enable of its managers

    def __init__(self, net=None, console=False, options=()):
        self.dir = tempfile.mkdtemp(prefix="vhca-fabric.")
        self.sock_name = os.path.basename(self.dir)
        with open(os.path.join(self.dir, "net"), "w") as f:
            f.write(net or topology())
        self.log = open(os.path.join(self.dir, "ibsim.log"), "w")
        # Without its test it would spin on a console that nobody types at.
        self.sim = subprocess.Popen([tool("setpriv"), "--pdeathsig", "KILL", tool("ibsim"), "-s", *([] if console else ["-n"]), *options, "net"],
                                    cwd=self.dir, env=self.env(), stdout=self.log, stderr=self.log,
                                    stdin=subprocess.PIPE if console else subprocess.DEVNULL)
        self.managers, self.watches, self.changed = [], {}, 0.0
        wait_for("ibsim listens", self.listens, 60, 0.005)    # umad2sim tries again after seconds only
        wait_for("ibsim answers", lambda: self.sim.poll() is None and self.lid(1) is not None, 60)

    def env(self, host=1, preload=UMAD2SIM):
        env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
        return {**env, "IBSIM_SOCKNAME": self.sock_name, "SIM_HOST": f"H{host}",
                "LD_PRELOAD": preload if preload else ""}

    def listens(self):
        """Its socket for those that attach themselves; the name is filled with zero bytes, which are shown as @."""
        with open("/proc/net/unix", encoding="ascii") as f:
            return self.sim.poll() is not None or f"@{self.sock_name}:ctl@" in f.read()

    def console(self, line):
        """A command to ibsim itself, which must have a console."""
        with open(self.log.name, "rb") as f:
            f.seek(0, os.SEEK_END)
            before = f.tell()

            def prompts():
                f.seek(before)
                return b"sim>" in f.read()
            self.sim.stdin.write(f"{line}\n".encode())
            self.sim.stdin.flush()
            wait_for(f"ibsim does {line}", prompts, every=0.001)
        self.changed = time.monotonic()

    def query(self, *argv, host=1):
        """Output of a diagnostic tool that is attached at a host; None if it fails."""
        cwd = tempfile.mkdtemp(dir=self.dir)    # umad2sim makes its sys-PID there
        try:
            done = subprocess.run([tool(argv[0]), *argv[1:]], cwd=cwd, capture_output=True,
                                  text=True, env=self.env(host), timeout=30)
            return done.stdout if done.returncode == 0 else None
        finally:
            shutil.rmtree(cwd, ignore_errors=True)

    def lid(self, host):
        """LID that the port itself holds (0 before a subnet manager came)."""
        out = self.query("smpquery", "-D", "portinfo", "0", "1", host=host)
        found = re.search(r"^Lid:\.*(\d+)", out or "", re.M)
        return int(found.group(1)) if found else None

    def pkeys(self, host):
        """{index: key} of a host's port, as the port itself holds them."""
        out = wait_for(f"H{host} shows its keys", lambda: self.query("smpquery", "-D", "pkeys", "0", "1", host=host))
        table = {}
        for index, row in re.findall(r"^ *(\d+): (.*)$", out, re.M):
            table.update({int(index) + i: key for i, key in enumerate(row.split()) if key != "0x0000"})
        return table

    def has(self, host, key):
        return key in self.pkeys(host).values()

    def sa_request(self, method, host, index, guid):
        """Status of the SA's answer to sa_request.py at a host."""
        cwd = tempfile.mkdtemp(dir=self.dir)
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sa_request.py")
        done = subprocess.run(["/usr/bin/python3", script, method, str(self.lid(1)), str(self.lid(host)),
                               str(index), guid], cwd=cwd, capture_output=True, text=True,
                              env=self.env(host), timeout=30)
        shutil.rmtree(cwd, ignore_errors=True)
        return done.stdout.strip() or done.stderr

    def sa_guid(self, method, host, index, guid):
        """Lets a host ask the SA to grant (set) or withdraw (delete) an alias GUID, as an mlx4 driver does.

        ibsim refuses what OpenSM then writes into the port; the SA's own tables, which are looked at here, show it all the same.
        """
        status = self.sa_request(method, host, index, guid)
        if status != "0x0000":
            raise AssertionError(f"SA {method}: {status}")

    def join(self, host, guid):
        """Status of the SA's answer to a host that joins the broadcast group with a GUID."""
        return self.sa_request("join", host, 0, guid)

    def guids(self, host):
        """The first block of a port's GUID table as the SA has it."""
        out = self.query("saquery", "GUIDInfoRecord", f"{self.lid(host)}/0") or ""
        return re.findall(r"0x[0-9a-f]{16}", out)

    def path_lid(self, vguid):
        """Where the SA sends host 1 that asks for a path to a GUID; None if it knows none."""
        out = self.query("saquery", "PR", "--sgid", f"fe80::{guid_groups(port_guid(1))}",
                         "--dgid", f"fe80::{guid_groups(vguid)}")
        found = re.search(r"dlid\.*(\d+)", out or "")
        return int(found.group(1)) if found else None

    def watch(self, host):
        """A vantage point there, which stays for the next question; the one that was begun first makes room for a new one."""
        if host not in self.watches:
            if len(self.watches) == WATCHES:
                self.watches.pop(next(iter(self.watches))).close()
            self.watches[host] = vantage.Vantage(self, host)
        return self.watches[host]

    def manager(self, **args):
        sm = Manager(self, **args)
        self.managers.append(sm)
        return sm

    def close(self):
        for watch in self.watches.values():
            watch.close()
        for sm in self.managers:
            sm.kill()
        self.sim.kill()
        self.sim.wait()
        if self.sim.stdin:
            self.sim.stdin.close()
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)


class Manager:
    """One OpenSM with the plugin. Its directory (state included) outlives the process: start() again."""

    def __init__(self, fabric, host=1, conf="", opensm_conf="", base_file=None, listen=None,
                 counter=None, cache_dir=None, cache_size=None, hardware=None, slow=None, lids=None):
        self.fabric, self.host = fabric, host
        self.dir = tempfile.mkdtemp(prefix=f"sm{host}.", dir=fabric.dir)
        self.cache_dir = cache_dir or self.dir  # guid2lid, which a pair may share
        self.cache_size = cache_size    # bytes of a disk of its own, which ends with the process
        self.log_path = os.path.join(self.dir, "opensm.log")
        self.state_dir = os.path.join(self.dir, "state")
        self.api = Api(listen or f"unix:{self.dir}/run/vhcasm.sock")
        self.base_file = base_file
        self.conf, self.opensm_conf = conf, opensm_conf
        self.lids = fabric.LIDS_MOVE if lids is None else lids
        self.counter = counter      # smpcount.c as a library
        self.hardware = hardware or {}    # what smpcount.c says of it
        self.slow = slow    # slow_disk.c or slow_lock.c as a library
        self.asan = ""    # more for ASAN_OPTIONS, ":" first
        self.journal = None     # a journal.Journal, which it then has
        self.process, self.woken = None, 0.0

    def _write(self, name, text):
        with open(os.path.join(self.dir, name), "w") as f:
            f.write(text)
        return os.path.join(self.dir, name)

    def _environment(self):
        plugin = os.environ["VHCA_PLUGIN"]
        preload = " ".join(str(lib) for lib in (self.counter, self.slow, os.environ.get("VHCA_UMAD_TIMEOUT_LIB"), UMAD2SIM) if lib)
        suppressions = self._write("asan.supp", SUPPRESSIONS)
        linked = subprocess.run(["ldd", plugin], capture_output=True, text=True).stdout
        sanitizer = re.search(r"lib[at]san\S* => (\S+)", linked)
        if sanitizer:    # its run time has to come first
            preload = f"{sanitizer.group(1)} {preload}"
        return {**self.fabric.env(self.host, preload), **self.hardware, "OSM_CACHE_DIR": self.cache_dir,
                "OSM_TMP_DIR": self.dir, "LD_LIBRARY_PATH": os.path.dirname(plugin),
                "ASAN_OPTIONS": f"{ASAN_OPTIONS}:suppressions={suppressions}{self.asan}",
                "UBSAN_OPTIONS": "halt_on_error=1", "VHCA_SMPCOUNT": self.counts_path(),
                "VHCA_SLOW_DISK": os.path.join(self.dir, "slow-disk"), "VHCA_SLOW_LOCK": os.path.join(self.dir, "slow-lock")}

    def _prepare(self):
        few_descriptors()
        if self.cache_size:
            small_disk(self.cache_dir, self.cache_size)
        if self.journal:
            self.journal.prepare()

    def slow_down(self, ms):
        """Each fsync takes so long from now on."""
        self._write("slow-disk", str(ms))

    def keep_lock(self):
        """OpenSM computes ways, and keeps its lock until it has to give it back; it has it when this returns."""
        self._write("slow-lock.opensm", "")
        self.resweep()
        wait_for("OpenSM has its lock", self.lock_is_held)

    def take_lock_before(self, n):
        """When the plugin has taken its lock n times from now on, somebody takes it just before the next time, and keeps it as well."""
        os.rename(self._write("slow-lock.new", str(n)), os.path.join(self.dir, "slow-lock.before"))

    def lock_is_held(self):
        return os.path.exists(os.path.join(self.dir, "slow-lock.held"))

    def give_lock_back(self):
        """Whoever has it. Returns False if nobody had taken it before the plugin; nobody does then any more."""
        for name in ("before", "held"):    # the one is renamed into the other
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.dir, f"slow-lock.{name}"))
                return name == "held"
        raise AssertionError("nobody was to have the lock")

    def cache_path(self, name):
        """A file of its cache directory, as it is seen from here."""
        path = os.path.join(self.cache_dir, name)
        return f"/proc/{self.process.pid}/root{path}" if self.cache_size else path

    def fill_cache(self):
        """Until its disk of its own takes nothing any more; returns the file that can be taken away."""
        path = self.cache_path("ballast")
        with open(path, "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"0" * 4096)
            except OSError as e:
                if e.errno != errno.ENOSPC:
                    raise
        return path

    def configure(self, conf=None):
        """Writes vhcasm.conf, with other words from now on if there are any; returns where."""
        self.conf = self.conf if conf is None else conf
        base = f"base_file = {self.base_file}\n" if self.base_file else ""
        if "inherit" not in self.conf:
            base += "inherit = 0\n"    # cases share a fabric: nothing is to come from the one before
        lids = "[lids]\nenable = yes\n" if self.lids else ""
        return self._write("vhcasm.conf", f"[http]\nlisten = {self.api.listen}\n"
                           f"[state]\ndir = {self.state_dir}\n{lids}[partitions]\n{base}{self.conf}\n")

    def start(self, wait=True, timeout=20):
        conf = self.configure()
        # Without force_log_flush the last lines of up to 4 KiB come only with the next ones.
        main = self._write("opensm.conf", f"sweep_interval 0\nlog_file {self.log_path}\nlog_flags 0x07\nforce_log_flush TRUE\n"
                           f"partition_config_file {self.state_dir}/partitions.conf\n"
                           f"dump_files_dir {self.dir}\nevent_plugin_name vhcasm\n"
                           f"event_plugin_options {conf}\n{self.opensm_conf}\n")
        with open(os.path.join(self.dir, "stdout.log"), "a") as out:
            heard = self.journal.environment(out) if self.journal else {}
            self.process = subprocess.Popen([tool("opensm"), "-F", main], cwd=self.dir,
                                            env={**self._environment(), **heard}, stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=out, preexec_fn=self._prepare)
        if wait:
            wait_for("OpenSM is ready", lambda: self.alive() and self.api.ready(), timeout)
        return self

    def refused(self):
        """Starts it, with a plugin that does not start; returns the log, which says why. Not before OpenSM has begun: libumad2sim's thread
        crashes one that ends earlier."""
        before = len(self.output()) if self.process else 0
        self.start(wait=False)
        wait_for("the reason", lambda: self.alive() and "not started" in self.log())
        wait_for("OpenSM has begun", lambda: self.alive() and re.search("Entering (MASTER|STANDBY)", self.output()[before:]))
        return self.log()

    def counts_path(self):
        return os.path.join(self.dir, "smps")

    def _counts(self, first, n):
        with open(self.counts_path(), "rb") as f:
            f.seek(8 * first)
            return struct.unpack(f"{n}Q", f.read(8 * n))

    def smps(self):
        """What this OpenSM has sent, counted outside of it: {kind: number} (see smpcount.c)."""
        return dict(zip(SMPS, self._counts(0, len(SMPS))))

    def _counts_of(self, nth):
        """{value: how many}, of the nth table behind those."""
        table = self._counts(len(SMPS) + nth * LIDS, LIDS)
        return collections.Counter({value: n for value, n in enumerate(table) if n})

    def reregisters(self):
        """{LID: how many Set(PortInfo) gave it with the bit ClientReregister}, counted in the same way."""
        return self._counts_of(0)

    def switch_infos(self):
        """{LinearFDBTop: how many Set(SwitchInfo) had it}, counted in the same way."""
        return self._counts_of(1)

    def rest(self):
        """Until it has sent nothing for half a second, in which nobody has asked it or changed the fabric. A changed cable makes OpenSM sweep by itself,
        before or after the sweep that one asks for."""
        def quiet():
            sent = self._counts(len(SMPS) + 2 * LIDS, 1)[0] / 1000
            return time.monotonic() - max(sent, self.api.asked, self.fabric.changed, self.woken) > REST
        wait_for("OpenSM at rest", quiet, 60)

    def alive(self):
        if self.process.poll() is not None:
            raise AssertionError(f"OpenSM ended with {self.process.returncode}: {self.output()[-2000:]}")
        return True

    def output(self):
        with open(os.path.join(self.dir, "stdout.log"), errors="replace") as f:
            return f.read()

    def log(self):
        try:
            with open(self.log_path, errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def sweeps(self):
        return len(SWEEP.findall(self.log()))

    def resweep(self):
        self.process.send_signal(signal.SIGHUP)
        self.woken = time.monotonic()

    def stop(self, timeout=20):
        """Ends it as an administrator does; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
