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
    assert browser.calls <= 3
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
    assert shown(member, "q=fro") == {"beta-2"}
    assert shown(member, "q=ront") == set()
    assert shown(member, f"q={servers['beta-2']}") == {"beta-2"}
    assert shown(member, f"q={servers['beta-2'][:8]}") == {"beta-2"}
    assert shown(member, f"q={servers['beta-2'][:-1].upper()}") == {"beta-2"}
    assert shown(member, f"q={servers['beta-2']}&status=ERROR") == set()
    compute = three_nodes.connection().compute
    addresses = compute.get_server(servers["alpha.1"]).addresses
    address = next(one["addr"] for given in addresses.values() for one in given)
    assert shown(member, f"q={address}") == {"alpha.1"}
    begun = address.rpartition(".")[0]
    for half in (f"{begun}.", begun):
        assert shown(member, f"q={half}") == both
    # hits of every kind have an order, and pages
    assert len(shown(member, f"q={begun}&limit=1&sort=display_name&dir=asc")) == 1
    assert "alpha.1" in member.page.text
    assert "2 servers on all pages: 2 ACTIVE; 2 VCPUs" in member.parsed.text
    [following] = [one for one in member.parsed.links if "marker=" in one]
    assert "beta-2" in member.get(following.removeprefix("/dashboard")).text
    assert "2 servers on all pages" in member.parsed.text
    for odd in ("(", "[", "*", "%5C", "a,b", "a%2Fb", "x" * 200, "999.999.", "::", "'"):
        assert shown(member, f"q={odd}") == set(), odd
    member.get("/servers?q=%00")
    assert member.status == 400


def test_an_operator_finds_an_id_in_all_projects(servers: dict[str, str], admin: Browser) -> None:
    assert shown(admin, f"q={servers['alpha.1']}") == {"alpha.1"}
    assert shown(admin, "q=alpha") == set()


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
    member.get("/servers")
    for does in ("Stop alpha.1", "Reboot alpha.1", "Console of alpha.1", "Delete alpha.1"):
        assert f'aria-label="{does}"' in member.page.text, does
    assert 'aria-label="Start alpha.1"' not in member.page.text
    assert f"/dashboard/servers/{servers['alpha.1']}/console" in member.parsed.links
    reader.get("/servers")
    assert "Console of" not in reader.page.text
    assert "/servers/bulk" not in reader.page.text
    assert 'type="checkbox"' not in reader.page.text


def test_a_lock_is_seen_in_the_list(servers: dict[str, str], member: Browser) -> None:
    path = f"/servers/{servers['beta-2']}"
    assert "beta-2 locked" not in member.get("/servers").text
    member.get(path)
    assert "Done: The server is locked." in member.submit(f"{path}/lock").text
    text = member.get("/servers").text
    assert "beta-2 locked" in text
    assert "alpha.1 locked" not in text
    member.get(path)
    assert "Done: The server is unlocked." in member.submit(f"{path}/unlock").text
    assert "beta-2 locked" not in member.get("/servers").text


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
    assert "Each is shut down: what runs in it ends, and what isn't saved is lost." in page.text
    page = member.post("/servers/bulk", {**chosen, "action": "reboot"})
    assert "Each is shut down and started again" in page.text
    assert {one.status for one in compute.servers()} == {"ACTIVE"}
    page = member.post("/servers/bulk", {**chosen, "action": "stop", "sure": "yes"})
    assert "Under way: 2 servers are being stopped." in page.text
    eventually(lambda: {one.status for one in compute.servers()} == {"SHUTOFF"})
    page = member.post("/servers/bulk", {**chosen, "action": "stop", "sure": "yes"})
    assert "Refused:" in page.text
    page = member.post("/servers/bulk", {**chosen, "action": "start"})
    assert "Under way: 2 servers are being started." in page.text
    eventually(lambda: {one.status for one in compute.servers()} == {"ACTIVE"})
    for wrong in (
        {"action": "start"},
        {"action": "explode", "server": servers["beta-2"]},
        {"action": "start", "server": "../../x"},
    ):
        page = member.post("/servers/bulk", {"csrf": member.csrf, **wrong})
        assert "Choose servers, and what to do." in page.text
    volumes = three_nodes.connection().block_storage
    volume = volumes.create_volume(name="data", size=1)
    eventually(lambda: volumes.get_volume(volume).status == "available")
    beta = servers["beta-2"]
    compute.create_volume_attachment(beta, volume_id=volume.id, delete_on_termination=True)
    eventually(lambda: volumes.get_volume(volume).status == "in-use")
    page = member.post("/servers/bulk", {**chosen, "action": "delete"})
    assert "The volume data is deleted with it, with all its data." in page.text
    for uuid in servers.values():
        for network, given in compute.get_server(uuid).addresses.items():
            for one in given:
                assert f"Its address {one['addr']} of {network} is given to others." in page.text
    assert len(list(compute.servers())) == 2
    reader.post("/servers/bulk", {**chosen, "csrf": reader.csrf, "action": "start"})
    assert reader.status == 403
    page = member.post(
        "/servers/bulk",
        {**chosen, "server": [servers["beta-2"]], "action": "delete", "sure": "yes"},
    )
    assert "Under way: 1 server is being deleted." in page.text
    eventually(lambda: [one.name for one in compute.servers()] == ["alpha.1"])
