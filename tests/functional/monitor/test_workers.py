"""The workers of one gunicorn: one port, one sum, whichever of them dies."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

import placement.db.migrate
from common.process.child import ROOT, Child
from launcher import configuration
from launcher.embedded.settings import render
from tests.functional import backends
from tests.functional.monitor.test_promtool import promtool
from tests.functional.waiting import eventually

WORKERS = 3


class Placement:
    """A placement API of several workers on SQLite, whose port for metrics is known."""

    def __init__(self, folder: Path) -> None:
        self.port, self.metrics = backends.free_port(), backends.free_port()
        self._temporary = folder / "tmp"
        self._temporary.mkdir()
        url = f"sqlite:///{folder}/placement.sqlite"
        placement.db.migrate.upgrade(url)
        login = {"auth_type": "password", "auth_url": "http://127.0.0.1:1"}
        config = folder / "micronova.conf"
        config.write_text(
            render(
                {
                    "keystone_authtoken": login,
                    "placement_database": {"connection": url},
                    "metrics": {"port": str(self.metrics)},
                }
            )
        )
        command = [
            *(sys.executable, "-m", "gunicorn", "micronova.wsgi:placement"),
            *("--config", str(ROOT / "etc/gunicorn.conf.py")),
            *("--bind", f"127.0.0.1:{self.port}", "--workers", str(WORKERS)),
        ]
        self.child = Child(
            "placement",
            command,
            folder / "placement.log",
            extra_environment={
                configuration.VARIABLE: str(config),
                "TMPDIR": str(self._temporary),
            },
        )

    def ask(self, path: str) -> requests.Response | None:
        with contextlib.suppress(requests.RequestException):
            return requests.get(f"http://127.0.0.1:{self.metrics}{path}", timeout=60)
        return None

    def is_ready(self) -> bool:
        answer = self.ask("/readyz")
        return answer is not None and answer.ok

    def counted(self) -> float:
        """Requests for the versions, by all workers."""
        answer = self.ask("/metrics")
        assert answer is not None
        found = re.search(
            r'micronova_http_requests_total{action="",api="placement",method="GET",route="/",'
            r'status="200"} (\S+)',
            answer.text,
        )
        return float(found[1]) if found else 0.0

    def holder(self) -> int:
        """Return the worker that has the port."""
        inode = re.compile(rf":{self.metrics:04X} 00000000:0000 0A .* (\d+) 1 ")
        [number] = inode.findall(Path("/proc/net/tcp").read_text(encoding="ascii"))
        assert self.child.pid is not None
        children = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children")
        for pid in map(int, children.read_text(encoding="ascii").split()):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if os.readlink(link) == f"socket:[{number}]":
                        return pid
        raise AssertionError("no worker has the port")

    def left(self) -> list[str]:
        """What lies where the workers share their values."""
        return [one.name for one in self._temporary.iterdir()]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Placement]:
    made = Placement(tmp_path)
    made.child.start()
    try:
        eventually(made.is_ready, 90)
        yield made
    finally:
        made.child.stop()


def test_one_port_answers_for_all_workers(running: Placement) -> None:
    for _ in range(60):
        # A new connection each time, which any worker may take.
        assert requests.get(f"http://127.0.0.1:{running.port}/", timeout=60).ok
    assert running.counted() == 60
    answer = running.ask("/metrics")
    assert answer is not None
    assert 'micronova_http_requests_in_progress{api="placement"} 0.0' in answer.text
    promtool("check", "metrics", text=answer.content)

    killed = running.holder()
    os.kill(killed, signal.SIGKILL)
    eventually(running.is_ready, 30)
    assert running.holder() != killed
    assert running.counted() == 60

    running.child.stop()
    assert running.left() == []
