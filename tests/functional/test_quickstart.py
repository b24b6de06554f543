"""`micronova quickstart` where nobody runs services: its printed commands are started here."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pwd
import shlex
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import amqp.exceptions
import kombu
import openstack.config
import openstack.connection
import psycopg
import pytest
from oslo_config import cfg

from common import rpc
from common.errors import ConfigurationError
from common.process.child import ROOT, die_with_parent
from common.rpc import permissions, senders
from launcher.quickstart import bus, databases, steps
from launcher.quickstart.machine import Machine, Ports
from launcher.quickstart.memory import Memory
from tests.functional import backends, brokers
from tests.functional.backends import Postgres, free_port
from tests.functional.unprepared import Unprepared, at_a_terminal, micronova, unprepared

pytestmark = pytest.mark.timeout(2400)

IMAGE = "https://images.example/debian-13.qcow2"


@dataclass
class Place:
    """A machine with servers of PostgreSQL and RabbitMQ, and a cluster."""

    folder: Path
    postgres: Postgres
    bus: str
    cluster: Unprepared
    port: int

    @property
    def configuration(self) -> Path:
        return self.folder / "etc"

    def quickstart(self, *words: str, typed: str = "", code: int = 0) -> tuple[str, str]:
        """Run it; return both outputs."""
        where = ["--state-dir", str(self.folder / "var"), "--port", str(self.port)]
        own = ["--user", backends_user(), "--rabbitmq", self.bus]
        return self.again(*where, *own, *words, typed=typed, code=code)

    def again(self, *words: str, typed: str = "", code: int = 0) -> tuple[str, str]:
        """Run it without what it had at the first time."""
        where = ["--folder", str(self.configuration), "--services", "none"]
        named = {"MICRONOVA_POSTGRES": f"postgresql://postgres@127.0.0.1:{self.postgres.port}"}
        done = micronova(["quickstart", *where, *words], typed, named)
        assert done.returncode == code, done.stdout + done.stderr
        assert self.cluster.password not in done.stdout + done.stderr
        return done.stdout, done.stderr

    def make(self, *words: str) -> tuple[str, str]:
        """Run it for the cluster."""
        trust = ("--ca", str(self.cluster.ca_file), "--password-fd", "0", "--yes")
        asked = (self.cluster.url, *trust, "--image", IMAGE, *words)
        return self.quickstart(*asked, typed=self.cluster.password)

    def named(self) -> set[str]:
        """Return the roles and databases of PostgreSQL."""
        where = f"host=127.0.0.1 port={self.postgres.port} user=postgres dbname=postgres"
        with psycopg.connect(where) as connection:
            roles = connection.execute("SELECT rolname FROM pg_roles").fetchall()
            bases = connection.execute("SELECT datname FROM pg_database").fetchall()
        return {str(one) for (one,) in (*roles, *bases) if not str(one).startswith("pg_")}

    def files(self) -> dict[Path, tuple[bytes, int]]:
        """Return the configuration."""
        return {
            path: (path.read_bytes(), path.stat().st_mode)
            for path in sorted(self.configuration.iterdir())
            if path.is_file()  # Python may write a folder of its own
        }


def backends_user() -> str:
    """Return who runs the tests: it runs the services, too."""
    return pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("quickstart")
    with (
        backends.postgres() as postgres,
        brokers.rabbitmq() as bus,
        unprepared(folder / "simulator", nodes=1, speed=50.0) as cluster,
    ):
        yield Place(folder, postgres, bus, cluster, free_port(8))


@contextlib.contextmanager
def started(lines: list[str], logs: Path) -> Iterator[None]:
    """Run commands as they are printed."""
    logs.mkdir()
    with contextlib.ExitStack() as stack:
        for number, line in enumerate(lines):
            log = stack.enter_context((logs / f"{number}.log").open("wb"))
            process = subprocess.Popen(
                ["bash", "-c", f"exec {line}"],
                cwd=ROOT,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,  # noqa: PLW1509
            )
            stack.callback(process.wait, 120)
            stack.callback(process.terminate)
        yield


def connection(place: Place) -> Any:
    file = place.folder / "var" / "identity" / "clouds.yaml"
    config = openstack.config.OpenStackConfig(config_files=[str(file)], load_envvars=False)
    return openstack.connection.Connection(config=config.get_one("micronova-demo"))


def test_from_nothing_to_a_server_and_back(place: Place) -> None:
    before = place.named()
    said = place.quickstart(code=1)[1]
    assert said.startswith("Name a Proxmox VE cluster")
    shown, _ = place.make()
    lines = [
        one
        for one in shown.splitlines()
        if one.startswith(("env ", str(Path(sys.executable).parent)))
    ]
    assert len(lines) == 8
    assert {*databases.ROLES} <= place.named()
    files = place.files()
    assert all(
        not mode & stat.S_IRWXO for path, (_, mode) in files.items() if path.suffix == ".conf"
    )
    for name in ("quickstart.json", "owners.conf"):
        assert stat.S_IMODE(files[place.configuration / name][1]) == 0o600
    secrets = json.loads(files[place.configuration / "quickstart.json"][0])["passwords"]
    assert len(set(secrets.values())) == len(secrets)
    with started(lines, place.folder / "log"):
        try:
            shown, _ = place.again("--yes")
        except AssertionError as error:
            tails = [p.read_text()[-1500:] for p in sorted((place.folder / "log").iterdir())]
            raise AssertionError("\n".join([str(error), *tails])) from error
        assert "The cloud is up" in shown
        assert not any(secret in shown for secret in secrets.values())
        assert place.files() == files
        cloud = connection(place)
        network = cloud.network.find_network("vmbr0", ignore_missing=False)
        server = cloud.compute.create_server(
            name="web",
            flavor_id=cloud.compute.find_flavor("m1.small").id,
            image_id=cloud.image.find_image("debian-13").id,
            networks=[{"uuid": network.id}],
        )
        cloud.compute.wait_for_server(server, wait=120)
        audit = (place.folder / "var" / "log" / "audit.log").read_text().splitlines()
        assert "create" in {json.loads(line)["action"] for line in audit}
        _, said = place.quickstart("--remove", code=1)
        assert "1 server is in the database" in said
        assert "Nothing was removed: --yes does it." in said
        assert {"micronova"} <= place.named()
        cloud.compute.delete_server(server)
        cloud.compute.wait_for_delete(server, wait=120)
    place.again("--remove", "--yes")
    assert place.named() == before
    assert {path.name for path in place.files()} == {
        *("compute.conf", "proxmox.token", "proxmox-ca.pem")
    }
    assert not [path for path in (place.folder / "var").iterdir() if path.name != "clusters"]
    assert place.quickstart("--remove", "--yes")[1] == "Nothing was made here.\n"


def machine_of(place: Place) -> Machine:
    return Machine(
        place.folder / "again",
        place.folder / "again-var",
        *(backends_user(), "127.0.0.1", Ports.at(place.port)),
        *(f"postgresql://postgres@127.0.0.1:{place.postgres.port}", place.bus),
    )


def test_what_was_interrupted_is_completed_or_removed(place: Place) -> None:
    before, machine = place.named(), machine_of(place)
    machine.folder.mkdir()
    (machine.folder / "compute.conf").write_text("")
    steps_made = ["databases", "message bus", "certificate", "configuration", "tables"]

    def until(last: str) -> Callable[[str], None]:
        def say(step: str) -> None:
            if step == last:
                raise Interrupted(step)

        return say

    for last in (*steps_made, "commands"):
        with pytest.raises(Interrupted, match=last):
            steps.make(steps.check(machine), "none", until(last))
    first = {path.name: path.read_text() for path in machine.folder.iterdir()}
    lines = steps.make(steps.check(machine), "none", until("never"))
    assert len(lines) == 8
    assert first == {path.name: path.read_text() for path in machine.folder.iterdir()}
    with pytest.raises(Interrupted):
        steps.remove(steps.check(machine), "none", until("databases"))
    steps.remove(steps.check(machine), "none", until("never"))
    assert place.named() == before
    assert [path.name for path in machine.folder.iterdir()] == ["compute.conf"]
    # after each of the steps, too
    for last in steps_made:
        with pytest.raises(Interrupted):
            steps.make(steps.check(machine), "none", until(last))
        steps.remove(steps.check(machine), "none", until("never"))
        assert place.named() == before


def test_a_cloud_whose_database_is_gone_can_be_removed(place: Place) -> None:
    before = place.named()
    place.configuration.mkdir(exist_ok=True)
    memory = Memory(dataclasses.replace(machine_of(place), folder=place.configuration))
    databases.make(memory)
    place.postgres.execute("DROP DATABASE micronova")
    place.quickstart("--remove", "--yes")
    assert place.named() == before
    assert "quickstart.json" not in {path.name for path in place.files()}


def test_services_change_rows_and_no_tables_also_where_they_were_owners(place: Place) -> None:
    before, machine = place.named(), machine_of(place)
    machine.folder.mkdir(exist_ok=True)
    (machine.folder / "compute.conf").write_text("")
    memory = steps.check(machine)
    steps.make(memory, "none", lambda step: None)
    # as 1.0.0 left it
    for role, name in (("micronova_conductor", "micronova"), ("micronova_placement", "placement")):
        place.postgres.execute(f"DROP OWNED BY {role}", database=name)
        place.postgres.execute(f"DROP ROLE {role}")
        memory.remove(f"role {role}")
        del memory.passwords[role]
    memory.remove("file owners.conf")
    (machine.folder / "owners.conf").unlink()
    memory.store()
    for _ in range(2):
        steps.make(steps.check(machine), "none", lambda step: None)
    memory = steps.check(machine)
    for role, name in (("micronova_conductor", "micronova"), ("micronova_placement", "placement")):
        text = (machine.folder / f"{role.replace('micronova_', '')}.conf").read_text()
        assert databases.url(memory, role, name) in text
        assert memory.passwords[name] not in text
        with connected(memory, role, name) as connection:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("CREATE TABLE mine_too (one integer)")
        with connected(memory, role, name) as connection:
            connection.execute("SELECT version_num FROM alembic_version")
    steps.remove(memory, "none", lambda step: None)
    assert place.named() == before


def connected(memory: Memory, role: str, database: str) -> psycopg.Connection[Any]:
    return psycopg.connect(databases.url(memory, role, database).replace("+psycopg", ""))


class Interrupted(Exception):
    """Ctrl-C."""


def test_the_broker_gets_a_user_for_each_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = (tmp_path, tmp_path, backends_user(), "127.0.0.1", Ports())
    with brokers.broker() as broker:
        monkeypatch.setenv("PATH", f"{broker.program(tmp_path).parent}:{os.environ['PATH']}")
        before = held(broker)
        memory = Memory.read(Machine(*where))
        bus.check(memory)
        bus.make(memory)
        users = {senders.user_of(role, bus.worker(memory)) for role in permissions.ROLES}
        listed = broker.control(["--quiet", "list_users", "--no-table-headers"])
        assert {line.split()[0] for line in listed.splitlines()} == {*users, "micronova"}
        port = broker.url.rpartition(":")[2]
        urls = {role: bus.url(memory, role).replace("5672/", port) for role in permissions.ROLES}
        for url in urls.values():
            with amqp_to(url) as connection, connection.channel() as opened:
                with pytest.raises(amqp.exceptions.AccessRefused):
                    opened.queue_declare("anything")
        served(urls)
        assert {
            "queue conductor",
            f"queue scheduler.{socket.gethostname()}",
            "exchange openstack",
        } <= held(broker)
        again = Memory.read(Machine(tmp_path / "other", *where[1:]))
        with pytest.raises(ConfigurationError, match="was not made here"):
            bus.check(again)
        assert bus.remove(memory) == []
        assert held(broker) == before
        assert memory.made == []


#: what another application has, or makes later
OTHERS = ("conductor", "notifications.info", "conductor.elsewhere")


def test_what_others_have_at_the_broker_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = (tmp_path, tmp_path, backends_user(), "127.0.0.1", Ports())
    with brokers.broker() as broker, amqp_to(broker.url) as theirs:
        monkeypatch.setenv("PATH", f"{broker.program(tmp_path).parent}:{os.environ['PATH']}")
        channel = theirs.channel()
        channel.exchange_declare("openstack", "topic", auto_delete=False)
        for name in OTHERS[:2]:
            channel.queue_declare(name, durable=True, auto_delete=False)
        before = held(broker)
        memory = Memory.read(Machine(*where))
        bus.make(memory)
        channel.queue_declare(OTHERS[2], durable=True, auto_delete=False)
        channel.queue_bind(OTHERS[2], "openstack", OTHERS[2])
        channel.basic_consume(OTHERS[2])
        channel.queue_declare("scheduler", durable=True, auto_delete=False)
        assert bus.remove(memory) == [f"queue {OTHERS[2]}"]
        assert held(broker) == before | {f"queue {OTHERS[2]}"}


def test_at_a_given_broker_the_queues_that_last_are_removed(tmp_path: Path) -> None:
    with brokers.broker() as broker:
        before = held(broker)
        machine = Machine(
            *(tmp_path, tmp_path, backends_user(), "127.0.0.1", Ports(), ""), broker.url
        )
        memory = Memory.read(machine)
        bus.make(memory)
        memory.add("file conductor.conf")
        served(dict.fromkeys(permissions.ROLES, broker.url))
        assert bus.remove(memory) == []
        assert held(broker) == before


def amqp_to(url: str) -> Any:
    return kombu.Connection(url.replace("rabbit:", "amqp:"))


def held(broker: brokers.Broker) -> set[str]:
    """Return the queues, exchanges and users of a broker."""
    return {
        f"{kind} {line.split()[0]}"
        for kind in ("queue", "exchange", "user")
        for line in broker.control(["--quiet", f"list_{kind}s", "--no-table-headers"]).splitlines()
        if line.strip() and not line.startswith("\t")
    }


def served(urls: Mapping[str, str]) -> None:
    """Let each kind of service listen on its topics, and end."""
    for role, does in permissions.ROLES.items():
        conf = cfg.ConfigOpts()
        rpc.register(conf)
        conf([])
        conf.set_override("transport_url", urls[role])
        transport = rpc.transport(conf)
        servers = [rpc.Server(transport, topic, socket.gethostname(), []) for topic in does.serves]
        for server in servers:
            server.start()
        with ThreadPoolExecutor() as at_once:
            list(at_once.map(rpc.Server.stop, servers))
        transport.cleanup()


def test_a_person_is_asked(place: Place) -> None:
    words = [sys.executable, "-m", "micronova", "quickstart", "--services", "none"]
    words += ["--folder", str(place.folder / "asked"), "--state-dir", str(place.folder / "av")]
    words += ["--user", backends_user(), "--port", str(place.port)]
    named = {
        "MICRONOVA_POSTGRES": f"postgresql://postgres@127.0.0.1:{place.postgres.port}",
        "MICRONOVA_RABBITMQ": place.bus,
    }
    before = place.named()
    answers = [
        ("[https://pve1.example.org:8006]: ", place.cluster.url),
        ("Make all of it? [y/N] ", "y"),
        ("Password of root@pam: ", place.cluster.password),
        ("(Node, Certificates)? [y/N] ", "y"),
        ("Make all of it? [y/N] ", "n"),
    ]
    with unprepared(place.folder / "fresh", nodes=1) as fresh:
        answers[0] = (answers[0][0], fresh.url)
        answers[2] = (answers[2][0], fresh.password)
        code, shown = at_a_terminal(words, answers, named)
        assert (code, fresh.writes()) == (1, [])
    assert "Nothing was made here: the clusters are not prepared." in shown
    assert place.named() == before


def test_what_is_not_ours_is_left_alone(place: Place) -> None:
    place.configuration.mkdir(exist_ok=True)
    (place.configuration / "api.conf").write_text("[DEFAULT]\n")
    _, said = place.quickstart("--yes", place.cluster.url, code=1)
    assert said == f"{place.configuration}/api.conf was not made here, and is left alone.\n"
    (place.configuration / "api.conf").unlink()
    place.postgres.execute("CREATE ROLE placement LOGIN")
    try:
        _, said = place.quickstart("--yes", place.cluster.url, code=1)
        assert (
            said == "PostgreSQL has a role placement that was not made here; it is left alone.\n"
        )
    finally:
        place.postgres.execute("DROP ROLE placement")
    assert not (place.configuration / "quickstart.json").exists()


def test_what_is_missing_is_said_first(place: Place) -> None:
    nobody = f"postgresql://postgres@127.0.0.1:{free_port()}"
    _, said = place.quickstart("--yes", place.cluster.url, "--postgres", nobody, code=1)
    assert said.startswith("PostgreSQL: ")
    _, said = place.quickstart("--yes", place.cluster.url, "--user", "nobody-there", code=1)
    assert said.startswith("There is no user nobody-there: useradd --system")
    assert shlex.split(said.partition(": ")[2])[:2] == ["useradd", "--system"]
