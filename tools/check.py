#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run the project's checks: tools/check [--within MINUTES] [lint] [selftest] [unit] [fuzz] [integration] [cloud] [threads] [pristine] [rig] [coverage]

Without arguments all sections but coverage, in this order. Builds live outside the tree, under
$VHCA_CACHE (default /var/cache/vhcad-dev, else ~/.cache/vhcad-dev). The last line is
"N passed, N failed[, N skipped]"; the exit code is 0 only if nothing failed.
--within: the rig, which comes last, begins no case after so many minutes. It names what it leaves out, which
is something else for each commit, and leaving out more than half of the cases is a failure.
"""

import collections
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fuzzing  # pylint: disable=wrong-import-position

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECTIONS = ("lint", "selftest", "unit", "fuzz", "integration", "cloud", "threads", "pristine", "rig", "coverage")
ON_DEMAND = {"coverage"}
# gcc as distributions build it, clang for its own warnings, and the developer build that runs the tests.
BUILDS = {
    "release": ({"CC": "ccache gcc"}, ["--buildtype=release", "-Dwerror=true"]),
    "clang": ({"CC": "ccache clang"}, ["-Dwerror=true"]),
    "dev": ({"CC": "ccache gcc"}, ["--native-file", str(ROOT / "tools/build-dev.ini"), "-Dfault-points=true"]),
}
# Of its own: only libFuzzer's programs, and for the section that runs them.
FUZZ_BUILD = ({"CC": "ccache clang"}, ["-Dfuzzing=true", "-Db_sanitize=address,undefined", "-Db_lundef=false"])
FUZZ_SECONDS = 3
# Of the suite `threads` only what it needs is built.
TSAN = ({"CC": "ccache gcc"}, ["--native-file", str(ROOT / "tools/build-tsan.ini"), "-Dfault-points=true"])
# Counts what runs. -Og keeps the lines apart and lets tests with deadlines pass.
COVERAGE = ({"CC": "gcc"}, ["--buildtype=debug", "--optimization=g", "-Db_coverage=true", "-Dfault-points=true"])
# Reads ten megabytes in two seconds, or not, when each byte is counted; its coverage counts all the same.
SLOW_WHEN_COUNTED = {"hook"}
BUILD_TIMEOUT = 1200
TEST_TIMEOUT = 2700  # of a suite, longer than its longest test
RIG_TIMEOUT = 5400
LEFT_OUT_AT_MOST = 1 / 2  # of the rig's cases, for want of time
PRISTINE_TIMEOUT = 1800
WHY_LINES, WHY_WIDTH = 4, 200  # of a failure's output, in the summary
GRACE = 10  # seconds that a command has between SIGTERM and SIGKILL
# Tests wait for what they have set going: for answers that do not come, for sweeps. Most of integration do little else (docs/design/0012-suite.md).
TESTS_PER_CPU = 2
INTEGRATION_PER_CPU = 3
MIGRATIONS = 100000
FRESH_MIGRATIONS = 10000
SAME_MIGRATIONS = 5000


def cache_base():
    """Where all is kept that is expensive to make: outside the tree."""
    base = os.environ.get("VHCA_CACHE") or "/var/cache/vhcad-dev"
    if not os.environ.get("VHCA_CACHE") and os.geteuid() != 0:
        base = os.path.expanduser("~/.cache/vhcad-dev")
    return pathlib.Path(base)


def cache_dir():
    """Where builds are kept, one folder per checkout."""
    return cache_base() / "build" / hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]


def share_objects():
    """A fresh checkout has new times on old files, so that ninja compiles all: ccache goes by what is in them."""
    os.environ.setdefault("CCACHE_DIR", str(cache_base() / "ccache"))
    os.environ.setdefault("CCACHE_BASEDIR", str(ROOT))
    os.environ.setdefault("CCACHE_NOHASHDIR", "1")
    os.environ.setdefault("CCACHE_MAXSIZE", "3G")


def allowed_skips():
    """Names of the tests that may be skipped, from tests/skips.txt."""
    lines = (ROOT / "tests/skips.txt").read_text().splitlines()
    return {line.partition(" -- ")[0] for line in lines if line and not line.startswith("#")}


class Tally:
    """Counts results and prints one line for each."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []

    def add(self, name, result, seconds=None, detail=""):
        took = "" if seconds is None else f"  ({seconds:.1f} s)"
        if result == "ok":
            self.passed += 1
        elif result == "skip" and name in allowed_skips():
            self.skipped += 1
        else:
            if result == "skip":
                detail += "\nskipped, and not in tests/skips.txt"
            result = "FAIL"
            self.fail(name, detail.splitlines()[-WHY_LINES:])
        print(f"{result:>5}  {name}{took}", flush=True)
        if detail and result != "ok":
            print("       " + detail.strip().replace("\n", "\n       "), flush=True)

    def fail(self, name, why):
        """Count a failure; these lines stand at the end once more, since CI shows only the end of a long log."""
        self.failed += 1
        self.failures.append((name, [line for line in why if line.strip()]))

    def summary(self):
        for name, why in self.failures:
            print("\n         ".join([f"failed: {name}", *(line[:WHY_WIDTH] for line in why)]))
        tail = f", {self.skipped} skipped" if self.skipped else ""
        print(f"{self.passed} passed, {self.failed} failed{tail}", flush=True)
        return 1 if self.failed else 0


