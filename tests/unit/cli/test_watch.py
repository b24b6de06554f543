"""``--watch``: what is shown at a terminal, what elsewhere, and when it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from openstack import exceptions

from tests.fixtures.sdk import FakeConnection, FakeProxy, Ran, run
from tests.unit.cli.test_servers import a_server

pytestmark = pytest.mark.filterwarnings("ignore:The _compute_attributes method is deprecated")


def after(looks: int) -> Callable[[float], None]:
    """A pause that the user ends by Ctrl-C after so many looks."""
    left = iter(range(looks - 1))

    def pause(seconds: float) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    return pause


def watch(answers: list[Any], *words: str, looks: int, terminal: bool = False) -> Ran:
    given: Iterator[Any] = iter(answers)

    def servers(*_: Any, **__: Any) -> Any:
        answer = next(given)
        if isinstance(answer, Exception):
            raise answer
        return answer

    proxy = FakeProxy(servers=servers, find_server=servers)
    connection = FakeConnection(proxy, FakeProxy(images=[], get_image=a_server()))
    return run(connection, *words, pause=after(looks), terminal=terminal)


BUILD, ACTIVE = a_server(status="BUILD"), a_server(status="ACTIVE")


def test_without_a_terminal_each_change_is_printed_once() -> None:
    ran = watch(
        [[BUILD], [BUILD], [ACTIVE], [ACTIVE], [BUILD]],
        *("server", "list", "-f", "value", "-c", "Status", "--watch"),
        looks=5,
    )
    assert (ran.code, ran.out) == (0, "BUILD\nACTIVE\nBUILD\n")


def test_at_a_terminal_it_is_redrawn_and_left_in_order() -> None:
    ran = watch([[BUILD], [ACTIVE]], "server", "list", "--watch", looks=2, terminal=True)
    assert ran.code == 0
    assert ran.out.count("\x1b[H") == 2
    assert ran.out.startswith("\x1b[?7l\x1b[2J")
    assert ran.out.endswith("\x1b[J\x1b[?7h")
    assert "Every 2 s, Ctrl-C ends." in ran.out
    assert "\x1b[33mBUILD\x1b[0m" in ran.out
    assert "\x1b[32mACTIVE\x1b[0m" in ran.out


def test_a_thing_is_watched_until_it_is_gone() -> None:
    gone = exceptions.NotFoundException("gone")
    ran = watch([BUILD, gone], "server", "show", "web", "--watch", looks=9)
    assert ran.code == 1
    assert "BUILD" in ran.out
    assert "No server named 'web'" in ran.err


def test_an_error_in_between_is_shown_and_passes() -> None:
    silent = exceptions.HttpException("no answer", http_status=503)
    ran = watch(
        [[BUILD], silent, [ACTIVE]],
        *("server", "list", "-f", "value", "-c", "Status", "--watch", "--interval", "5"),
        looks=3,
    )
    assert ran.code == 0
    first, error, last = ran.out.splitlines()
    assert (first, last) == ("BUILD", "ACTIVE")
    assert "no answer" in error


def test_the_first_error_ends_it() -> None:
    ran = watch([exceptions.HttpException("no answer")], "server", "list", "--watch", looks=9)
    assert (ran.code, ran.out) == (1, "")


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "1e9", "x", ""])
def test_a_wrong_interval_is_wrong_usage(seconds: str) -> None:
    ran = watch([], "server", "list", "--watch", f"--interval={seconds}", looks=1)
    assert ran.code == 2
