"""PostgreSQL, MariaDB, RabbitMQ and memcached for tests: private, in a folder of their own.

Each is on free ports. The programs are Debian's; no service of the system is touched. Each runs
as an unprivileged user (root's tests switch to one) and ends with the tests, however they end.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import dataclasses
import functools
import glob
import os
import pwd
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from common.process.child import die_with_parent
from tests.fixtures.deployment_page import TLS
from tests.pages import block

START_SECONDS = 240
#: the range that the kernel chooses ports from
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port(count: int = 1) -> int:
    """Return the first of so many consecutive TCP ports that are free now.

    The kernel gives none of them to a connection, or to a server that asks for any port, before
    they are used: they lie below the range that it chooses from. Nor does another process that
    asks here: a server may take seconds until it listens.
    """
    begin, end = 10_000, 32_768
    with contextlib.suppress(OSError):
        lowest = int(_EPHEMERAL.read_text(encoding="ascii").split()[0])
        # Where it chooses from nearly all ports, a port may get lost again.
        end = lowest if lowest > 2 * begin else end
    while True:
        first = begin + secrets.randbelow(end - begin - count)
        if all(_is_free(first + n) for n in range(count)):
            return first


#: the ports that this process was given last, each held by a name in the kernel
_RESERVED: collections.deque[socket.socket] = collections.deque()
_RESERVED_MOST = 200


@atexit.register
def _release() -> None:
    """Close what would be warned of as left open."""
    for holder in _RESERVED:
        holder.close()


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return _reserve(port)


def _reserve(port: int) -> bool:
    """Reserve a port in this process; return False where any process has."""
    holder = socket.socket(socket.AF_UNIX)
    try:
        holder.bind(f"\0micronova-test-port-{port}")
    except OSError:
        holder.close()
        return False
    _RESERVED.append(holder)
    if len(_RESERVED) > _RESERVED_MOST:
        _RESERVED.popleft().close()
    return True


def program(name: str, *patterns: str) -> str | None:
    """Return the path of a program: the last match of the patterns, or from PATH."""
    found = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
    return found[-1] if found else shutil.which(name)


INITDB = program("initdb", "/usr/lib/postgresql/*/bin/initdb")
POSTGRES = program("postgres", "/usr/lib/postgresql/*/bin/postgres")
MARIADB = program("mariadbd", "/usr/sbin/mariadbd")
MARIADB_INSTALL = program("mariadb-install-db")
RABBITMQ = program("rabbitmq-server", "/usr/lib/rabbitmq/bin/rabbitmq-server")
RABBITMQCTL = program("rabbitmqctl", "/usr/lib/rabbitmq/bin/rabbitmqctl")
EPMD = program("epmd")
MEMCACHED = program("memcached")
HAPROXY = program("haproxy", "/usr/sbin/haproxy")
GCC = program("gcc")


def moved_clock(file: Path) -> Mapping[str, str]:
    """Return the environment of a process whose machine's clock differs by the seconds that the
    file says, such as `120`, which may be changed while it runs. Its monotonic clock does not."""
    return {"LD_PRELOAD": str(_clock_library()), "MOVED_CLOCK_FILE": str(file)}


@functools.cache
def _clock_library() -> Path:
    require(GCC)
    folder = Path(tempfile.mkdtemp(prefix="moved-clock-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    source, made = Path(__file__).with_name("moved_clock.c"), folder / "moved_clock.so"
    command = [str(GCC), "-O2", "-shared", "-fPIC", "-o", str(made), str(source)]
    subprocess.run(command, check=True, timeout=60)
    return made


def require(*programs: str | None) -> None:
    """Skip where a program is missing; fail under CI, which installs them."""
    if all(programs):
        return
    reason = "PostgreSQL, RabbitMQ, memcached, HAProxy or gcc is not installed here"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@dataclasses.dataclass(frozen=True)
class Account:
    """The unprivileged user that a program runs as; None: the one we are."""

    name: str | None

    def own(self, path: Path) -> Path:
        """Give the folder to the user."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.name is not None:
            entry = pwd.getpwnam(self.name)
            os.chown(path, entry.pw_uid, entry.pw_gid)
        return path

    @property
    def keywords(self) -> Mapping[str, object]:
        """What subprocess needs to switch to the user."""
        if self.name is None:
            return {}
        entry = pwd.getpwnam(self.name)
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def account(*names: str) -> Account:
    """Return the first of the users that exists; ourselves when we are not root."""
    if os.geteuid() != 0:
        return Account(None)
    known = {entry.pw_name for entry in pwd.getpwall()}
    return Account(next(name for name in (*names, "nobody") if name in known))


