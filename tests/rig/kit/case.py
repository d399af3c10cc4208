# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a case is: a function with a docstring that says what it shows."""

from kit.base import RigError, wait_for
from kit.guest import Guest, request
from kit.host import VFS, Host

CASES = []


class Failure(Exception):
    """A case did not see what it must see."""


class Rig:
    """What a case gets: both hypervisors and a place for what belongs to a story of several cases."""

    def __init__(self):
        self.hva, self.hvb = Host("hva"), Host("hvb")
        self.hosts = (self.hva, self.hvb)
        self.story = {}
        self.watch = None  # kit/runner.py sets it

    def guest(self, host, number, *vfs, **options):
        """A guest vmN that asks for these (name, partition) pairs."""
        return Guest(host, f"vm{number}", number, request(*vfs), **options)


class Case:
    """A function and how to treat what is around it."""

    def __init__(self, function, story=False, dirty=False, long=False, kills=(), expects=()):
        self.function, self.story, self.dirty, self.long = function, story, dirty, long
        self.kills, self.expects = kills, expects
        area = function.__module__.rpartition(".")[2].lstrip("0123456789_")
        self.name = f"{area}: {function.__name__.replace('_', ' ')}"
        self.shows = (function.__doc__ or "").strip().splitlines()[0]


def case(function=None, *, story=False, dirty=False, long=False, kills=(), expects=()):
    """Register a case. story=True: it continues where the one before it stopped, nothing is cleaned between.
    dirty=True: it leaves what the agent cannot tidy up; the hypervisors are reset after it.
    long=True: five minutes and more on a machine of its own; it runs only when it is asked for.
    kills: whom it stops, restarts or kills, as "hva vhcad", or "vhcad" for those of both; also opensm-vhcad, libvirtd,
    adapter (its driver is loaded anew) and boot. Nobody else may end, and those have to.
    expects: patterns of what kit/watch.py will say because the case wants it so; it has to say that."""
    def register(f):
        CASES.append(Case(f, story, dirty, long, kills, expects))
        return f
    return register(function) if function else register


def check(condition, text):
    if not condition:
        raise Failure(text)


def equal(found, expected, what):
    if found != expected:
        raise Failure(f"{what}: expected {expected!r}, found {found!r}")


def free_vfs(host):
    """Addresses of the VFs that the agent calls free."""
    return sorted(b for b, v in host.agent_vfs().items() if v["state"] == "free")


def assert_scrubbed(host, *bdfs):
    """Truth, not the agent's word: no P_Key, no GUID, on vfio-pci. The alias goes when the SM has answered; nobody reaches it without a key."""
    facts = host.facts()
    for bdf in bdfs:
        equal(facts.pkey_map(bdf), {}, f"{host.name} {bdf}: P_Key map")
        equal(f"{facts.admin_guid(bdf):016x}", "f" * 16, f"{host.name} {bdf}: admin_guids")
        wait_for(lambda b=bdf: host.facts().granted_guid(b) == 0, 60, f"{host.name} {bdf}: the SM to take the GUID back")
        equal(host.driver(bdf), "vfio-pci", f"{host.name} {bdf}: driver")


__all__ = ["CASES", "Failure", "Guest", "Rig", "RigError", "VFS", "assert_scrubbed", "case", "check", "equal",
           "free_vfs", "request"]
