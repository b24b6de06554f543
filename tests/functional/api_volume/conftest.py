"""The Block Storage API in process, over a conductor whose agents answer nothing."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import falcon.testing
import pytest

from api import config as api_config
from api.compute.app import make_app as compute_app
from api.volume.app import make_app
from conductor.endpoints.quotas import QuotaEndpoint
from conductor.endpoints.volumes.backups import BackupEndpoint
from conductor.endpoints.volumes.messages import VolumeMessageEndpoint
from conductor.endpoints.volumes.snapshots import VolumeSnapshotEndpoint
from conductor.endpoints.volumes.transfers import VolumeTransferEndpoint
from conductor.endpoints.volumes.types import VolumeTypeEndpoint
from conductor.endpoints.volumes.volumes import VolumeEndpoint
from conductor.volumes.volume_types import VolumeTypes
from db import engine
from tests.fixtures import auth
from tests.fixtures.listings import a_conf
from tests.functional.conductor.harness import World
from tests.functional.conductor.test_volumes import DATA


class Conductor:
    """The endpoints that the API calls, as over the bus."""

    def __init__(self, cloud: Any) -> None:
        self._endpoints = (
            *(VolumeEndpoint(cloud), VolumeSnapshotEndpoint(cloud)),
            *(VolumeTypeEndpoint(cloud), QuotaEndpoint(cloud)),
            *(VolumeTransferEndpoint(cloud), VolumeMessageEndpoint(cloud)),
            BackupEndpoint(cloud),
        )

    def __getattr__(self, name: str) -> Any:
        endpoint = next(one for one in self._endpoints if hasattr(one, name))
        method = getattr(endpoint, name)

        def call(ctxt: Any, *values: Any, **more: Any) -> Any:
            if name in ("delete_volume", "delete_backup"):
                more = {"force": False, **more}
            return method(ctxt, *values, **more)

        return call


class VolumeApi:
    """The API and the cloud behind it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._reader = engine.reader(world.url)
        conductor: Any = Conductor(world.conductor.cloud)
        app = make_app(a_conf(), self._reader, conductor, auth.header_auth)
        self._client = falcon.testing.TestClient(app)
        self._conductor = conductor

    @functools.cached_property
    def _compute(self) -> falcon.testing.TestClient:
        conf = a_conf()
        api_config.register(conf)
        app = compute_app(conf, self._conductor, self._reader, auth.header_auth)
        return falcon.testing.TestClient(app)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        version: str = "3.0",
        token: str | None = auth.MEMBER,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The status of an answer, and its body."""
        headers = headers or {"OpenStack-API-Version": f"volume {version}"}
        answer = self.answer(method, path, body, token=token, headers=headers)
        return answer.status_code, answer.json if answer.content else None

    def answer(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = auth.MEMBER,
        headers: Mapping[str, str],
    ) -> falcon.testing.Result:
        """An answer with its headers."""
        sent = dict(headers) if token is None else {**headers, "X-Auth-Token": token}
        path, _, query = path.partition("?")
        more = {} if body is None else {"json": body}
        return self._client.simulate_request(
            method, f"/v3{path}", headers=sent, query_string=query, **more
        )

    def explain(self, subject: str, token: str = auth.MEMBER) -> Any:
        """What the compute API says of a subject; None: nothing."""
        headers = {"X-Auth-Token": token}
        answer = self._compute.simulate_get(f"/v2.1/explanations/{subject}", headers=headers)
        if answer.status_code == 404:
            return None
        assert answer.status_code == 200, answer.text
        return answer.json["explanation"]

    def close(self) -> None:
        self._reader.dispose()


@pytest.fixture
def api(tmp_path: Path) -> Iterator[VolumeApi]:
    world = World(tmp_path)
    world.storages.append(DATA)
    world.beat()
    VolumeTypes(world.conductor.cloud).follow()
    world.conductor.runner.start()
    made = VolumeApi(world)
    yield made
    made.close()
    world.close()
