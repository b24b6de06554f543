"""Files of uploads against their images."""

from __future__ import annotations

import datetime
from typing import Any

from common.messages.inventory import ClusterInventory, SeenImageFile
from common.resources.image_files import cloud_in_name, volid
from conductor.audit.facts import Facts, Finding, UploadFacts
from conductor.audit.image_files import image_files
from conductor.audit.kinds import KINDS

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
US = cloud_in_name("")
MINE, OTHER = "6f0e4c1e-2a0b-4a51-8f3d-0d6f1f1f0a01", "6f0e4c1e-2a0b-4a51-8f3d-0d6f1f1f0a02"


def a_file(image_id: str = MINE, **more: Any) -> SeenImageFile:
    cloud = more.pop("cloud", US)
    volid = volid_of(image_id, cloud)
    return SeenImageFile(volid, "nfs1", "pve1", image_id, cloud, **({"shared": True} | more))


def volid_of(image_id: str, cloud: str = US) -> str:
    return volid("nfs1", cloud, image_id, "0" * 128, "raw")


def found(files: tuple[SeenImageFile, ...] | None, **changes: Any) -> list[Finding]:
    values: dict[str, Any] = {
        "uploads": {MINE: UploadFacts(MINE, "active", {"c1": a_file().volid})},
        "inventories": {"c1": ClusterInventory("c1", image_files=files)},
    }
    listed = list(image_files(Facts(NOW, **(values | changes))))
    assert {one.kind for one in listed} <= KINDS.keys()
    return listed


def test_what_agrees_or_is_worked_on_is_no_difference() -> None:
    assert found((a_file(),)) == []
    busy = frozenset({MINE, OTHER})
    assert found((a_file(OTHER),), busy_images=busy) == []
    assert found((a_file(), a_file(OTHER, cloud=OTHER), a_file(MINE, cloud=OTHER))) == []
    # An agent of an older release, and a look that didn't see all.
    assert found(None) == []
    unseen = {"c1": ClusterInventory("c1", image_files=(), unseen=("Node b is offline.",))}
    assert found((), inventories=unseen) == []
    assert found((), inventories={"c1": ClusterInventory("c1", short=True, image_files=())}) == []


def test_a_file_without_image_goes_if_the_ledger_has_its_upload() -> None:
    one, other = found((a_file(), a_file(OTHER)), uploads={}, uploaded=frozenset({OTHER}))
    assert (one.kind, one.proven, other.proven) == ("image_file_without_image", False, True)
    assert (other.subject, other.node) == (f"c1/{volid_of(OTHER)}", "pve1")
    (local,) = found((a_file(), a_file(OTHER, shared=False)))
    assert local.subject == f"c1/pve1/{volid_of(OTHER)}"


def test_a_file_where_the_record_has_none_is_one_too_many() -> None:
    uploads = {MINE: UploadFacts(MINE, "killed", {})}
    (one,) = found((a_file(),), uploads=uploads, uploaded=frozenset({MINE}))
    assert (one.kind, one.proven) == ("image_file_without_image", True)


def test_an_image_whose_file_is_gone_is_reported() -> None:
    (one,) = found(())
    assert (one.kind, one.proven, one.cluster) == ("image_without_file", False, "c1")
    assert one.evidence["image"] == MINE
