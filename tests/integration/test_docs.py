#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the documents say about the program is so."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

import tap

ROOT = pathlib.Path(os.environ["VHCA_SOURCE_DIR"])
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/bench")]

import bench  # noqa: E402
import page  # noqa: E402

PAGE = ROOT / "docs/bench.md"
# Whose figures may be of a run before there was the page; no others.
CARRIED = {"vswitch-large", "storm-own-ports", "identity", "pinning", "migration"}
MEASURED = re.compile(r"\b\d+(\.\d+)? ?(ms|µs|us)\b|\b1:\d")


def read(path):
    return (ROOT / path).read_text("utf-8")


def shipped_keys(path):
    """{(section, key): default} of a shipped configuration, where keys stand with or without a '#'."""
    found, section = {}, None
    for line in read(path).splitlines():
        if m := re.fullmatch(r"#?\[(\w+)[^\]]*\]", line):
            section = m.group(1)
        elif m := re.fullmatch(r"#?(\w+) =\s*(.*)", line):
            found[section, m.group(1)] = m.group(2)
    return found


def manual_keys(path):
    """{(section, key): default} of a manual page: 'key [default]' lines below section titles."""
    found, sections = {}, []
    lines = read(path).splitlines()
    for line, below in zip(lines, lines[1:]):
        if set(below) in ({"="}, {"-"}) and line.startswith("["):
            sections = [s.split()[0] for s in re.findall(r"\[([^\]]+)\]", line)]
        elif below.startswith("    ") and not line.startswith((" ", ".", "|", "*")):
            for key, default in re.findall(r"(\w+)(?: \[([^\]]*)\])?(?:, |$)", line):
                for section in sections:
                    found[section, key] = default
    return found


class Configuration(unittest.TestCase):
    def test_manual_lists_every_key_with_its_default(self):
        shipped, manual = shipped_keys("conf/vhcad.conf"), manual_keys("docs/man/vhcad.conf.5.rst")
        self.assertGreater(len(shipped), 15)
        self.assertEqual(shipped.keys(), manual.keys())
        for where, default in shipped.items():
            if default and where[0] not in ("partition", "peer"):
                self.assertEqual(manual[where], default, where)

    def test_manual_of_the_plugin_lists_every_key_with_its_default(self):
        shipped = shipped_keys("opensm/vhcasm.conf")
        self.assertGreater(len(shipped), 5)
        self.assertEqual(shipped, manual_keys("docs/man/libvhcasm.7.rst"))

    def test_manual_of_the_l2_agent_lists_every_key_with_its_default(self):
        shipped = shipped_keys("drivers/openstack/vhca_agent.ini")
        self.assertEqual(len(shipped), 3)
        self.assertEqual(shipped, manual_keys("docs/man/neutron-vhca-agent.8.rst"))


def message_fields(folders):
    """{MESSAGE_ID: fields} of the messages that the C files there tell."""
    ids = dict(re.findall(r'#define (VHCA_MESSAGE_\w+) +"([0-9a-f]{32})"', read("common/base/message_ids.h")))
    found = {}
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.c")):
        for call in re.findall(r"vhca_log_event\((.*?)\);", path.read_text("utf-8"), re.S):
            for name in re.findall(r"VHCA_MESSAGE_\w+", call):
                found.setdefault(ids[name], set()).update(re.findall(r'\{"(\w+)"', call))
    return found


class Messages(unittest.TestCase):
    def test_the_manuals_list_every_message_with_its_fields(self):
        for path, folders in (("docs/man/vhcad.8.rst", ("common", "agent")), ("docs/man/libvhcasm.7.rst", ("common", "opensm"))):
            said = dict(re.findall(r"^``([0-9a-f]{32})``\n((?:    .*\n)+)", read(path), re.M))
            told = message_fields(folders)
            self.assertEqual(said.keys(), told.keys(), path)
            for number, text in said.items():
                if "The same" not in text:
                    self.assertEqual(set(re.findall(r"``(VHCA_\w+)``", text)), told[number], f"{path}: {number}")
        self.assertEqual(len(told), read("common/base/message_ids.h").count("#define VHCA_MESSAGE_"))

    def test_who_looks_for_a_message_hears_root_alone(self):
        """A MESSAGE_ID and fields are anybody's to write; what begins with _ is the journal's own word."""
        for path in (*(ROOT / "docs/man").glob("*.rst"), ROOT / "README.md", ROOT / "NEWS.md", ROOT / "common/base/message_ids.h"):
            self.assertNotRegex(path.read_text("utf-8"), r"journalctl(?! _UID=0)[^`]*MESSAGE_ID=", path)


def is_run(test, program, case):
    """A case that is registered in its program; one that is only defined does not count."""
    if program == "gates":
        return re.search(rf"_GATES = \([^)]*\b{case}\b", read("tests/lint/gates.py"))
    for path in (*ROOT.glob(f"tests/unit/**/{program}.c"), *ROOT.glob(f"tests/integration/{program}.c")):
        test.assertIn(f"'{program.removeprefix('test_')}': [", read(path.with_name("meson.build")))
        return re.search(rf"\b[A-Za-z_]+\((?:\w+, )?{case}\)", read(path).split("int main(void)")[1])
    for python in ROOT.glob(f"tests/*/{program}.py"):
        test.assertIn(f"'{python.name}'", read(python.with_name("meson.build")))
        return re.search(rf"^    def {case}\(self\)", read(python), re.M)
    return re.search(rf"^@case.*\ndef {case}\(rig\)", read(f"tests/rig/cases/{program}.py"), re.M)


