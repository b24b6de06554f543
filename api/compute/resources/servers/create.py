"""A `POST /servers` as a message to the conductor, checked against the database.

Four passes: what the body asks for (`requested`), what the policy says of it, what exists of what
it names, and whether all of it fits together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from api.compute.call import Call
from api.compute.policies import ANY_ADDRESS, NEAR_HOST
from api.compute.resources.servers import boot_sources
from api.compute.resources.servers.block_devices import local_disks_of
from api.compute.resources.servers.place import Place, check_place
from api.compute.resources.servers.requested import Requested, parse
from api.compute.resources.servers.security_groups import the_only
from common.errors import FlavorNotFound, Invalid, KeyPairNotFound, NotFound
from common.messages.scheduling import ImageHome
from common.resources.local_disks import LocalDisk
from common.resources.security_rules import DEFAULT
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.servers import CreateServers
from db.reads.hosts import services
from db.reads.hosts.services import Zones
from db.reads.images.images import Image
from db.reads.networks import security_groups
from db.reads.networks.security_groups import SecurityGroup
from db.reads.servers import flavors, keypairs
from db.reads.servers.flavors import Flavor
from db.reads.servers.keypairs import KeyPair

_GIB = 1024**3


@dataclass(frozen=True)
class _Existing:
    """What the request names, as read from the database."""

    flavor: Flavor | None
    found: boot_sources.Found
    keypair: KeyPair | None
    zones: Zones | None
    """Read only where the request names a zone or a host."""
    groups: Mapping[str, Sequence[SecurityGroup]]
    """Those of each name but ``default``."""


def create_request(call: Call) -> CreateServers:
    """Return the message for the conductor.

    Raises Invalid, NotSupported, NotFound for what doesn't exist, Forbidden for what the policy
    doesn't allow.
    """
    asked = parse(call.body, call.version)
    for rule in _rules(asked):
        call.check(rule)
    any_address = any(one.fixed_ip for one in asked.networks) and call.allows(ANY_ADDRESS)
    existing = call.read(_read, asked, call.project, call.ctxt.user_id or "", call.reach)
    request = _checked(asked, existing, call.project, is_admin=call.is_admin)
    return dataclasses.replace(request, any_address=any_address)


def _rules(asked: Requested) -> Iterator[str]:
    """Yield the policy rules that the options of the request need."""
    if asked.devices:
        yield "servers:create:attach_volume"
    if asked.names_networks:
        yield "servers:create:attach_network"
    if asked.place.rule is not None:
        yield asked.place.rule
    if asked.is_near:
        yield NEAR_HOST


def _read(
    connection: sa.Connection, asked: Requested, project_id: str, user_id: str, reach: str | None
) -> _Existing:
    """Return what there is; ``reach``: whose records may be used, None: everybody's."""
    key_name = asked.fields["key_name"]
    return _Existing(
        flavor=flavors.find(connection, asked.flavor.rsplit("/", 1)[-1], reach),
        found=boot_sources.read(connection, asked.devices, asked.image, reach),
        keypair=keypairs.find(connection, user_id, key_name) if key_name else None,
        zones=services.zones(connection) if asked.place != Place() else None,
        groups={
            name: security_groups.named(connection, project_id, name)
            for name in asked.groups
            if name != DEFAULT
        },
    )


def _checked(
    asked: Requested, existing: _Existing, project_id: str, *, is_admin: bool
) -> CreateServers:
    """Return the message. Raises unless all exists, and fits together."""
    sources = boot_sources.sources(asked.devices, asked.image, existing.found)
    image, keypair = sources.local_image, existing.keypair
    flavor = existing.flavor
    if flavor is None or (flavor.disabled and not is_admin):
        raise FlavorNotFound(f"Flavor {asked.flavor} could not be found.")
    boot_sources.check(sources, flavor)
    if asked.fields["key_name"] and keypair is None:
        raise KeyPairNotFound("Invalid key_name provided.")
    if image is not None:
        check_size(flavor, image)
    disks = local_disks_of(asked.devices, flavor.ephemeral_gib, flavor.swap_mib)
    if existing.zones is not None:
        check_place(asked.place, existing.zones)
    if asked.fields["hostname"] and asked.fields["max_count"] > 1:
        raise Invalid("Unable to allocate a single hostname to multiple instances")
    return CreateServers(
        flavor=snapshot(flavor, disks),
        image_properties=sources.properties,
        least_memory_mib=sources.least_memory_mib,
        least_disk_gib=least_disk_gib(image) if image else 0,
        image_home=home(image) if image else None,
        disk_tag=sources.disk_tag,
        volumes=boot_sources.volumes_of(sources),
        public_key=keypair.public_key if keypair else None,
        security_groups=_groups(asked, existing, project_id),
        **asked.fields,
    )


def _groups(asked: Requested, existing: _Existing, project_id: str) -> tuple[str, ...]:
    """Return the ids of the security groups, ``default`` for that. Raises Invalid, Conflict."""
    every = existing.groups
    found = [
        one if one == DEFAULT else _group(every[one], project_id, one) for one in asked.groups
    ]
    return tuple(dict.fromkeys(found))


def _group(found: Sequence[SecurityGroup], project_id: str, name: str) -> str:
    try:
        return the_only(found, project_id, name).id
    except NotFound as error:
        raise Invalid(f"Unable to find security_group with name or id '{name}'") from error


def check_size(flavor: Flavor | FlavorSnapshot, image: Image) -> None:
    """Raise Invalid for a flavor that is too small for the image."""
    if image.min_ram_mib > flavor.memory_mib:
        raise Invalid("Flavor's memory is too small for requested image.")
    disk = flavor.disk_gib * _GIB
    size = image.virtual_size_bytes or image.size_bytes
    if not disk and image.disk_format != "iso":  # 0: as big as the image
        return
    if size > disk:
        raise Invalid(
            "Flavor's disk is too small for requested image. "
            f"Flavor disk is {disk} bytes, image is {size} bytes."
        )
    if image.min_disk_gib > flavor.disk_gib:
        raise Invalid(
            "Flavor's disk is smaller than the minimum size specified in image metadata. "
            f"Flavor disk is {disk} bytes, minimum size is {image.min_disk_gib * _GIB} bytes."
        )


def home(image: Image) -> ImageHome | None:
    """Return the only place of a server's image; None of others."""
    return None if image.home is None else ImageHome(**image.home)


def least_disk_gib(image: Image) -> int:
    """Return the minimum disk size for the image."""
    size = image.virtual_size_bytes or image.size_bytes
    return max(image.min_disk_gib, -(-size // _GIB))


def snapshot(flavor: Flavor, disks: tuple[LocalDisk, ...] = ()) -> FlavorSnapshot:
    """Return the copy of a flavor that is stored with a server, with its additional disks."""
    return FlavorSnapshot(
        id=flavor.flavorid,
        name=flavor.name,
        vcpus=flavor.vcpus,
        memory_mib=flavor.memory_mib,
        disk_gib=flavor.disk_gib,
        ephemeral_gib=flavor.ephemeral_gib,
        swap_mib=flavor.swap_mib,
        extra_specs=flavor.extra_specs,
        local_disks=disks,
    )
