"""What operators see and do: services, hypervisors, zones, quotas; and limits for all."""

from __future__ import annotations

from typing import Any

import pytest

from common import clock, ids
from common.errors import Invalid
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, a_host, a_service, uuid_of
from tests.fixtures.listings import counted
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

PVE1 = ids.named("service", "nova-compute/pve1")
PVE2 = ids.named("service", "nova-compute/pve2")
CONDUCTOR = ids.named("service", "nova-conductor/c1")
HOST = ids.named("host", "pve1")


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    """Two compute hosts, pve2 long silent in az2, and a conductor; two servers on pve1."""
    return make(
        a_service("pve2", availability_zone="az2", last_seen_at=None),
        a_host("pve2", facts={"vcpus": 4, "uptime_seconds": 0}),
        a_service("c1", "nova-conductor", availability_zone="internal"),
        a_full_server(1),
        a_full_server(2, "other", vcpus=3, memory_mib=1000),
    )


def test_services(api: ComputeApi) -> None:
    assert api.get("/os-services").status_code == 403
    listed = api.get("/os-services", version="2.53", token=auth.ADMIN).json["services"]
    assert [(s["host"], s["state"], s["zone"]) for s in listed] == [
        ("pve1", "up", "az1"),
        ("pve2", "down", "az2"),
        ("c1", "up", "internal"),
    ]
    assert listed[0]["id"] == PVE1
    assert "forced_down" not in api.get("/os-services", token=auth.ADMIN).json["services"][0]
    for query in ("host=pve1", "binary=nova-conductor"):
        found = api.get(f"/os-services?{query}", version="2.53", token=auth.ADMIN)
        assert len(found.json["services"]) == 1


OFFLINE = {"online": False, "healthy": False, "health": "The node is offline."}


def test_a_node_that_is_off_is_down_wherever_it_shows(make: MakeApi) -> None:
    off, ill = {"vcpus": 4, **OFFLINE}, {**OFFLINE, "online": True, "health": "No quorum."}
    unread = {"health": "storage/local/content can't be read: no. What was read before counts."}
    api = make(
        *(a_host("pve2", facts=off), a_service("pve2")),
        *(a_host("pve3", facts=ill), a_service("pve3", disabled=True, disabled_reason="disk")),
        *(a_host("pve4", facts={}), a_service("pve4", last_seen_at=None)),
        *(a_host("pve5", facts=unread), a_service("pve5")),
        a_full_server(1, host="pve2"),
    )

    def listed(path: str, name: str, version: str = "2.53") -> list[Any]:
        return api.get(path, token=auth.ADMIN, version=version).json[name]  # type: ignore[no-any-return]

    states = {"pve1": "up", "pve2": "down", "pve3": "up", "pve4": "down", "pve5": "up"}
    reasons = {"pve1": None, "pve2": "AUTO: The node is offline.", "pve3": "disk", "pve4": None}
    reasons["pve5"] = None
    found = listed("/os-services", "services")
    assert {one["host"]: one["state"] for one in found} == states
    assert {one["host"]: one["disabled_reason"] for one in found} == reasons
    found = listed("/os-hypervisors/detail", "hypervisors")
    assert {one["hypervisor_hostname"]: one["state"] for one in found} == states
    assert {one["service"]["host"]: one["service"]["disabled_reason"] for one in found} == reasons
    zones = listed("/os-availability-zone/detail", "availabilityZoneInfo", "2.1")
    hosts = {host: one for zone in zones for host, one in (zone["hosts"] or {}).items()}
    assert {host: one["nova-compute"]["available"] for host, one in hosts.items()} == {
        "pve1": True,
        "pve2": False,
        "pve4": False,
        "pve5": True,
    }
    queues = listed("/queues", "hosts")
    assert {one["host"]: one["state"] for one in queues} == states
    health = {
        "pve1": None,
        "pve2": "The node is offline.",
        "pve3": "No quorum.",
        "pve4": "Its agent has never reported.",
        "pve5": unread["health"],
    }
    assert {one["host"]: one["health"] for one in queues} == health
    assert [one["host"] for one in listed("/queues?unwell=true", "hosts")] == [
        *("pve2", "pve3", "pve4", "pve5"),
    ]
    assert [one["host"] for one in listed("/queues?state=down&limit=1", "hosts")] == ["pve2"]
    assert [one["host"] for one in listed("/queues?state=down", "hosts")] == ["pve2", "pve4"]
    assert [one["host"] for one in listed("/queues?state=up&unwell=true", "hosts")] == [
        *("pve3", "pve5"),
    ]
    assert api.get("/queues?state=off", token=auth.ADMIN).status_code == 400
    assert api.get("/queues?unwell=maybe", token=auth.ADMIN).status_code == 400
    counts = api.get("/metrics", token=auth.ADMIN).json["metrics"]["services"]
    assert {one["state"]: one["count"] for one in counts} == {"up": 3, "down": 2}
    server = api.get(f"/servers/{uuid_of(1)}", token=auth.ADMIN, version="2.90").json["server"]
    assert server["host_status"] == "UNKNOWN"


