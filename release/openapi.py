"""OpenAPI 3.1 documents of the APIs, made of the tables that they run on.

``python -m release.openapi API [FILE]`` writes one; the site has all of them (`release.site`).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from oslo_config import cfg

from api.clustering import microversions as clustering_versions
from api.clustering import routes as clustering
from api.compute import microversions as compute_versions
from api.compute import routes as compute
from api.image import app as image
from api.network import app as network
from api.rows import Row
from api.volume import microversions as volume_versions
from api.volume import routes as volume
from common import release
from placement import microversions as placement_versions
from placement import routes as placement
from release import references
from web.guard import Handler, Operation, methods_of, operation_of
from web.microversions import Microversions, Versioned
from web.schemas import Validator

Json = dict[str, Any]
#: who isn't asked
_NOBODY: Any = None
_PARAMETER = re.compile(r"\{(\w+)\}")
_ERROR = {"description": "An error, in the form of OpenStack's API."}


@dataclass(frozen=True)
class Answered:
    """One HTTP method of a path, and what may answer it."""

    method: str
    path: str
    handlers: list[Handler]
    """By version."""
    actions: Mapping[str, Handler] = field(default_factory=dict)
    """By what the body names."""


@dataclass(frozen=True)
class Described:
    """One operation, as a reader sees it."""

    method: str
    path: str
    action: str
    summary: str
    rules: tuple[str, ...]
    versions: tuple[str, str] | None
    """None: the API has no microversions."""
    link: str | None
    """Where the real service's reference describes it; None: it has no such operation."""


@dataclass(frozen=True)
class Api:
    """One API."""

    title: str
    service: str
    """The OpenStack service whose API it is."""
    url: str
    answered: Callable[[], Iterator[Answered]]
    versions: Microversions | None = None


def _of_rows(rows: Iterable[Row]) -> Iterator[Answered]:
    for row in rows:
        acting = row.acting()
        for method in row.methods:
            yield Answered(method, row.path, row.handlers(method), acting)


def _of_resources(resources: Iterable[tuple[str, object]]) -> Iterator[Answered]:
    for path, resource in resources:
        for method, handlers in methods_of(resource).items():
            yield Answered(method, path, handlers)


def _image() -> Iterator[Answered]:
    return _of_resources(image.routes(_NOBODY, _NOBODY, _NOBODY, _NOBODY).items())


def _network() -> Iterator[Answered]:
    asked = cast(Any, ())
    return _of_resources(network.routes(cfg.ConfigOpts(), _NOBODY, _NOBODY, asked).items())


APIS: Mapping[str, Api] = {
    "compute": Api(
        *("Compute", "Nova", f"/compute{compute.VERSION}", lambda: _of_rows(compute.ROUTES)),
        compute_versions.VERSIONS,
    ),
    "image": Api("Images", "Glance", "/image", _image),
    "network": Api("Networks", "Neutron", "/network", _network),
    "volume": Api(
        *("Volumes", "Cinder", f"/volume{volume.VERSION}", lambda: _of_rows(volume.ROUTES)),
        volume_versions.VERSIONS,
    ),
    "clustering": Api(
        *("Groups", "Senlin", f"/clustering{clustering.VERSION}"),
        lambda: _of_rows(clustering.ROUTES),
        clustering_versions.VERSIONS,
    ),
    "placement": Api(
        *("Placement", "Placement", "/placement"),
        lambda: _of_resources(placement.ROUTES.items()),
        placement_versions.VERSIONS,
    ),
}


def described(name: str) -> Iterator[Described]:
    """Yield the operations of an API, in the order of its table."""
    api = APIS[name]
    for answered in api.answered():
        handlers = [("", one) for one in answered.handlers]
        for action, handler in [*handlers, *answered.actions.items()]:
            operation = operation_of(handler)
            yield Described(
                answered.method,
                answered.path,
                action,
                _summary(handler),
                operation.rules,
                _served(api, operation),
                references.link(name, answered.method, answered.path, action),
            )


def document(name: str) -> Json:
    """Return the document of an API."""
    api = APIS[name]
    paths: dict[str, Json] = {}
    for answered in api.answered():
        of_path = paths.setdefault(answered.path, {})
        of_path[answered.method.lower()] = _operation(name, answered)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"micronova: {api.title}",
            "version": api.versions.text(api.versions.newest) if api.versions else release.VERSION,
            "description": f"What micronova serves of {api.service}'s API, and what is its own.",
        },
        "servers": [{"url": api.url}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}
            }
        },
    }


