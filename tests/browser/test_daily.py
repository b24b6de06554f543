"""What people do daily with a server, in a real browser: light, dark, and on a phone."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("selenium")

from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from tests.browser.accessibility import violations
from tests.browser.chromium import Window, as_json
from tests.browser.test_pages import PICTURES
from tests.browser.test_stories import FOLLOWED, MARK, a_server, previewed
from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.dashboard.conftest import LogIn


@pytest.fixture
def no_keys(three_nodes: EmbeddedCloud) -> Iterator[None]:
    """Delete the key pairs that a test makes."""
    yield
    compute = three_nodes.connection().compute
    for one in compute.keypairs():
        compute.delete_keypair(one)


def looks_right(window: Window) -> None:
    """Check that the page is accessible, and not wider than its window."""
    found = violations(window)
    assert found == [], as_json(found)
    assert window.overflow() <= 0


def press(window: Window, text: str) -> None:
    """Press a button or follow a link of the page by what is written on it."""
    script = (
        "return [...document.querySelectorAll('main button, main a, main summary')]"
        ".find((one) => one.textContent.trim() === arguments[0] && one.checkVisibility())"
    )
    window.until(lambda: window.run(script, text)).click()


def test_create_with_a_volume_and_a_new_key(cleared: None, no_keys: None, day: Window) -> None:
    day.expected |= {"htmx:afterRequest", "htmx:sendAbort"}
    day.open("/servers")
    press(day, "Create server")
    with previewed(day):
        day.find("#name").send_keys("furnished")
    with previewed(day):
        Select(day.find("#image")).select_by_visible_text("cirros")
    with previewed(day):
        day.find("input[name='source'][value='new']").click()
    with previewed(day):
        size = day.find("#boot_size")
        size.clear()
        size.send_keys("2")
    with previewed(day):
        day.find("#flavors [data-text='m1.nano']").click()
    assert day.find("#flavors [data-text='m1.nano']").is_selected()
    press(day, "Data volumes")
    with previewed(day):
        day.find("#data").send_keys("1")
        day.find("input[name='key_how'][value='make']").click()
        day.find("#key_name").send_keys("fresh")
    day.until_text("What is left of the quota", "As Terraform")
    looks_right(day)
    press(day, "Create")
    day.until_text("furnished is being created", "PRIVATE KEY")
    looks_right(day)
    press(day, "To the server")
    day.until_text("ACTIVE", "fresh")
    press(day, "Storage")
    day.until(lambda: day.text.count("/dev/") == 2)
    assert "Root disk" not in day.text
    looks_right(day)


def test_user_data_of_a_template(
    cleared: None, day: Window, people: LogIn, request: pytest.FixtureRequest
) -> None:
    look = request.node.callspec.params["day"]
    day.expected |= {"htmx:afterRequest", "htmx:sendAbort"}
    day.open("/servers/create")
    with previewed(day):
        day.find("#name").send_keys("prepared")
    with previewed(day):
        Select(day.find("#image")).select_by_visible_text("cirros")
    press(day, "User data")
    with previewed(day):
        Select(day.find("#template")).select_by_visible_text("add a user with the key pair")
    press(day, "Put it into the field")
    day.until(lambda: "operator" in str(day.find("#user_data").get_attribute("value")))
    day.find("#user_data").send_keys(Keys.CONTROL, Keys.END, Keys.NULL, "# mine")
    assert day.find("#name").get_attribute("value") == "prepared"
    assert Select(day.find("#image")).first_selected_option.text == "cirros"
    looks_right(day)
    day.picture(PICTURES / f"create-user-data-{look}.png")
    # Enter is Create, not the first button in the form
    day.find("#name").send_keys(Keys.ENTER)
    day.until_text("prepared is being created")
    day.take(people("admin"))
    day.open("/servers/create")
    with previewed(day):
        Select(day.find("#image")).select_by_visible_text("cirros")
    with previewed(day):
        day.find("#count").clear()
        day.find("#count").send_keys("3")
    press(day, "Would it fit?")
    day.until_text("Yes, all 3:")
    looks_right(day)
    day.picture(PICTURES / f"create-fit-{look}.png")


def test_user_data_of_a_file(cleared: None, day: Window, tmp_path: Path) -> None:
    day.expected |= {"htmx:afterRequest", "htmx:sendAbort"}
    file, text = tmp_path / "mine.yaml", "#cloud-config\n# of a file: ü\n"
    file.write_text(text)
    day.open("/servers/create")
    with previewed(day):
        Select(day.find("#image")).select_by_visible_text("cirros")
    press(day, "User data")
    with previewed(day):
        day.find("#user_data_file").send_keys(str(file))
    day.until(lambda: day.find("#user_data").get_attribute("value") == text)
    with previewed(day):
        day.find("#name").send_keys("of-a-file")
    assert day.run("return document.querySelector('#side').textContent.includes('--user-data')")
    press(day, "Create")
    day.until_text("of-a-file is being created")
    [server] = day.cloud.connection().compute.servers()
    sent = day.cloud.connection("micronova-admin").compute.get_server(server.id).user_data
    assert base64.b64decode(sent).decode() == text.strip()


def test_a_flavor_that_does_not_fit_can_not_be_chosen(day: Window) -> None:
    day.expected |= {"htmx:afterRequest", "htmx:sendAbort"}
    day.open("/servers/create")
    with previewed(day):
        Select(day.find("#image")).select_by_visible_text("cirros")
    with previewed(day):
        day.find("#flavors [data-text='m1.nano']").click()
    with previewed(day):
        Select(day.find("#image")).select_by_visible_text("debian-12")
    # the chosen one says why, and another one of the size is closed
    assert day.find("#flavors [data-text='m1.nano']").is_selected()
    day.until_text("It doesn't fit: the image needs")
    day.find("#flavors [data-text='m1.small']").click()
    day.until(lambda: not day.find("#flavors [data-text='m1.nano']").is_enabled())
    day.until(lambda: day.find("#flavors [data-text='m1.small']").is_selected())
    looks_right(day)
    with previewed(day):
        Select(day.find("#image")).select_by_visible_text("cirros")
    day.until(lambda: day.find("#flavors [data-text='m1.nano']").is_enabled())


def test_resize(cleared: None, day: Window) -> None:
    server = a_server(day.cloud, "growing")
    day.open(f"/servers/{server.id}")
    press(day, "More")
    looks_right(day)
    press(day, "Resize")
    day.until_text("Resize growing?", "what isn't saved is lost", "current")
    assert not day.find("[data-text='m1.nano']").is_enabled()
    looks_right(day)
    day.find("[data-text='m1.tiny']").click()
    press(day, "Resize")
    day.until_text("Under way: The server is being resized.")
    day.run(MARK)
    day.until_text("VERIFY_RESIZE")
    press(day, "Confirm resize")
    day.until_text("Confirm resize growing?", "The way back to its old size")
    looks_right(day)
    press(day, "Confirm resize")
    day.until_text("ACTIVE", "m1.tiny")
    looks_right(day)


def test_snapshot_and_restore(cleared: None, day: Window) -> None:
    server = a_server(day.cloud, "pictured")
    day.open(f"/servers/{server.id}")
    press(day, "Storage")
    day.find("#name").send_keys("before")
    press(day, "Make a snapshot")
    day.until_text("Under way: The snapshot is being made.")
    day.run(MARK)
    day.until(lambda: day.has("a[href*='/rebuild?image=']"))
    assert day.run(FOLLOWED)
    looks_right(day)
    press(day, "Restore")
    day.until_text("Rebuild pictured?", "all data on the old one is lost")
    assert Select(day.find("#imageRef")).first_selected_option.text == "before"
    looks_right(day)
    press(day, "Rebuild")
    day.until_text("Under way: The server is being rebuilt.")
    day.until(lambda: not day.has("#live[hx-get]"))
    assert "ACTIVE" in day.text
    assert day.find("dl a[href*='/images/']").text == "before"


def test_attach(cleared: None, day: Window) -> None:
    server = a_server(day.cloud, "holding")
    volumes = day.cloud.connection().block_storage
    volume = volumes.create_volume(name="data", size=1)
    eventually(lambda: volumes.get_volume(volume).status == "available")
    day.open(f"/servers/{server.id}/storage")
    Select(day.find("#volume")).select_by_visible_text("data (1 GiB)")
    press(day, "Attach")
    day.until_text("Under way: The volume is being attached.")
    day.run(MARK)
    day.until_text("/dev/", "No volume is free.")
    day.until(lambda: not day.has("#live[hx-get]"))
    assert day.run(FOLLOWED)
    looks_right(day)
    press(day, "Detach")
    day.until_text("Detach data from holding?", "Unmount it in the guest first")
    press(day, "Detach")
    day.until(lambda: day.has("#volume"))
    assert "/dev/" not in day.text


def test_log(cleared: None, day: Window) -> None:
    server = a_server(day.cloud, "speaking")
    day.open(f"/servers/{server.id}")
    press(day, "Copy")
    day.until_text("Copied")
    press(day, "Log")
    day.until_text("Console log", "login:")
    looks_right(day)
    press(day, "All")
    day.until_text("Linux version")
    press(day, "Only cloud-init")
    day.until_text("Cloud-init v. 22.4.2 finished", "root@speaking")
    assert "Linux version" not in day.text
    assert "login:" not in day.text
    looks_right(day)
    press(day, "History")
    day.until_text("is done", "create VM")
