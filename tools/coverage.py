#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests have run: tools/coverage.py BUILD [--write] | --stated

BUILD was configured with -Db_coverage=true, and its tests have run. Prints the coverage of the product's folders and the least covered
files, and fails if it has fallen more than a point below what docs/HACKING.md says; --write writes that paragraph. --stated only looks
whether the paragraph is one: that its commit is in our history and its files are in the tree.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/HACKING.md"
PRODUCT = ("agent", "common", "conf", "ctl", "hooks", "opensm", "pkey", "sm", "sriov")
SLACK = 1.0     # points: who wins a race is not the same in each run
LEAST = 10
BEGIN, END = "<!-- tools/coverage.py writes this -->\n", "<!-- to here -->\n"
STATED = re.compile(r"run (\d+\.\d) % of the product's lines and (\d+\.\d) % of its branches \(commit ([0-9a-f]{7,})\)")

Rate = collections.namedtuple("Rate", "name lines of_lines branches of_branches")


def measure(build):
    """A Rate for each file of the product."""
    folders = [option for folder in PRODUCT for option in ("--filter", f"{ROOT}/{folder}/")]
    done = subprocess.run(["gcovr", "-r", ROOT, "--object-directory", build, *folders, "--json-summary"], cwd=build,
                          capture_output=True, text=True, check=True)
    files = json.loads(done.stdout)["files"]
    return [Rate(f["filename"], f["line_covered"], f["line_total"], f["branch_covered"], f["branch_total"]) for f in files]


def total(name, files):
    return Rate(name, *(sum(column) for column in list(zip(*files))[1:]))


def percent(part, whole):
    return 100 * part / whole if whole else 100.0


def row(rate):
    return (f"{rate.name:<28}{percent(rate.lines, rate.of_lines):6.1f} % of {rate.of_lines:5} lines"
            f"{percent(rate.branches, rate.of_branches):8.1f} % of {rate.of_branches:5} branches")


def least_covered(files):
    return sorted(files, key=lambda f: percent(f.lines, f.of_lines))[:LEAST]


def report(files):
    folders = [total(folder + "/", rows) for folder in PRODUCT if (rows := [f for f in files if f.name.startswith(folder + "/")])]
    return "\n".join([*map(row, folders), row(total("all", files)), "", "least covered:", *map(row, least_covered(files))]) + "\n"


def git(*args):
    return subprocess.run(["git", "-c", f"safe.directory={ROOT}", *args], cwd=ROOT, capture_output=True, text=True, check=False)


def measured_commit():
    """The newest one that changed the product: commits of tests only may be rebased."""
    return git("log", "-1", "--format=%h", "--", *(f"{folder}/*.[ch]" for folder in PRODUCT)).stdout.strip()


def paragraph(files):
    whole = total("all", files)
    least = ", ".join(f"`{f.name}` {percent(f.lines, f.of_lines):.0f} %" for f in least_covered(files))
    text = (f"Unit and integration tests run {percent(whole.lines, whole.of_lines):.1f} % of the product's lines and "
            f"{percent(whole.branches, whole.of_branches):.1f} % of its branches (commit {measured_commit()}). "
            f"Least of its lines: {least}.")
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def stated():
    """The paragraph, and (lines, branches, commit) that it states."""
    text = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    found = STATED.search(" ".join(text.split()))
    if not found:
        raise SystemExit(f"{PAGE}: no paragraph of tools/coverage.py")
    return text, float(found[1]), float(found[2]), found[3]


def write(files):
    head, begin, rest = PAGE.read_text().partition(BEGIN)
    if not begin or END not in rest:
        raise SystemExit(f"{PAGE}: no place between {BEGIN.strip()} and {END.strip()}")
    PAGE.write_text(head + BEGIN + paragraph(files) + END + rest.partition(END)[2])


def look_at_page():
    """Says what is wrong with the paragraph. Neither a tarball nor a shallow clone has the history to look the commit up in."""
    text, _, _, commit = stated()
    whole_history = (ROOT / ".git").exists() and git("rev-parse", "--is-shallow-repository").stdout.strip() == "false"
    if whole_history and git("merge-base", "--is-ancestor", commit, "HEAD").returncode:
        return f"its commit {commit} is not in our history"
    names = re.findall(r"`([^`]+)`", text)
    gone = [name for name in names if not (ROOT / name).is_file()]
    return f"not in the tree: {gone}" if gone else "" if len(names) == LEAST else f"{len(names)} files, not {LEAST}"


def fallen(files):
    """Says what is less than the page states."""
    _, lines, branches, commit = stated()
    whole = total("all", files)
    now = percent(whole.lines, whole.of_lines), percent(whole.branches, whole.of_branches)
    if now[0] < lines - SLACK or now[1] < branches - SLACK:
        return f"{now[0]:.1f} % of lines, {now[1]:.1f} % of branches; at {commit} it was {lines} %, {branches} %"
    return ""


def main():
    if sys.argv[1:] == ["--stated"]:
        problem = look_at_page()
    elif len(sys.argv) >= 2 and set(sys.argv[2:]) <= {"--write"}:
        build = pathlib.Path(sys.argv[1]).resolve()
        files = measure(build)
        text = report(files)
        (build / "coverage.txt").write_text(text)
        print(text, end="")
        if sys.argv[2:]:
            write(files)
        problem = fallen(files)
    else:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    if problem:
        print(f"docs/HACKING.md, coverage: {problem}")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
