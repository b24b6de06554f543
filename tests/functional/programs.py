"""Run `openstack`, `micronova` and `cinder` commands without a fresh interpreter for each.

A launcher that has imported them forks a process for every command: with its own arguments,
environment, standard files and exit code, and with an interpreter that ends as usual. A command
takes a tenth of the time. What a test says of the program as it is installed is run as a program.

    python -m tests.functional.programs <number of the socket>
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import importlib.metadata
import json
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from common.process.child import ROOT, die_with_parent

SECONDS = 400.0
_SIZE = 1 << 17
_GROUPS = ("openstack.", "micronova.")
"""Of entry points that every command loads."""


def run(
    program: str,
    words: Sequence[str],
    environment: Mapping[str, str],
    seconds: float = SECONDS,
    *,
    folder: str | None = None,
    stdin: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run one of the programs to its end, in a folder and with a file to read, if they are named.

    Raises ``subprocess.TimeoutExpired``.
    """
    return _launcher().run(program, words, environment, seconds, folder, stdin)


def start() -> None:
    """Start the launcher now: it ends with the thread that started it."""
    _launcher().start()


class Launcher:
    """The launcher's process, as the tests see it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._home = tempfile.TemporaryDirectory(prefix="micronova-home-")
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket

    def run(
        self,
        program: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        seconds: float,
        folder: str | None = None,
        stdin: int | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """See ``run``; one command at a time."""
        asked: dict[str, Any] = {"argv": [program, *words], "environment": dict(environment)}
        asked["folder"] = str(ROOT) if folder is None else folder
        with self._lock, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
            if self._process is None:
                self._start()
            self._socket.settimeout(seconds)
            files = [out.fileno(), error.fileno(), *([] if stdin is None else [stdin])]
            try:
                socket.send_fds(self._socket, [json.dumps(asked).encode()], files)
                code = json.loads(self._socket.recv(_SIZE))
            except TimeoutError:
                self._stop()
                raise subprocess.TimeoutExpired([program, *words], seconds) from None
            texts = []
            for file in (out, error):
                file.seek(0)
                texts.append(file.read().decode())
        return subprocess.CompletedProcess([program, *words], code, *texts)

    def start(self) -> None:
        """Start it, unless it runs."""
        with self._lock:
            if self._process is None:
                self._start()

    def close(self) -> None:
        """End it with whatever it runs."""
        with self._lock:
            self._stop()
            self._home.cleanup()

    def _start(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.functional.programs", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            # Nobody's files in there are read, and what clients keep there is theirs alone.
            env={**kept, "HOME": self._home.name},
            cwd=ROOT,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509
        )
        theirs.close()

    def _stop(self) -> None:
        if self._process is None:
            return
        self._socket.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None


@functools.cache
def _launcher() -> Launcher:
    made = Launcher()
    atexit.register(made.close)
    return made


# --- the launcher's own process


def _openstack() -> Any:
    from openstackclient.shell import main

    return main()


def _micronova() -> int:
    from micronova.__main__ import main

    return main()


def _cinder() -> Any:
    from cinderclient.shell import main

    return main()


_PROGRAMS: Mapping[str, Callable[[], Any]] = {
    "openstack": _openstack,
    "micronova": _micronova,
    "cinder": _cinder,
}


def _import() -> None:
    """Most of what a command imports and looks up when it begins."""
    import cinderclient.shell  # noqa: F401

    # It has the root logger write to stderr as it is imported; the other programs don't.
    logging.getLogger().handlers.clear()
    import openstack.connection  # noqa: F401
    import openstackclient.shell  # noqa: F401
    import stevedore
    from cliff import command
    from osc_lib.api import auth

    import cli.main  # noqa: F401

    stevedore.ExtensionManager("openstack.cli")
    auth.get_options_list()
    command._get_distributions_by_modules()  # reads the metadata of every package, once
    for distribution in importlib.metadata.distributions():
        for point in distribution.entry_points:
            if point.group.startswith(_GROUPS):
                # What an extra of a package would need isn't there for the command either.
                with contextlib.suppress(ImportError):
                    importlib.import_module(point.module)


def _serve(control: socket.socket) -> list[str] | None:
    """Fork for each command that is asked for; return its arguments in the child, or None at the
    end."""
    while True:
        message, files, _flags, _address = socket.recv_fds(control, _SIZE, 3)
        if not message:
            return None
        asked = json.loads(message)
        pid = os.fork()
        if pid == 0:
            control.close()
            for number, file in zip((1, 2, 0), files, strict=False):
                os.dup2(file, number)
                os.close(file)
            os.chdir(asked["folder"])
            os.environ.clear()
            os.environ.update(asked["environment"])
            random.seed()
            argv: list[str] = asked["argv"]
            return argv
        for file in files:
            os.close(file)
        _, status = os.waitpid(pid, 0)
        control.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())


def main(number: int) -> None:
    """Serve until the socket is closed; every child ends as the program would."""
    _import()
    gc.collect()
    gc.freeze()
    argv = _serve(socket.socket(fileno=number))
    if argv is not None:
        sys.argv = argv
        sys.exit(_PROGRAMS[argv[0]]())


if __name__ == "__main__":
    main(int(sys.argv[1]))
