"""The RPC endpoint for events of agents, schedulers and conductors: ``ConductorEvents``."""

from __future__ import annotations

from typing import Annotated

from common import clock
from common.context import RequestContext
from common.errors import Unavailable
from common.messages.facts import Heartbeat, VmStates
from common.messages.guests import GuestOwner
from common.messages.health import GuestCheck, GuestHealth
from common.messages.reports import Report, Working
from common.messages.tenures import Claim, Granted
from common.rpc import senders
from common.rpc.signatures import Unreadable
from conductor.cloud import Cloud
from conductor.endpoints.hosts.aggregates import Notifier
from conductor.store.groups import checks
from conductor.store.hosts import agent_leases, registry
from conductor.store.servers import servers
from conductor.sync.reporters import Reporters
from conductor.sync.reports import Reports
from conductor.sync.vm_states import VmSync


class EventEndpoint:
    """See ``common.rpc.events.ConductorEvents``."""

    def __init__(
        self, cloud: Cloud, reports: Reports, vm_sync: VmSync, notifier: Notifier
    ) -> None:
        self._store = cloud.store
        self._reports = reports
        self._vm_sync = vm_sync
        self._notifier = notifier
        self._reporters = Reporters(cloud.store, cloud.conf.conductor.host_down_seconds)

    def alive(self, ctxt: RequestContext, binary: str, host: str, version: str = "") -> None:
        self._store.run(lambda c: registry.seen(c, binary, [host], worker=host, version=version))

    def claim_agents(self, ctxt: RequestContext, claim: Claim) -> Granted:
        senders.check_worker(ctxt.sender, claim.worker)
        return self._reports.claim(claim)

    def release_agents(self, ctxt: RequestContext, worker: str) -> None:
        senders.check_worker(ctxt.sender, worker)
        self._store.run(lambda c: agent_leases.release(c, worker))

    def heartbeat(self, ctxt: RequestContext, heartbeat: Heartbeat) -> None:
        senders.check_worker(ctxt.sender, heartbeat.worker)
        named = {*heartbeat.hosts, *(facts.host for facts in heartbeat.facts)}
        self._reporters.check_claim(ctxt.sender, named)
        self._reports.heartbeat(heartbeat)

    def report(
        self, ctxt: RequestContext, reports: Annotated[list[Report], Unreadable.LEFT_OUT]
    ) -> None:
        for worker in {one.worker for one in reports}:
            senders.check_worker(ctxt.sender, worker)
        self._reporters.check_hosts(ctxt.sender, {one.host for one in reports})
        self._reports.take(reports)

    def may_undo(self, ctxt: RequestContext, worker: str, working: Working) -> bool:
        senders.check_worker(ctxt.sender, worker)
        self._reporters.check_hosts(ctxt.sender, {working.host})
        return self._reports.may_undo(worker, working)

    def may_start(
        self, ctxt: RequestContext, worker: str, working: list[Working]
    ) -> list[Working]:
        senders.check_worker(ctxt.sender, worker)
        self._reporters.check_hosts(ctxt.sender, {one.host for one in working})
        return self._reports.may_start(worker, working)

    def owners(self, ctxt: RequestContext, worker: str) -> list[GuestOwner]:
        senders.check_worker(ctxt.sender, worker)
        with self._store.read() as connection:
            return servers.owners(connection, worker)

    def health_checks(self, ctxt: RequestContext, worker: str) -> list[GuestCheck]:
        senders.check_worker(ctxt.sender, worker)
        with self._store.read() as connection:
            return checks.of_worker(connection, worker)

    def report_health(self, ctxt: RequestContext, worker: str, found: list[GuestHealth]) -> None:
        senders.check_worker(ctxt.sender, worker)
        self._store.run(lambda c: checks.take(c, worker, found))

    def time(self, ctxt: RequestContext) -> float:
        if not (clock.is_followed() or self._store.shares_clock):
            raise Unavailable("This conductor has not read the database's clock yet.")
        return clock.seconds()

    def vm_states(self, ctxt: RequestContext, seen: VmStates) -> None:
        senders.check_worker(ctxt.sender, seen.worker)
        self._reporters.check_cluster(ctxt.sender, seen.cluster)
        with self._store.read() as connection:
            current = agent_leases.is_current(connection, seen.worker)
        if current:
            self._vm_sync.take(seen)

    def publish_aggregates(self, ctxt: RequestContext) -> None:
        self._notifier.publish(ctxt)
