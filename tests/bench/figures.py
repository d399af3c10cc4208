# SPDX-License-Identifier: LGPL-2.1-or-later
"""What benchmarks share: their command line, the figures that they find, and the bounds that these must keep.

A bound is a text: "ratio <= 3", "value == 0", "value <= 10 or ratio <= 5". A figure that breaks its bound, and a bound that no
figure was found for, make the exit code 1. Each figure is a line of text, and in the file that
$VHCA_BENCH_RESULTS names a line of JSON.
"""

import argparse
import json
import operator
import os
import pathlib
import sys

sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "integration"), str(TESTS / "rig")]

RESULTS = "VHCA_BENCH_RESULTS"
HOLDS = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}


def number(value):
    """Three digits say enough; a count is said in full."""
    return f"{value:.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}"


def ratio_text(ratio):
    """A small one as 1:N, which is easier to read."""
    return f"1:{number(float(f'{1 / ratio:.3g}'))}" if 0 < ratio < 0.1 else f"{ratio:.2f}"


def holds(bound, figure):
    """Whether a figure keeps a bound; one that has not what the bound is about does not."""
    parts = [part.split() for part in bound.split(" or ")]
    return any(figure[what] is not None and HOLDS[relation](figure[what], float(limit)) for what, relation, limit in parts)


def said(figure):
    """One line of text."""
    value = "not measured" if figure["value"] is None else f"{number(figure['value'])} {figure['unit']}"
    ratio = "" if figure["ratio"] is None else f"{ratio_text(figure['ratio'])} of {figure['of']}"
    bound = f"{'ok' if figure['ok'] else 'FAILED'}: {figure['bound']}" if figure["bound"] else ""
    return f"{figure['name']:44} {value:>16}  {ratio:34} {bound}".rstrip()


class Figures:
    """All that one run of a benchmark finds; bounds = {name of a figure: bound}."""

    def __init__(self, benchmark, bounds):
        self.benchmark, self.bounds, self.found = benchmark, bounds, []

    def add(self, name, value, unit="", of=None, base=None):
        """One figure. of, base: what it is to be compared with, and that in the same unit."""
        assert name not in [f["name"] for f in self.found], name
        bound = self.bounds.get(name)
        figure = {"benchmark": self.benchmark, "name": name, "value": value, "unit": unit, "of": of,
                  "ratio": value / base if base else None, "bound": bound}
        figure["ok"] = holds(bound, figure) if bound else None
        self.found.append(figure)
        print(said(figure), flush=True)

    def end(self):
        """The exit code; leaves the figures where they are asked for."""
        for name in self.bounds.keys() - {f["name"] for f in self.found}:
            self.add(name, None)
        if os.environ.get(RESULTS):
            with open(os.environ[RESULTS], "a", encoding="utf-8") as f:
                f.writelines(json.dumps(figure) + "\n" for figure in self.found)
        broken = [f["name"] for f in self.found if f["ok"] is False]
        print(f"{self.benchmark}: {len(self.found)} figures, {len(self.bounds)} bounds, {len(broken)} broken", flush=True)
        return 1 if broken else 0


def build_directory(name):
    build = pathlib.Path(name).resolve()
    if not (build / "build.ninja").exists():
        raise argparse.ArgumentTypeError(f"{name} is no build directory")
    return build


def count(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is no number from 1 on")
    return int(text)


def parser(doc, build=True):
    """Whose first argument is BUILD, unless it needs none, and whose --help is doc."""
    ret = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if build:
        ret.add_argument("build", metavar="BUILD", type=build_directory)
    return ret


def parse_plugin(ret):
    """OpenSM then loads the plugin of BUILD."""
    args = ret.parse_args()
    plugin = args.build / "opensm/libvhcasm.so"
    if not plugin.exists():
        ret.error(f"{plugin} is not there: build the plugin")
    os.environ["VHCA_PLUGIN"] = str(plugin)
    return args
