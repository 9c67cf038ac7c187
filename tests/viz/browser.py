"""A headless Chromium, driven over a pipe in its own protocol: no driver, no port, nothing to install but the browser.

    with Browser() as browser:
        browser.open(path)
        browser.press("ArrowRight")
        browser.value("document.title")

Source: the Chrome DevTools Protocol; with `--remote-debugging-pipe` the browser reads JSON messages that end with a
zero byte from file 3 and writes its own to file 4.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 120  # seconds, for a machine that has much to do
CODES = {"ArrowRight": 39, "ArrowLeft": 37, "ArrowUp": 38, "ArrowDown": 40, "Home": 36, "End": 35, " ": 32, "Enter": 13}


def chromium():
    """The path of a Chromium or Chrome, or None. REDISPATCH_BROWSER says which."""
    return os.environ.get("REDISPATCH_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with one page."""

    def __init__(self, width=1440, height=900):
        self.folder = tempfile.TemporaryDirectory(prefix="redispatch-browser-", ignore_cleanup_errors=True)
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        command = [
            chromium(), "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-dev-shm-usage", "--disable-background-networking", "--disable-extensions", "--hide-scrollbars",
            "--force-color-profile=srgb", f"--window-size={width},{height}", f"--user-data-dir={self.folder.name}",
            "about:blank",
        ]  # fmt: skip
        # The browser wants its pipe at 3 and 4. First both ends go out of the way: one of them may be 3 or 4 itself.
        script = f'exec 8<&{to_browser} 9>&{from_browser}; exec 3<&8 4>&9 8<&- 9>&-; exec "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "browser", *command],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.last, self.session, self.problems = b"", 0, None, []
        page = next(t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        self.ask("Page.enable")
        self.ask("Runtime.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **size)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        os.close(self.write_end)
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read_end)
        self.folder.cleanup()

    # The protocol -----------------------------------------------------------------------------------------------------

    def ask(self, method, **params):
        """The browser's answer to a message. RuntimeError where it refuses."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _receive(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_end], [], [], max(0, end - time.monotonic()))
            part = os.read(self.read_end, 1 << 20) if ready else b""
            if not part:
                raise RuntimeError("the browser does not answer")
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        found = json.loads(message)
        if found.get("method") == "Runtime.exceptionThrown":
            self.problems.append(found["params"]["exceptionDetails"])
        return found

    # What tests do ----------------------------------------------------------------------------------------------------

    def open(self, path):
        """Opens a file and waits until its scripts have run. AssertionError for an exception in them."""
        self.ask("Page.navigate", url=Path(path).resolve().as_uri())
        end = time.monotonic() + PATIENCE
        while self.value("document.readyState + location.protocol") != "completefile:":
            assert time.monotonic() < end, "the page does not load"
            time.sleep(0.05)
        assert not self.problems, self.problems

    def value(self, expression):
        """The value of a JavaScript expression."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key):
        """A key, pressed and released."""
        event = {"key": key, "windowsVirtualKeyCode": CODES.get(key, ord(key[0].upper()))}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **event)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **event)
        assert not self.problems, self.problems

    def type(self, text):
        self.ask("Input.insertText", text=text)

    def click(self, selector):
        """A click of the mouse in the middle of an element."""
        box = self.value(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])"
            f"(document.querySelector({selector!r}).getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
        assert not self.problems, self.problems

    def text(self, selector):
        return self.value(f"document.querySelector({selector!r}).textContent")

    def texts(self, selector):
        return self.value(f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)")

    def screenshot(self, path):
        Path(path).write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))
