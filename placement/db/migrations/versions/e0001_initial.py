"""Expand: the first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "e0001"
down_revision = None
branch_labels = None
depends_on = None

_STAMPS = ("created_at", "updated_at")


def _big(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger, nullable=False) for name in names]


def _provider_key() -> sa.Column[int]:
    return sa.Column("provider_id", sa.Integer, nullable=False)


def _provider_reference(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["provider_id"], ["resource_providers.id"], name=f"fk_{table}_provider_id"
    )


def upgrade() -> None:
    """Create everything."""
    _create_sequence_and_names()
    _create_providers()
    _create_inventories()
    _create_consumers()
    _create_memberships()


def _create_sequence_and_names() -> None:
    changes = op.create_table(
        "changes",
        sa.Column("id", sa.Integer, nullable=False, autoincrement=False),
        *_big("value", "names_at", "pruned_at"),
        sa.PrimaryKeyConstraint("id", name="pk_changes"),
    )
    op.bulk_insert(
        changes,
        [
            {"id": 1, "value": 1, "names_at": 1, "pruned_at": 0},
            # It never changes: another value means a restored database.
            {"id": 2, "value": 0, "names_at": 0, "pruned_at": 0},
        ],
    )
    for table in ("resource_classes", "traits"):
        op.create_table(
            table,
            sa.Column("id", sa.Integer, nullable=False),
            sa.Column("name", sa.String(255), nullable=False),
            *_big("created_at"),
            sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
            sa.UniqueConstraint("name", name=f"uq_{table}_name"),
        )


def _create_providers() -> None:
    table = "resource_providers"
    op.create_table(
        table,
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("root_id", sa.Integer, nullable=True),
        sa.Column("parent_id", sa.Integer, nullable=True),
        *_big("changed", *_STAMPS),
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
        sa.UniqueConstraint("uuid", name=f"uq_{table}_uuid"),
        sa.UniqueConstraint("name", name=f"uq_{table}_name"),
        sa.ForeignKeyConstraint(["root_id"], [f"{table}.id"], name=f"fk_{table}_root_id"),
        sa.ForeignKeyConstraint(["parent_id"], [f"{table}.id"], name=f"fk_{table}_parent_id"),
    )
    for column in ("root_id", "parent_id", "changed"):
        op.create_index(f"ix_{table}_{column}", table, [column])
    op.create_table(
        "removed_providers",
        sa.Column("provider_id", sa.Integer, nullable=False, autoincrement=False),
        *_big("changed"),
        sa.PrimaryKeyConstraint("provider_id", name="pk_removed_providers"),
    )
    op.create_index("ix_removed_providers_changed", "removed_providers", ["changed"])


def _create_inventories() -> None:
    table = "inventories"
    numbers = ("total", "reserved", "min_unit", "max_unit", "step_size")
    op.create_table(
        table,
        _provider_key(),
        sa.Column("resource_class", sa.String(255), nullable=False),
        *(sa.Column(name, sa.Integer, nullable=False) for name in numbers),
        sa.Column("allocation_ratio", sa.Float, nullable=False),
        *_big("used", "changed", *_STAMPS),
        sa.PrimaryKeyConstraint("provider_id", "resource_class", name=f"pk_{table}"),
        _provider_reference(table),
        sa.ForeignKeyConstraint(
            ["resource_class"], ["resource_classes.name"], name=f"fk_{table}_resource_class"
        ),
    )
    for column in ("resource_class", "changed"):
        op.create_index(f"ix_{table}_{column}", table, [column])


def _create_consumers() -> None:
    op.create_table(
        "consumers",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("consumer_type", sa.String(255), nullable=True),
        *_big("created_at"),
        sa.PrimaryKeyConstraint("id", name="pk_consumers"),
        sa.UniqueConstraint("uuid", name="uq_consumers_uuid"),
    )
    op.create_index("ix_consumers_project_id_user_id", "consumers", ["project_id", "user_id"])
    key = ("consumer_uuid", "provider_id", "resource_class")
    op.create_table(
        "allocations",
        sa.Column("consumer_uuid", sa.String(36), nullable=False),
        _provider_key(),
        sa.Column("resource_class", sa.String(255), nullable=False),
        sa.Column("used", sa.Integer, nullable=False),
        *_big("created_at"),
        sa.PrimaryKeyConstraint(*key, name="pk_allocations"),
        sa.ForeignKeyConstraint(
            ["consumer_uuid"],
            ["consumers.uuid"],
            name="fk_allocations_consumer_uuid",
            ondelete="CASCADE",
        ),
        _provider_reference("allocations"),
    )
    op.create_index("ix_allocations_provider_id_resource_class", "allocations", list(key[1:]))


def _create_memberships() -> None:
    op.create_table(
        "provider_traits",
        _provider_key(),
        sa.Column("trait", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("provider_id", "trait", name="pk_provider_traits"),
        _provider_reference("provider_traits"),
        sa.ForeignKeyConstraint(["trait"], ["traits.name"], name="fk_provider_traits_trait"),
    )
    op.create_index("ix_provider_traits_trait", "provider_traits", ["trait"])
    op.create_table(
        "provider_aggregates",
        _provider_key(),
        sa.Column("aggregate_uuid", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("provider_id", "aggregate_uuid", name="pk_provider_aggregates"),
        _provider_reference("provider_aggregates"),
    )
    op.create_index(
        "ix_provider_aggregates_aggregate_uuid", "provider_aggregates", ["aggregate_uuid"]
    )
