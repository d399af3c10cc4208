# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page of figures, docs/bench.md: a section for each benchmark, a row for each figure.

Each figure has an anchor, BENCHMARK-NAME, and each ratio that one and "-ratio". Another document
quotes one by a link whose text is the figure: [1.05](bench.md#hook-hook-median-ratio).
"""

import re

import figures

HEAD = """# Figures

Written by `tools/bench`, which also writes the figures that other documents quote from here; not to be
edited. A ratio compares what was measured in the same run: take it, and not the times, to another
machine. A benchmark whose bound is broken fails.
"""
COLUMNS = "| figure | value | ratio | bound | |\n|---|---|---|---|---|\n"
SECTION = re.compile(r"^## ([\w-]+)\n(.*?)(?=^## |\Z)", re.M | re.S)
ROW = re.compile(r"^\| <a id=\"([\w-]+)\"></a>(.*?) \| (.*?) \| (?:<a id=\"[\w-]+\"></a>(\S+) of (.*?))? ?\| (.*?) \| (\w*) \|$", re.M)
QUOTE = re.compile(r"\[([^\]\n]+)\]\(((?:\.\./)*(?:docs/)?bench\.md)#([\w-]+)\)")


def slug(*names):
    return re.sub(r"[^a-z0-9]+", "-", " ".join(names).lower()).strip("-")


def row(figure):
    anchor = slug(figure["benchmark"], figure["name"])
    value = "not measured" if figure["value"] is None else f"{figures.number(figure['value'])} {figure['unit']}".strip()
    ratio = "" if figure["ratio"] is None else f"<a id=\"{anchor}-ratio\"></a>{figures.ratio_text(figure['ratio'])} of {figure['of']} "
    verdict = {True: "ok", False: "FAILED", None: ""}[figure["ok"]]
    return f"| <a id=\"{anchor}\"></a>{figure['name']} | {value} | {ratio}| {figure['bound'] or ''} | {verdict} |\n"


def put_section(path, name, about, where, found, order):
    """Writes one benchmark's section anew; the others stay, in this order."""
    kept = dict(SECTION.findall(path.read_text("utf-8"))) if path.exists() else {}
    kept[name] = f"\n{about[:1].upper()}{about[1:]}\n\n{where}\n\n{COLUMNS}{''.join(map(row, found))}\n"
    text = HEAD + "".join(f"\n## {n}\n{kept[n].rstrip()}\n" for n in order if n in kept)
    path.write_text(text, "utf-8")


def sections(path):
    """{benchmark: {name of a figure: (bound, verdict)}}"""
    return {name: {r[1]: (r[5], r[6]) for r in ROW.findall(body)} for name, body in SECTION.findall(path.read_text("utf-8"))}


def carried(path):
    """Benchmarks whose figures are older than the page; some of them may be missing."""
    return {name for name, body in SECTION.findall(path.read_text("utf-8")) if "\nCarried over: " in body}


def values(path):
    """{anchor: figure as a text}, values without their unit."""
    found = {}
    for anchor, _, value, ratio, *_ in ROW.findall(path.read_text("utf-8")):
        found[anchor] = value.split()[0]
        if ratio:
            found[anchor + "-ratio"] = ratio
    return found


def documents(root):
    return [root / "README.md", root / "NEWS.md", *sorted(root.glob("docs/**/*.md"))]


def is_figure(text):
    return text[0].isdigit()


def quote(root, path):
    """Writes the figures of the page into the documents that quote them."""
    known = values(path)
    for document in documents(root):
        text = document.read_text("utf-8")
        new = QUOTE.sub(lambda m: f"[{known[m[3]]}]({m[2]}#{m[3]})" if is_figure(m[1]) and m[3] in known else m[0], text)
        if new != text:
            document.write_text(new, "utf-8")
