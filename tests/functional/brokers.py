"""RabbitMQ for tests, one node or several: private, as `tests.functional.backends`."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import secrets
import shlex
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fixtures.deployment_page import BROKERS
from tests.functional import backends
from tests.functional.backends import START_SECONDS, Account, Tls
from tests.functional.waiting import eventually
from tests.pages import block

if TYPE_CHECKING:
    from launcher.bus_users import BusUser

_STATUS = ("cluster_status", "--formatter", "json", "--quiet")
#: command of `rabbitmqctl` → what definitions call it, and its arguments
_RIGHTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "set_permissions": ("permissions", ("user", "configure", "write", "read")),
    "set_topic_permissions": ("topic_permissions", ("user", "exchange", "write", "read")),
}

_NO_BUSY_WAIT = "+sbwt none +sbwtdcpu none +sbwtdio none"


@dataclass(frozen=True)
class _Shared:
    """What the nodes of a cluster have in common."""

    folder: Path
    home: Path
    who: Account
    names: int
    """The port of their epmd."""
    user: str
    password: str
    peers: tuple[str, ...]
    tls: Tls | None = None


@dataclass
class Broker:
    """A node that can be stopped and started again; what is durable is not lost."""

    shared: _Shared
    name: str
    port: int
    distribution: int
    pid: int = 0
    _running: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The transport URL."""
        return Cluster([self]).url

    @property
    def log(self) -> Path:
        """What it prints."""
        return self.shared.folder / f"{self.name.partition('@')[0]}.log"

    def start(self) -> None:
        """Return once it listens."""
        self.launch()
        self.wait_listening()

    def launch(self) -> None:
        """Start it; a node of a cluster may wait for the others before it listens."""
        running = backends.running(
            [str(backends.RABBITMQ)], self.shared.who, self.log, self._environment()
        )
        self._process = self._running.enter_context(running)
        self.pid = self._process.pid

    def wait_listening(self) -> None:
        """Return once it listens."""
        assert self._process is not None
        backends.wait_until(
            f"RabbitMQ {self.name}", lambda: backends.listens(self.port), self._process, self.log
        )

    def stop(self) -> None:
        """End it in order, as its service manager does."""
        self.signal(signal.SIGCONT)
        self._running.close()

    def kill(self) -> None:
        """End it as a machine that loses its power."""
        self.signal(signal.SIGKILL)
        self._running.close()

    def signal(self, number: int) -> None:
        """Send a signal to it, with its helpers."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def control(self, words: Sequence[str]) -> str:
        """Run `rabbitmqctl` with these arguments; return what it prints."""
        done = subprocess.run(  # type: ignore[call-overload]
            [str(backends.RABBITMQCTL), *words],
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **self._environment()},
            cwd=self.shared.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
            **self.shared.who.keywords,
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return str(done.stdout)

    def run(self, lines: Iterable[Sequence[str]]) -> None:
        """Do at once what `rabbitmqctl` with these arguments does, which takes a second each."""
        found: dict[str, list[Mapping[str, object]]] = collections.defaultdict(list)
        for command, *words in lines:
            if command == "add_user":
                found["users"].append({"name": words[0], "password": words[1], "tags": []})
                continue
            kind, names = _RIGHTS[command]
            assert words[0] == "-p"
            found[kind].append(dict(zip(("vhost", *names), words[1:], strict=True)))
        file = self.shared.folder / "definitions.json"
        file.write_text(json.dumps(found), encoding="utf-8")
        file.chmod(0o644)
        self.control(["import_definitions", str(file)])

    def add_users(self, users: Sequence[BusUser]) -> dict[str, str]:
        """Make users with their rights; return {user: its transport URL}."""
        return Cluster([self]).add_users(users)

    def program(self, folder: Path) -> Path:
        """Write a program `rabbitmqctl` of this broker into a folder; return its path."""
        who = self.shared.who.name
        variables = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **self._environment()}
        words = [*(["runuser", "-u", who, "--"] if who else []), "env", "-i"]
        words += [f"{name}={value}" for name, value in variables.items()]
        made = folder / "rabbitmqctl"
        command = shlex.join([*words, str(backends.RABBITMQCTL)])
        made.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        made.chmod(0o755)
        return made

    def tail(self, characters: int = 4000) -> str:
        """The end of what it has logged: why a connection was closed, for one."""
        return self.log.read_text(errors="replace")[-characters:]

    def _environment(self) -> dict[str, str]:
        home, short = self.shared.home, self.name.partition("@")[0]
        return {
            "HOME": str(home),
            "ERL_EPMD_PORT": str(self.shared.names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            # The start script then becomes the server, which so ends with us, however we end.
            "RUNNING_UNDER_SYSTEMD": "true",
            "RABBITMQ_NODENAME": self.name,
            "RABBITMQ_DIST_PORT": str(self.distribution),
            "RABBITMQ_CONFIG_FILE": str(self._config()),
            "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / f"{short}-plugins"),
            "RABBITMQ_CONF_ENV_FILE": str(home / "none"),
            # Nobody's cores are kept busy by an idle broker.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"+S 2:2 {_NO_BUSY_WAIT}",
        }

    def _config(self) -> Path:
        shared = self.shared
        path = self.log.with_suffix(".conf")
        plain = f"listeners.tcp.1 = 127.0.0.1:{self.port}"
        lines = [
            plain if shared.tls is None else shared.tls.listener(self.port),
            f"default_user = {shared.user}",
            f"default_pass = {shared.password}",
            "vm_memory_high_watermark.absolute = 1GB",
            "disk_free_limit.absolute = 50MB",
        ]
        if len(shared.peers) > 1:
            printed = block(*BROKERS)
            for number, peer in enumerate(shared.peers, 1):
                printed = printed.replace(f"rabbit@mq{number}", peer)
            lines.append(printed)
        path.write_text("\n".join([*lines, ""]))
        path.chmod(0o644)
        return path


@dataclass
class Cluster:
    """Several nodes that hold the same queues."""

    nodes: list[Broker]

    @property
    def url(self) -> str:
        """The transport URL that names all of them."""
        shared = self.nodes[0].shared
        return self._url(shared.user, shared.password)

    def _url(self, user: str, password: str) -> str:
        hosts = (f"{user}:{password}@127.0.0.1:{one.port}" for one in self.nodes)
        return f"rabbit://{','.join(hosts)}/"

    def add_users(self, users: Sequence[BusUser]) -> dict[str, str]:
        """Make users with their rights; return {user: its transport URL}."""
        passwords = {user.name: secrets.token_hex(12) for user in users}
        lines = [["add_user", name, password] for name, password in passwords.items()]
        self.run([*lines, *(words for user in users for words in user.commands())])
        return {name: self._url(name, password) for name, password in passwords.items()}

    def control(self, words: Sequence[str]) -> str:
        """Run `rabbitmqctl` on the first node."""
        return self.nodes[0].control(words)

    def run(self, lines: Iterable[Sequence[str]]) -> None:
        """Do at once what `rabbitmqctl` with these arguments does."""
        self.nodes[0].run(lines)

    def running(self) -> int:
        """How many nodes the first one counts as running."""
        return len(json.loads(self.control(_STATUS))["running_nodes"])

    def start(self, *nodes: Broker) -> None:
        """Start some of them, or all, which may wait for each other."""
        for one in nodes or self.nodes:
            one.launch()
        for one in nodes or self.nodes:
            one.wait_listening()

    def stop(self) -> None:
        """End all."""
        for one in self.nodes:
            one.stop()


@contextlib.contextmanager
def rabbitmq() -> Iterator[str]:
    """Run one node; gives the transport URL."""
    with broker() as running_:
        yield running_.url


@contextlib.contextmanager
def broker(user: str = "micronova", tls: Tls | None = None) -> Iterator[Broker]:
    """Run one node, with an epmd of its own, and with one user."""
    with cluster(1, user, tls) as made:
        yield made.nodes[0]


@contextlib.contextmanager
def cluster(count: int = 3, user: str = "micronova", tls: Tls | None = None) -> Iterator[Cluster]:
    """Run so many nodes, three at the most, as the cluster that docs/deploy.md prints."""
    backends.require(backends.RABBITMQ, backends.RABBITMQCTL, backends.EPMD)
    names, who = backends.free_port(), backends.account("rabbitmq")
    with backends.private_folder() as folder, contextlib.ExitStack() as stack:
        home = who.own(folder / "home")
        _write_cookie(home)
        ports = [(backends.free_port(), backends.free_port()) for _ in range(count)]
        peers = tuple(f"micronova-{os.getpid()}-{port}@localhost" for port, _ in ports)
        shared = _Shared(folder, home, who, names, user, secrets.token_hex(16), peers, tls)
        command = [str(backends.EPMD), "-port", str(names), "-address", "127.0.0.1"]
        daemon = stack.enter_context(backends.running(command, who, folder / "epmd.log"))
        backends.wait_until("epmd", lambda: backends.listens(names), daemon, folder / "epmd.log")
        nodes = [Broker(shared, peer, *each) for peer, each in zip(peers, ports, strict=True)]
        made = Cluster(nodes)
        stack.callback(made.stop)
        made.start()
        if count > 1:
            eventually(lambda: made.running() == count, START_SECONDS)
        yield made


def _write_cookie(home: Path) -> None:
    """Write what nodes know each other by; else the first of several would."""
    path, owner = home / ".erlang.cookie", home.stat()
    path.write_text(secrets.token_hex(16))
    path.chmod(0o400)
    if os.geteuid() == 0:
        os.chown(path, owner.st_uid, owner.st_gid)
