"""What survives the death of the simulator."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from simulator.server import Options, Simulator, WrongStateError
from tests.functional.simulator.conftest import Lab, connect


def _spawn(directory: Path, *more: str) -> subprocess.Popen[bytes]:
    endpoints = directory / "endpoints.json"
    endpoints.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "simulator",
        "--state-dir",
        str(directory),
        "--port",
        "0",
        "--nodes",
        "2",
        "--tls",
        *more,
    ]
    process = subprocess.Popen(command, cwd=Path(__file__).parents[3])
    deadline = time.monotonic() + 120
    while not endpoints.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


def _client(directory: Path) -> Any:
    simulator = Simulator.__new__(Simulator)
    simulator.options = Options(directory)
    token = json.loads((directory / "token.json").read_text())
    url = json.loads((directory / "endpoints.json").read_text())[0]["url"]
    return connect(
        simulator,
        url,
        user=token["user"],
        token_name=token["token_name"],
        token_value=token["secret"],
    )


def test_a_killed_simulator_leaves_what_a_power_cut_would(tmp_path: Path) -> None:
    process = _spawn(tmp_path, "--speed", "100")
    try:
        lab = Lab(Simulator.__new__(Simulator), _client(tmp_path))
        assert lab.create(100) == "OK"
        lab.api.nodes("pve1").qemu.post(
            vmid=101, scsi0="shared:0,import-from=shared:import/debian-12.qcow2"
        )
        while not lab.api.nodes("pve1").storage("shared").content.get(vmid=101, content="images"):
            time.sleep(0.005)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
    process = _spawn(tmp_path, "--speed", "100")
    try:
        api = _client(tmp_path)
        assert api.nodes("pve1").qemu(100).config.get()["memory"] == "512"
        assert api.nodes("pve1").qemu(101).config.get()["lock"] == "create"
        tasks = api.nodes("pve1").tasks.get(vmid=101)
        assert [one["status"] for one in tasks] == ["unexpected status"]
        assert api.nodes("pve1").storage("shared").content.get(vmid=101, content="images")
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


def test_an_orderly_end_lets_tasks_run_to_theirs(tmp_path: Path) -> None:
    process = _spawn(tmp_path, "--speed", "0.01", "--finish-seconds", "60")
    try:
        _client(tmp_path).nodes("pve1").qemu.post(
            vmid=101, scsi0="shared:0,import-from=shared:import/debian-12.qcow2"
        )
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    with Simulator(Options(tmp_path, nodes=2, tls=True)) as again:
        cluster = again.cluster()
        assert [task.exitstatus for task in cluster.tasks.archive("pve1")] == ["OK"]
        assert again.state()[cluster.name]["vms"][0]["lock"] in (None, "")


def test_a_state_directory_has_one_shape(tmp_path: Path) -> None:
    with Simulator(Options(tmp_path, nodes=2)):
        pass
    with pytest.raises(WrongStateError, match="1 clusters of 2 nodes"):
        Simulator(Options(tmp_path, nodes=3))


def test_secrets_are_for_their_owner_only(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    with Simulator(Options(tmp_path / "state", token_file=token_file)) as simulator:
        token = dict(simulator.token)
    assert json.loads(token_file.read_text()) == token
    for path in (token_file, tmp_path / "state" / "root-password"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with Simulator(Options(tmp_path / "state", token_file=token_file)) as simulator:
        assert dict(simulator.token) == token
