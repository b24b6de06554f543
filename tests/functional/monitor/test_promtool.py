"""Prometheus' own checks of the alerts, and its tests of when they fire."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from common.process.child import ROOT

ALERTS = ROOT / "etc/prometheus/alerts.yaml"
TESTS = Path(__file__).parent


def promtool(*words: str, text: bytes | None = None, folder: Path | None = None) -> str:
    """Run promtool, which must find nothing wrong; skip where it is missing."""
    program = shutil.which("promtool")
    if program is None:
        reason = "promtool of Prometheus is not installed on this machine"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    done = subprocess.run(
        [program, *words], input=text, cwd=folder, capture_output=True, timeout=120, check=False
    )
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    return said


@pytest.mark.parametrize("name", ["alerts.yaml", "micronova.rules.yml"])
def test_the_rules_are_well_formed(name: str) -> None:
    assert "SUCCESS" in promtool("check", "rules", str(ROOT / "etc/prometheus" / name))


@pytest.mark.parametrize("name", ["alerts.test.yaml", "restarts.test.yaml"])
def test_the_alerts_fire_when_they_should(tmp_path: Path, name: str) -> None:
    for file in (ALERTS, TESTS / name):
        shutil.copy(file, tmp_path)
    assert "SUCCESS" in promtool("test", "rules", name, folder=tmp_path)
