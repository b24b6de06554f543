"""An unmodified Heat beside a cloud, as docs/heat.md says: APIs, an engine, and what they need."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import requests

from tests.fixtures import heat_page
from tests.fixtures.heat_page import Printed
from tests.functional import backends, brokers
from tests.functional.cloud import EmbeddedCloud, eventually
from tests.pages import block, placed, without

#: the program `python` of the environment that has Heat
PYTHON = Path(os.environ.get("MICRONOVA_TEST_HEAT") or "/nonexistent")


@dataclass(frozen=True)
class Heat:
    """A running Heat."""

    cloud: EmbeddedCloud
    folder: Path
    places: Mapping[str, str]

    def run(self, text: str, who: str = "micronova-demo") -> str:
        """Run lines of a shell as a user of the cloud; return what they print."""
        path = os.pathsep.join((str(self.folder), str(PYTHON.parent), os.environ["PATH"]))
        done = subprocess.run(
            ["bash", "-ec", placed(text, self.places)],
            env=self.cloud.environment(who) | {"HOME": str(self.folder), "PATH": path},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{text}: {done.stdout}{done.stderr}{self.logs()}"
        return done.stdout

    def printed(self, which: Printed) -> str:
        """Return what the page prints, in this machine's places."""
        return placed(block(*which), self.places)

    def logs(self) -> str:
        """Return the ends of what its processes printed."""
        files = sorted(self.folder.glob("*.log"))
        return "".join(f"\n--- {file.name}\n{file.read_text()[-3000:]}" for file in files)


@contextlib.contextmanager
def running_heat(cloud: EmbeddedCloud, folder: Path) -> Iterator[Heat]:
    """Run Heat until the block ends."""
    with backends.postgres() as postgres, brokers.broker() as broker:
        broker.program(folder)
        heat = Heat(cloud, folder, _places(cloud, folder, postgres.port, broker.port))
        postgres.execute(*heat.printed(heat_page.SQL).rstrip(";\n").split(";\n"))
        heat.run(without(block(*heat_page.INSTALL), heat_page.COMMANDS_NOT_RUN))
        heat.run(block(*heat_page.BUS))
        heat.run(block(*heat_page.KEYSTONE), "micronova-admin")
        for name, which in heat_page.FILES.items():
            (folder / ".heat" / name).write_text(heat.printed(which), encoding="utf-8")
        heat.run(block(*heat_page.SCHEMA))
        with contextlib.ExitStack() as stack:
            for line in heat.printed(heat_page.START).splitlines():
                _start(stack, line, folder)
            # what an API asks before is lost, and answered 500 a minute later
            eventually(lambda: _listens(broker), backends.START_SECONDS, 0.5)
            yield heat


def _start(stack: contextlib.ExitStack, line: str, folder: Path) -> None:
    """Start one of the processes; an API answers then."""
    name = next(one for one in ("api", "cfn", "engine") if re.search(rf"\b{one}\b", line))
    log = folder / f"{name}.log"
    environment = {"HOME": str(folder), "PYTHONWARNINGS": "ignore"}
    process = stack.enter_context(
        backends.running(["bash", "-ec", line], backends.Account(None), log, environment)
    )
    settings = folder / ".heat" / f"{name}.py"
    if settings.exists():
        address = settings.read_text().partition('bind = "')[2].partition('"')[0]
        url = f"http://{address}/healthcheck"
        backends.wait_until(f"Heat's {name}", lambda: _answers(url), process, log)


def _places(cloud: EmbeddedCloud, folder: Path, postgres: int, broker: int) -> dict[str, str]:
    """What is printed → what this machine has."""
    ports = {port: backends.free_port() for port in (8000, 8004)}
    words = ("database password", "bus password", "domain password", "password")
    return {
        "/opt/heat/etc/heat": str(PYTHON.parents[1] / "etc" / "heat"),
        "/opt/heat": str(PYTHON.parents[1]),
        # where Heat looks, too
        "/etc/heat": f"{folder}/.heat",
        "http://127.0.0.1:8775": cloud.auth_url.removesuffix("/v3"),
        **{f"127.0.0.1:{old}": f"127.0.0.1:{new}" for old, new in ports.items()},
        "127.0.0.1:5432": f"127.0.0.1:{postgres}",
        "127.0.0.1:5672": f"127.0.0.1:{broker}",
        **{f"<{name}>": secrets.token_hex(12) for name in words},
        "<32 characters>": secrets.token_hex(16),
    }


def _listens(broker: brokers.Broker) -> bool:
    """Return whether an engine takes what the APIs ask."""
    return "engine" in broker.control(["list_queues", "--quiet", "name"]).split()


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=30).ok
    except requests.ConnectionError:
        return False
