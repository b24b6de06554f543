"""The ownership fence at resources and rules of high availability: what a person has taken over,
at whatever moment, is left as it is; and no VM is changed for any of them.

As with VMs, the calls are recorded from real operations. Before each request that leads to one, in
turn, somebody takes what it is about to change.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common import ids
from common.messages.commands import Build, StrictGroup
from compute.hypervisor.port import HypervisorError
from tests.functional.compute.conftest import a_build, as_root
from tests.functional.compute.fence_stage import Stage
from tests.functional.compute.reckoning import Reckoning
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually

CLOUD = "cloud1"
THEIRS = 904
RESOURCE, RULE = "/cluster/ha/resources", "/cluster/ha/rules"

#: operation → servers of the group that are there before, and its calls, in order
CALLS = {
    "first": (0, [f"POST {RESOURCE}"]),
    "second": (1, [f"POST {RESOURCE}", f"POST {RULE}"]),
    "third": (2, [f"POST {RESOURCE}", f"PUT {RULE}/R"]),
    "keep two": (3, [f"PUT {RULE}/R", f"DELETE {RESOURCE}/V"]),
    "keep one": (2, [f"DELETE {RULE}/R", f"DELETE {RESOURCE}/V"]),
    "keep none": (2, [f"DELETE {RULE}/R", f"DELETE {RESOURCE}/V", f"DELETE {RESOURCE}/V"]),
    "keep none of one in use": (1, [f"PUT {RESOURCE}/V"]),
}


class Scene:
    """A group with servers, and an administrator who takes things over."""

    def __init__(self, stage: Stage, root: Any) -> None:
        self.stage, self.root = stage, root
        self.group = StrictGroup(ids.new_uuid(), apart=False)
        self.name = f"micronova-{CLOUD}-{self.group.uuid}"
        self.builds: list[Build] = []
        self.reported: dict[str, Any] = {}
        """What became of the operation, where it says so."""

    def ready(self, operation: str) -> Callable[[], None]:
        """All that comes before it is done; what is to be watched."""
        for _ in range(CALLS[operation][0]):
            self._join()
        if operation == "keep none of one in use":
            self.root.cluster.ha.resources(f"vm:{self.vmid}").put(state="started")
        if operation.startswith("keep"):
            count = ("keep none", "keep one", "keep two").index(operation.partition(" of")[0])
            return lambda: self._converge(self.builds[:count])
        return self._join

    @property
    def vmid(self) -> int:
        """Of the last server."""
        return self.builds[-1].placed.vmid

    def runs(self) -> bool:
        """Whether the last server's VM runs: all that an operation here does comes after that."""
        vm = self.stage.cluster.vm(self.vmid)
        return vm is not None and vm["status"] == "running"

    def ha_calls(self) -> list[str]:
        """The calls that changed something, without what differs from run to run."""
        found = [call for call in self.stage.client.writes if "/cluster/ha/" in call]
        return [re.sub(r"/vm:\d+$", "/V", call).replace(f"/{self.name}", "/R") for call in found]

    def _join(self) -> None:
        build = a_build(group=self.group, cloud=CLOUD, template=None)
        self.builds.append(build)
        outcome = self.stage.worker.run(build)
        assert outcome.ok, "no build fails of it"
        self.reported = self.stage.worker.conductor.steps(build)["compute_write_affinity"].detail

    def _converge(self, builds: list[Build]) -> None:
        members = {build.placed.vmid: build.resource_id for build in builds}
        try:
            self.stage.hypervisor.converge_affinity(CLOUD, self.group, members)
        except HypervisorError as error:
            self.reported = {"warning": error.message}

    # --- what somebody takes

    def take_rule(self) -> None:
        """A rule of our name says something else."""
        self.root.cluster.ha.rules(self.name).put(type="resource-affinity", comment="mine")

    def join_rule(self) -> None:
        """A guest of theirs is in our rule."""
        [rule] = [one for one in self.rules() if one["rule"] == self.name]
        self.root.cluster.ha.rules(self.name).put(
            type="resource-affinity", resources=f"{rule['resources']},vm:{THEIRS}"
        )

    def make_rule(self) -> None:
        """A rule of theirs has the very name that ours would have."""
        self.root.cluster.ha.rules.post(
            rule=self.name, type="node-affinity", resources=f"vm:{THEIRS}", nodes="pve1"
        )

    def use_in_rule(self) -> None:
        """Our resource is in a rule of theirs."""
        self.root.cluster.ha.rules.post(
            rule="theirs", type="node-affinity", resources=f"vm:{self.vmid}", nodes="pve1"
        )

    def take_resource(self) -> None:
        """Our resource says something else."""
        self.root.cluster.ha.resources(f"vm:{self.vmid}").put(comment="mine")

    def make_resource(self) -> None:
        """Somebody else makes a resource of the VM."""
        self.root.cluster.ha.resources.post(sid=f"vm:{self.vmid}", state="started")

    def take_vm(self) -> None:
        """Somebody else has that VMID, with the name and the tags of ours."""
        self.stage.take_over(self.vmid)

    def rules(self) -> list[Any]:
        """Every rule, without what changes as others do."""
        inner = {"digest", "errors", "order"}
        return [
            {key: value for key, value in one.items() if key not in inner}
            for one in self.root.cluster.ha.rules.get()
        ]

    def resources(self) -> dict[str, Any]:
        """State and comment of every resource."""
        return {
            one["sid"]: (one.get("state"), one.get("comment"))
            for one in self.root.cluster.ha.resources.get()
        }


