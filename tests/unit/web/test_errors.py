"""Errors over HTTP: statuses, and that a 500 shows nothing of the inside."""

from __future__ import annotations

from typing import Any

import falcon
import falcon.testing
import pytest

from common import errors as tree
from common.errors import MicronovaError
from web.errors import Fault, Faults, status_of

ERRORS = [
    kind
    for kind in vars(tree).values()
    if isinstance(kind, type) and issubclass(kind, MicronovaError)
]


class Raises:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        raise self.error


def show(req: falcon.Request, resp: falcon.Response, fault: Fault) -> None:
    resp.status = fault.status
    resp.text = fault.message


def answer(error: Exception, path: str = "/", **more: Any) -> tuple[int, str]:
    app: falcon.App[Any, Any] = falcon.App()
    Faults(show, "It failed as {}.", **more).install(app)
    app.add_route("/", Raises(error))
    got = falcon.testing.TestClient(app).simulate_get(path)
    return got.status_code, got.text


@pytest.mark.parametrize("kind", ERRORS, ids=str)
def test_every_error_has_a_status(kind: type[MicronovaError]) -> None:
    status, message = answer(kind("secret"))
    assert status == status_of(kind())
    assert status in {400, 401, 403, 404, 409, 410, 412, 413, 500, 501, 503}
    assert message == ("secret" if status != 500 else "It failed as -.")


def test_a_new_error_is_what_its_base_is() -> None:
    class NewError(tree.Conflict):
        code = "micronova.new"

    class Strange(MicronovaError):
        code = "micronova.strange"

    assert status_of(NewError()) == 409
    assert status_of(Strange()) == 500


def test_an_api_may_have_statuses_and_sentences_of_its_own() -> None:
    assert answer(tree.NotFound("x"), statuses={tree.NotFound: 400}) == (400, "x")
    assert answer(tree.NotFound("x"), "/no", sentences={404: "No."}) == (404, "No.")
    assert answer(RuntimeError("secret")) == (500, "It failed as -.")
    assert answer(falcon.HTTPBadRequest(description="x")) == (400, "x")
