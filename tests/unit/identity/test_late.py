"""Modules that are loaded when they are used."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from identity.late import import_at_use


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package of two modules that say when they are loaded."""
    folder = tmp_path / "rarely_used"
    folder.mkdir()
    (folder / "__init__.py").write_text("loaded = []\n")
    for name in ("one", "two"):
        (folder / f"{name}.py").write_text(
            f"from rarely_used import loaded\nloaded.append({name!r})\nNAME = {name!r}\n"
        )
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("rarely_used", "rarely_used.one", "rarely_used.two"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "rarely_used"


def test_nothing_is_loaded_before_its_use(package: str) -> None:
    import_at_use(f"{package}.one")
    found = importlib.import_module(package)
    one = found.one
    assert found.loaded == []
    assert one.NAME == "one"
    assert found.loaded == ["one"]
    assert importlib.import_module(f"{package}.one") is one


def test_what_is_loaded_stays_as_it_is(package: str) -> None:
    two = importlib.import_module(f"{package}.two")
    import_at_use(f"{package}.two", f"{package}.missing")
    assert importlib.import_module(f"{package}.two") is two
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{package}.missing")
