#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The include graph: tests/lint/layers.py [ROOT]

Project headers are written from the source root in quotes, and a folder may include only what stands in its row of
LAYERS. A third-party header may be included only in its homes. Both tables are the architecture; change them in
the commit that changes it.
"""

import pathlib
import re
import sys

import source

COMMON = ["common/base", "common/ini", "common/sysfs", "common/loop", "common/store", "common/http", "common/ticket"]

BELOW = ["conf", "sriov", "pkey", "sm"]  # what the agent stands on
ROOMS = ["agent/state", "agent/vf", "agent/migration", "agent/libvirt", "agent/host", "agent/explain"]

# folder -> folders, or single headers, that it may include, besides itself. The longest matching folder counts.
LAYERS = {
    "common/base": [],
    "common/ini": ["common/base"],
    "common/sysfs": ["common/base"],
    "common/loop": ["common/base"],
    "common/store": ["common/base", "common/loop"],
    "common/http": ["common/base", "common/loop"],
    "common/ticket": ["common/base", "common/http"],
    "conf": ["common/base", "common/ini"],
    "sriov": COMMON,
    "pkey": COMMON,
    "sm": ["common/base", "common/loop", "common/store", "common/http", "common/ticket"],
    "agent/state": COMMON + BELOW,
    "agent/vf": COMMON + BELOW + ["agent/state"],
    "agent/migration": COMMON + BELOW + ["agent/state", "agent/vf"],
    "agent/libvirt": COMMON + BELOW + ["agent/state"],
    "agent/host": COMMON + BELOW + ["agent/state", "agent/vf"],
    "agent/explain": COMMON + BELOW + ["agent/state"],
    "agent/api": COMMON + BELOW + ROOMS,
    "agent": COMMON + BELOW + ROOMS + ["agent/api"],
    "hooks": ["common/base"],
    "ctl/cli": ["common/base", "common/http"],
    "ctl/agent": ["common/base", "ctl/cli"],
    "ctl/ebr": ["common/base"],
    "ctl/plugin": ["common/base", "common/http", "ctl/cli", "opensm/bindings/conf.h"],
    "opensm/bindings": ["common/base", "common/ini"],
    "opensm/lids": ["common/base"],
    "opensm/tickets": ["common/base", "common/http", "common/ticket", "opensm/bindings"],
    "opensm/http": ["common/base", "common/http", "common/ticket", "opensm/bindings", "opensm/lids", "opensm/tickets"],
    "opensm/osm": ["common/base", "opensm/bindings/subnet.h", "opensm/lids"],  # plugin.c joins it with the service
    "opensm": ["common/base", "common/http", "opensm/bindings", "opensm/lids", "opensm/http", "opensm/osm"],
    "tests": None,  # free
}

OSM = ["opensm/osm/", "opensm/plugin.c"]

# Prefix of the header -> prefixes of the paths that may include it. tests/ is free.
HOMES = {
    "systemd/sd-": ["common/loop/", "agent/"],
    "libudev.h": ["sriov/", "agent/"],
    "infiniband/verbs.h": ["pkey/verbs.c"],
    "libvirt/": ["agent/libvirt/"],
    "curl/": ["common/http/"],
    "json-c/": ["common/http/", "sm/", "agent/", "ctl/", "opensm/"],
    "microhttpd.h": ["common/http/"],
    "sqlite3.h": ["common/store/"],
    "libxml/": ["agent/libvirt/domxml"],
    "gnutls/": ["pkey/guid.c", "common/http/auth", "common/http/request.c", "common/ticket/"],
    "ini.h": ["common/ini/"],
    "netlink/": ["pkey/rtnl.c"],
    "opensm/": OSM,
    "complib/cl_passivelock.h": ["opensm/osm/lock.c"],
    "complib/": OSM,
    "iba/": OSM,
    "vendor/": OSM,
    "linux/": ["common/", "sriov/", "pkey/", "agent/"],
}

# libc: no home needed.
LIBC = re.compile(r"(sys|net|netinet|arpa|bits)/\w+\.h|"
                  r"(assert|byteswap|complex|ctype|dirent|dlfcn|endian|err|errno|fcntl|fnmatch|ftw|getopt|glob|grp|"
                  r"inttypes|langinfo|libgen|limits|locale|malloc|math|mntent|netdb|poll|pthread|pwd|regex|sched|"
                  r"search|semaphore|setjmp|signal|spawn|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|"
                  r"stdio_ext|stdlib|string|strings|syslog|termios|threads|time|unistd|wchar)\.h")
GENERATED = {"config.h"}


def layer_of(path):
    best = [name for name in LAYERS if path.startswith(name + "/")]
    return max(best, key=len, default=None)


def check_project(report, root, path, line, header):
    if header in GENERATED:
        return
    if not (root / header).is_file():
        report.add("rooted", path, line, f'"{header}" is no file seen from the source root')
        return
    here, there = layer_of(path), layer_of(header)
    if LAYERS[here] is None or here == there:
        return
    if there not in LAYERS[here] and header not in LAYERS[here]:
        report.add("layer", path, line, f'{here} must not include {there or "what has no layer"} ("{header}")')


def check_system(report, root, path, line, header):
    if (root / header).is_file():
        report.add("rooted", path, line, f'project header <{header}> must be written "{header}"')
        return
    if path.startswith("tests/") or LIBC.fullmatch(header):
        return
    for prefix, homes in HOMES.items():
        if header.startswith(prefix):
            if not path.startswith(tuple(homes)):
                report.add("home", path, line, f"<{header}> belongs into {', '.join(homes)}")
            return
    report.add("home", path, line, f"<{header}> has no home in tests/lint/layers.py")


def check_file(report, root, path):
    text = (root / path).read_text(encoding="utf-8", errors="replace")
    if path.startswith("tests/") and (source.is_kernel(text) or (root / path).parent.joinpath("Kbuild").exists()):
        return
    if layer_of(path) is None:
        report.add("layer", path, 1, "folder has no row in tests/lint/layers.py")
        return
    found = list(source.includes(text))
    for line, form, header in found:
        check = check_project if form == '"' else check_system
        check(report, root, path, line, header)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    report = source.Report()
    for path in source.files(root):
        if path.endswith((".c", ".h")):
            check_file(report, root, path)
    return report.finish("layers")


if __name__ == "__main__":
    sys.exit(main())
