"""What-if questions of administrators: read the record, ask the scheduler, change nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from common import ids
from common.context import RequestContext
from common.messages.scheduling import Decision, RequestSpec
from common.resources import hints
from common.resources.bulk_migrations import Move, MoveState
from common.resources.server_groups import GroupFacts
from common.resources.states import VmState
from conductor.cloud import Cloud
from conductor.endpoints.servers import request_specs
from conductor.engine.access import scope
from conductor.rpc.servers.servers import CreateServers
from conductor.rpc.whatif import DrainStep, Evacuation
from conductor.servers import build_command
from conductor.servers.auto_network import AutoNetwork
from conductor.servers.bulk import begin_bulk
from conductor.servers.create.begin_create import requested_networks
from conductor.servers.move.begin_evacuation import why_not
from conductor.store.hosts import registry
from conductor.store.servers import host_assignments, server_groups
from conductor.store.servers import servers as servers_store
from conductor.store.transactions import Transaction
from conductor.volumes import placement_request
from scheduler.messages import Capacity, Movable, Rebalancing

#: servers that one preview places at most
MAX_PREVIEW = 1000
#: servers that one plan to rebalance considers, the largest first
MAX_MOVABLE = 2000
_MOVABLE = (VmState.ACTIVE, VmState.STOPPED)


class WhatIfEndpoint:
    """See ``conductor.rpc.WhatIfRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._auto = AutoNetwork(cloud)

    def preview_servers(
        self, ctxt: RequestContext, request: CreateServers, without: Sequence[str] = ()
    ) -> list[Decision]:
        one = self._requested(ctxt, request)
        count = min(max(request.min_count, request.max_count), MAX_PREVIEW)
        each = tuple(dataclasses.replace(one, server_uuid=ids.new_uuid()) for _ in range(count))
        return self._cloud.scheduler.preview(ctxt, each, tuple(without))

    def capacity(
        self, ctxt: RequestContext, request: CreateServers, without: Sequence[str] = ()
    ) -> Capacity:
        one = self._requested(ctxt, request)
        return self._cloud.scheduler.capacity(ctxt, one, tuple(without))

    def evacuation(self, ctxt: RequestContext, host: str) -> list[Evacuation]:
        with self._cloud.store.read() as connection:
            facts, _ = registry.host(connection, host)
            here = _servers_on(connection, host)
        if not here:
            return []
        asked = tuple(request for _, request in here)
        decisions = self._cloud.scheduler.preview(ctxt, asked, (host,))
        return [
            Evacuation(request.server_uuid, name, decision, why_not(facts, request))
            for (name, request), decision in zip(here, decisions, strict=True)
        ]

    def rebalance(self, ctxt: RequestContext, limit: int) -> Rebalancing:
        with self._cloud.store.read() as connection:
            found = host_assignments.idle(connection, _MOVABLE, MAX_MOVABLE)
            there = request_specs.of_servers(connection, found)
        movable = tuple(map(_movable, there))
        return self._cloud.scheduler.rebalance(ctxt, movable, limit)

    def drain_plan(self, ctxt: RequestContext, host: str, *, live_only: bool) -> list[DrainStep]:
        with self._cloud.store.read() as connection:
            facts, _ = registry.host(connection, host)
            plan = begin_bulk.planned(connection, facts, at_once=1, live_only=live_only)
            going = {one.server_uuid for one in plan.moves if one.state == MoveState.WAITING}
            here = [one for _, one in _servers_on(connection, host) if one.server_uuid in going]
        found = self._cloud.scheduler.preview(ctxt, tuple(here), (host,)) if here else []
        decided = {one.server_uuid: one for one in found}
        return [_step(move, decided.get(move.server_uuid)) for move in plan.moves]

    def _requested(self, ctxt: RequestContext, asked: CreateServers) -> RequestSpec:
        with self._cloud.store.read() as connection:
            interfaces = requested_networks(connection, ctxt, asked, self._auto, make=False)
            group = server_groups.facts(connection, asked.server_group, None)
            project = str(ctxt.project_id)
            volumes = tuple(
                placement_request.of_device(connection, self._cloud, one, project, scope(ctxt))
                for one in asked.volumes
            )
            named = hints.all_servers(asked.scheduler_hints)
            server_hosts = servers_store.hosts_of(connection, named, scope(ctxt))
        root = 0 if asked.volume_backed else asked.flavor.disk_gib
        return RequestSpec(
            server_uuid=ids.new_uuid(),
            project_id=str(ctxt.project_id),
            user_id=str(ctxt.user_id),
            vcpus=asked.flavor.vcpus,
            memory_mib=asked.flavor.memory_mib,
            disk_gib=root + asked.flavor.local_gib,
            image_id=asked.root_image_id,
            image_properties=asked.image_properties,
            extra_specs=asked.flavor.extra_specs,
            availability_zone=asked.availability_zone,
            networks=tuple(one.bridge for one in interfaces),
            vlans=build_command.vlans((one.bridge, one.vlan) for one in interfaces),
            force_host=asked.force_host,
            cluster=hints.cluster(asked.scheduler_hints),
            hints=asked.scheduler_hints,
            server_hosts=server_hosts,
            group=group,
            least_memory_mib=asked.least_memory_mib,
            least_disk_gib=asked.least_disk_gib + asked.flavor.local_gib,
            image_home=asked.image_home,
            volumes=volumes,
            volume_backed=asked.volume_backed,
        )


def _servers_on(connection: Transaction, host: str) -> list[tuple[str, RequestSpec]]:
    """Return (name, request spec without host) of each server there, the largest first."""
    return [
        (
            one.name,
            dataclasses.replace(one.requested, group=_left(one.requested.group, host)),
        )
        for one in request_specs.of_servers(connection, host_assignments.on_host(connection, host))
    ]


def _step(move: Move, decision: Decision | None) -> DrainStep:
    if decision is None:
        return DrainStep(move.server_uuid, move.name, None, reason=move.reason)
    why = move.reason if decision.host else decision.reason
    return DrainStep(move.server_uuid, move.name, move.way, decision.host, why)


def _movable(one: request_specs.PlacedServer) -> Movable:
    group = one.requested.group
    asked = dataclasses.replace(one.requested, group=group and group.less_one(one.host))
    return Movable(asked, one.name, one.host)


def _left(group: GroupFacts | None, host: str) -> GroupFacts | None:
    """Return the group without the host."""
    return None if group is None else group.without(host)
