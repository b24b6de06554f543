"""What docs/deploy.md prints for something of the reader's → what a test has there.

A test's machines have addresses of their own below 127, and so the printed ports.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.functional import backends
from tests.functional.brokers import Cluster
from tests.functional.postgres_pair import Member

_FIRST_OF_SERVICES = 10


@dataclass(frozen=True)
class Network:
    """Addresses that no other test of this machine has."""

    prefix: str
    front: int
    """The port of the proxy."""

    @classmethod
    def some(cls) -> Network:
        """Return one."""
        prefix = f"127.{1 + secrets.randbelow(250)}.{1 + secrets.randbelow(250)}"
        return cls(prefix, backends.free_port())

    def machine(self, number: int) -> str:
        """Return the address of a machine with services; 0 is the first."""
        return f"{self.prefix}.{_FIRST_OF_SERVICES + number}"

    @property
    def proxy(self) -> str:
        """Where the proxy listens."""
        return f"{self.prefix}.5:{self.front}"


def paths(folder: Path) -> dict[str, str]:
    """Return folders of a machine, in a folder, and the group that they belong to."""
    return {
        "/opt/micronova": f"{folder}/opt/micronova",
        "/usr/local/bin": f"{folder}/usr/local/bin",
        "/etc/micronova": f"{folder}/etc/micronova",
        "/etc/haproxy/": f"{folder}/etc/haproxy/",
        "/etc/systemd/system/": f"{folder}/etc/systemd/system/",
        "/var/lib/": f"{folder}/var/lib/",
        "-g micronova ": f"-g {os.getegid()} ",
    }


def services(
    folder: Path, network: Network, number: int, auth_url: str, node: str, caches: Sequence[str]
) -> dict[str, str]:
    """Return hosts of a machine; `node` is the URL of Proxmox VE."""
    own = network.machine(number)
    return {
        "server_name cloud.example;": f"server_name {own};",
        "https://keystone.example/v3": auth_url,
        "https://keystone.example.org/v3": auth_url,
        "https://cloud.example": f"https://{network.proxy}",
        # with a path that is a default of the code
        "fetch_url = http://10.0.0.10:8774/image\n": f"fetch_url = http://{own}:8774/image\n"
        f"spool_dir = {folder}/var/lib/micronova/spool\n",
        "10.0.0.5, 10.0.0.6": "127.0.0.1",
        "10.0.0.10": own,
        "cache1:11211": caches[0],
        "cache2:11211": caches[1],
        # One name, whichever machine's API answers.
        "https://console.example/": f"https://{network.machine(0)}:6080/",
        "wss://console.example/": f"wss://{network.machine(0)}:6080/",
        "wss://console-1.internal.example:6080/": f"wss://{own}:6080/",
        "host = 0.0.0.0\n": f"host = {own}\n",
        "https://pve1.example:8006": node,
        "https://pve2.example:8006": node.replace("127.0.0.1", "localhost"),
        # The proxy's certificate is of a CA of this test.
        "[dashboard]\n": f"[dashboard]\ncafile = {folder}/certificate/ca.pem\n",
        "valid_interfaces = internal,public\n": "valid_interfaces = internal,public\n"
        f"cafile = {folder}/certificate/ca.pem\n",
    }


def databases(primary: Member, replica: Member) -> dict[str, str]:
    """Return hosts of PostgreSQL, and the replica's folder."""
    return {
        "host=db1 port=5432": f"host=127.0.0.1 port={primary.port}",
        "/var/lib/postgresql/15/main": str(replica.data),
        "db1:5432": f"127.0.0.1:{primary.port}",
        "db2:5432": f"127.0.0.1:{replica.port}",
    }


def logins(brokers: Cluster) -> dict[str, str]:
    """Return passwords, each user's its own, with the hosts that take them."""
    bus, service = secrets.token_hex(12), secrets.token_hex(12)
    found = {
        "add_user micronova …": f"add_user micronova {bus}",
        "password = …": f"password = {service}",
    }
    for number, node in enumerate(brokers.nodes, 1):
        printed, ours = f"@mq{number}:5672", f"@127.0.0.1:{node.port}"
        found[f"micronova:…{printed}"] = f"micronova:{bus}{ours}"
        for user in ("conductor", "scheduler", "compute-agents-1", "console", "api"):
            found[f"micronova-{user}:…{printed}"] = f"micronova-{user}:{bus}{ours}"
    for role in (
        *("micronova", "micronova_api", "placement"),
        *("micronova_conductor", "micronova_placement"),
    ):
        password = secrets.token_hex(12)
        made = f"CREATE ROLE {role} LOGIN PASSWORD"
        found[f"{made} '…'"] = f"{made} '{password}'"
        found[f"//{role}:…@"] = f"//{role}:{password}@"
    return found


def replication() -> Mapping[str, str]:
    """Return the password of replicas."""
    made = "CREATE ROLE replicator LOGIN REPLICATION PASSWORD"
    return {f"{made} '…'": f"{made} '{secrets.token_hex(12)}'"}
