"""The RPC client of the agents: the only module of this package that others import."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from common import clock, codec, rpc
from common.aggregates import Ratios
from common.context import RequestContext
from common.messages.commands import (
    Build,
    CacheImage,
    Command,
    Destroy,
    Mark,
    Power,
    RetireTemplate,
    StrictGroup,
)
from common.messages.facts import Inspection
from common.messages.topics import ANNOUNCE_TOPIC, COMPUTE_TOPIC
from compute.messages import ClusterInventory

if TYPE_CHECKING:
    # Only for its types: common.rpc must be the first to import it.
    import oslo_messaging

#: a census lists every storage of a cluster
INVENTORY_SECONDS = 300.0


#: within the time that an API waits for its conductor
INSPECT_SECONDS = 20.0


class ComputeClient:
    """Casts commands to the worker that carries a host's agent; answers come as reports."""

    def __init__(
        self,
        transport: oslo_messaging.Transport,
        now: Callable[[], datetime.datetime] = clock.utcnow,
    ) -> None:
        self._now = now
        self._heard: dict[str, datetime.datetime] = {}
        self._workers = rpc.Client(transport, COMPUTE_TOPIC)
        self._everyone = rpc.Client(transport, ANNOUNCE_TOPIC)

    def build(self, ctxt: RequestContext, worker: str, command: Build) -> None:
        """Make the VM that the command describes. Sending it twice does no harm."""
        self._send(ctxt, "build", worker, command)

    def destroy(self, ctxt: RequestContext, worker: str, command: Destroy) -> None:
        """Make the VM absent; cancels a build of the same server."""
        self._send(ctxt, "destroy", worker, command)

    def power(self, ctxt: RequestContext, worker: str, command: Power) -> None:
        """Bring the VM to a power state."""
        self._send(ctxt, "power", worker, command)

    def cache_image(self, ctxt: RequestContext, worker: str, command: CacheImage) -> None:
        """Make an image ready ahead of any build; what fails is only told."""
        self._send(ctxt, "cache_image", worker, command)

    def retire_template(self, ctxt: RequestContext, worker: str, command: RetireTemplate) -> None:
        """Make a cached template absent that nobody needs."""
        self._send(ctxt, "retire_template", worker, command)

    def inventory(
        self,
        ctxt: RequestContext,
        worker: str,
        cluster: str,
        known: Collection[int],
        read: Collection[int] = (),
    ) -> ClusterInventory:
        """Wait for all that is in the cluster and may be ours, as the worker sees it now.

        ``known`` are VMIDs that the record accounts for: they need no closer look, but for those
        of ``read``. Raises Unavailable when the worker, or the cluster, doesn't answer.
        """
        answer = self._workers.call(
            ctxt,
            "inventory",
            server=worker,
            timeout_seconds=INVENTORY_SECONDS,
            cluster=cluster,
            known=sorted(known),
            read=sorted(read),
        )
        return codec.load(ClusterInventory, answer)

    def converge_affinity(
        self,
        ctxt: RequestContext,
        worker: str,
        cluster: str,
        cloud: str,
        group: StrictGroup,
        members: Mapping[int, str],
    ) -> None:
        """Have the cluster told just these VMs of a strict server group; none: nothing of it.

        ``members`` are {VMID: server's UUID}: a VM that isn't the server's is left out.

        Raises Unavailable when the worker, or the cluster, doesn't answer or doesn't take it.
        """
        self._workers.call(
            ctxt,
            "converge_affinity",
            server=worker,
            timeout_seconds=INVENTORY_SECONDS,
            cluster=cluster,
            cloud=cloud,
            group=group,
            members=sorted(members.items()),
        )

    def forget_group(
        self, ctxt: RequestContext, worker: str, cluster: str, cloud: str, group: str
    ) -> None:
        """Have the cluster told nothing of a group any more; what isn't done the audit finds."""
        self._workers.cast(
            ctxt, "forget_group", server=worker, cluster=cluster, cloud=cloud, group=group
        )

    def heard(self, worker: str, sent_at: datetime.datetime) -> None:
        """A worker gave a sign of life at that time: what is sent from here on is sent later.

        So a clock behind the worker's doesn't make commands look older than they are.
        """
        self._heard[worker] = sent_at

    def introduce(self, ctxt: RequestContext, worker: str) -> None:
        """The record doesn't have the worker's hosts: it tells all of them, to placement too."""
        self._workers.cast(ctxt, "introduce", server=worker)

    def mark(self, ctxt: RequestContext, worker: str, command: Mark) -> None:
        """Put the owner mark on a VM, or take it off."""
        self._send(ctxt, "mark", worker, command)

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
        """Wait for a close look at one VM; ``failure`` says when that was not possible.

        ``node`` is where it should be, ``server_uuid`` whose it should be. Raises Unavailable when
        the worker doesn't answer.
        """
        answer = self._workers.call(
            ctxt,
            "inspect",
            server=worker,
            timeout_seconds=INSPECT_SECONDS,
            cluster=cluster,
            vmid=vmid,
            node=node,
            server_uuid=server_uuid,
        )
        return codec.load(Inspection, answer)

    def announce(self, ctxt: RequestContext) -> None:
        """Ask every worker to say all it knows: somebody just started."""
        self._everyone.cast(ctxt, "announce", fanout=True)

    def update_ratios(self, ctxt: RequestContext, told: Ratios) -> None:
        """Tell every worker how much its hosts may promise."""
        self._everyone.cast(ctxt, "update_ratios", fanout=True, told=told)

    def _send(self, ctxt: RequestContext, method: str, worker: str, command: Command) -> None:
        # A worker does nothing of what was sent before its process began, by its own clock.
        now = self._now()
        sent = dataclasses.replace(command, sent_at=max(now, self._heard.get(worker, now)))
        self._workers.cast(ctxt, method, server=worker, command=sent)
