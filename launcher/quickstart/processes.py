"""The services, started by who runs services on this machine.

Their units are the source for all: supervisord gets the same commands, and so does a person where
there is neither.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from common.errors import ConfigurationError
from launcher import files
from launcher.quickstart.machine import Machine
from launcher.quickstart.memory import Memory

SERVICES = (
    "micronova-identity",
    "micronova-api@placement",
    "micronova-api@public",
    "micronova-conductor",
    "micronova-scheduler",
    "micronova-compute",
    "micronova-console",
    "micronova-dashboard",
)
"""In the order of their starts."""

KINDS = ("systemd", "supervisord", "none")
_UNITS = Path("/etc/systemd/system")
_PACKAGED = (Path("/usr/lib/systemd/system"), Path("/lib/systemd/system"))
_SUPERVISOR = Path("/etc/supervisor/conf.d")
_LOGS = Path("/var/log/supervisor")
_NAME = "micronova.conf"
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def check(machine: Machine, manager: str) -> None:
    """Raise ConfigurationError where the units name other folders or another user."""
    if manager == "systemd" and (machine.folder, machine.state, machine.user) != (
        Path("/etc/micronova"),
        Path("/var/lib/micronova"),
        "micronova",
    ):
        raise ConfigurationError(
            "The units of systemd are for the user micronova, /etc/micronova and "
            "/var/lib/micronova: leave out --user, --folder and --state-dir, or add "
            "--services none."
        )


def kind() -> str:
    """Return which of ``KINDS`` runs services here."""
    if Path("/run/systemd/system").is_dir():
        return "systemd"
    if _SUPERVISOR.is_dir() and shutil.which("supervisorctl"):
        return "supervisord"
    return "none"


@dataclass(frozen=True)
class Program:
    """A service, as its unit describes it."""

    name: str
    words: tuple[str, ...]
    environment: Mapping[str, str]
    stop_seconds: int

    @property
    def title(self) -> str:
        """Its name without what has a meaning for supervisord."""
        return self.name.replace("@", "-")

    def line(self, user: str) -> str:
        """Return what starts it in the foreground, as root."""
        changed = [f"{key}={value}" for key, value in self.environment.items()]
        words = [*(["env", *changed] if changed else []), *self.words]
        return shlex.join([*(["runuser", "-u", user, "--"] if user else []), *words])


def programs(machine: Machine) -> Iterator[Program]:
    """Yield the services with their commands."""
    texts = {path.name: text for path, text in files.texts() if path.parent.name == "systemd"}
    for name in SERVICES:
        template, at, instance = name.partition("@")
        text = texts[f"{template}{at}.service"].replace("%i", instance)
        text = text.replace("/etc/micronova", str(machine.folder))
        pairs = [line.partition("=")[::2] for line in text.splitlines() if "=" in line]
        found = dict(_environment(machine, pairs))
        [command] = [value for key, value in pairs if key == "ExecStart"]
        for variable in _VARIABLE.findall(command):
            command = command.replace(f"${{{variable}}}", found[variable])
        seconds = next(int(value) for key, value in pairs if key == "TimeoutStopSec")
        yield Program(name, tuple(shlex.split(command)), found, seconds)


def _environment(machine: Machine, pairs: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for key, value in pairs:
        if key == "Environment":
            yield from (one.partition("=")[::2] for one in shlex.split(value))
        elif key == "EnvironmentFile":
            path = Path(value.removeprefix("-"))
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            yield from (one.partition("=")[::2] for one in shlex.split(text, comments=True))


def start(memory: Memory, manager: str, changed: Iterable[str]) -> list[str]:
    """Start all, again those whose files have changed; return what a person is to run.

    Raises ConfigurationError where one doesn't start.
    """
    if manager == "systemd":
        return _by_systemd(memory, bool(list(changed)))
    if manager == "supervisord":
        return _by_supervisord(memory, bool(list(changed)))
    user = "" if os.geteuid() == memory.machine.uid else memory.machine.user
    return [one.line(user) for one in programs(memory.machine)]


def stop(memory: Memory, manager: str) -> None:
    """Stop all, and remove what starts them."""
    if manager == "systemd":
        _run("systemctl", "disable", "--now", *SERVICES, check=False)
        for name in memory.of("unit"):
            (_UNITS / name).unlink(missing_ok=True)
            memory.remove(f"unit {name}")
        _run("systemctl", "daemon-reload")
    elif manager == "supervisord" and (_SUPERVISOR / _NAME).exists():
        (_SUPERVISOR / _NAME).unlink()
        _run("supervisorctl", "update")
        for one in programs(memory.machine):
            for log in _LOGS.glob(f"{one.title}.log*"):
                log.unlink(missing_ok=True)


def _by_systemd(memory: Memory, again: bool) -> list[str]:
    for path, text in files.texts():
        packaged = any((folder / path.name).exists() for folder in _PACKAGED)
        if path.parent.name != "systemd" or packaged:
            continue
        memory.add(f"unit {path.name}")
        unit = _UNITS / path.name
        again = again or (unit.exists() and unit.read_text(encoding="utf-8") != text)
        unit.write_text(text, encoding="utf-8")
    _run("systemctl", "daemon-reload")
    _run("systemctl", "enable", "--quiet", *SERVICES)
    _run("systemctl", "restart" if again else "start", *SERVICES)
    return []


def _by_supervisord(memory: Memory, again: bool) -> list[str]:
    machine = memory.machine
    sections = [_section(machine, one) for one in programs(machine)]
    names = ",".join(one.title for one in programs(machine))
    text = "\n".join([*sections, f"[group:micronova]\nprograms={names}\n"])
    (_SUPERVISOR / _NAME).write_text(text, encoding="utf-8")
    _run("supervisorctl", "update")
    if again:
        _run("supervisorctl", "restart", "micronova:*")
    return []


def _section(machine: Machine, one: Program) -> str:
    # supervisord takes a % for the beginning of an expression
    pairs = ",".join(f'{key}="{value}"' for key, value in one.environment.items())
    return "\n".join(
        [
            f"[program:{one.title}]",
            f"command={shlex.join(one.words)}".replace("%", "%%"),
            f"user={machine.user}",
            f"environment={pairs}".replace("%", "%%"),
            f"directory={machine.state}",
            "autorestart=true",
            "startretries=60",
            f"stopwaitsecs={one.stop_seconds}",
            # gunicorn's and Keystone's workers end with their masters
            "redirect_stderr=true",
            f"stdout_logfile={_LOGS / one.title}.log",
            "",
        ]
    )


def _run(*words: str, check: bool = True) -> None:
    done = subprocess.run(list(words), capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode and check:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise ConfigurationError(f"{shlex.join(words)}: {said[0] if said else done.returncode}")
