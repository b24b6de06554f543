"""Somebody else works on the cluster: what becomes of the servers, and whose VMs are.

On the embedded cloud; people act through the simulated Proxmox VE's own API. The audit is clean at
the end of each test.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.audit.leaks import CLUSTER, Proxmox, a_server, delete, marks, micronova
from tests.functional.audits import Audits
from tests.functional.cloud import EmbeddedCloud, eventually

#: a look counts some time after the last change, and when a second one agrees
FOLLOW_SECONDS = 120
SETTLE_SECONDS = 16


@pytest.fixture(scope="module")
def cloud(three_nodes: EmbeddedCloud) -> EmbeddedCloud:
    """A simulated cluster of three nodes."""
    return three_nodes


class People:
    """A person at the cluster, an administrator of the cloud, and what they see."""

    def __init__(self, cloud: EmbeddedCloud) -> None:
        self.cloud = cloud
        self.proxmox = Proxmox(cloud)
        self.compute = cloud.connection("micronova-admin").compute
        self.audits = Audits(cloud)

    def server(self, uuid: str) -> Any:
        return self.compute.get(f"/servers/{uuid}", microversion="2.16").json()["server"]

    def until(self, uuid: str, **wanted: Any) -> Any:
        """Wait until the server shows this."""

        def shown() -> Any:
            server = self.server(uuid)
            names = {"host": "OS-EXT-SRV-ATTR:host", "task": "OS-EXT-STS:task_state"}
            seen = {name: server[names.get(name, name)] for name in wanted}
            return server if seen == wanted else None

        return eventually(shown, FOLLOW_SECONDS, 0.5)

    def let_settle(self, uuid: str) -> None:
        """Wait until looks at the server's VM count: they would later anyway."""
        since = datetime.timedelta(seconds=SETTLE_SECONDS)

        def settled() -> bool:
            changed = datetime.datetime.fromisoformat(self.server(uuid)["updated"])
            return datetime.datetime.now(datetime.UTC) - changed > since

        eventually(settled, 2 * SETTLE_SECONDS, 0.5)

    def allocations(self, uuid: str) -> list[str]:
        """The hosts of its allocation."""
        session = self.compute.session
        base = f"{self.cloud.base_url}/placement"
        headers = {"OpenStack-API-Version": "placement 1.36"}
        found = session.get(f"{base}/allocations/{uuid}", headers=headers).json()
        hosts = []
        for provider in found["allocations"]:
            path = f"{base}/resource_providers/{provider}"
            hosts.append(session.get(path, headers=headers).json()["name"])
        return hosts

    def story(self, uuid: str, action: str) -> Any:
        """The newest operation of that name, at its end."""

        def ended() -> Any:
            found = self.compute.get(f"/explanations/{uuid}").json()["explanation"]["operations"]
            mine = [one for one in found if one["action"] == action]
            return mine[-1] if mine and mine[-1]["finished_at"] else None

        return eventually(ended, 60)

    def command(self, *words: str, code: int = 0) -> str:
        """Run `micronova` as administrator; what it said."""
        done, out, err = micronova(self.cloud, *words)
        assert done == code, err
        return out if code == 0 else err


def path_of(server: Any) -> str:
    """Of a server's VM, where the record had it."""
    return f"nodes/{server['node']}/qemu/{server['vmid']}"


@pytest.fixture
def people(cloud: EmbeddedCloud) -> Iterator[People]:
    made = People(cloud)
    yield made
    made.audits.assert_clean()


