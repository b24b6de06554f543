"""Attach and detach an interface: one command to the agent, which looks before it acts.

A port whose interface was never plugged is deleted once that is confirmed; a port whose interface
the guest does not release remains the server's. The config drive is not changed after the build,
as in Nova.
"""

from __future__ import annotations

from typing import Any

from common.messages.commands import Plug, Size
from common.messages.reports import Failure, VmSeen
from conductor.engine.command_end import End
from conductor.engine.stages import Task
from conductor.servers import build_command, guest_data
from conductor.servers.guest.begin_plug import ATTACH, DETACH, PLUG, UNPLUG
from conductor.servers.guest.plugging import Attaching, Plugging, Unplugging
from conductor.store.networks import networks
from conductor.store.networks.filtering import filters
from conductor.store.servers import servers
from conductor.store.transactions import Transaction


class _Interface(Plugging[VmSeen]):
    """Sends the command about an interface."""

    def command(self, task: Task) -> Plug:
        """Return the command that plugs or unplugs it."""
        server, wanted = task.server, None
        if task.operation.ordered(Plug).nic.filtered:
            with self._cloud.store.read() as connection:
                wanted = filters.wanted(connection, server.uuid)
        extra_specs = server.flavor.get("extra_specs") or {}
        return self.planned(
            task,
            Plug,
            on=self.stage == PLUG and not task.unwinding,
            size=Size(server.vcpus, server.memory_mib, extra_specs),
            image_properties=server.image_properties,
            filter=wanted,
        )


class AttachFlow(_Interface, Attaching[VmSeen]):
    """The flow of the action ``attach_interface``; what accepted it has made the port."""

    stage, back = PLUG, "plug_back"
    late = f"{ATTACH} did not end in time."

    def write_done(self, connection: Transaction, end: End[Task, VmSeen]) -> None:
        """Show its addresses."""
        _show_addresses(connection, end.task)

    def give_back(self, connection: Transaction, task: Task, failure: Failure | None) -> Task:
        """Delete the port; return the task."""
        _delete_port(connection, task)
        return task


class DetachFlow(_Interface, Unplugging[VmSeen]):
    """The flow of the action ``detach_interface``."""

    stage = UNPLUG
    late = f"{DETACH} did not end in time."

    def write_detached(self, connection: Transaction, task: Task, row: Any) -> None:
        """Delete the port."""
        _delete_port(connection, task)
        _show_addresses(connection, task)

    def write_still_attached(
        self, connection: Transaction, task: Task, row: Any, failure: Failure
    ) -> None:
        """See ``Unplugging``: its port is as it was."""

    def has(self, connection: Transaction, task: Task) -> bool:
        """Return whether the server has the port."""
        nic = task.operation.ordered(Plug).nic
        mine = build_command.nics_of(connection, task.server.uuid)
        return any(one.port_id == nic.port_id for one in mine)


def _show_addresses(connection: Transaction, task: Task) -> None:
    """Show the addresses of a server that is locked as its ports are now."""
    addresses = guest_data.addresses(build_command.nics_of(connection, task.server.uuid))
    servers.change(connection, task.server, {"addresses": addresses})


def _delete_port(connection: Transaction, task: Task) -> None:
    port_id = task.operation.ordered(Plug).nic.port_id
    networks.delete_port(connection, port_id, task.server.uuid)
