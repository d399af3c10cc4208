# SPDX-License-Identifier: LGPL-2.1-or-later
"""What must not happen while a case runs, whatever the case itself looks at: a look at each hypervisor after each case.

Restarts and abnormal ends of services, what kernel and services call an error, stalls of the agent, and exposures: what simhca has
recorded of the VFs that guests hold (core_sight.c), compared with what the case's guests asked for.
"""

import collections
import json
import re

from kit.base import RigError
from kit.guest import ASKED, NAMES
from kit.host import INVOCATION
from kit.hypervisors import both
from kit.vm import BOOT_ID

UNITS = ("vhcad", "opensm-vhcad", "libvirtd")
TROUBLE = re.compile("segfault|Oops|BUG|WARNING|DENIED|general protection|oom-kill|Out of memory|blocked for more than")
ERROR = 3  # syslog's
SIGHTS = "/sys/kernel/debug/simhca/sights"
FIELDS = "MESSAGE,PRIORITY,_PID,_SYSTEMD_UNIT,UNIT,EXIT_CODE,EXIT_STATUS"
# libvirt calls every call that fails an error, those too that a case has made to fail: its words are not judged, its ends are.
SPEAKERS = ("vhcad", "opensm-vhcad")
SOURCES = " + ".join([f"_SYSTEMD_UNIT={u}.service " + " ".join(f"PRIORITY={p}" for p in range(ERROR + 1)) for u in SPEAKERS]
                     + [f"_PID=1 UNIT={u}.service" for u in UNITS])
# What was logged before the look is in it: journald may be behind on a busy machine.
JOURNAL = f"journalctl --sync 2>/dev/null; journalctl -q --no-pager -o json --output-fields={FIELDS} %s {SOURCES}"
KMSG = "/dev/kmsg"
NOBODY = (0, (1 << 64) - 1)
FULL_MEMBER = 0x8000


class Sight:
    """One line of simhca's record: "SEQ TIME PF vf N port P UUID requested GUID granted GUID keys K,K"; "-" is nobody, or no key."""

    def __init__(self, line):
        _, _, _, _, self.vf, _, self.port, holder, _, requested, _, granted, _, keys = line.split()
        self.holder = holder.strip("-")
        self.requested, self.granted = int(requested, 16), int(granted, 16)
        self.keys = [k for k in keys.split(",") if k != "-"]


class Look:
    """One hypervisor, now; with a look before, what has happened since."""

    def __init__(self, host, before=None):
        if before:
            self._forget(host, before.next_sight)
        files = {path: str(text) for path, text in host.vm.files(BOOT_ID, KMSG, SIGHTS, timeout=120).items()}
        self.boot = files[BOOT_ID].strip()
        self.units = self._runs_of_units(host)
        self.kernel = self._records(files[KMSG])
        self.journal = self._journal_since(host, before)
        self.cursor = self.journal[-1]["__CURSOR"] if self.journal else before.cursor if before else ""
        self.node = self._node(host)
        self._read_sights(files.get(SIGHTS, ""))

    @staticmethod
    def _forget(host, number):
        """simhca need not keep the sights before this one; it may not be loaded."""
        if host.exists(SIGHTS):
            host.put(SIGHTS, b"%d" % number)

    @staticmethod
    def _runs_of_units(host):
        """{unit: systemd's id of this run of it, "" while it does not run}."""
        links = {unit: f"{INVOCATION}{unit}.service" for unit in UNITS}
        runs = host.vm.links(*links.values())
        return {unit: runs.get(link, "") for unit, link in links.items()}

    @staticmethod
    def _records(text):
        """[(seconds, text)] of /dev/kmsg: "PRIORITY,SEQUENCE,MICROSECONDS,...;TEXT" and lines that begin with a blank."""
        heads = (line.partition(";") for line in text.splitlines() if line and not line.startswith(" "))
        return [(int(head.split(",")[2]) / 1e6, said) for head, _, said in heads]

    @staticmethod
    def _journal_since(host, before):
        since = f"--after-cursor='{before.cursor}'" if before and before.cursor else "-b"
        return [json.loads(line) for line in host.sh(JOURNAL % since, timeout=120).splitlines()]

    @staticmethod
    def _node(host):
        try:
            return host.get("node")
        except (RigError, ValueError):
            return {}

    def _read_sights(self, text):
        head, *self.sights = text.splitlines() or ["record - first 0 next 0"]
        _, self.record, _, first, _, following = head.split()
        self.first_sight, self.next_sight = int(first), int(following)

    def kernel_since(self, before):
        """Lines of the kernel that look like trouble."""
        since = before.kernel[-1][0] if before.boot == self.boot and before.kernel else -1.0
        return [f"[{seconds:.6f}] {text}" for seconds, text in self.kernel if seconds > since and TROUBLE.search(text)]


def unit_of(entry):
    return (entry.get("UNIT") or entry.get("_SYSTEMD_UNIT", "")).removesuffix(".service")


