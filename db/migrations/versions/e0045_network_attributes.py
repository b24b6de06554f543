"""Expand: more attributes of networks and ports, and revisions of what the Network API has.

Revision ID: 0045_network_attributes
Revises: 0044_metadefs
"""

from __future__ import annotations

import datetime
import uuid

import sqlalchemy as sa
from alembic import op

from db.types import Json, UtcDateTime

revision = "0045_network_attributes"
down_revision: str | None = "0044_metadefs"

_REVISED = ("networks", "subnets", "ports", "security_groups")


def upgrade() -> None:
    """Add them; nothing is switched off yet, and everything has its first revision."""
    for table in _REVISED:
        op.add_column(
            table, sa.Column("revision", sa.Integer, nullable=False, server_default=sa.text("0"))
        )
    for table in ("networks", "ports"):
        op.add_column(table, sa.Column("admin_state_up", sa.Boolean))
    op.add_column(
        "networks",
        sa.Column("is_default", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.add_column("networks", sa.Column("port_security", sa.Boolean))
    op.add_column("ports", sa.Column("binding_host", sa.String(255)))
    op.add_column("ports", sa.Column("more_addresses", Json))
    op.create_table(
        "port_addresses",
        sa.Column("subnet_id", sa.String(36), primary_key=True),
        sa.Column("ip", sa.String(64), primary_key=True),
        sa.Column("port_id", sa.String(36), nullable=False),
    )
    op.create_index("ix_port_addresses_port_id", "port_addresses", ["port_id"])
    _address_groups()
    _group_shares()
    _default_rules()
    op.add_column(
        "security_groups",
        sa.Column("stateful", sa.Boolean, nullable=False, server_default=sa.true()),
    )


def _address_groups() -> None:
    op.create_table(
        "address_groups",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.String(255), nullable=False),
        sa.Column("addresses", Json, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False, server_default=sa.text("0")),
    )
    op.create_index("ix_address_groups_project_id", "address_groups", ["project_id"])
    rules, name = "security_group_rules", "remote_address_group_id"
    op.add_column(rules, sa.Column(name, sa.String(36)))
    op.create_index(f"ix_{rules}_{name}", rules, [name])


def _group_shares() -> None:
    op.create_table(
        "group_shares",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("object_type", sa.String(32), nullable=False),
        sa.Column("object_id", sa.String(36), nullable=False),
        sa.Column("target", sa.String(255), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_group_shares"),
        sa.UniqueConstraint("object_id", "target", name="uq_group_shares_object_id_target"),
    )
    for column in ("project_id", "target"):
        op.create_index(f"ix_group_shares_{column}", "group_shares", [column])


def _default_rules() -> None:
    table = op.create_table(
        "default_group_rules",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("direction", sa.String(8), nullable=False),
        sa.Column("ethertype", sa.String(4), nullable=False),
        sa.Column("protocol", sa.String(16)),
        sa.Column("port_range_min", sa.Integer),
        sa.Column("port_range_max", sa.Integer),
        sa.Column("remote_ip_prefix", sa.String(64)),
        sa.Column("normalized_cidr", sa.String(64)),
        sa.Column("remote_group_id", sa.String(36)),
        sa.Column("remote_address_group_id", sa.String(36)),
        sa.Column("description", sa.String(255), nullable=False),
        sa.Column("used_in_default_sg", sa.Boolean, nullable=False),
        sa.Column("used_in_non_default_sg", sa.Boolean, nullable=False),
        sa.Column("meaning", sa.String(255), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    # Those of Neutron: all out, and in the default group its members.
    op.bulk_insert(table, [_default_rule(*one) for one in _DEFAULT_RULES])


_DEFAULT_RULES = (
    ("egress", "IPv4", None),
    ("egress", "IPv6", None),
    ("ingress", "IPv4", "PARENT"),
    ("ingress", "IPv6", "PARENT"),
)


def _default_rule(direction: str, ethertype: str, remote: str | None) -> dict[str, object]:
    return {
        "id": str(uuid.uuid4()),
        "direction": direction,
        "ethertype": ethertype,
        "remote_group_id": remote,
        "description": "",
        "used_in_default_sg": True,
        "used_in_non_default_sg": remote is None,
        "meaning": f"{direction} {ethertype} - - - - {remote or '-'}",
        "created_at": datetime.datetime.now(datetime.UTC),
    }


def downgrade() -> None:
    """Drop them."""
    op.drop_table("default_group_rules")
    op.drop_table("group_shares")
    rules, name = "security_group_rules", "remote_address_group_id"
    op.drop_index(f"ix_{rules}_{name}", rules)
    op.drop_column(rules, name)
    op.drop_table("address_groups")
    op.drop_column("security_groups", "stateful")
    op.drop_table("port_addresses")
    op.drop_column("ports", "more_addresses")
    op.drop_column("ports", "binding_host")
    op.drop_column("networks", "port_security")
    op.drop_column("networks", "is_default")
    for table in ("ports", "networks"):
        op.drop_column(table, "admin_state_up")
    for table in reversed(_REVISED):
        op.drop_column(table, "revision")