def test_switch_a_service(api: ComputeApi) -> None:
    def put(body: Any, service: str = PVE1) -> Any:
        return api.request(
            "PUT", f"/os-services/{service}", body, version="2.53", token=auth.ADMIN
        )

    done = put({"status": "disabled", "disabled_reason": "repair"}).json["service"]
    assert (done["status"], done["disabled_reason"]) == ("disabled", "repair")
    assert put({"forced_down": True}).json["service"]["state"] == "down"
    done = put({"status": "enabled", "forced_down": "false"}).json["service"]
    assert (done["status"], done["disabled_reason"], done["state"]) == ("enabled", None, "up")
    assert put({}).status_code == 400
    assert put({"status": "enabled", "disabled_reason": "x"}).status_code == 400
    assert put({"status": "enabled"}, CONDUCTOR).status_code == 400
    assert put({"status": "enabled"}, uuid_of(5)).status_code == 404
    assert put({"status": "enabled"}, "enable").status_code == 400


def test_switch_a_service_before_2_53(api: ComputeApi) -> None:
    def put(what: str, version: str = "2.11", **body: Any) -> Any:
        sent = {"host": "pve1", "binary": "nova-compute", **body}
        return api.request("PUT", f"/os-services/{what}", sent, version=version, token=auth.ADMIN)

    assert put("disable-log-reason", disabled_reason="x").json == {
        "service": {
            "host": "pve1",
            "binary": "nova-compute",
            "status": "disabled",
            "disabled_reason": "x",
        }
    }
    assert put("enable").json["service"]["status"] == "enabled"
    assert put("disable").json["service"]["status"] == "disabled"
    assert put("force-down", forced_down=True).json["service"]["forced_down"] is True
    assert put("disable-log-reason").status_code == 400
    assert put("force-down").status_code == 400
    assert put("force-down", "2.10").status_code == 404
    assert put("explode").status_code == 404
    assert put("enable", host="mars").status_code == 404
    assert put("enable", binary="nova-scheduler").status_code == 400


def test_forget_a_service(api: ComputeApi) -> None:
    def delete(service: str, version: str = "2.53") -> int:
        path = f"/os-services/{service}"
        return api.request("DELETE", path, version=version, token=auth.ADMIN).status_code

    assert delete(PVE1) == 409, "it hosts instances"
    assert delete(PVE2) == 204
    assert delete(PVE2) == 404
    assert delete("x") == 400
    assert delete("999", "2.1") == 404
    assert delete("x", "2.1") == 400


def test_hypervisors(api: ComputeApi) -> None:
    assert api.get("/os-hypervisors").status_code == 403
    listed = api.get("/os-hypervisors", version="2.53", token=auth.ADMIN).json["hypervisors"]
    assert [(h["hypervisor_hostname"], h["state"]) for h in listed] == [
        ("pve1", "up"),
        ("pve2", "down"),
    ]
    old = api.get("/os-hypervisors/detail", version="2.28", token=auth.ADMIN).json["hypervisors"]
    assert {name: old[0][name] for name in ("vcpus", "vcpus_used", "running_vms")} == {
        "vcpus": 8,
        "vcpus_used": 4,
        "running_vms": 2,
    }
    assert old[0]["memory_mb_used"] == 1512
    assert old[0]["free_ram_mb"] == 16_384 - 1512
    assert old[0]["hypervisor_version"] == 8_002_004
    assert old[0]["cpu_info"]["model"] == "EPYC"
    new = api.get(f"/os-hypervisors/{HOST}", version="2.88", token=auth.ADMIN).json["hypervisor"]
    assert new["uptime"] == "up 1 day, 2:03"
    assert "vcpus" not in new


