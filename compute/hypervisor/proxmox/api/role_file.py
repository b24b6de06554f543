"""``python -m compute.hypervisor.proxmox.api.role_file simulator/agent_role.json``.

The roles of the simulator's agent, which imports nothing of ours: those of docs/proxmox.md, and
those with what is optional, but for privileges on the root. Names that a version hasn't are left
out by the simulator.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from compute.hypervisor.proxmox.api import privileges
from compute.hypervisor.proxmox.api.calls import Purpose

#: one before guests' agents had privileges of their own, and one after it
_VERSIONS = ("8.4", "9.2")

#: what is optional and asks for nothing on the root, which would let an agent change nodes
_OPTIONAL = (Purpose.PASSWORDS, Purpose.VNETS, Purpose.DEVICES)


def text() -> str:
    """Return the file: roles, privileges and paths."""
    optional = [
        need
        for version in _VERSIONS
        for purpose in _OPTIONAL
        for need in privileges.of(purpose, version)
    ]
    found = {
        "documented": privileges.roles(privileges.documented()),
        "optional": privileges.roles([*optional, *privileges.documented()]),
    }
    plain = {name: [dataclasses.asdict(one) for one in roles] for name, roles in found.items()}
    return json.dumps(plain, indent=1) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(), encoding="utf-8")
