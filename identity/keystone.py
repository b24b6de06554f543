"""The embedded Keystone: one child process on SQLite, from an empty folder to a ready socket.

    keystone = Keystone(state_dir, host="127.0.0.1", port=5000)
    keystone.listen()
    keystone.prepare(catalog(keystone.auth_url, base_url), load_passwords(state_dir), print)
    keystone.start()
    keystone.wait_ready(30)
    ...
    keystone.stop()

The parent owns the listening socket, so the port is taken before any work is done, may be 0
(any free one), and stays taken when the child is started again.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oslo_config import cfg

from identity import prepare as preparation
from identity.errors import AddressUnusable, KeystoneFailed, PortBusy
from identity.gunicorn_hooks import PARENT_FD, READY_FD
from identity.layout import Endpoint, Job

GROUP = "embedded_identity"
OPTIONS = (
    cfg.HostAddressOpt(
        "host",
        default="127.0.0.1",
        help="Address the embedded Keystone listens on. It speaks plain HTTP: put a TLS proxy in "
        "front before choosing an address that other machines reach.",
    ),
    cfg.PortOpt(
        "port",
        default=5000,
        help="TCP port of the embedded Keystone; 0 takes any free one, and a new one every start.",
    ),
    cfg.IntOpt(
        "threads",
        default=8,
        min=1,
        max=64,
        help="Threads that serve Keystone's requests at the same time. A password check keeps "
        "one busy for about a third of a second.",
    ),
)


def register(conf: cfg.ConfigOpts) -> None:
    """Declare the options of the embedded Keystone on `conf`."""
    conf.register_opts(OPTIONS, group=GROUP)


class Keystone:
    """The embedded Keystone of one state directory; not for use from several threads."""

    name = "Keystone"

    def __init__(
        self,
        state_dir: Path,
        host: str = "127.0.0.1",
        port: int = 5000,
        *,
        advertised_host: str | None = None,
        threads: int = 8,
    ) -> None:
        """Name what to run; `advertised_host` is the name clients use when it isn't `host`."""
        self._state_dir = state_dir
        self._host = host
        self._port = port
        self._advertised_host = advertised_host or host
        self._threads = threads
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._ready_fd: int | None = None
        self._parent_fd: int | None = None
        self._said = b""

    @property
    def port(self) -> int:
        """The TCP port; the real one once `listen` has returned."""
        return self._port

    @property
    def auth_url(self) -> str:
        """The URL clients log in at: identity API v3."""
        host = self._advertised_host
        return f"http://{f'[{host}]' if ':' in host else host}:{self._port}/v3"

    @property
    def log_path(self) -> Path:
        """The file that Keystone's output is appended to."""
        return self._state_dir / "log" / "keystone.log"

    @property
    def pid(self) -> int | None:
        """The child's process ID, or None when it doesn't run."""
        running = self._process is not None and self._process.poll() is None
        return self._process.pid if self._process is not None and running else None

    def listen(self) -> None:
        """Take the port. Raises PortBusy or AddressUnusable."""
        if self._socket is not None:
            return
        where = {"host": self._host, "port": self._port}
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            taken = socket.create_server((self._host, self._port), family=family, backlog=256)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortBusy(
                    f"Port {self._port} on {self._host}, where Keystone should listen, is in use "
                    "by another process.",
                    **where,
                ) from error
            reason = error.strerror or str(error)
            raise AddressUnusable(
                f"Keystone can't listen on {self._host} port {self._port}: {reason}.", **where
            ) from error
        self._socket = taken
        self._port = int(taken.getsockname()[1])

    def prepare(
        self,
        endpoints: Sequence[Endpoint],
        passwords: Mapping[str, str],
        progress: preparation.Progress,
    ) -> bool:
        """Make database, keys, users and catalog; return whether anything was to do.

        `passwords` is {user name: password} of `passwords.USERS`. Raises KeystoneFailed.
        """
        job = Job(endpoints=tuple(endpoints), passwords=passwords)
        return preparation.prepare(self._state_dir, job, progress)

    def start(self) -> None:
        """Start the server process; `wait_ready` says when it answers."""
        if self.pid is not None:
            return
        self.listen()
        self._forget()
        assert self._socket is not None
        self._ready_fd, ready_write = os.pipe()
        self._parent_fd, watched = _open_parent_watch()
        folder = self._state_dir / "keystone"
        environment = preparation.child_environment(folder) | {
            READY_FD: str(ready_write),
            PARENT_FD: str(watched),
        }
        listener = self._socket.fileno()
        try:
            with preparation.open_log(self.log_path) as log_fd:
                self._process = subprocess.Popen(  # noqa: S603
                    self._command(listener),
                    stdin=subprocess.DEVNULL,
                    stdout=log_fd,
                    stderr=log_fd,
                    env=environment,
                    cwd=folder,
                    pass_fds=(listener, ready_write, watched),
                    # Ctrl-C is for the parent, which stops Keystone last.
                    start_new_session=True,
                    umask=0o077,
                )
        finally:
            os.close(ready_write)
            os.close(watched)

    def wait_ready(self, timeout_seconds: float) -> None:
        """Return when the server answers. Raises KeystoneFailed when it ends or takes longer."""
        if self._ready_fd is None:
            raise KeystoneFailed("Keystone was not started.", log=str(self.log_path))
        deadline = time.monotonic() + timeout_seconds
        while self._ready_fd is not None and time.monotonic() < deadline:
            select.select([self._ready_fd], [], [], max(0.0, deadline - time.monotonic()))
            if any(message.get("ready") for message in self.told()):
                return
        reason = (
            "ended while it started"
            if self._ready_fd is None
            else f"did not start within {timeout_seconds:g} s"
        )
        raise KeystoneFailed(f"Keystone {reason}; see {self.log_path}.", log=str(self.log_path))

    def fileno(self) -> int | None:
        """What becomes readable when it tells something; None when it can't any more."""
        return self._ready_fd

    def told(self) -> list[dict[str, Any]]:
        """Return what it has told since it was asked last; never waits.

        ``{"ready": True}``: a worker answers; ``{"ended": how}``: one ended, another one starts.
        """
        while self._ready_fd is not None and select.select([self._ready_fd], [], [], 0)[0]:
            chunk = os.read(self._ready_fd, 65536)
            if not chunk:
                os.close(self._ready_fd)
                self._ready_fd = None
            self._said += chunk
        *lines, self._said = self._said.split(b"\n")
        return [json.loads(line) for line in lines]

    def exit_text(self) -> str:
        """Say how it ended: an exit code or a signal."""
        code = self._process.poll() if self._process is not None else None
        if code is None:
            return "runs"
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def terminate(self) -> None:
        """Ask the server process to end, if it runs."""
        if self._process is not None:
            self._process.terminate()  # does nothing to one that has ended

    def kill(self) -> None:
        """End the server process and its worker at once, if they run."""
        pid = self.pid
        if pid is not None:
            # Its own session: the group is the server and its worker, nobody else.
            os.killpg(pid, signal.SIGKILL)

    def stop(self, timeout_seconds: float = 10) -> None:
        """End the server process, gently first, and give the port back. May be called twice."""
        self.terminate()
        if self._process is not None:
            try:
                self._process.wait(timeout_seconds)
            except subprocess.TimeoutExpired:
                self.kill()
                self._process.wait()
        self._forget()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _command(self, listener: int) -> list[str]:
        hooks = Path(__file__).with_name("gunicorn_hooks.py")
        return [
            *(sys.executable, "-m", "gunicorn", "identity.wsgi:application"),
            *("--config", str(hooks)),
            *("--bind", f"fd://{listener}"),
            *("--workers", "1", "--threads", str(self._threads)),
            *("--worker-class", "web.serving.Worker", "--keep-alive", "75"),
            *("--graceful-timeout", "1", "--forwarded-allow-ips", ""),
            "--no-control-socket",
        ]

    def _forget(self) -> None:
        """Close what belongs to a process that has ended."""
        for descriptor in (self._ready_fd, self._parent_fd):
            if descriptor is not None:
                os.close(descriptor)
        self._ready_fd = self._parent_fd = None
        self._said = b""
        self._process = None


def _open_parent_watch() -> tuple[int | None, int]:
    """Return (descriptor to keep, descriptor for the child that becomes readable when we end)."""
    with contextlib.suppress(AttributeError, OSError):  # not Linux, or forbidden in a sandbox
        return None, os.pidfd_open(os.getpid())
    read, write = os.pipe()
    return write, read
