"""A refused value of several forms is refused by the form that it has."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from web import wording

SIZE = {"oneOf": [{"type": "integer", "minimum": 1, "maximum": 9}, {"type": "null"}]}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (99, "99 is greater than the maximum of 9"),
        (-1, "-1 is less than the minimum of 1"),
        ("x", "'x' is not valid under any of the given schemas"),
    ],
)
def test_a_limit_is_named(value: Any, said: str) -> None:
    schema = {"type": "object", "properties": {"size": SIZE}}
    [error] = jsonschema.Draft202012Validator(schema).iter_errors({"size": value})
    assert wording.sentence(error) == said
