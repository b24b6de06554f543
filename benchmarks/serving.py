"""The services that the placement benchmark compares, each under gunicorn."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.asking import Client
from tests.functional import backends

ROOT = Path(__file__).parent.parent
WORKERS = 2
OURS = """
    from oslo_config import cfg
    from placement import config
    from placement.app import make_app
    from tests.compat.placement.served import trusting
    conf = cfg.ConfigOpts()
    config.register(conf)
    conf([], project="benchmark", default_config_files=["placement.conf"])
    app = make_app(conf, trusting)
"""
ORIGINAL = """
    from placement.wsgi import init_application
    app = init_application()
"""
CONFIGURATION = """
    [api]
    auth_strategy = noauth2
    [placement_database]
    connection = {url}
    [DEFAULT]
    log_file = {folder}/placement.log
"""


@dataclasses.dataclass(frozen=True)
class Served:
    """A service that is up: its port, and its gunicorn's process ID."""

    port: int
    pid: int


@contextlib.contextmanager
def served(
    python: str, folder: Path, code: str, environment: dict[str, str], path: str
) -> Iterator[Served]:
    """Run gunicorn with an application."""
    (folder / "served.py").write_text(textwrap.dedent(code))
    port = backends.free_port()
    command = [python, "-m", "gunicorn", "served:app", "--bind", f"127.0.0.1:{port}"]
    command += [
        "--workers",
        str(WORKERS),
        "--threads",
        "4",
        "--keep-alive",
        "60",
        "--pythonpath",
        path,
    ]
    command += ["--timeout", "600"]
    log = folder / "gunicorn.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **environment}, stdout=output, stderr=output
        )
    try:
        backends.wait_until("gunicorn", lambda: backends.listens(port), process, log)
        service = Served(port, process.pid)
        _warm(service)
        yield service
    finally:
        process.terminate()
        process.wait(30)


def _warm(service: Served) -> None:
    """Have every worker answer: its imports aren't part of the measurement."""
    ready = False
    while not ready:
        for client in [Client(service.port) for _ in range(4 * WORKERS)]:
            client.must("GET", "/")
        before = cpu_seconds(service.pid)
        time.sleep(1)
        ready = len(memory_mib(service.pid)) == WORKERS and cpu_seconds(service.pid) < before + 0.1


@contextlib.contextmanager
def ours(url: str, folder: Path, _: str) -> Iterator[Served]:
    """Run this project's service."""
    from placement.db import migrate

    migrate.upgrade(url)
    (folder / "placement.conf").write_text(f"[placement_database]\nconnection = {url}\n")
    with served(sys.executable, folder, OURS, {}, f"{ROOT},{folder}") as service:
        yield service


@contextlib.contextmanager
def original(url: str, folder: Path, python: str) -> Iterator[Served]:
    """Run OpenStack Placement."""
    url = url.replace("postgresql+psycopg:", "postgresql+psycopg2:")
    (folder / "placement.conf").write_text(
        textwrap.dedent(CONFIGURATION.format(url=url, folder=folder))
    )
    environment = {"OS_PLACEMENT_CONFIG_DIR": str(folder), "PYTHONPATH": ""}
    manage = [python, "-m", "placement.cmd.manage", "--config-file", "placement.conf"]
    program = Path(python).with_name("placement-manage")
    if program.exists():
        manage = [str(program), "--config-file", "placement.conf"]
    subprocess.run([*manage, "db", "sync"], cwd=folder, check=True, capture_output=True)
    with served(python, folder, ORIGINAL, environment, str(folder)) as service:
        yield service


def install(folder: Path) -> str:
    """Install the original into a virtual environment and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    wanted = ["openstack-placement", "gunicorn", "psycopg2-binary"]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python


def memory_mib(pid: int) -> list[float]:
    """Return the resident memory of gunicorn's workers."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = []
    for child in children:
        lines = Path(f"/proc/{child}/status").read_text().splitlines()
        kib = next(line for line in lines if line.startswith("VmRSS")).split()[1]
        found.append(round(int(kib) / 1024, 1))
    return found


def cpu_seconds(pid: int) -> float:
    """Return the CPU that a process and its children, those that ended included, have had."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ticks = 0
    for one in (str(pid), *children):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        # utime and stime, and both of the children that were waited for
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")
