# SPDX-License-Identifier: LGPL-2.1-or-later
"""The crash matrix on real parts: each case breaks the migrations of one guest at the steps of one column (docs/crash-matrix.md)."""

from kit.case import case
from kit.cells import Breaker, Cell, fault_points
from kit.migration import moving

SOURCE_STEPS = ("migration claiming", "migration detaching", "VF detaching", "VF scrubbing", "migration copying", "migration finishing")
DESTINATION_STEPS = ("migration reserving", "migration reserved", "migration programming", "migration incoming",
                     "migration attaching", "migration done")


def both_sides_of(side, steps, party):
    return [Cell(side, when, step, party) for step in steps for when in ("before", "after")]


def broken(rig, cells, begin=None):
    """All of these cells, on one guest that goes to and fro."""
    with fault_points():
        breaker = Breaker(moving(rig, memory=128))
        breaker.run(cells, begin)
    return breaker.results


@case(long=True)
def source_agent(rig):
    """SIGKILL of the source's agent before and after each of its transactions."""
    return broken(rig, both_sides_of("source", SOURCE_STEPS, "source agent"))


@case(long=True)
def destination_agent(rig):
    """SIGKILL of the destination's agent before and after each of its transactions."""
    return broken(rig, both_sides_of("destination", DESTINATION_STEPS, "destination agent"))


@case(long=True)
def libvirtd(rig):
    """SIGKILL of either libvirtd while an agent is about to need it."""
    return broken(rig, [
        Cell("source", "after", "VF detaching", "source libvirtd"),
        Cell("source", "before", "migration copying", "source libvirtd"),
        Cell("source", "after", "migration copying", "source libvirtd"),
        Cell("source", "before", "migration finishing", "source libvirtd"),
        Cell("destination", "after", "migration reserved", "destination libvirtd"),
        Cell("destination", "after", "migration incoming", "destination libvirtd"),
        Cell("destination", "before", "migration attaching", "destination libvirtd"),
        Cell("destination", "after", "VF attached", "destination libvirtd")])


@case
def opensm(rig):
    """SIGKILL of OpenSM with the plugin where its answer is waited for."""
    return broken(rig, [
        Cell("source", "after", "migration detaching", "OpenSM"),
        Cell("source", "after", "VF scrubbing", "OpenSM"),
        Cell("destination", "before", "migration programming", "OpenSM"),
        Cell("destination", "after", "migration programming", "OpenSM"),
        Cell("destination", "before", "VF attached", "OpenSM"),
        Cell("source", "after", "migration finishing", "OpenSM")])


@case(long=True)
def link_cut(rig):
    """The same with the link between the hypervisors cut for a while, IB cable and libvirt's connection included."""
    return broken(rig, [
        Cell("source", "before", "migration copying", "source agent", cut=True),
        Cell("source", "after", "migration copying", "source agent", cut=True),
        Cell("destination", "after", "migration reserved", "destination agent", cut=True),
        Cell("destination", "before", "migration attaching", "destination agent", cut=True),
        Cell("destination", "after", "migration programming", "OpenSM", cut=True),
        Cell("source", "before", "migration finishing", "source libvirtd", cut=True)])


@case(long=True)
def cancelled(rig):
    """A copy that was cancelled: SIGKILL on the way back."""
    cells = (both_sides_of("source", ("migration aborting", "migration restoring"), "source agent")
             + both_sides_of("destination", ("migration ending",), "destination agent"))
    return broken(rig, cells, Breaker.cancel_in_the_copy)
