"""`micronova up` as a process: what it starts, what it finds again, what it says when it can't."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator.server import Options, Simulator
from tests.fixtures import null
from tests.functional.backends import free_port
from tests.functional.cloud import (
    ROOT,
    EmbeddedCloud,
    command,
    embedded_cloud,
    eventually,
    run_to_end,
)


def descendants(pid: int) -> dict[int, str]:
    """Return {pid: command line} of a process's children and theirs."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            parents.setdefault(parent_of(int(entry.name)), []).append(int(entry.name))
    found: dict[int, str] = {}
    waiting = list(parents.get(pid, []))
    while waiting:
        child = waiting.pop()
        found[child] = line_of(child)
        waiting += parents.get(child, [])
    return found


def parent_of(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[1])


def state_of(pid: int) -> str:
    """Return the kernel's letter of a process's state, Z for an ended one not yet reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def line_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def alive(pids: dict[int, str]) -> list[int]:
    """Return those that still run the same command."""
    return [pid for pid, line in pids.items() if line and line_of(pid) == line]


def refused(state_dir: Path, **options: Any) -> str:
    """Return the one line that a start says when it can't be."""
    done = run_to_end(state_dir, **options)
    assert done.returncode not in (0, None), done.stdout
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stdout
    return lines[0]


@dataclasses.dataclass(frozen=True)
class CutShort:
    """A cloud whose end was cut short, and what it left."""

    state_dir: Path
    reported: list[str]
    exit_code: int
    left: list[int]


@pytest.fixture(scope="module")
def cut_short(tmp_path_factory: pytest.TempPathFactory) -> CutShort:
    folder = tmp_path_factory.mktemp("stopped")
    with embedded_cloud(folder, driver=null.DRIVER) as cloud:
        started = descendants(cloud.process.pid)
        cloud.process.send_signal(signal.SIGINT)
        reported = eventually(lambda: [line for line in cloud.output if "stopping; " in line])
        cloud.process.send_signal(signal.SIGINT)
        return CutShort(folder, reported, cloud.process.wait(60), alive(started))


@pytest.fixture(scope="module")
def stopped(cut_short: CutShort) -> Path:
    """A state directory that was used and left, so that a start is quick."""
    return cut_short.state_dir


