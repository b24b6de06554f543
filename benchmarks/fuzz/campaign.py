"""Many hostile requests against a running cloud, and its state afterwards."""

from __future__ import annotations

import collections
import contextlib
import json
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.fuzz import clustering
from benchmarks.fuzz.requests import APIS, Made, Maker
from benchmarks.fuzz.sender import NO_ANSWER, Answer, Sender
from benchmarks.fuzz.surface import targets
from benchmarks.fuzz.values import UUID
from tests.functional.cloud import EmbeddedCloud, eventually

CLIENTS = 4
#: until deleted volumes must be gone
VOLUMES_SECONDS = 300
REFRESH = 1000
"""Requests after which what exists is looked up, and made, again: much of it gets deleted."""

_KEPT_SAMPLES = 400

#: {name in a path or a body: the path of those records}
_RECORDS = {
    "subnet_id": "subnets",
    "port_id": "ports",
    "security_group_id": "security-groups",
    "remote_group_id": "security-groups",
    "rule_id": "security-group-rules",
    "default_rule_id": "default-security-group-rules",
    "remote_address_group_id": "address-groups",
    "policy_id": "rbac-policies",
}


#: status → how refusals begin that are meant: of what can never be done, in the forms of compute,
#: of networks and of groups; and of backups where no storage takes them, in Cinder's words
_MEANT = {
    501: (
        *('{"notImplemented":', '{"NeutronError":{"type":"HTTPNotImplemented"'),
        '{"code":501,"title":"Not Implemented","explanation":"',
    ),
    503: (
        '{"serviceUnavailable":{"code":503,"message":"Service cinder-backup could not be found',
    ),
}


def _is_error(answer: Answer) -> bool:
    """Return whether the server failed; to say that hosts can't be shut down is no failure."""
    return answer.status >= 500 and not answer.text.startswith(_MEANT.get(answer.status, ()))