def message_of(entry):
    """The journal gives what is no text as a list of bytes."""
    message = entry.get("MESSAGE", "")
    return bytes(message).decode(errors="replace") if isinstance(message, list) else message


def is_named(party, kills):
    """Does a case declare this party ("hva opensm-vhcad")? "vhcad" is the agent of either, not OpenSM."""
    return any(k in (party, party.split()[1]) for k in kills)


def is_error(entry):
    return int(entry.get("PRIORITY", ERROR + 1)) <= ERROR and "EXIT_CODE" not in entry


class Watch:
    """Looks at both hypervisors, from one case to the next."""

    def __init__(self, hosts, only_tells=False):
        self.hosts = {host.name: host for host in hosts}
        self.only_tells = only_tells
        self.before = {}
        self.owners = {}

    def begin(self):
        """Whatever happened until now is nobody's fault, and all guests are gone. The look after the last case is also the first one now."""
        ASKED.clear()
        self.owners.clear()
        if not self.before:
            self.look()

    def look(self):
        """What has happened until now is not judged."""
        self.before = both(lambda name: Look(self.hosts[name], self.before.get(name)))

    def sentences(self, case, must=True):
        """What has happened since the last look and this case did not declare. must: what it did declare has to be there, too."""
        before = self.before
        self.before = now = both(lambda name: Look(self.hosts[name], before[name]))
        gone, found = set(), []
        for name in self.hosts:
            gone |= self.gone(name, before[name], now[name])
        for name in self.hosts:
            found += self.restarts(name, before[name], now[name], case.kills)
            found += [f"{name}: {s}" for s in self.alarms(before[name], now[name], case.kills, name)]
            found += self.exposures(name, now[name], before[name])
        left = [s for s in found if not self.is_declared(s, case)]
        if must:
            left += [f"'{k}' is declared to end in this case and did not" for k in case.kills
                     if not any(is_named(g, (k,)) for g in gone)]
            left += [f"'{e}' is expected in this case and was not seen" for e in case.expects if not any(re.search(e, s) for s in found)]
        return left

    def peek(self, host):
        """Lines of simhca's record since the last look, which stay there for the next one."""
        return Look(host, self.before[host.name]).sights

    @staticmethod
    def is_declared(sentence, case):
        return any(re.search(p, sentence) for p in case.expects)

    @staticmethod
    def gone(name, before, now):
        """Parties that ended at this hypervisor: "hva vhcad", "hva boot", "hva adapter"."""
        return {f"{name} {what}" for what, changed in (
            ("boot", before.boot != now.boot), ("adapter", before.boot == now.boot and before.record != now.record),
            *((unit, before.units[unit] != now.units[unit]) for unit in UNITS)) if changed}

    def restarts(self, name, before, now, kills):
        """Who ended without leave. A reboot ends all."""
        gone = self.gone(name, before, now)
        if f"{name} boot" in gone:
            gone = {f"{name} boot"}
        for party in sorted(gone):
            if not is_named(party, kills):
                unit = party.split()[1]
                yield f"{party} ended: {before.units.get(unit, before.boot)} -> {now.units.get(unit, now.boot)}"

    @staticmethod
    def alarms(before, now, kills, name):
        """A case that declares the end of a service may have killed it; nobody may crash."""
        for entry in now.journal:
            unit, code, status = unit_of(entry), entry.get("EXIT_CODE"), entry.get("EXIT_STATUS")
            killed = code == "killed" and status in ("KILL", "9") and is_named(f"{name} {unit}", kills)
            if (code and not killed) or is_error(entry):
                yield f"{unit}: {message_of(entry)}"
        yield from now.kernel_since(before)
        calls = now.node.get("loop", {}).get("blocking_calls", 0)
        if calls:
            yield f"vhcad: {calls} blocking calls on the state thread"

    def exposures(self, name, now, before):
        """What guests saw and should not have."""
        if now.record == before.record and now.first_sight > before.next_sight:
            yield f"{name}: {now.first_sight - before.next_sight} entries of simhca's record are lost"
        told = collections.Counter()
        for line in now.sights:
            for sentence in self.exposed(line):
                told[sentence] += 1
                if told[sentence] == 1:
                    yield f"{name}: {sentence}: {line}"

    def exposed(self, line):
        """What is wrong with one sight."""
        sight = Sight(line)
        vf, holder, who = sight.vf, sight.holder, NAMES.get(sight.holder, sight.holder)
        if not holder:
            return
        for key in sight.keys:
            if key == "more" or not {int(key, 16), int(key, 16) | FULL_MEMBER} & ASKED[holder]:
                asked = ", ".join(f"0x{k:04x}" for k in sorted(ASKED[holder])) or "nothing"
                yield f"EXPOSURE: {who} on VF {vf} sees P_Key {key} and asked for {asked}"
        for guid in {sight.requested, sight.granted} - set(NOBODY):
            owner = self.owners.setdefault(guid, holder)
            if owner != holder:
                yield f"EXPOSURE: {who} on VF {vf} has GUID 0x{guid:016x} of {NAMES.get(owner, owner)}"
