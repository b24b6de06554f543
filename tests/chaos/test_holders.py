"""What is done with a volume whose holder was edited or locked by hand: it ends, nothing is lost,
and after the printed remedy it works.

The holder is a VM that no server runs in: its notes are all that proves whose the disk is.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common.errors import MicronovaError
from compute.hypervisor.proxmox.vmconfig import marks
from db import schema
from tests.chaos.administrator import reset
from tests.chaos.cloud import Overdue
from tests.chaos.renewed import Renewed
from tests.chaos.resource_play import SOON_SECONDS, STORIES
from tests.chaos.stage import Plan, Stage, stage
from tests.chaos.story import Story
from tests.chaos.test_locked_vms import LOCKS
from tests.fixtures.root_shell import RootShell

#: an image is what volumes get instead of their first one
PLAN = Plan(nodes=3, images=3)
#: what has no holder yet when it begins, or none at all
WITHOUT = {
    *("upload", "delete of an image", "network", "delete of a network"),
    *("volume", "volume of an image", "boot from a new volume"),
}
#: what makes servers: those that failed are deleted, and are not made again
MAKE_SERVERS = {"boot from a volume", "boot from a snapshot", "rebuild on a volume"}
NAMES = [name for name in STORIES if name not in WITHOUT]
NOTES = "notes"
TEXT = "the data of Ann"


@pytest.fixture(scope="module")
def clouds(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Renewed[Plan, Stage]]:
    """The one cloud."""
    folder = tmp_path_factory.mktemp("holders")
    made = itertools.count()
    clouds: Renewed[Plan, Stage] = Renewed(
        request.session, lambda plan: stage(folder / str(next(made)), plan, audited=False)
    )
    yield clouds
    clouds.close()


@pytest.fixture
def cloud(clouds: Renewed[Plan, Stage]) -> Stage:
    """It."""
    return clouds(PLAN)


@pytest.fixture
def root(cloud: Stage, tmp_path: Path) -> RootShell:
    """Root's, on a node."""
    folder = cloud.simulator.options.state_dir
    url = cloud.simulator.endpoints[0]["url"]
    return RootShell(url, folder / "ca.pem", folder / "root-password", tmp_path / "bin")


def hamper(cloud: Stage, how: str) -> int:
    """Edit the notes of all holders, or lock them; return how many there are."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        held = [
            vm
            for vm in cluster.vms.values()
            if marks.VOLUME in str(vm.config.get("description", ""))
        ]
        for vm in held:
            key, value = ("description", TEXT) if how == NOTES else ("lock", how)
            cluster.edit(vm).config[key] = value
    return len(held)


def take_back(cloud: Stage) -> None:
    """Release the locks that hindered nothing, as of a holder that nothing was done with."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        for vm in list(cluster.vms.values()):
            if vm.config.get("lock") in LOCKS:
                cluster.edit(vm).config.pop("lock")


@dataclass
class Operator:
    """Carries out each remedy once, as it is printed, if it is about the notes or a lock."""

    root: RootShell
    done: set[str] = field(default_factory=set)

    def __call__(self, remedy: str) -> bool:
        """See ``Cloud.operator``."""
        if remedy in self.done or not remedy.startswith("as root on "):
            return False
        assert "qm destroy" not in remedy, "it has a user's data"
        self.done.add(remedy)
        self.root.run(remedy)
        return True


def remedies(cloud: Stage) -> list[Any]:
    """Faults because of the notes or a lock."""
    faults = schema.faults.c
    return cloud.rows(sa.select(faults.remedy).where(faults.category.in_(("mark_lost", "lock"))))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("how", [NOTES, *LOCKS])
@pytest.mark.parametrize("name", NAMES)
def test_a_story(cloud: Stage, root: RootShell, name: str, how: str) -> None:
    story = STORIES[name](cloud, f"{name} {how}")
    story.prepare()
    cloud.until(lambda: not cloud.open_operations())
    assert hamper(cloud, how), "no holder"
    cloud.operator = Operator(root)
    story.act()
    cloud.until(lambda: at_rest(cloud, story) or remedies(cloud))
    cloud.helped(lambda: is_good(cloud, story, name))
    if at_rest(cloud, story) == story.good:
        take_back(cloud)
        right(cloud, story)
    assert story.remove() == ""
    with cloud.engine.begin() as connection:
        connection.execute(sa.delete(schema.faults))


def right(cloud: Stage, story: Story) -> None:
    """Wait until all is as it must be."""
    wrong = ""

    def looks() -> bool:
        nonlocal wrong
        wrong = story.wrong()
        return not wrong

    with contextlib.suppress(Overdue):
        cloud.until(looks, SOON_SECONDS)
    assert wrong == ""


def is_good(cloud: Stage, story: Story, name: str) -> bool:
    """Whether it is as it is if nothing fails; asked for again where it failed."""
    state = at_rest(cloud, story)
    if not state or state == story.good or name in MAKE_SERVERS:
        return bool(state)
    reset(cloud)
    with contextlib.suppress(MicronovaError):
        story.act()
    return False


def at_rest(cloud: Stage, story: Story) -> Any:
    """What it is once nothing is under way; empty until then."""
    return "" if cloud.open_operations() else story.state()
