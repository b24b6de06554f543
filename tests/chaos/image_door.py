"""The Image API in the tests' process, beside a cloud that is broken: users upload through it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests
from oslo_config import cfg

from api.image.app import make_app
from conductor.rpc import ConductorRpc
from db import engine
from tests.fixtures import auth
from tests.fixtures.listings import mounted, served


class ImageDoor:
    """What users ask of the Image API."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/image/v2/images"

    def make(self, name: str) -> requests.Response:
        """Ask for an image; the answer may be any."""
        body = {"name": name, "disk_format": "raw", "container_format": "bare"}
        return self._ask("POST", self._url, json=body)

    def send(self, image_id: str, data: bytes) -> requests.Response:
        """Send an image's data; the answer may be any."""
        headers = {"Content-Type": "application/octet-stream"}
        return self._ask("PUT", f"{self._url}/{image_id}/file", data=data, headers=headers)

    def delete(self, image_id: str) -> requests.Response:
        """Ask for an image's removal; the answer may be any."""
        return self._ask("DELETE", f"{self._url}/{image_id}")

    @staticmethod
    def _ask(method: str, url: str, **more: Any) -> requests.Response:
        more["headers"] = {"X-Auth-Token": auth.MEMBER, **more.get("headers", {})}
        return requests.request(method, url, timeout=60, **more)


@contextlib.contextmanager
def image_door(
    conf: cfg.ConfigOpts, database_url: str, client: ConductorRpc, spool: Path
) -> Iterator[ImageDoor]:
    """Serve the Image API until the block ends."""
    apps: list[Any] = []

    def door(environ: Any, start: Any) -> Any:
        """The API, which is made once its address is known."""
        return apps[0](environ, start)

    with served(door) as root:
        for name, value in {
            "fetch_url": f"{root}/image",
            "spool_dir": str(spool),
            "upload_wait_seconds": 0,
        }.items():
            conf.set_override(name, value, "images")
        reader = engine.reader(database_url)
        app = make_app(conf, reader, auth.header_auth, client)
        apps.append(mounted(app, "/image"))
        yield ImageDoor(root)
        reader.dispose()
