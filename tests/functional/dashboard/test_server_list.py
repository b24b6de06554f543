"""The list of servers: found, followed, and several changed at once."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.dashboard.browser import Browser
from tests.functional.dashboard.test_pages import create, wait_for


@pytest.fixture(scope="module")
def servers(three_nodes: EmbeddedCloud) -> Iterator[dict[str, str]]:
    """Two servers: their IDs by name."""
    from tests.functional.dashboard.conftest import clear

    member = Browser(three_nodes)
    member.log_in("member")
    made = {}
    for name in ("alpha.1", "beta-2"):
        create(member, name)
        wait_for(member, member.path, "ACTIVE")
        made[name] = member.path.rsplit("/", 1)[-1]
    connection = three_nodes.connection()
    connection.compute.put(f"/servers/{made['beta-2']}/tags/front", microversion="2.26")
    yield made
    clear(three_nodes)


def shown(browser: Browser, query: str) -> set[str]:
    """Return the names that a search finds."""
    browser.get(f"/servers?{query}")
    assert browser.status == 200
    assert browser.calls <= 5
    return set(re.findall(r'aria-label="Choose ([^"]+)"', browser.page.text))


def test_one_box_finds_names_ids_addresses_and_tags(
    servers: dict[str, str], member: Browser, three_nodes: EmbeddedCloud
) -> None:
    both = set(servers)
    assert shown(member, "") == both
    assert shown(member, "q=alpha") == {"alpha.1"}
    assert shown(member, "q=alpha.") == {"alpha.1"}
    assert shown(member, "q=al.ha") == set(), "a search is no regular expression"
    assert shown(member, "q=front") == {"beta-2"}
    assert shown(member, f"q={servers['beta-2']}") == {"beta-2"}
    compute = three_nodes.connection().compute
    addresses = compute.get_server(servers["alpha.1"]).addresses
    address = next(one["addr"] for given in addresses.values() for one in given)
    assert shown(member, f"q={address}") == {"alpha.1"}
    assert shown(member, f"q={address.rpartition('.')[0]}.") == both
    for odd in ("(", "[", "*", "%5C", "a,b", "a%2Fb", "x" * 200, "999.999.", "::", "'"):
        assert shown(member, f"q={odd}") == set(), odd
    member.get("/servers?q=%00")
    assert member.status == 400


def test_a_row_says_what_there_is_and_the_page_its_sums(
    servers: dict[str, str], member: Browser, admin: Browser, reader: Browser
) -> None:
    text = member.get("/servers").text
    for word in ("cirros", "m1.nano", "front", "2 servers: 2 ACTIVE; 2 VCPUs"):
        assert word in text
    assert "Project" not in text.partition("Age")[0].partition("Status Addresses")[2]
    text = admin.get("/servers?all_tenants=1").text
    assert "demo" in text.partition("alpha.1")[2]
    assert re.search(r"pve[123]", text.partition("alpha.1")[2])
    reader.get("/servers")
    assert "/servers/bulk" not in reader.page.text
    assert 'type="checkbox"' not in reader.page.text


def poll_of(browser: Browser) -> str:
    found = re.search(r'id="poll" hx-get="/dashboard([^"]+)"', browser.page.text)
    assert found is not None
    return found[1].replace("&amp;", "&")


def test_a_page_follows_changes_of_others_by_one_cheap_request(
    servers: dict[str, str], member: Browser, three_nodes: EmbeddedCloud
) -> None:
    member.get("/servers?q=alpha")
    poll = re.sub(r"since=[^&]+", "since=2999-01-01T00:00:00Z", poll_of(member))
    member.get(poll)
    assert (member.status, member.calls, member.page.text) == (204, 1, "")
    # what was read again and is the same isn't sent
    since = re.sub(r"since=[^&]+", "since=2020-01-01T00:00:00Z", poll)
    member.get(since)
    assert 'id="list"' not in member.page.text
    assert "since=2020" not in poll_of(member)
    assert "q=alpha" in poll_of(member)
    compute = three_nodes.connection().compute
    compute.update_server(servers["alpha.1"], name="alpha.9")
    member.get(since)
    assert '<div id="list" hx-swap-oob="true">' in member.page.text
    assert "alpha.9" in member.page.text
    compute.update_server(servers["alpha.1"], name="alpha.1")


def test_several_at_once_after_a_page_that_names_them(
    servers: dict[str, str], member: Browser, reader: Browser, three_nodes: EmbeddedCloud
) -> None:
    compute = three_nodes.connection().compute
    chosen = {"csrf": member.csrf, "server": list(servers.values())}
    page = member.post("/servers/bulk", {**chosen, "action": "stop"})
    assert "Stop 2 servers?" in page.text
    assert "alpha.1" in page.text
    assert "beta-2" in page.text
    assert {one.status for one in compute.servers()} == {"ACTIVE"}
    page = member.post("/servers/bulk", {**chosen, "action": "stop", "sure": "yes"})
    assert "Stop: accepted for 2 servers." in page.text
    eventually(lambda: {one.status for one in compute.servers()} == {"SHUTOFF"})
    page = member.post("/servers/bulk", {**chosen, "action": "stop", "sure": "yes"})
    assert "Refused:" in page.text
    page = member.post("/servers/bulk", {**chosen, "action": "start"})
    assert "Start: accepted for 2 servers." in page.text
    eventually(lambda: {one.status for one in compute.servers()} == {"ACTIVE"})
    for wrong in (
        {"action": "start"},
        {"action": "explode", "server": servers["beta-2"]},
        {"action": "start", "server": "../../x"},
    ):
        page = member.post("/servers/bulk", {"csrf": member.csrf, **wrong})
        assert "Choose servers, and what to do." in page.text
    reader.post("/servers/bulk", {**chosen, "csrf": reader.csrf, "action": "start"})
    assert reader.status == 403
    page = member.post(
        "/servers/bulk",
        {**chosen, "server": [servers["beta-2"]], "action": "delete", "sure": "yes"},
    )
    assert "Delete: accepted for 1 server." in page.text
    eventually(lambda: [one.name for one in compute.servers()] == ["alpha.1"])
