# SPDX-License-Identifier: LGPL-2.1-or-later
"""Seeds of random tests: one that is always the same, and a fresh one each run, which is printed with the command that repeats it.

VHCA_SEED in the environment takes the place of both, VHCA_FRESH_SEED that of the fresh one. What has failed with a fresh one
stays, as a fixed one of that test.
"""

import os
import random
import sys
import time

GIVEN = os.environ.get("VHCA_SEED")
FIXED = GIVEN or "1"
FRESH = GIVEN or os.environ.get("VHCA_FRESH_SEED") or str(time.time_ns() // 1000 % 1000000000)
ENGINES = ("minhop", "updn", "ftree", "dfsssp")


def engine(seed):
    """The routing engine that it draws."""
    return random.Random(f"{seed} engine").choice(ENGINES)


def tell(seed):
    """Says how the test program that runs is repeated with it."""
    program = os.path.basename(sys.argv[0]).removeprefix("test_").removesuffix(".py")
    print(f"# VHCA_SEED={seed} meson test -C BUILD -v {program}", flush=True)
    return seed


def cases(case, *fixed):
    """Gives a class, that has run_seed(seed), a case for each of these and one for the fresh seed; for VHCA_SEED alone, if it is there."""
    for seed in () if GIVEN else fixed:
        setattr(case, f"test_seed_{seed}", lambda self, seed=seed: self.run_seed(seed))
    setattr(case, "test_fresh_seed", lambda self: self.run_seed(FRESH))
