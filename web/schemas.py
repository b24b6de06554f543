"""Validation of what clients send: compiled schemas decide, jsonschema words the refusals.

Schemas are JSON Schema with formats of our own. `minimum` and `maximum` hold for numbers in
strings too, where a type allows both, as in Nova (nova/api/validation/validators.py).
"""

from __future__ import annotations

import base64
import binascii
import copy
import functools
import ipaddress
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import fastjsonschema
import jsonschema

from common import clock, ids, regex
from common.errors import Invalid
from web.microversions import Versioned

Schema = Mapping[str, Any]
Formats = Mapping[str, Callable[[str], bool]]
Refusal = jsonschema.ValidationError

#: the validator class of plain JSON Schema
STANDARD: Any = jsonschema.Draft202012Validator


def _succeeds(check: Callable[[str], Any], *failures: type[Exception]) -> Callable[[str], bool]:
    def holds(text: str) -> bool:
        try:
            check(text)
        except failures:
            return False
        return True

    return holds


#: format → predicate on strings; other values never fail a format
FORMATS: Formats = {
    "uuid": ids.is_uuid,
    "date-time": _succeeds(clock.parse, ValueError),
    "base64": _succeeds(base64.b64decode, binascii.Error, ValueError),
    "regex": lambda text: bool(text) and _succeeds(regex.check, Invalid)(text),
    "ipv4": _succeeds(ipaddress.IPv4Address, ValueError),
    "ipv6": _succeeds(ipaddress.IPv6Address, ValueError),
}


def first(refusals: Iterator[Refusal]) -> Refusal | None:
    """Return the first refusal, in the schema's order."""
    return next(refusals, None)


@dataclass(frozen=True)
class Words:
    """How an API words a refusal."""

    sentence: Callable[[Refusal], str]
    choose: Callable[[Iterator[Refusal]], Refusal | None] = first
    """Which refusal the message is about, where there are several."""
    complaint: str = ""
    """What every message begins with."""
    standard: Any = STANDARD
    """The validator class of jsonschema that finds the refusals."""
    formats: Formats = field(default_factory=lambda: FORMATS)

    def message(self, text: str) -> str:
        """Return the message with its beginning."""
        return f"{self.complaint}: {text}" if self.complaint else text

    @functools.cached_property
    def checker(self) -> jsonschema.FormatChecker:
        """The formats, for jsonschema."""
        made = jsonschema.FormatChecker(formats=())
        for name, holds in self.formats.items():
            made.checks(name)(_on_strings(holds))
        return made


class Validator:
    """One schema; compiled when it is first used."""

    def __init__(self, schema: Schema, words: Words) -> None:
        self.schema = schema
        self._words = words

    def __call__(self, value: Any) -> None:
        """Raise Invalid, in the API's words, unless the value is well formed."""
        try:
            self._compiled(value)
        except fastjsonschema.JsonSchemaValueException as refusal:
            # The stricter one counts: `$` lets a line feed pass in one and not in the other.
            text = self.refusal(value) or str(refusal.message)
            raise Invalid(self._words.message(text)) from None

    def refusal(self, value: Any) -> str | None:
        """Return why jsonschema refuses the value, without the complaint; None: it doesn't."""
        found = self._words.choose(self._worded.iter_errors(value))
        return None if found is None else self._words.sentence(found)

    @functools.cached_property
    def _compiled(self) -> Callable[[Any], Any]:
        formats = dict(self._words.formats)
        schema = _with_ranges(copy.deepcopy(dict(self.schema)), formats)
        # Custom formats are asked for every string of that format, ours before the built-in ones.
        compiled: Callable[[Any], Any] = fastjsonschema.compile(
            schema, formats=formats, use_default=False, detailed_exceptions=True
        )
        return compiled

    @functools.cached_property
    def _worded(self) -> Any:
        return self._words.standard(self.schema, format_checker=self._words.checker)


_made: dict[tuple[int, int], Validator] = {}


def validator(schema: Schema, words: Words) -> Validator:
    """Return the validator of a schema that is a constant: one, however many operations use it."""
    # The validator refers to the schema, so that no other schema can get its id().
    return _made.setdefault((id(schema), id(words)), Validator(schema, words))


def versioned(schemas: Mapping[str, Schema | None], words: Words) -> Versioned[Validator | None]:
    """The validators of schemas by the version that brought them; None: nothing is expected."""
    return Versioned(
        {
            since: None if schema is None else validator(schema, words)
            for since, schema in schemas.items()
        }
    )


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
    for convert in (int, float):
        try:
            return convert(value)
        except (TypeError, ValueError):
            continue
    return None


def _range(kind: str) -> Callable[..., Iterator[Any]]:
    original = STANDARD.VALIDATORS[kind]

    def check(validator: Any, limit: Any, instance: Any, schema: Any) -> Iterator[Any]:
        number = _number(instance)
        if number is not None:
            yield from original(validator, limit, number, schema) or ()

    return check


#: the validator class of Nova, in which ranges hold for numbers in strings
NUMBERS_IN_STRINGS: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    STANDARD, {"minimum": _range("minimum"), "maximum": _range("maximum")}
)


def _on_strings(holds: Callable[[str], bool]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or holds(value)
