"""What a later run of quickstart doesn't name is as it was."""

from __future__ import annotations

import dataclasses
import os
import pwd
from pathlib import Path

import pytest

from common.errors import ConfigurationError
from launcher.quickstart import configuration, place
from launcher.quickstart.machine import Machine, Ports
from launcher.quickstart.memory import Memory

POSTGRES = "postgresql://postgres:x@db.example:6432"
BUS = "rabbit://cloud:a$b@mq1.example:5671,cloud:a$b@mq2.example:5671//"
USER = pwd.getpwuid(os.geteuid()).pw_name


def made(folder: Path, postgres: str = "", rabbitmq: str = "") -> Machine:
    """What is written for a machine with everything at other places than the usual ones."""
    machine = Machine(
        *(folder / "etc", folder / "var", USER, "127.0.0.1", Ports.at(9774)), postgres, rabbitmq
    )
    machine.folder.mkdir()
    (machine.state / "identity").mkdir(parents=True)
    configuration.write(Memory(machine))
    return machine


def test_what_is_not_named_is_as_it_was(tmp_path: Path) -> None:
    machine = made(tmp_path, POSTGRES, BUS)
    assert place.machine(machine.folder, postgres=POSTGRES) == machine
    other = Ports.at(9874), tmp_path / "other", "rabbit://cloud:c@mq3.example:5672/"
    ports, state, rabbitmq = other
    assert place.machine(
        machine.folder, state, "root", ports, POSTGRES, rabbitmq
    ) == dataclasses.replace(machine, state=state, user="root", ports=ports, rabbitmq=rabbitmq)


def test_servers_of_this_machine_are_its_own_again(tmp_path: Path) -> None:
    machine = made(tmp_path)
    assert place.machine(machine.folder) == machine


def test_a_server_whose_superuser_is_not_known_has_to_be_named(tmp_path: Path) -> None:
    machine = made(tmp_path, POSTGRES)
    with pytest.raises(ConfigurationError, match=r"databases are at db.example:6432: name its"):
        place.machine(machine.folder)


def test_what_others_wrote_says_nothing(tmp_path: Path) -> None:
    machine = made(tmp_path, POSTGRES, BUS)
    (machine.folder / "quickstart.json").unlink()
    assert place.machine(machine.folder) == Machine(
        machine.folder, Path("/var/lib/micronova"), "micronova", "127.0.0.1", Ports()
    )


def test_a_run_that_was_interrupted_says_what_it_wrote(tmp_path: Path) -> None:
    machine = made(tmp_path, rabbitmq=BUS)
    for name in ("identity.conf", "conductor.conf"):
        (machine.folder / name).unlink()
    assert place.machine(machine.folder).state == Path("/var/lib/micronova")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    machine = made(tmp_path)
    (machine.folder / "identity.conf").write_text("[identity_service\n")
    with pytest.raises(ConfigurationError, match=r"identity.conf can't be read"):
        place.machine(machine.folder)
