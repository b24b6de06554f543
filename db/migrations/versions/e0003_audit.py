"""The audit: its runs and findings, leases by name, and the journal of VMIDs.

Revision ID: 0003_audit
Revises: 0002_groups
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import BigId, Json, UtcDateTime

revision = "0003_audit"
down_revision: str | None = "0002_groups"


def upgrade() -> None:
    """Create the tables; the journal begins with the present reservations."""
    _vmid_journal()
    _leases()
    _audits()
    _findings()
    op.execute(
        "INSERT INTO vmid_journal (cluster, vmid, server_uuid, operation_id, reserved_at) "
        "SELECT cluster, vmid, server_uuid, operation_id, since FROM vmids "
        "WHERE state = 'reserved'"
    )


def downgrade() -> None:
    """Drop them."""
    for name in ("findings", "audits", "leases", "vmid_journal"):
        op.drop_table(name)


def _vmid_journal() -> None:
    op.create_table(
        "vmid_journal",
        sa.Column("id", BigId, nullable=False),
        sa.Column("cluster", sa.String(255), nullable=False),
        sa.Column("vmid", sa.Integer(), nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=True),
        sa.Column("operation_id", BigId, nullable=True),
        sa.Column("reserved_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_vmid_journal"),
    )
    op.create_index("ix_vmid_journal_cluster_vmid", "vmid_journal", ["cluster", "vmid"])
    op.create_index("ix_vmid_journal_server_uuid", "vmid_journal", ["server_uuid"])


def _leases() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("owner", sa.String(255), nullable=False),
        sa.Column("expires_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )


def _audits() -> None:
    op.create_table(
        "audits",
        sa.Column("id", BigId, nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("conductor", sa.String(255), nullable=True),
        sa.Column("requested_at", UtcDateTime(), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=True),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.Column("report", Json, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audits"),
    )
    op.create_index("ix_audits_state", "audits", ["state"])


def _findings() -> None:
    op.create_table(
        "findings",
        sa.Column("id", BigId, nullable=False),
        sa.Column("kind", sa.String(48), nullable=False),
        sa.Column("subject", sa.String(512), nullable=False),
        sa.Column("severity", sa.String(16), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("remedy", sa.Text(), nullable=True),
        sa.Column("heal", sa.String(16), nullable=True),
        sa.Column("server_uuid", sa.String(36), nullable=True),
        sa.Column("cluster", sa.String(255), nullable=True),
        sa.Column("node", sa.String(255), nullable=True),
        sa.Column("vmid", sa.Integer(), nullable=True),
        sa.Column("evidence", Json, nullable=False),
        sa.Column("first_seen_at", UtcDateTime(), nullable=False),
        sa.Column("last_seen_at", UtcDateTime(), nullable=False),
        sa.Column("healed_at", UtcDateTime(), nullable=True),
        sa.Column("healed_by", sa.String(255), nullable=True),
        sa.Column("heals", sa.Integer(), nullable=False),
        sa.Column("tried_at", UtcDateTime(), nullable=True),
        sa.Column("operation_id", BigId, nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_findings"),
    )
    op.create_index("ix_findings_open", "findings", ["healed_at", "kind"])
    op.create_index("ix_findings_server_uuid", "findings", ["server_uuid"])