# `tox -e package`, a part of `.ci/run`, has the installed package hold it too.
@pytest.mark.long
def test_the_demo_holds(tmp_path: Path) -> None:
    done = run_to_end(tmp_path / "state", demo=True, speed=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All held, and nothing is left." in done.stdout


def make_server(cloud: EmbeddedCloud, name: str) -> Any:
    user = cloud.connection()
    return user.create_server(
        name, image="cirros", flavor="m1.tiny", network="vmbr0", wait=True, auto_ip=False
    )


def test_a_second_start_finds_its_servers(tmp_path: Path) -> None:
    with embedded_cloud(tmp_path, speed=100) as cloud:
        server = make_server(cloud, "kept")
        started = descendants(cloud.process.pid)
        assert len(started) >= 5  # the simulator, Keystone and its worker, cloud and its worker
        assert [pid for pid in started if state_of(pid) == "Z"] == []
        assert cloud.stop(signal.SIGINT) == 0
        assert alive(started) == []
    with embedded_cloud(tmp_path, speed=100) as cloud:
        compute = cloud.connection().compute
        found = compute.get_server(server.id)
        assert (found.name, found.status) == ("kept", "ACTIVE")
        compute.delete_server(found)
        compute.wait_for_delete(found, interval=0.2, wait=60)
        for held in cloud.held().values():
            assert not any(held.values())


def test_the_end_is_reported_and_can_be_cut_short(cut_short: CutShort) -> None:
    assert len(cut_short.reported) == 1
    assert cut_short.exit_code in (0, 130)
    assert cut_short.left == []


@pytest.fixture(scope="class")
def running(stopped: Path) -> Iterator[EmbeddedCloud]:
    """A cloud for tests that leave it as it was, but for the last one."""
    with embedded_cloud(stopped, driver=null.DRIVER) as cloud:
        yield cloud


class TestRunning:
    """Events in the life of one cloud."""

    def test_a_worker_that_is_killed_is_replaced(
        self, running: EmbeddedCloud, stopped: Path
    ) -> None:
        compute = running.connection().compute
        # With setproctitle gunicorn names its processes, else the command line is left.
        found = descendants(running.process.pid)
        clouds = [pid for pid, line in found.items() if re.search(r"embedded.cloud|-cloud]", line)]
        worker = next(pid for pid in clouds if parent_of(pid) in clouds)
        os.kill(worker, signal.SIGKILL)
        eventually(lambda: line_of(worker) == "")
        assert [one.name for one in compute.flavors() if one.name == "m1.tiny"] == ["m1.tiny"]
        assert running.process.poll() is None
        reported = eventually(
            lambda: [line for line in running.output if "worker of the cloud" in line]
        )
        assert "ended (killed by SIGKILL; perhaps the machine is out of memory)" in reported[0]
        assert str(stopped / "log" / "cloud.log") in reported[0]
        eventually(lambda: any("The cloud works again after" in line for line in running.output))

    def test_a_worker_of_keystone_that_ends_is_reported(self, running: EmbeddedCloud) -> None:
        found = descendants(running.process.pid)
        servers = [pid for pid, line in found.items() if "micronova-keystone" in line]
        worker = next(pid for pid in servers if parent_of(pid) in servers)
        os.kill(worker, signal.SIGKILL)
        eventually(lambda: any("Keystone works again after" in line for line in running.output))
        reported = [line for line in running.output if "A worker of Keystone ended" in line]
        assert len(reported) == 1
        assert "(killed by SIGKILL" in reported[0]

    def test_one_cloud_in_a_directory(self, running: EmbeddedCloud, stopped: Path) -> None:
        line = refused(stopped, driver=null.DRIVER)
        assert line == f"A cloud runs in {stopped} already (process {running.process.pid})."

    def test_passwords_are_on_no_command_line(self, running: EmbeddedCloud, stopped: Path) -> None:
        secrets = (stopped / "secrets.json").read_text()
        for line in descendants(running.process.pid).values():
            for word in line.split():
                assert len(word) < 20 or word not in secrets

    def test_one_that_is_killed_takes_its_children_along(self, running: EmbeddedCloud) -> None:
        started = descendants(running.process.pid)
        running.process.kill()
        running.process.wait()
        eventually(lambda: not alive(started), 20)


def test_a_busy_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused(tmp_path, port=port, driver=null.DRIVER)
    assert line == (
        f"Port {port} on 127.0.0.1 is in use by another process; choose one with --port."
    )


def test_a_busy_port_for_identity(tmp_path: Path) -> None:
    port = free_port(4)
    with socket.create_server(("127.0.0.1", port + 1)):
        line = refused(tmp_path, port=port, driver=null.DRIVER)
    assert line.startswith(
        f"Port {port + 1} on 127.0.0.1, where Keystone should listen, is in use"
    )
    assert line.endswith("It is the one after --port: choose another.")


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    line = refused(tmp_path / "file" / "state", driver=null.DRIVER)
    assert line == (
        f"The state directory {tmp_path}/file/state can't be written: Not a directory. "
        "Choose another with --state-dir."
    )


@dataclasses.dataclass(frozen=True)
class RealCluster:
    """What a user knows of a cluster: its address, a token in a file, its certificate."""

    url: str
    token: Path
    ca: Path
    simulator: Simulator

    def options(self) -> dict[str, Any]:
        return {
            "proxmox": self.url,
            "proxmox_token_file": self.token,
            "proxmox_ca": self.ca,
        }


@pytest.fixture
def real(tmp_path: Path) -> Iterator[RealCluster]:
    """A cluster that is up before the cloud, and isn't the cloud's own simulator."""
    folder = tmp_path / "real"
    with Simulator(Options(folder, nodes=2, tls=True, speed=100)) as running:
        token = tmp_path / "token"
        token.write_text(f"{running.token['tokenid']}={running.token['secret']}\n")
        token.chmod(0o600)
        yield RealCluster(running.endpoints[0]["url"], token, folder / "ca.pem", running)


def test_a_real_cluster(tmp_path: Path, real: RealCluster) -> None:
    done = run_to_end(tmp_path / "state", demo=True, **real.options())
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_cluster_that_is_not_there(tmp_path: Path, real: RealCluster) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    line = refused(tmp_path / "state", **real.options() | {"proxmox": f"https://{nobody}"})
    assert "proxmox" in line
    assert nobody in line


def test_a_token_without_privileges(tmp_path: Path, real: RealCluster) -> None:
    cluster = real.simulator.cluster()
    with cluster.turn():
        cluster.access.grants.clear()
    line = refused(tmp_path / "state", **real.options())
    assert "Run as root on one of its nodes: " in line
    assert "pveum acl modify" in line


def test_a_token_that_is_wrong(tmp_path: Path, real: RealCluster) -> None:
    real.token.write_text("micronova@pve!agent=00000000-0000-0000-0000-000000000000\n")
    line = refused(tmp_path / "state", **real.options())
    assert "proxmox" in line
    assert "00000000" not in line


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"proxmox": "https://pve:8006"}, "--proxmox needs --proxmox-token-file."),
        ({"proxmox_ca": "/ca.pem"}, "--proxmox-token-file and --proxmox-ca need --proxmox."),
        (
            {"proxmox": "https://pve:8006", "driver": null.DRIVER},
            "--proxmox and --driver exclude each other.",
        ),
    ],
)
def test_options_that_do_not_go_together(
    tmp_path: Path, options: dict[str, Any], reason: str
) -> None:
    assert refused(tmp_path, **options) == reason


def test_help_lists_the_options() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "micronova", "up", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for option in command(Path("x"), host=1, nodes=1, clusters=1, driver=1, demo=True):
        if option.startswith("--"):
            assert option in done.stdout
    for option in ("--proxmox", "--proxmox-token-file", "--proxmox-ca"):
        assert option in done.stdout
