"""Regular expressions of clients: no pattern holds up the interpreter."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from common import regex
from common.errors import Invalid

NAME = "a" * 255


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^web-[0-9]+$", "web-12", True),
        ("^web-[0-9]+$", "a web-12", False),
        ("(web|db)-.", "my db-1", True),
        ("(?i)WEB", "web", True),
        ("^.é$", "äé", True),
        ("[[:digit:]]{2}", "a12", True),
        ("x?y?", "", True),
        (r"a\{100000", "a{100000", True),
    ],
)
def test_found(pattern: str, text: str, found: bool) -> None:
    assert regex.finds(pattern, text) is found


@pytest.mark.parametrize(
    "pattern",
    [
        "(a?){60}a{60}c",
        ".*.*.*c",
        "(a+)+c",
        "(a|a)*c",
        "(.*a){20}c",
        "((a?)*)*c",
        "(?:a*)*(?:a*)*(?:a*)*c",
    ],
)
def test_what_tries_every_way_elsewhere_ends_here(pattern: str) -> None:
    assert not regex.finds(pattern, NAME)
    assert regex.finds(pattern, f"{NAME}c")


@pytest.mark.parametrize(
    "pattern",
    [
        "[",
        "(",
        "a**",
        "(?=a)b",
        r"(a)\1",
        "a{99999999999}",
        "a{1,99999999999}",
        "a{0,1001}",
        "((a{100}){100}){100}",
        r"(\pL{1,20}){20}z",
        "." * 256,
        "\ud800.",
        "(" * 250,
    ],
)
def test_refused(pattern: str) -> None:
    with pytest.raises(Invalid):
        regex.check(pattern)


@pytest.fixture
def no_turns_by_time() -> Iterator[None]:
    """No thread has to let others run because its time is over: only who waits does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(before)


def lets_others_run(search: Callable[[], object]) -> bool:
    """Whether another thread runs while this one searches; one search may be too short for it."""
    begun, ran = threading.Event(), threading.Event()

    def other() -> None:
        begun.wait()
        ran.set()

    thread = threading.Thread(target=other)
    thread.start()
    begun.set()
    seen = False
    for _ in range(100):
        search()
        seen = ran.is_set()
        if seen:
            break
    thread.join()
    return seen


@pytest.mark.usefixtures("no_turns_by_time")
def test_others_run_while_a_pattern_is_searched_for() -> None:
    text = "aé" * 50_000
    assert lets_others_run(lambda: regex.finds("(?:[a-z]?.?){60}q", text))
    # A search that holds the interpreter is noticed.
    assert not lets_others_run(lambda: re.search("q", text))
