"""What the driver does all day, through real proxmoxer."""

from __future__ import annotations

import hashlib
import io
import json
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from proxmoxer import AuthenticationError, ResourceException

from simulator.server import Simulator
from tests.fixtures.pve_captures import multipart, qcow2
from tests.functional.simulator.conftest import Lab, connect


def refusal(call: Callable[[], Any]) -> tuple[int, str]:
    """Status and text of a call that must fail."""
    with pytest.raises(ResourceException) as caught:
        call()
    return caught.value.status_code, caught.value.content


def test_create_start_resize_stop_and_delete(lab: Lab) -> None:
    vm = lab.api.nodes("pve1").qemu(100)
    assert lab.create(net0="virtio,bridge=vmbr0", ide2="shared:cloudinit", agent=1) == "OK"
    assert lab.done(vm.resize.put(disk="scsi0", size="5G")) == "OK"
    assert vm.config.get()["scsi0"].endswith("size=5G")
    assert lab.done(vm.status.start.post()) == "OK"
    assert vm.status.current.get()["status"] == "running"
    assert refusal(vm.delete)[1] == "VM 100 is running - destroy failed"
    assert lab.done(vm.status.stop.post()) == "OK"
    assert lab.done(vm.delete(purge=1)) == "OK"
    assert lab.volumes(100) == []
    assert lab.lock_of(100) is None


def test_linked_clones_of_a_template(lab: Lab) -> None:
    assert lab.create(ide2="shared:cloudinit") == "OK"
    template = lab.api.nodes("pve1").qemu(100)
    assert lab.done(template.template.post()) == "OK"
    clones = [template.clone.post(newid=vmid, name=f"c{vmid}") for vmid in (101, 102, 103)]
    assert [lab.done(upid) for upid in clones] == ["OK"] * 3
    assert "base-100-disk-0.qcow2/101/vm-101-disk-0.qcow2" in "".join(lab.volumes(101))
    assert "still in use by linked clone" in lab.done(template.delete(purge=1))
    for vmid in (101, 102, 103):
        assert lab.done(lab.api.nodes("pve1").qemu(vmid).delete(purge=1)) == "OK"
    assert lab.done(template.delete(purge=1)) == "OK"


def test_clone_to_another_node_and_migration(lab: Lab) -> None:
    assert lab.create() == "OK"
    vm = lab.api.nodes("pve1").qemu(100)
    assert lab.done(vm.clone.post(newid=101, full=1, target="pve2")) == "OK"
    assert lab.api.nodes("pve2").qemu(101).config.get()["name"] == "Copy-of-VM-100"
    assert lab.done(vm.status.start.post()) == "OK"
    assert refusal(lambda: vm.migrate.post(target="pve3"))[0] == 500
    assert vm.migrate.get(target="pve3")["allowed_nodes"] == ["pve2", "pve3"]
    assert lab.done(vm.migrate.post(target="pve3", online=1)) == "OK"
    assert lab.api.nodes("pve3").qemu(100).status.current.get()["status"] == "running"


def test_a_config_drive_is_uploaded_and_can_be_read_back(lab: Lab) -> None:
    content = b"\0" * 32769 + b"CD001" + b"\0" * 4096
    storage = lab.api.nodes("pve1").storage("shared")
    stream = io.BytesIO(content)
    stream.name = "config-100.iso"
    upid = storage.upload.post(
        content="iso",
        **{"checksum-algorithm": "sha256"},
        checksum=hashlib.sha256(content).hexdigest(),
        filename=stream,
    )
    assert lab.done(upid) == "OK"
    cluster = lab.simulator.cluster()
    assert cluster.data["shared//iso/config-100.iso"] == content
    assert lab.create(ide3="shared:iso/config-100.iso,media=cdrom") == "OK"
    assert "iso/config-100.iso" in lab.api.nodes("pve1").qemu(100).config.get()["ide3"]


def test_an_uploaded_image_has_the_size_its_header_says(lab: Lab) -> None:
    storage = lab.api.nodes("pve1").storage("shared")
    stream = io.BytesIO(qcow2(2 << 30, 70000))
    stream.name = "up.qcow2"
    assert lab.done(storage.upload.post(content="import", filename=stream)) == "OK"
    assert lab.create(scsi0="shared:0,import-from=shared:import/up.qcow2") == "OK"
    assert lab.api.nodes("pve1").qemu(100).config.get()["scsi0"].endswith("size=2G")
    assert multipart([], "x", b"")[0].startswith("multipart/form-data")


