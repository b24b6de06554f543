"""Images and their data, as members, readers and administrators see them."""

from __future__ import annotations

import re

import requests

from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.browser import Browser, Parsed

#: an empty qcow2 image of 1 MiB: version 2, clusters of 64 KiB
QCOW2 = (
    b"QFI\xfb"
    + (2).to_bytes(4, "big")
    + bytes(12)
    + (16).to_bytes(4, "big")
    + (1 << 20).to_bytes(8, "big")
    + bytes(4)
    + (1).to_bytes(4, "big")
    + (65536 * 3).to_bytes(8, "big")
    + (65536).to_bytes(8, "big")
    + (1).to_bytes(4, "big")
    + bytes(65536 * 4 - 60)
)


def create(browser: Browser, called: str, **fields: str) -> Parsed:
    """Create an image by the form; the page that follows."""
    browser.get("/images/create")
    return browser.submit("/images/create", **{"name": called, **fields})


def send(browser: Browser, path: str, data: bytes) -> requests.Response:
    """Send a file as the page's script does."""
    headers = {
        "Origin": browser.origin,
        "Sec-Fetch-Site": "same-origin",
        "X-CSRF-Token": browser.csrf,
        "Content-Type": "application/octet-stream",
    }
    return browser.http.put(browser.url(f"{path}/data"), data=data, headers=headers, timeout=60)


def test_an_image_from_create_to_delete(
    cleared: None, member: Browser, reader: Browser, admin: Browser
) -> None:
    text = create(
        member, "mine", min_disk="1", properties="os_distro=debian\nhw_disk_bus=scsi"
    ).text
    path = member.path
    assert path.startswith("/images/")
    assert "has no data yet" in text
    assert "upload.js" in member.page.text
    assert "hw_disk_bus scsi" in text

    answer = send(member, path, QCOW2)
    assert (answer.status_code, answer.headers["Location"]) == (201, f"/dashboard{path}")
    assert "Under way: The data are being imported." in member.get(path).text
    text = member.until(path, lambda page: "● active" in page.text).text
    assert "256.0 KiB" in text
    assert "upload.js" not in member.page.text
    choices = member.get("/servers/create") and member.form("/servers/create").choices["image"]
    assert "mine" in choices
    assert any(one.endswith(f"create?image={path[8:]}") for one in member.get(path).links)

    assert "mine" in reader.get(path).text
    assert not any(f"{path}/" in one for one in reader.parsed.links)
    assert not reader.has_form("/import")

    change(member, path)
    assert "can't be restored" in member.get(f"{path}/delete").text
    assert "The image is deleted." in member.submit(f"{path}/delete").text
    assert member.path == "/images"
    assert "mine" not in member.parsed.text
    member.get(path)
    assert member.status == 404


def change(member: Browser, path: str) -> None:
    member.get(f"{path}/edit")
    form = member.form(f"{path}/edit")
    assert form.fields["properties"] == "hw_disk_bus=scsi\nos_distro=debian"
    assert form.fields["visibility"] == "private"
    lines = "os_distro=ubuntu\nnote=a=b"
    text = member.submit(f"{path}/edit", name="ours", protected="1", properties=lines).text
    assert "The image is changed." in text
    assert "ours" in text
    assert "os_distro ubuntu" in text
    assert "note a=b" in text
    assert "hw_disk_bus" not in text
    assert not any(one.endswith("/delete") for one in member.parsed.links)
    text = member.post(f"{path}/delete", {"csrf": member.csrf}).text
    assert "Refused: " in text
    assert "protected" in text
    member.get(f"{path}/edit")
    same = {"name": "mine", "properties": lines}
    assert "The image is changed." in member.submit(f"{path}/edit", **same).text
    member.get(f"{path}/edit")
    assert "Nothing was to be changed." in member.submit(f"{path}/edit", **same).text


def test_properties_that_no_line_can_show_stay(cleared: None, member: Browser) -> None:
    create(member, "odd", properties="os_distro=debian")
    path = member.path
    odd = {"note": "a\nos_type=b", "blank": " x ", "empty": "", "a=b": "c"}
    patch = [{"op": "add", "path": f"/{name}", "value": value} for name, value in odd.items()]
    image = member.cloud.connection().image
    kind = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
    answer = image.patch(path, json=patch, headers=kind)
    assert answer.status_code == 200, answer.text
    member.get(f"{path}/edit")
    assert member.form(f"{path}/edit").fields["properties"] == "empty=\nos_distro=debian"
    text = member.submit(f"{path}/edit", name="even", properties="os_distro=ubuntu").text
    assert "The image is changed." in text
    kept = image.get(path).json()
    assert {name: kept.get(name) for name in odd} == {**odd, "empty": None}
    assert (kept["name"], kept["os_distro"]) == ("even", "ubuntu")
    assert "os_type" not in kept


