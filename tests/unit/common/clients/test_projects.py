from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from keystoneauth1 import exceptions

from common.clients.projects import REMEMBERED_SECONDS, Projects


class FakeKeystone:
    """Answers every question alike, and records it."""

    def __init__(self, answer: int | Exception) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def get(self, path: str, **_: Any) -> Any:
        self.asked.append(path)
        if isinstance(self.answer, Exception):
            raise self.answer
        return SimpleNamespace(status_code=self.answer)


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        (200, False),
        (404, True),
        (403, False),
        (401, False),
        (500, False),
        (exceptions.ConnectFailure("no"), False),
        (exceptions.EndpointNotFound(), False),
    ],
)
def test_only_what_is_known_to_be_missing_is(answer: int | Exception, missing: bool) -> None:
    assert Projects(FakeKeystone(answer)).missing("p") is missing


def test_what_was_there_is_remembered_for_a_while() -> None:
    now = [0.0]
    keystone = FakeKeystone(200)
    projects = Projects(keystone, lambda: now[0])
    for _ in range(3):
        assert not projects.missing("p/1")
    assert keystone.asked == ["/projects/p%2F1"]
    keystone.answer = 404
    now[0] = REMEMBERED_SECONDS
    assert projects.missing("p/1")
    keystone.answer = 200
    assert not projects.missing("p/1")
    assert len(keystone.asked) == 3
