# SPDX-License-Identifier: LGPL-2.1-or-later
"""The fifty cells of the crash matrix on the rig, whose turn it is, and the page that remembers them."""

import re
import subprocess
import time

from kit.base import ROOT
from kit.cells import Cell

PAGE = ROOT / "docs/crash-matrix-rig.md"
HEAD = """# Crash matrix on the rig

Written by `tests/rig/run.py --matrix FILE matrix:`, which keeps the rows of cells that it did not
play. Real kernels, vfio, libvirt and OpenSM; `docs/crash-matrix.md` is the fast form, with every
step. In each cell an agent stops at a transaction (its migration or its VF enters a state), before
or after that is durable; then somebody gets SIGKILL, with or without the link between the
hypervisors being cut for four seconds, and comes back. Afterwards, from libvirt, sysfs, SA and
plugin: one owner of the vGUID; the guest has its VF with vGUID, P_Keys and PCI address where it
runs, and the port holds the vGUID there and not elsewhere; all other VFs are free and clean; no
claim, migration or report is left over.

A run of `tools/check` plays four cells, other ones after each commit. *Commit* is the last one at
which a cell was played with this result.

| # | away | the guest | commit |
|--|--|--|--|
"""
TURN = 4
# Without a common divisor with the number of cells, so that a turn has cells of several columns.
STRIDE = 7
SOURCE_STEPS = ("migration claiming", "migration detaching", "VF detaching", "VF scrubbing", "migration copying",
                "migration finishing")
DESTINATION_STEPS = ("migration reserving", "migration reserved", "migration programming", "migration incoming",
                     "migration attaching", "migration done")


def both_sides_of(side, steps, party, **more):
    return [Cell(side, when, step, party, **more) for step in steps for when in ("before", "after")]


COLUMNS = {
    "source agent": both_sides_of("source", SOURCE_STEPS, "source agent"),
    "destination agent": both_sides_of("destination", DESTINATION_STEPS, "destination agent"),
    "libvirtd": [
        Cell("source", "after", "VF detaching", "source libvirtd"),
        Cell("source", "before", "migration copying", "source libvirtd"),
        Cell("source", "after", "migration copying", "source libvirtd"),
        Cell("source", "before", "migration finishing", "source libvirtd"),
        Cell("destination", "after", "migration reserved", "destination libvirtd"),
        Cell("destination", "after", "migration incoming", "destination libvirtd"),
        Cell("destination", "before", "migration attaching", "destination libvirtd"),
        Cell("destination", "after", "VF attached", "destination libvirtd")],
    "OpenSM": [
        Cell("source", "after", "migration detaching", "OpenSM"),
        Cell("source", "after", "VF scrubbing", "OpenSM"),
        Cell("destination", "before", "migration programming", "OpenSM"),
        Cell("destination", "after", "migration programming", "OpenSM"),
        Cell("destination", "before", "VF attached", "OpenSM"),
        Cell("source", "after", "migration finishing", "OpenSM")],
    "link cut": [
        Cell("source", "before", "migration copying", "source agent", cut=True),
        Cell("source", "after", "migration copying", "source agent", cut=True),
        Cell("destination", "after", "migration reserved", "destination agent", cut=True),
        Cell("destination", "before", "migration attaching", "destination agent", cut=True),
        Cell("destination", "after", "migration programming", "OpenSM", cut=True),
        Cell("source", "before", "migration finishing", "source libvirtd", cut=True)],
    "cancelled": (
        both_sides_of("source", ("migration aborting", "migration restoring"), "source agent", cancelled=True)
        + both_sides_of("destination", ("migration ending",), "destination agent", cancelled=True)),
}
CELLS = [cell for column in COLUMNS.values() for cell in column]
UNITS = {"agent": "vhcad", "libvirtd": "libvirtd", "OpenSM": "hva opensm-vhcad"}


def git(*args):
    p = subprocess.run(["git", "-c", f"safe.directory={ROOT}", *args], cwd=ROOT, check=False,
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return p.stdout.strip() if p.returncode == 0 else ""


def turn():
    """A number that is another one after each commit; without git, on each day."""
    return int(git("rev-list", "--count", "HEAD") or time.time() // 86400)


def cells_of(number):
    """The cells that are played at this turn."""
    first = number * TURN
    return [CELLS[place * STRIDE % len(CELLS)] for place in range(first, first + TURN)]


def kills_of(cells):
    """What a case with these cells ends; the agents are started anew for their fault points."""
    return tuple(sorted({"vhcad"} | {UNITS[cell.party.split()[-1]] for cell in cells}))


def rows_of(page):
    """{cell: (what the guest does, commit)} of a page, in its order."""
    rows = re.findall(r"^\| \d+ \| (.+?) \| (\w+) \| (\w+) \|$", page, re.M)
    return {cell: (guest, commit) for cell, guest, commit in rows}


def merged_page(found):
    """The page with these (cell, guest) results in the place of older ones."""
    commit = git("rev-parse", "--short", "HEAD") or "none"
    rows = rows_of(PAGE.read_text()) | {cell: (guest, commit) for cell, guest in found}
    lines = (f"| {i} | {cell} | {guest} | {at} |\n" for i, (cell, (guest, at)) in enumerate(rows.items(), 1))
    return HEAD + "".join(lines)


def differences(found):
    """What the page says otherwise; both may be right, since some cells are a race with a good end each."""
    rows = rows_of(PAGE.read_text())
    return [f"{cell}: the guest {guest}; {PAGE.name}, at {rows[cell][1]}: {rows[cell][0]}"
            for cell, guest in found if rows[cell][0] != guest]
