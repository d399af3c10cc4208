#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Bounds on the figures of measure.py: tests/lint/bounds.py [ROOT]

A line "GATE KEY: NUMBER" of tests/lint/debts.txt raises the bound for what is above it today. It fails when it is
needed no longer; a note tells where its number may shrink.
"""

import collections
import pathlib
import sys

import measure
import source

FILES_IN_FOLDER = 30
ONE_CALLER_HELPERS = 150


class Bound:
    """What a gate counts for each key: at most BOUND, or what the key's debt says."""

    def __init__(self, report, root, gate, bound):
        self.report, self.gate, self.bound = report, gate, bound
        self.debts = source.debts(root, gate)

    def check(self, key, path, line, count, message):
        _, allowed = self.debts.get(key, (0, [self.bound]))
        if count > max(allowed):
            self.report.add(self.gate, path, line, f"{message}; at most {max(allowed)}")

    def check_debts(self, counts):
        for key, (line, allowed) in self.debts.items():
            if counts.get(key, 0) <= self.bound:
                self.report.add(self.gate, source.DEBTS, line, f"{key} needs no line any more")
            elif counts[key] < max(allowed):
                self.report.note(self.gate, source.DEBTS, line, f"{key} needs {counts[key]} only")


def check_rooms(report, root):
    paths = [p for p in source.files(root) if p.split("/")[0] in source.PRODUCT + ("tests",)]
    counts = measure.count_files(paths)
    bound = Bound(report, root, "room", FILES_IN_FOLDER)
    for folder, count in sorted(counts.items()):
        bound.check(folder, folder, 1, count, f"{count} C files in one folder")
    bound.check_debts(counts)


def check_claim_writers(report, root, texts):
    """By the file's name alone, because files move."""
    bound = Bound(report, root, "claim-writer", 0)
    counts = collections.Counter()
    for path, function in measure.find_claim_writers(texts):
        name = path.rpartition("/")[2]
        counts[name] += 1
        bound.check(name, path, function.first, counts[name], f"{function.name}() writes a claim outside agent/vf/")
    bound.check_debts(counts)


def check_helpers(report, root, texts):
    """One finding for all, because no helper is worse than the others: measure.py --list names them."""
    count = len(measure.find_helpers(texts))
    bound = Bound(report, root, "one-caller", ONE_CALLER_HELPERS)
    bound.check("product", source.DEBTS, 1, count, f"{count} helpers of at most {measure.HELPER_LINES} lines are called once")
    bound.check_debts({"product": count})


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    report = source.Report()
    texts = source.product(root)
    check_rooms(report, root)
    check_claim_writers(report, root, texts)
    check_helpers(report, root, texts)
    return report.finish("bounds")


if __name__ == "__main__":
    sys.exit(main())
