"""Whether a node reaches a volume."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from common.errors import Invalid
from common.messages.facts import HostFacts
from common.messages.scheduling import VolumeNeed
from common.resources.states import VmState
from conductor.store.hosts import registry
from conductor.store.records import Server
from conductor.store.servers import migrations
from conductor.store.transactions import Transaction
from conductor.volumes import placement_request


def missing(need: VolumeNeed, facts: HostFacts) -> str | None:
    """Return why a host doesn't reach a volume that is there, or None. Pure."""
    if facts.cluster != need.cluster:
        return f"it is in cluster {need.cluster}, host {facts.host} in {facts.cluster}"
    if need.node not in (None, facts.node):
        return f"it is on storage {need.storage}, which only node {need.node} has"
    usable = {one.name for one in facts.storages if one.active and "images" in one.content}
    if need.node is None and need.storage not in usable:
        return f"it is on storage {need.storage}, which node {facts.node} doesn't reach"
    return None


def missing_one(wanted: Iterable[VolumeNeed], facts: HostFacts) -> str | None:
    """Return why a host doesn't reach one of a server's volumes, or None. Pure."""
    whys = (missing(need, facts) for need in wanted)
    return next((f"of a volume: {why}" for why in whys if why is not None), None)


def require(connection: Transaction, volume: Any, server: Server) -> None:
    """Raise Invalid, with the reason, unless the server's host reaches the volume.

    A resized server may have to go back to the host that it came from: that must reach it, too.
    """
    facts, _ = registry.host(connection, str(server.host))
    need = placement_request.there(volume)
    why = missing(need, facts)
    if why is None and server.vm_state == VmState.RESIZED:
        resize = migrations.finished(connection, server.uuid)
        if resize is not None and resize.moved:
            before, _ = registry.host(connection, resize.source_host)
            why = missing(need, before)
            why = why and f"{why}; confirm or revert the server's resize first"
    if why is not None:
        raise Invalid(f"Volume {volume.id} can't be attached to the server: {why}.")
