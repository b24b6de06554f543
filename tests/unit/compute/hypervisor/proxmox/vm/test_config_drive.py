"""Where config drives are looked for when they are removed."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest

from common.messages.reports import Category
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.observe.snapshot import Storage
from compute.hypervisor.proxmox.vm import config_drive

SERVER = "5b0e5a1c-0c1f-4b6f-9d0e-2f6b1d6a3c11"


class Client:
    """A node whose storage has a config drive; ``silent``: it can't be read."""

    def __init__(self, silent: bool) -> None:
        self.silent = silent
        self.there = {f"shared:iso/micronova-100-{SERVER}.iso"}

    def get(self, path: str) -> None:
        if self.silent:
            raise ApiError(Category.STORAGE_CONFLICT, "storage 'shared' is not online", status=500)
        if path.partition("/content/")[2] not in self.there:
            raise ApiError(Category.UNKNOWN_OUTCOME, "no such volume", status=500)

    def delete(self, path: str) -> None:
        self.there.discard(path.partition("/content/")[2])


def a_vm(client: Client, *, active: bool, iso_storage: str | None = None) -> Any:
    storage = Storage("shared", "nfs", True, active, 1, 0, frozenset({"iso"}))
    snapshot = SimpleNamespace(
        nodes={"pve1": SimpleNamespace(storages={"shared": storage})},
        storage=lambda node, name: storage,
    )
    shared = SimpleNamespace(
        client=client,
        snapshot=snapshot,
        settings=SimpleNamespace(iso_storage=iso_storage),
        storage_key=lambda node, name: (None, name),
        storage_queue=SimpleNamespace(slot=lambda *_: contextlib.nullcontext()),
    )
    return SimpleNamespace(
        **{"vmid": 100, "node": "pve1", "home": "pve1", "shared": shared},
        work=SimpleNamespace(command=None),
        converge=lambda look, act, **_: act(),
    )


@pytest.mark.parametrize("active", [True, False])
def test_a_drive_is_removed_whatever_its_storage_was_last_seen_to_be(active: bool) -> None:
    client = Client(silent=False)
    assert config_drive.remove(a_vm(client, active=active), SERVER).gone
    assert client.there == set()


def test_an_inactive_storage_that_can_t_be_read_holds_nothing_up() -> None:
    client = Client(silent=True)
    assert config_drive.remove(a_vm(client, active=False), SERVER).gone


@pytest.mark.parametrize(("active", "iso_storage"), [(True, None), (False, "shared")])
def test_one_that_has_the_drives_does(active: bool, iso_storage: str | None) -> None:
    client = Client(silent=True)
    with pytest.raises(ApiError):
        config_drive.remove(a_vm(client, active=active, iso_storage=iso_storage), SERVER)
