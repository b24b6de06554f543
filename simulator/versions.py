"""The differences between the simulated Proxmox VE versions, as a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Version:
    """One release and what its API can do."""

    release: str
    version: str
    repoid: str
    qemu: str
    import_upload: bool
    ha_rules: bool
    agent_privileges: tuple[str, ...]


MODERN_AGENT = ("VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted")

VERSIONS = {
    "8.3": Version("8.3", "8.3.5", "dac3aa88bac3f300", "9.0.2", False, False, ("VM.Monitor",)),
    "8.4": Version("8.4", "8.4.14", "b502d23c55afcba1", "9.2.0", True, False, ("VM.Monitor",)),
    "9.0": Version("9.0", "9.0.11", "3bf5476b8a4699e2", "10.0.2", True, True, MODERN_AGENT),
    "9.2": Version("9.2", "9.2.11", "14a22df35955d97d", "10.0.13", True, True, MODERN_AGENT),
}
