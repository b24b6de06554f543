"""The config drive: label, paths, contents, and the same bytes for the same content."""

from __future__ import annotations

import base64
import dataclasses
import io
import json

import pycdlib
import pytest

from common.errors import Invalid
from common.messages.commands import ConfigDrive, GuestFile
from compute.commands import configdrive, iso

SEED = bytes(range(32))
DRIVE = ConfigDrive(
    meta_data={"uuid": "u1", "hostname": "web", "public_keys": {"me": "ssh-rsa AAA"}},
    network_data={"links": [{"id": "tap0"}]},
    vendor_data={"a": 1},
    user_data=base64.b64encode(b"#cloud-config\n").decode(),
)


def read(image: bytes, path: str) -> bytes:
    iso = pycdlib.PyCdlib()
    iso.open_fp(io.BytesIO(image))
    out = io.BytesIO()
    iso.get_file_from_iso_fp(out, rr_path=path)
    iso.close()
    return out.getvalue()


def test_a_guest_finds_what_cloud_init_reads() -> None:
    image = configdrive.image(DRIVE)
    assert image[32808:32840].rstrip() == b"config-2"
    for version in ("latest", "2018-08-27"):
        folder = f"/openstack/{version}"
        meta_data = json.loads(read(image, f"{folder}/meta_data.json"))
        assert len(base64.b64decode(meta_data.pop("random_seed"))) == 512
        assert meta_data == DRIVE.meta_data
        assert json.loads(read(image, f"{folder}/network_data.json")) == DRIVE.network_data
        assert json.loads(read(image, f"{folder}/vendor_data.json")) == {"a": 1}
        assert json.loads(read(image, f"{folder}/vendor_data2.json")) == {"static": {"a": 1}}
        assert read(image, f"{folder}/user_data") == b"#cloud-config\n"
    ec2 = json.loads(read(image, "/ec2/latest/meta-data.json"))
    assert ec2["instance-id"] == "u1"
    assert ec2["public-keys"]["0"] == {"openssh-key": "ssh-rsa AAA"}


def test_without_user_data_there_is_no_such_file() -> None:
    found = configdrive.files(ConfigDrive({"uuid": "u1"}, {}, {}), SEED)
    assert not [path for path in found if "user" in path]


def test_the_same_content_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = configdrive.files(DRIVE, SEED)
    before = iso.image(configdrive.LABEL, found)
    monkeypatch.setattr("time.time", lambda: 4_000_000_000.0)
    assert iso.image(configdrive.LABEL, configdrive.files(DRIVE, SEED)) == before


def test_each_drive_has_a_seed_of_its_own() -> None:
    seeds = [
        json.loads(read(configdrive.image(DRIVE), "/openstack/latest/meta_data.json"))
        for _ in range(2)
    ]
    assert seeds[0]["random_seed"] != seeds[1]["random_seed"]


def test_user_data_that_is_no_base64_is_refused() -> None:
    with pytest.raises(Invalid):
        configdrive.image(ConfigDrive({}, {}, {}, "a"))


def test_a_guest_finds_the_files_that_it_shall_write() -> None:
    files = tuple(
        GuestFile(path, base64.b64encode(text).decode())
        for path, text in (("/etc/motd", b"hello"), ("/root/empty", b""))
    )
    image = configdrive.image(dataclasses.replace(DRIVE, files=files))
    listed = json.loads(read(image, "/openstack/latest/meta_data.json"))["files"]
    assert [one["path"] for one in listed] == ["/etc/motd", "/root/empty"]
    contents = [read(image, f"/openstack{one['content_path']}") for one in listed]
    assert contents == [b"hello", b""]
    wrong = dataclasses.replace(DRIVE, files=(GuestFile("/a", "x"),))
    with pytest.raises(Invalid, match="/a is not base64"):
        configdrive.image(wrong)
