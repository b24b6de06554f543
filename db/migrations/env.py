"""Alembic's environment: runs on the connection that `db.migrate` hands over."""

from __future__ import annotations

from alembic import context

from db.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # The caller's transaction holds the lock by which upgrades take turns.
    transactional_ddl=False,
)
with context.begin_transaction():
    context.run_migrations()