class Pitfalls(unittest.TestCase):
    """docs/pitfalls.md: 25 rows, each with tests that exist and are run, or with what makes the pitfall impossible."""

    def setUp(self):
        rows = [line.strip("|").split("|") for line in read("docs/pitfalls.md").splitlines() if re.match(r"\| \d+ \|", line)]
        self.rows = [[cell.strip() for cell in row] for row in rows]

    def test_every_pitfall_has_a_row(self):
        self.assertEqual([row[0] for row in self.rows], [str(n) for n in range(1, 27)])
        for row in self.rows:
            self.assertEqual((len(row), "" in row), (4, False), row[0])

    def test_every_row_names_tests_that_are_run(self):
        for number, _, _, tests in self.rows:
            named = re.findall(r"`(\w+): (\w+)`", tests)
            self.assertTrue(named, number)
            self.assertEqual(re.sub(r"`\w+: \w+`", "", tests).strip(), "", number)
            for program, case in named:
                with self.subTest(f"{number} {program}: {case}"):
                    self.assertTrue(is_run(self, program, case))


class Cases(unittest.TestCase):
    """What a cloud and its drivers may do to each other, row by row."""

    def test_opennebulas_are_run(self):
        """each function of CHPC's driver, each case of its peers, and each promise"""
        self.check("docs/design/0017-opennebula.md", 5, 52)

    def test_openstacks_are_run(self):
        """each sequence of Nova's, and each case of its peers"""
        self.check("docs/design/0020-openstack.md", 2, 18)

    def check(self, page, tables, more_than):
        text = read(page).partition("## Cases\n")[2].partition("\n## Slices\n")[0]
        lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]
        rows = [line.strip("| ").rsplit("|", 1) for line in lines if not line.endswith("| tests |")]
        self.assertEqual(len(lines) - len(rows), tables)
        self.assertGreater(len(rows), more_than)
        for what, tests in rows:
            named = re.findall(r"`(\w+): (\w+)`", tests)
            self.assertTrue(named, what)
            self.assertEqual(re.sub(r"`\w+: \w+`", "", tests).strip(), "", what)
            for program, case in named:
                with self.subTest(f"{what} {program}: {case}"):
                    self.assertTrue(is_run(self, program, case))


class MigrationStates(unittest.TestCase):
    def test_page_is_what_the_table_prints(self):
        printed = subprocess.run([os.environ["VHCA_MIGRATION_DOC"]], capture_output=True, check=True, text=True).stdout
        self.assertGreater(len(printed.splitlines()), 60)
        self.assertEqual(read("docs/migration-states.md"), printed,
                         "write it anew: tests/integration/migration_doc > docs/migration-states.md")


class Figures(unittest.TestCase):
    """docs/bench.md, and what other documents quote from it."""

    def test_page_has_every_benchmark_and_its_bounds(self):
        """as the benchmarks have them, and all of them kept"""
        sections = page.sections(PAGE)
        self.assertEqual(list(sections), list(bench.BENCHES), "tools/bench writes what is missing")
        self.assertLessEqual(page.carried(PAGE), CARRIED)
        for name, rows in sections.items():
            with self.subTest(name):
                there, wanted = {figure: bound for figure, (bound, _) in rows.items() if bound}, bench.BENCHES[name].bounds()
                if name in page.carried(PAGE):
                    wanted = {figure: bound for figure, bound in wanted.items() if figure in rows}
                self.assertEqual(there, wanted)
                self.assertEqual({verdict for bound, verdict in rows.values() if bound}, {"ok"})

    def test_quoted_figures_are_those_of_the_page(self):
        known, quotes = page.values(PAGE), 0
        for path in page.documents(ROOT):
            for text, _, anchor in page.QUOTE.findall(path.read_text("utf-8")):
                with self.subTest(f"{path.name}: {text} {anchor}"):
                    self.assertIn(anchor, known.keys() | bench.BENCHES.keys())
                    if page.is_figure(text):
                        self.assertEqual(text, known[anchor], "tools/bench writes them anew")
                        quotes += 1
        self.assertGreater(quotes, 50)

    def test_what_benchmarks_measure_is_quoted(self):
        """a paragraph that names a benchmark has no figure of its own"""
        for path in page.documents(ROOT):
            for paragraph in path.read_text("utf-8").split("\n\n"):
                if "bench_" in paragraph and path != PAGE:
                    with self.subTest(f"{path.name}: {paragraph[:60]}"):
                        self.assertIsNone(MEASURED.search(page.QUOTE.sub("", paragraph)))


class Links(unittest.TestCase):
    def test_links_lead_somewhere(self):
        for path in [ROOT / "README.md", ROOT / "NEWS.md", *ROOT.glob("docs/**/*.md")]:
            for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", path.read_text("utf-8")):
                with self.subTest(f"{path.name}: {target}"):
                    self.assertTrue((path.parent / target).exists())

    def test_readme_lists_every_folder(self):
        listed = set(re.findall(r"^\| `(\w+)/` \|", read("README.md"), re.M))
        there = {p.name for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith((".", "build"))
                 and any(f.is_file() for f in p.rglob("*"))}
        self.assertEqual(listed, there)

    def test_tools_of_the_readme_exist(self):
        for tool in set(re.findall(r"\btools/[a-z-]+", read("README.md"))):
            self.assertTrue(os.access(ROOT / tool, os.X_OK), tool)

    def test_news_has_the_version(self):
        version = re.search(r"version: '([\d.]+)'", read("meson.build")).group(1)
        self.assertIn(f"\n## {version}\n", read("NEWS.md"))


tap.main(__name__)
