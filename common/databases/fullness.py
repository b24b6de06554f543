"""How each database reports that its disk is full."""

from __future__ import annotations

import sqlite3
from typing import Any

SENTENCE = "The disk of the database is full: nothing can be changed until there is room."

#: SQLSTATE disk_full of PostgreSQL
_STATES = {"53100"}
#: MariaDB: disk full, table full, no room for temporary files, error of the storage engine
_NUMBERS = {1021, 1114, 3, 1030}
_NO_SPACE = ("no space left", "errno: 28", "error 28 ")
#: how PostgreSQL refuses a log-in; its SQLSTATE isn't known then
_REFUSALS = ("could not write init file", "no space left on device")


def refuses(text: str) -> bool:
    """Return whether a log-in was refused for want of room, by its sentence."""
    return any(words in text.lower() for words in _REFUSALS)


def is_full(error: Any) -> bool:
    """Return whether a driver's error, or one of SQLAlchemy around it, says so."""
    original = getattr(error, "orig", None) or error
    if isinstance(original, sqlite3.Error):
        return getattr(original, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    state = getattr(original, "sqlstate", None)
    if state in _STATES or (state is None and refuses(str(original))):
        return True
    arguments: tuple[Any, ...] = getattr(original, "args", ())
    if not arguments or arguments[0] not in _NUMBERS:
        return False
    text = str(arguments[-1]).lower()
    return arguments[0] in {1021, 1114} or any(words in text for words in _NO_SPACE)
