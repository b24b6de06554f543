"""Daily things in a real browser: light, dark, and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("selenium")

from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from tests.browser.accessibility import violations
from tests.browser.chromium import DESK, PHONE, Window, as_json
from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.conftest import LogIn

LOOKS = [
    pytest.param(("light", PHONE), id="phone"),
    pytest.param(("light", DESK), id="light", marks=pytest.mark.long),
    pytest.param(("dark", DESK), id="dark", marks=pytest.mark.long),
]


@pytest.fixture(params=LOOKS)
def screen(window: Window, people: LogIn, request: pytest.FixtureRequest) -> Window:
    """A member's window, of a scheme and a size."""
    scheme, size = request.param
    window.take(people("member"))
    window.scheme(scheme)
    window.resize(size)
    return window


@pytest.fixture(autouse=True)
def nothing_left(three_nodes: EmbeddedCloud) -> Iterator[None]:
    """Delete what these tests make."""
    yield
    connection = three_nodes.connection()
    for one in connection.network.security_groups():
        if one.name != "default":
            connection.network.delete_security_group(one)
    for one in connection.network.networks(project_id=connection.current_project_id):
        connection.network.delete_network(one)
    for one in connection.compute.keypairs():
        connection.compute.delete_keypair(one)


def fill(window: Window, form: str, **fields: str) -> None:
    """Fill in fields of the form that is sent to a path, and send it."""
    found = window.find(f"form[method='post'][action$='{form}']")
    for name, value in fields.items():
        field = found.find_element(By.NAME, name)
        if field.tag_name == "select":
            Select(field).select_by_visible_text(value)
        else:
            field.clear()
            field.send_keys(value)
    button = found.find_element(By.CSS_SELECTOR, "button")
    window.run("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()


def follow(window: Window, text: str) -> None:
    """Click a link of the page's content, or its navigation, which a phone has in a menu."""
    for menu in window.driver.find_elements(By.CSS_SELECTOR, ".folded summary"):
        if menu.is_displayed() and not window.driver.find_elements(By.LINK_TEXT, text):
            menu.click()
    [link, *_] = window.until(lambda: window.driver.find_elements(By.LINK_TEXT, text))
    window.run("arguments[0].scrollIntoView({block: 'center'})", link)
    link.click()


def check(window: Window) -> None:
    """Check that the page fits and is accessible."""
    assert window.overflow() <= 0
    found = violations(window)
    assert found == [], as_json(found)


def test_edit_rules(screen: Window) -> None:
    screen.open("/")
    follow(screen, "Networks")
    follow(screen, "Security groups")
    fill(screen, "/security-groups", name="web", description="Of the shop")
    screen.until_text("web is made: it lets nothing in yet.")
    path = screen.path
    fill(screen, f"{path}/rules", what="HTTPS")
    screen.until_text("Added: HTTPS (TCP 443).")
    fill(screen, f"{path}/rules", what="TCP", ports="8000-8100", remote="192.0.2.0/24")
    screen.until_text("TCP 8000 to 8100", "192.0.2.0/24")
    fill(screen, f"{path}/rules", what="SSH", group="web", family="IPv4", description="among us")
    screen.until_text("Added: SSH (TCP 22).", "servers of web", "among us")
    check(screen)
    screen.expected.add("status of 400")
    fill(screen, f"{path}/rules", what="UDP", ports="many")
    screen.until_text("Invalid value for port many")
    field = screen.find(f"form[action$='{path}/rules'] [name='ports']")
    assert field.get_attribute("value") == "many"
    check(screen)
    delete = screen.find("[aria-label='Delete HTTPS (TCP 443) from anyone, IPv6']")
    screen.run("arguments[0].scrollIntoView({block: 'center'})", delete)
    delete.click()
    screen.until_text("The rule is deleted.")
    assert screen.find("main").text.count("HTTPS (TCP 443)") == 1
    follow(screen, "Delete")
    screen.until_text("Delete web?")
    screen.find("main form button.danger").click()
    screen.until_text("The group is deleted.")


def test_make_a_network(screen: Window) -> None:
    screen.open("/networks")
    screen.expected.add("status of 400")
    fill(screen, "/networks", name="mine", cidr="192.168.7.0/99")
    screen.until_text("192.168.7.0/99")
    assert [one.name for one in screen.cloud.connection().network.networks()] == ["vmbr0"]
    fill(screen, "/networks", cidr="192.168.7.0/24")
    screen.until_text("The network mine is made.", "0 of 254")
    path = screen.path
    follow(screen, "Add subnet")
    check(screen)
    fill(screen, f"{path}/subnets", cidr="2001:db8:7::/64", gateway="first")
    screen.until_text("The subnet 2001:db8:7::/64 is made.", "2001:db8:7::1")
    check(screen)
    screen.find("a[aria-label='Change 192.168.7.0/24']").click()
    screen.until_text("Subnet 192.168.7.0/24")
    pools = "192.168.7.10 to 192.168.7.19\n192.168.7.40 to 192.168.7.49"
    form = screen.path.removeprefix("/dashboard")
    fill(screen, form, servers="192.0.2.53", pools=pools, routes="10.0.0.0/8 via 192.168.7.1")
    screen.until_text("is changed.", "0 of 20", "192.0.2.53", "10.0.0.0/8 via 192.168.7.1")
    check(screen)
    make_a_port(screen, path)
    follow(screen, "Networks")
    screen.until(lambda: screen.has("svg.topology"))
    screen.until_text("this project's", "192.168.7.0/24")
    check(screen)
    follow(screen, "mine")
    screen.until(lambda: screen.path == path)
    screen.find(f"a[href$='{path}/delete']").click()
    screen.until_text("Delete mine?")
    screen.find("main form button.danger").click()
    screen.until_text("The network is deleted.")


def make_a_port(screen: Window, path: str) -> None:
    """Make a port, change it, and delete it."""
    follow(screen, "Create port")
    check(screen)
    screen.expected.add("status of 400")
    fill(screen, f"{path}/ports/create", name="vip", address="192.0.2.1")
    screen.until_text("192.0.2.1")
    fill(screen, f"{path}/ports/create", address="192.168.7.45")
    screen.until_text("The port vip is made.", "192.168.7.45", "none: the port is free")
    check(screen)
    page = screen.path.removeprefix("/dashboard")
    fill(screen, page, name="front", pairs="192.168.7.48\n192.168.7.49")
    screen.until_text("The port is changed.", "Port front", "192.168.7.49")
    screen.find(f"a[href$='{page}/delete']").click()
    screen.until_text("Its address 192.168.7.45 may be given to others.")
    screen.find("main form button.danger").click()
    screen.until_text("The port is deleted.")


def test_a_private_key_is_downloaded(screen: Window, tmp_path: Path) -> None:
    where = {"behavior": "allow", "downloadPath": str(tmp_path)}
    screen.driver.execute_cdp_cmd("Page.setDownloadBehavior", where)
    screen.open("/keypairs")
    fill(screen, "/keypairs", name="laptop")
    screen.until_text("is stored nowhere: save it now.")
    check(screen)
    follow(screen, "Save as a file")
    saved = tmp_path / "laptop.pem"
    screen.until(saved.exists)
    assert saved.read_text(encoding="utf-8").startswith("-----BEGIN ")
    follow(screen, "To the key pairs")
    screen.until_text("laptop")
    assert "PRIVATE KEY" not in screen.driver.page_source
