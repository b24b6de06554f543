"""The dashboard as a service of its own: it asks for everything over sockets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.reading.processes import memory_mib, tree
from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.browser import Browser
from tests.functional.dashboard.service import served
from tests.functional.dashboard.test_images import QCOW2, create, send

LARGE = 64 << 20
#: more than that of a file in memory would be the file
GROWTH_MIB = 32


class Elsewhere(Browser):
    """A browser of a dashboard at another address than the cloud's."""

    def __init__(self, cloud: EmbeddedCloud, url: str, state_dir: Path) -> None:
        super().__init__(cloud)
        self.base = url
        self.origin = url.removesuffix("/dashboard")
        self.state_dir = state_dir


@pytest.fixture
def service(three_nodes: EmbeddedCloud, tmp_path: Path) -> Iterator[tuple[Elsewhere, int]]:
    """A member in a dashboard of its own, and the process."""
    with served(three_nodes, tmp_path, 1) as (child, url):
        made = Elsewhere(three_nodes, url, tmp_path / "state")
        made.log_in("member")
        assert child.pid is not None
        yield made, child.pid


def test_files_are_sent_on_as_they_come(cleared: None, service: tuple[Elsewhere, int]) -> None:
    member, pid = service
    assert "Overview" in member.get("/").text
    create(member, "small")
    path = member.path
    assert send(member, path, QCOW2).status_code == 201
    member.until(path, lambda page: "● active" in page.text)
    create(member, "large", disk_format="raw")
    path = member.path
    before = memory_mib({"all": tree(pid)})["all"]
    assert send(member, path, bytes(LARGE)).status_code == 201
    assert memory_mib({"all": tree(pid)})["all"] < before + GROWTH_MIB
    text = member.until(path, lambda page: "● active" in page.text).text
    assert "64.0 MiB" in text
    # an image gets data once
    assert send(member, path, bytes(LARGE)).status_code == 201
    assert "Refused: " in member.get(path).text


def test_the_session_is_kept_there(service: tuple[Elsewhere, int]) -> None:
    member, _ = service
    member.get("/servers")
    assert member.path == "/servers"
    member.submit("/logout")
    assert member.path == "/login"
