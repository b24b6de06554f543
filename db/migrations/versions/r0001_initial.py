"""Create the cloud database.

Written by tests/migration.py.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.migrations import first_rows
from db.types import BigId, Json, OrderedJson, StorageName, UtcDateTime

revision = "r0001_initial"
down_revision: str | None = None


def upgrade() -> None:
    """Create all tables, and the rows that a new database has."""
    op.create_table(
        "address_groups",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.String(255), nullable=False),
        sa.Column("addresses", Json, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("revision", sa.Integer, server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_address_groups"),
    )
    op.create_index("ix_address_groups_project_id", "address_groups", ["project_id"])
    op.create_table(
        "agent_leases",
        sa.Column("unit", sa.String(255), nullable=False),
        sa.Column("cluster", sa.String(255), nullable=False),
        sa.Column("worker", sa.String(255), nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("unit", name="pk_agent_leases"),
    )
    op.create_table(
        "agents",
        sa.Column("worker", sa.String(255), nullable=False),
        sa.Column("tenure", sa.BigInteger, nullable=False),
        sa.Column("process", sa.String(255), nullable=False),
        sa.Column("machine", sa.String(255), nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("worker", name="pk_agents"),
    )
    op.create_table(
        "aggregate_hosts",
        sa.Column("aggregate_id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("aggregate_id", "host", name="pk_aggregate_hosts"),
    )
    op.create_index("ix_aggregate_hosts_host", "aggregate_hosts", ["host"])
    op.create_table(
        "aggregate_mirrors",
        sa.Column("provider_uuid", sa.String(36), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("provider_uuid", name="pk_aggregate_mirrors"),
    )
    op.create_table(
        "aggregate_versions",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_aggregate_versions"),
    )
    op.create_table(
        "aggregates",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_aggregates"),
        sa.UniqueConstraint("name", name="uq_aggregates_name"),
        sa.UniqueConstraint("uuid", name="uq_aggregates_uuid"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "audits",
        sa.Column("id", BigId, nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("task", sa.String(16), server_default="audit", nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("conductor", sa.String(255), nullable=True),
        sa.Column("requested_at", UtcDateTime, nullable=False),
        sa.Column("started_at", UtcDateTime, nullable=True),
        sa.Column("finished_at", UtcDateTime, nullable=True),
        sa.Column("report", Json, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audits"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audits_state", "audits", ["state"])
    op.create_table(
        "cloud_identity",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("cloud_id", sa.String(36), nullable=False),
        sa.Column("epoch_base", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("epoch_settled", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("compare_since", UtcDateTime, nullable=True),
        sa.Column("compare_operation", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("held_at", UtcDateTime, nullable=True),
        sa.Column("timeline", sa.String(32), nullable=True),
        sa.Column("held_because", Json, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_cloud_identity"),
    )
    op.create_table(
        "clusters",
        sa.Column("cluster", sa.String(255), nullable=False),
        sa.Column("facts", Json, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("looked_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("cluster", name="pk_clusters"),
    )
    op.create_table(
        "console_tokens",
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("console_type", sa.String(16), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("port", sa.Integer, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.Column("used_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("token_hash", name="pk_console_tokens"),
    )
    op.create_index("ix_console_tokens_expires_at", "console_tokens", ["expires_at"])
    op.create_table(
        "decisions",
        sa.Column("operation_id", BigId, autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("body", OrderedJson, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("operation_id", "attempt", name="pk_decisions"),
    )
    op.create_index("ix_decisions_request_id", "decisions", ["request_id"])
    op.create_table(
        "default_group_rules",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("direction", sa.String(8), nullable=False),
        sa.Column("ethertype", sa.String(4), nullable=False),
        sa.Column("protocol", sa.String(16), nullable=True),
        sa.Column("port_range_min", sa.Integer, nullable=True),
        sa.Column("port_range_max", sa.Integer, nullable=True),
        sa.Column("remote_ip_prefix", sa.String(64), nullable=True),
        sa.Column("normalized_cidr", sa.String(64), nullable=True),
        sa.Column("remote_group_id", sa.String(36), nullable=True),
        sa.Column("remote_address_group_id", sa.String(36), nullable=True),
        sa.Column("description", sa.String(255), nullable=False),
        sa.Column("used_in_default_sg", sa.Boolean, nullable=False),
        sa.Column("used_in_non_default_sg", sa.Boolean, nullable=False),
        sa.Column("meaning", sa.String(255), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_default_group_rules"),
    )
    op.create_table(
        "deleted_volume_messages",
        sa.Column("operation_id", BigId, autoincrement=False, nullable=False),
        sa.Column("deleted_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("operation_id", name="pk_deleted_volume_messages"),
    )
    op.create_table(
        "faults",
        sa.Column("id", BigId, nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("operation_id", BigId, nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("code", sa.Integer, nullable=False),
        sa.Column("category", sa.String(32), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("owner_message", sa.Text, nullable=True),
        sa.Column("host", sa.String(255), nullable=True),
        sa.Column("upid", sa.String(255), nullable=True),
        sa.Column("log_tail", Json, nullable=False),
        sa.Column("cleaned", Json, nullable=False),
        sa.Column("left", Json, nullable=False),
        sa.Column("remedy", sa.Text, nullable=True),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_faults"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_faults_operation_id", "faults", ["operation_id"])
    op.create_index("ix_faults_server_uuid", "faults", ["server_uuid"])
    op.create_table(
        "filter_changes",
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("token", sa.String(36), nullable=False),
        sa.Column("not_before", UtcDateTime, nullable=False),
        sa.Column("failures", sa.Integer, server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("server_uuid", name="pk_filter_changes"),
    )
    op.create_index("ix_filter_changes_not_before", "filter_changes", ["not_before"])
    op.create_table(
        "findings",
        sa.Column("id", BigId, nullable=False),
        sa.Column("kind", sa.String(48), nullable=False),
        sa.Column("subject", sa.String(512), nullable=False),
        sa.Column("severity", sa.String(16), nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("remedy", sa.Text, nullable=True),
        sa.Column("heal", sa.String(16), nullable=True),
        sa.Column("server_uuid", sa.String(36), nullable=True),
        sa.Column("cluster", sa.String(255), nullable=True),
        sa.Column("node", sa.String(255), nullable=True),
        sa.Column("vmid", sa.Integer, nullable=True),
        sa.Column("evidence", Json, nullable=False),
        sa.Column("first_seen_at", UtcDateTime, nullable=False),
        sa.Column("last_seen_at", UtcDateTime, nullable=False),
        sa.Column("healed_at", UtcDateTime, nullable=True),
        sa.Column("healed_by", sa.String(255), nullable=True),
        sa.Column("heals", sa.Integer, nullable=False),
        sa.Column("tried_at", UtcDateTime, nullable=True),
        sa.Column("operation_id", BigId, nullable=True),
        sa.Column("answer", sa.Text, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_findings"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_findings_open", "findings", ["healed_at", "kind"])
    op.create_index("ix_findings_server_uuid", "findings", ["server_uuid"])
    op.create_table(
        "flavor_access",
        sa.Column("flavor_id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("flavor_id", "project_id", name="pk_flavor_access"),
    )
    op.create_table(
        "flavors",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("flavorid", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("vcpus", sa.Integer, nullable=False),
        sa.Column("memory_mib", sa.Integer, nullable=False),
        sa.Column("disk_gib", sa.Integer, nullable=False),
        sa.Column("ephemeral_gib", sa.Integer, nullable=False),
        sa.Column("swap_mib", sa.Integer, nullable=False),
        sa.Column("rxtx_factor", sa.Float, nullable=False),
        sa.Column("is_public", sa.Boolean, nullable=False),
        sa.Column("disabled", sa.Boolean, nullable=False),
        sa.Column("description", sa.Text, nullable=True),
        sa.Column("extra_specs", Json, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_flavors"),
        sa.UniqueConstraint("flavorid", name="uq_flavors_flavorid"),
        sa.UniqueConstraint("name", name="uq_flavors_name"),
        sqlite_autoincrement=True,
    )
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
    op.create_index("ix_group_shares_project_id", "group_shares", ["project_id"])
    op.create_index("ix_group_shares_target", "group_shares", ["target"])
    op.create_table(
        "hosts",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("cluster", sa.String(255), nullable=False),
        sa.Column("node", sa.String(255), nullable=False),
        sa.Column("worker", sa.String(255), nullable=False),
        sa.Column("facts", Json, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hosts"),
        sa.UniqueConstraint("host", name="uq_hosts_host"),
        sa.UniqueConstraint("uuid", name="uq_hosts_uuid"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "image_members",
        sa.Column("image_id", sa.String(36), nullable=False),
        sa.Column("member", sa.String(255), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("image_id", "member", name="pk_image_members"),
    )
    op.create_table(
        "images",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("virtual_size_bytes", sa.BigInteger, nullable=True),
        sa.Column("disk_format", sa.String(16), nullable=False),
        sa.Column("checksum", sa.String(128), nullable=True),
        sa.Column("md5", sa.String(32), nullable=True),
        sa.Column("import_task", Json, nullable=True),
        sa.Column("min_disk_gib", sa.Integer, nullable=False),
        sa.Column("min_ram_mib", sa.Integer, nullable=False),
        sa.Column("properties", Json, nullable=False),
        sa.Column("locations", Json, nullable=False),
        sa.Column("project_id", sa.String(255), nullable=True),
        sa.Column("server_uuid", sa.String(36), nullable=True),
        sa.Column("home", Json, nullable=True),
        sa.Column(
            "container_format", sa.String(16), server_default=sa.text("'bare'"), nullable=False
        ),
        sa.Column("visibility", sa.String(16), nullable=True),
        sa.Column("protected", sa.Boolean, nullable=True),
        sa.Column("hidden", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("tags", Json, nullable=True),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_images"),
    )
    op.create_index("ix_images_name", "images", ["name"])
    op.create_index("ix_images_project_id", "images", ["project_id"])
    op.create_index("ix_images_server_uuid", "images", ["server_uuid"])
    op.create_table(
        "keypairs",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("fingerprint", sa.String(255), nullable=False),
        sa.Column("public_key", sa.Text, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_keypairs"),
        sa.UniqueConstraint("user_id", "name", name="uq_keypairs_user_id_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("owner", sa.String(255), nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )
    op.create_table(
        "metadef_items",
        sa.Column("namespace_id", sa.String(36), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("body", Json, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("namespace_id", "kind", "name", name="pk_metadef_items"),
    )
    op.create_table(
        "metadef_namespaces",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("display_name", sa.String(80), nullable=True),
        sa.Column("description", sa.String(500), nullable=True),
        sa.Column("visibility", sa.String(16), nullable=False),
        sa.Column("protected", sa.Boolean, nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_metadef_namespaces"),
        sa.UniqueConstraint("name", name="uq_metadef_namespaces_name"),
    )
    op.create_table(
        "migrations",
        sa.Column("id", BigId, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("operation_id", BigId, nullable=True),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("source_host", sa.String(255), nullable=True),
        sa.Column("source_node", sa.String(255), nullable=True),
        sa.Column("dest_host", sa.String(255), nullable=True),
        sa.Column("dest_node", sa.String(255), nullable=True),
        sa.Column("dest_address", sa.String(255), nullable=True),
        sa.Column("old_flavor_number", sa.Integer, nullable=True),
        sa.Column("new_flavor_number", sa.Integer, nullable=True),
        sa.Column("old_flavor", Json, nullable=True),
        sa.Column("new_flavor", Json, nullable=True),
        sa.Column("old_vm_state", sa.String(32), nullable=True),
        sa.Column("claim", Json, nullable=True),
        sa.Column("memory_total", sa.BigInteger, nullable=True),
        sa.Column("memory_processed", sa.BigInteger, nullable=True),
        sa.Column("memory_remaining", sa.BigInteger, nullable=True),
        sa.Column("disk_total", sa.BigInteger, nullable=True),
        sa.Column("disk_processed", sa.BigInteger, nullable=True),
        sa.Column("disk_remaining", sa.BigInteger, nullable=True),
        sa.Column("hidden", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_migrations"),
        sa.UniqueConstraint("uuid", name="uq_migrations_uuid"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_migrations_project", "migrations", ["project_id", "id"])
    op.create_index("ix_migrations_server", "migrations", ["server_uuid", "id"])
    op.create_table(
        "network_shares",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("network_id", sa.String(36), nullable=False),
        sa.Column("target", sa.String(255), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_network_shares"),
        sa.UniqueConstraint("network_id", "target", name="uq_network_shares_network_id_target"),
    )
    op.create_index("ix_network_shares_project_id", "network_shares", ["project_id"])
    op.create_index("ix_network_shares_target", "network_shares", ["target"])
    op.create_table(
        "networks",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("bridge", sa.String(32), nullable=False),
        sa.Column("vlan", sa.Integer, nullable=True),
        sa.Column("mtu", sa.Integer, nullable=False),
        sa.Column("tags", Json, nullable=True),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("project_id", sa.String(255), server_default=sa.text("('')"), nullable=False),
        sa.Column("description", sa.String(255), server_default=sa.text("('')"), nullable=False),
        sa.Column("external", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("discovered", sa.Boolean, server_default=sa.true(), nullable=False),
        sa.Column("availability_zone_hints", Json, nullable=True),
        sa.Column("auto_allocated", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("segment", sa.Integer, server_default=sa.text("0"), nullable=False),
        sa.Column("zone", sa.String(16), nullable=True),
        sa.Column("vni", sa.Integer, nullable=True),
        sa.Column("status", sa.String(16), server_default=sa.text("'ACTIVE'"), nullable=False),
        sa.Column("admin_state_up", sa.Boolean, nullable=True),
        sa.Column("is_default", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("port_security", sa.Boolean, nullable=True),
        sa.Column("revision", sa.Integer, server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_networks"),
    )
    op.create_index("ix_networks_name", "networks", ["name"])
    op.create_index("ix_networks_project_id", "networks", ["project_id"])
    op.create_index("ux_networks_bridge_segment", "networks", ["bridge", "segment"], unique=True)
    op.create_index("ux_networks_zone_vni", "networks", ["zone", "vni"], unique=True)
    op.create_table(
        "notification_outbox",
        sa.Column("id", BigId, nullable=False),
        sa.Column("message_id", sa.String(36), nullable=False),
        sa.Column("event", sa.String(64), nullable=False),
        sa.Column("operation_id", BigId, nullable=True),
        sa.Column("server_uuid", sa.String(36), nullable=True),
        sa.Column("body", OrderedJson, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("set_aside_at", UtcDateTime, nullable=True),
        sa.Column("reason", sa.String(255), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_notification_outbox"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "operation_events",
        sa.Column("operation_id", BigId, autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("host", sa.String(255), nullable=True),
        sa.Column("started_at", UtcDateTime, nullable=False),
        sa.Column("finished_at", UtcDateTime, nullable=True),
        sa.Column("result", sa.String(16), nullable=True),
        sa.Column("upid", sa.String(255), nullable=True),
        sa.Column("detail", Json, nullable=False),
        sa.PrimaryKeyConstraint("operation_id", "attempt", "name", name="pk_operation_events"),
    )
    op.create_table(
        "operations",
        sa.Column("id", BigId, nullable=False),
        sa.Column("resource_type", sa.String(32), nullable=False),
        sa.Column("resource_id", sa.String(255), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("global_request_id", sa.String(64), nullable=True),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("lease_owner", sa.String(255), nullable=True),
        sa.Column("lease_expires_at", UtcDateTime, nullable=True),
        sa.Column("not_before", UtcDateTime, nullable=True),
        sa.Column("deadline", UtcDateTime, nullable=True),
        sa.Column("context", Json, nullable=False),
        sa.Column("params", Json, nullable=False),
        sa.Column("plan", Json, nullable=False),
        sa.Column("stage", sa.String(64), nullable=True),
        sa.Column("message", sa.Text, nullable=True),
        sa.Column("overslept", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("may_run", sa.Integer, server_default="0", nullable=False),
        sa.Column("started_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("finished_at", UtcDateTime, nullable=True),
        sa.Column("forgotten_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_operations"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_operations_due", "operations", ["state", "lease_expires_at"])
    op.create_index("ix_operations_global_request_id", "operations", ["global_request_id"])
    op.create_index("ix_operations_request_id", "operations", ["request_id"])
    op.create_index("ix_operations_resource", "operations", ["resource_type", "resource_id", "id"])
    op.create_table(
        "other_nics",
        sa.Column("cluster", sa.String(255), nullable=False),
        sa.Column("vmid", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("mac", sa.String(17), nullable=False),
        sa.Column("bridge", sa.String(32), nullable=False),
        sa.Column("segment", sa.Integer, nullable=False),
        sa.Column("ip", sa.String(64), nullable=True),
        sa.PrimaryKeyConstraint("cluster", "vmid", "number", name="pk_other_nics"),
    )
    op.create_index("ix_other_nics_bridge_segment_ip", "other_nics", ["bridge", "segment", "ip"])
    op.create_index("ix_other_nics_mac", "other_nics", ["mac"])
    op.create_table(
        "other_vms",
        sa.Column("cluster", sa.String(255), nullable=False),
        sa.Column("vmid", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("node", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("read_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("cluster", "vmid", name="pk_other_vms"),
    )
    op.create_index("ix_other_vms_read_at", "other_vms", ["read_at"])
    op.create_table(
        "port_addresses",
        sa.Column("subnet_id", sa.String(36), nullable=False),
        sa.Column("ip", sa.String(64), nullable=False),
        sa.Column("port_id", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("subnet_id", "ip", name="pk_port_addresses"),
    )
    op.create_index("ix_port_addresses_port_id", "port_addresses", ["port_id"])
    op.create_table(
        "port_security_groups",
        sa.Column("port_id", sa.String(36), nullable=False),
        sa.Column("security_group_id", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("port_id", "security_group_id", name="pk_port_security_groups"),
    )
    op.create_index(
        "ix_port_security_groups_security_group_id", "port_security_groups", ["security_group_id"]
    )
    op.create_table(
        "ports",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("network_id", sa.String(36), nullable=False),
        sa.Column("subnet_id", sa.String(36), nullable=True),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("mac", sa.String(17), nullable=False),
        sa.Column("ip", sa.String(64), nullable=True),
        sa.Column("tag", sa.String(60), nullable=True),
        sa.Column("name", sa.String(255), server_default=sa.text("('')"), nullable=False),
        sa.Column("description", sa.String(255), server_default=sa.text("('')"), nullable=False),
        sa.Column("kept", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("port_security", sa.Boolean, nullable=True),
        sa.Column("address_pairs", Json, nullable=True),
        sa.Column("tags", Json, nullable=True),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=True),
        sa.Column("subnet6_id", sa.String(36), nullable=True),
        sa.Column("ip6", sa.String(64), nullable=True),
        sa.Column("admin_state_up", sa.Boolean, nullable=True),
        sa.Column("more_addresses", Json, nullable=True),
        sa.Column("binding_host", sa.String(255), nullable=True),
        sa.Column("revision", sa.Integer, server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ports"),
        sa.UniqueConstraint("mac", name="uq_ports_mac"),
        sa.UniqueConstraint("subnet_id", "ip", name="uq_ports_subnet_id_ip"),
    )
    op.create_index("ix_ports_network_id", "ports", ["network_id"])
    op.create_index("ix_ports_project_id", "ports", ["project_id"])
    op.create_index("ix_ports_server_uuid", "ports", ["server_uuid"])
    op.create_index("ux_ports_subnet6_id_ip6", "ports", ["subnet6_id", "ip6"], unique=True)
    op.create_table(
        "project_locks",
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name="pk_project_locks"),
    )
    op.create_table(
        "quota_classes",
        sa.Column("class_name", sa.String(255), nullable=False),
        sa.Column("resource", sa.String(300), nullable=False),
        sa.Column("hard_limit", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("class_name", "resource", name="pk_quota_classes"),
    )
    op.create_table(
        "quota_limits",
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("resource", sa.String(300), nullable=False),
        sa.Column("hard_limit", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("project_id", "resource", name="pk_quota_limits"),
    )
    op.create_table(
        "refusals",
        sa.Column("id", BigId, nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("global_request_id", sa.String(64), nullable=True),
        sa.Column("method", sa.String(16), nullable=False),
        sa.Column("path", sa.String(255), nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("details", Json, nullable=False),
        sa.Column("of_admin", sa.Boolean, nullable=False),
        sa.Column("received_at", UtcDateTime, nullable=False),
        sa.Column("answered_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_refusals"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_refusals_answered_at", "refusals", ["answered_at"])
    op.create_index("ix_refusals_global_request_id", "refusals", ["global_request_id"])
    op.create_index("ix_refusals_project", "refusals", ["project_id", "id"])
    op.create_index("ix_refusals_request_id", "refusals", ["request_id"])
    op.create_table(
        "scaling_bindings",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("group_id", sa.String(36), nullable=False),
        sa.Column("policy_id", sa.String(36), nullable=False),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_scaling_bindings"),
        sa.UniqueConstraint(
            "group_id", "policy_id", name="uq_scaling_bindings_group_id_policy_id"
        ),
    )
    op.create_index("ix_scaling_bindings_policy_id", "scaling_bindings", ["policy_id"])
    op.create_table(
        "scaling_groups",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("profile_id", sa.String(36), nullable=False),
        sa.Column("former_profile_id", sa.String(36), nullable=True),
        sa.Column("desired", sa.Integer, nullable=False),
        sa.Column("min_size", sa.Integer, nullable=False),
        sa.Column("max_size", sa.Integer, nullable=False),
        sa.Column("timeout_seconds", sa.Integer, nullable=False),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("config", Json, nullable=False),
        sa.Column("context", Json, nullable=False),
        sa.Column("next_index", sa.Integer, nullable=False),
        sa.Column("rolling", sa.Boolean, nullable=False),
        sa.Column("paused", sa.Boolean, nullable=False),
        sa.Column("deleting", sa.Boolean, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("refusals", sa.Integer, nullable=False),
        sa.Column("not_before", UtcDateTime, nullable=True),
        sa.Column("halted", sa.Text, nullable=True),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("status_reason", sa.Text, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_scaling_groups"),
    )
    op.create_index("ix_scaling_groups_profile_id", "scaling_groups", ["profile_id"])
    op.create_index("ix_scaling_groups_project_id", "scaling_groups", ["project_id"])
    op.create_table(
        "scaling_members",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("group_id", sa.String(36), nullable=True),
        sa.Column("member_index", sa.Integer, nullable=True),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("role", sa.String(255), nullable=True),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("profile_id", sa.String(36), nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=True),
        sa.Column("volumes", Json, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("recoveries", sa.Integer, nullable=False),
        sa.Column("ready_at", UtcDateTime, nullable=True),
        sa.Column("health", sa.String(8), nullable=True),
        sa.Column("health_reason", sa.Text, nullable=True),
        sa.Column("health_at", UtcDateTime, nullable=True),
        sa.Column("repaired_at", UtcDateTime, nullable=True),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_scaling_members"),
        sa.UniqueConstraint(
            "group_id", "member_index", name="uq_scaling_members_group_id_member_index"
        ),
        sa.UniqueConstraint("server_uuid", name="uq_scaling_members_server_uuid"),
    )
    op.create_index("ix_scaling_members_profile_id", "scaling_members", ["profile_id"])
    op.create_index("ix_scaling_members_project_id", "scaling_members", ["project_id"])
    op.create_table(
        "scaling_policies",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("spec", Json, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_scaling_policies"),
    )
    op.create_index("ix_scaling_policies_project_id", "scaling_policies", ["project_id"])
    op.create_table(
        "scaling_profiles",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("spec", Json, nullable=False),
        sa.Column("request", Json, nullable=False),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_scaling_profiles"),
    )
    op.create_index("ix_scaling_profiles_project_id", "scaling_profiles", ["project_id"])
    op.create_table(
        "scaling_receivers",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("group_id", sa.String(36), nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("params", Json, nullable=False),
        sa.Column("context", Json, nullable=False),
        sa.Column("key_hash", sa.String(64), nullable=False),
        sa.Column("sealed", sa.String(64), nullable=False),
        sa.Column("window_at", UtcDateTime, nullable=True),
        sa.Column("calls", sa.Integer, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_scaling_receivers"),
    )
    op.create_index("ix_scaling_receivers_group_id", "scaling_receivers", ["group_id"])
    op.create_index("ix_scaling_receivers_project_id", "scaling_receivers", ["project_id"])
    op.create_table(
        "security_group_rules",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("security_group_id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("direction", sa.String(8), nullable=False),
        sa.Column("ethertype", sa.String(4), nullable=False),
        sa.Column("protocol", sa.String(16), nullable=True),
        sa.Column("port_range_min", sa.Integer, nullable=True),
        sa.Column("port_range_max", sa.Integer, nullable=True),
        sa.Column("remote_ip_prefix", sa.String(64), nullable=True),
        sa.Column("normalized_cidr", sa.String(64), nullable=True),
        sa.Column("remote_group_id", sa.String(36), nullable=True),
        sa.Column("remote_address_group_id", sa.String(36), nullable=True),
        sa.Column("description", sa.String(255), nullable=False),
        sa.Column("meaning", sa.String(160), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_security_group_rules"),
        sa.UniqueConstraint(
            "security_group_id",
            "meaning",
            name="uq_security_group_rules_security_group_id_meaning",
        ),
    )
    op.create_index("ix_security_group_rules_project_id", "security_group_rules", ["project_id"])
    op.create_index(
        "ix_security_group_rules_remote_address_group_id",
        "security_group_rules",
        ["remote_address_group_id"],
    )
    op.create_index(
        "ix_security_group_rules_remote_group_id", "security_group_rules", ["remote_group_id"]
    )
    op.create_table(
        "security_groups",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.String(255), nullable=False),
        sa.Column("default_of", sa.String(255), nullable=True),
        sa.Column("tags", Json, nullable=True),
        sa.Column("stateful", sa.Boolean, server_default=sa.true(), nullable=False),
        sa.Column("revision", sa.Integer, server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_security_groups"),
        sa.UniqueConstraint("default_of", name="uq_security_groups_default_of"),
    )
    op.create_index("ix_security_groups_project_id", "security_groups", ["project_id"])
    op.create_table(
        "server_group_anchors",
        sa.Column("group_uuid", sa.String(36), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("group_uuid", name="pk_server_group_anchors"),
    )
    op.create_table(
        "server_group_places",
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("group_uuid", sa.String(36), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("slot", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("server_uuid", name="pk_server_group_places"),
        sa.UniqueConstraint(
            "group_uuid", "host", "slot", name="uq_server_group_places_group_uuid_host_slot"
        ),
    )
    op.create_table(
        "server_groups",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("policy", sa.String(32), nullable=False),
        sa.Column("rules", Json, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_server_groups"),
        sa.UniqueConstraint("uuid", name="uq_server_groups_uuid"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_server_groups_project_id", "server_groups", ["project_id"])
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
        sa.Column("power_state", sa.Integer, nullable=False),
        sa.Column("operation_id", BigId, nullable=True),
        sa.Column("reservation_id", sa.String(32), nullable=False),
        sa.Column("launch_index", sa.Integer, nullable=False),
        sa.Column("flavor", Json, nullable=False),
        sa.Column("vcpus", sa.Integer, nullable=False),
        sa.Column("memory_mib", sa.Integer, nullable=False),
        sa.Column("disk_gib", sa.Integer, nullable=False),
        sa.Column("image_id", sa.String(36), nullable=True),
        sa.Column("image_properties", Json, nullable=False),
        sa.Column("key_name", sa.String(255), nullable=True),
        sa.Column("public_key", sa.Text, nullable=True),
        sa.Column("config_drive", sa.Boolean, nullable=False),
        sa.Column("auto_disk_config", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("user_data", sa.Text, nullable=True),
        sa.Column("availability_zone", sa.String(255), nullable=True),
        sa.Column("pinned_availability_zone", sa.String(255), nullable=True),
        sa.Column("host", sa.String(255), nullable=True),
        sa.Column("node", sa.String(255), nullable=True),
        sa.Column("cluster", sa.String(255), nullable=True),
        sa.Column("vmid", sa.Integer, nullable=True),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("tags", Json, nullable=False),
        sa.Column("addresses", Json, nullable=False),
        sa.Column("scheduler_hints", Json, nullable=False),
        sa.Column("security_groups", Json, nullable=False),
        sa.Column("held", sa.Boolean, nullable=False),
        sa.Column("locked_by", sa.String(16), nullable=True),
        sa.Column("locked_reason", sa.String(255), nullable=True),
        sa.Column("access_ip_v4", sa.String(39), nullable=True),
        sa.Column("access_ip_v6", sa.String(39), nullable=True),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=True),
        sa.Column("launched_at", UtcDateTime, nullable=True),
        sa.Column("terminated_at", UtcDateTime, nullable=True),
        sa.Column("deleted_at", UtcDateTime, nullable=True),
        sa.Column("server_group_uuid", sa.String(36), nullable=True),
        sa.Column("disk_tag", sa.String(60), nullable=True),
        sa.Column("member_of", sa.String(36), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_servers"),
        sa.UniqueConstraint("uuid", name="uq_servers_uuid"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_servers_host", "servers", ["host", "deleted_at"])
    op.create_index(
        "ix_servers_project", "servers", ["project_id", "deleted_at", "created_at", "id"]
    )
    op.create_index("ix_servers_server_group", "servers", ["server_group_uuid", "deleted_at"])
    op.create_table(
        "services",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("binary", sa.String(64), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("worker", sa.String(255), nullable=False),
        sa.Column("availability_zone", sa.String(255), nullable=False),
        sa.Column("disabled", sa.Boolean, nullable=False),
        sa.Column("disabled_reason", sa.String(255), nullable=True),
        sa.Column("forced_down", sa.Boolean, nullable=False),
        sa.Column("version", sa.String(32), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=True),
        sa.Column("last_seen_at", UtcDateTime, nullable=True),
        sa.Column("aggregate_zone", sa.String(255), nullable=True),
        sa.Column("queues", Json, nullable=True),
        sa.Column("volumes_disabled", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("volumes_disabled_reason", sa.String(255), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_services"),
        sa.UniqueConstraint("binary", "host", name="uq_services_binary_host"),
        sa.UniqueConstraint("uuid", name="uq_services_uuid"),
        sqlite_autoincrement=True,
    )
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
        sa.Column("tags", Json, nullable=True),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("project_id", sa.String(255), server_default=sa.text("('')"), nullable=False),
        sa.Column("description", sa.String(255), server_default=sa.text("('')"), nullable=False),
        sa.Column("configured", sa.Boolean, server_default=sa.true(), nullable=False),
        sa.Column("pools", Json, nullable=True),
        sa.Column("host_routes", Json, nullable=True),
        sa.Column("enable_dhcp", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("ipv6_ra_mode", sa.String(16), nullable=True),
        sa.Column("ipv6_address_mode", sa.String(16), nullable=True),
        sa.Column("revision", sa.Integer, server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_subnets"),
    )
    op.create_index("ix_subnets_network_id", "subnets", ["network_id"])
    op.create_index("ix_subnets_project_id", "subnets", ["project_id"])
    op.create_table(
        "templates",
        sa.Column("cluster", sa.String(255), nullable=False),
        sa.Column("node", sa.String(255), nullable=False),
        sa.Column("storage", StorageName, nullable=False),
        sa.Column("image_id", sa.String(36), nullable=False),
        sa.Column("vmid", sa.Integer, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("cluster", "node", "storage", "image_id", name="pk_templates"),
    )
    op.create_table(
        "transitions",
        sa.Column("id", BigId, nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("operation_id", BigId, nullable=False),
        sa.Column("from_vm_state", sa.String(32), nullable=False),
        sa.Column("from_task_state", sa.String(32), nullable=True),
        sa.Column("to_vm_state", sa.String(32), nullable=False),
        sa.Column("to_task_state", sa.String(32), nullable=True),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_transitions"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_transitions_operation_id", "transitions", ["operation_id"])
    op.create_index("ix_transitions_server_uuid", "transitions", ["server_uuid"])
    op.create_table(
        "usage_audits",
        sa.Column("period_beginning", UtcDateTime, nullable=False),
        sa.Column("period_ending", UtcDateTime, nullable=False),
        sa.Column("unit", sa.String(16), nullable=False),
        sa.Column("last_server_id", BigId, nullable=False),
        sa.Column("servers_by_host", Json, nullable=False),
        sa.Column("finished_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("period_beginning", "period_ending", name="pk_usage_audits"),
    )
    op.create_table(
        "vmid_bands",
        sa.Column("cluster", sa.String(255), nullable=False),
        sa.Column("low", sa.Integer, nullable=False),
        sa.Column("high", sa.Integer, nullable=False),
        sa.Column("next", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("cluster", name="pk_vmid_bands"),
    )
    op.create_table(
        "vmid_journal",
        sa.Column("id", BigId, nullable=False),
        sa.Column("cluster", sa.String(255), nullable=False),
        sa.Column("vmid", sa.Integer, nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=True),
        sa.Column("operation_id", BigId, nullable=True),
        sa.Column("reserved_at", UtcDateTime, nullable=False),
        sa.Column("refused", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_vmid_journal"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_vmid_journal_cluster_vmid", "vmid_journal", ["cluster", "vmid"])
    op.create_index("ix_vmid_journal_server_uuid", "vmid_journal", ["server_uuid"])
    op.create_table(
        "vmids",
        sa.Column("cluster", sa.String(255), nullable=False),
        sa.Column("vmid", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=True),
        sa.Column("operation_id", BigId, nullable=True),
        sa.Column("reason", sa.Text, nullable=True),
        sa.Column("since", UtcDateTime, nullable=False),
        sa.Column("read_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("cluster", "vmid", name="pk_vmids"),
    )
    op.create_index("ix_vmids_server_uuid", "vmids", ["server_uuid"])
    op.create_table(
        "vnets",
        sa.Column("cluster", sa.String(255), nullable=False),
        sa.Column("network_id", sa.String(36), nullable=False),
        sa.Column("vnet", sa.String(8), nullable=False),
        sa.Column("zone", sa.String(16), nullable=False),
        sa.Column("vni", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("cluster", "network_id", name="pk_vnets"),
    )
    op.create_index("ux_vnets_cluster_vnet", "vnets", ["cluster", "vnet"], unique=True)
    op.create_index("ux_vnets_cluster_zone_vni", "vnets", ["cluster", "zone", "vni"], unique=True)
    op.create_table(
        "volume_attachments",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("volume_id", sa.String(36), nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("slot", sa.Integer, nullable=False),
        sa.Column("mode", sa.String(2), nullable=False),
        sa.Column("tag", sa.String(60), nullable=True),
        sa.Column("delete_on_termination", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("with_build", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("attached_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_volume_attachments"),
        sa.UniqueConstraint("server_uuid", "slot", name="uq_volume_attachments_server_uuid_slot"),
        sa.UniqueConstraint("volume_id", name="uq_volume_attachments_volume_id"),
    )
    op.create_index("ix_volume_attachments_server_uuid", "volume_attachments", ["server_uuid"])
    op.create_table(
        "volume_backups",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("volume_id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), server_default=sa.text("('')"), nullable=False),
        sa.Column("description", sa.Text, nullable=True),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("size_gib", sa.Integer, nullable=False),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("container", sa.String(255), nullable=True),
        sa.Column("availability_zone", sa.String(255), nullable=True),
        sa.Column("snapshot_id", sa.String(36), nullable=True),
        sa.Column("bootable", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("image_metadata", Json, nullable=True),
        sa.Column("described", Json, nullable=True),
        sa.Column("host", sa.String(255), nullable=True),
        sa.Column("cluster", sa.String(255), nullable=True),
        sa.Column("node", sa.String(255), nullable=True),
        sa.Column("storage", StorageName, nullable=True),
        sa.Column("shared", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("vmid", sa.Integer, nullable=True),
        sa.Column("archive", sa.String(255), nullable=True),
        sa.Column("size_bytes", sa.BigInteger, nullable=True),
        sa.Column("fail_reason", sa.Text, nullable=True),
        sa.Column("data_timestamp", UtcDateTime, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_volume_backups"),
    )
    op.create_index(
        "ix_volume_backups_project", "volume_backups", ["project_id", "created_at", "id"]
    )
    op.create_index("ix_volume_backups_volume_id", "volume_backups", ["volume_id"])
    op.create_table(
        "volume_default_types",
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("type_id", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name="pk_volume_default_types"),
    )
    op.create_index("ix_volume_default_types_type_id", "volume_default_types", ["type_id"])
    op.create_table(
        "volume_snapshots",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("volume_id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), server_default=sa.text("('')"), nullable=False),
        sa.Column("description", sa.Text, nullable=True),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("size_gib", sa.Integer, nullable=False),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("snapname", sa.String(40), nullable=True),
        sa.Column("host", sa.String(255), nullable=True),
        sa.Column("cluster", sa.String(255), nullable=True),
        sa.Column("node", sa.String(255), nullable=True),
        sa.Column("storage", StorageName, nullable=True),
        sa.Column("shared", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("vmid", sa.Integer, nullable=True),
        sa.Column("volid", sa.String(255), nullable=True),
        sa.Column("fault", sa.Text, nullable=True),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_volume_snapshots"),
    )
    op.create_index(
        "ix_volume_snapshots_project", "volume_snapshots", ["project_id", "created_at", "id"]
    )
    op.create_index("ix_volume_snapshots_volume_id", "volume_snapshots", ["volume_id"])
    op.create_table(
        "volume_transfers",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("volume_id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=True),
        sa.Column("salt", sa.String(64), nullable=False),
        sa.Column("key_hash", sa.String(64), nullable=False),
        sa.Column("no_snapshots", sa.Boolean, nullable=False),
        sa.Column("source_project_id", sa.String(255), nullable=False),
        sa.Column("destination_project_id", sa.String(255), nullable=True),
        sa.Column("accepted", sa.Boolean, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("ended_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_volume_transfers"),
    )
    op.create_index("ix_volume_transfers_volume_id", "volume_transfers", ["volume_id"])
    op.create_table(
        "volume_type_access",
        sa.Column("type_id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("type_id", "project_id", name="pk_volume_type_access"),
    )
    op.create_table(
        "volume_types",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.Text, nullable=True),
        sa.Column("is_public", sa.Boolean, server_default=sa.true(), nullable=False),
        sa.Column("storage", StorageName, nullable=False),
        sa.Column("extra_specs", Json, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_volume_types"),
        sa.UniqueConstraint("name", name="uq_volume_types_name"),
    )
    op.create_table(
        "volumes",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), server_default=sa.text("('')"), nullable=False),
        sa.Column("description", sa.Text, nullable=True),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("previous_status", sa.String(32), nullable=True),
        sa.Column("size_gib", sa.Integer, nullable=False),
        sa.Column("type_id", sa.String(36), nullable=True),
        sa.Column("availability_zone", sa.String(255), nullable=True),
        sa.Column("bootable", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("readonly", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("image_metadata", Json, nullable=True),
        sa.Column("image_id", sa.String(36), nullable=True),
        sa.Column("snapshot_id", sa.String(36), nullable=True),
        sa.Column("source_volume_id", sa.String(36), nullable=True),
        sa.Column("backup_id", sa.String(36), nullable=True),
        sa.Column("host", sa.String(255), nullable=True),
        sa.Column("cluster", sa.String(255), nullable=True),
        sa.Column("node", sa.String(255), nullable=True),
        sa.Column("storage", StorageName, nullable=True),
        sa.Column("shared", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("vmid", sa.Integer, nullable=True),
        sa.Column("volid", sa.String(255), nullable=True),
        sa.Column("snapshot_way", sa.String(16), nullable=True),
        sa.Column("new_type_id", sa.String(36), nullable=True),
        sa.Column("new_storage", StorageName, nullable=True),
        sa.Column("new_shared", sa.Boolean, nullable=True),
        sa.Column("last_user", Json, nullable=True),
        sa.Column("fault", sa.Text, nullable=True),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=True),
        sa.Column("launched_at", UtcDateTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_volumes"),
    )
    op.create_index("ix_volumes_cluster_vmid", "volumes", ["cluster", "vmid"])
    op.create_index("ix_volumes_project", "volumes", ["project_id", "created_at", "id"])
    op.create_index("ix_volumes_type_id", "volumes", ["type_id"])
    op.create_table(
        "waiting_builds",
        sa.Column("operation_id", BigId, autoincrement=False, nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("gang", sa.String(64), nullable=True),
        sa.Column("needs", Json, nullable=False),
        sa.Column("zone", sa.String(255), nullable=True),
        sa.Column("since", UtcDateTime, nullable=False),
        sa.Column("until", UtcDateTime, nullable=False),
        sa.Column("refused", Json, nullable=False),
        sa.Column("tried_at", UtcDateTime, nullable=False),
        sa.Column("woken_at", UtcDateTime, nullable=True),
        sa.Column("overtaken", sa.Integer, nullable=False),
        sa.Column("kept", sa.String(36), nullable=True),
        sa.PrimaryKeyConstraint("operation_id", name="pk_waiting_builds"),
    )
    op.create_index("ix_waiting_builds_project_id", "waiting_builds", ["project_id"])
    op.create_index("ix_waiting_builds_since", "waiting_builds", ["since"])
    first_rows.insert(op.get_bind())
