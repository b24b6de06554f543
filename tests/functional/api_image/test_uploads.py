"""Uploads over HTTP: Glance's answers, its refusals, and what they leave."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from api.image import config as image_config
from api.image.app import make_app
from api.image.data.uploads import PIECE_BYTES
from common.messages.commands import RemoveImage, StoreImage
from common.messages.facts import StorageFacts
from common.messages.reports import Category, Failure
from common.resources import image_files
from conductor.endpoints.images import ImageEndpoint
from db import engine, schema
from tests.fixtures import auth
from tests.fixtures.listings import a_conf, mounted, served
from tests.functional.api_image.test_user_images import call, make, patch, put
from tests.functional.conductor.harness import World
from tests.functional.waiting import eventually

DATA = os.urandom(PIECE_BYTES + 12_345)
LOST = Failure(Category.NODE_UNHEALTHY, "The node is offline.", host="pve1")
FULL = Failure(Category.AUTHORIZATION, "Permission check failed.", host="pve1")


@dataclasses.dataclass
class Site:
    """The API over a conductor whose agents the test plays, and its spool."""

    world: World
    url: str
    spool: Path

    def new(self, disk_format: str = "raw", **more: Any) -> str:
        body = {"disk_format": disk_format, "container_format": "bare", **more}
        return str(make(self.url, **body)["id"])

    def send(
        self, image_id: str, data: Any = DATA, token: str = auth.MEMBER, **headers: str
    ) -> requests.Response:
        given = {"X-Auth-Token": token, "Content-Type": "application/octet-stream", **headers}
        return requests.put(
            f"{self.url}/images/{image_id}/file", data=data, headers=given, timeout=60
        )

    def image(self, image_id: str) -> Any:
        return call(f"{self.url}/images/{image_id}").json()

    def becomes(self, image_id: str, status: str) -> bool:
        """Whether the image gets to this state soon."""
        return bool(eventually(lambda: self.image(image_id)["status"] == status, 10, 0.02))

    def files(self) -> list[str]:
        return sorted(os.listdir(self.spool)) if self.spool.exists() else []

    def command(self, kind: type[Any]) -> Any:
        """The last command of a kind, once it is sent."""
        sent = self.world.compute.sent

        def last() -> Any:
            return next((one for _, one in reversed(sent) if isinstance(one, kind)), None)

        return eventually(last, 10, 0.02)


@contextlib.contextmanager
def a_site(
    folder: Path, *, quota: Mapping[str, int] | None = None, **options: Any
) -> Iterator[Site]:
    """One with these options, and limits of a project, besides."""
    world = World(folder)
    world.conductor.runner.start()
    reader = engine.reader(world.url)
    conductor: Any = ImageEndpoint(world.conductor.cloud)
    conf = a_conf()
    image_config.register(conf)
    for name, value in {
        "fetch_url": "http://api:1/image",
        "spool_dir": str(folder / "spool"),
        "max_upload_gib": 1,
        "upload_wait_seconds": 0,
        **options,
    }.items():
        conf.set_override(name, value, "images")
    for name, value in (quota or {}).items():
        for one in (conf, world.conductor.cloud.conf):
            one.set_override(name, value, "quota")
    app = make_app(conf, reader, auth.header_auth, conductor)
    with served(mounted(app, "/image")) as root:
        yield Site(world, f"{root}/image/v2", folder / "spool")
    world.close()
    reader.dispose()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with a_site(tmp_path) as made:
        yield made


def test_an_upload_goes_to_the_cluster_and_away_with_its_image(site: Site) -> None:
    image_id = site.new()
    answer = site.send(image_id)
    assert (answer.status_code, answer.content) == (204, b"")
    shown = site.image(image_id)
    assert (shown["status"], shown["size"], shown["min_disk"]) == ("saving", len(DATA), 0)
    assert shown["checksum"] == hashlib.md5(DATA).hexdigest()
    assert shown["os_hash_algo"] == "sha512"
    assert shown["os_hash_value"] == hashlib.sha512(DATA).hexdigest()
    command = site.command(StoreImage)
    sha512 = hashlib.sha512(DATA).hexdigest()
    cloud = site.world.conductor.cloud.id
    assert command.volid == image_files.volid("nfs1", cloud, image_id, sha512, "raw", "demo")
    assert (command.placed.host, command.size_bytes) == ("pve1", len(DATA))
    assert _fetched(site, command) == DATA
    assert site.send(image_id).status_code == 409
    assert len(site.files()) == 1
    site.world.answer(command, ok=True)
    assert site.becomes(image_id, "active")
    assert site.send(image_id).status_code == 409
    # Whether or not the spool has let go of it.
    assert call(f"{site.url}/images/{image_id}/file").status_code == 403
    assert call(f"{site.url}/images/{image_id}", "DELETE").status_code == 204
    removal = site.command(RemoveImage)
    assert (removal.volid, removal.resource_id) == (command.volid, image_id)
    site.world.answer(removal, ok=True, gone=True)
    # Its id isn't free: the file may come back as long as somebody remembers it.
    assert call(f"{site.url}/images", "POST", {"id": image_id}).status_code == 409


def _fetched(site: Site, command: StoreImage) -> bytes:
    """What an agent gets, who has nothing but the command."""
    path = urlsplit(command.url).path.removeprefix("/image/v2")
    assert command.url == f"http://api:1/image/v2{path}"
    found = b""
    while len(found) < command.size_bytes:
        headers = {"X-Spool-Token": command.token, "Range": f"bytes={len(found)}-{10**9}"}
        answer = requests.get(f"{site.url}{path}", headers=headers, timeout=60)
        assert answer.status_code == 206
        assert 0 < len(answer.content) <= PIECE_BYTES
        end = len(found) + len(answer.content) - 1
        assert answer.headers["Content-Range"] == f"bytes {len(found)}-{end}/{len(DATA)}"
        found += answer.content
    for wrong in (
        {"X-Spool-Token": "x", "Range": "bytes=0-1"},
        {"Range": "bytes=0-1"},
        {"X-Spool-Token": command.token},
        {"X-Spool-Token": command.token, "Range": "bytes=x"},
    ):
        assert requests.get(f"{site.url}{path}", headers=wrong, timeout=60).status_code == 404
    known = {"X-Spool-Token": command.token, "Range": "bytes=0-1"}
    for image_id in ("%00", "..%2f", "x" * 300, "%ff", "%F0%9F%98%80"):
        answer = requests.get(f"{site.url}/images/{image_id}/spool", headers=known, timeout=60)
        assert answer.status_code in {400, 404}, (image_id, answer.text)
    return found


def _qcow2(
    version: int = 3, backing: int = 0, features: int = 0, size_bytes: int = 3 << 30
) -> bytes:
    head = struct.pack(">4sIQIIQ", b"QFI\xfb", version, backing, 0, 16, size_bytes)
    more = struct.pack(">Q", features) + bytes(16) + struct.pack(">II", 4, 104)
    return head.ljust(72, b"\0") + more + bytes(100)


@pytest.mark.parametrize(
    ("disk_format", "data", "status", "why"),
    [
        ("qcow2", DATA, 415, "it is raw, not qcow2"),
        ("raw", _qcow2(), 415, "it is qcow2, not raw"),
        ("iso", DATA, 415, "it is raw, not iso"),
        ("vmdk", DATA, 415, "it is raw, not vmdk"),
        ("qcow2", _qcow2()[:50], 415, "cut off"),
        ("qcow2", _qcow2(backing=100), 400, "backing file"),
        ("qcow2", _qcow2(features=4), 400, "data file"),
        ("qcow2", _qcow2(features=1 << 40), 400, "not known"),
        ("qcow2", _qcow2(version=9), 400, "version 9"),
        ("vmdk", b"# Disk DescriptorFile\n" + bytes(600), 400, "other files"),
        ("qcow2", _qcow2(size_bytes=(1 << 64) - 1), 400, "18446744073709551615 bytes"),
        ("vmdk", b"KDMV" + bytes(600), 400, "no bytes"),
        ("vmdk", b"KDMV" + b"\xff" * 24 + bytes(600), 400, "has no end"),
        ("raw", b"", 400, "has no data"),
        ("raw", b"A" * 512 + b"\xe9" * 600, 415, "can't be found out"),
    ],
)
def test_what_is_not_what_it_says_is_refused(
    site: Site, disk_format: str, data: bytes, status: int, why: str
) -> None:
    image_id = site.new(disk_format)
    answer = site.send(image_id, data)
    assert (answer.status_code, why in answer.text) == (status, True), answer.text
    assert site.image(image_id)["status"] == "queued"
    assert (site.files(), site.world.rows(schema.operations)) == ([], [])


def test_who_may_not_is_refused_before_anything_is_read(site: Site) -> None:
    image_id = site.new()
    assert site.send(image_id, token=auth.OTHER).status_code == 404
    assert site.send(image_id, token=auth.READER).status_code == 403
    assert site.send(image_id, **{"Content-Type": "application/json"}).status_code == 415
    assert site.send("no-image").status_code == 404
    bare = make(site.url, disk_format="raw")["id"]
    refused = site.send(bare)
    assert refused.status_code == 400
    assert "Properties container_format must be set prior to saving data." in refused.text
    with _connected(site, image_id, (1 << 30) + 1) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.0 413 ")
    assert site.files() == []


def _connected(site: Site, image_id: str, length: int) -> socket.socket:
    parts = urlsplit(site.url)
    made = socket.create_connection((str(parts.hostname), int(parts.port or 0)), timeout=60)
    made.sendall(
        f"PUT {parts.path}/images/{image_id}/file HTTP/1.1\r\nHost: a\r\n"
        f"X-Auth-Token: {auth.MEMBER}\r\nContent-Type: application/octet-stream\r\n"
        f"Content-Length: {length}\r\n\r\n".encode()
    )
    return made


def test_one_of_two_uploads_counts_and_a_broken_one_leaves_nothing(site: Site) -> None:
    image_id = site.new()
    with _connected(site, image_id, len(DATA)) as first:
        first.sendall(DATA[:100])
        eventually(lambda: site.files() == [f"{image_id}.part"], 10)
        refused = site.send(image_id)
        assert (refused.status_code, "saving to saving" in refused.text) == (409, True)
    # It is gone, and with it what it sent.
    eventually(lambda: site.files() == [], 10)
    assert site.image(image_id)["status"] == "queued"
    assert site.send(image_id).status_code == 204


def test_an_image_that_is_deleted_or_changed_during_an_upload_gets_no_data(site: Site) -> None:
    for change, status in (
        (lambda it: call(f"{site.url}/images/{it}", "DELETE"), 410),
        (lambda it: patch(site.url, it, put("disk_format", "iso", "replace")), 409),
    ):
        image_id = site.new()
        answer = _changed_during_upload(site, image_id, change)
        assert answer.startswith(f"HTTP/1.0 {status} ".encode()), answer
        assert (site.files(), site.world.rows(schema.operations)) == ([], [])


def _changed_during_upload(site: Site, image_id: str, change: Callable[[str], Any]) -> bytes:
    with _connected(site, image_id, len(DATA)) as connection:
        connection.sendall(DATA[:100])
        eventually(site.files, 10)
        assert change(image_id).ok
        connection.sendall(DATA[100:])
        return connection.recv(1000)


def test_a_cluster_without_room_takes_nothing(site: Site) -> None:
    image_id = site.new()
    site.world.storages[:] = [StorageFacts("nfs1", "nfs", True, True, 10, 9, ("iso",))]
    site.world.beat()
    assert site.send(image_id).status_code == 503
    assert (site.image(image_id)["status"], site.files()) == ("queued", [])


def test_each_node_gets_what_no_storage_shares_and_one_that_fails_is_tried_again(
    site: Site,
) -> None:
    local = StorageFacts("local", "dir", False, True, 100, 90, ("import",))
    site.world.storages[:] = [local]
    site.world.beat()
    image_id = site.new()
    assert site.send(image_id).status_code == 204
    sent = site.world.compute.sent
    eventually(lambda: len(sent) == 2, 10, 0.02)
    first, second = (command for _, command in sent)
    assert {first.placed.host, second.placed.host} == {"pve1", "pve2"}
    site.world.answer(first, ok=False, failure=LOST)
    assert site.image(image_id)["status"] == "saving"
    site.world.answer(second, ok=True)
    assert site.becomes(image_id, "active")
    eventually(
        lambda: {row.state for row in site.world.rows(schema.operations)} == {"queued", "done"}, 10
    )
    # Its data stay for the node that hasn't got them.
    assert len(site.files()) == 1
    site.world.make_due()
    site.world.conductor.runner.wake()
    eventually(lambda: len(sent) == 3, 10, 0.02)
    again = sent[-1][1]
    assert (again.operation_id, again.attempt) == (first.operation_id, 2)
    site.world.answer(again, ok=False, failure=FULL)
    assert site.command(RemoveImage).placed.host == again.placed.host
    assert site.image(image_id)["status"] == "active"


def test_an_image_that_no_cluster_takes_is_killed(site: Site) -> None:
    image_id = site.new()
    assert site.send(image_id).status_code == 204
    command = site.command(StoreImage)
    site.world.answer(command, ok=False, failure=FULL)
    assert site.becomes(image_id, "killed")
    assert site.command(RemoveImage).volid == command.volid
    assert site.send(image_id).status_code == 409
    assert call(f"{site.url}/images/{image_id}", "DELETE").status_code == 204


def test_the_answer_waits_for_the_first_cluster(site: Site, tmp_path: Path) -> None:
    conf = a_conf()
    image_config.register(conf)
    for name, value in (("fetch_url", "http://api:1"), ("spool_dir", str(site.spool))):
        conf.set_override(name, value, "images")
    reader = engine.reader(site.world.url)
    conductor: Any = ImageEndpoint(site.world.conductor.cloud)
    patient = make_app(conf, reader, auth.header_auth, conductor)
    image_id = site.new()
    with served(mounted(patient, "/image")) as root:
        other = dataclasses.replace(site, url=f"{root}/image/v2")
        answers: list[requests.Response] = []
        thread = threading.Thread(target=lambda: answers.append(other.send(image_id)))
        thread.start()
        command = site.command(StoreImage)
        assert answers == []
        site.world.answer(command, ok=True)
        thread.join(60)
    assert [answer.status_code for answer in answers] == [204]
    assert site.image(image_id)["status"] == "active"
    reader.dispose()
