"""One limit of how much a list may be asked for."""

from __future__ import annotations

import pytest

from common.errors import Invalid
from web import queries


def test_pairs_keep_their_order_and_those_without_a_value() -> None:
    assert queries.pairs("b=1&a&b=2&c=%2C") == [("b", "1"), ("a", ""), ("b", "2"), ("c", ",")]
    assert queries.pairs("") == []


@pytest.mark.parametrize("part", ["tag=a&", "tags=a,", "a&", "a=1&b=2,"])
def test_values_of_all_parameters_count_and_items_between_commas(part: str) -> None:
    one = len(queries.pairs(part.rstrip("&,")))
    text = part * (queries.MOST_VALUES // one)
    assert queries.pairs(text.rstrip("&,"))
    with pytest.raises(Invalid, match=r"has \d+ values; 128 are allowed"):
        queries.pairs(text + "z&z=,")


def test_a_query_string_has_a_length() -> None:
    queries.pairs("a=" + "b" * (queries.MOST_CHARACTERS - 2))
    with pytest.raises(Invalid, match="longer than 8192"):
        queries.pairs("a=" + "b" * queries.MOST_CHARACTERS)
