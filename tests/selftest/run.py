#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sabotages of the suite itself, each played against tools/check.py: what is broken on purpose has to be counted as failed.

A small meson project of shell scripts stands in for the product; meson is the real one. Prints TAP.
"""

import contextlib
import functools
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import unittest.mock

sys.dont_write_bytecode = True
os.environ["PATH"] = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
ROOT = pathlib.Path(__file__).resolve().parents[2]
GOOD = "echo 1..2; echo ok 1; echo ok 2"
RUNNER = """#!/bin/sh
[ "$1" = --list ] && printf 'a: one\\n    shows\\nb: two\\n    shows\\n' && exit 0
printf '%s' '{results}' > "$4"
{end}
"""


def load(name, path=None):
    spec = importlib.util.spec_from_file_location(name, ROOT / (path or f"tools/{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Bench:
    """tools/check.py on a tree of its own."""

    def __init__(self, top, skips=""):
        self.top, self.check, self.seconds = top, load("check"), 600
        self.check.ROOT = top
        os.environ["VHCA_CACHE"] = str(top / "cache")
        (top / "tests/rig").mkdir(parents=True)
        (top / "tests/skips.txt").write_text(skips)
        self.tally = self.check.Tally()

    def counted(self, play, *args):
        """(passed, failed, skipped), and what was said, after play(tally, ...)."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            play(self.tally, *args)
        return (self.tally.passed, self.tally.failed, self.tally.skipped), said.getvalue()

    def meson(self, **scripts):
        """Run tests of these names, which are shell scripts, as the suite `unit`."""
        lines = ["project('sabotage')", "sh = find_program('sh')"]
        for name, script in scripts.items():
            (self.top / f"{name}.sh").write_text(script + "\n")
            lines.append(f"test('{name}', sh, args: files('{name}.sh'), suite: 'unit', protocol: 'tap', timeout: {self.seconds}, "
                         f"is_parallel: false, priority: {-len(lines)})")
        (self.top / "meson.build").write_text("\n".join(lines) + "\n")
        build = self.top / "build"
        subprocess.run(["meson", "setup", build, self.top], check=True, stdout=subprocess.DEVNULL)
        return self.counted(self.check.meson_tests, build, "unit")

    def rig(self, results, end="exit 0"):
        """Run a rig's runner that leaves these results and ends in this way."""
        runner = self.top / "tests/rig/run.py"
        runner.write_text(RUNNER.format(results=results, end=end))
        runner.chmod(0o755)
        self.check.cache_dir().mkdir(parents=True)
        return self.counted(self.check.rig, {})

    def fuzz(self, bug, compiled=True):
        """Run the target `broken` (fuzz_broken.c) with this bug."""
        tests = self.top / "tests/fuzz"
        (tests / "corpus/broken").mkdir(parents=True)
        (tests / "corpus/broken/seed").write_text("seed")
        (tests / "meson.build").write_text("fuzz_targets += {'broken': [[], [], []]}\n")
        program = self.top / "build/tests/fuzz/fuzz_broken"
        program.parent.mkdir(parents=True)
        if compiled:
            subprocess.run(["clang", "-g", "-fsanitize=address" + ("" if bug == "NO_TARGET" else ",fuzzer"), f"-DBUG_{bug}", "-o", program,
                            ROOT / "tests/selftest/fuzz_broken.c"], check=True)
        self.check.FUZZ_SECONDS = 1 if bug == "NONE" else 30    # what is found ends it
        self.check.fuzzing.INPUT_SECONDS, self.check.fuzzing.MEMORY_MB = 1 if bug == "HANG" else 30, 256
        found = self.counted(self.check.fuzz_targets, self.top / "build")
        if os.listdir(tests / "corpus/broken") != ["seed"]:
            raise AssertionError("the corpus was changed")
        return found


def record(name, result, problem=""):
    return {"name": name, "result": result, "seconds": 0, "problem": problem}


def expect(found, counts, *words):
    """These counts, and each of these words was said."""
    if found[0] != counts or any(word not in found[1] for word in words):
        raise AssertionError(f"expected {counts} and {words}, found {found[0]}:\n{found[1]}")


