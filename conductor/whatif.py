"""What-if questions of administrators: read the record, ask the scheduler, change nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from common import hints, ids, wire
from common.context import RequestContext
from common.messages.scheduling import Decision, Requested
from common.server_groups import GroupFacts
from conductor import command
from conductor.accept import requested_networks
from conductor.cloud import Cloud
from conductor.messages import CreateServers, Evacuation
from conductor.store import registry, server_groups
from conductor.store import servers as servers_store
from db.schema import networks, ports, servers
from scheduler.messages import Capacity

#: servers that one preview places at the most
MAX_PREVIEW = 1000


class WhatIfDoors:
    """What the API asks."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def preview_servers(
        self, ctxt: RequestContext, request: dict[str, Any], without: list[str]
    ) -> list[Decision]:
        """See ``ConductorClient.preview_servers``."""
        asked = wire.load(CreateServers, request)
        one = self._requested(ctxt, asked)
        count = min(max(asked.min_count, asked.max_count), MAX_PREVIEW)
        each = tuple(dataclasses.replace(one, server_uuid=ids.new_uuid()) for _ in range(count))
        return self._cloud.scheduler.preview(ctxt, each, tuple(without))

    def capacity(
        self, ctxt: RequestContext, request: dict[str, Any], without: list[str]
    ) -> Capacity:
        """See ``ConductorClient.capacity``."""
        one = self._requested(ctxt, wire.load(CreateServers, request))
        return self._cloud.scheduler.capacity(ctxt, one, tuple(without))

    def evacuation(self, ctxt: RequestContext, host: str) -> list[Evacuation]:
        """See ``ConductorClient.evacuation``."""
        with self._cloud.store.read() as connection:
            registry.host(connection, host)
            here = _servers_on(connection, host)
        if not here:
            return []
        requests = tuple(request for _, request in here)
        decisions = self._cloud.scheduler.preview(ctxt, requests, (host,))
        return [
            Evacuation(request.server_uuid, name, decision)
            for (name, request), decision in zip(here, decisions, strict=True)
        ]

    def _requested(self, ctxt: RequestContext, asked: CreateServers) -> Requested:
        with self._cloud.store.read() as connection:
            wishes = requested_networks(connection, asked)
            group = server_groups.facts(connection, asked.server_group, None)
            named = hints.all_servers(asked.scheduler_hints)
            server_hosts = servers_store.hosts_of(connection, named)
        return Requested(
            server_uuid=ids.new_uuid(),
            project_id=str(ctxt.project_id),
            user_id=str(ctxt.user_id),
            vcpus=asked.flavor.vcpus,
            memory_mib=asked.flavor.memory_mib,
            disk_gib=asked.flavor.disk_gib,
            image_id=asked.image_id or None,
            image_properties=asked.image_properties,
            extra_specs=asked.flavor.extra_specs,
            availability_zone=asked.availability_zone,
            networks=tuple(wish["bridge"] for wish in wishes),
            vlans=command.vlans(wishes),
            force_host=asked.force_host,
            hints=asked.scheduler_hints,
            server_hosts=server_hosts,
            group=group,
            least_memory_mib=asked.least_memory_mib,
            least_disk_gib=asked.least_disk_gib,
        )


def _servers_on(connection: sa.Connection, host: str) -> list[tuple[str, Requested]]:
    """(name, what it needs of another host) of each server there, the largest first.

    Its disk moves with it: no image is needed.
    """
    columns = servers.c
    mine = (columns.host == host) & columns.deleted_at.is_(None)
    wires: dict[str, list[Mapping[str, Any]]] = {}
    for row in connection.execute(
        sa.select(ports.c.server_uuid, networks.c.bridge, networks.c.vlan)
        .join(networks, networks.c.id == ports.c.network_id)
        .join(servers, columns.uuid == ports.c.server_uuid)
        .where(mine)
    ):
        wires.setdefault(row.server_uuid, []).append({"bridge": row.bridge, "vlan": row.vlan})
    rows = connection.execute(
        sa.select(servers).where(mine).order_by(columns.memory_mib.desc(), columns.id)
    ).all()
    named = {uuid for row in rows for uuid in hints.all_servers(row.scheduler_hints)}
    where = servers_store.hosts_of(connection, sorted(named))
    groups = {
        uuid: server_groups.facts(connection, uuid, None)
        for uuid in {row.server_group_uuid for row in rows}
    }
    return [
        (
            row.name,
            Requested(
                server_uuid=row.uuid,
                project_id=row.project_id,
                user_id=row.user_id,
                vcpus=row.vcpus,
                memory_mib=row.memory_mib,
                disk_gib=row.disk_gib,
                image_properties=row.image_properties,
                extra_specs=row.flavor.get("extra_specs", {}),
                availability_zone=row.pinned_availability_zone,
                networks=tuple(wire["bridge"] for wire in wires.get(row.uuid, ())),
                vlans=command.vlans(wires.get(row.uuid, ())),
                hints=row.scheduler_hints,
                server_hosts=_of(where, row.scheduler_hints),
                group=_left(groups[row.server_group_uuid], host),
            ),
        )
        for row in rows
    ]


def _of(where: Mapping[str, str], asked: Mapping[str, Any]) -> dict[str, str]:
    """What of it a server's hints ask about."""
    return {one: where[one] for one in hints.all_servers(asked) if one in where}


def _left(group: GroupFacts | None, host: str) -> GroupFacts | None:
    """The group once the host is gone."""
    return None if group is None else group.without(host)
