"""What those who run a cloud look at, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("selenium")

from selenium.webdriver.support.select import Select

from tests.browser.accessibility import violations
from tests.browser.chromium import DESK, PHONE, Window, as_json
from tests.browser.test_pages import PICTURES
from tests.browser.test_stories import a_server, fault
from tests.functional.dashboard.conftest import LogIn

_COLOUR = "return getComputedStyle(document.querySelector(arguments[0])).color"
_RED = "rgb(179, 33, 43)"


def look(window: Window, name: str) -> None:
    """Have a page accessible as it is now, light and dark, fit a phone, and leave pictures."""
    folder = Path(PICTURES)
    window.picture(folder / f"{name}-light.png")
    found = violations(window)
    window.run("document.documentElement.dataset.theme = 'dark'")
    window.picture(folder / f"{name}-dark.png")
    found += violations(window, contrast_only=True)
    window.run("document.documentElement.dataset.theme = 'light'")
    window.resize(PHONE)
    overflow = window.overflow()
    window.picture(folder / f"{name}-390.png")
    window.resize(DESK)
    assert found == [], as_json(found)
    assert overflow <= 0


def test_the_overview_shows_a_node_that_is_off_in_red_and_in_words(
    cleared: None, window: Window, people: LogIn
) -> None:
    cloud = window.cloud
    window.take(people("admin"))
    with fault(cloud, action="node-down", node="pve3"):
        people("admin").until("/", lambda page: "✕ down pve3" in page.text)
        # a build that doesn't end before the faults do
        cloud.control("POST", "faults", action="hold", method="POST", path=r"/status/start$")
        connection = cloud.connection()
        connection.compute.create_server(
            name="patient",
            image_id=connection.image.find_image("cirros").id,
            flavor_id=connection.compute.find_flavor("m1.nano").id,
            networks="none",
        )
        people("admin").until("/", lambda page: "create patient" in page.text)
        window.open("/")
        assert "The node is offline." in window.text
        assert window.run(_COLOUR, ".alarm h2") == _RED
        assert window.run(_COLOUR, ".tiles .bad strong") == _RED
        look(window, "overview-alarm")
        window.find("a[href$='status=BUILD']").click()
        window.until_text("patient")
        window.open("/")
        window.find("[aria-labelledby='waits'] .wide a[href*='/explain']").click()
        window.until(lambda: window.path == "/explain")
        window.until_text("create", "running")


def test_activity_is_filtered_and_leads_to_the_explanation(
    cleared: None, window: Window, people: LogIn
) -> None:
    cloud = window.cloud
    server = a_server(cloud, "watched")
    cloud.connection().compute.stop_server(server)
    cloud.connection().compute.wait_for_server(server, "SHUTOFF", wait=60)
    window.take(people("admin"))
    window.open("/activity")
    window.until_text("stop watched", "create watched")
    look(window, "activity")
    window.find("input[name='user']").send_keys("demo")
    Select(window.find("select[name='state']")).select_by_value("done")
    window.find("main form button").click()
    window.until(lambda: "user=demo" in window.driver.current_url)
    window.until_text("stop watched")
    window.find("td a.request").click()
    window.until(lambda: window.path == "/explain")
    window.until_text("stop", "done")


def test_a_node_shows_charts_storages_and_tasks(
    cleared: None, window: Window, people: LogIn
) -> None:
    a_server(window.cloud, "busy")
    window.take(people("admin"))
    window.open("/storages")
    window.until_text("shared")
    look(window, "storages")
    window.find("a[href*='storage=shared']").click()
    window.until_text("Measurements of shared", "in use")
    window.open("/nodes/pve1")
    window.until(lambda: window.has("#charts figure"))
    window.until_text("Tasks in Proxmox VE")
    look(window, "node")
    link = window.find("a[href^='https://pve.example.org:8006']")
    assert link.text == "Open in Proxmox VE"
    assert "noreferrer" in str(link.get_attribute("rel"))


def test_the_overview_shows_the_year(window: Window, people: LogIn) -> None:
    window.take(people("admin"))
    window.open("/")
    window.until(lambda: window.run("return document.querySelectorAll('figure').length") == 2)
    assert "As Proxmox VE recorded it, summed up" in window.text
    look(window, "overview-year")
    window.open("/trend")
    assert window.find("h1").text == "Capacity over a year"
    look(window, "trend")