def good_tests_pass(bench):
    expect(bench.meson(a=GOOD, b=GOOD), (4, 0, 0))


def killed_meson(bench):
    """What ended before is lost, too: its log was not yet written."""
    expect(bench.meson(a=GOOD, b="kill -9 $PPID; sleep 1", c=GOOD), (0, 3, 0), "b: no result", "c: no result")


def meson_at_its_timeout(bench):
    bench.check.TEST_TIMEOUT = 20    # a busy machine needs many until meson has played the first
    bench.check.GRACE = 3
    started = time.monotonic()
    expect(bench.meson(a=GOOD, b="trap '' TERM; sleep 1; sleep 1; exec sleep 300", c="exec sleep 301"), (2, 2, 0), "c: ")
    if time.monotonic() - started > 150:
        raise AssertionError("it was waited for")


def failing_case(bench):
    expect(bench.meson(a="echo 1..2; echo ok 1; echo not ok 2"), (1, 1, 0))


def crash_after_its_cases(bench):
    expect(bench.meson(a=GOOD + "; kill -SEGV $$"), (2, 1, 0))


def exit_code_after_its_cases(bench):
    expect(bench.meson(a=GOOD + "; exit 3"), (2, 1, 0))


def plan_not_fulfilled(bench):
    expect(bench.meson(a="echo 1..3; echo ok 1; echo ok 2"), (2, 1, 0))


def hanging_test(bench):
    bench.seconds = 2
    expect(bench.meson(a="echo 1..1; exec sleep 30"), (0, 1, 0), "TIMEOUT")


def setup_failed_before(bench):
    """What a setup that failed, or was killed, has left does not hinder the next one."""
    bench.check.run = functools.partial(bench.check.run, cwd=bench.top)
    options = "option('tests', type: 'boolean')\noption('opensm-plugin', type: 'feature')\n"
    (bench.top / "meson_options.txt").write_text(options)
    for line, counts in (("error('broken')", (0, 1, 0)), ("", (1, 1, 0))):
        (bench.top / "meson.build").write_text(f"project('sabotage')\n{line}\n")
        expect(bench.counted(bench.check.build, "dev", ({}, [])), counts)


def section_named_alone(bench):
    """Its tests run in the developer build, whichever other sections there are."""
    for name in ("lint", "unit", "integration", "cloud"):
        suites = []
        with unittest.mock.patch.multiple(bench.check, build=lambda tally, name, how: bench.top / name, run=lambda *args, **_: (0, ""),
                                          meson_tests=lambda tally, where, suite: suites.append((where.name, suite))):
            bench.counted(bench.check.play, [name])
        if suites != [("dev", name)]:
            raise AssertionError(f"{name}: {suites}")


def empty_suite(bench):
    expect(bench.meson(), (0, 1, 0), "0 tests")


def skip_nobody_allowed(bench):
    expect(bench.meson(a="echo '1..0 # SKIP no card'"), (0, 1, 0), "tests/skips.txt")


def skipped_case_nobody_allowed(bench):
    expect(bench.meson(a="echo 1..2; echo ok 1; echo 'ok 2 - x # SKIP no card'"), (1, 1, 0), "tests/skips.txt")


def allowed_skip(bench):
    (bench.top / "tests/skips.txt").write_text("a -- needs a card\n")
    expect(bench.meson(a="echo '1..0 # SKIP no card'", b=GOOD), (2, 0, 1))


def skip_as_cmocka_says_it(bench):
    (bench.top / "tests/skips.txt").write_text("a: needs_card -- none here\n")
    expect(bench.meson(a="echo 1..2; echo ok 1 - x; echo ok 2 '# SKIP needs_card'"), (1, 0, 1), "a: needs_card")


def rig_good(bench):
    expect(bench.rig(json.dumps([record("a: one", "ok"), record("b: two", "ok")])), (2, 0, 0))


def rig_says_nothing(bench):
    expect(bench.rig("[]"), (0, 2, 0), "a: one: no result", "b: two: no result")


