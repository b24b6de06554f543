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


def sentence(error: jsonschema.ValidationError) -> str:
    """Return jsonschema's message, which clients know, without a value that isn't shown."""
    path, value = error.absolute_path, error.instance
    text = str(error.message)
    if not is_shown(path, value):
        text = text.replace(repr(value), "The value")
    # Clients choose the names of unknown fields.
    return text if len(text) <= 4 * LONGEST else f"{text[: 4 * LONGEST]}…"
