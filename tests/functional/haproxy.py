"""HAProxy for tests: in a folder, as one process of the user who runs them."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.functional import backends
from tests.functional.waiting import eventually


@contextlib.contextmanager
def running(config: Path, port: int) -> Iterator[None]:
    """Run it with a configuration file until the block ends; `port` is one where it listens."""
    backends.require(backends.HAPROXY)
    command = [str(backends.HAPROXY), "-db", "-f", str(config)]
    log = config.with_name("haproxy.log")
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        eventually(lambda: process.poll() is not None or backends.listens(port), 30)
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.terminate()
        process.wait(30)
