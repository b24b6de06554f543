"""Paths of calls that have names which Proxmox VE lets people choose freely. Pure.

Nodes, storages, pools, snapshots and vnets have only characters that paths have as well.
"""

from __future__ import annotations

from urllib.parse import quote

from compute.hypervisor.proxmox.settings import Token


def volume(node: str, volid: str) -> str:
    """Return the path of a volume: a file may have any name.

    >>> volume("pve1", "local:iso/live #1.iso")
    'nodes/pve1/storage/local/content/local:iso/live%20%231.iso'
    """
    storage = volid.partition(":")[0]
    return f"nodes/{node}/storage/{storage}/content/{quote(volid, safe='/:')}"


def token(one: Token) -> str:
    """Return the path of an API token."""
    return f"access/users/{quote(one.user, safe='@')}/token/{quote(one.name, safe='')}"
