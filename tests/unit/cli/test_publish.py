"""Copies in other regions: made where there is none, the same, or an error and no copy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cli.cloud import Cloud, Region
from cli.main import Program
from tests.fixtures.sdk import FakeConnection, FakeProxy, Ran

DATA = b"disk" * 1000
SUM = hashlib.sha512(DATA).hexdigest()
IMAGE = {
    "id": "i1",
    "name": "debian",
    "status": "active",
    "disk_format": "raw",
    "container_format": "bare",
    "visibility": "private",
    "tags": ["x"],
    "owner": "p1",
    "os_hash_algo": "sha512",
    "os_hash_value": SUM,
    "os_distro": "debian",
}


class Images:
    """The image API of one region."""

    def __init__(self, *images: Mapping[str, Any], damages: bool = False) -> None:
        self.images = {one["id"]: dict(one) for one in images}
        self.damages = damages

    def find_image(self, name: str, **_: Any) -> Any:
        return SimpleNamespace(id="i1")

    def get(self, path: str, **_: Any) -> Any:
        found = self.images.get(path.removeprefix("/images/"))
        return answer(200, found) if found else answer(404, {})

    def post(self, path: str, json: Any) -> Any:
        self.images[json["id"]] = {**json, "status": "queued"}
        return answer(201, json)

    def put(self, path: str, data: Any, headers: Any) -> Any:
        sent = b"".join(data) + (b"!" if self.damages else b"")
        found = self.images[path.split("/")[2]]
        found |= {"os_hash_value": hashlib.sha512(sent).hexdigest(), "os_hash_algo": "sha512"}
        found["status"] = "active"
        return answer(204, {})

    def delete(self, path: str) -> Any:
        del self.images[path.removeprefix("/images/")]
        return answer(204, {})


def answer(status: int, body: Any) -> Any:
    return SimpleNamespace(status_code=status, json=lambda: body, headers={}, url="u", reason="")


def run(source: Any, target: Any, *argv: str) -> Ran:
    """Run a command in the region north; there is south, too."""
    ends = [{"region": name, "region_id": name} for name in ("north", "south")]
    catalog = SimpleNamespace(get_endpoints=lambda **_: {"compute": ends})
    main = FakeConnection(access=SimpleNamespace(service_catalog=catalog), **source)
    main.config = SimpleNamespace(  # type: ignore[attr-defined]
        get_interface=lambda _: "public", get_region_name=lambda _: "north"
    )

    def of(region: Region) -> Any:
        assert region.name == "south"
        return FakeConnection(**target)

    out, err = StringIO(), StringIO()
    cloud = Cloud(lambda: main, pause=lambda _: None, connect_region=of)
    code = Program(stdout=out, stderr=err, cloud=cloud).run([*argv, "-f", "json"])
    return Ran(code, out.getvalue(), err.getvalue())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "disk"
    made.write_bytes(DATA)
    return made


def publish(target: Images, file: Path, image: Mapping[str, Any] = IMAGE) -> Ran:
    source = {"image": Images(image)}
    return run(source, {"image": target}, "image", "publish", "debian", "--file", str(file))


def results(ran: Ran) -> list[str]:
    return [row["Result"] for row in json.loads(ran.out)]


def test_an_image_is_copied_under_its_id(file: Path) -> None:
    target = Images()
    ran = publish(target, file)
    assert (ran.code, results(ran)) == (0, ["published"]), ran.err
    copied = target.images["i1"]
    assert (copied["os_hash_value"], copied["os_distro"]) == (SUM, "debian")
    assert "owner" not in copied
    assert results(publish(target, file)) == ["is there already"]


def test_an_interrupted_copy_is_continued(file: Path) -> None:
    target = Images({**IMAGE, "status": "queued", "os_hash_value": None})
    assert results(publish(target, file)) == ["published"]


def test_other_data_break_the_upload_off(file: Path) -> None:
    file.write_bytes(b"other")
    target = Images()
    ran = publish(target, file)
    assert (ran.code, target.images["i1"]["status"]) == (1, "queued")
    assert "another SHA-512" in ran.err
    file.write_bytes(DATA)
    assert results(publish(target, file)) == ["published"]


def test_a_damaged_copy_is_deleted(file: Path) -> None:
    target = Images(damages=True)
    ran = publish(target, file)
    assert (ran.code, target.images) == (1, {})
    assert "has other data" in ran.err


def test_an_image_of_that_id_with_other_data_is_left(file: Path) -> None:
    other = {**IMAGE, "os_hash_value": "00"}
    target = Images(other)
    assert publish(target, file).code == 1
    assert target.images == {"i1": other}


def test_an_image_without_a_sum_is_not_published(file: Path) -> None:
    target = Images()
    ran = publish(target, file, {**IMAGE, "os_hash_algo": None, "os_hash_value": None})
    assert (ran.code, target.images) == (1, {})
    assert "no SHA-512" in ran.err


def test_a_file_that_isnt_there(tmp_path: Path) -> None:
    ran = publish(Images(), tmp_path / "none")
    assert ran.code == 1
    assert "Can't read" in ran.err


KEY = SimpleNamespace(name="k", type="ssh", fingerprint="aa", public_key="ssh-ed25519 A")


@pytest.mark.parametrize(
    ("there", "code", "created"),
    [
        (None, 0, 1),
        (KEY, 0, 0),
        (SimpleNamespace(name="k", type="ssh", fingerprint="bb"), 1, 0),
    ],
)
def test_a_key_pair_has_one_fingerprint(there: Any, code: int, created: int) -> None:
    source, target = FakeProxy(find_keypair=KEY), FakeProxy(find_keypair=there, create_keypair=KEY)
    ran = run({"compute": source}, {"compute": target}, "keypair", "publish", "k")
    assert (ran.code, len(target.called("create_keypair"))) == (code, created), ran.err


def test_a_region_that_isnt_there() -> None:
    source = {"compute": FakeProxy(find_keypair=KEY)}
    ran = run(source, {}, "keypair", "publish", "k", "--to", "west")
    assert ran.code == 1
    assert "No region named 'west'. There are: north, south" in ran.err
