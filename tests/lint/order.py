#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The order of includes: tests/lint/order.py [ROOT] [--write]

A file's own header, libc's, other libraries', the project's: a blank line between two groups, each group in alphabetical
order. With --write files are put into it. A file whose includes need something between them (a macro, a condition, a
comment) is left alone.
"""

import pathlib
import re
import sys

import layers
import source

INCLUDE = re.compile(r'#include ([<"])([^">]+)[">][^\n]*')


def block_of(text):
    """(start, end) of the first run of includes and blank lines, if there is no other include outside of it."""
    first = re.search(r"^#include [^\n]*\n(?:(?:#include [^\n]*)?\n)*(?:#include [^\n]*\Z)?", text, re.M)
    if first and len(re.findall(r"^\s*#\s*include\b", text, re.M)) == len(re.findall(r"^#include\b", first.group(), re.M)):
        return first.start(), first.start() + len(first.group().rstrip("\n"))
    return None


def group_of(path, form, header):
    own = re.sub(r"\.c$", ".h", path)
    if form == '"':
        return 0 if header == own and path.endswith(".c") else 3
    return 1 if layers.LIBC.fullmatch(header) or header.startswith(("linux/", "sys/", "asm/")) else 2


def ordered(path, block):
    """The same includes as they should stand."""
    groups = [[], [], [], []]
    for line in block.split("\n"):
        match = INCLUDE.match(line)
        if match:
            groups[group_of(path, *match.groups())].append((match.group(2), line))
    return "\n\n".join("\n".join(line for _, line in sorted(set(group))) for group in groups if group)


def main():
    arguments = [a for a in sys.argv[1:] if a != "--write"]
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parents[2]).resolve()
    report = source.Report()
    for path in source.files(root):
        text = (root / path).read_text(encoding="utf-8", errors="replace") if path.endswith((".c", ".h")) else ""
        where = None if source.is_kernel(text) or path.startswith("tests/rig/simhca/") else block_of(text)
        if not where:
            continue
        wanted = ordered(path, text[where[0]:where[1]])
        if wanted == text[where[0]:where[1]]:
            continue
        if "--write" in sys.argv:
            (root / path).write_text(text[:where[0]] + wanted + text[where[1]:], encoding="utf-8")
        else:
            report.add("order", path, source.line_of(text, where[0]), "includes out of order; tests/lint/order.py --write puts them right")
    return report.finish("order")


if __name__ == "__main__":
    sys.exit(main())
