"""The aliases of the former extensions of Nova's API, and of what this API has beyond Nova's.

The list does not depend on features. Facts from nova's extension_info.py: old
clients look for an alias before they use a feature.
"""

from __future__ import annotations

from collections.abc import Mapping

#: alias → (Nova's name, what it gave), by alias
EXTENSIONS: Mapping[str, tuple[str, str]] = {
    "NMN": ("Multinic", "Servers get and lose fixed addresses."),
    "OS-DCF": ("DiskConfig", "Servers show how their disk is partitioned."),
    "OS-EXT-AZ": ("ExtendedAvailabilityZone", "Servers show their availability zone."),
    "OS-EXT-IMG-SIZE": ("ImageSize", "Images show their size."),
    "OS-EXT-IPS": ("ExtendedIps", "Addresses show their type."),
    "OS-EXT-IPS-MAC": ("ExtendedIpsMac", "Addresses show the MAC address of their port."),
    "OS-EXT-SRV-ATTR": ("ExtendedServerAttributes", "Servers show host and instance name."),
    "OS-EXT-STS": ("ExtendedStatus", "Servers show VM, task and power state."),
    "OS-FLV-DISABLED": ("FlavorDisabled", "Flavors show whether they are disabled."),
    "OS-FLV-EXT-DATA": ("FlavorExtraData", "Flavors show their ephemeral disk."),
    "OS-SCH-HNT": ("SchedulerHints", "A create may give hints to the scheduler."),
    "OS-SRV-USG": ("ServerUsage", "Servers show when they were launched and terminated."),
    "os-access-ips": ("AccessIPs", "Servers show addresses that their owner names."),
    "os-admin-actions": ("AdminActions", "Administrators reset states of servers."),
    "os-admin-password": ("AdminPassword", "The password of a guest is changed."),
    "os-agents": ("Agents", "Agents in guests, of a driver that is gone."),
    "os-aggregates": ("Aggregates", "Administrators group hosts."),
    "os-assisted-volume-snapshots": (
        "AssistedVolumeSnapshots",
        "Snapshots of volumes by the hypervisor.",
    ),
    "os-attach-interfaces": ("AttachInterfaces", "Servers get and lose ports."),
    "os-availability-zone": ("AvailabilityZone", "Zones are listed; a create may name one."),
    "os-baremetal-ext-status": ("BareMetalExtStatus", "Bare-metal nodes show their state."),
    "os-baremetal-nodes": ("BareMetalNodes", "Bare-metal nodes are listed."),
    "os-block-device-mapping": ("BlockDeviceMapping", "A create may name block devices."),
    "os-block-device-mapping-v2-boot": (
        "BlockDeviceMappingV2Boot",
        "A create may name block devices in their second form.",
    ),
    "os-cell-capacities": ("CellCapacities", "Cells show what is free in them."),
    "os-cells": ("Cells", "Cells of the first kind."),
    "os-certificates": ("Certificates", "Certificates of projects."),
    "os-cloudpipe": ("Cloudpipe", "Servers that give projects a VPN."),
    "os-cloudpipe-update": ("CloudpipeUpdate", "Their addresses are changed."),
    "os-config-drive": ("ConfigDrive", "Servers show whether a config drive was asked for."),
    "os-console-auth-tokens": ("ConsoleAuthTokens", "Tokens of consoles show what they open."),
    "os-console-output": ("ConsoleOutput", "The output of a console is shown."),
    "os-consoles": ("Consoles", "Consoles by a proxy of XenServer."),
    "os-create-backup": ("CreateBackup", "Images of a server are made in rotation."),
    "os-create-server-ext": ("Createserverext", "A create of servers at another path."),
    "os-deferred-delete": ("DeferredDelete", "Deleted servers are kept for a while."),
    "os-evacuate": ("Evacuate", "Servers leave a host that is lost."),
    "os-extended-evacuate-find-host": ("ExtendedEvacuateFindHost", "An evacuation needs no host."),
    "os-extended-floating-ips": (
        "ExtendedFloatingIps",
        "Floating addresses may name a fixed one.",
    ),
    "os-extended-hypervisors": ("ExtendedHypervisors", "Hypervisors show their address."),
    "os-extended-networks": ("ExtendedNetworks", "Networks show more."),
    "os-extended-quotas": ("ExtendedQuotas", "Quotas can be deleted, and set below what is used."),
    "os-extended-rescue-with-image": ("ExtendedRescueWithImage", "A rescue may name an image."),
    "os-extended-services": ("ExtendedServices", "Services show why they are disabled."),
    "os-extended-services-delete": ("ExtendedServicesDelete", "Services are deleted."),
    "os-extended-status": ("ExtendedStatus", "Servers show VM, task and power state."),
    "os-extended-volumes": ("ExtendedVolumes", "Servers show their volumes."),
    "os-fixed-ips": ("FixedIPs", "Fixed addresses are reserved."),
    "os-flavor-access": ("FlavorAccess", "Flavors are public, or of some projects."),
    "os-flavor-extra-specs": ("FlavorExtraSpecs", "Flavors ask more than sizes of their hosts."),
    "os-flavor-manage": ("FlavorManage", "Administrators create and delete flavors."),
    "os-flavor-rxtx": ("FlavorRxtx", "Flavors show their share of bandwidth."),
    "os-flavor-swap": ("FlavorSwap", "Flavors show their swap."),
    "os-floating-ip-dns": ("FloatingIpDns", "Names of floating addresses."),
    "os-floating-ip-pools": ("FloatingIpPools", "Pools of floating addresses are listed."),
    "os-floating-ips": ("FloatingIps", "Floating addresses of a project."),
    "os-floating-ips-bulk": ("FloatingIpsBulk", "Floating addresses are made by the range."),
    "os-fping": ("Fping", "Servers are pinged."),
    "os-hide-server-addresses": ("HideServerAddresses", "Addresses are hidden in some states."),
    "os-hosts": ("Hosts", "Administrators see the hosts."),
    "os-hypervisor-status": ("HypervisorStatus", "Hypervisors show state and status."),
    "os-hypervisors": ("Hypervisors", "Administrators see the hypervisors."),
    "os-instance-actions": ("InstanceActions", "What was done to a server, step by step."),
    "os-instance_usage_audit_log": ("OSInstanceUsageAuditLog", "How far usage was audited."),
    "os-keypairs": ("Keypairs", "Users keep public keys for their servers."),
    "os-lock-server": ("LockServer", "Servers are locked."),
    "os-migrate-server": ("MigrateServer", "Servers are moved, also while they run."),
    "os-migrations": ("Migrations", "Migrations are listed."),
    "os-multiple-create": ("MultipleCreate", "A create may make several servers."),
    "os-networks": ("Networks", "Administrators see the networks."),
    "os-networks-associate": (
        "NetworkAssociationSupport",
        "Networks are given to projects and hosts.",
    ),
    "os-pause-server": ("PauseServer", "Servers are paused."),
    "os-personality": ("Personality", "A create may give files."),
    "os-preserve-ephemeral-rebuild": (
        "PreserveEphemeralOnRebuild",
        "A rebuild may keep the ephemeral disk.",
    ),
    "os-quota-class-sets": ("QuotaClasses", "Quotas of classes."),
    "os-quota-sets": ("Quotas", "Projects have quotas."),
    "os-rescue": ("Rescue", "Servers are rescued."),
    "os-security-group-default-rules": (
        "SecurityGroupDefaultRules",
        "Rules of default security groups.",
    ),
    "os-security-groups": ("SecurityGroups", "Security groups of a project and of its servers."),
    "os-server-diagnostics": ("ServerDiagnostics", "Administrators see what a VM uses."),
    "os-server-external-events": (
        "ServerExternalEvents",
        "Other services report events of servers.",
    ),
    "os-server-group-quotas": ("ServerGroupQuotas", "Also of server groups and their members."),
    "os-server-groups": ("ServerGroups", "Servers are kept together or apart."),
    "os-server-list-multi-status": (
        "ServerListMultiStatus",
        "Lists of servers take several statuses.",
    ),
    "os-server-password": ("ServerPassword", "The encrypted password of a guest is shown."),
    "os-server-sort-keys": ("ServerSortKeys", "Lists of servers can be sorted."),
    "os-server-start-stop": ("ServerStartStop", "Servers are started and stopped."),
    "os-services": ("Services", "Administrators see, disable and enable services."),
    "os-shelve": ("Shelve", "Servers are shelved."),
    "os-simple-tenant-usage": ("SimpleTenantUsage", "What projects have used."),
    "os-suspend-server": ("SuspendServer", "Servers are suspended."),
    "os-tenant-networks": ("OSTenantNetworks", "Projects see their networks."),
    "os-used-limits": ("UsedLimits", "Limits show what of them is used."),
    "os-used-limits-for-admin": (
        "UsedLimitsForAdmin",
        "Administrators see other projects' limits.",
    ),
    "os-user-data": ("UserData", "A create may give data for the guest."),
    "os-user-quotas": ("UserQuotas", "Users of a project have quotas."),
    "os-virtual-interfaces": ("VirtualInterfaces", "Interfaces of servers are listed."),
    "os-volume-attachment-update": ("VolumeAttachmentUpdate", "A server's volume is exchanged."),
    "os-volumes": ("Volumes", "Volumes of a project and of its servers."),
}
#: one more, in the answers below `/v2`
LEGACY: Mapping[str, tuple[str, str]] = {
    "OS-EXT-VIF-NET": ("ExtendedVIFNet", "Interfaces show their network."),
}
#: what Nova's API doesn't have: alias → (name, what it gives, the nouns of its policy rules)
OWN: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "micronova-adoptions": (
        "Adoptions",
        "VMs that exist become servers (/adoptions); servers are released, marked and forgotten.",
        ("adoptions", "servers"),
    ),
    "micronova-audit": (
        "Audit",
        "What a record and Proxmox VE disagree about is found and healed (/audits, "
        "/audit/findings, /restores).",
        ("audit", "record"),
    ),
    "micronova-bulk-migrations": (
        "BulkMigrations",
        "Hosts are drained and rebalanced (/bulk-migrations, /drains/{host}, /rebalance).",
        ("bulk-migrations", "rebalance"),
    ),
    "micronova-capacity": (
        "Capacity",
        "What the cloud has and what is free (/capacity, /capacity/total, /storages).",
        ("capacity", "storages"),
    ),
    "micronova-explanations": (
        "Explanations",
        "Why a server, a volume or a request is as it is (/explanations/{subject}), and who "
        "waits for what (/waiting, /queues, /vmids).",
        ("explanations", "waiting", "queues", "vmid"),
    ),
    "micronova-metrics": (
        "Metrics",
        "Measurements of servers, hosts and storages as Proxmox VE recorded them "
        "(/servers/{server_id}/metrics, /hosts/{host}/metrics), and numbers of the cloud "
        "(/metrics).",
        ("metrics", "server-metrics", "host-metrics"),
    ),
    "micronova-operations": (
        "Operations",
        "Who did what (/operations), and the newest tasks of a node (/hosts/{host}/tasks).",
        ("operations", "host-tasks"),
    ),
    "micronova-schedule": (
        "Schedule",
        "Where a server would be placed, and whether it fits (/schedule, /schedule/fit).",
        ("schedule",),
    ),
}
