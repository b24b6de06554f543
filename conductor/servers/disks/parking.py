"""What shelving and unshelving have in common: commands to parked VMs, and what these claim."""

from __future__ import annotations

from common.messages.commands import Power, PowerAction
from common.messages.reports import Failure
from conductor.cloud import Cloud, silent
from conductor.engine import close
from conductor.engine.stages import Task
from conductor.plans import Place
from conductor.servers.move import move_command
from conductor.store.hosts import registry
from conductor.sync import claims


class Parking:
    """What shelving and unshelving have in common."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def _send(self, task: Task, action: PowerAction, there: Place | None = None) -> bool:
        """Send a command to its host, or ``there``; return whether there was an agent for it."""
        operation, server = task.operation, task.server
        where = there or Place(server.host, None, server.cluster, server.node, server.vmid)
        late = move_command.until(task, self._cloud.conf.conductor.action_timeout_seconds)
        command = Power(
            *operation.about(move_command.placed(where), late),
            action,
            operation.started_at,
        )
        return self._cloud.send(operation, command)

    def _hold(self, task: Task, amounts: dict[str, int]) -> bool:
        """Hold exactly this of the server's host. Raises Unavailable."""
        with self._cloud.store.read() as connection:
            facts, _ = registry.host(connection, str(task.server.host))
        if not amounts:
            self._cloud.placement.release(task.server.uuid)
            return True
        return claims.hold(self._cloud.placement, task.server, facts.uuid, amounts)

    def _no_agent(self, task: Task, host: str | None = None) -> Failure:
        return silent(host or str(task.server.host))

    def _on_superseded(self, task: Task) -> None:
        close.overtaken(self._cloud, task)
