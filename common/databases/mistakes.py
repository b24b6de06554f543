"""How each database reports that a statement is wrong: a fault of the program, which passes to the
caller, and is answered 500 and logged. A database that does not answer is waited for."""

from __future__ import annotations

import sqlite3
from typing import Any

from sqlalchemy import exc

#: where no SQLAlchemy class says it: a column, a function or a form of statement that is unknown
_NUMBERS_OF_MARIADB = {1052, 1054, 1055, 1056, 1136, 1140, 1222, 1241, 1242, 1248, 1305, 1318}
#: SQLSTATEs of what the operator has to mend: no such table, insufficient privilege
_OF_THE_DATABASE = {"42P01", "42501"}
#: the same as MariaDB numbers it
_NUMBERS_OF_THE_DATABASE = {1142, 1143, 1146}
#: SQLite has one code for all that is wrong with a statement, and for a database without tables
_NO_TABLE = "no such table"


def is_mistake(error: exc.DBAPIError) -> bool:
    """Return whether the statement is wrong, whatever the database's state."""
    original = error.orig
    if isinstance(original, sqlite3.OperationalError):
        code = getattr(original, "sqlite_errorcode", None)
        return code == sqlite3.SQLITE_ERROR and not str(original).startswith(_NO_TABLE)
    arguments: tuple[Any, ...] = getattr(original, "args", ())
    number = arguments[0] if arguments else None
    if isinstance(error, exc.ProgrammingError):
        state = getattr(original, "sqlstate", None)
        return state not in _OF_THE_DATABASE and number not in _NUMBERS_OF_THE_DATABASE
    return number in _NUMBERS_OF_MARIADB
