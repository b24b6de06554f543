"""Reads query strings, with one limit of how much a list may be asked for.

Each value of a filter becomes a condition in the database, which the request of a member pays for
with the time of all. No request that a client makes by itself has so many.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

from common.errors import Invalid

MOST_VALUES = 128
"""Values of a query string: those of all parameters, and the items between commas."""

MOST_CHARACTERS = 8192
"""The length of a query string. gunicorn takes 4,094 bytes of a request line by default."""


def pairs(text: str, errors: str = "replace") -> list[tuple[str, str]]:
    """Return the (name, value) pairs of a query string, those without a value too.

    `errors` is how bytes are decoded that are no UTF-8. Raises Invalid over the limits.
    """
    if len(text) > MOST_CHARACTERS:
        raise Invalid(f"The query string is longer than {MOST_CHARACTERS} characters.")
    found = parse_qsl(text, keep_blank_values=True, errors=errors)
    count = sum(1 + value.count(",") for _, value in found)
    if count > MOST_VALUES:
        raise Invalid(f"The query string has {count} values; {MOST_VALUES} are allowed.")
    return found