def end_group(p):
    """End a command and what it started, politely at first: meson ends its tests then."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(p.pid, number)
            p.wait(GRACE)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def run(argv, timeout, env=None, cwd=ROOT):
    """Run a command; return (exit code, output). A time-out is exit code 124."""
    with subprocess.Popen(argv, cwd=cwd, env={**os.environ, **(env or {})}, start_new_session=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace") as p:
        try:
            out = p.communicate(timeout=timeout)[0]
            return p.returncode, out
        except subprocess.TimeoutExpired as e:
            end_group(p)
            out = e.stdout or b""
            return 124, (out if isinstance(out, str) else out.decode(errors="replace")) + "\ntimed out"
        except BaseException:
            end_group(p)
            raise


def tail(text, lines=40):
    return "\n".join(text.splitlines()[-lines:])


def build(tally, name, how, *targets):
    """Configure if needed, compile, count as one case. Return the directory, or None."""
    env, options = how
    where = cache_dir() / name
    setup = ["meson", "setup", *options, "-Dtests=true", "-Dopensm-plugin=enabled", str(where)]
    stamp, made_by = where / "made-by", json.dumps([env, setup])
    started = time.monotonic()
    if not (where / "build.ninja").exists() or not stamp.exists() or stamp.read_text() != made_by:
        shutil.rmtree(where, ignore_errors=True)    # of a setup that failed or was killed, which --wipe refuses
        where.mkdir(parents=True, exist_ok=True)
        code, out = run(setup, BUILD_TIMEOUT, env)
        if code:
            tally.add(f"build {name}", "FAIL", time.monotonic() - started, tail(out))
            return None
        stamp.write_text(made_by)
    code, out = run(["ninja", "-C", str(where), *targets], BUILD_TIMEOUT)
    tally.add(f"build {name}", "ok" if code == 0 else "FAIL", time.monotonic() - started, tail(out))
    return where if code == 0 else None


def tap_counts(text):
    """(ok, not ok) of a TAP stream, and (name, reason) of each case that was skipped; cmocka puts the name behind."""
    found = re.findall(r"^ok\b[ \d-]*(.*?) *# *SKIP *(.*)", text, re.M)
    skipped = [(before or after, after if before else "") for before, after in found]
    return len(re.findall(r"^ok\b(?!.*# *SKIP)", text, re.M)), len(re.findall(r"^not ok\b", text, re.M)), skipped


def add_meson_test(tally, entry):
    """Count one line of meson's testlog.json: every TAP case, or the program as a whole."""
    name, result, output = entry["name"].rpartition(" / ")[2], entry["result"], entry.get("stdout") or ""
    good, bad, skipped = tap_counts(output)
    seconds = entry.get("duration")
    detail = tail(output + (entry.get("stderr") or ""), 60)
    if result == "SKIP":
        tally.add(name, "skip", seconds, detail)
    elif result in ("OK", "EXPECTEDFAIL"):
        tally.add(f"{name}" + (f" [{good}]" if good else ""), "ok", seconds)
        tally.passed += max(good, 1) - 1
        for case, reason in skipped:
            tally.add(f"{name}: {case}", "skip", None, reason)
    else:
        tally.add(f"{name}: {result}", "FAIL", seconds, detail)
        tally.passed += good
        tally.failed += max(bad, 1) - 1