@pytest.fixture
def scene(simulator: RunningSimulator, tmp_path: Path, reckoning: Reckoning) -> Iterator[Scene]:
    stage = Stage(simulator, tmp_path, write_affinity_rules="true")
    root = as_root(simulator)
    root.access.acl.put(
        path="/",
        roles="PVESysAdmin",
        users="micronova@pve",
        tokens="micronova@pve!agent",
        propagate=0,
    )
    root.nodes("pve1").qemu.post(vmid=THEIRS, memory=64, name="theirs")
    eventually(lambda: "lock" not in root.nodes("pve1").qemu(THEIRS).config.get(), 20)
    root.cluster.ha.resources.post(sid=f"vm:{THEIRS}", state="stopped")
    yield Scene(stage, root)
    reckoning.lost += stage.taken
    stage.client.before = None
    stage.worker.stop()
    root.access.acl.put(
        path="/",
        roles="PVESysAdmin",
        users="micronova@pve",
        tokens="micronova@pve!agent",
        delete=1,
    )


def taking(scene: Scene, take: Callable[[Scene], None], writes: int, request: int) -> list[Any]:
    """Have somebody take it before that request after so many writes; gives what then is."""
    taken: list[Any] = []
    since = [0]

    def before(method: str, path: str) -> None:
        if taken or not path.startswith("cluster/ha/") or len(scene.ha_calls()) != writes:
            return
        if not scene.runs():  # who looks over the cluster now and then has asked
            return
        if since[0] == request:
            take(scene)
            taken.append((scene.rules(), scene.resources(), scene.stage.cluster.vm(scene.vmid)))
        since[0] += 1

    scene.stage.client.writes.clear()
    scene.stage.client.before = before
    return taken


@pytest.mark.sampled(4)
@pytest.mark.parametrize("operation", CALLS)
def test_these_are_all_calls_that_change_something(scene: Scene, operation: str) -> None:
    act = scene.ready(operation)
    scene.stage.client.writes.clear()
    act()
    assert scene.ha_calls() == CALLS[operation][1]


