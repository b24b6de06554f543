"""Makes an image of a server: its root disk is copied into a template of its cluster.

The VMID of the template is reserved first; then an agent copies while the server runs. If that
fails, an operation of its own removes what was copied, as with any template that is not needed.
"""

from __future__ import annotations

import dataclasses

from common.log import logger
from common.messages.commands import Copy
from common.messages.reports import Copied, Failure
from common.resources.states import ACTIONS, OperationState
from conductor.cloud import Cloud
from conductor.engine import close
from conductor.engine.command_end import End
from conductor.engine.stages import Stage, Table, Task, Undo
from conductor.engine.unwound_command import UnwoundCommand
from conductor.images import new_template, remove_image
from conductor.plans import ImagePlan
from conductor.servers.server_command import OfServer
from conductor.store.images import server_images, uploads
from conductor.store.ledger import operations as ledger
from conductor.store.transactions import Transaction

LOG = logger(__name__)


class ServerImageFlow(UnwoundCommand[Task, Copied], OfServer[Copied]):
    """The flow of ``createImage`` and of ``createBackup``."""

    stage = "copy"
    sends = Copy
    unseen = "The agent does not say what it has copied."
    late = "The image was not made in time."

    def __init__(self, cloud: Cloud, action: str) -> None:
        super().__init__(cloud)
        self._walk = ACTIONS[action].walk

    def table(self) -> Table[Task]:
        """Return the flow, which takes the server."""
        return Table(
            self.stages(),
            on_superseded=self._on_superseded,
            on_deadline=self.on_deadline,
            undone=close.as_before,
            uncertain=_uncertain,
        )

    def stages(self) -> tuple[Stage[Task], ...]:
        """Return the stages: of a backup both show the same task_state."""
        remove = Undo[Task]("remove_image", write=self._remove)
        return (
            Stage("reserve", self._reserve, shown=self._walk[0], undo=remove),
            Stage(self.stage, self.do, self.takes(), self._walk[-1]),
        )

    def _reserve(self, task: Task) -> Task | None:
        """Reserve the template's VMID. Raises BandExhausted to be tried again later."""
        if not task.operation.ordered(Copy).image_id:
            self.on_success(task, self.nothing_seen())
            return None
        return self._cloud.store.run(lambda c: self._save(c, task))

    def _save(self, connection: Transaction, task: Task) -> Task:
        moved = close.show(connection, task, self._walk[-1])
        now = new_template.reserve(connection, self._cloud, task, self.stage)
        return dataclasses.replace(now, server=moved)

    def succeeded(self, task: Task, outcome: Copied) -> bool:
        """Return whether there is a copy."""
        return outcome.ok and outcome.disk is not None

    def write_done(self, connection: Transaction, end: End[Task, Copied]) -> None:
        """Set the image to active unless it was deleted, and delete backups beyond those that are
        kept."""
        plan, copied = end.operation.planned(ImagePlan), end.outcome.disk
        cluster, image_id = str(plan.target.cluster), end.operation.ordered(Copy).image_id
        if copied and not server_images.activate(connection, image_id, cluster, copied):
            remove_image.drop(connection, self._cloud, image_id)
            LOG.info("Image %s was deleted while it was made.", image_id)
        if plan.backup_type:
            self._rotate(connection, end.task, plan)
        close.settle(connection, end.task)

    def _rotate(self, connection: Transaction, task: Task, plan: ImagePlan) -> None:
        found = server_images.backups(connection, task.server.uuid, plan.backup_type)
        for image_id in found[plan.rotation :]:
            remove_image.drop(connection, self._cloud, image_id)
            LOG.info("Backup %s is beyond the rotation, and deleted.", image_id)

    # --- failure

    def _remove(self, connection: Transaction, task: Task, _: Failure | None) -> Task:
        image_id = task.operation.ordered(Copy).image_id
        if image_id:
            remove_image.drop(connection, self._cloud, image_id)
        return task

    def _on_superseded(self, task: Task) -> None:
        """End without an image: the server has another operation, such as a delete."""

        def work(connection: Transaction) -> None:
            self._remove(connection, task, None)
            ledger.close(connection, task.operation.id, OperationState.FAILED, "Overtaken.")

        self._cloud.store.run(work)
        self._cloud.wake()


def _uncertain(connection: Transaction, task: Task) -> None:
    """Restore the server's state, and set the image to killed: its template isn't removed."""
    close.settle(connection, task)
    uploads.kill(connection, task.operation.ordered(Copy).image_id)
