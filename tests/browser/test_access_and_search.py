"""Who logs in and what is found, in a real browser: light, dark, and on a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import openstack
import pytest
import yaml

pytest.importorskip("selenium")

from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import Window
from tests.browser.test_pages import PICTURES
from tests.browser.test_rules_and_networks import LOOKS, check, fill, follow
from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.conftest import LogIn


@pytest.fixture(params=LOOKS)
def screen(window: Window, people: LogIn, request: pytest.FixtureRequest) -> Window:
    """A member's window, of a scheme and a size."""
    scheme, size = request.param
    window.take(people("member"))
    window.scheme(scheme)
    window.resize(size)
    return window


@pytest.fixture
def look(request: pytest.FixtureRequest) -> str:
    """What the pictures of a test are called after."""
    return str(request.node.callspec.id)


@pytest.fixture(autouse=True)
def nothing_left(three_nodes: EmbeddedCloud) -> Iterator[None]:
    """Delete what these tests make."""
    yield
    connection = three_nodes.connection()
    user = str(connection.current_user_id)
    for one in connection.identity.application_credentials(user):
        connection.identity.delete_application_credential(user, one)
    for one in connection.network.ports(project_id=connection.current_project_id):
        connection.network.delete_port(one)
    for one in connection.network.networks(project_id=connection.current_project_id):
        connection.network.delete_network(one)


def test_download_clouds_yaml(screen: Window, look: str, tmp_path: Path) -> None:
    where = {"behavior": "allow", "downloadPath": str(tmp_path)}
    screen.driver.execute_cdp_cmd("Page.setDownloadBehavior", where)
    screen.open("/")
    follow(screen, "Access")
    screen.until_text("No application credentials.")
    follow(screen, "Download clouds.yaml")
    saved = tmp_path / "clouds.yaml"
    screen.until(saved.exists)
    assert "password" not in saved.read_text(encoding="utf-8").replace("Password", "")
    shutil.move(saved, tmp_path / "by-password.yaml")
    fill(screen, "/access", name="backup", description="For the nightly job")
    screen.until_text("can't be shown again")
    check(screen)
    screen.picture(PICTURES / f"story-credential-{look}.png")
    follow(screen, "Download clouds.yaml")
    screen.until(saved.exists)
    [(_, cloud)] = yaml.safe_load(saved.read_text(encoding="utf-8"))["clouds"].items()
    secret = cloud["auth"]["application_credential_secret"]
    region = cloud.pop("region_name")
    own = openstack.connection.Connection(region_name=region, **cloud)
    assert list(own.compute.servers()) == []
    follow(screen, "I have it")
    screen.until_text("For the nightly job")
    assert secret not in screen.driver.page_source
    check(screen)
    screen.picture(PICTURES / f"story-access-{look}.png")
    follow(screen, "Delete")
    screen.until_text("Delete the application credential backup?")
    screen.find("main form button.danger").click()
    screen.until_text("The application credential is deleted.")


def test_find_by_address(screen: Window, look: str) -> None:
    network = screen.cloud.connection().network
    lan = network.create_network(name="lan")
    network.create_subnet(network_id=lan.id, ip_version=4, cidr="192.168.78.0/24")
    port = network.create_port(network_id=lan.id)
    address = port.fixed_ips[0]["ip_address"]
    screen.open("/")
    check(screen)
    screen.picture(PICTURES / f"story-header-{look}.png")
    box = screen.find("header [type='search']")
    box.send_keys(address, Keys.ENTER)
    screen.until(lambda: screen.path == f"/networks/{lan.id}")
    screen.until_text(address)
    network.create_port(network_id=lan.id)
    other = network.create_network(name="land")
    screen.find("header [type='search']").send_keys("lan", Keys.ENTER)
    screen.until(lambda: screen.path.startswith("/search"))
    screen.until_text("Found for lan", "Networks")
    check(screen)
    screen.picture(PICTURES / f"story-search-{look}.png")
    follow(screen, "land")
    screen.until(lambda: screen.path == f"/networks/{other.id}")


def test_the_form_of_the_password(screen: Window, look: str) -> None:
    screen.open("/access")
    follow(screen, "Password")
    screen.expected.add("status of 400")
    fill(screen, "/password/change", old="wrong", new="a", again="b")
    screen.until_text("The two new passwords differ.")
    check(screen)
    screen.picture(PICTURES / f"story-password-{look}.png")
