"""`/extensions`: former extensions of the API, which clients still ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.policies import named
from common.errors import NotFound

#: alias → (Nova's name, what it gave); of Nova's list (extension_info.py) what is here, by alias
EXTENSIONS: Mapping[str, tuple[str, str]] = {
    "OS-DCF": ("DiskConfig", "Servers show how their disk is partitioned."),
    "OS-EXT-AZ": ("ExtendedAvailabilityZone", "Servers show their availability zone."),
    "OS-EXT-IPS": ("ExtendedIps", "Addresses show their type."),
    "OS-EXT-IPS-MAC": ("ExtendedIpsMac", "Addresses show the MAC address of their port."),
    "OS-EXT-SRV-ATTR": ("ExtendedServerAttributes", "Servers show host and instance name."),
    "OS-EXT-STS": ("ExtendedStatus", "Servers show VM, task and power state."),
    "OS-FLV-DISABLED": ("FlavorDisabled", "Flavors show whether they are disabled."),
    "OS-FLV-EXT-DATA": ("FlavorExtraData", "Flavors show their ephemeral disk."),
    "OS-SCH-HNT": ("SchedulerHints", "A create may give hints to the scheduler."),
    "OS-SRV-USG": ("ServerUsage", "Servers show when they were launched and terminated."),
    "os-aggregates": ("Aggregates", "Administrators group hosts."),
    "os-availability-zone": ("AvailabilityZone", "Zones are listed; a create may name one."),
    "os-config-drive": ("ConfigDrive", "Servers show whether a config drive was asked for."),
    "os-extended-hypervisors": ("ExtendedHypervisors", "Hypervisors show their address."),
    "os-extended-quotas": ("ExtendedQuotas", "Quotas can be deleted, and set below what is used."),
    "os-extended-services": ("ExtendedServices", "Services show why they are disabled."),
    "os-flavor-access": ("FlavorAccess", "Flavors are public, or of some projects."),
    "os-flavor-extra-specs": ("FlavorExtraSpecs", "Flavors ask more than sizes of their hosts."),
    "os-flavor-manage": ("FlavorManage", "Administrators create and delete flavors."),
    "os-flavor-rxtx": ("FlavorRxtx", "Flavors show their share of bandwidth."),
    "os-flavor-swap": ("FlavorSwap", "Flavors show their swap."),
    "os-hypervisor-status": ("HypervisorStatus", "Hypervisors show state and status."),
    "os-hypervisors": ("Hypervisors", "Administrators see the hypervisors."),
    "os-instance-actions": ("InstanceActions", "What was done to a server, step by step."),
    "os-keypairs": ("Keypairs", "Users keep public keys for their servers."),
    "os-multiple-create": ("MultipleCreate", "A create may make several servers."),
    "os-quota-sets": ("Quotas", "Projects have quotas."),
    "os-server-group-quotas": ("ServerGroupQuotas", "Also of server groups and their members."),
    "os-server-groups": ("ServerGroups", "Servers are kept together or apart."),
    "os-server-list-multi-status": (
        "ServerListMultiStatus",
        "Lists of servers take several statuses.",
    ),
    "os-server-sort-keys": ("ServerSortKeys", "Lists of servers can be sorted."),
    "os-server-start-stop": ("ServerStartStop", "Servers are started and stopped."),
    "os-services": ("Services", "Administrators see, disable and enable services."),
    "os-used-limits": ("UsedLimits", "Limits show what of them is used."),
    "os-user-data": ("UserData", "A create may give data for the guest."),
}
#: the fields that Nova answers alike for all
_NAMESPACE, _UPDATED = "http://docs.openstack.org/compute/ext/fake_xml", "2014-12-03T00:00:00Z"


class Extensions:
    """The former extensions that are served here."""

    @operation(named("extensions"))
    def index(self, call: Call) -> Any:
        """List extensions by alias."""
        return {"extensions": [_view(alias) for alias in EXTENSIONS]}

    @operation(named("extensions"))
    def show(self, call: Call, alias: str) -> Any:
        """Show an extension."""
        if alias not in EXTENSIONS:
            raise NotFound(f"There is no extension {alias}.")
        return {"extension": _view(alias)}


def _view(alias: str) -> dict[str, Any]:
    name, description = EXTENSIONS[alias]
    return {
        "alias": alias,
        "description": description,
        "links": [],
        "name": name,
        "namespace": _NAMESPACE,
        "updated": _UPDATED,
    }
