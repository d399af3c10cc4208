#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Rules that a search can prove: tests/lint/gates.py [ROOT]

Findings fail; notes tell where a budget is used up before its stop is reached.
"""

import pathlib
import re
import sys

import source

FILE_BUDGET, FILE_STOP = 700, 800
FUNCTION_STOP = 80

SOURCE_NAMES = {"meson.build", "meson_options.txt", "Makefile", "Kbuild", ".clang-tidy"}
SOURCE_SUFFIXES = (".c", ".h", ".py", ".sh", ".in", ".conf", ".service", ".sql", ".mk")
TEXT_SUFFIXES = SOURCE_SUFFIXES + (".md", ".rst", ".yaml", ".yml", ".ini", ".txt", ".xml", ".json")

# function -> what to use
FORBIDDEN = {
    "system": "posix_spawn() with an argument vector", "popen": "posix_spawn() with an argument vector",
    "sprintf": "snprintf() or vhca_strbuf_add()", "vsprintf": "vsnprintf()",
    "strcpy": "vhca_strcpy()", "strcat": "vhca_strbuf_add()", "strncpy": "vhca_strcpy()",
    "atoi": "vhca_parse_u64()", "atol": "vhca_parse_u64()", "atoll": "vhca_parse_u64()",
    "gets": "fgets()", "tmpnam": "mkostemp()", "mktemp": "mkostemp()",
}
CALL = re.compile(r"(?<![\w.>])(" + "|".join(FORBIDDEN) + r")\s*\(")
SCANF_NUMBER = re.compile(r"\bsscanf\s*\([^;]*?\"[^\"]*%\*?\d*[hlqjzt]*[diuoxX]", re.S)
# Written so that this file does not find itself.
MARKS = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3]) + r")\b")
OUTSIDE = re.compile(r"\.\./sha" + r"red\b|/wo" + r"rk/(?:sha" + r"red|wt|main)\b")


def is_product(path):
    return not path.startswith("tests/")


def is_source(path, text):
    name = path.rsplit("/", 1)[-1]
    return name in SOURCE_NAMES or path.endswith(SOURCE_SUFFIXES) or text.startswith("#!")


def gate_spdx(report, path, text):
    head = text.split("\n", 4)[:4]
    if is_source(path, text) and not any("SPDX-License-Identifier: " in line for line in head):
        report.add("spdx", path, 1, "no SPDX-License-Identifier in the first lines")


def gate_marks(report, path, text):
    for match in MARKS.finditer(text):
        report.add("marks", path, source.line_of(text, match.start()), f"{match.group()}: open an issue instead")


def gate_outside(report, path, text):
    for match in OUTSIDE.finditer(text):
        report.add("outside", path, source.line_of(text, match.start()),
                   f"{match.group()} is not part of the project")


def gate_file_length(report, path, text):
    lines = text.count("\n")
    if not path.endswith((".c", ".h", ".py")) or lines <= FILE_BUDGET:
        return
    add = report.add if lines > FILE_STOP else report.note
    add("file-length", path, 1, f"{lines} lines; budget {FILE_BUDGET}, stop {FILE_STOP}")


def gate_sys_literal(report, path, text):
    if not is_product(path) or path.startswith("common/sysfs/"):
        return
    code = source.strip(text, strings=False)
    for match in re.finditer(r'"/sys(?=[/"])', code):
        report.add("sysfs-door", path, source.line_of(code, match.start()),
                   "only common/sysfs spells this path: use vhca_sysfs_open()")


# Attributes of the PCI core that no product code may write, whatever for (docs/pitfalls.md 16, 23, 25).
ATTRIBUTE = re.compile(r'"(?:[^"\\\n]*/)?(drivers_probe|new_id|remove_id|reset|rescan)"')


def gate_attributes(report, path, text):
    if not is_product(path):
        return
    code = source.strip(text, strings=False)
    for match in ATTRIBUTE.finditer(code):
        report.add("attribute", path, source.line_of(code, match.start()),
                   f"{match.group(1)}: see docs/pitfalls.md")


def gate_calls(report, path, text):
    if not is_product(path):
        return
    code = source.strip(text)
    for match in CALL.finditer(code):
        report.add("call", path, source.line_of(code, match.start()),
                   f"{match.group(1)}(): use {FORBIDDEN[match.group(1)]}")
    code = source.strip(text, strings=False)
    for match in SCANF_NUMBER.finditer(code):
        report.add("call", path, source.line_of(code, match.start()), "sscanf() of numbers: use vhca_parse_u64()")


def gate_function_length(report, path, text):
    for function in source.functions(text):
        lines = function.last - function.first + 1
        if lines > FUNCTION_STOP:
            report.add("function-length", path, function.first, f"{function.name}() has {lines} lines; stop {FUNCTION_STOP}")


PROTOTYPE = re.compile(r"^(?!static\b|typedef\b|struct\s+\w+\s*;|extern \"C\")[A-Za-z_][^;{}#=]*?\b(\w+)\s*\([^;{}]*\)"
                       r"[^;{}()]*(?:\([^;{}]*\))*\s*;", re.M)


def gate_prototypes(report, path, text):
    """A paragraph is what stands between blank lines; a comment in it speaks for the prototypes after it."""
    if not is_product(path) or not path.endswith(".h"):
        return
    code = source.without_preprocessor(source.strip(text))
    lines = text.split("\n")
    for match in PROTOTYPE.finditer(code):
        first, last = source.line_of(code, match.start()) - 1, source.line_of(code, match.end()) - 1
        top = first
        while top > 0 and lines[top - 1].strip():
            top -= 1
        if not any("/*" in line or "*/" in line or "//" in line for line in lines[top:last + 1]):
            report.add("prototype", path, first + 1, f"{match.group(1)}() has no comment above or behind it")


COLUMNS = 100
GENERATED = {f"docs/{page}.md" for page in ("bench", "crash-matrix", "crash-matrix-rig", "migration-states")}
TABLE_ROW = re.compile(r"\S {2,}\S")


def gate_comment_width(report, path, text):
    """clang-format sees to code. Rows of tables, which have gaps, may be longer."""
    code = source.strip(text).split("\n")
    for number, (line, bare) in enumerate(zip(text.split("\n"), code), 1):
        if len(line.expandtabs(8)) > COLUMNS >= len(bare.rstrip().expandtabs(8)) and not TABLE_ROW.search(line.strip()):
            report.add("comment-width", path, number, f"a comment beyond {COLUMNS} columns")


def gate_prose_width(report, path, text):
    """Paragraphs of Markdown; tables, code, and words that cannot be broken are as long as they are."""
    if not path.endswith(".md") or path in GENERATED:
        return
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        fenced ^= line.startswith("```")
        if not fenced and len(line) > COLUMNS and " " in line[:COLUMNS].strip() and not line.startswith(("|", "#", "    ")):
            report.add("prose-width", path, number, f"a paragraph beyond {COLUMNS} columns")


TEXT_GATES = (gate_spdx, gate_marks, gate_outside, gate_file_length, gate_prose_width)
C_GATES = (gate_sys_literal, gate_attributes, gate_calls, gate_function_length, gate_prototypes,
           gate_comment_width)


def check_file(report, root, path):
    data = (root / path).read_bytes()
    if b"\0" in data:
        return
    text = data.decode("utf-8", errors="replace")
    if not (is_source(path, text) or path.endswith(TEXT_SUFFIXES)):
        return
    for gate in TEXT_GATES + (C_GATES if path.endswith((".c", ".h")) else ()):
        gate(report, path, text)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    report = source.Report()
    for path in source.files(root):
        check_file(report, root, path)
    return report.finish("gates")


if __name__ == "__main__":
    sys.exit(main())
