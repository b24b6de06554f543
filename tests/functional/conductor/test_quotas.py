"""Limits and usage as a create reads them, on every database."""

from __future__ import annotations

from common.resources.quotas import DEFAULT_CLASS
from conductor.store.quotas import quotas
from conductor.store.transactions import Store, Transaction
from db import engine, schema
from tests.fixtures import databases
from tests.fixtures.listings import a_server, counted
from tests.functional.db.conftest import (  # noqa: F401
    mariadb_server,
    mariadb_url,
    postgres_server,
    postgres_url,
    sqlite_url,
    url,
)

DEFAULTS = {"instances": 10, "cores": 20, "ram": 30}
Read = tuple[dict[str, int], dict[str, int]]


def test_limits_and_usage_are_read_together(url: str) -> None:  # noqa: F811
    databases.create(url)
    writer = engine.writer(url)
    store = Store(writer, engine.reader(url))

    def together(connection: Transaction) -> Read:
        return quotas.locked_with_usage(connection, "p", DEFAULTS)

    def apart(connection: Transaction) -> Read:
        return quotas.locked(connection, "p", DEFAULTS), quotas.usage(connection, "p")

    def fill(connection: Transaction) -> None:
        quotas.set_class_limits(connection, DEFAULT_CLASS, {"cores": 40, "ram": 40})
        quotas.set_limits(connection, "p", {"ram": -1})
        for number in range(3):
            _, values = a_server(number, "p", vcpus=2**number)
            connection.execute(schema.servers.insert().values(**values))

    assert store.run(together) == (DEFAULTS, {"instances": 0, "cores": 0, "ram": 0})
    store.run(fill)
    limits = {"instances": 10, "cores": 40, "ram": -1}
    used = {"instances": 3, "cores": 7, "ram": 1536}
    assert store.run(together) == store.run(apart) == (limits, used)
    with counted(writer) as of_both:
        store.run(together)
    with counted(writer) as of_each:
        store.run(apart)
    assert of_both() == of_each() - 1
    writer.dispose()
