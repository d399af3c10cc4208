#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""README's commands, typed as they stand there, in Debians that have nothing of ours: run.py [ROOM...]. Prints TAP; needs root.

A room is one root file system (machine.py) and what is done in it.
"""

import collections
import contextlib
import hashlib
import importlib.util
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from machine import CACHE, ROOT, SOURCE, VHCA_CACHE, Failure, Machine  # noqa: E402

CPUS = os.cpu_count() or 1
CLOUDS = ("nova", "neutron")    # tests of meson
RIG_CACHE = "var/cache/vhcad-dev/rig"


def say(text):
    print(text, end="", flush=True)


def path_key(path):
    """What tools/check and the rig call the build of a checkout by."""
    return hashlib.sha256(str(path).encode()).hexdigest()[:8]


def readme_block(heading):
    """The indented lines that follow the paragraph with this heading in README.md."""
    text = (ROOT / "README.md").read_text().partition(f"**{heading}**")[2]
    found = re.search(r"\n\n((?:       .*\n|\n)+)", text)
    if not found:
        raise Failure(f"README.md has no commands after **{heading}**")
    return re.sub(r"^ {7}", "", found[1], flags=re.M).strip()


def readme_first_command():
    """The first indented line below `Try it`."""
    found = re.search(r"^## Try it\n(?:(?! {4}|##).*\n)*    (.*)", (ROOT / "README.md").read_text(), re.M)
    if not found or "tools/demo" not in found[1]:
        raise Failure("README.md's first command is not the demo")
    return found[1]


def no_warnings(out):
    """Neither the compiler nor meson found fault."""
    warnings = [line for line in out.splitlines() if re.search(r"\b(warning|WARNING):", line)]
    if warnings:
        raise Failure("\n".join(warnings[:20]))


def readme_installs(machine):
    """Dependencies, configuration, compilation, installation, each without a warning of the compiler."""
    no_warnings(machine.type(readme_block("Build and install")))


def installation_is_complete(machine):
    """What README goes on to use is there: programs, hook, unit, pages, the plugin where the loader looks, and Neutron's driver where Python does."""
    machine.type("vhcad --version; vhcactl --version; test -x /etc/libvirt/hooks/qemu.d/*vhca*; "
                 "find / -xdev -name vhcad.service | grep .; ls /usr/lib/*-linux-gnu/libvhcasm.so; "
                 "find /usr/share/man -name 'vhcad.8*' | grep .; test -f /usr/lib/modprobe.d/vhcad-mlx4.conf; "
                 "python3 -c 'from importlib.metadata import entry_points; import networking_vhca; "
                 "assert entry_points(group=\"neutron.ml2.mechanism_drivers\", name=\"vhca\")'")


def configuration_is_accepted(machine):
    """README's local.conf and its command."""
    text = readme_block("Configuration")
    conf, _, command = text.rpartition("\n")
    where = machine.top / "etc/vhcad/vhcad.conf.d/local.conf"
    if not conf.startswith("[hca") or not command.startswith("vhcad --check-config"):
        raise Failure(f"README.md's step 4 is no configuration with `vhcad --check-config` after it: {text}")
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text(conf + "\n")
    machine.type(command.partition(";")[0])


def demo_runs(machine):
    """README's first command, to its last line. Of the rig's cache only images are shared: who comes first builds them."""
    bound = [(VHCA_CACHE / "rig", RIG_CACHE)]
    for own in ("run-default", f"build-{path_key('/' + SOURCE)}"):
        bound.append((machine.top / "run" / own, f"{RIG_CACHE}/{own}"))
    out = machine.type(readme_first_command(), bound)
    say("".join(f"# {line}\n" for line in out.splitlines() if re.match(r"\[ *[0-9.]+ s\]", line)))
    if not out.rstrip().endswith("\ndemo: ok"):
        raise Failure("its last line is not `demo: ok`:\n" + out[-2000:])


def demo_dependencies(machine):
    """`tools/deps build rig` brings every program that the rig's kit calls, and no more of it is needed to build."""
    machine.type("tools/deps build rig")
    kit = "".join(f.read_text() for f in sorted((ROOT / "tests/rig/kit").glob("*.py")))
    programs = set(re.findall(r'(?:run|Popen)\(\[?"([a-z][\w.+-]*)"', kit)) | set(re.findall(r'"(qemu-system-\w+)"', kit))
    if len(programs) < 8:
        raise Failure(f"only these programs were found in tests/rig/kit: {sorted(programs)}")
    machine.type("; ".join(f"command -v {p}" for p in sorted(programs)) + "; ls -d /usr/src/linux-headers-*-amd64; test -x /bin/busybox")


def compiles_for_arm64(machine):
    """The product, plugin included, with Debian's cross compiler; no warning, and the result is for that architecture."""
    no_warnings(machine.type("meson setup build --cross-file tools/cross-arm64.ini --buildtype=release -Dwerror=true "
                             "-Dopensm-plugin=enabled; ninja -C build"))
    for program in ("agent/vhcad", "opensm/libvhcasm.so"):
        head = (machine.top / "usr/src/vhcad/build" / program).read_bytes()[:20]
        if head[:4] != b"\x7fELF" or int.from_bytes(head[18:20], "little") != 183:  # EM_AARCH64
            raise Failure(f"{program} is not for arm64")


