# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the lint tests know about the tree and about C: files, debts, comment stripping, includes, functions, variables."""

import functools
import pathlib
import re
import subprocess
import typing

# Not ours to judge: bad on purpose, or data.
SKIP = ("tests/lint/samples/", "tests/fuzz/corpus/", "tests/data/", "subprojects/")


def files(root):
    """Paths (str, relative, sorted) of the tree: what git tracks or would, else everything that is no build."""
    root = pathlib.Path(root)
    git = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                         capture_output=True, check=False)
    if git.returncode == 0 and (root / ".git").exists():
        names = [n for n in git.stdout.decode().split("\0") if n]
    else:
        names = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
        names = [n for n in names if not n.startswith((".git/", "build"))]
    return sorted(n for n in names if not n.startswith(SKIP) and (root / n).is_file())


PRODUCT = ("agent", "hooks", "ctl", "sm", "sriov", "pkey", "conf", "common", "opensm")


def product(root):
    """{path: text} of the product's C files."""
    paths = [p for p in files(root) if p.endswith((".c", ".h")) and p.split("/")[0] in PRODUCT]
    return {p: (pathlib.Path(root) / p).read_text(encoding="utf-8", errors="replace") for p in paths}


DEBTS = "tests/lint/debts.txt"


def debts(root, gate):
    """{key: (line, [number])} of the gate's lines in the table of debts."""
    table = pathlib.Path(root) / DEBTS
    found = {}
    for number, line in enumerate(table.read_text(encoding="utf-8").split("\n") if table.is_file() else (), 1):
        key, _, values = line.removeprefix(gate + " ").partition(":")
        if line.startswith(gate + " "):
            found[key] = (number, [int(v) for v in values.split()])
    return found


def is_kernel(text):
    """Kernel modules (the simulated HCA) follow the kernel's rules for includes and prototypes."""
    return re.search(r"^\s*#\s*include\s*<linux/(module|kernel|types|init|device)\.h>", text, re.M) is not None


TOKEN = re.compile(r"""
      (?P<comment> /\*.*?\*/ | //[^\n]* )
    | (?P<string>  "(?:\\.|[^"\\\n])*" )
    | (?P<char>    '(?:\\.|[^'\\\n])*' )
""", re.X | re.S)


def blank(text):
    """The same text with every character but newlines replaced by a space."""
    return re.sub(r"[^\n]", " ", text)


def strip(text, strings=True):
    """C text without comments (and without the inside of strings), every line at its place."""

    def replace(match):
        if match.lastgroup == "comment":
            return blank(match.group())
        if not strings:
            return match.group()
        quote = match.group()[0]
        return quote + " " * (len(match.group()) - 2) + quote

    return TOKEN.sub(replace, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def includes(text):
    """(line, form, path) of every #include; form is '"' or '<'."""
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', strip(text, strings=False), re.M):
        yield line_of(text, match.start()), match.group(1), match.group(2)


def without_preprocessor(code):
    """Blanks directives together with their continuation lines."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: blank(m.group()), code, flags=re.M)


class Function(typing.NamedTuple):
    name: str
    first: int  # line of the name
    last: int   # line of the closing brace
    static: bool
    head: str   # what stands before the body: type, name, parameters
    body: str   # what stands between the braces
    start: int  # offset of the head
    end: int    # offset behind the closing brace


@functools.lru_cache(maxsize=None)
def functions(text):
    """Every function definition of a C file, as code without comments, strings and directives."""
    return tuple(find_functions(text))


def find_functions(text):
    code = without_preprocessor(strip(text))
    depth, start, end, name = 0, 0, 0, None
    for match in re.finditer(r"[{}]", code):
        if match.group() == "{":
            if depth == 0:
                start = match.start()
                name = function_name(code, end, start)
            depth += 1
            continue
        depth = max(0, depth - 1)
        if depth == 0 and name:
            head = max(end, code.rfind(";", 0, name[1]) + 1)
            yield Function(name[0], line_of(code, name[1]), line_of(code, match.start()),
                           re.search(r"\bstatic\b", code[head:name[1]]) is not None, code[head:start],
                           code[start + 1:match.start()], head, match.end())
            name = None
        if depth == 0:
            end = match.end()


def outside_functions(text):
    """The code of a C file without its functions, every line at its place."""
    code = without_preprocessor(strip(text))
    for function in functions(text):
        code = code[:function.start] + blank(code[function.start:function.end]) + code[function.end:]
    return code


# Macros that define something stand at the top of a file without a semicolon.
MACRO_CALLS = re.compile(r"^\s*(?:[A-Z_0-9]+\([^()]*\)\s*)*")


def global_variables(text):
    """Names of the variables with external linkage that a C file defines."""
    code = outside_functions(text)
    while re.search(r"\{[^{}]*\}", code):
        code = re.sub(r"\{[^{}]*\}", "", code)
    for statement in code.split(";"):
        declaration = MACRO_CALLS.sub("", statement.partition("=")[0])
        match = re.search(r"\w[\s*]+(\w+)\s*(?:\[[^]]*\]\s*)*$", declaration)
        if match and not re.match(r"(?:static|extern|typedef|(?:struct|union|enum)\s+\w+\s*$)", declaration):
            yield match.group(1)


def function_name(code, begin, end):
    """(name, offset) if the code between these offsets ends in a function head, else None."""
    head = code[begin:end].rstrip()
    if not head.endswith(")"):
        return None
    level = 0
    for pos in range(len(head) - 1, -1, -1):
        level += {")": 1, "(": -1}.get(head[pos], 0)
        if level == 0:
            break
    match = re.search(r"(?<!\w)(\w+)\s*$", head[:pos])
    if not match or match.group(1) in ("if", "for", "while", "switch"):
        return None
    return match.group(1), begin + match.start(1)


class Report:
    """Collects findings; notes do not fail."""

    def __init__(self):
        self.findings = []
        self.notes = []

    def add(self, gate, path, line, message):
        self.findings.append(f"{path}:{line}: {gate}: {message}")

    def note(self, gate, path, line, message):
        self.notes.append(f"{path}:{line}: note: {gate}: {message}")

    def finish(self, what):
        for line in self.notes + sorted(self.findings):
            print(line)
        print(f"{what}: {len(self.findings)} finding(s)")
        return 1 if self.findings else 0
