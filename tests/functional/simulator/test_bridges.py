"""How many bridges the nodes have; a later start may ask for more."""

from __future__ import annotations

from pathlib import Path

from simulator.server import Options, Simulator


def bridges_of(folder: Path, bridges: int) -> dict[str, list[str]]:
    with Simulator(Options(folder, nodes=2, bridges=bridges)) as simulator:
        return {node.name: list(node.bridges) for node in simulator.clusters[0].nodes.values()}


def test_as_many_as_asked_and_never_fewer_than_before(tmp_path: Path) -> None:
    assert bridges_of(tmp_path, 1) == {"pve1": ["vmbr0"], "pve2": ["vmbr0"]}
    two = ["vmbr0", "vmbr1"]
    assert bridges_of(tmp_path, 2) == {"pve1": two, "pve2": two}
    assert bridges_of(tmp_path, 1) == {"pve1": two, "pve2": two}
