"""Schedules a build: ask the scheduler, reserve on the host, commit; and again for another host if
another server has taken the space."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common import clock
from common.errors import MicronovaError, Unavailable
from common.log import logger
from common.messages.reports import Category, Failure
from common.messages.scheduling import Alternate, Decision, RequestSpec, VolumeNeed
from common.resources import hints
from common.resources.server_groups import GroupFacts
from conductor.cloud import Cloud
from conductor.engine.access import scope
from conductor.plans import CreateParams, CreatePlan
from conductor.rpc.servers.flavors import claimed_gib, root_gib
from conductor.servers import build_command
from conductor.servers.create import no_valid_host, replace_vmid
from conductor.servers.create.commits import (
    MOST_TOGETHER,
    Chosen,
    Commits,
    GoOn,
    Moved,
    Unusable,
    step_of,
)
from conductor.servers.create.offers import Offers
from conductor.servers.create.selects import Selects, Undecided
from conductor.servers.create.unwind import Unwinding
from conductor.servers.waiting.free_room import Room
from conductor.servers.waiting.waits import Waits
from conductor.store.hosts import registry
from conductor.store.ledger import batches
from conductor.store.ledger import operations as ledger
from conductor.store.networks import vnets
from conductor.store.records import Operation, Server
from conductor.store.servers import server_groups, servers
from conductor.store.servers.vmids import BandExhausted
from conductor.store.transactions import Transaction
from conductor.volumes import placement_request

LOG = logger(__name__)

#: how often a host may be lost to another server before the build waits
_LOSSES = 10


@dataclass(frozen=True)
class _Around:
    """The other servers that matter for the host of a server."""

    group: GroupFacts | None = None
    server_hosts: Mapping[str, str] = field(default_factory=dict)
    volumes: tuple[VolumeNeed, ...] = ()
    """What the server's own volumes need."""


