"""Keypairs that are generated, and nodes."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from openstack import exceptions
from openstack.compute.v2.hypervisor import Hypervisor
from openstack.compute.v2.keypair import Keypair
from openstack.compute.v2.service import Service

from tests.fixtures.sdk import FakeConnection, FakeProxy, run

# the SDK warns of its own future whenever it makes a resource
pytestmark = pytest.mark.filterwarnings(
    "ignore:The _compute_attributes method is deprecated",
    "ignore:The field .* has been deprecated",
)


def rows(connection: FakeConnection, *argv: str) -> Any:
    """What a command shows, as JSON."""
    ran = run(connection, *argv, "-f", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_keypair_generated_into_a_file_only_its_owner_reads(tmp_path: Path) -> None:
    made = Keypair(name="k", fingerprint="aa")
    compute = FakeProxy(create_keypair=lambda **_: made)
    file = tmp_path / "id"
    argv = ("keypair", "create", "k", "--private-key", str(file))
    shown = rows(FakeConnection(compute), *argv)
    assert not shown.keys() & {"public_key", "private_key"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "OPENSSH PRIVATE KEY" in file.read_text()
    [(_, sent)] = compute.called("create_keypair")
    assert sent["public_key"].startswith("ssh-ed25519 ")
    again = run(FakeConnection(compute), *argv)
    assert again.code == 1
    assert "never overwritten" in again.err
    assert len(compute.called("create_keypair")) == 1


def test_keypair_printed_or_added(tmp_path: Path) -> None:
    compute = FakeProxy(create_keypair=lambda **_: Keypair(name="k", fingerprint="aa"))
    connection = FakeConnection(compute)
    printed = run(connection, "keypair", "create", "k")
    assert printed.out.startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    (tmp_path / "pub").write_text("ssh-rsa AAAA me\n")
    assert run(connection, "keypair", "create", "k", "--public-key", f"{tmp_path}/pub").code == 0
    assert compute.called("create_keypair")[1][1]["public_key"] == "ssh-rsa AAAA me"
    missing = run(connection, "keypair", "create", "k", "--public-key", f"{tmp_path}/no")
    assert (missing.code, "Can't read" in missing.err) == (1, True)


def a_service(**changes: Any) -> Service:
    """A compute service that is up."""
    body = {"id": "s1", "binary": "nova-compute", "host": "pve1", "zone": "c1"}
    return Service(**{**body, "status": "enabled", "state": "up", **changes})


def a_hypervisor(**changes: Any) -> Hypervisor:
    """A hypervisor as microversion 2.53 shows it."""
    body = {
        "id": "h1",
        "hypervisor_hostname": "pve1",
        "service": {"id": "s1", "host": "pve1"},
        "vcpus": 8,
        "vcpus_used": 2,
        "memory_mb": 16384,
        "memory_mb_used": 2048,
        "local_gb": 100,
        "local_gb_used": 10,
        "running_vms": 3,
        "cpu_info": {"arch": "x86_64"},
    }
    return Hypervisor(**{**body, **changes})


def test_nodes_are_services_with_their_hypervisors() -> None:
    services = [
        a_service(host="pve3", state="down", updated_at="2026-01-01"),
        a_service(host="pve2", status="disabled", disabled_reason="new disk"),
        a_service(),
    ]
    unwell = [
        {"host": "pve2", "health": "The node is offline."},
        {"host": "pve3", "health": "Its agent has not reported since 2026-01-01."},
    ]
    answer = SimpleNamespace(status_code=200, json=lambda: {"hosts": unwell})
    compute = FakeProxy(services=services, hypervisors=[a_hypervisor()], get=answer)
    shown = rows(FakeConnection(compute), "node", "list")
    assert [row["Host"] for row in shown] == ["pve1", "pve2", "pve3"]
    assert shown[0]["VCPUs"] == {"used": 2, "total": 8}
    assert [row["Health"] for row in shown] == [
        "ok",
        "The node is offline. disabled: new disk",
        "Its agent has not reported since 2026-01-01.",
    ]
    assert compute.called("get") == [(("/queues",), {"params": {"unwell": "true"}})]
    text = run(FakeConnection(compute), "node", "list").out
    assert "| 2/8   | 2048/16384 | 10/100   | 3   | ok" in text
    assert "| -/-" in text


def test_nodes_of_another_compute_api() -> None:
    compute = FakeProxy(
        services=[
            a_service(state="down", updated_at="2026-01-01", status="disabled"),
            a_service(host="pve2", forced_down=True),
        ],
        hypervisors=[],
        get=exceptions.NotFoundException("none"),
    )
    assert [row["Health"] for row in rows(FakeConnection(compute), "node", "list")] == [
        "Its agent has not reported since 2026-01-01. disabled: no reason was given",
        "The service is forced down.",
    ]


def test_queues_of_all_pages() -> None:
    queue = {"kind": "storage", "name": "local", "width": 4, "shared": False, "running": 4}
    queue |= {"waiting": 2, "oldest_waiting_seconds": 75.0}
    reported = {"id": "u1", "host": "pve1", "reported_seconds_ago": 4, "queues": [queue]}
    pages = {
        None: {"hosts": [reported], "hosts_links": [{"rel": "next", "href": "…"}]},
        "u1": {"hosts": [{"id": "u2", "host": "pve2", "queues": None}]},
    }
    compute = FakeProxy(
        get=lambda _, params: SimpleNamespace(
            status_code=200, json=lambda: pages[params.get("marker")]
        )
    )
    shown = rows(FakeConnection(compute), "queue", "list")
    assert [(row["Host"], row["Queue"], row["Waiting"], row["Oldest"]) for row in shown] == [
        ("pve1", "storage local", 2, "1 min 15 s"),
        ("pve2", "unknown", None, None),
    ]
    run(FakeConnection(compute), "queue", "list", "--host", "pve1")
    assert compute.called("get")[2] == (("/queues",), {"params": {"host": "pve1"}})


def test_servers_that_wait_for_room_of_all_pages() -> None:
    def one(place: int, **more: Any) -> dict[str, Any]:
        needs = {"VCPU": 2, "MEMORY_MB": 512}
        waiting = {"place": place, "server_id": f"s{place}", "project_id": "p", "needs": needs}
        times = {"since": "2026-01-01T00:00:00.000000", "until": "2026-01-01T01:00:00.000000"}
        return {**waiting, **times, "availability_zone": None, "overtaken": 3, **more}

    near = {"nearest": {"host": "pve3", "lacks": {"VCPU": 1}}, "one_more_host_like": "pve1"}
    pages = {
        None: {"waiting": [one(1, kept_host="pve1", **near)], "waiting_links": [{"rel": "next"}]},
        "1": {"waiting": [one(2, availability_zone="z")]},
    }
    pages[None]["moves"] = [one(0, action="drain", server_id="s3", reason="No room.")]
    compute = FakeProxy(
        get=lambda _, params: SimpleNamespace(
            status_code=200, json=lambda: pages[params.get("marker")]
        )
    )
    shown = rows(FakeConnection(compute), "queue", "list", "--waiting")
    assert [(row["Place"], row["Server"], row["Zone"], row["Host kept"]) for row in shown] == [
        (1, "s1", None, "pve1"),
        (2, "s2", "z", None),
        ("drain", "s3", None, None),
    ]
    assert shown[0]["Needs"] == "512 MEMORY_MB, 2 VCPU"
    assert [(row["Nearest"], row["Would do"]) for row in shown] == [
        ("pve3 lacks 1 of 2 VCPU", "one more host like pve1"),
        (None, None),
        ("No room.", None),
    ]


def test_nodes_enabled_and_disabled() -> None:
    compute = FakeProxy(
        services=lambda host, binary: [a_service()] if host == "pve1" else [],
        enable_service=None,
        disable_service=None,
    )
    connection = FakeConnection(compute)
    assert run(connection, "node", "disable", "pve1", "--reason", "new disk").code == 0
    [(args, _)] = compute.called("disable_service")
    assert args == ("s1", "pve1", "nova-compute", "new disk")
    assert run(connection, "node", "enable", "pve1").code == 0
    nowhere = run(connection, "node", "enable", "pve9")
    assert (nowhere.code, nowhere.err) == (1, "No nova-compute on host pve9\n")
