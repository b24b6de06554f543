"""Servers' disks: rebuilds, rescues, shelving, and images of servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common import ids
from common.messages.commands import (
    Copy,
    MakeVolume,
    Power,
    Swap,
)
from conductor.rpc.servers.servers import (
    RebuildServer,
)
from conductor.store.records import Operation
from tests.functional.conductor.harness import IMAGE
from tests.functional.conductor.takeover.begin import (
    Story,
    after,
    booted,
    having_volume,
    refused,
    shelved_with_volume,
)
from tests.functional.conductor.takeover.cloud import VOLUMES, Cloud
from tests.functional.conductor.takeover.deaths import ServerTakeover


def _offload(cloud: Cloud) -> Operation:
    """It was to keep its claim when it was shelved."""
    conf = cloud.heir.cloud.conf
    conf.set_override("shelved_offload_time", -1, group="conductor")
    server = cloud.server()
    cloud.work_off(cloud.heir, cloud.act(server, "shelve"))
    conf.clear_override("shelved_offload_time", group="conductor")
    return cloud.act(server, "shelveOffload")


def _unshelve_elsewhere(cloud: Cloud) -> Operation:
    """Its own host takes no more."""
    operation = after("shelve", "unshelve")(cloud)
    cloud.world.scheduler.hosts.remove("pve1")
    return operation


def _unshelve_nowhere(cloud: Cloud) -> Operation:
    operation = after("shelve", "unshelve")(cloud)
    cloud.world.scheduler.hosts.clear()
    return operation


def _overtaken_unshelve(cloud: Cloud) -> Operation:
    operation = _unshelve_elsewhere(cloud)
    cloud.act(cloud.world.row(operation.server_uuid), "delete")
    return operation


def _unshelve_badly(cloud: Cloud) -> Operation:
    """It can't be started, and is stopped again."""
    operation = after("shelve", "unshelve")(cloud)
    cloud.refused.add(Power)
    return operation


def _image(cloud: Cloud) -> Operation:
    return cloud.image(cloud.server())


def _backup(cloud: Cloud) -> Operation:
    """One backup is there already, and one is kept."""
    server = cloud.server()
    cloud.work_off(cloud.heir, cloud.image(server, "daily"))
    return cloud.image(cloud.world.row(server.uuid), "daily")


def _image_as_backup(cloud: Cloud) -> Operation:
    return cloud.image(cloud.server(), "weekly")


def _image_overtaken(cloud: Cloud) -> Operation:
    operation = _image(cloud)
    cloud.act(cloud.world.row(operation.server_uuid), "delete")
    return operation


def _rebuild(cloud: Cloud) -> Operation:
    return cloud.rebuild(cloud.server())


def _rescue(cloud: Cloud, image_id: str = IMAGE) -> Operation:
    uuid, rescues = cloud.server().uuid, cloud.world.conductor.rescues
    return rescues.rescue(cloud.world.ctxt, uuid, image_id, "secret")


def _unrescue(cloud: Cloud) -> Operation:
    operation = _rescue(cloud)
    cloud.work_off(cloud.heir, operation)
    return cloud.act(cloud.world.row(operation.server_uuid), "unrescue")


def _rebuild_booted(cloud: Cloud, *, reimages: bool) -> Operation:
    """Its volume is made of another image, or is left as it is."""
    server = booted(cloud)
    change = VOLUMES.update().where(VOLUMES.c.size_gib == 3)
    values = {"image_metadata": {"image_id": ids.named("image", "before")}}
    cloud.world.conductor.store.run(lambda c: c.execute(change.values(**values)))
    request = RebuildServer(IMAGE, changes={"key_name": "new"}, reimages=reimages)
    return cloud.world.conductor.rebuilds.rebuild(cloud.world.ctxt, server.uuid, request)


def _rebuild_volume(cloud: Cloud) -> Operation:
    return _rebuild_booted(cloud, reimages=True)


def _rebuild_beside_volume(cloud: Cloud) -> Operation:
    return _rebuild_booted(cloud, reimages=False)


def _unshelve_booted(cloud: Cloud) -> Operation:
    server = booted(cloud)
    cloud.work_off(cloud.heir, cloud.act(server, "shelve"))
    return cloud.act(cloud.world.row(server.uuid), "unshelve")


def _unshelve_with_volume(cloud: Cloud) -> Operation:
    """Its own host takes no more: it moves with its volume."""
    operation = cloud.act(shelved_with_volume(cloud), "unshelve")
    cloud.world.scheduler.hosts.remove("pve1")
    return operation


#: what becomes of volumes of servers that boot from one
WITH_VOLUMES: Mapping[tuple[str, str], list[Any]] = {
    one: [("in-use", 2, False), ("in-use", 3, False), ["attached", "attached"]]
    for one in (
        ("rebuild", "well, its volume made of another image"),
        ("rebuild", "well, its volume as it is"),
        ("rebuild", "badly, its volume not made of another image"),
        ("rebuild", "badly, its volume not named"),
        ("shelve", "well, from a volume"),
        ("unshelve", "well, from a volume"),
    )
}

