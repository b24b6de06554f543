"""Commands that come twice or late, and what is reported again."""

from __future__ import annotations

import dataclasses
import datetime
import threading
from typing import Any

import pytest

from common import clock, codec, config, log, rpc
from common.context import internal
from common.messages.commands import Command, Destroy, PlugVolume, Power, PowerAction
from common.messages.facts import ClusterFacts
from common.messages.queues import Queues
from common.messages.reports import Category, NotUnderstood, Report
from common.resources.states import ResourceType
from common.rpc import signatures
from common.rpc.events import ConductorEvents
from compute.commands import COMMANDS
from compute.hypervisor.port import HypervisorError, Machine, Removal
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.api.tasks import Tasks
from compute.observed.facts import HostFactsCache
from compute.observed.vm_states import VmChanges
from compute.rpc_api import WorkerRpc
from compute.worker.executor import Executor
from compute.worker.heartbeat import PUBLISH_ALL_SECONDS, Heartbeats
from tests.unit.compute.fakes import SERVER, FakeLedger, FakeMachine, FakeWork, a_build, some_facts


class FakeHypervisor:
    """Gives one machine to every job."""

    def __init__(self, machine: FakeMachine) -> None:
        self._machine = machine

    def machine(self, job: Any) -> Machine:
        return self._machine

    def group_writer(self, build: Any) -> None:
        """It knows no groups."""


class Worker:
    """An executor whose reports are waited for."""

    def __init__(self, machine: FakeMachine) -> None:
        self.reports: list[Report] = []
        self._news = threading.Condition()
        carried: Any = {"c1": FakeHypervisor(machine)}
        self.executor = Executor(carried, self._report, 2, 0, FakeLedger())

    def _report(self, report: Report) -> None:
        with self._news:
            self.reports.append(report)
            self._news.notify_all()

    def outcomes(self, count: int) -> list[Any]:
        def known() -> list[Any]:
            return [one.outcome for one in self.reports if one.outcome is not None]

        with self._news:
            assert self._news.wait_for(lambda: len(known()) >= count, 5)
            return known()

    def take(self, command: Command) -> None:
        assert self.executor.accept(internal(), command)


def test_a_build_that_left_nothing_is_not_begun_again() -> None:
    machine = FakeMachine("start")
    worker = Worker(machine)
    worker.take(a_build())
    (first,) = worker.outcomes(1)
    assert first.gone
    machine.fail = ""
    worker.take(a_build())
    assert worker.outcomes(2)[1] == first
    assert machine.calls.count("create") == 1
    worker.take(a_build(attempt=2))
    assert worker.outcomes(3)[2].ok


def test_a_command_of_a_newer_release_is_refused() -> None:
    """Whatever it is: nothing is done, and the conductor learns why at once."""
    machine = FakeMachine()
    worker = Worker(machine)
    plain = {**codec.loads(codec.dumps(a_build())), "kind": "Teleport", "beam": 7}
    hint = signatures.messages(WorkerRpc.execute)["command"]
    worker.take(signatures.load(hint, plain))
    (refused,) = worker.outcomes(1)
    assert (refused.ok, refused.failure.category) == (False, Category.API_NOT_SUPPORTED)
    assert (refused.gone, refused.failure.clean, machine.calls) == (False, False, [])
    assert refused.failure.remedy == f"upgrade the agent of {a_build().placed.host}"


@pytest.mark.parametrize("command", sorted(COMMANDS, key=str))
def test_a_refusal_has_what_the_outcome_of_any_command_has(command: type[Command]) -> None:
    wanted = {one.name for one in dataclasses.fields(command.outcome())}
    assert wanted <= {one.name for one in dataclasses.fields(NotUnderstood)}


def test_a_build_that_is_repeated_undoes_nothing_of_one_that_ended_well() -> None:
    """Which may be reported: the server is in use then."""
    machine = FakeMachine()
    worker = Worker(machine)
    worker.take(a_build())
    assert worker.outcomes(1)[0].ok
    machine.fail = "start"
    worker.take(a_build())
    again = worker.outcomes(2)[1]
    assert (again.ok, again.gone, again.failure.clean) == (False, False, False)
    assert "remove" not in machine.calls
    assert "remove_config_drive" not in machine.calls


