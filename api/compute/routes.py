"""The whole compute API as one table.

A row is a path under `/v2.1`; what guards its operations stands at the resource's methods.
"""

from __future__ import annotations

import re

from api import rows
from api.compute import policies
from api.compute.operation import ComputeApi
from api.compute.resources.consoles import ConsoleTokens, RemoteConsoles
from api.compute.resources.external_events import ExternalEvents
from api.compute.resources.flavors.access import FlavorAccess
from api.compute.resources.flavors.collection import Flavors
from api.compute.resources.flavors.extra_specs import FlavorExtraSpecs
from api.compute.resources.former.extensions import Extensions
from api.compute.resources.former.hosts import Hosts
from api.compute.resources.former.images import ImageMetadata, Images
from api.compute.resources.former.networks import FloatingIps, Networks, TenantNetworks
from api.compute.resources.former.removed import REMOVED, REMOVED_ACTIONS, Removed
from api.compute.resources.former.security_groups import SecurityGroupRules, SecurityGroups
from api.compute.resources.former.volumes import OldSnapshots, OldVolumes
from api.compute.resources.hosts.aggregates import Aggregates
from api.compute.resources.hosts.availability_zones import AvailabilityZones
from api.compute.resources.hosts.hypervisors import Hypervisors
from api.compute.resources.hosts.services import Services
from api.compute.resources.instance_actions import InstanceActions
from api.compute.resources.keypairs import KeyPairs
from api.compute.resources.migrations import Migrations, ServerMigrations
from api.compute.resources.own.activity import Operations
from api.compute.resources.own.audits import Audits, Findings, Restores
from api.compute.resources.own.bulk_migrations import BulkMigrations, Drains
from api.compute.resources.own.explanations import Explanations
from api.compute.resources.own.fits import Fits
from api.compute.resources.own.host_tasks import HostTasks
from api.compute.resources.own.measurements import HostMetrics, ServerMetrics
from api.compute.resources.own.metrics import Metrics
from api.compute.resources.own.queues import Queues
from api.compute.resources.own.storages import Storages
from api.compute.resources.own.total_capacity import TotalCapacity
from api.compute.resources.own.vmids import Vmids
from api.compute.resources.own.waiting import HostsForWaiting, WaitingServers
from api.compute.resources.own.whatif import CapacityLeft, Evacuations, Rebalance, Schedule
from api.compute.resources.quotas import Limits, QuotaClassSets, QuotaSets
from api.compute.resources.server_groups import ServerGroups
from api.compute.resources.servers.actions import ServerActions
from api.compute.resources.servers.collection import Servers
from api.compute.resources.servers.extras import ServerDiagnostics, ServerPassword, ServerTopology
from api.compute.resources.servers.interfaces import ServerInterfaces
from api.compute.resources.servers.ips import ServerIps
from api.compute.resources.servers.manage import Adoptions
from api.compute.resources.servers.metadata import ServerMetadata
from api.compute.resources.servers.security_groups import ServerSecurityGroups
from api.compute.resources.servers.tags import ServerTags
from api.compute.resources.servers.volumes import ServerVolumes
from api.compute.resources.usage import SimpleTenantUsage
from api.compute.resources.usage_audit_log import UsageAuditLog
from api.rows import Row
from api.versioned import Cloud
from web import protected
from web.microversions import parse
from web.protected import Protected, Served

VERSION = "/v2.1"


def _removed(path: str) -> Row:
    """Return the row of a path that answers 410."""
    return Row(path, Removed, dict.fromkeys(REMOVED[path], "gone"))


#: the last version with the name that novaclient created servers with volumes under
_BOOT = {"until": parse("2.102")}

