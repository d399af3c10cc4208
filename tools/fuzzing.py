# SPDX-License-Identifier: LGPL-2.1-or-later
"""The fuzz targets as tools/check and tools/fuzz run them: each for some seconds, two at a time."""

import base64
import concurrent.futures
import pathlib
import re
import subprocess
import tempfile

PARALLEL = 2
INPUT_SECONDS = 10  # one input that takes longer is a finding
MEMORY_MB = 1024
INPUT_MAX = 4096  # bytes, or what the longest seed has: libFuzzer cuts off what is longer
GRACE = 120  # for the corpus, and for a slow machine
MORE = 10  # times as long, if the seconds were used up by the corpus


def targets(root):
    """Names of the targets, as tests/fuzz/meson.build has them."""
    text = (pathlib.Path(root) / "tests/fuzz/meson.build").read_text()
    return re.findall(r"^fuzz_targets \+= \{'(\w+)'", text, re.M)


def input_max(corpora):
    return max([INPUT_MAX, *(seed.stat().st_size for corpus in corpora for seed in pathlib.Path(corpus).iterdir())])


def command(program, seconds, findings, *corpora):
    """One target's command line; what it finds new goes into the first of the corpora."""
    return [str(program), f"-max_total_time={seconds}", f"-timeout={INPUT_SECONDS}", f"-rss_limit_mb={MEMORY_MB}",
            f"-max_len={input_max(corpora)}", "-print_final_stats=1", f"-artifact_prefix={findings}/{pathlib.Path(program).name}-",
            *map(str, corpora)]


def reproducer(output):
    """Where the input of a finding is, and the input itself if it is short."""
    found = re.search(r"Test unit written to (\S+)", output)
    if not found:
        return ""
    data = pathlib.Path(found[1]).read_bytes()
    short = f"\nbase64: {base64.b64encode(data).decode()}" if len(data) <= 768 else ""
    return f"\nreproducer: {found[1]}{short}"


def searched(output):
    """It has played more than its seeds, and the empty input that it begins with."""
    runs = re.search(r"^Done (\d+) runs in", output, re.M)
    seeds = re.search(r"seed corpus: files: (\d+)", output)
    return bool(runs and seeds and int(runs[1]) > int(seeds[1]) + 1)


def verdict(code, output):
    """None if all was well, else what to say."""
    if code:
        lines = [line for line in output.splitlines() if re.search(r"ERROR: |SUMMARY: |#\d+ .* /\S+\.[ch]:\d+", line)]
        return f"exit code {code}\n" + "\n".join(lines[:10] or output.splitlines()[-12:]) + reproducer(output)
    if not searched(output):
        return "it has searched nothing:\n" + "\n".join(output.splitlines()[-12:])
    return None


def play(argv, seconds):
    """(exit code, output) of a target; a hang that it does not see itself is 124."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=seconds + GRACE, check=False)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as e:
        return 124, (e.stdout or b"").decode(errors="replace")


def search(program, corpus, seconds, findings, keep=None):
    """Search with one target: (None or what is wrong, executions). New seeds go to keep, or are thrown away."""
    findings.mkdir(parents=True, exist_ok=True)
    if not program.exists() or not corpus.is_dir() or not any(corpus.iterdir()):
        return f"{program} or its corpus {corpus} is missing", 0
    with tempfile.TemporaryDirectory(prefix="vhca-fuzz-") as scratch:
        for allowed in (seconds, MORE * seconds):
            code, output = play(command(program, allowed, findings, keep or scratch, corpus), allowed)
            if code or searched(output):
                break
    runs = re.search(r"^Done (\d+) runs in", output, re.M)
    return verdict(code, output), int(runs[1]) if runs else 0


def search_all(names, one):
    """Call one(name) for each, PARALLEL at a time; yield (name, result) as they end."""
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        jobs = {pool.submit(one, name): name for name in names}
        try:
            for job in concurrent.futures.as_completed(jobs):
                yield jobs[job], job.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)    # who interrupts does not wait for those not begun
