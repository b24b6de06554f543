"""Where a VM is looked for, and when it is said to be nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.shared import Listed
from compute.hypervisor.proxmox.inspect.inspection import inspect

NO_CONFIG = ApiError(
    Category.CREATION_FAILED,
    "Configuration file 'nodes/a/qemu-server/7.conf' does not exist",
    status=500,
)
SILENT = ApiError(Category.NODE_UNHEALTHY, "no route to host", status=595)


class Shared:
    """A cluster whose nodes and whose list each say something."""

    def __init__(self, listed: Listed | None, **nodes: Any) -> None:
        self._listed, self._nodes = listed, nodes
        self.client = self
        self.lists = 0

    def listed(self, vmid: int) -> Listed | None:
        self.lists += 1
        return self._listed

    def get(self, path: str) -> Any:
        _, node, _, _, what = path.split("/", 4)
        said = self._nodes[node]
        if isinstance(said, Exception):
            raise said
        return said if what == "config" else {"status": "running"}


def look(shared: Shared, node: str | None = "a") -> Any:
    return inspect(shared, 7, node, None)  # type: ignore[arg-type]


def test_where_it_should_be_no_list_is_asked() -> None:
    shared = Shared(None, a={"name": "x"})
    found = look(shared)
    assert (found.exists, found.node, shared.lists) == (True, "a", 0)


@pytest.mark.parametrize("there", [NO_CONFIG, SILENT])
def test_elsewhere_it_is_found_by_the_list(there: ApiError) -> None:
    found = look(Shared(Listed("b", "qemu"), a=there, b={"name": "x"}))
    assert (found.exists, found.node) == (True, "b")


def test_nowhere_is_what_its_node_and_the_list_havent_got() -> None:
    assert not look(Shared(None, a=NO_CONFIG)).exists
    assert not look(Shared(None), node=None).exists


def test_a_silent_node_may_have_it_all_the_same() -> None:
    with pytest.raises(ApiError):
        look(Shared(None, a=SILENT))


def test_a_refused_look_is_no_absence() -> None:
    denied = ApiError(Category.AUTHORIZATION, "Permission check failed", status=403)
    with pytest.raises(ApiError):
        look(Shared(None, a=denied))


def test_a_list_that_lags_is_no_absence() -> None:
    with pytest.raises(HypervisorError, match="has no such VM"):
        look(Shared(Listed("a", "qemu"), a=NO_CONFIG))


def test_a_container_has_the_id() -> None:
    assert look(Shared(Listed("a", "lxc"), a=NO_CONFIG)).kind == "container"
