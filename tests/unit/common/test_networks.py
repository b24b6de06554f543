"""The network that the cloud chooses."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from common.errors import Conflict
from common.networks import chosen


@dataclass(frozen=True)
class Net:
    bridge: str


A, B = Net("a"), Net("b")


def test_the_only_one() -> None:
    assert chosen([], None) is None
    assert chosen([A], None) is A
    with pytest.raises(Conflict, match="Multiple possible networks found"):
        chosen([A, B], None)


def test_the_configured_one() -> None:
    assert chosen([A, B], "b") is B
    assert chosen([A], "b") is None
