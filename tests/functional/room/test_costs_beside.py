"""What an ordinary server costs beside others that wait for room: nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.functional.test_costs import CREATE_STATEMENTS, HOSTS, Cloud, read_state
from tests.functional.test_waiting_for_room import LARGE, creating, delete, rows, running, waits
from tests.functional.waiting import eventually

TINY = "1"
#: Each host has room for a large one and a tiny one.
OPTIONS = (
    ("null", "vcpus", 9),
    ("seed", "flavors", [f"{TINY}:tiny:1:512:1", f"{LARGE}:large:8:2048:1"]),
    # Only what happens has anybody look.
    ("conductor", "scan_seconds", 3600),
)
WAIT = 3


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    with running(tmp_path, *OPTIONS) as made:
        yield made
        for uuid in rows(tmp_path, "SELECT uuid FROM servers WHERE deleted_at IS NULL"):
            delete(made, uuid)


@pytest.fixture
def about_waiting() -> Iterator[list[str]]:
    """Statements about those that wait, as they are sent."""
    sent: list[str] = []

    def note(_one: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if "waiting_builds" in statement:
            sent.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    yield sent
    sa.event.remove(sa.Engine, "before_cursor_execute", note)


def test_an_ordinary_server_costs_no_more_beside_those_that_wait(
    cloud: Cloud, about_waiting: list[str], tmp_path: Path
) -> None:
    """That it overtakes them is remembered, and written at times: else each one would have every
    row written, and read again."""
    create = creating(cloud, tmp_path)
    full = [create(f"full-{n}", wait=None) for n in range(HOSTS)]
    eventually(lambda: {read_state(tmp_path, one) for one in full} == {"active"})
    patient = [create(f"waits-{n}") for n in range(WAIT)]
    eventually(lambda: all(waits(tmp_path, one) for one in patient))
    about_waiting.clear()
    costs = []
    for _ in range(3):
        cloud.statements.clear()
        before = len(about_waiting)
        tiny = create("tiny", TINY, wait=None)
        eventually(lambda tiny=tiny: read_state(tmp_path, tiny) == "active")
        of_looks = len(about_waiting) - before
        costs.append(cloud.statements["cloud"] - 2 * of_looks)
        delete(cloud, tiny)
        eventually(lambda tiny=tiny: read_state(tmp_path, tiny) == "deleted")
    # A slow machine has leases renewed beside one or another.
    assert min(costs) <= CREATE_STATEMENTS, costs
    assert about_waiting, "nobody looked"
    assert [one for one in about_waiting if not one.startswith("SELECT")] == []
    assert [one for one in about_waiting if "waiting_builds.needs" in one] == []