def test_a_reboot_that_is_asked_for_twice_is_one() -> None:
    machine = FakeMachine()
    machine.absent = False
    worker = Worker(machine)
    build = a_build()
    command = Power(
        2,
        1,
        ResourceType.SERVER,
        SERVER,
        build.placed,
        build.deadline,
        action=PowerAction.REBOOT_HARD,
    )
    for count in (1, 2):
        worker.take(command)
        assert worker.outcomes(count)[-1].ok
    assert machine.calls.count("reboot 0") == 1


def test_what_removes_what_a_build_left_ends_that_attempt_only() -> None:
    """The build continues at another place, whose agent may be of the same worker."""
    worker = Worker(FakeMachine())
    there = a_build().placed
    head = (2, 1, ResourceType.SERVER, SERVER, there, clock.after(60))
    worker.take(Destroy(*head, build=1, build_attempt=1))
    assert worker.outcomes(1)[0].gone
    worker.take(a_build())
    late = worker.outcomes(2)[1]
    assert not late.ok and "was destroyed" in late.failure.message
    worker.take(a_build(attempt=2, placed=dataclasses.replace(there, vmid=there.vmid + 1)))
    assert worker.outcomes(3)[2].ok


def test_what_a_build_left_is_removed_after_a_delete_of_its_server_as_well() -> None:
    worker = Worker(FakeMachine())
    there, end = a_build().placed, clock.after(60)
    worker.take(Destroy(3, 1, ResourceType.SERVER, SERVER, there, end))
    worker.take(Destroy(2, 1, ResourceType.SERVER, SERVER, there, end, build=1, build_attempt=1))
    assert [one.gone for one in worker.outcomes(2)] == [True, True]


def a_power(number: int, action: PowerAction, began_at: str) -> Power:
    build, began = a_build(), datetime.datetime.fromisoformat(began_at)
    return Power(
        number, 1, ResourceType.SERVER, SERVER, build.placed, build.deadline, action, began
    )


def test_a_suspend_that_comes_after_the_reboot_that_took_it_over_is_not_carried_out() -> None:
    machine = FakeMachine()
    machine.absent = False
    worker = Worker(machine)
    worker.take(a_power(3, PowerAction.REBOOT_HARD, "2026-11-01T12:00:01+00:00"))
    assert worker.outcomes(1)[0].ok
    done = list(machine.calls)
    worker.take(a_power(2, PowerAction.SUSPEND, "2026-11-01T12:00:00+00:00"))
    late = worker.outcomes(2)[1]
    assert (late.ok, late.failure.message) == (
        False,
        "A later operation has changed the server's power.",
    )
    assert machine.calls == done


def test_operations_of_a_restored_database_have_lower_numbers() -> None:
    machine = FakeMachine()
    machine.absent = False
    worker = Worker(machine)
    worker.take(a_power(3, PowerAction.REBOOT_HARD, "2026-11-01T12:00:00+00:00"))
    worker.outcomes(1)
    worker.take(a_power(2, PowerAction.REBOOT_HARD, "2026-11-01T12:00:01+00:00"))
    assert worker.outcomes(2)[1].ok


def a_plug(*, on: bool, attempt: int = 1) -> PlugVolume:
    build = a_build()
    volid = "local:100002/vm-100002-disk-0.qcow2"
    return PlugVolume(
        2, attempt, ResourceType.SERVER, SERVER, build.placed, build.deadline, volid=volid, on=on
    )


def test_an_undo_waits_for_what_it_undoes_and_has_an_answer_of_its_own() -> None:
    machine = FakeMachine()
    machine.absent = False
    machine.unlocked.clear()
    worker = Worker(machine)
    worker.take(a_plug(on=True))
    assert machine.begun.wait(60)
    worker.take(a_plug(on=False, attempt=2))
    machine.unlocked.set()
    assert all(outcome.ok for outcome in worker.outcomes(2))
    assert [call for call in machine.calls if "plug" in call] == ["plug_volume", "unplug_volume"]
    ended = [report.attempt for report in worker.reports if report.outcome is not None]
    assert ended == [1, 2]


def test_a_plug_that_comes_again_after_its_undo_is_answered_only() -> None:
    """It may have been on the way for long: the volume may have another server by then."""
    machine = FakeMachine()
    machine.absent = False
    worker = Worker(machine)
    for count, command in enumerate(
        (a_plug(on=True), a_plug(on=False, attempt=2), a_plug(on=True)), 1
    ):
        worker.take(command)
        assert worker.outcomes(count)[-1].ok
    assert [call for call in machine.calls if "plug" in call] == ["plug_volume", "unplug_volume"]


