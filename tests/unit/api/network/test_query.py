"""The query string of a network list."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.network import query
from api.network.attributes import NETWORK, PORT, SUBNET
from common.errors import Invalid
from db.reads.keyset import Page

URL = "http://cloud.example/network/v2.0/networks"


def test_without_a_query() -> None:
    assert query.parse([], NETWORK) == query.Query()


def test_repeated_values_are_alternatives() -> None:
    asked = query.parse([("name", "a"), ("name", "b"), ("mtu", "1500")], NETWORK)
    assert asked.where == {"name": ["a", "b"], "mtu": [1500]}


def test_two_names_of_a_field_are_both_meant() -> None:
    asked = query.parse([("tenant_id", "a"), ("project_id", "a"), ("project_id", "b")], PORT)
    assert (asked.where, asked.possible) == ({"project_id": ["a"]}, True)
    assert not query.parse([("tenant_id", "a"), ("project_id", "b")], PORT).possible


def test_fixed_ips_by_part() -> None:
    pairs = [("fixed_ips", f"ip_address=10.0.0.{n}") for n in (1, 2)]
    asked = query.parse([*pairs, ("fixed_ips", "subnet_id=s")], PORT)
    assert asked.where == {"ip": ["10.0.0.1", "10.0.0.2"], "subnet_id": ["s"]}


def test_an_empty_address_asks_for_none() -> None:
    assert query.parse([("gateway_ip", "")], SUBNET).where == {"gateway_ip": [None]}


def test_hidden_attributes_cannot_be_asked_for() -> None:
    visible = [each for each in NETWORK if each.rule is None]
    with pytest.raises(Invalid, match="invalid attribute for filtering"):
        query.parse([("provider:network_type", "flat")], visible)
    with pytest.raises(Invalid, match="invalid attribute for sort_keys"):
        query.parse([("sort_key", "provider:network_type"), ("sort_dir", "asc")], visible)


def test_a_marker_without_a_limit_is_ignored() -> None:
    assert query.parse([("marker", "x"), ("page_reverse", "true")], NETWORK).page == Page()
    page = query.parse([("marker", "x"), ("page_reverse", "true"), ("limit", "2")], NETWORK).page
    assert page == Page(limit=2, marker="x", backwards=True)


@pytest.mark.parametrize(
    ("ids", "backwards", "expected"),
    [
        (["a", "b"], False, ["next", "previous"]),
        (["a"], False, ["previous"]),
        ([], False, ["previous"]),
        (["a", "b"], True, ["next", "previous"]),
        (["a"], True, ["next"]),
    ],
)
def test_links(ids: list[str], backwards: bool, expected: list[str]) -> None:
    links = query.links(URL, [("limit", "2")], ids, Page(limit=2, backwards=backwards))
    assert [link["rel"] for link in links] == expected
    for link in links:
        end = {"next": ids[-1:], "previous": ids[:1]}[link["rel"]]
        assert (f"marker={end[0]}" in link["href"]) if end else ("marker" not in link["href"])


def test_links_keep_the_rest_of_the_query() -> None:
    pairs = [("name", "a&b"), ("marker", "old"), ("limit", "1"), ("page_reverse", "True")]
    (following, previous) = query.links(URL, pairs, ["a"], Page(limit=1))
    assert following["href"] == f"{URL}?name=a%26b&limit=1&marker=a"
    assert previous["href"] == f"{URL}?name=a%26b&limit=1&marker=a&page_reverse=True"


@given(st.lists(st.tuples(st.text(), st.text())), st.sampled_from([NETWORK, SUBNET, PORT]))
def test_any_query_is_read_or_refused(pairs: list[tuple[str, str]], attributes: object) -> None:
    with contextlib.suppress(Invalid):
        query.parse(pairs, attributes)  # type: ignore[arg-type]
