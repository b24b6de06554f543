"""The newest release is upgraded to the one after this tree, under load, in each order and back.

Both run side by side on PostgreSQL and RabbitMQ: the release as its wheel, the next one with
another schema and other messages. A user is logged in to the dashboard all the time, and opens
consoles.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

import pytest

from tests.functional import released
from tests.functional.console.visits import enter_screen, visiting
from tests.functional.dashboard.browser import Browser
from tests.functional.dashboard.test_create import send
from tests.functional.dashboard.test_pages import delete, wait_for
from tests.functional.distributed import (
    CONSOLE,
    DASHBOARD,
    SECOND_API,
    DistributedCloud,
    Programs,
    distributed_cloud,
)
from tests.functional.load import WAIT_SECONDS, Load, creating, work
from tests.functional.next_revision import EXPANDED
from tests.functional.test_rolling_restart import API, ready
from tests.functional.waiting import eventually

pytestmark = [pytest.mark.distributed, pytest.mark.long, pytest.mark.timeout(3600)]

KINDS = {
    "conductor": ("conductor-1", "conductor-2"),
    "agents": ("compute-pve1", "compute-pve2", "compute-pve3"),
    "api": (API, SECOND_API),
    "scheduler": ("scheduler-1", "scheduler-2"),
    "placement": ("placement", "placement-2"),
    "screens": (CONSOLE, DASHBOARD),
}
"""Each is upgraded first once; the others follow in this order."""
LISTS = ("/", "/servers", "/volumes", "/networks", "/images", "/explain")


@pytest.fixture(scope="module")
def old() -> Programs:
    return released.installed()


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return released.next_one(tmp_path_factory.mktemp("next") / "tree")


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory, old: Programs) -> Iterator[DistributedCloud]:
    folder = tmp_path_factory.mktemp("upgrade")
    with distributed_cloud(folder, proxy="haproxy", screens=True, programs=old) as running:
        yield running


@pytest.fixture(scope="module")
def member(cloud: DistributedCloud) -> Browser:
    """A user with one session of the dashboard, whichever release has served it last."""
    made = Browser(cloud)
    made.log_in("member")
    return made


def make(member: Browser, name: str) -> str:
    """Create a server by the dashboard's form; return its page."""
    send(member, name=name)
    assert f"{name} is being created" in member.parsed.text
    path = member.path
    wait_for(member, path, "ACTIVE")
    return path


def look(member: Browser, path: str) -> None:
    """See the lists of all APIs, a server, and its screen."""
    for one in (*LISTS, path):
        member.get(one)
        assert (member.status, member.path) == (200, one), member.page.text
    console = f"{path}/console"
    member.get(console)
    [frame] = member.submit(console).frames
    with visiting(frame) as visitor:
        assert enter_screen(visitor)


@contextlib.contextmanager
def loaded(cloud: DistributedCloud, prefix: str) -> Iterator[Load]:
    """Clients create servers by the proxy until the block ends: all are made, without an error.

    At the end all are deleted, and nothing is left of them.
    """
    compute = cloud.connection().compute
    began = time.monotonic()
    with work(cloud) as what:
        # few enough for the simulated nodes: none is refused for want of room
        with creating(**what, prefix=prefix, clients=2, pause=3.0) as made:
            yield made
        made.assert_no_errors()
        eventually(lambda: made.settled(compute), WAIT_SECONDS)
        made.assert_made_once(compute)
        print(
            f"\n{prefix}: accepted {len(made.accepted)}, made {len(made.accepted)}, "
            f"errors {len(made.errors)}, longest answer {made.longest_seconds:.1f} s, "
            f"{time.monotonic() - began:.0f} s"
        )


def replace(cloud: DistributedCloud, names: Sequence[str], programs: Programs) -> None:
    """Restart processes as another installation's, each once the proxy uses the one before it."""
    states = cloud.proxied
    assert states is not None
    for name in names:
        cloud.replace(name, programs)
        eventually(lambda name=name: ready(cloud, name) == 200, 90)
        eventually(lambda: set(states().values()) == {"UP"}, 90)


def run(cloud: DistributedCloud, programs: Programs, *words: str, code: int = 0) -> str:
    done = programs.micronova(*words, "--config-file", f"{cloud.folder}/owners.conf")
    assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_the_next_release_is_checked_and_its_schema_expanded(
    cloud: DistributedCloud, old: Programs, new: Programs
) -> None:
    with loaded(cloud, "expand") as made:
        said = run(cloud, new, "status", "upgrade-check")
        assert "'micronova db expand' does" in said
        assert EXPANDED in said
        assert ", 0 of an older" not in said
        refused = run(cloud, new, "db", "upgrade", code=1)
        assert "The cloud database is still used by a release before 99.0.0" in refused
        refused = run(cloud, new, "db", "contract", code=1)
        assert "is still used by a release before 99.0.0" in refused
        run(cloud, new, "db", "expand")
        count = len(made.accepted)
        eventually(lambda: len(made.accepted) > count + 3)
    assert "can be used" in run(cloud, new, "db", "check")
    assert "is up to date" in run(cloud, old, "db", "check")


@pytest.mark.parametrize("first", KINDS)
def test_each_order_of_upgrading_costs_no_client_an_error(
    cloud: DistributedCloud, member: Browser, old: Programs, new: Programs, first: str
) -> None:
    """And back: one service alone at first, then all others."""
    order = [first, *(kind for kind in KINDS if kind != first)]
    steps = [(KINDS[kind], new) for kind in order]
    steps += [(KINDS[first][:1], old), *((KINDS[kind], old) for kind in order)]
    with loaded(cloud, f"{first}-first"):
        path = make(member, f"seen-{first}")
        for names, programs in steps:
            replace(cloud, names, programs)
            look(member, path)
        delete(member, path)


def test_what_is_contracted_is_refused_by_the_release_before(
    cloud: DistributedCloud, member: Browser, old: Programs, new: Programs
) -> None:
    with loaded(cloud, "contract") as made:
        for names in KINDS.values():
            replace(cloud, names, new)
        # their signs of life count for a minute
        check = ("status", "upgrade-check")
        eventually(lambda: ", 0 of an older" in run(cloud, new, *check, code=1), 120)
        run(cloud, new, "db", "contract")
        count = len(made.accepted)
        eventually(lambda: len(made.accepted) > count + 3)
        delete(member, make(member, "seen-contracted"))
    assert "is up to date" in run(cloud, new, "db", "check")
    child = cloud.children["conductor-2"]
    child.stop(20)
    cloud.children["conductor-2"] = cloud.make("conductor-2", old)
    cloud.children["conductor-2"].start()
    eventually(lambda: cloud.children["conductor-2"].pid is None, 60)
    log = cloud.children["conductor-2"].log_path.read_text()
    assert "was contracted by a newer release, to c0002_reservation" in log
    cloud.children["conductor-2"] = cloud.make("conductor-2", new)
    cloud.restart("conductor-2")
