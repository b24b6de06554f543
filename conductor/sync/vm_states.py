"""The VM sync: power states follow the clusters, and VMs that moved are searched for."""

from __future__ import annotations

import datetime

from common import clock, ids
from common.context import RequestContext, internal
from common.log import logger
from common.messages.facts import LAST, VmStates
from common.messages.reports import Step
from common.resources.states import (
    InternalAction,
    OperationState,
    PowerState,
    ResourceType,
    as_seen,
)
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.periodic import Periodic
from conductor.engine.runner import TIDY_SECONDS, Runner
from conductor.plans import FollowPlan, Place, Plan
from conductor.store.ledger import due_operations, transitions
from conductor.store.ledger import operations as ledger
from conductor.store.networks import unknown_vms
from conductor.store.records import Operation, Server
from conductor.store.servers import servers, vmids
from conductor.store.servers import vm_states as store
from conductor.store.transactions import Transaction
from conductor.sync import drift, other_vms
from conductor.sync.drift import Difference
from conductor.sync.other_vms import OtherVms

LOG = logger(__name__)

#: searches that one message may begin; the rest when it is repeated
SEARCHES = 50
#: servers whose power state is changed in one transaction: a node that comes back must not delay
#: all other writers
SYNCED_AT_ONCE = 20


class VmSync:
    """The endpoint for VM states that agents report."""

    def __init__(self, cloud: Cloud, runner: Runner) -> None:
        self._cloud = cloud
        self._runner = runner
        look = Periodic("look_after_errors", TIDY_SECONDS, self.look_after_errors)
        runner.periodic.add(look)
        others = OtherVms(cloud, self.take)
        runner.periodic.add(Periodic(other_vms.NAME, other_vms.SECONDS, others.look, apart=True))
        # Then the VMs of the record's own servers are to be read, too.
        cloud.guard.listen(lambda: runner.periodic.wake(other_vms.NAME))

    def take(self, report: VmStates, at: datetime.datetime | None = None) -> None:
        """Compare a batch with the record: two queries, and writes only for differences.

        ``at``: the VMs were seen after this moment of the conductor; None: it isn't known.
        """
        if report.unlocked or report.eased:
            self._hasten(report)
        if not report.vms and not report.gone and report.low is None:
            return
        seen = [vm.vmid for vm in report.vms]
        with self._cloud.store.read() as connection:
            hosts = store.hosts_of(connection, report.cluster)
            covers = report.low is not None
            known = store.known(
                connection,
                report.cluster,
                [*report.gone, *([] if covers else seen)],
                report.low,
                report.high,
            )
        settle = self._cloud.conf.conductor.settle_seconds
        found = list(drift.differences(report, known, hosts, settle))
        powers = [one for one in found if one.power_state is not None]
        for first in range(0, len(powers), SYNCED_AT_ONCE):
            self._sync_powers(powers[first : first + SYNCED_AT_ONCE])
        searches = [one for one in found if one.power_state is None][:SEARCHES]
        for difference in searches:
            self._search(difference)
        self._notice(report, at or clock.utcnow())

    # --- what others have

    def _notice(self, report: VmStates, at: datetime.datetime) -> None:
        """Store which VMs the record doesn't know: no build gets what they have."""
        # What was missing only once is not known to be free.
        seen = {vm.vmid: vm for vm in report.vms}
        covered = None
        if report.low is not None and report.high is not None and report.whole:
            covered = (report.low, report.high)
        with self._cloud.store.read() as connection:
            new, free, changed = vmids.unexplained(
                connection, report.cluster, seen, report.gone, covered
            )
            lost = ledger.lost(connection, report.operations) if report.operations else ()
        strangers = {vmid: seen[vmid] for vmid in new if seen[vmid].node}
        last = report.low is not None and report.high == LAST and not lost
        if lost:
            LOG.info(
                "Cluster %s: %d operations that the record has lost are still carried out: it is "
                "looked at again.",
                *(report.cluster, len(lost)),
            )
        # What was seen before it was asked for says nothing of the time since.
        counts = last and report.asked is not False

        def work(connection: Transaction) -> None:
            vmids.take_notice(connection, report.cluster, strangers, free)
            unknown_vms.take(connection, report.cluster, changed)
            if counts:
                unknown_vms.looked(connection, report.cluster, at)

        if strangers or free or changed or counts:
            self._cloud.store.run(work)
        if changed or last:
            self._runner.periodic.wake(other_vms.NAME)

    def _hasten(self, report: VmStates) -> None:
        """Make operations due whose cause of waiting has ended."""
        hastened = self._cloud.store.run(
            lambda c: due_operations.hasten(c, report.cluster, report.unlocked, report.eased)
        )
        if hastened:
            LOG.info("Cluster %s: %d waiting operations continue early.", report.cluster, hastened)
            self._cloud.wake()

    # --- servers in ERROR whose VMs may be well

    def look_after_errors(self) -> None:
        """Look closely at VMs of servers in ERROR without an open operation: a few at a time, each
        once, and a locked one again later."""
        settle = self._cloud.conf.conductor.settle_seconds
        before, long_before = clock.after(-settle), clock.after(-drift.SEARCH_AGAIN_SECONDS)
        with self._cloud.store.read() as connection:
            found = store.in_error(connection, before, long_before, SEARCHES)
        for known in found:
            self._search(Difference(known, known.node))

    def look_at(self, server_uuid: str) -> None:
        """Look closely at the VM of a server in ERROR, as an operator asks."""
        with self._cloud.store.read() as connection:
            found = store.in_error(connection, clock.after(1), clock.after(1), 1, server_uuid)
        for known in found:
            self._search(Difference(known, known.node))

    # --- power

    def _sync_powers(self, found: list[Difference]) -> None:
        def work(connection: Transaction) -> None:
            for difference in found:
                server = _still(connection, difference)
                if server is not None:
                    self._sync_power(connection, server, int(difference.power_state or 0))

        self._cloud.store.run(work)

    def _sync_power(self, connection: Transaction, server: Server, power_state: int) -> None:
        """Store the power state; if the vm_state changes with it, add an entry to the ledger."""
        becomes = as_seen(server.vm_state, power_state)
        if becomes == server.vm_state:
            values = {"power_state": power_state, "updated_at": clock.utcnow()}
            servers.change(connection, server, values)
            return
        operation = self._begin(connection, server, InternalAction.SYNC_POWER, Plan())
        now = clock.utcnow()
        detail = {
            "seen": PowerState(power_state).name,
            "was": PowerState(server.power_state).name,
            "node": server.node,
        }
        step = Step("conductor_sync_power", 0, now, now, "Success", detail=detail)
        ledger.upsert_events(connection, [ledger.conductor_event(operation, step)])
        transitions.move(
            connection,
            server,
            operation_id=operation.id,
            vm_state=becomes,
            task_state=None,
            takes_over=True,
            power_state=power_state,
        )
        ledger.close(connection, operation.id, OperationState.DONE)
        LOG.info("Server %s: its VM was seen, its state is now %s.", server.uuid, becomes)

    # --- a VM that isn't where it was

    def _search(self, difference: Difference) -> None:
        operation = self._cloud.store.run(lambda c: self._begin_search(c, difference))
        if operation is not None:
            where = f"on {difference.node}" if difference.node else "nowhere"
            LOG.warning(
                "The VM of server %s was seen %s, not on %s: inspecting it.",
                operation.server_uuid,
                where,
                difference.known.node,
            )
            self._runner.submit(operation)

    def _begin_search(self, connection: Transaction, difference: Difference) -> Operation | None:
        server = _still(connection, difference)
        if server is None:
            return None
        was = Place(server.host, None, server.cluster, server.node, server.vmid)
        seen = Place(cluster=server.cluster, node=difference.node, vmid=server.vmid)
        plan = FollowPlan(seen, was)
        return self._begin(connection, server, InternalAction.FOLLOW, plan)

    def _begin(
        self, connection: Transaction, server: Server, action: InternalAction, plan: Plan
    ) -> Operation:
        return start.begin(connection, self._cloud, _nobody(server), server, action, plan)


def _nobody(server: Server) -> RequestContext:
    """Return a context without a user, with a new request ID."""
    ctxt = internal(ids.new_request_id())
    ctxt.project_id = server.project_id
    ctxt.about(ResourceType.SERVER, server.uuid)
    return ctxt


def _still(connection: Transaction, difference: Difference) -> Server | None:
    """Return the server, locked, if it is still as it was when compared."""
    known = difference.known
    server = servers.get(connection, known.uuid, lock=True)
    same = (
        server.deleted_at is None
        and server.task_state is None
        and (server.vm_state, server.operation_id, server.node, server.vmid)
        == (known.vm_state, known.operation_id, known.node, known.vmid)
    )
    if not same or server.power_state != known.power_state:
        return None
    return server if store.is_idle(connection, server.uuid) else None
