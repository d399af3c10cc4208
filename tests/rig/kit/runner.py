# SPDX-License-Identifier: LGPL-2.1-or-later
"""Running cases: each under the watch (kit/watch.py), and what must be left when they are over."""

import re
import shutil
import time
import traceback

from kit import hypervisors
from kit.base import RUN, RigError, say, wait_for
from kit.case import CASES, Failure, Rig
from kit.look import Look
from kit.watch import Watch

ARTIFACTS = RUN / "artifacts"
OOPS = re.compile(r"(?P<what>Oops: \w+|kernel BUG at \S+|general protection fault)(?:.*?Call Trace:.*?(?P<where>[a-z_]\w+)\+0x)?", re.S)
COLLECT = {
    "vhcad.log": "journalctl --no-pager -b -u vhcad -o short-monotonic",
    "journal.log": "journalctl --no-pager -b -o short-monotonic -n 2000",
    "opensm.log": "tail -n 1000 /var/log/opensm.log",
    "libvirt.log": "tail -n 60 /var/log/libvirt/qemu/*.log",
    "serial.log": "tail -n 60 /var/log/libvirt/qemu/*.serial /var/log/libvirt/qemu/*.console",
    "vfs.json": "vhcactl --json vfs",
    "outbox.json": "vhcactl --json outbox",
    "domains.txt": "virsh list --all; for d in $(virsh -q list --name); do virsh dumpxml $d; done",
    "dmesg.log": "dmesg | tail -n 200",
    "adapter.log": "grep . /sys/kernel/debug/simhca/*/state /sys/kernel/debug/simhca/*/stats",
    "sights.log": "cat /sys/kernel/debug/simhca/sights",
}


def collect(name):
    """Save what explains a failure; return where."""
    where = ARTIFACTS / name.replace(": ", "-").replace(" ", "-")
    where.mkdir(parents=True, exist_ok=True)
    for host in Rig().hosts:
        collect_from(host, where)
    return where


def collect_from(host, where):
    """One hypervisor's part. One that does not answer once has its last words on its serial line."""
    if host.vm.log.exists():
        shutil.copy(host.vm.log, where / f"{host.name}.hypervisor.log")
    for file, script in COLLECT.items():
        try:
            (where / f"{host.name}.{file}").write_bytes(host.vm.exchange(script, timeout=30)[1])
        except (OSError, RigError) as e:
            (where / f"{host.name}.{file}").write_text(str(e))
            return


def watched_rig(only_tells=False):
    """Both hypervisors, and who watches them from now on."""
    rig = Rig()
    rig.watch = Watch(rig.hosts, only_tells)
    return rig


def remains(rig):
    """What of a case is left on the hypervisors, in sentences: facts of libvirt, sysfs and the plugin, and the agents' word."""
    looks = hypervisors.both(lambda name: Look(getattr(rig, name)))
    found = [f"{name}: {s}" for name, look in looks.items() for s in look.remains()]
    return found + [f"the plugin has {b}" for b in looks["hva"].bindings.values() if b["state"] != "withdrawn"]


def unsettled(rig):
    """What the agents themselves say is left, in sentences: asked often, since it costs the hypervisors little."""
    found = hypervisors.both(lambda name: states_of_vfs(getattr(rig, name)))
    return [f"{name}: the agent's VFs are {states}" for name, states in found.items() if set(states) != {"free"}]


def states_of_vfs(host):
    """The agent's word for each; "unknown" if it does not answer."""
    try:
        return [v["state"] for v in host.get("vfs")["vfs"]]
    except (RigError, ValueError):
        return ["unknown"]


def end_domains(host):
    """Services that a case has stopped come back; what the guests had goes away by itself."""
    if not host.is_active("libvirtd"):
        host.sh("systemctl restart libvirtd")
    for domain in host.domains():
        host.virsh("destroy", domain, check=False, timeout=120)
    for domain in host.domains("--all"):
        host.virsh("undefine", domain, "--managed-save", check=False)
    if not host.is_active("vhcad"):
        host.sh("systemctl start vhcad", timeout=120)


