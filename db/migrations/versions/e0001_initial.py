"""The cloud database of the first release.

Revision ID: 0001_initial
Revises:
"""

# One function a table: long, because nothing here may follow later changes of db/schema.py.

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa
from alembic import op

from db.types import BigId, Json, StorageName, UtcDateTime

revision = "0001_initial"
down_revision: str | None = None


def upgrade() -> None:
    """Create every table."""
    for create in _TABLES.values():
        create()


def downgrade() -> None:
    """Drop every table."""
    for name in reversed(_TABLES):
        op.drop_table(name)


def _servers() -> None:
    op.create_table(
        "servers",
        sa.Column("id", BigId, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("hostname", sa.String(255), nullable=False),
        sa.Column("description", sa.String(255), nullable=True),
        sa.Column("vm_state", sa.String(32), nullable=False),
        sa.Column("task_state", sa.String(32), nullable=True),
        sa.Column("power_state", sa.Integer(), nullable=False),
        sa.Column("operation_id", BigId, nullable=True),
        sa.Column("reservation_id", sa.String(32), nullable=False),
        sa.Column("launch_index", sa.Integer(), nullable=False),
        sa.Column("flavor", Json, nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("memory_mib", sa.Integer(), nullable=False),
        sa.Column("disk_gib", sa.Integer(), nullable=False),
        sa.Column("image_id", sa.String(36), nullable=True),
        sa.Column("image_properties", Json, nullable=False),
        sa.Column("key_name", sa.String(255), nullable=True),
        sa.Column("public_key", sa.Text(), nullable=True),
        sa.Column("config_drive", sa.Boolean(), nullable=False),
        sa.Column("user_data", sa.Text(), nullable=True),
        sa.Column("availability_zone", sa.String(255), nullable=True),
        sa.Column("pinned_availability_zone", sa.String(255), nullable=True),
        sa.Column("host", sa.String(255), nullable=True),
        sa.Column("node", sa.String(255), nullable=True),
        sa.Column("cluster", sa.String(255), nullable=True),
        sa.Column("vmid", sa.Integer(), nullable=True),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("tags", Json, nullable=False),
        sa.Column("addresses", Json, nullable=False),
        sa.Column("scheduler_hints", Json, nullable=False),
        sa.Column("security_groups", Json, nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=True),
        sa.Column("launched_at", UtcDateTime(), nullable=True),
        sa.Column("terminated_at", UtcDateTime(), nullable=True),
        sa.Column("deleted_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_servers"),
        sa.UniqueConstraint("uuid", name="uq_servers_uuid"),
    )
    op.create_index("ix_servers_host", "servers", ["host", "deleted_at"])
    op.create_index(
        "ix_servers_project", "servers", ["project_id", "deleted_at", "created_at", "id"]
    )


def _operations() -> None:
    op.create_table(
        "operations",
        sa.Column("id", BigId, nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("global_request_id", sa.String(64), nullable=True),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String(255), nullable=True),
        sa.Column("lease_expires_at", UtcDateTime(), nullable=True),
        sa.Column("not_before", UtcDateTime(), nullable=True),
        sa.Column("deadline", UtcDateTime(), nullable=True),
        sa.Column("context", Json, nullable=False),
        sa.Column("params", Json, nullable=False),
        sa.Column("plan", Json, nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("started_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_operations"),
    )
    op.create_index("ix_operations_due", "operations", ["state", "lease_expires_at"])
    op.create_index("ix_operations_global_request_id", "operations", ["global_request_id"])
    op.create_index("ix_operations_request_id", "operations", ["request_id"])
    op.create_index("ix_operations_server", "operations", ["server_uuid", "id"])


def _operation_events() -> None:
    op.create_table(
        "operation_events",
        sa.Column("operation_id", BigId, autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(255), nullable=True),
        sa.Column("started_at", UtcDateTime(), nullable=False),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.Column("result", sa.String(16), nullable=True),
        sa.Column("upid", sa.String(255), nullable=True),
        sa.Column("detail", Json, nullable=False),
        sa.PrimaryKeyConstraint("operation_id", "attempt", "name", name="pk_operation_events"),
    )


def _transitions() -> None:
    op.create_table(
        "transitions",
        sa.Column("id", BigId, nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("operation_id", BigId, nullable=False),
        sa.Column("from_vm_state", sa.String(32), nullable=False),
        sa.Column("from_task_state", sa.String(32), nullable=True),
        sa.Column("to_vm_state", sa.String(32), nullable=False),
        sa.Column("to_task_state", sa.String(32), nullable=True),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_transitions"),
    )
    op.create_index("ix_transitions_operation_id", "transitions", ["operation_id"])
    op.create_index("ix_transitions_server_uuid", "transitions", ["server_uuid"])


def _faults() -> None:
    op.create_table(
        "faults",
        sa.Column("id", BigId, nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("operation_id", BigId, nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("code", sa.Integer(), nullable=False),
        sa.Column("category", sa.String(32), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("host", sa.String(255), nullable=True),
        sa.Column("upid", sa.String(255), nullable=True),
        sa.Column("log_tail", Json, nullable=False),
        sa.Column("cleaned", Json, nullable=False),
        sa.Column("left", Json, nullable=False),
        sa.Column("remedy", sa.Text(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_faults"),
    )
    op.create_index("ix_faults_operation_id", "faults", ["operation_id"])
    op.create_index("ix_faults_server_uuid", "faults", ["server_uuid"])


def _decisions() -> None:
    op.create_table(
        "decisions",
        sa.Column("operation_id", BigId, autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("body", Json, nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("operation_id", "attempt", name="pk_decisions"),
    )
    op.create_index("ix_decisions_request_id", "decisions", ["request_id"])


def _vmid_bands() -> None:
    op.create_table(
        "vmid_bands",
        sa.Column("cluster", sa.String(255), nullable=False),
        sa.Column("low", sa.Integer(), nullable=False),
        sa.Column("high", sa.Integer(), nullable=False),
        sa.Column("next", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("cluster", name="pk_vmid_bands"),
    )


def _vmids() -> None:
    op.create_table(
        "vmids",
        sa.Column("cluster", sa.String(255), nullable=False),
        sa.Column("vmid", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=True),
        sa.Column("operation_id", BigId, nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("since", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "vmid", name="pk_vmids"),
    )
    op.create_index("ix_vmids_server_uuid", "vmids", ["server_uuid"])


def _templates() -> None:
    op.create_table(
        "templates",
        sa.Column("cluster", sa.String(255), nullable=False),
        sa.Column("node", sa.String(255), nullable=False),
        sa.Column("storage", StorageName, nullable=False),
        sa.Column("image_id", sa.String(36), nullable=False),
        sa.Column("vmid", sa.Integer(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "node", "storage", "image_id", name="pk_templates"),
    )


def _flavors() -> None:
    op.create_table(
        "flavors",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("flavorid", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("memory_mib", sa.Integer(), nullable=False),
        sa.Column("disk_gib", sa.Integer(), nullable=False),
        sa.Column("ephemeral_gib", sa.Integer(), nullable=False),
        sa.Column("swap_mib", sa.Integer(), nullable=False),
        sa.Column("rxtx_factor", sa.Float(), nullable=False),
        sa.Column("is_public", sa.Boolean(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("extra_specs", Json, nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_flavors"),
        sa.UniqueConstraint("flavorid", name="uq_flavors_flavorid"),
        sa.UniqueConstraint("name", name="uq_flavors_name"),
    )


def _flavor_access() -> None:
    op.create_table(
        "flavor_access",
        sa.Column("flavor_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("flavor_id", "project_id", name="pk_flavor_access"),
    )


def _keypairs() -> None:
    op.create_table(
        "keypairs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("fingerprint", sa.String(255), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_keypairs"),
        sa.UniqueConstraint("user_id", "name", name="uq_keypairs_user_id_name"),
    )


def _quota_limits() -> None:
    op.create_table(
        "quota_limits",
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("resource", sa.String(64), nullable=False),
        sa.Column("hard_limit", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "resource", name="pk_quota_limits"),
    )


def _project_locks() -> None:
    op.create_table(
        "project_locks",
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name="pk_project_locks"),
    )


def _services() -> None:
    op.create_table(
        "services",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("binary", sa.String(64), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("worker", sa.String(255), nullable=False),
        sa.Column("availability_zone", sa.String(255), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("disabled_reason", sa.String(255), nullable=True),
        sa.Column("forced_down", sa.Boolean(), nullable=False),
        sa.Column("version", sa.String(32), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=True),
        sa.Column("last_seen_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_services"),
        sa.UniqueConstraint("binary", "host", name="uq_services_binary_host"),
        sa.UniqueConstraint("uuid", name="uq_services_uuid"),
    )


def _hosts() -> None:
    op.create_table(
        "hosts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("cluster", sa.String(255), nullable=False),
        sa.Column("node", sa.String(255), nullable=False),
        sa.Column("worker", sa.String(255), nullable=False),
        sa.Column("facts", Json, nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hosts"),
        sa.UniqueConstraint("host", name="uq_hosts_host"),
        sa.UniqueConstraint("uuid", name="uq_hosts_uuid"),
    )


def _clusters() -> None:
    op.create_table(
        "clusters",
        sa.Column("cluster", sa.String(255), nullable=False),
        sa.Column("facts", Json, nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("cluster", name="pk_clusters"),
    )


def _images() -> None:
    op.create_table(
        "images",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("virtual_size_bytes", sa.BigInteger(), nullable=True),
        sa.Column("disk_format", sa.String(16), nullable=False),
        sa.Column("checksum", sa.String(128), nullable=True),
        sa.Column("min_disk_gib", sa.Integer(), nullable=False),
        sa.Column("min_ram_mib", sa.Integer(), nullable=False),
        sa.Column("properties", Json, nullable=False),
        sa.Column("locations", Json, nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_images"),
    )
    op.create_index("ix_images_name", "images", ["name"])


def _networks() -> None:
    op.create_table(
        "networks",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("bridge", sa.String(32), nullable=False),
        sa.Column("vlan", sa.Integer(), nullable=True),
        sa.Column("mtu", sa.Integer(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_networks"),
        sa.UniqueConstraint("bridge", name="uq_networks_bridge"),
    )
    op.create_index("ix_networks_name", "networks", ["name"])


def _subnets() -> None:
    op.create_table(
        "subnets",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("network_id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("cidr", sa.String(64), nullable=False),
        sa.Column("gateway_ip", sa.String(64), nullable=True),
        sa.Column("pool_start", sa.String(64), nullable=False),
        sa.Column("pool_end", sa.String(64), nullable=False),
        sa.Column("next_ip", sa.String(64), nullable=False),
        sa.Column("dns_nameservers", Json, nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_subnets"),
    )
    op.create_index("ix_subnets_network_id", "subnets", ["network_id"])


def _ports() -> None:
    op.create_table(
        "ports",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("network_id", sa.String(36), nullable=False),
        sa.Column("subnet_id", sa.String(36), nullable=True),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("mac", sa.String(17), nullable=False),
        sa.Column("ip", sa.String(64), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ports"),
        sa.UniqueConstraint("mac", name="uq_ports_mac"),
        sa.UniqueConstraint("subnet_id", "ip", name="uq_ports_subnet_id_ip"),
    )
    op.create_index("ix_ports_network_id", "ports", ["network_id"])
    op.create_index("ix_ports_project_id", "ports", ["project_id"])
    op.create_index("ix_ports_server_uuid", "ports", ["server_uuid"])


_TABLES: dict[str, Callable[[], None]] = {
    "servers": _servers,
    "operations": _operations,
    "operation_events": _operation_events,
    "transitions": _transitions,
    "faults": _faults,
    "decisions": _decisions,
    "vmid_bands": _vmid_bands,
    "vmids": _vmids,
    "templates": _templates,
    "flavors": _flavors,
    "flavor_access": _flavor_access,
    "keypairs": _keypairs,
    "quota_limits": _quota_limits,
    "project_locks": _project_locks,
    "services": _services,
    "hosts": _hosts,
    "clusters": _clusters,
    "images": _images,
    "networks": _networks,
    "subnets": _subnets,
    "ports": _ports,
}
