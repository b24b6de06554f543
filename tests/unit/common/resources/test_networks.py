"""The network that the cloud chooses."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from common.errors import Conflict
from common.resources.networks import chosen


@dataclass(frozen=True)
class Net:
    bridge: str
    discovered: bool = True


A, B, A_VLAN = Net("a"), Net("b"), Net("a", discovered=False)


def test_the_only_one() -> None:
    assert chosen([], None) is None
    assert chosen([A], None) is A
    with pytest.raises(Conflict, match="Multiple possible networks found"):
        chosen([A, B], None)


def test_the_configured_one() -> None:
    assert chosen([A, B], "b") is B
    assert chosen([A_VLAN, A, B], "a") is A
    assert chosen([A_VLAN, A], "c") is None
    assert chosen([A_VLAN], "b") is A_VLAN
