"""What setup.cfg announces is what `micronova.scheduling` has, and the defaults are among it."""

from __future__ import annotations

import configparser
from pathlib import Path

import micronova.scheduling
from scheduler import config

SETUP = Path(__file__).resolve().parents[3] / "setup.cfg"


def announced(group: str) -> dict[str, str]:
    setup = configparser.ConfigParser()
    setup.read(SETUP)
    lines = setup["options.entry_points"][f"micronova.scheduler.{group}"].split("\n")
    return dict(line.split(" = ") for line in lines if line)


def test_every_one_has_its_entry_point() -> None:
    found = announced("filters") | announced("weighers")
    assert set(found) == set(micronova.scheduling.__all__)
    assert found == {name: f"micronova.scheduling:{name}" for name in found}
    assert all(callable(getattr(micronova.scheduling, name)) for name in found)


def test_each_is_documented_with_its_multiplier() -> None:
    text = (SETUP.parent / "docs" / "scheduler.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    told = {row[0].strip("| `"): row[1] for row in rows}
    assert set(told) == set(announced("filters")) | set(announced("weighers"))
    assert [name for name in told if name in announced("filters")] == config.FILTERS
    weighers = next(option for option in config.OPTIONS if option.name == "weighers").default
    assert {name: told[name] for name in announced("weighers")} == {
        name: weighers.get(name, "–") for name in announced("weighers")
    }


def test_the_defaults_are_ours() -> None:
    assert set(config.FILTERS) <= set(announced("filters"))
    weighers = next(option for option in config.OPTIONS if option.name == "weighers")
    assert set(weighers.default) <= set(announced("weighers"))
