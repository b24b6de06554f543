"""What agents are asked about a VM that runs, and answer at once."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

from common import clock, ids
from common.context import internal
from common.errors import Unavailable
from common.messages.commands import Build, PowerAction
from common.messages.guests import GuestTarget, PasswordProblem
from common.messages.measurements import Period
from common.messages.questions import (
    Agent,
    Diagnose,
    ListTasks,
    Measure,
    Question,
    ReadConsoleLog,
    SetPassword,
)
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


def test_what_was_measured_is_one_call_a_minute(
    worker: Worker, build: Build, simulator: RunningSimulator
) -> None:
    """However many ask, of the time that the server has its VMID, and in few points."""
    vmid = build.placed.vmid
    simulator.control("POST", "history", {"vmid": vmid, "seconds": 3000})
    simulator.control("DELETE", "calls")
    hour = Measure(build.placed.node, Period.HOUR, vmid=vmid, since=clock.after(-1800))
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: ask(worker, hour), range(16)))
    assert len({one.read_at for one in found}) == 1
    assert 25 <= len(found[0].times) <= 30
    known = [value for value in found[0].values["cpu"] if value is not None]
    assert all(0 < value < 100 for value in known)
    assert len(known) >= len(found[0].times) - 2
    assert found[0].values["memory"][0] == 512 << 20
    for one in (dataclasses.replace(hour, period=Period.YEAR), Measure("pve1", Period.DAY)):
        ask(worker, one)
    storage = ask(worker, Measure("pve1", Period.DAY, storage="local"))
    assert set(storage.values) == {"used", "total"}
    calls = [one["path"] for one in simulator.control("GET", "calls")]
    asked = [path for path in calls if "rrddata" in path]
    assert len(asked) == 4
    assert len([one for one in asked if f"qemu/{vmid}/" in one]) == 2


def test_a_vm_without_records_has_no_points(
    worker: Worker, build: Build, simulator: RunningSimulator
) -> None:
    assert ask(worker, Measure("pve1", Period.HOUR, vmid=999)).times == ()
    simulator.fault(action="fail", path="rrddata", times=0)
    with pytest.raises(Unavailable, match="Measurements of pve2 can't be read"):
        ask(worker, Measure("pve2", Period.HOUR))


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


def test_the_tasks_of_a_node_by_all_users(
    worker: Worker, build: Build, simulator: RunningSimulator
) -> None:
    node = build.placed.node
    found = ask(worker, ListTasks(node, 50))
    assert {"qmcreate"} <= {one.kind for one in found}
    assert all("!" in one.user and one.result == "OK" for one in found if one.kind == "qmcreate")
    assert found == sorted(
        found, key=lambda one: (one.finished_at is None, one.started_at), reverse=True
    )
    assert ask(worker, ListTasks(node, 1)) == found[:1]
    simulator.fault(action="fail", path="tasks", times=0)
    with pytest.raises(Unavailable, match=f"Tasks of {node} can't be read"):
        ask(worker, ListTasks(node, 1))
