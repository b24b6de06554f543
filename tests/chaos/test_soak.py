"""A minute of random load and failures, another with each commit; ``tox -e soak`` is longer."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from common.process.child import ROOT
from tests import sampling
from tests.functional import backends

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(1800)]

ASKED = ("--minutes", "1", "--servers", "20")


@pytest.mark.parametrize("storage", ["local", "shared"])
@pytest.mark.sampled(2)
def test_nothing_is_left(storage: str) -> None:
    backends.require(backends.INITDB, backends.POSTGRES, backends.RABBITMQ, backends.EPMD)
    seed = str(int(sampling.commit()[:8] or "1", 16))
    command = [sys.executable, "-m", "benchmarks.soak", *ASKED]
    command += ["--storage", storage, "--seed", seed]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert ended.stdout, ended.stderr[-4000:]
    found = json.loads(ended.stdout)
    assert found["operations"]["all"] > 0
    assert found["clean"], found
