"""The commands that prepare a cluster of Proxmox VE: user, token, roles. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from common.errors import ConfigurationError
from compute.hypervisor.proxmox.api import calls, privileges
from compute.hypervisor.proxmox.api.calls import Purpose
from compute.hypervisor.proxmox.settings import Token


def lines(
    token_id: str, version: str, purposes: Sequence[str] = (), zones: Sequence[str] = ()
) -> list[str]:
    """Return the commands, to run once as root on a node of the cluster.

    ``token_id``: ``user@realm!name``; ``version``: of Proxmox VE; ``purposes``: of ``OPTIONAL``;
    ``zones``: SDN zones for networks of projects. Raises ConfigurationError for what is none.
    """
    user, _, name = token_id.partition("!")
    if not name or "@" not in user:
        raise ConfigurationError(f"{token_id} is no token: its form is user@realm!name.")
    if re.match(r"[0-9]+(\.|$)", version) is None:
        raise ConfigurationError(f"{version} is no version of Proxmox VE, such as 9.1.")
    token = Token(user, name, "")
    needed = [*privileges.documented(), *privileges.vnets(zones)]
    needed += [need for one in purposes for need in privileges.of(OPTIONAL[one], version)]
    return [*privileges.token_lines(token), *privileges.grant_lines(needed, token)]


#: by the names of options
OPTIONAL = {
    "passwords": Purpose.PASSWORDS,
    "steering": Purpose.STEERING,
    "affinity": Purpose.AFFINITY,
    "zones": Purpose.ZONES,
    "devices": Purpose.DEVICES,
}

NEWEST = f"{calls.OWN_AGENT_SINCE}.0"
"""A version whose names all newer ones have."""
