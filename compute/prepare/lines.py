"""The commands that prepare a cluster of Proxmox VE, whatever it has. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from compute.hypervisor.proxmox.api import privileges
from compute.prepare import plan
from compute.prepare.wanted import Wanted, needs

_CONTENT = r"""sed 's/.*"content": *"\([^"]*\)".*/\1/'"""


def lines(wanted: Wanted, version: str) -> list[str]:
    """Return the commands, to run once as root on a node of the cluster.

    ``version``: of Proxmox VE, by which optional privileges are named.
    """
    return [
        *privileges.token_lines(wanted.token),
        *privileges.grant_lines(needs(wanted, version), wanted.token),
        *_more(wanted),
    ]


def _more(wanted: Wanted) -> Iterator[str]:
    """Yield the commands for all but user, token and roles."""
    if wanted.pool:
        yield f"{{ {plan.pool(wanted.pool).line} || true; }}"
    for name, contents in wanted.contents.items():
        # PVE::Storage takes the whole list only.
        path = shlex.quote(f"/storage/{name}")
        present = f"$(pvesh get {path} --output-format json | {_CONTENT})"
        yield f'pvesm set {shlex.quote(name)} --content "{present},{",".join(contents)}"'
    for zone in wanted.zones:
        if zone.type:
            yield f"{{ {plan.zone(zone, ()).line} || true; }}"
            yield plan.APPLY.line
