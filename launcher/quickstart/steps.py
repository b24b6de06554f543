"""The order in which a cloud on one machine is made, looked at, and removed."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import requests

from common.clients import direct
from common.databases.migrations import Phase
from common.errors import ConfigurationError
from common.findings import Finding
from launcher import configuration as options
from launcher import databases as schemas
from launcher import doctor, files
from launcher.quickstart import bus, certificates, configuration, databases, polling, processes
from launcher.quickstart.machine import SHARED_MODE, Machine
from launcher.quickstart.memory import Memory

Say = Callable[[str], None]

#: for each service, once the one before answers: more than systemd gives it (TimeoutStartSec)
_START_SECONDS = 330.0
_POLL_SECONDS = 1.0
_GUNICORN = "gunicorn.conf.py"


def check(machine: Machine) -> Memory:
    """Return what was made before. Raises ConfigurationError for what is in the way."""
    machine.check()
    memory = Memory.read(machine)
    others = [
        name
        for name in (*configuration.NAMES, _GUNICORN)
        if (machine.folder / name).exists() and not memory.has(f"file {name}")
    ]
    theirs = [name for name in others if name != _GUNICORN]
    if theirs:
        raise ConfigurationError(
            f"{machine.folder / theirs[0]} was not made here, and is left alone."
        )
    databases.check(memory)
    bus.check(memory)
    return memory


def plan(memory: Memory, manager: str) -> Iterator[str]:
    """Yield lines about what is made here."""
    machine = memory.machine
    yield f"PostgreSQL: databases {', '.join(databases.DATABASES)}; roles " + ", ".join(
        databases.ROLES
    )
    yield "RabbitMQ: " + ("the given user" if machine.rabbitmq else "a user for each service")
    yield f"Configuration, passwords and a certificate in {machine.folder}"
    yield f"Keystone, image uploads and sessions in {machine.state}"
    how = {"none": "nobody here: commands are printed"}.get(manager, manager)
    yield f"Services, started by {how}: {', '.join(processes.SERVICES)}"


def make(memory: Memory, manager: str, say: Say) -> list[str]:
    """Make all of it; return what a person is to start. Raises ConfigurationError."""
    machine = memory.machine
    say("databases")
    databases.make(memory)
    say("message bus")
    bus.make(memory)
    machine.make_folders()
    say("certificate")
    for name in certificates.NAMES:
        memory.add(f"file {name}")
    changed = certificates.make(machine)
    say("configuration")
    changed += configuration.write(memory)
    if not (machine.folder / _GUNICORN).exists():
        memory.add(f"file {_GUNICORN}")
        text = dict(files.texts())[Path(_GUNICORN)]
        machine.write(_GUNICORN, text, SHARED_MODE | 0o004)
    say("tables")
    owners = str(machine.folder / configuration.OWNERS)
    conf = options.load([*configuration.of_the_doctor(machine), owners])
    # Services of a release before may run: docs/upgrade.md says how the rest follows.
    schemas.upgrade(conf, phases=(Phase.EXPAND,))
    for option, role in databases.GRANTS.items():
        schemas.grant(conf, option, role)
    say(f"services, by {manager}" if manager != "none" else "commands")
    return processes.start(memory, manager, changed)


def wait(machine: Machine) -> None:
    """Return once all APIs answer. Raises ConfigurationError where one doesn't in time."""
    ports = machine.ports
    urls = [
        f"{machine.url(ports.identity)}/v3",
        machine.url(ports.placement),
        f"{machine.url(ports.public)}/compute/",
        f"{machine.url(ports.dashboard)}/",
    ]
    with direct.session() as session:
        for url in urls:
            look = functools.partial(_answers, session, url)
            if not any(polling.looks(look, _START_SECONDS, _POLL_SECONDS)):
                raise ConfigurationError(f"{url} doesn't answer; see the services' logs.")


def _answers(session: requests.Session, url: str) -> bool:
    try:
        return session.get(url, timeout=10, allow_redirects=False).status_code < 500
    except requests.exceptions.RequestException:
        return False


def diagnose(machine: Machine) -> tuple[list[str], tuple[Finding, ...]]:
    """Examine what is configured, as the doctor does."""
    conf = options.load(configuration.of_the_doctor(machine))
    options.register_clusters(conf)
    found = doctor.diagnose(conf)
    return list(found.lines), found.findings


def remove(memory: Memory, manager: str, say: Say) -> None:
    """Stop the services and remove all that was made here, the clusters' part left alone."""
    machine = memory.machine
    say("services")
    processes.stop(memory, manager)
    say("message bus")
    if left := bus.remove(memory):
        say(f"left at RabbitMQ, as it is in use: {', '.join(left)}")
    say("databases")
    databases.remove(memory)
    say("files")
    for name in ("identity", "dashboard", "spool", "log"):
        shutil.rmtree(machine.state / name, ignore_errors=True)
    for name in memory.of("file"):
        (machine.folder / name).unlink(missing_ok=True)
    memory.forget()
