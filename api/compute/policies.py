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

_SERVER = "/servers/{server_id}"
_FLAVOR = "/flavors/{flavor_id}"
_GROUP = "/os-server-groups/{group_id}"
_QUOTA_CLASS = "/os-quota-class-sets/{class_name}"
_USAGE = "/os-simple-tenant-usage"
_SECURITY, _FLOATING = "/os-security-groups", "/os-floating-ips"
_AGGREGATE = "/os-aggregates/{aggregate_id}"

# (rule, who may, what, method, path)
_ROWS = (
    ("servers:index", PROJECT_READER, "List servers.", "GET", "/servers"),
    ("servers:detail", PROJECT_READER, "List servers in detail.", "GET", "/servers/detail"),
    ("servers:index:get_all_tenants", ADMIN, "List all projects' servers.", "GET", "/servers"),
    ("servers:detail:get_all_tenants", ADMIN, "In detail.", "GET", "/servers/detail"),
    ("servers:allow_all_filters", ADMIN, "Filter servers by anything.", "GET", "/servers"),
    ("servers:show", PROJECT_READER, "Show a server.", "GET", _SERVER),
    ("servers:show:flavor-extra-specs", PROJECT_READER, "With its extra specs.", "GET", _SERVER),
    ("servers:show:host_status", ADMIN, "With the state of its host.", "GET", _SERVER),
    ("servers:show:host_status:unknown-only", ADMIN, "If that is UNKNOWN.", "GET", _SERVER),
    ("os-extended-server-attributes", ADMIN, "With host, instance name …", "GET", _SERVER),
    ("servers:create", PROJECT_MEMBER, "Create servers.", "POST", "/servers"),
    ("servers:create:forced_host", ADMIN, "On a host (ZONE:HOST).", "POST", "/servers"),
    ("servers:create:attach_network", PROJECT_MEMBER, "On networks.", "POST", "/servers"),
    ("servers:create:attach_volume", PROJECT_MEMBER, "With block devices.", "POST", "/servers"),
    ("servers:update", PROJECT_MEMBER, "Rename or describe a server.", "PUT", _SERVER),
    ("servers:delete", PROJECT_MEMBER, "Delete a server.", "DELETE", _SERVER),
    ("servers:start", PROJECT_MEMBER, "Start a server.", "POST", f"{_SERVER}/action"),
    ("servers:stop", PROJECT_MEMBER, "Stop a server.", "POST", f"{_SERVER}/action"),
    ("servers:reboot", PROJECT_MEMBER, "Reboot a server.", "POST", f"{_SERVER}/action"),
    ("os-pause-server:pause", PROJECT_MEMBER, "Pause a server.", "POST", f"{_SERVER}/action"),
    ("os-pause-server:unpause", PROJECT_MEMBER, "Unpause a server.", "POST", f"{_SERVER}/action"),
    (
        "os-suspend-server:suspend",
        PROJECT_MEMBER,
        "Suspend a server.",
        "POST",
        f"{_SERVER}/action",
    ),
    ("os-suspend-server:resume", PROJECT_MEMBER, "Resume a server.", "POST", f"{_SERVER}/action"),
    ("servers:resize", PROJECT_MEMBER, "Resize a server.", "POST", f"{_SERVER}/action"),
    ("servers:confirm_resize", PROJECT_MEMBER, "Confirm.", "POST", f"{_SERVER}/action"),
    ("servers:revert_resize", PROJECT_MEMBER, "Revert.", "POST", f"{_SERVER}/action"),
    ("servers:rebuild", PROJECT_MEMBER, "Rebuild a server.", "POST", f"{_SERVER}/action"),
    (
        "servers:rebuild:trusted_certs",
        PROJECT_MEMBER,
        "Rebuild it with certificates (which is refused).",
        "POST",
        f"{_SERVER}/action",
    ),
    ("os-shelve:shelve", PROJECT_MEMBER, "Shelve a server.", "POST", f"{_SERVER}/action"),
    ("os-shelve:shelve_offload", ADMIN, "Offload one.", "POST", f"{_SERVER}/action"),
    ("os-shelve:unshelve", PROJECT_MEMBER, "Unshelve one.", "POST", f"{_SERVER}/action"),
    ("os-shelve:unshelve_to_host", ADMIN, "Name the host.", "POST", f"{_SERVER}/action"),
    ("servers:create_image", PROJECT_MEMBER, "Make an image.", "POST", f"{_SERVER}/action"),
    ("os-create-backup", PROJECT_MEMBER, "Make a backup.", "POST", f"{_SERVER}/action"),
    (
        "os-migrate-server:migrate_live",
        PROJECT_MANAGER,
        "Move a server to another host while it runs.",
        "POST",
        f"{_SERVER}/action",
    ),
    (
        "os-migrate-server:migrate_live:host",
        ADMIN,
        "Choose its host.",
        "POST",
        f"{_SERVER}/action",
    ),
    ("os-rescue", PROJECT_MEMBER, "Rescue a server.", "POST", f"{_SERVER}/action"),
    ("os-unrescue", PROJECT_MEMBER, "Unrescue a server.", "POST", f"{_SERVER}/action"),
    (
        "os-migrate-server:migrate",
        PROJECT_MANAGER,
        "Migrate a server, which is stopped for it.",
        "POST",
        f"{_SERVER}/action",
    ),
    ("os-migrate-server:migrate:host", ADMIN, "Choose its host.", "POST", f"{_SERVER}/action"),
    (
        "os-evacuate",
        ADMIN,
        "Evacuate a server of a lost host.",
        "POST",
        f"{_SERVER}/action",
    ),
    ("os-lock-server:lock", PROJECT_MEMBER, "Lock a server.", "POST", f"{_SERVER}/action"),
    ("os-lock-server:unlock", PROJECT_MEMBER, "Unlock a server.", "POST", f"{_SERVER}/action"),
    (
        "os-lock-server:unlock:unlock_override",
        ADMIN,
        "Also one that others locked.",
        "POST",
        f"{_SERVER}/action",
    ),
    (
        "os-deferred-delete:restore",
        PROJECT_MEMBER,
        "Restore a soft-deleted server.",
        "POST",
        f"{_SERVER}/action",
    ),
    (
        "os-deferred-delete:force",
        PROJECT_MEMBER,
        "Delete a server at once.",
        "POST",
        f"{_SERVER}/action",
    ),
    (
        "servers:trigger_crash_dump",
        PROJECT_MEMBER,
        "Trigger a crash dump, which is refused.",
        "POST",
        f"{_SERVER}/action",
    ),
    (
        "os-admin-actions:reset_state",
        ADMIN,
        "Say what a server is.",
        "POST",
        f"{_SERVER}/action",
    ),
    (
        "os-admin-actions:inject_network_info",
        ADMIN,
        "Inject network information: does nothing.",
        "POST",
        f"{_SERVER}/action",
    ),
    (
        "os-remote-consoles",
        PROJECT_MEMBER,
        "Open a console of a server.",
        "POST",
        f"{_SERVER}/remote-consoles",
    ),
    (
        "os-console-auth-tokens",
        ADMIN,
        "Show what a console's token opens.",
        "GET",
        "/os-console-auth-tokens/{token}",
    ),
    (
        "os-console-output",
        PROJECT_MEMBER,
        "Read a console's log.",
        "POST",
        f"{_SERVER}/action",
    ),
    (
        "os-server-diagnostics",
        ADMIN,
        "See how a running server does.",
        "GET",
        f"{_SERVER}/diagnostics",
    ),
    (
        "os-admin-password",
        PROJECT_MEMBER,
        "Set the administrator's password.",
        "POST",
        f"{_SERVER}/action",
    ),
    (
        "os-attach-interfaces:list",
        PROJECT_READER,
        "List a server's interfaces.",
        "GET",
        f"{_SERVER}/os-interface",
    ),
    (
        "os-attach-interfaces:show",
        PROJECT_READER,
        "Show one.",
        "GET",
        f"{_SERVER}/os-interface/{{port_id}}",
    ),
    (
        "os-attach-interfaces:create",
        PROJECT_MEMBER,
        "Attach an interface.",
        "POST",
        f"{_SERVER}/os-interface",
    ),
    (
        "os-attach-interfaces:delete",
        PROJECT_MEMBER,
        "Detach an interface.",
        "DELETE",
        f"{_SERVER}/os-interface/{{port_id}}",
    ),
    ("os-networks:list", PROJECT_READER, "List networks, up to 2.35.", "GET", "/os-networks"),
    ("os-networks:show", PROJECT_READER, "Show one.", "GET", "/os-networks/{id}"),
    (
        "os-tenant-networks:list",
        PROJECT_READER,
        "List networks, up to 2.35.",
        "GET",
        "/os-tenant-networks",
    ),
    ("os-tenant-networks:show", PROJECT_READER, "Show one.", "GET", "/os-tenant-networks/{id}"),
    ("os-floating-ips:list", PROJECT_READER, "List none, up to 2.35.", "GET", _FLOATING),
    ("os-floating-ips:show", PROJECT_READER, "Show one.", "GET", f"{_FLOATING}/{{id}}"),
    ("os-floating-ips:create", PROJECT_MEMBER, "Take one (refused).", "POST", _FLOATING),
    ("os-floating-ips:delete", PROJECT_MEMBER, "Give one back.", "DELETE", f"{_FLOATING}/{{id}}"),
    ("os-floating-ip-pools", ANYONE, "List none, up to 2.35.", "GET", "/os-floating-ip-pools"),
    ("os-security-groups:get", PROJECT_READER, "List groups, up to 2.35.", "GET", _SECURITY),
    ("os-security-groups:show", PROJECT_READER, "Show one.", "GET", f"{_SECURITY}/{{id}}"),
    ("os-security-groups:create", PROJECT_MEMBER, "Make one.", "POST", _SECURITY),
    ("os-security-groups:update", PROJECT_MEMBER, "Change one.", "PUT", f"{_SECURITY}/{{id}}"),
    ("os-security-groups:delete", PROJECT_MEMBER, "Delete one.", "DELETE", f"{_SECURITY}/{{id}}"),
    (
        "os-security-groups:rule:create",
        PROJECT_MEMBER,
        "Let something in, up to 2.35.",
        "POST",
        "/os-security-group-rules",
    ),
    (
        "os-security-groups:rule:delete",
        PROJECT_MEMBER,
        "Let it in no more.",
        "DELETE",
        "/os-security-group-rules/{id}",
    ),
    (
        "os-security-groups:list",
        PROJECT_READER,
        "List a server's security groups.",
        "GET",
        f"{_SERVER}/os-security-groups",
    ),
    (
        "os-security-groups:add",
        PROJECT_MEMBER,
        "Put a server's ports into a security group.",
        "POST",
        f"{_SERVER}/action",
    ),
    (
        "os-security-groups:remove",
        PROJECT_MEMBER,
        "Take a server's ports from a security group.",
        "POST",
        f"{_SERVER}/action",
    ),
    (
        "os-multinic:add",
        PROJECT_MEMBER,
        "Attach an interface to a network, up to 2.43.",
        "POST",
        f"{_SERVER}/action",
    ),
    (
        "os-multinic:remove",
        PROJECT_MEMBER,
        "Detach the interface with an address, up to 2.43.",
        "POST",
        f"{_SERVER}/action",
    ),
    (
        "os-server-password:show",
        PROJECT_READER,
        "Show the guest's password, which is empty.",
        "GET",
        f"{_SERVER}/os-server-password",
    ),
    (
        "os-server-password:clear",
        PROJECT_MEMBER,
        "Clear it.",
        "DELETE",
        f"{_SERVER}/os-server-password",
    ),
    ("os-quota-class-sets:show", ADMIN, "Show a quota class.", "GET", _QUOTA_CLASS),
    ("os-quota-class-sets:update", ADMIN, "Set a quota class.", "PUT", _QUOTA_CLASS),
    ("os-simple-tenant-usage:list", ADMIN, "Usage of all projects.", "GET", _USAGE),
    (
        "os-simple-tenant-usage:show",
        PROJECT_READER,
        "Usage of a project.",
        "GET",
        f"{_USAGE}/{{project_id}}",
    ),
    (
        "os-server-external-events:create",
        SERVICE,
        "Tell of events.",
        "POST",
        "/os-server-external-events",
    ),
    (
        "os-instance-usage-audit-log:list",
        ADMIN,
        "List usage audits.",
        "GET",
        "/os-instance_usage_audit_log",
    ),
    (
        "os-instance-usage-audit-log:show",
        ADMIN,
        "Show those before a time.",
        "GET",
        "/os-instance_usage_audit_log/{before}",
    ),
    ("os-hosts:list", ADMIN, "List hosts.", "GET", "/os-hosts"),
    ("os-hosts:show", ADMIN, "Show one.", "GET", "/os-hosts/{host}"),
    ("os-hosts:update", ADMIN, "Enable or disable one.", "PUT", "/os-hosts/{host}"),
    ("os-hosts:start", ADMIN, "Start one: refused.", "GET", "/os-hosts/{host}/startup"),
    ("os-hosts:shutdown", ADMIN, "Stop one: refused.", "GET", "/os-hosts/{host}/shutdown"),
    ("os-hosts:reboot", ADMIN, "Reboot one: refused.", "GET", "/os-hosts/{host}/reboot"),
    ("server-metadata:index", PROJECT_READER, "List metadata.", "GET", f"{_SERVER}/metadata"),
    ("server-metadata:show", PROJECT_READER, "Show one.", "GET", f"{_SERVER}/metadata/{{key}}"),
    ("server-metadata:create", PROJECT_MEMBER, "Add metadata.", "POST", f"{_SERVER}/metadata"),
    ("server-metadata:update_all", PROJECT_MEMBER, "Replace.", "PUT", f"{_SERVER}/metadata"),
    ("server-metadata:update", PROJECT_MEMBER, "Set.", "PUT", f"{_SERVER}/metadata/{{key}}"),
    ("server-metadata:delete", PROJECT_MEMBER, "Delete.", "DELETE", f"{_SERVER}/metadata/{{key}}"),
    ("os-server-tags:index", PROJECT_READER, "List tags.", "GET", f"{_SERVER}/tags"),
    ("os-server-tags:show", PROJECT_READER, "Check for a tag.", "GET", f"{_SERVER}/tags/{{tag}}"),
    ("os-server-tags:update", PROJECT_MEMBER, "Add a tag.", "PUT", f"{_SERVER}/tags/{{tag}}"),
    ("os-server-tags:update_all", PROJECT_MEMBER, "Replace tags.", "PUT", f"{_SERVER}/tags"),
    ("os-server-tags:delete", PROJECT_MEMBER, "Delete.", "DELETE", f"{_SERVER}/tags/{{tag}}"),
    ("os-server-tags:delete_all", PROJECT_MEMBER, "Delete all.", "DELETE", f"{_SERVER}/tags"),
    ("ips:index", PROJECT_READER, "List addresses.", "GET", f"{_SERVER}/ips"),
    ("ips:show", PROJECT_READER, "Of one network.", "GET", f"{_SERVER}/ips/{{network}}"),
    (
        "os-instance-actions:list",
        PROJECT_READER,
        "List a server's actions.",
        "GET",
        f"{_SERVER}/os-instance-actions",
    ),
    (
        "os-instance-actions:show",
        PROJECT_READER,
        "Show an action with its events.",
        "GET",
        f"{_SERVER}/os-instance-actions/{{request_id}}",
    ),
    (
        "os-instance-actions:events",
        ADMIN,
        "With the events' hosts and tracebacks.",
        "GET",
        f"{_SERVER}/os-instance-actions/{{request_id}}",
    ),
    (
        "os-instance-actions:events:details",
        ADMIN,
        "With the events' details.",
        "GET",
        f"{_SERVER}/os-instance-actions/{{request_id}}",
    ),
    (
        "servers:migrations:index",
        PROJECT_MANAGER,
        "List a server's live migrations in progress.",
        "GET",
        f"{_SERVER}/migrations",
    ),
    ("servers:migrations:index:host", ADMIN, "With hosts.", "GET", f"{_SERVER}/migrations"),
    (
        "servers:migrations:show",
        ADMIN,
        "Show one.",
        "GET",
        f"{_SERVER}/migrations/{{migration_id}}",
    ),
    (
        "servers:migrations:delete",
        PROJECT_MANAGER,
        "Abort one.",
        "DELETE",
        f"{_SERVER}/migrations/{{migration_id}}",
    ),
    (
        "servers:migrations:force_complete",
        PROJECT_MANAGER,
        "Have one end by pausing the guest.",
        "POST",
        f"{_SERVER}/migrations/{{migration_id}}/action",
    ),
    ("os-migrations:index", PROJECT_MANAGER, "List migrations.", "GET", "/os-migrations"),
    ("os-migrations:index:all_projects", ADMIN, "Of all projects.", "GET", "/os-migrations"),
    ("os-migrations:index:host", ADMIN, "With hosts.", "GET", "/os-migrations"),
    ("os-flavor-manage:create", ADMIN, "Create a flavor.", "POST", "/flavors"),
    ("os-flavor-manage:update", ADMIN, "Describe a flavor.", "PUT", _FLAVOR),
    ("os-flavor-manage:delete", ADMIN, "Delete a flavor.", "DELETE", _FLAVOR),
    ("os-flavor-access", ADMIN, "List access.", "GET", f"{_FLAVOR}/os-flavor-access"),
    ("os-flavor-access:add_tenant_access", ADMIN, "Grant access.", "POST", f"{_FLAVOR}/action"),
    (
        "os-flavor-access:remove_tenant_access",
        ADMIN,
        "Revoke it.",
        "POST",
        f"{_FLAVOR}/action",
    ),
    ("os-flavor-extra-specs:index", PROJECT_READER, "List.", "GET", f"{_FLAVOR}/os-extra_specs"),
    (
        "os-flavor-extra-specs:show",
        PROJECT_READER,
        "Show one.",
        "GET",
        f"{_FLAVOR}/os-extra_specs/{{key}}",
    ),
    ("os-flavor-extra-specs:create", ADMIN, "Set specs.", "POST", f"{_FLAVOR}/os-extra_specs"),
    ("os-flavor-extra-specs:update", ADMIN, "Set.", "PUT", f"{_FLAVOR}/os-extra_specs/{{key}}"),
    (
        "os-flavor-extra-specs:delete",
        ADMIN,
        "Delete.",
        "DELETE",
        f"{_FLAVOR}/os-extra_specs/{{key}}",
    ),
    ("os-keypairs:index", OWN, "List key pairs.", "GET", "/os-keypairs"),
    ("os-keypairs:show", OWN, "Show a key pair.", "GET", "/os-keypairs/{name}"),
    ("os-keypairs:create", OWN, "Create or import a key pair.", "POST", "/os-keypairs"),
    ("os-keypairs:delete", OWN, "Delete a key pair.", "DELETE", "/os-keypairs/{name}"),
    ("os-server-groups:index", PROJECT_READER, "List groups.", "GET", "/os-server-groups"),
    ("os-server-groups:index:all_projects", ADMIN, "Of all.", "GET", "/os-server-groups"),
    ("os-server-groups:create", PROJECT_MEMBER, "Create one.", "POST", "/os-server-groups"),
    ("os-server-groups:show", PROJECT_READER, "Show one.", "GET", _GROUP),
    ("os-server-groups:delete", PROJECT_MEMBER, "Delete one.", "DELETE", _GROUP),
    ("os-services:list", ADMIN, "List services.", "GET", "/os-services"),
    ("os-services:update", ADMIN, "Disable, force down …", "PUT", "/os-services/{service_id}"),
    ("os-services:delete", ADMIN, "Delete a service.", "DELETE", "/os-services/{service_id}"),
    ("os-hypervisors:list", ADMIN, "List hypervisors.", "GET", "/os-hypervisors"),
    ("os-hypervisors:list-detail", ADMIN, "In detail.", "GET", "/os-hypervisors/detail"),
    ("os-hypervisors:statistics", ADMIN, "Sums.", "GET", "/os-hypervisors/statistics"),
    ("os-hypervisors:show", ADMIN, "Show one.", "GET", "/os-hypervisors/{hypervisor_id}"),
    ("os-hypervisors:uptime", ADMIN, "Uptime.", "GET", "/os-hypervisors/{hypervisor_id}/uptime"),
    ("os-hypervisors:search", ADMIN, "By name.", "GET", "/os-hypervisors/{hypervisor_id}/search"),
    (
        "os-hypervisors:servers",
        ADMIN,
        "With servers.",
        "GET",
        "/os-hypervisors/{hypervisor_id}/servers",
    ),
    ("os-aggregates:index", ADMIN, "List aggregates.", "GET", "/os-aggregates"),
    ("os-aggregates:create", ADMIN, "Create one.", "POST", "/os-aggregates"),
    ("os-aggregates:show", ADMIN, "Show one.", "GET", _AGGREGATE),
    ("os-aggregates:update", ADMIN, "Rename, set the zone.", "PUT", _AGGREGATE),
    ("os-aggregates:delete", ADMIN, "Delete one.", "DELETE", _AGGREGATE),
    ("os-aggregates:add_host", ADMIN, "Add a host.", "POST", f"{_AGGREGATE}/action"),
    ("os-aggregates:remove_host", ADMIN, "Remove a host.", "POST", f"{_AGGREGATE}/action"),
    ("os-aggregates:set_metadata", ADMIN, "Set metadata.", "POST", f"{_AGGREGATE}/action"),
    ("os-availability-zone:list", ANYONE, "List zones.", "GET", "/os-availability-zone"),
    (
        "os-availability-zone:detail",
        ADMIN,
        "With their hosts.",
        "GET",
        "/os-availability-zone/detail",
    ),
    ("extensions", ANYONE, "List extensions, show one.", "GET", "/extensions"),
    ("limits", ANYONE, "Show one's limits and usage.", "GET", "/limits"),
    ("limits:other_project", ADMIN, "Another project's.", "GET", "/limits"),
    ("os-quota-sets:show", PROJECT_READER, "Show quotas.", "GET", "/os-quota-sets/{project_id}"),
    (
        "os-quota-sets:detail",
        PROJECT_READER,
        "With usage.",
        "GET",
        "/os-quota-sets/{project_id}/detail",
    ),
    (
        "os-quota-sets:defaults",
        ANYONE,
        "Show the defaults.",
        "GET",
        "/os-quota-sets/{project_id}/defaults",
    ),
    ("os-quota-sets:update", ADMIN, "Set quotas.", "PUT", "/os-quota-sets/{project_id}"),
    ("os-quota-sets:delete", ADMIN, "Reset quotas.", "DELETE", "/os-quota-sets/{project_id}"),
)

