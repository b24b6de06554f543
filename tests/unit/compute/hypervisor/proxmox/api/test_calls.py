"""The list of calls: it is whole, and each has the privileges that Proxmox VE wants for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compute.hypervisor.proxmox.api import calls, privileges, role_file
from compute.hypervisor.proxmox.api.calls import CALLS, Purpose, Right
from simulator.request import apischema
from simulator.state import roles
from tests.unit import sources

ROOT = Path(calls.__file__).parents[4]
_VERBS = frozenset({"get", "post", "put", "delete", "post_there"})
#: what paths begin with in the driver
_KNOWN = {
    "vm.path": "nodes/{}/qemu/{}",
    "there.path": "nodes/{}/qemu/{}",
    "self._vm.path": "nodes/{}/qemu/{}",
    "self.path": "nodes/{}/qemu/{}",
    "_VNETS": "cluster/sdn/vnets",
}


def _shape(path: str) -> str:
    return re.sub(r"{\w*}", "{}", path.strip("/"))


SCHEMA = {
    f"{method} {_shape(path)}": info.get("permissions", {})
    for path, methods in apischema.methods().items()
    for method, info in methods.items()
}


def _has(rights: set[Right], path: str, privilege: str) -> bool:
    """Whether the rights on all objects of a kind have a privilege for one object's path."""
    roots = {one.path.rstrip("/") for one in rights if one.privilege == privilege}
    # A privilege on the root is given to the root alone.
    return any(path == (root or "/") or (root and path.startswith(f"{root}/")) for root in roots)


def lacks(check: Any, rights: set[Right]) -> list[str]:
    """What a check of the schema finds missing."""
    kind, *rest = check
    if kind == "and":
        return [one for part in rest for one in lacks(part, rights)]
    if kind == "or":
        found = [lacks(part, rights) for part in rest]
        return [] if not all(found) else found[0]
    if kind != "perm":
        return []
    path, listed, *options = rest
    missing = [f"{one} on {path}" for one in listed if not _has(rights, path, one)]
    return [] if "any" in options and len(missing) < len(listed) else missing


@pytest.mark.parametrize("purpose", list(Purpose))
def test_each_call_has_the_privileges_of_the_schema(purpose: Purpose) -> None:
    needed = {one for name in (*calls.NEEDED, purpose) for one in calls.rights(name)}
    found = {}
    for call in CALLS[purpose]:
        permissions = SCHEMA[_schema_name(call)]
        missing = lacks(permissions["check"], needed) if "check" in permissions else []
        if missing and "user" not in permissions:
            found[call] = missing
    assert found == {}


def _schema_name(call: str) -> str:
    method, path = call.split(" ")
    return f"{method} {_shape(path)}"


def test_a_role_without_one_privilege_is_noticed() -> None:
    some = {one for one in calls.rights(Purpose.SERVERS) if one.privilege != "VM.PowerMgmt"}
    check = SCHEMA["POST nodes/{}/qemu/{}/status/start"]["check"]
    assert lacks(check, some) == ["VM.PowerMgmt on /vms/{vmid}"]


def test_every_call_of_the_code_is_listed() -> None:
    listed = {_schema_name(call) for call in calls.named()}
    unknown = {
        sent for sent in _sent() if not any(re.fullmatch(_pattern(sent), one) for one in listed)
    }
    assert unknown == set()


def test_every_listed_call_is_sent() -> None:
    sent = [re.compile(_pattern(one)) for one in _sent()]
    # By a websocket, and by an upload.
    others = {"GET nodes/{}/qemu/{}/vncwebsocket", "POST nodes/{}/storage/{}/upload"}
    names = {_schema_name(call) for call in calls.named()} - others
    assert {one for one in names if not any(pattern.fullmatch(one) for pattern in sent)} == set()


def _pattern(sent: str) -> str:
    return re.escape(sent).replace(r"\*", ".+")


def _sent() -> Iterator[str]:
    """Method and path of the calls in the code; what isn't known of a path is a `*`."""
    for file in sorted((ROOT / "compute").rglob("*.py")):
        for node in sources.nodes(file):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            verb, target = node.func.attr, ast.unparse(node.func.value)
            is_client = target.split(".")[-1] in ("client", "_client") or target == "api"
            if verb in _VERBS and is_client and node.args:
                method = "POST" if verb == "post_there" else verb.upper()
                yield f"{method} {_path(node.args[0])}"


def _path(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return _named(str(node.value))
    if isinstance(node, ast.JoinedStr):
        parts = [
            str(one.value)
            if isinstance(one, ast.Constant)
            else _KNOWN.get(ast.unparse(one.value), "*")  # type: ignore[attr-defined]
            for one in node.values
        ]
        return _named("".join(parts))
    return _KNOWN.get(ast.unparse(node), "*")


def _named(path: str) -> str:
    return path.replace("ha/resources/vm:*", "ha/resources/*")


def test_the_simulated_agent_has_the_documented_roles() -> None:
    file = Path(roles.__file__).parents[1] / "agent_role.json"
    assert file.read_text(encoding="utf-8") == role_file.text(), "see role_file.py"


def test_the_documented_role_has_all_but_what_is_optional() -> None:
    granted = {one for need in privileges.documented() for one in need.privileges}
    assert {"VM.Snapshot", "VM.Backup", "VM.Console", "VM.Migrate"} <= granted
    assert not granted & {"Sys.Modify", "Sys.Console", "SDN.Allocate", "VM.Monitor"}
