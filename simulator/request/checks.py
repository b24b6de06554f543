"""Checks of single values. Each returns Proxmox VE's error message, or None."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence

Check = Callable[[str], str | None]

_SHAPES = {
    "boolean": re.compile("[01]"),
    "integer": re.compile(r"-?[0-9]+"),
    "number": re.compile(r"-?[0-9]+(\.[0-9]+)?"),
}
_TAG = re.compile(r"^[a-z0-9_][a-z0-9_\-+.]*$", re.IGNORECASE)
_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"


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


def matching(expression: str, message: str) -> Check:
    """Return a check of a format; the message may name the `{value}`."""
    compiled = re.compile(expression)

    def check(value: str) -> str | None:
        if compiled.fullmatch(value):
            return None
        return f"invalid format - {message.format(value=value)}\n"

    return check


vmid = matching(r"[1-9][0-9]{2,8}", "value does not look like a valid VM ID")
node_name = matching(_LABEL, "value does not look like a valid node name")
dns_name = matching(
    rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*", "value does not look like a valid DNS name"
)
config_id = matching("[a-zA-Z][a-zA-Z0-9_-]+", "invalid configuration ID '{value}'")
ha_sid = matching(r"(vm:|ct:)?[1-9][0-9]{2,8}", "unable to parse HA resource ID '{value}'")
storage_id = matching(
    r"[a-zA-Z][a-zA-Z0-9\-_.]*[a-zA-Z0-9]", "storage ID '{value}' contains illegal characters"
)
storage_path = matching(r"/[^;()]+", "value does not look like a valid absolute path")
volume_group = matching(
    r"[a-zA-Z0-9][a-zA-Z0-9\-_.]*[a-zA-Z0-9]", "lvm name '{value}' contains illegal characters"
)
pool_id = matching(r"[A-Za-z0-9.\-_/]+", "value '{value}' does not look like a valid pool name")
unicast_mac = matching(
    "[0-9a-fA-F][02468aceACE](:[0-9a-fA-F]{2}){5}",
    "value does not look like a valid unicast MAC address",
)
# As `sshkeys` must be: encoded throughout.
url_encoded = matching(r"[-%a-zA-Z0-9_.!~*'()]*", "invalid urlencoded string: {value}")


def tags(value: str) -> str | None:
    """Accept a list of tags."""
    for tag in re.split(r"[,; ]+", value.strip()):
        if tag and not _TAG.match(tag):
            return f"invalid format - invalid characters in tag '{tag}'\n"
    return None


def network_config(version: int, *words: str) -> Check:
    """Return a check for an address with its prefix, or one of the words."""

    def check(value: str) -> str | None:
        try:
            interface = None if value in words else ipaddress.ip_interface(value)
        except ValueError:
            wrong = True
        else:
            wrong = interface is not None and ("/" not in value or interface.version != version)
        if not wrong:
            return None
        kind = f"ipv{version} network configuration"
        return f"invalid format - value does not look like a valid {kind}\n"

    return check


def address(kind: str, *versions: int) -> Check:
    """Return a check for an address of these versions of IP."""

    def check(value: str) -> str | None:
        try:
            if ipaddress.ip_address(value).version in versions:
                return None
        except ValueError:
            pass
        return f"invalid format - value does not look like a valid {kind} address\n"

    return check


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