def meson_test(where, suite, wrapper=None):
    at_a_time = (INTEGRATION_PER_CPU if suite == "integration" else TESTS_PER_CPU) * (os.cpu_count() or 1)
    return ["meson", "test", "-C", str(where), "--no-rebuild", "--num-processes", str(at_a_time), "--suite", suite,
            *(["--wrapper", str(wrapper)] if wrapper else [])]


def read_log(log):
    """The entries of meson's testlog.json; a meson that was killed leaves half a line at its end."""
    entries = []
    for line in log.read_text().splitlines() if log.exists() else []:
        try:
            entries.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return entries


def listed_tests(where, suite):
    """Names of the tests of one suite, by meson's own list of what it has configured."""
    code, out = run(["meson", "introspect", "--tests", str(where)], 60)
    if code:
        return []
    return [t["name"] for t in json.loads(out) if suite in [s.rpartition(":")[2] for s in t["suite"]]]


def meson_tests(tally, where, suite, wrapper=None):
    """Run one suite and count its cases; a test that is listed and left no result has failed."""
    log = where / f"meson-logs/testlog{f'-{wrapper.name}' if wrapper else ''}.json"
    log.unlink(missing_ok=True)
    failed = tally.failed
    code, out = run(meson_test(where, suite, wrapper), TEST_TIMEOUT)
    entries = read_log(log)
    for entry in entries:
        add_meson_test(tally, entry)
    names = listed_tests(where, suite)
    missing = collections.Counter(names) - collections.Counter(e["name"].rpartition(" / ")[2] for e in entries)
    for name in missing.elements():
        tally.add(f"{name}: no result (meson's exit code was {code})", "FAIL")
    if (code and tally.failed == failed) or not names:
        tally.add(f"meson test --suite {suite}: {len(names)} tests, exit code {code}", "FAIL", None, tail(out))


def tracked(*patterns):
    """Files of the tree that git knows (or, in an unpacked tarball, all of them)."""
    code, out = run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "-co", "--exclude-standard",
                     *patterns], 60)
    if code == 0:
        return [f for f in out.splitlines() if (ROOT / f).is_file()]
    return [str(p.relative_to(ROOT)) for pat in patterns for p in ROOT.rglob(pat) if p.is_file()]


def shell_files():
    """Everything that a POSIX shell or bash runs, by its first line."""
    found = []
    for name in tracked("*"):
        with open(ROOT / name, "rb") as f:
            if re.match(rb"#!.*/(ba)?sh\b", f.readline(64)):
                found.append(name)
    return found


def lint_command(tally, name, argv):
    started = time.monotonic()
    code, out = run(argv, 600)
    tally.add(name, "ok" if code == 0 else "FAIL", time.monotonic() - started, tail(out))