def _operation(name: str, answered: Answered) -> Json:
    api = APIS[name]
    every = [*answered.handlers, *answered.actions.values()]
    operations = [operation_of(one) for one in every]
    made: Json = {
        "operationId": _identifier(answered),
        "summary": "Act on it, as the body says" if answered.actions else _summary(every[0]),
        "parameters": [*_of_path(answered.path), *_of_query(answered)],
        "responses": {
            **{str(status): {"description": "Success."} for status in _statuses(operations)},
            "default": _ERROR,
        },
        "x-policy": sorted({rule for one in operations for rule in one.rules}),
    }
    if api.versions:
        made["x-openstack"] = [_range(api, one) for one in operations if not answered.actions]
    if bodies := list(_bodies(name, answered)):
        schema = bodies[0] if len(bodies) == 1 else {"anyOf": bodies}
        made["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    if not answered.actions:
        made |= _elsewhere(name, answered)
    return {key: value for key, value in made.items() if value != []}


def _elsewhere(name: str, answered: Answered, action: str = "") -> Json:
    """Return where the real service's reference describes it, where it does."""
    link = references.link(name, answered.method, answered.path, action)
    described = {"url": link, "description": f"{APIS[name].service}'s reference"}
    return {"externalDocs": described} if link else {}


def _identifier(answered: Answered) -> str:
    words = re.findall(r"\w+", answered.path) or ["root"]
    return "-".join([answered.method.lower(), *words])


def _summary(handler: Handler) -> str:
    return (handler.__doc__ or "").strip().partition("\n")[0]


def _statuses(operations: Iterable[Operation]) -> list[int]:
    return sorted({status for one in operations for _, status in one.status.items()})


def _served(api: Api, operation: Operation) -> tuple[str, str] | None:
    if api.versions is None:
        return None
    until = api.versions.newest if operation.until is None else operation.until
    return api.versions.text(operation.since), api.versions.text(until)


def _range(api: Api, operation: Operation, **more: Any) -> Json:
    served = _served(api, operation)
    return {**more, **({"min-ver": served[0], "max-ver": served[1]} if served else {})}


def _of_path(path: str) -> Iterator[Json]:
    for name in _PARAMETER.findall(path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _of_query(answered: Answered) -> Iterator[Json]:
    found: dict[str, Any] = {}
    for handler in answered.handlers:
        for _, schema in _schemas(operation_of(handler).query):
            found |= schema.get("properties", {})
    for name, schema in found.items():
        yield {"name": name, "in": "query", "schema": schema}


def _bodies(name: str, answered: Answered) -> Iterator[Json]:
    """Yield the schemas of bodies: by action, and by the version that brought them."""
    api = APIS[name]
    for handler in answered.handlers:
        operation = operation_of(handler)
        for since, schema in _schemas(operation.body):
            yield {**schema, **_since(api, operation, since)}
    for action, handler in answered.actions.items():
        operation = operation_of(handler)
        any_body = {"type": "object", "properties": {action: {}}, "required": [action]}
        about = {
            "title": action,
            "description": _summary(handler),
            "x-policy": list(operation.rules),
            **_elsewhere(name, answered, action),
        }
        for since, schema in _schemas(operation.body) or [(operation.since, any_body)]:
            yield {**schema, **about, **_since(api, operation, since, action)}


def _since(api: Api, operation: Operation, since: int, action: str = "") -> Json:
    named = {"action-name": action} if action else {}
    if api.versions is None:
        return {"x-openstack": named} if named else {}
    of = _range(api, operation, **named)
    return {"x-openstack": of | {"min-ver": api.versions.text(max(since, operation.since))}}


def _schemas(versioned: Versioned[Validator | None] | None) -> list[tuple[int, Json]]:
    every = versioned.items() if versioned else []
    return [(since, dict(one.schema)) for since, one in every if one is not None]


def text(name: str) -> str:
    """Return the document of an API as JSON."""
    return json.dumps(document(name), indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> None:
    """Write one document to a file, or to standard output."""
    name, *target = arguments
    if target:
        Path(target[0]).write_text(text(name), encoding="utf-8")
    else:
        sys.stdout.write(text(name))


if __name__ == "__main__":
    main(sys.argv[1:])
