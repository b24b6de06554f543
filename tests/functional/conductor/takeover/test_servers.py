"""Servers: builds, deletes, power, and what the record follows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from common import ids
from common.messages.commands import (
    Build,
    Destroy,
    MakeVolume,
    Mark,
)
from common.messages.facts import Inspection
from common.resources.states import InternalAction
from conductor.plans import CommandPlan, FollowPlan, Place
from conductor.rpc.servers.manage import Adoption
from conductor.servers.manage import mark
from conductor.servers.manage.abandon import Abandoning
from conductor.servers.manage.begin_adopt import Acceptance
from conductor.store.records import Operation
from conductor.store.servers import vmids
from db import schema
from tests.functional.conductor.takeover.begin import (
    Story,
    after,
    boot,
    operation_on,
    refused,
)
from tests.functional.conductor.takeover.cloud import ADMIN, VOLUMES, Cloud
from tests.functional.conductor.takeover.deaths import ServerTakeover


def _without_image(cloud: Cloud) -> Operation:
    """Its image is deleted right after the request, which is noticed before any agent acts."""
    operation = cloud.build()
    server = schema.servers.c.uuid == operation.server_uuid
    change = schema.servers.update().where(server).values(image_id=ids.named("image", "gone"))
    cloud.world.conductor.store.run(lambda c: c.execute(change))
    return dataclasses.replace(operation, begun_on=None)


def _overtaken(cloud: Cloud) -> Operation:
    operation = cloud.build()
    cloud.act(cloud.world.row(operation.server_uuid), "delete")
    return operation


def _adopt(cloud: Cloud) -> Operation:
    cloud.made += 1
    vmid = 500 + cloud.made
    uuid = ids.named("adopted", str(vmid))
    cloud.world.compute.vms[vmid] = Inspection(
        vmid, True, "pve1", name="db", vcpus=1, memory_mib=512, disk_gib=1, smbios_uuid=uuid
    )
    acceptance = Acceptance(cloud.world.conductor.cloud)
    return acceptance.adopt(ADMIN, Adoption("sim1", vmid, "p", "u"))[1]


def _reap(cloud: Cloud) -> Operation:
    server = cloud.server()
    cloud.work_off(cloud.heir, cloud.act(server, "delete"))
    place = Place("pve1", None, "sim1", "pve1", server.vmid)
    operation = cloud.insert(server, InternalAction.REAP, CommandPlan(place, Destroy()))
    held = cloud.world.conductor.store.run(
        lambda c: vmids.hold(c, "sim1", server.vmid, server.uuid, operation.id)
    )
    assert held
    return operation


def _remove_left(cloud: Cloud) -> Operation:
    """The agent of a build's host falls silent, and another host builds it."""
    build = cloud.build()
    cloud.world.conductor.runner._flows["create"].resume(build, fresh=True)
    cloud.world.silence("pve1")
    cloud.work_off(cloud.heir, actions={"create"})
    cloud.world.beat()
    assert cloud.world.row(build.server_uuid).host == "pve2"
    return operation_on(cloud, build.server_uuid, InternalAction.REMOVE_LEFT)


def _follow(cloud: Cloud) -> Operation:
    server = cloud.server()
    cloud.world.compute.vms[server.vmid] = Inspection(
        server.vmid, True, "pve2", power_state=1, ours=True, marked_by=server.uuid
    )
    seen = Place(cluster="sim1", node="pve2", vmid=server.vmid)
    return cloud.insert(server, InternalAction.FOLLOW, FollowPlan(seen))


def _forget(cloud: Cloud) -> Operation:
    abandoning = Abandoning(cloud.world.conductor.cloud)
    server = cloud.server()
    cloud.vms.discard(server.uuid)
    return abandoning.begin(ADMIN, server.uuid, None, force=False)


def _mark(cloud: Cloud) -> Operation:
    return mark.begin(cloud.world.conductor.cloud, ADMIN, cloud.server().uuid)


def _overtaken_boot(cloud: Cloud) -> Operation:
    operation = boot(cloud)
    cloud.act(cloud.world.row(operation.server_uuid), "delete")
    return operation


def _boot_without_image(cloud: Cloud) -> Operation:
    """The image is deleted before the volume is begun."""
    operation = boot(cloud)
    change = VOLUMES.update().where(VOLUMES.c.size_gib == 3).values(image_id=ids.new_uuid())
    cloud.world.conductor.store.run(lambda c: c.execute(change))
    return operation


