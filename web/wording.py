"""Messages of schema refusals, without secrets.

A message is answered, stored with the refused request and shown later. So it contains a value only
where that is short and plain: never the value of a secret field nor a whole object, which may hold
one.
"""

from __future__ import annotations

from typing import Any

import jsonschema

#: fields whose values, and all within them, no message may contain
SECRET = frozenset(
    {
        "adminPass",
        "admin_password",
        "contents",
        "credentials",
        "metadata",
        "password",
        "personality",
        "private_key",
        "public_key",
        "secret",
        "token",
        "user_data",
    }
)

LONGEST = 255
"""The maximum length of a value in a message."""


def is_shown(path: Any, value: Any) -> bool:
    """Return whether a message may contain the value at this path of a request."""
    if SECRET.intersection(part for part in path if isinstance(part, str)):
        return False
    return not isinstance(value, dict | list) and len(str(value)) <= LONGEST


def chosen(error: jsonschema.ValidationError) -> jsonschema.ValidationError:
    """Return why the alternative that a value is of the type of refuses it, if that is one.

    "Not valid under any of the given schemas" names no limit.
    """
    if error.validator not in ("anyOf", "oneOf") or not error.context:
        return error
    alternatives: dict[Any, list[jsonschema.ValidationError]] = {}
    for one in error.context:
        alternatives.setdefault(one.schema_path[0], []).append(one)
    fitting = [
        found
        for found in alternatives.values()
        if not any(one.validator == "type" and not one.path for one in found)
    ]
    return fitting[0][0] if len(fitting) == 1 else error


def sentence(error: jsonschema.ValidationError) -> str:
    """Return jsonschema's message, which clients know, without a value that isn't shown."""
    error = chosen(error)
    path, value = error.absolute_path, error.instance
    text = str(error.message)
    if not is_shown(path, value):
        text = text.replace(repr(value), "The value")
    # Clients choose the names of unknown fields.
    return text if len(text) <= 4 * LONGEST else f"{text[: 4 * LONGEST]}…"
