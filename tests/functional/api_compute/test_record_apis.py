"""What Nova answers from its record alone: states, usage, quota classes, events, hosts."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from api.compute.resources.former.removed import REMOVED, REMOVED_ACTIONS
from common import ids
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, uuid_of
from tests.fixtures.listings import NOW, counted
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

SERVER = f"/servers/{uuid_of(1)}"
USAGE = "/os-simple-tenant-usage"
LATEST = "2.104"


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    return make(a_full_server(1))


def act(api: ComputeApi, body: Any, token: str = auth.ADMIN, version: str = LATEST) -> Any:
    return api.request("POST", f"{SERVER}/action", body, token=token, version=version)


def text(answer: Any) -> str:
    [fault] = answer.json.values()
    return str(fault["message"])


# --- actions


def test_reset_state_is_an_administrator_s(api: ComputeApi) -> None:
    body = {"os-resetState": {"state": "error"}}
    assert act(api, body, auth.MEMBER).status_code == 403
    assert act(api, body).status_code == 202
    assert api.get(SERVER).json["server"]["status"] == "ERROR"


@pytest.mark.parametrize(
    "inside", [{}, {"state": "stopped"}, {"state": None}, {"state": ["active"]}, None, "active"]
)
def test_reset_state_to_what_is_no_state(api: ComputeApi, inside: Any) -> None:
    assert act(api, {"os-resetState": inside}).status_code == 400


def test_force_delete(make: MakeApi) -> None:
    api = make(a_full_server(1, locked_by="owner", task_state="spawning", vm_state="building"))
    body: dict[str, Any] = {"forceDelete": {}}
    assert text(act(api, body, auth.MEMBER)) == f"Instance {uuid_of(1)} is locked"
    assert act(api, body, auth.READER).status_code == 403
    assert act(api, body, auth.OTHER).status_code == 404
    assert act(api, body).status_code == 202
    assert api.get(SERVER).status_code == 404


def test_crash_dumps_are_refused(make: MakeApi) -> None:
    body = {"trigger_crash_dump": None}
    api = make(a_full_server(1), a_full_server(2, vm_state="stopped"), a_full_server(3, host=None))
    assert act(api, body, auth.MEMBER, "2.16").status_code == 404
    refused = act(api, body, auth.MEMBER, "2.17")
    assert (refused.status_code, text(refused)) == (400, "Triggering crash dump is not supported")
    assert act(api, {"trigger_crash_dump": 1}, auth.MEMBER).status_code == 400
    for number, sentence in (
        (2, f"Cannot 'trigger_crash_dump' instance {uuid_of(2)} while it is in vm_state stopped"),
        (3, f"Instance {uuid_of(3)} is not ready"),
    ):
        path = f"/servers/{uuid_of(number)}/action"
        answer = api.request("POST", path, body, version=LATEST)
        assert (answer.status_code, text(answer)) == (409, sentence)


def test_network_actions_of_old(make: MakeApi) -> None:
    api = make(a_full_server(1, locked_by="admin"))
    assert act(api, {"resetNetwork": None}, auth.READER).status_code == 410
    assert act(api, {"injectNetworkInfo": None}, auth.MEMBER).status_code == 403
    assert act(api, {"injectNetworkInfo": None}).status_code == 202


def test_what_is_gone(api: ComputeApi) -> None:
    for path, methods in REMOVED.items():
        asked = path.format(server_id=uuid_of(1), key="1", entry="x", console="1")
        for method in methods:
            body = {} if method in {"POST", "PUT"} else None
            for version in ("2.1", LATEST):
                answer = api.request(method, asked, body, version=version)
                assert answer.status_code == 410, (method, path)
    assert answer.json["computeFault"]["code"] == 410
    assert text(answer).startswith("This resource is no longer available.")
    for path, names in REMOVED_ACTIONS.items():
        for name in names:
            asked = path.format(key="1")
            assert api.request("POST", asked, {name: None}).status_code == 410
        assert api.request("POST", asked, {"other": None}).status_code == 400


# --- access addresses


def test_access_addresses(api: ComputeApi) -> None:
    asked = {"accessIPv4": "192.0.2.7", "accessIPv6": "2001:DB8:0::1"}
    answer = api.request("PUT", SERVER, {"server": asked})
    assert answer.status_code == 200
    server = api.get(SERVER).json["server"]
    assert (server["accessIPv4"], server["accessIPv6"]) == ("192.0.2.7", "2001:db8::1")
    for wrong in ("x", "", "2001:db8::1", None, 1, "1.2.3.4/8"):
        refused = api.request("PUT", SERVER, {"server": {"accessIPv4": wrong}})
        assert refused.status_code == 400, wrong
    create = {
        "name": "s",
        "imageRef": ids.named("image", "debian-12"),
        "flavorRef": "m1.small",
        **asked,
    }
    assert api.request("POST", "/servers", {"server": create}).status_code == 202
    request = api.conductor.asked[-1][1]
    assert (request.access_ip_v4, request.access_ip_v6) == ("192.0.2.7", "2001:db8::1")


def test_the_zone_changes_since_2_104(api: ComputeApi) -> None:
    body = {"server": {"pinned_availability_zone": None}}
    assert api.request("PUT", SERVER, body, version="2.103").status_code == 400
    assert api.request("PUT", SERVER, body, version=LATEST).status_code == 200
    change = {"pinned_availability_zone": None}
    assert api.conductor.asked[-1] == ("update_server", (uuid_of(1), change))
    for wrong in ("", " x", 1, [], "x" * 256):
        body = {"server": {"pinned_availability_zone": wrong}}
        assert api.request("PUT", SERVER, body, version=LATEST).status_code == 400


# --- usage


def stamp(moment: datetime.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S")


HOUR = datetime.timedelta(hours=1)
BEGIN = NOW.replace(microsecond=0)
WINDOW = f"start={stamp(BEGIN)}&end={stamp(BEGIN + 10 * HOUR)}"


@pytest.fixture
def used(make: MakeApi) -> ComputeApi:
    """demo: all ten hours, and two of them; other: five; what lies outside counts nothing."""
    gone = {"vm_state": "deleted", "deleted_at": BEGIN + 3 * HOUR}
    return make(
        a_full_server(1, launched_at=BEGIN - HOUR),
        a_full_server(2, launched_at=BEGIN + HOUR, terminated_at=BEGIN + 3 * HOUR, **gone),
        a_full_server(3, "other", launched_at=BEGIN + 5 * HOUR),
        a_full_server(4, launched_at=BEGIN + 11 * HOUR),
        a_full_server(5, launched_at=BEGIN - 9 * HOUR, terminated_at=BEGIN - HOUR, **gone),
        a_full_server(6, launched_at=None),
    )


def test_usage_of_a_project(used: ComputeApi) -> None:
    with counted(used.reader) as statements:
        answer = used.get(f"{USAGE}/demo?{WINDOW}")
        assert statements() == 1
    usage = answer.json["tenant_usage"]
    assert usage["total_hours"] == pytest.approx(12)
    assert usage["total_vcpus_usage"] == pytest.approx(12)
    assert usage["total_memory_mb_usage"] == pytest.approx(12 * 2048)
    assert usage["total_local_gb_usage"] == pytest.approx(12 * 20)
    assert usage["start"] == f"{stamp(BEGIN)}.000000"
    assert usage["stop"] == f"{stamp(BEGIN + 10 * HOUR)}.000000"
    by_name = {one["name"]: one for one in usage["server_usages"]}
    assert set(by_name) == {"server-1", "server-2"}
    ended = by_name["server-2"]
    assert (ended["state"], ended["uptime"], ended["hours"]) == ("terminated", 7200, 2)
    assert set(ended) == {
        *("ended_at", "flavor", "hours", "instance_id", "local_gb", "memory_mb", "name"),
        *("started_at", "state", "tenant_id", "uptime", "vcpus"),
    }


def test_usage_is_the_project_s_own(used: ComputeApi) -> None:
    assert used.get(f"{USAGE}/demo", token=auth.READER).status_code == 200
    assert used.get(f"{USAGE}/demo", token=auth.OTHER).status_code == 403
    assert used.get(USAGE).status_code == 403
    assert used.get(f"{USAGE}/nobody", token=auth.ADMIN).json == {"tenant_usage": {}}
    found = used.get(f"{USAGE}?{WINDOW}", token=auth.ADMIN).json["tenant_usages"]
    assert [(one["tenant_id"], one["total_hours"]) for one in found] == [
        ("demo", pytest.approx(12)),
        ("other", pytest.approx(5)),
    ]
    assert all("server_usages" not in one for one in found)
    found = used.get(f"{USAGE}?{WINDOW}&detailed=1", token=auth.ADMIN).json["tenant_usages"]
    assert [len(one["server_usages"]) for one in found] == [2, 1]


def test_pages_of_usage(used: ComputeApi) -> None:
    names: list[str] = []
    path = f"{USAGE}/demo?{WINDOW}&limit=1"
    for _ in range(4):
        with counted(used.reader) as statements:
            answer = used.get(path, version="2.40").json
            assert statements() <= 2
        names += [one["name"] for one in answer["tenant_usage"].get("server_usages", [])]
        if "tenant_usage_links" not in answer:
            break
        [link] = answer["tenant_usage_links"]
        assert link["rel"] == "next"
        path = link["href"].split("/v2.1", 1)[1]
    assert sorted(names) == ["server-1", "server-2"]
    old = used.get(f"{USAGE}/demo?{WINDOW}&limit=1").json
    assert len(old["tenant_usage"]["server_usages"]) == 2
    listed = used.get(f"{USAGE}?{WINDOW}&limit=1", token=auth.ADMIN, version="2.40").json
    assert "tenant_usages_links" in listed
    # Another project's server is no marker.
    for marker in ("x", uuid_of(3)):
        refused = used.get(f"{USAGE}/demo?{WINDOW}&marker={marker}", version="2.40")
        assert (refused.status_code, text(refused)) == (
            400,
            f"Marker {marker} could not be found.",
        )


@pytest.mark.parametrize(
    "query",
    [
        "start=x",
        "start=2026-13-01T00:00:00",
        "end=%00",
        "start=9999-01-01T00:00:00",
        "start=2026-01-02T00:00:00&end=2026-01-01T00:00:00",
        "start=2026-01-01T00:00:00Z",
        "limit=-1",
        "limit=x",
    ],
)
def test_usage_of_no_period(used: ComputeApi, query: str) -> None:
    assert used.get(f"{USAGE}/demo?{query}", version="2.40").status_code == 400


def test_usage_is_strict_since_2_75(used: ComputeApi) -> None:
    query = f"{USAGE}/demo?{WINDOW}&other=1"
    assert used.get(query, version="2.74").status_code == 200
    assert used.get(query, version="2.75").status_code == 400
    detailed = f"{USAGE}/demo?{WINDOW}&detailed=1"
    assert used.get(detailed, version="2.75").status_code == 400


# --- quota classes


CLASS = "/os-quota-class-sets"


def test_quota_classes_by_version(api: ComputeApi) -> None:
    def names(version: str) -> set[str]:
        answer = api.get(f"{CLASS}/default", version=version, token=auth.ADMIN)
        return set(answer.json["quota_class_set"])

    old, middle, new = names("2.49"), names("2.50"), names("2.57")
    assert {"id", "fixed_ips", "injected_files"} <= old
    assert not old & {"server_groups", "server_group_members"}
    assert middle - new == {
        *("injected_files", "injected_file_content_bytes", "injected_file_path_bytes"),
    }
    assert new == {
        *("id", "instances", "cores", "ram", "metadata_items", "key_pairs"),
        *("server_groups", "server_group_members"),
    }


def test_the_default_class_is_every_project_s_default(api: ComputeApi) -> None:
    body = {"quota_class_set": {"instances": 3, "cores": "7"}}
    assert api.request("PUT", f"{CLASS}/default", body).status_code == 403
    answer = api.request("PUT", f"{CLASS}/default", body, token=auth.ADMIN, version=LATEST)
    assert answer.status_code == 200
    assert "id" not in answer.json["quota_class_set"]
    assert answer.json["quota_class_set"]["cores"] == 7
    own = {"quota_set": {"cores": 9}}
    api.request("PUT", "/os-quota-sets/demo", own, token=auth.ADMIN)
    for path, expected in (
        ("/os-quota-sets/demo", (3, 9)),
        ("/os-quota-sets/demo/defaults", (3, 7)),
        ("/os-quota-sets/other", (3, 7)),
    ):
        found = api.get(path, token=auth.ADMIN).json["quota_set"]
        assert (found["instances"], found["cores"]) == expected
    limits = api.get("/limits").json["limits"]["absolute"]
    assert (limits["maxTotalInstances"], limits["maxTotalCores"]) == (3, 9)
    other = api.get(f"{CLASS}/gold", token=auth.ADMIN).json["quota_class_set"]
    assert (other["id"], other["instances"]) == ("gold", 10)


@pytest.mark.parametrize(
    "inside", [{"x": 1}, {"cores": -2}, {"cores": "x"}, {"cores": 2**31}, {"cores": None}, []]
)
def test_quota_classes_refused(api: ComputeApi, inside: Any) -> None:
    body = {"quota_class_set": inside}
    path = f"{CLASS}/default"
    assert api.request("PUT", path, body, token=auth.ADMIN).status_code == 400
    long = {"quota_class_set": {"cores": 1}}
    assert api.request("PUT", f"{CLASS}/{'x' * 256}", long, token=auth.ADMIN).status_code == 400


# --- external events


EVENTS = "/os-server-external-events"


def test_external_events(make: MakeApi) -> None:
    api = make(a_full_server(1), a_full_server(2, host=None), a_full_server(3, deleted_at=NOW))
    named = [
        {"name": "network-changed", "server_uuid": uuid_of(1)},
        {"name": "network-changed", "server_uuid": uuid_of(2)},
        {"name": "network-changed", "server_uuid": uuid_of(3), "tag": "t"},
        {"name": "power-update", "server_uuid": uuid_of(1), "status": "in-progress"},
    ]
    with counted(api.reader) as statements:
        answer = api.request("POST", EVENTS, {"events": named}, token=auth.SERVICE, version=LATEST)
        assert statements() == 1
    assert answer.status_code == 207
    assert [event["code"] for event in answer.json["events"]] == [200, 422, 404, 400]
    assert [event["status"] for event in answer.json["events"]] == ["completed", *["failed"] * 3]
    fine = api.request("POST", EVENTS, {"events": named[:1]}, token=auth.SERVICE)
    assert fine.status_code == 200
    assert fine.json["events"] == [{**named[0], "status": "completed", "code": 200}]
    for token in (auth.MEMBER, auth.ADMIN):
        assert api.request("POST", EVENTS, {"events": named}, token=token).status_code == 403


@pytest.mark.parametrize(
    ("name", "since"),
    [("volume-extended", 51), ("power-update", 76), ("volume-reimaged", 93)],
)
def test_events_by_version(api: ComputeApi, name: str, since: int) -> None:
    event = {"name": name, "server_uuid": uuid_of(1), "tag": "x"}
    for version, status in ((since - 1, 400), (since, 200)):
        answer = api.request(
            "POST", EVENTS, {"events": [event]}, token=auth.SERVICE, version=f"2.{version}"
        )
        assert answer.status_code == status


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"events": []},
        {"events": [{}]},
        {"events": [{"name": "network-changed", "server_uuid": "x"}]},
        {"events": [{"name": "network-changed", "server_uuid": uuid_of(1), "status": "x"}]},
        {"events": [{"name": "network-changed", "server_uuid": uuid_of(1), "tag": 1}]},
        {"events": {"name": "x"}},
        [],
        None,
    ],
)
def test_events_refused(api: ComputeApi, body: Any) -> None:
    assert api.request("POST", EVENTS, body, token=auth.SERVICE).status_code == 400


# --- what else administrators read


def test_the_usage_audit_log(api: ComputeApi) -> None:
    path = "/os-instance_usage_audit_log"
    assert api.get(path).status_code == 403
    found = api.get(path, token=auth.ADMIN).json["instance_usage_audit_logs"]
    assert (found["num_hosts"], found["hosts_not_run"], found["log"]) == (1, ["pve1"], {})
    assert found["overall_status"] == "0 of 1 hosts done. 0 errors."
    answer = api.get(f"{path}/2026-01-15%2012:00:00.5", token=auth.ADMIN)
    shown = answer.json["instance_usage_audit_log"]
    assert shown["period_beginning"] == "2025-12-01 00:00:00"
    assert shown["period_ending"] == "2026-01-01 00:00:00"
    for wrong in ("x", "2026-01-15", "0002-12-31%2000:00:00", "2026-13-01%2000:00:00"):
        refused = api.get(f"{path}/{wrong}", token=auth.ADMIN)
        assert refused.status_code == 400
    assert text(api.get(f"{path}/x", token=auth.ADMIN)) == "Invalid timestamp for date x"


def test_the_log_of_an_audit_that_was_made(make: MakeApi) -> None:
    begin, end = (datetime.datetime(2026, 1, day, 12, tzinfo=datetime.UTC) for day in (14, 15))
    values = {"period_beginning": begin, "period_ending": end, "unit": "day@12"}
    values |= {"last_server_id": 7, "servers_by_host": {"pve1": 2, "pve0": 1}}
    api = make(
        (schema.usage_audits, values | {"finished_at": end}),
        a_full_server(1),
    )
    path = "/os-instance_usage_audit_log/2026-01-16%2011:00:00"
    log = api.get(path, token=auth.ADMIN).json["instance_usage_audit_log"]
    assert (log["period_beginning"], log["num_hosts_done"]) == ("2026-01-14 12:00:00", 2)
    assert (log["overall_status"], log["total_instances"]) == ("ALL hosts done. 0 errors.", 3)
    assert (log["hosts_not_run"], log["num_hosts_running"]) == ([], 0)
    assert log["log"]["pve1"]["state"] == "DONE"
    assert {host: one["message"] for host, one in log["log"].items()} == {
        host: f"Instance usage audit ran for host {host}, {count} instances."
        for host, count in (("pve0", 1), ("pve1", 2))
    }
    assert {host: one["instances"] for host, one in log["log"].items()} == {"pve0": 1, "pve1": 2}
    before = api.get(path.replace("16", "15"), token=auth.ADMIN).json["instance_usage_audit_log"]
    assert (before["period_ending"], before["num_hosts_not_run"]) == ("2026-01-14 12:00:00", 1)


def test_hosts_of_old(make: MakeApi) -> None:
    api = make(a_full_server(1), a_full_server(2), a_full_server(3, "other"))
    admin: dict[str, Any] = {"token": auth.ADMIN}
    assert api.get("/os-hosts").status_code == 403
    assert api.get("/os-hosts", version="2.43", **admin).status_code == 404
    listed = api.get("/os-hosts?zone=az1", **admin).json["hosts"]
    assert listed == [{"host_name": "pve1", "service": "compute", "zone": "az1"}]
    assert api.get("/os-hosts?zone=x", **admin).json["hosts"] == []
    with counted(api.reader) as statements:
        rows = api.get("/os-hosts/pve1", **admin).json["host"]
        assert statements() == 2
    found = {one["resource"]["project"]: one["resource"] for one in rows}
    assert list(found) == ["(total)", "(used_now)", "(used_max)", "demo", "other"]
    assert found["(total)"]["cpu"] == 8
    assert (found["(used_max)"]["cpu"], found["demo"]["cpu"], found["other"]["cpu"]) == (3, 2, 1)
    answer = api.request("PUT", "/os-hosts/pve1", {"status": "Disable"}, **admin)
    assert answer.json == {"host": "pve1", "status": "disabled"}
    for body in (
        {"maintenance_mode": "enable"},
        {"status": "enable", "maintenance_mode": "enable"},
    ):
        refused = api.request("PUT", "/os-hosts/pve1", body, **admin)
        assert refused.status_code == 501
        assert list(refused.json) == ["notImplemented"]
    for body in ({}, {"status": "x"}, {"status": 1}, {"other": 1}, [], None):
        assert api.request("PUT", "/os-hosts/pve1", body, **admin).status_code == 400
    for action in ("startup", "shutdown", "reboot"):
        assert api.get(f"/os-hosts/pve1/{action}", **admin).status_code == 501
        assert api.get(f"/os-hosts/pve9/{action}", **admin).status_code == 404
    assert api.get("/os-hosts/pve9", **admin).status_code == 404


def test_topology_and_password(make: MakeApi) -> None:
    flavor = a_full_server(1)[1]["flavor"]
    numa = {**flavor, "vcpus": 4, "extra_specs": {"hw:numa_nodes": "2"}}
    api = make(a_full_server(1), a_full_server(2, flavor=numa))
    assert api.get(f"{SERVER}/topology", version="2.77").status_code == 404
    none = api.get(f"{SERVER}/topology", version="2.78").json
    assert none == {"nodes": [], "pagesize_kb": None}
    other = f"/servers/{uuid_of(2)}"
    nodes = api.get(f"{other}/topology", version="2.78").json["nodes"]
    assert nodes == [
        {"vcpu_set": [0, 1], "siblings": [], "memory_mb": 1024},
        {"vcpu_set": [2, 3], "siblings": [], "memory_mb": 1024},
    ]
    by_admin = api.get(f"{other}/topology", version="2.78", token=auth.ADMIN).json["nodes"]
    assert [(node["host_node"], node["cpu_pinning"]) for node in by_admin] == [(0, {}), (1, {})]
    password = f"{SERVER}/os-server-password"
    assert api.get(password, token=auth.READER).json == {"password": ""}
    assert api.request("DELETE", password).status_code == 204
    assert api.request("DELETE", password, token=auth.READER).status_code == 403
    for path in (password, f"{SERVER}/topology"):
        assert api.get(path, token=auth.OTHER, version=LATEST).status_code == 404