def lint(tally, builds):
    """Shell scripts, Python syntax, and the meson suite `lint`."""
    lint_command(tally, "lint: shellcheck", ["shellcheck", *shell_files()])
    scripts = tracked("*.py")
    lint_command(tally, "lint: Python compiles",
                 ["/usr/bin/python3", "-c", "import ast, sys\nfor f in sys.argv[1:]: "
                  "ast.parse(open(f).read(), f)", *scripts])
    lint_command(tally, "lint: stated coverage", [str(ROOT / "tools/coverage.py"), "--stated"])
    if builds.get("dev"):
        meson_tests(tally, builds["dev"], "lint")


def unit(tally, builds):
    """The unit tests with sanitizers, case by case; then once more as distributions build them."""
    if builds.get("dev"):
        meson_tests(tally, builds["dev"], "unit")
    if builds.get("release"):
        started = time.monotonic()
        code, out = run(meson_test(builds["release"], "unit"), TEST_TIMEOUT)
        tally.add("unit tests in the release build", "ok" if code == 0 else "FAIL",
                  time.monotonic() - started, tail(out))


def fuzz_targets(tally, where):
    """Each target searches for a few seconds from its corpus, which stays as it is."""
    findings = cache_dir() / "fuzz-findings"

    def one(name):
        return fuzzing.search(where / f"tests/fuzz/fuzz_{name}", ROOT / "tests/fuzz/corpus" / name, FUZZ_SECONDS, findings)

    for name, (problem, runs) in fuzzing.search_all(fuzzing.targets(ROOT), one):
        tally.add(f"fuzz: {name}, {runs} inputs", "FAIL" if problem else "ok", None, problem or "")


def fuzz(tally, builds):
    """libFuzzer on every parser of outside data; tools/fuzz is the same for long."""
    del builds
    where = build(tally, "fuzz", FUZZ_BUILD, "fuzzers")
    if where:
        fuzz_targets(tally, where)


def many_schedules(tally, builds, what, option, migrations):
    """Random schedules of migrations, in as many processes as there are CPUs."""
    started = time.monotonic()
    code, out = run([str(builds["release"] / "tests/integration/test_chaos"), option, str(migrations),
                     "--jobs", str(min(os.cpu_count() or 1, 16))], TEST_TIMEOUT)
    tally.add(f"random schedules: {what}, {migrations} migrations", "ok" if code == 0 else "FAIL",
              time.monotonic() - started, tail(out))


def same_schedules(tally, builds):
    """One seed is one schedule, whoever compiled it: the digests that both builds print say so."""
    started = time.monotonic()
    said = {run([str(builds[name] / "tests/integration/test_chaos"), "--migrations", str(SAME_MIGRATIONS)],
                TEST_TIMEOUT) for name in ("release", "clang")}
    same = len(said) == 1 and not next(iter(said))[0]
    tally.add(f"random schedules: the same from gcc and clang, {SAME_MIGRATIONS} migrations",
              "ok" if same else "FAIL", time.monotonic() - started, "\n".join(tail(out) for _, out in said))


def integration(tally, builds):
    """With sanitizers; then random schedules of migrations, as many as a fast build can do in two or three minutes."""
    if builds.get("dev"):
        meson_tests(tally, builds["dev"], "integration")
    if builds.get("release"):
        many_schedules(tally, builds, "fixed seeds", "--migrations", MIGRATIONS)
        many_schedules(tally, builds, "fresh seeds", "--fresh", FRESH_MIGRATIONS)
    if builds.get("release") and builds.get("clang"):
        same_schedules(tally, builds)


def threads(tally, builds):
    """Where threads of ours meet, under the thread sanitizer: strands, store, HTTP, libvirt's events, the plugin in OpenSM."""
    del builds
    where = build(tally, "tsan", TSAN, "threads")
    if where:
        meson_tests(tally, where, "threads", ROOT / "tests/threads.py")


