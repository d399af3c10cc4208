# SPDX-License-Identifier: LGPL-2.1-or-later
"""The steps of tools/demo, each as a case of its own."""

from kit.case import case
from kit.story import STEPS, Story


def add(step, text, first):
    """Register one step; the first one begins the story, the others continue it."""
    def run(rig):
        step(rig.story.setdefault("demo", Story(rig)))
    run.__name__, run.__doc__, run.__module__ = step.__name__, text, __name__
    case(run, story=not first)


for number, (one, what) in enumerate(STEPS):
    add(one, what, number == 0)
