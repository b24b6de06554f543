"""What Proxmox VE lets people name freely, in the paths and the commands that are made of it."""

from __future__ import annotations

import shlex
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import pytest

from compute.hypervisor.proxmox.api import paths, privileges
from compute.hypervisor.proxmox.api.calls import Purpose
from compute.hypervisor.proxmox.api.templates import template
from compute.hypervisor.proxmox.cluster.vmid import Vm
from compute.hypervisor.proxmox.settings import Token
from compute.hypervisor.proxmox.storage import one_volume, volumes
from tests.fixtures.nasty import IN_PATHS, IN_SHELLS

FILES = [one.replace("/", "") for one in (*IN_PATHS, *IN_SHELLS)]


class Asked:
    """A client that answers nothing and remembers the paths."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def get(self, path: str, **_: Any) -> Any:
        self.paths.append(path)
        return {}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_that_of_its_name(name: str) -> None:
    client, volid = Asked(), f"local:iso/{name}.iso"
    vm = cast(Vm, SimpleNamespace(shared=SimpleNamespace(client=client)))
    assert one_volume.exists(vm, "pve1", "local", volid)
    [path] = client.paths
    sent = urlsplit(f"https://pve1:8006/api2/json/{path}")
    assert sent.query == sent.fragment == ""
    assert unquote(sent.path) == f"/api2/json/nodes/pve1/storage/local/content/{volid}"
    assert template(path) == "nodes/{node}/storage/{storage}/content/{volume}"


@pytest.mark.parametrize("volid", ["local:100/vm-100-disk-0.qcow2", "local-lvm:vm-100-disk-0"])
def test_usual_volumes_are_as_they_were(volid: str) -> None:
    assert paths.volume("pve1", volid).endswith(f"/content/{volid}")
    assert volumes.free_line(volid) == f"pvesm free {volid}"


@pytest.mark.parametrize("name", FILES)
def test_a_volume_is_no_command(name: str) -> None:
    volid = f"local:100/{name}.raw"
    line = volumes.freeing([("pve1", volid)]).removeprefix("as root on pve1: ")
    assert shlex.split(line) == ["pvesm", "free", volid]


@pytest.mark.parametrize("name", [one for one in FILES if " " not in one])
def test_neither_is_a_token(name: str) -> None:
    token = Token(f"{name}@pve", "t", "")
    lines = privileges.secret_lines(token)
    for line in (*lines, *privileges.grant_lines(privileges.of(Purpose.NODES), token)):
        words = shlex.split(line)
        assert {token.user, token.id} & set(words) or "role" in words
        assert "reboot" not in words
