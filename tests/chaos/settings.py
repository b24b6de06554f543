"""The one configuration file of a stage's services."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from identity.private_file import write_private
from launcher.embedded.settings import Sections
from simulator.server import Simulator
from tests.chaos.dressing import ZONE
from tests.fixtures.auth import SERVICE

_RABBIT = {
    "kombu_reconnect_delay": "0.1",
    "rabbit_retry_interval": "1",
    "rabbit_retry_backoff": "0",
    "rabbit_interval_max": "1",
    "heartbeat_timeout_threshold": "0",
}


def sections(
    bus: str,
    database_url: str,
    placement_url: str,
    simulator: Simulator,
    folder: Path,
    driver: str,
) -> Sections:
    """Short times, so that what must end soon is seen to; ``folder``: the simulator's."""
    token = simulator.token
    write_private(folder / "agent-token", f"{token['tokenid']}={token['secret']}\n")
    endpoint = simulator.endpoints[0]
    return {
        "DEFAULT": {"transport_url": bus, "debug": "false"},
        "oslo_messaging_rabbit": dict(_RABBIT),
        "rpc": {"rpc_timeout_seconds": "4"},
        "database": {"connection": database_url},
        "placement": {
            "auth_type": "admin_token",
            "endpoint": placement_url,
            "token": SERVICE,
        },
        "quota": {"instances": "-1", "cores": "-1", "ram": "-1"},
        "networks": {
            "subnets": "vmbr0=10.20.0.0/16",
            "tenant_vnets": f"*:{ZONE}:5000-5009",
        },
        "conductor": {
            "lease_seconds": "5",
            "agent_lease_seconds": "6",
            "scan_seconds": "0.3",
            "host_down_seconds": "10",
            "build_timeout_seconds": "60",
            "action_timeout_seconds": "60",
            "audit_settle_seconds": "0.5",
        },
        "compute": {
            "driver": driver,
            # Its calls would be among those that are made to fail.
            "doctor_seconds": "0",
            "heartbeat_seconds": "1",
            "observe_seconds": "1",
            "content_seconds": "1",
            "shutdown_seconds": "1",
            # A reader beside an operation would add calls to those that are made to fail.
            "console_log_kib": "0",
            "stop_seconds": "5",
        },
        "proxmox": {"clusters": endpoint["cluster"]},
        f"proxmox:{endpoint['cluster']}": {
            "endpoints": endpoint["url"],
            "token_file": str(folder / "agent-token"),
            "ca_file": str(folder / "ca.pem"),
            "vm_storage": "local",
            "iso_storage": "local",
            "linked_clones": "always",
            "restart_lock_seconds": str(30 / simulator.options.speed),
        },
    }


def carries(endpoint: Mapping[str, Any], made: Sections) -> Sections:
    """What a worker has of its own: its cluster, with what the first one has."""
    (first,) = (one for one in made if one.startswith("proxmox:"))
    of = str(endpoint["cluster"])
    values = {**made[first], "endpoints": str(endpoint["url"])}
    return {"proxmox": {"clusters": of}, f"proxmox:{of}": values}
