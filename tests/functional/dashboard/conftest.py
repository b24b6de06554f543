"""People who are logged in to the dashboard of an embedded cloud."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.dashboard.browser import Browser

_AT_REST = ("available", "error")

LogIn: TypeAlias = Callable[[str], Browser]


@pytest.fixture(scope="module")
def people(three_nodes: EmbeddedCloud) -> LogIn:
    """Return somebody's browser, logged in once a file."""
    made: dict[str, Browser] = {}

    def browser(person: str) -> Browser:
        if person not in made:
            made[person] = Browser(three_nodes)
            made[person].log_in(person)
        return made[person]

    return browser


@pytest.fixture
def member(people: LogIn) -> Browser:
    """A user who may change what is the project's."""
    return people("member")


@pytest.fixture
def reader(people: LogIn) -> Browser:
    """A user who may only look."""
    return people("reader")


@pytest.fixture
def admin(people: LogIn) -> Browser:
    """An administrator, in a project of their own."""
    return people("admin")


@pytest.fixture
def stranger(three_nodes: EmbeddedCloud) -> Browser:
    """A browser that isn't logged in."""
    return Browser(three_nodes)


@pytest.fixture
def cleared(three_nodes: EmbeddedCloud) -> Iterator[None]:
    """Delete the servers, volumes and images of all projects after a test."""
    yield
    clear(three_nodes)


def clear(cloud: EmbeddedCloud) -> None:
    """Delete the servers, volumes and images of all projects."""
    admin = cloud.connection("micronova-admin")
    for server in admin.compute.servers(all_projects=True):
        admin.compute.delete_server(server)
    eventually(lambda: not list(admin.compute.servers(all_projects=True)))
    volumes = admin.block_storage
    for backup in volumes.backups(all_projects=True):
        volumes.delete_backup(backup)
    for snapshot in volumes.snapshots(all_projects=True):
        volumes.delete_snapshot(snapshot)
    eventually(lambda: not list(volumes.snapshots(all_projects=True)))
    # some are deleted with their servers
    eventually(lambda: all(one.status in _AT_REST for one in volumes.volumes(all_projects=True)))
    for volume in volumes.volumes(all_projects=True):
        volumes.delete_volume(volume)
    eventually(lambda: not list(volumes.volumes(all_projects=True)))
    for image in admin.image.images(visibility="all"):
        if image.owner:
            admin.image.update_image(image, is_protected=False)
            admin.image.delete_image(image)
