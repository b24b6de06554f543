"""Which of several PostgreSQL servers is the database now: the primary of the newest timeline.

A promotion begins a new timeline. The former primary may only have been frozen, come back and take
statements, if nobody has fenced it off: what is written there is lost. So an engine connects to
the primary whose timeline is the newest that this process has seen, and a process whose URL names
several servers looks at all of them every few seconds. If another one has taken over, or none
answers for some time, the connections to the former one are cut, also those on which a statement
waits.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common.log import logger

LOG = logger(__name__)

TIMELINE = "micronova.timeline"
"""In a connection's ``info``: its database cluster's identifier and timeline, such as ``77/2``;
None where the server says neither, or is a replica."""

#: seconds between two looks at all servers
LOOK_SECONDS = 5.0
#: how long a connection waits for a server to be promoted
PATIENCE_SECONDS = 15.0
_PAUSE_SECONDS = 0.3
#: how long a server may take to say what it is
_ANSWER_SECONDS = 3.0
#: looks in a row at which no primary answers, after which nobody waits for it any longer
_SILENT_LOOKS = 3
#: looks without any connection, after which there are no more
_IDLE_LOOKS = 3

#: of libpq: when a server that went without a word is given up
_GIVE_UP: Mapping[str, str] = {
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
#: seconds until a connection is made, to one of several servers and to the only one
_CONNECT_SECONDS, _CONNECT_SECONDS_OF_ONE = "3", "10"
_PRIMARY = frozenset({"read-write", "primary"})
_READ_ONLY = "25006"

_STATE = (
    b"SELECT system_identifier, CASE WHEN pg_is_in_recovery() THEN NULL ELSE "
    b"substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END FROM pg_control_system()"
)


@dataclass(frozen=True)
class Server:
    """Where a server is, as libpq takes it."""

    host: str
    port: str

    def __str__(self) -> str:
        """Return it as in a URL."""
        return f"{self.host}:{self.port}" if self.port else self.host


@dataclass(frozen=True)
class State:
    """What a server says of itself."""

    system: str
    """Identifies the database cluster: copies have the same."""
    timeline: int
    """0: it is a replica."""

    @property
    def name(self) -> str | None:
        """The timeline, unmistakable; None of a replica."""
        return f"{self.system}/{self.timeline}" if self.timeline else None


def follow(engine: sa.Engine, *, writes: bool = True) -> None:
    """Have an engine of PostgreSQL connect to the primary, if its URL names several servers, or
    `target_session_attrs=read-write`; else to the server that it names.

    A connection on which a statement fails because its server is a replica now counts as lost;
    ``writes`` False: the session itself is read-only.
    """
    if (engine.dialect.name, engine.dialect.driver) != ("postgresql", "psycopg"):
        return
    wanted = engine.url.query.get("target_session_attrs")
    if wanted is not None and wanted not in _PRIMARY:
        return  # then libpq chooses
    servers = of(engine.dialect.create_connect_args(engine.url)[1])
    chooses = len(servers.named) > 1 or wanted is not None

    def connect(dialect: Any, record: Any, _arguments: Any, parameters: dict[str, Any]) -> Any:
        made = servers.connect(dialect, parameters, chooses=chooses)
        record.info[TIMELINE] = None if made.state is None else made.state.name
        return made.connection

    def failed(context: Any) -> None:
        if getattr(context.original_exception, "sqlstate", None) == _READ_ONLY:
            context.is_disconnect = True

    sa.event.listen(engine, "do_connect", connect)
    if writes:
        sa.event.listen(engine, "handle_error", failed)


def look_at_all(engine: sa.Engine) -> dict[Server, State | None]:
    """Return what each server says that an engine's URL names, where these are several; None of
    a silent one."""
    if (engine.dialect.name, engine.dialect.driver) != ("postgresql", "psycopg"):
        return {}
    parameters = engine.dialect.create_connect_args(engine.url)[1]
    servers = of(parameters)
    return servers.states(engine.dialect, parameters) if len(servers.named) > 1 else {}


@dataclass(frozen=True)
class _Made:
    """A connection, with where it leads."""

    connection: Any
    server: Server
    state: State | None

    @property
    def timeline(self) -> int:
        return 0 if self.state is None else self.state.timeline


class Servers:
    """The servers of one database, for all engines of this process that name them."""

    def __init__(self, named: tuple[Server, ...]) -> None:
        self.named = named
        self.forget()

    def forget(self) -> None:
        """Begin from nothing, as after a fork, when locks and threads are another process's."""
        self._lock = threading.RLock()
        self._chosen: Server | None = None
        self._newest: dict[str, int] = {}
        self._made: weakref.WeakKeyDictionary[Any, _Made] = weakref.WeakKeyDictionary()
        self._watch: threading.Thread | None = None
        self._former: set[Server] = set()
        self._silent = 0

    def connect(self, dialect: Any, parameters: Mapping[str, Any], *, chooses: bool) -> _Made:
        """Return a connection. Raises the driver's OperationalError.

        With ``chooses`` it is to the primary, and waits for a while until there is one.
        """
        if not chooses:
            return self._accepted(dialect, self._open(dialect, parameters, self.named[0]))
        pause, until = threading.Event(), time.monotonic() + PATIENCE_SECONDS
        while True:
            made = self._to_chosen(dialect, parameters) or self._survey(dialect, parameters)
            if made is not None:
                self._start_watch(dialect, parameters)
                return made
            if time.monotonic() > until:
                raise dialect.loaded_dbapi.OperationalError(
                    f"None of the servers {self._names()} is the primary and answers."
                )
            pause.wait(_PAUSE_SECONDS)

    def look(self, dialect: Any, parameters: Mapping[str, Any]) -> None:
        """Choose again, and cut the connections to a primary that was replaced, or is silent."""
        made = self._survey(dialect, parameters)
        if made is not None:
            made.connection.close()
        with self._lock:
            self._silent = 0 if made is not None else self._silent + 1
            if self._silent == _SILENT_LOOKS:
                LOG.error("No primary of the database answers: %s.", self._names())
                self._cut_all_but(None)

    def states(self, dialect: Any, parameters: Mapping[str, Any]) -> dict[Server, State | None]:
        """Return what each says; None of a silent one."""
        found: dict[Server, State | None] = dict.fromkeys(self.named)
        for server in self.named:
            with contextlib.suppress(dialect.loaded_dbapi.Error):
                made = self._open(dialect, parameters, server)
                found[server] = made.state
                made.connection.close()
        return found

    # --- choosing

    def _to_chosen(self, dialect: Any, parameters: Mapping[str, Any]) -> _Made | None:
        """Return a connection to the server that was chosen; None if it is the primary no more."""
        with self._lock:
            chosen = self._chosen
        if chosen is None:
            return None
        try:
            made = self._open(dialect, parameters, chosen)
        except dialect.loaded_dbapi.OperationalError:
            made = None
        if made is not None and self._is_primary(made):
            return made
        if made is not None:
            made.connection.close()
        with self._lock:
            if self._chosen == chosen:
                self._chosen = None
        return None

    def _survey(self, dialect: Any, parameters: Mapping[str, Any]) -> _Made | None:
        """Look at all servers and choose; return a connection, None if none is the primary."""
        found = []
        for server in self.named:
            try:
                found.append(self._open(dialect, parameters, server))
            except dialect.loaded_dbapi.OperationalError as error:
                LOG.debug("%s: %s", server, error)
        with self._lock:
            best = max(found, key=self._rank, default=None)
            if best is not None and self._is_primary(best):
                self._choose(best)
            else:
                best = None
            for one in found:
                self._say_former(one)
        for one in found:
            if one is not best:
                one.connection.close()
        return best

    def _rank(self, made: _Made) -> tuple[bool, int, bool]:
        known = made.state is not None and made.state.system in self._newest
        return known and made.timeline > 0, made.timeline, made.server == self._chosen

    def _is_primary(self, made: _Made) -> bool:
        """Return whether it leads to a primary, and to no former one."""
        state = made.state
        if state is None:
            return True  # no server of PostgreSQL itself: it can't be asked
        with self._lock:
            return state.timeline > 0 and state.timeline >= self._newest.get(state.system, 0)

    def _choose(self, best: _Made) -> None:
        if best.state is not None:
            self._newest[best.state.system] = best.timeline
        if self._chosen != best.server:
            LOG.info("The database's primary is %s.", best.server)
        self._chosen = best.server
        self._former.discard(best.server)
        self._cut_all_but(best)

    def _cut_all_but(self, best: _Made | None) -> None:
        """Cut the connections that don't lead where ``best`` does."""
        for connection, made in list(self._made.items()):
            if best is None or (made.server, made.timeline) != (best.server, best.timeline):
                _cut(connection)

    def _say_former(self, made: _Made) -> None:
        """Log once that a server takes statements that would be lost."""
        chosen = self._chosen is not None and made.server != self._chosen
        if chosen and made.timeline and made.server not in self._former:
            self._former.add(made.server)
            LOG.error(
                "%s is a former primary of the database, and takes statements that are lost: "
                "stop it, and make it a replica of %s.",
                *(made.server, self._chosen),
            )

    def _accepted(self, dialect: Any, made: _Made) -> _Made:
        """Return a connection to the only server. Raises OperationalError if that is a former
        primary: an address can lead to another machine."""
        if made.timeline and not self._is_primary(made):
            made.connection.close()
            raise dialect.loaded_dbapi.OperationalError(
                f"{self._names()} leads to a former primary of the database."
            )
        with self._lock:
            if made.state is not None and made.timeline:
                self._newest[made.state.system] = made.timeline
        return made

    # --- connections

    def _open(self, dialect: Any, parameters: Mapping[str, Any], server: Server) -> _Made:
        seconds = _CONNECT_SECONDS if len(self.named) > 1 else _CONNECT_SECONDS_OF_ONE
        given: dict[str, Any] = {**_GIVE_UP, "connect_timeout": seconds, **parameters}
        given |= {"host": server.host, "port": server.port}
        given.pop("target_session_attrs", None)
        connection = dialect.connect(**{name: value for name, value in given.items() if value})
        try:
            made = _Made(connection, server, _state(dialect, connection))
        except dialect.loaded_dbapi.Error:
            connection.close()
            raise
        with self._lock:
            self._made[connection] = made
        return made

    def _start_watch(self, dialect: Any, parameters: Mapping[str, Any]) -> None:
        with self._lock:
            if len(self.named) == 1 or (self._watch is not None and self._watch.is_alive()):
                return
            self._watch = threading.Thread(
                target=self._keep_looking,
                args=(dialect, dict(parameters)),
                name="watch-primary",
                daemon=True,
            )
            self._watch.start()

    def _keep_looking(self, dialect: Any, parameters: Mapping[str, Any]) -> None:
        pause, idle = threading.Event(), 0
        while idle < _IDLE_LOOKS:
            pause.wait(LOOK_SECONDS)
            with self._lock:
                idle = 0 if any(not one.closed for one in self._made) else idle + 1
            try:
                self.look(dialect, parameters)
            except Exception:
                # Without this thread nobody would see another server take over.
                LOG.exception("The database's servers could not be looked at.")

    def _names(self) -> str:
        return ", ".join(map(str, self.named))


