"""The RPC surface of a compute worker, and of the agents that it carries: one method a row."""

from __future__ import annotations

from typing import Annotated, Any, Protocol

from common.context import RequestContext
from common.messages.commands import Command
from common.messages.questions import Question
from common.rpc.signatures import Unreadable


class WorkerRpc(Protocol):
    """Topic ``compute``, server: the worker's name. All but ``ask`` are casts."""

    def execute(
        self, ctxt: RequestContext, command: Annotated[Command, Unreadable.AS_BASE]
    ) -> None:
        """Have a worker carry a command out; its class says what it does. May be sent twice.

        The outcome comes as a report. A command already in progress is answered with a heartbeat.
        """

    def introduce(self, ctxt: RequestContext) -> None:
        """Ask a worker whose hosts are not recorded to publish all of them, to placement too."""

    def remove_group_rules(
        self, ctxt: RequestContext, cluster: str, cloud: str, group: str
    ) -> None:
        """Remove a strict server group from the cluster (best effort; the audit finds what
        remains)."""

    def tick(self, ctxt: RequestContext) -> None:
        """Have the worker send a heartbeat; by itself, to see that it consumes its messages."""

    def ask(self, ctxt: RequestContext, cluster: str, question: Question) -> Any:
        """Return what the agent of a cluster answers; ``compute.worker.answers`` lists what can be
        asked. A console proxy's only to open a console."""
