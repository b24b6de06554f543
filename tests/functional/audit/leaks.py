"""Plants what a leak leaves, straight into a simulated cluster or the databases, for tests."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import uuid
from collections.abc import Iterator
from typing import Any

import requests

from tests.functional import programs
from tests.functional.cloud import EmbeddedCloud, eventually

CLUSTER = "sim1"


class Proxmox:
    """The first simulated cluster's API, as somebody with a token of their own uses it."""

    def __init__(self, cloud: EmbeddedCloud) -> None:
        folder = cloud.simulator
        self._cloud = cloud
        endpoints = json.loads((folder / "endpoints.json").read_text(encoding="utf-8"))
        token = json.loads((folder / "token.json").read_text(encoding="utf-8"))
        self.address = str(endpoints[0]["url"])
        """Of the API."""
        self._url = f"{self.address}/api2/json"
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.verify = str(folder / "ca.pem")
        self._session.headers["Authorization"] = (
            f"PVEAPIToken={token['tokenid']}={token['secret']}"
        )

    def call(self, method: str, path: str, **data: Any) -> Any:
        """One request; a task is waited for."""
        answer = self._session.request(
            method, f"{self._url}/{path}", data=data or None, timeout=30
        )
        answer.raise_for_status()
        result = answer.json()["data"]
        if isinstance(result, str) and result.startswith("UPID:"):
            self._wait(result)
        return result

    def _wait(self, upid: str) -> None:
        node = upid.split(":")[1]

        def ended() -> Any:
            status = self.call("GET", f"nodes/{node}/tasks/{upid}/status")
            return status if status["status"] == "stopped" else None

        assert eventually(ended, 30)["exitstatus"].startswith(("OK", "WARNINGS"))

    def make_vm(self, vmid: int, node: str, **config: Any) -> None:
        """A VM with one small disk."""
        self.call(
            "POST",
            f"nodes/{node}/qemu",
            vmid=vmid,
            memory=128,
            scsi0="local:1",
            **config,
        )

    def state(self) -> Any:
        """What is in the cluster."""
        return self._cloud.control("GET", "state")["clusters"][0]

    def vm(self, vmid: int) -> Any:
        """A VM, or None."""
        return next((vm for vm in self.state()["vms"] if vm["vmid"] == vmid), None)

    def volumes(self, vmid: int) -> list[str]:
        """Volumes that bear the VMID."""
        return [
            one["volid"]
            for one in self.state()["volumes"]
            if one["vmid"] == vmid or f"-{vmid}-" in one["name"]
        ]


def marks(server_uuid: str, cloud: EmbeddedCloud | None) -> dict[str, str]:
    """What the VM of a server says of itself; None: of another cloud's."""
    whose = "another"
    if cloud is not None:
        with database(cloud) as connection:
            whose = connection.execute("SELECT cloud_id FROM cloud_identity").fetchone()[0]
    return {
        "description": f"micronova: server={server_uuid}\nmicronova: cloud={whose}",
        "smbios1": f"uuid={server_uuid}",
        "tags": "micronova",
    }


@contextlib.contextmanager
def database(cloud: EmbeddedCloud) -> Iterator[sqlite3.Connection]:
    """The cloud database, to be written behind everybody's back."""
    connection = sqlite3.connect(cloud.state_dir / "cloud.sqlite", timeout=30)
    connection.row_factory = sqlite3.Row
    try:
        with connection:
            yield connection
    finally:
        connection.close()


def micronova(cloud: EmbeddedCloud, *argv: str) -> tuple[int, str, str]:
    """Run a command as administrator; exit code, standard output, standard error."""
    done = programs.run("micronova", argv, cloud.environment("micronova-admin"))
    return done.returncode, done.stdout, done.stderr


def a_server(cloud: EmbeddedCloud, name: str) -> Any:
    """An ACTIVE server."""
    connection = cloud.connection()
    server = connection.compute.create_server(
        name=name,
        flavor_id=connection.compute.find_flavor("m1.nano").id,
        image_id=connection.image.find_image("cirros").id,
        networks=[{"uuid": connection.network.find_network("vmbr0").id}],
    )
    connection.compute.wait_for_server(server, wait=60)
    return row(cloud, server.id)


def takes_servers(cloud: EmbeddedCloud) -> int:
    """How many hosts would take a server now."""
    compute = cloud.connection("micronova-admin").compute
    flavor = compute.find_flavor("m1.nano").id
    hosts = compute.get(f"/capacity?flavor={flavor}").json()["capacity"]["hosts"]
    return sum(host["count"] > 0 for host in hosts)


def delete(cloud: EmbeddedCloud, server_uuid: str) -> None:
    """Delete a server and see it gone."""
    compute = cloud.connection().compute
    compute.delete_server(server_uuid)
    eventually(lambda: row(cloud, server_uuid)["vm_state"] == "deleted")


def row(cloud: EmbeddedCloud, server_uuid: str) -> Any:
    """A server's record."""
    with database(cloud) as connection:
        found = connection.execute("SELECT * FROM servers WHERE uuid = ?", (server_uuid,))
        return dict(found.fetchone())


def a_stranger() -> str:
    """A server that this cloud never had."""
    return str(uuid.uuid4())