#: operation, writes before, what is taken over, before which requests: also between look and
#: call where a digest or the name itself binds them, else until the last look
TAKEN = [
    (operation, writes, take, request)
    for operation, writes, take, requests in [
        ("second", 1, Scene.make_rule, 3),
        ("third", 1, Scene.take_rule, 3),
        ("third", 1, Scene.join_rule, 3),
        ("keep two", 0, Scene.take_rule, 5),
        ("keep two", 0, Scene.join_rule, 5),
        ("keep one", 0, Scene.take_rule, 4),
        ("keep one", 0, Scene.join_rule, 4),
        ("keep none", 0, Scene.take_rule, 3),
        ("keep none", 0, Scene.join_rule, 3),
    ]
    for request in range(requests)
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("operation", "writes", "take", "request_"), TAKEN)
def test_a_rule_that_somebody_took_over_is_left_alone(
    scene: Scene,
    operation: str,
    writes: int,
    take: Callable[[Scene], None],
    request_: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    act = scene.ready(operation)
    taken = taking(scene, take, writes, request_)
    act()
    [(rules, _, vm)] = taken
    assert scene.rules() == rules
    warned = scene.reported.get("warning", "") or caplog.text
    assert f"Rule {scene.name} is not ours: it" in warned
    assert scene.resources()[f"vm:{THEIRS}"] == ("stopped", None)
    assert scene.stage.cluster.vm(scene.vmid) == vm


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("operation", "writes", "take", "request_"),
    [
        (operation, writes, take, request)
        for operation, writes, take, requests in [
            ("keep two", 1, Scene.take_resource, 3),
            ("keep none", 2, Scene.take_resource, 2),
            ("keep none of one in use", 0, Scene.take_resource, 6),
            ("first", 0, Scene.make_resource, 2),
            ("second", 0, Scene.make_resource, 2),
        ]
        for request in range(requests)
    ],
)
def test_a_resource_that_somebody_took_over_is_left_alone(
    scene: Scene, operation: str, writes: int, take: Callable[[Scene], None], request_: int
) -> None:
    act = scene.ready(operation)
    taken = taking(scene, take, writes, request_)
    act()
    [(_, resources, vm)] = taken
    sid = f"vm:{scene.vmid}"
    assert scene.resources()[sid] == resources[sid]
    assert [one for one in scene.rules() if sid in one["resources"]] == []
    assert scene.stage.cluster.vm(scene.vmid) == vm


def test_a_resource_in_a_rule_of_theirs_stays_and_only_is_ours_no_more(scene: Scene) -> None:
    act = scene.ready("keep none")
    taken = taking(scene, Scene.use_in_rule, 2, 0)
    act()
    [(rules, _, _)] = taken
    assert scene.rules() == rules
    assert scene.resources()[f"vm:{scene.vmid}"] == ("ignored", None)


@pytest.mark.parametrize("operation", ["first", "second"])
def test_no_resource_is_made_of_a_strangers_vm(scene: Scene, operation: str) -> None:
    act = scene.ready(operation)
    taken = taking(scene, Scene.take_vm, 0, 0)
    act()
    [(rules, resources, vm)] = taken
    assert "it doesn't carry the server's marks" in scene.reported["warning"]
    assert (scene.rules(), scene.resources()) == (rules, resources)
    after = scene.stage.cluster.vm(scene.vmid)
    assert {name: after[name] for name in ("config", "pending", "status", "pid")} == {
        name: vm[name] for name in ("config", "pending", "status", "pid")
    }


def test_what_we_left_at_a_strangers_vm_goes_and_the_vm_stays(scene: Scene) -> None:
    act = scene.ready("keep none")
    scene.take_vm()
    before = scene.stage.cluster.vm(scene.vmid)
    act()
    assert scene.rules() == []
    assert list(scene.resources()) == [f"vm:{THEIRS}"]
    assert scene.stage.cluster.vm(scene.vmid) == before


def test_a_strangers_vm_is_taken_out_of_the_rule(scene: Scene) -> None:
    """The record still names it; its marks don't."""
    scene.ready("keep two")
    scene.take_vm()
    with contextlib.suppress(HypervisorError):
        scene.stage.hypervisor.converge_affinity(
            CLOUD, scene.group, {one.placed.vmid: one.resource_id for one in scene.builds}
        )
    [rule] = scene.rules()
    left = {f"vm:{one.placed.vmid}" for one in scene.builds[:-1]}
    assert set(rule["resources"].split(",")) == left
    assert f"vm:{scene.vmid}" not in scene.resources()
