"""Adopt: an existing VM becomes a server. Nothing is restarted, only the mark is set. A VM whose
build ended before its start, as the record was lost, is started.

What can be refused is refused before anything is written. Then: record, VMID, ports and quota in
one transaction, the claim, the mark; if one of these fails, record and mark are removed again, and
the ledger has the reason.

A server of this cloud whose record was lost remains one whatever fails: without its record and its
mark nothing could adopt it later. It needs no room, as it has what it uses.
"""

from __future__ import annotations

import dataclasses

from common import clock
from common.log import logger
from common.messages.commands import Mark
from common.messages.reports import Category, Failure, Marked
from common.resources.states import PowerState, VmState
from conductor.engine import close
from conductor.engine.command_end import End
from conductor.engine.one_command import OneCommand
from conductor.engine.stages import Stage, Task, Undo, answer
from conductor.engine.unwound_command import UnwoundCommand
from conductor.plans import AdoptParams
from conductor.servers import build_command
from conductor.servers.remove.finish_delete import leave_vm
from conductor.servers.server_command import ServerCommand
from conductor.store.transactions import Transaction
from conductor.sync import allocations

LOG = logger(__name__)


class Adopt(UnwoundCommand[Task, Marked], ServerCommand[Marked]):
    """The flow of the action ``adopt``."""

    stage = "mark"
    unseen = "The mark was not seen there."
    hopeless = frozenset(Category)

    def stages(self) -> tuple[Stage[Task], ...]:
        """Return the stages: claim, then have the mark set."""
        (mark,) = super().stages()
        release = Undo("release_claim", self._release)
        unmark = Undo("unmark", self.send_back, answer(Mark, self._is_unmarked))
        return (
            Stage("claim", self._claim, shown=mark.shown, undo=release),
            dataclasses.replace(mark, undo=unmark),
        )

    def _claim(self, task: Task) -> Task | None:
        """Claim, as far as placement has room for it. Raises Unavailable."""
        server = task.server
        amounts = allocations.wanted(server)
        provider = str(task.operation.plan.target.uuid)
        placement = self._cloud.placement
        if placement.claim(server.uuid, provider, amounts, server.project_id, server.user_id):
            return task
        asked = ", ".join(f"{amount} {name}" for name, amount in amounts.items())
        if _again(task):
            # The audit claims once what is gone has given back what it had.
            LOG.warning("Server %s is adopted without a claim: there is no room.", server.uuid)
            return task
        text = f"Host {server.host} has no room for {asked} by what it has promised already."
        placement.release(server.uuid)
        # It made nothing but the record.
        OneCommand.fail(self, task, Failure(Category.NO_VALID_HOST, text, host=server.host))
        return None

    def command(self, task: Task) -> Mark:
        """Return what sets the mark, or removes it again."""
        with self._cloud.store.read() as connection:
            owner = build_command.owner(connection, task.server)
        asked, on = task.operation.asked(AdoptParams), not task.unwinding
        about = (*self.about(task), on, asked.smbios_uuid)
        return Mark(*about, start=on and asked.start, **owner)

    def on_no_agent(self, task: Task) -> None:
        """Wait for it until the deadline."""
        self.wait(task)

    def on_success(self, task: Task, outcome: Marked) -> None:
        """End with the server as its VM was seen."""
        running = outcome.power_state == PowerState.RUNNING
        close.done(
            self._cloud,
            task,
            VmState.ACTIVE if running else VmState.STOPPED,
            power_state=outcome.power_state,
            launched_at=clock.utcnow(),
        )

    # --- failure

    def fail(self, task: Task, failure: Failure, outcome: Marked | None = None) -> None:
        """Begin to unwind; what was a server before is one in ERROR, whose VM is looked at."""
        if not _again(task):
            super().fail(task, failure, outcome)
            return
        close.failed(self._cloud, task, failure, VmState.ERROR, launched_at=clock.utcnow())
        close.log_failed(task.operation, failure)

    def _is_unmarked(self, task: Task, outcome: Marked) -> bool:
        if not outcome.gone:
            close.again(self._cloud, task.operation, outcome.failure)
        return outcome.gone

    def _release(self, task: Task) -> bool:
        """Release the claim. Raises Unavailable to be repeated later."""
        self._cloud.placement.release(task.server.uuid)
        return True

    def write_failed(self, connection: Transaction, end: End[Task, Marked]) -> None:
        """Delete record, VMID and ports: the VM is as it was."""
        leave_vm(connection, end.task.server, end.operation.id)


def _again(task: Task) -> bool:
    """Return whether it was a server of this cloud before."""
    return task.operation.asked(AdoptParams).again
