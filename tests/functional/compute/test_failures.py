"""What fails on the way leaves nothing, and what isn't ours is never touched."""

from __future__ import annotations

import dataclasses
import socket
from pathlib import Path
from typing import Any

import proxmoxer
import pytest

from common import clock
from common.failures import Verdict, verdict_of
from common.messages.commands import Build, Placed, PowerAction
from common.messages.reports import Category
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_power,
    configuration,
    proxmox_text,
    template_vmid,
)
from tests.functional.simulator_fixture import RunningSimulator


@pytest.fixture
def api(simulator: RunningSimulator, worker: Worker) -> Any:
    """Proxmox VE as an administrator would use it, beside the worker."""
    settings = worker.hypervisors[0].shared.settings  # type: ignore[attr-defined]
    host, port = settings.endpoints[0]
    return proxmoxer.ProxmoxAPI(
        host,
        port=port,
        user=settings.token.user,
        token_name=settings.token.name,
        token_value=settings.token.secret,
        verify_ssl=str(simulator.ca_file),
    )


def wait_for_task(worker: Worker, upid: str) -> None:
    class Patient:
        def check_time(self) -> None:
            pass

    worker.hypervisors[0].shared.tasks.wait(Patient(), upid)  # type: ignore[attr-defined]


def stranger(api: Any, worker: Worker, vmid: int, node: str = "pve1") -> None:
    """A VM that somebody else made."""
    upid = api.nodes(node).qemu.post(vmid=vmid, name="stranger", memory=64, scsi0="local:1")
    wait_for_task(worker, upid)


@pytest.mark.parametrize(
    ("path", "text", "category"),
    [
        ("/qemu$", "simulated task failure", Category.CREATION_FAILED),
        ("/clone$", "simulated task failure", Category.CREATION_FAILED),
        ("/resize$", "simulated task failure", Category.CREATION_FAILED),
        ("/status/start$", "bridge 'vmbr0' does not exist", Category.NETWORK),
        ("/upload$", "simulated task failure", Category.CREATION_FAILED),
    ],
)
def test_a_failed_task_unwinds_the_build(
    worker: Worker,
    cluster: Cluster,
    simulator: RunningSimulator,
    path: str,
    text: str,
    category: Category,
) -> None:
    method = "PUT" if path == "/resize$" else "POST"
    simulator.fault(action="task-fail", method=method, path=path, text=text)
    build = a_build()
    outcome = worker.run(build)
    assert not outcome.ok
    assert outcome.gone
    failure = outcome.failure
    assert failure is not None
    assert failure.category is category
    assert text in failure.message
    assert failure.upid is not None
    assert failure.log_tail
    assert failure.clean
    assert failure.left == ()
    assert cluster.is_empty(build.placed.vmid)
    if path == "/qemu$":
        assert cluster.is_empty(template_vmid())
    steps = worker.conductor.steps(build)
    assert steps[str(failure.step)].result == "Error"
    if path == "/status/start$":
        assert steps["compute_destroy_vm"].detail["cleaned"]
    assert worker.run(a_build()).ok


@pytest.mark.parametrize(
    ("path", "step"),
    [
        (r"/qemu/\d+/config$", "compute_create_vm"),
        ("/template$", "compute_ensure_image"),
        ("/clone$", "compute_create_vm"),
    ],
)
def test_a_refused_request_unwinds_the_build(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, path: str, step: str
) -> None:
    simulator.fault(action="fail", method="POST", path=path, text="No space left on device")
    build = a_build()
    outcome = worker.run(build)
    assert outcome.failure is not None
    assert outcome.failure.category is Category.STORAGE_FULL
    assert outcome.failure.step == step
    assert outcome.gone
    assert cluster.is_empty(build.placed.vmid)
    if path == "/template$":
        assert cluster.is_empty(template_vmid())


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/clone$"),
        ("POST", r"/qemu/\d+/config$"),
        ("PUT", "/resize$"),
        ("POST", "/status/start$"),
        ("POST", "/upload$"),
        ("POST", "/qemu$"),
        ("POST", "/template$"),
    ],
)
@pytest.mark.parametrize("how", [{}, {"how": "drop"}, {"status": 599}, {"status": 500}])
def test_a_lost_answer_is_probed_and_nothing_made_twice(
    worker: Worker,
    cluster: Cluster,
    simulator: RunningSimulator,
    method: str,
    path: str,
    how: dict[str, Any],
) -> None:
    simulator.fault(action="lose-answer", method=method, path=path, **how)
    build = a_build()
    outcome = worker.run(build)
    assert outcome.ok, outcome
    assert len(cluster.calls("POST", "/clone")) == 1
    assert len(cluster.calls("POST", "/qemu")) == 1
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)


