"""Which image the forms of a server's actions begin with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dashboard.answer import View
from dashboard.pages.server import act
from dashboard.visit import Visit

OFFERED = [{"id": "newest"}, {"id": "own"}]


def asked(server: dict[str, Any], query: dict[str, str], images: list[dict[str, str]]) -> View:
    answers = [{"server": {"flavor": {}, **server}}, {"images": images}]
    visit = SimpleNamespace(
        params={"action": "rebuild", "server_id": "s"},
        query=query,
        cloud=SimpleNamespace(together=lambda *_calls: answers),
    )
    found = act.ask(cast(Visit, visit))
    assert isinstance(found, View)
    return found


def test_the_own_image_is_chosen() -> None:
    found = asked({"image": {"id": "own"}}, {}, OFFERED).values
    assert (found["chosen"], found["why_none"]) == ("own", {"imageRef": ""})
    found = asked({"image": {"id": "own"}}, {"image": "newest"}, OFFERED).values
    assert (found["chosen"], found["why_none"]) == ("newest", {"imageRef": ""})


@pytest.mark.parametrize(
    ("server", "query", "why"),
    [
        ({"image": {"id": "own"}}, {}, "The server's own image isn't one of the 1,000 newest"),
        ({"image": {"id": "own"}}, {"image": "x"}, "The image that was asked for isn't one of"),
        ({"image": ""}, {}, "The server boots from a volume"),
    ],
)
def test_another_image_is_never_chosen_in_its_place(
    server: dict[str, Any], query: dict[str, str], why: str
) -> None:
    newer = [{"id": f"newer-{number}"} for number in range(1000)]
    assert asked(server, query, newer).values["why_none"]["imageRef"].startswith(why)
