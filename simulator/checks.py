"""Checks of single values. Each returns Proxmox VE's error message, or None."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from urllib.parse import unquote

Check = Callable[[str], str | None]

_DNS = re.compile(
    r"^(?=.{1,253}$)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
    r"(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$"
)
_CONFIG_ID = re.compile(r"^[a-zA-Z][a-zA-Z0-9_-]+$")
_STORAGE_ID = re.compile(r"^[a-zA-Z][a-zA-Z0-9\-_.]*[a-zA-Z0-9]$")
_UUID = re.compile(r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
_MAC = re.compile(r"^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$")
_SHAPES = {
    "boolean": re.compile("[01]"),
    "integer": re.compile(r"-?\d+"),
    "number": re.compile(r"-?\d+(\.\d+)?"),
}
_TAG = re.compile(r"^[a-z0-9_][a-z0-9_\-+.]*$", re.IGNORECASE)


def of_type(kind: str, value: str) -> str | None:
    """Check a number or a boolean; the API takes only 0 and 1 as booleans."""
    shape = _SHAPES.get(kind)
    if shape is None or shape.fullmatch(value):
        return None
    return f"type check ('{kind}') failed - got '{value}'"


def bounds(value: str, minimum: float | str | None, maximum: float | str | None) -> str | None:
    """Check the bounds of a number."""
    if minimum is not None and float(value) < float(minimum):
        return f"value must have a minimum value of {minimum}"
    if maximum is not None and float(value) > float(maximum):
        return f"value must have a maximum value of {maximum}"
    return None


def length(value: str, maximum: int | None, minimum: int | None) -> str | None:
    """Check the length of a string."""
    if maximum is not None and len(value) > maximum:
        return f"value may only be {maximum} characters long"
    if minimum is not None and len(value) < minimum:
        return f"value must be at least {minimum} characters long"
    return None


def one_of(value: str, values: Sequence[str] | None) -> str | None:
    """Check that a value is listed."""
    if values is None or value in values:
        return None
    return f"value '{value}' does not have a value in the enumeration '{', '.join(values)}'"


def vmid(value: str) -> str | None:
    """Accept a VMID: 100 to 999999999."""
    if re.fullmatch(r"[1-9]\d{2,8}", value):
        return None
    return "invalid format - value does not look like a valid VM ID\n"


def node_name(value: str) -> str | None:
    """Accept a node name."""
    if _DNS.match(value) and "." not in value:
        return None
    return "invalid format - value does not look like a valid node name\n"


def dns_name(value: str) -> str | None:
    """Accept a DNS name, the form of VM names."""
    if _DNS.match(value):
        return None
    return "invalid format - value does not look like a valid DNS name\n"


def config_id(value: str) -> str | None:
    """Accept a configuration id of at least two characters."""
    return (
        None
        if _CONFIG_ID.match(value)
        else (f"invalid format - invalid configuration ID '{value}'\n")
    )


def ha_sid(value: str) -> str | None:
    """Accept an HA resource such as `vm:100`, or a VMID alone."""
    if re.fullmatch(r"(vm:|ct:)?[1-9]\d{2,8}", value):
        return None
    return f"invalid format - unable to parse HA resource ID '{value}'\n"


def storage_id(value: str) -> str | None:
    """Accept a storage id."""
    return (
        None
        if _STORAGE_ID.match(value)
        else (f"invalid format - storage ID '{value}' contains illegal characters\n")
    )


def bare_config_id(value: str) -> str | None:
    """Accept a pool id: like a configuration id, but one character is enough."""
    return (
        None
        if re.fullmatch(r"[A-Za-z0-9.\-_/]+", value)
        else (f"invalid format - value '{value}' does not look like a valid pool name\n")
    )


def uuid(value: str) -> str | None:
    """Accept a UUID."""
    return None if _UUID.match(value) else "value does not match the regex pattern"


def mac(value: str) -> str | None:
    """Accept a unicast MAC address."""
    if _MAC.match(value) and not int(value[:2], 16) & 1:
        return None
    return "invalid format - value does not look like a valid unicast MAC address\n"


def tags(value: str) -> str | None:
    """Accept a list of tags."""
    for tag in re.split(r"[,; ]+", value.strip()):
        if tag and not _TAG.match(tag):
            return f"invalid format - invalid characters in tag '{tag}'\n"
    return None


def url_encoded(value: str) -> str | None:
    """Accept a fully percent-encoded string, as `sshkeys` must be."""
    if re.fullmatch(r"[-%a-zA-Z0-9_.!~*'()]*", value) and unquote(value) is not None:
        return None
    return f"invalid format - invalid urlencoded string: {value}\n"


def _network(value: str, version: int, words: tuple[str, ...]) -> bool:
    if value in words:
        return True
    try:
        ipaddress.ip_interface(value)
    except ValueError:
        return False
    return "/" in value and ipaddress.ip_interface(value).version == version


def ipv4_config(value: str) -> str | None:
    """Accept `dhcp` or an IPv4 address with prefix."""
    if _network(value, 4, ("dhcp",)):
        return None
    return "invalid format - value does not look like a valid ipv4 network configuration\n"


def ipv6_config(value: str) -> str | None:
    """Accept `dhcp`, `auto` or an IPv6 address with prefix."""
    if _network(value, 6, ("dhcp", "auto")):
        return None
    return "invalid format - value does not look like a valid ipv6 network configuration\n"


def _address(value: str, version: int) -> bool:
    try:
        return ipaddress.ip_address(value).version == version
    except ValueError:
        return False


def ipv4(value: str) -> str | None:
    """Accept an IPv4 address."""
    return (
        None
        if _address(value, 4)
        else ("invalid format - value does not look like a valid ipv4 address\n")
    )


def ipv6(value: str) -> str | None:
    """Accept an IPv6 address."""
    return (
        None
        if _address(value, 6)
        else ("invalid format - value does not look like a valid ipv6 address\n")
    )


def ip(value: str) -> str | None:
    """Accept an address of either family."""
    if _address(value, 4) or _address(value, 6):
        return None
    return "invalid format - value does not look like a valid IP address\n"


def cidr(value: str) -> str | None:
    """Accept a network of either family, with its prefix."""
    try:
        ipaddress.ip_network(value)
    except ValueError:
        return "invalid format - value does not look like a valid CIDR network\n"
    return None if "/" in value else "invalid format - value is no network\n"


def address_or_network(value: str) -> str | None:
    """Accept an address, a network, or the name of an alias."""
    if re.fullmatch(r"((dc|guest)/)?[A-Za-z][A-Za-z0-9\-_]+", value):
        return None
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return "invalid format - value does not look like a valid IP address or CIDR network\n"
    return None
