"""systemd's part in a deployment: units of a folder, started, reloaded and stopped by name.

It does what the units of `etc/systemd` ask for, but for the switch to another user and the
confinement, which take a real systemd: it starts `ExecStart=` with the environment that the unit
describes and nothing else, waits for READY=1 and stops the main process first, as
`KillMode=mixed` says.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shlex
import signal
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from common.process.child import die_with_parent
from tests.fixtures.units import CONFINEMENT

START_SECONDS = 240
#: what of a unit needs root, the kernel or another service, and what is about time
BEYOND = frozenset(
    {"User", "Restart", "RestartSec", "StateDirectoryMode", "TimeoutStartSec"} | CONFINEMENT
)
_READ = frozenset(
    {
        *("Type", "ExecStart", "ExecReload", "Environment", "EnvironmentFile", "StateDirectory"),
        *("KillMode", "TimeoutStopSec"),
    }
)
_VARIABLE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True)
class Unit:
    """The part `[Service]` of a unit, its name's instance put in."""

    name: str
    lines: tuple[tuple[str, str], ...]

    def values(self, key: str) -> list[str]:
        """Return the values of a key that may stand several times."""
        return [value for name, value in self.lines if name == key]

    def value(self, key: str) -> str:
        """Return the value of a key that stands once."""
        [found] = self.values(key)
        return found

    def environment(self) -> dict[str, str]:
        """Return `Environment=` and what the files of `EnvironmentFile=` say, which win."""
        found: list[str] = []
        for value in self.values("Environment"):
            found += shlex.split(value)
        for value in self.values("EnvironmentFile"):
            path = Path(value.removeprefix("-"))
            if path.exists() or not value.startswith("-"):
                found += shlex.split(path.read_text(encoding="utf-8"), comments=True)
        return dict(one.split("=", 1) for one in found)


def read_unit(path: Path, instance: str, placed: Callable[[str], str]) -> Unit:
    """Return the unit in a file; every key of `[Service]` must be known here."""
    text = placed(path.read_text(encoding="utf-8")).replace("%i", instance)
    section = text.partition("[Service]\n")[2].partition("\n[")[0]
    pairs = [line.partition("=") for line in section.splitlines() if line and line[0] != "#"]
    lines = tuple((key, value) for key, _, value in pairs)
    assert {key for key, _ in lines} <= BEYOND | _READ, path
    unit = Unit(path.name.replace("@", f"@{instance}"), lines)
    assert (unit.value("Type"), unit.value("KillMode")) == ("notify", "mixed"), path
    return unit


class Systemd:
    """The units of a folder, and those of them that run."""

    def __init__(self, folder: Path, logs: Path, placed: Callable[[str], str]) -> None:
        """`placed` puts this machine's paths into a unit's text; output is in `logs`."""
        self.logs = logs
        self._folder, self._placed = folder, placed
        self._running: dict[str, tuple[Unit, subprocess.Popen[bytes]]] = {}
        self._notified: dict[str, _Notifications] = {}

    def systemctl(self, *words: str) -> None:
        """Do what `systemctl enable --now`, `reload`, `restart` or `stop` of some units does."""
        verb = " ".join(word for word in words if word.startswith("-") or word == words[0])
        acts = {"enable --now": self._start, "reload": self._reload, "stop": self._stop}
        act = {**acts, "restart": self._restart}[verb]
        for name in words[verb.count(" ") + 1 :]:
            act(name)

    @property
    def running(self) -> list[str]:
        """The units that run."""
        return list(self._running)

    def stop_all(self) -> None:
        """Stop all that run, asking all of them at first."""
        for _, process in self._running.values():
            process.terminate()
        with contextlib.ExitStack() as stack:
            for name in list(self._running):
                stack.callback(self._await_end, name)

    def _unit(self, name: str) -> Unit:
        template, at, instance = name.partition("@")
        return read_unit(self._folder / f"{template}{at}.service", instance, self._placed)

    def _start(self, name: str) -> None:
        unit = self._unit(name)
        for folder in unit.values("StateDirectory"):
            Path(self._placed(f"/var/lib/{folder}")).mkdir(0o755, parents=True, exist_ok=True)
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **unit.environment()}
        words = shlex.split(unit.value("ExecStart"))
        words = [_VARIABLE.sub(lambda found: environment[found[1]], word) for word in words]
        notified = self._notified[name] = _Notifications()
        with self._log(name).open("ab") as log:
            process = subprocess.Popen(
                words,
                cwd="/",
                env=environment | {"NOTIFY_SOCKET": notified.address},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509
            )
        if not notified.ready(process):
            self._end(name, process)
            raise AssertionError(f"{name}: {self.log(name)}")
        self._running[name] = (unit, process)

    def _reload(self, name: str) -> None:
        unit, process = self._running[name]
        words = shlex.split(unit.value("ExecReload").replace("$MAINPID", str(process.pid)))
        subprocess.run(words, check=True)

    def _restart(self, name: str) -> None:
        self._stop(name)
        self._start(name)

    def _stop(self, name: str) -> None:
        self._running[name][1].terminate()
        self._await_end(name)

    def _await_end(self, name: str) -> None:
        unit, process = self._running.pop(name)
        try:
            code = process.wait(int(unit.value("TimeoutStopSec")))
        finally:
            self._end(name, process)
        assert code == 0, f"{name} ended with {code}: {self.log(name)}"

    def _end(self, name: str, process: subprocess.Popen[bytes]) -> None:
        """Kill what is left of a unit."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._notified.pop(name).close()

    def _log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def log(self, name: str) -> str:
        """Return the end of what a unit has printed."""
        return self._log(name).read_text(errors="replace")[-3000:]


class _Notifications:
    """NOTIFY_SOCKET of a unit: open as long as the unit runs, as systemd's is."""

    def __init__(self) -> None:
        # An address without a file: a path may be longer than one may be.
        self.address = f"@micronova-{secrets.token_hex(8)}"
        self._channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._channel.bind(f"\0{self.address[1:]}")
        self._channel.settimeout(1)

    def ready(self, process: subprocess.Popen[bytes]) -> bool:
        """Return whether READY=1 comes before the process ends."""
        for _ in range(START_SECONDS):
            with contextlib.suppress(TimeoutError):
                if b"READY=1" in self._channel.recv(4096):
                    return True
            if process.poll() is not None:
                return False
        return False

    def close(self) -> None:
        """Give the address back."""
        self._channel.close()
