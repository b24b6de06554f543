"""Which patterns a database is asked."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from common.errors import Invalid
from db.reads.patterns import matches

COLUMN = sa.column("name", sa.String)


def asked(pattern: str, dialect: sa.Dialect | None = None) -> str:
    return str(matches(COLUMN, pattern).compile(dialect=dialect or sqlite.dialect()))


@pytest.mark.parametrize("pattern", ["^web-[0-9]+$", "a.*b.*c", "(web|db)-.", "web\\.", "(a+)+"])
def test_asked(pattern: str) -> None:
    assert "REGEXP" in asked(pattern)


@pytest.mark.parametrize("pattern", ["web", "web-1", "10_1 a", "", "a" * 300])
def test_plain_text_is_searched_for(pattern: str) -> None:
    assert "LIKE" in asked(pattern)


@pytest.mark.parametrize("dialect", [sqlite.dialect(), postgresql.dialect()])
@pytest.mark.parametrize("pattern", ["(?=a)b", r"(.)\1", "(", "a{99999999999}", "." * 300])
def test_refused_alike_everywhere(pattern: str, dialect: sa.Dialect) -> None:
    with pytest.raises(Invalid):
        asked(pattern, dialect)
