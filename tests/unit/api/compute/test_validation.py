"""Validation: the compiled schemas refuse what jsonschema refuses, in Nova's words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.compute.operation import operation_of
from api.compute.routes import ROUTES
from api.compute.schemas import types
from api.compute.validation import FORMATS, Validator, is_name
from common.errors import Invalid

THING = types.body(
    "thing",
    types.record({"name": types.NAME, "count": types.POSITIVE, "size": types.SIZE}, ["name"]),
)


def refusal(schema: dict[str, Any], value: Any, *, query: bool = False) -> str:
    with pytest.raises(Invalid) as caught:
        Validator(schema, query=query)(value)
    return caught.value.message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "None is not of type 'object'"),
        ({}, "'thing' is a required property"),
        (
            {"thing": {}},
            "Invalid input for field/attribute thing. Value: {}. 'name' is a required property",
        ),
        (
            {"thing": {"name": " a"}},
            "An invalid 'name' value was provided. The name must be: printable characters. "
            "Can not start or end with whitespace.",
        ),
        (
            {"thing": {"name": "a", "count": "0"}},
            "Invalid input for field/attribute count. Value: 0. 0 is less than the minimum of 1",
        ),
        (
            {"thing": {"name": "a", "size": "2147483648"}},
            "Invalid input for field/attribute size. Value: 2147483648. "
            "2147483648 is greater than the maximum of 2147483647",
        ),
    ],
)
def test_words(value: Any, message: str) -> None:
    assert refusal(THING, value) == message


def test_words_for_queries() -> None:
    schema = types.query({"limit": types.LIMIT}, more=False)
    assert refusal(schema, {"limit": ["-1"]}, query=True).startswith(
        "Invalid input for query parameters limit. Value: -1."
    )
    assert "'x' was unexpected" in refusal(schema, {"x": ["1"]}, query=True)


def test_a_line_feed_at_the_end_is_no_part_of_a_pattern() -> None:
    assert "must match pattern" in refusal(types.HOSTNAME, "web\n")


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("uuid", "5b0d2b6f-4a0b-4a57-9f0e-000000000000", "5b0d2b6f"),
        ("name", "a b", "a "),
        ("az_name", "az1", "az:1"),
        ("description", " a ", "a\tb"),
        ("date-time", "2026-01-31T12:00:00Z", "yesterday"),
        ("base64", "YWJj", "Y"),
        ("regex", "a.*", "["),
        ("ipv4", "192.0.2.1", "192.0.2.256"),
        ("ipv6", "2001:db8::1", "192.0.2.1"),
    ],
)
def test_formats(name: str, good: str, bad: str) -> None:
    assert FORMATS[name](good)
    assert not FORMATS[name](bad)


@given(st.text(max_size=20))
def test_names_never_hide_their_ends(text: str) -> None:
    if is_name(text):
        assert text == text.strip()
        assert text.isprintable() or any(char.isspace() for char in text)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "count", "size", "thing", "x"]), inner)
    ),
    max_leaves=6,
)


@given(st.fixed_dictionaries({"thing": _JSON}) | _JSON)
def test_both_validators_agree(value: Any) -> None:
    validator = Validator(THING)
    wording = validator._wording(value)
    if wording is None:
        validator(value)
        return
    with pytest.raises(Invalid) as caught:
        validator(value)
    assert caught.value.message == wording


def test_every_schema_compiles() -> None:
    for row in ROUTES:
        names = [name for method in row.methods for name in row.names(method)]
        for name in [*names, *row.actions.values()]:
            described = operation_of(getattr(row.resource, name))
            for versioned in (described.body, described.query):
                for _, validator in versioned.items() if versioned else ():
                    validator._compiled  # noqa: B018 - compiles