def test_parallel_creates_of_one_id_give_one_machine(lab: Lab) -> None:
    def attempt(_number: int) -> str:
        api = connect(lab.simulator)
        try:
            return str(api.nodes("pve1").qemu.post(vmid=130, memory=64))
        except ResourceException as error:
            return str(error.content)

    with ThreadPoolExecutor(4) as threads:
        answers = sorted(threads.map(attempt, range(4)))
    assert answers[0].startswith("UPID:pve1:")
    assert set(answers[1:]) <= {
        "unable to create VM 130 - VM 130 already exists on node 'pve1'",
        "unable to create VM 130 - can't lock file '/var/lock/qemu-server/lock-130.conf' - "
        "got timeout",
    }


def test_fifty_parallel_creates_on_one_storage_time_out_on_its_lock(lab: Lab) -> None:
    lab.simulator.fault(action="storage-slow", storage="shared", seconds=1.0, times=0)
    lab.simulator.engine.set_speed(10)  # all are asked for before many are done
    upids = [
        lab.api.nodes("pve1").qemu.post(vmid=200 + n, memory=64, scsi0="shared:1")
        for n in range(50)
    ]
    ends = [lab.done(upid) for upid in upids]
    assert ends.count("OK") >= 5
    timeouts = [end for end in ends if end != "OK"]
    assert timeouts
    assert all(
        end.endswith("cfs-lock 'storage-shared' error: got lock request timeout")
        for end in timeouts
    )


def test_resources_lag_behind(lab: Lab) -> None:
    lab.api.cluster.resources.get(type="vm")
    lab.simulator.engine.set_speed(20)
    assert lab.done(lab.api.nodes("pve1").qemu.post(vmid=100, memory=64)) == "OK"
    assert lab.api.cluster.resources.get(type="vm")[0]["status"] == "unknown"
    post(lab.simulator, "clock", {"statistics": True})
    assert lab.api.cluster.resources.get(type="vm")[0]["status"] == "stopped"


def test_tickets_and_wrong_passwords(lab: Lab) -> None:
    root = connect(lab.simulator, user="root@pam", password=lab.simulator.password)
    assert root.version.get()["release"] == "9.2"
    assert root.access.permissions.get()["/"]["Sys.Modify"] == 1
    with pytest.raises(AuthenticationError):
        connect(lab.simulator, user="root@pam", password="wrong")


def test_only_roots_ticket_clears_a_lock(lab: Lab) -> None:
    root = connect(lab.simulator, user="root@pam", password=lab.simulator.password)
    assert lab.create() == "OK"
    root.nodes("pve1").qemu(100).config.put(lock="create")
    vm = lab.api.nodes("pve1").qemu(100)
    assert lab.done(vm.delete(purge=1)) == "VM is locked (create)"
    status, text = refusal(lambda: vm.config.put(delete="lock", skiplock=1))
    assert (status, text) == (400, "Parameter verification failed.")
    root.nodes("pve1").qemu(100).config.put(delete="lock", skiplock=1)
    assert lab.done(vm.delete(purge=1)) == "OK"


def test_the_guest_agent_answers_when_the_guest_is_up(lab: Lab) -> None:
    assert lab.create(agent=1, net0="virtio,bridge=vmbr0", ipconfig0="ip=10.1.2.3/24") == "OK"
    vm = lab.api.nodes("pve1").qemu(100)
    assert refusal(vm.agent.ping.post)[1] == "VM 100 is not running"
    lab.simulator.engine.set_speed(20)
    assert lab.done(vm.status.start.post()) == "OK"
    assert refusal(vm.agent.ping.post)[1] == "QEMU guest agent is not running"
    lab.simulator.engine.set_speed(2000)
    found, silent = None, ""
    while found is None:
        try:
            found = vm.agent("network-get-interfaces").get()["result"]
        except ResourceException as error:
            silent = error.content
    addresses = [one["ip-address"] for card in found for one in card["ip-addresses"]]
    assert "10.1.2.3" in addresses
    assert silent in ("", "QEMU guest agent is not running")


def test_an_empty_import_volume_of_an_older_version(
    make_simulator: Callable[..., Simulator],
) -> None:
    simulator = make_simulator(pve_version="8.3", nodes=1)
    lab = Lab(simulator, connect(simulator))
    stream = io.BytesIO(qcow2(1 << 30, 4096))
    stream.name = "up.qcow2"
    status, _text = refusal(
        lambda: (
            lab.api.nodes("pve1").storage("local").upload.post(content="import", filename=stream)
        )
    )
    assert status == 400


def post(simulator: Simulator, door: str, body: dict[str, Any]) -> Any:
    """Ask the control API."""
    import ssl

    url = f"{simulator.endpoints[0]['url']}/_sim/{door}"
    request = urllib.request.Request(url, json.dumps(body).encode(), method="POST")
    context = ssl.create_default_context(cafile=simulator.options.state_dir / "ca.pem")
    with urllib.request.urlopen(request, context=context, timeout=10) as response:
        return json.loads(response.read())
