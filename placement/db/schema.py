"""The tables of the placement database.

Names (resource classes, traits, aggregates, projects) are their own keys: no reader needs a
lookup table. Every transaction that changes what candidates depend on stamps the rows it touched
(`changed`) with its place in the change sequence; `placement.db.sequence` has what that is.

SQLite counts IDs (`sqlite_autoincrement`): otherwise it would use that of the row deleted last
again, and a remembered ID would name another row.

Times are whole seconds since the epoch (UTC): HTTP's `last-modified` shows no more.
"""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: row 1: the counted change sequence, when last the names changed, and up to which place
#: removals are forgotten; row 2 never changes, so another value means a restored database
changes = sa.Table(
    "changes",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("value", sa.BigInteger, nullable=False),
    sa.Column("names_at", sa.BigInteger, nullable=False),
    sa.Column("pruned_at", sa.BigInteger, nullable=False),
)

resource_classes = sa.Table(
    "resource_classes",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

traits = sa.Table(
    "traits",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

providers = sa.Table(
    "resource_providers",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("generation", sa.Integer, nullable=False),
    # A root names itself; None only while its row is being inserted.
    sa.Column("root_id", sa.ForeignKey("resource_providers.id"), nullable=True, index=True),
    sa.Column("parent_id", sa.ForeignKey("resource_providers.id"), nullable=True, index=True),
    sa.Column("changed", sa.BigInteger, nullable=False, index=True),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

#: providers that were deleted, and at which place of the change sequence
removed_providers = sa.Table(
    "removed_providers",
    metadata,
    sa.Column("provider_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("changed", sa.BigInteger, nullable=False, index=True),
)

#: `used` is the sum of the allocations, kept in the same transaction as they
inventories = sa.Table(
    "inventories",
    metadata,
    sa.Column("provider_id", sa.ForeignKey("resource_providers.id"), primary_key=True),
    sa.Column(
        "resource_class",
        sa.String(255),
        sa.ForeignKey("resource_classes.name"),
        primary_key=True,
        index=True,
    ),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("reserved", sa.Integer, nullable=False),
    sa.Column("min_unit", sa.Integer, nullable=False),
    sa.Column("max_unit", sa.Integer, nullable=False),
    sa.Column("step_size", sa.Integer, nullable=False),
    sa.Column("allocation_ratio", sa.Float, nullable=False),
    sa.Column("used", sa.BigInteger, nullable=False),
    sa.Column("changed", sa.BigInteger, nullable=False, index=True),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
)
#: what there is of a resource class, and how much of it is used
STOCK = tuple(
    inventories.c[name]
    for name in (
        *("total", "reserved", "min_unit", "max_unit", "step_size"),
        *("allocation_ratio", "used"),
    )
)

consumers = sa.Table(
    "consumers",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("consumer_type", sa.String(255), nullable=True),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Index("ix_consumers_project_id_user_id", "project_id", "user_id"),
    sqlite_autoincrement=True,
)

allocations = sa.Table(
    "allocations",
    metadata,
    sa.Column(
        "consumer_uuid",
        sa.String(36),
        sa.ForeignKey("consumers.uuid", ondelete="CASCADE"),
        primary_key=True,
    ),
    sa.Column("provider_id", sa.ForeignKey("resource_providers.id"), primary_key=True),
    sa.Column("resource_class", sa.String(255), primary_key=True),
    sa.Column("used", sa.Integer, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Index("ix_allocations_provider_id_resource_class", "provider_id", "resource_class"),
)

provider_traits = sa.Table(
    "provider_traits",
    metadata,
    sa.Column("provider_id", sa.ForeignKey("resource_providers.id"), primary_key=True),
    sa.Column("trait", sa.String(255), sa.ForeignKey("traits.name"), primary_key=True, index=True),
)

provider_aggregates = sa.Table(
    "provider_aggregates",
    metadata,
    sa.Column("provider_id", sa.ForeignKey("resource_providers.id"), primary_key=True),
    sa.Column("aggregate_uuid", sa.String(36), primary_key=True, index=True),
)
