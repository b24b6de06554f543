"""What starts the services of a quickstart: units, supervisord's file, commands."""

from __future__ import annotations

import configparser
import getpass
import os
import shlex
import sys
from pathlib import Path

import pytest

from common.errors import ConfigurationError
from launcher import files
from launcher.quickstart import configuration, processes
from launcher.quickstart.machine import Machine, Ports
from launcher.quickstart.memory import Memory

PROGRAMS = Path(sys.executable).parent


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """A machine whose configuration is written."""
    machine = Machine(
        *(tmp_path / "etc", tmp_path / "var", getpass.getuser(), "127.0.0.1"),
        *(Ports(), "postgresql://postgres@127.0.0.1", "rabbit://u:p@127.0.0.1:5672/"),
    )
    machine.make_folders()
    made = Memory(machine)
    configuration.write(made)
    return made


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs that write down how they are called, and folders of this test."""
    bin_, log = tmp_path / "bin", tmp_path / "called"
    bin_.mkdir()
    for name in ("systemctl", "supervisorctl"):
        (bin_ / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{log}\n')
        (bin_ / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
    for name in ("_UNITS", "_SUPERVISOR", "_LOGS"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(processes, name, tmp_path / name)
    monkeypatch.setattr(processes, "_PACKAGED", ())
    return log


def units() -> dict[str, str]:
    return {path.name: text for path, text in files.texts() if path.parent.name == "systemd"}


def test_each_command_is_its_units_with_the_files_of_the_machine(memory: Memory) -> None:
    found = {one.name: one for one in processes.programs(memory.machine)}
    assert tuple(found) == processes.SERVICES
    folder = memory.machine.folder
    assert found["micronova-conductor"].words == (
        *(f"{PROGRAMS}/micronova", "service", "conductor"),
        *(
            "--config-file",
            f"{folder}/micronova.conf",
            "--config-file",
            f"{folder}/conductor.conf",
        ),
    )
    public = found["micronova-api@public"]
    assert public.words[-1] == "micronova.wsgi:public"
    assert public.words[public.words.index("--bind") + 1] == "127.0.0.1:8774"
    assert public.environment["MICRONOVA_CONFIG"] == (f"{folder}/micronova.conf:{folder}/api.conf")
    assert found["micronova-api@placement"].words[4:5] == ("127.0.0.1:8778",)
    written = {path.name for path in folder.iterdir()} | {
        configuration.CLUSTERS,
        "gunicorn.conf.py",
    }
    for one in found.values():
        named = [word for word in one.words if word.startswith(str(folder))]
        named += one.environment.get("MICRONOVA_CONFIG", "").split(":")
        assert {Path(name).name for name in named if name} <= written


def test_systemd_gets_units_and_is_asked_in_order(memory: Memory, called: Path) -> None:
    assert processes.start(memory, "systemd", []) == []
    names = " ".join(processes.SERVICES)
    assert called.read_text().splitlines() == [
        "systemctl daemon-reload",
        f"systemctl enable --quiet {names}",
        f"systemctl start {names}",
    ]
    kept = {path.name: path.read_text() for path in processes._UNITS.iterdir()}
    assert kept == units()
    for name in processes.SERVICES:
        template, at, _ = name.partition("@")
        assert f"{template}{at}.service" in kept
    called.unlink()
    processes.start(memory, "systemd", ["api.conf"])
    assert called.read_text().splitlines()[-1] == f"systemctl restart {names}"
    # of a release before
    (processes._UNITS / "micronova-conductor.service").write_text("[Unit]\n")
    for begins in ("restart", "start"):
        processes.start(memory, "systemd", [])
        assert called.read_text().splitlines()[-1] == f"systemctl {begins} {names}"
    processes.stop(memory, "systemd")
    assert list(processes._UNITS.iterdir()) == []
    assert called.read_text().splitlines()[-2:] == [
        f"systemctl disable --now {names}",
        "systemctl daemon-reload",
    ]


def test_units_of_the_package_are_not_written_again(
    memory: Memory, called: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write(tmp_path / "usr")
    monkeypatch.setattr(processes, "_PACKAGED", (tmp_path / "usr" / "systemd",))
    processes.start(memory, "systemd", [])
    assert list(processes._UNITS.iterdir()) == []
    assert memory.of("unit") == []


def test_supervisord_gets_the_same_commands(memory: Memory, called: Path) -> None:
    processes.start(memory, "supervisord", [])
    assert called.read_text() == "supervisorctl update\n"
    read = configparser.RawConfigParser()
    read.read(processes._SUPERVISOR / "micronova.conf")
    for one in processes.programs(memory.machine):
        section = read[f"program:{one.title}"]
        assert tuple(shlex.split(section["command"])) == one.words
        assert section["user"] == getpass.getuser()
    assert read["group:micronova"]["programs"].count(",") == len(processes.SERVICES) - 1
    (processes._LOGS / "micronova-conductor.log").touch()
    processes.stop(memory, "supervisord")
    assert list(processes._SUPERVISOR.iterdir()) == list(processes._LOGS.iterdir()) == []


def test_what_a_manager_refuses_is_said(memory: Memory, called: Path, tmp_path: Path) -> None:
    (tmp_path / "bin" / "systemctl").write_text("#!/bin/sh\necho Failed to x >&2; exit 1\n")
    with pytest.raises(ConfigurationError, match=r"^systemctl daemon-reload: Failed to x$"):
        processes.start(memory, "systemd", [])


@pytest.mark.parametrize("folder", ["/etc/micronova", "/etc/other"])
def test_the_units_folders_are_theirs(folder: str) -> None:
    state = Path("/var/lib/micronova")
    machine = Machine(Path(folder), state, "micronova", "127.0.0.1", Ports())
    processes.check(machine, "supervisord")
    if folder == "/etc/micronova":
        processes.check(machine, "systemd")
    else:
        with pytest.raises(ConfigurationError, match="leave out --user"):
            processes.check(machine, "systemd")
