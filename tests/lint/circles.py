#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Circles of files by symbol: tests/lint/circles.py [ROOT]

A file uses another one if it names a function or a variable with external linkage that the other defines. What is
called through a table of operations does not count, because the caller does not name it. Files that reach each other
are a circle. The lines "circle FOLDER: SIZES" of tests/lint/debts.txt are the circles that stand, largest first.
"""

import pathlib
import re
import sys

import source

# A name that is no member, neither selected (a.name, a->name) nor set (.name = x), and no tag.
NAME = re.compile(r"(?<![\w.])(?<!->)(?<!\bstruct )(?<!\benum )(?<!\bunion )[A-Za-z_]\w*")
# A local variable, a parameter or a member: type, name, and what follows a declarator.
LOCAL = re.compile(r"\b(?!(?:return|else|case|goto|sizeof|struct|enum|union)\b)\w+\s+\**(\w+)\s*(?:[=;,)\[]|:\s*\d)|\(\*(\w+)\)\s*\(")
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n]*\\\n)*[^\n]*)", re.M)
CLEANUP = re.compile(r"^VHCA_DEFINE_CLEANUP\([^,]*, (\w+)\)", re.M)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[^\n]*", re.M)


def find_definers(texts):
    """{symbol: [C files that define it]}"""
    definers = {}
    for path, text in texts.items():
        if not path.endswith(".c"):
            continue
        names = [f.name for f in source.functions(text) if not f.static]
        for name in set(names).union(source.global_variables(text)):
            definers.setdefault(name, []).append(path)
    return definers


def find_expansions(texts):
    """{macro or inline function of a header: the names in it}"""
    expansions = {}
    for path, text in texts.items():
        if path.endswith(".h"):
            for name, body in MACRO.findall(source.strip(text)):
                expansions.setdefault(name, set()).update(NAME.findall(body))
            for name in CLEANUP.findall(text):
                expansions.setdefault(name + "p", set()).add(name)
            for function in source.functions(text):
                expansions.setdefault(function.name, set()).update(NAME.findall(function.body))
    return expansions


def find_names(text, expansions):
    """Every name of a C file that may be a symbol of another one."""
    code = INCLUDE.sub("", source.strip(text))
    locals_ = {name for pair in LOCAL.findall(code) for name in pair}
    names, todo = set(), set(NAME.findall(code)) - locals_
    while todo:
        names |= todo
        todo = set().union(*(expansions.get(name, ()) for name in todo)) - names
    return names


def choose_definer(path, candidates):
    """Programs have symbols of one name: a file means the one that is next to it."""
    return max(candidates, key=lambda c: len([1 for a, b in zip(path.split("/"), c.split("/")) if a == b]))


def find_uses(texts):
    """{file: {file that it uses: {symbols}}}"""
    definers, expansions = find_definers(texts), find_expansions(texts)
    uses = {}
    for path in (p for p in texts if p.endswith(".c")):
        arrows = uses.setdefault(path, {})
        for name in find_names(texts[path], expansions) & definers.keys():
            if path not in definers[name]:
                arrows.setdefault(choose_definer(path, definers[name]), set()).add(name)
    return uses


def reach(uses, path):
    """The files that a file uses, and those that they use."""
    seen, todo = set(), [path]
    while todo:
        new = uses[todo.pop()].keys() - seen
        seen |= new
        todo += new
    return seen


def find_circles(uses):
    """Sorted lists of the files that reach each other, the largest first."""
    reached = {path: reach(uses, path) for path in uses}
    circles = {tuple(sorted(f for f in reached[path] if path in reached[f])) for path in uses if path in reached[path]}
    return sorted(circles, key=lambda circle: (-len(circle), circle))


def print_circle(uses, circle):
    print(f"circle of {len(circle)} files:")
    for path in circle:
        for other in sorted(uses[path].keys() & set(circle)):
            print(f"    {path} -> {other}: {', '.join(sorted(uses[path][other]))}")


def check_sizes(report, root, circles):
    """The circles of each top folder are those of its debt, not more, and not fewer: then the debt is smaller."""
    known = source.debts(root, "circle")
    there = {}
    for circle in circles:
        there.setdefault(circle[0].split("/")[0], []).append(circle)
    for folder in sorted(known.keys() | there.keys()):
        line, sizes = known.get(folder, (1, []))
        found = [len(circle) for circle in there.get(folder, ())]
        if found != sizes:
            path, line = (there[folder][0][0], 1) if sum(found) > sum(sizes) else (source.DEBTS, line)
            report.add("circle", path, line, f"{folder} has circles of {found or 'no'} files, {source.DEBTS} says {sizes or 'none'}")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    report = source.Report()
    uses = find_uses(source.product(root))
    circles = find_circles(uses)
    for circle in circles:
        print_circle(uses, circle)
    check_sizes(report, root, circles)
    return report.finish("circles")


if __name__ == "__main__":
    sys.exit(main())
