"""A decision is read in the order it was made in, whatever the database."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from common import clock
from db import engine, migrate, schema

pytestmark = pytest.mark.database


def test_filters_and_hosts_keep_their_order(url: str) -> None:
    migrate.upgrade(url)
    body = {
        "host": "pve9",
        "refused": {"service_up": {"pve3": "silent"}, "resources": {"pve10": "full", "a": "full"}},
        "scores": {"pve9": {"total": 2.0, "ram": 1.0, "cpu": 1.0}, "pve1": {"total": 1.0}},
    }
    writer = engine.writer(url)
    with writer.begin() as connection:
        connection.execute(
            schema.decisions.insert(),
            {
                "operation_id": 1,
                "attempt": 1,
                "server_uuid": "u",
                "request_id": "req-1",
                "body": body,
                "created_at": clock.utcnow(),
            },
        )
    reader = engine.reader(url)
    with reader.connect() as connection:
        read = connection.execute(sa.select(schema.decisions.c.body)).scalar_one()
    assert str(read) == str(body)
    writer.dispose()
    reader.dispose()
