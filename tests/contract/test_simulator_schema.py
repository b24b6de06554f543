"""The simulator's table of routes against the real server's own API schema."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.params import Schema
from simulator.routes import ROUTES, Route
from simulator.vmschema import option
from tests.fixtures.pve_records import schema
from tests.fixtures.pve_schema import parameters


def _real_method(route: Route) -> dict[str, Any]:
    method = schema().get(route.path, {}).get(route.method)
    assert method is not None, f"{route.method} {route.path} is not in the schema"
    return dict(method)


def _required(schema: Schema) -> set[str]:
    return {name for name, param in schema.params.items() if param.required}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_route_is_that_of_the_real_server(route: Route) -> None:
    real = _real_method(route)
    properties = parameters(real)
    assert route.protected == bool(real.get("protected"))
    assert route.proxied == bool(real.get("proxyto"))
    assert route.token == (real.get("allowtoken", 1) != 0)
    # The volume may carry its storage, and the real schema leaves a few parts of paths out.
    named = {part[1:-1] for part in route.path.split("/") if part.startswith("{")}
    real_required = {name for name, one in properties.items() if not one.get("optional")}
    assert _required(route.schema) - named == real_required - named
    assert set(route.schema.params) - named <= set(properties)


@pytest.mark.parametrize(
    "route",
    [one for one in ROUTES if one.schema.vm_options],
    ids=lambda route: f"{route.method} {route.path}",
)
def test_options_of_machines_are_those_of_the_real_server(route: Route) -> None:
    properties = _real_method(route)["parameters"]["properties"]
    missing = {
        name
        for name in properties
        if "[n]" not in name and name not in route.schema.params and option(name) is None
    }
    assert missing <= NOT_SIMULATED


NOT_SIMULATED = {
    "amd-sev",
    "intel-tdx",
    "ivshmem",
    "rng0",
    "spice_enhancements",
    "vmstate",
    "hugepages",
    "keephugepages",
    "smp",
    "running-nets-host-mtu",
    "runningcpu",
    "runningmachine",
}
