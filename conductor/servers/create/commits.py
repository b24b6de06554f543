"""Commits decisions on builds: the host with its VMID, and what can follow without leaving the
database.

Builds that are decided at the same time share a transaction.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from common import clock
from common.errors import MicronovaError, StaleTransition
from common.messages.facts import HostFacts
from common.messages.reports import Step
from common.messages.scheduling import Decision
from common.rpc.gathering import Combining
from conductor.cloud import Cloud
from conductor.engine.transition_draft import TransitionDraft, write_all
from conductor.plans import CreateParams, CreatePlan, Place
from conductor.store.hosts import registry
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation, Server
from conductor.store.servers import server_groups, vmids
from conductor.store.transactions import Transaction

#: builds that share a transaction: its locks must not keep other writers waiting
MOST_TOGETHER = 20

Moved = tuple[Operation, Server]

#: what follows on hosts of one cluster, in the transaction that commits them
GoOn = Callable[[Transaction, Sequence[tuple[TransitionDraft, HostFacts]]], None]


class _GoesOnApart(Exception):
    """What follows fails: its own stages see to it, once the host is committed."""


@dataclass(frozen=True)
class Chosen:
    """A build, and the decision on it."""

    operation: Operation
    server: Server
    decision: Decision
    started: datetime.datetime
    """When the scheduler was asked."""

    @property
    def is_plain(self) -> bool:
        """Return whether its commit needs nothing but a host, a VMID and new ports."""
        asked, plan = self.operation.asked(CreateParams), self.operation.planned(CreatePlan)
        named = any(one.port_id or one.fixed_ip for one in asked.networks)
        apart = named or plan.has_volumes or self.server.server_group_uuid is not None
        return self.operation.attempt == 1 and not apart


class Unusable(str):
    """Why no server may use a host, whatever schedulers know of it."""


class Commits:
    """Writes decisions down."""

    def __init__(self, cloud: Cloud, go_on: GoOn) -> None:
        self._cloud, self._go_on = cloud, go_on
        self._combining = Combining[Chosen, Moved | str](self.write, MOST_TOGETHER)

    def write_one(self, chosen: Chosen) -> Moved | str:
        """Write one decision down, together with those that others make at the same time: they
        would wait for each other's lock of the VMIDs."""
        return self._combining.do(chosen) if chosen.is_plain else self.write([chosen])[0]

    def write(self, chosen: Sequence[Chosen], *, go_on: bool = True) -> list[Moved | str]:
        """Write decisions down, with what can follow without leaving the database.

        Return for each what it is now, or why its host can't be used. Raises for several what it
        raises for one of them; then nothing was written.
        """
        steps = [step_of(one.started, one.decision) for one in chosen]

        def run(following: GoOn) -> list[Moved | str]:
            runs = itertools.count()

            def work(connection: Transaction) -> list[Moved | str]:
                retries = next(runs)
                recorded = [
                    dataclasses.replace(one, decision=_retried(one.decision, retries))
                    for one in chosen
                ]
                return self._write_all(connection, recorded, steps, following)

            return self._cloud.store.run(work)

        try:
            return run(self._further if go_on else _stay)
        except _GoesOnApart as error:
            if len(chosen) > 1:
                raise StaleTransition from error
            return run(_stay)

    def _write_all(
        self,
        connection: Transaction,
        chosen: Sequence[Chosen],
        steps: Sequence[Step],
        following: GoOn,
    ) -> list[Moved | str]:
        found = [
            draft if isinstance(draft, str) else _Placed(one, *draft)
            for one, draft in zip(chosen, self._begun(connection, chosen, steps), strict=True)
        ]
        placed = [one for one in found if isinstance(one, _Placed)]
        by_cluster = collections.defaultdict(list)
        for one in placed:
            by_cluster[one.facts.cluster].append(one)
        # In one order, so that two conductors don't wait for each other.
        for cluster in sorted(by_cluster):
            _reserve(connection, cluster, by_cluster[cluster])
        if placed:
            decisions = [(one.chosen.operation, one.chosen.decision) for one in placed]
            ledger.record_decisions(connection, decisions)
        for cluster in sorted(by_cluster):
            following(connection, [(one.draft, one.facts) for one in by_cluster[cluster]])
        if placed:
            write_all(connection, [one.draft for one in placed])
        return [
            one if isinstance(one, str) else (one.draft.operation, one.draft.server)
            for one in found
        ]

    def _further(
        self, connection: Transaction, placed: Sequence[tuple[TransitionDraft, HostFacts]]
    ) -> None:
        try:
            self._go_on(connection, placed)
        except StaleTransition:
            raise
        except MicronovaError as error:
            raise _GoesOnApart from error

    def _begun(
        self, connection: Transaction, chosen: Sequence[Chosen], steps: Sequence[Step]
    ) -> Iterator[tuple[TransitionDraft, HostFacts, str] | str]:
        """Return the draft of each build, its host's facts and worker, or why it can't be used: an
        administrator, its zone, or a server of the group came between."""
        hosts = registry.chosen(connection, {str(one.decision.host) for one in chosen})
        for one, step in zip(chosen, steps, strict=True):
            usable = _usable_for(connection, one.server, hosts[str(one.decision.host)])
            if isinstance(usable, str):
                yield usable
                continue
            draft = TransitionDraft(self._cloud.name, one.operation, one.server)
            draft.record(step)
            yield (draft, *usable)


