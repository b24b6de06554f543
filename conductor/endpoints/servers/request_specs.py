"""Request specs of existing servers, from the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.messages.scheduling import RequestSpec
from common.resources import hints
from conductor.servers import build_command
from conductor.store.servers import server_groups
from conductor.store.servers import servers as servers_store
from conductor.store.servers.host_assignments import Placed
from conductor.store.transactions import Transaction
from conductor.volumes import placement_request


@dataclass(frozen=True)
class PlacedServer:
    """A server and its request spec; ``requested.group`` counts the server itself too."""

    name: str
    host: str
    requested: RequestSpec


def of_servers(connection: Transaction, placed: Placed) -> list[PlacedServer]:
    """Return the request specs of these servers.

    A server retains its disk: no image is needed. The request is an operator's, so hints may name
    servers of any project.
    """
    rows, nics = placed.rows, placed.nics
    named = {uuid for row in rows for uuid in hints.all_servers(row.scheduler_hints)}
    where = servers_store.hosts_of(connection, sorted(named), None)
    volumes = placement_request.of_servers(connection, [row.uuid for row in rows])
    groups = {
        uuid: server_groups.facts(connection, uuid, None)
        for uuid in {row.server_group_uuid for row in rows}
    }
    return [
        PlacedServer(
            row.name,
            row.host,
            RequestSpec(
                server_uuid=row.uuid,
                project_id=row.project_id,
                user_id=row.user_id,
                vcpus=row.vcpus,
                memory_mib=row.memory_mib,
                disk_gib=row.disk_gib,
                image_properties=row.image_properties,
                extra_specs=row.flavor.get("extra_specs", {}),
                availability_zone=row.pinned_availability_zone,
                networks=tuple(bridge for bridge, _ in nics.get(row.uuid, ())),
                vlans=build_command.vlans(nics.get(row.uuid, ())),
                vm=None if row.vmid is None else (row.cluster, row.vmid),
                volumes=volumes.get(row.uuid, ()),
                hints=row.scheduler_hints,
                server_hosts=_of(where, row.scheduler_hints),
                group=groups[row.server_group_uuid],
                volume_backed=bool(row.flavor.get("volume_backed")),
            ),
        )
        for row in rows
    ]


def _of(where: Mapping[str, str], asked: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts that a server's hints need."""
    return {one: where[one] for one in hints.all_servers(asked) if one in where}