class Campaign:
    """Hostile requests of one seed; `run` may be called once."""

    def __init__(self, cloud: EmbeddedCloud, seed: int) -> None:
        self._cloud, self._seed = cloud, seed
        self._targets = targets()
        self._admin = cloud.connection("micronova-admin")
        self._member = cloud.connection("micronova-demo")
        self._providers = self._provider_ids()
        self._lock = threading.Lock()
        self.statuses: dict[str, collections.Counter[int]] = collections.defaultdict(
            collections.Counter
        )
        self.errors: list[dict[str, Any]] = []
        self.unanswered: list[dict[str, Any]] = []
        self.done = 0

    def run(self, count: int, seconds: float) -> None:
        """Send requests 0 … count, or as many as there is time for."""
        deadline = time.monotonic() + seconds
        for first in range(0, count, REFRESH):
            if time.monotonic() > deadline:
                return
            numbers = range(first, min(first + REFRESH, count))
            maker = Maker(self._seed, self._targets, self._known())
            tokens = {"{admin}": self._token(self._admin), "{member}": self._token(self._member)}
            clients = [
                threading.Thread(target=self._send, args=(numbers[each::CLIENTS], maker, tokens))
                for each in range(CLIENTS)
            ]
            for client in clients:
                client.start()
            for client in clients:
                client.join()

    def clean(self) -> list[str]:
        """Delete what was created; return what could not be deleted, or remains without owner."""
        compute = self._admin.compute
        for service in self._get(compute, "/os-services")["services"]:
            if service.get("status") == "disabled" or service.get("forced_down"):
                change = {"status": "enabled", "forced_down": False}
                compute.put(f"/os-services/{service['id']}", json=change, microversion="2.53")

        # First: they would replace their servers.
        left = clustering.clean(self._member.clustering, self._admin.clustering)

        def empty() -> bool:
            found = self._get(compute, "/servers?all_tenants=1")["servers"]
            for server in found:
                compute.delete(f"/servers/{server['id']}")
            return not found

        eventually(empty, 300, 1)
        placement = self._admin.placement
        for uuid in sorted(self._provider_ids() - self._providers):
            for consumer in self._placement(f"/resource_providers/{uuid}/allocations")[
                "allocations"
            ]:
                placement.delete(f"/allocations/{consumer}")
            placement.delete(f"/resource_providers/{uuid}/inventories", microversion="1.39")
        for _ in range(8):  # children before parents
            for uuid in self._provider_ids() - self._providers:
                placement.delete(f"/resource_providers/{uuid}")
        left += sorted(f"resource provider {u}" for u in self._provider_ids() - self._providers)
        for uuid in sorted(self._providers & self._provider_ids()):
            held = self._placement(f"/resource_providers/{uuid}/allocations")["allocations"]
            left += [f"allocation of {consumer} on {uuid}" for consumer in held]
        network = self._admin.network
        for port in self._get(network, "/ports")["ports"]:
            network.delete(f"/ports/{port['id']}")
        ports = self._get(network, "/ports")["ports"]
        left += [f"port {port['id']}" for port in ports]
        for one in self._made_networks():
            network.delete(f"/networks/{one}")
        left += self._remaining_volumes()
        return left + [f"network {one}" for one in self._made_networks()]

    def _remaining_volumes(self) -> list[str]:
        """Delete volumes, and what they can't be deleted with; return what remains."""
        with contextlib.suppress(AssertionError):  # what remains is in the report
            eventually(lambda: not self._delete_volumes(), VOLUMES_SECONDS, 1)
        return [f"volume {one['id']} ({one['status']})" for one in self._volumes()]

    def _delete_volumes(self) -> list[Any]:
        """Delete what can be deleted now; return the volumes that there were."""
        storage = self._admin.block_storage
        for path, key in (("os-volume-transfer", "transfers"), ("backups", "backups")):
            for one in self._get(storage, f"/{path}?all_tenants=1")[key]:
                storage.delete(f"/{path}/{one['id']}")
        found = self._volumes()
        for one in found:
            query = "cascade=true&force=true"
            storage.delete(f"/volumes/{one['id']}?{query}", microversion="3.23")
        return found

    def _volumes(self) -> list[Any]:
        found = self._get(self._admin.block_storage, "/volumes/detail?all_tenants=1")
        return list(found["volumes"])

    def _made_networks(self) -> list[str]:
        """Return the networks that have an owner."""
        found = self._get(self._admin.network, "/networks")["networks"]
        return [one["id"] for one in found if one["project_id"]]

    # --- sending

    def _send(self, numbers: Sequence[int], maker: Maker, tokens: Mapping[str, str]) -> None:
        urls = dict.fromkeys(APIS, self._cloud.base_url) | {"identity": self._cloud.auth_url}
        sender = Sender(urls)
        with contextlib.closing(sender):
            for number in numbers:
                made = maker.make(number)
                began = time.monotonic()
                answer = sender.send(made, tokens)
                self._note(number, made, answer, time.monotonic() - began)

    def _note(self, number: int, made: Made, answer: Answer, seconds: float) -> None:
        sample = {
            "number": number,
            **made.replay_fields(),
            "status": answer.status,
            "said": answer.text,
        }
        sample["seconds"] = round(seconds, 1)
        with self._lock:
            self.done += 1
            self.statuses[made.api][answer.status] += 1
            if _is_error(answer) and len(self.errors) < _KEPT_SAMPLES:
                self._record(self.errors, sample)
            if answer.status == NO_ANSWER and not made.breaks_protocol:
                self._record(self.unanswered, sample)

    @staticmethod
    def _record(samples: list[dict[str, Any]], sample: dict[str, Any]) -> None:
        """Store a sample, and show it at once: the whole run takes long."""
        samples.append(sample)
        print(json.dumps(sample), file=sys.stderr, flush=True)

    # --- what there is

    def _known(self) -> dict[str, tuple[str, ...]]:
        """Return {name in a path or a body: existing values}; makes some of them."""
        compute, member = self._admin.compute, self._member.compute
        images = [each["id"] for each in self._get(self._admin.image, "/images")["images"]]
        flavor = {"name": "fuzz", "id": "fuzz", "ram": 64, "vcpus": 1, "disk": 0}
        compute.post("/flavors", json={"flavor": flavor})  # unless it is there still
        flavors = [each["id"] for each in self._get(compute, "/flavors")["flavors"]]
        for name in ("fuzz", "fuzz-2"):
            self._member.network.post("/networks", json={"network": {"name": name}})
        networks = self._get(self._admin.network, "/networks?sort_key=shared&sort_dir=desc")
        networks = networks["networks"]
        network_ids = [each["id"] for each in networks]
        self._make(member, images, flavors, network_ids)
        wanted = [{"network_id": one, "name": "fuzz"} for one in network_ids[:1] * 2]
        self._member.network.post("/ports", json={"ports": wanted})
        records = self._records()
        servers = [each["id"] for each in self._get(member, "/servers?limit=5")["servers"]]
        self._member.block_storage.post("/volumes", json={"volume": {"size": 1, "name": "fuzz"}})
        volumes = self._get(self._member.block_storage, "/volumes?limit=5")["volumes"]
        types = self._get(self._member.block_storage, "/types")["volume_types"]
        hypervisors = self._get(compute, "/os-hypervisors", "2.53")["hypervisors"]
        aggregates = self._get(compute, "/os-aggregates")["aggregates"]
        own = sorted(self._provider_ids() - self._providers)[:20]
        project = self._member.current_project_id
        groups = clustering.known(self._member.clustering, images[0])
        found = {
            # Not the servers: placement's records of them are what an audit compares.
            "uuid": [*images, *network_ids, *own, UUID],
            "marker": [*servers, *images, *network_ids],
            "subject": servers,
            "server_id": servers,
            "imageRef": images[:3],
            "image_id": images,
            "flavorRef": flavors[:2],
            "flavor_id": flavors,
            "network": network_ids,
            "network_id": network_ids,
            "object_id": network_ids,
            "volume_id": [each["id"] for each in volumes],
            "volumeId": [each["id"] for each in volumes],
            "type_id": [each["id"] for each in types],
            "record_id": [*network_ids, *(one for ids in records.values() for one in ids)],
            "port": records["port_id"],
            **records,
            **self._of_volumes(),
            **groups,
            "policy_id": [*records["policy_id"], *groups["policy_id"]],
            "networks": ["auto", "none"],
            "hypervisor_id": [str(each["id"]) for each in hypervisors],
            "host": [each["hypervisor_hostname"] for each in hypervisors],
            "aggregate_id": [str(each["id"]) for each in aggregates],
            "project_id": [project],
            "key_name": ["fuzz"],
            "keypair_name": ["fuzz"],
            "name": ["fuzz", "CUSTOM_A", "VCPU", "HW_CPU_X86_VMX", "OS::Nova::Server"],
            "namespace": ["fuzz", "fuzz", "fuzz-2", "OS::Compute::Libvirt"],
            **{"tag": ["fuzz"], "class_name": ["default"]},
            "resource_class": ["VCPU", "CUSTOM_A"],
            "alias": ["quotas"],
        }
        return {name: tuple(values) for name, values in found.items() if values}

    def _records(self) -> dict[str, list[str]]:
        """Return {name in a path or a body: some records of networks}; makes some of them."""
        network = self._admin.network
        group = {"name": "fuzz", "addresses": ["10.0.0.0/8"]}
        self._member.network.post("/address-groups", json={"address_group": group})
        rule = {"direction": "ingress", "used_in_default_sg": False}
        network.post("/default-security-group-rules", json={"default_security_group_rule": rule})
        found = {}
        for name, path in _RECORDS.items():
            client = self._member.network if name == "port_id" else network
            listed = self._get(client, f"/{path}?limit=5")
            found[name] = [each["id"] for each in listed[path.replace("-", "_")]]
        return found

    def _of_volumes(self) -> dict[str, list[str]]:
        """Return {name in a path: some records of the volume API}."""
        storage = self._member.block_storage
        paths = {
            "snapshot_id": "snapshots",
            "backup_id": "backups",
            "attachment_id": "attachments",
        }
        found = {
            name: [each["id"] for each in self._get(storage, f"/{path}?limit=5", "3.27")[path]]
            for name, path in paths.items()
        }
        moved = self._get(storage, "/os-volume-transfer")["transfers"]
        return found | {"transfer_id": [each["id"] for each in moved]}

    def _make(self, member: Any, images: list[str], flavors: list[str], nets: list[str]) -> None:
        member.post("/os-keypairs", json={"keypair": {"name": "fuzz"}}, microversion="2.1")
        server = {"name": "fuzz", "imageRef": images[0], "flavorRef": flavors[0]}
        body = {"server": server | {"networks": [{"uuid": nets[0]}], "metadata": {"a": "b"}}}
        member.post("/servers", json=body, microversion="2.37")
        for name in ("fuzz", "fuzz-2"):
            self._admin.image.post("/metadefs/namespaces", json={"namespace": name})
        provider = {"name": f"fuzz-{time.monotonic_ns()}"}
        self._admin.placement.post("/resource_providers", json=provider)

    def _provider_ids(self) -> set[str]:
        found = self._placement("/resource_providers")["resource_providers"]
        return {str(each["uuid"]) for each in found}

    def _placement(self, path: str) -> Any:
        return self._get(self._admin.placement, path, "1.39")

    @staticmethod
    def _get(client: Any, path: str, version: str | None = None) -> Any:
        answer = client.get(path, microversion=version)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    @staticmethod
    def _token(connection: Any) -> str:
        return str(connection.auth_token)
