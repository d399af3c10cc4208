#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Do the figures of docs/design/0018-rooms.md hold? tests/lint/figures.py [ROOT] [--write]

The column "after" of its table is what measure.py finds today; --write writes it. A figure stands as long as it is
true within a twentieth, or one, and 0 is 0: a page that every commit changes is in everybody's way. What must not grow
at all, bounds.py holds.
"""

import pathlib
import re
import sys

import measure
import source

PAGE = "docs/design/0018-rooms.md"
ROW = re.compile(r"^\| (?P<what>[^|]+) \| (?P<before>[^|]*) \| (?P<after>[\d,]+) \| (?P<aim>[^|]*)\|$", re.M)
TOLERANCE = 20


def is_true(told, measured):
    return told == measured or (told > 0 and abs(told - measured) <= max(1, measured / TOLERANCE))


def check(report, text, figures):
    for row in ROW.finditer(text):
        what, told = row["what"], int(row["after"].replace(",", ""))
        line = source.line_of(text, row.start())
        if what not in figures:
            report.add("figure", PAGE, line, f"measure.py finds no \"{what}\"")
        elif not is_true(told, figures[what]):
            report.add("figure", PAGE, line, f"{what}: {told:,} is {figures[what]:,} now (tests/lint/figures.py --write)")


def write(page, text, figures):
    def renew(row):
        after = f"{figures[row['what']]:,}" if row["what"] in figures else row["after"]
        return f"| {row['what']} | {row['before']} | {after} | {row['aim']}|"

    page.write_text(ROW.sub(renew, text), encoding="utf-8")


def main():
    args = [a for a in sys.argv[1:] if a != "--write"]
    root = pathlib.Path(args[0] if args else pathlib.Path(__file__).parents[2]).resolve()
    report, page = source.Report(), root / PAGE
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    figures = {what: figure for what, figure, _ in measure.figures(root)} if ROW.search(text) else {}
    if "--write" in sys.argv:
        write(page, text, figures)
    else:
        check(report, text, figures)
    return report.finish("figures")


if __name__ == "__main__":
    sys.exit(main())
