"""What an API's process shares with its workers, and which names it knows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from common.process.child import environment
from launcher import configuration, web, wiring

ASK = """
import json, sys
from launcher import configuration
configuration.load([], service=sys.argv[1])
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_names() -> None:
    assert {*wiring.APIS, "public", "all", "dashboard"} == web.NAMES
    assert "placement" not in web.TOGETHER["public"]


def test_a_configuration_that_is_not_usable_is_left_to_the_workers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(configuration.VARIABLE, str(tmp_path / "missing.conf"))
    web.preload("public")


PREPARED = """
import os
from launcher import web, wiring
made = []
make = wiring.APIS["image"]
wiring.APIS["image"] = lambda process: made.append(1) or make(process)
for _ in range(2):
    web.preload("image")
assert len(made) == 2, "made again at a reload"
child = os.fork()
if child == 0:
    web.application("image")
    os._exit(0 if len(made) == 2 else 1)
assert os.waitpid(child, 0)[1] == 0, "made in the master for every worker"
assert len(os.listdir("/proc/self/task")) == 1, "a process that forks has one thread"
"""


def test_the_workers_serve_what_their_master_has_made(tmp_path: Path) -> None:
    login = "auth_type = password\nauth_url = http://127.0.0.1:1\n"
    written = tmp_path / "micronova.conf"
    written.write_text(
        f"[keystone_authtoken]\n{login}[placement]\n{login}"
        f"[database]\nreader_connection = sqlite:///{tmp_path}/cloud.sqlite\n"
    )
    more = {configuration.VARIABLE: str(written)}
    command = [sys.executable, "-c", PREPARED]
    subprocess.run(command, env=environment(more), check=True)


MASTER = """
import gc, json, os, sys
from types import SimpleNamespace
import micronova.serving
server = SimpleNamespace(
    cfg=SimpleNamespace(workers=int(sys.argv[1])),
    app=SimpleNamespace(app_uri="micronova.wsgi:dashboard"),
)
micronova.serving.preload(server)
micronova.serving.end(server)
print(json.dumps(["launcher.web" in sys.modules, gc.get_freeze_count() > 0]))
"""


def master(workers: int, folder: Path) -> tuple[bool, bool]:
    """Return whether a master makes what its workers serve, and what it leaves to no collector."""
    more = {configuration.VARIABLE: str(folder / "missing.conf")}
    command = [sys.executable, "-c", MASTER, str(workers)]
    done = subprocess.run(
        command, env=environment(more), capture_output=True, text=True, check=True
    )
    ahead, is_frozen = json.loads(done.stdout)
    return ahead, is_frozen


@pytest.mark.parametrize(("workers", "ahead"), [(1, False), (2, True)])
def test_a_single_worker_shares_with_nobody_and_makes_its_own(
    workers: int, ahead: bool, tmp_path: Path
) -> None:
    assert master(workers, tmp_path)[0] is ahead


@pytest.mark.parametrize("workers", [1, 2])
def test_no_worker_copies_its_masters_memory_by_a_collection(workers: int, tmp_path: Path) -> None:
    assert master(workers, tmp_path)[1]


def test_a_master_has_nothing_of_what_its_worker_reads_and_logs() -> None:
    code = "import json, sys, micronova.serving; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert not {"oslo_config", "oslo_log", "falcon", "requests"} & set(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("service", "unneeded"),
    [
        ("conductor", {"keystonemiddleware", "webob", "placement"}),
        ("scheduler", {"keystonemiddleware", "webob", "sqlalchemy", "conductor"}),
        ("compute", {"keystonemiddleware", "webob", "sqlalchemy", "conductor", "numpy"}),
        ("dashboard", {"keystonemiddleware", "oslo_messaging", "kombu", "sqlalchemy", "numpy"}),
        ("preparation", {"keystonemiddleware", "conductor", "falcon", "numpy"}),
    ],
)
def test_a_service_imports_no_options_of_others(service: str, unneeded: set[str]) -> None:
    command = [sys.executable, "-c", ASK, service]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    assert not unneeded & set(json.loads(done.stdout))
