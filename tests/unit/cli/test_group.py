"""What the commands about groups of servers show."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from cli.group import group

_GROUP = {
    **{"id": "g", "name": "db", "status": "ACTIVE", "status_reason": "", "min_size": 0},
    **{"desired_capacity": 2, "max_size": -1, "profile_name": "data", "config": {}},
}


def _shown(*data: dict[str, Any]) -> dict[str, Any]:
    nodes = [
        {"name": f"db-{index}", "physical_id": f"s{index}", "status": "ACTIVE", "data": one}
        for index, one in enumerate(data, 1)
    ]
    answers = {"/clusters/db": {"cluster": _GROUP}, "/nodes": {"nodes": nodes}}

    def get(path: str, **_: Any) -> Any:
        return SimpleNamespace(status_code=200, ok=True, json=lambda: answers[path])

    cloud = SimpleNamespace(connection=SimpleNamespace(clustering=SimpleNamespace(get=get)))
    command: Any = SimpleNamespace(cloud=cloud)
    names, values = group.shown(command, "db", wait=False)
    return dict(zip(names, values, strict=True))


def test_a_group_shows_what_belongs_to_its_places() -> None:
    shown = _shown({"volumes": ["v1", "v2"]}, {"health": {}, "ports": ["p1"]})
    assert shown["volumes"].machine_readable() == {"db-1": "v1,v2"}
    assert shown["ports"].machine_readable() == {"db-2": "p1"}
    assert shown["servers"].machine_readable() == {"db-1": "s1", "db-2": "s2"}


def test_one_without_such_places_shows_none() -> None:
    assert "volumes" not in _shown({}, {})


def test_an_explanation_names_what_is_kept() -> None:
    node = {
        "name": "db-1",
        "status": "ACTIVE",
        "server": "s1",
        "reason": "",
        "ports": ["p1", "p2"],
    }
    found = {
        **{"name": "db", "cluster_id": "g", "status": "ACTIVE", "sentences": [], "actions": []},
        "nodes": [node],
    }
    assert group.explained(found)[-2:] == [
        "  db-1  ACTIVE  s1",
        "      ports of its place: p1, p2",
    ]


def test_a_name_is_no_other_group_s() -> None:
    asked: list[str] = []

    def answer(path: str, **_: Any) -> Any:
        asked.append(path)
        return SimpleNamespace(status_code=200, ok=True, json=lambda: {"cluster": _GROUP})

    clustering = SimpleNamespace(get=answer, post=answer)
    cloud: Any = SimpleNamespace(connection=SimpleNamespace(clustering=clustering))
    for name in ("web#1", "web?x", "web 1"):
        group.get(cloud, name)
        group.act(cloud, name, "recover")
    assert asked == [
        *("/clusters/web%231", "/clusters/web%231/actions"),
        *("/clusters/web%3Fx", "/clusters/web%3Fx/actions"),
        *("/clusters/web%201", "/clusters/web%201/actions"),
    ]
