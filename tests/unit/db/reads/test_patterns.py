"""Which patterns SQLite is asked."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from common.errors import Invalid
from db.reads.patterns import matches

COLUMN = sa.column("name", sa.String)


@pytest.fixture
def connection() -> sa.Connection:
    with sa.create_engine("sqlite://").connect() as opened:
        return opened


@pytest.mark.parametrize(
    "pattern",
    [
        "^web-[0-9]+$",
        "a.*b.*c",
        "(web|db)-.",
        "web\\.",
        "a{2,3}",
        "(ab)+",
        "x?y?",
        "[+*]+",
    ],
)
def test_asked(connection: sa.Connection, pattern: str) -> None:
    assert "REGEXP" in str(matches(connection, COLUMN, pattern).compile(connection))


@pytest.mark.parametrize("pattern", ["web", "web-1", "10_1 a", ""])
def test_plain_text_is_searched_for(connection: sa.Connection, pattern: str) -> None:
    assert "LIKE" in str(matches(connection, COLUMN, pattern).compile(connection))


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+",
        "(a*)*b",
        "(a|a)*$",
        "(.*a){20}",
        "((a?)*)*",
        "a*a*a*a*b",
        "(?:(x+))+",
        "(?=(a+)+)b",
        "." * 300,
    ],
)
def test_refused(connection: sa.Connection, pattern: str) -> None:
    with pytest.raises(Invalid):
        matches(connection, COLUMN, pattern)
