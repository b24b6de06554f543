"""Alembic's environment: runs on the connection that `placement.db.migrate` hands over."""

from __future__ import annotations

from alembic import context

from placement.db import schema

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=schema.metadata,
    transactional_ddl=False,
    render_as_batch=False,
)
with context.begin_transaction():
    context.run_migrations()
