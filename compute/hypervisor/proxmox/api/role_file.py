"""``python -m compute.hypervisor.proxmox.api.role_file > simulator/agent_role.json``.

The roles of the simulator's agent, which imports nothing of ours: those of docs/proxmox.md, and
those that are optional. Names that a version hasn't are left out by the simulator.
"""

from __future__ import annotations

import dataclasses
import json
import sys

from compute.hypervisor.proxmox.api import privileges
from compute.hypervisor.proxmox.api.calls import Purpose

#: one before guests' agents had privileges of their own, and one after it
_VERSIONS = ("8.4", "9.2")


def text() -> str:
    """Return the file: roles, privileges and paths."""
    optional = [
        need for version in _VERSIONS for need in privileges.optional(version, affinity_rules=True)
    ]
    optional += [*privileges.of(Purpose.VNETS), *privileges.of(Purpose.DEVICES)]
    found = {
        "documented": privileges.roles(privileges.documented()),
        "optional": privileges.roles([*optional, *privileges.documented()]),
    }
    plain = {name: [dataclasses.asdict(one) for one in roles] for name, roles in found.items()}
    return json.dumps(plain, indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
