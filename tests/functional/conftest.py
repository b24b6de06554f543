"""One embedded cloud for the files that need an ordinary one: starting it takes longest."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.shared import Shared

OPTIONS: dict[str, Any] = {
    "driver": "proxmox",
    "nodes": 3,
    "speed": 50,
    "set": [
        "images.download_from=http://localhost",
        # the simulator has no web interface
        "proxmox:sim1.web_url=https://pve.example.org:8006",
    ],
}
"""Of `micronova up`, with which it starts."""
_CLOUD: Shared[EmbeddedCloud] = Shared("three_nodes")


@pytest.fixture(scope="module")
def three_nodes(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedCloud:
    """A simulated cluster of three nodes; tests leave no servers, images or flavors.

    Images may be downloaded, but nothing answers where from.
    """
    folder = tmp_path_factory.mktemp("three-nodes")
    return _CLOUD.get(lambda: embedded_cloud(folder, **OPTIONS))
