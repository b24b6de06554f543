"""Build, destroy and power as steps: order, unwinding, what the outcome says."""

from __future__ import annotations

from typing import Any

import pytest

from common import clock
from common.failures import Verdict, verdict_of
from common.messages.commands import ConfigDrive, Destroy, Placed, Power, PowerAction
from common.messages.reports import Category
from common.resources.states import PowerState, ResourceType
from compute.commands.build import build
from compute.commands.destroy import destroy
from compute.commands.job import MayStart
from compute.commands.power import power
from compute.hypervisor.port import Abandoned, HypervisorError, Lost, Removal
from tests.unit.compute.fakes import SERVER, FakeLedger, FakeMachine, a_build, a_job

HEAD = (
    2,
    1,
    ResourceType.SERVER,
    SERVER,
    Placed("pve1", "c1", "pve1", 100_001),
    clock.after(86_400),
)

DRIVE = ConfigDrive({}, {}, {})


def test_a_build_runs_its_steps_in_order() -> None:
    job, reports = a_job()
    machine = FakeMachine()
    outcome = build(job, machine, a_build())
    assert (outcome.ok, outcome.power_state) == (True, PowerState.RUNNING)
    assert machine.calls == ["check_host", "ensure_image", "create", "resize_disk", "start"]
    # The end of one step and the start of the next travel together.
    assert [len(report.steps) for report in reports] == [1, 2, 2, 2, 2, 2]


def test_a_build_that_has_gone_to_another_host_starts_nothing_and_undoes_nothing() -> None:
    job, reports = a_job(ledger=FakeLedger(starts=[MayStart.NO]))
    machine = FakeMachine()
    with pytest.raises(Abandoned):
        build(job, machine, a_build())
    assert machine.calls == ["check_host", "ensure_image", "create", "resize_disk"]
    assert all(report.outcome is None for report in reports)


def test_a_build_that_the_record_has_lost_says_that_only_its_start_is_missing() -> None:
    job, reports = a_job(ledger=FakeLedger(starts=[None, MayStart.LOST]))
    machine = FakeMachine()
    with pytest.raises(Lost):
        build(job, machine, a_build())
    assert machine.calls[-2:] == ["resize_disk", "leave_unstarted"]
    assert all(report.outcome is None for report in reports)


def test_a_start_waits_for_a_conductor_that_answers() -> None:
    ledger = FakeLedger(starts=[None, None])
    job, _ = a_job(ledger=ledger)
    machine = FakeMachine()
    assert build(job, machine, a_build()).ok
    assert (len(ledger.asked), machine.calls[-1]) == (3, "start")


@pytest.mark.parametrize(
    ("fail", "undone"),
    [
        ("check_host", []),
        ("ensure_image", []),
        ("create", ["remove", "remove_config_drive"]),
        ("resize_disk", ["remove", "remove_config_drive"]),
        ("start", ["remove", "remove_config_drive"]),
    ],
)
def test_a_failed_build_is_undone_in_reverse(fail: str, undone: list[str]) -> None:
    job, reports = a_job()
    machine = FakeMachine(fail)
    outcome = build(job, machine, a_build())
    assert not outcome.ok
    assert outcome.gone
    failure = outcome.failure
    assert failure is not None
    assert (failure.category, failure.message) == (Category.CREATION_FAILED, "it broke")
    assert (failure.upid, failure.clean) == ("U", True)
    assert machine.calls[machine.calls.index(fail) + 1 :] == undone
    assert failure.cleaned == (("VM 100001",) if undone else ())
    names = {step.name for report in reports for step in report.steps}
    assert ("compute_destroy_vm" in names) == bool(undone)


def test_what_could_not_be_removed_is_reported() -> None:
    job, _ = a_job()
    machine = FakeMachine("start")
    machine.removal = Removal(False, (), ("volume local:x",), "as root: pvesm free local:x")
    outcome = build(job, machine, a_build())
    assert not outcome.gone
    assert outcome.failure is not None
    assert not outcome.failure.clean
    assert outcome.failure.left == ("volume local:x",)
    assert outcome.failure.remedy == "as root: pvesm free local:x"


def test_an_undo_that_fails_lets_the_others_run() -> None:
    class Stubborn(FakeMachine):
        def remove(self) -> Removal:
            raise HypervisorError(Category.LOCK, "locked", left=("VM 1",), remedy="qm unlock 1")

    job, _ = a_job()
    machine = Stubborn("start")
    outcome = build(job, machine, a_build())
    assert machine.calls[-1] == "remove_config_drive"
    assert outcome.failure is not None
    assert (outcome.gone, outcome.failure.left) == (False, ("VM 1",))
    assert outcome.failure.remedy == "qm unlock 1"


def test_somebody_elses_vm_leaves_nothing_of_ours() -> None:
    job, _ = a_job()
    machine = FakeMachine("check_host", HypervisorError(Category.STORAGE_CONFLICT, "taken"))
    machine.absent, machine.foreign = False, True
    assert build(job, machine, a_build()).gone


@pytest.mark.parametrize("step", ["check_host", "ensure_image"])
def test_a_drive_of_an_earlier_run_is_removed_where_the_first_steps_fail(step: str) -> None:
    """The agent ended after the upload; the repeated command gets no further."""
    job, _ = a_job()
    machine = FakeMachine(step)
    outcome = build(job, machine, a_build(config_drive=DRIVE))
    assert machine.calls[-1] == "remove_config_drive"
    assert outcome.gone