CACHE_IMAGES = "compute:aggregates:images"
REQUESTED_DESTINATION = "compute:servers:create:requested_destination"
ANY_ADDRESS = "micronova:servers:create:any_address"
NEAR_HOST = "micronova:servers:create:near_host_ip"
EXPLAIN = "micronova:explanations:show"
PREVIEW = "micronova:schedule:preview"
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
TOPOLOGY = "compute:server:topology:index"
TOPOLOGY_OF_HOST = "compute:server:topology:host:index"
VMID_READ = "micronova:vmid:read"
METRICS = "micronova:metrics:read"

PREFIX = "os_compute_api:"

RULES: tuple[policy.DocumentedRuleDefault, ...] = (
    *(
        rule(PREFIX + name, check, text, (method, path))
        for name, check, text, method, path in _ROWS
    ),
    rule(
        TOPOLOGY,
        PROJECT_READER,
        "Show a server's NUMA topology.",
        ("GET", f"{_SERVER}/topology"),
    ),
    rule(TOPOLOGY_OF_HOST, ADMIN, "With host nodes.", ("GET", f"{_SERVER}/topology")),
    rule(CACHE_IMAGES, ADMIN, "Cache images.", ("POST", f"{_AGGREGATE}/images")),
    rule(REQUESTED_DESTINATION, ADMIN, "Choose host or hypervisor.", ("POST", "/servers")),
    rule(ANY_ADDRESS, ADMIN, "With fixed_ip outside of the pool.", ("POST", "/servers")),
    rule(NEAR_HOST, ADMIN, "With the hint build_near_host_ip.", ("POST", "/servers")),
    rule(EXPLAIN, PROJECT_READER, "Read what happened.", ("GET", "/explanations/{subject}")),
    rule(EXPLAIN_ALL, ADMIN, "With hosts and tasks.", ("GET", "/explanations/{subject}")),
    rule(ADOPT, ADMIN, "Adopt an existing VM.", ("POST", "/adoptions")),
    rule(RELEASE, ADMIN, "Unmanage a server; its VM stays.", ("POST", f"{_SERVER}/action")),
    rule(MARK, ADMIN, "Rewrite an edited owner mark.", ("POST", f"{_SERVER}/action")),
    rule(HOLD, PROJECT_MEMBER, "Hold a server's retries.", ("POST", f"{_SERVER}/action")),
    rule(RELEASE_HOLD, PROJECT_MEMBER, "Release a hold.", ("POST", f"{_SERVER}/action")),
    rule(RETRY, ADMIN, "Retry a waiting operation.", ("POST", f"{_SERVER}/action")),
    rule(FORGET, ADMIN, "Abandon a server whose VM isn't ours.", ("POST", f"{_SERVER}/action")),
    rule(PREVIEW, ADMIN, "Dry-run a create.", ("POST", "/schedule")),
    rule(
        CAPACITY,
        ADMIN,
        "See how many servers would fit, also without a host.",
        ("GET", "/capacity"),
        ("GET", "/evacuations/{host}"),
    ),
    rule(REBALANCE, ADMIN, "See migrations that would balance hosts.", ("GET", "/rebalance")),
    rule(
        BULK_MIGRATIONS_READ,
        ADMIN,
        "See drains and rebalances, and what a drain would do.",
        ("GET", "/bulk-migrations"),
        ("GET", "/bulk-migrations/{number}"),
        ("GET", "/drains/{host}"),
    ),
    rule(
        BULK_MIGRATIONS_BEGIN,
        ADMIN,
        "Drain a host, or rebalance the cloud.",
        ("POST", "/bulk-migrations"),
    ),
    rule(
        BULK_MIGRATIONS_STEER,
        ADMIN,
        "Pause, resume or cancel a drain or a rebalance.",
        ("POST", "/bulk-migrations/{number}/action"),
    ),
    rule(AUDIT_BEGIN, ADMIN, "Start an audit.", ("POST", "/audits")),
    rule(AUDIT_READ, ADMIN, "Read audits and findings.", ("GET", "/audit/findings")),
    rule(AUDIT_HEAL, ADMIN, "Heal a finding.", ("POST", "/audit/findings/{finding_id}/action")),
    rule(VMID_READ, ADMIN, "Read reserved and quarantined VMIDs.", ("GET", "/vmids")),
    rule(METRICS, ADMIN, "Read numbers for monitoring.", ("GET", "/metrics")),
)


def named(name: str) -> str:
    """Return the full name of one of Nova's rules."""
    return PREFIX + name
