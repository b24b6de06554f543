"""Create the placement database.

Written by tests/migration.py.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from placement.db.migrations import first_rows

revision = "r0001_initial"
down_revision: str | None = None


def upgrade() -> None:
    """Create all tables, and the rows that a new database has."""
    op.create_table(
        "changes",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("value", sa.BigInteger, nullable=False),
        sa.Column("names_at", sa.BigInteger, nullable=False),
        sa.Column("pruned_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_changes"),
    )
    op.create_table(
        "consumers",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("consumer_type", sa.String(255), nullable=True),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_consumers"),
        sa.UniqueConstraint("uuid", name="uq_consumers_uuid"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_consumers_project_id_user_id", "consumers", ["project_id", "user_id"])
    op.create_table(
        "removed_providers",
        sa.Column("provider_id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("changed", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("provider_id", name="pk_removed_providers"),
    )
    op.create_index("ix_removed_providers_changed", "removed_providers", ["changed"])
    op.create_table(
        "resource_classes",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_resource_classes"),
        sa.UniqueConstraint("name", name="uq_resource_classes_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "resource_providers",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("root_id", sa.Integer, nullable=True),
        sa.Column("parent_id", sa.Integer, nullable=True),
        sa.Column("changed", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["resource_providers.id"], name="fk_resource_providers_parent_id"
        ),
        sa.ForeignKeyConstraint(
            ["root_id"], ["resource_providers.id"], name="fk_resource_providers_root_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_resource_providers"),
        sa.UniqueConstraint("name", name="uq_resource_providers_name"),
        sa.UniqueConstraint("uuid", name="uq_resource_providers_uuid"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_resource_providers_changed", "resource_providers", ["changed"])
    op.create_index("ix_resource_providers_parent_id", "resource_providers", ["parent_id"])
    op.create_index("ix_resource_providers_root_id", "resource_providers", ["root_id"])
    op.create_table(
        "traits",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_traits"),
        sa.UniqueConstraint("name", name="uq_traits_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "allocations",
        sa.Column("consumer_uuid", sa.String(36), nullable=False),
        sa.Column("provider_id", sa.Integer, nullable=False),
        sa.Column("resource_class", sa.String(255), nullable=False),
        sa.Column("used", sa.Integer, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(
            ["consumer_uuid"],
            ["consumers.uuid"],
            name="fk_allocations_consumer_uuid",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["provider_id"], ["resource_providers.id"], name="fk_allocations_provider_id"
        ),
        sa.PrimaryKeyConstraint(
            "consumer_uuid", "provider_id", "resource_class", name="pk_allocations"
        ),
    )
    op.create_index(
        "ix_allocations_provider_id_resource_class",
        "allocations",
        ["provider_id", "resource_class"],
    )
    op.create_table(
        "inventories",
        sa.Column("provider_id", sa.Integer, nullable=False),
        sa.Column("resource_class", sa.String(255), nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("reserved", sa.Integer, nullable=False),
        sa.Column("min_unit", sa.Integer, nullable=False),
        sa.Column("max_unit", sa.Integer, nullable=False),
        sa.Column("step_size", sa.Integer, nullable=False),
        sa.Column("allocation_ratio", sa.Float, nullable=False),
        sa.Column("used", sa.BigInteger, nullable=False),
        sa.Column("changed", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(
            ["provider_id"], ["resource_providers.id"], name="fk_inventories_provider_id"
        ),
        sa.ForeignKeyConstraint(
            ["resource_class"], ["resource_classes.name"], name="fk_inventories_resource_class"
        ),
        sa.PrimaryKeyConstraint("provider_id", "resource_class", name="pk_inventories"),
    )
    op.create_index("ix_inventories_changed", "inventories", ["changed"])
    op.create_index("ix_inventories_resource_class", "inventories", ["resource_class"])
    op.create_table(
        "provider_aggregates",
        sa.Column("provider_id", sa.Integer, nullable=False),
        sa.Column("aggregate_uuid", sa.String(36), nullable=False),
        sa.ForeignKeyConstraint(
            ["provider_id"], ["resource_providers.id"], name="fk_provider_aggregates_provider_id"
        ),
        sa.PrimaryKeyConstraint("provider_id", "aggregate_uuid", name="pk_provider_aggregates"),
    )
    op.create_index(
        "ix_provider_aggregates_aggregate_uuid", "provider_aggregates", ["aggregate_uuid"]
    )
    op.create_table(
        "provider_traits",
        sa.Column("provider_id", sa.Integer, nullable=False),
        sa.Column("trait", sa.String(255), nullable=False),
        sa.ForeignKeyConstraint(
            ["provider_id"], ["resource_providers.id"], name="fk_provider_traits_provider_id"
        ),
        sa.ForeignKeyConstraint(["trait"], ["traits.name"], name="fk_provider_traits_trait"),
        sa.PrimaryKeyConstraint("provider_id", "trait", name="pk_provider_traits"),
    )
    op.create_index("ix_provider_traits_trait", "provider_traits", ["trait"])
    first_rows.insert(op.get_bind())
