"""Every table of the cloud database.

One row of ``servers`` answers a list without a join: what a list shows and what never changes
(flavor, addresses) is stored in it as JSON.

SQLite counts IDs (``sqlite_autoincrement``): otherwise it would use that of the row deleted last
again, and a remembered ID would name another row.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from db.types import BigId, Json, OrderedJson, StorageName, UtcDateTime

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(column_0_N_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_UUID = sa.String(36)
_NAME = sa.String(255)
# Of a quota: some end with the name of a volume type.
_RESOURCE = sa.String(300)
# What a column has in the rows that were there before it.
_EMPTY: Any = {"nullable": False, "default": "", "server_default": sa.text("''")}
_BARE: Any = {"nullable": False, "default": "bare", "server_default": sa.text("'bare'")}
_ACTIVE: Any = {"nullable": False, "default": "ACTIVE", "server_default": sa.text("'ACTIVE'")}
_FIRST: Any = {"nullable": False, "default": 0, "server_default": sa.text("0")}
_FALSE: Any = {"nullable": False, "default": False, "server_default": sa.false()}
_TRUE: Any = {"nullable": False, "default": True, "server_default": sa.true()}


def _segment(context: Any) -> int:
    """Return the VLAN tag of a network that is inserted, 0 for none."""
    return int(context.get_current_parameters().get("vlan") or 0)


servers = sa.Table(
    "servers",
    metadata,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("uuid", _UUID, nullable=False, unique=True),
    sa.Column("project_id", _NAME, nullable=False),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("name", _NAME, nullable=False),
    sa.Column("hostname", _NAME, nullable=False),
    sa.Column("description", _NAME),
    sa.Column("vm_state", sa.String(32), nullable=False),
    sa.Column("task_state", sa.String(32)),
    sa.Column("power_state", sa.Integer, nullable=False, default=0),
    sa.Column("operation_id", BigId),  # the operation that may change it now
    sa.Column("reservation_id", sa.String(32), nullable=False),
    sa.Column("launch_index", sa.Integer, nullable=False, default=0),
    sa.Column("flavor", Json, nullable=False),  # as it was at the create
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("memory_mib", sa.Integer, nullable=False),
    sa.Column("disk_gib", sa.Integer, nullable=False),
    sa.Column("image_id", _UUID),
    sa.Column("image_properties", Json, nullable=False),
    sa.Column("key_name", _NAME),
    sa.Column("public_key", sa.Text),
    sa.Column("config_drive", sa.Boolean, nullable=False, default=True),
    sa.Column("auto_disk_config", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("user_data", sa.Text),
    sa.Column("availability_zone", _NAME),
    sa.Column("pinned_availability_zone", _NAME),
    sa.Column("host", _NAME),
    sa.Column("node", _NAME),
    sa.Column("cluster", _NAME),
    sa.Column("vmid", sa.Integer),
    sa.Column("metadata", Json, nullable=False, key="meta"),
    sa.Column("tags", Json, nullable=False),
    sa.Column("addresses", Json, nullable=False),  # [{network, network_id, ip, mac, version}]
    sa.Column("scheduler_hints", Json, nullable=False),
    sa.Column("security_groups", Json, nullable=False),
    sa.Column("held", sa.Boolean, nullable=False, default=False),
    sa.Column("locked_by", sa.String(16)),  # common.resources.locks.LockedBy; None: not locked
    sa.Column("locked_reason", _NAME),
    sa.Column("access_ip_v4", sa.String(39)),
    sa.Column("access_ip_v6", sa.String(39)),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime),
    sa.Column("launched_at", UtcDateTime),
    sa.Column("terminated_at", UtcDateTime),
    sa.Column("deleted_at", UtcDateTime),
    sa.Column("server_group_uuid", _UUID),  # None also once the group is deleted
    sa.Column("disk_tag", sa.String(60)),  # the user's name for the root disk, for the guest
    sa.Column("member_of", _UUID),  # the scaling group that counts it
    sa.Index("ix_servers_project", "project_id", "deleted_at", "created_at", "id"),
    sa.Index("ix_servers_host", "host", "deleted_at"),
    sa.Index("ix_servers_server_group", "server_group_uuid", "deleted_at"),
    sqlite_autoincrement=True,
)

operations = sa.Table(
    "operations",
    metadata,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("resource_type", sa.String(32), nullable=False),
    sa.Column("resource_id", _NAME, nullable=False),
    sa.Column("project_id", _NAME, nullable=False),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("request_id", sa.String(64), nullable=False, index=True),
    sa.Column("global_request_id", sa.String(64), index=True),
    sa.Column("action", sa.String(32), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False, default=1),
    sa.Column("lease_owner", _NAME),
    sa.Column("lease_expires_at", UtcDateTime),
    sa.Column("not_before", UtcDateTime),
    sa.Column("deadline", UtcDateTime),
    sa.Column("context", Json, nullable=False),
    sa.Column("params", Json, nullable=False),  # what was asked
    sa.Column("plan", Json, nullable=False),  # what was decided and reserved
    # The stage, or the undo, that is to be done now. None: the task_state says which.
    sa.Column("stage", sa.String(64)),
    sa.Column("message", sa.Text),  # how it failed, in a sentence
    # Its deadline passed while no conductor ran; see conductor.store.ledger.pulse.
    sa.Column("overslept", sa.Boolean, nullable=False, server_default=sa.false()),
    # The attempt whose agent was allowed to start the VM, which may run since; 0: none was.
    sa.Column("may_run", sa.Integer, nullable=False, server_default="0"),
    sa.Column("started_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
    sa.Column("finished_at", UtcDateTime),
    sa.Column("forgotten_at", UtcDateTime),  # since then its details are not there
    sa.Index("ix_operations_resource", "resource_type", "resource_id", "id"),
    sa.Index("ix_operations_due", "state", "lease_expires_at"),
    sa.Index("ix_operations_project", "project_id", "id"),
    sa.Index("ix_operations_user", "user_id", "id"),
    sqlite_autoincrement=True,
)

# Builds that wait for room. A row whose server has a host, or another operation, is over.
waiting_builds = sa.Table(
    "waiting_builds",
    metadata,
    sa.Column("operation_id", BigId, primary_key=True, autoincrement=False),
    sa.Column("server_uuid", _UUID, nullable=False),
    sa.Column("project_id", _NAME, nullable=False, index=True),
    sa.Column("gang", sa.String(64)),  # the request whose servers are placed together, or not
    sa.Column("needs", Json, nullable=False),  # {resource class: amount}
    sa.Column("zone", _NAME),
    sa.Column("since", UtcDateTime, nullable=False, index=True),
    sa.Column("until", UtcDateTime, nullable=False),
    # Free room, when it was tried last, of the hosts that had enough and took it not all the same.
    sa.Column("refused", Json, nullable=False),  # {provider UUID: {resource class: amount}}
    sa.Column("tried_at", UtcDateTime, nullable=False),
    sa.Column("woken_at", UtcDateTime),  # while a scheduler decides on it again
    sa.Column("overtaken", sa.Integer, nullable=False),  # by how many that asked later
    sa.Column("kept", _UUID),  # the host that no later one gets
)

operation_events = sa.Table(
    "operation_events",
    metadata,
    sa.Column("operation_id", BigId, primary_key=True, autoincrement=False),
    sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("sequence", sa.Integer, nullable=False),
    sa.Column("host", _NAME),
    sa.Column("started_at", UtcDateTime, nullable=False),
    sa.Column("finished_at", UtcDateTime),
    sa.Column("result", sa.String(16)),
    sa.Column("upid", _NAME),
    sa.Column("detail", Json, nullable=False),
)

transitions = sa.Table(
    "transitions",
    metadata,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("server_uuid", _UUID, nullable=False, index=True),
    sa.Column("operation_id", BigId, nullable=False, index=True),
    sa.Column("from_vm_state", sa.String(32), nullable=False),
    sa.Column("from_task_state", sa.String(32)),
    sa.Column("to_vm_state", sa.String(32), nullable=False),
    sa.Column("to_task_state", sa.String(32)),
    sa.Column("at", UtcDateTime, nullable=False),
    sqlite_autoincrement=True,
)

faults = sa.Table(
    "faults",
    metadata,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("server_uuid", _UUID, nullable=False, index=True),
    sa.Column("operation_id", BigId, nullable=False, index=True),
    sa.Column("request_id", sa.String(64), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("code", sa.Integer, nullable=False),
    sa.Column("category", sa.String(32), nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("owner_message", sa.Text),  # what the owner reads; None: what the category says
    sa.Column("host", _NAME),
    sa.Column("upid", _NAME),
    sa.Column("log_tail", Json, nullable=False),
    sa.Column("cleaned", Json, nullable=False),
    sa.Column("left", Json, nullable=False),
    sa.Column("remedy", sa.Text),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sqlite_autoincrement=True,
)

decisions = sa.Table(
    "decisions",
    metadata,
    sa.Column("operation_id", BigId, primary_key=True, autoincrement=False),
    sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("server_uuid", _UUID, nullable=False),
    sa.Column("request_id", sa.String(64), nullable=False, index=True),
    sa.Column("body", OrderedJson, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
)

# Refused requests without an operation: the newest of each project.
refusals = sa.Table(
    "refusals",
    metadata,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("project_id", _NAME, nullable=False),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("request_id", sa.String(64), nullable=False, index=True),
    sa.Column("global_request_id", sa.String(64), index=True),
    sa.Column("method", sa.String(16), nullable=False),
    sa.Column("path", _NAME, nullable=False),
    sa.Column("status", sa.Integer, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("details", Json, nullable=False),  # of the error, e.g. limits and usage
    sa.Column("of_admin", sa.Boolean, nullable=False),  # may name what owners don't read
    sa.Column("received_at", UtcDateTime, nullable=False),
    sa.Column("answered_at", UtcDateTime, nullable=False),
    sa.Index("ix_refusals_project", "project_id", "id"),
    sa.Index("ix_refusals_answered_at", "answered_at"),
    sqlite_autoincrement=True,
)

vmid_bands = sa.Table(
    "vmid_bands",
    metadata,
    sa.Column("cluster", _NAME, primary_key=True),
    sa.Column("low", sa.Integer, nullable=False),
    sa.Column("high", sa.Integer, nullable=False),
    sa.Column("next", sa.Integer, nullable=False),
)

vmids = sa.Table(
    "vmids",
    metadata,
    sa.Column("cluster", _NAME, primary_key=True),
    sa.Column("vmid", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("state", sa.String(16), nullable=False),  # reserved, quarantined, taken
    sa.Column("server_uuid", _UUID, index=True),  # None: a template's
    sa.Column("operation_id", BigId),
    sa.Column("reason", sa.Text),
    sa.Column("since", UtcDateTime, nullable=False),
    sa.Column("read_at", UtcDateTime),  # when the audit read its VM's description last
)

# VMs and containers that the record doesn't know, while they are seen.
other_vms = sa.Table(
    "other_vms",
    metadata,
    sa.Column("cluster", _NAME, primary_key=True),
    sa.Column("vmid", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("node", _NAME, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),  # common.messages.facts.VmFacts
    sa.Column("read_at", UtcDateTime, index=True),  # None: its interfaces are to be read
)

# Their interfaces; a row for each address, or one without: no port gets a MAC or address of these.
other_nics = sa.Table(
    "other_nics",
    metadata,
    sa.Column("cluster", _NAME, primary_key=True),
    sa.Column("vmid", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("mac", sa.String(17), nullable=False, index=True),
    sa.Column("bridge", sa.String(32), nullable=False),
    sa.Column("segment", sa.Integer, nullable=False),  # the VLAN tag, 0 without one
    sa.Column("ip", sa.String(64)),
    sa.Index("ix_other_nics_bridge_segment_ip", "bridge", "segment", "ip"),
)

# Who ever had which VMID: kept when it is released, as a proof for later findings.
vmid_journal = sa.Table(
    "vmid_journal",
    metadata,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("cluster", _NAME, nullable=False),
    sa.Column("vmid", sa.Integer, nullable=False),
    sa.Column("server_uuid", _UUID, index=True),  # None: a template's
    sa.Column("operation_id", BigId),
    sa.Column("reserved_at", UtcDateTime, nullable=False),
    # others had it already: it was never the server's
    sa.Column("refused", sa.Boolean, nullable=False, default=False, server_default=sa.false()),
    sa.Index("ix_vmid_journal_cluster_vmid", "cluster", "vmid"),
    sqlite_autoincrement=True,
)

# One row: several clouds may share a Proxmox cluster, and must distinguish their templates.
# The rest says whether the database was restored; see conductor.store.restored.
cloud_identity = sa.Table(
    "cloud_identity",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("cloud_id", _UUID, nullable=False),
    # An operation's epoch is its ID and this.
    sa.Column("epoch_base", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    # Marks up to this epoch were decided on by an operator.
    sa.Column("epoch_settled", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    # Since when clusters are to be compared, and the newest operation at that time.
    sa.Column("compare_since", UtcDateTime),
    sa.Column("compare_operation", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("held_at", UtcDateTime),  # None: nothing is held
    # Of PostgreSQL, that conductors wrote on last: common.databases.primary.
    sa.Column("timeline", sa.String(32)),
    sa.Column("held_because", Json),
)

templates = sa.Table(
    "templates",
    metadata,
    sa.Column("cluster", _NAME, primary_key=True),
    sa.Column("node", _NAME, primary_key=True),
    sa.Column("storage", StorageName, primary_key=True),
    sa.Column("image_id", _UUID, primary_key=True),
    sa.Column("vmid", sa.Integer, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
)

# Moves and resizes; the flavors are copied, as they may be deleted later.
migrations = sa.Table(
    "migrations",
    metadata,
    sa.Column("id", BigId, primary_key=True),  # which users see
    sa.Column("uuid", _UUID, nullable=False, unique=True),
    sa.Column("server_uuid", _UUID, nullable=False),
    sa.Column("operation_id", BigId),  # the last operation that worked on it
    sa.Column("project_id", _NAME, nullable=False),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("type", sa.String(16), nullable=False),  # common.resources.migrations
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("source_host", _NAME),
    sa.Column("source_node", _NAME),
    sa.Column("dest_host", _NAME),
    sa.Column("dest_node", _NAME),
    sa.Column("dest_address", _NAME),
    sa.Column("old_flavor_number", sa.Integer),
    sa.Column("new_flavor_number", sa.Integer),
    sa.Column("old_flavor", Json),
    sa.Column("new_flavor", Json),
    sa.Column("old_vm_state", sa.String(32)),  # of the server, before
    sa.Column("claim", Json),  # what is held in placement until it is confirmed or reverted
    sa.Column("memory_total", sa.BigInteger),  # in bytes, as all that follow
    sa.Column("memory_processed", sa.BigInteger),
    sa.Column("memory_remaining", sa.BigInteger),
    sa.Column("disk_total", sa.BigInteger),
    sa.Column("disk_processed", sa.BigInteger),
    sa.Column("disk_remaining", sa.BigInteger),
    sa.Column("hidden", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime),
    sa.Index("ix_migrations_project", "project_id", "id"),
    sa.Index("ix_migrations_server", "server_uuid", "id"),
    sqlite_autoincrement=True,
)

flavors = sa.Table(
    "flavors",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("flavorid", _NAME, nullable=False, unique=True),
    sa.Column("name", _NAME, nullable=False, unique=True),
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("memory_mib", sa.Integer, nullable=False),
    sa.Column("disk_gib", sa.Integer, nullable=False),
    sa.Column("ephemeral_gib", sa.Integer, nullable=False, default=0),
    sa.Column("swap_mib", sa.Integer, nullable=False, default=0),
    sa.Column("rxtx_factor", sa.Float, nullable=False, default=1.0),
    sa.Column("is_public", sa.Boolean, nullable=False, default=True),
    sa.Column("disabled", sa.Boolean, nullable=False, default=False),
    sa.Column("description", sa.Text),
    sa.Column("extra_specs", Json, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sqlite_autoincrement=True,
)

flavor_access = sa.Table(
    "flavor_access",
    metadata,
    sa.Column("flavor_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("project_id", _NAME, primary_key=True),
)

keypairs = sa.Table(
    "keypairs",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("name", _NAME, nullable=False),
    sa.Column("type", sa.String(16), nullable=False),
    sa.Column("fingerprint", _NAME, nullable=False),
    sa.Column("public_key", sa.Text, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.UniqueConstraint("user_id", "name"),
    sqlite_autoincrement=True,
)

quota_limits = sa.Table(
    "quota_limits",
    metadata,
    sa.Column("project_id", _NAME, primary_key=True),
    sa.Column("resource", _RESOURCE, primary_key=True),
    sa.Column("hard_limit", sa.Integer, nullable=False),
)

# Limits of a class; "default" holds for all projects that have no limit of their own.
quota_classes = sa.Table(
    "quota_classes",
    metadata,
    sa.Column("class_name", _NAME, primary_key=True),
    sa.Column("resource", _RESOURCE, primary_key=True),
    sa.Column("hard_limit", sa.Integer, nullable=False),
)

# One row per project, for its lock: usage is summed over the live servers under it.
project_locks = sa.Table(
    "project_locks", metadata, sa.Column("project_id", _NAME, primary_key=True)
)

services = sa.Table(
    "services",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", _UUID, nullable=False, unique=True),
    sa.Column("binary", sa.String(64), nullable=False),
    sa.Column("host", _NAME, nullable=False),
    sa.Column("worker", _NAME, nullable=False),
    sa.Column("availability_zone", _NAME, nullable=False),
    sa.Column("disabled", sa.Boolean, nullable=False, default=False),
    sa.Column("disabled_reason", _NAME),
    sa.Column("forced_down", sa.Boolean, nullable=False, default=False),
    sa.Column("version", sa.String(32), nullable=False, default=""),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime),
    sa.Column("last_seen_at", UtcDateTime),
    sa.Column("aggregate_zone", _NAME),  # overrides availability_zone, which the host reports
    # [common.messages.queues.Queue] of its host, at last_seen_at; none: not reported
    sa.Column("queues", Json),
    # Whether new volumes may be on its host; that servers may is ``disabled``.
    sa.Column("volumes_disabled", sa.Boolean, **_FALSE),
    sa.Column("volumes_disabled_reason", _NAME),
    sa.UniqueConstraint("binary", "host"),
    sqlite_autoincrement=True,
)

hosts = sa.Table(
    "hosts",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", _UUID, nullable=False, unique=True),
    sa.Column("host", _NAME, nullable=False, unique=True),
    sa.Column("cluster", _NAME, nullable=False),
    sa.Column("node", _NAME, nullable=False),
    sa.Column("worker", _NAME, nullable=False),
    sa.Column("facts", Json, nullable=False),  # common.messages.facts.HostFacts
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
    sqlite_autoincrement=True,
)

clusters = sa.Table(
    "clusters",
    metadata,
    sa.Column("cluster", _NAME, primary_key=True),
    sa.Column("facts", Json, nullable=False),  # common.messages.facts.ClusterFacts
    sa.Column("updated_at", UtcDateTime, nullable=False),
    # when all its VMs were compared with the record last
    sa.Column("looked_at", UtcDateTime),
)

images = sa.Table(
    "images",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("name", _NAME, nullable=False, index=True),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("virtual_size_bytes", sa.BigInteger),
    sa.Column("disk_format", sa.String(16), nullable=False),
    sa.Column("checksum", sa.String(128)),
    sa.Column("md5", sa.String(32)),  # Glance's checksum, of what was uploaded
    sa.Column("import_task", Json),  # conductor.rpc.images.ImportTask; None: there was none
    sa.Column("min_disk_gib", sa.Integer, nullable=False, default=0),
    sa.Column("min_ram_mib", sa.Integer, nullable=False, default=0),
    sa.Column("properties", Json, nullable=False),
    sa.Column("locations", Json, nullable=False),  # {cluster: volume id}
    sa.Column("project_id", _NAME, index=True),  # its owner; None: the operators'
    sa.Column("server_uuid", _UUID, index=True),  # the one of whose disk it is a copy
    sa.Column("home", Json),  # of a copy: common.messages.scheduling.ImageHome
    sa.Column("container_format", sa.String(16), **_BARE),  # empty: not set yet
    sa.Column("visibility", sa.String(16)),  # None: public without an owner, else private
    sa.Column("protected", sa.Boolean),  # None: if it has no owner
    sa.Column("hidden", sa.Boolean, **_FALSE),
    sa.Column("tags", Json),  # none: no tags
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
)

image_members = sa.Table(
    "image_members",
    metadata,
    sa.Column("image_id", _UUID, primary_key=True),
    sa.Column("member", _NAME, primary_key=True),  # the project
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
)

metadef_namespaces = sa.Table(
    "metadef_namespaces",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("name", sa.String(80), nullable=False, unique=True),
    sa.Column("display_name", sa.String(80)),
    sa.Column("description", sa.String(500)),
    sa.Column("visibility", sa.String(16), nullable=False),
    sa.Column("protected", sa.Boolean, nullable=False),
    sa.Column("project_id", _NAME, nullable=False),  # its owner
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
)

#: properties, objects, tags and associated resource types of a namespace
metadef_items = sa.Table(
    "metadef_items",
    metadata,
    sa.Column("namespace_id", _UUID, primary_key=True),
    sa.Column("kind", sa.String(16), primary_key=True),
    sa.Column("name", sa.String(80), primary_key=True),
    sa.Column("body", Json, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
)

networks = sa.Table(
    "networks",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("name", _NAME, nullable=False, index=True),
    sa.Column("bridge", sa.String(32), nullable=False),
    sa.Column("vlan", sa.Integer),
    sa.Column("mtu", sa.Integer, nullable=False, default=1500),
    sa.Column("tags", Json),  # none: no tags
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
    # its owner; empty: the operator's
    sa.Column("project_id", _NAME, index=True, **_EMPTY),
    sa.Column("description", _NAME, **_EMPTY),
    sa.Column("external", sa.Boolean, **_FALSE),
    # read from a cluster, which says what it is; all projects share it
    sa.Column("discovered", sa.Boolean, **_TRUE),
    sa.Column("availability_zone_hints", Json),
    # made because a project's users named none; one for each project
    sa.Column("auto_allocated", sa.Boolean, **_FALSE),
    # the VLAN tag, 0 without one: no two networks are the same on the wire
    sa.Column(
        "segment", sa.Integer, nullable=False, default=_segment, server_default=sa.text("0")
    ),
    # of a network on SDN vnets: their zone and VNI; ``bridge`` is their name
    sa.Column("zone", sa.String(16)),
    sa.Column("vni", sa.Integer),
    sa.Column("status", sa.String(16), **_ACTIVE),
    # whether its ports are switched on; none: not specified, and a VM's links are not changed
    sa.Column("admin_state_up", sa.Boolean),
    # the external network that is used where none is named; at most one
    sa.Column("is_default", sa.Boolean, **_FALSE),
    # whether new ports are filtered; none: they are
    sa.Column("port_security", sa.Boolean),
    sa.Column("revision", sa.Integer, **_FIRST),  # one more with each change
    sa.Index("ux_networks_bridge_segment", "bridge", "segment", unique=True),
    sa.Index("ux_networks_zone_vni", "zone", "vni", unique=True),
)

# a cluster's vnet of a network, until its absence is confirmed; the network may be deleted
vnets = sa.Table(
    "vnets",
    metadata,
    sa.Column("cluster", _NAME, primary_key=True),
    sa.Column("network_id", _UUID, primary_key=True),
    sa.Column("vnet", sa.String(8), nullable=False),
    sa.Column("zone", sa.String(16), nullable=False),
    sa.Column("vni", sa.Integer, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),  # conductor.store.networks.vnets
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Index("ux_vnets_cluster_vnet", "cluster", "vnet", unique=True),
    sa.Index("ux_vnets_cluster_zone_vni", "cluster", "zone", "vni", unique=True),
)

network_shares = sa.Table(
    "network_shares",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("network_id", _UUID, nullable=False),
    sa.Column("target", _NAME, nullable=False, index=True),  # a project, or *: all of them
    sa.Column("project_id", _NAME, nullable=False, index=True),  # who shares it
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.UniqueConstraint("network_id", "target"),
)

subnets = sa.Table(
    "subnets",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("network_id", _UUID, nullable=False, index=True),
    sa.Column("name", _NAME, nullable=False),
    sa.Column("cidr", sa.String(64), nullable=False),
    sa.Column("gateway_ip", sa.String(64)),
    sa.Column("pool_start", sa.String(64), nullable=False),
    sa.Column("pool_end", sa.String(64), nullable=False),
    sa.Column("next_ip", sa.String(64), nullable=False),  # where the search continues
    sa.Column("dns_nameservers", Json, nullable=False),
    sa.Column("tags", Json),  # none: no tags
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
    sa.Column("project_id", _NAME, index=True, **_EMPTY),  # empty: the operator's
    sa.Column("description", _NAME, **_EMPTY),
    # written from the configuration, which says what it is
    sa.Column("configured", sa.Boolean, **_TRUE),
    sa.Column("pools", Json),  # [[first, last]]; none: one from pool_start to pool_end
    sa.Column("host_routes", Json),  # [[destination, next hop]]
    sa.Column("enable_dhcp", sa.Boolean, **_FALSE),  # as asked: nothing serves it
    sa.Column("ipv6_ra_mode", sa.String(16)),
    sa.Column("ipv6_address_mode", sa.String(16)),
    sa.Column("revision", sa.Integer, **_FIRST),
)

ports = sa.Table(
    "ports",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("network_id", _UUID, nullable=False, index=True),
    sa.Column("subnet_id", _UUID),
    sa.Column("server_uuid", _UUID, nullable=False, index=True),  # empty: it has no server
    sa.Column("project_id", _NAME, nullable=False, index=True),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("mac", sa.String(17), nullable=False, unique=True),
    sa.Column("ip", sa.String(64)),
    sa.Column("tag", sa.String(60)),  # the user's name for the guest's device
    sa.Column("name", _NAME, nullable=False, default="", server_default=sa.text("''")),
    sa.Column("description", _NAME, nullable=False, default="", server_default=sa.text("''")),
    # made by a user: it is not deleted with its server
    sa.Column("kept", sa.Boolean, nullable=False, default=False, server_default=sa.false()),
    # whether it is filtered; none: it was made where nothing is
    sa.Column("port_security", sa.Boolean),
    sa.Column("address_pairs", Json),  # more addresses that it may use; none: no more
    sa.Column("tags", Json),  # none: no tags
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime),
    # the IPv6 address of a port that also has an IPv4 address
    sa.Column("subnet6_id", _UUID),
    sa.Column("ip6", sa.String(64)),
    sa.Column("admin_state_up", sa.Boolean),  # as that of networks
    # [[subnet, address]] beyond these: see port_addresses; none: no more
    sa.Column("more_addresses", Json),
    # the host that an administrator named for the server to come
    sa.Column("binding_host", _NAME),
    sa.Column("revision", sa.Integer, **_FIRST),
    sa.UniqueConstraint("subnet_id", "ip"),
    sa.Index("ux_ports_subnet6_id_ip6", "subnet6_id", "ip6", unique=True),
)

aggregates = sa.Table(
    "aggregates",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", _UUID, nullable=False, unique=True),
    sa.Column("name", _NAME, nullable=False, unique=True),
    sa.Column("metadata", Json, nullable=False, key="meta"),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime),
    sqlite_autoincrement=True,
)

aggregate_hosts = sa.Table(
    "aggregate_hosts",
    metadata,
    sa.Column("aggregate_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("host", _NAME, primary_key=True, index=True),
)

# One row: changes of aggregates hold its lock, and schedulers order messages by its version.
aggregate_versions = sa.Table(
    "aggregate_versions",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("version", sa.BigInteger, nullable=False),
)

security_groups = sa.Table(
    "security_groups",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("project_id", _NAME, nullable=False, index=True),
    sa.Column("name", _NAME, nullable=False),
    sa.Column("description", _NAME, nullable=False),
    # the project whose default group it is: at most one
    sa.Column("default_of", _NAME, unique=True),
    sa.Column("tags", Json),  # none: no tags
    # as asked: Proxmox VE always tracks connections
    sa.Column("stateful", sa.Boolean, **_TRUE),
    sa.Column("revision", sa.Integer, **_FIRST),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
)
security_group_rules = sa.Table(
    "security_group_rules",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("security_group_id", _UUID, nullable=False),
    sa.Column("project_id", _NAME, nullable=False, index=True),
    sa.Column("direction", sa.String(8), nullable=False),
    sa.Column("ethertype", sa.String(4), nullable=False),
    sa.Column("protocol", sa.String(16)),
    sa.Column("port_range_min", sa.Integer),
    sa.Column("port_range_max", sa.Integer),
    sa.Column("remote_ip_prefix", sa.String(64)),
    sa.Column("normalized_cidr", sa.String(64)),
    sa.Column("remote_group_id", _UUID, index=True),
    sa.Column("remote_address_group_id", _UUID, index=True),
    sa.Column("description", _NAME, nullable=False),
    # what the rule says, in one way: no group says the same twice
    sa.Column("meaning", sa.String(160), nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.UniqueConstraint("security_group_id", "meaning"),
)
# what new security groups begin with
default_group_rules = sa.Table(
    "default_group_rules",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("direction", sa.String(8), nullable=False),
    sa.Column("ethertype", sa.String(4), nullable=False),
    sa.Column("protocol", sa.String(16)),
    sa.Column("port_range_min", sa.Integer),
    sa.Column("port_range_max", sa.Integer),
    sa.Column("remote_ip_prefix", sa.String(64)),
    sa.Column("normalized_cidr", sa.String(64)),
    sa.Column("remote_group_id", _UUID),  # PARENT: the new group itself
    sa.Column("remote_address_group_id", _UUID),
    sa.Column("description", _NAME, nullable=False),
    sa.Column("used_in_default_sg", sa.Boolean, nullable=False),
    sa.Column("used_in_non_default_sg", sa.Boolean, nullable=False),
    sa.Column("meaning", sa.String(255), nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
)
# with whom security groups and address groups are shared
group_shares = sa.Table(
    "group_shares",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("object_type", sa.String(32), nullable=False),
    sa.Column("object_id", _UUID, nullable=False),
    sa.Column("target", _NAME, nullable=False, index=True),  # a project, or *: all of them
    sa.Column("project_id", _NAME, nullable=False, index=True),  # who shares it
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.UniqueConstraint("object_id", "target"),
)
# prefixes that rules of security groups name
address_groups = sa.Table(
    "address_groups",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("project_id", _NAME, nullable=False, index=True),
    sa.Column("name", _NAME, nullable=False),
    sa.Column("description", _NAME, nullable=False),
    sa.Column("addresses", Json, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
    sa.Column("revision", sa.Integer, **_FIRST),
)
# addresses of ports beyond the first one of each family
port_addresses = sa.Table(
    "port_addresses",
    metadata,
    sa.Column("subnet_id", _UUID, primary_key=True),
    sa.Column("ip", sa.String(64), primary_key=True),
    sa.Column("port_id", _UUID, nullable=False, index=True),
)
port_security_groups = sa.Table(
    "port_security_groups",
    metadata,
    sa.Column("port_id", _UUID, primary_key=True),
    sa.Column("security_group_id", _UUID, primary_key=True, index=True),
)
# The filter outbox: servers whose VM's firewall must still be made what is wanted.
filter_changes = sa.Table(
    "filter_changes",
    metadata,
    sa.Column("server_uuid", _UUID, primary_key=True),
    sa.Column("token", _UUID, nullable=False),  # of the latest change
    sa.Column("not_before", UtcDateTime, nullable=False, index=True),
    sa.Column("failures", sa.Integer, **_FIRST),  # of this change
)
# The placement outbox: hosts whose aggregates placement must still get.
aggregate_mirrors = sa.Table(
    "aggregate_mirrors",
    metadata,
    sa.Column("provider_uuid", _UUID, primary_key=True),
    sa.Column("host", _NAME, nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
)

server_groups = sa.Table(
    "server_groups",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", _UUID, nullable=False, unique=True),
    sa.Column("project_id", _NAME, nullable=False, index=True),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("name", _NAME, nullable=False),
    sa.Column("policy", sa.String(32), nullable=False),
    sa.Column("rules", Json, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sqlite_autoincrement=True,
)

# The host of an affinity group's servers: there can't be two.
server_group_anchors = sa.Table(
    "server_group_anchors",
    metadata,
    sa.Column("group_uuid", _UUID, primary_key=True),
    sa.Column("host", _NAME, nullable=False),
)

# The place of a server of a strict group on its host: a slot can't have two servers.
server_group_places = sa.Table(
    "server_group_places",
    metadata,
    sa.Column("server_uuid", _UUID, primary_key=True),
    sa.Column("group_uuid", _UUID, nullable=False),
    sa.Column("host", _NAME, nullable=False),
    sa.Column("slot", sa.Integer, nullable=False),
    sa.UniqueConstraint("group_uuid", "host", "slot"),
)

# Leases by name, for what only one process may do at a time.
leases = sa.Table(
    "leases",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("owner", _NAME, nullable=False),
    sa.Column("expires_at", UtcDateTime, nullable=False),
)

# The agents' workers, and the process of each.
agents = sa.Table(
    "agents",
    metadata,
    sa.Column("worker", _NAME, primary_key=True),
    sa.Column("tenure", sa.BigInteger, nullable=False),
    sa.Column("process", _NAME, nullable=False),
    sa.Column("machine", _NAME, nullable=False),
    sa.Column("expires_at", UtcDateTime, nullable=False),
)

# Which worker carries the agents of a host; see conductor.store.hosts.agent_leases.
agent_leases = sa.Table(
    "agent_leases",
    metadata,
    sa.Column("unit", sa.String(255), primary_key=True),
    sa.Column("cluster", _NAME, nullable=False),
    sa.Column("nodes", Json),  # whose agents; null: all of the cluster's, or not known
    sa.Column("worker", _NAME, nullable=False),  # with its tenure
    sa.Column("expires_at", UtcDateTime, nullable=False),
)

# What is to be sent to the notification bus, in order; rows are deleted once they are sent.
notification_outbox = sa.Table(
    "notification_outbox",
    metadata,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("message_id", _UUID, nullable=False),  # the same each time that it is sent
    sa.Column("event", sa.String(64), nullable=False),  # instance.create.end
    sa.Column("operation_id", BigId),
    sa.Column("server_uuid", _UUID),
    sa.Column("body", OrderedJson, nullable=False),  # conductor.notifications.recorder.Body
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("set_aside_at", UtcDateTime),  # it can't be sent
    sa.Column("reason", _NAME),  # why
    sqlite_autoincrement=True,
)

# Up to which id a period's servers were reported: instance.exists, see the notifications.
usage_audits = sa.Table(
    "usage_audits",
    metadata,
    sa.Column("period_beginning", UtcDateTime, primary_key=True),
    sa.Column("period_ending", UtcDateTime, primary_key=True),
    sa.Column("unit", sa.String(16), nullable=False),  # month@15
    sa.Column("last_server_id", BigId, nullable=False),
    sa.Column("servers_by_host", Json, nullable=False),  # {host: number of reported servers}
    sa.Column("finished_at", UtcDateTime),
)

audits = sa.Table(
    "audits",
    metadata,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("request_id", sa.String(64), nullable=False),
    sa.Column("task", sa.String(16), nullable=False, server_default="audit"),
    sa.Column("state", sa.String(16), nullable=False),  # queued, running, done, failed
    sa.Column("conductor", _NAME),
    sa.Column("requested_at", UtcDateTime, nullable=False),
    sa.Column("started_at", UtcDateTime),
    sa.Column("finished_at", UtcDateTime),
    sa.Column("report", Json, nullable=False),  # what was looked at, counts, what wasn't seen
    sa.Index("ix_audits_state", "state"),
    sqlite_autoincrement=True,
)

findings = sa.Table(
    "findings",
    metadata,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("kind", sa.String(48), nullable=False),
    sa.Column("subject", sa.String(512), nullable=False),
    sa.Column("severity", sa.String(16), nullable=False),
    sa.Column("cause", sa.Text, nullable=False),
    sa.Column("remedy", sa.Text),
    sa.Column("heal", sa.String(16)),  # the verb that heals it; None: it is only reported
    sa.Column("server_uuid", _UUID, index=True),
    sa.Column("cluster", _NAME),
    sa.Column("node", _NAME),
    sa.Column("vmid", sa.Integer),
    sa.Column("evidence", Json, nullable=False),
    sa.Column("first_seen_at", UtcDateTime, nullable=False),
    sa.Column("last_seen_at", UtcDateTime, nullable=False),
    sa.Column("healed_at", UtcDateTime),
    sa.Column("healed_by", _NAME),  # the verb, or nobody we know of
    sa.Column("heals", sa.Integer, nullable=False, default=0),  # how often it was tried
    sa.Column("tried_at", UtcDateTime),
    sa.Column("operation_id", BigId),  # the last try, where that is an operation
    sa.Column("answer", sa.Text),  # how the last try ended
    sa.Index("ix_findings_open", "healed_at", "kind"),
    sqlite_autoincrement=True,
)

# What opens consoles: the token itself is kept nowhere.
console_tokens = sa.Table(
    "console_tokens",
    metadata,
    sa.Column("token_hash", sa.String(64), primary_key=True),
    sa.Column("server_uuid", _UUID, nullable=False),
    sa.Column("console_type", sa.String(16), nullable=False),
    sa.Column("host", _NAME, nullable=False),  # where the server was then
    sa.Column("port", sa.Integer, nullable=False),  # of the proxy
    sa.Column("expires_at", UtcDateTime, nullable=False, index=True),
    sa.Column("used_at", UtcDateTime),
)

# Their statuses are those of common.resources.volumes. A holder is the VM that has the volume's
# disk.
volumes = sa.Table(
    "volumes",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("project_id", _NAME, nullable=False),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("name", _NAME, **_EMPTY),
    sa.Column("description", sa.Text),
    sa.Column("status", sa.String(32), nullable=False),
    sa.Column("previous_status", sa.String(32)),  # what an action that begins in several was from
    sa.Column("size_gib", sa.Integer, nullable=False),
    sa.Column("type_id", _UUID, index=True),
    sa.Column("availability_zone", _NAME),
    sa.Column("bootable", sa.Boolean, **_FALSE),
    sa.Column("readonly", sa.Boolean, **_FALSE),
    sa.Column("metadata", Json, nullable=False, key="meta"),  # the user's
    sa.Column("image_metadata", Json),  # of the image that it was made of; None: of none
    sa.Column("image_id", _UUID),
    sa.Column("snapshot_id", _UUID),  # what it was made of, as are the next
    sa.Column("source_volume_id", _UUID),
    sa.Column("backup_id", _UUID),
    sa.Column("host", _NAME),  # the one whose agent looks after its holder
    sa.Column("cluster", _NAME),
    sa.Column("node", _NAME),  # that has the holder
    sa.Column("storage", StorageName),
    sa.Column("shared", sa.Boolean, **_FALSE),  # whether other nodes have its storage, too
    sa.Column("vmid", sa.Integer),  # the holder's
    sa.Column("volid", sa.String(255)),  # ``local-lvm:vm-101-disk-0``; None: not made yet
    sa.Column("snapshot_way", sa.String(16)),  # volumes.SnapshotWay; None: not asked yet
    sa.Column("new_type_id", _UUID),  # the type that it is to get, as are the next
    sa.Column("new_storage", StorageName),
    sa.Column("new_shared", sa.Boolean),
    sa.Column("last_user", Json),  # common.messages.commands.VolumeUser: who had it last
    sa.Column("fault", sa.Text),  # why it is in error
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime),
    sa.Column("launched_at", UtcDateTime),
    sa.Index("ix_volumes_project", "project_id", "created_at", "id"),
    sa.Index("ix_volumes_cluster_vmid", "cluster", "vmid"),
)

# One volume, one attachment: the unique key refuses a second server.
volume_attachments = sa.Table(
    "volume_attachments",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("volume_id", _UUID, nullable=False, unique=True),
    sa.Column("server_uuid", _UUID, nullable=False, index=True),
    sa.Column("project_id", _NAME, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),  # common.resources.volumes.AttachStatus
    sa.Column("slot", sa.Integer, nullable=False),  # SCSI slot of the server's VM; 0: its root
    sa.Column("mode", sa.String(2), nullable=False),  # rw, ro
    sa.Column("tag", sa.String(60)),
    sa.Column("delete_on_termination", sa.Boolean, **_FALSE),
    # Whether the volume is made by the server's unfinished build: deleted if that fails.
    sa.Column("with_build", sa.Boolean, **_FALSE),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("attached_at", UtcDateTime),
    sa.UniqueConstraint("server_uuid", "slot"),
)

volume_snapshots = sa.Table(
    "volume_snapshots",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("volume_id", _UUID, nullable=False, index=True),
    sa.Column("project_id", _NAME, nullable=False),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("name", _NAME, **_EMPTY),
    sa.Column("description", sa.Text),
    sa.Column("status", sa.String(32), nullable=False),
    sa.Column("size_gib", sa.Integer, nullable=False),
    sa.Column("metadata", Json, nullable=False, key="meta"),
    sa.Column("snapname", sa.String(40)),  # of the holder's snapshot; None: it is a copy
    sa.Column("host", _NAME),  # where a copy's own holder is, as with volumes
    sa.Column("cluster", _NAME),
    sa.Column("node", _NAME),
    sa.Column("storage", StorageName),
    sa.Column("shared", sa.Boolean, **_FALSE),
    sa.Column("vmid", sa.Integer),
    sa.Column("volid", sa.String(255)),
    sa.Column("fault", sa.Text),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime),
    sa.Index("ix_volume_snapshots_project", "project_id", "created_at", "id"),
)

# Archives of volumes, which outlive these.
volume_backups = sa.Table(
    "volume_backups",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("volume_id", _UUID, nullable=False, index=True),
    sa.Column("project_id", _NAME, nullable=False),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("name", _NAME, **_EMPTY),
    sa.Column("description", sa.Text),
    sa.Column("status", sa.String(32), nullable=False),
    sa.Column("size_gib", sa.Integer, nullable=False),  # the volume's
    sa.Column("metadata", Json, nullable=False, key="meta"),
    sa.Column("container", _NAME),  # as the user has called it
    sa.Column("availability_zone", _NAME),
    sa.Column("snapshot_id", _UUID),
    sa.Column("bootable", sa.Boolean, **_FALSE),  # the volume's, as is the next
    sa.Column("image_metadata", Json),
    sa.Column("described", Json),  # the volume's name, description and metadata then
    sa.Column("host", _NAME),  # the one whose agent has made it
    sa.Column("cluster", _NAME),
    sa.Column("node", _NAME),  # that has the archive, unless others have its storage, too
    sa.Column("storage", StorageName),
    sa.Column("shared", sa.Boolean, **_FALSE),
    sa.Column("vmid", sa.Integer),  # the holder's at that time, by which the archive is named
    sa.Column("archive", sa.String(255)),  # ``local:backup/vzdump-qemu-…``; None: not made yet
    sa.Column("size_bytes", sa.BigInteger),  # the archive's
    sa.Column("fail_reason", sa.Text),
    sa.Column("data_timestamp", UtcDateTime, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime),
    sa.Index("ix_volume_backups_project", "project_id", "created_at", "id"),
)

# Storages that take disks; an administrator may describe them, add others and hide them.
volume_types = sa.Table(
    "volume_types",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("name", _NAME, nullable=False, unique=True),
    sa.Column("description", sa.Text),
    sa.Column("is_public", sa.Boolean, **_TRUE),
    sa.Column("storage", StorageName, nullable=False),
    sa.Column("extra_specs", Json, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime),
)

volume_type_access = sa.Table(
    "volume_type_access",
    metadata,
    sa.Column("type_id", _UUID, primary_key=True),
    sa.Column("project_id", _NAME, primary_key=True),
)

volume_default_types = sa.Table(
    "volume_default_types",
    metadata,
    sa.Column("project_id", _NAME, primary_key=True),
    sa.Column("type_id", _UUID, nullable=False, index=True),
)

# Offers of volumes to other projects. Only those that have not ended count.
volume_transfers = sa.Table(
    "volume_transfers",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("volume_id", _UUID, nullable=False, index=True),
    sa.Column("name", _NAME),
    sa.Column("salt", sa.String(64), nullable=False),  # empty once it has ended
    sa.Column("key_hash", sa.String(64), nullable=False),  # of the salt and the auth key
    sa.Column("no_snapshots", sa.Boolean, nullable=False),
    sa.Column("source_project_id", _NAME, nullable=False),
    sa.Column("destination_project_id", _NAME),  # None: nobody accepted it
    sa.Column("accepted", sa.Boolean, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("ended_at", UtcDateTime),
)
# Failed operations about volumes are the messages of block storage; these were deleted.
deleted_volume_messages = sa.Table(
    "deleted_volume_messages",
    metadata,
    sa.Column("operation_id", BigId, primary_key=True, autoincrement=False),
    sa.Column("deleted_at", UtcDateTime, nullable=False),
)

# What servers of scaling groups are made of.
scaling_profiles = sa.Table(
    "scaling_profiles",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("project_id", _NAME, nullable=False, index=True),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("name", _NAME, nullable=False),
    sa.Column("spec", Json, nullable=False),  # as it was given
    sa.Column("request", Json, nullable=False),  # the create of one server, as it was checked
    sa.Column("metadata", Json, nullable=False, key="meta"),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime),
)

# Groups of servers whose number is kept.
scaling_groups = sa.Table(
    "scaling_groups",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("project_id", _NAME, nullable=False, index=True),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("name", _NAME, nullable=False),
    sa.Column("profile_id", _UUID, nullable=False, index=True),
    sa.Column("former_profile_id", _UUID),  # what a rolling update returns to
    sa.Column("desired", sa.Integer, nullable=False),
    sa.Column("min_size", sa.Integer, nullable=False),
    sa.Column("max_size", sa.Integer, nullable=False),  # -1: unlimited
    sa.Column("timeout_seconds", sa.Integer, nullable=False),
    sa.Column("metadata", Json, nullable=False, key="meta"),
    sa.Column("config", Json, nullable=False),  # as it was given
    sa.Column("context", Json, nullable=False),  # of the request: its members are its user's
    sa.Column("next_index", sa.Integer, nullable=False),
    sa.Column("rolling", sa.Boolean, nullable=False),  # members of other profiles are replaced
    sa.Column("paused", sa.Boolean, nullable=False),  # a rolling update replaces no more members
    sa.Column("deleting", sa.Boolean, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False),  # creations that failed in a row
    sa.Column("refusals", sa.Integer, nullable=False),  # for want of quota, in a row
    sa.Column("not_before", UtcDateTime),  # of the next creation
    sa.Column("halted", sa.Text),  # why nothing is created any more; None: creations go on
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("status_reason", sa.Text, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime),
    # how long members wait for room if the config does not say; NULL: not at all, as it is older
    sa.Column("default_wait_seconds", sa.Integer),
)

# A place in a group, and its server: never two for one index.
scaling_members = sa.Table(
    "scaling_members",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("group_id", _UUID),  # None: it was taken out of its group
    sa.Column("member_index", sa.Integer),
    sa.Column("project_id", _NAME, nullable=False, index=True),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("name", _NAME, nullable=False),
    sa.Column("role", _NAME),
    sa.Column("metadata", Json, nullable=False, key="meta"),
    sa.Column("profile_id", _UUID, nullable=False, index=True),  # its server's
    sa.Column("server_uuid", _UUID, unique=True),  # None: not created yet
    sa.Column("volumes", Json, nullable=False),  # IDs of those that are its place's
    sa.Column("ports", Json, nullable=False, server_default=sa.text("'[]'")),  # the same
    sa.Column("state", sa.String(16), nullable=False),  # common.resources.groups.MemberState
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("recoveries", sa.Integer, nullable=False),  # in a row, that did not help
    sa.Column("ready_at", UtcDateTime),  # since when its server is well
    sa.Column("health", sa.String(8)),  # common.messages.health.CheckResult; None: not checked yet
    sa.Column("health_reason", sa.Text),  # why it is not well
    sa.Column("health_at", UtcDateTime),  # when that was reported
    sa.Column("repaired_at", UtcDateTime),  # its checks begin again after a repair
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime),
    sa.UniqueConstraint("group_id", "member_index"),
)

scaling_policies = sa.Table(
    "scaling_policies",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("project_id", _NAME, nullable=False, index=True),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("name", _NAME, nullable=False),
    sa.Column("spec", Json, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime),
)

scaling_bindings = sa.Table(
    "scaling_bindings",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("group_id", _UUID, nullable=False),
    sa.Column("policy_id", _UUID, nullable=False, index=True),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.UniqueConstraint("group_id", "policy_id"),
)

# Webhooks: who knows the secret in their URL has the action carried out.
scaling_receivers = sa.Table(
    "scaling_receivers",
    metadata,
    sa.Column("id", _UUID, primary_key=True),
    sa.Column("project_id", _NAME, nullable=False, index=True),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("name", _NAME, nullable=False),
    sa.Column("group_id", _UUID, nullable=False, index=True),
    sa.Column("action", sa.String(32), nullable=False),
    sa.Column("params", Json, nullable=False),
    sa.Column("context", Json, nullable=False),  # of the request: it acts as its maker
    sa.Column("key_hash", sa.String(64), nullable=False),  # of the ID and the secret
    sa.Column("sealed", sa.String(64), nullable=False),  # the secret, to its maker's token alone
    sa.Column("window_at", UtcDateTime),  # the minute in which it was called last
    sa.Column("calls", sa.Integer, nullable=False),  # in that minute
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime),
)

# Calls that were carried out, for as long as they may be repeated: see db.reads.ledger.calls.
call_answers = sa.Table(
    "call_answers",
    metadata,
    sa.Column("id", _UUID, primary_key=True),  # the call's, common.rpc.deadlines.made_by(call, 0)
    sa.Column("answer", sa.Text),  # JSON; None: none
    sa.Column("answered_at", UtcDateTime, nullable=False, index=True),
)