ROUTES = (
    Row("/servers", Servers, {"GET": "index", "POST": "create"}),
    Row("/servers/detail", Servers, {"GET": "detail"}),
    Row("/servers/{server_id}", Servers, {"GET": "show", "PUT": "update", "DELETE": "delete"}),
    Row(
        "/servers/{server_id}/action",
        ServerActions,
        {"POST": ()},
        {
            "os-start": "start",
            "os-stop": "stop",
            "reboot": "reboot",
            "pause": "pause",
            "unpause": "unpause",
            "suspend": "suspend",
            "resume": "resume",
            "resize": "resize",
            "os-migrateLive": "migrate_live",
            "migrate": "migrate",
            "evacuate": "evacuate",
            "confirmResize": "confirm_resize",
            "revertResize": "revert_resize",
            "changePassword": "change_password",
            "addSecurityGroup": "add_security_group",
            "removeSecurityGroup": "remove_security_group",
            "addFixedIp": "add_fixed_ip",
            "removeFixedIp": "remove_fixed_ip",
            "rebuild": "rebuild",
            "shelve": "shelve",
            "shelveOffload": "shelve_offload",
            "unshelve": "unshelve",
            "createImage": "create_image",
            "createBackup": "create_backup",
            "rescue": "rescue",
            "unrescue": "unrescue",
            "lock": "lock",
            "unlock": "unlock",
            "forceDelete": "force_delete",
            "restore": "restore",
            "trigger_crash_dump": "trigger_crash_dump",
            "os-resetState": "reset_state",
            "resetNetwork": "reset_network",
            "injectNetworkInfo": "inject_network_info",
            "os-getVNCConsole": "get_vnc_console",
            "os-getSPICEConsole": "get_spice_console",
            "os-getSerialConsole": "get_serial_console",
            "os-getRDPConsole": "get_rdp_console",
            "os-getConsoleOutput": "get_console_output",
            "release": "release",
            "mark": "mark",
            "hold": "hold",
            "release-hold": "release_hold",
            "retry": "retry",
            "forget": "forget",
        },
    ),
    # Facts from nova's volumes_boot.py: another name of servers, with the actions of its
    # servers.py.
    Row(
        "/os-volumes_boot",
        Servers,
        {"GET": "index", "POST": "create"},
        guard=_BOOT,
    ),
    Row("/os-volumes_boot/detail", Servers, {"GET": "detail"}, guard=_BOOT),
    Row(
        "/os-volumes_boot/{server_id}",
        Servers,
        {"GET": "show", "PUT": "update", "DELETE": "delete"},
        guard=_BOOT,
    ),
    Row(
        "/os-volumes_boot/{server_id}/action",
        ServerActions,
        {"POST": ()},
        {
            "os-start": "start",
            "os-stop": "stop",
            "reboot": "reboot",
            "resize": "resize",
            "confirmResize": "confirm_resize",
            "revertResize": "revert_resize",
            "rebuild": "rebuild",
            "createImage": "create_image",
            "trigger_crash_dump": "trigger_crash_dump",
        },
        guard=_BOOT,
    ),
    Row(
        "/servers/{server_id}/metadata",
        ServerMetadata,
        {"GET": "index", "POST": "create", "PUT": "update_all"},
    ),
    Row(
        "/servers/{server_id}/metadata/{key}",
        ServerMetadata,
        {"GET": "show", "PUT": "update", "DELETE": "delete"},
    ),
    Row(
        "/servers/{server_id}/tags",
        ServerTags,
        {"GET": "index", "PUT": "update_all", "DELETE": "delete_all"},
    ),
    Row(
        "/servers/{server_id}/tags/{tag}",
        ServerTags,
        {"GET": "show", "PUT": "update", "DELETE": "delete"},
    ),
    Row("/servers/{server_id}/ips", ServerIps, {"GET": "index"}),
    Row("/servers/{server_id}/ips/{network}", ServerIps, {"GET": "show"}),
    Row("/servers/{server_id}/os-instance-actions", InstanceActions, {"GET": "index"}),
    Row(
        "/servers/{server_id}/os-instance-actions/{request_id}",
        InstanceActions,
        {"GET": "show"},
    ),
    Row("/servers/{server_id}/topology", ServerTopology, {"GET": "index"}),
    Row(
        "/servers/{server_id}/os-server-password",
        ServerPassword,
        {"GET": "index", "DELETE": "clear"},
    ),
    Row("/servers/{server_id}/os-interface", ServerInterfaces, {"GET": "index", "POST": "create"}),
    Row(
        "/servers/{server_id}/os-interface/{port_id}",
        ServerInterfaces,
        {"GET": "show", "DELETE": "delete"},
    ),
    Row(
        "/servers/{server_id}/os-volume_attachments",
        ServerVolumes,
        {"GET": "index", "POST": "create"},
    ),
    Row(
        "/servers/{server_id}/os-volume_attachments/{volume_id}",
        ServerVolumes,
        {"GET": "show", "PUT": "update", "DELETE": "delete"},
    ),
    Row("/servers/{server_id}/os-security-groups", ServerSecurityGroups, {"GET": "index"}),
    Row("/servers/{server_id}/diagnostics", ServerDiagnostics, {"GET": "index"}),
    Row("/servers/{server_id}/migrations", ServerMigrations, {"GET": "index"}),
    Row(
        "/servers/{server_id}/migrations/{migration_id}",
        ServerMigrations,
        {"GET": "show", "DELETE": "abort"},
    ),
    Row(
        "/servers/{server_id}/migrations/{migration_id}/action",
        ServerMigrations,
        {"POST": ()},
        {"force_complete": "force_complete"},
    ),
    Row("/servers/{server_id}/remote-consoles", RemoteConsoles, {"POST": "create"}),
    Row("/os-console-auth-tokens/{token}", ConsoleTokens, {"GET": "show"}),
    Row("/flavors", Flavors, {"GET": "index", "POST": "create"}),
    Row("/flavors/detail", Flavors, {"GET": "detail"}),
    Row("/flavors/{flavor_id}", Flavors, {"GET": "show", "PUT": "update", "DELETE": "delete"}),
    Row(
        "/flavors/{flavor_id}/action",
        FlavorAccess,
        {"POST": ()},
        {"addTenantAccess": "add", "removeTenantAccess": "remove"},
    ),
    Row("/flavors/{flavor_id}/os-flavor-access", FlavorAccess, {"GET": "index"}),
    Row(
        "/flavors/{flavor_id}/os-extra_specs",
        FlavorExtraSpecs,
        {"GET": "index", "POST": "create"},
    ),
    Row(
        "/flavors/{flavor_id}/os-extra_specs/{key}",
        FlavorExtraSpecs,
        {"GET": "show", "PUT": "update", "DELETE": "delete"},
    ),
    Row("/os-keypairs", KeyPairs, {"GET": "index", "POST": "create"}),
    Row("/os-keypairs/{name}", KeyPairs, {"GET": "show", "DELETE": "delete"}),
    Row("/os-server-groups", ServerGroups, {"GET": "index", "POST": "create"}),
    Row("/os-server-groups/{group_id}", ServerGroups, {"GET": "show", "DELETE": "delete"}),
    Row("/os-services", Services, {"GET": "index"}),
    Row(
        "/os-services/{service_id}",
        Services,
        {"PUT": ("update", "update_by_name"), "DELETE": "delete"},
    ),
    Row("/os-hypervisors", Hypervisors, {"GET": "index"}),
    Row("/os-hypervisors/detail", Hypervisors, {"GET": "detail"}),
    Row("/os-hypervisors/statistics", Hypervisors, {"GET": "statistics"}),
    Row("/os-hypervisors/{hypervisor_id}", Hypervisors, {"GET": "show"}),
    Row("/os-hypervisors/{hypervisor_id}/uptime", Hypervisors, {"GET": "uptime"}),
    Row("/os-hypervisors/{hypervisor_id}/search", Hypervisors, {"GET": "search"}),
    Row("/os-hypervisors/{hypervisor_id}/servers", Hypervisors, {"GET": "servers"}),
    Row("/os-aggregates", Aggregates, {"GET": "index", "POST": "create"}),
    Row(
        "/os-aggregates/{aggregate_id}",
        Aggregates,
        {"GET": "show", "PUT": "update", "DELETE": "delete"},
    ),
    Row(
        "/os-aggregates/{aggregate_id}/action",
        Aggregates,
        {"POST": ()},
        {"add_host": "add_host", "remove_host": "remove_host", "set_metadata": "set_metadata"},
    ),
    Row("/os-aggregates/{aggregate_id}/images", Aggregates, {"POST": "images"}),
    Row("/os-availability-zone", AvailabilityZones, {"GET": "index"}),
    Row("/os-availability-zone/detail", AvailabilityZones, {"GET": "detail"}),
    Row("/limits", Limits, {"GET": "index"}),
    Row(
        "/os-quota-sets/{project_id}",
        QuotaSets,
        {"GET": "show", "PUT": "update", "DELETE": "delete"},
    ),
    Row("/os-quota-sets/{project_id}/defaults", QuotaSets, {"GET": "defaults"}),
    Row("/os-quota-sets/{project_id}/detail", QuotaSets, {"GET": "detail"}),
    Row("/os-quota-class-sets/{class_name}", QuotaClassSets, {"GET": "show", "PUT": "update"}),
    Row("/os-simple-tenant-usage", SimpleTenantUsage, {"GET": "index"}),
    Row("/os-simple-tenant-usage/{project_id}", SimpleTenantUsage, {"GET": "show"}),
    Row("/os-server-external-events", ExternalEvents, {"POST": "create"}),
    Row("/os-instance_usage_audit_log", UsageAuditLog, {"GET": "index"}),
    Row("/os-instance_usage_audit_log/{before}", UsageAuditLog, {"GET": "show"}),
    Row("/os-migrations", Migrations, {"GET": "index"}),
    Row("/os-hosts", Hosts, {"GET": "index"}),
    Row("/os-hosts/{host}", Hosts, {"GET": "show", "PUT": "update"}),
    Row("/os-hosts/{host}/startup", Hosts, {"GET": "startup"}),
    Row("/os-hosts/{host}/shutdown", Hosts, {"GET": "shutdown"}),
    Row("/os-hosts/{host}/reboot", Hosts, {"GET": "reboot"}),
    Row("/extensions", Extensions, {"GET": "index"}),
    Row("/extensions/{alias}", Extensions, {"GET": "show"}),
    Row("/adoptions", Adoptions, {"POST": "create"}),
    Row("/explanations/{subject}", Explanations, {"GET": "show"}),
    Row("/schedule", Schedule, {"POST": "preview"}),
    Row("/schedule/fit", Fits, {"POST": "ask"}),
    Row("/capacity", CapacityLeft, {"GET": "show"}),
    Row("/capacity/total", TotalCapacity, {"GET": "show"}),
    Row("/evacuations/{host}", Evacuations, {"GET": "show"}),
    Row("/rebalance", Rebalance, {"GET": "show"}),
    Row("/drains/{host}", Drains, {"GET": "show"}),
    Row("/bulk-migrations", BulkMigrations, {"GET": "index", "POST": "create"}),
    Row("/bulk-migrations/{number}", BulkMigrations, {"GET": "show"}),
    Row(
        "/bulk-migrations/{number}/action",
        BulkMigrations,
        {"POST": ()},
        {"pause": "pause", "resume": "resume", "cancel": "cancel"},
    ),
    Row("/vmids", Vmids, {"GET": "index"}),
    Row("/metrics", Metrics, {"GET": "show"}),
    Row("/servers/{server_id}/metrics", ServerMetrics, {"GET": "show"}),
    Row("/hosts/{host}/metrics", HostMetrics, {"GET": "show"}),
    Row("/hosts/{host}/tasks", HostTasks, {"GET": "index"}),
    Row("/storages", Storages, {"GET": "index"}),
    Row("/queues", Queues, {"GET": "index"}),
    Row("/operations", Operations, {"GET": "index"}),
    Row("/waiting", WaitingServers, {"GET": "index"}),
    Row("/waiting/hosts", HostsForWaiting, {"GET": "show"}),
    Row("/audits", Audits, {"GET": "index", "POST": "create"}),
    Row("/audits/{audit_id}", Audits, {"GET": "show"}),
    Row("/restores", Restores, {"POST": "create"}),
    Row("/audit/findings", Findings, {"GET": "index"}),
    Row("/audit/findings/{finding_id}", Findings, {"GET": "show"}),
    Row("/audit/findings/{finding_id}/action", Findings, {"POST": ()}, {"heal": "heal"}),
    # What others' APIs have, as clients of old ask for it
    Row("/images", Images, {"GET": "index"}),
    Row("/images/detail", Images, {"GET": "detail"}),
    Row("/images/{image}", Images, {"GET": "show", "DELETE": "delete"}),
    Row(
        "/images/{image}/metadata",
        ImageMetadata,
        {"GET": "index", "POST": "create", "PUT": "update_all"},
    ),
    Row(
        "/images/{image}/metadata/{key}",
        ImageMetadata,
        {"GET": "show", "PUT": "update", "DELETE": "delete"},
    ),
    Row("/os-networks", Networks, {"GET": "index", "POST": "gone"}),
    Row("/os-networks/{key}", Networks, {"GET": "show", "DELETE": "gone"}),
    Row("/os-tenant-networks", TenantNetworks, {"GET": "index", "POST": "gone"}),
    Row("/os-tenant-networks/{key}", TenantNetworks, {"GET": "show", "DELETE": "gone"}),
    Row("/os-security-groups", SecurityGroups, {"GET": "index", "POST": "create"}),
    Row(
        "/os-security-groups/{group}",
        SecurityGroups,
        {"GET": "show", "PUT": "update", "DELETE": "delete"},
    ),
    Row("/os-security-group-rules", SecurityGroupRules, {"POST": "create"}),
    Row("/os-security-group-rules/{rule}", SecurityGroupRules, {"DELETE": "delete"}),
    Row("/os-floating-ips", FloatingIps, {"GET": "index", "POST": "create"}),
    Row("/os-floating-ips/{key}", FloatingIps, {"GET": "show", "DELETE": "delete"}),
    Row("/os-floating-ip-pools", FloatingIps, {"GET": "pools"}),
    Row("/os-volumes", OldVolumes, {"GET": "index", "POST": "create"}),
    Row("/os-volumes/detail", OldVolumes, {"GET": "detail"}),
    Row("/os-volumes/{volume_id}", OldVolumes, {"GET": "show", "DELETE": "delete"}),
    Row("/os-snapshots", OldSnapshots, {"GET": "index", "POST": "create"}),
    Row("/os-snapshots/detail", OldSnapshots, {"GET": "detail"}),
    Row("/os-snapshots/{snapshot_id}", OldSnapshots, {"GET": "show", "DELETE": "delete"}),
    *(_removed(path) for path in sorted(REMOVED)),
    *(
        Row(path, Removed, {"POST": ()}, dict.fromkeys(actions, "gone"))
        for path, actions in REMOVED_ACTIONS.items()
    ),
)


def resources(cloud: Cloud) -> dict[str, object]:
    """Return the table as Falcon's resources by path."""
    return rows.resources(ComputeApi(cloud), ROUTES, VERSION)


#: parameters that hold an `id`, a name which Python has taken
_ID = re.compile(r"(/[^/]+)/\{(?:group|key|rule)\}")


def served() -> list[Served]:
    """Return all operations by path, whose parameters have the names of Nova's reference."""
    return [
        (method, _ID.sub(r"\1/{id}", path) if _ID.fullmatch(path) else path, described)
        for row in sorted(ROUTES, key=lambda one: one.path)
        for method, path, described in row.served()
    ]


def operations() -> dict[str, list[Protected]]:
    """Return what each rule protects, as the sample policy lists it."""
    return protected.operations(policies.RULES, served(), policies.SEVERAL)