class Placing:
    """The stage ``scheduling`` of builds."""

    def __init__(self, cloud: Cloud, unwinding: Unwinding, go_on: GoOn) -> None:
        self._cloud = cloud
        self._unwinding = unwinding
        self._offers = Offers(cloud)
        self._selects = Selects(cloud.scheduler)
        self._commits = Commits(cloud, go_on)
        self._waits = Waits(cloud)

    def place(self, operation: Operation, server: Server) -> Moved | None:
        """Find a host, and another one if that is lost to another server, or can't be used any
        more."""
        alternates = operation.planned(CreatePlan).alternates
        claims: tuple[Mapping[str, Any], ...] = ()
        unusable: list[str] = []
        exhausted: str | None = None
        unusable += self._silent(operation)
        kept = self._waits.kept_from([operation])
        room = self._waits.room_for(server, kept)
        for _ in range(_LOSSES):
            started = clock.utcnow()
            decision = self._select(operation, server, alternates, unusable, kept)
            decision = dataclasses.replace(decision, claims=(*claims, *decision.claims))
            if decision.host is None:
                self._no_valid_host(operation, server, decision, started, exhausted, room)
                return None
            try:
                placed_or_why_not = self._commits.write_one(
                    Chosen(operation, server, decision, started)
                )
            except BandExhausted as error:
                # So it is on every host of that cluster.
                placed_or_why_not = exhausted = error.message
                unusable += self._neighbours(decision.host)
            if not isinstance(placed_or_why_not, str):
                self._waits.placed(operation, str(decision.uuid))
                return placed_or_why_not
            why = placed_or_why_not
            LOG.info(
                "Server %s: host %s is no longer usable: %s.", server.uuid, decision.host, why
            )
            if isinstance(placed_or_why_not, Unusable):
                unusable.append(decision.host)
            self._cloud.placement.release(server.uuid)
            claims = (*decision.claims, {"host": decision.host, "result": placed_or_why_not})
            alternates = decision.alternates
        raise Unavailable("Every suitable host was claimed by another server first.")

    def _silent(self, operation: Operation) -> Collection[str]:
        """Return the hosts whose agents are down, for a build that has met one: the same worker
        may carry more, which a scheduler may hold to be up for a while."""
        if not operation.planned(CreatePlan).awaited:
            return ()
        with self._cloud.store.read() as connection:
            return self._cloud.down(connection)

    def place_many(self, builds: Sequence[Moved], *, go_on: bool = True) -> Iterator[Moved | None]:
        """Find hosts for the servers of one create, in one decision.

        If fewer than ``min_count`` find one, none is built. Yields for each build, in order, its
        new record; None if it doesn't continue from here: it is in ERROR already, or it lost
        its host or its lease, and ``place`` looks for another one.
        ``go_on``: the caller sends each its command.
        """
        started = clock.utcnow()
        around = self._around(*builds[0])
        seconds = self._patience()
        kept = self._waits.kept_from([operation for operation, _ in builds])
        room = self._waits.room_for(builds[0][1], kept)
        # Servers that were deleted since the request don't count as missing.
        least = min(builds[0][0].asked(CreateParams).min_count, len(builds))
        decisions = self._cloud.scheduler.select_many(
            builds[0][0].ctxt,
            tuple(
                dataclasses.replace(
                    _requested(operation, server, around, seconds),
                    least=least,
                    kept_hosts=_names(kept),
                )
                for operation, server in builds
            ),
        )
        decisions = no_valid_host.all_or_none(decisions, least)
        if batches.is_undecided(builds[0][0]):
            too_few = no_valid_host.too_few(decisions, least)
            if too_few and self._wait_together(builds, too_few, room):
                return iter([None] * len(builds))
            builds = self._counted(builds, too_few)
        chosen = [
            Chosen(operation, server, decision, started)
            for (operation, server), decision in zip(builds, decisions, strict=True)
        ]
        # Some at a time, as they are read: the first needn't wait for the last to be stored.
        return itertools.chain.from_iterable(
            self._decided(some, go_on=go_on) for some in _first_alone(chosen)
        )

    def _wait_together(self, builds: Sequence[Moved], too_few: str, room: Room) -> bool:
        """Have the builds of a create wait for room for all, if that was asked for."""
        if self._waits.begin(builds, too_few, room) is not None:
            return False
        self._cloud.placement.release_all([server.uuid for _, server in builds])
        return True

    def give_up(self, operation: Operation, server: Server) -> None:
        """End the build in ERROR: it was decided that none of its create is built."""
        failure = Failure(
            Category.NO_VALID_HOST,
            str(operation.planned(CreatePlan).too_few),
            "conductor_schedule",
            owner_message=no_valid_host.owner_reason(operation.asked(CreateParams).min_count),
        )
        self._unwinding.fail(operation, server, failure, gone=True)

    def _counted(self, builds: Sequence[Moved], too_few: str) -> list[Moved]:
        """Store the decision for all of them, whichever process continues with each."""
        counted = self._cloud.store.run(
            lambda c: batches.decide(c, [one for one, _ in builds], self._cloud.name, too_few)
        )
        return [(one, server) for one, (_, server) in zip(counted, builds, strict=True)]

    def _decided(self, chosen: Sequence[Chosen], *, go_on: bool) -> list[Moved | None]:
        """Store some of many decisions; a failure with one stops no other."""
        try:
            if any(one.decision.host is None for one in chosen):
                for one in chosen:
                    kept = self._waits.kept_from([one.operation])
                    room = self._waits.room_for(one.server, kept)
                    self._no_valid_host(
                        one.operation, one.server, one.decision, one.started, room=room
                    )
                return [None] * len(chosen)
            found = self._commits.write(chosen, go_on=go_on)
        except MicronovaError as error:
            if len(chosen) > 1:
                return [self._decided([one], go_on=go_on)[0] for one in chosen]
            uuid = chosen[0].server.uuid
            LOG.info("Server %s is scheduled by itself: %s", uuid, error.message)
            return [None]
        for one, now in zip(chosen, found, strict=True):
            waited = one.operation.planned(CreatePlan).waits_since is not None
            if not (waited or isinstance(now, str)):
                self._cloud.news.taken(str(one.decision.uuid))
        return [None if isinstance(one, str) else one for one in found]

    def _around(self, operation: Operation, server: Server) -> _Around:
        """Read the others only if the server is in a group, or its hints name servers; and its
        volumes if it has some.

        Only servers that the user may see: else the decision would reveal where they are.
        """
        named = hints.all_servers(server.scheduler_hints)
        has_volumes = operation.planned(CreatePlan).has_volumes
        if server.server_group_uuid is None and not named and not has_volumes:
            return _Around()
        with self._cloud.store.read() as connection:
            volumes = (
                placement_request.of_server(connection, server.uuid, server.project_id)
                if has_volumes
                else ()
            )
            return _Around(
                server_groups.facts(connection, server.server_group_uuid, server.uuid),
                servers.hosts_of(connection, named, scope(operation.ctxt)),
                volumes,
            )

    def _select(
        self,
        operation: Operation,
        server: Server,
        alternates: tuple[Alternate, ...],
        unusable: Sequence[str],
        kept: Mapping[str, str],
    ) -> Decision:
        requested = _requested(
            operation, server, self._around(operation, server), self._patience()
        )
        requested = dataclasses.replace(requested, kept_hosts=_names(kept))
        if unusable:
            ignored = (*requested.ignore_hosts, *unusable)
            requested = dataclasses.replace(requested, ignore_hosts=ignored)
        if not alternates and requested.group is None:
            try:
                return self._selects.select(operation.ctxt, requested)
            except Undecided:
                self._cloud.placement.release(server.uuid)
        return self._cloud.scheduler.select(operation.ctxt, requested, alternates)

    def _neighbours(self, host: str) -> tuple[str, ...]:
        """Return all hosts of a host's cluster."""
        with self._cloud.store.read() as connection:
            facts, _ = registry.host(connection, host)
            return registry.hosts_in(connection, facts.cluster)

    def _patience(self) -> float:
        """Return the seconds within which a claim may be made for us.

        Half a lease is left for what follows: a claim made after its caller's lease has expired
        could be for a server that another conductor has built and deleted by then.
        """
        return min(float(self._cloud.conf.rpc.rpc_timeout_seconds), self._cloud.lease_seconds / 2)

    def _no_valid_host(
        self,
        operation: Operation,
        server: Server,
        decision: Decision,
        started: datetime.datetime,
        exhausted: str | None = None,
        room: Room | None = None,
    ) -> None:
        """End in ERROR, unless it waits.

        ``exhausted``: VMIDs used up where there would have been room. ``room``: of the hosts that
        had enough, before the decision.
        """
        event = ledger.conductor_event(operation, step_of(started, decision))

        owner_reason = decision.owner_reason or no_valid_host.sentence(
            decision,
            self._offers.names(
                operation,
                decision,
                lambda: _requested(
                    operation, server, self._around(operation, server), self._patience()
                ),
            ),
        )
        recorded = dataclasses.replace(decision, owner_reason=owner_reason)

        def work(connection: Transaction) -> None:
            ledger.record_decision(connection, operation, recorded)
            ledger.upsert_events(connection, [event])

        self._cloud.store.run(work)
        reason = decision.reason or "No valid host was found."
        if operation.planned(CreatePlan).awaited and self._unwinding.may_wait(operation):
            why = operation.message or "they did not answer"
            self._unwinding.await_hosts(operation, why)
            return
        if self._awaits_network(operation):
            return
        short = {host for one in decision.refused.get("resources", ()) for host in one.hosts}
        why_not = self._waits.begin([(operation, server)], owner_reason, room or {}, short)
        if why_not is None:
            return
        reason, owner_reason = f"{reason}{why_not}", f"{owner_reason}{why_not}"
        failed = len(operation.planned(CreatePlan).failed_hosts)
        if failed:
            # The last attempt's own fault is the cause; it is stored beside this one.
            reason = f"{reason} Earlier attempts failed on {failed}."
            owner_reason = f"{owner_reason} Earlier attempts failed."
        failure = Failure(
            Category.NO_VALID_HOST, reason, "conductor_schedule", owner_message=owner_reason
        )
        if exhausted is not None:
            failure = Failure(
                Category.CONFIGURATION,
                f"{exhausted} {reason}",
                "conductor_schedule",
                remedy=replace_vmid.WIDER,
            )
        self._unwinding.fail(operation, server, failure, gone=True)

    def _awaits_network(self, operation: Operation) -> bool:
        """Have the build wait for a network that no cluster has yet; return whether it does."""
        asked = operation.asked(CreateParams).networks
        with self._cloud.store.read() as connection:
            unready = vnets.unready(connection, (one.bridge for one in asked))
        if not unready or not self._unwinding.may_wait(operation):
            return False
        why = f"network {unready[0]} is not ready in any cluster yet"
        self._unwinding.await_hosts(operation, why)
        return True