def test_hypervisors_with_servers_and_by_name(api: ComputeApi) -> None:
    def get(path: str, version: str) -> Any:
        return api.get(f"/os-hypervisors{path}", version=version, token=auth.ADMIN)

    both = get("?with_servers=true", "2.75").json["hypervisors"]
    assert [len(host["servers"]) for host in both] == [2, 0]
    assert "servers" not in get("?with_servers=true", "2.53").json["hypervisors"][1]
    assert both[0]["servers"][0]["uuid"] == uuid_of(1)
    found = get("?hypervisor_hostname_pattern=ve2", "2.53").json["hypervisors"]
    assert [host["hypervisor_hostname"] for host in found] == ["pve2"]
    assert get("?hypervisor_hostname_pattern=mars", "2.53").status_code == 404
    assert get("?hypervisor_hostname_pattern=ve2&limit=1", "2.53").status_code == 400
    assert get("/ve2/search", "2.52").json["hypervisors"][0]["hypervisor_hostname"] == "pve2"
    assert len(get("/ve1/servers", "2.52").json["hypervisors"][0]["servers"]) == 2
    assert get("/ve2/search", "2.53").status_code == 404


def test_hypervisor_pages(api: ComputeApi) -> None:
    first = api.get("/os-hypervisors?limit=1", version="2.53", token=auth.ADMIN).json
    assert f"marker={HOST}" in first["hypervisors_links"][0]["href"]
    second = api.get(f"/os-hypervisors?marker={HOST}", version="2.53", token=auth.ADMIN).json
    assert [host["hypervisor_hostname"] for host in second["hypervisors"]] == ["pve2"]
    by_number = api.get("/os-hypervisors?marker=1", version="2.33", token=auth.ADMIN).json
    assert [host["id"] for host in by_number["hypervisors"]] == [2]
    for marker, version in (("x", "2.33"), ("x", "2.53"), ("999", "2.33")):
        path = f"/os-hypervisors?marker={marker}"
        assert api.get(path, version=version, token=auth.ADMIN).status_code == 400


def test_hypervisor_statistics_and_uptime(api: ComputeApi) -> None:
    path = "/os-hypervisors/statistics"
    sums = api.get(path, token=auth.ADMIN).json["hypervisor_statistics"]
    assert (sums["count"], sums["vcpus"], sums["vcpus_used"]) == (2, 12, 4)
    assert api.get(path, version="2.88", token=auth.ADMIN).status_code == 404
    up = api.get("/os-hypervisors/1/uptime", token=auth.ADMIN).json["hypervisor"]
    assert up["uptime"] == "up 1 day, 2:03"
    assert api.get("/os-hypervisors/99", token=auth.ADMIN).status_code == 404


def test_zones(make: MakeApi) -> None:
    api = make(
        a_service("pve2", availability_zone="az2", disabled=True),
        a_service("c1", "nova-conductor", availability_zone="internal"),
    )
    listed = api.get("/os-availability-zone").json["availabilityZoneInfo"]
    assert listed == [
        {"zoneName": "az1", "zoneState": {"available": True}, "hosts": None},
        {"zoneName": "az2", "zoneState": {"available": False}, "hosts": None},
    ]
    assert api.get("/os-availability-zone/detail").status_code == 403
    detail = api.get("/os-availability-zone/detail", token=auth.ADMIN).json
    zones = {zone["zoneName"]: zone["hosts"] for zone in detail["availabilityZoneInfo"]}
    assert set(zones) == {"az1", "az2", "internal"}
    assert zones["az1"]["pve1"]["nova-compute"]["available"] is True
    assert zones["az2"] is None


