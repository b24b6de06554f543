"""Scenarios of one action on a server that is there: each is a row of a table.

Whatever strikes, the action ends; the server is what it was or what the action makes of it, and
so are its VM, its size and its claim.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from common.errors import Conflict, MicronovaError
from db import schema
from tests.chaos.actions import ACTIONS, LARGER, ask, delete_images
from tests.chaos.cloud import BOUND_SECONDS, FLAVOR, Overdue
from tests.chaos.play import Play
from tests.chaos.stage import Stage

SOON_SECONDS = 20

_MAC = re.compile(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")

#: a VM's state of QEMU, by the server's; a rescued one, whose way back failed, may have stopped
_QMP = {"active": "running", "resized": "running", "paused": "paused"}


class ActionPlay(Play):
    """One run of an action; ``scenario`` is its name."""

    def __init__(self, stage: Stage, scenario: str, number: int, image: int) -> None:
        super().__init__(stage, scenario, number, image)
        self._scenario = ACTIONS[scenario]
        self._action = self._scenario.action or scenario
        self.good = self._scenario.becomes
        self._lost_before = len(stage.lost_nodes)

    def prepare(self) -> None:
        """See ``Play``: the server is there, and what comes before the action is done."""
        self.stage.create(self.name, self.image)
        self.stage.until(lambda: self.state() == "active")
        for action, vm_state in self._scenario.before:
            self._ask(action)
            self._await(vm_state)

    def act(self) -> None:
        """See ``Play``. A host whose agent has just died takes no action: that is an answer."""
        with contextlib.suppress(Conflict):
            self._ask(self.scenario)

    def settled(self) -> str:
        """See ``Play``. A CD is put back into a VM only once its lock is gone."""
        if self._operation() is None:
            self._request_arrived()
        return str(self.stage.helped(self._rest))

    def kept(self) -> str:
        """Whether the VM, its size and its claim are what the record says; or what is wrong."""
        wrong = ""

        def right() -> bool:
            nonlocal wrong
            wrong = self._wrong()
            return not wrong

        with contextlib.suppress(Overdue):
            self.stage.until(right, BOUND_SECONDS if self._lost_node() else SOON_SECONDS)
        delete_images(self.stage, *[row.uuid for row in self.rows()])
        return wrong

    # --- inner

    def _ask(self, name: str) -> None:
        (row,) = self.rows()
        ask(self.stage, row.uuid, name)

    def _await(self, vm_state: str) -> None:
        self.stage.until(lambda: self._rest() == vm_state)

    def _operation(self) -> Any:
        """The operation of the action, if it was begun."""
        (row,) = self.rows()
        columns = schema.operations.c
        query = sa.select(schema.operations).where(
            columns.resource_id == row.uuid, columns.action == self._action
        )
        found = self.stage.rows(query)
        assert len(found) <= 1, f"one request began {len(found)} operations"
        return found[0] if found else None

    def _rest(self) -> str:
        """The vm_state when nothing is under way; empty before."""
        (row,) = self.rows()
        columns = schema.operations.c
        query = sa.select(schema.operations.c.id).where(
            columns.resource_id == row.uuid, columns.state.in_(("queued", "running", "unwinding"))
        )
        if self.stage.rows(query):
            return ""
        # As it is once none was seen: what ended between the two looks has changed it.
        (row,) = self.rows()
        return "" if row.task_state is not None else str(row.vm_state)

    def _wrong(self) -> str:
        self.stage.follow_remedies()
        (row,) = self.rows()
        if row.vm_state == "deleted":
            return "the server is gone"
        found = self.stage.differences()
        stopped = "stopped" if self._lost_node() else None
        if row.vm_state not in (self._scenario.was, self._scenario.becomes, "error", stopped):
            found.append(f"the server is {row.vm_state}")
        operation = self._operation()
        if (
            operation is not None
            and operation.state == "done"
            and row.vm_state not in (self.good, stopped)
        ):
            found.append(f"the action is done and the server {row.vm_state}")
        if row.vm_state == "error" or found:
            return "; ".join(found)
        return "; ".join([*self._vm_differs(row), *self._claim_differs(row)])

    def _lost_node(self) -> bool:
        """Whether a node of this run lost power: what ran there is stopped."""
        return len(self.stage.lost_nodes) > self._lost_before

    def _vm_differs(self, row: Any) -> list[str]:
        vms = self.stage.simulator.state()["sim1"]["vms"]
        (vm,) = (vm for vm in vms if vm["vmid"] == row.vmid)
        found = []
        if row.vm_state == "suspended":
            if vm["lock"] != "suspended":
                found.append("its memory is not on disk")
        elif row.vm_state != "rescued" and vm["qmp"] not in self._may_be(row.vm_state):
            found.append(f"it is {row.vm_state} and its VM {vm['qmp']}")
        size = (int(vm["config"]["cores"]), int(vm["config"]["memory"]))
        if size != (row.flavor["vcpus"], row.flavor["memory_mib"]):
            found.append(f"its VM has {size}, its flavor is {row.flavor['name']}")
        found += self._interfaces_differ(row, vm["config"])
        return found

    def _may_be(self, vm_state: str) -> set[str]:
        """States of QEMU that fit; a resized server remains resized though its node was lost."""
        right = _QMP.get(vm_state, "stopped")
        return {right, "stopped"} if vm_state == "resized" and self._lost_node() else {right}

    def _interfaces_differ(self, row: Any, config: Mapping[str, str]) -> list[str]:
        query = sa.select(schema.ports.c.mac).where(schema.ports.c.server_uuid == row.uuid)
        ports = sorted(port.mac.upper() for port in self.stage.rows(query))
        cards = sorted(
            found[0].upper()
            for name, value in config.items()
            if name.startswith("net") and (found := _MAC.search(value))
        )
        return [] if cards == ports else [f"its VM has the interfaces {cards}, its ports: {ports}"]

    def _claim_differs(self, row: Any) -> list[str]:
        """It holds what its columns say: those the quota adds up."""
        query = sa.select(schema.hosts.c.uuid).where(schema.hosts.c.host == row.host)
        ((provider,),) = self.stage.rows(query)
        try:
            held = self.stage.placement.provider_allocations(provider).get(row.uuid, {})
        except MicronovaError as error:
            return [f"placement does not answer: {error.message}"]
        if row.vm_state == "shelved_offloaded":
            return [] if held.keys() == {"DISK_GB"} else [f"it is parked and holds {held}"]
        due = {"VCPU": row.vcpus, "MEMORY_MB": row.memory_mib}
        has = {name: held.get(name) for name in due}
        both = self._scenario.larger and row.vm_state == "resized"
        sizes = [FLAVOR, LARGER] if both else [row.flavor]
        found = [] if has == due else [f"it holds {has} instead of {due}"]
        largest = max(_memory(size) for size in sizes)
        if row.memory_mib != largest:
            found.append(f"{row.memory_mib} MiB count against the quota instead of {largest}")
        return found


def _memory(flavor: Any) -> int:
    return int(flavor["memory_mib"] if isinstance(flavor, dict) else flavor.memory_mib)
