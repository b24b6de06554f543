"""Internal IDs are given out once: what is remembered of a deleted row isn't taken for another."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from placement.app import make_app, make_services
from placement.db import schema
from placement.operation import Services
from tests.fixtures.auth import header_auth
from tests.functional.placement.builders import a_provider
from tests.functional.placement.conftest import Api

CANDIDATES = "/allocation_candidates?resources=VCPU:1"


def seen(api: Api) -> set[str]:
    """Return the providers among the allocation candidates."""
    return set(api.simulate_get(CANDIDATES).json["provider_summaries"])


def remove(api: Api, uuid: str) -> None:
    answer = api.simulate_delete(f"/resource_providers/{uuid}")
    assert answer.status_code == 204, answer.text


def test_providers_come_and_go_and_come_again(api: Api) -> None:
    for _ in range(3):
        uuid = a_provider(api)
        assert seen(api) == {uuid}
        remove(api, uuid)
        assert seen(api) == set()


def test_a_worker_that_was_away_takes_a_new_provider_for_no_old_one(api: Api, conf: Any) -> None:
    old = a_provider(api)
    services = make_services(conf)
    away = Api(make_app(conf, header_auth, services))
    assert seen(away) == {old}
    remove(api, old)
    new = a_provider(api)
    assert seen(away) == {new}
    services.database.close()


def test_no_table_gives_an_id_out_twice(services: Services) -> None:
    tables = [
        table for table in schema.metadata.sorted_tables if table.autoincrement_column is not None
    ]
    assert {table.name for table in tables} == {
        "resource_providers", "traits", "resource_classes", "consumers"
    }  # fmt: skip
    with services.database.writer.begin() as connection:
        for table in tables:
            assert table.autoincrement_column is not None
            key = table.autoincrement_column
            first, second = (_passing(connection, table, key) for _ in range(2))
            assert second > first, table.name


def _passing(connection: sa.Connection, table: sa.Table, key: sa.Column[Any]) -> int:
    """Insert a row and delete it; return its ID."""
    values = {
        column.name: "CUSTOM_X" if isinstance(column.type, sa.String) else 0
        for column in table.columns
        if not column.nullable and column is not key
    }
    (number,) = connection.execute(sa.insert(table).values(values)).inserted_primary_key or (0,)
    connection.execute(sa.delete(table).where(key == number))
    return int(number)
