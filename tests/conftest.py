"""For every test: oslo.messaging is first imported the way the services do, without eventlet."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest

import common.rpc  # noqa: F401
from tests.chaos.summary import PROPERTY, table

# A busy machine is no reason to fail.
hypothesis.settings.register_profile("micronova", deadline=None)
hypothesis.settings.load_profile("micronova")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The table of all chaos cases that were run, in whichever process."""
    reports = [
        one for kind in ("passed", "failed") for one in terminalreporter.stats.get(kind, ())
    ]
    lines = [value for one in reports for name, value in one.user_properties if name == PROPERTY]
    if lines:
        terminalreporter.section("chaos: every step")
        terminalreporter.write_line(table(lines))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With ``--dist loadgroup`` a file's tests stay together, but for parts that may be shared."""
    for item in items:
        if "wanted" not in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(str(item.path)))
