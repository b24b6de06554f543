"""The clustering API in process, over a conductor whose agents do what they are asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import falcon.testing
import pytest

from api.clustering.app import make_app
from conductor.endpoints.quotas import QuotaEndpoint
from conductor.seed import parse_flavor
from conductor.store.servers import flavors
from db import engine
from tests.fixtures import auth
from tests.fixtures.listings import a_conf
from tests.functional.conductor.harness import IMAGE
from tests.functional.conductor.test_groups import Groups

SPEC = {
    "type": "os.nova.server",
    "version": 1.0,
    "properties": {"flavor": "m1.tiny", "image": IMAGE},
}


class _Conductor:
    """The endpoints that the API calls, as over the bus."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups.rpc
        quotas = QuotaEndpoint(groups.world.conductor.cloud)
        self.set_quota, self.reset_quota = quotas.set_quota, quotas.reset_quota

    def __getattr__(self, name: str) -> Any:
        return getattr(self._groups, name)


class ClusteringApi:
    """The API and the cloud behind it."""

    def __init__(self, groups: Groups) -> None:
        self.groups, self.world = groups, groups.world
        self._reader = engine.reader(self.world.url)
        conductor: Any = _Conductor(groups)
        app = make_app(a_conf(), self._reader, conductor, auth.header_auth)
        self._client = falcon.testing.TestClient(app)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = auth.MEMBER,
        version: str = "1.14",
    ) -> Any:
        """The status of an answer, and its body."""
        answer = self.answer(method, f"/v1{path}", body, token=token, version=version)
        return answer.status_code, answer.json if answer.content else None

    def answer(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = auth.MEMBER,
        version: str = "1.14",
    ) -> falcon.testing.Result:
        """An answer with its headers."""
        headers = {"OpenStack-API-Version": f"clustering {version}"}
        if token is not None:
            headers["X-Auth-Token"] = token
        path, _, query = path.partition("?")
        more = {} if body is None else {"json": body}
        return self._client.simulate_request(
            method, path, headers=headers, query_string=query, **more
        )

    def profile(self, name: str = "small", **properties: Any) -> str:
        """The ID of a new profile."""
        spec = {**SPEC, "properties": {**SPEC["properties"], **properties}}  # type: ignore[dict-item]
        body = {"profile": {"name": name, "spec": spec, "metadata": {}}}
        status, made = self.ask("POST", "/profiles", body)
        assert status == 201, made
        return str(made["profile"]["id"])

    def cluster(self, size: int = 2, **values: Any) -> str:
        """The ID of a new cluster, once it is as desired."""
        asked = {
            "name": "web",
            "profile_id": values.pop("profile", None) or self.profile(),
            "desired_capacity": str(size),
            "min_size": "0",
            "max_size": "5",
            **values,
        }
        status, made = self.ask("POST", "/clusters", {"cluster": asked})
        assert status == 202, made
        group = str(made["cluster"]["id"])
        self.groups.settled(group, size)
        return group

    def show(self, path: str, noun: str) -> Any:
        """A record."""
        status, found = self.ask("GET", path)
        assert status == 200, found
        return found[noun]

    def act(self, group: str, action: str, values: Any) -> Any:
        """How an action on a cluster ended."""
        status, begun = self.ask("POST", f"/clusters/{group}/actions", {action: values})
        assert status == 202, begun
        self.groups.ended(int(begun["action"]))
        return self.show(f"/actions/{begun['action']}", "action")

    def close(self) -> None:
        self._reader.dispose()
        self.groups.close()


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ClusteringApi]:
    groups = Groups(tmp_path)
    flavor = parse_flavor("m1.tiny:1:512:1")
    groups.world.conductor.store.run(lambda c: flavors.seed(c, [flavor]))
    made = ClusteringApi(groups)
    yield made
    made.close()
