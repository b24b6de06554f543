"""What root changes on a node by its API: bridges, and daemons that are restarted.

After the API's schema and sources: interfaces are written first, and there once they are applied.
"""

from __future__ import annotations

from typing import Any

from simulator.api import nodes
from simulator.engine import Sleep, Work
from simulator.errors import PveError
from simulator.request.call import Call
from simulator.state.model import Node
from simulator.state.tasks import Job

RESTART_SECONDS = 1.0
RELOAD_SECONDS = 2.0
_INNER = frozenset({"iface", "delete", "node"})
_NUMBERS = frozenset({"autostart", "bridge_vlan_aware"})


def restart(call: Call) -> str:
    """`POST /nodes/{node}/services/{service}/restart`."""
    node, service = call.home(), call.get("service")

    def body(_job: Job) -> Work:
        yield Sleep(RESTART_SECONDS)
        services = {**node.shown.get("services", {})}
        services.pop(service, None)
        _show(call, node, services=services)

    return call.start("srvrestart", service, body)


def interface(call: Call) -> dict[str, Any]:
    """`GET /nodes/{node}/network/{iface}`."""
    name = call.get("iface")
    found = [one for one in nodes.interfaces(call.home()) if one["iface"] == name]
    if not found:
        raise PveError("interface does not exist", 400)
    return {key: value for key, value in found[0].items() if key != "iface"}


def add_interface(call: Call) -> None:
    """`POST /nodes/{node}/network`: a bridge, which isn't there yet."""
    node, name = call.home(), call.get("iface")
    if call.get("type") != "bridge":
        raise PveError(f"interfaces of type '{call.get('type')}' are not simulated", 501)
    if name in node.bridges:
        raise PveError("interface already exists", 400)
    node.bridges.append(name)
    _write(call, node, name, {**_given(call), "active": 0})


def change_interface(call: Call) -> None:
    """`PUT /nodes/{node}/network/{iface}`."""
    node, name = call.home(), call.get("iface")
    if name not in node.bridges:
        raise PveError("interface does not exist", 400)
    known = node.shown.get("interfaces", {}).get(name, {})
    gone = set(call.get("delete").split(","))
    _write(call, node, name, {k: v for k, v in known.items() if k not in gone} | _given(call))


def apply(call: Call) -> str:
    """`PUT /nodes/{node}/network`: what was written is there afterwards."""
    node = call.home()

    def body(_job: Job) -> Work:
        yield Sleep(RELOAD_SECONDS)
        known = node.shown.get("interfaces", {})
        written = {name: {**values, "active": 1} for name, values in known.items()}
        _show(call, node, interfaces=written)

    return call.start("srvreload", "networking", body)


def _given(call: Call) -> dict[str, Any]:
    given = {key: text for key, text in call.params.items() if key not in _INNER}
    return {key: int(text) if key in _NUMBERS else text for key, text in given.items()}


def _write(call: Call, node: Node, name: str, values: dict[str, Any]) -> None:
    _show(call, node, interfaces={**node.shown.get("interfaces", {}), name: values})


def _show(call: Call, node: Node, **values: Any) -> None:
    node.shown = {**node.shown, **values}
    call.cluster.save("node", node.name, node)
