"""What administrators do daily, in a real browser: light, dark, and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("selenium")

from tests.browser.chromium import Window
from tests.browser.test_pages import PICTURES
from tests.browser.test_rules_and_networks import LOOKS, check, fill, follow
from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.conftest import LogIn


@pytest.fixture(params=LOOKS)
def screen(window: Window, people: LogIn, request: pytest.FixtureRequest) -> Window:
    """An administrator's window, of a scheme and a size."""
    scheme, size = request.param
    window.take(people("admin"))
    window.scheme(scheme)
    window.resize(size)
    return window


@pytest.fixture
def look(request: pytest.FixtureRequest) -> str:
    """What the pictures of a test are called after."""
    return str(request.node.callspec.id)


@pytest.fixture
def identity(three_nodes: EmbeddedCloud) -> Iterator[Any]:
    """Keystone, without the projects that a test makes afterwards."""
    found = three_nodes.connection("micronova-admin").identity
    yield found
    project = found.find_project("shop")
    if project:
        found.delete_project(project)


def test_add_a_user_to_a_project(screen: Window, look: str, identity: Any) -> None:
    screen.open("/")
    follow(screen, "Projects")
    fill(screen, "/projects", name="shop", description="Of the web shop")
    screen.until_text("The project shop is made: add its first user.", "Nobody")
    path = screen.path
    check(screen)
    screen.expected.add("status of 404")
    fill(screen, f"{path}/members", user="nobody", role="reader")
    screen.until_text("Could not find user: nobody")
    assert screen.find("[name='user']").get_attribute("value") == "nobody"
    check(screen)
    fill(screen, f"{path}/members", user="demo", role="member")
    screen.until_text("demo is a member of the project now.", "Remove")
    check(screen)
    screen.picture(PICTURES / f"story-members-{look}.png")
    project = identity.find_project("shop")
    user = identity.find_user("demo")
    assert [
        one.scope["project"]["id"]
        for one in identity.role_assignments(user_id=user.id, scope_project_id=project.id)
    ] == [project.id]
    follow(screen, "Remove")
    screen.until_text("Remove demo as member from shop?")
    check(screen)
    screen.find("main form button.danger").click()
    screen.until_text("doesn't have this role any more.", "Nobody")


def test_set_a_quota(screen: Window, look: str, identity: Any) -> None:
    project = identity.create_project(name="shop")
    screen.open("/projects")
    screen.find("[aria-label='Quotas of shop']").click()
    screen.until_text("Quotas of shop")
    check(screen)
    limits = {"compute.instances": "7", "block-storage.volumes": "3", "network.network": "2"}
    fill(screen, f"/quotas/{project.id}", **limits, **{"clustering.groups": "4"})
    screen.until_text(
        *(f"{one}: the limits are set." for one in ("Servers", "Volumes", "Networks")),
        "Scaling groups: the limits are set.",
    )
    check(screen)
    screen.picture(PICTURES / f"story-quotas-{look}.png")
    admin = screen.cloud.connection("micronova-admin")
    assert admin.compute.get_quota_set(project).instances == 7
    follow(screen, "Reset to the defaults")
    screen.until_text("Reset the quotas of shop to the defaults?")
    check(screen)
    screen.find("main form button.danger").click()
    screen.until_text("Servers: the limits are the defaults.")
    assert admin.compute.get_quota_set(project).instances == 10
    follow(screen, "Members")
    screen.until_text("Add a user")


def test_extra_specs_are_explained(screen: Window, look: str) -> None:
    screen.open("/servers")
    follow(screen, "Flavors")
    fill(screen, "/flavors", name="special", vcpus="2", ram="512", disk="1")
    screen.until_text("The flavor special is made.")
    path = screen.path
    try:
        screen.expected.add("status of 400")
        fill(screen, f"{path}/specs", name="hw:watchdog_action", value="bark")
        screen.until_text("hw:watchdog_action=bark is not one of")
        check(screen)
        fill(screen, f"{path}/specs", name="hw:watchdog_action", value="reset")
        screen.until_text("hw:watchdog_action is set.", "model=i6300esb")
        screen.find("main details summary").click()
        screen.until_text("aggregate_instance_extra_specs:", "Only hosts of aggregates")
        check(screen)
        screen.picture(PICTURES / f"story-flavor-{look}.png")
    finally:
        admin = screen.cloud.connection("micronova-admin").compute
        admin.delete_flavor(path.rpartition("/")[2])