@pytest.mark.parametrize("absent", [True, False])
def test_a_first_look_that_failed_is_taken_again(absent: bool) -> None:
    job, _ = a_job()

    class Unlucky(FakeMachine):
        def find(self, *, to_remove: bool = False) -> Any:
            self.absent = absent
            return super().find(to_remove=to_remove)

    machine = Unlucky("check_host")
    machine.absent = False
    outcome = build(job, machine, a_build(config_drive=DRIVE))
    assert machine.calls == ["check_host", "find", *(["remove_config_drive"] if absent else [])]
    assert outcome.failure is not None
    assert (outcome.failure.message, outcome.gone) == ("it broke", absent)


@pytest.mark.parametrize(
    ("left", "gone"), [(("VM 1: locked",), True), (("VM 1: locked", "an ISO"), False), ((), False)]
)
def test_what_only_root_can_remove_is_set_aside_if_nothing_else_is_left(
    left: tuple[str, ...], gone: bool
) -> None:
    job, _ = a_job()
    error = HypervisorError(Category.LOCK, "locked", left=left)
    machine = FakeMachine("check_host", error)
    machine.absent, machine.stuck = False, ("VM 1: locked",)
    outcome = build(job, machine, a_build())
    assert outcome.gone is gone
    assert outcome.failure is not None
    assert not outcome.failure.clean


def test_a_bug_is_a_failure_too() -> None:
    job, _ = a_job()
    outcome = build(job, FakeMachine("create", KeyError("x")), a_build())
    assert outcome.failure is not None
    assert "KeyError" in outcome.failure.message


def test_a_cancelled_build_unwinds_at_its_next_step() -> None:
    job, _ = a_job()

    class Overtaken(FakeMachine):
        def create(self, build: Any) -> Any:
            job.cancel()
            return super().create(build)

    machine = Overtaken()
    outcome = build(job, machine, a_build())
    assert machine.calls[-2:] == ["remove", "remove_config_drive"]
    assert not outcome.ok


def test_an_abandoned_build_stops_where_it_stands() -> None:
    job, reports = a_job()

    class Ending(FakeMachine):
        def create(self, build: Any) -> Any:
            job.abandon()
            return super().create(build)

    machine = Ending()
    with pytest.raises(Abandoned):
        build(job, machine, a_build())
    assert machine.calls[-1] == "create"
    assert all(report.outcome is None for report in reports)


def test_a_passed_deadline_fails_and_still_unwinds() -> None:
    command = a_build(deadline=clock.after(-1))
    job, _ = a_job(command)
    machine = FakeMachine()
    outcome = build(job, machine, command)
    assert outcome.failure is not None
    assert outcome.failure.category is Category.TASK_TIMEOUT
    job.begin_unwinding()
    job.check()


def test_a_task_id_is_reported_at_once() -> None:
    job, reports = a_job()

    class Reporting(FakeMachine):
        def start(self) -> Any:
            job.report(upid="UPID:1", way="x")
            assert reports[-1].steps[0].upid == "UPID:1"
            return super().start()

    assert build(job, Reporting(), a_build()).ok


def test_a_destroy_says_gone_only_when_all_is() -> None:
    machine = FakeMachine()
    machine.absent = False
    command = Destroy(*HEAD)
    job, _ = a_job(command)
    outcome = destroy(job, machine, command, 60)
    assert outcome.gone
    assert machine.calls == ["find", "stop 0", "remove", "remove_config_drive"]

    machine = FakeMachine()
    machine.absent = False
    machine.removal = Removal(False, ("VM 1",), ("volume x",), "pvesm free x")
    outcome = destroy(a_job(command)[0], machine, command, 60)
    assert not outcome.gone
    assert outcome.failure is not None
    assert outcome.failure.cleaned == ("VM 1",)
    assert (outcome.failure.left, outcome.failure.clean) == (("volume x",), False)


def test_a_graceful_destroy_asks_the_guest_first() -> None:
    machine = FakeMachine()
    machine.absent = False
    command = Destroy(*HEAD, graceful=True)
    assert destroy(a_job(command)[0], machine, command, 60).gone
    assert "stop 60" in machine.calls


@pytest.mark.parametrize(
    ("action", "call"),
    [
        (PowerAction.START, "start"),
        (PowerAction.STOP, "stop 60"),
        (PowerAction.REBOOT_SOFT, "reboot 60"),
        (PowerAction.REBOOT_HARD, "reboot 0"),
    ],
)
def test_power_actions(action: PowerAction, call: str) -> None:
    machine = FakeMachine()
    machine.absent = False
    machine.state = PowerState.SHUTDOWN if action is PowerAction.STOP else PowerState.RUNNING
    command = Power(*HEAD, action=action)
    outcome = power(a_job(command)[0], machine, command, 60)
    assert (outcome.ok, outcome.power_state) == (True, machine.state)
    assert machine.calls == ["find", call]


@pytest.mark.parametrize(
    ("action", "state"),
    [
        (PowerAction.STOP, PowerState.RUNNING),
        (PowerAction.STOP, PowerState.NOSTATE),
        (PowerAction.START, PowerState.SHUTDOWN),
    ],
)
def test_done_is_what_is_seen(action: PowerAction, state: PowerState) -> None:
    machine = FakeMachine()
    machine.absent, machine.state = False, state
    command = Power(*HEAD, action=action)
    outcome = power(a_job(command)[0], machine, command, 60)
    assert (outcome.ok, outcome.power_state) == (False, state)
    assert outcome.failure is not None
    assert verdict_of(outcome.failure) is Verdict.WAIT


def test_power_of_a_missing_vm_fails() -> None:
    command = Power(*HEAD)
    outcome = power(a_job(command)[0], FakeMachine(), command, 60)
    assert not outcome.ok