def run_for_coverage(tally, where, suite):
    """The suite has to run as a whole, else the figure is of something else."""
    started = time.monotonic()
    log, listed = where / "meson-logs/testlog.json", set(listed_tests(where, suite))
    log.unlink(missing_ok=True)
    run(meson_test(where, suite), TEST_TIMEOUT)
    ends = {e["name"].rpartition(" / ")[2]: e["result"] for e in read_log(log)}
    good = {name for name in listed if ends.get(name) in ("OK", "EXPECTEDFAIL")}
    skipped = {name for name in listed & allowed_skips() if ends.get(name) == "SKIP"}
    bad = listed - good - skipped - SLOW_WHEN_COUNTED
    tally.add(f"coverage: suite {suite}, {len(good)} tests", "ok" if good and not bad else "FAIL", time.monotonic() - started,
              "failed: " + " ".join(sorted(bad)))


def coverage(tally, builds):
    """How much of the product unit and integration tests run; tools/coverage.py prints it, and leaves it in coverage.txt of that build."""
    del builds
    where = build(tally, "coverage", COVERAGE)
    if not where:
        return
    for counts in where.rglob("*.gcda"):
        counts.unlink()
    for suite in ("unit", "integration"):
        run_for_coverage(tally, where, suite)
    code, out = run([str(ROOT / "tools/coverage.py"), str(where)], BUILD_TIMEOUT)
    print("       " + out.strip().replace("\n", "\n       "), flush=True)
    tally.add("coverage: not below docs/HACKING.md", "FAIL" if code else "ok")


def rig(tally, builds, until=None):
    """The cases on pairs of hypervisor VMs; run.py prints its own lines and leaves a result file."""
    del builds
    runner = ROOT / "tests/rig/run.py"
    if not runner.exists():
        return
    if os.geteuid() != 0:
        tally.add("rig", "skip", None, "needs root (it builds a root file system)")
        return
    results = cache_dir() / "rig-results.json"
    results.unlink(missing_ok=True)
    limit = [] if until is None else ["--minutes", str(max(0, until - time.monotonic()) / 60)]
    with subprocess.Popen([str(runner), "--pairs", "auto", "--results", str(results), *limit,
                           "--matrix", str(cache_dir() / "crash-matrix-rig.md")]) as p:
        try:
            code = p.wait(RIG_TIMEOUT)
        except subprocess.TimeoutExpired:
            p.terminate()  # it ends its hypervisors
            code = 124
        except BaseException:
            p.terminate()
            raise
    count_rig(tally, code, json.loads(results.read_text()) if results.exists() else [])


def rig_cases(*options):
    """Names of the rig's cases, as its runner lists them."""
    code, out = run([str(ROOT / "tests/rig/run.py"), "--list", *options], 60)
    return [] if code else [line for line in out.splitlines() if not line.startswith(" ")]


def count_rig(tally, code, found):
    """Count the runner's records, whose lines it has printed itself; a case without a record has failed."""
    allowed = allowed_skips()
    names = collections.Counter(rig_cases("--long"))
    failed = tally.failed
    left_out = sum(case["result"] == "skip" and case.get("problem") == "time" for case in found)
    if left_out > LEFT_OUT_AT_MOST * sum(names.values()):
        tally.add(f"rig: {left_out} of {sum(names.values())} cases were left out for want of time", "FAIL")
    for case in found:
        name = f"rig: {case['name']}"
        if case["result"] == "ok":
            tally.passed += 1
        elif case["result"] == "skip" and (name in allowed or case.get("problem") == "time"):
            tally.skipped += 1
        elif case["result"] == "skip":
            tally.add(f"{name}: skipped, and not in tests/skips.txt", "FAIL")
        else:
            tally.fail(name, case["problem"].splitlines()[:WHY_LINES])
    for name in (names - collections.Counter(c["name"] for c in found)).elements():
        tally.add(f"rig: {name}: no result (the runner's exit code was {code})", "FAIL")
    if (code and tally.failed == failed) or not names:
        tally.add(f"rig runner: {sum(names.values())} cases, exit code {code}", "FAIL")


