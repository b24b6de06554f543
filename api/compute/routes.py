"""The whole compute API as one table.

A row is a path under `/v2.1`, the resource that serves it, and {HTTP method: names of the
resource's methods}; of several names the first that the request's version has answers. Rows with
actions take the operation's name from the body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import falcon

from api.compute.call import Cloud
from api.compute.operation import Door, Handler
from api.compute.resources.flavor_access import FlavorAccess
from api.compute.resources.flavor_extra_specs import FlavorExtraSpecs
from api.compute.resources.flavors import Flavors
from api.compute.resources.keypairs import KeyPairs
from api.compute.resources.server_actions import ServerActions
from api.compute.resources.servers import Servers

VERSION = "/v2.1"


@dataclass(frozen=True)
class Row:
    """One path."""

    path: str
    resource: type
    methods: Mapping[str, str | tuple[str, ...]]
    actions: Mapping[str, str] = field(default_factory=dict)
    """{name in the body: method}, of a POST."""

    def names(self, http_method: str) -> tuple[str, ...]:
        """The resource's methods that may answer an HTTP method."""
        names = self.methods.get(http_method, ())
        return (names,) if isinstance(names, str) else names


ROUTES = (
    Row("/servers", Servers, {"GET": "index", "POST": "create"}),
    Row("/servers/detail", Servers, {"GET": "detail"}),
    Row("/servers/{server_id}", Servers, {"GET": "show", "PUT": "update", "DELETE": "delete"}),
    Row(
        "/servers/{server_id}/action",
        ServerActions,
        {"POST": ()},
        {"os-start": "start", "os-stop": "stop", "reboot": "reboot"},
    ),
    Row("/flavors", Flavors, {"GET": "index", "POST": "create"}),
    Row("/flavors/detail", Flavors, {"GET": "detail"}),
    Row("/flavors/{flavor_id}", Flavors, {"GET": "show", "PUT": "update", "DELETE": "delete"}),
    Row(
        "/flavors/{flavor_id}/action",
        FlavorAccess,
        {"POST": ()},
        {"addTenantAccess": "add", "removeTenantAccess": "remove"},
    ),
    Row("/flavors/{flavor_id}/os-flavor-access", FlavorAccess, {"GET": "index"}),
    Row(
        "/flavors/{flavor_id}/os-extra_specs",
        FlavorExtraSpecs,
        {"GET": "index", "POST": "create"},
    ),
    Row(
        "/flavors/{flavor_id}/os-extra_specs/{key}",
        FlavorExtraSpecs,
        {"GET": "show", "PUT": "update", "DELETE": "delete"},
    ),
    Row("/os-keypairs", KeyPairs, {"GET": "index", "POST": "create"}),
    Row("/os-keypairs/{name}", KeyPairs, {"GET": "show", "DELETE": "delete"}),
)


def add_routes(app: falcon.App[Any, Any], cloud: Cloud) -> None:
    """Give `app` every row of the table."""
    made: dict[type, Any] = {}
    for row in ROUTES:
        resource = made.setdefault(row.resource, row.resource())
        responders = _Responders()
        actions: dict[str, Handler] = {
            name: getattr(resource, method) for name, method in row.actions.items()
        }
        for http_method in row.methods:
            methods = [getattr(resource, name) for name in row.names(http_method)]
            setattr(responders, f"on_{http_method.lower()}", Door(cloud, methods, actions))
        app.add_route(VERSION + row.path, responders)


class _Responders:
    """What Falcon looks at for `on_get` and the like."""
