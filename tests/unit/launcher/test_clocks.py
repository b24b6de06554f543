"""What processes without a database import to know the time."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from common import clock
from common.errors import Unavailable
from common.process.health import Answer, Health
from common.process.timekeeping import Reading
from launcher import clocks


@pytest.mark.parametrize("service", ["scheduler.service", "compute.worker.service"])
def test_a_service_without_a_database_has_no_database_s_code_in_memory(service: str) -> None:
    text = (
        "import common.threads, sys\n"
        f"import launcher.run, launcher.clocks, common.rpc.events, {service}\n"
        "print([one for one in ('sqlalchemy', 'psycopg', 'alembic') if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("off", "ready"), [(0.0, True), (120.0, False), (-120.0, False)])
def test_a_process_is_ready_by_a_clock_by_which_it_would_have_started(
    off: float, ready: bool
) -> None:
    """It started while nobody said what the time is."""
    answers: list[Reading] = []

    def ask() -> Reading:
        if not answers:
            raise Unavailable("away")
        return answers[-1]

    timekeeper = clocks.start_of(ask)
    checks = clocks.checked(Health(ready={"bus": lambda: True}), timekeeper).ready
    assert (set(checks), Answer(lambda: checks).ok()) == ({"bus", "clock"}, True)
    answers.append(Reading(time.time() - off, time.monotonic(), 0.01))
    timekeeper.compare()
    assert Answer(lambda: checks).ok() is ready
    timekeeper.stop()
    clock.unfollow()
