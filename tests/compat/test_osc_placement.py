"""The unmodified `openstack` client with osc-placement, against the service under gunicorn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placement.db import migrate
from tests.fixtures.auth import SERVICE
from tests.functional import backends, programs

pytest.importorskip("osc_placement")
pytestmark = pytest.mark.timeout(2400)
ROOT = Path(__file__).parents[2]
APP = """
    from oslo_config import cfg

    from placement import config
    from placement.app import make_app
    from tests.fixtures.auth import header_auth

    conf = cfg.ConfigOpts()
    config.register(conf)
    conf([], project="test", default_config_files=[])
    conf.set_override("connection", {url!r}, config.DATABASE_GROUP)
    app = make_app(conf, protect=header_auth)
"""


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The service under gunicorn, two workers with threads, on SQLite."""
    folder = tmp_path_factory.mktemp("placement")
    url = f"sqlite:///{folder}/placement.db"
    migrate.upgrade(url)
    (folder / "served.py").write_text(textwrap.dedent(APP.format(url=url)))
    port = backends.free_port()
    command = [sys.executable, "-m", "gunicorn", "served:app", "--bind", f"127.0.0.1:{port}"]
    command += ["--workers", "2", "--threads", "4", "--pythonpath", f"{ROOT},{folder}"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(address, server, folder / "log")
        yield address
    finally:
        server.terminate()
        server.wait(30)


def _wait(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline, pause = time.monotonic() + 240, threading.Event()
    while True:
        try:
            urllib.request.urlopen(address, timeout=60).close()
        except (urllib.error.URLError, TimeoutError):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            pause.wait(0.1)
        else:
            return


class Cli:
    """The `openstack` program."""

    def __init__(self, endpoint: str, version: str) -> None:
        self._options = ("--os-placement-api-version", version)
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("OS_")},
            "OS_AUTH_TYPE": "admin_token",
            "OS_ENDPOINT": endpoint,
            "OS_TOKEN": SERVICE,
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command, whatever comes of it."""
        return programs.run("openstack", [*self._options, *words], self._environment)

    def json(self, *words: str) -> Any:
        """Run a command and return what it prints."""
        done = self.run(*words, "-f", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def cli(endpoint: str) -> Cli:
    """The program at the newest microversion."""
    return Cli(endpoint, "1.39")


def test_from_a_provider_to_a_claim_and_back(cli: Cli) -> None:
    name = f"node-{uuid.uuid4()}"
    provider = cli.json("resource", "provider", "create", name)["uuid"]
    cli.json(
        *("resource", "provider", "inventory", "set", provider),
        *("--resource", "VCPU=8", "--resource", "VCPU:allocation_ratio=2.0"),
        *("--resource", "MEMORY_MB=4096"),
    )
    assert cli.run("trait", "create", "CUSTOM_FAST").returncode == 0
    cli.json("resource", "provider", "trait", "set", provider, "--trait", "CUSTOM_FAST")
    aggregate = str(uuid.uuid4())
    cli.json(
        *("resource", "provider", "aggregate", "set", provider, "--aggregate", aggregate),
        *("--generation", "2"),
    )
    wanted = ("--resource", "VCPU=10", "--resource", "MEMORY_MB=1024")
    candidates = cli.json(
        *("allocation", "candidate", "list", *wanted, "--required", "CUSTOM_FAST"),
        *("--member-of", aggregate),
    )
    assert [one["resource provider"] for one in candidates] == [provider]
    consumer = str(uuid.uuid4())
    allocate = ("resource", "provider", "allocation", "set", consumer, "--project-id", "project")
    allocate += ("--user-id", "user", "--consumer-type", "INSTANCE")
    cli.json(*allocate, "--allocation", f"rp={provider},VCPU=10,MEMORY_MB=1024")
    shown = cli.json("resource", "provider", "allocation", "show", consumer)
    assert shown[0]["resources"] == {"VCPU": 10, "MEMORY_MB": 1024}
    usage = cli.json("resource", "provider", "usage", "show", provider)
    assert {one["resource_class"]: one["usage"] for one in usage} == shown[0]["resources"]
    assert cli.run("resource", "provider", "delete", provider).returncode == 1
    assert cli.run("resource", "provider", "allocation", "delete", consumer).returncode == 0
    assert cli.run("resource", "provider", "delete", provider).returncode == 0


def test_a_refusal_is_printed_with_its_reason(cli: Cli) -> None:
    provider = cli.json("resource", "provider", "create", f"node-{uuid.uuid4()}")["uuid"]
    done = cli.run(
        *("resource", "provider", "allocation", "set", str(uuid.uuid4())),
        *("--project-id", "p", "--user-id", "u", "--consumer-type", "INSTANCE"),
        *("--allocation", f"rp={provider},VCPU=1"),
    )
    assert done.returncode == 1
    assert f"Inventory for 'VCPU' on resource provider '{provider}' invalid." in done.stderr


def test_old_microversions_too(endpoint: str) -> None:
    old = Cli(endpoint, "1.0")
    provider = old.json("resource", "provider", "create", f"node-{uuid.uuid4()}")
    assert set(provider) == {"uuid", "name", "generation"}
