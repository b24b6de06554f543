"""Services that start with the lines that a page prints, and what pages show of programs."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from common.process.child import ROOT, die_with_parent
from conductor.volumes.extend_volume import ExtendVolumeFlow
from tests.functional import backends
from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.test_service import Elsewhere
from tests.functional.keystone_fixture import RunningKeystone, running_keystone
from tests.functional.monitor.test_promtool import promtool
from tests.functional.pages.reading import Desk, Reading
from tests.functional.pages.services import (
    CASES,
    DASHBOARD,
    DASHBOARD_SETTINGS,
    DATABASE,
    DEPLOYED,
    FILTER,
    FORM,
    KEYSTONE,
    NEW_TYPES,
    PROCESSES,
    SCRAPES,
    TOKEN_CHECK,
)
from tests.functional.waiting import eventually


@contextlib.contextmanager
def running(command: str, url: str, log: Path) -> Iterator[None]:
    """Run a command of the shell in the checkout until the block ends; it answers at a URL."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=ROOT,
            env={**os.environ, "PATH": f"{ROOT}/.tox/dev/bin:{os.environ['PATH']}"},
            stdout=output,
            stderr=output,
            preexec_fn=die_with_parent,  # noqa: PLW1509
        )
    try:
        eventually(lambda: _answers(url) or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.terminate()
        process.wait(30)


def _answers(url: str) -> bool:
    with contextlib.suppress(requests.RequestException):
        return requests.get(url, timeout=60).status_code > 0
    return False


def one(reading: Reading, **facts: str) -> str:
    """Return the one text of a reading, with what only a running test knows."""
    [text] = reading.texts()
    for name, value in facts.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def private(file: Path, text: str) -> Path:
    """Write a file that its owner alone reads."""
    file.touch(0o600)
    file.write_text(text)
    return file


def test_the_dashboard_runs(three_nodes: EmbeddedCloud, tmp_path: Path) -> None:
    facts = {"etc": str(tmp_path), "keystone": three_nodes.auth_url}
    port = str(backends.free_port())
    private(tmp_path / "dashboard.conf", one(DASHBOARD_SETTINGS, **facts))
    url = f"http://127.0.0.1:{port}/dashboard"
    with running(one(DASHBOARD, port=port, **facts), f"{url}/login", tmp_path / "log"):
        member = Elsewhere(three_nodes, url, tmp_path / "state")
        member.log_in("member")
        assert "Overview" in member.get("/").text


# --- a Keystone of the reader's own


@pytest.fixture(scope="module")
def keystone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningKeystone]:
    with running_keystone(tmp_path_factory.mktemp("keystone")) as made:
        yield made


def test_a_keystone_of_ones_own(
    three_nodes: EmbeddedCloud, keystone: RunningKeystone, tmp_path: Path
) -> None:
    desk = Desk(tmp_path)
    file = keystone.state_dir / "clouds.yaml"
    login = {"OS_CLIENT_CONFIG_FILE": str(file), "OS_CLOUD": "micronova-admin"}
    for command in [*NEW_TYPES.commands(), *KEYSTONE.commands()]:
        desk.run(command.replace("{cloud}", three_nodes.base_url), login, KEYSTONE.typed)
    with backends.memcached() as memcached:
        checked = one(TOKEN_CHECK, keystone=keystone.auth_url, memcached=memcached)
        # "the groups in which services log in to each other take the same login options"
        among = re.sub(r"(?m)^(www_auth|memcached).*\n", "", checked)
        placement = among.replace("[keystone_authtoken]", "[placement]")
        database = f"[placement_database]\nconnection = sqlite:///{tmp_path}/placement.sqlite\n"
        conf = private(tmp_path / "micronova.conf", f"{checked}\n{placement}\n{database}")
        for command in [*DATABASE.commands(), *DEPLOYED.commands()]:
            desk.run(command.replace("{conf}", str(conf)), {})
        desk.run(f"micronova doctor --config-file {conf}", {})
        assert_checked(conf, keystone, memcached)
    desk.close()


