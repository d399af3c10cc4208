# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/openapi.yaml for tests: routes, and as much of JSON Schema as the document uses. Needs python3-yaml."""

import os
import pathlib
import re

import yaml

METHODS = {"get", "put", "post", "delete", "patch", "head", "options"}
TYPES = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list, "null": type(None)}
# Keywords that say nothing about a value.
SILENT = {"description", "examples", "default", "format"}


class Document:
    def __init__(self, path=None):
        path = path or pathlib.Path(os.environ["VHCA_SOURCE_DIR"]) / "docs/openapi.yaml"
        with open(path, encoding="utf-8") as f:
            self.doc = yaml.safe_load(f)

    def routes(self):
        """{("GET", "/v1/vfs/{}"), ...}: parameters without their names."""
        return {(method.upper(), re.sub(r"\{[^}]*\}", "{}", path))
                for path, item in self.doc["paths"].items() for method in item if method in METHODS}

    def operations(self):
        """(path, shared parameters, method, operation) of all."""
        for path, item in self.doc["paths"].items():
            for method in METHODS & item.keys():
                yield path, item.get("parameters", []), method, item[method]

    def resolve(self, node):
        """What a $ref points to, else the node."""
        while "$ref" in node:
            target = self.doc
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def check(self, schema, value, where="$"):
        """Errors of a value against a schema (or the name of one), as a list of sentences."""
        if isinstance(schema, str):
            schema = self.doc["components"]["schemas"][schema]
        schema = self.resolve(schema)
        errors = []
        for keyword in schema.keys() - SILENT:
            errors += getattr(self, "check_" + keyword)(schema, value, where)
        return errors

    def check_type(self, schema, value, where):
        names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        ok = any(isinstance(value, TYPES[n]) and not (n == "integer" and isinstance(value, bool)) for n in names)
        return [] if ok else [f"{where}: {value!r} is no {' or '.join(names)}"]

    def check_required(self, schema, value, where):
        missing = set(schema["required"]) - value.keys() if isinstance(value, dict) else []
        return [f"{where}: {m} is missing" for m in sorted(missing)]

    def check_properties(self, schema, value, where):
        if not isinstance(value, dict):
            return []
        return [e for k, s in schema["properties"].items() if k in value
                for e in self.check(s, value[k], f"{where}.{k}")]

    def check_additionalProperties(self, schema, value, where):
        others = value.keys() - schema.get("properties", {}).keys() if isinstance(value, dict) else []
        allowed = schema["additionalProperties"]
        if allowed is False:
            return [f"{where}: {k} is not known" for k in sorted(others)]
        return [e for k in sorted(others) for e in self.check(allowed, value[k], f"{where}.{k}")]

    def check_items(self, schema, value, where):
        if not isinstance(value, list):
            return []
        return [e for i, v in enumerate(value) for e in self.check(schema["items"], v, f"{where}[{i}]")]

    def check_enum(self, schema, value, where):
        return [] if value in schema["enum"] else [f"{where}: {value!r} is none of {schema['enum']}"]

    def check_const(self, schema, value, where):
        return [] if value == schema["const"] else [f"{where}: {value!r} is not {schema['const']!r}"]

    def check_pattern(self, schema, value, where):
        ok = not isinstance(value, str) or re.search(schema["pattern"], value)
        return [] if ok else [f"{where}: {value!r} does not match {schema['pattern']}"]

    def check_minimum(self, schema, value, where):
        return [] if value >= schema["minimum"] else [f"{where}: {value} is too small"]

    def check_maximum(self, schema, value, where):
        return [] if value <= schema["maximum"] else [f"{where}: {value} is too large"]

    def check_allOf(self, schema, value, where):
        return [e for s in schema["allOf"] for e in self.check(s, value, where)]
