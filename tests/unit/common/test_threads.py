"""No process of ours has eventlet."""

from __future__ import annotations

import subprocess
import sys

import pytest

from common.process.child import ROOT

ENTRIES = (
    *("api.compute.app", "api.image.app", "api.network.app", "api.volume.app", "placement.app"),
    "api.clustering.app",
    *("conductor.service", "scheduler.service", "compute.worker.service", "console.service"),
    *("dashboard.app", "identity.server", "launcher.run", "launcher.sample", "simulator.__main__"),
    *("cli.main", "benchmarks.decisions", "micronova.__main__"),
)


@pytest.mark.parametrize("entry", ENTRIES)
def test_eventlet_is_not_loaded(entry: str) -> None:
    code = (
        f"import sys, {entry}\n"
        "assert sys.modules.get('eventlet') is None, sys.modules['eventlet']\n"
        "assert not [name for name in sys.modules if name.startswith('eventlet.')]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
