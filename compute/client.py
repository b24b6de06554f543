"""The RPC client of the agents: the only module of this package that others import."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from common import rpc
from common.context import RequestContext
from common.messages.commands import Command
from common.messages.questions import Question, Reachable
from common.messages.tenures import worker_of
from common.messages.topics import COMPUTE_TOPIC
from common.resources.aggregates import Ratios
from common.rpc import events, signatures
from common.rpc.events import WorkerEvents
from common.rpc.typed import TypedClient
from compute.rpc_api import WorkerRpc

if TYPE_CHECKING:
    from common.rpc.messaging import oslo_messaging

Answer = TypeVar("Answer")


class ComputeClient:
    """``WorkerRpc`` and ``WorkerEvents``: sends commands to the worker that carries a host's
    agent, which reports, and asks agents.

    A worker is named with its tenure: in another one it takes no notice of a command.
    """

    def __init__(
        self,
        transport: oslo_messaging.Transport,
        cloud: Callable[[], str] = str,
        epoch: Callable[[int], int] = int,
    ) -> None:
        """``cloud`` returns the ID of the cloud that sends commands, ``epoch`` that of an
        operation by its ID.
        """
        self._cloud, self._epoch = cloud, epoch
        self._workers: TypedClient[WorkerRpc] = TypedClient(rpc.Client(transport, COMPUTE_TOPIC))
        self._everyone = events.to_workers(transport)

    def execute(self, ctxt: RequestContext, worker: str, command: Command) -> None:
        self._of(worker).cast(ctxt, WorkerRpc.execute, command=self._sent(worker, command))

    def ask(self, ctxt: RequestContext, at: Reachable, question: Question[Answer]) -> Answer:
        """Return what the worker's agent of a cluster answers. Raises as ``Question`` says."""
        answer = self._of(at.worker, question.seconds).call(
            ctxt, WorkerRpc.ask, cluster=at.cluster, question=question
        )
        found: Answer = signatures.load(question.answer(), answer)
        return found

    def remove_group_rules(
        self, ctxt: RequestContext, worker: str, cluster: str, cloud: str, group: str
    ) -> None:
        self._of(worker).cast(
            ctxt, WorkerRpc.remove_group_rules, cluster=cluster, cloud=cloud, group=group
        )

    def introduce(self, ctxt: RequestContext, worker: str) -> None:
        self._of(worker).cast(ctxt, WorkerRpc.introduce)

    def announce(self, ctxt: RequestContext) -> None:
        self._everyone.cast(ctxt, WorkerEvents.announce)

    def update_ratios(self, ctxt: RequestContext, ratios: Ratios) -> None:
        self._everyone.cast(ctxt, WorkerEvents.update_ratios, ratios=ratios)

    def _of(self, worker: str, seconds: float | None = None) -> TypedClient[WorkerRpc]:
        """Return a client of a worker, whatever its tenure."""
        return self._workers.to(worker_of(worker), seconds)

    def _sent(self, worker: str, command: Command) -> Command:
        cloud, epoch = command.cloud or self._cloud(), self._epoch(command.operation_id)
        return dataclasses.replace(command, worker=worker, cloud=cloud, epoch=epoch)
