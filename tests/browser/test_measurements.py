"""Charts of measurements, in a real browser."""

from __future__ import annotations

import pytest

pytest.importorskip("selenium")

from tests.browser.chromium import Window
from tests.browser.test_stories import FOLLOWED, MARK, a_server
from tests.functional.dashboard.aged import age
from tests.functional.dashboard.conftest import LogIn

_CHARTS = "return document.querySelectorAll('#charts figure').length"


def test_a_servers_page_shows_its_charts(cleared: None, window: Window, people: LogIn) -> None:
    server = a_server(window.cloud, "measured")
    age(window.cloud, server.id)
    window.take(people("member"))
    window.open(f"/servers/{server.id}")
    window.run(MARK)
    window.until(lambda: window.run(_CHARTS) == 5)
    assert window.find("#charts [aria-current]").text == "Hour"
    window.find("#charts a[href$='period=month']").click()
    window.until(lambda: window.find("#charts [aria-current]").text == "Month")
    assert window.run(_CHARTS) == 5
    assert window.run(FOLLOWED), "the page was loaded again"
    # what a pointer gets to read
    said = window.run("return document.querySelector('.bands rect title').textContent")
    assert said.startswith("until 20")
    assert "in use" in said
    height = "return document.querySelector('.curve .line0 path').getBBox().height"
    assert window.run(height) > 10
    window.find("#charts summary").click()
    assert "Use of all its processors together" in window.text
    # an action's refresh of the page leaves the chosen period
    window.find(f"a[href$='{server.id}/stop']").click()
    window.find("main form button.danger").click()
    window.until_text("SHUTOFF")
    window.until(lambda: not window.has("#live[hx-get]"))
    window.until(lambda: window.run(_CHARTS) == 5)


def test_a_nodes_page_shows_its_charts(window: Window, people: LogIn) -> None:
    window.take(people("admin"))
    window.open("/nodes/pve1")
    window.until(lambda: window.run(_CHARTS) == 6)
    window.find("a[href*='charts?storage=shared']").click()
    window.until_text("Measurements of shared on pve1", "in use")
