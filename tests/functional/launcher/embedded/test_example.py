"""The example names an image that the cloud has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from common import clock
from db import engine, schema
from launcher.embedded import example


def test_the_smallest_image_that_is_there(tmp_path: Path) -> None:
    writer = engine.writer(f"sqlite:///{tmp_path}/cloud.sqlite")
    schema.metadata.create_all(writer)
    assert example.image(tmp_path) == example.NO_IMAGE

    def an_image(name: str, size: int, status: str = "active") -> dict[str, Any]:
        now = clock.utcnow()
        return {
            "id": name,
            "name": name,
            "status": status,
            "size_bytes": size,
            "disk_format": "qcow2",
            "locations": {},
            "properties": {},
            "created_at": now,
            "updated_at": now,
        }

    with writer.begin() as connection:
        connection.execute(
            schema.images.insert(),
            [an_image("big", 9), an_image("rocky-9", 5), an_image("gone", 1, "deleted")],
        )
    writer.dispose()
    assert example.image(tmp_path) == "rocky-9"
