"""Checks of single values. Each returns Proxmox VE's error message, or None."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
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
_TAG = re.compile(r"^[a-z0-9_][a-z0-9_\-+.]*$", re.IGNORECASE)


def integer(minimum: int | None = None, maximum: int | None = None) -> Check:
    """Return a check for an integer within bounds."""

    def check(value: str) -> str | None:
        if not re.fullmatch(r"-?\d+", value):
            return f"type check ('integer') failed - got '{value}'"
        return _bounds(int(value), minimum, maximum)

    return check


def number(minimum: int | None = None, maximum: int | None = None) -> Check:
    """Return a check for a number within bounds."""

    def check(value: str) -> str | None:
        try:
            return _bounds(float(value), minimum, maximum)
        except ValueError:
            return f"type check ('number') failed - got '{value}'"

    return check


def _bounds(value: float, minimum: int | None, maximum: int | None) -> str | None:
    if minimum is not None and value < minimum:
        return f"value must have a minimum value of {minimum}"
    if maximum is not None and value > maximum:
        return f"value must have a maximum value of {maximum}"
    return None


def boolean(value: str) -> str | None:
    """Accept 0 and 1; the API takes nothing else."""
    return None if value in ("0", "1") else f"type check ('boolean') failed - got '{value}'"


def text(maximum: int | None = None, minimum: int | None = None) -> Check:
    """Return a check for a string of limited length."""

    def check(value: str) -> str | None:
        if maximum is not None and len(value) > maximum:
            return f"value may only be {maximum} characters long"
        if minimum is not None and len(value) < minimum:
            return f"value must be at least {minimum} characters long"
        return None

    return check


def one_of(*values: str) -> Check:
    """Return a check for one of the values listed."""

    def check(value: str) -> str | None:
        if value in values:
            return None
        return f"value '{value}' does not have a value in the enumeration '{', '.join(values)}'"

    return check


def pattern(expression: str) -> Check:
    """Return a check for a value that matches a regular expression."""
    compiled = re.compile(expression)

    def check(value: str) -> str | None:
        return None if compiled.search(value) else "value does not match the regex pattern"

    return check


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


def snapshot_name(value: str) -> str | None:
    """Accept a configuration id of 2 to 40 characters."""
    return config_id(value) or text(40)(value)


def ha_sid(value: str) -> str | None:
    """Accept an HA resource such as `vm:100`, or a VMID alone."""
    if re.fullmatch(r"(vm:|ct:)?[1-9]\d{2,8}", value):
        return None
    return f"invalid format - unable to parse HA resource ID '{value}'\n"


def sdn_id(value: str) -> str | None:
    """Accept the id of a zone or vnet: 2 to 8 letters and digits."""
    if len(value) > 8:
        return text(8)(value)
    if re.fullmatch(r"[a-zA-Z][a-zA-Z0-9]{0,6}[a-zA-Z0-9]", value):
        return None
    return "value does not match the regex pattern"


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


def firewall_name(maximum: int, minimum: int) -> Check:
    """Return a check for the name of a security group, alias, IP set or action."""
    length, shape = text(maximum, minimum), pattern(r"^[A-Za-z][A-Za-z0-9\-_]+$")

    def check(value: str) -> str | None:
        return length(value) or shape(value)

    return check


def address_or_network(value: str) -> str | None:
    """Accept an address, a network, or the name of an alias."""
    if re.fullmatch(r"((dc|guest)/)?[A-Za-z][A-Za-z0-9\-_]+", value):
        return None
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return "invalid format - value does not look like a valid IP address or CIDR network\n"
    return None
