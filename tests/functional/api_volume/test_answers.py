"""What the Block Storage API answers, held against the schemas of Tempest, which refuses what it
doesn't know, and against Cinder's views: every route at every version that changed something.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from api.volume.microversions import VERSIONS
from api.volume.routes import ROUTES
from conductor.volumes.volume_types import VolumeTypes
from tests.fixtures import responses
from tests.functional.api_volume.answered import (
    ADMIN,
    MEMBER,
    PARAMS,
    REFUSED,
    REQUESTS,
    SAFE,
    Ask,
    restore,
)
from tests.functional.api_volume.conftest import VolumeApi
from tests.functional.conductor.harness import World
from tests.functional.conductor.test_volumes import DATA
from web.guard import operation_of


@dataclass(frozen=True)
class Route:
    """An operation of the table of routes."""

    method: str
    path: str
    name: str
    action: str | None
    since: int
    until: int

    def versions(self) -> set[int]:
        """Return its lowest and highest version, and each that changed Cinder's answer."""
        tempest = {int(one.partition(".")[2]) for one in responses.tempest_versions()}
        changes = tempest | set(REQUESTS[self.name].later.values())
        return {self.since, self.until} | {
            one for one in changes if self.since <= one <= self.until
        }


def _routes() -> Iterator[Route]:
    for row in ROUTES:
        shape = responses.shape(row.path)
        for method in row.methods:
            served: dict[str | None, list[Any]] = {None: row.handlers(method)}
            if row.actions:
                served = {name: [handler] for name, handler in row.acting().items()}
            for action, found in served.items():
                name = f"{method} {shape}" + (f" {action}" if action else "")
                one = operation_of(found[0])
                until = VERSIONS.newest if one.until is None else one.until
                yield Route(method, row.path, name, action, one.since, until)


ALL = list(_routes())
HELD = [one for one in ALL if one.name not in REFUSED]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VolumeApi]:
    """The API over a conductor that begins what it is asked for, and does no more."""
    folder: Path = tmp_path_factory.mktemp("answers")
    world = World(folder)
    world.storages += [DATA, SAFE]
    world.beat()
    VolumeTypes(world.conductor.cloud).follow()
    made = VolumeApi(world)
    yield made
    made.close()
    world.close()


def test_every_route_is_held_against_a_schema() -> None:
    """A new route is asked in `answered`, or is named there among those that are refused."""
    assert {one.name for one in HELD} == set(REQUESTS)
    assert {one.name for one in ALL} >= REFUSED


@pytest.mark.parametrize("route", HELD, ids=lambda one: one.name)
def test_answers_are_as_cinder_s(api: VolumeApi, route: Route) -> None:
    wrong = [one for version in sorted(route.versions()) for one in _wrong(api, route, version)]
    assert wrong == []


def test_a_path_that_ends_with_nothing_is_none(api: VolumeApi) -> None:
    """As in Cinder: no collection, nor the record before the slash."""
    for route in ALL:
        path = route.path.format_map({**PARAMS, "key": "k", "class_name": "default"})
        cut = route.path.endswith("}")
        path = path[: path.rindex("/") + 1] if cut else f"{path}/"
        for method in sorted({route.method, "GET", "POST", "PUT", "DELETE"}):
            status, _ = api.ask(method, path, version=f"3.{route.until}", token=ADMIN)
            assert (method, path, status) == (method, path, 404)


@pytest.mark.parametrize(
    "route", [one for one in HELD if one.method == "GET"], ids=lambda one: one.name
)
def test_what_a_member_sees_is_as_cinder_s(api: VolumeApi, route: Route) -> None:
    wrong = [
        one
        for version in sorted(route.versions())
        for one in _wrong(api, route, version, MEMBER)
        if ": 403 " not in one
    ]
    assert wrong == []


def _wrong(api: VolumeApi, route: Route, version: int, token: str | None = None) -> list[str]:
    ask = REQUESTS[route.name]
    # What only reads finds all as it was.
    if route.method != "GET" or version == min(route.versions()):
        restore(api)
    path = route.path.format_map({**PARAMS, **ask.params}) + ask.query
    body = {route.action: ask.body} if route.action else ask.body
    status, answer = api.ask(
        route.method, path, body, version=f"3.{version}", token=token or ask.token
    )
    where = f"{route.name} at 3.{version}"
    if status >= 300:
        return [f"{where}: {status} {answer}"]
    return [f"{where}: {one}" for one in _compared(ask, version, status, answer)]


def _compared(ask: Ask, version: int, status: int, answer: Any) -> Iterator[str]:
    expected: Any = ask.answer
    statuses = [ask.status or 200]
    answer, found = _without_later(ask.later, version, answer)
    yield from found
    if isinstance(ask.answer, str):
        tempest = responses.tempest(ask.answer, f"3.{version}")
        expected = tempest["body"]
        statuses = tempest["status"] if ask.status is None else statuses
    if status not in statuses:
        yield f"{status} instead of {statuses}"
    if expected is None:
        if answer is not None:
            yield f"a body: {answer}"
    else:
        yield from responses.differences(expected, answer, of_tempest=True)


def _without_later(later: Mapping[str, int], version: int, answer: Any) -> tuple[Any, list[str]]:
    """Return an answer without what Tempest's schema leaves out, and what of that is wrong."""
    if not later or not isinstance(answer, dict):
        return answer, []
    wrong = []
    shown = dict(answer)
    if "count" in later and (("count" in shown) != (version >= later["count"])):
        wrong.append("count")
    shown.pop("count", None)
    for key, value in shown.items():
        records = value if isinstance(value, list) else [value]
        for one in records:
            for name in set(later) - {"count"}:
                if (name in one) != (version >= later[name]):
                    wrong.append(f"{name} since 3.{later[name]}")
        rest = [{k: v for k, v in one.items() if k not in later} for one in records]
        shown[key] = rest if isinstance(value, list) else rest[0]
    return shown, wrong