def test_limits(make: MakeApi) -> None:
    api = make(
        a_full_server(1),
        a_full_server(2, vcpus=3, memory_mib=1000),
        a_full_server(3, deleted_at=a_full_server(3)[1]["created_at"]),
        (schema.quota_limits, {"project_id": "demo", "resource": "cores", "hard_limit": 7}),
    )
    absolute = api.get("/limits", version="2.57").json["limits"]["absolute"]
    assert absolute["maxTotalCores"] == 7
    assert absolute["maxTotalInstances"] == 10
    assert (absolute["totalInstancesUsed"], absolute["totalCoresUsed"]) == (2, 4)
    assert absolute["totalRAMUsed"] == 1512
    assert "maxPersonality" not in absolute
    assert "maxImageMeta" in api.get("/limits", version="2.1").json["limits"]["absolute"]
    assert api.get("/limits?tenant_id=other").status_code == 403
    other = api.get("/limits?tenant_id=demo", token=auth.ADMIN).json["limits"]["absolute"]
    assert other["maxTotalCores"] == 7


def test_quotas(make: MakeApi) -> None:
    api = make(a_full_server(1))
    path = "/os-quota-sets/demo"
    assert api.get(path, version="2.57").json["quota_set"] == {
        "id": "demo",
        "instances": 10,
        "cores": 20,
        "ram": 51_200,
        "metadata_items": 128,
        "key_pairs": 100,
        "server_groups": 10,
        "server_group_members": 10,
    }
    assert api.get(path, token=auth.OTHER).status_code == 403
    assert api.request("PUT", path, {"quota_set": {"cores": 5}}).status_code == 403
    body = {"quota_set": {"cores": "5", "instances": -1, "fixed_ips": 3, "force": "true"}}
    answer = api.request("PUT", path, body, token=auth.ADMIN)
    assert answer.json["quota_set"]["cores"] == 5
    assert "id" not in answer.json["quota_set"]
    kept = {"cores": 5, "instances": -1, "fixed_ips": 3}
    assert api.conductor.asked[-1][1] == ("demo", kept, True)
    detail = api.get(f"{path}/detail").json["quota_set"]["cores"]
    assert detail == {"limit": 5, "in_use": 1, "reserved": 0}
    assert api.get(f"{path}/defaults").json["quota_set"]["cores"] == 20
    api.conductor.fail = Invalid("Quota limit 0 for cores must be greater than or equal to …")
    low = api.request("PUT", path, {"quota_set": {"cores": 0}}, token=auth.ADMIN)
    assert low.status_code == 400
    assert api.request("DELETE", path, token=auth.ADMIN).status_code == 202
    # Those of volumes stay.
    project, resources = api.conductor.asked[-1][1]
    assert (project, {*resources} & {"cores", "volumes"}) == ("demo", {"cores"})
    assert api.get(path).json["quota_set"]["cores"] == 20


def test_limits_of_networks_are_kept_as_in_nova(make: MakeApi) -> None:
    """They limit nothing: the network API has its own."""
    api, admin = make(), {"token": auth.ADMIN}
    path, of_class = "/os-quota-sets/demo", "/os-quota-class-sets/gold"
    limits = {"security_group_rules": 7, "floating_ips": 2, "cores": 5}
    for where, key in ((path, "quota_set"), (of_class, "quota_class_set")):
        before = api.get(where, **admin).json[key]
        assert (before["security_group_rules"], before["fixed_ips"]) == (-1, -1)
        changed = api.request("PUT", where, {key: limits}, **admin).json[key]
        assert limits.items() <= changed.items()
        assert {**before, **limits} == api.get(where, **admin).json[key]
    assert api.get(f"{path}/detail", **admin).json["quota_set"]["security_group_rules"] == {
        **{"limit": 7, "in_use": 0, "reserved": 0}
    }
    # A class that no project has changes nobody's limits but the default one's.
    assert api.get(f"{path}/defaults", **admin).json["quota_set"]["cores"] == 20
    assert api.request("DELETE", path, **admin).status_code == 202
    assert api.get(path, **admin).json["quota_set"]["security_group_rules"] == -1


