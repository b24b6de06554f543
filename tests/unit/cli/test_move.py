"""Whether a shown server can be moved."""

from __future__ import annotations

import configparser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import micronova.osc
from cli.cloud import Cloud
from cli.osc.server_show import ShownMove
from tests.fixtures.sdk import FakeConnection, FakeProxy

SETUP = Path(__file__).resolve().parents[3] / "setup.cfg"
HOST = "OS-EXT-SRV-ATTR:host"


class Command:
    """The command that the hook is of, and the API that it asks."""

    def __init__(self, answer: Any) -> None:
        self.compute = FakeProxy(get=answer)
        cloud = Cloud(lambda: FakeConnection(self.compute))
        self.app = SimpleNamespace(client_manager=SimpleNamespace(micronova=cloud))

    def shown(self, columns: tuple[str, ...] = (), **values: Any) -> dict[str, Any]:
        given = (tuple(values), iter(values.values()))
        hook: Any = ShownMove(self)  # type: ignore[arg-type]
        return dict(zip(*hook.after(SimpleNamespace(columns=columns), given), strict=True))


def explained(**move: Any) -> Any:
    explanation = {"subject": "u", "operations": [], "move": move} if move else {}
    return SimpleNamespace(status_code=200, json=lambda: {"explanation": explanation})


@pytest.mark.parametrize(
    ("move", "says"),
    [
        ({"way": "live", "obstacle": None}, "live"),
        ({"way": "cold", "obstacle": None}, "cold"),
        (
            {"way": None, "obstacle": "it is suspended: resume it"},
            "no: it is suspended: resume it",
        ),
    ],
)
def test_it_is_a_row_more(move: Any, says: str) -> None:
    command = Command(explained(**move))
    found = command.shown(**{HOST: "pve1", "id": "u", "name": "web"})
    assert list(found.items()) == [
        *((HOST, "pve1"), ("id", "u"), ("micronova:move", says), ("name", "web")),
    ]
    assert command.compute.called("get") == [(("/explanations/u",), {})]
    assert (
        command.shown(("micronova:move",), **{HOST: "pve1", "id": "u"})["micronova:move"] == says
    )


@pytest.mark.parametrize(
    ("columns", "values"),
    [
        ((), {"id": "u", HOST: None}),
        ((), {"id": "u"}),
        ((), {"uptime": 5}),
        (("id", HOST), {"id": "u", HOST: "pve1"}),
    ],
)
def test_nobody_is_asked(columns: tuple[str, ...], values: Any) -> None:
    command = Command(explained(way="live"))
    assert command.shown(columns, **values) == values
    assert command.compute.calls == []


@pytest.mark.parametrize("answer", [SimpleNamespace(status_code=404), explained()])
def test_another_cloud_has_no_answer(answer: Any) -> None:
    values = {HOST: "pve1", "id": "u"}
    assert Command(answer).shown(**values) == values


def test_it_is_announced() -> None:
    setup = configparser.ConfigParser()
    setup.read(SETUP)
    announced = setup["options.entry_points"]
    for group in micronova.osc.HOOKS:
        [name] = [line.split(":")[1] for line in announced[group].split("\n") if line]
        assert getattr(micronova.osc, name) is ShownMove