@pytest.mark.parametrize("path", [r"/qemu/\d+$", "/status/stop$", "/content/"])
def test_a_lost_answer_in_a_destroy_is_probed(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, path: str
) -> None:
    build = a_build()
    assert worker.run(build).ok
    method = "POST" if path.startswith("/status") else "DELETE"
    simulator.fault(action="lose-answer", method=method, path=path)
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)


def test_a_lock_is_waited_for(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    text = "can't lock file '/var/lock/pve-manager/pve-storage-local' - got timeout"
    simulator.fault(action="task-fail", path="/clone$", text=text)
    assert worker.run(a_build()).ok
    assert len(cluster.calls("POST", "/clone")) == 2


def test_somebody_elses_vm_is_never_touched(worker: Worker, cluster: Cluster, api: Any) -> None:
    build = a_build()
    stranger(api, worker, build.placed.vmid)
    before = cluster.vm(build.placed.vmid)

    outcome = worker.run(build)
    assert outcome.failure is not None
    assert outcome.failure.category is Category.STORAGE_CONFLICT
    assert outcome.gone  # nothing of ours

    destroyed = worker.run(a_destroy(build))
    assert not destroyed.ok
    assert not destroyed.gone
    assert destroyed.failure is not None
    assert destroyed.failure.left
    for action in PowerAction:
        assert not worker.run(a_power(build, action)).ok
    assert cluster.vm(build.placed.vmid) == before


def test_a_vmid_taken_between_look_and_create_is_not_adopted(
    worker: Worker, cluster: Cluster, api: Any, simulator: RunningSimulator
) -> None:
    """On the other node, where the look at the placed one doesn't find it."""
    build = a_build()
    stranger(api, worker, build.placed.vmid, "pve2")
    before = cluster.vm(build.placed.vmid)
    outcome = worker.run(build)
    assert outcome.failure is not None
    assert outcome.failure.category is Category.STORAGE_CONFLICT
    assert cluster.vm(build.placed.vmid) == before


def test_a_leftover_volume_is_reported_and_left(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    build = a_build()
    volid = f"local:{build.placed.vmid}/vm-{build.placed.vmid}-disk-0.qcow2"
    simulator.control("POST", "volume", {"volid": volid, "node": "pve1"})
    outcome = worker.run(build)
    assert outcome.failure is not None
    assert outcome.failure.category is Category.STORAGE_CONFLICT
    assert outcome.failure.left == (f"volume {volid}",)
    assert cluster.volumes(build.placed.vmid) == [volid]
    # As long as it lies there, a destroy can't say that all is gone.
    assert not worker.run(a_destroy(build)).gone


@pytest.mark.parametrize("leak", ["L1", "L4"])
def test_a_shell_that_only_root_can_clear_is_reported_with_the_command(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, leak: str
) -> None:
    build = a_build(template=None)
    vmid = build.placed.vmid
    simulator.fault(leak=leak, vmid=vmid)
    outcome = worker.run(build)
    assert not outcome.ok
    assert cluster.vm(vmid) is not None
    failure = outcome.failure
    assert failure is not None
    assert not failure.clean
    # Nothing else is left: the VMID is set aside, and another one does it.
    assert outcome.gone
    assert failure.left
    assert failure.remedy is not None
    assert f"qm unlock {vmid} && qm destroy {vmid} --purge" in failure.remedy
    again = worker.run(a_destroy(build))
    assert not again.gone


def test_volumes_that_a_failed_create_left_are_freed(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    build = a_build(template=None)
    simulator.fault(leak="L3", vmid=build.placed.vmid)
    outcome = worker.run(build)
    assert not outcome.ok
    assert cluster.is_empty(build.placed.vmid)
    assert outcome.gone


def test_a_disk_that_a_destroy_left_is_freed(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    build = a_build()
    assert worker.run(build).ok
    simulator.fault(leak="L7", vmid=build.placed.vmid)
    outcome = worker.run(a_destroy(build))
    assert outcome.gone, outcome
    assert cluster.is_empty(build.placed.vmid)


def storage_active(worker: Worker, name: str) -> bool:
    """What node pve1 was last seen to say of a storage."""
    beats = worker.conductor.heartbeats
    reported = [facts for beat in beats for facts in beat.facts if facts.node == "pve1"]
    return any(one.active for one in reported[-1].storages if one.name == name)


@pytest.mark.parametrize("when", ["before", "during"])
def test_a_destroy_waits_for_a_storage_that_cannot_be_looked_at(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, api: Any, when: str
) -> None:
    build = a_build(template=None)
    assert worker.run(build).ok
    vmid = build.placed.vmid
    # A person gave it a second disk elsewhere.
    wait_for_task(worker, api.nodes("pve1").qemu(vmid).config.post(scsi3="shared:1"))
    if when == "before":
        simulator.fault(action="storage-offline", storage="shared", node="pve1")
        worker.conductor.wait_for(lambda: not storage_active(worker, "shared"))
    else:
        simulator.fault(leak="L7", vmid=vmid, times=0)
        simulator.fault(action="fail", path="/storage/shared/content", nth=2, times=9, status=500)
    outcome = worker.run(a_destroy(build))
    assert not outcome.gone, outcome
    assert (cluster.vm(vmid) is not None) == (when == "before")
    assert not cluster.is_empty(vmid)
    simulator.control("DELETE", "faults")
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(vmid)


def test_a_vm_that_moved_is_followed(worker: Worker, cluster: Cluster, api: Any) -> None:
    build = a_build(template=None)
    assert worker.run(build).ok
    assert worker.run(a_power(build, PowerAction.STOP)).ok
    path = api.nodes("pve1").qemu(build.placed.vmid)
    path.config.put(delete="ide2")
    wait_for_task(worker, path.migrate.post(target="pve2"))
    assert cluster.vm(build.placed.vmid)["node"] == "pve2"
    assert worker.run(a_power(build, PowerAction.START)).ok
    assert worker.run(a_destroy(build)).gone
    assert cluster.vm(build.placed.vmid) is None


def test_a_dead_node_fails_the_build_and_keeps_a_destroy_open(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    build = a_build()
    assert worker.run(build).ok
    simulator.fault(action="node-down", node="pve1")
    worker.conductor.wait_for(
        lambda: any(
            not facts.healthy for beat in worker.conductor.heartbeats for facts in beat.facts
        )
    )
    outcome = worker.run(a_build())
    assert outcome.failure is not None
    assert outcome.failure.category is Category.NODE_UNHEALTHY
    assert outcome.gone  # so that another host can be taken
    destroyed = worker.run(a_destroy(build))
    assert not destroyed.gone
    assert destroyed.failure is not None
    assert destroyed.failure.category is Category.NODE_UNHEALTHY
    simulator.control("DELETE", "faults")
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)


def test_a_revoked_token_is_reported(worker: Worker, simulator: RunningSimulator) -> None:
    build = a_build()
    simulator.fault(action="token-revoked")
    outcome = worker.run(build)
    assert outcome.failure is not None
    assert outcome.failure.category is Category.AUTHORIZATION
    simulator.control("DELETE", "faults")


def test_a_host_that_is_refused_is_known_to_hold_nothing(
    worker: Worker, simulator: RunningSimulator
) -> None:
    build = a_build()
    nic = dataclasses.replace(build.nics[0], bridge="vmbr9")
    outcome = worker.run(dataclasses.replace(build, nics=(nic,)))
    assert outcome.failure is not None
    assert outcome.failure.category is Category.NETWORK
    assert "vmbr0, vmbr1" in outcome.failure.message
    assert outcome.gone


def test_a_deadline_that_has_passed_ends_the_build(worker: Worker, cluster: Cluster) -> None:
    build = a_build(deadline=clock.utcnow())
    outcome = worker.run(build)
    assert outcome.failure is not None
    assert outcome.failure.category is Category.TASK_TIMEOUT
    assert cluster.is_empty(build.placed.vmid)


def test_a_repeated_build_undoes_nothing_that_an_earlier_one_has_finished(
    worker: Worker, second: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    """The report of the earlier one may be on its way still: then its server gets active."""
    build = a_build()
    assert worker.run(build).ok
    before = cluster.volumes(build.placed.vmid)
    simulator.fault(action="task-fail", method="PUT", path="/resize$")
    # Another process, which doesn't know what the first one did.
    outcome = second.run(dataclasses.replace(build, disk_gib=4))
    assert outcome.failure is not None
    assert (outcome.gone, outcome.failure.clean, outcome.failure.cleaned) == (False, False, ())
    assert cluster.vm(build.placed.vmid)["config"]["name"] == build.hostname
    assert sorted(cluster.volumes(build.placed.vmid)) == sorted(before)


def test_a_template_that_was_removed_is_made_again(
    worker: Worker, cluster: Cluster, api: Any
) -> None:
    build = a_build()
    assert worker.run(build).ok
    assert worker.run(a_destroy(build)).gone
    wait_for_task(worker, api.nodes("pve1").qemu(template_vmid()).delete())
    assert worker.run(a_build()).ok
    assert cluster.vm(template_vmid())["config"]["template"] == "1"


def test_a_template_vmid_that_is_taken_is_gone_without(
    worker: Worker, cluster: Cluster, api: Any
) -> None:
    stranger(api, worker, template_vmid())
    before = cluster.vm(template_vmid())
    build = a_build()
    assert worker.run(build).ok
    assert worker.conductor.steps(build)["compute_ensure_image"].detail["way"] == "import_from"
    assert cluster.vm(template_vmid()) == before


def test_a_missing_image_is_reported(worker: Worker, cluster: Cluster) -> None:
    build = a_build()
    assert build.image is not None
    image = dataclasses.replace(build.image, id="gone", volid="shared:import/gone.qcow2")
    outcome = worker.run(dataclasses.replace(build, image=image))
    assert outcome.failure is not None
    assert outcome.failure.category is Category.IMAGE_NOT_FOUND
    assert outcome.gone
    assert cluster.is_empty(build.placed.vmid)
    assert cluster.vm(template_vmid()) is None


def test_another_endpoint_answers_for_a_dead_one(
    simulator: RunningSimulator, tmp_path: Path
) -> None:
    simulator.control("POST", "reset")
    with socket.create_server(("127.0.0.1", 0)) as unused:
        dead = f"https://127.0.0.1:{unused.getsockname()[1]}"
    endpoints = ",".join([dead, simulator.url, *simulator.node_urls.values()])
    running = Worker(configuration(tmp_path, proxmox_text(simulator, endpoints=endpoints)))
    running.start()
    try:
        build = a_build()
        assert running.run(build).ok
        assert running.run(a_destroy(build)).gone
    finally:
        running.stop()


def test_a_build_on_an_unknown_node_makes_nothing(worker: Worker) -> None:
    build: Build = a_build()
    placed = Placed("pve9", "c1", "pve9", build.placed.vmid)
    outcome = worker.run(dataclasses.replace(build, placed=placed))
    assert outcome.failure is not None
    assert outcome.failure.category is Category.NODE_UNHEALTHY


@pytest.mark.sampled(4)
@pytest.mark.parametrize("how", ["drop", "596"])
@pytest.mark.parametrize(
    "path", [r"/qemu/\d+/config$", "/tasks", "/status/current$", "/content", "/cluster/resources$"]
)
def test_a_read_whose_answer_is_lost_is_read_again(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, path: str, how: str
) -> None:
    """A server that closes an idle connection at the very moment that it is used does this."""
    values = {"action": "drop"} if how == "drop" else {"action": "fail", "status": 596}
    for nth in (1, 3, 5):
        simulator.fault(method="GET", path=path, nth=nth, text="Connection timed out", **values)
    build = a_build()
    outcome = worker.run(build)
    assert outcome.ok, outcome
    destroyed = worker.run(a_destroy(build))
    assert destroyed.gone, destroyed
    assert cluster.is_empty(build.placed.vmid)


def test_a_lock_that_no_task_explains_is_left_to_who_can_clear_it(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    build = a_build(template=None)
    assert worker.run(build).ok
    vmid = build.placed.vmid
    simulator.fault(action="config-lock", vmid=vmid, lock="backup")
    outcome = worker.run(a_power(build, PowerAction.REBOOT_HARD))
    failure = outcome.failure
    assert failure is not None
    assert (failure.category, failure.verdict) == (Category.LOCK, Verdict.WAIT)
    assert failure.remedy == f"as root on pve1: qm unlock {vmid}"
    assert cluster.vm(vmid)["config"]["lock"] == "backup"
    simulator.control("DELETE", "faults")
    assert worker.run(a_power(build, PowerAction.REBOOT_HARD)).ok


def test_a_destroy_without_quorum_touches_nothing_and_waits(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    build = a_build(template=None)
    assert worker.run(build).ok
    before = cluster.vm(build.placed.vmid)
    simulator.fault(action="no-quorum")
    outcome = worker.run(a_destroy(build))
    assert not outcome.gone
    assert outcome.failure is not None
    assert outcome.failure.category is Category.NODE_UNHEALTHY
    assert verdict_of(outcome.failure) is Verdict.WAIT
    after = cluster.vm(build.placed.vmid)
    assert (after["status"], after["config"]) == ("running", before["config"])
    assert not cluster.calls("DELETE", f"/qemu/{build.placed.vmid}")
    simulator.control("DELETE", "faults")
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)