def tap_program(tally, argv, timeout):
    """Run a program that prints TAP and count its cases; without a plan that fits them it has failed."""
    code, out = run(argv, timeout)
    cases = re.findall(r"^(ok|not ok)\b[ \d-]*(.*)\n((?:(?!ok|not ok|1\.\.).*\n)*)", out + "\n", re.M)
    for result, name, said in cases:
        result = "skip" if "# SKIP" in name else "ok" if result == "ok" else "FAIL"
        tally.add(name.partition(" # ")[0], result, None, said)
    plan = re.search(r"^1\.\.(\d+)$", out, re.M)
    bad = sum(result != "ok" for result, _, _ in cases)
    if not plan or int(plan[1]) != len(cases) or not cases or bool(code) != bool(bad):
        tally.add(f"{argv[0]}: ended early, exit code {code}", "FAIL", None, tail(out))


def cloud(tally, builds):
    """Clouds' own code, as Debian packages it, with our drivers and whole agents."""
    if builds.get("dev"):
        meson_tests(tally, builds["dev"], "cloud")


def selftest(tally, builds):
    """Sabotages that the counting above has to catch."""
    del builds
    tap_program(tally, [str(ROOT / "tests/selftest/run.py")], 600)


def pristine(tally, builds):
    """README's own commands on a Debian that has nothing of ours."""
    del builds
    if os.geteuid() != 0:
        tally.add("pristine", "skip", None, "needs root (it builds a root file system)")
        return
    tap_program(tally, [str(ROOT / "tests/pristine/run.py")], PRISTINE_TIMEOUT)


def asked_for(argv):
    """(sections, the time at which the rig begins no case any more, or None); None for what cannot be understood."""
    until = None
    if argv[:1] == ["--within"]:
        if len(argv) < 2 or not argv[1].isdigit():
            return None
        until, argv = time.monotonic() + 60 * int(argv[1]), argv[2:]
    if set(argv) - set(SECTIONS):
        return None
    return argv or [name for name in SECTIONS if name not in ON_DEMAND], until


def main():
    asked = asked_for(sys.argv[1:])
    if not asked:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    wanted, until = asked
    # pyenv and friends in front of the system's python3 break meson's find_program().
    os.environ["PATH"] = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
    os.environ["LC_ALL"] = "C.UTF-8"
    sections = {"cloud": {"cloud"}, "browser": {"integration", "coverage"}, "rig": {"rig", "pristine"}}
    groups = ["build", "test"] + [group for group, users in sections.items() if users & set(wanted)]
    if subprocess.run([str(ROOT / "tools/deps"), *groups]).returncode:
        return 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    share_objects()
    choose_seeds()
    tally = Tally()
    try:
        play(tally, wanted, until)
    except KeyboardInterrupt:
        tally.add("tools/check was interrupted", "FAIL")
    return tally.summary()


def choose_seeds():
    """Fresh seeds are the clock's. In CI a commit has its own, so that what fails there fails again."""
    code, commit = run(["git", "-c", f"safe.directory={ROOT}", "rev-parse", "--short=8", "HEAD"], 60)
    if os.environ.get("CI") and code == 0:
        os.environ.setdefault("VHCA_FRESH_SEED", str(int(commit, 16)))


def play(tally, wanted, until=None):
    """These sections, in their order. What the clock says at each beginning shows where the time goes."""
    begun = time.monotonic()
    builds = {}
    if set(wanted) & {"lint", "unit", "integration", "cloud"}:
        print("== build", flush=True)
        builds = {name: build(tally, name, how) for name, how in BUILDS.items()}
    for name in SECTIONS:
        if name in wanted:
            print(f"== {name}  ({(time.monotonic() - begun) / 60:.1f} min)", flush=True)
            before = tally.passed + tally.failed + tally.skipped
            globals()[name](tally, builds, *((until,) if name == "rig" else ()))
            if tally.passed + tally.failed + tally.skipped == before:
                tally.add(f"{name}: nothing was counted", "FAIL")


if __name__ == "__main__":
    sys.exit(main())
