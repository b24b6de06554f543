"""Refusals are reported beside the answers, a few at a time."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import falcon
import falcon.testing

from api.compute.refusals import Refusals
from api.compute.views.explanations import refusal
from common import clock
from common.context import RequestContext
from conductor.rpc.refusals import Refused
from db.reads.ledger.refusals import Refusal


class Bus:
    """Takes reports, once it may."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.free.set()
        self.reported: list[tuple[str, Refused]] = []
        self.news = threading.Condition()
        self.broken = False

    def refused(self, ctxt: RequestContext, refused: Refused) -> None:
        self.free.wait(60)
        if self.broken:
            self.broken = False
            raise OSError("the bus is away")
        with self.news:
            self.reported.append((str(ctxt.project_id), refused))
            self.news.notify_all()

    def until(self, count: int) -> None:
        with self.news:
            assert self.news.wait_for(lambda: len(self.reported) >= count, 10)


def answered(refusals: Refusals, project: str, status: int = 403, method: str = "POST") -> None:
    environ = falcon.testing.create_environ("/v2.1/servers", method=method)
    environ["micronova.received_at"] = clock.utcnow()
    req = falcon.Request(environ)
    req.context.ctxt = RequestContext(
        user_id="u",
        user_name="Ursula",
        project_id=project,
        project_name=f"Project {project}",
        overwrite=False,
    )
    resp = falcon.Response()
    resp.status = str(status)
    resp.data = b'{"forbidden": {"code": 403, "message": "no"}}'
    refusals.process_response(req, resp, None, False)


def watching(bus: Bus, now: list[float]) -> Refusals:
    return Refusals(cast(Any, bus), lambda: now[0])


def test_only_refusals_are_reported() -> None:
    bus = Bus()
    refusals = watching(bus, [0.0])
    for status, method in ((202, "POST"), (503, "POST"), (404, "GET")):
        answered(refusals, "p", status, method)
    answered(refusals, "p", 409, "DELETE")
    bus.until(1)
    [(project, refused)] = bus.reported
    assert (project, refused.method, refused.status) == ("p", "DELETE", 409)
    assert refused.message == "no"


def test_operators_read_the_names_of_who_asked_or_the_ids() -> None:
    bus = Bus()
    answered(watching(bus, [0.0]), "p")
    bus.until(1)
    [(_, refused)] = bus.reported
    for details, names in ((refused.details, ("Ursula", "Project p")), ({}, ("u", "p"))):
        kept = Refusal(
            *("p", "u", "req-1", None, "POST", "/v2.1/servers", 403, "no"),
            *(details, refused.received_at, refused.answered_at),
        )
        detail = refusal(kept, operator=True)["events"][0]["detail"]
        assert (detail["user"], detail["project"]) == names
        assert "user" not in refusal(kept, operator=False)["events"][0]["detail"]


def test_who_is_refused_often_is_reported_seldom_and_crowds_out_nobody() -> None:
    bus, now = Bus(), [0.0]
    refusals = watching(bus, now)
    for _ in range(50):
        answered(refusals, "noisy")
    answered(refusals, "quiet")
    bus.until(11)
    assert [project for project, _ in bus.reported].count("noisy") == 10
    now[0] = 1.5
    answered(refusals, "noisy")
    bus.until(12)


def test_a_bus_that_hangs_holds_up_nobody() -> None:
    bus = Bus()
    bus.free.clear()
    refusals = watching(bus, [0.0])
    for number in range(300):
        answered(refusals, f"project-{number}")
    bus.free.set()
    bus.until(100)
    assert len(bus.reported) <= 101


def test_one_that_could_not_be_notified_stops_no_other() -> None:
    bus = Bus()
    bus.broken = True
    refusals = watching(bus, [0.0])
    answered(refusals, "lost")
    answered(refusals, "kept")
    bus.until(1)
    assert bus.reported[0][0] == "kept"


def test_who_is_not_known_is_not_reported() -> None:
    bus = Bus()
    refusals = watching(bus, [0.0])
    answered(refusals, "")
    resp = falcon.Response()
    resp.status = "404"
    req = falcon.Request(falcon.testing.create_environ("/", method="POST"))
    refusals.process_response(req, resp, None, False)
    req.context.ctxt = SimpleNamespace(user_id=None, project_id="p")
    refusals.process_response(req, resp, None, False)
    answered(refusals, "p")
    bus.until(1)
    assert [project for project, _ in bus.reported] == ["p"]
