"""The rules of the compute API, one line each: names and defaults are Nova's.

Rules with the prefix `micronova:` guard resources that Nova doesn't have.
"""

from __future__ import annotations

from oslo_policy import policy

from web.policy import (
    ADMIN,
    ANYONE,
    PROJECT_MANAGER,
    PROJECT_MEMBER,
    PROJECT_READER,
    SERVICE,
    rule,
)

OWN = "rule:context_is_admin or user_id:%(user_id)s"

# (rule, who may, what); the routes name the rules
_ROWS = (
    ("servers:index", PROJECT_READER, "List servers."),
    ("servers:detail", PROJECT_READER, "List servers in detail."),
    ("servers:index:get_all_tenants", ADMIN, "List all projects' servers."),
    ("servers:detail:get_all_tenants", ADMIN, "In detail."),
    ("servers:allow_all_filters", ADMIN, "Filter servers by anything."),
    ("servers:show", PROJECT_READER, "Show a server."),
    ("servers:show:flavor-extra-specs", PROJECT_READER, "With its extra specs."),
    ("servers:show:host_status", ADMIN, "With the state of its host."),
    ("servers:show:host_status:unknown-only", ADMIN, "If that is UNKNOWN."),
    ("os-extended-server-attributes", ADMIN, "With host, instance name …"),
    ("servers:create", PROJECT_MEMBER, "Create servers."),
    ("servers:create:forced_host", ADMIN, "On a host (ZONE:HOST)."),
    ("servers:create:attach_network", PROJECT_MEMBER, "On networks."),
    ("servers:create:attach_volume", PROJECT_MEMBER, "With block devices."),
    ("servers:update", PROJECT_MEMBER, "Rename or describe a server."),
    ("servers:delete", PROJECT_MEMBER, "Delete a server."),
    ("servers:start", PROJECT_MEMBER, "Start a server."),
    ("servers:stop", PROJECT_MEMBER, "Stop a server."),
    ("servers:reboot", PROJECT_MEMBER, "Reboot a server."),
    ("os-pause-server:pause", PROJECT_MEMBER, "Pause a server."),
    ("os-pause-server:unpause", PROJECT_MEMBER, "Unpause a server."),
    ("os-suspend-server:suspend", PROJECT_MEMBER, "Suspend a server."),
    ("os-suspend-server:resume", PROJECT_MEMBER, "Resume a server."),
    ("servers:resize", PROJECT_MEMBER, "Resize a server."),
    ("servers:confirm_resize", PROJECT_MEMBER, "Confirm."),
    ("servers:revert_resize", PROJECT_MEMBER, "Revert."),
    ("servers:rebuild", PROJECT_MEMBER, "Rebuild a server."),
    (
        "servers:rebuild:trusted_certs",
        PROJECT_MEMBER,
        "Rebuild it with certificates (which is refused).",
    ),
    ("os-shelve:shelve", PROJECT_MEMBER, "Shelve a server."),
    ("os-shelve:shelve_offload", ADMIN, "Offload one."),
    ("os-shelve:unshelve", PROJECT_MEMBER, "Unshelve one."),
    ("os-shelve:unshelve_to_host", ADMIN, "Name the host."),
    ("servers:create_image", PROJECT_MEMBER, "Make an image."),
    ("os-create-backup", PROJECT_MEMBER, "Make a backup."),
    (
        "os-migrate-server:migrate_live",
        PROJECT_MANAGER,
        "Move a server to another host while it runs.",
    ),
    ("os-migrate-server:migrate_live:host", ADMIN, "Choose its host."),
    ("os-rescue", PROJECT_MEMBER, "Rescue a server."),
    ("os-unrescue", PROJECT_MEMBER, "Unrescue a server."),
    ("os-migrate-server:migrate", PROJECT_MANAGER, "Migrate a server, which is stopped for it."),
    ("os-migrate-server:migrate:host", ADMIN, "Choose its host."),
    ("os-evacuate", ADMIN, "Evacuate a server of a lost host."),
    ("os-lock-server:lock", PROJECT_MEMBER, "Lock a server."),
    ("os-lock-server:unlock", PROJECT_MEMBER, "Unlock a server."),
    ("os-lock-server:unlock:unlock_override", ADMIN, "Unlock a server that another user locked."),
    ("os-deferred-delete:restore", PROJECT_MEMBER, "Restore a soft-deleted server."),
    ("os-deferred-delete:force", PROJECT_MEMBER, "Delete a server at once."),
    ("servers:trigger_crash_dump", PROJECT_MEMBER, "Trigger a crash dump, which is refused."),
    ("os-admin-actions:reset_state", ADMIN, "Say what a server is."),
    ("os-admin-actions:inject_network_info", ADMIN, "Inject network information: does nothing."),
    ("os-remote-consoles", PROJECT_MEMBER, "Open a console of a server."),
    ("os-console-auth-tokens", ADMIN, "Show what a console's token opens."),
    ("os-console-output", PROJECT_MEMBER, "Read a console's log."),
    ("os-server-diagnostics", ADMIN, "See how a running server does."),
    ("os-admin-password", PROJECT_MEMBER, "Set the administrator's password."),
    ("os-attach-interfaces:list", PROJECT_READER, "List a server's interfaces."),
    ("os-attach-interfaces:show", PROJECT_READER, "Show one."),
    ("os-attach-interfaces:create", PROJECT_MEMBER, "Attach an interface."),
    ("os-attach-interfaces:delete", PROJECT_MEMBER, "Detach an interface."),
    ("os-volumes-attachments:index", PROJECT_READER, "List a server's volumes."),
    ("os-volumes-attachments:show", PROJECT_READER, "Show one."),
    ("os-volumes-attachments:create", PROJECT_MEMBER, "Attach a volume."),
    (
        "os-volumes-attachments:update",
        PROJECT_MEMBER,
        "Change whether a volume is deleted with its server.",
    ),
    ("os-volumes-attachments:swap", SERVICE, "Swap one volume for another one (refused here)."),
    ("os-volumes-attachments:delete", PROJECT_MEMBER, "Detach a volume."),
    ("os-networks:list", PROJECT_READER, "List networks, up to 2.35."),
    ("os-networks:show", PROJECT_READER, "Show one."),
    ("os-tenant-networks:list", PROJECT_READER, "List networks, up to 2.35."),
    ("os-tenant-networks:show", PROJECT_READER, "Show one."),
    ("os-floating-ips:list", PROJECT_READER, "List none, up to 2.35."),
    ("os-floating-ips:show", PROJECT_READER, "Show one."),
    ("os-floating-ips:create", PROJECT_MEMBER, "Take one (refused)."),
    ("os-floating-ips:delete", PROJECT_MEMBER, "Give one back."),
    ("os-volumes:list", PROJECT_READER, "List volumes, up to 2.35."),
    ("os-volumes:detail", PROJECT_READER, "In detail."),
    ("os-volumes:show", PROJECT_READER, "Show one."),
    ("os-volumes:create", PROJECT_MEMBER, "Make one."),
    ("os-volumes:delete", PROJECT_MEMBER, "Delete one."),
    ("os-volumes:snapshots:list", PROJECT_READER, "List none, up to 2.35."),
    ("os-volumes:snapshots:detail", PROJECT_READER, "In detail."),
    ("os-volumes:snapshots:show", PROJECT_READER, "Find none."),
    ("os-volumes:snapshots:create", PROJECT_MEMBER, "Make one (refused)."),
    ("os-volumes:snapshots:delete", PROJECT_MEMBER, "Find none."),
    ("os-floating-ip-pools", ANYONE, "List none, up to 2.35."),
    ("os-security-groups:get", PROJECT_READER, "List groups, up to 2.35."),
    ("os-security-groups:show", PROJECT_READER, "Show one."),
    ("os-security-groups:create", PROJECT_MEMBER, "Make one."),
    ("os-security-groups:update", PROJECT_MEMBER, "Change one."),
    ("os-security-groups:delete", PROJECT_MEMBER, "Delete one."),
    ("os-security-groups:rule:create", PROJECT_MEMBER, "Let something in, up to 2.35."),
    ("os-security-groups:rule:delete", PROJECT_MEMBER, "Let it in no more."),
    ("os-security-groups:list", PROJECT_READER, "List a server's security groups."),
    ("os-security-groups:add", PROJECT_MEMBER, "Put a server's ports into a security group."),
    ("os-security-groups:remove", PROJECT_MEMBER, "Take a server's ports from a security group."),
    ("os-multinic:add", PROJECT_MEMBER, "Attach an interface to a network, up to 2.43."),
    ("os-multinic:remove", PROJECT_MEMBER, "Detach the interface with an address, up to 2.43."),
    ("os-server-password:show", PROJECT_READER, "Show the guest's password, which is empty."),
    ("os-server-password:clear", PROJECT_MEMBER, "Clear it."),
    ("os-quota-class-sets:show", ADMIN, "Show a quota class."),
    ("os-quota-class-sets:update", ADMIN, "Set a quota class."),
    ("os-simple-tenant-usage:list", ADMIN, "Usage of all projects."),
    ("os-simple-tenant-usage:show", PROJECT_READER, "Usage of a project."),
    ("os-server-external-events:create", SERVICE, "Report external events."),
    ("os-instance-usage-audit-log:list", ADMIN, "List usage audits."),
    ("os-instance-usage-audit-log:show", ADMIN, "Show those before a time."),
    ("os-hosts:list", ADMIN, "List hosts."),
    ("os-hosts:show", ADMIN, "Show one."),
    ("os-hosts:update", ADMIN, "Enable or disable one."),
    ("os-hosts:start", ADMIN, "Start one: refused."),
    ("os-hosts:shutdown", ADMIN, "Stop one: refused."),
    ("os-hosts:reboot", ADMIN, "Reboot one: refused."),
    ("server-metadata:index", PROJECT_READER, "List metadata."),
    ("server-metadata:show", PROJECT_READER, "Show one."),
    ("server-metadata:create", PROJECT_MEMBER, "Add metadata."),
    ("server-metadata:update_all", PROJECT_MEMBER, "Replace."),
    ("server-metadata:update", PROJECT_MEMBER, "Set."),
    ("server-metadata:delete", PROJECT_MEMBER, "Delete."),
    ("os-server-tags:index", PROJECT_READER, "List tags."),
    ("os-server-tags:show", PROJECT_READER, "Check for a tag."),
    ("os-server-tags:update", PROJECT_MEMBER, "Add a tag."),
    ("os-server-tags:update_all", PROJECT_MEMBER, "Replace tags."),
    ("os-server-tags:delete", PROJECT_MEMBER, "Delete."),
    ("os-server-tags:delete_all", PROJECT_MEMBER, "Delete all."),
    ("ips:index", PROJECT_READER, "List addresses."),
    ("ips:show", PROJECT_READER, "Of one network."),
    ("os-instance-actions:list", PROJECT_READER, "List a server's actions."),
    ("os-instance-actions:show", PROJECT_READER, "Show an action with its events."),
    ("os-instance-actions:events", ADMIN, "With the events' hosts and tracebacks."),
    ("os-instance-actions:events:details", ADMIN, "With the events' details."),
    ("servers:migrations:index", PROJECT_MANAGER, "List a server's live migrations in progress."),
    ("servers:migrations:index:host", ADMIN, "With hosts."),
    ("servers:migrations:show", ADMIN, "Show one."),
    ("servers:migrations:delete", PROJECT_MANAGER, "Abort one."),
    ("servers:migrations:force_complete", PROJECT_MANAGER, "Have one end by pausing the guest."),
    ("os-migrations:index", PROJECT_MANAGER, "List migrations."),
    ("os-migrations:index:all_projects", ADMIN, "Of all projects."),
    ("os-migrations:index:host", ADMIN, "With hosts."),
    ("os-flavor-manage:create", ADMIN, "Create a flavor."),
    ("os-flavor-manage:update", ADMIN, "Describe a flavor."),
    ("os-flavor-manage:delete", ADMIN, "Delete a flavor."),
    ("os-flavor-access", ADMIN, "List access."),
    ("os-flavor-access:add_tenant_access", ADMIN, "Grant access."),
    ("os-flavor-access:remove_tenant_access", ADMIN, "Revoke it."),
    ("os-flavor-extra-specs:index", PROJECT_READER, "List."),
    ("os-flavor-extra-specs:show", PROJECT_READER, "Show one."),
    ("os-flavor-extra-specs:create", ADMIN, "Set specs."),
    ("os-flavor-extra-specs:update", ADMIN, "Set."),
    ("os-flavor-extra-specs:delete", ADMIN, "Delete."),
    ("os-keypairs:index", OWN, "List key pairs."),
    ("os-keypairs:show", OWN, "Show a key pair."),
    ("os-keypairs:create", OWN, "Create or import a key pair."),
    ("os-keypairs:delete", OWN, "Delete a key pair."),
    ("os-server-groups:index", PROJECT_READER, "List groups."),
    ("os-server-groups:index:all_projects", ADMIN, "Of all."),
    ("os-server-groups:create", PROJECT_MEMBER, "Create one."),
    ("os-server-groups:show", PROJECT_READER, "Show one."),
    ("os-server-groups:delete", PROJECT_MEMBER, "Delete one."),
    ("os-services:list", ADMIN, "List services."),
    ("os-services:update", ADMIN, "Disable, force down …"),
    ("os-services:delete", ADMIN, "Delete a service."),
    ("os-hypervisors:list", ADMIN, "List hypervisors."),
    ("os-hypervisors:list-detail", ADMIN, "In detail."),
    ("os-hypervisors:statistics", ADMIN, "Sums."),
    ("os-hypervisors:show", ADMIN, "Show one."),
    ("os-hypervisors:uptime", ADMIN, "Uptime."),
    ("os-hypervisors:search", ADMIN, "By name."),
    ("os-hypervisors:servers", ADMIN, "With servers."),
    ("os-aggregates:index", ADMIN, "List aggregates."),
    ("os-aggregates:create", ADMIN, "Create one."),
    ("os-aggregates:show", ADMIN, "Show one."),
    ("os-aggregates:update", ADMIN, "Rename, set the zone."),
    ("os-aggregates:delete", ADMIN, "Delete one."),
    ("os-aggregates:add_host", ADMIN, "Add a host."),
    ("os-aggregates:remove_host", ADMIN, "Remove a host."),
    ("os-aggregates:set_metadata", ADMIN, "Set metadata."),
    ("os-availability-zone:list", ANYONE, "List zones."),
    ("os-availability-zone:detail", ADMIN, "With their hosts."),
    ("extensions", ANYONE, "List extensions, show one."),
    ("limits", ANYONE, "Show one's limits and usage."),
    ("limits:other_project", ADMIN, "Another project's."),
    ("os-quota-sets:show", PROJECT_READER, "Show quotas."),
    ("os-quota-sets:detail", PROJECT_READER, "With usage."),
    ("os-quota-sets:defaults", ANYONE, "Show the defaults."),
    ("os-quota-sets:update", ADMIN, "Set quotas."),
    ("os-quota-sets:delete", ADMIN, "Reset quotas."),
)

