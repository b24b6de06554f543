"""Sessions of requests that take long, and of several at the same time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import falcon
import falcon.testing
import jinja2
import pytest
from keystoneauth1.session import Session as HttpSession
from oslo_config import cfg

from dashboard import config
from dashboard.answer import Answer, Redirect
from dashboard.cloud import DATA_TYPE
from dashboard.guard import CSRF_HEADER, SESSION, Guarded, Site
from dashboard.page import Page
from dashboard.sessions import Session, Sessions
from dashboard.sessions.sqlite import SqliteStore
from dashboard.visit import Visit

IDLE = 600
PIECES = 5
DONE = ("done", "It is done.", "")


class World:
    """A dashboard with one page, which takes as long as a test says."""

    def __init__(self, folder: Path) -> None:
        self.now = 1000.0
        self.during_upload: Callable[[], object] = lambda: None
        """What happens with each piece of an upload."""
        self.sessions = Sessions(SqliteStore(folder / "s"), b"k" * 32, IDLE, lambda: self.now)
        until = self.now + 86400
        access = {"token": {"roles": [{"id": "m", "name": "member"}]}}
        made = Session("t", access, (("p", "demo"),), "csrf", self.now, self.now, until)
        self.name = self.sessions.begin(made)
        conf = cfg.ConfigOpts()
        config.register(conf)
        conf([], default_config_files=[])
        conf.set_override("auth_url", "http://127.0.0.1:9", config.GROUP)
        site = Site(conf[config.GROUP], HttpSession(), self.sessions, jinja2.Environment(), ())
        app: falcon.App[falcon.Request, falcon.Response] = falcon.App()
        app.add_route("/", Guarded(site, {"PUT": Page("/", self._take, method="PUT")}))
        self._client = falcon.testing.TestClient(app)

    def _take(self, visit: Visit) -> Answer:
        assert visit.data is not None
        for _ in visit.data:
            self.during_upload()
        visit.note(DONE[1])
        return Redirect("/")

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def upload(self) -> None:
        answer = self._client.simulate_put(
            "/",
            headers={
                "Cookie": f"micronova-{SESSION}={self.name}",
                CSRF_HEADER: "csrf",
                "Content-Type": DATA_TYPE,
            },
            body=bytes(PIECES << 18),
        )
        assert answer.status_code == 201

    def flashes(self) -> tuple[tuple[str, str, str], ...] | None:
        """What the next page would show; None: it would be the login."""
        session = self.sessions.read(self.name)
        return None if session is None else session.flashes


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_an_upload_may_take_longer_than_a_session_idles(world: World) -> None:
    world.during_upload = lambda: world.wait(IDLE / 2)
    world.upload()
    assert world.flashes() == (DONE,)
    world.wait(IDLE + 1)
    assert world.flashes() is None


def test_a_session_that_ended_during_an_upload_does_not_come_back(world: World) -> None:
    def during_upload() -> None:
        world.sessions.end(world.name)
        world.wait(IDLE / 2)

    world.during_upload = during_upload
    world.upload()
    assert world.flashes() is None


def test_nor_by_what_was_read_before_it_ended(world: World) -> None:
    session = world.sessions.read(world.name)
    assert session is not None
    world.sessions.end(world.name)
    world.sessions.write(world.name, session)
    assert world.flashes() is None


def test_sentences_of_requests_at_the_same_time_are_all_shown(world: World) -> None:
    first, other = ("done", "First.", ""), ("failed", "Other.", "req-1")
    world.sessions.show(world.name, (), (first,))

    def during_upload() -> None:
        if other not in (world.flashes() or ()):
            world.sessions.show(world.name, (first,), (first, other))

    world.during_upload = during_upload
    world.upload()
    assert set(world.flashes() or ()) == {first, other, DONE}
    world.sessions.show(world.name, (first, DONE), ())
    assert world.flashes() == (other,)
