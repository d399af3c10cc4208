# SPDX-License-Identifier: LGPL-2.1-or-later
"""The crash matrix on real parts: each case breaks the migrations of one guest at some of the cells."""

from kit.base import say
from kit.case import case, equal
from kit.cells import Breaker, fault_points
from kit.matrix import CELLS, COLUMNS, PAGE, cells_of, differences, kills_of, rows_of, turn
from kit.migration import moving


NOW = cells_of(turn())  # once: HEAD may move and midnight pass before the case is played


def matrix_case(cells, **more):
    """A case that breaks a migration at these cells."""
    return case(kills=kills_of(cells), **more)


def broken(rig, cells):
    """All of these cells, on one guest that goes to and fro."""
    with fault_points():
        breaker = Breaker(moving(rig, memory=128))
        breaker.run(cells)
    for text in differences(breaker.results):
        say(f"       note: {text}")
    return breaker.results


@matrix_case(NOW)
def rotation(rig):
    """SIGKILL at four of the fifty cells, other ones after each commit."""
    equal(list(rows_of(PAGE.read_text())), [str(cell) for cell in CELLS], f"cells of {PAGE.name}")
    return broken(rig, NOW)


@matrix_case(COLUMNS["source agent"], long=True)
def source_agent(rig):
    """SIGKILL of the source's agent before and after each of its transactions."""
    return broken(rig, COLUMNS["source agent"])


@matrix_case(COLUMNS["destination agent"], long=True)
def destination_agent(rig):
    """SIGKILL of the destination's agent before and after each of its transactions."""
    return broken(rig, COLUMNS["destination agent"])


@matrix_case(COLUMNS["libvirtd"], long=True)
def libvirtd(rig):
    """SIGKILL of either libvirtd while an agent is about to need it."""
    return broken(rig, COLUMNS["libvirtd"])


@matrix_case(COLUMNS["OpenSM"], long=True)
def opensm(rig):
    """SIGKILL of OpenSM with the plugin where its answer is waited for."""
    return broken(rig, COLUMNS["OpenSM"])


@matrix_case(COLUMNS["link cut"], long=True)
def link_cut(rig):
    """The same with the link between the hypervisors cut for a while, IB cable and libvirt's connection included."""
    return broken(rig, COLUMNS["link cut"])


@matrix_case(COLUMNS["cancelled"], long=True)
def cancelled(rig):
    """A copy that was cancelled: SIGKILL on the way back."""
    return broken(rig, COLUMNS["cancelled"])
