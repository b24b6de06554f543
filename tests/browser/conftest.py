"""One cloud and one browser for all of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.functional.cloud import EmbeddedCloud
from tests.functional.conftest import three_nodes
from tests.functional.dashboard.conftest import LogIn, cleared, people
from tests.shared import Shared

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

    from tests.browser.chromium import Window

__all__ = ["LogIn", "cleared", "people", "three_nodes"]

#: of a page: light, dark, and as wide as a phone
LOOKS = [
    "light",
    pytest.param("dark", marks=pytest.mark.long),
    pytest.param("phone", marks=pytest.mark.long),
]

_CHROMIUM: Shared[Chrome] = Shared("driver")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip these tests where there is no browser, with the reason."""
    from tests.browser.chromium import MISSING

    if MISSING:
        reason = f"not installed: {', '.join(MISSING)}"
        for item in items:
            if "tests/browser/" in item.nodeid:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Chrome:
    """A browser that runs."""
    from tests.browser.chromium import chromium

    return _CHROMIUM.get(lambda: chromium(tmp_path_factory.mktemp("chromium")))


@pytest.fixture
def window(driver: Chrome, three_nodes: EmbeddedCloud) -> Iterator[Window]:
    """A window without a past, where nothing fails but what a test expects."""
    from tests.browser.chromium import Window

    made = Window(driver, three_nodes)
    made.begin()
    yield made
    assert made.complaints() == []


@pytest.fixture(params=LOOKS)
def day(window: Window, people: LogIn, request: pytest.FixtureRequest) -> Window:
    """A member's window: with light or dark colours, or as wide as a phone."""
    from tests.browser.chromium import PHONE

    window.take(people("member"))
    window.scheme("dark" if request.param == "dark" else "light")
    if request.param == "phone":
        window.resize(PHONE)
    return window
