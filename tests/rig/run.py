#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run cases on the rig: run.py [--long] [--list] [--keep] [--no-install] [--pairs N] [--shuffle SEED] [--minutes N] [--results FILE] [WORD...]

WORDs select the cases whose names contain one of them. Hypervisors that were up stay up.
--pairs shares the cases out among N pairs of hypervisors that run at the same time; "auto" takes as many as fit.
--minutes begins no case after that time. Stories come first; which of the others are left out changes with $VHCA_FRESH_SEED.
"""

import argparse
import importlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from kit import hypervisors, modules  # noqa: E402
from kit.base import RUN, SLOW, Lock, RigError, say  # noqa: E402
from kit.case import CASES  # noqa: E402
from kit.matrix import merged_page  # noqa: E402
from kit.runner import run_group, watched_rig  # noqa: E402
from kit.share import Share, pairs_that_fit  # noqa: E402
from kit.vm import Vm  # noqa: E402


def select(words, long):
    """Groups of cases. A story's later parts need its earlier ones: they are one group, matched as a whole. The longest
    stories come first, since one pair plays a story alone, then file order, so that pairs end together. Long cases have
    to be asked for, by a word or by this flag."""
    for file in sorted((pathlib.Path(__file__).parent / "cases").glob("[0-9]*.py")):
        importlib.import_module(f"cases.{file.stem}")
    groups = []
    for entry in CASES:
        if entry.story and groups:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    groups.sort(key=len, reverse=True)
    if words:
        return [g for g in groups if any(w in e.name for w in words for e in g)]
    return [g for g in groups if long or not g[0].long]


def left_out(groups):
    """Records of the cases that are not among these groups for being long."""
    run = {e.name for g in groups for e in g}
    records = [{"name": e.name, "result": "skip", "seconds": 0, "problem": "long"} for e in CASES if e.long and e.name not in run]
    for record in records:
        say(f" skip  rig: {record['name']}: takes long; tests/rig/run.py --long runs it")
    return records


def rotate(groups, seed):
    """Stories stay in front; of the other groups each comes first with some seed."""
    stories = [g for g in groups if len(g) > 1]
    others = [g for g in groups if len(g) == 1]
    first = seed % len(others) if others else 0
    return stories + others[first:] + others[:first]


def suite_of(pair, pairs, args):
    """The release of this pair's hvb: $VHCA_RIG_SUITE, or for the last pair of each fourth commit Debian 13."""
    seed = int(os.environ.get("VHCA_FRESH_SEED", "1"))
    rotated = args.minutes is not None and pair == pairs and seed % 4 == 0
    return os.environ.get("VHCA_RIG_SUITE", "trixie" if rotated else modules.HERE)


def not_reached(groups, results):
    """Records of the cases that were not begun in time."""
    begun = {r["name"] for r in results}
    records = [{"name": e.name, "result": "skip", "seconds": 0, "problem": "time"} for g in groups for e in g if e.name not in begun]
    for record in records:
        say(f" skip  rig: {record['name']}: the time was over; without --minutes tests/rig/run.py plays it")
    return records


def rig_failed(problem):
    """The record of what no case is to blame for."""
    say(f" FAIL  rig: {problem}")
    return {"name": "the rig itself", "result": "FAIL", "seconds": 0, "problem": str(problem)}


def run_locked(run):
    """run() while nobody else has this rig: two runs of the same name would take each other's cases out of one share."""
    try:
        with Lock():
            return run()
    except (RigError, OSError) as e:
        return [rig_failed(e)]


def run_here(groups, args):
    """Take groups from the share until none is left, on this run's pair of hypervisors."""
    keep = args.keep or any(Vm(n).pid() for n in hypervisors.NAMES)
    results = []
    try:
        hypervisors.up()
        if not args.no_install:
            hypervisors.install()
        rig = watched_rig(args.watch_tells)
        for i in Share(args.share).take(len(groups), args.until):
            results += run_group(groups[i], rig)
    except (RigError, OSError, ValueError) as e:
        results.append(rig_failed(e))
    finally:
        if not keep:
            hypervisors.down()
    return results