def clean(rig, patience=90):
    """End all domains; then the agents themselves must bring every VF back to `free`, and leave nothing."""
    hypervisors.both(lambda name: end_domains(getattr(rig, name)))
    if not rig.hva.is_active("opensm-vhcad"):
        rig.hva.sh("systemctl start opensm-vhcad")
    left = ["nothing was looked at"]

    def is_clean():
        left[:] = unsettled(rig) or remains(rig)
        return not left
    try:
        wait_for(is_clean, patience, "nothing to be left after the case", 0.3)
    except RigError as e:
        raise RigError(f"{e}:\n" + "\n".join(left)) from None


def attempt(rig, one):
    """Run one case; return its result record."""
    started = time.monotonic()
    problems, cells = [], []
    try:
        if not one.story:
            rig.story = {}
        elif "stopped" in rig.story:
            raise Failure(f"not reached: the story stopped at '{rig.story['stopped']}'")
        cells = one.function(rig) or []
    except (Failure, RigError) as e:
        problems.append(str(e))
    except Exception:  # a bug in the case is a failed case too
        problems.append(traceback.format_exc())
    problems += overseen(rig, one, must=not problems)
    return {"name": one.name, "result": "FAIL" if problems else "ok", "seconds": round(time.monotonic() - started, 1),
            "problem": "\n".join(problems), "cells": cells}


def overseen(rig, one, must):
    """What the watch says; not to be able to look is a finding, too."""
    try:
        found = [f"watch: {s}" for s in rig.watch.sentences(one, must)]
    except (OSError, RigError, ValueError) as e:
        found = [f"watch: {e}"]
    if not rig.watch.only_tells or one not in CASES:  # a sabotage of 99_selftest.py is judged all the same
        return found
    for sentence in found:
        say(f"       note: {sentence}")
    return []


def run_case(rig, one):
    """Run one case and tell of it; return its result record."""
    record = attempt(rig, one)
    failed = record["result"] == "FAIL"
    say(f"{'FAIL' if failed else 'ok':>5}  rig: {one.name}  ({record['seconds']:.1f} s)")
    if failed:
        rig.story.setdefault("stopped", one.name)
        say("       " + record["problem"].strip().replace("\n", "\n       "))
        say(f"       logs: {collect(one.name)}")
    return record


def tidy(rig, record, one):
    """Clean up after a case. What does not come back is that case's failure, and the next one starts from reset."""
    try:
        if record["result"] == "ok" and not one.dirty:
            clean(rig)
            wrong = overseen(rig, one, must=False)
            if not wrong:
                return
            raise RigError("\n".join(wrong))
    except (OSError, RigError, ValueError) as e:
        record.update(result="FAIL", problem=f"afterwards: {e}")
        text = str(e).replace("\n", "\n       ")
        say(f" FAIL  rig: {record['name']}, afterwards\n       {text}\n       logs: {collect(record['name'])}")
    try:
        hypervisors.reset()
    except (OSError, RigError) as e:
        say(f"       reset: {e}; starting the hypervisors anew")
        hypervisors.down()
        hypervisors.up()
        hypervisors.install()
    rig.watch.look()


def console(host):
    """All that the hypervisor's kernel has said."""
    return host.vm.log.read_text(errors="replace") if host.vm.log.exists() else ""


def last_words(host, heard):
    """Where the hypervisor's kernel has died since so much of its console was heard: a sentence, or None."""
    text = console(host)
    died = OOPS.search(text, heard if heard <= len(text) else 0)  # a console that is shorter is another boot's
    return died and f"the kernel of {host.name} died: {died['what']}, in {died['where'] or 'an unknown place'}"


def play(group, rig):
    """Run cases that belong together, then clean up after the last one; return their records, and how kernels died meanwhile."""
    heard = [len(console(host)) for host in rig.hosts]
    rig.watch.begin()
    results = [run_case(rig, one) for one in group]
    died = [words for host, n in zip(rig.hosts, heard) if (words := last_words(host, n))]
    tidy(rig, results[-1], group[-1])
    return results, died


def run_group(group, rig):
    """Play cases that belong together; return their records. That a hypervisor's kernel dies is no fault of a program: then, and said so, they are played once more."""
    results, died = play(group, rig)
    if died and any(r["result"] == "FAIL" for r in results):
        say(f"       {'; '.join(died)}: played once more")
        rig.story = {}
        results, _ = play(group, rig)
    return results
