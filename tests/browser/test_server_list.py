"""The list of servers, in a real browser."""

from __future__ import annotations

import pytest

pytest.importorskip("selenium")

from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import Window
from tests.browser.test_stories import FOLLOWED, MARK, a_server
from tests.functional.dashboard.conftest import LogIn

_POLLS = (
    "return performance.getEntriesByType('resource')"
    ".filter((one) => one.name.includes('/servers/rows')).length"
)
_ROWS = "return document.querySelectorAll('#list tbody [name=server]').length"


def test_others_changes_are_seen_and_choices_stay(
    cleared: None, window: Window, people: LogIn
) -> None:
    first, second = (a_server(window.cloud, name) for name in ("first", "second"))
    compute = window.cloud.connection().compute
    window.take(people("member"))
    window.open("/servers")
    window.run(MARK)
    window.find(f"#c-{first.id}").click()
    compute.stop_server(second)
    window.until_text("SHUTOFF")
    assert window.find(f"#c-{first.id}").is_selected()
    assert not window.find(f"#c-{second.id}").is_selected()
    # Enter in a check box sends nothing
    window.find(f"#c-{first.id}").send_keys(Keys.ENTER)
    third = a_server(window.cloud, "third")
    window.until(lambda: window.run(_ROWS) == 3)
    assert window.run(FOLLOWED)
    assert window.path == "/servers"
    # nothing is asked for while nobody looks
    window.run(
        "Object.defineProperty(document, 'hidden', { configurable: true, get: () => true })"
    )
    before = window.run(_POLLS)
    compute.delete_server(third)
    compute.wait_for_delete(third, wait=60)
    window.find("#poll")
    assert window.run(_POLLS) <= before + 1
    window.run(
        "Object.defineProperty(document, 'hidden', { configurable: true, get: () => false })"
    )
    window.until(lambda: window.run(_ROWS) == 2)
    # a search as one types, which the page then follows
    window.find("[name='q']").send_keys("fir")
    window.until(lambda: window.run(_ROWS) == 1)
    assert window.run("return document.activeElement.name") == "q"
    assert window.run(FOLLOWED)
    assert "q=fir" in window.driver.current_url


def test_half_an_id_an_address_and_a_tag_find_as_one_types(cleared: None, day: Window) -> None:
    window = day
    # The page is left while it asks.
    window.expected |= {"htmx:afterRequest", "htmx:sendAbort"}
    sought = a_server(window.cloud, "sought")
    a_server(window.cloud, "other")
    compute = window.cloud.connection().compute
    compute.put(f"/servers/{sought.id}/tags/backend", microversion="2.26")
    addresses = compute.get_server(sought).addresses
    [address] = [one["addr"] for given in addresses.values() for one in given]
    window.open("/servers")
    window.until(lambda: window.run(_ROWS) == 2)
    box = "[name='q']"
    for half, count in ((sought.id[:8], 1), (address[:-2], 2), ("back", 1), ("nothing", 0)):
        window.find(box).clear()
        window.find(box).send_keys(half)
        window.until(lambda count=count: window.run(_ROWS) == count)
        assert ("sought" in window.find("#list").text) == bool(count), half
    window.find(box).clear()
    window.find(box).send_keys("sought")
    window.until(lambda: window.run(_ROWS) == 1)
    window.find("[aria-label='Console of sought']").click()
    window.until(lambda: window.path == f"/servers/{sought.id}/console")


def test_several_are_stopped_and_deleted(cleared: None, day: Window) -> None:
    window = day
    for name in ("one", "two", "stays"):
        a_server(window.cloud, name)
    compute = window.cloud.connection().compute
    window.open("/servers")
    for name in ("one", "two"):
        window.find(f"[aria-label='Choose {name}']").click()
    window.find("button[value='stop']").click()
    window.until_text("Stop 2 servers?", "one", "two")
    assert "stays" not in window.find("main").text
    window.find("main button.danger").click()
    window.until_text("Under way: 2 servers are being stopped.")
    window.until(lambda: window.find("#list").text.count("SHUTOFF") == 3)
    window.find("[aria-label='Start one']").click()
    window.until_text("The server is starting.")
    assert window.path == "/servers"
    window.until(lambda: window.find("#list").text.count("SHUTOFF") == 2)
    for name in ("one", "two"):
        window.find(f"[aria-label='Choose {name}']").click()
    window.find("button[value='delete']").click()
    window.until_text("Delete 2 servers?")
    window.find("main button.danger").click()
    window.until(lambda: window.run(_ROWS) == 1)
    assert [one.name for one in compute.servers()] == ["stays"]


def test_times_are_those_of_the_browsers_zone(
    cleared: None, window: Window, people: LogIn
) -> None:
    server = a_server(window.cloud, "timed")
    zone = "Emulation.setTimezoneOverride"
    window.driver.execute_cdp_cmd(zone, {"timezoneId": "Asia/Tokyo"})
    try:
        window.take(people("member"))
        window.open("/servers")
        assert "GMT+9" in window.run("return document.querySelector('#list time').title")
        window.open(f"/servers/{server.id}/history")
        assert "GMT+9" in window.run("return document.querySelector('main time').title")
    finally:
        window.driver.execute_cdp_cmd(zone, {"timezoneId": ""})
