"""What docs/deploy.md prints for something of the reader's → what a test has there."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.functional.backends import Postgres
from tests.functional.brokers import Broker


def paths(folder: Path) -> dict[str, str]:
    """Return folders of a machine, in a folder, and the group that they belong to."""
    return {
        "/opt/micronova": f"{folder}/opt/micronova",
        "/usr/local/bin": f"{folder}/usr/local/bin",
        "/etc/micronova": f"{folder}/etc/micronova",
        "/etc/systemd/system/": f"{folder}/etc/systemd/system/",
        "/var/lib/": f"{folder}/var/lib/",
        "-g micronova ": f"-g {os.getegid()} ",
    }


def services(
    folder: Path, ports: Mapping[str, int], auth_url: str, node: str, caches: Sequence[str]
) -> dict[str, str]:
    """Return hosts and ports; `node` is the URL of Proxmox VE."""
    public, placement, console = (
        f"127.0.0.1:{ports[name]}" for name in ("public", "placement", "console")
    )
    return {
        "server_name cloud.example;": "server_name 127.0.0.1;",
        "https://keystone.example/v3": auth_url,
        "https://keystone.example.org/v3": auth_url,
        "https://cloud.example/placement": f"http://{placement}",
        "https://cloud.example": f"http://{public}",
        # with a path that is a default of the code
        "fetch_url = http://10.0.0.10:8774/image\n": f"fetch_url = http://{public}/image\n"
        f"spool_dir = {folder}/var/lib/micronova/spool\n",
        "10.0.0.10:8774": public,
        "10.0.0.10:8778": placement,
        "cache1:11211": caches[0],
        "cache2:11211": caches[1],
        "https://console.example/": f"https://{console}/",
        "wss://console.example/": f"wss://{console}/",
        "wss://console-1.internal.example:6080/": f"wss://{console}/",
        "host = 0.0.0.0\n": f"host = 127.0.0.1\nport = {ports['console']}\n",
        "https://pve1.example:8006": node,
        "https://pve2.example:8006": node.replace("127.0.0.1", "localhost"),
        "10.0.0.5, 10.0.0.6": "127.0.0.1",
    }


def logins(postgres: Postgres, broker: Broker) -> dict[str, str]:
    """Return passwords, each user's its own, with the hosts that take them."""
    bus, service = secrets.token_hex(12), secrets.token_hex(12)
    host = broker.url.rpartition("@")[2].rstrip("/")
    found = {
        "add_user micronova …": f"add_user micronova {bus}",
        "password = …": f"password = {service}",
    }
    for printed in ("mq1", "mq2", "mq3"):
        found[f"micronova:…@{printed}:5672"] = f"micronova:{bus}@{host}"
        for user in ("conductor", "scheduler", "compute-agents-1", "console", "api"):
            mine = f"micronova-{user}"
            found[f"{mine}:…@{printed}:5672"] = f"{mine}:{bus}@{host}"
    for role in (
        *("micronova", "micronova_api", "placement"),
        *("micronova_conductor", "micronova_placement"),
    ):
        password = secrets.token_hex(12)
        made = f"CREATE ROLE {role} LOGIN PASSWORD"
        found[f"{made} '…'"] = f"{made} '{password}'"
        found[f"//{role}:…@db/"] = f"//{role}:{password}@127.0.0.1:{postgres.port}/"
    return found