def summary_says_why(bench):
    bench.rig(json.dumps([record("a: one", "FAIL", "no VF came\nafter 90 s"), record("b: two", "ok")]))
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()):
        bench.tally.add("broken", "FAIL", None, "much\nbefore\nthis\n1..1\nnot ok 1 - breaks\n# expected 1\n# found 2")
    with contextlib.redirect_stdout(said):
        bench.tally.summary()
    wanted = ["failed: rig: a: one", "no VF came", "after 90 s", "failed: broken", "1..1", "not ok 1 - breaks", "# expected 1", "# found 2",
              "1 passed, 2 failed"]
    if [line.strip() for line in said.getvalue().splitlines()] != wanted:
        raise AssertionError(said.getvalue())


def rig_forgets_case(bench):
    expect(bench.rig(json.dumps([record("a: one", "ok")])), (1, 1, 0), "b: two: no result")


def rig_killed(bench):
    expect(bench.rig(json.dumps([record("a: one", "ok"), record("b: two", "ok")]), "kill -9 $$"), (2, 1, 0), "exit code -9")


def rig_skips_case(bench):
    expect(bench.rig(json.dumps([record("a: one", "ok"), record("b: two", "skip")])), (1, 1, 0), "tests/skips.txt")


def rig_out_of_time(bench):
    expect(bench.rig(json.dumps([record("a: one", "ok"), record("b: two", "skip", "time")])), (1, 0, 1))


def rig_leaves_much_out(bench):
    expect(bench.rig(json.dumps([record("a: one", "skip", "time"), record("b: two", "skip", "time")])), (0, 1, 2), "2 of 2 cases were left out")


def load_runner():
    """The rig's real one."""
    if str(ROOT / "tests/rig") not in sys.path:
        sys.path.insert(0, str(ROOT / "tests/rig"))
    return load("rig_runner", "tests/rig/run.py")


def rig_begins_nothing_after_its_time(bench):
    runner, cases = load_runner(), [types.SimpleNamespace(name=n) for n in "abc"]
    taken = list(runner.Share(bench.top / "share").take(3, time.monotonic() - 1))
    with contextlib.redirect_stdout(io.StringIO()):
        left = [(r["name"], r["problem"]) for r in runner.not_reached([[c] for c in cases], [record("b", "ok")])]
    if taken or left != [("a", "time"), ("c", "time")]:
        raise AssertionError((taken, left))


def rig_leaves_each_case_out_sometimes(bench):
    del bench
    runner = load_runner()
    groups = [["story", "goes on"], ["a"], ["b"], ["c"]]
    if [runner.rotate(groups, seed)[:2] for seed in (0, 1, 2, 3)] != [[groups[0], [n]] for n in "abca"]:
        raise AssertionError([runner.rotate(groups, seed) for seed in (0, 1, 2, 3)])


def rig_has_a_debian_13_sometimes(bench):
    del bench
    runner, args = load_runner(), types.SimpleNamespace(minutes=1)
    for seed, suites in ((3, ["bookworm", "bookworm"]), (4, ["bookworm", "trixie"])):
        with unittest.mock.patch.dict(os.environ, {"VHCA_FRESH_SEED": str(seed)}):
            found = [runner.suite_of(pair, 2, args) for pair in (1, 2)]
        if found != suites:
            raise AssertionError((seed, found))


def play_on_kernel(log, words):
    """Results, and how often a case was played that fails once, its hypervisor's kernel saying this meanwhile."""
    load_runner()
    runner = importlib.import_module("kit.runner")
    host = types.SimpleNamespace(name="hvb", vm=types.SimpleNamespace(log=log))
    rig = types.SimpleNamespace(hosts=(host,), story={}, watch=types.SimpleNamespace(begin=lambda: None))
    plays = []

    def run_case(_, one):
        plays.append(one)
        log.write_text(log.read_text() + words)
        return record(one, "FAIL" if len(plays) == 1 else "ok")
    with unittest.mock.patch.multiple(runner, run_case=run_case, tidy=lambda *_: None), contextlib.redirect_stdout(io.StringIO()):
        results = runner.run_group(["a: one"], rig)
    return [r["result"] for r in results], len(plays)


