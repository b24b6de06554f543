"""A node that is lost for good and taken out of its cluster: what was on it is seen gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common.messages.reports import Category
from compute.observed.facts import LEFT
from tests.fixtures.root_shell import RootShell
from tests.functional.compute.conftest import (
    Worker,
    a_build,
    a_destroy,
    configuration,
    proxmox_text,
)
from tests.functional.simulator_fixture import RunningSimulator, running_simulator


@pytest.fixture
def three(tmp_path: Path) -> Iterator[RunningSimulator]:
    with running_simulator(tmp_path / "three", nodes=3) as running:
        yield running


def test_a_vm_of_a_node_that_left_is_gone(three: RunningSimulator, tmp_path: Path) -> None:
    text = proxmox_text(three, vm_storage="shared", iso_storage="shared")
    worker = Worker(configuration(tmp_path, text))
    password = three.state_dir / "root-password"
    root = RootShell(three.url, three.ca_file, password, tmp_path / "root")
    worker.start()
    try:
        build = a_build(template=None)
        assert worker.run(build).ok
        three.fault(action="node-down", node="pve1")
        # Whatever it has may come back with it.
        outcome = worker.run(a_destroy(build))
        assert not outcome.gone
        assert outcome.failure.category == Category.NODE_UNHEALTHY
        root.run("pvecm delnode pve1")
        outcome = worker.run(a_destroy(build))
        assert not outcome.gone
        # Its folder is removed, too: no node has the VM any more, and its disk is left.
        root.run("rm -r /etc/pve/nodes/pve1")
        outcome = worker.run(a_destroy(build))
        assert not outcome.gone
        assert [one.partition(" ")[0] for one in outcome.failure.left] == ["volume"]
        root.run(outcome.failure.remedy)
        assert worker.run(a_destroy(build)).gone
        beats = worker.conductor.wait_for(
            lambda: [one for one in worker.conductor.heartbeats if one.left]
        )
        assert beats[-1].left == ("pve1",)
        facts = [one for beat in beats for one in beat.facts if one.host == "pve1"]
        assert not facts or facts[-1].health == LEFT
    finally:
        worker.stop()
