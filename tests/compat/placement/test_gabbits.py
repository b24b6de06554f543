"""OpenStack Placement's functional HTTP tests against the service under gunicorn.

The YAML files and the worlds they need come from the installed `openstack-placement`
(`tox -e placement-compat` installs it); every file is run on SQLite and on PostgreSQL. All of them
are run twice more on one SQLite database that is emptied through REST each time: what is
remembered there of one run must not disturb the next.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import unittest
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
from gabbi import handlers, suitemaker, utils

from placement.db import migrate
from placement.routes import list_rules
from tests.compat.placement import original
from tests.functional import backends
from tests.functional.db.conftest import PostgresServer, postgres_server  # noqa: F401

#: YAML file → why it is not run
LEFT_OUT: Mapping[str, str] = {}
#: (YAML file, test in it) → why it can't be run; the test is run all the same
DIFFERS: Mapping[tuple[str, str], str] = {
    ("basic-http.yaml", "bad content length not int"): (
        "gabbi's HTTP client refuses to send a Content-Length that is no number"
    ),
}
#: how many transcripts each test ran
RUN: list[int] = []

ROOT = Path(__file__).parents[3]
FOLDER = original.tests_folder()
FILES = sorted(path.name for path in (FOLDER / "gabbits").glob("*.yaml")) if FOLDER else []
pytestmark = [
    pytest.mark.timeout(2400),
    pytest.mark.skipif(FOLDER is None, reason="openstack-placement is not installed"),
]
NewDatabase = Callable[[], str]


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> NewDatabase:
    """Makes an empty SQLite database that is up to date and returns its URL."""
    folder = tmp_path_factory.mktemp("sqlite")

    def new() -> str:
        url = f"sqlite:///{folder}/{uuid.uuid4()}.db"
        migrate.upgrade(url)
        return url

    return new


@pytest.fixture(scope="module")
def postgresql(postgres_server: PostgresServer) -> NewDatabase:  # noqa: F811
    """Makes an empty PostgreSQL database that is up to date and returns its URL."""
    template = ""

    def named(name: str) -> str:
        url = postgres_server.url.rpartition("/")[0]
        return f"{url}/{name}"

    def new() -> str:
        nonlocal template
        if not template:
            template = f"template_{uuid.uuid4().hex}"
            postgres_server.execute(f"CREATE DATABASE {template}")
            migrate.upgrade(named(template))
        name = f"test_{uuid.uuid4().hex}"
        postgres_server.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return named(name)

    return new


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> NewDatabase:
    """Returns the URL of the same SQLite database each time."""
    url = f"sqlite:///{tmp_path_factory.mktemp('lived')}/placement.db"
    migrate.upgrade(url)
    return lambda: url


#: how the transcripts are run → the fixture that gives databases
WAYS = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "lived-first": "lived",
    "lived-again": "lived",
}


@pytest.fixture(scope="module", params=WAYS)
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[original.World]:
    """The service under gunicorn on one kind of database."""
    fixture = WAYS[request.param]
    new: NewDatabase = request.getfixturevalue(fixture)
    folder = tmp_path_factory.mktemp("served")
    settings, policy = folder / "settings.json", folder / "policy.yaml"
    published: dict[str, Any] = {"url": new(), "policy_file": str(policy), "number": 0}

    def publish(options: dict[str, dict[str, Any]], rules: dict[str, str], fresh: bool) -> None:
        if fresh:
            published["url"] = new()
        published["number"] += 1
        published["settings"] = {g: v for g, v in options.items() if g != "api"}
        policy.write_text(json.dumps(rules))
        waiting = folder / "settings.new"
        waiting.write_text(json.dumps(published))
        waiting.rename(settings)

    publish({}, {}, fresh=False)
    port = backends.free_port()
    command = [sys.executable, "-m", "gunicorn", "tests.compat.placement.served:app"]
    command += ["--bind", f"127.0.0.1:{port}", "--threads", "4", "--pythonpath", str(ROOT)]
    environment = {**os.environ, "MICRONOVA_TEST_SETTINGS": str(settings)}
    log = folder / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output, env=environment)
    try:
        backends.wait_until("gunicorn", lambda: backends.listens(port), server, log)
        lives_on = fixture == "lived"
        yield original.World(f"http://127.0.0.1:{port}", publish, lives_on=lives_on)
    finally:
        server.terminate()
        server.wait(30)


def suite_of(name: str, world: original.World) -> unittest.TestSuite:
    """Return the tests of one file."""
    assert FOLDER is not None
    folder = FOLDER / "gabbits"
    host, port, prefix, _ = utils.host_info_from_target(world.url)
    found: unittest.TestSuite = suitemaker.test_suite_from_dict(
        unittest.TestLoader(),
        name.removesuffix(".yaml"),
        utils.load_yaml(yaml_file=str(folder / name)),
        str(folder),
        host,
        port,
        original.fixtures(FOLDER, world, [rule.name for rule in list_rules()]),
        None,
        prefix=prefix,
        test_loader_name="original",
        handlers=[handler() for handler in handlers.RESPONSE_HANDLERS],
    )
    return found


@pytest.mark.parametrize("name", FILES)
def test_the_original_transcripts(name: str, world: original.World) -> None:
    if name in LEFT_OUT:
        pytest.skip(LEFT_OUT[name])
    saved = dict(os.environ)
    result = unittest.TestResult()
    try:
        suite = suite_of(name, world)
        cases: list[Any] = list(suite)
        suite.run(result)
        for case in cases:
            # gabbi leaves its clients open.
            case.http.client.close()
    finally:
        os.environ.clear()
        os.environ.update(saved)
    RUN.append(result.testsRun)
    assert result.testsRun > 0
    failed = {
        case.test_data["name"]: text  # type: ignore[attr-defined]
        for case, text in [*result.failures, *result.errors]
    }
    surprising = {one: text for one, text in failed.items() if (name, one) not in DIFFERS}
    assert not surprising, "\n".join(f"{one}\n{text}" for one, text in surprising.items())
    assert not result.unexpectedSuccesses


def test_what_is_left_out_exists() -> None:
    assert not set(LEFT_OUT) - set(FILES)
    assert not {name for name, _ in DIFFERS} - set(FILES)


def test_the_server_is_the_real_one(world: original.World) -> None:
    assert requests.get(world.url, timeout=60).headers["server"] == "gunicorn"


def test_a_content_length_that_is_no_number_is_refused(world: original.World) -> None:
    address = world.url.removeprefix("http://").split(":")
    with socket.create_connection((address[0], int(address[1])), 10) as client:
        client.sendall(
            b"POST /resource_providers HTTP/1.1\r\nHost: here\r\nX-Auth-Token: admin\r\n"
        )
        client.sendall(b"Content-Type: application/json\r\nContent-Length: hi mom\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 400")


def test_how_many_were_run() -> None:
    print(f"{sum(RUN)} transcripts of {len(RUN)} files")
    if len(RUN) == len(WAYS) * (len(FILES) - len(LEFT_OUT)):
        assert sum(RUN) > 4000
