# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run the benchmarks and write what they find to one page: tools/bench [--quick] [--page FILE] [NAME...]

Without names all; --quick leaves out those that need the rig (and root) or long. Each one's section of
the page is written anew, with commit and machine, the others stay as they are; so do the figures that
other documents quote with a link to the page. A machine that does nothing else is wanted: the page
says what its load was. The last line is the verdict, and the exit code 0 only if every bound was kept.
"""

import argparse
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/bench")]

import check
import page

TIMEOUT = 7200
BUILD = "BUILD"     # stands for the build directory


class Bench:
    """A program below tests/bench with its arguments; sizes are what its bounds depend on."""

    def __init__(self, program, *args, sizes=(), quick=False, rig=False, cloud=False):
        self.program, self.args, self.sizes, self.quick = f"bench_{program}.py", args, sizes, quick
        self.rig, self.cloud = rig, cloud

    def argv(self, build):
        return [str(ROOT / "tests/bench" / self.program), *(str(build) if a == BUILD else a for a in self.args)]

    def bounds(self):
        """{name of a figure: bound}"""
        module = importlib.import_module(self.program.removesuffix(".py"))
        return {k: v for size in self.sizes for k, v in module.bounds(size).items()} if self.sizes else module.BOUNDS

    def about(self):
        """The first line of what it says of itself."""
        text = (ROOT / "tests/bench" / self.program).read_text("utf-8")
        return text.split('"""')[1].splitlines()[0].partition(": ")[2]


BENCHES = {
    "hook": Bench("hook", BUILD, quick=True),
    "blackout": Bench("blackout", BUILD, quick=True),
    "doors": Bench("doors", BUILD, "10", sizes=(10,), quick=True),
    "opennebula": Bench("opennebula", quick=True),
    "openstack": Bench("openstack", BUILD, quick=True, cloud=True),
    "vswitch": Bench("vswitch", BUILD, "324", "648", sizes=(324, 648), quick=True),
    "vswitch-vports": Bench("vswitch", BUILD, "vports", sizes=("vports",), quick=True),
    "vswitch-large": Bench("vswitch", BUILD, "5832", "11664", sizes=(5832, 11664)),
    "channels": Bench("channels", BUILD, quick=True),
    "storm": Bench("storm", BUILD, sizes=(46256,), quick=True),
    "storm-own-ports": Bench("storm", "--own-ports", BUILD, sizes=(46256,)),
    "identity": Bench("identity", rig=True),
    "pinning": Bench("pinning", rig=True),
    "migration": Bench("migration", "3", rig=True),
}


def said(argv):
    return subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


def commit():
    """Of this tree; what is not committed is said, but for the page itself and what follows from it."""
    changed = said(["git", "status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs", ":!README.md", ":!NEWS.md"])
    return said(["git", "log", "-1", "--format=%h"]) + (" with changes" if changed else "")


def machine():
    """What figures depend on, in a line."""
    cpu = next((line.partition(": ")[2] for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("model name")), "?")
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kvm = "KVM" if os.path.exists("/dev/kvm") else "no KVM"
    return f"{os.cpu_count()} CPUs ({cpu.strip()}), {gib:.0f} GiB, Linux {os.uname().release}, {kvm}"


def run(bench, build):
    """(exit code, its figures)"""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as results:
        try:
            code = subprocess.run(bench.argv(build), env={**os.environ, page.figures.RESULTS: results.name},
                                  timeout=TIMEOUT, check=False).returncode
        except subprocess.TimeoutExpired:
            code = 124
        return code, [json.loads(line) for line in results]


def verdict(name, code, found):
    """What is wrong with a run; empty if nothing is."""
    broken = [f["name"] for f in found if f["ok"] is False]
    if broken:
        return f"{name}: {len(broken)} bounds broken: {'; '.join(broken)}"
    if not any(f["ok"] for f in found):
        return f"{name}: no bound was looked at, exit code {code}"
    return f"{name}: exit code {code}" if code else ""


def play(names, build, target):
    """Runs them, writes the page, says how it ended."""
    problems = []
    for i, name in enumerate(names, 1):
        print(f"== {name} ({i} of {len(names)})", flush=True)
        load, started = os.getloadavg()[0], time.monotonic()
        code, found = run(BENCHES[name], build)
        print(f"   {time.monotonic() - started:.0f} s", flush=True)
        problems += filter(None, [verdict(name, code, found)])
        if found:
            where = f"Commit {commit()}, {time.strftime('%Y-%m-%d')}; {machine()}; load {load:.1f} at the begin, {os.getloadavg()[0]:.1f} at the end."
            page.put_section(target, name, BENCHES[name].about(), where, found, list(BENCHES))
    page.quote(ROOT, target)
    for problem in problems:
        print(problem)
    print(f"{len(names) - len(problems)} benchmarks kept their bounds, {len(problems)} did not", flush=True)
    return 1 if problems else 0


def release_build(benches):
    """tools/check's, with what it and they need installed; None if that fails."""
    groups = ["build", "test", *(group for group in ("rig", "cloud") if any(getattr(bench, group) for bench in benches))]
    if subprocess.run([str(ROOT / "tools/deps"), *groups], check=False).returncode:
        return None
    return check.build(check.Tally(), "release")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", metavar="NAME", nargs="*", help=", ".join(BENCHES))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, help="a release build that is there already")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs/bench.md")
    args = parser.parse_args()
    for name in args.names:
        if name not in BENCHES:
            parser.error(f"{name} is none of {', '.join(BENCHES)}")
    names = args.names or [n for n, b in BENCHES.items() if b.quick or not args.quick]
    if any(BENCHES[n].rig for n in names) and os.geteuid():
        parser.error("the rig needs root; --quick does without")
    build = args.build.resolve() if args.build else release_build([BENCHES[n] for n in names])
    return play(names, build, args.page) if build else 1


if __name__ == "__main__":
    sys.exit(main())
