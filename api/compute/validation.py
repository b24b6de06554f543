"""Is what a client sent well formed? Compiled schemas answer; jsonschema words the refusals.

Schemas are JSON Schema with Nova's formats. `minimum` and `maximum` hold for numbers in strings
too, as in Nova (nova/api/validation/validators.py).
"""

from __future__ import annotations

import base64
import binascii
import copy
import functools
import ipaddress
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import fastjsonschema
import jsonschema

from common import clock, ids, regex, wording
from common.errors import Invalid

Schema = Mapping[str, Any]

NAME_RULE = "printable characters. Can not start or end with whitespace."
SPACED_NAME_RULE = "printable characters with at least one non space character"
AZ_NAME_RULE = "printable characters except :. Can not start or end with whitespace."


def _printable(char: str) -> bool:
    category = unicodedata.category(char)
    return category[0] != "C" and (category[0] != "Z" or category == "Zs")


def is_name(text: str) -> bool:
    """Printable, and no space at the ends."""
    return text == text.strip() and all(map(_printable, text))


def is_description(text: str) -> bool:
    """Printable."""
    return all(map(_printable, text))


def _succeeds(check: Callable[[str], Any], *failures: type[Exception]) -> Callable[[str], bool]:
    def holds(text: str) -> bool:
        try:
            check(text)
        except failures:
            return False
        return True

    return holds


#: format → predicate on strings; other values never fail a format
FORMATS: Mapping[str, Callable[[str], bool]] = {
    "uuid": ids.is_uuid,
    "name": is_name,
    "spaced_name": lambda text: bool(text.strip()) and is_name(text.strip(" ")),
    "az_name": lambda text: ":" not in text and is_name(text),
    "description": is_description,
    "date-time": _succeeds(clock.parse, ValueError),
    "base64": _succeeds(base64.b64decode, binascii.Error, ValueError),
    "regex": lambda text: bool(text) and _succeeds(regex.check, Invalid)(text),
    "ipv4": _succeeds(ipaddress.IPv4Address, ValueError),
    "ipv6": _succeeds(ipaddress.IPv6Address, ValueError),
}

_RULES = {"name": NAME_RULE, "spaced_name": SPACED_NAME_RULE, "az_name": AZ_NAME_RULE}


class Validator:
    """One schema; compiled when it is first used. `query`: for lists of query parameters."""

    def __init__(self, schema: Schema, *, query: bool = False) -> None:
        self.schema = schema
        self._query = query

    def __call__(self, value: Any) -> None:
        """Raise Invalid, in Nova's words, unless the value is well formed."""
        try:
            self._compiled(value)
        except fastjsonschema.JsonSchemaValueException as refusal:
            # The stricter one counts: `$` lets a line feed pass in one and not in the other.
            raise Invalid(self._wording(value) or str(refusal.message)) from None

    @functools.cached_property
    def _compiled(self) -> Callable[[Any], Any]:
        formats = dict(FORMATS)
        schema = _with_ranges(copy.deepcopy(dict(self.schema)), formats)
        # Custom formats are asked for every string of that format, ours before the built-in ones.
        compiled: Callable[[Any], Any] = fastjsonschema.compile(
            schema, formats=formats, use_default=False, detailed_exceptions=True
        )
        return compiled

    @functools.cached_property
    def _wordy(self) -> Any:
        return _Wordy(self.schema, format_checker=_checker())

    def _wording(self, value: Any) -> str | None:
        try:
            self._wordy.validate(value)
        except jsonschema.ValidationError as error:
            return self._message(error)
        return None

    def _message(self, error: jsonschema.ValidationError) -> str:
        rule = _RULES.get(str(error.validator_value)) if error.validator == "format" else None
        if rule is not None:
            return f"An invalid 'name' value was provided. The name must be: {rule}"
        said = wording.sentence(error)
        if not error.path:
            return said
        where = error.path[0] if self._query else error.path[-1]
        kind = "query parameters" if self._query else "field/attribute"
        value = ""
        if wording.is_shown(error.absolute_path, error.instance):
            value = f"Value: {error.instance}. "
        return f"Invalid input for {kind} {where}. {value}{said}"


def _with_ranges(schema: dict[str, Any], formats: dict[str, Callable[[str], bool]]) -> Any:
    """The schema, where a range of numbers holds for their texts too (by a made-up format)."""
    types = schema.get("type")
    limits = (schema.get("minimum"), schema.get("maximum"))
    if isinstance(types, list) and "string" in types and limits != (None, None):
        name = f"range{limits[0]}_{limits[1]}".replace("-", "m").replace(".", "_")
        formats[name] = functools.partial(_within, *limits)
        schema["format"] = name
    for key, part in schema.items():
        if isinstance(part, dict):
            schema[key] = _with_ranges(part, formats)
        elif isinstance(part, list):
            schema[key] = [_with_ranges(p, formats) if isinstance(p, dict) else p for p in part]
    return schema


def _within(low: float | None, high: float | None, text: str) -> bool:
    number = _number(text)
    if number is None:
        return True  # the pattern refuses it
    return (low is None or number >= low) and (high is None or number <= high)


def _number(value: Any) -> float | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        pass
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _range(kind: str) -> Callable[..., Iterator[Any]]:
    original = jsonschema.Draft202012Validator.VALIDATORS[kind]

    def check(validator: Any, limit: Any, instance: Any, schema: Any) -> Iterator[Any]:
        number = _number(instance)
        if number is not None:
            yield from original(validator, limit, number, schema) or ()

    return check


_Wordy: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    {"minimum": _range("minimum"), "maximum": _range("maximum")},
)


@functools.cache
def _checker() -> jsonschema.FormatChecker:
    checker = jsonschema.FormatChecker(formats=())
    for name, holds in FORMATS.items():
        checker.checks(name)(_on_strings(holds))
    return checker


def _on_strings(holds: Callable[[str], bool]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or holds(value)
