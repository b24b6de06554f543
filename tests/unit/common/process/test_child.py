"""What a child process is called, and what it inherits."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from common.process import child


@pytest.mark.parametrize(("name", "title"), [("cloud", "the cloud"), ("Keystone", "Keystone")])
def test_a_title_has_an_article_unless_the_name_is_a_proper_one(name: str, title: str) -> None:
    assert child.Child(name, ["true"], Path("/nowhere/log")).title == title


def test_what_is_meant_for_other_programs_is_not_inherited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OS_PASSWORD", "callers")
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    made = child.environment({"OS_KEYSTONE_CONFIG_DIR": "/k"})
    assert "OS_PASSWORD" not in made
    assert "PYTHONWARNINGS" not in made
    assert made["OS_KEYSTONE_CONFIG_DIR"] == "/k"
    assert (Path(made["PYTHONPATH"]) / "common" / "process" / "child.py").exists()


def test_a_report_is_one_line_for_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    try:
        monkeypatch.setenv("MICRONOVA_READY_FD", str(write))
        child.report(ready=True, hosts=3)
        assert json.loads(os.read(read, 4096)) == {"ready": True, "hosts": 3}
    finally:
        os.close(read)
        os.close(write)
    child.report(ready=True)  # the parent is gone
    monkeypatch.delenv("MICRONOVA_READY_FD")
    child.report(ready=True)  # there is none
