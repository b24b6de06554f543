"""A person who uses Skyline's console in chromium.

The console draws its pages again while they load: one script finds an element and uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.functional.cloud import EmbeddedCloud, eventually

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

_SECONDS = 120
_PAUSE_SECONDS = 0.5
_BUTTONS = "button, a, .ant-radio-button-wrapper, .ant-tabs-tab"
_OPTION = ".ant-select-item-option"
#: the language, which it stores in a cookie
_LANGUAGE = {"name": "lang", "value": "en"}

#: waits while anything visible loads: a form takes its first choices again once it has loaded
_LOADED = """
const loads = [...document.querySelectorAll(".ant-spin-spinning")];
if (loads.some((one) => one.offsetParent !== null)) return false;
"""
#: uses the last one of those elements that are seen and have such a text
_USE = """
const [selector, text, inside, whole] = arguments;
const has = (one) => whole ? one.innerText.trim() === text : one.innerText.includes(text);
const found = [...document.querySelectorAll(selector)]
    .filter((one) => one.offsetParent !== null && has(one)).pop();
const target = found && inside ? found.querySelector(inside) : found;
if (!target || target.disabled) return false;
for (const kind of ["mouseover", "mousedown"])
    target.dispatchEvent(new MouseEvent(kind, {bubbles: true}));
target.click();
return true;
"""
#: writes into a field as React hears it
_FILL = """
const [selector, value] = arguments;
const field = [...document.querySelectorAll(selector)].find((one) => one.offsetParent !== null);
if (!field) return false;
Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, value);
field.dispatchEvent(new Event("input", {bubbles: true}));
return field.value === value;
"""
_ROWS = 'return [...document.querySelectorAll("tr.ant-table-row")].map((one) => one.innerText)'


class Person:
    """Somebody logged in."""

    def __init__(self, driver: Chrome, url: str, cloud: EmbeddedCloud, who: str) -> None:
        self._driver, self._url = driver, url
        driver.execute_cdp_cmd("Network.setCookie", {**_LANGUAGE, "url": url})
        given = cloud.config(who).auth
        self.open("/", "Log in", "RegionOne", "Default")
        self._until(lambda: self._is_in(given["username"], given["password"]), "logged in", 3.0)
        self.sees("Quota Overview")

    def _is_in(self, name: str, password: str) -> bool:
        """Return whether it is; else try, as the page forgets what was entered while it loads."""
        if "Log in" not in self.text:
            return True
        for field, value in (("username", name), ("password", password)):
            self._driver.execute_script(_FILL, f"#normal_login_{field}", value)
        self._driver.execute_script(_USE, _BUTTONS, "Log in", None, True)
        return False

    # --- what there is

    @property
    def text(self) -> str:
        """What is to be read."""
        return str(self._driver.execute_script("return document.body.innerText"))

    @property
    def rows(self) -> list[str]:
        """The texts of the rows of tables."""
        found: list[str] = self._driver.execute_script(_ROWS)
        return found

    def sees(self, *texts: str) -> None:
        """Wait until all of this is to be read."""
        self._until(lambda: all(one in self.text for one in texts), texts)

    def sees_row(self, *texts: str) -> None:
        """Wait until a row has all of this."""
        self._until(
            lambda: any(all(one in row for one in texts) for row in self.rows), ("row", *texts)
        )

    def sees_no_row(self, text: str) -> None:
        """Wait until no row of a table that is there has this."""
        self._until(
            lambda: "No Data" in self.text and not any(text in row for row in self.rows),
            ("no row", text),
        )

    # --- what to do

    def open(self, path: str, *texts: str) -> None:
        """Open a page, and wait for what is to be read on it."""
        self._driver.get(f"{self._url}{path}")
        self.sees(*texts)

    def press(self, label: str) -> None:
        """Press a button, a tab, or what unfolds under one."""
        self._use(_BUTTONS, label, None, True)

    def pick(self, name: str) -> None:
        """Choose a row."""
        self._use("tr.ant-table-row", name, "input", False)

    def delete(self, name: str) -> None:
        """Delete what a row is of, and wait until it is gone."""
        self.pick(name)
        if not self._driver.execute_script(_USE, _BUTTONS, "Delete", None, True):
            self.press("More Actions")
            self.press("Delete")
        self.press("Confirm")
        self.sees_no_row(name)

    def choose(self, shown: str, option: str) -> None:
        """Choose in the list that shows something so far."""
        self._use(".ant-select", shown, ".ant-select-selector", False)
        self._use(_OPTION, option, None, False)

    def fill(self, selector: str, value: str) -> None:
        """Write into a field."""
        self._until(
            lambda: self._driver.execute_script(_LOADED + _FILL, selector, value), selector
        )

    def _use(self, *arguments: Any) -> None:
        self._until(lambda: self._driver.execute_script(_LOADED + _USE, *arguments), arguments)

    def _until(self, true: Any, what: Any, pause_seconds: float = _PAUSE_SECONDS) -> None:
        try:
            eventually(true, _SECONDS, pause_seconds)
        except AssertionError as error:
            logged = [one["message"] for one in self._driver.get_log("browser")]
            raise AssertionError(f"never {what} in: {self.text}\n{logged[-5:]}") from error
