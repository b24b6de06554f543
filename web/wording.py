"""The sentence of a refusal for a value that fits no schema: which part, and why.

A client's mistake is answered, kept with the refused request and shown later. So a message names
a value where it is short and plain, and never one of a secret part nor a whole object, which may
hold one.
"""

from __future__ import annotations

from typing import Any

import jsonschema

#: parts of a request whose values, and all within them, are nobody's to read again
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
"""Characters of a value that a message names."""


def is_shown(path: Any, value: Any) -> bool:
    """Return whether a message may name the value that is found at this path of a request."""
    if SECRET.intersection(part for part in path if isinstance(part, str)):
        return False
    return not isinstance(value, dict | list) and len(str(value)) <= LONGEST


def sentence(error: jsonschema.ValidationError) -> str:
    """Return jsonschema's sentence, which clients know, without a value that isn't shown."""
    path, value = error.absolute_path, error.instance
    text = str(error.message)
    if not is_shown(path, value):
        text = text.replace(repr(value), "The value")
    # Names of unknown parts are of the client's making.
    return text if len(text) <= 4 * LONGEST else f"{text[: 4 * LONGEST]}…"