CACHE_IMAGES = "compute:aggregates:images"
REQUESTED_DESTINATION = "compute:servers:create:requested_destination"
ANY_ADDRESS = "micronova:servers:create:any_address"
NEAR_HOST = "micronova:servers:create:near_host_ip"
EXPLAIN = "micronova:explanations:show"
PREVIEW = "micronova:schedule:preview"
FIT = "micronova:schedule:fit"
CAPACITY = "micronova:capacity:show"
REBALANCE = "micronova:rebalance:plan"
BULK_MIGRATIONS_READ = "micronova:bulk-migrations:read"
BULK_MIGRATIONS_BEGIN = "micronova:bulk-migrations:begin"
BULK_MIGRATIONS_STEER = "micronova:bulk-migrations:steer"
ADOPT = "micronova:adoptions:create"
RELEASE = "micronova:servers:release"
MARK = "micronova:servers:mark"
HOLD = "micronova:servers:hold"
RELEASE_HOLD = "micronova:servers:release-hold"
RETRY = "micronova:servers:retry"
FORGET = "micronova:servers:forget"
EXPLAIN_ALL = "micronova:explanations:show:operator"
AUDIT_BEGIN = "micronova:audit:begin"
AUDIT_READ = "micronova:audit:read"
AUDIT_HEAL = "micronova:audit:heal"
RECORD_RESTORE = "micronova:record:restore"
TOPOLOGY = "compute:server:topology:index"
TOPOLOGY_OF_HOST = "compute:server:topology:host:index"
VMID_READ = "micronova:vmid:read"
METRICS = "micronova:metrics:read"
SERVER_METRICS = "micronova:server-metrics:read"
HOST_METRICS = "micronova:host-metrics:read"
QUEUES = "micronova:queues:read"
WAITING = "micronova:waiting:read"
OPERATIONS = "micronova:operations:read"
HOST_TASKS = "micronova:host-tasks:read"
STORAGES = "micronova:storages:read"

