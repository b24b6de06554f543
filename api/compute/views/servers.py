"""Views of a server: one table of fields, from which each microversion takes its own.

A view is made once for a request, with what the policy allows the user to see, and then used for
every server of the answer.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.compute.call import Call
from api.compute.links import Links
from api.compute.views import faults
from api.compute.views.hosts import HostStatus
from common import clock
from common.resources import states
from common.resources.states import VmState
from db.reads.servers.servers import Name, Server, faults_of
from db.records import FaultRecord

AUTO = "AUTO"
#: the name of the user data among the attributes of administrators
USER_DATA = "OS-EXT-SRV-ATTR:user_data"
"""What `OS-DCF:diskConfig` says where it isn't `MANUAL`."""
COLLECTION = "servers"

#: statuses that are shown with a progress, in percent
_WITH_PROGRESS = frozenset({"ACTIVE", "BUILD", "MIGRATING", "REBUILD", "RESIZE", "VERIFY_RESIZE"})
_WITH_FAULT = frozenset({"ERROR", "DELETED"})

#: the image properties that Nova shows (nova/objects/image_meta.py)
_IMAGE_PROPERTY = re.compile(r"(hw|os|img)_[a-zA-Z0-9_:. ]{1,250}|traits_required")


@dataclass(frozen=True)
class Sight:
    """What the user may see of the servers of an answer."""

    version: int
    links: Links
    extended: bool
    """Attributes for administrators."""
    extra_specs: bool
    operator: bool
    """Details of faults."""
    host_status: HostStatus | None
    all_fields: bool = True
    """False: a PUT's shorter answer, before 2.75."""
    single: bool = True
    """False: in a list."""


Make = Callable[[Server, Sight], Any]


@dataclass(frozen=True)
class Field:
    """A field of the detailed view: since when, and for whom."""

    name: str
    make: Make
    since: int = 1
    when: Callable[[Sight], bool] = lambda sight: True


def status(server: Server) -> str:
    """Return the status that clients see."""
    if server.deleted_at is not None:
        return states.status(VmState.DELETED, None)
    return states.status(server.vm_state, server.task_state)


@functools.lru_cache(1024)
def host_id(host: str | None, project_id: str) -> str:
    """Return an opaque ID of the host, different for each project."""
    return hashlib.sha224((project_id + host).encode()).hexdigest() if host else ""


def addresses(server: Server, *, extended: bool) -> dict[str, list[dict[str, Any]]]:
    """{network: its addresses}; with MAC and type where `extended`."""
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in server.addresses:
        of_network = found.setdefault(entry["network"], [])
        if not entry.get("ip"):
            continue
        address = {"version": entry["version"], "addr": entry["ip"]}
        if extended:
            address["OS-EXT-IPS:type"] = "fixed"
            address["OS-EXT-IPS-MAC:mac_addr"] = entry["mac"]
        of_network.append(address)
    return found


def _addresses(server: Server, sight: Sight) -> Any:
    if server.vm_state == VmState.BUILDING:
        return {}
    return addresses(server, extended=sight.all_fields)


def _flavor(server: Server, sight: Sight) -> Any:
    flavor = server.flavor
    if sight.version < 47:
        return {"id": flavor["id"], "links": sight.links.bookmark("flavors", flavor["id"])}
    embedded = {
        "vcpus": flavor["vcpus"],
        "ram": flavor["memory_mib"],
        "disk": flavor["disk_gib"],
        "ephemeral": flavor.get("ephemeral_gib", 0),
        "swap": flavor.get("swap_mib", 0),
        "original_name": flavor["name"],
    }
    if sight.extra_specs:
        embedded["extra_specs"] = flavor.get("extra_specs", {})
    return embedded


def _image(server: Server, sight: Sight) -> Any:
    if not server.image_id:
        return ""
    image: dict[str, Any] = {
        "id": server.image_id,
        "links": sight.links.bookmark("images", server.image_id),
    }
    if sight.version >= 98:
        image["properties"] = {
            name: value
            for name, value in server.image_properties.items()
            if value is not None and _IMAGE_PROPERTY.fullmatch(name)
        }
    return image