def test_quotas_of_users_are_refused_in_one_sentence(make: MakeApi) -> None:
    """None is answered with its project's numbers, and none changes its project's limits."""
    api, path = make(), "/os-quota-sets/demo"
    before = api.get(path).json
    asked: tuple[tuple[str, str, Any], ...] = (
        ("GET", path, None),
        ("GET", f"{path}/detail", None),
        ("PUT", path, {"quota_set": {"cores": 5}}),
        ("DELETE", path, None),
    )
    for method, where, body in asked:
        for version in ("2.1", "2.104"):
            answer = api.request(
                method, f"{where}?user_id=alice", body, token=auth.ADMIN, version=version
            )
            assert answer.status_code == 400, method
            words = "Quotas of users are not supported: leave user_id out."
            assert answer.json["badRequest"]["message"] == words
    assert api.get(path).json == before


def test_vmids_that_are_not_free_say_why_and_since_when(make: MakeApi) -> None:
    row = {"cluster": "c1", "since": clock.after(-90)}
    template = {"node": "pve1", "storage": "local", "image_id": "i1", "created_at": clock.utcnow()}
    api = make(
        (schema.vmids, {**row, "vmid": 100_000, "state": "reserved", "server_uuid": uuid_of(1)}),
        (schema.vmids, {**row, "vmid": 100_001, "state": "reserved"}),
        (schema.vmids, {**row, "vmid": 100_002, "state": "quarantined", "reason": "a volume"}),
        (schema.templates, {**template, "cluster": "c1", "vmid": 100_001}),
    )
    assert api.get("/vmids").status_code == 403
    listed = api.get("/vmids", token=auth.ADMIN).json["vmids"]
    assert [(one["vmid"], one["state"]) for one in listed] == [
        (100_002, "quarantined"),
        (100_000, "reserved"),
        (100_001, "reserved"),
    ]
    assert listed[0]["reason"] == "a volume"
    assert 90 <= listed[0]["age_seconds"] < 90 + 3600
    assert (listed[1]["server"], listed[2]["image"]) == (uuid_of(1), "i1")
    found = api.get("/vmids?state=quarantined&cluster=c1", token=auth.ADMIN).json["vmids"]
    assert [one["vmid"] for one in found] == [100_002]
    assert api.get("/vmids?cluster=other", token=auth.ADMIN).json["vmids"] == []
    found = api.get("/vmids?vmid=100000", token=auth.ADMIN).json["vmids"]
    assert [one["server"] for one in found] == [uuid_of(1)]
    for odd in ("x", "-1", "", "1" * 10):
        assert api.get(f"/vmids?vmid={odd}", token=auth.ADMIN).status_code == 400, odd


def test_queues_of_hosts_say_when_they_were_reported(make: MakeApi) -> None:
    queue = {"kind": "storage", "name": "local", "width": 4, "shared": False, "running": 4}
    queue |= {"waiting": 2, "oldest_waiting_seconds": 7.5}
    api = make(
        a_host("pve2"),
        a_service("pve2", queues=[queue], last_seen_at=clock.after(-90)),
        a_host("node3"),
        a_service("node3", queues=[], last_seen_at=None),
        a_service("c1", "nova-conductor"),
    )

    def listed(query: str = "") -> Any:
        return api.get(f"/queues{query}", token=auth.ADMIN).json["hosts"]

    assert api.get("/queues").status_code == 403
    with counted(api.reader) as count:
        silent, reported, _ = listed()
        assert count() == 1
    # an agent of the release before
    assert (silent["host"], silent["queues"], silent["reported_seconds_ago"]) == (
        *("pve1", None),
        None,
    )
    assert (reported["host"], reported["worker"], reported["queues"]) == ("pve2", "w1", [queue])
    assert 90 <= reported["reported_seconds_ago"] < 90 + 3600
    assert [one["host"] for one in listed("?name=pve")] == ["pve1", "pve2"]
    assert [one["host"] for one in listed("?host=pve2")] == ["pve2"]
    assert listed("?host=pve") == listed("?limit=0") == []
    first = api.get("/queues?limit=2&name=e", token=auth.ADMIN).json
    assert f"limit=2&name=e&marker={reported['id']}" in first["hosts_links"][0]["href"]
    assert [one["host"] for one in listed(f"?limit=2&marker={reported['id']}")] == ["node3"]
    for odd in (
        "marker=nothing",
        "host=%00",
        "name=%00",
        "limit=-1",
        "hosts=pve1",
        "host=a&host=b",
    ):
        assert api.get(f"/queues?{odd}", token=auth.ADMIN).status_code == 400, odd
