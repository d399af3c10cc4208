#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The test of the lint tests: every gate must find what it is for.

samples/GATE.WHAT.sample is a small tree: a line "@path NAME" starts a file, "@files N NAME" makes N that hold their
licence only. It must make exactly GATE report
something. samples/good.sample must pass all programs.
"""

import contextlib
import io
import pathlib
import re
import runpy
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
GATES = {
    "layers.py": {"rooted", "layer", "home"},
    "gates.py": {"spdx", "marks", "outside", "file-length", "sysfs-door", "attribute", "call", "function-length", "prototype",
                 "comment-width", "prose-width"},
    "order.py": {"order"},
    "circles.py": {"circle"},
    "bounds.py": {"room", "claim-writer", "one-caller"},
    "results.py": {"result"},
    "figures.py": {"figure"},
    "fuzz.py": {"fuzz-target", "fuzz-parser", "corpus"},
}


def unpack(sample, root):
    out = None
    for line in sample.read_text(encoding="utf-8").split("\n"):
        if line.startswith("@path "):
            name = root / line.split()[1]
            name.parent.mkdir(parents=True, exist_ok=True)
            out = []
        elif line.startswith("@files "):  # @files N NAME, with {} for the number
            _, count, pattern = line.split()
            (root / pattern).parent.mkdir(parents=True, exist_ok=True)
            for number in range(int(count)):
                (root / pattern.format(number)).write_text("/* SPDX-License-Identifier: LGPL-2.1-or-later */\n", encoding="utf-8")
        elif line.startswith("@repeat "):  # @repeat N TEXT
            _, count, text = line.split(" ", 2)
            out += [text] * int(count)
        elif out is not None:
            out.append(line)
        if out is not None:
            name.write_text("\n".join(out), encoding="utf-8")


def run(program, root):
    """(exit code, set of gates that reported, whole output)"""
    sys.argv = [program, root]
    code = 0
    with contextlib.redirect_stdout(io.StringIO()) as output:
        try:
            runpy.run_path(str(HERE / program), run_name="__main__")
        except SystemExit as end:
            code = end.code
    found = set(re.findall(r"^\S+:\d+: ([a-z-]+): ", output.getvalue(), re.M)) - {"note"}
    return code, found, output.getvalue()


def check(sample):
    """None, or what is wrong."""
    want = sample.name.split(".")[0]
    with tempfile.TemporaryDirectory(prefix="vhca-lint-") as name:
        unpack(sample, pathlib.Path(name))
        for program, gates in GATES.items():
            code, found, output = run(program, name)
            expected = {want} & gates
            if found != expected or code != (1 if expected else 0):
                return f"{program}: exit {code}, found {sorted(found)}, expected {sorted(expected)}\n{output}"
    return None


def main():
    samples = sorted((HERE / "samples").glob("*.sample"))
    problems = [(s.name, check(s)) for s in samples]
    untested = set().union(*GATES.values()) - {s.name.split(".")[0] for s in samples}
    for name, problem in problems:
        print(f"{name}: {problem or 'ok'}")
    if untested:
        print(f"gates without a sample: {sorted(untested)}")
    return 1 if untested or any(p for _, p in problems) else 0


if __name__ == "__main__":
    sys.exit(main())
