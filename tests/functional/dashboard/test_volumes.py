"""Volumes: their page, their actions, copies of them, and transfers to another project."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.dashboard.browser import Browser, Parsed
from tests.functional.dashboard.conftest import clear


def make(browser: Browser, **fields: str) -> str:
    """Create a volume by the form; its page, once it is there."""
    browser.get("/volumes/create")
    browser.submit("/volumes", **{"name": "data", "size": "1", **fields})
    assert "Under way: The volume is being created." in browser.parsed.text
    until_available(browser, browser.path)
    return browser.path


def until_available(browser: Browser, path: str) -> Parsed:
    """Wait until a page of a volume follows nothing any more."""
    return browser.until(
        path,
        lambda page: "hx-get" not in browser.page.text and "● available" in page.text,
    )


def links(browser: Browser, pattern: str) -> list[str]:
    """Return links of the present page, below the dashboard's root."""
    return [
        one.removeprefix("/dashboard") for one in browser.parsed.links if re.search(pattern, one)
    ]


def in_menu(browser: Browser, *titles: str) -> bool:
    """Return whether all of these are in the menu of a page's actions."""
    [menu] = re.findall(
        r'<details class="menu"><summary class="button">.*?</details>',
        browser.page.text,
        re.DOTALL,
    )
    return all(f">{one}<" in menu for one in titles)


@pytest.fixture
def second_type(three_nodes: EmbeddedCloud) -> Iterator[str]:
    """Another type of volumes."""
    volumes = three_nodes.connection("micronova-admin").block_storage
    made = volumes.create_type(name="second")
    yield "second"
    clear(three_nodes)
    volumes.delete_type(made)


def test_extend_edit_retype_and_make_bootable(
    second_type: str, member: Browser, three_nodes: EmbeddedCloud
) -> None:
    path = make(member)
    volumes = three_nodes.connection().block_storage
    uuid = path.rpartition("/")[2]
    assert in_menu(member, "Back up", "Retype", "Edit", "Make bootable", "Copy", "Give away")
    assert not in_menu(member, "Attach") and not in_menu(member, "Extend")
    member.get(f"{path}/extend")
    assert member.form(f"{path}/extend").fields["new_size"] == "2"
    assert "Under way: The volume is being extended." in member.submit(f"{path}/extend").text
    assert "Size 2 GiB" in until_available(member, path).text
    for size in ("1", "0", "x", ""):
        member.get(f"{path}/extend")
        assert "Refused:" in member.submit(f"{path}/extend", new_size=size).text
    member.get(f"{path}/edit")
    member.submit(f"{path}/edit", name="renamed", description="of a test")
    assert "Done: Name and description are saved." in member.parsed.text
    assert volumes.get_volume(uuid).name == "renamed"
    member.get(path)
    member.submit(f"{path}/bootable")
    assert "Bootable yes" in member.get(path).text
    assert not member.has_form(f"{path}/bootable")
    assert links(member, "/servers/create[?]volume=")
    member.get(f"{path}/retype")
    member.submit(f"{path}/retype", new_type=second_type)
    until_available(member, path)
    assert volumes.get_volume(uuid).volume_type == second_type
    member.get(f"{path}/explode")
    assert member.status == 404


def test_a_snapshot_is_reverted_to_and_copied(
    cleared: None, member: Browser, reader: Browser
) -> None:
    path = make(member)
    member.get(f"{path}/snapshot")
    member.submit(f"{path}/snapshot", name="before")
    assert "Under way: The snapshot is being made." in member.parsed.text
    member.until(path, lambda page: links(member, "/revert$"))
    assert "before" in reader.get(path).text
    assert links(reader, "/(revert|delete|attach)$") == []
    [revert] = links(member, "/revert$")
    assert "All data written to the volume since" in member.get(revert).text
    assert "Under way: The volume is being reverted." in member.submit(revert).text
    until_available(member, path)
    [copy] = links(member, "/volumes/create[?]source=snapshot:")
    member.get(copy)
    assert member.form("/volumes").fields["source"].startswith("snapshot:")
    member.submit("/volumes", name="copy")
    other = member.path
    until_available(member, other)
    assert "From the snapshot" in member.parsed.text
    member.get("/volumes/copies")
    [delete] = links(member, "/snapshots/.*/delete$")
    assert "Delete the snapshot before?" in member.get(delete).text
    assert "Under way: The snapshot is being deleted." in member.submit(delete).text
    member.until("/volumes/copies", lambda page: "No snapshots." in page.text)


def test_a_backup_is_restored_after_its_volume_is_deleted(cleared: None, member: Browser) -> None:
    path = make(member)
    member.get(f"{path}/backup")
    member.submit(f"{path}/backup", name="nightly")
    assert "Under way: The backup is being made." in member.parsed.text
    member.until(path, lambda page: links(member, "/restore$"))
    [restore] = links(member, "/restore$")
    member.get(restore)
    assert "data (1 GiB): all data on it are lost" in member.form(restore).choices["volume"]
    member.get(f"{path}/delete")
    member.submit(f"{path}/delete")
    member.until("/volumes", lambda page: "No volumes." in page.text)
    text = member.get("/volumes/copies").text
    assert re.search("nightly deleted ● available", text)
    member.get(restore)
    member.submit(restore, name="back")
    assert "Under way: The backup is being restored." in member.parsed.text
    member.until("/volumes", lambda page: "back ● available" in page.text.replace("bootable ", ""))
    member.get("/volumes/copies")
    [delete] = links(member, "/backups/.*/delete$")
    member.get(delete)
    member.submit(delete)
    member.until("/volumes/copies", lambda page: "No backups." in page.text)


