"""What agents are asked about a VM that runs, and answer at once."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, TypeVar

import pytest

from common import ids
from common.context import internal
from common.errors import Unavailable
from common.messages.commands import Build, PowerAction
from common.messages.guests import GuestTarget, PasswordProblem
from common.messages.questions import Agent, Diagnose, Question, ReadConsoleLog, SetPassword
from common.resources.states import PowerState
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_power,
    configuration,
    granted,
    proxmox_text,
)
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually


@pytest.fixture
def build(worker: Worker, simulator: RunningSimulator) -> Build:
    """A server that runs."""
    granted(simulator, "passwords")
    made = a_build()
    assert worker.run(made).ok
    return made


A = TypeVar("A")


def target(worker: Worker, build: Build) -> GuestTarget:
    where = build.placed
    return GuestTarget(
        build.resource_id, worker.service.worker, where.cluster, where.node, where.vmid
    )


def ask(worker: Worker, question: Question[A]) -> A:
    return worker.client.ask(internal(), Agent(worker.service.worker, "c1"), question)


def test_how_a_vm_does(worker: Worker, build: Build) -> None:
    seen = ask(worker, Diagnose(target(worker, build)))
    assert seen.power_state is PowerState.RUNNING
    assert (seen.vcpus, seen.memory_mib, seen.config_drive) == (2, 512, True)
    assert seen.uptime_seconds is not None
    assert seen.uptime_seconds > 0
    [disk] = seen.disks
    assert (disk.name, disk.errors) == ("scsi0", 0)
    [nic] = seen.nics
    assert nic.mac == build.nics[0].mac
    assert (nic.rx_bytes, nic.tx_bytes) == (220, 656)
    assert worker.run(a_power(build, PowerAction.STOP)).ok
    seen = ask(worker, Diagnose(target(worker, build)))
    assert (seen.power_state, seen.disks, seen.nics) == (PowerState.SHUTDOWN, (), ())


def test_another_servers_vm_says_nothing(worker: Worker, build: Build) -> None:
    other = dataclasses.replace(target(worker, build), server_uuid=ids.new_uuid())
    with pytest.raises(Unavailable, match="isn't the server's"):
        ask(worker, Diagnose(other))


def order(worker: Worker, build: Build, password: str = "secret") -> SetPassword:
    return SetPassword(target(worker, build), "root", password)


def test_a_password_is_set_once_the_agent_answers(
    worker: Worker, cluster: Cluster, build: Build
) -> None:
    eventually(lambda: ask(worker, order(worker, build)) is None)
    assert cluster.calls("POST", f"/{build.placed.vmid}/agent/set-user-password")
    assert ask(worker, order(worker, build, "four")) is PasswordProblem.TOO_SHORT
    assert worker.run(a_power(build, PowerAction.STOP)).ok
    assert ask(worker, order(worker, build)) is PasswordProblem.STOPPED


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (
            {"path": "agent/ping", "action": "fail", "text": "QEMU guest agent is not running"},
            PasswordProblem.SILENT,
        ),
        (
            {"path": "agent/ping", "action": "fail", "text": "No QEMU guest agent configured"},
            PasswordProblem.NO_AGENT,
        ),
        (
            {"path": "agent/ping", "action": "fail", "status": 403, "text": "Permission check "
             "failed (/vms/1, VM.GuestAgent.Unrestricted)"},
            PasswordProblem.NOT_SUPPORTED,
        ),
        (
            {"path": "set-user-password", "action": "fail", "text": "Agent error: no such user"},
            PasswordProblem.REFUSED,
        ),
        ({"path": "set-user-password", "action": "lose-answer"}, PasswordProblem.UNKNOWN),
    ],
)  # fmt: skip
def test_why_a_password_is_not_set(
    worker: Worker,
    cluster: Cluster,
    simulator: RunningSimulator,
    build: Build,
    fault: dict[str, Any],
    problem: PasswordProblem,
) -> None:
    eventually(lambda: ask(worker, order(worker, build)) is None)
    before = len(cluster.calls("POST", "/agent/set-user-password"))
    simulator.control("POST", "faults", {"times": 0, **fault})
    assert ask(worker, order(worker, build)) is problem
    sent = len(cluster.calls("POST", "/agent/set-user-password")) - before
    assert sent == ("set-user" in fault["path"])


def test_what_a_serial_line_says_is_kept_where_it_is_asked_for(
    simulator: RunningSimulator, worker: Worker, tmp_path: Path
) -> None:
    text = proxmox_text(simulator).replace("console_log_kib = 0", "console_log_kib = 4")
    keeper = Worker(configuration(tmp_path, text))
    keeper.start()
    try:
        build = a_build()
        assert keeper.run(build).ok

        def said() -> str:
            return str(ask(keeper, ReadConsoleLog(build.resource_id)))

        eventually(lambda: "Linux version" in said() and "login:" in said())
    finally:
        keeper.stop()
    assert ask(worker, ReadConsoleLog(build.resource_id)) is None
