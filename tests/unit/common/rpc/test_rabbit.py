"""How the rabbit driver repeats what failed."""

from __future__ import annotations

import os
from typing import Any

import pytest

from common.rpc import rabbit


class Connection:
    """Does what it is given as the driver's does, and notes that."""

    channel: Any = "one"

    def __init__(self) -> None:
        self._initial_pid = os.getpid()
        self.ensured: list[BaseException | None] = []
        self.options: dict[str, Any] = {}

    def ensure(self, method: Any, **options: Any) -> None:
        """Try until it succeeds, but for errors that say so."""
        self.options = options
        while True:
            try:
                method()
            except OSError as error:
                self.ensured.append(error)
                continue
            self.ensured.append(None)
            return

    trying_first = rabbit._trying_first(ensure)


def test_what_succeeds_at_once_is_not_prepared_to_be_tried_again() -> None:
    connection, done = Connection(), []
    connection.trying_first(lambda: done.append(1))
    assert (done, connection.ensured) == ([1], [])


def test_what_fails_at_first_is_tried_again_as_if_it_had_failed_there() -> None:
    connection, errors = Connection(), [OSError("cut"), OSError("refused")]
    tries: list[OSError | None] = []

    def fail() -> None:
        tries.append(errors[len(tries)] if len(tries) < len(errors) else None)
        if tries[-1]:
            raise tries[-1]

    connection.trying_first(fail, retry=2)
    assert tries == connection.ensured == [*errors, None]
    assert connection.options == {"retry": 2}


def test_what_is_no_error_of_the_connection_is_raised_once() -> None:
    connection, tries = Connection(), []

    def late() -> None:
        tries.append(1)
        raise LookupError

    with pytest.raises(LookupError):
        connection.trying_first(late)
    assert (tries, connection.ensured) == ([1], [])


@pytest.mark.parametrize(("channel", "pid"), [(None, 0), ("one", 1)])
def test_without_a_channel_nothing_is_tried_first(channel: Any, pid: int) -> None:
    connection = Connection()
    connection.channel = channel
    connection._initial_pid += pid
    connection.trying_first(lambda: None)
    assert connection.ensured == [None]
