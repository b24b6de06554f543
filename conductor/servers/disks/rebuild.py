"""Rebuild: the server's VM gets a new root disk, made from an image, on its own host.

The old disk is removed only when the VM runs from the new one, so a failure before is undone
exactly; after that there is no way back.

A root disk that is a volume is left as it is, or gets new content (``RootVolume``) in a new disk
that replaces the old one in the VM's configuration the same way.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from common import clock
from common.log import logger
from common.messages.commands import EndSwap, MakeVolume, Swap
from common.messages.reports import Built, Category, Failure, Step, VmSeen, VolumeMade
from common.messages.scheduling import Decision, RequestSpec
from common.resources.states import OperationState, PowerState, TaskState, VmState
from conductor.cloud import Cloud, failure_of, silent
from conductor.engine import close
from conductor.engine.cases import Cases
from conductor.engine.stages import Stage, Table, Task, Undo, answer
from conductor.images import image_source
from conductor.plans import RebuildPlan, SwapPlan
from conductor.servers.disks.root_volume import MAKE, SETTLE, SWAP, RootVolume
from conductor.servers.disks.swapping import Swapping
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.transactions import Transaction

LOG = logger(__name__)

#: the cases
SAME_VOLUME, NEW_CONTENT = "same_volume", "new_content"
#: Nova's words, which clients read
NO_VALID_HOST = "No valid host was found. There are not enough hosts available."


def case(task: Task) -> str:
    """Return which table carries a rebuild out, by its plan. Pure."""
    content = task.operation.planned(RebuildPlan).content
    return SAME_VOLUME if content is None else NEW_CONTENT


class RebuildFlow(Swapping):
    """The flow of the action ``rebuild``."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud)
        self._root = RootVolume(cloud)

    def cases(self) -> Cases[Task]:
        """Return the stages of a rebuild with a new disk or an unchanged volume, and of a rebuild
        whose root volume gets new content."""
        drop = Undo[Task]("drop_content", write=self._root.drop)
        spawning = TaskState.REBUILD_SPAWNING
        make = Stage(MAKE, self._make, answer(MakeVolume, self._made), spawning, undo=drop)
        return Cases(case, {SAME_VOLUME: self.table(), NEW_CONTENT: self._table(make)})

    def table(self) -> Table[Task]:
        """Return the stages of a rebuild with a new disk or an unchanged volume."""
        return self._table()

    def _table_of(self, task: Task) -> Table[Task]:
        return self.cases().of(task)

    def _table(self, *before: Stage[Task]) -> Table[Task]:
        spawning = TaskState.REBUILD_SPAWNING
        mapping = TaskState.REBUILD_BLOCK_DEVICE_MAPPING
        return Table(
            (
                Stage("check", self._check, shown=TaskState.REBUILDING),
                Stage("map_disk", self._map_disk, shown=mapping),
                *before,
                Stage(SWAP, self._swap, answer(Swap, self._swapped), spawning, undo=self._back),
                Stage(SETTLE, self._settle, answer(EndSwap, self._settled), spawning, final=True),
            ),
            on_superseded=self._root.on_superseded,
            on_deadline=self._on_deadline,
            undone=self._undone,
            # It may have a disk that is not grown yet, or another config drive.
            usable=False,
        )

    # --- the stages

    def _check(self, task: Task) -> Task | None:
        """Ask the scheduler whether the server's own host can run another image."""
        operation, server = task.operation, task.server
        plan = operation.planned(RebuildPlan)
        started, decision = clock.utcnow(), None
        if plan.other_image or server.image_id != plan.former.get("image_id"):
            decision = self._decide(task)
            if decision.host is None:
                self._no_valid_host(task, decision)
                return None

        def work(connection: Transaction) -> Task:
            if decision is not None:
                ledger.record_decision(connection, operation, decision)
                detail = {"host": decision.host, "considered": decision.considered}
                now = clock.utcnow()
                name = "conductor_rebuild_server"
                step = Step(name, 0, started, now, "Success", detail=detail)
                ledger.upsert_events(connection, [ledger.conductor_event(operation, step)])
            return self._advance(
                connection, task, plan, "map_disk", TaskState.REBUILD_BLOCK_DEVICE_MAPPING
            )

        return self._cloud.store.run(work)

    def _decide(self, task: Task) -> Decision:
        """Return the scheduler's decision about the server's host; its claim is not changed."""
        server = task.server
        with self._cloud.store.read() as connection:
            home = image_source.home(connection, server.root_image_id, server.cluster)
            needs = self._root.needs(connection, task)
        request = RequestSpec(
            server_uuid=server.uuid,
            project_id=server.project_id,
            user_id=server.user_id,
            vcpus=server.vcpus,
            memory_mib=server.memory_mib,
            disk_gib=server.disk_gib,
            image_id=server.root_image_id,
            image_properties=server.image_properties,
            extra_specs=dict(server.flavor.get("extra_specs") or {}),
            force_host=str(server.host),
            claimed=True,
            image_home=home,
            volume_backed=server.volume_backed,
            volumes=needs,
        )
        return self._cloud.scheduler.preview(task.operation.ctxt, (request,))[0]

    def _no_valid_host(self, task: Task, decision: Decision) -> None:
        why = decision.reason or f"Host {task.server.host} can't run the image."
        failure = Failure(
            Category.NO_VALID_HOST,
            f"{NO_VALID_HOST} {why} Servers are rebuilt on their own host.",
            "conductor_rebuild_server",
            host=task.server.host,
            owner_message=NO_VALID_HOST,
        )
        self._refuse(task, failure, lambda c: ledger.record_decision(c, task.operation, decision))

    def _map_disk(self, task: Task) -> Task | None:
        """Locate the image in the server's cluster, and gather what its config drive says.

        Raises BandExhausted to be tried again later.
        """
        spawning = TaskState.REBUILD_SPAWNING
        if task.operation.planned(RebuildPlan).root_volume_id:

            def work(connection: Transaction) -> Task:
                plan = self._root.mapped(connection, task)
                stage = SWAP if plan.content is None else MAKE
                return self._advance(connection, task, plan, stage, spawning)

            return self._cloud.store.run(work)
        plan = self._located(task, task.server.root_image_id)
        if plan is None:
            return None
        return self._cloud.store.run(lambda c: self._advance(c, task, plan, SWAP, spawning))

    def _make(self, task: Task) -> None:
        """Have the volume's new content made, beside what it has."""
        if not self._root.send(task):
            self._failed(task, silent(task.server.host))

    def _made(self, task: Task, outcome: VolumeMade) -> Task | None:
        if outcome.ok and outcome.volume is not None:
            return self._root.made(task, outcome.volume)
        unknown = Failure(Category.UNKNOWN_OUTCOME, "The agent does not say what it has made.")
        self._failed(task, outcome.failure or unknown)
        return None

    def _advance(
        self,
        connection: Transaction,
        task: Task,
        plan: SwapPlan,
        stage: str,
        shown: TaskState,
    ) -> Task:
        moved = close.show(connection, task, shown)
        leases.advance(connection, task.operation, plan, stage, self._cloud.name)
        operation = dataclasses.replace(task.operation, plan=plan, stage=stage)
        return dataclasses.replace(task, operation=operation, server=moved)

    def _swap(self, task: Task) -> None:
        plan = task.operation.planned(RebuildPlan)
        self._send(
            task,
            running=plan.was != VmState.STOPPED,
            former_properties=plan.former.get("image_properties") or {},
            root=self._root.named(task),
        )

    def _swapped(self, task: Task, outcome: Built) -> Task | None:
        """Take the agent's outcome: the old disk may go, another attempt, or back."""
        if not outcome.ok:
            self._failed(task, failure_of(outcome))
            return None
        operation = task.operation

        def work(connection: Transaction) -> None:
            self._root.take(connection, task)
            leases.reach_owned(
                *(connection, operation, operation.plan, SETTLE),
                *(self._cloud.name, self._cloud.lease_seconds),
            )

        self._cloud.store.run(work)
        self._cloud.wake()
        return task.at(SETTLE)

    def _settle(self, task: Task) -> None:
        self._send_end(task, keep=True)

    def _settled(self, task: Task, outcome: VmSeen) -> None:
        """End with the server as it was, but for its disk.

        An old disk that can't be removed now is removed with the VM.
        """
        operation = task.operation
        failure = outcome.failure
        if failure is not None and close.waits(self._cloud, operation, failure):
            return
        stopped = operation.planned(RebuildPlan).was == VmState.STOPPED
        seen = outcome.power_state
        if seen == PowerState.NOSTATE:
            seen = PowerState.SHUTDOWN if stopped else PowerState.RUNNING

        def work(connection: Transaction) -> None:
            if failure is not None:
                ledger.record_failure(connection, operation, failure)
            close.settle(
                connection,
                task,
                VmState.STOPPED if stopped else VmState.ACTIVE,
                power_state=seen,
                launched_at=clock.utcnow(),
            )
            message = (
                None if failure is None else f"The old disk was not removed: {failure.message}"
            )
            ledger.close(connection, operation.id, OperationState.DONE, message)

        self._cloud.store.run(work)
        LOG.info("Server %s is rebuilt.", task.server.uuid)

    def _undone(self, connection: Transaction, task: Task, **values: Any) -> None:
        """End with the image and the keys that the disk was made with."""
        former = task.operation.planned(RebuildPlan).former
        super()._undone(connection, task, **former, **values)
        self._root.end_failed(connection, task)
