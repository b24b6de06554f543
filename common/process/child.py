"""Child processes: started with a log, watched and stopped; they end when this process ends.

A child reports its progress on a pipe, one JSON object a line, see ``Child`` and ``report``.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from common.errors import Unavailable

ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds the parts; a child finds them there."""

READY_FD = "{ready_fd}"
"""In an argument: the number of the pipe, for programs that take it as an option."""

_READY_VARIABLE = "MICRONOVA_READY_FD"
"""In a child's environment: the number of the pipe on which it reports."""

_END_SECONDS = 60
"""For processes that were killed to be gone."""

_PR_SET_PDEATHSIG = 1
# Loaded here: between fork and exec nothing may be imported.
_prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)


class ChildFailed(Unavailable):
    """A child ended, or reported an error; details: child, log."""

    code = "micronova.child_failed"
    sentence = "A part of the cloud failed."


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Have the kernel send this process a signal when its parent ends; fit for `preexec_fn`."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, number)


def report(**message: Any) -> None:
    """Send a message to the parent; does nothing where no parent reads."""
    descriptor = os.environ.get(_READY_VARIABLE)
    if not descriptor:
        return
    with contextlib.suppress(OSError):  # the parent has closed its end
        os.write(int(descriptor), json.dumps(message).encode() + b"\n")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a child: ours without what is meant for other programs."""
    dropped = ("OS_", "GUNICORN_", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONWARNINGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return kept | {"PYTHONPATH": str(ROOT)} | dict(extra or {})


def python(module: str, *arguments: str) -> list[str]:
    """Return the command that runs one of our modules in a new interpreter."""
    return [sys.executable, "-P", "-m", module, *arguments]


class Child:
    """One child process, and the messages that it reports on a pipe.

    ``{"step": …}`` and ``{"detail": …}`` describe its start for people, ``{"ready": true, …}``
    ends the start, and ``{"error": …}`` is the one line for people when the start fails. Later
    ``{"ended": how}`` means that a worker ended and is replaced, ``{"ready": true}`` that the new
    one works. The child finds the pipe's number in ``MICRONOVA_READY_FD``.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log_path: Path,
        *,
        pass_fds: Sequence[int] = (),
        extra_environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        """Name what to run; `folder` is the child's working directory (default: ours)."""
        self.name = name
        self.log_path = log_path
        self._command = list(command)
        self._pass_fds = tuple(pass_fds)
        self._environment = environment(extra_environment)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._ready_fd: int | None = None
        self._buffer = b""

    @property
    def title(self) -> str:
        """The name as it stands in a sentence: with an article, unless it is a proper name."""
        return self.name if self.name[:1].isupper() else f"the {self.name}"

    @property
    def pid(self) -> int | None:
        """The process ID, or None when it doesn't run."""
        if self._process is None or self._process.poll() is not None:
            return None
        return self._process.pid

    def start(self, given: str = "") -> None:
        """Start it, unless it runs; `messages` follows the start.

        `given` is what it reads on standard input, at most a few KiB: all that a pipe holds.
        """
        if self.pid is not None:
            return
        self._close_pipe()
        self._ready_fd, write = os.pipe()
        self._buffer = b""
        self.log_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = os.open(self.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        stdin = _pipe_of(given) if given else os.open(os.devnull, os.O_RDONLY)
        try:
            self._process = subprocess.Popen(  # noqa: S603
                [part.replace(READY_FD, str(write)) for part in self._command],
                stdin=stdin,
                stdout=log,
                stderr=log,
                env=self._environment | {_READY_VARIABLE: str(write)},
                cwd=self._folder,
                pass_fds=(write, *self._pass_fds),
                # Ctrl-C is for the parent, which stops its children in order.
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - one call of libc, no locks
                umask=0o077,
            )
        finally:
            for descriptor in (write, log, stdin):
                os.close(descriptor)

    def messages(self, timeout_seconds: float) -> Iterator[dict[str, Any]]:
        """Yield messages until the child is ready, that message included.

        Raises ChildFailed when it ends, reports an error, or reports nothing for so long.
        """
        last = "start"
        while True:
            line = self._line(time.monotonic() + timeout_seconds)
            if line is None:
                raise self._failed(
                    f"reported nothing for {timeout_seconds:g} s; its last step: {last}"
                )
            if not line:
                raise self._failed("ended while it started")
            message: dict[str, Any] = json.loads(line)
            if "error" in message:
                self.stop()  # it is about to end
                raise ChildFailed(message["error"], child=self.name, log=str(self.log_path))
            yield message
            last = message.get("detail") or message.get("step") or last
            if message.get("ready"):
                return

    def steps(self) -> list[str]:
        """Return the steps reported since the last call; never waits."""
        return [str(message["step"]) for message in self.reports() if "step" in message]

    def reports(self) -> list[dict[str, Any]]:
        """Return the messages reported since the last call; never waits."""
        messages = []
        while self._ready_fd is not None and (
            b"\n" in self._buffer or _readable(self._ready_fd, 0)
        ):
            line = self._line(time.monotonic())
            if line is None:
                break
            if not line:
                self._close_pipe()  # no process holds the other end any more
            else:
                messages.append(json.loads(line))
        return messages

    def fileno(self) -> int | None:
        """Return the pipe, readable when there is a message; None once the child has closed it."""
        return self._ready_fd

    def terminate(self) -> None:
        """Ask it to end, if it runs."""
        self.signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it and what it started, if it runs."""
        pid = self.pid
        if pid is not None:
            # It leads a session: the group is the child and what it started.
            os.killpg(pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill it with all that it has started, and return when none of them is left."""
        self.kill()
        while self._ready_fd is not None and self._line(time.monotonic() + _END_SECONDS):
            pass  # they all hold the pipe
        self.stop()

    def stop(self, timeout_seconds: float = 20) -> None:
        """End it: SIGTERM, and SIGKILL after so long. May be called twice."""
        self.terminate()
        if self._process is not None:
            try:
                self._process.wait(timeout_seconds)
            except subprocess.TimeoutExpired:
                self.kill()
                self._process.wait()
        self._close_pipe()

    def signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def exit_text(self) -> str:
        """Return how it ended: an exit code or a signal."""
        code = self._process.poll() if self._process is not None else None
        if code is None:
            return "runs"
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def _line(self, deadline: float) -> bytes | None:
        """Return the next line; empty at the end, None at the deadline."""
        assert self._ready_fd is not None
        while b"\n" not in self._buffer:
            if not _readable(self._ready_fd, max(0.0, deadline - time.monotonic())):
                return None
            chunk = os.read(self._ready_fd, 65536)
            if not chunk:
                return b""
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _failed(self, reason: str) -> ChildFailed:
        return ChildFailed(
            f"{self.title[:1].upper()}{self.title[1:]} {reason}; see {self.log_path}.",
            child=self.name,
            log=str(self.log_path),
        )

    def _close_pipe(self) -> None:
        if self._ready_fd is not None:
            os.close(self._ready_fd)
            self._ready_fd = None


def _pipe_of(text: str) -> int:
    """Return the end to read of a pipe that holds a text."""
    read, write = os.pipe()
    with os.fdopen(write, "w", encoding="utf-8") as pipe:
        pipe.write(text)
    return read


def _readable(descriptor: int, seconds: float) -> bool:
    return bool(select.select([descriptor], [], [], seconds)[0])
