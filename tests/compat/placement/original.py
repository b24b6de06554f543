"""OpenStack Placement's test files, taken from its installed package.

Its fixtures build worlds through its own objects. Here its file of fixtures is executed as it is,
while the names it imports are stand-ins that do the same through REST, so nothing of it is kept
in this tree. Its package is also called `placement`, so it is read as files, never imported.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.metadata
import os
import sys
import types
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import requests

ADMIN = {"X-Auth-Token": "admin", "X-Roles": "admin,member,reader"}
NEWEST = "1.39"
DISTRIBUTION = "openstack-placement"
#: a site-packages folder with it, where it is not installed beside the tests
WHERE = "MICRONOVA_TEST_ORIGINAL_PLACEMENT"
_REAL = ("os", "gabbi", "os_resource_classes", "os_traits")


def tests_folder() -> Path | None:
    """Return the folder of the package's functional tests, None where it isn't installed."""
    given = os.environ.get(WHERE)
    where = [given] if given else sys.path
    for found in importlib.metadata.distributions(name=DISTRIBUTION, path=where):
        folder = Path(str(found.locate_file("placement/tests/functional")))
        if folder.is_dir():
            return folder
    return None


class World:
    """What the fixtures need of a service: how to configure it, and to fill it through REST.

    `publish(settings, rules)` makes the service, on an empty database with `fresh`, have the
    oslo.config settings {group: {option: value}} and policy rules. With `lives_on` the database
    is always the same, and is emptied through REST.
    """

    def __init__(self, url: str, publish: Callable[..., None], *, lives_on: bool = False) -> None:
        self.url = url
        self._lives_on = lives_on
        self.uuids: dict[str, str] = defaultdict(lambda: str(uuid.uuid4()))
        self.settings: dict[str, dict[str, Any]] = {}
        self.rules: dict[str, str] = {}
        self._publish = publish

    def start(self) -> None:
        """Have the service begin with nothing."""
        self.rules = {}
        if self._lives_on:
            self._publish({}, {}, fresh=False)
            self._empty()
        self._publish(self.settings, self.rules, fresh=True)

    def _empty(self) -> None:
        """Delete all that is there but the standard names; children before parents."""
        there = self._providers()
        for provider in there:
            path = f"/resource_providers/{provider}"
            for consumer in self.call("GET", f"{path}/allocations", NEWEST)["allocations"]:
                self.call("DELETE", f"/allocations/{consumer}", NEWEST)
        while there:
            leaves = set(there) - set(there.values())
            for provider in leaves:
                self.call("DELETE", f"/resource_providers/{provider}", NEWEST)
            there = self._providers()
        for name in self.call("GET", "/traits?name=startswith:CUSTOM_", NEWEST)["traits"]:
            self.call("DELETE", f"/traits/{name}", NEWEST)
        for one in self.call("GET", "/resource_classes", NEWEST)["resource_classes"]:
            if one["name"].startswith("CUSTOM_"):
                self.call("DELETE", f"/resource_classes/{one['name']}", NEWEST)

    def _providers(self) -> dict[str, str | None]:
        """Return the parent of every provider."""
        found = self.call("GET", "/resource_providers", NEWEST)["resource_providers"]
        return {one["uuid"]: one["parent_provider_uuid"] for one in found}

    def publish(self) -> None:
        """Have the service take what is set now."""
        self._publish(self.settings, self.rules, fresh=False)

    def call(self, method: str, path: str, version: str, body: Any = None) -> Any:
        """Make one request as the administrator and return the JSON of the answer."""
        headers = {**ADMIN, "OpenStack-API-Version": f"placement {version}"}
        answer = requests.request(
            method, f"{self.url}{path}", headers=headers, json=body, timeout=30
        )
        answer.raise_for_status()
        return answer.json() if answer.content else None


class Provider:
    """The little of the original's ResourceProvider that its fixtures use."""

    def __init__(self, world: World, uuid: str) -> None:
        self.world, self.uuid = world, uuid
        self.path = f"/resource_providers/{uuid}"

    @property
    def generation(self) -> int:
        return int(self.world.call("GET", self.path, "1.39")["generation"])

    def set_aggregates(self, uuids: Iterable[str]) -> None:
        self.world.call("PUT", f"{self.path}/aggregates", "1.1", list(uuids))