def test_servers_follow_what_somebody_does(people: People) -> None:
    """All at once: one is switched, one moved, one removed."""
    switched, moved, removed = (a_server(people.cloud, name) for name in ("s", "m", "r"))
    target = next(name for name in ("pve1", "pve2") if name != moved["node"])
    people.let_settle(removed["uuid"])
    for server in (switched, removed):
        people.proxmox.call("POST", f"{path_of(server)}/status/stop")
    live = {"target": target, "online": 1, "with-local-disks": 1}
    people.proxmox.call("POST", f"{path_of(moved)}/migrate", **live)
    people.until(removed["uuid"], status="SHUTOFF")
    people.until(switched["uuid"], status="SHUTOFF")
    people.until(moved["uuid"], host=target, status="ACTIVE")
    people.proxmox.call("DELETE", f"{path_of(removed)}?purge=1")
    people.let_settle(switched["uuid"])
    people.proxmox.call("POST", f"{path_of(switched)}/status/start")
    people.until(switched["uuid"], status="ACTIVE")
    shown = people.until(removed["uuid"], status="ERROR")
    assert "is gone" in shown["fault"]["message"]

    story = people.story(switched["uuid"], "sync-power")
    assert (story["state"], story["events"][0]["detail"]["seen"]) == ("done", "RUNNING")
    actions = people.compute.get(f"/servers/{switched['uuid']}/os-instance-actions").json()
    assert [one["action"] for one in actions["instanceActions"]].count("sync-power") == 2

    story = people.story(moved["uuid"], "follow")
    names = [event["name"] for event in story["events"]]
    assert names == ["conductor_follow_vm", "conductor_move_allocation"]
    assert people.allocations(moved["uuid"]) == [target]
    # It is worked on where it is now.
    people.compute.stop_server(moved["uuid"])
    people.until(moved["uuid"], status="SHUTOFF", task=None)

    (fault,) = people.story(removed["uuid"], "follow")["faults"]
    assert (fault["category"], "It is not created again" in fault["message"]) == ("vanished", True)
    assert people.proxmox.vm(removed["vmid"]) is None
    # Somebody restores it, with its marks.
    people.let_settle(removed["uuid"])
    # (On another node its config drive would not be beside it, and be the audit's to remove.)
    people.proxmox.make_vm(
        removed["vmid"], removed["node"], **marks(removed["uuid"], people.cloud)
    )
    people.until(removed["uuid"], host=removed["node"], status="SHUTOFF")
    for server in (switched, moved, removed):
        delete(people.cloud, server["uuid"])
        assert people.proxmox.vm(server["vmid"]) is None


def test_a_server_whose_node_is_away_stays(people: People) -> None:
    server = a_server(people.cloud, "away")
    people.let_settle(server["uuid"])
    fault = people.cloud.control("POST", "faults", action="node-down", node=server["node"])
    people.until(server["uuid"], host_status="UNKNOWN", status="ACTIVE")
    people.cloud.control("DELETE", f"faults?id={fault['id']}")
    # Its machines stopped with it.
    people.until(server["uuid"], host_status="UP", status="SHUTOFF")
    delete(people.cloud, server["uuid"])


def a_persons_vm(people: People, vmid: int, **config: Any) -> Any:
    config = {"name": f"vm{vmid}", "cores": 2, "smbios1": "", "description": "mine"} | config
    kept = {key: value for key, value in config.items() if value != ""}
    people.proxmox.make_vm(vmid, "pve2", net0="virtio,bridge=vmbr0", **kept)
    people.proxmox.call("POST", f"nodes/pve2/qemu/{vmid}/status/start")
    return people.proxmox.vm(vmid)


def current(people: People, vmid: int) -> Any:
    """The ID of the process: a restart changes it."""
    return people.proxmox.call("GET", f"nodes/pve2/qemu/{vmid}/status/current")["pid"]


def test_adopt_and_release(people: People) -> None:
    before = a_persons_vm(people, 5000)
    process = current(people, 5000)
    words = ("server", "adopt", "--cluster", CLUSTER, "--vmid", "5000", "--project", "demo")
    server = json.loads(people.command(*words, "--wait", "-f", "json"))
    assert (server["name"], server["status"]) == ("vm5000", "ACTIVE")
    uuid = server["id"]
    assert people.allocations(uuid) == ["pve2"]
    after = people.proxmox.vm(5000)
    changed = {
        key
        for key in {*before["config"], *after["config"]}
        if before["config"].get(key) != after["config"].get(key)
    }
    assert changed <= {"description"}
    assert after["config"]["description"].startswith(f"mine\nmicronova: server={uuid}")
    assert current(people, 5000) == process
    people.audits.assert_clean()
    again = people.command(*words, code=1)
    assert f"carries the mark of server {uuid}" in again
    people.compute.stop_server(uuid)
    people.until(uuid, status="SHUTOFF", task=None)
    people.compute.start_server(uuid)
    people.until(uuid, status="ACTIVE", task=None)
    process = current(people, 5000)
    people.command("server", "release", uuid, "--wait")
    assert people.compute.get(f"/servers/{uuid}").status_code == 404
    released = people.proxmox.vm(5000)
    assert released["config"]["description"].rstrip() == "mine"
    assert current(people, 5000) == process
    assert people.allocations(uuid) == []