@pytest.mark.parametrize("destroyed_by", [(1,), (2, 1)])
def test_a_build_that_comes_after_a_destroy_makes_nothing(destroyed_by: tuple[int, ...]) -> None:
    """Be it the delete's, or the one by which the build itself was given up, in any order."""
    machine = FakeMachine()
    worker = Worker(machine)
    build = a_build()
    for count, operation_id in enumerate(destroyed_by, 1):
        destroy = Destroy(
            operation_id, 1, ResourceType.SERVER, SERVER, build.placed, build.deadline
        )
        worker.take(destroy)
        worker.outcomes(count)
    worker.take(build)
    assert not worker.outcomes(len(destroyed_by) + 1)[-1].ok
    assert "create" not in machine.calls


def test_what_comes_after_a_destroy_that_was_refused_is_carried_out() -> None:
    machine = FakeMachine()
    machine.absent = False
    machine.removal = Removal(False)
    machine.fail, machine.error = "find", HypervisorError(Category.PROTECTED, "It is protected.")
    worker = Worker(machine)
    build = a_build()
    worker.take(Destroy(3, 1, ResourceType.SERVER, SERVER, build.placed, build.deadline))
    assert not worker.outcomes(1)[0].gone
    machine.fail = ""
    worker.take(a_plug(on=True))
    assert worker.outcomes(2)[1].ok


class Bus:
    """Records what is cast, or refuses it."""

    def __init__(self) -> None:
        self.cast_facts: list[int] = []
        self.published: list[bool] = []
        self.broken = False

    def cast(self, ctxt: Any, method: Any, **args: Any) -> None:
        if self.broken:
            raise RuntimeError("the bus is down")
        if method is ConductorEvents.heartbeat:
            self.cast_facts.append(len(args["heartbeat"].facts))
            self.published.append(args["heartbeat"].published)


def test_all_facts_are_reported_again_after_a_while_and_after_a_loss() -> None:
    now = [0.0]
    cache = HostFactsCache()
    cache.update([some_facts()], ClusterFacts("c1", "9.2", True))
    bus = Bus()
    conf = config.load([rpc.register, log.register])
    conf.set_override("transport_url", "micronova-local://again/")
    heartbeats = Heartbeats(
        *(rpc.transport(conf), "w1", 10, cache, VmChanges("w1"), lambda: (), lambda: Queues(())),
        timer=lambda: now[0],
    )
    heartbeats._conductor = heartbeats._schedulers = bus  # type: ignore[assignment]
    heartbeats.beat()
    heartbeats.beat()
    now[0] = PUBLISH_ALL_SECONDS
    heartbeats.beat()
    heartbeats.beat()
    assert bus.cast_facts == [1, 0, 1, 0]
    cache.update([some_facts(vcpus=9)], ClusterFacts("c1", "9.2", True))
    bus.broken = True
    with pytest.raises(RuntimeError):
        heartbeats.beat()
    bus.broken = False
    heartbeats.beat()
    assert bus.cast_facts[-1] == 1


def test_hosts_new_to_the_worker_are_published_without_being_asked_for() -> None:
    cache = HostFactsCache()
    cache.update([some_facts()], ClusterFacts("c1", "9.2", True))
    bus = Bus()
    conf = config.load([rpc.register, log.register])
    conf.set_override("transport_url", "micronova-local://published/")
    heartbeats = Heartbeats(
        *(rpc.transport(conf), "w1", 10, cache, VmChanges("w1"), lambda: (), lambda: Queues(()))
    )
    heartbeats._conductor = heartbeats._schedulers = bus  # type: ignore[assignment]
    heartbeats.beat()
    heartbeats.announce()
    heartbeats.announce(published=True)
    assert bus.cast_facts == [1, 1, 1]
    assert bus.published == [True, False, True]


class OddClient(Client):
    """A cluster whose first answer is nonsense."""

    def __init__(self) -> None:
        self.answers: list[Any] = [None, {"status": "stopped", "exitstatus": "OK"}]

    def get(self, path: str, **params: Any) -> Any:
        return self.answers.pop(0)


def test_a_senseless_answer_does_not_end_the_watch_over_tasks() -> None:
    tasks = Tasks(OddClient())
    upid = "UPID:pve1:00001234:00005678:65000000:qmstart:100:root@pam:"

    class Bounded(FakeWork):
        looks = 0

        def check_time(self) -> None:
            self.looks += 1
            assert self.looks < 10, "nobody watches the task"

    assert tasks.wait(Bounded(), upid).ok
