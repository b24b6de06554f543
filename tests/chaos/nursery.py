"""A process that has imported everything and forks services: a new one needs no second.

    python -m tests.chaos.nursery <number of the socket>

One line of JSON asks for a service, one answers with its process ID. Services hold no connection
of the nursery, and die with it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import common.rpc  # noqa: F401 - the first to import oslo.messaging
from common.process.child import ROOT, die_with_parent, environment
from launcher import configuration

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Nursery:
    """The process, as the tests see it."""

    def __init__(self, log: Path) -> None:
        ours, theirs = socket.socketpair()
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.nursery", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment(),
                cwd=ROOT,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509
            )
        theirs.close()
        self._stream = ours.makefile("rw", encoding="utf-8")
        self._socket = ours
        self._lock = threading.Lock()

    def start(self, name: str, kind: str, files: list[str], log: str, director: str) -> int:
        """Fork a service and return its process ID."""
        asked = {"name": name, "kind": kind, "files": files, "log": log, "director": director}
        return int(self._ask({"start": asked})["pid"])

    def end(self, pid: int, number: int = signal.SIGKILL) -> None:
        """Send a signal to a service and wait for its end."""
        self._ask({"end": pid, "signal": int(number)})

    def close(self) -> None:
        """End it with all that it has forked."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._stream.close()
        self._socket.close()
        self._process.wait(60)

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self._stream.write(json.dumps(asked) + "\n")
            self._stream.flush()
            answer: dict[str, Any] = json.loads(self._stream.readline())
            return answer


def main(number: int) -> None:
    """Serve until the socket is closed; then end every child."""
    _import()
    children: set[int] = set()
    control = socket.socket(fileno=number)
    with control.makefile("rw", encoding="utf-8") as stream:
        for line in stream:
            asked = json.loads(line)
            if "start" in asked:
                pid = os.fork()
                if pid == 0:
                    _become(control, **asked["start"])
                children.add(pid)
            else:
                pid = asked["end"]
                os.kill(pid, asked["signal"])
                os.waitpid(pid, 0)
                children.discard(pid)
            stream.write(json.dumps({"pid": pid}) + "\n")
            stream.flush()
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


_IMPORTED = (
    "psycopg",
    "oslo_messaging._drivers.impl_rabbit",
    "prometheus_client",
    "keystoneauth1.identity",
    "keystonemiddleware.auth_token",
    "proxmoxer.backends.https",
    "compute.drivers",
    "compute.worker.service",
    "compute.hypervisor.proxmox.driver",
    "conductor.service",
    "launcher.wiring",
    "scheduler.service",
    "tests.chaos.hooks",
)


def _import() -> None:
    """What services import when they begin."""
    for name in _IMPORTED:
        importlib.import_module(name)
    list(configuration.registers())
    gc.collect()
    gc.freeze()


def _become(
    control: socket.socket, name: str, kind: str, files: list[str], log: str, director: str
) -> None:
    """The child: a service until a signal ends it. Never returns."""
    try:
        os.setsid()
        die_with_parent()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        control.close()
        random.seed()
        _serve(name, kind, files, director)
    except BaseException:  # noqa: BLE001 - it is logged, and the process ends
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(0)


def _serve(name: str, kind: str, files: list[str], director: str) -> None:
    from common import log
    from launcher import wiring
    from tests.chaos import hooks

    line = hooks.Line(director, name)
    hooks.install(line)
    conf = configuration.load(files)
    log.setup(conf, name)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    service = wiring.SERVICES[kind](wiring.Wiring(conf))
    service.start()
    line.ready()
    signal.sigwait(SIGNALS)
    service.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]))
