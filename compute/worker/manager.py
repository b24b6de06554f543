"""The RPC endpoints of one worker. ``ComputeClient`` documents them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from common.context import RequestContext
from common.errors import Unavailable
from common.log import logger
from common.messages.commands import Command, StrictGroup
from common.messages.consoles import ConsoleTarget, OpenConsole
from common.messages.facts import HaService, Inspection, OtherVm
from common.messages.filters import Filter, FilterCheck, Filtered
from common.messages.guests import Diagnostics, GuestTarget, PasswordProblem, SetPassword
from common.messages.reports import Failure
from common.resources.aggregates import Ratios
from compute.hypervisor.port import Hypervisor, HypervisorError
from compute.messages import ClusterInventory
from compute.observed.console_logs import ConsoleLogs
from compute.observed.consoles import Consoles
from compute.worker.executor import Executor
from compute.worker.heartbeat import Heartbeats

LOG = logger(__name__)


class Manager:
    """Endpoint of the ``compute`` topic: ``rpc_api.WorkerRpc``."""

    def __init__(
        self,
        hypervisors: Mapping[str, Hypervisor],
        executor: Executor,
        heartbeats: Heartbeats,
        introduce: Callable[[], None],
        consoles: Consoles,
        logs: ConsoleLogs,
    ) -> None:
        """``introduce`` publishes all hosts, to placement too."""
        self._hypervisors = hypervisors
        self._executor = executor
        self._heartbeats = heartbeats
        self._introduce = introduce
        self._consoles = consoles
        self._logs = logs

    def execute(self, ctxt: RequestContext, command: Command) -> None:
        """Accept a command. A command already in progress is answered with a heartbeat."""
        if not self._executor.accept(ctxt, command):
            self._heartbeats.beat()  # it renews the operation's lease

    def introduce(self, ctxt: RequestContext) -> None:
        """Publish all hosts."""
        self._introduce()

    def tick(self, ctxt: RequestContext) -> None:
        """Answer the worker's own tick, now consumed, with a heartbeat."""
        self._heartbeats.beat()

    def inventory(
        self, ctxt: RequestContext, cluster: str, known: list[int], read: list[int]
    ) -> ClusterInventory:
        """Return all that is in a cluster and may be ours."""
        hypervisor = self._carried(cluster)
        try:
            return hypervisor.inventory(known, read)
        except HypervisorError as error:
            raise Unavailable(f"Cluster {cluster} can't be looked at: {error.message}") from error

    def inspect(
        self,
        ctxt: RequestContext,
        cluster: str,
        vmid: int,
        node: str | None,
        server_uuid: str | None,
    ) -> Inspection:
        """Return a close look at one VM."""
        hypervisor = self._carried(cluster)
        try:
            return hypervisor.inspect(vmid, node, server_uuid)
        except HypervisorError as error:
            return Inspection(vmid, failure=Failure(error.category, error.message))

    def look_at_others(
        self, ctxt: RequestContext, cluster: str, wanted: list[OtherVm]
    ) -> list[OtherVm]:
        """Return VMs and containers that the record doesn't know with their interfaces."""
        return self._carried(cluster).look_at_others(wanted)

    def ha_service(self, ctxt: RequestContext, cluster: str, vmid: int) -> HaService | None:
        """Return the HA manager's state of a VM."""
        try:
            return self._carried(cluster).ha_service(vmid)
        except HypervisorError as error:
            raise Unavailable(f"High availability can't be asked: {error.message}") from error

    def steer_migration(
        self,
        ctxt: RequestContext,
        cluster: str,
        vmid: int,
        node: str,
        server_uuid: str,
        abort: bool,
    ) -> str | None:
        """Abort a live migration, or have it end at once; return why that can't be."""
        try:
            return self._carried(cluster).steer_migration(vmid, node, server_uuid, abort)
        except HypervisorError as error:
            return error.message

    def console_problem(self, ctxt: RequestContext, target: ConsoleTarget) -> str | None:
        """Return why a VM can have no such console."""
        try:
            return self._consoles.problem(self._carried(target.cluster), target)
        except HypervisorError as error:
            raise Unavailable(f"VM {target.vmid} can't be looked at: {error.message}") from error

    def open_console(self, ctxt: RequestContext, order: OpenConsole) -> None:
        """Open a console and connect it to a proxy."""
        self._consoles.open(self._carried(order.target.cluster), order)

    def console_log(self, ctxt: RequestContext, server_uuid: str) -> str | None:
        """Return the log of a server's console; None: this worker has no logs."""
        return self._logs.text(server_uuid)

    def diagnose(self, ctxt: RequestContext, target: GuestTarget) -> Diagnostics:
        """Return how a VM does now."""
        try:
            return self._carried(target.cluster).diagnose(target)
        except HypervisorError as error:
            raise Unavailable(f"VM {target.vmid} can't be looked at: {error.message}") from error

    def converge_filter(
        self, ctxt: RequestContext, target: GuestTarget, wanted: Filter
    ) -> Filtered:
        """Make what passes a VM's interfaces what is wanted."""
        try:
            return self._carried(target.cluster).converge_filter(target, wanted)
        except HypervisorError as error:
            raise Unavailable(f"VM {target.vmid} can't be filtered: {error.message}") from error

    def check_filter(
        self, ctxt: RequestContext, target: GuestTarget, wanted: Filter
    ) -> FilterCheck:
        """Return how what passes a VM's interfaces differs from what is wanted."""
        try:
            return self._carried(target.cluster).check_filter(target, wanted)
        except HypervisorError as error:
            text = f"The firewall of VM {target.vmid} can't be read: {error.message}"
            raise Unavailable(text) from error

    def set_password(self, ctxt: RequestContext, order: SetPassword) -> PasswordProblem | None:
        """Set a user's password in the guest."""
        target = order.target
        try:
            return self._carried(target.cluster).set_password(order)
        except HypervisorError as error:
            raise Unavailable(f"VM {target.vmid} can't be reached: {error.message}") from error

    def converge_affinity(
        self,
        ctxt: RequestContext,
        cluster: str,
        cloud: str,
        group: StrictGroup,
        members: list[tuple[int, str]],
    ) -> None:
        """Write a strict server group into the cluster."""
        try:
            self._carried(cluster).converge_affinity(cloud, group, dict(members))
        except HypervisorError as error:
            raise Unavailable(f"Cluster {cluster} takes no rule: {error.message}") from error

    def remove_group_rules(
        self, ctxt: RequestContext, cluster: str, cloud: str, group: str
    ) -> None:
        """Remove a strict server group from the cluster."""
        try:
            nobody = StrictGroup(group, apart=False)
            self._carried(cluster).converge_affinity(cloud, nobody, {})
        except (HypervisorError, Unavailable) as error:
            LOG.warning(
                "Cluster %s: affinity rule of server group %s was not removed: %s",
                cluster,
                group,
                error.message,
            )

    def _carried(self, cluster: str) -> Hypervisor:
        """Return the cluster's driver. Raises Unavailable if this worker has no agent of it."""
        hypervisor = self._hypervisors.get(cluster)
        if hypervisor is None:
            raise Unavailable(f"This worker carries no agent of cluster {cluster}.")
        return hypervisor


class EventEndpoint:
    """Endpoint of the announce topic: ``common.rpc.events.WorkerEvents``."""

    def __init__(self, heartbeats: Heartbeats, set_ratios: Callable[[Ratios], None]) -> None:
        self._heartbeats, self._set_ratios = heartbeats, set_ratios

    def announce(self, ctxt: RequestContext) -> None:
        """Publish all facts, for a service that has just started."""
        self._heartbeats.announce()

    def update_ratios(self, ctxt: RequestContext, ratios: Ratios) -> None:
        """Take over the allocation ratios of aggregates."""
        self._set_ratios(ratios)
