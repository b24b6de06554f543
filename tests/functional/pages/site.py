"""A site that the pages' own lines make: a cluster, its token, a worker, a cloud with settings."""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from common.process.child import ROOT, die_with_parent
from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.functional.pages.prepared import (
    FIREWALL,
    MISSING,
    OPTIONAL,
    SIMULATOR,
    TOGETHER,
    TOKEN,
    TOKEN_FILE,
    UP,
    VNETS,
    WORKER,
    ZONE,
)
from tests.functional.pages.reading import Desk, Reading, settings
from tests.functional.waiting import eventually


class Site:
    """The cluster, and what of it only a running test knows."""

    def __init__(self, folder: Path, **facts: str) -> None:
        self.folder = folder
        home = folder / "home"
        (home / ".venv").mkdir(parents=True)
        (home / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
        self.desk = Desk(home)
        self._facts = facts | {
            "python": sys.executable,
            "simulator": str(folder / "simulator"),
            "etc": str(folder / "etc"),
            "bin": str(Path(sys.executable).parent),
        }
        (folder / "etc").mkdir()
        self.cloud: EmbeddedCloud

    def filled(self, text: str) -> str:
        """Return a text with what is known."""
        for name, value in self._facts.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    def run(self, reading: Reading, environment: Mapping[str, str] | None = None) -> None:
        """Carry out a reading; each command must succeed."""
        for command in reading.commands():
            printed = self.desk.run(self.filled(command), environment or {}, reading.typed)
            if '"value"' in printed:  # the secret of a token is shown once
                self._facts["secret"] = json.loads(printed)["value"]

    @contextlib.contextmanager
    def cluster(self) -> Iterator[None]:
        """Run the simulator as its page says."""
        [text] = SIMULATOR.texts()
        command = self.filled(" ".join(text.split()))
        process = subprocess.Popen(["bash", "-c", command], cwd=ROOT, preexec_fn=die_with_parent)  # noqa: PLW1509
        try:
            listed = self.folder / "simulator" / "endpoints.json"
            eventually(lambda: listed.exists() or process.poll() is not None)
            [one] = json.loads(listed.read_text())
            self._facts |= one["node_urls"]
            self.desk.on_a_node(one["url"], self.folder / "simulator")
            yield
        finally:
            process.terminate()
            process.wait(10)

    def prepare(self) -> None:
        """Make user, roles and token, and a worker's configuration, in which nothing is wrong."""
        authority = (self.folder / "simulator" / "ca.pem").read_text()
        ours = self.desk.home / ".config" / "micronova" / "proxmox-ca.pem"
        for file in (self.folder / "etc" / "pve-root-ca.pem", ours):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(authority)
        for reading in (TOKEN, TOKEN_FILE, FIREWALL):
            self.run(reading)
        [text] = WORKER.texts()
        file = self.folder / "etc" / "micronova.conf"
        file.touch(0o600)
        file.write_text(self.filled(text))
        found = self.desk.run(f"micronova doctor --json --config-file {file}", {})
        listed = json.loads(found)["findings"]
        assert {one["code"] for one in listed} == {"privilege_optional"}, listed
        self.run(OPTIONAL)
        self.run(ZONE)
        [text] = VNETS.texts()
        file.write_text(f"{file.read_text()}\n{text}")
        self.run(MISSING)

    @contextlib.contextmanager
    def running(self) -> Iterator[EmbeddedCloud]:
        """Run a cloud on it, as the page says, with the settings that pages print."""
        state = self.folder / "state"
        # tests/functional/cli/test_first_real_server.py runs both lines on a cluster as installed
        [text] = UP.texts()
        text = text.splitlines()[-1]
        words = ["--state-dir", str(state), "--port", "0"]
        for reading in TOGETHER:
            for one in reading.texts():
                words += [word for line in settings(one) for word in ("--set", line)]
        line = self.filled(f"{text.strip()} {shlex.join(words)}")
        argv = ["env", f"HOME={self.desk.home}", "bash", "-c", line]
        with embedded_cloud(state, argv=argv) as self.cloud:
            yield self.cloud
