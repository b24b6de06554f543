"""The RPC surface of a compute worker, and of the agents that it carries: one method a row."""

from __future__ import annotations

from typing import Annotated, Any, Protocol

from common.context import RequestContext
from common.messages.commands import Command
from common.messages.questions import Question
from common.rpc.signatures import Unreadable


class WorkerRpc(Protocol):
    """Topic ``compute``, server: the worker's name. ``ComputeClient`` documents the methods."""

    # A cast: the command's outcome comes as a report.
    def execute(
        self, ctxt: RequestContext, command: Annotated[Command, Unreadable.AS_BASE]
    ) -> None: ...
    # Casts without an answer.
    def introduce(self, ctxt: RequestContext) -> None: ...
    def remove_group_rules(
        self, ctxt: RequestContext, cluster: str, cloud: str, group: str
    ) -> None: ...
    def tick(self, ctxt: RequestContext) -> None: ...

    # A call; ``compute.worker.answers`` lists what can be asked.
    def ask(self, ctxt: RequestContext, cluster: str, question: Question) -> Any: ...
