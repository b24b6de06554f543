"""What the tests of consoles share: a server that runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.cloud import EmbeddedCloud


@pytest.fixture
def server(three_nodes: EmbeddedCloud) -> Iterator[Any]:
    """A server of the demo project that runs."""
    compute = three_nodes.connection().compute
    made = compute.create_server(
        name="screen",
        image_id=three_nodes.connection().image.find_image("cirros").id,
        flavor_id=compute.find_flavor("m1.nano").id,
        networks="auto",
    )
    yield compute.wait_for_server(made, wait=60)
    compute.delete_server(made, ignore_missing=True)
    compute.wait_for_delete(made, wait=60)
