"""A server's first tab: facts, how to log in, charts, and what was done last."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dashboard import shell
from dashboard.answer import Answer
from dashboard.cloud import IMAGE, Call, segment
from dashboard.pages.server.frame import framed
from dashboard.story import operations_of
from dashboard.visit import Visit

#: distribution → the user that its cloud images make
_USERS: Mapping[str, str] = {
    "almalinux": "almalinux",
    "alpine": "alpine",
    "arch": "arch",
    "centos": "cloud-user",
    "cirros": "cirros",
    "debian": "debian",
    "fedora": "fedora",
    "freebsd": "freebsd",
    "rhel": "cloud-user",
    "rocky": "rocky",
    "ubuntu": "ubuntu",
}


def show(visit: Visit) -> Answer:
    """Show one server: its facts, and what was done to it last."""
    found = framed(visit)
    server = found.server
    image_id = (server.get("image") or {}).get("id")
    image = (
        visit.cloud.send(Call(IMAGE, f"/v2/images/{segment(image_id)}", optional=True))
        if image_id
        else None
    )
    addresses = addresses_of(server)
    newest = {"operations": (found.explained.get("operations") or ())[-1:]}
    return found.view(
        "",
        image=image or None,
        image_id=image_id,
        addresses=addresses,
        ssh=ssh(addresses, image or {}),
        operations=operations_of(newest),
    )


def addresses_of(server: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return networks and addresses of a server."""
    return [
        (network, str(one["addr"]))
        for network, given in (server.get("addresses") or {}).items()
        for one in given
    ]


def ssh(addresses: Sequence[tuple[str, str]], image: Mapping[str, Any]) -> str:
    """Return the command that logs in; empty: there is none."""
    if not addresses or image.get("os_type") == "windows":
        return ""
    known = [address for _, address in addresses]
    address = next((one for one in known if ipaddress.ip_address(one).version == 4), known[0])
    # the user is what the owner of the image wrote
    return f"ssh {shell.argument(f'{_user(image)}@{address}')}"


def _user(image: Mapping[str, Any]) -> str:
    """Return the user of an image; USER where nothing says which one.

    >>> _user({"name": "debian-12"}), _user({"name": "own", "os_distro": "ubuntu"}), _user({})
    ('debian', 'ubuntu', 'USER')
    """
    if image.get("os_admin_user"):
        return str(image["os_admin_user"])
    named = re.match(r"[a-z]*", str(image.get("name") or "").lower())
    family = str(image.get("os_distro") or (named[0] if named else "")).lower()
    return _USERS.get(family, "USER")
