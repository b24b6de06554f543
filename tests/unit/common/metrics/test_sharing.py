"""The directory that workers share: made once by each master, and removed by the same one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from common.metrics import sharing


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (sharing.VARIABLE, sharing._OWNER):
        # Set first, so that a value that the test leaves is removed.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_reload_keeps_it() -> None:
    sharing.begin()
    made = Path(os.environ[sharing.VARIABLE])
    sharing.begin()
    assert Path(os.environ[sharing.VARIABLE]) == made
    assert made.is_dir()
    sharing.end()
    assert not made.exists()
    assert sharing.VARIABLE not in os.environ


def test_a_master_that_replaces_another_one_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    sharing.begin()
    old = Path(os.environ[sharing.VARIABLE])
    monkeypatch.setattr(os, "getpid", lambda: 1)
    sharing.begin()
    new = Path(os.environ[sharing.VARIABLE])
    assert new != old
    sharing.end()
    assert old.is_dir()
    assert not new.exists()


def test_without_others_nothing_is_awaited() -> None:
    sharing.await_turn()
