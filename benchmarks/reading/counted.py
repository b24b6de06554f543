"""Run `micronova` and count statements, requests and messages of its cloud process.

    python -m benchmarks.reading.counted FILE up …

The counters are 64-bit numbers in FILE, in the order of `COUNTERS`; `Counters.read` reads them
while the cloud runs.
"""

from __future__ import annotations

import functools
import mmap
import os
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

COUNTERS = (
    "cloud_statements",
    "placement_statements",
    "placement_requests",
    "bus_messages",
    "proxmox_requests",
)
_FILE = "MICRONOVA_BENCHMARK_COUNTERS"
_CLOUD = "launcher.embedded.cloud"
_NUMBER = struct.Struct("=Q")


class Counters:
    """Counters that processes share through a file."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        if create:
            path.write_bytes(bytes(_NUMBER.size * len(COUNTERS)))
        with path.open("r+b") as opened:
            self._memory = mmap.mmap(opened.fileno(), 0)
        self._lock = threading.Lock()

    def add(self, name: str) -> None:
        """Add one."""
        offset = COUNTERS.index(name) * _NUMBER.size
        with self._lock:
            (value,) = _NUMBER.unpack_from(self._memory, offset)
            _NUMBER.pack_into(self._memory, offset, value + 1)

    def read(self) -> dict[str, int]:
        """Return all of them by name."""
        return {
            name: _NUMBER.unpack_from(self._memory, number * _NUMBER.size)[0]
            for number, name in enumerate(COUNTERS)
        }


def install(counters: Counters) -> None:
    """Count in this process from now on."""
    import sqlalchemy as sa

    from common.rpc.localbus import LocalDriver
    from compute.hypervisor.proxmox.api.client import Client
    from launcher.embedded.inprocess import WsgiAdapter

    def statement(connection: Any, *_: Any) -> None:
        placement = "placement" in str(connection.engine.url)
        counters.add("placement_statements" if placement else "cloud_statements")

    sa.event.listen(sa.Engine, "before_cursor_execute", statement)
    _wrap(WsgiAdapter, lambda: counters.add("placement_requests"))
    _wrap(LocalDriver, lambda: counters.add("bus_messages"))
    _wrap(Client, lambda: counters.add("proxmox_requests"), "_ask")


def _wrap(kind: Any, count: Callable[[], None], method: str = "send") -> None:
    """Call `count` for each call of a class's method."""
    send = getattr(kind, method)

    @functools.wraps(send)
    def counted(*arguments: Any, **keywords: Any) -> Any:
        count()
        return send(*arguments, **keywords)

    setattr(kind, method, counted)


def _cloud(arguments: list[str]) -> int:
    """Run the cloud process, counted in its worker."""
    from launcher.embedded import cloud

    class Counted(cloud.CloudServer):
        def load(self) -> Any:
            install(Counters(Path(os.environ[_FILE])))
            return super().load()

    config_file, *listeners = arguments
    sys.argv[1:] = []
    Counted(config_file, *map(int, listeners)).run()
    return 0


def main(arguments: list[str]) -> int:
    """Run `micronova`, or the cloud process for it."""
    if arguments[0] == _CLOUD:
        return _cloud(arguments[1:])
    from cli.main import main as micronova
    from common.process.child import python
    from launcher.embedded import supervisor

    os.environ[_FILE] = arguments[0]

    def counted(module: str, *words: str) -> list[str]:
        if module == _CLOUD:
            return python("benchmarks.reading.counted", module, *words)
        return python(module, *words)

    with mock.patch.object(supervisor, "python", counted):
        return micronova(arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
