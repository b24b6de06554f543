"""Paths of the API as templates: what calls are counted under. Pure.

``nodes/pve1/qemu/101/status/start`` becomes ``nodes/{node}/qemu/{vmid}/status/start``, so that
there are as many templates as kinds of calls.
"""

from __future__ import annotations

import functools
import re

_NAMES = tuple(
    (re.compile(pattern), into)
    for pattern, into in (
        (r"^nodes/[^/]+", "nodes/{node}"),
        (r"/(qemu|lxc)/[0-9]+", r"/\1/{vmid}"),
        (r"^(nodes/{node}/storage)/[^/]+", r"\1/{storage}"),
        (r"^storage/[^/]+", "storage/{storage}"),
        (r"(/storage/{storage}/content)/.+", r"\1/{volume}"),
        (r"/tasks/[^/]+", "/tasks/{upid}"),
        (r"/snapshot/[^/]+", "/snapshot/{snapshot}"),
        (r"/sdn/zones/[^/]+", "/sdn/zones/{zone}"),
        (r"/sdn/vnets/[^/]+", "/sdn/vnets/{vnet}"),
        (r"/sdn/subnets/.+", "/sdn/subnets/{subnet}"),
        (r"({vnet}/subnets)/.+", r"\1/{subnet}"),
        (r"(/firewall/(?:rules|groups|aliases))/.+", r"\1/{entry}"),
        (r"/firewall/ipset/[^/]+/.+", "/firewall/ipset/{set}/{cidr}"),
        (r"/firewall/ipset/[^/{]+", "/firewall/ipset/{set}"),
        (r"^cluster/ha/(rules|groups|resources)/.+", r"cluster/ha/\1/{name}"),
        (r"^access/users/[^/]+", "access/users/{user}"),
        (r"(/token)/[^/]+", r"\1/{token}"),
    )
)


@functools.lru_cache(maxsize=1024)
def template(path: str) -> str:
    """Return the template of a path without a leading slash."""
    for pattern, into in _NAMES:
        path = pattern.sub(into, path)
    return path
