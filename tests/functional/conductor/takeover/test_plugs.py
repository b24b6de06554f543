"""Interfaces and volumes that are attached to servers, and detached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.messages.commands import (
    Plug,
    PlugVolume,
)
from common.resources import volumes
from conductor.rpc.servers.interfaces import Attachment
from conductor.rpc.servers.server_volumes import AttachRequest
from conductor.servers.guest.begin_plug import PlugAcceptance
from conductor.servers.guest.begin_volume import VolumeAcceptance
from conductor.store.records import Operation
from db import schema
from tests.functional.conductor.takeover.begin import (
    Story,
    answer_lost,
    attach_volume,
    refused,
    shelved_with_volume,
    volume,
)
from tests.functional.conductor.takeover.cloud import VOLUMES, Cloud
from tests.functional.conductor.takeover.deaths import ServerTakeover


def _attach(cloud: Cloud) -> Operation:
    server = cloud.server()
    plugs = PlugAcceptance(cloud.world.conductor.cloud)
    network = cloud.world.rows(schema.ports)[-1].network_id
    return plugs.attach(cloud.world.ctxt, server.uuid, Attachment(network))[0]


def _detach(cloud: Cloud) -> Operation:
    server = cloud.server()
    plugs = PlugAcceptance(cloud.world.conductor.cloud)
    port = cloud.world.rows(schema.ports)[-1]
    return plugs.detach(cloud.world.ctxt, server.uuid, port.id)


def _detach_volume(cloud: Cloud) -> Operation:
    operation = attach_volume(cloud)
    cloud.work_off(cloud.heir, operation)
    plugs = VolumeAcceptance(cloud.world.conductor.cloud)
    (volume,) = cloud.world.rows(VOLUMES)
    return plugs.detach(cloud.world.ctxt, operation.server_uuid, volume.id)


def _attach_to_shelved(cloud: Cloud) -> Operation:
    server, made = cloud.server(), volume(cloud)
    cloud.work_off(cloud.heir, cloud.act(server, "shelve"))
    plugs = VolumeAcceptance(cloud.world.conductor.cloud)
    return plugs.attach(cloud.world.ctxt, server.uuid, AttachRequest(made))[0]


def _detach_from_shelved(cloud: Cloud) -> Operation:
    server = shelved_with_volume(cloud)
    plugs = VolumeAcceptance(cloud.world.conductor.cloud)
    (volume,) = cloud.world.rows(VOLUMES)
    return plugs.detach(cloud.world.ctxt, server.uuid, volume.id)


STORIES: Mapping[tuple[str, str], Story] = {
    ("attach_interface", "well"): _attach,
    ("attach_interface", "badly"): lambda cloud: refused(cloud, Plug, _attach),
    ("detach_interface", "well"): _detach,
    ("detach_interface", "badly"): lambda cloud: answer_lost(cloud, _detach),
    (volumes.ATTACH, "well"): attach_volume,
    (volumes.ATTACH, "badly"): lambda cloud: refused(cloud, PlugVolume, attach_volume),
    (volumes.DETACH, "well"): _detach_volume,
    (volumes.DETACH, "badly"): lambda cloud: answer_lost(cloud, _detach_volume),
    (volumes.ATTACH, "well, to a shelved one"): _attach_to_shelved,
    (volumes.ATTACH, "badly, to a shelved one"): lambda cloud: refused(
        cloud, PlugVolume, _attach_to_shelved
    ),
    (volumes.DETACH, "well, from a shelved one"): _detach_from_shelved,
}


class TestPlugs(ServerTakeover):
    stories = STORIES

    dear = frozenset(
        {
            (volumes.ATTACH, "badly, to a shelved one"),
            (volumes.DETACH, "well, from a shelved one"),
        }
    )

    def expect(self, cloud: Cloud, action: str, how: str, ends: Mapping[str, Any]) -> None:
        if "shelved one" in how:
            assert ends["server"][:2] == ("shelved_offloaded", None)
        if how.startswith("badly") and action in (volumes.ATTACH, volumes.DETACH):
            assert ends["volumes"] == [("available", 2, False), []]
        elif how.startswith("badly"):
            ports = 1 if action == "attach_interface" else 0
            assert (ends["ports"], ends["record"][0]) == (ports, ports)
