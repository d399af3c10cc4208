#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""One way to test what a function returns: tests/lint/results.py [ROOT] [--list]

An int is compared with a number, because 0 means success: `f() < 0`, `f() == 0`, and strcmp() as well; our own
functions fail with no other number than a negative errno, so not `f() != 0`. A pointer is tested by itself: `!p`, `p`. A line "result FOLDER: NUMBER" of debts.txt allows what a folder has today; with --list
all places are printed.
"""

import collections
import pathlib
import re
import sys

import bounds
import source

COMPARES = re.compile(r"(?:\w+_cmp|(?:str|strn|strcase|strncase|mem)cmp)")
CALL = re.compile(r"(?<![\w.>])(\w+)\(")
RESULT = re.compile(r"(?<![\w.>&*])(rc?)(?![\w(.\[]|->)")
HOLDS_RESULT = re.compile(r"\bint (?:[^;()]*, )?(?:r|rc)\b")
OPENS = re.compile(r"(?:&&|\|\||\b(?:if|while) \(+|!)$")
STARTS = re.compile(r"(?:\(|\breturn|=|,|\?|:)$")
CLOSES = re.compile(r"\)|&&|\|\||[?;,]")
CONTINUES = re.compile(r"&&|\|\||\?")
OTHER_FAILURES = re.compile(r"\s*(?:!= 0|[!=]= -1)\b")
EQUALS_NULL = re.compile(r"== NULL\b")
CONDITION = re.compile(r"\b(?:if|while) \(")
DIFFERS_FROM_NULL = re.compile(r"[^)] != NULL\b")


def int_functions(text):
    """({name} that return int, {name} of all) that a file declares or defines."""
    code = source.without_preprocessor(source.strip(text))
    ints = set(re.findall(r"^(?:static )?(?:inline )?int (\w+)\(", code, re.M))
    return ints, set(re.findall(r"^\w[\w ]*?[ *](\w+)\(", code, re.M))


def closing(code, start):
    """Offset behind the parenthesis that closes the one at start."""
    depth = 0
    for match in re.finditer(r"[()]", code[start:]):
        depth += 1 if match.group() == "(" else -1
        if depth == 0:
            return start + match.end()
    return len(code)


def is_truth(code, start, end):
    """Whether the expression between the offsets is tested without a comparison."""
    before, after = code[max(0, start - 40):start].rstrip(), code[end:end + 40].lstrip()
    if OPENS.search(before):
        return before.endswith("!") or CLOSES.match(after) is not None
    return STARTS.search(before) is not None and CONTINUES.match(after) is not None


def find_truths(body, ints):
    """(offset, what) of each int that is tested as if it were a truth."""
    for match in CALL.finditer(body):
        name = match.group(1)
        compares, end = COMPARES.fullmatch(name), closing(body, match.end() - 1)
        if (name in ints or compares) and is_truth(body, match.start(), end):
            yield match.start(), f"{name}()"
        elif name in ints and not compares and OTHER_FAILURES.match(body, end):
            yield match.start(), f"{name}()"
    for match in RESULT.finditer(body):
        if HOLDS_RESULT.search(body) and is_truth(body, match.start(), match.end()):
            yield match.start(), match.group(1)


def find_nulls(body):
    """(offset, what) of each pointer that is compared with NULL where it could be tested by itself."""
    for match in EQUALS_NULL.finditer(body):
        yield match.start(), "== NULL"
    for match in CONDITION.finditer(body):
        condition = body[match.start():closing(body, match.end() - 1)]
        for null in DIFFERS_FROM_NULL.finditer(condition):
            yield match.start() + null.start(), "!= NULL"


def find_results(texts):
    """[(path, line, what)]"""
    declared = {path: int_functions(text) for path, text in texts.items()}
    shared = set().union(*(ints for path, (ints, _) in declared.items() if path.endswith(".h")))
    found = []
    for path, text in texts.items():
        own, known = declared[path]
        for function in source.functions(text):
            at = function.end - 1 - len(function.body)
            places = list(find_truths(function.body, own | (shared - known))) + list(find_nulls(function.body))
            found += [(path, source.line_of(text, at + offset), what) for offset, what in sorted(places)]
    return found


def main():
    arguments = [a for a in sys.argv[1:] if a != "--list"]
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parents[2]).resolve()
    report = source.Report()
    bound = bounds.Bound(report, root, "result", 0)
    counts = collections.Counter()
    for path, line, what in find_results(source.product(root)):
        folder = path.rpartition("/")[0]
        counts[folder] += 1
        if "--list" in sys.argv:
            print(f"{path}:{line}: {what}")
        else:
            bound.check(folder, path, line, counts[folder], f"{what}: an int is compared with a number, a pointer stands alone")
    bound.check_debts(counts)
    return report.finish("results")


if __name__ == "__main__":
    sys.exit(main())
