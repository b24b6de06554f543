"""What stories of several resources begin with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.messages.commands import (
    Command,
)
from common.messages.facts import StorageFacts
from common.resources.volumes import VolumeAction
from conductor.endpoints.volumes.volumes import VolumeEndpoint
from conductor.rpc.servers.server_volumes import AttachRequest
from conductor.rpc.servers.servers import (
    BlockDevice,
)
from conductor.rpc.volumes.volumes import NewVolume
from conductor.servers.guest.begin_volume import VolumeAcceptance
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from db import schema
from tests.functional.conductor.harness import IMAGE
from tests.functional.conductor.takeover.cloud import Cloud

Story = Callable[[Cloud], Operation]


def after(first: str, action: str) -> Callable[[Cloud], Operation]:
    """Begins an action on a server on which another one was carried out."""

    def begin(cloud: Cloud) -> Operation:
        server = cloud.server()
        cloud.work_off(cloud.heir, cloud.act(server, first))
        return cloud.act(server, action)

    return begin


def refused(
    cloud: Cloud,
    kind: type[Command],
    begin: Callable[[Cloud], Operation],
    *,
    cleans_up: bool = False,
) -> Operation:
    operation = begin(cloud)
    cloud.refused.add(kind)
    cloud.cleans_up = cleans_up
    return operation


def answer_lost(cloud: Cloud, begin: Callable[[Cloud], Operation]) -> Operation:
    """The answer to the first attempt is lost."""
    operation = begin(cloud)
    cloud.silent = True
    return operation


def operation_on(cloud: Cloud, resource_id: str, action: str) -> Operation:
    rows = cloud.world.rows(schema.operations)
    mine = [one.id for one in rows if (one.resource_id, one.action) == (resource_id, action)]
    with cloud.world.conductor.store.read() as connection:
        found = ledger.get(connection, mine[-1])
    assert found is not None
    return found


def create_volume(cloud: Cloud) -> Operation:
    cloud.world.storages.append(StorageFacts("data", "rbd", True, True, 1000, 900, ("images",)))
    cloud.world.beat()
    made = VolumeEndpoint(cloud.world.conductor.cloud).create_volume(
        cloud.world.ctxt, NewVolume("p", 2)
    )
    return operation_on(cloud, made, VolumeAction.CREATE)


def volume(cloud: Cloud) -> str:
    """An available volume."""
    operation = create_volume(cloud)
    cloud.work_off(cloud.heir, operation)
    return operation.resource_id


def attach_volume(cloud: Cloud) -> Operation:
    server, made = cloud.server(), volume(cloud)
    plugs = VolumeAcceptance(cloud.world.conductor.cloud)
    return plugs.attach(cloud.world.ctxt, server.uuid, AttachRequest(made))[0]


def boot(cloud: Cloud) -> Operation:
    """A server from a volume that is made with it, and an existing volume."""
    there = volume(cloud)
    root = BlockDevice(size_gib=3, image_id=IMAGE, boot=True, delete_on_termination=True)
    return cloud.build(root, BlockDevice(there))


def booted(cloud: Cloud) -> Any:
    """A server that boots from a volume."""
    operation = boot(cloud)
    cloud.work_off(cloud.heir, operation)
    return cloud.world.row(operation.server_uuid)


def having_volume(cloud: Cloud) -> Any:
    """A server that has a volume."""
    operation = attach_volume(cloud)
    cloud.work_off(cloud.heir, operation)
    return cloud.world.row(operation.server_uuid)


def shelved_with_volume(cloud: Cloud) -> Any:
    server = having_volume(cloud)
    cloud.work_off(cloud.heir, cloud.act(server, "shelve"))
    return cloud.world.row(server.uuid)
