"""The rows of a new cloud database: its cloud's ID, and Neutron's default group rules."""

from __future__ import annotations

import datetime
import uuid

import sqlalchemy as sa

from db.types import UtcDateTime

_IDENTITY = sa.table("cloud_identity", sa.column("id"), sa.column("cloud_id"))
_RULES = sa.table(
    "default_group_rules",
    *(
        sa.column(name)
        for name in ("id", "direction", "ethertype", "remote_group_id", "description", "meaning")
    ),
    *(sa.column(name, sa.Boolean) for name in ("used_in_default_sg", "used_in_non_default_sg")),
    sa.column("created_at", UtcDateTime),
)
#: everything may leave, and within the default group its members reach each other
_DEFAULT_RULES = (
    ("egress", "IPv4", None),
    ("egress", "IPv6", None),
    ("ingress", "IPv4", "PARENT"),
    ("ingress", "IPv6", "PARENT"),
)


def insert(connection: sa.Connection) -> None:
    """Insert them."""
    connection.execute(_IDENTITY.insert(), {"id": 1, "cloud_id": str(uuid.uuid4())})
    connection.execute(_RULES.insert(), [_default_rule(*one) for one in _DEFAULT_RULES])


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
