#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fuzz for long, as before a release: tools/fuzz [--seconds N] [--no-merge] [TARGET...]

Each target searches for ten minutes (--seconds), two at a time, from its corpus and from what earlier runs have found,
which is kept in the cache. Then what reaches code that the corpus does not is added to tests/fuzz/corpus, minimised; look
at it, and commit it. Findings fail: they are printed with their inputs, and nothing of that target is merged.
"""

import argparse
import subprocess
import sys

import check
import fuzzing

MERGE_SECONDS = 600


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all of them without")
    parser.add_argument("--seconds", type=int, default=600, help="for each (600)")
    parser.add_argument("--no-merge", action="store_true", help="leave tests/fuzz/corpus as it is")
    args = parser.parse_args()
    known = fuzzing.targets(check.ROOT)
    unknown = set(args.targets) - set(known)
    if unknown:
        parser.error(f"no target {', '.join(sorted(unknown))}: there are {', '.join(known)}")
    args.targets = args.targets or known
    return args


def merge(program, corpus, found):
    """Add to the corpus what of `found` reaches new code; (how many files, or what is wrong)."""
    before = len(list(corpus.iterdir()))
    # The fewest files, and for edges alone: by how often each was taken the corpus would grow threefold.
    argv = fuzzing.command(program, 0, found.parent, corpus, found)
    argv[1:2] = ["-set_cover_merge=1", "-use_counters=0"]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=MERGE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"merging took more than {MERGE_SECONDS} s"
    if done.returncode:
        return "merging failed:\n" + check.tail(done.stdout.decode(errors="replace"), 12)
    return len(list(corpus.iterdir())) - before


def play(args, name, where):
    """Search, then merge: (None or what is wrong, what to say)."""
    program = where / f"tests/fuzz/fuzz_{name}"
    corpus = check.ROOT / "tests/fuzz/corpus" / name
    found = check.cache_dir() / "fuzz-corpus" / name
    found.mkdir(parents=True, exist_ok=True)
    problem, runs = fuzzing.search(program, corpus, args.seconds, check.cache_dir() / "fuzz-findings", found)
    if problem or args.no_merge:
        return problem, f"{runs} inputs"
    added = merge(program, corpus, found)
    return (None, f"{runs} inputs, {added} added") if isinstance(added, int) else (added, f"{runs} inputs")


def main():
    args = arguments()
    tally = check.Tally()
    where = check.build(tally, "fuzz", check.FUZZ_BUILD, ["fuzzers"])
    if where:
        for name, (problem, said) in fuzzing.search_all(args.targets, lambda name: play(args, name, where)):
            tally.add(f"fuzz: {name}, {said}", "FAIL" if problem else "ok", None, problem or "")
    return tally.summary()


if __name__ == "__main__":
    sys.exit(main())
