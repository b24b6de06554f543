"""The same request elsewhere: as a command of `openstack`, and as Terraform."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dashboard import shell
from dashboard.cloud import COMPUTE, VERSIONS
from dashboard.pages.create.request import NewKey

_USER_DATA = "user-data"
"""The file that both read user data from."""
_PUBLIC_KEY, _PRIVATE_KEY = "public-key", "private-key"
"""Files of a new key pair."""
_KEYPAIR, _SERVER = "openstack_compute_keypair_v2", "openstack_compute_instance_v2"

Asked = Mapping[str, Any]


def command(body: Mapping[str, Any], flavor: str, new: NewKey | None = None) -> str:
    """Return the commands: for the key pair, if it is a new one, and for the server.

    What is longer than a line is broken by backslashes.
    """
    options = (shell.option(name, str(value)) for name, value in _options(body, flavor, new))
    words = [f"{_CLIENT} server create", *options]
    server = " \\\n  ".join([*words, shell.argument(body["server"]["name"] or "NAME")])
    return "\n".join([*(_making(new) if new else ()), server])


_CLIENT = f"openstack --os-compute-api-version {VERSIONS[COMPUTE].split()[-1]}"


def _making(new: NewKey) -> Iterator[str]:
    create, name = f"{_CLIENT} keypair create", shell.argument(_name_of(new))
    if new.public:
        yield f"printf %s {shlex.quote(new.public)} >{_PUBLIC_KEY}"
        yield f"{create} --public-key {_PUBLIC_KEY} {name}"
    else:
        # no client of SSH takes a private key that others may read
        yield f"(umask 077 && {create} --private-key {_PRIVATE_KEY} {name})"


def _name_of(new: NewKey) -> str:
    return new.name or "KEY"


def _options(
    body: Mapping[str, Any], flavor: str, new: NewKey | None
) -> Iterator[tuple[str, Any]]:
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
    if new:
        yield "key-name", _name_of(new)
    elif "key_name" in asked:
        yield "key-name", asked["key_name"]
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
    "availability_zone": "availability-zone",
    "hostname": "hostname",
    "min_count": "min",
    "max_count": "max",
}


def terraform(body: Mapping[str, Any], flavor: str, new: NewKey | None = None) -> str:
    """Return the resources of Terraform's provider `openstack`: the server's is the last."""
    server = _resource(_SERVER, body["server"]["name"], _lines(body, flavor, new))
    if new is None:
        return server
    public = [f"public_key = {_value(new.public)}"] if new.public else []
    key = _resource(_KEYPAIR, new.name, [f"name = {_value(_name_of(new))}", *public])
    return f"{key}\n\n{server}"


def _resource(kind: str, name: str, lines: Iterable[str]) -> str:
    inner = "\n".join(f"  {line}" for line in lines)
    return f'resource "{kind}" "{_label(name)}" {{\n{inner}\n}}'


def _label(name: str) -> str:
    """Return what a resource is called in references.

    >>> _label("9 lives")
    '_9_lives'
    """
    label = re.sub(r"[^A-Za-z0-9_-]", "_", name) or "this"
    return label if re.match(r"[A-Za-z_]", label) else f"_{label}"


def _lines(body: Mapping[str, Any], flavor: str, new: NewKey | None) -> Iterator[str]:
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
    yield from _inside(asked, new)
    if "security_groups" in asked:
        yield f"security_groups = {_value([one['name'] for one in asked['security_groups']])}"
    if "metadata" in asked:
        yield from _block("metadata =", asked["metadata"])
    if isinstance(asked["networks"], str):
        yield f"network_mode = {_value(asked['networks'])}"
    else:
        for one in asked["networks"]:
            yield from _block("network", one)
    for one in asked.get("block_device_mapping_v2", ()):
        yield from _block("block_device", one)
    if _hints(body):
        yield from _block("scheduler_hints", _hints(body))


def _inside(asked: Asked, new: NewKey | None) -> Iterator[str]:
    """Yield what the guest gets: the key pair, the host name, user data."""
    if new:
        yield f"key_pair = {_KEYPAIR}.{_label(new.name)}.name"
    elif "key_name" in asked:
        yield f"key_pair = {_value(asked['key_name'])}"
    if "hostname" in asked:
        yield "# version 3.0 of the provider has no hostname, later ones have"
        yield f"hostname = {_value(asked['hostname'])}"
    if "user_data" in asked:
        yield f'user_data = file("{_USER_DATA}")'


#: member of the body → attribute
_ATTRIBUTES: Mapping[str, str] = {
    "imageRef": "image_id",
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
