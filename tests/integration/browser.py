# SPDX-License-Identifier: LGPL-2.1-or-later
"""Headless Chromium, by its DevTools protocol over a pipe: a JSON text and a zero byte a message."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

OPTIONS = ("--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
           "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-default-apps", "--mute-audio", "--hide-scrollbars",
           "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--no-proxy-server")


def missing():
    return None if shutil.which("chromium") else "needs chromium (tools/deps browser)"


class Browser:
    """One page of one Chromium. `said`: what its console and its policies had to say."""

    def __init__(self, width=1280, height=800):
        self.dir = tempfile.mkdtemp(prefix="vhca-browser.")
        here, there = os.pipe(), os.pipe()    # what it reads, what it writes
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []

        def prepare():
            ends = os.dup(here[0]), os.dup(there[1])    # neither is 3 or 4 then, unless it is right there already
            for fd, end in zip((3, 4), [os.dup2(end, 20 + i) for i, end in enumerate(ends)]):
                os.dup2(end, fd)
        with open(os.path.join(self.dir, "log"), "w") as log:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "chromium", *OPTIONS, *sandbox, f"--user-data-dir={self.dir}", "about:blank"],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=prepare, close_fds=False,
                                            env={**os.environ, "LD_PRELOAD": "", "HOME": self.dir})
        os.close(here[0])
        os.close(there[1])
        self.to, self.of = here[1], there[0]
        self.sent, self.buffer, self.said, self.asked, self.session = 0, b"", [], [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def _note(self, message):
        params = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])
        elif message.get("method") == "Log.entryAdded":
            self.said.append(params["entry"]["text"])
        elif message.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.said.append(json.dumps(params))
        elif message.get("method") == "Page.javascriptDialogOpening":
            self.said.append(params["message"])

    def _next(self, end):
        while b"\0" not in self.buffer:
            if not select.select([self.of], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError("Chromium does not answer")
            more = os.read(self.of, 1 << 20)
            if not more:
                with open(os.path.join(self.dir, "log"), errors="replace") as f:
                    raise AssertionError("Chromium has ended: " + f.read()[-2000:])
            self.buffer += more
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def call(self, method, timeout=60, **params):
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}
        os.write(self.to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + timeout
        while True:
            answer = self._next(end)
            if answer.get("id") != self.sent:
                self._note(answer)
            elif "error" in answer:
                raise AssertionError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def open(self, url):
        error = self.call("Page.navigate", url=url).get("errorText")
        if error:
            raise AssertionError(f"{url}: {error}")

    def evaluate(self, expression):
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise AssertionError(f"{expression}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def text(self, selector="body"):
        """What a person sees of it: no rows of a list that are not in the window."""
        return self.evaluate(f"(document.querySelector({json.dumps(selector)}) || {{}}).innerText || ''")

    def type(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if kind == "keyDown" else "")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name):
        """light or dark"""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        os.close(self.to)
        os.close(self.of)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
