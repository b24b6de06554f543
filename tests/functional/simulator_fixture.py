"""The simulator as a child process with TLS on a free port, and its control API."""

from __future__ import annotations

import contextlib
import json
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

START_SECONDS = 240


class RunningSimulator:
    """Files of a simulator that listens, and its ``/_sim/`` doors."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self.endpoints = json.loads((state_dir / "endpoints.json").read_text())
        token = json.loads((state_dir / "token.json").read_text())
        self.token_file = state_dir / "agent.token"
        self.token_file.write_text(f"{token['tokenid']}={token['secret']}\n")
        self.token_file.chmod(0o600)
        self._context = ssl.create_default_context(cafile=str(self.ca_file))

    @property
    def ca_file(self) -> Path:
        return self.state_dir / "ca.pem"

    @property
    def url(self) -> str:
        return str(self.endpoints[0]["url"])

    @property
    def node_urls(self) -> dict[str, str]:
        return dict(self.endpoints[0]["node_urls"])

    def control(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"{self.url}/_sim/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, context=self._context, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def state(self) -> Any:
        return self.control("GET", "state")

    def fault(self, **order: Any) -> Any:
        return self.control("POST", "faults", order)

    def struck(self, fault: int) -> bool:
        """Whether a call has met the order."""
        faults = self.state()["clusters"][0]["faults"]
        return any(one["id"] == fault and one.get("struck") for one in faults)


@contextlib.contextmanager
def running_simulator(
    state_dir: Path, *, nodes: int = 2, speed: float = 50.0
) -> Iterator[RunningSimulator]:
    """A simulator of one cluster until the block ends."""
    command = [sys.executable, "-m", "simulator", "--tls", "--port", "0", "--node-endpoints"]
    command += ["--nodes", str(nodes), "--speed", str(speed), "--state-dir", str(state_dir)]
    process = subprocess.Popen(command)
    try:
        _wait_for(state_dir / "endpoints.json", process)
        yield RunningSimulator(state_dir)
    finally:
        process.terminate()
        process.wait(60)


def _wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not path.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the simulator did not start")
        time.sleep(0.05)