def test_what_is_refused_of_an_image(cleared: None, member: Browser) -> None:
    for fields, sentence in (
        ({"properties": "no sign"}, "A property is written NAME=VALUE"),
        ({"properties": "status=active"}, "status is no property"),
        ({"min_ram": "much"}, "min_ram"),
        ({"visibility": "public"}, "publicize_image"),
        ({"disk_format": "vhd"}, "disk_format"),
    ):
        text = create(member, "<refused>", **fields).text
        assert sentence in text, text
        assert 400 <= member.status < 500
        assert member.form("/images/create").fields["name"] == "<refused>"
    assert "<refused>" not in member.get("/images").text
    create(member, "odd")
    path = member.path
    assert send(member, path, b"no qcow2 at all").status_code == 201
    assert "Refused: " in member.get(path).text


def test_a_download_that_fails_says_why(cleared: None, member: Browser) -> None:
    create(member, "from afar", uri="http://localhost/x.qcow2")
    path = member.path
    text = member.until(path, lambda page: "has no data yet" in page.text).text
    assert "localhost" in text
    assert member.has_form(f"{path}/import")
    assert "Refused: " in member.submit(f"{path}/import", uri="http://evil.example/").text


def test_images_of_the_storages(member: Browser, admin: Browser) -> None:
    [path] = [
        one.removeprefix("/dashboard")
        for one in member.get("/images?name=cirros&visibility=public").links
        if one.startswith("/dashboard/images/") and not one.endswith("create")
    ]
    assert "the clusters' storages" in member.get(path).text
    assert not any(f"{path}/" in one for one in member.parsed.links)
    text = member.post(f"{path}/delete", {"csrf": member.csrf}).text
    assert "Refused: " in text
    links = admin.get(path).links
    assert f"/dashboard{path}/edit" in links
    assert f"/dashboard{path}/delete" not in links


def test_images_are_found_by_a_part_of_the_name_and_followed(
    cleared: None, three_nodes: EmbeddedCloud, member: Browser
) -> None:
    create(member, "Plum of ours")
    path = member.path
    assert "Plum of ours" in member.get("/images?name=plum").text
    assert "cirros" not in member.page.text
    assert "Plum of ours" in member.get(f"/images?name={path.rpartition('/')[2]}").text
    assert "No images." in member.get("/images?name=nothing").text
    assert "hx-get" not in member.page.text
    three_nodes.control("POST", "faults", action="hold", method="POST", path="/storage/")
    try:
        assert send(member, path, QCOW2).status_code == 201
        text = member.until(path, lambda page: "The data are being imported" in page.text).text
        assert re.search(r"The data are being imported, for \d+ s now", text)
        member.get("/images?name=plum")
        assert 'hx-get="/dashboard/images?name=plum" hx-select="#live"' in member.page.text
    finally:
        three_nodes.control("DELETE", "faults")
    member.until("/images?name=plum", lambda page: "● active" in page.text)
    assert "hx-select" not in member.page.text


def test_pages_of_images(member: Browser) -> None:
    seen: list[str] = []
    path = "/images?limit=1"
    while path:
        found = member.get(path)
        seen += [one for one in found.links if one.startswith("/dashboard/images/")]
        following = [one for one in found.links if "marker=" in one]
        path = following[0].removeprefix("/dashboard") if following else ""
    shown = [one for one in seen if not one.endswith("create")]
    assert len(shown) == len(set(shown)) >= 2


def test_another_projects_image_is_none(cleared: None, member: Browser, admin: Browser) -> None:
    create(admin, "secret-image")
    path = admin.path
    for below in ("", "/edit", "/delete"):
        assert "secret-image" not in member.get(f"{path}{below}").text
        assert member.status == 404
    for below in ("edit", "delete", "import"):
        member.post(f"{path}/{below}", {"csrf": member.csrf, "name": "taken"})
        assert "secret-image" not in member.page.text
    send(member, path, QCOW2)
    assert "has no data yet" in admin.get(path).text
    assert "secret-image" in admin.parsed.text
