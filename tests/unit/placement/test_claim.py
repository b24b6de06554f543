"""What a claim may take, decided on what is held."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.claim import Held, check
from placement.errors import InventoryRefused
from placement.snapshot import Inventory

LINE = ("provider", "VCPU")
STOCK = Inventory(
    total=10, reserved=2, min_unit=2, max_unit=8, step_size=2, allocation_ratio=1.5, used=6
)


def refused(amounts: list[int], stock: Inventory = STOCK, freed: int = 0) -> str | None:
    try:
        check({LINE: amounts}, {LINE: Held(1, stock, freed)})
    except InventoryRefused as error:
        return error.message
    return None


@pytest.mark.parametrize(
    ("amounts", "freed", "reason"),
    [
        ([6], 0, None),
        ([8], 0, "exceed the capacity"),
        ([8], 2, None),
        ([2, 4], 0, None),
        ([4, 4], 0, "exceed the capacity"),
        ([1], 0, "violate inventory constraints"),
        ([3], 0, "violate inventory constraints"),
        ([10], 6, "violate inventory constraints"),
    ],
)
def test_capacity_and_units(amounts: list[int], freed: int, reason: str | None) -> None:
    message = refused(amounts, freed=freed)
    if message is not None:
        with pytest.raises(InventoryRefused) as caught:
            check({LINE: amounts}, {LINE: Held(1, STOCK, freed)})
        where = {"resource_provider": "provider", "resource_class": "VCPU"}
        assert caught.value.details == where
    assert (message is None) if reason is None else (reason in (message or ""))


def test_over_capacity_may_stay_or_shrink_but_not_grow() -> None:
    over = STOCK._replace(total=4, used=8)
    assert refused([6], over, freed=8) is None
    assert refused([8], over, freed=8) is None
    assert "exceed" in (refused([2], over) or "")


def test_no_inventory() -> None:
    with pytest.raises(InventoryRefused, match=r"Inventory for 'VCPU' on .* invalid"):
        check({LINE: [1]}, {})
    with pytest.raises(InventoryRefused, match=r"Inventory for 'DISK_GB' on .* invalid"):
        check({("provider", "DISK_GB"): [1]}, {LINE: Held(1, STOCK, 0)})


@given(
    st.integers(1, 20),
    st.integers(0, 5),
    st.sampled_from([0.5, 1.0, 1.3, 16.0]),
    st.integers(0, 40),
    st.integers(0, 40),
    st.lists(st.integers(1, 20), min_size=1, max_size=3),
)
def test_granted_means_within_capacity_or_no_worse(
    total: int, reserved: int, ratio: float, used: int, freed: int, amounts: list[int]
) -> None:
    stock = Inventory(total, reserved, 1, 20, 1, ratio, used)
    freed = min(freed, used)
    after = used - freed + sum(amounts)
    fits = after <= (total - reserved) * ratio or after <= used
    assert (refused(amounts, stock, freed) is None) == fits