def rig_plays_again_when_a_kernel_dies(bench):
    oops = "Oops: 0000 [#1] PREEMPT SMP NOPTI\nRIP: 0010:strlen+0x0/0x20\nCall Trace:\n <TASK>\n kernfs_name_hash+0x12/0x80\n"
    log = bench.top / "console"
    log.write_text(oops)  # of an earlier case
    for words, expected in (("watchdog: did not stop!\n", (["FAIL"], 1)), (oops, (["ok"], 2))):
        if (found := play_on_kernel(log, words)) != expected:
            raise AssertionError(f"{words}: expected {expected}, found {found}")


def rig_fails_with_good_code(bench):
    expect(bench.rig(json.dumps([record("a: one", "FAIL"), record("b: two", "ok")])), (1, 1, 0))


def tap_of_section_cut(bench):
    expect(bench.counted(bench.check.tap_program, ["sh", "-c", "echo 1..2; echo ok 1 - x"], 5), (1, 1, 0), "ended early")


def tap_says_why(bench):
    expect(bench.counted(bench.check.tap_program, ["sh", "-c", "echo 1..2; echo not ok 1 - x; echo '# no root'; echo ok 2 - y; exit 1"], 5),
           (1, 1, 0), "FAIL  x\n       # no root\n   ok  y")


def section_crashes_after_cases(bench):
    expect(bench.counted(bench.check.tap_program, ["sh", "-c", "echo 1..1; echo ok 1 - x; exit 1"], 5), (1, 1, 0), "ended early")


def fuzz_without_bug(bench):
    expect(bench.fuzz("NONE"), (1, 0, 0))


def fuzz_crash(bench):
    expect(bench.fuzz("CRASH"), (0, 1, 0), "fuzz: broken", "deadly signal", "reproducer: ", "fuzz-findings/fuzz_broken-crash-", "base64: ")


def fuzz_overflow(bench):
    expect(bench.fuzz("OVERFLOW"), (0, 1, 0), "heap-buffer-overflow", "reproducer: ")


def fuzz_leak(bench):
    expect(bench.fuzz("LEAK"), (0, 1, 0), "detected memory leaks", "reproducer: ")


def fuzz_hang(bench):
    expect(bench.fuzz("HANG"), (0, 1, 0), "timeout", "fuzz_broken-timeout-")


def fuzz_out_of_memory(bench):
    expect(bench.fuzz("MEMORY"), (0, 1, 0), "out-of-memory", "fuzz_broken-oom-")


def fuzz_ends_at_once(bench):
    """exit(0) out of a parser: libFuzzer itself takes that for a finding."""
    expect(bench.fuzz("EXIT"), (0, 1, 0), "fuzz target exited")


def fuzz_searches_nothing(bench):
    """A program that is no target, and content with everything."""
    expect(bench.fuzz("NO_TARGET"), (0, 1, 0), "searched nothing")


def fuzz_plays_only_its_corpus(bench):
    """Three seeds and the empty input are four runs: the seconds were over before the search."""
    for runs, good in ((4, False), (5, True)):
        said = bench.check.fuzzing.verdict(0, f"INFO: seed corpus: files: 3 min: 1b\nDone {runs} runs in 4 second(s)\n")
        if (said is None) != good:
            raise AssertionError(f"{runs} runs: {said}")


def fuzz_not_built(bench):
    expect(bench.fuzz("NONE", compiled=False), (0, 1, 0), "is missing")


def load_pristine():
    sys.path.insert(0, str(ROOT / "tests/pristine"))
    return importlib.import_module("run")


def pristine_judges(top, *entries):
    """What tests/pristine says of a log with these (name, result, output), where `a` and `b` are wanted: why not, or the cases."""
    pristine, log = load_pristine(), top / "testlog.json"
    log.write_text("".join(json.dumps({"name": f"vhcad:unit / {n}", "result": r, "stdout": o}) + "\n" for n, r, o in entries))
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            return pristine.judge_tests("ab", log)
        except pristine.Failure as e:
            return str(e)


