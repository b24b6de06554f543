"""A database with providers that were removed: their IDs are not used again."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from placement.db import migrate, schema
from placement.db.engine import Database
from placement.operation import Services
from tests.functional.placement.builders import a_body, a_provider, a_uuid, used
from tests.functional.placement.conftest import Api
from tests.functional.placement.test_ids import remove, seen

CONSUMER, FULL, GROUP = a_uuid(), a_uuid(), a_uuid()


@pytest.fixture
def database_url(url: str) -> str:
    """Provider 1 has an allocation; 3 was removed last: SQLite would give its ID out next."""
    migrate.upgrade(url)
    database = Database(url)
    with database.writer.begin() as connection:
        _fill(connection)
        if database.is_postgresql:
            connection.exec_driver_sql("SELECT setval('resource_providers_id_seq', 3)")
        elif not database.is_sqlite:
            connection.exec_driver_sql("ALTER TABLE resource_providers AUTO_INCREMENT = 4")
        else:
            connection.exec_driver_sql(
                "UPDATE sqlite_sequence SET seq = 3 WHERE name = 'resource_providers'"
            )
    database.close()
    return url


def _fill(connection: sa.Connection) -> None:
    times = {"changed": 1, "created_at": 1, "updated_at": 1}
    units = {"total": 4, "reserved": 0, "min_unit": 1, "max_unit": 4, "step_size": 1}
    of_first = {"provider_id": 1, "resource_class": "VCPU", "used": 3}
    consumer = {"uuid": CONSUMER, "project_id": "project", "user_id": "user", "generation": 1}
    rows: list[tuple[sa.Table, dict[str, Any]]] = [
        (
            schema.providers,
            {"id": 1, "uuid": FULL, "name": FULL, "root_id": 1, "generation": 1, **times},
        ),
        *((schema.removed_providers, {"provider_id": key, "changed": 1}) for key in (2, 3)),
        (schema.inventories, {**of_first, "allocation_ratio": 1.0, **units, **times}),
        (schema.consumers, {**consumer, "created_at": 1}),
        (schema.allocations, {**of_first, "consumer_uuid": CONSUMER, "created_at": 1}),
        (schema.traits, {"name": "CUSTOM_KEPT", "created_at": 1}),
        (schema.provider_traits, {"provider_id": 1, "trait": "CUSTOM_KEPT"}),
        (schema.provider_aggregates, {"provider_id": 1, "aggregate_uuid": GROUP}),
    ]
    for table, row in rows:
        connection.execute(sa.insert(table).values(row))


def test_what_was_there_is_there(api: Api) -> None:
    path = f"/resource_providers/{FULL}"
    assert used(api, FULL) == {"VCPU": 3}
    assert api.simulate_get(f"{path}/traits").json["traits"] == ["CUSTOM_KEPT"]
    assert api.simulate_get(f"{path}/aggregates").json["aggregates"] == [GROUP]
    held = api.simulate_get(f"/allocations/{CONSUMER}").json
    assert held["allocations"][FULL]["resources"] == {"VCPU": 3}
    body = a_body(1, **{FULL: {"VCPU": 1}})
    assert api.simulate_put(f"/allocations/{CONSUMER}", json=body).status_code == 204


def test_new_providers_have_ids_of_their_own(api: Api, services: Services) -> None:
    assert seen(api) == {FULL}
    new = a_provider(api)
    assert seen(api) == {FULL, new}
    with services.database.reader.connect() as connection:
        ids = sa.select(schema.providers.c.id).where(schema.providers.c.uuid == new)
        assert connection.scalar(ids) == 4
    remove(api, new)


def test_references_are_still_held(services: Services) -> None:
    """Rows of what a provider has keep it, and a consumer's allocations go with it."""
    with services.database.writer.connect() as connection:
        connection.begin()
        with pytest.raises(sa.exc.IntegrityError):
            connection.execute(sa.delete(schema.providers))
        connection.rollback()
        connection.begin()
        connection.execute(sa.delete(schema.consumers))
        assert connection.execute(sa.select(schema.allocations)).all() == []
        connection.rollback()
