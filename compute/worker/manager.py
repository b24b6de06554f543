"""The RPC endpoints of one worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from common.context import RequestContext
from common.errors import Forbidden, Unavailable
from common.log import logger
from common.messages.commands import Command, StrictGroup
from common.messages.facts import VmStates
from common.messages.questions import OpenConsole, Question
from common.resources.aggregates import Ratios
from common.rpc import senders
from common.rpc.signatures import Unreadable
from compute.hypervisor.port import Hypervisor, HypervisorError
from compute.observed.console_logs import ConsoleLogs
from compute.observed.consoles import Consoles
from compute.observed.measurements import Measurements
from compute.worker.answers import Asked, answer
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
        measurements: Measurements,
        look: Callable[[str], VmStates],
    ) -> None:
        """``introduce`` publishes all hosts, to placement too; ``look`` refreshes a cluster, and
        returns all its VMs, or raises Unavailable."""
        self._hypervisors = hypervisors
        self._executor = executor
        self._heartbeats = heartbeats
        self._introduce = introduce
        self._consoles = consoles
        self._logs = logs
        self._measurements = measurements
        self._look = look

    def execute(
        self, ctxt: RequestContext, command: Annotated[Command, Unreadable.AS_BASE]
    ) -> None:
        if not self._executor.accept(ctxt, command):
            self._heartbeats.beat()  # it renews the operation's lease

    def introduce(self, ctxt: RequestContext) -> None:
        self._introduce()

    def tick(self, ctxt: RequestContext) -> None:
        self._heartbeats.beat()

    def ask(self, ctxt: RequestContext, cluster: str, question: Question) -> Any:
        sender = senders.sender_of(ctxt.sender)
        if sender.role == senders.CONSOLE and not isinstance(question, OpenConsole):
            raise Forbidden("A console proxy may ask to open consoles only.")
        asked = Asked(
            self._carried(cluster), self._consoles, self._logs, self._measurements, self._look
        )
        return answer(asked, question)

    def remove_group_rules(
        self, ctxt: RequestContext, cluster: str, cloud: str, group: str
    ) -> None:
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
        self._heartbeats.announce()

    def update_ratios(self, ctxt: RequestContext, ratios: Ratios) -> None:
        self._set_ratios(ratios)
