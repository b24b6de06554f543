"""Agents' reports: stores steps, renews leases, passes outcomes to the flows."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from common import context
from common.log import logger
from common.messages.facts import Heartbeat
from common.messages.reports import Report, Working
from common.messages.tenures import Claim, Granted, has_tenure
from common.resources import vnets
from conductor.cloud import Cloud
from conductor.engine.batch_close import Ended, Ending
from conductor.engine.periodic import Periodic
from conductor.engine.runner import TIDY_SECONDS, Runner
from conductor.engine.stages import Task
from conductor.images.templates import TemplateKeeper
from conductor.store.hosts import agent_leases, registry
from conductor.store.images import image_properties
from conductor.store.ledger import group_news, leases
from conductor.store.ledger import operations as ledger
from conductor.store.outbox import filter_outbox, placement_outbox
from conductor.store.records import Operation, Server
from conductor.store.servers import migrations, step_reports
from conductor.store.transactions import Transaction, after_commit
from conductor.sync.outcomes import EndReport, Outcomes
from conductor.volumes.volume_types import VolumeTypes

LOG = logger(__name__)

#: operations by their ids, with the server of each
Known: TypeAlias = Mapping[int, tuple[Operation, Server | None]]


def _never(_: str) -> bool:
    return False


class Reports:
    """Processes the reports and heartbeats of all agents."""

    def __init__(self, cloud: Cloud, runner: Runner, endings: Mapping[str, Ending[Any]]) -> None:
        self._cloud = cloud
        self._runner = runner
        self._outcomes = Outcomes(cloud.store, runner, endings)
        self._descriptions = image_properties.parse(cloud.conf.images.properties)
        # A vnet is listed before its network's row is read, and after that is deleted.
        self._is_project_s = vnets.is_ours if cloud.conf.networks.tenant_vnets else _never
        self._templates = TemplateKeeper(cloud)
        self._volume_types = VolumeTypes(cloud)
        runner.periodic.add(Periodic("tidy_templates", TIDY_SECONDS, self._templates.tidy))
        runner.periodic.add(Periodic("ask_workers_again", TIDY_SECONDS, self.ask_again))

    def take(self, reports: Sequence[Report]) -> None:
        """Store the steps of the whole batch, and pass on each outcome.

        The steps of a report that ends its operation are stored in the transaction that ends it.
        """
        known: dict[int, tuple[Operation, Server | None]] = {}
        valid: list[Report] = []
        with self._cloud.store.read() as connection:
            for worker, its in _by_worker(reports).items():
                wanted = {report.operation_id for report in its}
                found, current = step_reports.operations_of(connection, wanted, worker)
                known |= found
                if current or not has_tenure(worker):
                    valid += [report for report in its if self._believed(report, found)]
                else:
                    LOG.info("%d reports of worker %s are late.", len(its), worker)
        ends = self._ends(valid, known)
        others = [report for report in valid if report.operation_id not in ends]
        if others:
            self._cloud.store.run(lambda connection: self._write(connection, others))
        self._outcomes.take(list(ends.values()))
        for report in others:
            if report.outcome is not None:
                self._runner.finished(known[report.operation_id][0], report.outcome)

    def _ends(self, reports: Sequence[Report], known: Known) -> dict[int, EndReport]:
        """Return what ends an operation by itself: of those that are reported on once."""
        counts = collections.Counter(report.operation_id for report in reports)
        found = {}
        for report in reports:
            operation, server = known[report.operation_id]
            if report.outcome is None or server is None or counts[operation.id] > 1:
                continue
            ended = Ended(Task(operation, server), report.outcome)
            if self._outcomes.ends(ended):
                found[operation.id] = EndReport(report, ended)
        return found

    def claim(self, claim: Claim) -> Granted:
        """Take or renew a worker's leases; what another worker had is carried on at once."""
        seconds = float(self._cloud.conf.conductor.agent_lease_seconds)

        def work(connection: Transaction) -> Granted:
            granted, taken = agent_leases.take(connection, claim, seconds)
            if taken:
                after_commit(connection, self._cloud.wake)
                LOG.info("Worker %s carries %s now.", claim.worker, ", ".join(granted.held))
            return granted

        return self._cloud.store.run(work)

    def heartbeat(self, heartbeat: Heartbeat) -> None:
        """Store the hosts of a heartbeat, and renew the leases of the worker's operations.

        That of a worker whose tenure is over is late, and says nothing.
        """

        def work(connection: Transaction) -> frozenset[str]:
            if not agent_leases.is_current(connection, heartbeat.worker):
                return frozenset()
            before = registry.health(connection, [one.host for one in heartbeat.facts])
            back = registry.silent_of(connection, heartbeat.hosts, self._cloud.patience())
            unknown = registry.take(connection, heartbeat, self._is_project_s)
            known = [(one, before[one.host]) for one in heartbeat.facts if one.host in before]
            turned = {now.host for now, was in known if now.online != was.reached}
            group_news.note_hosts(connection, turned | back | unknown)
            if any(now.healthy and not was.healthy for now, was in known):
                after_commit(connection, self._cloud.news.changed)
            if heartbeat.published:
                # Nobody needs to ask for these; but their providers may go just now.
                reported = unknown & {facts.host for facts in heartbeat.facts}
                unknown -= reported
                if heartbeat.facts:
                    # A worker that starts, or finds its cluster again.
                    filter_outbox.retry_on(connection, [one.host for one in heartbeat.facts])
                if reported:
                    version = placement_outbox.begin(connection)
                    placement_outbox.add(connection, sorted(reported), version)
            if heartbeat.clusters:
                image_properties.describe(connection, self._descriptions)
            leases.renew(connection, heartbeat.working, self._cloud.lease_seconds)
            return unknown

        unknown = self._cloud.store.run(work)
        self._volume_types.on_facts(heartbeat.facts)
        if unknown:
            LOG.info("Asking worker %s about %s.", heartbeat.worker, ", ".join(sorted(unknown)))
            self._cloud.compute.introduce(context.internal(), heartbeat.worker)

    def may_undo(self, worker: str, working: Working) -> bool:
        """Return whether the worker still has this attempt of an operation, and renew its lease.

        If not, what it has made may belong to a server in use.
        """
        owner = leases.of_worker(worker)
        if self._runner.may_undo(working.operation_id, working.attempt, owner):
            return True
        LOG.warning(
            "Worker %s may not undo attempt %d of operation %d: it no longer holds the lease.",
            *(worker, working.attempt, working.operation_id),
        )
        return False

    def may_start(self, worker: str, working: Sequence[Working]) -> list[Working]:
        """Return the attempts that the worker still holds: it may start their VMs.

        None of them is left for another host any more, so a server never has two VMs that run.
        Those of operations that are lost are returned as such: who adopts their VMs starts them.
        """
        owner, seconds = leases.of_worker(worker), self._cloud.lease_seconds
        held = self._cloud.store.run(lambda c: leases.may_run(c, working, owner, seconds))
        refused = [one for one in working if one not in held]
        lost = self._lost(refused)
        for one in refused:
            why = "the ledger has lost it" if one.operation_id in lost else "it lost the lease"
            LOG.warning(
                "Worker %s may not start the VM of attempt %d of operation %d: %s.",
                *(worker, one.attempt, one.operation_id, why),
            )
        return [*held, *(one.as_lost() for one in refused if one.operation_id in lost)]

    def _lost(self, refused: Sequence[Working]) -> frozenset[int]:
        if not refused:
            return frozenset()
        with self._cloud.store.read() as connection:
            return ledger.lost(connection, {one.operation_id for one in refused})

    def ask_again(self) -> None:
        """Ask workers about named hosts that the record still lacks: a question may get lost."""
        with self._cloud.store.read() as connection:
            workers = registry.without_facts(
                connection, self._cloud.conf.conductor.host_down_seconds
            )
        for worker in workers:
            self._cloud.compute.introduce(context.internal(), worker)

    def _write(self, connection: Transaction, reports: Sequence[Report]) -> None:
        ledger.record_steps(connection, reports)
        migrations.record_progress(connection, reports)
        unfinished = [
            Working(report.operation_id, report.attempt, report.host)
            for report in reports
            if report.outcome is None
        ]
        leases.renew(connection, unfinished, self._cloud.lease_seconds)

    @staticmethod
    def _believed(report: Report, known: Known) -> bool:
        """Return whether the report is current and from the host of the server by the record."""
        if report.operation_id not in known:
            LOG.warning("Host %s reports unknown operation %s.", report.host, report.operation_id)
            return False
        operation, server = known[report.operation_id]
        hosts = {operation.plan.target.host, None if server is None else server.host}
        if report.host not in hosts:
            LOG.warning(
                "Host %s reports on %s %s, which is not on it.",
                report.host,
                operation.resource_type,
                report.resource_id,
            )
            return False
        if report.attempt != operation.attempt:
            LOG.info(
                "A report on attempt %s of operation %s is late.", report.attempt, operation.id
            )
            return False
        return True


def _by_worker(reports: Sequence[Report]) -> dict[str, list[Report]]:
    """Return the reports by who sent them: mostly one worker, in one tenure."""
    found: dict[str, list[Report]] = collections.defaultdict(list)
    for report in reports:
        found[report.worker].append(report)
    return found
