#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run a test that is built with the thread sanitizer: threads.py COMMAND...; fails if our own code races.

The libraries around us (libvirt, glib, OpenSM, libumad2sim) are not instrumented: what they do
under locks of their own kinds looks like a race, and libvirt takes two of its own locks in both
orders. So a race counts if one of its accesses, and an inversion of locks if one of the
acquisitions, was made by an object of the build directory (where meson runs tests), itself or by a
call into the C library. A report is symbolized here, not in the process: the sanitizer would open
files there, under locks of libumad2sim, which has an open() of its own.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
OPTIONS = 'symbolize=0 exitcode=0 second_deadlock_stack=1 stack_trace_format="    #%n %m %o" log_path={}/report'
ACCESSES = 2    # the first two stacks of a race; what follows says where memory and threads come from
ACQUISITIONS = 4    # of an inversion: each of the two locks, in each of the two orders
RUNTIME = re.compile(r"/lib[atu]*san\.so")

Report = collections.namedtuple("Report", "kind stacks")
Frame = collections.namedtuple("Frame", "module offset")


def read_reports(text):
    """The reports of one log: their kind, and the frames of each of their stacks."""
    found = []
    for part in re.split(r"^=+$", text, flags=re.M):
        head = re.search(r"^WARNING: ThreadSanitizer: (.*) \(pid=\d+\)$", part, re.M)
        stacks = [[Frame(*row) for row in re.findall(r"^ +#\d+ (\S+) (0x[0-9a-f]+)$", block, re.M)]
                  for block in re.split(r"\n\s*\n", part)]
        if head:
            found.append(Report(head[1], [s for s in stacks if s]))
        elif "ThreadSanitizer" in part and "reported" not in part:
            found.append(Report(part.strip(), []))
    return found


def actor(stack):
    """The object whose code made an access: the first one below the sanitizer's own."""
    return next((f.module for f in stack if not RUNTIME.search(f.module)), "")


def is_ours(report, build):
    """A race needs an access of ours, an inversion a lock that we take; of other kinds any frame will do.

    What is no report at all is a crash of the sanitizer.
    """
    if not report.stacks:
        return True
    if "race" in report.kind or "use-after-free" in report.kind:
        return any(actor(s).startswith(build) for s in report.stacks[:ACCESSES])
    if "inversion" in report.kind:
        return any(actor(s).startswith(build) for s in report.stacks[:ACQUISITIONS])
    return any(f.module.startswith(build) for s in report.stacks for f in s)


def symbolized(frame):
    done = subprocess.run(["addr2line", "-f", "-s", "-e", frame.module, frame.offset], capture_output=True, text=True, check=False)
    name, _, place = done.stdout.strip().partition("\n")
    return f"{name} {place} ({os.path.basename(frame.module)}+{frame.offset})"


def suppressions():
    lines = (HERE / "tsan.supp").read_text().splitlines()
    return [line.split(":", 1) for line in lines if line and not line.startswith("#")]


def lines_of(report):
    """A report as it is printed; None if it is suppressed."""
    lines = [f"# ThreadSanitizer: {report.kind}"]
    for number, stack in enumerate(report.stacks):
        names = [symbolized(f) for f in stack]
        if any(report.kind == kind and any(n.split()[0] == function for n in names) for kind, function in suppressions()):
            return None
        lines += [f"#   {'access' if number < ACCESSES else 'origin'}"] + [f"#     {n}" for n in names]
    return lines


def faults(logs, build):
    """Printed form of each report that counts, each kind of place once."""
    found = {}
    for log in sorted(logs):
        for report in read_reports(log.read_text(errors="replace")):
            if is_ours(report, build):
                key = (report.kind, tuple(tuple(s) for s in report.stacks[:ACCESSES]))
                found.setdefault(key, report)
    return [lines for lines in map(lines_of, found.values()) if lines]


def without_randomness(argv):
    """The sanitizer of gcc 12 does not start where vm.mmap_rnd_bits is above 28; a container may forbid to turn that off, and then it has to do."""
    off = ["setarch", "-R"]
    return off + argv if subprocess.run([*off, "true"], capture_output=True, check=False).returncode == 0 else argv


def main():
    build = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="vhca-tsan.") as where:
        env = {**os.environ, "TSAN_OPTIONS": OPTIONS.format(where)}
        code = subprocess.run(without_randomness(sys.argv[1:]), env=env, check=False).returncode
        bad = faults(pathlib.Path(where).iterdir(), build + "/")
    for lines in bad:
        print("\n".join(lines), flush=True)
    return 1 if bad else code


if __name__ == "__main__":
    sys.exit(main())
