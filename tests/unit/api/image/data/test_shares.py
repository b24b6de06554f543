"""Places that projects share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from api.image.data.shares import Shares
from common.errors import Unavailable


def taken(shares: Shares, project: str) -> list[Callable[[], None]]:
    """All that a project gets."""
    found = []
    with contextlib.suppress(Unavailable):
        while True:
            found.append(shares.take(project))
    return found


def test_one_project_leaves_half_and_later_ones_find_a_place() -> None:
    shares = Shares(24, "uploads")
    assert [len(taken(shares, name)) for name in "abcdefg"] == [12, 6, 3, 2, 1, 0, 0]
    with pytest.raises(Unavailable, match="Too many uploads of this project at a time"):
        shares.take("a")
    with pytest.raises(Unavailable, match="Too many uploads at a time"):
        shares.take("g")


def test_a_place_is_given_back_once() -> None:
    shares = Shares(4, "uploads")
    one, two = taken(shares, "a")
    one()
    one()
    assert len(taken(shares, "a")) == 1
    two()
    with shares.place("b"):
        assert len(taken(shares, "a")) == 1
    with pytest.raises(Unavailable):
        shares.take("a")


def test_who_has_no_project_shares_one_share() -> None:
    shares = Shares(4, "uploads")
    assert (len(taken(shares, "")), len(taken(shares, "a"))) == (2, 1)
    with pytest.raises(Unavailable):
        shares.take(None)
