"""The configuration of the Proxmox VE clusters, simulated or real."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.errors import ConfigurationError
from common.process.child import READY_FD
from identity.private_file import write_private
from launcher.embedded.settings import Sections, Settings

CLEAN_UP_SECONDS = 30.0
"""How long a real node's clean-up waits for a VM that was started again."""

FINISH_SECONDS = 10.0
"""Time that the simulator has at a stop to finish running tasks."""

REAL_NAME = "proxmox"
"""The name of the one real cluster; part of its hosts' identity, so it never changes."""


def simulator_arguments(settings: Settings, folder: Path) -> list[str]:
    """Return the command line of the simulator whose state is in `folder`."""
    return [
        *("--state-dir", str(folder), "--tls", "--host", "127.0.0.1", "--port", "0"),
        *("--clusters", str(settings.clusters), "--nodes", str(settings.nodes)),
        *("--bridges", str(settings.bridges), "--firewall", "--optional-privileges"),
        *("--speed", f"{settings.speed:g}", "--ready-fd", READY_FD),
        *("--finish-seconds", f"{FINISH_SECONDS:g}"),
    ]


def simulated_clusters(
    folder: Path, endpoints: Sequence[Mapping[str, Any]], speed: float
) -> Sections:
    """Return the sections of simulated clusters; `endpoints` is what the simulator reported.

    Clean-ups take less time than on a real node, by the factor `speed`.
    """
    token = json.loads((folder / "token.json").read_text(encoding="utf-8"))
    token_file = folder / "agent-token"
    write_private(token_file, f"{token['tokenid']}={token['secret']}\n")
    found: Sections = {"proxmox": {"clusters": ",".join(one["cluster"] for one in endpoints)}}
    for one in endpoints:
        found[f"proxmox:{one['cluster']}"] = {
            "endpoints": one["url"],
            "token_file": str(token_file),
            "ca_file": str(folder / "ca.pem"),
            "restart_lock_seconds": f"{CLEAN_UP_SECONDS / speed:g}",
            "web_url": "none",  # the simulator has the API alone
        }
    return found


def check_token(settings: Settings) -> None:
    """Raise ConfigurationError where the token's or the CA's file can't be used."""
    from compute.hypervisor.proxmox.settings import read_token

    assert settings.token_file is not None
    read_token(settings.token_file, f"proxmox:{REAL_NAME}")
    if settings.ca_file is not None and not settings.ca_file.is_file():
        raise ConfigurationError(f"--proxmox-ca {settings.ca_file} is no file.")


def real_clusters(settings: Settings) -> Sections:
    """Return the sections of the cluster that the command line names."""
    assert settings.token_file is not None
    cluster = {
        "endpoints": ",".join(settings.proxmox),
        "token_file": str(settings.token_file.absolute()),
    }
    if settings.ca_file is not None:
        cluster["ca_file"] = str(settings.ca_file.absolute())
    return {"proxmox": {"clusters": REAL_NAME}, f"proxmox:{REAL_NAME}": cluster}
