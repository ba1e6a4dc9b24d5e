"""A headless Chromium, driven over a pipe with the DevTools protocol: no driver, no port, no further package."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FLAGS = (
    *(
        "--headless",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--remote-debugging-pipe",
    ),
    *("--disable-gpu", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-quic",
    ),
)

# Chromium reads commands from descriptor 3 and writes to 4.
LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); "
    "os.execv(sys.argv[3], sys.argv[3:])"
)


def find_chromium() -> str | None:
    """The path of Chromium or Chrome, if it is installed."""
    return next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )


class Page:
    """One page: opened from a file, looked at, touched. ``errors`` and ``requests`` are what it must not have.

    Leave it with `close`, or use it as a context.
    """

    def __init__(
        self, path: Path, width: int = 1280, height: int = 800, touch: bool = False
    ) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.replies: dict[int, Any] = {}
        self.sent, self.unread, self.session = 0, b"", None
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        reads, to_browser = os.pipe()
        self.from_browser, writes = os.pipe()
        command = [
            find_chromium() or "chromium",
            *FLAGS,
            f"--user-data-dir={self.folder.name}",
            "--no-startup-window",
        ]
        ends = [
            fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (reads, writes)
        ]  # out of the way of 3 and 4
        launch = [sys.executable, "-c", LAUNCH, *map(str, ends), *command]
        self.process = subprocess.Popen(launch, pass_fds=ends, stderr=subprocess.DEVNULL)
        for end in (reads, writes, *ends):
            os.close(end)
        self.pipe = os.fdopen(to_browser, "wb", buffering=0)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=self.folder.name)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=touch,
        )
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch)
        self.call("Page.navigate", url=path.absolute().as_uri())
        self.wait("location.protocol === 'file:' && document.readyState === 'complete'")

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser."""
        self.process.kill()
        self.process.wait()
        self.pipe.close()
        os.close(self.from_browser)
        self.folder.cleanup()

    def call(self, method: str, seconds: float = 60, **parameters: Any) -> Any:
        """Send a command of the protocol; return its result."""
        self.sent += 1
        number = self.sent
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.pipe.write(json.dumps(message).encode() + b"\0")
        until = time.monotonic() + seconds
        while number not in self.replies:
            self._read(until - time.monotonic())
        reply = self.replies.pop(number)
        if "error" in reply:
            raise RuntimeError(f"{method}: {reply['error']['message']}")
        return reply["result"]

    def _read(self, seconds: float) -> None:
        if not select.select([self.from_browser], [], [], max(seconds, 0))[0]:
            raise TimeoutError("Chromium does not answer")
        received = os.read(self.from_browser, 1 << 20)
        if not received:
            raise RuntimeError("Chromium has ended")
        *messages, self.unread = (self.unread + received).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self.replies[message["id"]] = message
            else:
                self._hear(message["method"], message["params"])

    def _hear(self, event: str, values: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(values["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled" and values["type"] in (
            "error",
            "warning",
            "assert",
        ):
            self.errors.append(json.dumps(values["args"]))
        elif event == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            if (
                "GL Driver Message (OpenGL, Performance" not in values["entry"]["text"]
            ):  # software GL says it is slow
                self.errors.append(values["entry"]["text"])
        elif event == "Network.requestWillBeSent" and not values["request"]["url"].startswith(
            ("data:", "blob:")
        ):
            self.requests.append(values["request"]["url"])

    def value(self, script: str, seconds: float = 60) -> Any:
        """Run a script in the page and return its value; promises are awaited."""
        reply = self.call(
            "Runtime.evaluate", seconds, expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in reply:
            raise RuntimeError(json.dumps(reply["exceptionDetails"]))
        return reply["result"].get("value")

    def wait(self, script: str, seconds: float = 30) -> None:
        """Wait until a script in the page returns a true value."""
        until = time.monotonic() + seconds
        while not self.value(f"Boolean({script})"):
            if time.monotonic() > until:
                raise TimeoutError(f"still not: {script}. {self.errors}")
            time.sleep(0.05)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Send a mouse event: moved, pressed, released or wheel."""
        names = {
            "moved": "mouseMoved",
            "pressed": "mousePressed",
            "released": "mouseReleased",
            "wheel": "mouseWheel",
        }
        self.call("Input.dispatchMouseEvent", type=names[kind], x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        """Press and release the mouse."""
        for kind in ("moved", "pressed", "released"):
            self.mouse(
                kind, x, y, **({} if kind == "moved" else {"button": "left", "clickCount": 1})
            )

    def click_on(self, selector: str) -> None:
        """Click into the middle of an element."""
        box = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        self.click(
            *self.value(f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({box})")
        )

    def type(self, text: str) -> None:
        """Type a text, or press a key by its name, such as Enter."""
        if text in ("Enter", "Escape", "ArrowDown"):
            code = {"Enter": 13, "Escape": 27, "ArrowDown": 40}[text]
            for kind in ("keyDown", "keyUp"):
                pressed = (
                    {"text": "\r"} if text == "Enter" and kind == "keyDown" else {}
                )  # a button needs the character
                self.call(
                    "Input.dispatchKeyEvent",
                    type=kind,
                    key=text,
                    windowsVirtualKeyCode=code,
                    **pressed,
                )
        else:
            self.call("Input.insertText", text=text)

    def touch(self, kind: str, *points: tuple[float, float]) -> None:
        """Send a touch event (Start, Move or End) with all fingers that are down."""
        fingers = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        self.call("Input.dispatchTouchEvent", type=f"touch{kind}", touchPoints=fingers)

    def screenshot(self, path: Path) -> None:
        """The page as a PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