def assert_checked(conf: Path, keystone: RunningKeystone, memcached: str) -> None:
    """Start placement, which must check tokens by that Keystone and share what it found."""
    port = backends.free_port()
    command = f"MICRONOVA_CONFIG={conf} exec gunicorn micronova.wsgi:placement"
    url = f"http://127.0.0.1:{port}"
    with running(f"{command} --bind 127.0.0.1:{port}", url, conf.with_name("log")):
        refused = requests.get(f"{url}/resource_providers", timeout=30)
        assert refused.status_code == 401
        assert keystone.auth_url in refused.headers["WWW-Authenticate"]
        token = {"X-Auth-Token": keystone.token("admin", "admin")}
        assert requests.get(f"{url}/resource_providers", headers=token, timeout=30).ok
    host, _, number = memcached.partition(":")
    with socket.create_connection((host, int(number)), 5) as asked:
        asked.sendall(b"stats\r\n")
        assert re.search(rb"curr_items [1-9]", asked.recv(1 << 16))


# --- what others read, and what programs show


def test_prometheus_takes_the_jobs(tmp_path: Path) -> None:
    text = one(SCRAPES, alerts=str(ROOT / "etc/prometheus/alerts.yaml"))
    file = tmp_path / "prometheus.yml"
    file.write_text(text)
    assert "SUCCESS" in promtool("check", "config", str(file))


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, of all its threads."""
    tasks = sorted(Path(f"/proc/{pid}/task").iterdir())
    return [int(one) for task in tasks for one in (task / "children").read_text().split()]


def test_the_processes_are_as_printed(three_nodes: EmbeddedCloud) -> None:
    printed = {}
    for line in one(PROCESSES).splitlines():
        name, words = re.fullmatch(r".*─ (\w+) +(.*)", line).groups()  # type: ignore[union-attr]
        printed[name.lower()] = int("gunicorn and its worker" in words)
    running_: dict[str, int] = {}
    for pid in children(three_nodes.process.pid):
        command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").lower()
        [name] = [name for name in printed if re.search(rf"-m \S*{name}|{name}", command)]
        running_[name] = len(children(pid))
    assert running_ == printed


def test_a_flow_with_cases_is_as_printed() -> None:
    """The page's part of the source is the source's, which runs with every resize."""
    function, call = ast.parse(one(CASES)).body
    assert isinstance(call, ast.Expr)
    assert ast.dump(function) in tops("conductor/servers/move/cold_move.py")
    assert ast.dump(call.value) in returned("conductor/servers/move/resize.py")


def test_the_form_of_a_flow_is_as_printed() -> None:
    """The page's class has what the class of the source has."""
    (printed,) = ast.parse(one(FORM)).body
    source = ast.parse((ROOT / "conductor/volumes/extend_volume.py").read_text())
    (real,) = [one for one in source.body if getattr(one, "name", "") == "ExtendVolumeFlow"]
    assert isinstance(printed, ast.ClassDef)
    assert isinstance(real, ast.ClassDef)
    values = {ast.unparse(one) for one in real.body if isinstance(one, ast.Assign)}
    assert {ast.unparse(one) for one in printed.body if isinstance(one, ast.Assign)} <= values
    for name in (one.name for one in printed.body if isinstance(one, ast.FunctionDef)):
        assert hasattr(ExtendVolumeFlow, name)


_FINDS = """
import sys
from types import SimpleNamespace
from scheduler import filters
from scheduler.columnar.forms import ColumnarFilter
from scheduler.explain import words

filters.__path__.append(sys.argv[1])
found = filters.found()
names = list(found)
assert "resources" in names[: names.index("not_crowded")], names
# as the unit tier asks of all that are in the tree
assert isinstance(found["not_crowded"], ColumnarFilter) and found["not_crowded"].by_group
crowded, idle = (SimpleNamespace(facts=SimpleNamespace(running_vms=n)) for n in (50, 49))
assert found["not_crowded"](idle, None) is None
assert found["not_crowded"](crowded, None) == "50 VMs run, 49 may"
print(words.sentence(1, {"not_crowded": {"pve1": "50 VMs run, 49 may"}}))
"""


def test_a_first_filter_is_found_by_its_mark(tmp_path: Path) -> None:
    (tmp_path / "crowded.py").write_text(one(FILTER))
    done = subprocess.run(
        [sys.executable, "-c", _FINDS, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "The only host won't do: enough servers already (pve1: 50 VMs run, 49 may).\n"
    )


def tops(path: str) -> list[str]:
    """Return what a module has at its top."""
    return [ast.dump(one) for one in ast.parse((ROOT / path).read_text()).body]


def returned(path: str) -> list[str]:
    """Return what the functions of a module return."""
    nodes = ast.walk(ast.parse((ROOT / path).read_text()))
    return [ast.dump(one.value) for one in nodes if isinstance(one, ast.Return) and one.value]
