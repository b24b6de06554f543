"""Conductors are killed with a server in each task_state that lasts; another one ends its build.

A server is held in a state from outside: a lock on a table that the next transaction writes, or a
stopped scheduler or agent. Then both conductors die by SIGKILL and start again, and nothing is
done about their leases; what held the server is let go. It must end ACTIVE or ERROR, and a delete
must leave nothing.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa

from tests.chaos.stage import Stage

pytestmark = [
    pytest.mark.sampled(4),
    pytest.mark.distributed,
    pytest.mark.timeout(2400),
]

Hold = Callable[[Stage], contextlib.AbstractContextManager[None]]


def locked(table: str) -> Hold:
    """Nobody can read or write the table."""

    @contextlib.contextmanager
    def hold(cloud: Stage) -> Iterator[None]:
        with cloud.engine.connect() as connection:
            connection.execute(sa.text(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"))
            yield
            connection.rollback()

    return hold


def frozen(role: str) -> Hold:
    """The processes of a service stand still."""

    @contextlib.contextmanager
    def hold(cloud: Stage) -> Iterator[None]:
        for name in cloud.of_role(role):
            cloud.pause(name)
        try:
            yield
        finally:
            for name in cloud.of_role(role):
                cloud.pause(name, False)

    return hold


@pytest.mark.parametrize(
    ("task_state", "hold"),
    [
        ("scheduling", frozen("scheduler")),
        # One transaction leads from the host to the agent, or nowhere.
        ("scheduling", locked("vmids")),
        ("scheduling", locked("templates")),
        ("spawning", frozen("compute")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_conductors_killed(
    cloud: Stage, task_state: str, hold: Hold, request: pytest.FixtureRequest
) -> None:
    name = request.node.name

    def state() -> tuple[str, str | None] | None:
        row = cloud.named(name)
        return row and (row.vm_state, row.task_state)

    with hold(cloud):
        cloud.create(name)
        cloud.until(lambda: state() == ("building", task_state))
        for conductor in cloud.of_role("conductor"):
            cloud.stop(conductor, signal.SIGKILL)
        for conductor in cloud.of_role("conductor"):
            cloud.start(conductor)
        assert state() == ("building", task_state)
    cloud.until(lambda: (state() or ("",))[0] in {"active", "error"})
    assert cloud.clear_away() == ""
