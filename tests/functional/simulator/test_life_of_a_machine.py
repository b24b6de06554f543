"""What the driver does all day, through real proxmoxer."""

from __future__ import annotations

import io
import json
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from proxmoxer import ResourceException

from simulator.server import Simulator
from tests.fixtures.pve_captures import multipart, qcow2
from tests.functional.simulator.conftest import Lab, connect, refusal


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
    with urllib.request.urlopen(request, context=context, timeout=60) as response:
        return json.loads(response.read())
