"""A headless Chromium, spoken to through a pipe: no port, no network, nothing beyond Python itself."""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time


class BrowserError(Exception):
    """The browser did not do what it was asked."""


class Browser:
    """Starts a browser with one page; leaving the `with` block ends it and all it has started."""

    def __init__(self, limit_secs=30):
        self.limit_secs = limit_secs
        self.sent = 0
        self.buffer = b""
        # What the page complained about, and what it asked the network for.
        self.complaints = []
        self.requests = []

    def __enter__(self):
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        if not program:
            raise BrowserError("chromium is not installed; ci/setup.sh installs it")
        self.home = tempfile.mkdtemp(prefix="cobre-browser-")
        to_browser, self.commands = os.pipe()
        self.answers, from_browser = os.pipe()

        def descriptors():
            # Chromium reads commands from 3 and writes answers to 4; first out of each other's way.
            high = [os.dup2(to_browser, 100), os.dup2(from_browser, 101)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        options = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-extensions", "--hide-scrollbars", "--force-color-profile=srgb",
            "--remote-debugging-pipe", f"--user-data-dir={self.home}", "about:blank",
        ]
        self.process = subprocess.Popen(
            [program, *options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=descriptors, close_fds=False, start_new_session=True,
            env={**os.environ, "HOME": self.home},
        )
        os.close(to_browser)
        os.close(from_browser)
        self.session = None
        pages = [of for of in self.ask("Target.getTargets")["targetInfos"] if of["type"] == "page"]
        self.session = self.ask("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.ask(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        try:
            # It started a session of its own, so this is it and its children, and nobody else.
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        # Its children may be writing until they are gone.
        for _ in range(50):
            shutil.rmtree(self.home, ignore_errors=True)
            if not os.path.exists(self.home):
                break
            time.sleep(0.1)

    def ask(self, method, **params):
        """Sends a command and returns its answer."""
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        return self.read_until(lambda found: found.get("id") == self.sent, method)

    def read_until(self, wanted, what):
        end = time.monotonic() + self.limit_secs
        while True:
            while b"\0" in self.buffer:
                text, self.buffer = self.buffer.split(b"\0", 1)
                found = json.loads(text)
                self.note(found)
                if wanted(found):
                    if "error" in found:
                        raise BrowserError(f"{what}: {found['error']['message']}")
                    return found.get("result", found)
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.answers], [], [], left)[0]:
                raise BrowserError(f"{what}: no answer within {self.limit_secs} s")
            part = os.read(self.answers, 1 << 20)
            if not part:
                raise BrowserError(f"{what}: the browser ended")
            self.buffer += part

    def note(self, event):
        """Keeps what a sound page does not cause."""
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, path):
        """Opens a file and waits until it is loaded and drawn."""
        self.ask("Page.navigate", url=f"file://{os.path.abspath(path)}")
        self.read_until(lambda found: found.get("method") == "Page.loadEventFired", "loading the page")
        self.settle()

    def settle(self):
        """Waits until what was changed is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def mouse(self, kind, x, y, **more):
        """Moves the mouse, or presses or releases its button."""
        button = {"mousePressed": "left", "mouseReleased": "left"}.get(kind, more.pop("button", "none"))
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1, **more)

    def size(self, width, height, phone=False):
        """Gives the window a size."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=2 if phone else 1, mobile=phone)
        self.settle()

    def media(self, kind="", scheme="light"):
        """Shows the page as it is, or as on a `screen` or in `print`, for those who like it light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", media=kind, features=features)
        self.settle()

    def screenshot(self, path, whole=True):
        """Writes a picture of the page."""
        if whole:
            self.run("scrollTo({top: 0, behavior: 'instant'})")
            self.settle()
        answer = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))

    def pdf(self):
        """The page as it is printed."""
        answer = self.ask("Page.printToPDF", printBackground=False, preferCSSPageSize=True)
        return base64.b64decode(answer["data"])
