"""Routes of the web interface: consoles, guest agent, mappings, indexes."""

from __future__ import annotations

from typing import Any

from simulator import checks, shares_api
from simulator.call import Call
from simulator.errors import PveError
from simulator.params import Param
from simulator.qemu import agent, console
from simulator.route_params import BOOL, NUMBER, TEXT
from simulator.rows import AUTHENTICATED, Permission, Row

_VM = "/nodes/{node}/qemu/{vmid}"
_ST = "/nodes/{node}/storage/{storage}"
_CONSOLE = ("/vms/{vmid}", "VM.Console")
_MAPPING = "/cluster/mapping"
_ALL = "VM.GuestAgent.Unrestricted"
_CHECK_NODE = {"check-node": Param(checks.node_name)}
_SERIAL = {"serial": Param(checks.one_of("serial0", "serial1", "serial2", "serial3"))}


def _list(*entries: dict[str, str]) -> Any:
    """Return a handler that always answers the same."""
    return lambda _call: list(entries)


def _identity(_call: Call) -> None:
    raise PveError(
        "get_identity not implemented for this plugin "
        "at /usr/share/perl5/PVE/Storage/Plugin.pm line 2681."
    )


def _agent(*privileges: str) -> Permission:
    return ("/vms/{vmid}", *(f"VM.GuestAgent.{one}" for one in privileges), _ALL)


def _mapping(kind: str) -> tuple[Row, ...]:
    path, one = f"{_MAPPING}/{kind}", f"{_MAPPING}/{kind}/{{id}}"
    change = (f"/mapping/{kind}", "Mapping.Modify")
    see = (f"/mapping/{kind}/{{id}}", "Mapping.Use", "Mapping.Modify", "Mapping.Audit")
    made = {
        "id": Param(checks.config_id, True),
        "map": Param(None, True),
        "description": Param(checks.text(4096)),
    }
    return (
        ("GET", path, "", shares_api.listing, AUTHENTICATED, _CHECK_NODE),
        ("POST", path, "p", shares_api.create, change, made),
        ("GET", one, "p", shares_api.one, see, {}),
        ("DELETE", one, "p", shares_api.delete, change, {}),
    )


ROWS: tuple[Row, ...] = (
    (
        "POST",
        f"{_VM}/vncproxy",
        "p",
        console.vnc,
        _CONSOLE,
        {"generate-password": BOOL, "websocket": BOOL},
    ),
    ("POST", f"{_VM}/termproxy", "p", console.terminal, _CONSOLE, _SERIAL),
    ("POST", f"{_VM}/spiceproxy", "pn", console.spice, _CONSOLE, {"proxy": TEXT}),
    (
        "POST",
        f"{_VM}/monitor",
        "pn",
        console.monitor,
        ("/vms/{vmid}", "Sys.Audit", "Sys.Modify"),
        {"command": Param(None, True)},
    ),
    ("GET", f"{_VM}/agent/get-osinfo", "pn", agent.system, _agent("Audit"), {}),
    (
        "POST",
        f"{_VM}/agent/fsfreeze-status",
        "pn",
        agent.frozen,
        _agent("Audit", "FileSystemMgmt"),
        {},
    ),
    (
        "POST",
        f"{_VM}/agent/fsfreeze-freeze",
        "pn",
        agent.freeze,
        _agent("FileSystemMgmt"),
        {},
    ),
    ("POST", f"{_VM}/agent/fsfreeze-thaw", "pn", agent.freeze, _agent("FileSystemMgmt"), {}),
    (
        "POST",
        f"{_VM}/agent/exec",
        "pn",
        agent.execute,
        _agent(),
        {"command": Param(None, True), "input-data": TEXT},
    ),
    (
        "GET",
        f"{_VM}/agent/file-read",
        "pn",
        agent.read_file,
        _agent("FileRead"),
        {"file": Param(None, True), "count": NUMBER, "decode": BOOL, "offset": NUMBER},
    ),
    (
        "POST",
        f"{_VM}/agent/set-user-password",
        "pn",
        agent.password,
        _agent(),
        {
            "username": Param(None, True),
            "password": Param(checks.text(1024), True),
            "crypted": BOOL,
        },
    ),
    ("GET", _MAPPING, "", shares_api.index, AUTHENTICATED, {}),
    *_mapping("dir"),
    *_mapping("usb"),
    (
        "GET",
        f"{_ST}/identity",
        "pn",
        _identity,
        ("/storage/{storage}", "Datastore.Audit", "Datastore.AllocateSpace"),
        {},
    ),
    (
        "GET",
        "/nodes/{node}/capabilities",
        "n",
        _list({"name": "qemu"}),
        AUTHENTICATED,
        {},
    ),
    (
        "GET",
        "/nodes/{node}/capabilities/qemu",
        "n",
        _list(*({"name": name} for name in ("cpu", "cpu-flags", "machines", "migration"))),
        AUTHENTICATED,
        {},
    ),
    (
        "GET",
        "/nodes/{node}/capabilities/qemu/migration",
        "n",
        lambda _call: {"has-dbus-vmstate": True},
        ("/nodes/{node}", "Sys.Audit"),
        {},
    ),
    (
        "GET",
        "/nodes/{node}/hardware",
        "",
        _list({"type": "pci"}, {"type": "usb"}),
        AUTHENTICATED,
        {},
    ),
    ("GET", "/nodes/{node}/hardware/usb", "pn", _list(), ("/", "Sys.Modify"), {}),
    ("GET", "/cluster/qemu/custom-cpu-models", "", _list(), AUTHENTICATED, {}),
    ("GET", "/cluster/replication", "", _list(), AUTHENTICATED, {}),
)
