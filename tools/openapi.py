#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A document of docs/ as JSON in a variable of C: tools/openapi.py docs/openapi.yaml api_openapi > openapi.c

The build runs it, so that what GET /openapi.json serves is what the tree has.
"""

import json
import sys

import yaml

WIDTH = 16


def main():
    path, name = sys.argv[1:]
    with open(path, encoding="utf-8") as f:
        data = json.dumps(yaml.safe_load(f), separators=(",", ":"), ensure_ascii=False).encode() + b"\0"
    print(f"const char {name}[] = {{")
    for i in range(0, len(data), WIDTH):
        print("".join(f"{byte}," for byte in data[i:i + WIDTH]))
    print("};")


main()
