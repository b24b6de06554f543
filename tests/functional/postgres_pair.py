"""PostgreSQL with a streaming replica for tests, that can be promoted, killed, frozen and slow."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tests.functional import backends
from tests.functional.backends import Account, Postgres
from tests.functional.waiting import eventually

PG_BASEBACKUP = backends.program("pg_basebackup", "/usr/lib/postgresql/*/bin/pg_basebackup")
PG_CTL = backends.program("pg_ctl", "/usr/lib/postgresql/*/bin/pg_ctl")


@dataclass
class Member:
    """One server of a pair."""

    name: str
    port: int
    data: Path
    who: Account
    pid: int = 0
    _running: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def log(self) -> Path:
        """What it prints."""
        return self.data.with_suffix(".log")

    @property
    def server(self) -> Postgres:
        """To run statements on it."""
        return Postgres(self.port, self.pid)

    def start(self) -> None:
        """Return once it answers."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "max_connections": 300,
            "fsync": "off",
        }
        command = [str(backends.POSTGRES), "-D", str(self.data)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        running = backends.running(command, self.who, self.log, stop_signal=signal.SIGINT)
        process = self._running.enter_context(running)
        self.pid = process.pid
        backends.wait_until(f"PostgreSQL {self.name}", self.server.answers, process, self.log)

    def stop(self) -> None:
        """End it, frozen or not."""
        self.thaw()
        self._running.close()

    def kill(self) -> None:
        """End all its processes at once, as a machine that loses its power."""
        self._signal(signal.SIGKILL)
        self._running.close()

    def freeze(self) -> None:
        """Stop all its processes; its sockets stay open."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Have it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        # its processes lead sessions of their own
        for pid in [self.pid, *_children(self.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def promote(self) -> None:
        """Make a primary of a replica, as a failover manager does."""
        run(self.who, [str(PG_CTL), "promote", "-D", str(self.data), "-w", "-t", "60"])

    def value(self, statement: str, database: str = "postgres") -> Any:
        """Return the one value that a statement gives."""
        where = f"host=127.0.0.1 port={self.port} user=postgres dbname={database}"
        with psycopg.connect(where, autocommit=True) as connection:
            row = connection.execute(statement.encode()).fetchone()
        assert row is not None
        return row[0]

    def last_values(self, statement: str, database: str) -> list[Any]:
        """Return the values of a server that was killed, read from a copy of its data."""
        with backends.private_folder() as folder:
            copy = Member(self.name, backends.free_port(), folder / "copy", self.who)
            subprocess.run(["cp", "-a", str(self.data), str(copy.data)], check=True)
            copy.start()
            where = f"host=127.0.0.1 port={copy.port} user=postgres dbname={database}"
            try:
                with psycopg.connect(where) as connection:
                    return [row[0] for row in connection.execute(statement.encode())]
            finally:
                copy.stop()


@dataclass
class Pair:
    """A primary and its replica."""

    folder: Path
    primary: Member
    replica: Member

    def url(self, database: str, user: str = "postgres", password: str = "", **query: str) -> str:
        """Return SQLAlchemy's URL of a database on both, `primary` named first."""
        login = f"{user}:{password}" if password else user
        hosts = f"host=127.0.0.1:{self.primary.port}&host=127.0.0.1:{self.replica.port}"
        more = "".join(f"&{name}={value}" for name, value in query.items())
        return f"postgresql+psycopg://{login}@/{database}?{hosts}{more}"

    def execute(self, *statements: str, database: str = "postgres") -> None:
        """Run statements on the primary as the superuser."""
        self.primary.server.execute(*statements, database=database)

    def make_synchronous(self) -> None:
        """Make every commit wait until it is on the replica."""
        statements = (
            "ALTER SYSTEM SET synchronous_standby_names = '*'",
            "SELECT pg_reload_conf()",
        )
        self.execute(*statements)
        sync = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        eventually(lambda: self.primary.value(sync) == 1, 30)

    def caught_up(self) -> bool:
        """Return whether the replica has replayed all that the primary has."""
        here = self.primary.value("SELECT pg_current_wal_flush_lsn()")
        return bool(self.replica.value(f"SELECT pg_last_wal_replay_lsn() >= '{here}'"))

    def cut_replication(self) -> None:
        """Have the replica get no more, as over a network that is cut."""
        self.replica.server.execute(
            "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()"
        )
        streams = "SELECT count(*) FROM pg_stat_replication"
        eventually(lambda: self.primary.value(streams) == 0, 30)

    def fail_over(self, end: Callable[[Member], None] = Member.kill) -> None:
        """End the primary somehow, and promote the replica."""
        end(self.primary)
        self.swap()

    def swap(self) -> None:
        """Promote the replica; both change places."""
        self.replica.promote()
        self.primary, self.replica = self.replica, self.primary

    def rebuild_replica(self) -> None:
        """Make a replica of the former primary, from a copy of the present one."""
        self.replica.stop()
        shutil.rmtree(self.replica.data)
        self.replica.who.own(self.replica.data)
        _copy(self.primary, self.replica)
        self.replica.start()
        eventually(self.caught_up, 60)


def _copy(source: Member, target: Member) -> None:
    where = ["-h", "127.0.0.1", "-p", str(source.port), "-U", "postgres"]
    command = [str(PG_BASEBACKUP), *where, "-D", str(target.data), "-R", "-c", "fast", "--no-sync"]
    run(target.who, command)


def _as_it_is(_member: Member) -> None:
    """Change nothing of a server's configuration."""


@contextlib.contextmanager
def pair(
    copy: Callable[[Member, Member], None] = _copy,
    configure: Callable[[Member], None] = _as_it_is,
) -> Iterator[Pair]:
    """Run both; ``copy`` makes the replica's data of the primary, as its user, and ``configure``
    changes each one's configuration before its start."""
    backends.require(backends.INITDB, backends.POSTGRES, PG_BASEBACKUP, PG_CTL)
    who = backends.account("postgres")
    with backends.private_folder() as folder, contextlib.ExitStack() as stack:
        one, two = (
            Member(name, backends.free_port(), folder / name, who) for name in ("one", "two")
        )
        subprocess.run(["cp", "-a", str(backends._empty_cluster()), str(one.data)], check=True)
        stack.callback(one.stop)
        configure(one)
        one.start()
        who.own(two.data)
        copy(one, two)
        stack.callback(two.stop)
        configure(two)
        two.start()
        made = Pair(folder, one, two)
        eventually(made.caught_up, 30)
        yield made


@contextlib.contextmanager
def single(
    folder: Path | None = None, configure: Callable[[Member], None] = _as_it_is
) -> Iterator[Member]:
    """Run one server that can be stopped and started again, with its data in a folder;
    ``configure`` changes its configuration before."""
    backends.require(backends.INITDB, backends.POSTGRES)
    with contextlib.ExitStack() as stack:
        folder = folder or stack.enter_context(backends.private_folder())
        who = backends.account("postgres")
        one = Member("one", backends.free_port(), folder / "one", who)
        subprocess.run(["cp", "-a", str(backends._empty_cluster()), str(one.data)], check=True)
        stack.callback(one.stop)
        configure(one)
        one.start()
        yield one


def run(who: Account, command: list[str], **environment: str) -> None:
    """Run a command of PostgreSQL as a user, to its end."""
    done = subprocess.run(  # type: ignore[call-overload]
        command,
        cwd="/",
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        **who.keywords,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(one) for one in text.split()]