def test_an_image_becomes_a_volume_and_a_volume_an_image(
    cleared: None, member: Browser, three_nodes: EmbeddedCloud
) -> None:
    image = three_nodes.connection().image.find_image("cirros")
    path = make(member, source=f"image:{image.id}", size="1")
    text = member.get(path).text
    assert "Bootable yes" in text
    member.get(f"{path}/upload")
    member.submit(f"{path}/upload", image_name="uploaded", disk_format="raw")
    assert "Under way: The image is being made." in member.parsed.text
    eventually(
        lambda: any(
            one.status == "active"
            for one in three_nodes.connection().image.images(name="uploaded")
        )
    )


def test_a_volume_is_given_to_another_project(
    cleared: None, member: Browser, admin: Browser, reader: Browser, three_nodes: EmbeddedCloud
) -> None:
    path = make(member)
    member.get(f"{path}/transfer")
    text = member.submit(f"{path}/transfer", name="gift").text
    found = re.search(r"Transfer ([0-9a-f-]{36}) Copy Key (\S+) Copy", text)
    assert found is not None
    transfer, key = found.groups()
    text = reader.get(path).text
    assert "Offered to another project as gift" in text
    assert key not in text
    admin.get("/volumes/accept")
    assert "Refused:" in admin.submit("/volumes/accept", transfer=transfer, auth_key="no").text
    admin.get("/volumes/accept")
    admin.submit("/volumes/accept", transfer=transfer, auth_key=key)
    assert "Done: The volume is this project's." in admin.parsed.text
    assert "data" in admin.get("/volumes").text
    member.get(path)
    assert member.status == 404


def test_an_offer_is_cancelled(cleared: None, member: Browser) -> None:
    path = make(member)
    member.get(f"{path}/transfer")
    member.submit(f"{path}/transfer")
    member.get(path)
    [cancel] = [one.action for one in member.parsed.forms if one.action.endswith("/cancel")]
    member.submit(cancel.removeprefix("/dashboard"))
    assert "Done: The offer is cancelled." in member.parsed.text
    assert "● available" in member.get(path).text


def test_an_administrator_sees_the_copies_of_another_projects_volume(
    cleared: None, member: Browser, admin: Browser
) -> None:
    path = make(member)
    member.get(f"{path}/snapshot")
    member.submit(f"{path}/snapshot", name="before")
    until_available(member, path)
    assert "before ● available" in admin.get(path).text


def test_another_projects_volume_is_none(
    cleared: None, member: Browser, three_nodes: EmbeddedCloud
) -> None:
    volumes = three_nodes.connection("micronova-admin").block_storage
    theirs: Any = volumes.create_volume(name="secret-name", size=1)
    eventually(lambda: volumes.get_volume(theirs).status == "available")
    snapshot: Any = volumes.create_snapshot(volume_id=theirs.id, name="secret-copy")
    eventually(lambda: volumes.get_snapshot(snapshot).status == "available")
    path, copy = f"/volumes/{theirs.id}", f"/volumes/snapshots/{snapshot.id}"
    paths = [path, *(f"{path}/{one}" for one in ("extend", "attach", "delete", "transfer"))]
    for one in (*paths, f"{copy}/revert", f"{copy}/delete"):
        member.get(one)
        assert member.status == 404
        assert "secret" not in member.page.text
    for one in ("extend", "snapshot", "backup", "edit", "delete", "transfer"):
        member.post(f"{path}/{one}", {"csrf": member.csrf, "new_size": "5", "name": "mine"})
        assert "secret" not in member.page.text
    for one in ("revert", "delete"):
        member.post(f"{copy}/{one}", {"csrf": member.csrf})
        assert "secret" not in member.page.text
    assert "secret" not in member.get("/volumes/copies").text
    member.get("/volumes/create")
    assert "secret" not in member.page.text
    found = volumes.get_volume(theirs)
    assert (found.name, found.size, found.status) == ("secret-name", 1, "available")
    assert volumes.get_snapshot(snapshot).status == "available"


@pytest.mark.parametrize(
    "fields",
    [
        {"source": "image:nothing"},
        {"source": "snapshot:11111111-1111-1111-1111-111111111111"},
        {"type": "nothing"},
        {"size": "1000000"},
        {"name": "x" * 300},
    ],
    ids=str,
)
def test_a_refused_create_shows_the_form_again(member: Browser, fields: dict[str, str]) -> None:
    member.get("/volumes/create")
    text = member.submit("/volumes", **{"name": "odd", "size": "1", **fields}).text
    assert 400 <= member.status < 500
    assert "Refused:" in text
    assert member.form("/volumes").fields["size"] == fields.get("size", "1")
    assert "No volumes." in member.get("/volumes").text
