"""Attach and detach an interface: one command to the agent, which looks before it acts.

A port whose interface was never plugged is deleted once that is seen; one that the guest does not
let go stays the server's. The config drive stays as it was at the build, as in Nova.
"""

from __future__ import annotations

import functools

from common import clock
from common.log import logger
from common.messages.commands import Plug, Size
from common.messages.reports import Failure, Outcome
from common.states import OperationState
from conductor.cloud import failure_of
from conductor.engine import ends, unwinding
from conductor.engine.stages import Stage, Table, Task, Undo
from conductor.flows import build_command, guest_data
from conductor.flows.guest.begin_plug import PLUG, UNPLUG
from conductor.flows.guest.plugging import Plugging, Unplugging, placed
from conductor.plans import PlugPlan
from conductor.store import filters, leases, networks, servers
from conductor.store import operations as ledger
from conductor.store.transactions import Transaction

LOG = logger(__name__)


class _Plugging(Plugging):
    """Sends the command about an interface."""

    def _send(self, task: Task, *, on: bool) -> bool:
        """Send the command; return whether there was an agent to send it."""
        operation, server = task.operation, task.server
        where, plan = placed(server), operation.planned(PlugPlan)
        if where is None or plan.nic is None:
            return False
        worker = leases.worker_with(operation.lease_owner) if task.fresh else None
        worker = worker or self._cloud.take_to(operation, where.host)
        if worker is None:
            return False
        late = clock.after(self._cloud.conf.conductor.action_timeout_seconds)
        flavor = server.flavor
        wanted = None
        if plan.nic.filtered:
            with self._cloud.store.read() as connection:
                wanted = filters.wanted(connection, server.uuid)
        command = Plug(
            operation.id,
            operation.attempt,
            server.uuid,
            where,
            late if task.unwinding or operation.deadline is None else operation.deadline,
            nic=plan.nic,
            on=on,
            slot=plan.slot,
            size=Size(server.vcpus, server.memory_mib, flavor.get("extra_specs") or {}),
            image_properties=server.image_properties,
            filter=wanted,
        )
        self._cloud.compute.execute(operation.ctxt, worker, command)
        return True


class AttachFlow(_Plugging):
    """The flow of the action ``attach_interface``."""

    def table(self) -> Table[Task]:
        """Return the stages; the port was made by the transaction that accepted it."""
        is_back = functools.partial(ends.again_unless_ok, self._cloud)
        back = Undo("plug_back", self._unplug_again, is_back, _give_back)
        return Table(
            (Stage(PLUG, self._plug, self._plugged, undo=back),),
            lost=self._lost,
            late=lambda task: self._unwind(task, self._too_late(task)),
            undone=_undone,
            owns=False,
            taken=lambda task: task.going,
        )

    def _plug(self, task: Task) -> None:
        if not self._send(task, on=True):
            self._failed(task, self._silent(task))

    def _plugged(self, task: Task, outcome: Outcome) -> None:
        if not outcome.ok:
            self._failed(task, failure_of(outcome))
            return

        def work(connection: Transaction) -> None:
            servers.get(connection, task.server.uuid, lock=True)
            _show_addresses(connection, task)
            ledger.close(connection, task.operation.id, OperationState.DONE)

        self._cloud.store.run(work)
        LOG.info("An interface is attached.")

    def _failed(self, task: Task, failure: Failure) -> None:
        unwinding.again_or_begin(self._cloud, self.table(), task, failure)

    def _unwind(self, task: Task, failure: Failure) -> None:
        unwinding.begin(self._cloud, self.table(), task, failure)


class DetachFlow(_Plugging, Unplugging):
    """The flow of the action ``detach_interface``."""

    _stage = UNPLUG

    def _release(self, connection: Transaction, task: Task) -> None:
        _delete_port(connection, task)
        _show_addresses(connection, task)

    def _keep(self, connection: Transaction, task: Task, failure: Failure) -> None:
        """See ``Unplugging``: its port is as it was."""

    def _has(self, connection: Transaction, task: Task) -> bool:
        nic = task.operation.planned(PlugPlan).nic
        mine = build_command.nics_of(connection, task.server.uuid)
        return nic is not None and any(one.port_id == nic.port_id for one in mine)


def _show_addresses(connection: Transaction, task: Task) -> None:
    """Show the addresses of a server that is locked as its ports are now."""
    addresses = guest_data.addresses(build_command.nics_of(connection, task.server.uuid))
    servers.change(connection, task.server, {"addresses": addresses})


def _delete_port(connection: Transaction, task: Task) -> None:
    nic = task.operation.planned(PlugPlan).nic
    if nic is not None:
        networks.delete_port(connection, nic.port_id, task.server.uuid)


def _give_back(connection: Transaction, task: Task, failure: Failure | None) -> Task:
    _delete_port(connection, task)
    return task


def _undone(connection: Transaction, task: Task) -> None:
    ledger.close(connection, task.operation.id, OperationState.FAILED, task.operation.message)