class Builders:
    """Stands in for the original's functions that make providers and allocations."""

    def __init__(self, world: World) -> None:
        self.world = world

    def create_provider(self, _context: Any, name: str, *groups: str, **more: str) -> Provider:
        body = {"name": name, "uuid": more.get("uuid") or self.world.uuids[name]}
        if more.get("parent"):
            body["parent_provider_uuid"] = more["parent"]
        self.world.call("POST", "/resource_providers", "1.14", body)
        provider = Provider(self.world, body["uuid"])
        if groups:
            provider.set_aggregates(groups)
        return provider

    def add_inventory(self, provider: Provider, name: str, total: int, **more: Any) -> None:
        self.world.call("PUT", f"/resource_classes/{name}", "1.7") if "CUSTOM" in name else None
        body = {"resource_class": name, "total": total, "max_unit": total, **more}
        body["resource_provider_generation"] = provider.generation
        self.world.call("POST", f"{provider.path}/inventories", "1.39", body)

    def set_traits(self, provider: Provider, *names: str) -> None:
        for name in names:
            if name.startswith("CUSTOM_"):
                self.world.call("PUT", f"/traits/{name}", "1.6")
        body = {"traits": names, "resource_provider_generation": provider.generation}
        self.world.call("PUT", f"{provider.path}/traits", "1.6", body)

    def create_user_and_project(self, _context: Any, prefix: str = "fake") -> tuple[Any, Any]:
        return (
            types.SimpleNamespace(external_id=f"{prefix}-user"),
            types.SimpleNamespace(external_id=f"{prefix}-project"),
        )

    def ensure_consumer(self, _context: Any, user: Any, project: Any) -> Any:
        return types.SimpleNamespace(uuid=str(uuid.uuid4()), user=user, project=project)

    def set_allocation(
        self, _context: Any, provider: Provider, consumer: Any, used: Mapping[str, int]
    ) -> None:
        body = {
            "allocations": {provider.uuid: {"resources": used}},
            "project_id": consumer.project.external_id,
            "user_id": consumer.user.external_id,
        }
        self.world.call("PUT", f"/allocations/{consumer.uuid}", "1.12", body)


class _Record:
    """An object that stores what it is made with, and may be created."""

    def __init__(self, *_context: Any, **values: Any) -> None:
        self.__dict__.update(values)

    def create(self) -> None:
        """Nothing is to be done before it is used."""


class _Silent:
    """A fixture that does nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def setUp(self) -> None:
        """Start."""

    def cleanUp(self) -> None:
        """End."""


class _Uuids:
    def __init__(self, world: World) -> None:
        self._world = world

    def __getattr__(self, name: str) -> str:
        return self._world.uuids[name]


def fixtures(folder: Path, world: World, rule_names: Iterable[str]) -> types.ModuleType:
    """Return the original's module of fixtures, at work on `world`."""
    source = folder / "fixtures" / "gabbits.py"
    module = types.ModuleType("original_fixtures")
    stand_ins = _stand_ins(world, list(rule_names))

    def imported(name: str, _g: Any = None, _l: Any = None, wanted: Any = (), *_: Any) -> Any:
        if name.partition(".")[0] in _REAL:
            return builtins.__import__(name, _g, _l, wanted)
        return types.SimpleNamespace(**{one: stand_ins[one] for one in wanted})

    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": imported}
    exec(compile(source.read_text(), str(source), "exec"), module.__dict__)
    return module


def _stand_ins(world: World, rule_names: list[str]) -> dict[str, Any]:
    """Return what the file of fixtures imports, by the last part of its name."""
    space = types.SimpleNamespace

    class Config(_Silent):
        conf = staticmethod(lambda *_, **__: None)

        def setUp(self) -> None:
            world.settings = {}

        def config(self, group: str, **values: Any) -> None:
            world.settings.setdefault(group, {}).update(values)
            if world.rules is not None and group == "cors":
                world.publish()

    class Database(_Silent):
        def setUp(self) -> None:
            world.start()

    class PolicyFixture(_Silent):
        def set_rules(self, rules: Mapping[str, str]) -> None:
            world.rules = dict(rules)
            world.publish()

    class ResourceClass(_Record):
        name: str

        def create(self) -> None:
            world.call("PUT", f"/resource_classes/{self.name}", "1.7")

    builders = Builders(world)
    return {
        "cfg": space(ConfigOpts=lambda: None),
        "config_fixture": space(Config=Config),
        "fixture": space(Config=Config, uuidsentinel=_Uuids(world)),
        "uuidsentinel": _Uuids(world),
        "logging_error": space(get_logging_handle_error_fixture=_Silent),
        "opts": space(set_defaults=lambda *_: None),
        "uuidutils": space(generate_uuid=lambda: str(uuid.uuid4())),
        "output": space(CaptureOutput=_Silent),
        "conf": space(register_opts=lambda *_: None),
        "context": space(RequestContext=_Record),
        "deploy": space(),
        "project": space(Project=_Record),
        "user": space(User=_Record),
        "resource_class": space(ResourceClass=ResourceClass),
        "policies": space(list_rules=lambda: [space(name=name) for name in rule_names]),
        "fixtures": space(Database=Database),
        "test_base": builders,
        "capture": space(Logging=_Silent, WarningsFixture=_Silent),
        "policy_fixture": space(PolicyFixture=PolicyFixture),
    }
