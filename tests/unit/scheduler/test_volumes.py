"""Which nodes reach a server's volumes, or can make them."""

from __future__ import annotations

import pytest

from common.messages.facts import StorageFacts
from common.messages.scheduling import ImageHome, VolumeNeed
from scheduler.decide.choose import choose
from scheduler.filters.storage import disk_way, storage_room
from scheduler.filters.volumes import volume_reach
from tests.unit.scheduler.decide.test_choose import a_host, a_request

STORAGES = (
    StorageFacts("local", "dir", False, True, 100, 60, ("images",)),
    StorageFacts("ceph", "rbd", True, True, 1000, 40, ("images",)),
    StorageFacts("off", "rbd", True, False, 1000, 400, ("images",)),
    StorageFacts("isos", "nfs", True, True, 1000, 400, ("iso",)),
)
HOST = a_host("a", cluster="c1", node="n1", storages=STORAGES, images=("debian",))
ELSEWHERE = ImageHome("c1", "local", "n2")
HERE = ImageHome("c1", "local", "n1")


@pytest.mark.parametrize(
    ("need", "reason"),
    [
        (VolumeNeed("ceph", "c1"), None),
        (VolumeNeed("local", "c1", "n1"), None),
        (VolumeNeed("ceph", "c2"), "in cluster c1, a volume is in c2"),
        (
            VolumeNeed("local", "c1", "n2"),
            "a volume is on storage local, which only node n2 has",
        ),
        (VolumeNeed("off", "c1"), "storage off, which has a volume, is not on the node"),
        (VolumeNeed(gib=60), None),
        (VolumeNeed(gib=61), "60 GiB free on its storages, a volume of 61"),
        (VolumeNeed("ceph", gib=41), "40 GiB free on ceph, a volume of 41"),
        (VolumeNeed("isos", gib=1), "no storage isos on the node, for a volume"),
        (VolumeNeed(gib=5, image_id="debian"), None),
        (
            VolumeNeed(gib=5, image_id="arch"),
            "image arch of a volume is on none of its storages",
        ),
        (VolumeNeed(gib=5, image_id="arch", home=HERE), None),
        (
            VolumeNeed(gib=5, image_id="arch", home=ELSEWHERE),
            "image arch of a volume, made of a server, is only on storage local of node n2 in "
            "cluster c1",
        ),
    ],
)
def test_reach(need: VolumeNeed, reason: str | None) -> None:
    request = a_request(volumes=(need,))
    assert volume_reach(HOST, request) == reason
    choice = choose([HOST], request, {"volume_reach": volume_reach}, {})
    assert list(choice.refused.get("volume_reach", ())) == ([] if reason is None else ["a"])


def test_a_root_volume_needs_no_room_for_a_disk() -> None:
    thin = {"disk_allocation_ratio": 2.0, "vm_storage": "local"}
    full = (StorageFacts("local", "dir", False, True, 100, 0, ("images",)),)
    host = a_host("a", storages=full, **thin)
    assert storage_room(host, a_request(disk_gib=0)) == "0 GiB free on local, 1 GiB asked"
    assert storage_room(host, a_request(disk_gib=0, volume_backed=True)) is None
    bare = a_host("a", capabilities={"import_from": False, "upload": False})
    asked = a_request(image_id=None, volume_backed=True)
    assert disk_way(bare, asked) == "no storage for config drives (content 'iso')"
    assert disk_way(bare, a_request(image_id=None)) is None