def test_a_built_server_is_released_as_well(people: People) -> None:
    server = a_server(people.cloud, "built")
    people.command("server", "release", "--all-projects", server["uuid"], "--wait")
    config = people.proxmox.vm(server["vmid"])["config"]
    assert "description" not in config
    assert "tags" not in config
    assert config["smbios1"] == f"uuid={server['uuid']}"
    assert config["ide2"].partition(",")[0] in people.proxmox.volumes(server["vmid"])
    people.audits.assert_clean()
    people.proxmox.call("POST", f"{path_of(server)}/status/stop")


def test_what_cant_be_adopted_says_why(people: People) -> None:
    people.proxmox.make_vm(5001, "pve2")
    people.proxmox.call("POST", "nodes/pve2/qemu/5001/template")
    template = ("server", "adopt", "--cluster", CLUSTER, "--vmid", "5001", "--project", "demo")
    assert "is a template" in people.command(*template, code=1)
    nothing = ("server", "adopt", "--cluster", CLUSTER, "--vmid", "5999", "--project", "demo")
    assert "has no VM 5999" in people.command(*nothing, code=1)
    nowhere = ("server", "adopt", "--cluster", "mars", "--vmid", "1000", "--project", "demo")
    assert "There is no cluster mars" in people.command(*nowhere, code=1)
    body = {"adoption": {"cluster": CLUSTER, "vmid": 5001, "project_id": "0" * 32}}
    answer = people.compute.post("/adoptions", json=body)
    assert answer.status_code == 400
    assert "is not a valid project" in answer.text


def test_an_adopted_server_is_deleted_with_its_vm(people: People) -> None:
    a_persons_vm(people, 5002, smbios1="uuid=12345678-1234-4234-8234-123456789abc")
    words = ("server", "adopt", "--cluster", CLUSTER, "--vmid", "5002", "--project", "demo")
    server = json.loads(people.command(*words, "--name", "mail", "--wait", "-f", "json"))
    assert server["id"] == "12345678-1234-4234-8234-123456789abc"
    assert server["name"] == "mail"
    config = people.proxmox.vm(5002)["config"]
    assert "adopted" not in config["description"]
    people.compute.delete_server(server["id"])
    eventually(lambda: people.proxmox.vm(5002) is None)
    eventually(lambda: people.compute.get(f"/servers/{server['id']}").status_code == 404)


def test_a_delete_in_a_strangers_hands_is_ended_by_forgetting(people: People) -> None:
    server = a_server(people.cloud, "lost")
    uuid, vmid, node = server["uuid"], server["vmid"], server["node"]
    ours = people.command("server", "forget", "--all-projects", uuid, code=1)
    assert "by all its marks" in ours
    people.proxmox.call("POST", f"nodes/{node}/qemu/{vmid}/status/stop")
    people.proxmox.call("DELETE", f"nodes/{node}/qemu/{vmid}?purge=1")
    people.proxmox.make_vm(vmid, node, name="a-strangers")
    people.compute.delete_server(uuid)
    people.command("server", "hold", "--all-projects", uuid)
    eventually(
        lambda: any(
            one["faults"]
            for one in people.compute.get(f"/explanations/{uuid}").json()["explanation"][
                "operations"
            ]
        )
    )
    assert "held" in people.command("explain", uuid)
    people.command("server", "forget", "--all-projects", uuid)
    eventually(lambda: people.compute.get(f"/servers/{uuid}").status_code == 404)
    assert people.allocations(uuid) == []
    assert people.proxmox.vm(vmid)["config"]["name"] == "a-strangers"
    steps = {step["name"]: step["detail"] for step in people.story(uuid, "forget")["events"]}
    assert steps["api_request"]["path"].endswith(f"/servers/{uuid}/action")
    evidence = steps["conductor_forget_server"]
    assert evidence["found_name"] == "a-strangers"
    # Its config drive went with the record: nobody else has one of that name.
    eventually(lambda: not [one for one in people.proxmox.volumes(vmid) if ":iso/" in one])
    people.proxmox.call("DELETE", f"nodes/{node}/qemu/{vmid}?purge=1")
