# SPDX-License-Identifier: LGPL-2.1-or-later
"""Cells of the crash matrix on the rig: an agent stops at one of its journaled steps, somebody goes away, and everything must come right.

A step is a transaction: "migration copying" (this agent's migration enters the state copying) or "VF scrubbing", before or after it
is durable; the labels of docs/crash-matrix.md, without the side. The agents are built with fault points (common/base/role.h).
"""

import contextlib
import typing

from kit import hypervisors
from kit.base import RigError, wait_for
from kit.case import VFS, Failure, check
from kit.host import SOCKET, Host
from kit.look import Look
from kit.migration import FULL_MIB_S

AGENT = "/usr/local/lib/vhcad-faults/vhcad"
DROP_IN = "/run/systemd/system/vhcad.service.d/faults.conf"
FAULT = "/run/vhcad/fault"
UNIT = f"""[Service]
ExecStart=
ExecStart={AGENT}
Environment=VHCA_FAULT_FILE={FAULT}
"""
POINTS = {("migration", "before"): "migration.move", ("migration", "after"): "migration.moved",
          ("VF", "before"): "engine.move", ("VF", "after"): "engine.moved"}
AWAY_S = 4  # OpenSM and the link; agents and libvirtd are started again by systemd after a second
STOPPED = """pid=$(systemctl show -P MainPID vhcad)
for i in $(seq 3000); do
	grep -q '^State:.T' /proc/$pid/status && exit 0
	sleep 0.03
done
exit 1
"""


class Cell(typing.NamedTuple):
    """Who goes away ("source agent", "destination libvirtd", "OpenSM"...) at which step of which side's agent."""

    side: str
    when: str
    step: str
    party: str
    cut: bool = False
    cancelled: bool = False

    def __str__(self):
        return f"{self.party} {'and the link ' if self.cut else ''}away {self.when} {self.side}'s {self.step}"


@contextlib.contextmanager
def fault_points():
    """The agents of both hypervisors can be stopped at their steps."""
    binary = (hypervisors.build_tree("fault-points", targets=["agent/vhcad"]) / "agent/vhcad").read_bytes()

    def put(name):
        host = Host(name)
        host.put(AGENT, binary, "755")
        host.put(DROP_IN, UNIT.encode())
        host.sh("systemctl daemon-reload; systemctl restart vhcad", timeout=90)

    def take_away(name):
        Host(name).sh(f"rm -rf {DROP_IN} {FAULT}; systemctl daemon-reload; systemctl restart vhcad", timeout=90)
    hypervisors.both(put)
    try:
        yield
    finally:
        hypervisors.both(take_away)


def ended(host):
    """Does the agent answer, and are all its migrations over?"""
    try:
        return not host.get("migrations?final=false")["migrations"]
    except (RigError, ValueError):
        return False


