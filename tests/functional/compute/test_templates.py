"""The image cache: one template however many want it, kept while needed, never made again."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import proxmoxer
import pytest

from common import clock, ids
from common.context import internal
from common.failures import Verdict
from common.messages.commands import Build, CacheImage, Image, Placed, RetireTemplate, Template
from common.messages.reports import Category
from common.resources.states import ResourceType
from tests.fixtures.root_shell import RootShell
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_destroy,
    template_vmid,
)
from tests.functional.compute.reckoning import Reckoning
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually

IMAGE_ID = ids.named("image", "cirros")


@pytest.fixture
def api(simulator: RunningSimulator, worker: Worker) -> Any:
    """Proxmox VE as root uses it, beside the worker."""
    settings = worker.hypervisors[0].shared.settings  # type: ignore[attr-defined]
    host, port = settings.endpoints[0]
    password = (simulator.state_dir / "root-password").read_text()
    return proxmoxer.ProxmoxAPI(
        host,
        port=port,
        user="root@pam",
        password=password,
        verify_ssl=str(simulator.ca_file),
    )


def run_all(work: Sequence[tuple[Worker, Build]]) -> list[Any]:
    """All at once."""
    for worker, build in work:
        worker.send(build)
    return [
        worker.conductor.wait_for(
            lambda worker=worker, build=build: worker.conductor.outcomes(build) or None
        )[0]
        for worker, build in work
    ]


def retire(worker: Worker, *, image_id: str = IMAGE_ID, cloud: str = "") -> Any:
    placed = Placed("pve1", "c1", "pve1", template_vmid())
    command = RetireTemplate(
        0,
        0,
        ResourceType.TEMPLATE,
        f"c1/{template_vmid()}",
        placed,
        clock.after(60),
        image_id=image_id,
        cloud=cloud,
    )
    before = len(worker.conductor.outcomes(command))
    worker.client.execute(internal(), worker.service.address, command)
    return worker.conductor.wait_for(  # type: ignore[no-any-return]
        lambda: worker.conductor.outcomes(command)[before:] or None
    )[0]


def made(cluster: Cluster) -> int:
    """Creates that Proxmox VE took; the others met a template that existed or was being made."""
    return sum(call["status"] == 200 for call in cluster.calls("POST", "/qemu"))


def test_many_builds_in_two_processes_make_one_template(
    worker: Worker, second: Worker, cluster: Cluster
) -> None:
    work = [(one, a_build()) for _ in range(6) for one in (worker, second)]
    outcomes = run_all(work)
    assert [outcome.failure for outcome in outcomes if not outcome.ok] == []
    assert made(cluster) == 1
    assert len({call["n"] for call in cluster.calls("POST", "/template")}) <= 2
    assert cluster.vm(template_vmid())["config"]["template"] == "1"
    for one, build in work:
        disk = cluster.vm(build.placed.vmid)["config"]["scsi0"]
        assert f"base-{template_vmid()}-disk-0" in disk
        assert one.run(a_destroy(build)).gone
    assert cluster.vm(template_vmid()) is not None


def test_a_template_goes_only_when_nothing_hangs_on_it(worker: Worker, cluster: Cluster) -> None:
    build = a_build()
    assert worker.run(build).ok
    refused = retire(worker)
    assert not refused.gone
    assert refused.failure is not None
    assert "hangs on" in refused.failure.message
    assert cluster.calls("DELETE", f"/qemu/{template_vmid()}") == []
    assert worker.run(a_destroy(build)).gone
    assert retire(worker).gone
    assert cluster.is_empty(template_vmid())
    assert retire(worker).gone
    assert worker.run(a_build()).ok, "a build that needs it again makes it again"


@pytest.mark.parametrize(
    ("image_id", "cloud"), [("another-image", "north"), (IMAGE_ID, "south"), (IMAGE_ID, "")]
)
def test_another_clouds_template_is_not_removed(
    worker: Worker, cluster: Cluster, image_id: str, cloud: str
) -> None:
    build = dataclasses.replace(a_build(), cloud="north")
    assert worker.run(build).ok
    assert worker.run(a_destroy(build)).gone
    before = cluster.vm(template_vmid())
    outcome = retire(worker, image_id=image_id, cloud=cloud)
    if cloud or image_id != IMAGE_ID:
        assert not outcome.gone
        assert cluster.vm(template_vmid()) == before
    else:
        assert outcome.gone, "a cloud without an id knows its templates by the image alone"


def test_two_clouds_whose_bands_overlap_use_no_template_of_each_other(
    worker: Worker, second: Worker, cluster: Cluster
) -> None:
    north, south = (dataclasses.replace(a_build(), cloud=name) for name in ("north", "south"))
    assert worker.run(north).ok
    before = cluster.vm(template_vmid())
    assert second.run(south).ok
    step = second.conductor.steps(south)["compute_ensure_image"]
    assert step.detail["way"] == "import_from"
    assert "of cloud north" in step.detail["template_taken"]
    assert cluster.vm(template_vmid()) == before
    # A server's VMID that the other cloud has is met the same way.
    taken = dataclasses.replace(a_build(), placed=north.placed, cloud="south")
    outcome = second.run(taken)
    assert outcome.failure is not None
    assert outcome.failure.category is Category.STORAGE_CONFLICT
    assert f"server {north.resource_id} of cloud north" in outcome.failure.message
    assert "vmid_low" in str(outcome.failure.remedy)
    assert outcome.gone


@pytest.mark.parametrize("lock", ["backup", "migrate"])
@pytest.mark.parametrize("known", [True, False])
def test_a_locked_template_is_gone_around_and_named(
    worker: Worker, cluster: Cluster, api: Any, root: RootShell, lock: str, known: bool
) -> None:
    first = a_build()
    assert worker.run(first).ok
    api.nodes("pve1").qemu(template_vmid()).config.put(lock=lock, skiplock=1)
    if not known:
        worker.hypervisors[0]._templates._ready.clear()  # type: ignore[attr-defined]
    build = a_build()
    assert worker.run(build).ok
    assert cluster.vm(build.placed.vmid)["config"]["scsi0"].startswith("local:1")
    detail = template_taken(worker, build)
    assert f"the lock '{lock}'" in detail
    remedy = f"as root on pve1: qm unlock {template_vmid()}"
    assert f"({remedy})" in detail
    # Asked once at most, not in a loop; and the template is as it was.
    assert len(cluster.calls("POST", f"/{template_vmid()}/clone")) <= 2
    assert cluster.calls("DELETE", f"/qemu/{template_vmid()}") == []
    assert cluster.vm(template_vmid())["config"]["lock"] == lock
    root.run(remedy)
    again = a_build()
    assert worker.run(again).ok
    assert f"base-{template_vmid()}-disk-0" in cluster.vm(again.placed.vmid)["config"]["scsi0"]


def template_taken(worker: Worker, build: Build) -> str:
    """What the steps of a build say of the template that it passed over."""
    steps = worker.conductor.steps(build).values()
    [detail] = [one.detail["template_taken"] for one in steps if "template_taken" in one.detail]
    return str(detail)


@pytest.mark.parametrize("leak", ["L1", "L4"])
def test_a_template_that_was_never_finished_is_gone_around(
    worker: Worker,
    cluster: Cluster,
    simulator: RunningSimulator,
    reckoning: Reckoning,
    leak: str,
) -> None:
    reckoning.expect(f"VM {template_vmid()}")
    simulator.fault(leak=leak, vmid=template_vmid())
    for _ in range(2):
        build = a_build()
        assert worker.run(build).ok
        assert f"qm unlock {template_vmid()}" in template_taken(worker, build)
    assert cluster.calls("DELETE", f"/qemu/{template_vmid()}") == []


def test_what_a_killed_worker_left_of_a_template_is_named_and_can_be_freed(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, root: RootShell
) -> None:
    vmid = template_vmid()
    simulator.fault(action="task-kill", method="POST", path="/qemu$", vmid=vmid)
    build = a_build()
    assert worker.run(build).ok
    (disk,) = cluster.volumes(vmid)
    remedy = f"as root on pve1: qm unlock {vmid} && qm destroy {vmid} --purge && pvesm free {disk}"
    assert template_taken(worker, build).endswith(f"({remedy})")
    root.run(remedy)
    eventually(lambda: cluster.is_empty(vmid))
    assert worker.run(a_build()).ok
    assert cluster.vm(vmid)["config"]["template"]


def test_a_forbidden_template_ends_the_build_at_once(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    text = f"Permission check failed (/vms/{template_vmid()}, VM.Allocate)"
    simulator.fault(action="fail", method="POST", path="/qemu$", status=403, text=text, times=9)
    outcome = worker.run(a_build())
    failure = outcome.failure
    assert failure is not None
    assert failure.category is Category.AUTHORIZATION
    assert failure.verdict == Verdict.FATAL
    assert "VM.Allocate" in failure.message
    assert outcome.gone
    assert len(cluster.calls("POST", "/qemu")) == 1


def test_a_template_of_another_file_is_gone_around_and_stays(
    worker: Worker, cluster: Cluster, api: Any
) -> None:
    assert worker.run(a_build()).ok
    description = cluster.vm(template_vmid())["config"]["description"]
    assert "of 1" in description or "bytes" in description
    words = [line for line in description.splitlines() if "source=" in line]
    (source,) = words
    changed = description.replace(source, source.rsplit(" of ", 1)[0] + " of 1 bytes")
    api.nodes("pve1").qemu(template_vmid()).config.put(description=changed)
    worker.hypervisors[0]._templates._ready.clear()  # type: ignore[attr-defined]
    build = a_build()
    assert worker.run(build).ok
    step = worker.conductor.steps(build)["compute_ensure_image"]
    assert (step.detail["way"], "another file" in step.detail["template_taken"]) == (
        "import_from",
        True,
    )
    assert cluster.vm(template_vmid())["config"]["description"] == changed


def test_a_template_whose_node_is_not_there_is_gone_around(worker: Worker) -> None:
    build = a_build(template=Template(template_vmid(), "pve9", "local"))
    outcome = worker.run(build)
    assert outcome.ok, outcome
    step = worker.conductor.steps(build)["compute_ensure_image"]
    assert step.detail["way"] == "import_from"


def test_one_template_on_a_shared_storage_serves_every_node(
    worker: Worker, cluster: Cluster
) -> None:
    template = Template(template_vmid(), "pve1", "shared")
    work = []
    for node in ("pve1", "pve2", "pve2"):
        build = a_build(template=template, storage="shared")
        placed = dataclasses.replace(build.placed, host=node, node=node)
        work.append((worker, dataclasses.replace(build, placed=placed)))
    outcomes = run_all(work)
    assert [outcome.failure for outcome in outcomes if not outcome.ok] == []
    assert made(cluster) == 1
    for _, build in work:
        vm = cluster.vm(build.placed.vmid)
        assert vm["node"] == build.placed.node
        assert f"base-{template_vmid()}-disk-0" in vm["config"]["scsi0"]
        assert worker.run(a_destroy(build)).gone


def cached(worker: Worker, **more: Any) -> Any:
    """Have the image made ready on pve1; how it ended."""
    build = a_build(**more)
    place = Placed("pve1", "c1", "pve1", template_vmid())
    values = {name: getattr(build, name) for name in ("image", "template", "storage", "cloud")}
    command = CacheImage(
        0, 0, ResourceType.TEMPLATE, f"c1/{template_vmid()}", place, clock.after(60), **values
    )
    before = len(worker.conductor.outcomes(command))
    worker.client.execute(internal(), worker.service.address, command)
    found = worker.conductor.wait_for(lambda: worker.conductor.outcomes(command)[before:] or None)
    outcome: Any = found[0]
    return outcome


def test_an_image_is_made_ready_ahead_of_any_build(worker: Worker, cluster: Cluster) -> None:
    for _ in range(2):
        outcome = cached(worker)
        assert (outcome.ok, outcome.failure) == (True, None)
    assert cluster.vm(template_vmid())["config"]["template"] == "1"
    build = a_build()
    assert worker.run(build).ok
    assert worker.conductor.steps(build)["compute_ensure_image"].detail["made"] is False


def test_an_image_without_template_is_not_reported_ready(worker: Worker) -> None:
    outcome = cached(worker, template=Template(template_vmid(), "pve9", "local"))
    assert not outcome.ok
    assert outcome.failure is not None
    assert "node pve9 of template" in outcome.failure.message


def test_an_image_that_is_not_there_is_not_made_ready(worker: Worker, cluster: Cluster) -> None:
    image = Image(ids.new_uuid(), "none", "nowhere:import/none.qcow2", 1)
    outcome = cached(worker, image=image)
    assert not outcome.ok
    assert outcome.failure is not None
    assert cluster.vm(template_vmid()) is None
