"""What aggregates say of overcommitting."""

from __future__ import annotations

from typing import Any

import pytest

from common.resources.aggregates import AggregateFacts, AllAggregates, ratios


def ratios_of(*metadata: dict[str, str]) -> Any:
    aggregates = tuple(AggregateFacts("u", "n", one, ("pve1",)) for one in metadata)
    return ratios(AllAggregates(7, aggregates))


def test_the_least_of_several_counts() -> None:
    found = ratios_of(
        {"cpu_allocation_ratio": "8"}, {"cpu_allocation_ratio": "2.5"}, {"ssd": "true"}
    )
    assert (found.version, found.hosts) == (7, {"pve1": {"cpu_allocation_ratio": 2.5}})


@pytest.mark.parametrize("text", ["", "much", "0", "-1", "nan", "inf"])
def test_what_is_no_ratio_says_nothing(text: str) -> None:
    assert ratios_of({"ram_allocation_ratio": text}).hosts == {}