def _first_alone(chosen: Sequence[Chosen]) -> Iterator[Sequence[Chosen]]:
    """Return those that are stored in one transaction each: the first, and then some at a time,
    apart from those without a host."""
    yield chosen[:1]
    for (_, plain), alike in itertools.groupby(
        chosen[1:], lambda one: (one.decision.host is None, one.is_plain)
    ):
        rest, size = list(alike), MOST_TOGETHER if plain else 1
        for start in range(0, len(rest), size):
            yield rest[start : start + size]


def _names(kept: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of kept hosts in one order: requests that are alike have the same."""
    return tuple(sorted(kept.values()))


def _requested(
    operation: Operation, server: Server, around: _Around, seconds: float
) -> RequestSpec:
    asked = operation.asked(CreateParams)
    return RequestSpec(
        server_uuid=server.uuid,
        project_id=server.project_id,
        user_id=server.user_id,
        vcpus=server.vcpus,
        memory_mib=server.memory_mib,
        disk_gib=server.disk_gib,
        image_id=server.root_image_id,
        image_properties=server.image_properties,
        extra_specs=server.flavor.get("extra_specs", {}),
        availability_zone=server.pinned_availability_zone,
        networks=tuple(one.bridge for one in asked.networks),
        vlans=build_command.vlans((one.bridge, one.vlan) for one in asked.networks),
        ignore_hosts=operation.planned(CreatePlan).failed_hosts,
        force_host=asked.force_host,
        cluster=hints.cluster(server.scheduler_hints),
        hints=server.scheduler_hints,
        server_hosts=around.server_hosts,
        group=around.group,
        until=clock.after(seconds),
        least_memory_mib=asked.least_memory_mib,
        least_disk_gib=asked.least_disk_gib + claimed_gib(server.flavor) - root_gib(server.flavor),
        image_home=asked.image_home,
        volumes=around.volumes,
        volume_backed=server.volume_backed,
    )
