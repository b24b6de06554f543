"""A cluster as Proxmox VE's installer leaves it, and a person at a terminal who prepares it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import requests

from common.process.child import ROOT
from simulator.server import Options, Simulator
from tests.fixtures.root_shell import RootShell

SECONDS = 300.0


class Unprepared:
    """The cluster, with its root."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        self.folder = simulator.options.state_dir
        self.ca_file = self.folder / "ca.pem"

    @property
    def url(self) -> str:
        return str(self.simulator.endpoints[0]["url"])

    @property
    def password(self) -> str:
        return self.simulator.password

    def root(self, folder: Path) -> RootShell:
        """Return a root shell on a node; its programs are put in `folder`."""
        return RootShell(self.url, self.ca_file, self.folder / "root-password", folder)

    def calls(self) -> list[str]:
        """Return what was asked since the last look."""
        made = self.control("GET", "calls")
        self.control("DELETE", "calls")
        return [f"{one['method']} {one['path'].removeprefix('/api2/json/')}" for one in made]

    def writes(self) -> list[str]:
        """Return what was to change something since the last look, log-ins left out."""
        return [one for one in self.calls() if not one.startswith("GET ") and one != LOG_IN]

    def access(self) -> Any:
        """Return users, tokens, roles, grants, pools, storages and zones."""
        one = self.simulator.cluster()
        with one.turn():
            users = {
                user.userid: (user.enable, {t.tokenid: t.privsep for t in user.tokens.values()})
                for user in one.access.users.values()
            }
            grants = sorted(
                (g.path, g.ugid, g.type, g.roleid, g.propagate) for g in one.access.grants
            )
            storages = {name: sorted(found.content) for name, found in one.storages.items()}
            return (
                users,
                dict(one.access.roles),
                grants,
                sorted(one.pools),
                storages,
                (sorted(one.sdn.running_zones)),
            )

    def control(self, method: str, path: str, **body: Any) -> Any:
        """Ask the simulator's own API."""
        answer = requests.request(
            method,
            f"{self.url}/_sim/{path}",
            json=body or None,
            verify=str(self.ca_file),
            timeout=30,
        )
        answer.raise_for_status()
        return json.loads(answer.content or b"null")


LOG_IN = "POST access/ticket"


@contextlib.contextmanager
def unprepared(folder: Path, **options: Any) -> Iterator[Unprepared]:
    """Run one until the block ends."""
    given = {"nodes": 2, "speed": 200.0, "tls": True, "unprepared": True} | options
    with Simulator(Options(folder, **given)) as simulator:
        yield Unprepared(simulator)


def micronova(
    words: Sequence[str], typed: str = "", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command without a terminal; `typed` is its standard input."""
    return subprocess.run(
        [sys.executable, "-m", "micronova", *words],
        input=typed,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def at_a_terminal(
    words: Sequence[str], answers: Sequence[tuple[str, str]], environment: Mapping[str, str]
) -> tuple[int, str]:
    """Run a program at a terminal; answer what it asks, in this order.

    :param answers: the end of each question, and what is typed then
    :return: exit code, and all that the terminal has shown
    """
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        words,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        preexec_fn=lambda: os.login_tty(theirs),  # noqa: PLW1509
    )
    os.close(theirs)
    shown, waiting, seen = "", list(answers), 0
    until = time.monotonic() + SECONDS
    try:
        while time.monotonic() < until:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    piece = os.read(ours, 4096)
                except OSError:  # the other end is closed
                    break
                shown += piece.decode(errors="replace")
            if waiting and waiting[0][0] in shown[seen:]:
                seen = len(shown)
                os.write(ours, f"{waiting.pop(0)[1]}\n".encode())
        assert not waiting, f"{waiting[0][0]} wasn't asked: {shown}"
        return process.wait(60), shown
    finally:
        process.kill()
        process.wait()
        os.close(ours)
