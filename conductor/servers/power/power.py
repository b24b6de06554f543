"""Stop, start, reboot, pause, unpause, suspend and resume; soft delete and restore."""

from __future__ import annotations

from collections.abc import Mapping

from common.messages.commands import Power, PowerAction
from common.messages.reports import VmSeen
from common.resources.states import PowerState, VmState
from conductor.engine import close
from conductor.engine.stages import Task
from conductor.servers.server_command import ServerCommand

COMMANDS: Mapping[str, PowerAction] = {
    "stop": PowerAction.STOP,
    "start": PowerAction.START,
    "reboot": PowerAction.REBOOT_SOFT,
    "reboot-hard": PowerAction.REBOOT_HARD,
    "pause": PowerAction.PAUSE,
    "unpause": PowerAction.UNPAUSE,
    "suspend": PowerAction.SUSPEND,
    "resume": PowerAction.RESUME,
    "soft-delete": PowerAction.STOP,
    "restore": PowerAction.START,
}


class PowerFlow(ServerCommand[VmSeen]):
    """The flow of an action that only changes power."""

    stage = "power"
    unseen = "The agent does not say how it ended."

    def do(self, task: Task) -> None:
        """Send the command; a soft delete of saved memory needs none."""
        if task.operation.action == "soft-delete" and _is_saved(task):
            close.done(self._cloud, task, VmState.SOFT_DELETED)
        else:
            super().do(task)

    def command(self, task: Task) -> Power:
        """Return what changes its power."""
        return Power(*self.about(task), _command(task), task.operation.started_at)


def _is_saved(task: Task) -> bool:
    return task.server.power_state == PowerState.SUSPENDED


def _command(task: Task) -> PowerAction:
    """Return what the agent does; a VM whose memory was saved is restored with that."""
    action = task.operation.action
    return PowerAction.RESUME if action == "restore" and _is_saved(task) else COMMANDS[action]
