"""HAProxy for tests: in a folder, as one process of the user who runs them."""

from __future__ import annotations

import contextlib
import csv
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.functional import backends
from tests.functional.waiting import eventually

States = Callable[[], dict[str, str]]
"""Returns what HAProxy thinks of each server: {backend/server: UP, DOWN, …}."""


@contextlib.contextmanager
def running(config: Path, port: int, host: str = "127.0.0.1") -> Iterator[States]:
    """Run it with a configuration file until the block ends; `port` of `host` is one where it
    listens."""
    backends.require(backends.HAPROXY)
    with tempfile.TemporaryDirectory() as folder:
        control = Path(folder, "control")
        text = config.read_text(encoding="utf-8")
        assert text.count("global\n") == 1
        config.write_text(text.replace("global\n", f"global\n    stats socket {control}\n"))
        command = [str(backends.HAPROXY), "-db", "-f", str(config)]
        log = config.with_name("haproxy.log")
        with log.open("w") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            eventually(lambda: process.poll() is not None or backends.listens(port, host), 30)
            assert process.poll() is None, log.read_text()
            yield lambda: _states(control)
        finally:
            process.terminate()
            process.wait(30)


def _states(control: Path) -> dict[str, str]:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(control))
        asking.sendall(b"show stat\n")
        text = asking.makefile(encoding="utf-8").read()
    rows = csv.DictReader(text.removeprefix("# ").splitlines())
    beside = ("FRONTEND", "BACKEND")
    return {
        f"{row['pxname']}/{row['svname']}": row["status"]
        for row in rows
        if row["svname"] not in beside
    }
