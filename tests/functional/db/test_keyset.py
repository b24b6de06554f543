"""Pages: whatever the order, following markers gives each row once."""

from __future__ import annotations

import itertools

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from db.reads import keyset

things = sa.Table(
    "things",
    sa.MetaData(),
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("a", sa.Integer),
    sa.Column("b", sa.Integer),
)

rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=9)


def pages(
    connection: sa.Connection, order: list[keyset.Sort], limit: int, start: str | None, back: bool
) -> list[str]:
    seen: list[str] = []
    marker = start
    for _ in itertools.repeat(None, 20):
        page = keyset.Page(limit, marker, back)
        found = [
            row.id
            for row in keyset.read(
                connection, sa.select(things), order, page, things.c.id, visible=()
            )
        ]
        if not found:
            return seen
        seen = [*found, *seen] if back else [*seen, *found]
        marker = found[0] if back else found[-1]
    raise AssertionError("the pages have no end")


@given(rows, st.tuples(st.booleans(), st.booleans(), st.booleans()), st.integers(1, 4))
def test_following_markers_gives_each_row_once(
    values: list[tuple[int, int]], down: tuple[bool, bool, bool], limit: int
) -> None:
    engine = sa.create_engine("sqlite://")
    columns = (things.c.a, things.c.b, things.c.id)
    order = [keyset.Sort(column, way) for column, way in zip(columns, down, strict=True)]
    with engine.begin() as connection:
        things.create(connection)
        for number, (a, b) in enumerate(values):
            connection.execute(things.insert().values(id=str(number), a=a, b=b))
        read = keyset.read(
            connection, sa.select(things), order, keyset.Page(), things.c.id, visible=()
        )
        whole = [row.id for row in read]
        assert sorted(whole) == sorted(str(number) for number in range(len(values)))
        assert pages(connection, order, limit, None, back=False) == whole
        assert pages(connection, order, limit, None, back=True) == whole
        middle = whole[len(whole) // 2]
        place = whole.index(middle)
        assert pages(connection, order, limit, middle, back=False) == whole[place + 1 :]
        assert pages(connection, order, limit, middle, back=True) == whole[:place]
        with pytest.raises(keyset.MarkerNotFound):
            pages(connection, order, limit, "nothing", back=False)
    engine.dispose()


def test_what_may_not_be_seen_is_neither_listed_nor_a_marker() -> None:
    engine = sa.create_engine("sqlite://")
    order = [keyset.Sort(things.c.a), keyset.Sort(things.c.id)]
    with engine.begin() as connection:
        things.create(connection)
        for name, a, b in (("mine", 1, 0), ("theirs", 2, 1), ("also mine", 3, 0)):
            connection.execute(things.insert().values(id=name, a=a, b=b))

        def read(marker: str | None, *filters: sa.ColumnElement[bool]) -> list[str]:
            statement = sa.select(things).where(*filters)
            page, visible = keyset.Page(None, marker), [things.c.b == 0]
            found = keyset.read(connection, statement, order, page, things.c.id, visible=visible)
            return [row.id for row in found]

        assert read(None) == ["mine", "also mine"]
        assert read("mine", things.c.a > 2) == ["also mine"]
        with pytest.raises(keyset.MarkerNotFound):
            read("theirs")
    engine.dispose()