STORIES: Mapping[tuple[str, str], Story] = {
    ("rebuild", "well"): _rebuild,
    ("rebuild", "badly"): lambda cloud: refused(cloud, Swap, _rebuild),
    ("rebuild", "badly, without the image"): lambda cloud: cloud.rebuild(cloud.server(), "gone"),
    ("rebuild", "well, its volume made of another image"): _rebuild_volume,
    ("rebuild", "well, its volume as it is"): _rebuild_beside_volume,
    ("rebuild", "badly, its volume not made of another image"): lambda cloud: refused(
        cloud, MakeVolume, _rebuild_volume
    ),
    ("rebuild", "badly, its volume not named"): lambda cloud: refused(
        cloud, Swap, _rebuild_volume
    ),
    ("shelve", "well, from a volume"): lambda cloud: cloud.act(booted(cloud), "shelve"),
    ("unshelve", "well, from a volume"): _unshelve_booted,
    ("shelve", "well"): lambda cloud: cloud.act(cloud.server(), "shelve"),
    ("shelve", "well, suspended"): after("suspend", "shelve"),
    ("shelve", "well, with a volume"): lambda cloud: cloud.act(having_volume(cloud), "shelve"),
    ("unshelve", "well, with a volume, elsewhere"): _unshelve_with_volume,
    ("shelveOffload", "well"): _offload,
    ("unshelve", "well"): after("shelve", "unshelve"),
    ("unshelve", "badly"): _unshelve_badly,
    ("unshelve", "well, elsewhere"): _unshelve_elsewhere,
    ("unshelve", "badly, without room"): _unshelve_nowhere,
    ("unshelve", "badly, elsewhere"): lambda cloud: refused(cloud, Power, _unshelve_elsewhere),
    ("unshelve", "overtaken by a delete"): _overtaken_unshelve,
    ("createImage", "well"): _image,
    ("createImage", "badly"): lambda cloud: refused(cloud, Copy, _image),
    ("createImage", "overtaken by a delete"): _image_overtaken,
    ("createBackup", "well"): _backup,
    ("createBackup", "badly"): lambda cloud: refused(cloud, Copy, _image_as_backup),
    ("rescue", "well"): _rescue,
    ("rescue", "badly"): lambda cloud: refused(cloud, Swap, _rescue),
    ("rescue", "badly, without the image"): lambda cloud: _rescue(cloud, "gone"),
    ("unrescue", "well"): _unrescue,
}


class TestDisks(ServerTakeover):
    stories = STORIES

    with_volumes = WITH_VOLUMES
    dear = frozenset({("unshelve", "well, with a volume, elsewhere")})

    def expect(self, cloud: Cloud, action: str, how: str, ends: Mapping[str, Any]) -> None:
        if (action, how) in WITH_VOLUMES:
            assert ends["volumes"] == WITH_VOLUMES[action, how]
        if how.startswith("well, with a volume"):
            assert ends["volumes"] == [("in-use", 2, False), ["attached"]]
        badly = how.startswith("badly")
        if badly and action in ("rebuild", "rescue"):
            assert ends["server"][0] == "error"
            assert ends["made_of"] == (None if "its volume" in how else IMAGE, None)
        elif badly and action in {"createImage", "createBackup"}:
            assert (ends["images"], ends["copies"]) == ([], 0)
            assert ends["server"][:2] == ("active", None)
        elif action in {"shelve", "shelveOffload"} or (action == "unshelve" and badly):
            _parked(how, ends)
        elif action == "unshelve":
            _back(how, ends)


def _parked(how: str, ends: Mapping[str, Any]) -> None:
    assert (ends["server"][3], ends["others"]) == ("pve1", 0)
    assert ends["server"][:2] == ("shelved_offloaded", None)
    on_volume = how.endswith("from a volume")
    assert ends["amounts"] == ([] if on_volume else [{"DISK_GB": 1}])
    listed = [status for status, _ in ends["images"]]
    assert listed == ([] if on_volume else ["active"])


def _back(how: str, ends: Mapping[str, Any]) -> None:
    if how.startswith("overtaken"):
        assert (ends["others"], ends["claim"], ends["images"]) == (0, None, [])
        return
    where = "pve2" if how.endswith("elsewhere") else "pve1"
    assert (ends["server"][0], ends["server"][3]) == ("active", where)
    assert (ends["images"], ends["others"]) == ([], 0)
    disk = {} if how.endswith("from a volume") else {"DISK_GB": 1}
    assert ends["amounts"] == [{"VCPU": 1, "MEMORY_MB": 512, **disk}]
