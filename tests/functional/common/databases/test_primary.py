"""Which servers a URL names."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from common.databases import primary


@pytest.mark.parametrize(
    ("rest", "named"),
    [
        ("@/cloud?host=db1:5432&host=db2:5433", ["db1:5432", "db2:5433"]),
        ("@/cloud?host=db1&host=db2", ["db1", "db2"]),
        ("@/cloud?host=db1,db2&port=5432,5433", ["db1:5432", "db2:5433"]),
        ("@db1:5433/cloud", ["db1:5433"]),
        ("@db1/cloud", ["db1"]),
        ("@[::1]:5433/cloud", ["::1:5433"]),
        ("@/cloud?host=/run/postgresql", ["/run/postgresql"]),
        ("@/cloud", [""]),
    ],
)
def test_servers_of_a_url(rest: str, named: list[str]) -> None:
    engine = sa.create_engine(f"postgresql+psycopg://micronova:secret{rest}")
    servers = primary.of(engine.dialect.create_connect_args(engine.url)[1])
    assert [str(one) for one in servers.named] == named


@pytest.mark.parametrize(
    ("query", "followed"),
    [
        ("", True),
        ("&target_session_attrs=read-write", True),
        ("&target_session_attrs=primary", True),
        ("&target_session_attrs=any", False),
        ("&target_session_attrs=prefer-standby", False),
    ],
)
def test_who_asks_for_something_else_gets_it_by_libpq(query: str, followed: bool) -> None:
    engine = sa.create_engine(f"postgresql+psycopg://m:s@/cloud?host=a&host=b{query}")
    primary.follow(engine)
    assert bool(engine.dialect.dispatch.do_connect) is followed


def test_other_databases_have_one_server() -> None:
    engine = sa.create_engine("sqlite://")
    primary.follow(engine)
    assert not engine.dialect.dispatch.do_connect
    assert primary.look_at_all(engine) == {}