class Breaker:
    """Breaks the migrations of one guest, cell by cell; each begins where the one before has left the guest."""

    def __init__(self, move):
        self.move = move
        self.results = []

    def host(self, who):
        """The host of "source ..." or "destination ..."."""
        source = self.move.guest.host
        return source if who.startswith("source") else self.move.other(source)

    def run(self, cells):
        for cell in cells:
            try:
                self.break_at(cell)
            except (Failure, RigError) as e:
                raise Failure(f"{cell}: {e}") from None

    def break_at(self, cell):
        source, victim = self.move.guest.host, self.host(cell.side)
        self.arm(cell)
        if cell.cancelled:
            self.cancel_in_the_copy(cell)
        else:
            self.migrate()
        code, _ = victim.code(STOPPED, timeout=120)
        check(code == 0, f"the step was not reached; {self.why_not(source)}")
        self.strike(cell, victim)
        where = self.rest(source)
        self.results.append((str(cell), "stays" if where is source else "moves"))

    def arm(self, cell):
        kind, state = cell.step.split()
        text = f"{POINTS[kind, cell.when]}/{state}=stop"
        self.host(cell.side).sh(f"echo {text} > {FAULT}.new && mv {FAULT}.new {FAULT}")

    def migrate(self):
        """The request is answered late, or by nobody: its agent may be the one that stops."""
        source = self.move.guest.host
        body = f'{{"domain": "{self.move.guest.name}", "peer": "{self.move.other(source).name}"}}'
        source.sh(f"curl -s --unix-socket {SOCKET} -m 60 -X POST -H 'Content-Type: application/json' -d '{body}' http://a/v1/migrations "
                  "> /run/begin.json 2>&1 < /dev/null &")

    @staticmethod
    def why_not(source):
        return "the request was answered: " + source.sh("cat /run/begin.json", check=False)

    def strike(self, cell, stopped):
        """What the cell is about; then the stopped agent goes on, if it is not the one that was killed."""
        kill, back = self.ways(cell.party)
        go_on = "kill -CONT $(systemctl show -P MainPID vhcad)"
        victim = self.move.rig.hva if cell.party == "OpenSM" else self.host(cell.party)
        if cell.cut:
            self.link(False)
        victim.sh(kill)
        if cell.party != f"{cell.side} agent":
            stopped.sh(go_on)
        if cell.cut or back:
            stopped.sh(f"sleep {AWAY_S}")
        if cell.cut:
            self.link(True)
        if back:
            victim.sh(back)

    @staticmethod
    def ways(party):
        """(how it goes away, how it comes back if nobody starts it again)."""
        if party == "OpenSM":
            return "systemctl kill -s KILL opensm-vhcad", "systemctl start opensm-vhcad"
        unit = "vhcad" if party.endswith("agent") else "libvirtd"
        return f"systemctl kill --kill-who=main -s KILL {unit}", None

    def link(self, up):
        for host in self.move.rig.hosts:
            host.vm.qmp("set_link", name="priv", up=up)

    def rest(self, source):
        """Wait until no migration is open anywhere and everything is as it must be; return the host where the guest runs."""
        hosts = (source, self.move.other(source))
        for host in hosts:
            host.sh(f"rm -f {FAULT}")
        wait_for(lambda: all(ended(h) for h in hosts), 180, "all migrations to have ended", 1)
        running = [h for h in hosts if self.move.guest.name in h.domains()]
        check(len(running) == 1, f"{self.move.guest.name} runs on {[h.name for h in running]}")
        self.move.guest.host = running[0]
        wrong = ["nothing was looked at"]
        with contextlib.suppress(RigError):
            wait_for(lambda: not wrong.clear() and not wrong.extend(self.wrong()) and not wrong, 90, "all to be right", 0.5)
        check(not wrong, "; ".join(wrong))
        (guid,) = self.move.guids()
        self.move.story.wait_path(guid, int(running[0].facts().lid, 16))
        self.move.guest.wait_vfs(1, timeout=120)
        return running[0]

    def wrong(self):
        """What is not as it must be, in sentences, from one look at each hypervisor."""
        here = self.move.guest.host
        looks = hypervisors.both(lambda name: Look(Host(name), self.move.guest))
        sentences = []
        for name, look in looks.items():
            sentences += [f"{name}: {s}" for s in (self.wrong_here(look) if name == here.name else self.wrong_there(look))]
        (guid,) = self.move.guids()
        binding = looks["hva"].bindings.get(guid, {})
        if (binding.get("state"), binding.get("lid")) != ("granted", int(looks[here.name].facts.lid, 16)):
            sentences.append(f"the plugin has {binding}")
        return sentences

    def wrong_here(self, look):
        """Where the guest runs."""
        before, guids = self.move.before, set(self.move.guids())
        agent = [(v["name"], v["granted"]) for v in look.vfs.values() if v["state"] == "attached"]
        return list(filter(None, (
            look.identity != before and f"the guest has {look.identity}, not {before}",
            "urn:vhcad:away:1" in look.xml and "the guest still carries the marker",
            not guids <= look.facts.held_guids() and "its vGUID is not in the port's GUID table",
            agent != [(n, True) for n in before] and f"the agent calls {agent} attached",
            sorted(look.states()) != ["attached"] + ["free"] * (len(VFS) - 1) and f"the agent's VFs are {look.states()}",
            len(look.claims) != 1 and f"claims: {look.claims}",
            look.outbox and f"outbox: {look.outbox}")))

    def wrong_there(self, look):
        """Where it does not run: no trace of it."""
        return list(filter(None, (
            look.xml and "libvirt knows the guest",
            set(self.move.guids()) & look.facts.held_guids() and "the vGUID is in the port's GUID table",
            set(look.states()) != {"free"} and f"the agent's VFs are {look.states()}",
            *(look.trace_on(bdf) for bdf in VFS),
            look.claims and f"claims: {look.claims}",
            look.outbox and f"outbox: {look.outbox}")))

    def cancel_in_the_copy(self, cell):
        """A migration that is cancelled when libvirt has moved some memory: the ways back."""
        self.host(cell.side).sh(f"mv {FAULT} {FAULT}.later")
        self.move.begin_and_wait_copying()
        self.host(cell.side).sh(f"mv {FAULT}.later {FAULT}")
        self.move.guest.host.sh(f"(vhcactl migrate --cancel {self.move.guest.name}; virsh -q migrate-setspeed "
                                f"{self.move.guest.name} {FULL_MIB_S}) > /run/begin.json 2>&1 < /dev/null &")
