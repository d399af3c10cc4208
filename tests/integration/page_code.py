# SPDX-License-Identifier: LGPL-2.1-or-later
"""The code of a page of docs/, for the test that runs it."""

import re
import textwrap


def indented(text):
    """The blocks of four columns, without these; an empty line inside belongs to its block."""
    return [textwrap.dedent(block) for block in re.findall(r"(?:^ {4}.*\n)(?:^ {4}.*\n|^\n(?= {4}))*", text, re.M)]


def fenced(text):
    """[(language, code)], the language empty where none is named."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.S | re.M)