def pristine_units_counted(bench):
    """On Debian 13 a test that is missing, fails or skips without leave is told by name, and good ones are not."""
    good = ("a", "OK", "1..1\nok 1 - x\n")
    if (found := pristine_judges(bench.top, good, ("b", "OK", "1..2\nok 1 - y z\nok 2 - w\n"))) != ["a: x", "b: y", "b: w"]:
        raise AssertionError(f"cases: {found}")
    for other, word in ((("b", "FAIL", "1..1\nnot ok 1 - x\n"), "b: FAIL"),
                        (("b", "OK", "1..1\nok 1 - x # SKIP no fuse\n"), "b: "), (("c", "OK", ""), "b: no result")):
        found = pristine_judges(bench.top, good, other)
        if word not in found:
            raise AssertionError(f"expected {word!r} of {other}, found {found!r}")


def pristine_reads_readme(bench):
    """A README without the commands, or with another one first, is refused; so is a warning among what a build prints."""
    pristine = load_pristine()
    true_root, pristine.ROOT = pristine.ROOT, bench.top
    (bench.top / "README.md").write_text("# x\n\n## Try it\n\n    sudo true\n\n## Install\n\nnothing\n")
    for play in (pristine.readme_first_command, lambda: pristine.readme_block("Build and install"),
                 lambda: pristine.no_warnings("a.c:1:2: warning: unused\n")):
        try:
            play()
        except pristine.Failure:
            continue
        raise AssertionError("it was accepted")
    pristine.ROOT = true_root
    pristine.readme_first_command()
    pristine.no_warnings("Compiler for C supports arguments -Werror=return-type: YES\n")


def coverage_falls(bench):
    """A page that states more than was measured; of a point less nothing is said."""
    tool = load("coverage")
    tool.PAGE = bench.top / "page.md"
    for lines, branches, falls in ((91.0, 81.0, False), (91.1, 80.0, True), (90.0, 81.1, True)):
        tool.PAGE.write_text(f"{tool.BEGIN}run {lines} % of the product's lines and {branches} % of its branches (commit 1234567).\n{tool.END}")
        if bool(tool.fallen([tool.Rate("agent/a.c", 90, 100, 80, 100), tool.Rate("sm/b.c", 9, 10, 8, 10)])) != falls:
            raise AssertionError((lines, branches, falls))


def coverage_of_half_a_suite(bench):
    bench.meson(a=GOOD, b=GOOD)
    (bench.top / "b.sh").write_text("exit 1\n")
    expect(bench.counted(bench.check.run_for_coverage, bench.top / "build", "unit"), (4, 1, 0), "failed: b")
    expect(bench.counted(bench.check.run_for_coverage, bench.top / "build", "no such suite"), (4, 2, 0), "0 tests")


def coverage_of_lost_commit(bench):
    tool = load("coverage")
    tool.git = lambda *args: types.SimpleNamespace(stdout="false\n", returncode=args[0] == "merge-base")    # whoever cloned this
    tool.ROOT = bench.top
    (bench.top / ".git").mkdir()
    tool.PAGE = bench.top / "page.md"
    tool.PAGE.write_text(f"{tool.BEGIN}run 90.0 % of the product's lines and 80.0 % of its branches (commit 1234567).\n{tool.END}")
    if "not in our history" not in tool.look_at_page():
        raise AssertionError(tool.look_at_page())


# Whatever takes a bench and nothing else.
SABOTAGES = [f for f in list(globals().values()) if callable(f) and hasattr(f, "__code__")
             and f.__code__.co_varnames[:f.__code__.co_argcount] == ("bench",)]


def main():
    print(f"1..{len(SABOTAGES)}")
    bad = 0
    for i, play in enumerate(SABOTAGES, 1):
        with tempfile.TemporaryDirectory(prefix="vhcad-selftest.") as top:
            problem = ""
            try:
                play(Bench(pathlib.Path(top)))
            except Exception as e:  # pylint: disable=broad-except
                problem = f"{type(e).__name__}: {e}"
        bad += bool(problem)
        print(f"{'not ok' if problem else 'ok'} {i} - selftest: {play.__name__.replace('_', ' ')}")
        for line in problem.splitlines():
            print(f"# {line}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
