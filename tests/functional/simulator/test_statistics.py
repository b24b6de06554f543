"""Round-robin data: what each version stores, and of whom."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from simulator.server import Options, Simulator
from tests.functional.simulator.conftest import Lab, connect, refusal
from tests.functional.simulator.test_life_of_a_machine import post

VM_8 = {
    *("time", "maxcpu", "cpu", "maxmem", "mem", "maxdisk", "disk"),
    *("netin", "netout", "diskread", "diskwrite"),
}
PRESSURE = {f"pressure{a}{b}" for a in ("cpu", "io", "memory") for b in ("some", "full")}
NODE_8 = {
    *("time", "loadavg", "maxcpu", "cpu", "iowait", "memtotal", "memused", "swaptotal"),
    *("swapused", "roottotal", "rootused", "netin", "netout"),
}
NODE_9 = NODE_8 | {"arcsize", "memavailable"} | PRESSURE - {"pressurecpufull"}
SIZES = {"time", "maxcpu", "maxmem", "maxdisk", "disk"}
#: timeframe → seconds of a point and their number
STEPS_8 = {"hour": (60, 70), "day": (1800, 70), "week": (10_800, 70), "month": (43_200, 70)}
STEPS_9 = {"hour": (60, 60), "day": (60, 1440), "week": (1800, 336), "month": (1800, 1440)}
STEPS_9 |= {"year": (21_600, 1440)}


@pytest.fixture(params=["8.4", "9.0", "9.2"])
def versioned(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    options = Options(tmp_path, speed=200, tls=True, pve_version=request.param)
    with Simulator(options) as simulator:
        yield Lab(simulator, connect(simulator))


def _shift(lab: Lab, vmid: int, seconds: float) -> None:
    """Let what is known of a VMID have happened earlier."""
    post(lab.simulator, "history", {"vmid": vmid, "seconds": seconds})


def _fields(points: list[dict[str, Any]]) -> list[set[str]]:
    return [set(one) for one in points]


def test_each_version_has_its_archives_and_fields(versioned: Lab) -> None:
    version = versioned.simulator.clusters[0].version.release
    steps = STEPS_8 | {"year": (604_800, 70)} if version == "8.4" else dict(STEPS_9)
    if version == "9.0":
        steps |= {"month": (21_600, 121), "year": (21_600, 1140)}
    node = versioned.api.nodes("pve1")
    fields = NODE_8 if version == "8.4" else NODE_9 | ({"memfree"} if version == "9.0" else set())
    for timeframe, (seconds, count) in steps.items():
        points = node.rrddata.get(timeframe=timeframe)
        stamps = [one["time"] for one in points]
        assert len(points) == count
        assert {b - a for a, b in itertools.pairwise(stamps)} == {seconds}
        assert stamps[-1] % seconds == 0
        assert 0 <= time.time() - stamps[-1] < seconds + 5
        assert _fields(points) == [fields] * count
    storage = node.storage("local").rrddata.get(timeframe="hour", cf="MAX")
    assert _fields(storage) == [{"time", "total", "used"}] * len(storage)


def test_a_vm_has_points_of_the_minutes_that_it_ran(versioned: Lab) -> None:
    modern = versioned.simulator.clusters[0].version.release != "8.4"
    api = versioned.api.nodes("pve1")
    assert versioned.create(memory=512, cores=2) == "OK"
    assert _fields(api.qemu(100).rrddata.get(timeframe="hour"))[-5:] == [{"time"}] * 5
    _shift(versioned, 100, 1200)
    assert _fields(api.qemu(100).rrddata.get(timeframe="hour"))[-15:] == [SIZES] * 15
    assert versioned.done(api.qemu(100).status.start.post()) == "OK"
    _shift(versioned, 100, 600)
    running = VM_8 | (PRESSURE | {"memhost"} if modern else set())
    points = api.qemu(100).rrddata.get(timeframe="hour")
    assert _fields(points)[-8:] == [running] * 8
    assert _fields(points)[-28:-12] == [SIZES] * 16
    last = points[-1]
    assert (last["maxcpu"], last["maxmem"]) == (2, 512 << 20)
    assert 0 < last["cpu"] < 1
    assert 0 < last["mem"] < last["maxmem"]
    peaks = api.qemu(100).rrddata.get(timeframe="hour", cf="MAX")
    # The load depends on the time of day: at its minimum the peaks are no higher.
    assert peaks[-1]["cpu"] > last["cpu"] or peaks[-1]["cpu"] == last["cpu"] == 0.02


def test_history_outlives_its_vm_and_a_restart(tmp_path: Path) -> None:
    options = Options(tmp_path, speed=200, tls=True)
    with Simulator(options) as simulator:
        lab = Lab(simulator, connect(simulator))
        assert lab.create() == "OK"
        _shift(lab, 100, 1200)
        assert lab.done(lab.api.nodes("pve1").qemu(100).delete()) == "OK"
        before = lab.api.nodes("pve1").qemu(100).rrddata.get(timeframe="hour")
        assert _fields(before)[-10:-2] == [SIZES] * 8
    with Simulator(options) as simulator:
        lab = Lab(simulator, connect(simulator))
        after = lab.api.nodes("pve2").qemu(100).rrddata.get(timeframe="hour")
        assert [one for one in after if len(one) > 1][:5] == [
            one for one in before if len(one) > 1
        ][:5]
        assert lab.create() == "OK"  # the number's history continues
        assert len(lab.api.nodes("pve1").qemu(100).rrddata.get(timeframe="hour")[-9]) > 1


def test_refusals(lab: Lab) -> None:
    node = lab.api.nodes("pve1")
    status, text = refusal(lambda: node.qemu(999).rrddata.get(timeframe="hour"))
    assert status == 500
    assert "opening '/var/lib/rrdcached/db/pve-vm-9.0/999': No such file or directory" in text
    assert refusal(lambda: node.rrddata.get(timeframe="minute"))[0] == 400
    assert lab.create() == "OK"
    cluster = lab.simulator.clusters[0]
    with cluster.turn():
        cluster.access.grants.clear()
        cluster.access.changed()
    for asked, lacking in (
        (node.qemu(100), "/vms/100, VM.Audit"),
        (node, "/nodes/pve1, Sys.Audit"),
        (node.storage("local"), "/storage/local, Datastore.Audit|Datastore.AllocateSpace"),
    ):
        status, text = refusal(partial(asked.rrddata.get, timeframe="hour"))
        assert (status, lacking in text) == (403, True), text
