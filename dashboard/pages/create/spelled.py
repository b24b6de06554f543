"""The same request elsewhere: as a command of `openstack`, and as Terraform."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from dashboard.cloud import COMPUTE, VERSIONS

_USER_DATA = "user-data"
"""The file that both read user data from."""

Asked = Mapping[str, Any]


def command(body: Mapping[str, Any], flavor: str) -> str:
    """Return the command; what is longer than a line is broken by backslashes."""
    asked = body["server"]
    client = f"openstack --os-compute-api-version {VERSIONS[COMPUTE].split()[-1]}"
    words = [f"{client} server create", *(_option(*one) for one in _options(body, flavor))]
    return " \\\n  ".join([*words, shlex.quote(asked["name"] or "NAME")])


def _option(name: str, value: Any) -> str:
    return f"--{name} {shlex.quote(str(value))}"


def _options(body: Mapping[str, Any], flavor: str) -> Iterator[tuple[str, Any]]:
    asked = body["server"]
    yield "flavor", flavor
    if "imageRef" in asked:
        yield "image", asked["imageRef"]
    for one in asked.get("block_device_mapping_v2", ()):
        # the image is the boot disk already
        if one["destination_type"] == "volume":
            yield "block-device", ",".join(f"{key}={_plain(one[key])}" for key in one)
    if isinstance(asked["networks"], str):
        yield "nic", asked["networks"]
    else:
        yield from (("network", one["uuid"]) for one in asked["networks"])
    for key, option in _OPTIONS.items():
        if key in asked:
            yield option, asked[key]
    yield from (("security-group", one["name"]) for one in asked.get("security_groups", ()))
    yield from (("tag", one) for one in asked.get("tags", ()))
    yield from (("property", f"{key}={one}") for key, one in asked.get("metadata", {}).items())
    yield from (("hint", f"{key}={one}") for key, one in _hints(body).items())
    if "user_data" in asked:
        yield "user-data", _USER_DATA


#: member of the body → option
_OPTIONS: Mapping[str, str] = {
    "key_name": "key-name",
    "availability_zone": "availability-zone",
    "hostname": "hostname",
    "min_count": "min",
    "max_count": "max",
}


def terraform(body: Mapping[str, Any], flavor: str) -> str:
    """Return the resource of Terraform's provider `openstack`."""
    asked = body["server"]
    label = re.sub(r"[^A-Za-z0-9_-]", "_", asked["name"]) or "server"
    label = label if re.match(r"[A-Za-z_]", label) else f"_{label}"
    inner = "\n".join(f"  {line}" for line in _lines(body, flavor))
    return f'resource "openstack_compute_instance_v2" "{label}" {{\n{inner}\n}}'


def _lines(body: Mapping[str, Any], flavor: str) -> Iterator[str]:
    asked = body["server"]
    if "max_count" in asked:
        yield f"count = {_value(asked['max_count'])}"
        yield f'name = {_value(asked["name"])[:-1]}-${{count.index + 1}}"'
    else:
        yield f"name = {_value(asked['name'])}"
    yield f"flavor_name = {_value(flavor)}"
    for key, name in _ATTRIBUTES.items():
        if key in asked:
            yield f"{name} = {_value(asked[key])}"
    if "security_groups" in asked:
        yield f"security_groups = {_value([one['name'] for one in asked['security_groups']])}"
    if "metadata" in asked:
        yield from _block("metadata =", asked["metadata"])
    if "user_data" in asked:
        yield f'user_data = file("{_USER_DATA}")'
    if isinstance(asked["networks"], str):
        yield f"network_mode = {_value(asked['networks'])}"
    else:
        for one in asked["networks"]:
            yield from _block("network", one)
    for one in asked.get("block_device_mapping_v2", ()):
        yield from _block("block_device", one)
    if _hints(body):
        yield from _block("scheduler_hints", _hints(body))


#: member of the body → attribute
_ATTRIBUTES: Mapping[str, str] = {
    "imageRef": "image_id",
    "key_name": "key_pair",
    "availability_zone": "availability_zone",
    "tags": "tags",
}


def _block(head: str, items: Mapping[str, Any]) -> Iterator[str]:
    yield f"{head} {{"
    yield from (f"  {_name(key)} = {_value(one)}" for key, one in items.items())
    yield "}"


def _name(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", key) else _value(key)


def _value(value: Any) -> str:
    """Return a value as HCL, in which `${` and `%{` begin something else.

    >>> _value("a${b}")
    '"a$${b}"'
    """
    return re.sub(r"([$%])\{", r"\1\1{", json.dumps(value, ensure_ascii=False))


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _hints(body: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = body.get("os:scheduler_hints", {})
    return found
