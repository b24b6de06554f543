"""What the compute API answers, held against Nova's own schemas: every route at every version that
changed its answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa

from api.compute.microversions import VERSIONS
from api.compute.routes import ROUTES
from db import schema
from tests.fixtures import responses
from tests.fixtures.compute import ComputeApi, uuid_of
from tests.fixtures.responses import Answers
from tests.functional.api_compute.answered import (
    ADMIN,
    MEMBER,
    NOVA_S_MISTAKES,
    OURS,
    REFUSED,
    REQUESTS,
    Ask,
    a_cloud,
)
from tests.functional.api_compute.conftest import MakeApi
from web.guard import operation_of

pytestmark = pytest.mark.database

_ORDER = ("GET", "POST", "PUT", "DELETE")
#: what answers 410
GONE = "gone"


@dataclass(frozen=True)
class Route:
    """An operation of the table of routes."""

    method: str
    path: str
    name: str
    """As in `responses.nova`."""
    spans: tuple[tuple[int, int], ...]
    """First and last version of each method that serves it."""

    @property
    def key(self) -> str:
        """The name of the request that is made of it."""
        return self.name.replace("/os-volumes_boot", "/servers")

    @property
    def answers(self) -> Answers:
        """Nova's. Fails where Nova has no such route."""
        found = responses.nova(self.name)
        assert found is not None, f"{self.name}: neither Nova's nor ours"
        return found

    def versions(self) -> set[int]:
        """Return its lowest and highest version, and each that changed Nova's answer."""
        changes = {since[1] for since in self.answers.since()}
        edges = {edge for span in self.spans for edge in span}
        return edges | {one for one in changes if self.served(one)}

    def served(self, version: int) -> bool:
        """Return whether it exists at a version."""
        return any(first <= version <= last for first, last in self.spans)


def _routes() -> Iterator[Route]:
    for row in ROUTES:
        path = responses.shape(row.path)
        for method in row.methods:
            served = {f"{method} {path}": row.handlers(method)}
            if row.actions:
                served = {f"{method} {path} {key}": [one] for key, one in row.acting().items()}
            for name, handlers in served.items():
                if [one.__name__ for one in handlers] == [GONE]:
                    continue
                described = [operation_of(one) for one in handlers]
                spans = tuple((one.since, one.until or VERSIONS.newest) for one in described)
                yield Route(method, row.path, name, spans)


# What deletes comes last, and the parts before the whole.
ALL = sorted(_routes(), key=lambda one: (_ORDER.index(one.method), -one.path.count("/")))
HELD = [one for one in ALL if one.name not in OURS and one.name not in REFUSED]
BY_VERSION: dict[int, list[Route]] = {}
for _one in HELD:
    for _version in _one.versions():
        BY_VERSION.setdefault(_version, []).append(_one)


def test_every_route_is_held_against_a_schema() -> None:
    """A new route needs one of Nova's, or is named among ours."""
    names = {one.name for one in ALL}
    assert set(OURS) | set(REFUSED) | set(REQUESTS) <= names
    assert [
        one.name for one in ALL if (responses.nova(one.name) is None) != (one.name in OURS)
    ] == []
    unasked = {
        one.name for one in HELD if one.method in ("POST", "PUT") and one.key not in REQUESTS
    }
    assert unasked == set()


@pytest.mark.parametrize("version", sorted(BY_VERSION), ids=lambda one: f"2.{one}")
def test_answers_are_as_nova_s(make: MakeApi, version: int) -> None:
    api = a_cloud(make())
    wrong = [found for one in BY_VERSION[version] for found in _differences(api, one, version)]
    assert wrong == []


def test_a_path_that_ends_with_nothing_is_none(make: MakeApi) -> None:
    """As in Nova: no collection, and nothing of it changes."""
    api = a_cloud(make())
    before = _quotas(api)
    asked = []
    for route in ALL:
        if not route.path.endswith("}") or route.name in OURS:
            continue
        ask, version = REQUESTS.get(route.key, Ask()), (2, route.spans[0][0])
        path = route.path[: route.path.rindex("{")].format_map(ask.params_at(version))
        answer = api.request(
            route.method, path, ask.body_at(version), version=f"2.{version[1]}", token=ADMIN
        )
        asked.append((route.name, answer.status_code))
    assert [one for one in asked if one[1] != 404] == []
    assert len(asked) > 40
    assert _quotas(api) == before


def _quotas(api: ComputeApi) -> Any:
    with api.reader.connect() as connection:
        tables = (schema.quota_limits, schema.quota_classes)
        return [connection.execute(sa.select(table)).all() for table in tables]


def test_what_a_member_sees_is_as_nova_s(make: MakeApi) -> None:
    """What administrators see besides is left out of it; some routes are theirs alone."""
    api = a_cloud(make())
    seen, wrong = set(), list[str]()
    for version, routes in BY_VERSION.items():
        for route in (one for one in routes if one.method == "GET"):
            found = _differences(api, route, version, MEMBER)
            if not any(f": {code} " in one for one in found for code in (403, 404)):
                seen.add(route.name)
                wrong += found
    assert wrong == []
    assert {"GET /servers/{}", "GET /flavors/{}", "GET /os-keypairs", "GET /limits"} <= seen


def _differences(
    api: ComputeApi, route: Route, version: int, token: str | None = None
) -> list[str]:
    ask = REQUESTS.get(route.key, Ask())
    if (2, version) < ask.since:
        return []
    _restore(api, ask)
    path = route.path.format_map(ask.params_at((2, version)))
    body = ask.body_at((2, version))
    token = token or ask.token
    answer = api.request(route.method, path, body, version=f"2.{version}", token=token)
    where = f"{route.name} at 2.{version}"
    if answer.status_code >= 300:
        return [f"{where}: {answer.status_code} {answer.text[:300]}"]
    number = route.answers.at(f"2.{version}")
    if number is None:
        return [f"{where}: Nova has none"]
    return [
        f"{where}: {one}"
        for one in responses.differences(number, answer.json if answer.content else None)
        if not any(mistake in one for mistake in NOVA_S_MISTAKES)
    ]


def _restore(api: ComputeApi, ask: Ask) -> None:
    """Undo what earlier requests did to the servers that later ones need."""
    active: dict[str, Any] = {
        **{"vm_state": "active", "task_state": None, "power_state": 1, "locked_by": None},
        **{"deleted_at": None, "host": "pve2", "node": "pve2", "meta": {"a": "b"}},
    }
    servers, operations, migrations = schema.servers, schema.operations, schema.migrations
    one, resized = servers.c.uuid == uuid_of(1), servers.c.uuid == uuid_of(2)
    with api.writer.begin() as connection:
        connection.execute(operations.update().values(state="done"))
        values = {**active, "tags": ["tag"], **ask.server}
        connection.execute(servers.update().where(one).values(values))
        values = {**active, "vm_state": "resized"}
        connection.execute(servers.update().where(resized).values(values))
        first = migrations.c.id == 1
        connection.execute(migrations.update().where(first).values(status="finished"))
