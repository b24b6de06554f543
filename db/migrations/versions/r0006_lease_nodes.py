"""Expand: agent_leases.nodes, which those of the release before have not."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import Json

revision = "r0006_lease_nodes"
down_revision: str | None = "r0005_group_waits"


def upgrade() -> None:
    """Add it."""
    op.add_column("agent_leases", sa.Column("nodes", Json))
