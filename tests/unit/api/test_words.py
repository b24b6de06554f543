"""Validation in Nova's words: the compiled schemas refuse what jsonschema refuses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.compute.routes import ROUTES
from api.compute.schemas import keypairs, servers, types
from api.words import BODY, NOVA_FORMATS, QUERY, is_name
from common.errors import Invalid
from web.schemas import Validator, versioned

THING = types.body(
    "thing",
    types.record({"name": types.NAME, "count": types.POSITIVE, "size": types.SIZE}, ["name"]),
)


def refusal(schema: dict[str, Any], value: Any, *, query: bool = False) -> str:
    with pytest.raises(Invalid) as caught:
        Validator(schema, QUERY if query else BODY)(value)
    return caught.value.message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "None is not of type 'object'"),
        ({}, "'thing' is a required property"),
        (
            {"thing": {}},
            "Invalid input for field/attribute thing. 'name' is a required property",
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
    assert NOVA_FORMATS[name](good)
    assert not NOVA_FORMATS[name](bad)


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
    validator = Validator(THING, BODY)
    wording = validator.refusal(value)
    if wording is None:
        validator(value)
        return
    with pytest.raises(Invalid) as caught:
        validator(value)
    assert caught.value.message == wording


def test_every_schema_compiles() -> None:
    for row in ROUTES:
        for _, _, described in row.served():
            for each in (described.body, described.query):
                for _, validator in each.items() if each else ():
                    assert validator is None or validator._compiled


SECRETS = ("s3cr3t-pass", "s3cr3t-data", "s3cr3t-file", "s3cr3t-meta", "s3cr3t-key")


def a_secret_create(**changes: Any) -> dict[str, Any]:
    server = {
        "name": "a",
        "imageRef": "",
        "flavorRef": "1",
        "networks": "auto",
        "adminPass": SECRETS[0],
        "user_data": SECRETS[1],
        "personality": [{"path": "/a", "contents": SECRETS[2]}],
        "metadata": {"token": SECRETS[3]},
    }
    return {"server": server | changes}


@pytest.mark.parametrize("version", [1, 94])
@pytest.mark.parametrize(
    "changes",
    [
        {"name": None},
        {"networks": [{"uuid": {"a": SECRETS}}]},
        {"adminPass": {"a": SECRETS[0]}},
        {"adminPass": [SECRETS[0]]},
        {"user_data": f"!{SECRETS[1]}"},
        {"user_data": SECRETS[1] * 20_000},
        {"personality": SECRETS[2]},
        {"personality": [{"path": 5, "contents": SECRETS[2]}]},
        {"metadata": {"a": {"b": SECRETS[3]}}},
        {"metadata": {"a" * 300: SECRETS[3]}},
        {"metadata": {"a": SECRETS[3] * 100}},
        {"metadata": [SECRETS[3]]},
        {"unknown": {"password": SECRETS[0]}},
        {"min_count": {"x": SECRETS[0]}},
        {"key_name": [SECRETS[4]]},
    ],
)
def test_no_refusal_of_a_create_shows_a_secret_or_a_whole_object(
    version: int, changes: dict[str, Any]
) -> None:
    validate = versioned(servers.CREATE, BODY).at(version)
    assert validate is not None
    message = ""
    try:
        validate(a_secret_create(**changes))
    except Invalid as error:
        message = error.message
    assert not [secret for secret in SECRETS if secret in message]
    assert "{'" not in message
    assert len(message) < 1500


def test_no_refusal_of_a_key_pair_shows_the_key() -> None:
    for schema in keypairs.CREATE.values():
        for changes in ({"public_key": [SECRETS[4]]}, {"public_key": SECRETS[4], "x": 1}):
            message = refusal(schema, {"keypair": {"name": "k", **changes}})
            assert SECRETS[4] not in message
