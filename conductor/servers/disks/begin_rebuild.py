"""Accepts rebuilds, in one transaction each: the record has all that was asked from then on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from common.context import RequestContext
from common.errors import Conflict, Invalid, MicronovaError
from common.guest.asked import CannotError
from common.guest.hardware import ROOT_BUS, Hardware, read, with_root_bus
from common.resources.volumes import VolumeStatus
from conductor.cloud import Cloud
from conductor.engine import access, start
from conductor.engine.access import scope
from conductor.images import image_source
from conductor.plans import Place, RebuildPlan, SwapParams
from conductor.rpc.servers.servers import RebuildServer
from conductor.servers.disks import root_volume
from conductor.servers.move import destination
from conductor.store.hosts import registry
from conductor.store.quotas import quotas
from conductor.store.records import Operation, Server
from conductor.store.servers import servers
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments

NUMA_CHANGED = (
    "An instance's NUMA topology cannot be changed as part of a rebuild. "
    "The image provided is invalid for this instance."
)
#: columns of a server that a rebuild changes beside those that its users change anyway
CHANGEABLE = frozenset({"meta", "key_name", "public_key", "user_data"})
#: columns that say what the server's disk and config drive were made of
MADE_OF = ("image_id", "image_properties", "key_name", "public_key", "user_data", "hostname")


class RebuildAcceptance:
    """Begins rebuilds."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def rebuild(self, ctxt: RequestContext, server_uuid: str, request: RebuildServer) -> Operation:
        """See ``ConductorRpc.rebuild_server``."""
        return self._cloud.store.run(lambda c: self._rebuild(c, ctxt, server_uuid, request))

    def _rebuild(
        self, connection: Transaction, ctxt: RequestContext, uuid: str, request: RebuildServer
    ) -> Operation:
        server = servers.alive(connection, uuid, scope(ctxt))
        has = hardware_of(server, server.image_properties)
        require_no_tpm(server, has, "rebuild")
        access.require_free(ctxt, server, "rebuild")
        properties = with_root_bus(request.image_properties, server.image_properties.get(ROOT_BUS))
        _check_hardware(server, has, properties)
        if not server.volume_backed:
            image_source.require_copied_on(connection, request.image_id, server)
        allowed = quotas.limits(connection, server.project_id, self._cloud.quota)
        changes = dict(request.changes)
        if "meta" in changes:
            quotas.check_metadata(allowed, changes["meta"], before=len(server.meta))
        quotas.check_files(allowed, request.files)
        # A migration that was still open when the server became ERROR.
        destination.end_left(connection, server)
        changes["image_properties"] = properties
        if not server.volume_backed:
            changes["image_id"] = request.image_id
        plan = dataclasses.replace(
            _root(connection, server, request),
            target=here(connection, server),
            was=server.vm_state,
            former={name: getattr(server, name) for name in MADE_OF},
        )
        params = SwapParams(admin_password=request.admin_password, files=request.files)
        which = (self._cloud, ctxt, server, "rebuild", plan)
        return start.take(connection, *which, params=params, **changes)[0]


def _root(connection: Transaction, server: Server, request: RebuildServer) -> RebuildPlan:
    """Return what the plan says of a root disk that is a volume. Raises Invalid, NotFound."""
    attached = attachments.of_server(connection, server.uuid)
    require_in_use(attached)
    if not server.volume_backed:
        return RebuildPlan()
    image_id, reimages = request.image_id, request.reimages
    return root_volume.begin(connection, server, attached, image_id, reimages=reimages)


def require_in_use(attached: Sequence[Any], error: type[MicronovaError] = Invalid) -> None:
    """Raise an error, in Nova's words, unless all of a server's volumes are its own and idle."""
    for one in attached:
        if one.volume_status != VolumeStatus.IN_USE:
            raise error(
                f"Invalid volume: volume '{one.volume_id}' status must be 'in-use'. Currently in "
                f"'{one.volume_status}' status"
            )


def here(connection: Transaction, server: Server) -> Place:
    """Return where the server's VM is. Raises Conflict, in Nova's words, if it has none."""
    if server.host is None or server.vmid is None:
        raise Conflict(f"Instance {server.uuid} is not ready")
    facts, _ = registry.host(connection, server.host)
    return Place(facts.host, facts.uuid, server.cluster, server.node, server.vmid)


def hardware_of(server: Server, image_properties: Mapping[str, Any]) -> Hardware | None:
    """Return the hardware of the server with such an image; None: it is impossible."""
    specs = server.flavor.get("extra_specs") or {}
    try:
        return read(server.vcpus, server.memory_mib, specs, image_properties)
    except CannotError:
        return None


def require_no_tpm(server: Server, has: Hardware | None, operation: str) -> None:
    """Raise Conflict, in Nova's words, for a server with a TPM, whose state is of its disk."""
    if has is not None and has.tpm:
        raise Conflict(
            f"Operation '{operation}' not supported for vTPM-enabled instance ({server.uuid})."
        )


def _check_hardware(
    server: Server, has: Hardware | None, image_properties: Mapping[str, str]
) -> None:
    """Raise Invalid for an image that needs what the server can't get by a rebuild."""
    specs = server.flavor.get("extra_specs") or {}
    try:
        new = read(server.vcpus, server.memory_mib, specs, image_properties)
    except CannotError as error:
        raise Invalid(f"The image asks for what can't be had: {error}.") from error
    if has is None:
        return
    if new.numa != has.numa:
        raise Invalid(NUMA_CHANGED)
    if (new.uefi, new.secure_boot, new.tpm) != (has.uefi, has.secure_boot, has.tpm):
        raise Invalid(
            "The image would change the firmware or the TPM, which can't change after the create."
        )
