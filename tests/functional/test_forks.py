"""Tests in several processes: what fails there is reported, and so is a process that ends."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from common.process.child import ROOT

_CONFTEST = """
from tests import forks

def pytest_addoption(parser):
    parser.addoption("--forks", type=int, default=0)

def pytest_configure(config):
    config.pluginmanager.register(forks)
"""
_ENDS = """
import os

def test_before():
    print("seen")

def test_ends_the_process():
    os._exit(3)

def test_after():
    pass
"""
_GOES_ON = """
import pytest

@pytest.mark.parametrize("number", range(20))
def test_many(number, tmp_path):
    (tmp_path / "file").write_text("x" * number)

@pytest.mark.skip(reason="not here")
def test_is_skipped():
    pass

def test_fails():
    print("what it said")
    assert 1 == 2
"""


def run(folder: Path, *words: str) -> str:
    """What pytest says of two files; one ends its process."""
    (folder / "conftest.py").write_text(_CONFTEST)
    (folder / "test_ends.py").write_text(_ENDS)
    (folder / "test_goes_on.py").write_text(_GOES_ON)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-ra"]
    done = subprocess.run(
        [*command, f"--rootdir={folder}", f"--basetemp={folder / 'temp'}", *words, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_all_is_run_and_each_failure_is_reported(tmp_path: Path) -> None:
    said = run(tmp_path, "--forks=2")
    assert re.search(r"\b3 failed, 21 passed, 1 skipped\b", said), said
    assert re.search(r"SKIPPED \[1\] .*test_goes_on.py:\d+: not here", said), said
    assert "what it said" in said
    assert re.search(r"test_ends_the_process: process [01] ended with 3", said), said
    assert "test_after: was not begun" in said


def test_it_stops_at_the_first_failure_if_asked_to(tmp_path: Path) -> None:
    said = run(tmp_path, "--forks=1", "-x")
    assert "2 failed, 1 passed" in said, said
