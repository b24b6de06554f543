"""What an API's process shares with its workers, and which names it knows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from common.child import environment
from launcher import configuration, web, wiring

ASK = """
import json, sys
from launcher import configuration
configuration.load([], service=sys.argv[1])
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_names() -> None:
    assert {*wiring.APIS, "public", "all"} == web.NAMES
    assert "placement" not in web.TOGETHER["public"]


def test_a_configuration_that_is_not_usable_is_left_to_the_workers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(configuration.VARIABLE, str(tmp_path / "missing.conf"))
    web.preload("public")


@pytest.mark.parametrize(
    ("service", "unneeded"),
    [
        ("conductor", {"keystonemiddleware", "webob", "placement"}),
        ("scheduler", {"keystonemiddleware", "webob", "sqlalchemy", "conductor"}),
        ("compute", {"keystonemiddleware", "webob", "sqlalchemy", "conductor", "numpy"}),
    ],
)
def test_a_service_imports_no_options_of_others(service: str, unneeded: set[str]) -> None:
    command = [sys.executable, "-c", ASK, service]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    assert not unneeded & set(json.loads(done.stdout))
