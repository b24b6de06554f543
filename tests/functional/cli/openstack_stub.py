"""A cloud of canned answers over HTTP: just enough of five APIs for clients to read from."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

SERVER_ID = "11111111-1111-1111-1111-111111111111"
IMAGE_ID = "22222222-2222-2222-2222-222222222222"
NETWORK_ID = "33333333-3333-3333-3333-333333333333"
REQUEST_ID = "req-00000000-0000-0000-0000-000000000001"
PROJECT_ID = "44444444444444444444444444444444"
USER_ID = "55555555555555555555555555555555"
TOKEN = "gAAAA-secret-token"

_FLAVOR = {"original_name": "m1.small", "vcpus": 1, "ram": 512, "disk": 4, "ephemeral": 0}
_SERVER = {
    "id": SERVER_ID,
    "name": "web",
    "status": "ACTIVE",
    "tenant_id": PROJECT_ID,
    "user_id": USER_ID,
    "metadata": {"role": "front", "b": "1"},
    "image": {"id": IMAGE_ID},
    "flavor": {**_FLAVOR, "swap": 0, "extra_specs": {}},
    "created": "2026-01-01T00:00:00Z",
    "updated": "2026-01-01T00:00:04Z",
    "addresses": {
        "vmbr0": [
            {"addr": "10.0.0.5", "version": 4, "OS-EXT-IPS:type": "fixed"},
            {"addr": "fd00::5", "version": 6, "OS-EXT-IPS:type": "fixed"},
        ]
    },
    "key_name": None,
    "config_drive": "True",
    "accessIPv4": "",
    "hostId": "ab",
    "OS-EXT-AZ:availability_zone": "c1",
    "OS-EXT-STS:task_state": None,
    "OS-EXT-STS:vm_state": "active",
    "OS-EXT-STS:power_state": 1,
    "OS-EXT-SRV-ATTR:hypervisor_hostname": "pve1",
    "OS-EXT-SRV-ATTR:host": "pve1",
    "OS-EXT-SRV-ATTR:reservation_id": "r-1",
    "os-extended-volumes:volumes_attached": [],
    "security_groups": [{"name": "default"}],
    "tags": ["b", "a"],
    "locked": False,
    "pinned_availability_zone": None,
    "scheduler_hints": {"group": ["g"]},
    "links": [],
}
_ACTION = {
    "action": "create",
    "request_id": REQUEST_ID,
    "instance_uuid": SERVER_ID,
    "user_id": USER_ID,
    "project_id": PROJECT_ID,
    "start_time": "2026-01-01T00:00:00.000000",
    "updated_at": "2026-01-01T00:00:04.000000",
    "message": None,
}
_EVENT = {
    "event": "compute_create_vm",
    "start_time": "2026-01-01T00:00:01.000000",
    "finish_time": "2026-01-01T00:00:02.500000",
    "result": "Success",
    "host": "pve1",
    "hostId": "ab",
    "traceback": None,
    "details": None,
}
_BIG_FLAVOR = {
    "id": "f1",
    "name": "m1.small",
    "ram": 512,
    "vcpus": 1,
    "disk": 4,
    "swap": 0,
    "OS-FLV-EXT-DATA:ephemeral": 0,
    "os-flavor-access:is_public": True,
    "description": None,
    "extra_specs": {"hw:cpu": "x", "a": "1"},
    "links": [],
}
_IMAGE = {
    "id": IMAGE_ID,
    "name": "debian",
    "status": "active",
    "visibility": "public",
    "protected": False,
    "owner": PROJECT_ID,
    "size": 1000,
    "virtual_size": 2000,
    "min_disk": 1,
    "min_ram": 0,
    "disk_format": "qcow2",
    "container_format": "bare",
    "checksum": None,
    "tags": ["x"],
    "os_distro": "debian",
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z",
    "file": f"/v2/images/{IMAGE_ID}/file",
    "schema": "/v2/schemas/image",
}
_NETWORK = {
    "id": NETWORK_ID,
    "name": "vmbr0",
    "status": "ACTIVE",
    "subnets": ["s1"],
    "admin_state_up": True,
    "shared": True,
    "router:external": False,
    "mtu": 1500,
    "project_id": PROJECT_ID,
    "tags": [],
}
_SUBNET = {
    "id": "s1",
    "name": "lan",
    "network_id": NETWORK_ID,
    "cidr": "10.0.0.0/24",
    "ip_version": 4,
    "enable_dhcp": False,
    "dns_nameservers": ["9.9.9.9", "1.1.1.1"],
    "allocation_pools": [{"start": "10.0.0.2", "end": "10.0.0.9"}],
    "gateway_ip": "10.0.0.1",
    "host_routes": [],
    "project_id": PROJECT_ID,
}
_PORT = {
    "id": "p1",
    "name": "",
    "network_id": NETWORK_ID,
    "mac_address": "02:00:00:00:00:01",
    "fixed_ips": [{"subnet_id": "s1", "ip_address": "10.0.0.5"}],
    "status": "ACTIVE",
    "device_id": SERVER_ID,
    "device_owner": "compute:c1",
    "security_groups": [],
}
_SERVICE = {
    "id": "66666666-6666-6666-6666-666666666666",
    "binary": "nova-compute",
    "host": "pve1",
    "zone": "c1",
    "status": "disabled",
    "state": "up",
    "updated_at": "2026-01-01T00:00:00.000000",
    "disabled_reason": "new disk",
    "forced_down": False,
}
_HYPERVISOR = {
    "id": "77777777-7777-7777-7777-777777777777",
    "hypervisor_hostname": "pve1",
    "hypervisor_type": "QEMU",
    "hypervisor_version": 9000000,
    "host_ip": "10.0.0.1",
    "state": "up",
    "status": "disabled",
    "service": {"id": _SERVICE["id"], "host": "pve1", "disabled_reason": "new disk"},
    "vcpus": 8,
    "vcpus_used": 2,
    "memory_mb": 16384,
    "memory_mb_used": 2048,
    "local_gb": 100,
    "local_gb_used": 10,
    "free_ram_mb": 14336,
    "free_disk_gb": 90,
    "disk_available_least": 90,
    "running_vms": 1,
    "current_workload": 0,
    "cpu_info": {"arch": "x86_64", "model": "host"},
    "uptime": None,
    "servers": [],
}
_AGGREGATE = {
    "id": 1,
    "uuid": "88888888-8888-8888-8888-888888888888",
    "name": "fast",
    "availability_zone": "c1",
    "metadata": {"availability_zone": "c1", "ssd": "true", "rack": "7"},
    "hosts": ["pve2", "pve1"],
    "created_at": "2026-01-01T00:00:00.000000",
    "updated_at": None,
    "deleted_at": None,
    "deleted": False,
}
_SERVER_GROUP = {
    "id": "99999999-9999-9999-9999-999999999999",
    "name": "apart",
    "policy": "anti-affinity",
    "rules": {"max_server_per_host": 2},
    "members": [SERVER_ID],
    "project_id": PROJECT_ID,
    "user_id": USER_ID,
}
_KEYPAIR = {"name": "k", "fingerprint": "aa:bb", "type": "ssh", "public_key": "ssh-rsa AAAA me"}
_QUOTAS = {"cores": 20, "instances": 10, "ram": 51200, "key_pairs": 100, "metadata_items": 128}
_QUOTAS |= {"server_groups": 10, "server_group_members": 10}
_DETAIL = {key: {"limit": value, "in_use": 1, "reserved": 0} for key, value in _QUOTAS.items()}
_ZONE = {
    "zoneName": "c1",
    "zoneState": {"available": True},
    "hosts": {"pve1": {"nova-compute": {"active": True, "available": True, "updated_at": "T"}}},
}
_EXPLANATION = {
    "subject": SERVER_ID,
    "operations": [
        {
            "server": SERVER_ID,
            "action": "create",
            "request_id": REQUEST_ID,
            "state": "done",
            "started_at": "2026-01-01T00:00:00Z",
            "finished_at": "2026-01-01T00:00:04Z",
            "events": [{"name": "compute_create_vm", "started_at": "2026-01-01T00:00:01Z"}],
        }
    ],
}
_LIMITS = {"maxTotalCores": 20, "totalCoresUsed": 1, "maxTotalInstances": 10}

_COMPUTE = {
    "/servers/detail": {"servers": [_SERVER]},
    "/servers": {"servers": [{"id": SERVER_ID, "name": "web"}]},
    f"/servers/{SERVER_ID}": {"server": _SERVER},
    f"/servers/{SERVER_ID}/os-instance-actions": {"instanceActions": [_ACTION]},
    f"/servers/{SERVER_ID}/os-instance-actions/{REQUEST_ID}": {
        "instanceAction": {**_ACTION, "events": [_EVENT]}
    },
    "/flavors/detail": {"flavors": [_BIG_FLAVOR]},
    "/flavors/f1": {"flavor": _BIG_FLAVOR},
    "/flavors/f1/os-extra_specs": {"extra_specs": _BIG_FLAVOR["extra_specs"]},
    "/os-services": {"services": [_SERVICE]},
    "/os-hypervisors": {"hypervisors": [_HYPERVISOR]},
    "/os-hypervisors/detail": {"hypervisors": [_HYPERVISOR]},
    f"/os-hypervisors/{_HYPERVISOR['id']}": {"hypervisor": _HYPERVISOR},
    "/os-aggregates": {"aggregates": [_AGGREGATE]},
    "/os-aggregates/1": {"aggregate": _AGGREGATE},
    "/os-server-groups": {"server_groups": [_SERVER_GROUP]},
    f"/os-server-groups/{_SERVER_GROUP['id']}": {"server_group": _SERVER_GROUP},
    "/os-keypairs": {"keypairs": [{"keypair": _KEYPAIR}]},
    "/os-keypairs/k": {"keypair": {**_KEYPAIR, "user_id": USER_ID, "id": 1}},
    "/os-availability-zone": {"availabilityZoneInfo": [{**_ZONE, "hosts": None}]},
    "/os-availability-zone/detail": {"availabilityZoneInfo": [_ZONE]},
    f"/os-quota-sets/{PROJECT_ID}": {"quota_set": {**_QUOTAS, "id": PROJECT_ID}},
    f"/os-quota-sets/{PROJECT_ID}/detail": {"quota_set": {**_DETAIL, "id": PROJECT_ID}},
    f"/os-quota-sets/{PROJECT_ID}/defaults": {"quota_set": {**_QUOTAS, "id": PROJECT_ID}},
    "/limits": {"limits": {"absolute": _LIMITS, "rate": []}},
    f"/explanations/{REQUEST_ID}": {"explanation": _EXPLANATION},
    f"/explanations/{SERVER_ID}": {"explanation": _EXPLANATION},
}
_OTHERS = {
    "/image/v2/images": {"images": [_IMAGE]},
    f"/image/v2/images/{IMAGE_ID}": _IMAGE,
    "/network/v2.0/networks": {"networks": [_NETWORK]},
    f"/network/v2.0/networks/{NETWORK_ID}": {"network": _NETWORK},
    "/network/v2.0/subnets": {"subnets": [_SUBNET]},
    "/network/v2.0/ports": {"ports": [_PORT]},
    "/network/v2.0/extensions": {"extensions": []},
}


def _documents(base: str) -> dict[str, Any]:
    def version(path: str, name: str, **more: Any) -> dict[str, Any]:
        links = [{"rel": "self", "href": f"{base}{path}"}]
        return {"id": name, "status": "CURRENT", "links": links, **more}

    compute = version("/compute/v2.1/", "v2.1", version="2.100", min_version="2.1")
    identity = version("/identity/v3/", "v3.14")
    image = version("/image/v2/", "v2.16")
    network = version("/network/v2.0/", "v2.0")
    return {
        "/identity": {"versions": {"values": [identity]}},
        "/identity/v3": {"version": identity},
        "/compute": {"versions": [compute]},
        "/compute/v2.1": {"version": compute},
        "/image": {"versions": [image]},
        "/network": {"versions": [network]},
        **{f"/compute/v2.1{path}": body for path, body in _COMPUTE.items()},
        **_OTHERS,
    }


def _token(base: str) -> dict[str, Any]:
    domain = {"id": "default", "name": "Default"}
    endpoints = {
        "identity": "/identity/v3",
        "compute": "/compute/v2.1",
        "image": "/image",
        "network": "/network",
    }
    catalog = [
        {
            "type": kind,
            "name": kind,
            "id": kind,
            "endpoints": [
                {
                    "interface": "public",
                    "region": "R",
                    "region_id": "R",
                    "id": f"{kind}1",
                    "url": base + path,
                }
            ],
        }
        for kind, path in endpoints.items()
    ]
    return {
        "methods": ["password"],
        "expires_at": "2100-01-01T00:00:00.000000Z",
        "issued_at": "2026-01-01T00:00:00.000000Z",
        "project": {"id": PROJECT_ID, "name": "demo", "domain": domain},
        "user": {"id": USER_ID, "name": "demo", "domain": domain},
        "roles": [{"id": "r", "name": "admin"}],
        "catalog": catalog,
    }


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = urlsplit(self.path).path.rstrip("/")
        body = self.server.documents.get(path)  # type: ignore[attr-defined]
        if body is None:
            self._answer(404, {"itemNotFound": {"code": 404, "message": f"{path} isn't here."}})
        else:
            self._answer(200, body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        base = self.server.base  # type: ignore[attr-defined]
        self._answer(201, {"token": _token(base)}, {"X-Subject-Token": TOKEN})

    def do_DELETE(self) -> None:
        self._answer(403, {"forbidden": {"code": 403, "message": "Not for you."}})

    def _answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("x-openstack-request-id", REQUEST_ID)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


@contextmanager
def running_stub() -> Iterator[str]:
    """Serve while the block lasts; the value is the identity API's URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    base = f"http://127.0.0.1:{server.server_address[1]}"
    server.base = base  # type: ignore[attr-defined]
    server.documents = _documents(base)  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"{base}/identity/v3"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
