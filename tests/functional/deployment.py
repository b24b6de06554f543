"""A deployment made as `docs/deploy.md` prints it: its blocks, in folders and ports of a test.

Two machines with two of each service, behind HAProxy. Around them are private servers of Debian's
PostgreSQL with a replica, three nodes of RabbitMQ, memcached, a Keystone and the simulator. What
is not printed there is what the page names: Keystone's commands are `docs/identity.md`'s, the
dashboard's configuration `docs/dashboard.md`'s.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openstack.config
import openstack.connection
import yaml

from common.process.child import ROOT
from identity.clouds import project_id, write_client_files
from identity.keystone import Keystone
from identity.layout import SERVICES, identity_at
from identity.passwords import load_passwords
from identity.private_file import write_private
from simulator.http.certificate import server_context
from tests.fixtures.deployment_page import (
    CATALOG,
    COMMANDS,
    COMMANDS_NOT_RUN,
    CONSOLE,
    FILES,
    HEADERS,
    LEAST,
    LEAST_COMMANDS,
    LEAST_SQL,
    LEAST_USERS,
    REPLICA,
    REPLICATOR,
    SQL,
    SYNCHRONOUS,
    WITH_CONSOLE_URLS,
    WORKER,
    Printed,
)
from tests.functional import (
    backends,
    brokers,
    deployment_places,
    haproxy,
    nginx,
    postgres_pair,
    programs,
)
from tests.functional.deployment_places import Authority, Network
from tests.functional.distributed import START_SECONDS, simulated, token_file
from tests.functional.postgres_pair import Member, Pair
from tests.functional.systemd import Systemd
from tests.functional.waiting import eventually
from tests.pages import block

_LEFT = re.compile(r"…|\bexample\b|mq\d|cache\d|\b10\.0\.0\.|(?<![\w/])/(?:etc|opt|var)/micronova")
_SERVICES_FILES = re.compile(r"\b(conductor|placement)\.conf")
_EXTRAS = re.compile(r"\[([\w,]+)\]'")


@dataclass
class Deployment:
    """The machine of an operator who follows the page; `places` is what stands for the printed
    hosts, passwords, ports and paths."""

    folder: Path
    network: Network
    number: int
    """0: the first of the machines, where what is done once is done."""
    pair: Pair
    brokers: brokers.Cluster
    keystone: Keystone
    places: Mapping[str, str]
    systemd: Systemd = field(init=False)
    authority: Authority | None = None
    """Whose certificates the servers have, where each service has users of its own, as the page's
    section on privileges says."""

    def __post_init__(self) -> None:
        logs = self.folder / "log"
        logs.mkdir(exist_ok=True)
        units = self.folder / "etc" / "systemd" / "system"
        self.systemd = Systemd(units, logs, self.placed)

    @property
    def users(self) -> bool:
        """Whether each service has users of its own, and TLS to the servers."""
        return self.authority is not None

    @property
    def configuration(self) -> Path:
        """/etc/micronova."""
        return self.folder / "etc" / "micronova"

    @property
    def address(self) -> str:
        """The machine's own."""
        return self.network.machine(self.number)

    @property
    def certificate(self) -> Path:
        """The folder of what this machine's servers show: ca.pem, tls-key.pem."""
        return self.folder / "certificate"

    def placed(self, text: str) -> str:
        """Return a printed text with this machine's hosts, passwords, ports and paths."""
        for printed, ours in self.places.items():
            text = text.replace(printed, ours)
        return text

    def printed(self, which: Printed) -> str:
        """Return a block, placed; nothing in it may still stand for something else."""
        text = self.placed(block(*which))
        assert not _LEFT.search(text), text
        return text

    # --- the page's steps

    def install(self) -> None:
        """Have the programs, the folders and gunicorn's settings where the page has them."""
        programs_ = self.folder / "opt" / "micronova" / "bin"
        programs_.parent.mkdir(parents=True)
        programs_.symlink_to(Path(sys.executable).parent)
        (self.folder / "usr" / "local" / "bin").mkdir(parents=True)
        (self.folder / "etc" / "systemd" / "system").mkdir(parents=True)
        self.commands("install", cwd=ROOT)

    def configure(self) -> None:
        """Write the files of /etc/micronova, and what they name."""
        files = {**FILES, **LEAST} if self.users else FILES
        for name, blocks in files.items():
            text = "\n".join(self.printed(one) for one in blocks)
            if name in WITH_CONSOLE_URLS:
                text += "\n" + _urls(self.printed(CONSOLE))
            write_private(self.configuration / name, text)
        write_private(
            self.configuration / "dashboard.env",
            f"MICRONOVA_BIND={self.address}:8780\n",
        )
        with (self.configuration / "gunicorn.conf.py").open("a", encoding="utf-8") as settings:
            settings.write(f"\n\n{self.printed(WORKER)}")
        simulator, made = self.folder.parent / "simulator", self.certificate
        shutil.copy(token_file(simulator), self.configuration / "east.token")
        shutil.copy(simulator / "ca.pem", self.configuration / "east-ca.pem")
        shutil.copytree(self.folder.parent / "certificate", made)
        for name in ("console.pem", "console-ca.pem"):
            shutil.copy(made / "ca.pem", self.configuration / name)
        shutil.copy(made / "tls-key.pem", self.configuration / "console.key")
        if self.authority is not None:
            shutil.copy(self.authority.ca, self.configuration)

    def make_databases(self) -> None:
        """Run the page's statements as PostgreSQL's superuser, and make the tables."""
        for which in (SQL, LEAST_SQL) if self.users else (SQL,):
            self._execute(which)
        if self.users:
            self.shell(self.printed(LEAST_COMMANDS["databases"]), self.configuration)
            return
        self.commands("databases", cwd=self.configuration)

    def make_synchronous(self) -> None:
        """Have commits wait for the replica, by the page's statements."""
        self._execute(SYNCHRONOUS)

    def _execute(self, which: Printed) -> None:
        statements = self.printed(which).split(";")
        self.pair.execute(*(one for one in statements if one.strip()))

    def make_bus_user(self) -> None:
        """Run the page's commands of RabbitMQ."""
        if self.users:
            said = self.shell(self.printed(LEAST_COMMANDS["bus"]), self.configuration)
            lines, password = said.splitlines(), self.places["add_user micronova …"].split()[-1]
        else:
            lines, password = self.lines("bus"), ""
        printed = []
        for line in lines:
            program, *words = shlex.split(line)
            assert program == "rabbitmqctl"
            asked = [password] if self.users and words[0] == "add_user" else []
            printed.append([*words, *asked])
        # A user of each service has four lines: the first one's are run as they are.
        for words in printed[:4]:
            self.brokers.control(words)
        if printed[4:]:
            self.brokers.run(printed[4:])

    def register(self) -> None:
        """Make user, roles and catalog in Keystone as docs/identity.md prints it."""
        environment = self.environment("micronova-admin")
        password = self.places["password = …"].removeprefix("password = ")
        # This Keystone was made for us.
        _run_openstack(["user", "delete", "micronova"], environment)
        for kind, (name, _) in SERVICES.items():
            _run_openstack(["service", "create", "--name", name, kind], environment)
        text = self.placed(block(*CATALOG))
        if self.users:
            text += self.placed(block(*LEAST_USERS))
        # bash expands what is printed; the program is then run without a start for each
        shown = f"openstack() {{ printf '%s\\0' \"$@\"; echo; }}\n{text}"
        done = subprocess.run(
            ["bash", "-ec", shown], capture_output=True, text=True, check=True, cwd=self.folder
        )
        for line in done.stdout.splitlines():
            words = line.rstrip("\0").split("\0")
            if "--password-prompt" in words:
                _enter_password(words, environment, password)
            else:
                _run_openstack(words, environment)

    def start_services(self) -> None:
        """Do what the block of systemd says."""
        for line in self.lines("services"):
            self.do(line, ROOT)

    def do(self, line: str, cwd: Path) -> None:
        """Run a command; those to systemd are done by its part here."""
        program, *words = line.split()
        if program == "systemctl":
            self.systemd.systemctl(*words)
        else:
            # a check may have warnings
            self.shell(line, cwd=cwd, code=int(" upgrade-check " in line))

    # --- commands

    def lines(self, step: str) -> list[str]:
        """Return the commands of a step, without what is said beside them."""
        lines = self.printed(COMMANDS[step]).splitlines()
        return [line.partition("  #")[0].rstrip() for line in lines if line.strip()]

    def commands(self, step: str, cwd: Path) -> list[str]:
        """Run the commands of a step that can be run; return what each prints."""
        found = []
        printed = block(*COMMANDS[step]).splitlines()
        for line, command in zip(printed, self.lines(step), strict=True):
            if not line.startswith(tuple(COMMANDS_NOT_RUN)):
                found.append(self.shell(command, cwd))
        return found

    def shell(self, command: str, cwd: Path | None = None, code: int = 0) -> str:
        """Run a command as an administrator, to a code at the most; return what it prints."""
        done = subprocess.run(
            ["bash", "-ec", command],
            cwd=cwd or self.folder,
            env=self.environment("micronova"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=programs.SECONDS,
            check=False,
        )
        said = f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        assert 0 <= done.returncode <= code, said
        return done.stdout

    def connection(self, name: str = "micronova-admin") -> Any:
        """Return an openstacksdk connection."""
        config = openstack.config.OpenStackConfig(
            config_files=[str(self.folder.parent / "clouds.yaml")], load_envvars=False
        )
        return openstack.connection.Connection(config=config.get_one(name))

    def environment(self, cloud: str) -> dict[str, str]:
        """Return the environment of a client's shell."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        path = f"{self.folder}/usr/local/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
        yaml = str(self.folder.parent / "clouds.yaml")
        return kept | {"PATH": path, "OS_CLIENT_CONFIG_FILE": yaml, "OS_CLOUD": cloud}


def extras() -> list[str]:
    """Return the extras that the page installs."""
    found = _EXTRAS.search(block(*COMMANDS["install"]))
    assert found is not None
    return found[1].split(",")


@contextlib.contextmanager
def machines(folder: Path, *, users: bool = False) -> Iterator[list[Deployment]]:
    """Run what the page takes for granted, and give two machines with nothing of ours on them yet;
    the services that are started end with them."""
    backends.require(backends.MEMCACHED, backends.HAPROXY)
    network = Network.some()
    with contextlib.ExitStack() as stack:
        authority = stack.enter_context(Authority.made()) if users else None
        pair, bus, caches = _servers(stack, authority)
        keystone = stack.enter_context(_keystone(folder))
        simulator = stack.enter_context(simulated(folder))
        node = list(simulator.messages(START_SECONDS))[-1]["endpoints"][0]["url"]
        logins = deployment_places.logins(bus)
        shown = folder / "certificate"
        shown.mkdir()
        server_context(shown, *(network.machine(n) for n in _NUMBERS), f"{network.prefix}.5")
        _trust(folder / "clouds.yaml", shown / "ca.pem")
        found = []
        for number in _NUMBERS:
            own = folder / f"machine-{number}"
            own.mkdir()
            places = {
                **deployment_places.databases(pair.primary, pair.replica),
                **(authority.of_databases(pair.replica) if authority else {}),
                **deployment_places.paths(own),
                **deployment_places.services(
                    own, network, number, keystone.auth_url, node, caches
                ),
                **logins,
                # the name of this machine's worker, once its logins have their passwords
                "agents-1": f"agents-{number + 1}",
            }
            made = Deployment(own, network, number, pair, bus, keystone, places, authority)
            stack.callback(made.systemd.stop_all)
            found.append(made)
        yield found


_NUMBERS = (0, 1)


def _servers(
    stack: contextlib.ExitStack, authority: Authority | None
) -> tuple[Pair, brokers.Cluster, list[str]]:
    """Run the servers of others, which speak TLS alone where there is an authority."""

    def copy(primary: Member, replica: Member) -> None:
        _replicate(authority, primary, replica)

    def tls(name: str, user: str) -> backends.Tls | None:
        return authority and authority.tls(name, user, "nobody")

    configured = {"configure": authority.configure} if authority else {}
    pair = stack.enter_context(postgres_pair.pair(copy, **configured))
    bus = stack.enter_context(brokers.cluster(user="guest", tls=tls("mq1", "rabbitmq")))
    caches = [
        stack.enter_context(backends.memcached(tls(name, "memcache")))
        for name in ("cache1", "cache2")
    ]
    return pair, bus, caches


def _replicate(authority: Authority | None, primary: Member, replica: Member) -> None:
    """Make the replica by the page's statement and command."""
    statement, command = block(*REPLICATOR), block(*REPLICA)
    password, environment = secrets.token_hex(12), {}
    if authority is not None:
        assert command.count("user=replicator") == 1
        command = command.replace("user=replicator", f"user=replicator {authority.of_replica()}")
        environment = {"HOME": str(authority.home("replicator", password))}
    for printed, ours in {
        **deployment_places.replication(password),
        **deployment_places.databases(primary, replica),
    }.items():
        statement, command = statement.replace(printed, ours), command.replace(printed, ours)
    primary.server.execute(statement)
    program, *words = shlex.split(command)
    assert program == "pg_basebackup"
    postgres_pair.run(replica.who, [str(postgres_pair.PG_BASEBACKUP), *words], **environment)


def _trust(clouds: Path, ca: Path) -> None:
    """Have clients know who signed the proxy's certificate."""
    found = yaml.safe_load(clouds.read_text(encoding="utf-8"))
    for one in found["clouds"].values():
        one["cacert"] = str(ca)
    write_private(clouds, yaml.safe_dump(found))


@contextlib.contextmanager
def _keystone(folder: Path) -> Iterator[Keystone]:
    """Run a Keystone that has never known of micronova: users, projects, and itself."""
    server = Keystone(folder, port=0)
    server.listen()
    try:
        passwords = load_passwords(folder)
        server.prepare([identity_at(server.auth_url)], passwords, lambda step: None)
        server.start()
        server.wait_ready(START_SECONDS)
        project = project_id(server.auth_url, passwords)
        write_client_files(folder, server.auth_url, passwords, project)
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def proxy(made: Sequence[Deployment]) -> Iterator[tuple[str, haproxy.States]]:
    """Run HAProxy with the file that the first machine has, as the page says; gives the cloud's
    address, and what the proxy thinks of its servers."""
    first = made[0]
    (first.folder / "etc" / "haproxy").mkdir()
    first.commands("proxy", cwd=first.folder)
    config = first.folder / "etc" / "haproxy" / "haproxy.cfg"
    text = config.read_text(encoding="utf-8")
    pem = first.folder / "etc" / "haproxy" / "cloud.pem"
    write_private(pem, "".join((first.certificate / name).read_text() for name in _PEM))
    for printed, ours in (
        ("bind :443 ", f"bind {first.network.proxy} "),
        ("/etc/haproxy/cloud.pem", str(pem)),
        ("10.0.0.10:", f"{made[0].address}:"),
        ("10.0.0.11:", f"{made[1].address}:"),
    ):
        assert printed in text, printed
        text = text.replace(printed, ours)
    config.write_text(text, encoding="utf-8")
    host = f"{first.network.prefix}.5"
    with haproxy.running(config, first.network.front, host) as states:
        yield f"https://{first.network.proxy}", states


def upgrade(made: Sequence[Deployment], states: haproxy.States) -> None:
    """Do what the page about upgrades says, with the release that runs: what is done once on the
    first machine, and restarts machine by machine."""
    for printed in made[0].lines("upgrade"):
        # As the page says: tables are changed by who owns them.
        line = _SERVICES_FILES.sub("owners.conf", printed) if made[0].users else printed
        for one in made if line.startswith("systemctl ") else made[:1]:
            one.do(line, one.configuration)
            eventually(lambda: set(states().values()) == {"UP"}, 90)


_PEM = ("ca.pem", "tls-key.pem")


@contextlib.contextmanager
def proxy_of_one(made: Deployment) -> Iterator[str]:
    """Run nginx for one machine as the page prints it; gives its address. Where there is no nginx,
    the API's own."""
    if nginx.NGINX is None:
        yield f"http://{made.address}:8774"
        return
    port = backends.free_port()
    text = made.printed(HEADERS)
    for printed, ours in (
        ("listen 443 ssl;", f"listen {made.address}:{port} ssl;"),
        ("/etc/nginx/cloud.pem", str(made.certificate / "ca.pem")),
        ("/etc/nginx/cloud.key", str(made.certificate / "tls-key.pem")),
    ):
        assert printed in text, printed
        text = text.replace(printed, ours)
    folder = made.folder / "nginx"
    folder.mkdir()
    config = folder / "nginx.conf"
    temporary = nginx.temporary_paths(folder)
    config.write_text(f"pid {folder}/pid;\nevents {{}}\nhttp {{\n{temporary}{text}}}\n")
    with nginx.running(config, port, made.address):
        yield f"https://{made.address}:{port}"


def _urls(console: str) -> str:
    lines = [line for line in console.splitlines() if re.match(r"\w+_url =", line)]
    assert len(lines) == 3
    return "\n".join(["[console]", *lines, ""])


def _run_openstack(words: list[str], environment: Mapping[str, str]) -> None:
    done = programs.run("openstack", words, environment)
    assert done.returncode == 0, f"{shlex.join(words)}: {done.stdout}{done.stderr}"


def _enter_password(words: list[str], environment: Mapping[str, str], password: str) -> None:
    """Run a command of `openstack` in a terminal, and enter a password where it prompts."""
    master, terminal = pty.openpty()
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "openstackclient.shell", *words],
            env=dict(environment),
            stdin=terminal,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            # without a terminal of its own it prompts on stderr
            start_new_session=True,
        ) as process:
            assert process.stderr is not None
            said = b""
            while more := process.stderr.read1():
                said += more
                if more.rstrip().endswith(b":"):
                    os.write(master, f"{password}\n".encode())
        assert process.returncode == 0, said
    finally:
        os.close(master)
        os.close(terminal)
