"""What docs/deploy.md prints for something of the reader's → what a test has there.

A test's machines have addresses of their own below 127, and so the printed ports.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fixtures.deployment_page import PAGE, TLS, TLS_OF_DATABASES, TLS_OF_REPLICA
from tests.functional import backends
from tests.functional.backends import Tls
from tests.functional.brokers import Cluster
from tests.functional.postgres_pair import Member
from tests.pages import ROOT, block

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


def replication(password: str) -> Mapping[str, str]:
    """Return the password of replicas."""
    made = "CREATE ROLE replicator LOGIN REPLICATION PASSWORD"
    return {f"{made} '…'": f"{made} '{password}'"}


@dataclass(frozen=True)
class Authority:
    """The page's CA, and the certificates of its servers, which are all at 127.0.0.1 here."""

    folder: Path

    @classmethod
    @contextlib.contextmanager
    def made(cls) -> Iterator[Authority]:
        """Run the page's commands in a folder that ends with the context."""
        with backends.private_folder() as folder:
            printed = block(*TLS["authority"])
            assert "=$name" in printed
            commands = printed.replace("=$name", "=IP:127.0.0.1")
            subprocess.run(["bash", "-ec", commands], cwd=folder, check=True, capture_output=True)
            for path in folder.glob("*.pem"):
                path.chmod(0o644)
            yield cls(folder)

    @property
    def ca(self) -> Path:
        """The certificate of the CA."""
        return self.folder / "ca.pem"

    def tls(self, name: str, *users: str) -> Tls:
        """Return the files of a server, with the key owned by its user."""
        key, who = self.folder / f"{name}.key", backends.account(*users).name
        if who is not None:
            os.chown(key, pwd.getpwnam(who).pw_uid, -1)
        key.chmod(0o600)
        return Tls(str(key.with_suffix(".pem")), str(key), str(self.ca))

    def configure(self, member: Member) -> None:
        """Have a server of PostgreSQL refuse all but TLS as the page says; tests look into it as
        its superuser, without a password."""
        tls = self.tls({"one": "db1", "two": "db2"}[member.name], "postgres")
        text = block(*TLS["database"]).replace("/etc/postgresql/server.pem", tls.certificate)
        with (member.data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(f"\n{text.replace('/etc/postgresql/server.key', tls.key)}\n")
        logins = block(*TLS["logins"]).replace("10.0.0.0/24", "127.0.0.1/32")
        ours = "host all postgres 127.0.0.1/32 trust"
        (member.data / "pg_hba.conf").write_text(f"{ours}\n{logins}\n", encoding="utf-8")

    def of_databases(self, replica: Member) -> dict[str, str]:
        """Return the last host of the databases' URLs, with what the page adds."""
        [added] = set(TLS_OF_DATABASES.findall(_page()))
        return {"db2:5432": f"127.0.0.1:{replica.port}{added}"}

    def of_replica(self) -> str:
        """Return what the page adds to the parameters of `pg_basebackup`."""
        [added] = TLS_OF_REPLICA.findall(_page())
        return str(added).replace("/etc/postgresql/ca.pem", str(self.ca))

    def home(self, user: str, password: str) -> Path:
        """Make a home of the user postgres with a password in `.pgpass`; return its path."""
        path = backends.account("postgres").own(self.folder / "home") / ".pgpass"
        path.write_text(f"*:*:*:{user}:{password}\n", encoding="utf-8")
        path.chmod(0o600)
        owner = path.parent.stat()
        os.chown(path, owner.st_uid, owner.st_gid)
        return path.parent


def _page() -> str:
    return (ROOT / PAGE).read_text(encoding="utf-8")
