"""Which operations each rule of a policy protects, by the routes of an API.

The sample policy lists them, so no rule names a path.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from oslo_policy import policy

from web.guard import Operation, methods_of, operation_of

Served = tuple[str, str, Operation]
"""HTTP method, path and guard of an operation."""
Protected = tuple[str, str]
"""HTTP method and path."""


def served_by(resources: Iterable[tuple[str, object]]) -> Iterator[Served]:
    """Yield the operations of (path, resource), whose methods are `on_get`, `on_post` …"""
    for path, resource in resources:
        for method, handlers in methods_of(resource).items():
            for handler in handlers:
                yield method, path, operation_of(handler)


def operations(
    rules: Iterable[policy.RuleDefault],
    routes: Iterable[Served],
    several: Collection[str] | None = None,
) -> dict[str, list[Protected]]:
    """Return what each rule protects, in the order of `routes`.

    A rule that no operation names (`servers:create:forced_host`) protects what the shorter name
    does (`servers:create`). `several`: of other rules only the first operation is listed, of
    the newest version that has any; None: of each rule all are.
    """
    found: dict[str, list[Protected]] = {}
    for method, path, described in sorted(routes, key=lambda one: one[2].until is not None):
        for name in described.rules:
            known = found.setdefault(name, [])
            if (method, path) not in known:
                known.append((method, path))
    listed: dict[str, list[Protected]] = {}
    for rule in rules:
        every, name = found.get(_named(rule.name, found), []), rule.name
        listed[name] = every if several is None or name in several else every[:1]
    return listed


def _named(name: str, found: Collection[str]) -> str:
    """Return the longest beginning of a rule's name that an operation has."""
    while name not in found and ":" in name:
        name = name.rpartition(":")[0]
    return name
