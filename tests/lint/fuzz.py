#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""That every parser of outside data has a fuzz target, and that its corpus is not stale: tests/lint/fuzz.py [--write] [ROOT]

tests/fuzz/targets.txt says which target plays which file. Corpus files named shipped* are made from what the tree ships; --write makes
them anew.
"""

import pathlib
import re
import sys

import source

TABLE = "tests/fuzz/targets.txt"
TARGETS = re.compile(r"^fuzz_targets \+= \{'(\w+)'", re.M)
# Whoever calls one of these reads what somebody else has written.
READS = re.compile(r"\b(?:vhca_http_(?:body|query|param|header)|vhca_row_(?:text|i64|u64)|vhca_sysfs_(?:read|read_u64|file_read)|vhca_read_file|"
                   r"vhca_json_(?:parse|get_\w+|opt_\w+)|json_object_object_get(?:_ex)?|xml(?:Ctxt)?ReadMemory|ini_parse_\w+|nlmsg_data|recv|"
                   r"sqlite3_column_\w+|gnutls_x509_crt_list_import2|getenv|fgets|getline)\s*\(")
# The loops and strings of these read a text of their own.
BY_HAND = ("common/base/hook_message.c", "common/http/route.c", "common/ticket/ticket.c", "hooks/scan.c", "opensm/bindings/base_file.c", "opensm/bindings/state_file.c",
           "opensm/bindings/conf.c")


def read_table(root):
    """({target: [(file, function)]}, {file: reason}) of the table."""
    plays, exempt = {}, {}
    for line in (root / TABLE).read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition(": ")
        if line.startswith("#") or not rest:
            continue
        if name == "none":
            path, _, reason = rest.partition(" -- ")
            exempt[path] = reason
        else:
            plays.setdefault(name, []).extend(tuple(entry.split(":")) for entry in rest.split())
    return plays, exempt


def defines(root, path, name):
    """The file has a definition of this function or constant object."""
    text = source.strip((root / path).read_text(encoding="utf-8")) if (root / path).is_file() else ""
    return any(f.name == name for f in source.functions(text)) or re.search(rf"^const struct \w+ {name} =", text, re.M)


def check_target(report, root, name, entries):
    """Its source, its corpus, and that it, or what it plays, mentions each function."""
    program = root / f"tests/fuzz/fuzz_{name}.c"
    corpus = root / "tests/fuzz/corpus" / name
    if not program.is_file() or not corpus.is_dir() or not any(corpus.iterdir()):
        report.add("fuzz-target", TABLE, 1, f"{name}: no fuzz_{name}.c, or no corpus")
        return
    door = [root / "tests/fuzz/kit/door.c"] if '"tests/fuzz/kit/door.h"' in program.read_text(encoding="utf-8") else []
    for path, function in entries:
        texts = [program] + door + [root / other for other, _ in entries if other != path and (root / other).is_file()]
        if not defines(root, path, function):
            report.add("fuzz-target", TABLE, 1, f"{name}: {path} does not define {function}")
        elif not any(re.search(rf"\b{function}\b", source.strip(text.read_text(encoding="utf-8"))) for text in texts):
            report.add("fuzz-target", TABLE, 1, f"{name}: nobody there calls {function}")


def check_targets(report, root, plays):
    built = set(TARGETS.findall((root / "tests/fuzz/meson.build").read_text(encoding="utf-8")))
    there = {p.stem.removeprefix("fuzz_") for p in (root / "tests/fuzz").glob("fuzz_*.c")}
    for name in sorted(built ^ set(plays) | there ^ built):
        report.add("fuzz-target", TABLE, 1, f"{name}: in one only of meson.build, this table and the folder")
    for name in sorted(built & set(plays)):
        check_target(report, root, name, plays[name])


def check_parsers(report, root, plays, exempt):
    played = {path for entries in plays.values() for path, _ in entries}
    for path in source.files(root):
        if not path.endswith(".c") or path.startswith("tests/"):
            continue
        text = source.strip((root / path).read_text(encoding="utf-8"))
        found = READS.search(text)
        reads = found is not None or path in BY_HAND
        if reads and path not in played and not exempt.get(path):
            line = source.line_of(text, found.start()) if found else 1
            report.add("fuzz-parser", path, line, f"reads what comes from outside, and no target of {TABLE} plays it")
        if path in exempt and (path in played or not reads):
            report.add("fuzz-parser", path, 1, f"needs no exemption in {TABLE}")


# ---- corpora ----

DOMAIN = """<domain type='kvm' id='1'>
  <name>vm1</name>
  <uuid>6b3e0f5c-1111-4222-8333-0123456789ab</uuid>
{}
  <devices/>
</domain>
"""


def uncommented(text):
    """Every key that is shown as a comment, set."""
    return re.sub(r"^#(?=\[\w|\w+ = )", "", text, flags=re.M)


def in_domain(text):
    """The first <metadata> of a document, in a domain."""
    return DOMAIN.format(re.search(r"^ *<metadata>.*?</metadata>", text, re.M | re.S)[0])


def verbatim(text):
    return text


SHIPPED = [("conf/shipped.conf", "conf/vhcad.conf", verbatim), ("conf/shipped-keys.conf", "conf/vhcad.conf", uncommented),
           ("osm_conf/shipped.conf", "opensm/vhcasm.conf", verbatim)]
for target in ("domxml", "hook_scan", "hook_agent"):
    SHIPPED += [(f"{target}/shipped-readme.xml", "README.md", in_domain), (f"{target}/shipped-man.xml", "docs/man/vhcad.8.rst", in_domain)]


def check_corpora(report, root, write):
    folder = root / "tests/fuzz/corpus"
    for name, origin, make in SHIPPED:
        if not (folder / name).parent.is_dir():
            continue
        want = make((root / origin).read_text(encoding="utf-8")) if (root / origin).is_file() else ""
        if write:
            (folder / name).write_text(want, encoding="utf-8")
        elif not want or not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != want:
            report.add("corpus", f"tests/fuzz/corpus/{name}", 1, f"is not what {origin} ships: tests/lint/fuzz.py --write")
    known = {name for name, _, _ in SHIPPED}
    for path in sorted(folder.glob("*/shipped*")):
        if str(path.relative_to(folder)) not in known:
            report.add("corpus", f"tests/fuzz/corpus/{path.relative_to(folder)}", 1, "made from nothing that fuzz.py knows")


def main():
    write = "--write" in sys.argv
    args = [a for a in sys.argv[1:] if a != "--write"]
    root = pathlib.Path(args[0] if args else pathlib.Path(__file__).parents[2]).resolve()
    report = source.Report()
    if (root / TABLE).is_file():
        plays, exempt = read_table(root)
        check_targets(report, root, plays)
        check_parsers(report, root, plays, exempt)
        check_corpora(report, root, write)
    return report.finish("fuzz")


if __name__ == "__main__":
    sys.exit(main())