_known: dict[tuple[Any, ...], Servers] = {}
_lock = threading.Lock()


def of(parameters: Mapping[str, Any]) -> Servers:
    """Return the servers that libpq's parameters name, the same for the same parameters."""
    hosts = str(parameters.get("host") or "").split(",")
    ports = str(parameters.get("port") or "").split(",")
    ports = ports if len(ports) == len(hosts) else ports[:1] * len(hosts)
    named = tuple(Server(*one) for one in zip(hosts, ports, strict=True))
    key = (named, parameters.get("dbname"))
    with _lock:
        return _known.setdefault(key, Servers(named))


def _forget() -> None:
    global _lock  # who held it is not in this process
    _lock = threading.Lock()
    for servers in _known.values():
        servers.forget()


os.register_at_fork(after_in_child=_forget)


def _state(dialect: Any, connection: Any) -> State | None:
    """Ask a server what it is; None: it doesn't know the question. Raises OperationalError if it
    is silent, as a frozen one is.

    Not by the driver's own way, which would wait for as long as it takes.
    """
    channel = connection.pgconn
    channel.send_query(_STATE)
    until = time.monotonic() + _ANSWER_SECONDS
    poll = select.poll()
    poll.register(channel.socket, select.POLLIN)
    while channel.is_busy():
        left = until - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise dialect.loaded_dbapi.OperationalError("The server doesn't answer.")
        channel.consume_input()
    result = channel.get_result()
    while channel.get_result() is not None:
        pass
    if result is None or not result.ntuples:
        return None
    system, timeline = result.get_value(0, 0), result.get_value(0, 1)
    return State(system.decode(), int(timeline, 16) if timeline else 0)


def _cut(connection: Any) -> None:
    """End a connection that others use: what waits for its server fails at once."""
    import psycopg

    with contextlib.suppress(psycopg.Error, OSError):
        address = (connection.info.hostaddr, connection.info.port)
        with socket.socket(fileno=os.dup(connection.fileno())) as channel:
            # It may have been closed since, and its number be another's.
            if channel.getpeername()[:2] == address:
                channel.shutdown(socket.SHUT_RDWR)
