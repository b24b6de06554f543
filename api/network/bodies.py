"""Bodies of changes, read in Neutron's order and refused in its words.

See neutron/api/v2/base.py (``prepare_request_body``) and neutron_lib/api/attributes.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from common.errors import Invalid

Values = dict[str, Any]


@dataclass(frozen=True)
class Input:
    """An attribute that clients may set."""

    check: Callable[[Any], Any]
    """Returns the value as it is kept. Raises ValueError with the reason."""
    updates: bool = True
    """Whether it can be changed later."""
    required: bool = False


Inputs = Mapping[str, Input]


def of_create(
    body: Any, noun: str, inputs: Inputs, known: Collection[str]
) -> tuple[list[Values], bool]:
    """Return the resources to create, and whether the answer is a list.

    ``known`` are all attributes of the ``noun``. Raises Invalid.
    """
    plural = f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"
    if not body:
        raise Invalid("Resource body required")
    if isinstance(body, dict) and plural in body:
        items = body[plural]
        if not items:
            raise Invalid("Resources required")
        if not isinstance(items, list):
            raise Invalid("Body contains invalid data")
        # Each may be wrapped, or not.
        wrapped = [one if isinstance(one, dict) and noun in one else {noun: one} for one in items]
        return [_create(one, noun, inputs, known) for one in wrapped], True
    return [_create(body, noun, inputs, known)], False


def of_update(body: Any, noun: str, inputs: Inputs, known: Collection[str]) -> Values:
    """Return what is to change. Raises Invalid."""
    if not body:
        raise Invalid("Resource body required")
    asked = _inner(body, noun)
    _require_known(asked, known)
    for name in asked:
        if name not in inputs or not inputs[name].updates:
            raise Invalid(f"Cannot update read-only attribute {name}")
    return _checked(asked, inputs)


def _create(body: Any, noun: str, inputs: Inputs, known: Collection[str]) -> Values:
    asked = _inner(body, noun)
    _require_known(asked, known)
    for name, one in inputs.items():
        if one.required and name not in asked:
            raise Invalid(f"Failed to parse request. Required attribute '{name}' not specified")
    for name in asked:
        if name not in inputs:
            raise Invalid(f"Attribute '{name}' not allowed in POST")
    return _checked(asked, inputs)


def _inner(body: Any, noun: str) -> Values:
    if not isinstance(body, dict):
        raise Invalid("Body contains invalid data")
    asked = body.get(noun)
    if asked is None:
        raise Invalid(f"Unable to find '{noun}' in request body")
    if not isinstance(asked, dict):
        raise Invalid(f"Object '{noun}' contains invalid data")
    return asked


def _require_known(asked: Values, known: Collection[str]) -> None:
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise Invalid(f"Unrecognized attribute(s) '{', '.join(unknown)}'"[:1000])


def _checked(asked: Values, inputs: Inputs) -> Values:
    found = {}
    for name, value in asked.items():
        try:
            found[name] = inputs[name].check(value)
        except ValueError as error:
            raise Invalid(f"Invalid input for {name}. Reason: {error}.") from error
    return found
