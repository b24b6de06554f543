"""Debian's chromium, driven by its chromedriver: a window onto one cloud's dashboard."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from selenium.webdriver import ActionChains, Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.dashboard.browser import SESSION_COOKIE, Browser

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
MISSING = [
    package
    for package, found in (("chromium", CHROMIUM), ("chromium-driver", DRIVER))
    if found is None
]
"""Debian's packages that these tests need and this machine hasn't."""

PHONE = (390, 844)
DESK = (1280, 900)
_ARGUMENTS = (
    *("headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"),
    *("disable-background-networking", "disable-component-update", "disable-sync"),
    *("disable-dev-shm-usage", "no-proxy-server", "hide-scrollbars", "lang=en"),
)
_SECONDS = 60
#: between two looks at a page; each takes some 10 ms of CPU
_PAUSE_SECONDS = 0.25


@contextlib.contextmanager
def chromium(folder: Path) -> Iterator[Chrome]:
    """Run it with an empty profile in a folder, and keep what it logs."""
    options = ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in (*_ARGUMENTS, f"user-data-dir={folder}"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options, ChromeService(str(DRIVER)))
    try:
        driver.set_page_load_timeout(_SECONDS)
        driver.set_script_timeout(_SECONDS)
        yield driver
    finally:
        driver.quit()


class Window:
    """One window, in which one person after the other uses the dashboard."""

    def __init__(self, driver: Chrome, cloud: EmbeddedCloud) -> None:
        self.driver, self.cloud = driver, cloud
        self.base = f"{cloud.base_url}/dashboard"
        self.expected: set[str] = set()
        """Parts of what the browser may complain of."""

    def begin(self) -> None:
        """Begin as if it were new: without cookies, log and choices."""
        self.resize(DESK)
        self.scheme("light")
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        self.driver.get("about:blank")
        self.complaints()
        self.expected = set()

    # --- going about

    def take(self, person: Browser) -> None:
        """Go on with the session of somebody who is logged in."""
        self.cookie(SESSION_COOKIE, person.name)

    def cookie(self, name: str, value: str) -> None:
        """Set a cookie of the dashboard's."""
        self.driver.execute_cdp_cmd(
            "Network.setCookie",
            {
                "name": name,
                "value": value,
                "url": f"{self.base}/",
                "path": "/dashboard/",
                "httpOnly": True,
                "sameSite": "Lax",
            },
        )

    def open(self, path: str) -> None:
        """Open a page of the dashboard."""
        self.driver.get(path if "://" in path else f"{self.base}{path}")

    @property
    def path(self) -> str:
        """Where it is, below the dashboard's root."""
        return urlsplit(self.driver.current_url).path.removeprefix("/dashboard")

    def resize(self, size: tuple[int, int]) -> None:
        """Have it as large as a screen; a narrow one is a phone's."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {
                "width": size[0],
                "height": size[1],
                "deviceScaleFactor": 1,
                "mobile": size[0] < DESK[0],
            },
        )

    def scheme(self, name: str) -> None:
        """Have the system prefer light or dark."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def throttle(self, bytes_per_second: int) -> None:
        """Have uploads take time; -1: none."""
        # only requests that it watches are held back
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.driver.execute_cdp_cmd(
            "Network.emulateNetworkConditions",
            {
                "offline": False,
                "latency": 0,
                "downloadThroughput": -1,
                "uploadThroughput": bytes_per_second,
            },
        )

    # --- what there is

    def find(self, selector: str) -> WebElement:
        """Return the first element of a CSS selector, once it is there."""
        found = self.until(lambda: self.driver.find_elements(By.CSS_SELECTOR, selector))
        element: WebElement = found[0]
        return element

    def has(self, selector: str) -> bool:
        """Return whether there is such an element now."""
        return bool(self.driver.find_elements(By.CSS_SELECTOR, selector))

    @property
    def text(self) -> str:
        """What a person reads."""
        return str(self.run("return document.body.innerText"))

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page, as its debugger does: not bound by its policy."""
        return self.driver.execute_script(script, *arguments)

    def until(self, true: Callable[[], Any], seconds: float = _SECONDS) -> Any:
        """Wait until something is true, without a reload."""
        return eventually(true, seconds, _PAUSE_SECONDS)

    def until_text(self, *texts: str) -> None:
        """Wait until a person reads all of this, without a reload."""
        try:
            self.until(lambda: all(one in self.text for one in texts))
        except AssertionError as error:
            missing = [one for one in texts if one not in self.text]
            raise AssertionError(f"never {missing} in: {self.text}") from error

    def complaints(self) -> list[str]:
        """Return what the browser has logged since the last call, less what is expected."""
        # what a frame of the console logs is its own
        entries = [one for one in self.driver.get_log("browser") if one["level"] != "DEBUG"]
        said = [str(one["message"]) for one in entries]
        return [one for one in said if not any(part in one for part in self.expected)]

    # --- the keyboard

    def press(self, *keys: str) -> None:
        """Press keys one after the other, wherever the focus is; ``SHIFT + key`` holds Shift."""
        # Not to the element: an input of a file would take them for its name.
        pressed = ActionChains(self.driver)
        for key in keys:
            if key.startswith(Keys.SHIFT):
                pressed.key_down(Keys.SHIFT).send_keys(key[1:]).key_up(Keys.SHIFT)
            else:
                pressed.send_keys(key)
        pressed.perform()

    def tab(self) -> str:
        """Press the tab key; return a mark of what has the focus then."""
        self.press(Keys.TAB)
        return str(self.run(_MARK_OF_FOCUS))

    # --- pictures

    def picture(self, path: Path) -> None:
        """Keep the whole page as PNG."""
        size = self.run(
            "const root = document.documentElement;"
            "return [root.scrollWidth, root.scrollHeight, innerWidth]"
        )
        clip = {"x": 0, "y": 0, "width": size[2], "height": size[1], "scale": 1}
        answer = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot",
            {"format": "png", "clip": clip, "captureBeyondViewport": True},
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than its window."""
        script = (
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return int(self.run(script))


#: numbers each element that had the focus, so that they can be distinguished
_MARK_OF_FOCUS = """
const one = document.activeElement;
if (!one || one === document.body) return "";
one.dataset.reached = one.dataset.reached || String(++window.__reached || (window.__reached = 1));
const style = getComputedStyle(one);
if (style.outlineStyle === "none" || style.outlineWidth === "0px") one.dataset.unseen = "1";
return one.dataset.reached;
"""


def as_json(value: Any) -> str:
    """Return it for people to read."""
    return json.dumps(value, indent=1, ensure_ascii=False)
