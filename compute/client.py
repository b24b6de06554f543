"""The RPC client of the agents: the only module of this package that others import."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from common import clock, rpc
from common.context import RequestContext
from common.messages.commands import Command, StrictGroup
from common.messages.consoles import ConsoleTarget, OpenConsole
from common.messages.facts import HaService, Inspection, OtherVm
from common.messages.filters import Filter, FilterCheck, Filtered
from common.messages.guests import Diagnostics, GuestTarget, PasswordProblem, SetPassword
from common.messages.topics import COMPUTE_TOPIC
from common.resources.aggregates import Ratios
from common.rpc import events
from common.rpc.events import WorkerEvents
from common.rpc.typed import TypedClient
from compute.messages import ClusterInventory
from compute.rpc_api import WorkerRpc

if TYPE_CHECKING:
    from common.rpc.messaging import oslo_messaging

#: an inventory lists every storage of a cluster
INVENTORY_SECONDS = 300.0


#: within the time that an API waits for its conductor
INSPECT_SECONDS = 20.0


class ComputeClient:
    """Casts commands to the worker that carries a host's agent; the answers are reports."""

    def __init__(
        self,
        transport: oslo_messaging.Transport,
        now: Callable[[], datetime.datetime] = clock.utcnow,
        cloud: Callable[[], str] = str,
    ) -> None:
        """``cloud`` returns the ID of the cloud that sends commands."""
        self._now, self._cloud = now, cloud
        self._heard: dict[str, datetime.datetime] = {}
        self._workers: TypedClient[WorkerRpc] = TypedClient(rpc.Client(transport, COMPUTE_TOPIC))
        self._everyone = events.to_workers(transport)

    def execute(self, ctxt: RequestContext, worker: str, command: Command) -> None:
        """Send a worker a command; its class says what it does. May be sent twice."""
        self._workers.to(worker).cast(ctxt, WorkerRpc.execute, command=self._sent(worker, command))

    def inventory(
        self,
        ctxt: RequestContext,
        worker: str,
        cluster: str,
        known: Collection[int],
        read: Collection[int] = (),
    ) -> ClusterInventory:
        """Return everything in the cluster that may be ours, as the worker sees it now.

        ``known`` are VMIDs that the record explains: only those in ``read`` are looked at
        closely. Raises Unavailable when the worker, or the cluster, doesn't answer.
        """
        return self._workers.to(worker, INVENTORY_SECONDS).call(
            ctxt,
            WorkerRpc.inventory,
            cluster=cluster,
            known=sorted(known),
            read=sorted(read),
        )

    def converge_affinity(
        self,
        ctxt: RequestContext,
        worker: str,
        cluster: str,
        cloud: str,
        group: StrictGroup,
        members: Mapping[int, str],
    ) -> None:
        """Make a strict server group in the cluster have exactly these VMs; none: remove it.

        ``members`` are {VMID: server's UUID}: a VM that isn't the server's is left out.

        Raises Unavailable when the worker or the cluster doesn't answer, or refuses.
        """
        self._workers.to(worker, INVENTORY_SECONDS).call(
            ctxt,
            WorkerRpc.converge_affinity,
            cluster=cluster,
            cloud=cloud,
            group=group,
            members=sorted(members.items()),
        )

    def remove_group_rules(
        self, ctxt: RequestContext, worker: str, cluster: str, cloud: str, group: str
    ) -> None:
        """Remove a group from the cluster (best effort; the audit finds what remains)."""
        self._workers.to(worker).cast(
            ctxt, WorkerRpc.remove_group_rules, cluster=cluster, cloud=cloud, group=group
        )

    def on_heartbeat(self, worker: str, sent_at: datetime.datetime) -> None:
        """Record when a worker sent a heartbeat: later commands get later timestamps.

        So a clock behind the worker's doesn't make commands look older than they are.
        """
        self._heard[worker] = sent_at

    def introduce(self, ctxt: RequestContext, worker: str) -> None:
        """Ask a worker whose hosts are not recorded to publish all of them, to placement too."""
        self._workers.to(worker).cast(ctxt, WorkerRpc.introduce)

    def inspect(
        self,
        ctxt: RequestContext,
        worker: str,
        cluster: str,
        vmid: int,
        *,
        node: str | None = None,
        server_uuid: str | None = None,
    ) -> Inspection:
        """Return a close look at one VM; ``failure`` says why that was not possible.

        ``node`` is where it should be, ``server_uuid`` whose it should be. Raises Unavailable
        when the worker doesn't answer.
        """
        return self._workers.to(worker, INSPECT_SECONDS).call(
            ctxt,
            WorkerRpc.inspect,
            cluster=cluster,
            vmid=vmid,
            node=node,
            server_uuid=server_uuid,
        )

    def look_at_others(
        self, ctxt: RequestContext, worker: str, cluster: str, wanted: list[OtherVm]
    ) -> list[OtherVm]:
        """Return VMs and containers that the record doesn't know with their interfaces.

        Raises Unavailable when the worker doesn't answer.
        """
        return self._workers.to(worker, INVENTORY_SECONDS).call(
            ctxt, WorkerRpc.look_at_others, cluster=cluster, wanted=wanted
        )

    def ha_service(
        self, ctxt: RequestContext, worker: str, cluster: str, vmid: int
    ) -> HaService | None:
        """Return the HA manager's state of a VM; None: the VM is no HA resource.

        Raises Unavailable when the worker or the cluster doesn't answer.
        """
        return self._workers.to(worker, INSPECT_SECONDS).call(
            ctxt, WorkerRpc.ha_service, cluster=cluster, vmid=vmid
        )

    def steer_migration(
        self,
        ctxt: RequestContext,
        worker: str,
        cluster: str,
        vmid: int,
        node: str,
        server_uuid: str,
        *,
        abort: bool,
    ) -> str | None:
        """Abort a live migration that runs, or have it end at once; return why that can't be.

        Raises Unavailable when the worker doesn't answer.
        """
        return self._workers.to(worker, INSPECT_SECONDS).call(
            ctxt,
            WorkerRpc.steer_migration,
            cluster=cluster,
            vmid=vmid,
            node=node,
            server_uuid=server_uuid,
            abort=abort,
        )

    def console_problem(self, ctxt: RequestContext, target: ConsoleTarget) -> str | None:
        """Return why the VM can have no such console, or None; it need not run.

        Raises Unavailable when the worker or the cluster doesn't answer.
        """
        return self._workers.to(target.worker, INSPECT_SECONDS).call(
            ctxt, WorkerRpc.console_problem, target=target
        )

    def open_console(self, ctxt: RequestContext, order: OpenConsole) -> None:
        """Have a console opened and connected to the proxy; returns when it is.

        Raises Conflict where too many are open, Unavailable where the VM doesn't run, or the
        worker, the cluster or, to the worker, the proxy doesn't answer.
        """
        self._workers.to(order.target.worker).call(ctxt, WorkerRpc.open_console, order=order)

    def console_log(self, ctxt: RequestContext, worker: str, server_uuid: str) -> str | None:
        """Return the worker's log of a server's serial line; None: the worker has no logs.

        Raises Unavailable when the worker doesn't answer.
        """
        return self._workers.to(worker, INSPECT_SECONDS).call(
            ctxt, WorkerRpc.console_log, server_uuid=server_uuid
        )

    def diagnose(self, ctxt: RequestContext, target: GuestTarget) -> Diagnostics:
        """Return how a server's VM does now.

        Raises Unavailable when the worker or the cluster doesn't answer.
        """
        return self._workers.to(target.worker, INSPECT_SECONDS).call(
            ctxt, WorkerRpc.diagnose, target=target
        )

    def converge_filter(
        self, ctxt: RequestContext, target: GuestTarget, wanted: Filter
    ) -> Filtered:
        """Make what passes a VM's interfaces what is wanted; never opens in between.

        Raises Unavailable when the worker or the cluster doesn't answer, or the VM isn't the
        server's.
        """
        return self._workers.to(target.worker, INSPECT_SECONDS).call(
            ctxt, WorkerRpc.converge_filter, target=target, wanted=wanted
        )

    def check_filter(
        self, ctxt: RequestContext, target: GuestTarget, wanted: Filter
    ) -> FilterCheck:
        """Return how what passes a VM's interfaces differs from what is wanted.

        Raises Unavailable as ``converge_filter`` does.
        """
        return self._workers.to(target.worker, INSPECT_SECONDS).call(
            ctxt, WorkerRpc.check_filter, target=target, wanted=wanted
        )

    def set_password(self, ctxt: RequestContext, order: SetPassword) -> PasswordProblem | None:
        """Set a user's password in the guest; return why it wasn't, or None.

        Raises Unavailable when the worker or the cluster doesn't answer.
        """
        problem = self._workers.to(order.target.worker, INSPECT_SECONDS).call(
            ctxt, WorkerRpc.set_password, order=order
        )
        # The bus knows words only.
        return None if problem is None else PasswordProblem(problem)

    def announce(self, ctxt: RequestContext) -> None:
        """Ask every worker to publish everything, for a service that has just started."""
        self._everyone.cast(ctxt, WorkerEvents.announce)

    def update_ratios(self, ctxt: RequestContext, ratios: Ratios) -> None:
        """Send every worker the allocation ratios of aggregates."""
        self._everyone.cast(ctxt, WorkerEvents.update_ratios, ratios=ratios)

    def _sent(self, worker: str, command: Command) -> Command:
        # Workers ignore commands sent before their process began, by their own clock.
        now = self._now()
        sent_at = max(now, self._heard.get(worker, now))
        return dataclasses.replace(command, sent_at=sent_at, cloud=command.cloud or self._cloud())
