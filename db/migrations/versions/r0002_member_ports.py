"""Expand: scaling_members.ports, which services of the release before leave empty."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import Json

revision = "r0002_member_ports"
down_revision: str | None = "r0001_initial"


def upgrade() -> None:
    """Add it."""
    no_ports = sa.text("'[]'")
    op.add_column(
        "scaling_members", sa.Column("ports", Json, nullable=False, server_default=no_ports)
    )
