"""What the package announces is what the scheduler has."""

from __future__ import annotations

import configparser
from pathlib import Path

import pytest

import micronova.scheduling
from scheduler import config, own

SETUP = Path(__file__).resolve().parents[3] / "setup.cfg"


@pytest.mark.parametrize(
    ("group", "ours"),
    [
        ("micronova.scheduler.filters", own.FILTERS),
        ("micronova.scheduler.weighers", own.WEIGHERS),
    ],
)
def test_every_one_has_its_entry_point(group: str, ours: dict[str, object]) -> None:
    setup = configparser.ConfigParser()
    setup.read(SETUP)
    lines = setup["options.entry_points"][group].split("\n")
    announced = dict(line.split(" = ") for line in lines if line)
    assert announced == {name: f"micronova.scheduling:{name}" for name in ours}
    assert {name: getattr(micronova.scheduling, name) for name in ours} == ours


def test_the_defaults_are_ours() -> None:
    assert set(config.FILTERS) <= set(own.FILTERS)