@dataclass(frozen=True)
class _Placed:
    """A build whose host can be used."""

    chosen: Chosen
    draft: TransitionDraft
    facts: HostFacts
    worker: str


def _reserve(connection: Transaction, cluster: str, placed: Sequence[_Placed]) -> None:
    """Reserve a VMID of a cluster for each build, and move it to its host."""
    owners = [(one.chosen.server.uuid, one.chosen.operation.id) for one in placed]
    reserved = vmids.reserve_all(connection, cluster, owners)
    for one, vmid in zip(placed, reserved, strict=True):
        _place(one.draft, one.chosen.decision, one.facts, one.worker, vmid)


def _stay(_: Transaction, placed: Sequence[tuple[TransitionDraft, HostFacts]]) -> None:
    """Go no further than to the host."""


def _usable_for(
    connection: Transaction, server: Server, found: tuple[HostFacts, str] | str
) -> tuple[HostFacts, str] | str:
    """Return a host that was read, if a server can be there; else why not."""
    if isinstance(found, str):
        return Unusable(found)
    facts, _ = found
    zone = server.pinned_availability_zone
    if zone not in (None, facts.availability_zone):
        return f"in zone {facts.availability_zone}, {zone} asked"
    return server_groups.take(connection, server, facts.host) or found


def _place(
    draft: TransitionDraft, decision: Decision, facts: HostFacts, worker: str, vmid: int
) -> None:
    """Move a build to the host, where it gets the VMID."""
    plan = dataclasses.replace(
        draft.operation.planned(CreatePlan),
        target=Place(facts.host, facts.uuid, facts.cluster, facts.node, vmid),
        worker=worker,
        storage=facts.vm_storage or None,
        alternates=decision.alternates,
    )
    draft.advance_stage(
        plan,
        host=facts.host,
        node=facts.node,
        cluster=facts.cluster,
        vmid=vmid,
        availability_zone=facts.availability_zone,
    )


def _retried(decision: Decision, retries: int) -> Decision:
    """Return the decision with the number of retries of its transaction."""
    if not retries or not decision.claims:
        return decision
    last = {**decision.claims[-1], "commit_retries": retries}
    return dataclasses.replace(decision, claims=(*decision.claims[:-1], last))


def step_of(started: datetime.datetime, decision: Decision) -> Step:
    """Return the decision as a step of the operation."""
    return Step(
        "conductor_schedule",
        0,
        started,
        clock.utcnow(),
        "Success" if decision.host else "Error",
        detail={"host": decision.host, "considered": decision.considered},
    )
