#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run cases on the rig: run.py [--list] [--keep] [--no-install] [--results FILE] [WORD...]

WORDs select the cases whose names contain one of them. Hypervisors that were up stay up.
"""

import argparse
import importlib
import json
import pathlib
import signal
import sys
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from kit import hypervisors  # noqa: E402
from kit.base import RUN, Lock, RigError, say, wait_for  # noqa: E402
from kit.case import CASES, Failure, Rig  # noqa: E402
from kit.host import VFS  # noqa: E402
from kit.vm import Vm  # noqa: E402

ARTIFACTS = RUN / "artifacts"
COLLECT = {
    "vhcad.log": "journalctl --no-pager -b -u vhcad -o short-monotonic",
    "journal.log": "journalctl --no-pager -b -o short-monotonic -n 2000",
    "opensm.log": "tail -n 1000 /var/log/opensm.log",
    "libvirt.log": "tail -n 60 /var/log/libvirt/qemu/*.log",
    "serial.log": "tail -n 60 /var/log/libvirt/qemu/*.serial",
    "vfs.json": "vhcactl --json vfs",
    "outbox.json": "vhcactl --json outbox",
    "domains.txt": "virsh list --all; for d in $(virsh -q list --name); do virsh dumpxml $d; done",
    "dmesg.log": "dmesg | tail -n 200",
    "adapter.log": "grep . /sys/kernel/debug/simhca/*/state /sys/kernel/debug/simhca/*/stats",
}


def collect(name):
    """Save what explains a failure; return where."""
    where = ARTIFACTS / name.replace(": ", "-").replace(" ", "-")
    where.mkdir(parents=True, exist_ok=True)
    for host in Rig().hosts:
        for file, script in COLLECT.items():
            try:
                (where / f"{host.name}.{file}").write_bytes(host.vm.exchange(script, timeout=30)[1])
            except (OSError, RigError) as e:
                (where / f"{host.name}.{file}").write_text(str(e))
    return where


def clean(rig):
    """End all domains; then the agents themselves must bring every VF back to `free`."""
    for host in rig.hosts:
        host.sh("for d in $(virsh -q list --name); do virsh -q destroy $d; done; "
                "for d in $(virsh -q list --all --name); do virsh -q undefine $d; done; "
                "systemctl start vhcad; systemctl is-active -q libvirtd || systemctl restart libvirtd", timeout=120)
    rig.hva.sh("systemctl start opensm-vhcad")
    for host in rig.hosts:
        def all_free(h=host):
            states = {b: v["state"] for b, v in h.agent_vfs().items()}
            return set(states) == set(VFS) and set(states.values()) == {"free"}
        wait_for(all_free, 60, f"{host.name}: all VFs free again after the case", 0.5)


def run_case(rig, one):
    """Run one case; return its result record."""
    name = one.name
    started = time.monotonic()
    problem = ""
    try:
        if not one.story:
            rig.story = {}
        elif "stopped" in rig.story:
            raise Failure(f"not reached: the story stopped at '{rig.story['stopped']}'")
        one.function(rig)
    except (Failure, RigError) as e:
        problem = str(e)
    except Exception:  # a bug in the case is a failed case too
        problem = traceback.format_exc()
    seconds = time.monotonic() - started
    say(f"{'FAIL' if problem else 'ok':>5}  rig: {name}  ({seconds:.1f} s)")
    if problem:
        rig.story.setdefault("stopped", name)
        say("       " + problem.strip().replace("\n", "\n       "))
        say(f"       logs: {collect(name)}")
    return {"name": name, "result": "FAIL" if problem else "ok", "seconds": round(seconds, 1), "problem": problem}


def tidy(rig, record, dirty):
    """Clean up after a case. A VF that does not come back is that case's failure, and the next one starts from reset."""
    try:
        if record["result"] == "ok" and not dirty:
            clean(rig)
            return
    except (OSError, RigError, ValueError) as e:
        record.update(result="FAIL", problem=f"afterwards: {e}")
        say(f" FAIL  rig: {record['name']}, afterwards\n       {e}\n       logs: {collect(record['name'])}")
    try:
        hypervisors.reset()
    except (OSError, RigError) as e:
        say(f"       reset: {e}; starting the hypervisors anew")
        hypervisors.down()
        hypervisors.up()
        hypervisors.install()


def run_cases(cases, rig):
    results = []
    for i, one in enumerate(cases):
        results.append(run_case(rig, one))
        if not (i + 1 < len(cases) and cases[i + 1].story):
            tidy(rig, results[-1], one.dirty)
    return results


def select(words):
    """Cases in file order. A story's later parts need its earlier ones, so a match selects the whole story."""
    for file in sorted((pathlib.Path(__file__).parent / "cases").glob("[0-9]*.py")):
        importlib.import_module(f"cases.{file.stem}")
    groups = []
    for entry in CASES:
        if entry.story and groups:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return [e for g in groups if not words or any(w in e.name for w in words for e in g) for e in g]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="only print the cases and what they show")
    parser.add_argument("--keep", action="store_true", help="leave the hypervisors running")
    parser.add_argument("--no-install", action="store_true", help="test what is installed there already")
    parser.add_argument("--results", help="write a JSON list of results here")
    parser.add_argument("words", nargs="*", help="run only cases whose name contains one of these")
    args = parser.parse_args()
    cases = select(args.words)
    if args.list:
        for one in cases:
            say(f"{one.name}\n    {one.shows}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that `finally` ends the hypervisors
    keep = args.keep or any(Vm(n).pid() for n in hypervisors.NAMES)
    results = []
    try:
        with Lock():
            try:
                hypervisors.up()
                if not args.no_install:
                    hypervisors.install()
                results = run_cases(cases, Rig())
            finally:
                if not keep:
                    hypervisors.down()
    except (RigError, OSError) as e:
        results.append({"name": "the rig itself", "result": "FAIL", "seconds": 0, "problem": str(e)})
        say(f" FAIL  rig: {e}")
    if args.results:
        pathlib.Path(args.results).write_text(json.dumps(results))
    failed = sum(r["result"] == "FAIL" for r in results)
    say(f"rig: {len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
