"""Charts of measurements, in a real browser."""

from __future__ import annotations

import datetime
import zoneinfo

import pytest

pytest.importorskip("selenium")

from tests.browser.chromium import Window
from tests.browser.test_stories import FOLLOWED, MARK, a_server
from tests.functional.dashboard.aged import age
from tests.functional.dashboard.conftest import LogIn

_CHARTS = "return document.querySelectorAll('#charts figure').length"


def test_a_servers_page_shows_its_charts(cleared: None, day: Window) -> None:
    window = day
    server = a_server(window.cloud, "measured")
    age(window.cloud, server.id)
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
    assert said.startswith("until ")
    assert "in use" in said
    height = "return document.querySelector('.curve .line0 path').getBBox().height"
    assert window.run(height) > 10
    window.find("#charts summary").click()
    # on a phone each cell has its title
    table = window.run("return document.querySelector('#charts details').textContent")
    assert "Use of all its processors together" in table
    # an action's refresh of the page leaves the chosen period
    window.find(f"a[href$='{server.id}/stop']").click()
    window.find("main form button.danger").click()
    window.until_text("SHUTOFF")
    window.until(lambda: not window.has("#live[hx-get]"))
    window.until(lambda: window.run(_CHARTS) == 5)


def test_axes_and_points_of_charts_are_in_the_browsers_zone(cleared: None, day: Window) -> None:
    window = day
    server = a_server(window.cloud, "timed")
    age(window.cloud, server.id)
    zone = "Emulation.setTimezoneOverride"
    window.driver.execute_cdp_cmd(zone, {"timezoneId": "Asia/Tokyo"})
    try:
        window.open(f"/servers/{server.id}")
        window.until(lambda: window.run(_CHARTS) == 5)
        window.until(
            lambda: (
                "GMT+9" in window.run("return document.querySelector('.bands title').textContent")
            )
        )
        label, at = window.run(
            "const one = document.querySelector('.times time.clock');"
            "return [one.textContent, one.dateTime]"
        )
        there = datetime.datetime.fromisoformat(at).astimezone(zoneinfo.ZoneInfo("Asia/Tokyo"))
        assert label == f"{there:%H:%M}"
        cell = "return document.querySelector('#charts tbody time').textContent"
        assert "GMT+9" in window.run(cell)
        assert "UTC" not in window.find("#charts").text
        window.open("/usage")
        assert "GMT+9" in window.run("return document.querySelector('tbody time').textContent")
        window.open("/access")
        assert "in UTC" not in window.find("main").text
        end = window.run(
            "const day = document.getElementById('expires'); day.value = '2099-12-31';"
            "day.dispatchEvent(new Event('input'));"
            "return document.getElementById('expires_at').value"
        )
        assert end == "2099-12-31T14:59:59.000Z"
    finally:
        window.driver.execute_cdp_cmd(zone, {"timezoneId": ""})


def test_a_nodes_page_shows_its_charts(window: Window, people: LogIn) -> None:
    window.take(people("admin"))
    window.open("/nodes/pve1")
    window.until(lambda: window.run(_CHARTS) == 6)
    window.find("a[href*='charts?storage=shared']").click()
    window.until_text("Measurements of shared on pve1", "in use")