@contextlib.contextmanager
def running(
    command: Sequence[str],
    who: Account,
    log: Path,
    environment: Mapping[str, str] | None = None,
    stop_signal: int = signal.SIGTERM,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program in a session of its own, and end the whole session."""
    with log.open("ab") as output:
        process: subprocess.Popen[bytes] = subprocess.Popen(  # type: ignore[call-overload]
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **(environment or {})},
            cwd=log.parent,
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509
            **who.keywords,
        )
    try:
        yield process
    finally:
        process.send_signal(stop_signal)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_until(
    what: str, check: Callable[[], bool], process: subprocess.Popen[bytes], log: Path
) -> None:
    """Ask again until the check holds; fail when the program ended or took too long."""
    deadline = time.monotonic() + START_SECONDS
    pause = threading.Event()
    while not check():
        tail = log.read_text(errors="replace")[-2000:] if log.exists() else ""
        assert process.poll() is None, f"{what} ended: {tail}"
        assert time.monotonic() < deadline, f"{what} is not up: {tail}"
        pause.wait(0.1)


def listens(port: int, host: str = "127.0.0.1") -> bool:
    """Return whether something accepts connections there."""
    try:
        socket.create_connection((host, port), 1).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Give a folder that other users may pass through, gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="micronova-test-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclasses.dataclass(frozen=True)
class Tls:
    """The files of a server that takes connections by TLS alone."""

    certificate: str
    key: str
    ca: str

    def listener(self, port: int) -> str:
        """Return RabbitMQ's configuration with these files, as documented, at a port of
        127.0.0.1."""
        text = block(*TLS["broker"]).replace("= 5671", f"= 127.0.0.1:{port}")
        for name, file in (("ca.pem", self.ca), ("server.pem", self.certificate)):
            text = text.replace(f"/etc/rabbitmq/{name}", file)
        return text.replace("/etc/rabbitmq/server.key", self.key)

    def of_memcached(self) -> list[str]:
        """Return memcached's arguments with these files, as documented."""
        text = block(*TLS["cache"]).replace("/etc/memcached/server.pem", self.certificate)
        text = text.replace("/etc/memcached/server.key", self.key)
        return shlex.split(text, comments=True)


@contextlib.contextmanager
def memcached(tls: Tls | None = None) -> Iterator[str]:
    """Run memcached; gives host:port."""
    require(MEMCACHED)
    assert MEMCACHED is not None
    port = free_port()
    who = account("memcache", "nobody")
    with private_folder() as folder:
        log = folder / "memcached.log"
        command = [MEMCACHED, "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-m", "16"]
        if tls is not None:
            command += tls.of_memcached()
        with running(command, who, log) as process:
            wait_until("memcached", lambda: listens(port), process, log)
            yield f"127.0.0.1:{port}"


@dataclasses.dataclass(frozen=True)
class Postgres:
    """A PostgreSQL server; its superuser is `postgres`, trusted on the loopback."""

    port: int
    pid: int = 0

    def url(self, database: str, user: str = "postgres", password: str = "") -> str:
        """Return the SQLAlchemy URL of a database."""
        login = f"{user}:{password}" if password else user
        return f"postgresql+psycopg://{login}@127.0.0.1:{self.port}/{database}"

    def answers(self) -> bool:
        """Return whether it takes statements already."""
        import psycopg

        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def execute(self, *statements: str, database: str = "postgres") -> None:
        """Run statements as the superuser."""
        import psycopg

        where = f"host=127.0.0.1 port={self.port} user=postgres dbname={database}"
        with psycopg.connect(where, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


_INITDB_OPTIONS = ("-E", "UTF8", "--locale=C.UTF-8", "--no-sync")


@functools.cache
def _empty_cluster() -> Path:
    """Make a database cluster that servers begin with a copy of; removed with this process."""
    options = ["-D", ".", "-U", "postgres", "-A", "trust", *_INITDB_OPTIONS]
    return _made_once("initdb", account("postgres"), [str(INITDB), *options])


def _made_once(name: str, who: Account, command: Sequence[str]) -> Path:
    """Return the folder of the data that a command makes where it runs."""
    folder = Path(tempfile.mkdtemp(prefix=f"micronova-{name}-"))
    folder.chmod(0o711)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    data, temporary = who.own(folder / "data"), who.own(folder / "temporary")
    subprocess.run(  # type: ignore[call-overload]
        command,
        check=True,
        capture_output=True,
        cwd=data,
        env=os.environ | {"TMPDIR": str(temporary)},
        **who.keywords,
    )
    return data


@contextlib.contextmanager
def postgres(**more: str) -> Iterator[Postgres]:
    """Run PostgreSQL; `more` are its settings."""
    require(INITDB, POSTGRES)
    assert POSTGRES is not None
    port = free_port()
    who = account("postgres")
    with private_folder() as folder:
        data, log = folder / "data", folder / "postgres.log"
        subprocess.run(["cp", "-a", str(_empty_cluster()), str(data)], check=True)
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": "",
            "max_connections": 300,
            "fsync": "off",
            **more,
        }
        command = [POSTGRES, "-D", str(data)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        # SIGINT: end at once, without waiting for clients.
        with running(command, who, log, stop_signal=signal.SIGINT) as process:
            server = Postgres(port, process.pid)
            wait_until("PostgreSQL", server.answers, process, log)
            yield server


@functools.cache
def _empty_mariadb() -> Path:
    """Make a data directory that servers begin with a copy of; removed with this process."""
    # ``--force``: also on a machine whose own name can't be looked up.
    command = [str(MARIADB_INSTALL), "--no-defaults", "--skip-test-db", "--force"]
    command += ["--auth-root-authentication-method=normal", "--datadir=."]
    return _made_once("mariadb", account("mysql"), command)


@contextlib.contextmanager
def mariadb() -> Iterator[str]:
    """Run MariaDB; gives the URL of its superuser."""
    assert MARIADB is not None
    port = free_port()
    who = account("mysql")
    with private_folder() as folder:
        data, log = folder / "data", folder / "mariadb.log"
        subprocess.run(["cp", "-a", str(_empty_mariadb()), str(data)], check=True)
        command = [MARIADB, "--no-defaults", f"--datadir={data}", "--bind-address=127.0.0.1"]
        command += [f"--port={port}", f"--socket={data}/socket", f"--pid-file={data}/pid"]
        command += ["--skip-name-resolve", "--max-connections=300"]
        command += ["--innodb-flush-log-at-trx-commit=0"]
        with running(command, who, log) as process:
            wait_until("MariaDB", lambda: listens(port), process, log)
            yield f"mysql+pymysql://root@127.0.0.1:{port}/mysql"
