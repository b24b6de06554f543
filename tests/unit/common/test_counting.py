"""Numbers of things in sentences."""

from __future__ import annotations

import pytest

from common.counting import counted


@pytest.mark.parametrize(
    ("count", "words", "said"),
    [
        (1, ("host",), "1 host"),
        (0, ("host",), "0 hosts"),
        (2, ("host",), "2 hosts"),
        (1, ("server is", "servers are"), "1 server is"),
        (3, ("server is", "servers are"), "3 servers are"),
    ],
)
def test_only_one_is_singular(count: int, words: tuple[str, ...], said: str) -> None:
    assert counted(count, *words) == said
