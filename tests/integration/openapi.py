# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/openapi*.yaml for tests: routes, and as much of JSON Schema as the documents use. Needs python3-yaml."""

import functools
import pathlib
import re
import urllib.parse

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
METHODS = {"get", "put", "post", "delete", "patch", "head", "options"}
TYPES = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list, "null": type(None)}
# Keywords that say nothing about a value.
SILENT = {"description", "examples", "default", "format"}


class Once(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """A loader that takes no key twice, where YAML's takes the last one."""

    def construct_mapping(self, node, deep=False):
        keys = [k.value for k, _ in node.value]
        twice = {k for k in keys if keys.count(k) > 1}
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"{twice} twice", node.start_mark)
        return super().construct_mapping(node, deep)


class Document:
    def __init__(self, name="openapi.yaml"):
        with open(ROOT / "docs" / name, encoding="utf-8") as f:
            self.doc = yaml.load(f, Once)

    def routes(self):
        """{("GET", "/v1/vfs/{}"), ...}: parameters without their names."""
        return {(method.upper(), re.sub(r"\{[^}]*\}", "{}", path))
                for path, item in self.doc["paths"].items() for method in item if method in METHODS}

    def roles(self):
        """{("GET", "/v1/vfs/{}"): "read", ...}"""
        return {(method.upper(), re.sub(r"\{[^}]*\}", "{}", path)): op.get("x-role") for path, _, method, op in self.operations()}

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

    @functools.cached_property
    def patterns(self):
        """[(pattern of a path, its operation as operations() has it)]"""
        return [(re.compile(re.sub(r"\{([^}]*)\}", r"(?P<\1>[^/]+)", op[0])), op) for op in self.operations()]

    def find(self, method, url):
        """(operation, {parameter: its text}, {parameter: its schema}) of a request; None if there is no such operation."""
        path, _, query = url.partition("?")
        for pattern, (_, shared, name, op) in self.patterns:
            found = name == method.lower() and pattern.fullmatch(path)
            if found:
                schemas = {(p["in"], p["name"]): self.resolve(p["schema"]) for p in map(self.resolve, shared + op.get("parameters", []))}
                given = {("path", k): v for k, v in found.groupdict().items()}
                given.update({("query", k): v for k, v in urllib.parse.parse_qsl(query, keep_blank_values=True)})
                return op, given, schemas
        return None

    def check_answer(self, method, url, status, doc):
        """Errors of a JSON answer, members that are not described included. What no operation promises has to be a problem."""
        found = self.find(method, url)
        promised = self.resolve(found[0]["responses"].get(str(status), {}) if found else {})
        if promised:
            schema = promised["content"]["application/json"]["schema"]
            if ("query", "fields") in found[1]:
                schema = self.cut(schema, found[1]["query", "fields"].split(","))
            return self.check(schema, doc) + self.undescribed(schema, doc)
        errors = self.check("Problem", doc) + self.undescribed(self.doc["components"]["schemas"]["Problem"], doc)
        return errors or ([] if doc["status"] == status else [f"$.status: {doc['status']}, but HTTP says {status}"])

    def check_request(self, method, url, body, headers=()):
        """Errors of a request that was accepted: then it ought to be described. headers: {name: text} of those that are its own."""
        op, given, schemas = self.find(method, url)
        given |= {("header", name): text for name, text in dict(headers).items()}
        errors = [f"{key}: is not described" for key in given.keys() - schemas.keys()]
        for key in given.keys() & schemas.keys():
            number = schemas[key].get("type") == "integer"
            errors += self.check(schemas[key], int(given[key]) if number else given[key], str(key))
        if "requestBody" in op:
            errors += self.check(op["requestBody"]["content"]["application/json"]["schema"], body)
        return errors

    def parts(self, schema):
        """A schema and those that it is made of."""
        schema = self.resolve(schema)
        yield schema
        for part in schema.get("allOf", []) + schema.get("anyOf", []):
            yield from self.parts(part)

    def entry(self, schema):
        """(name, schema of an entry) of a list's answer."""
        (name, array), = ((k, v) for k, v in self.resolve(schema)["properties"].items() if v.get("type") == "array")
        parts = list(self.parts(array["items"]))
        return name, {"type": "object", "properties": {k: s for part in parts for k, s in part.get("properties", {}).items()},
                      "required": [k for part in parts for k in part.get("required", [])]}

    def cut(self, schema, fields):
        """The answer's schema, of whose entries these members are left."""
        name, entry = self.entry(schema)
        left = {"type": "object", "properties": {k: s for k, s in entry["properties"].items() if k in fields},
                "required": [k for k in entry["required"] if k in fields]}
        schema = self.resolve(schema)
        return {**schema, "properties": {**schema["properties"], name: {"type": "array", "items": left}}}

    def fields(self, path):
        """What the entries of this list have."""
        op, _, _ = self.find("GET", path)
        return list(self.entry(op["responses"]["200"]["content"]["application/json"]["schema"])[1]["properties"])

    def undescribed(self, schema, value, where="$"):
        """Members that an answer may have, but does not say so. Errors as of check()."""
        parts = list(self.parts(schema))
        if isinstance(value, list):
            return [e for s in parts if "items" in s for i, v in enumerate(value) for e in self.undescribed(s["items"], v, f"{where}[{i}]")]
        if not isinstance(value, dict):
            return []
        described = {k: s for part in parts for k, s in part.get("properties", {}).items()}
        errors = [] if any(part.get("additionalProperties") for part in parts) else [f"{where}: {k} is not described" for k in sorted(value.keys() - described.keys())]
        return errors + [e for k in sorted(value.keys() & described.keys()) for e in self.undescribed(described[k], value[k], f"{where}.{k}")]

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
        if allowed is True:
            return []
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
        return [] if not isinstance(value, int) or value >= schema["minimum"] else [f"{where}: {value} is too small"]

    def check_maximum(self, schema, value, where):
        return [] if not isinstance(value, int) or value <= schema["maximum"] else [f"{where}: {value} is too large"]

    def check_minItems(self, schema, value, where):
        return [] if not isinstance(value, list) or len(value) >= schema["minItems"] else [f"{where}: {len(value)} are too few"]

    def check_maxItems(self, schema, value, where):
        return [] if not isinstance(value, list) or len(value) <= schema["maxItems"] else [f"{where}: {len(value)} are too many"]

    def check_allOf(self, schema, value, where):
        return [e for s in schema["allOf"] for e in self.check(s, value, where)]

    def check_anyOf(self, schema, value, where):
        """The errors of the one that comes nearest."""
        return min((self.check(s, value, where) for s in schema["anyOf"]), key=len)
