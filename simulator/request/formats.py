"""Formats that the API schema only names: a check, or the rules of a property string."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.request import checks
from simulator.request.apischema import Rules
from simulator.request.checks import Check


def _strings(names: str, **formats: str) -> dict[str, dict[str, object]]:
    """Return rules of optional strings: those in `names` without a format, the others with one."""
    free = {name: {"type": "string", "optional": 1} for name in names.split()}
    return free | {
        name: {"type": "string", "optional": 1, "format": form} for name, form in formats.items()
    }


_FLAG = {"type": "boolean", "optional": 1}
_DEFAULT = {"type": "string", "optional": 1, "default_key": 1}

FORMATS: Mapping[str, Check | Rules] = {
    "CIDR": checks.cidr,
    "IPorCIDRorAlias": checks.address_or_network,
    "dns-name": checks.dns_name,
    "ip": checks.address("IP", 4, 6),
    "ipv4": checks.address("ipv4", 4),
    "ipv6": checks.address("ipv6", 6),
    "mac-addr": checks.unicast_mac,
    "pve-configid": checks.config_id,
    "pve-ha-resource-or-vm-id": checks.ha_sid,
    "pve-ipv4-config": checks.network_config(4, "dhcp"),
    "pve-ipv6-config": checks.network_config(6, "dhcp", "auto"),
    "pve-node": checks.node_name,
    "pve-poolid": checks.pool_id,
    "pve-storage-id": checks.storage_id,
    "pve-storage-path": checks.storage_path,
    "pve-storage-vgname": checks.volume_group,
    "pve-tag-list": checks.tags,
    "pve-vmid": checks.vmid,
    "urlencoded": checks.url_encoded,
    "pve-qm-boot": {"legacy": _DEFAULT, **_strings("order")},
    "pve-qm-cicustom": _strings("meta network user vendor"),
    "pve-qm-ipconfig": _strings(
        "", ip="pve-ipv4-config", ip6="pve-ipv6-config", gw="ipv4", gw6="ipv6"
    ),
    "pve-qm-smbios1": {
        **_strings("family manufacturer product serial sku version"),
        "base64": _FLAG,
        "uuid": {
            "type": "string",
            "optional": 1,
            "pattern": "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
        },
    },
    "pve-vm-cpu-conf": {
        "cputype": _DEFAULT,
        **_strings("reported-model flags hv-vendor-id phys-bits guest-phys-bits"),
        "hidden": _FLAG,
    },
}