def run_pairs(pairs, args):
    """Run this program once for each pair, on cases out of one share; return all records. Pairs are in each other's way: time-outs grow with them."""
    share = Share.new()
    children = []
    try:
        hypervisors.build()
        if not args.no_install:
            hypervisors.build_tree()
        for i in range(1, pairs + 1):
            name = f"{RUN.name.removeprefix('run-')}-{i}"
            results = RUN / f"results-{i}.json"
            results.unlink(missing_ok=True)
            argv = [sys.argv[0], "--share", share.path, "--results", results, *args.words]
            argv += [] if args.shuffle is None else ["--shuffle", args.shuffle]
            argv += [] if args.minutes is None else ["--minutes", args.minutes, "--until", args.until]
            argv += [f for f, on in (("--keep", args.keep), ("--no-install", args.no_install), ("--long", args.long),
                                       ("--watch-tells", args.watch_tells)) if on]
            env = {**os.environ, "VHCA_RIG": name, "VHCA_RIG_SLOW": str(SLOW * pairs), "VHCA_RIG_SUITE": suite_of(i, pairs, args)}
            children.append((subprocess.Popen([str(a) for a in argv], env=env), name, results))
        return [r for child in children for r in outcome(*child)]
    finally:
        for process, _, _ in children:
            if process.poll() is None:
                process.terminate()  # it ends its hypervisors
                process.wait()


def outcome(process, name, results):
    """What one pair's run left behind. A run that ended without a word has failed."""
    code = process.wait()
    if results.exists():
        return json.loads(results.read_text())
    return [{"name": f"the pair {name}", "result": "FAIL", "seconds": 0, "problem": f"ended with exit code {code}"}]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="only print the cases and what they show")
    parser.add_argument("--keep", action="store_true", help="leave the hypervisors running")
    parser.add_argument("--no-install", action="store_true", help="test what is installed there already")
    parser.add_argument("--results", help="write a JSON list of results here")
    parser.add_argument("--matrix", help="write the page of the crash matrix with what was played now")
    parser.add_argument("--long", action="store_true", help="also the cases that take more than five minutes each")
    parser.add_argument("--watch-tells", action="store_true", help="what the watch sees fails no case: to find the noise of another system")
    parser.add_argument("--pairs", default="1", help="pairs of hypervisors that run at the same time: a number, or auto")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="in another order, which finds cases that lean on the one before")
    parser.add_argument("--minutes", type=float, help="begin no case after so many; what is left out is said")
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)  # of time.monotonic(): the same for all pairs
    parser.add_argument("--share", help=argparse.SUPPRESS)  # a run for one of several pairs: cases come from there
    parser.add_argument("words", nargs="*", help="run only cases whose name contains one of these")
    args = parser.parse_args()
    groups = select(args.words, args.long)
    if args.shuffle is not None:
        random.Random(args.shuffle).shuffle(groups)
    elif args.minutes is not None:
        groups = rotate(groups, int(os.environ.get("VHCA_FRESH_SEED", "0")))
    if args.minutes is not None and args.until is None:
        args.until = time.monotonic() + args.minutes * 60
    if args.list:
        for one in (one for group in groups for one in group):
            say(f"{one.name}\n    {one.shows}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that `finally` ends the hypervisors
    pairs = min(pairs_that_fit() if args.pairs == "auto" else int(args.pairs), len(groups))
    results = run_locked(lambda: run_pairs(pairs, args) if pairs > 1 else run_here(groups, args))
    if args.until is not None and time.monotonic() >= args.until and not args.share:
        results += not_reached(groups, results)
    if not args.words and not args.share:
        results += left_out(groups)
    if args.results:
        pathlib.Path(args.results).write_text(json.dumps(results))
    if args.matrix:
        pathlib.Path(args.matrix).write_text(merged_page([cell for r in results for cell in r.get("cells", ())]))
    failed = sum(r["result"] == "FAIL" for r in results)
    passed = sum(r["result"] == "ok" for r in results)
    say(f"rig: {passed} passed, {failed} failed" + (f", {len(results) - passed - failed} skipped" if passed + failed < len(results) else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
