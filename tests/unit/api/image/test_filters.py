"""The query string of an image list."""

from __future__ import annotations

import contextlib
import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.image import filters
from common.errors import Invalid
from db.reads.images.images import Condition, Reach
from db.reads.keyset import Page


def test_without_a_query() -> None:
    query = filters.parse([])
    assert query == filters.Query(order=[("created_at", True)], page=Page(limit=25))


def test_limits_are_capped() -> None:
    assert filters.parse([("limit", "5000")]).page.limit == 1000


def test_values_between_commas() -> None:
    query = filters.parse([("name", 'in:a,"b,\\"c",,d')])
    assert query.conditions == [Condition("name", "in", ["a", 'b,"c', "", "d"])]


@pytest.mark.parametrize("text", ['"a', 'a"b', '"a"b', '"a\\"'])
def test_quotes_must_match(text: str) -> None:
    with pytest.raises(Invalid, match="Invalid filter value"):
        filters.parse([("name", f"in:{text}")])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_every_list_of_values_can_be_said(values: list[str]) -> None:
    def quoted(value: str) -> str:
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    query = filters.parse([("name", "in:" + ",".join(map(quoted, values)))])
    assert query.conditions == [Condition("name", "in", values)]


def test_times_have_operators_and_zones() -> None:
    query = filters.parse([("updated_at", "gte:2026-01-31T12:00:00 01:00")])
    noon = datetime.datetime(2026, 1, 31, 11, tzinfo=datetime.UTC)
    assert query.conditions == [Condition("updated_at", "gte", noon)]


def test_sort_keys_count_once() -> None:
    query = filters.parse([("sort", "size, name:asc,size:asc,container_format")])
    assert query.order == [
        ("size_bytes", True),
        ("name", False),
        ("container_format", True),
    ]


def test_how_far_a_list_goes() -> None:
    assert filters.parse([]).reach("p") == Reach(None, "accepted", "p")
    pairs = [("visibility", "shared"), ("member_status", "all"), ("tag", "a"), ("tag", "b")]
    query = filters.parse([*pairs, ("os_hidden", "True")])
    assert (query.reach(None), query.tags) == (Reach("shared", "all", hidden=True), ["a", "b"])


@given(st.lists(st.tuples(st.text(), st.text())))
def test_any_query_is_read_or_refused(pairs: list[tuple[str, str]]) -> None:
    with contextlib.suppress(Invalid):
        filters.parse(pairs)
