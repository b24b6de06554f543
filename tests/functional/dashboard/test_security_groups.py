"""Security groups and their rules, as people edit them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.browser import Browser
from tests.functional.dashboard.conftest import clear
from tests.functional.dashboard.test_pages import create, wait_for

NOBODY = "11111111-1111-1111-1111-111111111111"


@pytest.fixture(autouse=True)
def no_groups(three_nodes: EmbeddedCloud) -> Iterator[None]:
    """Delete the security groups of projects after a test, but for default ones."""
    yield
    network = three_nodes.connection("micronova-admin").network
    for one in network.security_groups():
        if one.name != "default":
            network.delete_security_group(one)


def make(browser: Browser, name: str, description: str = "") -> str:
    """Make a group; return the path of its page."""
    browser.get("/security-groups")
    browser.submit("/security-groups", name=name, description=description)
    assert browser.status == 200
    assert re.fullmatch(r"/security-groups/[0-9a-f-]{36}", browser.path)
    return browser.path


def rules(cloud: EmbeddedCloud, path: str) -> list[tuple[object, ...]]:
    """Return the rules for what comes in, as the API has them."""
    group = cloud.connection().network.get_security_group(path.rpartition("/")[2])
    names = ("ethertype", "protocol", "port_range_min", "port_range_max", "remote_ip_prefix")
    return sorted(
        tuple(str(one[name]) for name in names)
        for one in group.security_group_rules
        if one["direction"] == "ingress"
    )


def test_the_default_group_says_what_it_allows(member: Browser, reader: Browser) -> None:
    for browser in (member, reader):
        text = browser.get("/security-groups").text
        assert "default" in text
        assert "everything from servers of default" in text
        assert "everything to anyone" in text


def test_the_life_of_a_group(member: Browser, three_nodes: EmbeddedCloud) -> None:
    path = make(member, "web", "of the shop")
    text = member.parsed.text
    assert "web is made: it lets nothing in yet." in text
    assert "Nothing: these servers can't be reached" in text
    assert "of the shop" in text
    member.submit(path, name="shop", description="")
    assert "The group is changed." in member.parsed.text
    found = three_nodes.connection().network.get_security_group(path.rpartition("/")[2])
    assert (found.name, found.description) == ("shop", "")
    assert "and with rules of other groups" in member.get(f"{path}/delete").text
    assert "The group is deleted." in member.submit(f"{path}/delete").text
    assert member.path == "/security-groups"
    member.get(path)
    assert member.status == 404


def test_rules_are_added_by_name_and_deleted(member: Browser, three_nodes: EmbeddedCloud) -> None:
    path = make(member, "web")
    assert "Added: SSH (TCP 22)." in member.submit(f"{path}/rules").text
    assert rules(three_nodes, path) == [
        ("IPv4", "tcp", "22", "22", "None"),
        ("IPv6", "tcp", "22", "22", "None"),
    ]
    member.submit(f"{path}/rules", what="tcp", ports="8000-8100", remote="192.0.2.0/24")
    member.submit(f"{path}/rules", what="ping", family="IPv4")
    text = member.get(path).text
    assert "TCP 8000 to 8100 192.0.2.0/24 IPv4" in text
    assert "Ping anyone IPv4" in text
    listed = member.get("/security-groups").text
    assert (
        "Ping from anyone; SSH (TCP 22) from anyone; TCP 8000 to 8100 from 192.0.2.0/24" in listed
    )
    member.get(path)
    deletes = [one.action for one in member.parsed.forms if "/rules/" in one.action]
    assert len(deletes) == 4 + 2, "and the two that let all out"
    for one in deletes:
        member.submit(one.removeprefix("/dashboard"))
        assert "The rule is deleted." in member.parsed.text
    assert rules(three_nodes, path) == []
    assert "these servers reach nobody" in member.parsed.text


def test_a_rule_names_another_group(member: Browser, three_nodes: EmbeddedCloud) -> None:
    other = make(member, "balancers")
    path = make(member, "web")
    choices = member.form(f"{path}/rules").choices["group"]
    member.submit(f"{path}/rules", what="http", group=choices["balancers"], family="IPv4")
    assert "HTTP (TCP 80) servers of balancers IPv4" in member.parsed.text
    assert f"/dashboard{other}" in member.parsed.links
    member.get(f"{other}/delete")
    member.submit(f"{other}/delete")
    assert "Nothing: these servers can't be reached" in member.get(path).text


@pytest.mark.parametrize(
    ("fields", "sentence", "status"),
    [
        ({"ports": "2222"}, "Ports are for TCP", 400),
        ({"what": "tcp", "ports": "many"}, "Invalid value for port many", 400),
        ({"what": "tcp", "ports": "99-2"}, "port_range_min must be", 400),
        ({"what": "tcp", "ports": "70000"}, "Invalid value for port 70000", 400),
        ({"what": "flying"}, "rule protocol flying not supported", 400),
        ({"what": "gre", "ports": "7"}, "Ports cannot be specified for protocol 47", 400),
        ({"remote": "my office"}, "my office is no address", 400),
        ({"group": NOBODY, "family": "IPv4"}, NOBODY, 404),
        ({"direction": "sideways"}, "comes in", 400),
        ({"description": "x" * 256}, "exceeds maximum length of 255", 400),
    ],
)
def test_a_refused_rule_changes_nothing_and_is_in_the_form_still(
    member: Browser,
    three_nodes: EmbeddedCloud,
    fields: dict[str, str],
    sentence: str,
    status: int,
) -> None:
    path = make(member, "web")
    assert sentence in member.submit(f"{path}/rules", **fields).text
    assert member.status == status
    shown = {**member.form(f"{path}/rules").fields}
    assert {name: shown[name] for name in fields if name in ("ports", "remote")} == {
        name: value for name, value in fields.items() if name in ("ports", "remote")
    }
    assert rules(three_nodes, path) == []


def test_the_same_rule_twice_and_a_default_name(
    member: Browser, three_nodes: EmbeddedCloud
) -> None:
    path = make(member, "web")
    member.submit(f"{path}/rules", family="IPv4")
    assert "already exists" in member.submit(f"{path}/rules").text, "one of both: none is added"
    assert member.status == 409
    assert rules(three_nodes, path) == [("IPv4", "tcp", "22", "22", "None")]
    member.get(path)
    assert (
        "Refused: Default security group already exists."
        in member.submit(path, name="default").text
    )
    member.get("/security-groups")
    assert "Refused: " in member.submit("/security-groups", name="x" * 256).text
    [default] = three_nodes.connection().network.security_groups(name="default")
    page = f"/security-groups/{default.id}"
    member.get(page)
    assert not member.has_form(f"{page}/delete")
    assert "name" not in member.form(page).fields
    member.post(f"{page}/delete", {"csrf": member.csrf})
    assert "Refused: " in member.parsed.text
    assert member.path == page


def test_a_group_in_use_is_left_and_names_its_servers(cleared: None, member: Browser) -> None:
    path = make(member, "web")
    create(member, "inside", groups="web")
    server = member.path
    wait_for(member, server, "ACTIVE")
    member.get(path)
    assert f"/dashboard{server}" in member.parsed.links
    member.get(f"{path}/delete")
    assert "in use" in member.submit(f"{path}/delete").text
    assert member.path == path
    clear(member.cloud)


def test_nobody_else_changes_a_group(member: Browser, reader: Browser, stranger: Browser) -> None:
    path = make(member, "web")
    reader.get(path)
    assert reader.status == 200
    assert not [one for one in reader.parsed.forms if path in one.action]
    reader.post(f"{path}/rules", {"csrf": reader.csrf, "direction": "ingress", "what": "ssh"})
    assert reader.status == 403
    stranger.get(path)
    assert stranger.path == "/login"


def test_another_project_does_not_see_it(member: Browser, admin: Browser) -> None:
    path = make(member, "theirs")
    assert "theirs" not in admin.get("/security-groups").text
    admin.get(path)
    assert admin.has_form(f"{path}/rules"), "an administrator may"
    member.get(f"/security-groups/{NOBODY}")
    assert member.status == 404