PREFIX = "os_compute_api:"

RULES: tuple[policy.RuleDefault, ...] = (
    *(rule(PREFIX + name, *rest) for name, *rest in _ROWS),
    rule(TOPOLOGY, PROJECT_READER, "Show a server's NUMA topology."),
    rule(TOPOLOGY_OF_HOST, ADMIN, "With host nodes."),
    rule(CACHE_IMAGES, ADMIN, "Cache images."),
    rule(REQUESTED_DESTINATION, ADMIN, "Choose host or hypervisor."),
    rule(ANY_ADDRESS, ADMIN, "With fixed_ip outside of the pool."),
    rule(NEAR_HOST, ADMIN, "With the hint build_near_host_ip."),
    rule(EXPLAIN, PROJECT_READER, "Read what happened."),
    rule(EXPLAIN_ALL, ADMIN, "With hosts and tasks."),
    rule(ADOPT, ADMIN, "Adopt an existing VM."),
    rule(RELEASE, ADMIN, "Unmanage a server, without its VM."),
    rule(MARK, ADMIN, "Rewrite an edited owner mark."),
    rule(HOLD, PROJECT_MEMBER, "Hold a server's retries."),
    rule(RELEASE_HOLD, PROJECT_MEMBER, "Release a hold."),
    rule(RETRY, ADMIN, "Retry a waiting operation."),
    rule(FORGET, ADMIN, "Abandon a server whose VM isn't ours."),
    rule(PREVIEW, ADMIN, "Dry-run a create."),
    rule(FIT, PROJECT_MEMBER, "Ask whether servers would fit, without hosts."),
    rule(CAPACITY, ADMIN, "See how many servers would fit, also without a host."),
    rule(REBALANCE, ADMIN, "See migrations that would balance hosts."),
    rule(BULK_MIGRATIONS_READ, ADMIN, "See drains and rebalances, and what a drain would do."),
    rule(BULK_MIGRATIONS_BEGIN, ADMIN, "Drain a host, or rebalance the cloud."),
    rule(BULK_MIGRATIONS_STEER, ADMIN, "Pause, resume or cancel a drain or a rebalance."),
    rule(AUDIT_BEGIN, ADMIN, "Start an audit."),
    rule(AUDIT_READ, ADMIN, "Read audits and findings."),
    rule(AUDIT_HEAL, ADMIN, "Heal a finding."),
    rule(RECORD_RESTORE, ADMIN, "Decide about a restored database."),
    rule(VMID_READ, ADMIN, "Read reserved and quarantined VMIDs."),
    rule(METRICS, ADMIN, "Read numbers for monitoring."),
    rule(SERVER_METRICS, PROJECT_READER, "Read a server's measurements."),
    rule(HOST_METRICS, ADMIN, "Read a compute host's measurements."),
    rule(QUEUES, ADMIN, "Read what runs and waits on hosts."),
    rule(WAITING, PROJECT_READER, "Read which servers wait for room."),
    rule(OPERATIONS, ADMIN, "Read who did what in all projects."),
    rule(HOST_TASKS, ADMIN, "Read the tasks of a compute host's node."),
    rule(STORAGES, ADMIN, "Read the storages of all hosts."),
)

#: those whose sample lists all operations; that of the others lists the first one
SEVERAL = frozenset({CAPACITY, BULK_MIGRATIONS_READ})


def named(name: str) -> str:
    """Return the full name of a rule; those that aren't Nova's have no other."""
    return _FULL.get(name, name)


_FULL = {name: PREFIX + name for name, *_ in _ROWS}
