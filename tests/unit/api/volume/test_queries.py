"""The query string of a list of volumes, snapshots, types and the like."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from api.query import Query
from api.volume import queries
from api.volume.call import Call
from common.errors import Invalid
from db.reads.volumes.volumes import SORTABLE


def asked(text: str) -> Call:
    """A request with this query string."""
    nothing: Any = None
    return Call(cloud=nothing, ctxt=nothing, version=71, query=Query.parse(text), root="")


@pytest.mark.parametrize(
    "text",
    [
        "sort=" + ",".join(["name:asc", "size", *["name:desc", "size:asc"] * 60]),
        "&".join(
            ["sort_key=name&sort_dir=asc&sort_key=size&sort_dir=desc", *["sort_key=name"] * 60]
        ),
    ],
    ids=["sort", "sort_key"],
)
def test_of_a_repeated_sort_key_the_first_counts(text: str) -> None:
    """A page after a marker has a condition for each pair of keys."""
    assert queries.order(asked(text), SORTABLE) == [("name", False), ("size", True)]


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("sort_dir=asc", [("created_at", False)]),
        ("sort_key=name", [("name", True)]),
        ("sort=name%20:%20asc,%20size", [("name", False), ("size", True)]),
    ],
)
def test_the_order_that_is_asked_for(text: str, order: list[tuple[str, bool]]) -> None:
    """A direction without a key is that of ``created_at`` (cinder.api.common.get_sort_params)."""
    assert queries.order(asked(text), SORTABLE) == order


@pytest.mark.parametrize("text", ["sort=name&sort_key=size", "sort=name&sort_dir=asc"])
def test_both_grammars_of_an_order_at_once_are_refused(text: str) -> None:
    with pytest.raises(Invalid, match="cannot be used with the 'sort' parameter"):
        queries.order(asked(text), SORTABLE)


@pytest.mark.parametrize("digits", [11, 5000])
@pytest.mark.parametrize("name", ["limit", "offset"])
def test_a_number_that_no_list_has(name: str, digits: int) -> None:
    """Python converts no text of more than 4300 digits."""
    with pytest.raises(Invalid, match=f"{name} must be an integer"):
        queries.page(asked(f"{name}={'9' * digits}"))
    assert queries.page(asked(f"{name}={'0' * digits}1"))


def test_a_dictionary_of_strings() -> None:
    text = quote(r"{'a': '\u00e9', 'b/c': ''}")
    assert queries.mapping(asked(f"metadata={text}"), "metadata") == {"a": "é", "b/c": ""}
    assert queries.mapping(asked(""), "metadata") == {}


@pytest.mark.parametrize(
    "text",
    [
        *("x", "'x'", "{'a': 1}", "{1: 'a'}", "{[]: 'a'}", "{{}: 'a'}", "{**{}}", "(" * 2_500),
        *(r"{'a': '\ud800'}", r"{'\udfff': 'a'}", r"{'a': '\0'}"),
    ],
    ids=lambda text: text[:16],
)
def test_what_is_no_dictionary_of_strings(text: str) -> None:
    with pytest.raises(Invalid, match="must be a dictionary of strings"):
        queries.mapping(asked(f"extra_specs={quote(text)}"), "extra_specs")
