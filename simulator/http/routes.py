"""The whole API: each call's handler, and what the API schema says about the call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator.http import datacenter_routes, firewall_routes, node_routes, sdn_routes, vm_routes
from simulator.request.apischema import Rules, methods, parameters
from simulator.request.call import Calls, Handler
from simulator.request.permissions import Check

CALLS: Calls = {
    **datacenter_routes.CALLS,
    **node_routes.CALLS,
    **vm_routes.CALLS,
    **sdn_routes.CALLS,
    **firewall_routes.CALLS,
}


@dataclass(frozen=True)
class Route:
    """One call. `check`: who may make it, in the words of the schema; see `permissions.py`.

    `protected` calls are answered by the privileged daemon (595 when it is down, 596 when it
    hangs), `proxied` calls by the node that the path names; `modern` ones are new in version 9.
    """

    method: str
    path: str
    handler: Handler
    rules: Rules
    check: Check
    protected: bool
    proxied: bool
    token: bool
    modern: bool

    @property
    def public(self) -> bool:
        """Return whether the call needs no login."""
        return self.check == ("world",)


def _check(schema: Mapping[str, Any]) -> Check:
    """Return who may call. A call that anybody may make checks the rest itself."""
    if "user" in schema:
        return (str(schema["user"]),)
    return tuple(schema["check"])


def _route(call: str, handler: Handler) -> Route:
    method, path = call.split(" ")
    schema = methods()[path][method]
    # The schema leaves out a few parts of paths.
    named = {name: {"type": "string"} for name in re.findall(r"{(\w+)}", path)}
    return Route(
        method,
        path,
        handler,
        {**named, **parameters(schema)},
        _check(schema["permissions"]),
        protected=bool(schema.get("protected")),
        proxied=bool(schema.get("proxyto")),
        token=schema.get("allowtoken", 1) != 0,
        modern=path.startswith("/cluster/ha/rules"),
    )


ROUTES: tuple[Route, ...] = tuple(_route(call, handler) for call, handler in CALLS.items())


class Router:
    """Finds the route of a request, by a trie of path parts; the last one may hold slashes."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self._root: dict[str, Any] = {}
        for route in routes:
            here = self._root
            for part in route.path.strip("/").split("/"):
                here = here.setdefault("{}" if part.startswith("{") else part, {})
            here.setdefault("methods", {})[route.method] = route

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        """Return the route and its path parameters, or None."""
        parts = path.strip("/").split("/")
        if len(parts) > 6 and parts[0] == "nodes" and parts[2] == "storage":
            parts = [*parts[:5], "/".join(parts[5:])]
        if "ipset" in parts[2:]:
            last = parts.index("ipset") + 2
            parts = [*parts[:last], *(["/".join(parts[last:])] if parts[last:] else [])]
        here: dict[str, Any] = self._root
        values: list[str] = []
        for part in parts:
            if part in here and part != "methods":
                here = here[part]
            elif "{}" in here:
                here = here["{}"]
                values.append(part)
            else:
                return None
        route: Route | None = here.get("methods", {}).get(method)
        if route is None:
            return None
        names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
        return route, dict(zip(names, values, strict=True))
