"""Specs of profiles: what they may hold, and the create that one stands for.

Facts from senlin/profiles/os/nova/server.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from api import words
from api.clustering.call import Call
from api.compute import call as compute
from api.compute.links import Links
from api.compute.microversions import VERSIONS
from api.compute.resources.servers.create import create_request
from api.compute.schemas import servers as schemas
from api.query import Query
from common.errors import Invalid, NotFound, Unimplemented
from conductor.rpc.servers.servers import CreateServers
from db.reads.groups import named
from web.schemas import versioned

SERVER_TYPE = "os.nova.server"
#: type → its versions, as documents name them
PROFILE_TYPES: Mapping[str, str] = {SERVER_TYPE: "1.0"}
#: a profile's property → its name in the body of a create
_PLAIN: Mapping[str, str] = {
    "name": "name",
    "key_name": "key_name",
    "metadata": "metadata",
    "user_data": "user_data",
    "config_drive": "config_drive",
    "availability_zone": "availability_zone",
    "block_device_mapping_v2": "block_device_mapping_v2",
    "tags": "tags",
    "description": "description",
}
_OTHERS = ("flavor", "image", "networks", "security_groups", "scheduler_hints", "auto_disk_config")
PROPERTIES = frozenset({*_PLAIN, *_OTHERS})
_REFUSED: Mapping[str, str] = {
    "adminPass": "A password is one server's alone; use a key pair.",
    "admin_pass": "A password is one server's alone; use a key pair.",
    "personality": "Use user_data.",
    "context": "A profile is its maker's.",
}
_VALIDATE = versioned(schemas.CREATE, words.BODY)
_NEWEST = VERSIONS.newest
_PLACEHOLDER = "member"


def check_profile_type(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the properties of a profile's spec. Raises Unimplemented, Invalid."""
    kind = spec["type"]
    if kind not in PROFILE_TYPES:
        raise Unimplemented(f"Profiles of the type {kind} are not supported; {SERVER_TYPE} is.")
    if str(spec["version"]) != "1.0":
        raise Invalid(f"The version {spec['version']} of {kind} is not supported; 1.0 is.")
    properties: Mapping[str, Any] = spec.get("properties") or {}
    for name, sentence in _REFUSED.items():
        if name in properties:
            raise Invalid(f"The property {name} is not supported. {sentence}")
    unknown = sorted(set(properties) - PROPERTIES)
    if unknown:
        raise Invalid(f"Unrecognizable spec item '{unknown[0]}'")
    return properties


def create_of(call: Call, spec: Mapping[str, Any]) -> CreateServers:
    """Return the create of one server of a profile, checked as `POST /servers` checks it.

    What it names must exist, and its maker must be allowed to use it. Raises Invalid, Forbidden,
    Unimplemented.
    """
    properties = check_profile_type(spec)
    body = _body(call, properties)
    validate = _VALIDATE.at(_NEWEST)
    if validate is not None:
        validate(body)
    asked = compute.Call(
        cloud=call.cloud,
        ctxt=call.ctxt,
        version=_NEWEST,
        query=Query.parse(""),
        body=body,
        links=Links(""),
    )
    asked.check("servers:create", {"project_id": call.project, "user_id": call.ctxt.user_id})
    try:
        request = create_request(asked)
    except NotFound as error:
        raise Invalid(error.message, **error.details) from error
    name = str(properties.get("name") or "")
    named_networks = bool(properties.get("networks"))
    return dataclasses.replace(
        request, name=name, admin_password=None, needs_network=named_networks
    )


def _body(call: Call, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a create, with IDs in place of names."""
    server: dict[str, Any] = {
        there: properties[name]
        for name, there in _PLAIN.items()
        if properties.get(name) is not None
    }
    server.setdefault("name", _PLACEHOLDER)
    if properties.get("flavor") is None:
        raise Invalid("Required spec item 'flavor' not provided")
    server["flavorRef"] = _named(call, named.flavor, "flavor", properties["flavor"])
    if properties.get("image"):
        server["imageRef"] = _named(call, named.image, "image", properties["image"])
    server["networks"] = _networks(call, properties.get("networks"))
    groups = properties.get("security_groups") or []
    if not isinstance(groups, list):
        raise Invalid("The property security_groups must be a list.")
    if groups:
        server["security_groups"] = [{"name": one} for one in groups]
    if properties.get("auto_disk_config") is not None:
        server["OS-DCF:diskConfig"] = "AUTO" if properties["auto_disk_config"] else "MANUAL"
    body: dict[str, Any] = {"server": server}
    if properties.get("scheduler_hints"):
        body["os:scheduler_hints"] = properties["scheduler_hints"]
    return body


def _networks(call: Call, wanted: Any) -> Any:
    """Return the networks of each member: ports and addresses can't be several members'."""
    if not wanted:
        return "auto"
    if not isinstance(wanted, list):
        raise Invalid("The property networks must be a list.")
    found = []
    for one in wanted:
        if not isinstance(one, dict) or set(one) - {"network", "uuid"} or len(one) != 1:
            raise Invalid(
                "Each of the networks must be {'network': its name or ID}: a port or an address "
                "can be one server's only."
            )
        found.append({"uuid": _named(call, named.network, "network", next(iter(one.values())))})
    return found


def _named(call: Call, find: Callable[..., list[str]], noun: str, name: Any) -> str:
    found = call.read(find, str(name), call.reach)
    if not found:
        raise Invalid(f"The specified {noun} '{name}' could not be found.")
    if len(found) > 1:
        raise Invalid(f"More than one {noun} has the name '{name}': give its ID.")
    return found[0]