def _delete_boot(cloud: Cloud) -> Operation:
    operation = boot(cloud)
    cloud.work_off(cloud.heir, operation)
    return cloud.act(cloud.world.row(operation.server_uuid), "delete")


#: what becomes of volumes of builds and deletes
WITH_VOLUMES: Mapping[tuple[str, str], list[Any]] = {
    ("create", "well, from a volume"): [
        ("in-use", 2, False),
        ("in-use", 3, False),
        ["attached", "attached"],
    ],
    **{
        ("create", how): [("available", 2, False), []]
        for how in (
            "badly, from a volume",
            "badly, from a volume, and cleaned up",
            "badly, its volume not made",
            "badly, the image of its volume gone",
            "overtaken by a delete, from a volume",
        )
    },
    ("delete", "well, of one from a volume"): [("available", 2, False), []],
}

STORIES: Mapping[tuple[str, str], Story] = {
    ("create", "well"): Cloud.build,
    ("create", "badly"): lambda cloud: refused(cloud, Build, Cloud.build),
    ("create", "badly, and cleaned up"): lambda cloud: refused(
        cloud, Build, Cloud.build, cleans_up=True
    ),
    ("create", "badly, before any agent acts"): _without_image,
    ("create", "overtaken by a delete"): _overtaken,
    ("create", "well, from a volume"): boot,
    ("create", "badly, from a volume"): lambda cloud: refused(cloud, Build, boot),
    ("create", "badly, from a volume, and cleaned up"): lambda cloud: refused(
        cloud, Build, boot, cleans_up=True
    ),
    ("create", "badly, its volume not made"): lambda cloud: refused(cloud, MakeVolume, boot),
    ("create", "badly, the image of its volume gone"): _boot_without_image,
    ("create", "overtaken by a delete, from a volume"): _overtaken_boot,
    ("delete", "well, of one from a volume"): _delete_boot,
    ("delete", "well"): lambda cloud: cloud.act(cloud.server(), "delete"),
    ("stop", "well"): lambda cloud: cloud.act(cloud.server(), "stop"),
    ("start", "well"): after("stop", "start"),
    ("reboot", "well"): lambda cloud: cloud.act(cloud.server(), "reboot"),
    ("reboot-hard", "well"): lambda cloud: cloud.act(cloud.server(), "reboot-hard"),
    ("pause", "well"): lambda cloud: cloud.act(cloud.server(), "pause"),
    ("unpause", "well"): after("pause", "unpause"),
    ("suspend", "well"): lambda cloud: cloud.act(cloud.server(), "suspend"),
    ("resume", "well"): after("suspend", "resume"),
    ("soft-delete", "well"): lambda cloud: cloud.act(cloud.server(), "soft-delete"),
    ("restore", "well"): after("soft-delete", "restore"),
    ("changePassword", "interrupted"): lambda cloud: cloud.act(cloud.server(), "changePassword"),
    ("release", "well"): lambda cloud: cloud.act(cloud.server(), "release"),
    ("adopt", "well"): _adopt,
    ("adopt", "badly"): lambda cloud: refused(cloud, Mark, _adopt),
    (InternalAction.REAP, "well"): _reap,
    (InternalAction.REMOVE_LEFT, "well"): _remove_left,
    (InternalAction.FOLLOW, "well"): _follow,
    (InternalAction.FORGET, "well"): _forget,
    (InternalAction.MARK, "well"): _mark,
}


class TestServers(ServerTakeover):
    stories = STORIES

    with_volumes = WITH_VOLUMES
    dear = frozenset(
        {
            ("create", "badly, from a volume, and cleaned up"),
            ("create", "badly, the image of its volume gone"),
            ("create", "overtaken by a delete, from a volume"),
        }
    )

    def expect(self, cloud: Cloud, action: str, how: str, ends: Mapping[str, Any]) -> None:
        if (action, how) in WITH_VOLUMES:
            assert ends["volumes"] == WITH_VOLUMES[action, how]
        if how.startswith("badly"):
            left = {name: ends[name] for name in ("ports", "vmids", "claim")}
            assert left == {"ports": 0, "vmids": [], "claim": None}