def disk_config(auto: bool) -> str:
    """Return what `OS-DCF:diskConfig` shows."""
    return AUTO if auto else "MANUAL"


def _hypervisor(server: Server, _sight: Sight) -> Any:
    return server.node and _host(server)


def _host(server: Server) -> str | None:
    """Return the host; a server that is parked shows none, as in Nova."""
    return None if server.vm_state == VmState.SHELVED_OFFLOADED else server.host


def _groups(server: Server, _sight: Sight) -> Any:
    return [server.server_group_uuid] if server.server_group_uuid else []


FIELDS = (
    Field("id", lambda s, _: s.uuid),
    Field("name", lambda s, _: s.name),
    Field("status", lambda s, _: status(s)),
    Field("tenant_id", lambda s, _: s.project_id),
    Field("user_id", lambda s, _: s.user_id),
    Field("metadata", lambda s, _: s.meta),
    Field("hostId", lambda s, _: host_id(_host(s), s.project_id)),
    Field("image", _image),
    Field("flavor", _flavor),
    Field("created", lambda s, _: clock.iso(s.created_at)),
    Field("updated", lambda s, _: clock.iso(s.updated_at or s.created_at)),
    Field("addresses", _addresses),
    Field("accessIPv4", lambda s, _: s.access_ip_v4 or ""),
    Field("accessIPv6", lambda s, _: s.access_ip_v6 or ""),
    Field("links", lambda s, sight: sight.links.item(COLLECTION, s.uuid)),
    Field("OS-DCF:diskConfig", lambda s, _: disk_config(s.auto_disk_config)),
)

#: left out of the answers to PUT before 2.75
FULL_FIELDS = (
    Field("OS-EXT-AZ:availability_zone", lambda s, _: s.availability_zone or ""),
    Field("config_drive", lambda s, _: "True" if s.config_drive else ""),
    Field("key_name", lambda s, _: s.key_name),
    Field("OS-SRV-USG:launched_at", lambda s, _: clock.iso_microseconds(s.launched_at)),
    Field("OS-SRV-USG:terminated_at", lambda s, _: clock.iso_microseconds(s.terminated_at)),
    Field("OS-EXT-STS:task_state", lambda s, _: s.task_state),
    Field("OS-EXT-STS:vm_state", lambda s, _: s.vm_state),
    Field("OS-EXT-STS:power_state", lambda s, _: s.power_state),
    Field("pinned_availability_zone", lambda s, _: s.pinned_availability_zone, 96),
)

_HOSTNAME = "OS-EXT-SRV-ATTR:hostname"

EXTENDED_FIELDS = (
    Field("OS-EXT-SRV-ATTR:host", lambda s, _: _host(s)),
    Field("OS-EXT-SRV-ATTR:instance_name", lambda s, _: f"instance-{s.id:08x}"),
    Field("OS-EXT-SRV-ATTR:hypervisor_hostname", _hypervisor),
    Field(_HOSTNAME, lambda s, _: s.hostname, 3),
    Field("OS-EXT-SRV-ATTR:kernel_id", lambda s, _: "", 3),
    Field("OS-EXT-SRV-ATTR:launch_index", lambda s, _: s.launch_index, 3),
    Field("OS-EXT-SRV-ATTR:ramdisk_id", lambda s, _: "", 3),
    Field("OS-EXT-SRV-ATTR:reservation_id", lambda s, _: s.reservation_id, 3),
    Field("OS-EXT-SRV-ATTR:root_device_name", lambda s, _: None, 3),
    Field(USER_DATA, lambda s, _: s.user_data, 3),
)

