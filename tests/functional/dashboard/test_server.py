"""The tabs of a server, as its users, those who only look, and strangers see them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from dashboard.pages.server import actions
from tests.functional.audit.leaks import Proxmox
from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.dashboard.browser import Browser
from tests.functional.dashboard.test_pages import MOST_CALLS, create, wait_for

#: what neither stops a server nor erases anything
HARMLESS = {
    *("start", "unpause", "resume", "unshelve", "restore", "image", "lock", "unlock"),
    *("live-migrate", "retry", "hold"),
}
TABS = ("", "/network", "/storage", "/console", "/log", "/history", "/metadata")


@pytest.fixture(scope="module")
def path(three_nodes: EmbeddedCloud) -> Iterator[str]:
    """The page of a server that runs."""
    from tests.functional.dashboard.conftest import clear

    member = Browser(three_nodes)
    member.log_in("member")
    create(member, "tabbed")
    wait_for(member, member.path, "ACTIVE")
    yield member.path
    clear(three_nodes)


def test_each_tab_is_a_page_of_its_own(
    path: str, member: Browser, reader: Browser, stranger: Browser
) -> None:
    for tab in TABS:
        member.get(f"{path}{tab}")
        assert member.status == 200
        assert member.calls <= MOST_CALLS[f"/servers/{{server_id:uuid}}{tab}"]
        assert f'href="/dashboard{path}{tab}" aria-current="page"' in member.page.text
        assert "Refused" not in member.parsed.text
        reader.get(f"{path}{tab}")
        assert reader.status == (403 if tab in ("/console", "/log") else 200)
        if reader.status == 200:
            below = {one.action for one in reader.parsed.forms}
            assert not any("/servers/" in one for one in below), tab
    stranger.log_in("admin", project="admin")
    other = path[:-1] + ("0" if path[-1] != "0" else "1")
    for tab in TABS:
        member.get(f"{other}{tab}")
        assert member.status == 404


def test_consoles(path: str, three_nodes: EmbeddedCloud, member: Browser) -> None:
    member.get(f"{path}/console")
    page = f"{path}/console"
    [frame] = member.submit(page, kind="serial").frames
    assert re.fullmatch(r"http://[^/]+/serial_auto\.html#token=[\w-]{40,}", frame)
    assert "serial_auto.html" not in member.submit(page, kind="nothing").frames[0]
    proxmox = Proxmox(three_nodes)
    vm = next(one for one in proxmox.call("GET", "cluster/resources") if is_tabbed(one))
    there = f"nodes/{vm['node']}/qemu/{vm['vmid']}/config"
    proxmox.call("PUT", there, delete="serial0")
    try:
        refused = member.submit(page, kind="serial")
        assert member.status == 400
        assert refused.frames == []
        assert "Unavailable console type serial." in refused.text
    finally:
        proxmox.call("PUT", there, serial0="socket")


def is_tabbed(resource: Any) -> bool:
    return bool(resource.get("name") == "tabbed")


def test_the_first_tab_says_how_to_log_in(path: str, member: Browser) -> None:
    text = member.get(path).text
    address = re.search(r"ssh cirros@([0-9.]+)", text)
    assert address is not None
    assert f'data-copy="{address[1]}"' in member.page.text
    assert f'data-copy="{path.rpartition("/")[2]}"' in member.page.text
    assert "Image cirros" in text


def test_all_that_stops_or_erases_asks_first(path: str, member: Browser) -> None:
    member.get(path)
    for action in actions.ACTIONS.values():
        assert bool(action.asks) == (action.name not in HARMLESS), action.name
        if action.asks:
            assert not member.has_form(f"{path}/{action.name}"), action.name
            text = member.get(f"{path}/{action.name}").text
            assert "tabbed?" in text
            assert action.asks in text
            assert re.search(r"lost|deleted|stands still|well", text), action.name
            member.get(path)
    text = member.get(f"{path}/delete").text
    assert "Delete tabbed?" in text
    assert "is given to others" in text


def test_forms_begin_with_what_the_server_is(
    path: str, member: Browser, three_nodes: EmbeddedCloud
) -> None:
    image = three_nodes.connection().image.find_image("cirros").id
    for action, field in (("rebuild", "imageRef"), ("rescue", "rescue_image_ref")):
        member.get(f"{path}/{action}")
        form = member.form(f"{path}/{action}")
        assert form.fields[field] == image
        assert form.choices[field]["cirros (its own)"] == image
    text = member.get(f"{path}/resize").text
    assert re.search(r"m1.nano 1 VCPU, 128 MiB, \d+ GiB current", text)
    assert next(iter(member.form(f"{path}/resize").choices["flavorRef"])) == "m1.nano"


def test_no_image_is_chosen_where_the_own_is_not_offered(
    path: str, member: Browser, three_nodes: EmbeddedCloud
) -> None:
    admin = three_nodes.connection("micronova-admin").image
    image = admin.find_image("cirros")
    admin.deactivate_image(image)
    try:
        for action, field in (("rebuild", "imageRef"), ("rescue", "rescue_image_ref")):
            text = member.get(f"{path}/{action}").text
            assert "The server's own image isn't one of the 1,000 newest" in text
            form = member.form(f"{path}/{action}")
            assert form.fields[field] == ""
            assert "debian-12" in form.choices[field]
            assert f'name="{field}" required' in member.page.text
        member.get(f"{path}/rebuild")
        assert "Refused:" in member.submit(f"{path}/rebuild", imageRef="").text
        member.get(f"{path}/rebuild?image=nothing")
        assert "The image that was asked for isn't one of" in member.parsed.text
        assert member.form(f"{path}/rebuild").fields["imageRef"] == ""
    finally:
        admin.reactivate_image(image)


def test_no_image_is_chosen_for_a_server_on_a_volume(member: Browser) -> None:
    create(member, "furnished", source="new", boot_size="2", boot_with="1")
    furnished = member.path
    wait_for(member, furnished, "ACTIVE")
    for action, field in (("rebuild", "imageRef"), ("rescue", "rescue_image_ref")):
        text = member.get(f"{furnished}/{action}").text
        assert "The server boots from a volume, so that no image is its own" in text
        assert member.form(f"{furnished}/{action}").fields[field] == ""
    member.post(f"{furnished}/delete", {"csrf": member.csrf})


def test_name_tags_and_metadata(
    path: str, member: Browser, reader: Browser, three_nodes: EmbeddedCloud
) -> None:
    compute = three_nodes.connection().compute
    uuid = path.rpartition("/")[2]
    compute.set_server_metadata(uuid, odd="two\nlines", tier="front")
    tab = f"{path}/metadata"
    member.get(tab)
    assert member.form(tab).fields["metadata"] == "tier=front"
    assert "left as they are: odd." in member.parsed.text
    member.submit(tab, metadata="tier=back\n\n note = a=b ")
    assert "Done: The metadata are saved." in member.parsed.text
    assert dict(compute.get_server(uuid).metadata) == {
        "odd": "two\nlines",
        "tier": "back",
        "note": "a=b",
    }
    for odd in ("nothing", "=x", "x" * 300 + "=y"):
        assert "Refused:" in member.submit(tab, metadata=odd).text
    member.submit(f"{path}/tags", tags="web, front,,web")
    assert set(compute.get_server(uuid).tags) == {"web", "front"}
    assert "Refused:" in member.submit(f"{path}/tags", tags="a/b").text
    member.submit(f"{path}/name", name="renamed", description="of a test")
    found = compute.get_server(uuid)
    assert (found.name, found.description) == ("renamed", "of a test")
    assert "Refused:" in member.submit(f"{path}/name", name=" ").text
    text = reader.get(tab).text
    for shown in ("of a test", "front", "a=b"):
        assert shown in text
    member.get(tab)
    member.submit(f"{path}/name", name="tabbed", description="")
    assert not compute.get_server(uuid).description


def test_an_interface_comes_and_is_detached(
    path: str, member: Browser, three_nodes: EmbeddedCloud
) -> None:
    tab, uuid = f"{path}/network", path.rpartition("/")[2]
    network = three_nodes.connection().network
    text = member.get(tab).text
    assert "vmbr0" in text
    [port] = network.ports(device_id=uuid)
    assert port.mac_address in text
    member.submit(tab, network=port.network_id)
    assert "The interface is attached" in member.parsed.text
    ports = list(network.ports(device_id=uuid))
    assert len(ports) == 2
    [new] = [one for one in ports if one.id != port.id]
    assert "Refused:" in member.submit(tab, network="nothing").text
    assert "Refused:" in member.submit(tab, network=port.network_id, address="x").text
    detach = f"{path}/ports/{new.id}/detach"
    text = member.get(detach).text
    assert f"The server loses {new.fixed_ips[0]['ip_address']}" in text
    assert "Detach an interface of tabbed?" in text
    assert "Under way: The interface is being detached." in member.submit(detach).text
    eventually(lambda: len(list(network.ports(device_id=uuid))) == 1)


def test_security_groups_of_a_port(
    path: str, member: Browser, reader: Browser, admin: Browser, three_nodes: EmbeddedCloud
) -> None:
    network = three_nodes.connection().network
    [port] = network.ports(device_id=path.rpartition("/")[2])
    [group] = [one for one in network.security_groups() if one.name == "default"]
    action = f"{path}/ports/{port.id}/groups"
    member.get(f"{path}/network")
    assert member.has_form(action)
    member.submit(action, groups=group.id)
    assert "Done: The security groups of the port are changed." in member.parsed.text
    assert network.get_port(port.id).security_group_ids == [group.id]
    assert "Refused:" in member.submit(action, groups="nothing").text
    reader.post(action, {"csrf": reader.csrf, "groups": group.id})
    assert reader.status == 403
    assert network.get_port(port.id).security_group_ids == [group.id]
    # of other projects an administrator is offered none
    admin.get(f"{path}/network")
    offered = re.findall(r'name="groups" value="([^"]+)"', admin.page.text)
    assert offered == [one.id for one in network.security_groups()]


def test_volumes_come_and_are_detached(
    path: str, member: Browser, three_nodes: EmbeddedCloud
) -> None:
    tab = f"{path}/storage"
    volumes = three_nodes.connection().block_storage
    volume = volumes.create_volume(name="data", size=1)
    eventually(lambda: volumes.get_volume(volume).status == "available")
    assert "Root disk" in member.get(tab).text
    member.submit(tab, volume=volume.id, delete_on_termination="1")
    assert "Under way: The volume is being attached." in member.parsed.text
    member.until(tab, lambda page: "/dev/" in page.text and "hx-get" not in live(member))
    assert "data volume 1 GiB" in member.parsed.text
    assert "The volume data is deleted with it" in member.get(f"{path}/delete").text
    detach = f"{path}/volumes/{volume.id}/detach"
    assert "Detach data from tabbed?" in member.get(detach).text
    member.submit(detach)
    assert member.path == tab
    eventually(lambda: volumes.get_volume(volume).status == "available")
    member.get(tab)
    assert "data (1 GiB)" in member.form(tab).choices["volume"]
    for odd in ("nothing", ""):
        text = member.post(tab, {"csrf": member.csrf, "volume": odd}).text
        assert "Refused:" in text
    volumes.delete_volume(volume)


def live(browser: Browser) -> str:
    """Return the mark of the part that follows by itself."""
    return browser.page.text.partition('id="live"')[2].partition(">")[0]


def test_a_snapshot_is_made_restored_and_deleted(path: str, member: Browser) -> None:
    tab = f"{path}/storage"
    assert "No snapshots." in member.get(tab).text
    member.submit(f"{path}/image", name="before")
    assert member.path == tab
    assert "Under way: The snapshot is being made." in member.parsed.text
    member.until(tab, lambda page: "● active" in page.text and "hx-get" not in live(member))
    [restore] = [one for one in member.parsed.links if "/rebuild?image=" in one]
    member.get(restore.removeprefix("/dashboard"))
    assert "all data on the old one is lost" in member.parsed.text
    form = member.form(f"{path}/rebuild")
    assert form.fields["imageRef"] == restore.rpartition("=")[2]
    member.submit(f"{path}/rebuild")
    assert "Under way: The server is being rebuilt." in member.parsed.text
    wait_for(member, path, "ACTIVE")
    text = member.get(path).text
    assert "Image before" in text
    assert "rebuild ● done" in text


def test_the_log_is_shown_or_why_it_is_not(path: str, member: Browser) -> None:
    for query in ("", "?lines=1000", "?lines=all", "?lines=odd", "?cloud_init=1"):
        text = member.get(f"{path}/log{query}").text
        assert member.status == 200
        assert re.search("Not known:|serial line", text)


def test_the_history_begins_with_how_it_stands(path: str, member: Browser) -> None:
    text = member.get(f"{path}/history").text
    conclusion, _, rest = text.partition("What was done")
    assert "is done" in conclusion
    assert "create ● done" in rest


def test_an_action_that_is_refused_says_why(path: str, member: Browser) -> None:
    text = member.post(f"{path}/unpause", {"csrf": member.csrf}).text
    assert "Refused: " in text
    assert "Under way" not in text
