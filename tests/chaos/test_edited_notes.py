"""Each action on a server whose VM's notes were edited ends at once, and works once the mark is
written again.

The fence refuses the VM before anything is changed. So nothing is half done, and no undo has
anything to change either.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from common.context import RequestContext
from conductor.rpc.servers.server_volumes import AttachRequest
from conductor.rpc.volumes.volumes import NewVolume
from db import schema
from tests.chaos import actions
from tests.chaos.person import Person
from tests.chaos.world import World, world

ADMIN = RequestContext(user_id="boss", project_id="admin", roles=["admin"], is_admin=True)


def removed(_: str) -> str:
    """Another text instead of the notes."""
    return "ask Ann before a reboot"


def truncated(notes: str) -> str:
    """Cut off within the UUID."""
    return notes[: len("micronova: server=") + 7]


NOTES = (removed, truncated)
#: not those of a CD, which this cloud hasn't
NAMES = [name for name in actions.ACTIONS if " CD" not in name]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two nodes with shared storage, so that servers can be moved."""
    folder = tmp_path_factory.mktemp("notes")
    with world(folder, {"proxmox:sim1": actions.MOVABLE}) as running:
        yield running


@dataclass
class Case:
    """One action on one server."""

    cloud: World
    uuid: str
    name: str
    ask: Callable[[], None]
    action: str

    def operations(self) -> list[Any]:
        """All operations of the action, the last one first."""
        columns = schema.operations.c
        query = sa.select(schema.operations).where(
            columns.resource_id == self.uuid, columns.action == self.action
        )
        return self.cloud.rows(query.order_by(columns.id.desc()))

    def ended(self) -> Any:
        """Ask for it; its operation once that has ended."""
        before = len(self.operations())
        self.ask()

        def ended() -> Any:
            found = self.operations()
            return (
                len(found) > before
                and found[0].state in ("done", "failed")
                and self.cloud.server(self.uuid).task_state is None
                and found[0]
            )

        return self.cloud.until(ended, 30)

    def held(self) -> dict[str, Any]:
        """What else the action may have left half made."""
        ports, volumes, images = schema.ports.c, schema.volumes.c, schema.images.c
        return {
            "ports": len(
                self.cloud.rows(sa.select(ports.id).where(ports.server_uuid == self.uuid))
            ),
            "volumes": [
                (row.id, row.status)
                for row in self.cloud.rows(sa.select(volumes.id, volumes.status))
            ],
            "images": self.cloud.rows(
                sa.select(images.id).where(images.server_uuid == self.uuid).order_by(images.id)
            ),
        }

    def edit(self, notes: Callable[[str], str]) -> None:
        """Edit the notes by hand."""
        cluster, row = self.cloud.simulator.cluster(), self.cloud.server(self.uuid)
        with cluster.turn():
            config = cluster.edit(cluster.vms[row.vmid]).config
            config["description"] = notes(config["description"])

    def mark(self) -> None:
        """`micronova server mark`, until it is done."""
        self.cloud.client.mark_server(ADMIN, self.uuid)
        columns = schema.operations.c
        query = sa.select(columns.state).where(
            columns.resource_id == self.uuid, columns.action == "mark"
        )
        self.cloud.until(lambda: all(row.state == "done" for row in self.cloud.rows(query)))

    def require_refused(self, operation: Any) -> str:
        """It failed once, with the reason; returns the remedy."""
        faults = [one for one in self.cloud.faults(self.uuid) if one.operation_id == operation.id]
        assert {one.category for one in faults} == {"mark_lost"}, faults
        assert len(faults) == 1, "it was tried again, which nothing but the mark can help"
        columns = schema.operation_events.c
        query = sa.select(columns.detail).where(
            columns.operation_id == operation.id, columns.result == "Error"
        )
        shown = {row.detail["category"] for row in self.cloud.rows(query)}
        assert shown == {"mark_lost"}, "the timeline shows the step that was refused, and no other"
        return str(faults[0].remedy)

    def follow(self, remedy: str) -> None:
        """Carry out a remedy as it is printed."""
        if remedy == f"micronova server mark {self.uuid}":
            self.mark()
            return
        by_root = re.fullmatch(r"as root on (\S+): qm set (\d+) (.+)", remedy)
        assert by_root, remedy
        node, vmid, arguments = by_root.groups()
        read = subprocess.run(
            ["/bin/bash", "-c", f"printf '%s\\0' {arguments}"], capture_output=True, check=True
        )
        words = read.stdout.decode().split("\0")[:-1]
        options = {words[i].removeprefix("--"): words[i + 1] for i in range(0, len(words), 2)}
        Person(self.cloud).api.nodes(node).qemu(vmid).config.put(**options)


def await_state(cloud: World, uuid: str, vm_state: str) -> None:
    cloud.until(
        lambda: (row := cloud.server(uuid)).task_state is None and row.vm_state == vm_state
    )


def of_scenario(cloud: World, name: str, uuid: str) -> Case:
    """A case of the enumeration of actions; what comes before it is done."""
    scenario = actions.ACTIONS[name]
    for before, vm_state in scenario.before:
        actions.ask(cloud, uuid, before)
        await_state(cloud, uuid, vm_state)
        cloud.until(lambda: not cloud.open_operations())
    ask = partial(actions.ask, cloud, uuid, name)
    return Case(cloud, uuid, name, ask, scenario.action or name)


@pytest.mark.parametrize("notes", NOTES)
@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", NAMES)
def test_an_action(cloud: World, name: str, notes: Callable[[str], str]) -> None:
    row = cloud.built(f"{name} {notes.__name__}")
    case = of_scenario(cloud, name, row.uuid)
    before = case.held()
    case.edit(notes)
    operation = case.ended()
    if operation.state == "failed":
        remedy = case.require_refused(operation)
        assert case.held() == before
        case.follow(remedy)
        operation = case.ended()
    else:
        case.mark()
    if name == "unrescue":
        # The notes said as well from what disk it ran before: the second remedy boots from that.
        assert operation.state == "failed"
        case.follow(cloud.faults(row.uuid)[-1].remedy)
        operation = case.ended()
    assert operation.state == "done", cloud.faults(row.uuid)
    await_state(cloud, row.uuid, actions.ACTIONS[name].becomes)
    actions.delete_images(cloud, row.uuid)
    cloud.delete(row.uuid)
    cloud.until(lambda: not cloud.open_operations())


@pytest.mark.sampled(9)
@pytest.mark.parametrize("notes", NOTES)
def test_a_volume(cloud: World, notes: Callable[[str], str]) -> None:
    context, client = cloud.context(), cloud.client
    volume = client.create_volume(context, NewVolume("project", 1))
    columns = schema.volumes.c

    def status() -> str | None:
        found = cloud.rows(sa.select(columns.status).where(columns.id == volume))
        return found[0].status if found else None

    uuid = cloud.built(f"with a volume {notes.__name__}").uuid
    cloud.until(lambda: status() == "available")
    asks: dict[str, Callable[[], object]] = {
        "attach_volume": lambda: client.attach_volume(context, uuid, AttachRequest(volume)),
        "detach_volume": lambda: client.detach_volume(context, uuid, volume),
    }
    for name, ask in asks.items():
        case = Case(cloud, uuid, name, lambda ask=ask: ask() and None, name)  # type: ignore[misc]
        before = case.held()
        case.edit(notes)
        case.follow(case.require_refused(case.ended()))
        assert case.held() == before
        assert case.ended().state == "done"
    cloud.delete(uuid)
    client.delete_volume(context, volume)
    cloud.until(lambda: status() in (None, "deleted"))