#: fields of later versions, in all answers
LATER_FIELDS = (
    Field("locked", lambda s, _: s.locked_by is not None, 9),
    Field("description", lambda s, _: s.description, 19),
    Field("tags", lambda s, _: list(s.tags), 26),
    Field("trusted_image_certificates", lambda s, _: None, 63),
    Field("server_groups", _groups, 71, lambda sight: sight.single),
    Field("locked_reason", lambda s, _: s.locked_reason, 73),
    Field(_HOSTNAME, lambda s, _: s.hostname, 90, lambda sight: not sight.extended),
    Field("scheduler_hints", lambda s, _: s.scheduler_hints, 100),
)


class View:
    """Makes the answers' servers, as `sight` allows; `known` are their faults by UUID."""

    def __init__(self, sight: Sight, known: Mapping[str, FaultRecord]) -> None:
        self._sight, self._faults = sight, known
        fields = [*FIELDS, *LATER_FIELDS]
        fields += FULL_FIELDS if sight.all_fields else ()
        fields += EXTENDED_FIELDS if sight.all_fields and sight.extended else ()
        self._fields = [
            (field.name, field.make)
            for field in fields
            if field.since <= sight.version and field.when(sight)
        ]

    def detailed(self, server: Server) -> dict[str, Any]:
        """Return a server with details."""
        sight = self._sight
        view = {name: make(server, sight) for name, make in self._fields}
        if view["status"] in _WITH_PROGRESS:
            view["progress"] = server.copied_percent or 0
        fault = self._faults.get(server.uuid)
        if fault is not None and view["status"] in _WITH_FAULT:
            view["fault"] = faults.view(fault, operator=sight.operator)
        if sight.all_fields:
            view["os-extended-volumes:volumes_attached"] = _volumes(server, sight)
            if server.group_names:
                names = sorted(set(server.group_names))
                view["security_groups"] = [{"name": name} for name in names]
            host_status = sight.host_status and sight.host_status.of(server)
            if host_status is not None:
                view["host_status"] = host_status
        return view


def _volumes(server: Server, sight: Sight) -> list[dict[str, Any]]:
    found = []
    for _, _, volume_id, delete_on_termination in sorted(server.volumes or ()):
        shown: dict[str, Any] = {"id": volume_id}
        if sight.version >= 3:
            shown["delete_on_termination"] = bool(delete_on_termination)
        found.append(shown)
    return found


def basic(server: Name, links: Links) -> dict[str, Any]:
    """Return a server in a short list."""
    return {
        "id": server.uuid,
        "name": server.name,
        "links": links.item(COLLECTION, server.uuid),
    }


def sight_of(
    call: Call,
    target: Mapping[str, Any] | None = None,
    *,
    all_fields: bool = True,
    single: bool = True,
) -> Sight:
    """Return what the policy allows this call to see of servers."""
    return Sight(
        version=call.version,
        links=call.links,
        extended=call.allows("os-extended-server-attributes", target),
        extra_specs=call.allows("servers:show:flavor-extra-specs", target),
        operator=call.is_admin,
        host_status=_host_status(call, target),
        all_fields=all_fields,
        single=single,
    )


def _host_status(call: Call, target: Mapping[str, Any] | None) -> HostStatus | None:
    if call.version < 16:
        return None
    everything = call.allows("servers:show:host_status", target)
    if not everything and not call.allows("servers:show:host_status:unknown-only", target):
        return None
    down = datetime.timedelta(seconds=call.cloud.conf.api.service_down_seconds)
    return HostStatus(clock.utcnow() - down, unknown_only=not everything)


def view_of(call: Call, sight: Sight, servers: Sequence[Server]) -> View:
    """Return the view of these servers; reads faults only where they are shown."""
    failed = [server.uuid for server in servers if status(server) in _WITH_FAULT]
    return View(sight, call.read(faults_of, failed) if failed else {})


def shown(call: Call, server: Server, *, all_fields: bool = True) -> dict[str, Any]:
    """Return one server with details, as the policy allows this call to see it."""
    target = {"project_id": server.project_id, "user_id": server.user_id}
    sight = sight_of(call, target, all_fields=all_fields)
    return view_of(call, sight, [server]).detailed(server)
