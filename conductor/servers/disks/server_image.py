"""Makes an image of a server: its root disk is copied into a template of its cluster.

The VMID of the template is reserved first; then an agent copies while the server runs. If that
fails, an operation of its own removes what was copied, as with any template that is not needed.
"""

from __future__ import annotations

import dataclasses

from common import clock
from common.log import logger
from common.messages.commands import Copy
from common.messages.reports import Category, Copied, CopiedDisk, Failure
from common.messages.scheduling import ImageHome
from common.resources.states import ACTIONS, OperationState
from conductor.cloud import Cloud, failure_of, placed, silent
from conductor.engine import close, unwinding
from conductor.engine.stages import Stage, Table, Task, Undo, answer
from conductor.images import remove_image
from conductor.plans import ImagePlan
from conductor.store.hosts import registry
from conductor.store.images import server_images, uploads
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.servers import vmids
from conductor.store.transactions import Transaction

LOG = logger(__name__)


class ServerImageFlow:
    """The flow of ``createImage`` and of ``createBackup``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self, action: str) -> Table[Task]:
        """Return the stages: of a backup both show the same task_state."""
        walk = ACTIONS[action].walk
        remove = Undo[Task]("remove_image", write=self._remove)
        return Table(
            (
                Stage("reserve", self._reserve, shown=walk[0], undo=remove),
                Stage("copy", self._copy, answer(Copy, self._on_outcome), walk[-1]),
            ),
            on_superseded=self._on_superseded,
            on_deadline=self._on_deadline,
            undone=self._undone,
            uncertain=self._uncertain,
        )

    # --- the stages

    def _reserve(self, task: Task) -> Task | None:
        """Reserve the template's VMID. Raises BandExhausted to be tried again later."""
        plan = task.operation.planned(ImagePlan)
        if not task.operation.ordered(Copy).image_id:
            self._done(task, None)
            return None
        return self._cloud.store.run(lambda c: self._save(c, task, plan))

    def _save(self, connection: Transaction, task: Task, plan: ImagePlan) -> Task:
        operation, target = task.operation, plan.target
        facts, _ = registry.host(connection, str(target.host))
        vmid = vmids.reserve(connection, str(target.cluster), None, None)
        shared = any(one.shared for one in facts.storages if one.name == facts.vm_storage)
        home = ImageHome(str(target.cluster), facts.vm_storage, str(target.node), shared)
        plan = dataclasses.replace(
            plan.with_fields(storage=facts.vm_storage),
            target=dataclasses.replace(target, vmid=vmid),
        )
        moved = close.show(connection, task, ACTIONS[operation.action].walk[-1])
        leases.advance(connection, operation, plan, "copy", self._cloud.name)
        # After both were compared and set: another conductor may have gone on already.
        server_images.save(connection, operation.ordered(Copy).image_id, home, vmid)
        now = dataclasses.replace(task.at("copy"), server=moved)
        return dataclasses.replace(now, operation=dataclasses.replace(now.operation, plan=plan))

    def _copy(self, task: Task) -> None:
        operation, where = task.operation, placed(task.operation)
        if where is None:
            return
        about = operation.about(where, operation.deadline or clock.utcnow())
        if not self._cloud.send(operation, operation.ordered(Copy).begun(*about)):
            self._failed(task, silent(where.host))

    def _on_outcome(self, task: Task, outcome: Copied) -> None:
        """Take the agent's outcome: the image is active, another attempt, or it is removed."""
        if not outcome.ok:
            self._failed(task, failure_of(outcome))
        elif outcome.disk is None:
            text = "The agent does not say what it has copied."
            self._failed(task, Failure(Category.UNKNOWN_OUTCOME, text))
        else:
            self._done(task, outcome.disk)

    def _done(self, task: Task, copied: CopiedDisk | None) -> None:
        """End with the image active, and delete backups beyond those that are kept."""
        operation, plan = task.operation, task.operation.planned(ImagePlan)
        image_id = operation.ordered(Copy).image_id

        def work(connection: Transaction) -> bool:
            cluster, kept = str(plan.target.cluster), True
            if copied is not None:
                kept = server_images.activate(connection, image_id, cluster, copied)
            if not kept:
                remove_image.drop(connection, self._cloud, image_id)
            if plan.backup_type:
                self._rotate(connection, task, plan)
            _back(connection, task)
            ledger.close(connection, operation.id, OperationState.DONE)
            return kept

        if self._cloud.store.run(work):
            LOG.info("Image %s is active.", image_id)
        else:
            LOG.info("Image %s was deleted while it was made.", image_id)
        self._cloud.wake()

    def _rotate(self, connection: Transaction, task: Task, plan: ImagePlan) -> None:
        found = server_images.backups(connection, task.server.uuid, plan.backup_type)
        for image_id in found[plan.rotation :]:
            remove_image.drop(connection, self._cloud, image_id)
            LOG.info("Backup %s is beyond the rotation, and deleted.", image_id)

    # --- failure

    def _failed(self, task: Task, failure: Failure) -> None:
        table = self.table(task.operation.action)
        unwinding.again_or_begin(self._cloud, table, task, failure)

    def _on_deadline(self, task: Task) -> None:
        text = "The image was not made in time."
        if task.operation.message:
            text += f" It waited: {task.operation.message}"
        self._unwind(task, Failure(Category.TASK_TIMEOUT, text, host=task.server.host))

    def _unwind(self, task: Task, failure: Failure) -> None:
        unwinding.begin(self._cloud, self.table(task.operation.action), task, failure)

    def _remove(self, connection: Transaction, task: Task, _: Failure | None) -> Task:
        image_id = task.operation.ordered(Copy).image_id
        if image_id:
            remove_image.drop(connection, self._cloud, image_id)
        return task

    def _undone(self, connection: Transaction, task: Task) -> None:
        """End with the server as it was."""
        close.as_before(connection, task)

    @staticmethod
    def _uncertain(connection: Transaction, task: Task) -> None:
        """Restore the server's state, and set the image to killed: its template isn't removed."""
        close.settle(connection, task)
        uploads.kill(connection, task.operation.ordered(Copy).image_id)

    def _on_superseded(self, task: Task) -> None:
        """End without an image: the server has another operation, such as a delete."""

        def work(connection: Transaction) -> None:
            self._remove(connection, task, None)
            ledger.close(connection, task.operation.id, OperationState.FAILED, "Overtaken.")

        self._cloud.store.run(work)
        self._cloud.wake()


def _back(connection: Transaction, task: Task) -> None:
    close.settle(connection, task)
