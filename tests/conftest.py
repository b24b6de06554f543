"""For every test: oslo.messaging is first imported the way the services do, without eventlet."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import common.rpc  # noqa: F401
from common.process import garbage
from tests import distribution, forks, sampling, shared, times
from tests.chaos.summary import PROPERTY, table
from tests.fixtures import statements

statements.share()
garbage.load()

# A busy machine is no reason to fail. Each run tries a few examples of every property;
# `tox -e properties` tries many, others each time.
hypothesis.settings.register_profile("quick", deadline=None, max_examples=20)
hypothesis.settings.register_profile(
    "thorough", deadline=None, max_examples=500, derandomize=False
)
hypothesis.settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of this tree."""
    parser.addoption("--forks", type=int, default=0, metavar="N", help="run in N processes")
    parser.addoption(
        "--part",
        choices=(sampling.ALL, sampling.TOUCHED),
        default=sampling.ALL,
        help="what runs: all, or what the change touches and a sample of the rest",
    )
    parser.addoption("--times", metavar="FILE", help="write each file's seconds there, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Run in several processes if asked to; measure in each, and sum up in the first."""
    config.pluginmanager.register(forks, "forks")
    if config.getoption("--times") is None:
        return
    config.pluginmanager.register(times.Meter(), "times-meter")
    path = Path(config.getoption("--times")).absolute()
    config.pluginmanager.register(times.Record(path), "times-record")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The table of all chaos cases that were run, in whichever process."""
    reports = [
        one for kind in ("passed", "failed") for one in terminalreporter.stats.get(kind, ())
    ]
    lines = [value for one in reports for name, value in one.user_properties if name == PROPERTY]
    if lines:
        terminalreporter.section("chaos: every step")
        terminalreporter.write_line(table(lines))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is not in a sample, before marks decide; put the longest files first."""
    sampling.mark_the_rest(items, sampling.parts_of(config.getoption("--part")))
    items.sort(key=distribution.by_length)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say which part runs."""
    if config.getoption("--part") == sampling.ALL:
        return []
    parts = sampling.parts_of(sampling.TOUCHED)
    return [
        f"part: a sample that commit {parts.seed[:12]} picks, and these files whole:",
        *(f"  {name}" for name in sorted(parts.touched) or ("none",)),
    ]


def pytest_collection_finish() -> None:
    """Leave modules and tests out of garbage collection: they stay until the end."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Stop what no file uses any more."""
    try:
        yield
    finally:
        shared.close_unused(item, nextitem)
