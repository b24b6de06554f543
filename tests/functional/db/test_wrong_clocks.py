"""No service starts on a machine whose clock is two minutes off: each by its real start."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from common.process.child import environment
from launcher import configuration, wiring

#: runs the start of a service or of an API, with the machine's clock so many seconds ahead
START = """
import sys, time

kind, name, ahead, *files = sys.argv[1:]
clock = time.time
time.time = lambda: clock() + float(ahead)

from common import rpc
from common.messages.topics import CONDUCTOR_EVENTS_TOPIC
from launcher import configuration, run, web, wiring


class Conductor:
    def time(self, ctxt):
        return clock()


def begun(process):
    # What follows needs more than a clock.
    print("begun", flush=True)
    raise SystemExit


if kind == "api":
    web.application(name)
    begun(None)
if name != "conductor":
    conf = configuration.load(files, service=name)
    near = rpc.transport(conf)
    rpc.Server(near, CONDUCTOR_EVENTS_TOPIC, "c1", [Conductor()], workers=1).start()
wiring.SERVICES[name] = begun
run.run(name, files)
"""

OFF = re.compile(r"This machine's clock is ([\d.]+) s (ahead of|behind) the database's; a service")


@pytest.fixture
def written(tmp_path: Path, postgres_url: str) -> Path:
    """The configuration of all services."""
    login = "auth_type = password\nauth_url = http://127.0.0.1:1\n"
    url = postgres_url.replace("%", "%%")
    text = (
        f"[DEFAULT]\ntransport_url = micronova-local://{tmp_path.name}\n"
        f"[keystone_authtoken]\n{login}[placement]\n{login}"
        f"[database]\nconnection = {url}\nreader_connection = {url}\n"
        f"[placement_database]\nconnection = {url}\n[dashboard]\nauth_url = http://127.0.0.1:1\n"
    )
    made = tmp_path / "micronova.conf"
    made.write_text(text, encoding="utf-8")
    return made


def start(kind: str, name: str, ahead: int, written: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", START, kind, name, str(ahead), str(written)],
        env=environment({configuration.VARIABLE: str(written)}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def said(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout + done.stderr


EACH = [
    *(("service", name) for name in sorted(wiring.SERVICES)),
    *(("api", name) for name in sorted(wiring.APIS)),
]
#: for each way to start: by a conductor's answer, and by a database's
SOME = [("service", "compute"), ("service", "conductor"), ("api", "placement")]
CASES = [*((*each, 120) for each in EACH), *((*each, -120) for each in SOME)]


@pytest.mark.parametrize(("kind", "name", "ahead"), CASES)
def test_a_service_refuses_to_start_by_a_clock_that_is_off(
    written: Path, kind: str, name: str, ahead: int
) -> None:
    done = start(kind, name, ahead, written)
    assert done.returncode != 0
    assert "begun" not in done.stdout, said(done)
    found = OFF.search(said(done))
    assert found is not None, said(done)
    assert float(found[1]) == pytest.approx(120, abs=5)
    assert found[2] == ("ahead of" if ahead > 0 else "behind")


@pytest.mark.parametrize(("kind", "name"), SOME)
def test_it_starts_by_one_that_is_right(written: Path, kind: str, name: str) -> None:
    done = start(kind, name, 0, written)
    assert (done.returncode, "begun" in done.stdout) == (0, True), said(done)


def test_the_dashboard_has_no_clock_to_compare(written: Path) -> None:
    """It reads no database and asks no conductor: its times are those of the APIs' answers."""
    done = start("api", "dashboard", 120, written)
    assert (done.returncode, "begun" in done.stdout) == (0, True), said(done)