def build_kept(machine):
    """Where this release's compiler has built all. What is built is kept, a folder for each checkout as in tools/check."""
    build = CACHE / f"build-{machine.suite}-{path_key(ROOT)}"
    objects = CACHE / f"ccache-{machine.suite}"
    machine.type("export CCACHE_DIR=/ccache CC='ccache gcc'; [ -e /build/with-ccache ] || { rm -rf /build/*; meson setup /build -Dtests=true "
                 "-Dwerror=true; touch /build/with-ccache; }; ninja -C /build", [(build, "build"), (objects, "ccache")])
    return build


def play_tests(machine, build, which, at_a_time):
    """(all that meson lists, its log) of these tests."""
    log = build / "meson-logs/testlog.json"
    log.unlink(missing_ok=True)
    machine.type(f"meson test -C /build --no-rebuild {which} --num-processes {at_a_time} --timeout-multiplier 3 || :; "
                 "meson introspect --tests /build > /build/tests.json", [(build, "build")])
    return json.loads((build / "tests.json").read_text()), log


def unit_tests_pass(machine):
    """The unit tests of this release's compiler and libraries."""
    build = build_kept(machine)
    listed, log = play_tests(machine, build, "--suite unit", 2 * CPUS)
    judge_tests([t["name"] for t in listed if "unit" in [s.rpartition(":")[2] for s in t["suite"]]], log)


def clouds_pass(machine):
    """Nova's and Neutron's own code of this release. Returns the names of what has passed: each counts."""
    build = build_kept(machine)
    _, log = play_tests(machine, build, " ".join(CLOUDS), len(CLOUDS))
    return judge_tests(CLOUDS, log)


def nothing_begins_at_boot(machine):
    """What tools/deps has brought runs only where a test runs it: OpenSM and RabbitMQ are no guests of the next boot."""
    wanted = {unit.name for unit in (machine.top / "etc/systemd/system").glob("*.wants/*")}
    begun = {u for u in wanted if not u.endswith(".timer") and not re.match(r"systemd-|getty@|e2scrub|remote-fs|console-getty", u)}
    if begun or not wanted:
        raise Failure(f"these would begin at boot: {sorted(begun)}, of {len(wanted)} units")


def load_check():
    """tools/check.py, whose counting is the same here."""
    spec = importlib.util.spec_from_file_location("check", ROOT / "tools/check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def judge_tests(names, log):
    """Every test of these names has to have passed; skips are those of tests/skips.txt, and are told. Returns the names of all cases."""
    check, said = load_check(), io.StringIO()
    tally, entries, names = check.Tally(), check.read_log(log), collections.Counter(names)
    with contextlib.redirect_stdout(said):
        for entry in entries:
            check.add_meson_test(tally, entry)
        for name in (names - collections.Counter(e["name"].rpartition(" / ")[2] for e in entries)).elements():
            tally.add(f"{name}: no result", "FAIL")
    told = "".join(f"# {line}\n" for line in said.getvalue().splitlines() if not line.startswith("   ok"))
    say(f"{told}# {sum(names.values())} tests: {tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped\n")
    if tally.failed or not names:
        failed = ", ".join(name for name, _ in tally.failures)
        raise Failure(f"{tally.failed} failed of {sum(names.values())} tests: {failed}")
    return [f"{entry['name'].rpartition(' / ')[2]}: {case}" for entry in entries
            for case in re.findall(r"^ok\b[ \d-]*(\S*)(?!.*# SKIP)", entry.get("stdout") or "", re.M)]


# name: release, group of tools/deps that it begins with, what is done there
ROOMS = {
    "demo": ("bookworm", None, (demo_runs, demo_dependencies)),
    "bookworm": ("bookworm", None, (readme_installs, installation_is_complete, configuration_is_accepted)),
    "arm64": ("bookworm", "arm64", (compiles_for_arm64,)),
    "trixie": ("trixie", None, (readme_installs, installation_is_complete, configuration_is_accepted)),
    "trixie tests": ("trixie", "build test cloud", (nothing_begins_at_boot, unit_tests_pass, clouds_pass)),
}


class Report:
    """TAP, whose plan comes last: one step may be many cases."""

    def __init__(self):
        self.count, self.bad = 0, 0

    def end(self):
        say(f"1..{self.count}\n")

    def add(self, name, problem):
        self.count += 1
        self.bad += bool(problem)
        text = f"{'not ok' if problem else 'ok'} {self.count} - pristine: {name}\n"
        say(text + "".join(f"# {line}\n" for line in problem.splitlines()))


def play(report, rooms, top):
    """These rooms, one after the other. A room that could not be made has failed with all that was to be done in it."""
    for room in rooms:
        suite, group, steps = ROOMS[room]
        machine = None
        for step in steps:
            problem, cases = "", None
            try:
                machine = machine or Machine(suite, group, top)
                cases = step(machine)
            except (Failure, OSError, ValueError, subprocess.SubprocessError) as e:
                problem = str(e) or repr(e)
            for case in cases or [step.__name__.replace("_", " ")]:
                report.add(f"{room}: {case}", problem)


def main():
    if os.geteuid() != 0:
        print("tests/pristine/run.py: needs root (it builds a root file system)", file=sys.stderr)
        return 1
    wanted = [r for r in ROOMS if not sys.argv[1:] or r in sys.argv[1:]]
    if len(wanted) < len(set(sys.argv[1:])):
        print(f"tests/pristine/run.py: rooms are: {', '.join(ROOMS)}", file=sys.stderr)
        return 2
    report = Report()
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="root.", dir=CACHE, ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o755)
        play(report, wanted, pathlib.Path(name))
    report.end()
    return 1 if report.bad else 0


if __name__ == "__main__":
    sys.exit(main())
