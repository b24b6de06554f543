"""The names of the files of uploads say whose they are."""

from __future__ import annotations

import pytest

from common.resources import image_files
from common.resources.image_files import ImageFile

CLOUD = "5b0d2b6f-4a0b-4a57-9f0e-000000000001"
IMAGE = "5b0d2b6f-4a0b-4a57-9f0e-000000000002"


@pytest.mark.parametrize(
    ("project", "read"),
    [
        ("4f0e2c6a", "4f0e2c6a"),
        (CLOUD, CLOUD),
        ("", ""),
        ("../etc", ""),
        ("p" * 65, ""),
    ],
)
def test_a_name_is_read_as_it_is_written(project: str, read: str) -> None:
    volid = image_files.volid("nfs", CLOUD, IMAGE, "ab" * 64, "qcow2", project)
    assert "/" not in volid.removeprefix("nfs:import/")
    assert image_files.parse(volid) == ImageFile(CLOUD, IMAGE, "ab" * 16, read)
    assert image_files.is_of(volid, CLOUD, IMAGE)


def test_names_of_others() -> None:
    assert image_files.parse("nfs:import/debian-12.qcow2") is None
    assert image_files.parse(f"nfs:import/mn-{CLOUD}-{IMAGE}-xyz.exe") is None
