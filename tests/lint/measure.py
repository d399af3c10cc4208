#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Figures of the product's shape, as a table: tests/lint/measure.py [--list] [ROOT]

bounds.py, circles.py and gates.py bound some of them, and figures.py compares them with what the design page tells;
this program only prints. With --list it names the functions that two of the figures count.
"""

import collections
import pathlib
import re
import sys

import circles
import gates
import source

STATES = ("vhca_claim", "vhca_mig", "vhca_vf")
HELPER_LINES = 8
CALLED = re.compile(circles.NAME.pattern + r"(?=\s*\()")
# A claim is made in the model and filled by the journal's loader; after that only its room writes it.
CLAIM_ROOM = re.compile(r"agent/(?:vf/|state/(?:model|journal)\.c$)")
CLAIM_DECLARATION = re.compile(r"struct vhca_claim \*([^;(){}]*)")


def count_files(paths):
    """{folder: C files in it, without those below}"""
    return collections.Counter(p.rpartition("/")[0] for p in paths if p.endswith((".c", ".h")))


def count_booleans(texts, tag):
    """Members of the struct, and of those within it, that are bool; enums have none."""
    total = 0
    for text in texts.values():
        code = source.strip(text)
        for match in re.finditer(rf"^struct {tag} \{{(.*?)^\}}", code, re.M | re.S):
            members = re.sub(r"\benum\b[^;{}]*\{[^{}]*\}", "", match.group(1))
            total += sum(m.count(",") + 1 for m in re.findall(r"\bbool\s+([\w\s,:\[\]]+);", members))
    return total


def writes_claim(function):
    """Whether a function sets a member of a claim that it holds, or of somebody's `claim`."""
    names = {"claim"}
    for declarators in CLAIM_DECLARATION.findall(function.head + "{" + function.body):
        names.update(re.findall(r"(?:^|, \*)(\w+)", declarators))
    member = rf"(?<!\w)(?:{'|'.join(sorted(names))})->\w+(?:\.\w+|\[[^\]]*\])*"
    return re.search(rf"{member}\s*(?:(?:[-+*/%|&^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--){member}|"
                     rf"\b(?:vhca_strcpy|snprintf|memcpy|memset)\(&?{member}", function.body) is not None


def find_claim_writers(texts):
    """[(path, function)] outside the room of the claims."""
    return [(path, function) for path, text in texts.items() if not CLAIM_ROOM.match(path)
            for function in source.functions(text) if writes_claim(function)]


def count_body_lines(text, function):
    """Blank ones do not count, comments do."""
    body = text[function.end - 1 - len(function.body):function.end - 1]
    return sum(1 for line in body.split("\n") if line.strip())


def find_helpers(texts):
    """[(path, function)] of the short static functions that are called in one place and named nowhere else."""
    helpers = []
    for path, text in ((p, t) for p, t in texts.items() if p.endswith(".c")):
        functions = source.functions(text)
        macros = "\n".join(body for _, body in circles.MACRO.findall(source.strip(text)))
        # A name and a parenthesis outside of functions is a prototype.
        outside = CALLED.sub("", source.outside_functions(text)) + macros
        named = collections.Counter(name for code in [outside] + [f.body for f in functions] for name in circles.NAME.findall(code))
        called = {name for f in functions for name in CALLED.findall(f.body) if name != f.name}
        helpers += [(path, f) for f in functions if f.static and f.name in called and named[f.name] == 1 and
                    count_body_lines(text, f) <= HELPER_LINES]
    return helpers


def find_wide_comments(texts):
    report = source.Report()
    for path, text in texts.items():
        gates.gate_comment_width(report, path, text)
    return report.findings


def figures(root):
    """[(what, figure, where the worst is, or "")]"""
    texts = source.product(root)
    folder, most = count_files(texts).most_common(1)[0]
    rings = circles.find_circles(circles.find_uses(texts))
    lengths = sorted(f.last - f.first + 1 for text in texts.values() for f in source.functions(text))
    return [
        ("files in the largest folder", most, folder),
        ("circles of files by symbol", len(rings), ""),
        ("files in them", sum(len(r) for r in rings), ""),
        ("booleans of claim, migration and VF", sum(count_booleans(texts, s) for s in STATES), ""),
        ("functions that write a claim outside its room", len(find_claim_writers(texts)), ""),
        ("short helpers that are called once", len(find_helpers(texts)), ""),
        ("functions", len(lengths), ""),
        ("lines of a function, median", lengths[len(lengths) // 2], ""),
        ("lines of a function, max", lengths[-1], ""),
        ("comment lines over 100 columns", len(find_wide_comments(texts)), ""),
        ("lines of the product", sum(text.count("\n") for text in texts.values()), ""),
    ]


def print_table(root):
    print("| what | figure |\n|---|--:|")
    for what, figure, where in figures(root):
        print(f"| {what} | {figure:,}{' (' + where + ')' if where else ''} |")


def print_functions(root):
    texts = source.product(root)
    for what, found in (("writes a claim", find_claim_writers(texts)), ("is called once", find_helpers(texts))):
        for path, function in found:
            print(f"{path}:{function.first}: {function.name}() {what}")


def main():
    args = [a for a in sys.argv[1:] if a != "--list"]
    root = pathlib.Path(args[0] if args else pathlib.Path(__file__).parents[2]).resolve()
    if "--list" in sys.argv:
        print_functions(root)
    else:
        print_table(root)


if __name__ == "__main__":
    main()
