"""The ownership fence, pure: whose a VM is, by the marks in its configuration.

A server's VM carries its UUID twice: in the description and as SMBIOS UUID. A clone gets a new
SMBIOS UUID of its own, so until it is configured a second line of the description says that it is
being built. Nothing else is ever changed or destroyed.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SERVER = "micronova: server="
TEMPLATE = "micronova: template="
#: the cloud that made it: several may share a cluster, and make templates of the same images
CLOUD = "micronova: cloud="
BUILDING = "micronova: building"

_SMBIOS_UUID = re.compile(r"(?:^|,)uuid=([0-9a-fA-F-]{36})")


class Owner(enum.Enum):
    """Whose a VM is."""

    OURS = "ours"
    FOREIGN = "foreign"
    UNMARKED = "unmarked"
    """A shell that is being created and says nothing yet: only its task can tell."""


@dataclass(frozen=True)
class Mark:
    """What the VM must carry to be ours."""

    line: str
    smbios_uuid: str | None
    also: tuple[str, ...] = ()
    """Further lines of the description that must be there."""

    def description(self, *more: str) -> str:
        """The text for the VM's description."""
        return "\n".join((self.line, *self.also, *more))


def server_mark(server_uuid: str) -> Mark:
    """Of the VM of a server."""
    return Mark(f"{SERVER}{server_uuid}", server_uuid)


def template_mark(image_id: str, cloud: str) -> Mark:
    """Of the cached template of an image in one cloud: an image has the same id in others."""
    return Mark(f"{TEMPLATE}{image_id}", None, (cloud_line(cloud),) if cloud else ())


def cloud_line(cloud: str) -> str:
    """Names the cloud that made a VM."""
    return f"{CLOUD}{cloud}"


def stranger(config: Mapping[str, Any]) -> str | None:
    """What a VM of a micronova says it is, for who meets it in the wrong place; else None."""
    said = lines(config)
    what = next((line for line in said if line.startswith((SERVER, TEMPLATE))), None)
    if what is None:
        return None
    where = next((line for line in said if line.startswith(CLOUD)), "")
    cloud = f" of cloud {where.removeprefix(CLOUD)}" if where else ""
    return f"it is {what.removeprefix('micronova: ').replace('=', ' ', 1)}{cloud}"


def lines(config: Mapping[str, Any]) -> list[str]:
    """The description's lines."""
    return [line.strip() for line in str(config.get("description", "")).splitlines()]


def is_building(config: Mapping[str, Any]) -> bool:
    """Whether the VM was made but not configured yet."""
    return BUILDING in lines(config)


def owner(config: Mapping[str, Any], mark: Mark) -> Owner:
    """Whose the VM with this configuration is."""
    said = lines(config)
    if config.get("lock") in ("create", "clone") and not any(said):
        return Owner.UNMARKED
    if not {mark.line, *mark.also} <= set(said):
        return Owner.FOREIGN
    if mark.smbios_uuid is None or BUILDING in said:
        return Owner.OURS
    match = _SMBIOS_UUID.search(str(config.get("smbios1", "")))
    same = match is not None and match[1].lower() == mark.smbios_uuid.lower()
    return Owner.OURS if same else Owner.FOREIGN
