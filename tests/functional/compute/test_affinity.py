"""Strict server groups as affinity rules of high availability, written and kept."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common import ids
from common.context import internal
from common.errors import Unavailable
from common.messages.commands import Build, StrictGroup
from common.messages.inventory import SeenAffinity
from common.messages.questions import Agent, ConvergeAffinity, ReadInventory
from tests.functional.compute.conftest import (
    Worker,
    a_build,
    a_destroy,
    as_root,
    configuration,
    proxmox_text,
)
from tests.functional.simulator_fixture import RunningSimulator

CLOUD = "cloud1"


@pytest.fixture
def root(simulator: RunningSimulator, worker: Worker) -> Any:
    return as_root(simulator)


@contextlib.contextmanager
def privileged(root: Any) -> Iterator[None]:
    root.access.acl.put(
        path="/",
        roles="PVESysAdmin",
        users="micronova@pve",
        tokens="micronova@pve!agent",
        propagate=0,
    )
    yield
    root.access.acl.put(
        path="/",
        roles="PVESysAdmin",
        users="micronova@pve",
        tokens="micronova@pve!agent",
        delete=1,
    )


@pytest.fixture
def granted(root: Any) -> Iterator[None]:
    with privileged(root):
        yield


@pytest.fixture
def writer(simulator: RunningSimulator, worker: Worker, tmp_path: Path) -> Iterator[Worker]:
    """A worker that writes rules."""
    made = Worker(configuration(tmp_path, proxmox_text(simulator, write_affinity_rules="true")))
    made.start()
    yield made
    made.stop()


def a_member(group: StrictGroup, node: str = "pve1") -> Build:
    build = a_build(group=group, cloud=CLOUD, template=None)
    return dataclasses.replace(
        build, placed=dataclasses.replace(build.placed, host=node, node=node)
    )


def a_group(**more: Any) -> StrictGroup:
    return StrictGroup(ids.new_uuid(), **{"apart": True, **more})


def rules(root: Any) -> dict[str, Any]:
    return {one["rule"]: one for one in root.cluster.ha.rules.get()}


def detail(worker: Worker, build: Build) -> Any:
    return worker.conductor.steps(build)["compute_write_affinity"].detail


def test_members_come_and_go(writer: Worker, root: Any, granted: None) -> None:
    group = a_group()
    name = f"micronova-{CLOUD}-{group.uuid}"
    one, other = a_member(group), a_member(group, "pve2")
    assert writer.run(one).ok
    assert rules(root) == {}
    assert detail(writer, one)["waits_for"] == "a second server of the group in this cluster"
    assert writer.run(other).ok
    vmids = [one.placed.vmid, other.placed.vmid]
    assert detail(writer, other) == {"rule": name, "vmids": vmids}
    assert rules(root)[name]["affinity"] == "negative"
    assert rules(root)[name]["resources"] == ",".join(f"vm:{vmid}" for vmid in vmids)
    # Nobody manages them: they run and stop as ever.
    assert {one["state"] for one in root.cluster.ha.resources.get()} == {"ignored"}

    third = a_member(group)
    digest = rules(root)[name]["digest"]
    assert writer.run(dataclasses.replace(other, attempt=2)).ok
    assert rules(root)[name]["digest"] == digest
    assert writer.run(a_destroy(one)).gone
    assert rules(root)[name]["resources"] == f"vm:{other.placed.vmid}"
    assert writer.run(third).ok
    assert rules(root)[name]["resources"] == f"vm:{other.placed.vmid},vm:{third.placed.vmid}"
    for build in (other, third):
        assert writer.run(a_destroy(build)).gone
    assert rules(root) == {}
    assert root.cluster.ha.resources.get() == []


def test_affinity_keeps_together(writer: Worker, root: Any, granted: None) -> None:
    group = a_group(apart=False)
    for _ in range(2):
        assert writer.run(a_member(group)).ok
    [rule] = rules(root).values()
    assert rule["affinity"] == "positive"


@pytest.mark.parametrize(
    ("group", "allowed", "warning"),
    [
        (a_group(), False, "Permission check failed (/, Sys.Console)"),
        (a_group(max_per_host=2), True, "No affinity rule can say that 2 servers may be on one"),
    ],
)
def test_what_cannot_be_written_is_reported_and_fails_nothing(
    writer: Worker, root: Any, group: StrictGroup, allowed: bool, warning: str
) -> None:
    build = a_member(group)
    with privileged(root) if allowed else contextlib.nullcontext():
        assert writer.run(build).ok
    found = detail(writer, build)["warning"]
    assert found.startswith("No affinity rule was written: ")
    assert warning in found
    assert writer.run(a_destroy(build)).gone


def test_what_names_no_cloud_is_not_written(writer: Worker, root: Any, granted: None) -> None:
    build = dataclasses.replace(a_member(a_group()), cloud="")
    assert writer.run(build).ok
    assert "The cloud has no id" in detail(writer, build)["warning"]
    assert root.cluster.ha.resources.get() == []


def test_nothing_is_written_unless_asked(worker: Worker, root: Any, granted: None) -> None:
    build = a_member(a_group())
    assert worker.run(build).ok
    assert "compute_write_affinity" not in worker.conductor.steps(build)
    assert root.cluster.ha.resources.get() == []


def test_a_rule_that_another_worker_changed_between_read_and_write(
    writer: Worker, root: Any, granted: None, simulator: RunningSimulator
) -> None:
    group = a_group()
    for node in ("pve1", "pve2"):
        assert writer.run(a_member(group, node)).ok
    text = "update HA rules failed: detected modified configuration"
    order = simulator.fault(action="fail", method="PUT", path="/cluster/ha/rules/", text=text)
    # The group has more members than nodes with the third: that is reported, too.
    third = a_member(group)
    assert writer.run(third).ok
    assert "more resources than available nodes" in detail(writer, third)["warning"]
    [fault] = [one for one in simulator.control("GET", "faults") if one["id"] == order["id"]]
    assert fault["struck"] == 1


def test_many_write_at_the_same_time(writer: Worker, root: Any, granted: None) -> None:
    groups = [a_group(apart=False) for _ in range(4)]
    builds = [a_member(group) for _ in range(3) for group in groups]
    for build in builds:
        writer.send(build)
    for build in builds:
        (outcome,) = writer.conductor.wait_for(
            lambda build=build: writer.conductor.outcomes(build)
        )
        assert outcome.ok
        assert "warning" not in detail(writer, build)
    written = {name: len(one["resources"].split(",")) for name, one in rules(root).items()}
    assert written == {f"micronova-{CLOUD}-{group.uuid}": 3 for group in groups}


def seen(worker: Worker) -> tuple[SeenAffinity, ...]:
    at = Agent(worker.service.worker, "c1")
    return worker.client.ask(internal(), at, ReadInventory()).affinity


def converge(worker: Worker, group: StrictGroup, *members: Build) -> None:
    asked = tuple((one.placed.vmid, one.resource_id) for one in members)
    at = Agent(worker.service.worker, "c1")
    worker.client.ask(internal(), at, ConvergeAffinity(CLOUD, group, asked))


def test_what_is_left_goes_and_what_is_missing_comes(
    writer: Worker, root: Any, granted: None
) -> None:
    group = a_group()
    members = [a_member(group, node) for node in ("pve1", "pve2")]
    for build in members:
        assert writer.run(build).ok
    vmids = [build.placed.vmid for build in members]
    assert seen(writer) == (
        SeenAffinity(CLOUD, group.uuid, tuple(vmids), tuple(vmids), rule=True),
    )
    [name] = rules(root)
    root.cluster.ha.rules(name).delete()
    assert seen(writer) == (SeenAffinity(CLOUD, group.uuid, tuple(vmids)),)
    for _ in range(2):
        converge(writer, group, *members)
        assert list(rules(root)) == [name]
    for _ in range(2):
        converge(writer, group)
        assert seen(writer) == ()
        assert rules(root) == {}
        assert root.cluster.ha.resources.get() == []


def test_what_is_somebody_elses_stays(writer: Worker, root: Any, granted: None) -> None:
    group, other = a_group(), a_group()
    mine = a_member(group)
    assert writer.run(mine).ok
    taken = a_member(group, "pve2")
    assert writer.run(taken).ok
    theirs = a_build()
    assert writer.run(theirs).ok
    sid, managed = f"vm:{theirs.placed.vmid}", f"vm:{taken.placed.vmid}"
    root.cluster.ha.resources.post(sid=sid, state="started", comment="by hand")
    root.cluster.ha.resources(managed).put(state="started")
    root.cluster.ha.rules.post(
        rule=f"micronova-another-{other.uuid}",
        type="resource-affinity",
        affinity="negative",
        resources=f"{sid},{managed}",
    )
    converge(writer, group)
    assert list(rules(root)) == [f"micronova-another-{other.uuid}"]
    left = {one["sid"]: one.get("comment") for one in root.cluster.ha.resources.get()}
    # What somebody manages by now is no more ours, and is left as it is.
    assert left == {sid: "by hand", managed: None}


def test_a_vm_that_is_not_the_servers_becomes_no_resource(
    writer: Worker, root: Any, granted: None
) -> None:
    group, mine, another = a_group(), a_member(a_group()), a_member(a_group(), "pve2")
    for build in (mine, another):
        assert writer.run(build).ok
    before = root.cluster.ha.resources.get()
    # The record names another server's VM, as it was restored there by hand.
    recorded = [dataclasses.replace(one, resource_id=ids.new_uuid()) for one in (mine, another)]
    converge(writer, group, *recorded)
    assert root.cluster.ha.resources.get() == before
    assert rules(root) == {}


def test_a_refusal_to_converge_is_reported(writer: Worker, root: Any) -> None:
    build = a_member(a_group())
    assert writer.run(build).ok
    with pytest.raises(Unavailable, match="takes no rule"):
        converge(writer, a_group(), build)
