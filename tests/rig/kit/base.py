# SPDX-License-Identifier: LGPL-2.1-or-later
"""Places, the lock, running commands, waiting."""

import fcntl
import hashlib
import os
import pathlib
import subprocess
import sys
import time

RIG = pathlib.Path(__file__).resolve().parent.parent
ROOT = RIG.parent.parent
CACHE = pathlib.Path(os.environ.get("VHCA_CACHE") or "/var/cache/vhcad-dev") / "rig"
RUN = CACHE / ("run-" + os.environ.get("VHCA_RIG", "default"))
# Time-outs are about five times what an idle machine of two cores needs; a busy one may set more.
SLOW = float(os.environ.get("VHCA_RIG_SLOW", "1"))
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"


class RigError(Exception):
    """Something that the user should read; the text says what and what to do."""


class NoAnswer(RigError):
    """Nobody answers. Where something is waited for, who is being started again may answer later."""


def say(text):
    print(text, flush=True)


def run(argv, timeout=600, cwd=None, stdin=None, env=None, check=True):
    """Run a command on this machine and return its output; raise RigError when it fails."""
    try:
        p = subprocess.run([str(a) for a in argv], cwd=cwd, timeout=timeout, input=stdin,
                           stdin=subprocess.DEVNULL if stdin is None else None,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           env={**os.environ, "PATH": SYSTEM_PATH, "LC_ALL": "C.UTF-8", **(env or {})})
    except subprocess.TimeoutExpired as e:
        raise RigError(f"{argv[0]}: no result in {timeout} s\n{(e.stdout or b'')[-2000:].decode(errors='replace')}")
    out = p.stdout.decode(errors="replace")
    if check and p.returncode:
        raise RigError(f"{' '.join(str(a) for a in argv)[:300]}: exit code {p.returncode}\n{out[-4000:]}")
    return out


def wait_for(condition, timeout, what, every=0.2):
    """Poll until condition() is true and return its value; RigError after timeout seconds. What comes near that is told.

    A service that a case has killed comes back meanwhile: no answer is not the value yet. Who ends without leave is the watch's
    finding (kit/watch.py). A hypervisor spends most of its one core on what is waited for: asking takes no more than a third of the time.
    """
    start, limit = time.monotonic(), timeout * SLOW
    while True:
        asked = time.monotonic()
        value, silence = None, ""
        try:
            value = condition()
        except NoAnswer as e:
            silence = f"; at last: {e}"
        cost = time.monotonic() - asked
        took = time.monotonic() - start
        if value:
            if took > limit / 2:
                say(f"       note: {took:.0f} s of {limit:.0f} s until {what[:100]}")
            return value
        if took > limit:
            raise RigError(f"not within {limit:.0f} s: {what}{silence}")
        time.sleep(max(every, 2 * cost))


def key_of(*parts):
    """Content key: strings count as they are, paths by the content of every file below them."""
    h = hashlib.sha256()
    for part in parts:
        if not isinstance(part, pathlib.Path):
            h.update(str(part).encode() + b"\0")
            continue
        if not part.exists():
            continue
        files = sorted(p for p in part.rglob("*") if p.is_file()) if part.is_dir() else [part]
        for f in files:
            if "__pycache__" in f.parts or f.suffix in (".ko", ".o", ".cmd", ".pyc"):
                continue
            mode = "x" if os.access(f, os.X_OK) else "-"
            h.update(f"{f.relative_to(part.parent)} {mode}\0".encode() + f.read_bytes() + b"\0")
    return h.hexdigest()[:12]


class Lock:
    """The rig is one: whoever changes it holds this lock, and a second run is told who that is."""

    def __init__(self, why=None):
        self.why = why or " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]])
        self.fd = None

    def __enter__(self):
        RUN.mkdir(parents=True, exist_ok=True)
        self.fd = os.open(RUN / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self.fd, 400).decode(errors="replace").strip()
            raise RigError(f"the rig is in use: held by {holder or 'an unknown process'}") from None
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, f"pid {os.getpid()} ({self.why})\n".encode(), 0)
        return self

    def __exit__(self, *exc):
        os.ftruncate(self.fd, 0)
        os.close(self.fd)
