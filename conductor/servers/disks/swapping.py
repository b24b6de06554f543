"""What rebuilds and rescues have in common: one command gives the VM other disks, and what fails
is undone by another, which gives the VM back what it had."""

from __future__ import annotations

import dataclasses
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from common import clock
from common.messages.commands import EndSwap, Swap
from common.messages.reports import Category, Failure
from common.resources.states import OperationState, VmState
from conductor.cloud import Cloud, backoff, placed, silent
from conductor.engine import close, unwinding
from conductor.engine.stages import Table, Task, Undo
from conductor.images import image_source
from conductor.plans import SwapParams, SwapPlan
from conductor.servers import build_command, guest_data
from conductor.store.hosts import registry
from conductor.store.ledger import operations as ledger
from conductor.store.records import Server
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments

GIVE_BACK = "give_back"
#: stages that an agent may have begun
_AGENTS_STAGES = frozenset({"make", "swap"})


class Swapping(ABC):
    """A flow that swaps a server's disks, on its own host."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    @abstractmethod
    def table(self) -> Table[Task]:
        """Return the stages."""

    def _table_of(self, task: Task) -> Table[Task]:
        """Return the stages of a task's case."""
        return self.table()

    @property
    def _back(self) -> Undo[Task]:
        """The undo of the swap."""
        given_back = functools.partial(close.again_unless_ok, self._cloud)
        return Undo(GIVE_BACK, self._give_back, given_back)

    def _located(self, task: Task, image_id: str | None) -> SwapPlan | None:
        """Return the plan with the image in the server's cluster, and its interfaces.

        None: the image isn't there, and the operation has ended.
        """
        server = task.server
        with self._cloud.store.read() as connection:
            facts, _ = registry.host(connection, str(server.host))
            image = image_source.image(connection, image_id, facts, imported=True)
            nics = build_command.nics_of(connection, server.uuid)
        if image is None:
            text = f"Image {image_id} is not in cluster {facts.cluster}."
            with self._cloud.store.read() as connection:
                home = image_source.home(connection, image_id, server.cluster)
            text = image_source.not_copied_on(home, image_id, server.node) or text
            self._refuse(task, Failure(Category.IMAGE_NOT_FOUND, text, host=server.host))
            return None
        return dataclasses.replace(task.operation.planned(SwapPlan), image=image, nics=nics)

    def _send(self, task: Task, **values: Any) -> None:
        """Send the agent the swap; ``values`` are further fields of it."""
        operation, server = task.operation, task.server
        plan, asked = operation.planned(SwapPlan), operation.asked(SwapParams)
        fields = (
            build_command.of_server(server)
            | plan.parts()
            | {
                "config_drive": guest_data.config_drive(
                    server, plan.nics, asked.admin_password, asked.files, self._tagged(server)
                ),
                "cloud": self._cloud.id,
            }
        )
        where, deadline = placed(operation), operation.deadline
        if (
            where is None
            or deadline is None
            or not self._cloud.send(
                operation, Swap(*operation.about(where, deadline), **(fields | values))
            )
        ):
            self._failed(task, silent(server.host))

    def _tagged(self, server: Server) -> list[tuple[int, str, str]]:
        """Return what the config drive says of the volumes that their user has given a name."""
        with self._cloud.store.read() as connection:
            return build_command.tagged(attachments.of_server(connection, server.uuid))

    def _send_end(self, task: Task, *, keep: bool) -> None:
        """Send the agent the end of the swap; later if none answers."""
        operation, where = task.operation, placed(task.operation)
        late = clock.after(self._cloud.conf.conductor.action_timeout_seconds)
        running = operation.planned(SwapPlan).was != VmState.STOPPED
        if where is None or not self._cloud.send(
            operation, EndSwap(*operation.about(where, late), keep=keep, running=running)
        ):
            self._cloud.wait(operation, backoff(operation.attempt))

    # --- failure

    def _failed(self, task: Task, failure: Failure) -> None:
        unwinding.again_or_begin(self._cloud, self._table_of(task), task, failure)

    def _on_deadline(self, task: Task) -> None:
        operation = task.operation
        text = f"The {operation.action} did not end in time."
        if operation.message:
            text += f" It waited: {operation.message}"
        failure = Failure(Category.TASK_TIMEOUT, text, host=task.server.host)
        if operation.stage in _AGENTS_STAGES:
            unwinding.begin(self._cloud, self._table_of(task), task, failure)
        else:
            self._refuse(task, failure)

    def _refuse(
        self,
        task: Task,
        failure: Failure,
        also: Callable[[Transaction], None] = lambda _: None,
    ) -> None:
        """End before any agent acted."""

        def work(connection: Transaction) -> None:
            also(connection)
            ledger.record_failure(connection, task.operation, failure)
            operation = dataclasses.replace(task.operation, message=failure.message)
            self._undone(connection, dataclasses.replace(task, operation=operation))

        self._cloud.store.run(work)
        close.log_failed(task.operation, failure)

    def _give_back(self, task: Task) -> bool:
        self._send_end(task, keep=False)
        return False

    def _undone(self, connection: Transaction, task: Task, **values: Any) -> None:
        """End in ERROR, as Nova does; ``values`` are columns that the server gets back."""
        operation = task.operation
        close.settle(connection, task, VmState.ERROR, **values)
        ledger.close(connection, operation.id, OperationState.FAILED, operation.message)
