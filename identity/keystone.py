"""The embedded Keystone: one child process on SQLite, from an empty folder to a ready socket.

    keystone = Keystone(state_dir, host="127.0.0.1", port=5000)
    keystone.listen()
    keystone.prepare(catalog(keystone.auth_url, base_url), load_passwords(state_dir), print)
    keystone.start()
    keystone.wait_ready(30)
    ...
    keystone.stop()

The parent owns the listening socket, so the port is bound before any work is done, may be 0
(any free port), and remains bound when the child is restarted.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from oslo_config import cfg, types

from common.process.child import Child, ChildFailed, python
from identity import prepare as preparation
from identity.errors import AddressUnusable, KeystoneFailed, PortBusy
from identity.layout import REGION, Endpoint, Job

GROUP = "embedded_identity"
SERVICE_GROUP = "identity_service"
SERVICE_OPTIONS = (
    cfg.StrOpt(
        "state_dir",
        default="/var/lib/micronova/identity",
        help="Folder of the Keystone that `micronova service identity` runs: its database, keys, "
        "passwords and log, and clouds.yaml.",
    ),
    cfg.HostAddressOpt("host", default="127.0.0.1", help="Address that it listens on."),
    cfg.PortOpt("port", default=8775, help="Port that it listens on."),
    cfg.URIOpt(
        "public_url",
        help="Its URL in the catalog, for clients; default: by host and port.",
    ),
    cfg.Opt(
        "service_passwords",
        type=types.Dict(),
        default={},
        secret=True,
        help="Passwords of the users of separate services, such as micronova-api:…, without "
        "commas: micronova-api, micronova-placement, micronova-conductor, micronova-scheduler, "
        "micronova-compute. Others are made, and stored in secrets.json of state_dir.",
    ),
    cfg.StrOpt(
        "service_password",
        secret=True,
        help="Password of the user micronova, with the roles admin and service, that services may "
        "share instead; not set: there is none.",
    ),
    cfg.URIOpt(
        "base_url",
        default="http://127.0.0.1:8774",
        help="URL that the catalog has for the APIs, below which are /compute, /image, /network "
        "and /volume.",
    ),
    cfg.URIOpt(
        "placement_url",
        default="http://127.0.0.1:8778",
        help="URL that the catalog has for placement.",
    ),
)
LOGIN_FAILURES = 50
OPTIONS = (
    cfg.IntOpt(
        "threads",
        default=8,
        min=1,
        max=64,
        help="Threads that serve Keystone's requests at the same time. A check of a password that "
        "a user chose occupies a thread for about a third of a second.",
    ),
    cfg.IntOpt(
        "login_failures",
        default=LOGIN_FAILURES,
        min=0,
        max=100_000,
        help="Logins by password from one address (one IPv4 address, one IPv6 /64) that may fail "
        "in five minutes; further ones are answered 429 until then, but for users who have logged "
        "in from there before. Behind a proxy on this machine the address is the last one of "
        "X-Forwarded-For. 0: any number.",
    ),
)


def register(conf: cfg.ConfigOpts) -> None:
    """Declare the options of the embedded Keystone on `conf`."""
    conf.register_opts(OPTIONS, group=GROUP)
    conf.register_opts(SERVICE_OPTIONS, group=SERVICE_GROUP)


class Keystone:
    """The embedded Keystone of one state directory; not for use from several threads."""

    def __init__(
        self,
        state_dir: Path,
        host: str = "127.0.0.1",
        port: int = 5000,
        *,
        advertised_host: str | None = None,
        threads: int = 8,
        login_failures: int = LOGIN_FAILURES,
    ) -> None:
        """Name what to run; `advertised_host` is the name clients use when it isn't `host`."""
        self._state_dir = state_dir
        self._host = host
        self._port = port
        self._advertised_host = advertised_host or host
        self._threads = threads
        self._login_failures = login_failures
        self._socket: socket.socket | None = None
        self._child: Child | None = None

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
        return None if self._child is None else self._child.pid

    @property
    def process(self) -> Child:
        """The server process; needs the port, so call `listen` first."""
        assert self._child is not None, "Keystone has no port yet"
        return self._child

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
        self._child = self._server(taken.fileno())

    def prepare(
        self,
        endpoints: Sequence[Endpoint],
        passwords: Mapping[str, str],
        progress: preparation.Progress,
        region: str = REGION,
    ) -> bool:
        """Make database, keys, users and the catalog of a region; return whether anything changed.

        Call it before `start` and `wait_ready`: it opens the socket only.
        `passwords` is {user name: password} of `passwords.USERS`. Raises KeystoneFailed.
        """
        self.listen()
        job = Job(tuple(endpoints), passwords, region)
        return preparation.prepare(self._state_dir, job, self.process, progress)

    def start(self) -> None:
        """Start the server process, unless it runs; `wait_ready` returns once it answers."""
        self.listen()
        self.process.start()

    def wait_ready(self, timeout_seconds: float) -> None:
        """Return once the server answers. Raises KeystoneFailed when it ends or takes longer."""
        if self._child is None:
            raise KeystoneFailed("Keystone was not started.", log=str(self.log_path))
        try:
            for _ in self._child.messages(timeout_seconds):
                pass
        except ChildFailed as error:
            raise KeystoneFailed(error.message, log=str(self.log_path)) from error

    def stop(self, timeout_seconds: float = 10) -> None:
        """Stop the server process and give the port back. May be called twice."""
        if self._child is not None:
            self._child.stop(timeout_seconds)
            self._child = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _server(self, listener: int) -> Child:
        folder = self._state_dir / "keystone"
        return Child(
            "Keystone",
            python("identity.server", *map(str, (listener, self._threads, self._login_failures))),
            self.log_path,
            pass_fds=(listener,),
            extra_environment=preparation.configuration_environment(folder),
            folder=folder,
        )
