"""A node is drained and the cloud rebalanced by `micronova`, on a whole cloud."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional import programs
from tests.functional.cloud import EmbeddedCloud, embedded_cloud

TIMEOUT_SECONDS = 300


@pytest.fixture(params=["proxmox", pytest.param("null", marks=pytest.mark.long)])
def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedCloud]:
    options: dict[str, Any] = {"driver": request.param, "nodes": 3}
    if request.param == "proxmox":
        options["speed"] = 50
    with embedded_cloud(tmp_path, **options) as made:
        yield made


def micronova(cloud: EmbeddedCloud, *words: str) -> Any:
    environment = cloud.environment("micronova-admin")
    return programs.run("micronova", words, environment, TIMEOUT_SECONDS)


def rows(cloud: EmbeddedCloud, *words: str) -> list[dict[str, Any]]:
    done = micronova(cloud, *words, "-f", "json")
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_node_is_drained_and_filled_again(cloud: EmbeddedCloud) -> None:
    compute: Any = cloud.connection("micronova-admin").compute
    image = next(cloud.connection("micronova-admin").image.images(name="cirros")).id
    flavor = compute.find_flavor("m1.tiny").id
    made = [
        compute.create_server(name=f"s{number}", image_id=image, flavor_id=flavor, networks="none")
        for number in range(4)
    ]
    made = [compute.wait_for_server(one, wait=TIMEOUT_SECONDS) for one in made]
    host = str(compute.get_server(made[0].id).compute_host)
    for one in made[1:]:
        if compute.get_server(one.id).compute_host != host:
            compute.live_migrate_server(one.id, host=host, block_migration=None)
            compute.wait_for_server(compute.get_server(one.id), wait=TIMEOUT_SECONDS)
    stopped, suspended = made[1], made[2]
    compute.stop_server(stopped.id)
    compute.suspend_server(suspended.id)
    compute.wait_for_server(stopped, "SHUTOFF", wait=TIMEOUT_SECONDS)
    compute.wait_for_server(suspended, "SUSPENDED", wait=TIMEOUT_SECONDS)

    plan = {row["Name"]: row for row in rows(cloud, "node", "drain", host, "--dry-run")}
    assert {name: row["Way"] for name, row in plan.items()} == {
        "s0": "live",
        "s1": "cold",
        "s2": "",
        "s3": "live",
    }
    assert plan["s2"]["Reason"] == "it is suspended: resume it"
    assert compute.find_hypervisor(host).status != "disabled"

    drained = micronova(cloud, "node", "drain", host, "--wait", "-f", "json")
    assert drained.returncode == 1, drained.stderr
    assert "3 moved, 1 remain (1: it is suspended: resume it)." in drained.stderr
    states = {row["Name"]: row["State"] for row in json.loads(drained.stdout)}
    assert states == {"s0": "moved", "s1": "moved", "s2": "blocked", "s3": "moved"}
    now = {one.name: one for one in compute.servers(details=True)}
    assert {name for name, one in now.items() if one.compute_host == host} == {"s2"}
    assert (now["s0"].status, now["s1"].status) == ("ACTIVE", "SHUTOFF")

    compute.resume_server(suspended.id)
    compute.wait_for_server(compute.get_server(suspended.id), wait=TIMEOUT_SECONDS)
    again = micronova(cloud, "node", "drain", host, "--wait")
    assert again.returncode == 0, again.stderr
    assert "1 moved, none remain." in again.stderr

    assert micronova(cloud, "node", "enable", host).returncode == 0
    applied = micronova(cloud, "rebalance", "--apply", "--wait", "-f", "json")
    assert applied.returncode == 0, applied.stderr
    moved = json.loads(applied.stdout)
    assert {row["State"] for row in moved} <= {"moved"}
    for row in moved:
        assert compute.get_server(row["ID"]).compute_host == row["To"]
        assert "off the score" in row["Reason"]
